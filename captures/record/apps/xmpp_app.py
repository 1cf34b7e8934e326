"""XMPP with slixmpp: chat messages, or items of a PubSub node."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import slixmpp
from app import App

NODE = "Resource1"
NAMESPACE = "urn:pcapstat:data"
SERVICE = "pubsub.localhost"


class Client(slixmpp.ClientXMPP):
    """One end of the run."""

    def __init__(self, app: App) -> None:
        user = "sender" if app.sends else "receiver"
        super().__init__(f"{user}@localhost/app", app.text("password"))
        self.app = app
        self.over: asyncio.Future[None] | None = None
        for plugin in ("xep_0030", "xep_0060"):
            self.register_plugin(plugin)
        if app.text("security"):
            self.ssl_context = ssl.create_default_context(cafile=app.file("cafile.pem"))
            self.ssl_context.keylog_filename = app.file(f"{app.text('role')}.secrets")
            self.ca_certs = Path(app.file("cafile.pem"))
        else:
            self.enable_starttls, self.enable_plaintext = False, True
            self["feature_mechanisms"].unencrypted_plain = True
            self["feature_mechanisms"].unencrypted_scram = True
        self.enable_direct_tls = False
        self.add_event_handler("session_start", self.work)
        self.add_event_handler("message", self.chat)
        self.add_event_handler("pubsub_publish", self.item)
        self.add_event_handler("failed_all_auth", lambda _: self.end("authentication failed"))

    def end(self, why: str = "") -> None:
        """End the run."""
        if why:
            self.app.error(why)
        if self.over is not None and not self.over.done():
            self.over.set_result(None)

    async def work(self, _event: Any) -> None:
        """Do what the role asks for, once the session stands."""
        self.send_presence()
        pubsub = self.app.text("mode") == "pubsub"
        if not self.app.sends:
            if pubsub:
                await self["xep_0060"].subscribe(SERVICE, NODE)
            return
        if pubsub:
            await self["xep_0060"].create_node(SERVICE, NODE)
        await asyncio.sleep(1)
        for payload in self.app.payloads():
            self.app.sent(payload)
            if pubsub:
                body = ET.Element(f"{{{NAMESPACE}}}data")
                body.text = payload.decode()
                await self["xep_0060"].publish(SERVICE, NODE, payload=body)
            else:
                self.send_message(slixmpp.JID("receiver@localhost"), payload.decode(), mtype="chat")
            await asyncio.sleep(self.app.spacing_s)
        self.end()

    def chat(self, message: Any) -> None:
        """Take a chat message."""
        if message["type"] == "chat":
            self.take(message["body"])

    def item(self, message: Any) -> None:
        """Take an item of the node."""
        self.take(message["pubsub_event"]["items"]["item"]["payload"].text)

    def take(self, text: str) -> None:
        """Log a message and end after enough."""
        self.app.received(text.encode())
        if self.app.full:
            self.end()


async def run(app: App) -> None:
    """Connect, and stay until the run is over."""
    client = Client(app)
    client.over = asyncio.get_running_loop().create_future()
    app.begin()
    client.connect(app.text("server"), 5222)
    try:
        await asyncio.wait_for(client.over, app.number("patience_s"))
    except TimeoutError:
        app.error(f"stopped waiting after {app.received_count} messages")
    await asyncio.wait_for(client.disconnect(), 10)


logging.disable(logging.CRITICAL)
asyncio.run(run(App()))
