"""Plain TCP (messages one after the other, no framing but their known size) and WebSocket."""

from __future__ import annotations

import socket
import time

from app import App
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection
from websockets.sync.server import serve as serve_websocket


def accept_tcp(app: App) -> None:
    """Receive messages of one size over one connection."""
    with socket.create_server((app.text("local"), app.number("port"))) as listener:
        app.begin()
        connection, _ = listener.accept()
        with connection:
            while not app.full and (message := _exactly(connection, app.number("size"))):
                app.received(message)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data


def send_tcp(app: App) -> None:
    """Send every message over one connection, each at once (TCP_NODELAY)."""
    with socket.create_connection((app.text("server"), app.number("port"))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for payload in app.payloads():
            app.sent(payload)
            connection.sendall(payload)
            time.sleep(app.spacing_s)


def accept_websocket(app: App) -> None:
    """Receive binary messages over one WebSocket."""

    def take(connection: ServerConnection) -> None:
        for message in connection:
            app.received(message if isinstance(message, bytes) else message.encode())
        server.shutdown()

    with serve_websocket(take, app.text("local"), app.number("port")) as server:
        app.begin()
        server.serve_forever()


def send_websocket(app: App) -> None:
    """Send every message as a binary frame."""
    with connect(f"ws://{app.text('server')}:{app.number('port')}/Resource1", proxy=None) as connection:
        for payload in app.payloads():
            app.sent(payload)
            connection.send(payload)
            time.sleep(app.spacing_s)


def main() -> None:
    """Send or receive."""
    app = App()
    websocket = app.text("over") == "websocket"
    if app.sends:
        app.begin()
        (send_websocket if websocket else send_tcp)(app)
    else:
        (accept_websocket if websocket else accept_tcp)(app)


main()
