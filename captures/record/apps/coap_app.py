"""aiocoap: a resource that is observed or fetched, and its client; NoSec or OSCORE; block-wise for large bodies."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

from aiocoap import GET, PUT, Context, Message, resource
from aiocoap.credentials import CredentialsMap
from aiocoap.numbers.types import Type
from aiocoap.oscore_sitewrapper import OscoreSiteWrapper
from app import App


class Resource1(resource.ObservableResource):  # type: ignore[misc]
    """The data: each message replaces the one before."""

    def __init__(self, app: App) -> None:
        super().__init__()
        self.app = app
        self.payload = b""
        self.next = iter(app.payloads() if app.text("mode") == "get" else ())

    async def render_get(self, _request: Any) -> Any:
        """Answer a GET (with mode `get` by the next message), or notify an observer."""
        self.payload = next(self.next, self.payload)
        self.app.sent(self.payload)
        return Message(payload=self.payload)

    async def render_put(self, request: Any) -> Any:
        """Take what a client sends."""
        self.app.received(request.payload)
        return Message(code=68)  # 2.04 Changed


def credentials(app: App, context: Any) -> None:
    """Give an end the secrets that it shares with the other."""
    name = ":client" if app.number("serves") else f"{app.text('scheme')}://{app.text('server')}/*"
    if app.text("security") == "DTLS 1.2 PSK":
        secret = {"psk": {"ascii": app.text("psk")}, "client-identity": {"ascii": app.text("identity")}}
        context.load_from_dict({name: {"dtls": secret}})
    if app.text("security") == "OSCORE":
        context.load_from_dict({name: {"oscore": {"basedir": oscore(app)}}})


def oscore(app: App) -> str:
    """Write one end's OSCORE context and return its folder."""
    side = "server" if app.number("serves") else "client"
    folder = Path(app.file(f"oscore-{side}"))
    folder.mkdir()
    ids = ("01", "02") if side == "client" else ("02", "01")
    settings = {
        "algorithm": "AES-CCM-16-64-128",
        "kdf-hashfun": "sha256",
        "window": 32,
        "secret_hex": app.text("secret"),
        "salt_hex": app.text("salt"),
        "sender-id_hex": ids[0],
        "recipient-id_hex": ids[1],
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    return str(folder)


async def serve(app: App) -> None:
    """Serve the resource and change it for each payload; with nothing to send, take what clients put."""
    data = Resource1(app)
    site: Any = resource.Site()
    site.add_resource(["Resource1"], data)
    store = CredentialsMap()
    credentials(app, store)
    if app.text("security") == "OSCORE":
        site = OscoreSiteWrapper(site, store)
    context = await Context.create_server_context(site, bind=(app.text("local"), None), server_credentials=store)
    data.payload = app.payloads()[0]
    app.begin()
    if app.text("mode") != "observe":
        while not app.over:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    else:
        for payload in app.payloads():
            data.payload = payload
            data.updated_state()
            await asyncio.sleep(app.spacing_s)
    await context.shutdown()


async def observe(app: App, context: Any, uri: str) -> None:
    """Register and take notifications until there are enough."""
    request = context.request(Message(code=GET, uri=uri, observe=0))
    app.received((await request.response).payload)
    async for notification in request.observation:
        app.received(notification.payload)
        if app.full:
            return


async def exchange(app: App, context: Any, uri: str) -> None:
    """GET or PUT once for each message, one after the other."""
    for payload in app.payloads():
        if app.text("mode") == "put":
            app.sent(payload)
            await context.request(Message(code=PUT, uri=uri, payload=payload)).response
        else:
            kind = Type.CON if app.number("confirm") else Type.NON
            app.received((await context.request(Message(code=GET, uri=uri, _mtype=kind)).response).payload)
        await asyncio.sleep(app.spacing_s)


async def client(app: App) -> None:
    """Run a client to its end, bounded in time."""
    context = await Context.create_client_context()
    credentials(app, context.client_credentials)
    uri = f"{app.text('scheme')}://{app.text('server')}/Resource1"
    app.begin()
    work = observe if app.text("mode") == "observe" else exchange
    try:
        await asyncio.wait_for(work(app, context, uri), app.number("patience_s"))
    except (TimeoutError, OSError) as problem:
        app.error(repr(problem))
    await asyncio.sleep(0.05)
    app.end()
    await context.shutdown()


def main() -> None:
    """Serve or ask."""
    logging.disable(logging.CRITICAL)
    app = App()
    asyncio.run(serve(app) if app.number("serves") else client(app))


main()
