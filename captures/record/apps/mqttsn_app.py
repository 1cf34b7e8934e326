"""MQTT-SN 1.2: a publisher, a subscriber, and a minimal gateway that serves both.

The clients are mqtt-sn-12's, or for messages over 248 bytes, which it does not send, the recorder's own. The gateway
knows enough for one topic and QoS 0 and 1: CONNECT, REGISTER, SUBSCRIBE, PUBLISH, PUBACK, DISCONNECT.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from app import App
from mqttsn12.client.MqttSnClient import MqttSnClient, MqttSnListener
from mqttsn12.MqttSnConstants import MqttSnConstants

CONNECT, CONNACK, REGISTER, REGACK, PUBLISH, PUBACK = 0x04, 0x05, 0x0A, 0x0B, 0x0C, 0x0D
SUBSCRIBE, SUBACK, DISCONNECT = 0x12, 0x13, 0x18
"""Message types of the MQTT-SN specification 1.2, section 5.2.2."""
TOPIC, TOPIC_ID = b"Resource1", 1
Address = tuple[str, int]


def packet(kind: int, body: bytes) -> bytes:
    """Return a message with its length field of one or three bytes (section 5.2.1)."""
    if len(body) + 2 < 256:
        return bytes([len(body) + 2, kind]) + body
    return b"\x01" + struct.pack(">HB", len(body) + 4, kind) + body


def parse(data: bytes) -> tuple[int, bytes]:
    """Return the type and the body of a message."""
    return (data[3], data[4:]) if data[0] == 1 else (data[1], data[2:])


class Gateway:
    """Answers clients and hands what is published to the subscribers; there is no broker behind it."""

    def __init__(self, app: App) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((app.text("local"), app.number("port")))
        self.subscribers: dict[Address, int] = {}
        self.serial = 0

    def run(self) -> None:
        """Serve until ended from outside."""
        while True:
            data, peer = self.socket.recvfrom(65535)
            kind, body = parse(data)
            self.answer(kind, body, peer)

    def answer(self, kind: int, body: bytes, peer: Address) -> None:
        """Answer one message."""
        if kind == CONNECT:
            self.socket.sendto(packet(CONNACK, b"\0"), peer)
        elif kind == REGISTER:
            self.socket.sendto(packet(REGACK, struct.pack(">H2sB", TOPIC_ID, body[2:4], 0)), peer)
        elif kind == SUBSCRIBE:
            self.subscribers[peer] = body[0] & 0x60
            self.socket.sendto(packet(SUBACK, struct.pack(">BH2sB", body[0] & 0x60, TOPIC_ID, body[1:3], 0)), peer)
        elif kind == PUBLISH:
            self.publish(body, peer)
        elif kind == DISCONNECT:
            self.subscribers.pop(peer, None)
            self.socket.sendto(packet(DISCONNECT, b""), peer)

    def publish(self, body: bytes, peer: Address) -> None:
        """Acknowledge a PUBLISH of QoS 1 and hand it on."""
        if body[0] & 0x20:
            self.socket.sendto(packet(PUBACK, struct.pack(">H2sB", TOPIC_ID, body[3:5], 0)), peer)
        for subscriber, quality in self.subscribers.items():
            self.serial = self.serial % 65535 + 1 if quality else 0
            head = struct.pack(">BHH", quality & body[0], TOPIC_ID, self.serial)
            self.socket.sendto(packet(PUBLISH, head + body[5:]), subscriber)


class Client:
    """A client that waits for the answer to each of its requests."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.quality = app.number("qos") << 5
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect((app.text("server"), app.number("port")))
        self.socket.settimeout(app.number("patience_s"))

    def ask(self, kind: int, body: bytes, expected: int) -> None:
        """Send a request and wait for its answer."""
        self.socket.send(packet(kind, body))
        while parse(self.socket.recv(65535))[0] != expected:
            pass

    def run(self) -> None:
        """Connect, send or receive, disconnect."""
        self.ask(CONNECT, struct.pack(">BBH", 0x04, 1, 60) + self.app.text("role").encode(), CONNACK)
        if self.app.sends:
            self.ask(REGISTER, struct.pack(">HH", 0, 1) + TOPIC, REGACK)
            self.send()
        else:
            self.ask(SUBSCRIBE, struct.pack(">BH", self.quality, 1) + TOPIC, SUBACK)
            self.receive()
        self.ask(DISCONNECT, b"", DISCONNECT)

    def send(self) -> None:
        """Publish every message."""
        for number, payload in enumerate(self.app.payloads(), start=1):
            self.app.sent(payload)
            body = struct.pack(">BHH", self.quality, TOPIC_ID, number if self.quality else 0) + payload
            if self.quality:
                self.ask(PUBLISH, body, PUBACK)
            else:
                self.socket.send(packet(PUBLISH, body))
            time.sleep(self.app.spacing_s)

    def receive(self) -> None:
        """Take messages until there are enough."""
        while not self.app.full:
            kind, body = parse(self.socket.recv(65535))
            if kind == PUBLISH:
                self.app.received(body[5:])
                if body[0] & 0x20:
                    self.socket.send(packet(PUBACK, body[1:5] + b"\0"))


class Listener(MqttSnListener):  # type: ignore[misc]
    """Takes what the library has received."""

    def __init__(self, app: App) -> None:
        self.app = app

    def message_arrived(self, msg: Any) -> None:
        """Log a message."""
        self.app.received(msg.get_payload())


def library(app: App) -> None:
    """Publish or subscribe with mqtt-sn-12."""
    client = MqttSnClient()
    client.set_client_id(app.text("role"))
    client.open(app.text("server"), app.number("port"))
    client.send_connect()
    if app.sends:
        topic = client.send_register(TOPIC.decode())
        for payload in app.payloads():
            app.sent(payload)
            client.send_publish_with_id(topic, MqttSnConstants.TOPIC_TYPE_NORMAL, payload, app.number("qos"))
            time.sleep(app.spacing_s)
    else:
        client.send_subscribe(TOPIC.decode(), app.number("qos"), Listener(app))
        while not app.full:
            client.polling()
            time.sleep(0.0005)
    client.send_disconnect()
    client.close()


def main() -> None:
    """Be the gateway or a client."""
    app = App()
    if app.text("role") == "gateway":
        gateway = Gateway(app)
        print("ready", flush=True)
        gateway.run()
    app.begin()
    if app.text("client") == "mqtt-sn-12":
        library(app)
    else:
        Client(app).run()


main()
