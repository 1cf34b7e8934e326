"""HTTP/1.1, HTTP/2 and HTTP/3: a Hypercorn server of `/Resource1`, and clients with httpx and aioquic."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path
from typing import Any, TextIO, cast

import httpx
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from app import App
from hypercorn.asyncio import serve
from hypercorn.config import Config


def handler(app: App) -> Any:
    """Return the ASGI application: each GET takes the next message."""
    messages = iter(app.payloads())

    async def answer(scope: Any, _receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        payload = next(messages, b"")
        app.sent(payload)
        headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(payload)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": payload})

    return answer


async def server(app: App) -> None:
    """Serve until the client has left its mark."""
    config = Config()
    address = f"{app.text('local')}:{app.number('port')}"
    if app.text("security"):
        config.bind, config.certfile, config.keyfile = [address], app.file("certfile.pem"), app.file("keyfile.pem")
    else:
        config.insecure_bind = config.bind = [address]
    if app.text("http") == "3":
        config.quic_bind = [address]

    async def done() -> None:
        while not app.over:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    app.begin()
    await serve(handler(app), config, shutdown_trigger=done)


def fetch(app: App) -> None:
    """GET once a message over one connection of HTTP/1.1 or HTTP/2."""
    secured = bool(app.text("security"))
    context: Any = ssl.create_default_context(cafile=app.file("cafile.pem")) if secured else False
    if secured:
        context.keylog_filename = app.file("receiver.secrets")
    url = f"{'https' if secured else 'http'}://{app.text('server')}:{app.number('port')}/Resource1"
    second = app.text("http") == "2"
    with httpx.Client(http1=not second, http2=second, verify=context, timeout=20, trust_env=False) as client:
        for _ in range(app.number("stop")):
            app.received(client.get(url).content)
            time.sleep(app.spacing_s)


class Client(QuicConnectionProtocol):
    """One HTTP/3 connection with one request at a time."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.http = H3Connection(self._quic)
        self.body = b""
        self.answer: asyncio.Future[bytes] | None = None

    def quic_event_received(self, event: Any) -> None:
        """Hand the body on when its stream ends."""
        for part in self.http.handle_event(event):
            if isinstance(part, DataReceived):
                self.body += part.data
            ended = isinstance(part, (DataReceived, HeadersReceived)) and part.stream_ended
            if ended and self.answer is not None and not self.answer.done():
                self.answer.set_result(self.body)

    async def get(self, authority: str) -> bytes:
        """Send a GET and wait for the whole answer."""
        stream = self._quic.get_next_available_stream_id()
        self.body, self.answer = b"", asyncio.get_running_loop().create_future()
        headers = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", authority.encode())]
        self.http.send_headers(stream, [*headers, (b":path", b"/Resource1")], end_stream=True)
        self.transmit()
        return await asyncio.wait_for(self.answer, 20)


async def fetch_quic(app: App, secrets: TextIO) -> None:
    """GET once a message over one connection of HTTP/3."""
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN)
    configuration.load_verify_locations(app.file("cafile.pem"))
    configuration.secrets_log_file = secrets
    host, port = app.text("server"), app.number("port")
    async with connect(host, port, configuration=configuration, create_protocol=Client) as connection:
        client = cast("Client", connection)
        for _ in range(app.number("stop")):
            app.received(await client.get(f"{host}:{port}"))
            await asyncio.sleep(app.spacing_s)


def main() -> None:
    """Serve or fetch."""
    app = App()
    if app.sends:
        asyncio.run(server(app))
        return
    app.begin()
    time.sleep(0.3)
    if app.text("http") == "3":
        with Path(app.file("receiver.secrets")).open("w") as secrets:
            asyncio.run(fetch_quic(app, secrets))
    else:
        fetch(app)
    app.end()


main()
