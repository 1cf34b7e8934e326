"""Bytes of the messages that scenarios send: the standards' encoders, by scapy where it has them."""

from __future__ import annotations

from collections.abc import Sequence

from pcapstat.theory import coap
from pcapstat.theory.mqtt import variable_bytes


def option_value(name: str, value: str) -> bytes:
    """Return an option's value (RFC 7252 §3.2)."""
    form = coap.known(name).format
    if form == "uint":
        return int(value or 0).to_bytes(coap.value_bytes(name, value), "big")
    return bytes.fromhex(value) if form == "opaque" else value.encode()


def coap_options(options: Sequence[tuple[str, str]]) -> bytes:
    """Encode options in the order of their numbers (RFC 7252 §3.1)."""
    out, before = b"", 0
    for name, value in options:
        number, encoded = coap.known(name).number, option_value(name, value)
        delta, delta_more = extended(number - before)
        length, length_more = extended(len(encoded))
        out += bytes([delta << 4 | length]) + delta_more + length_more + encoded
        before = number
    return out


def extended(number: int) -> tuple[int, bytes]:
    """Return a nibble with its extended bytes (RFC 7252 §3.1)."""
    if number < 13:
        return number, b""
    return (13, bytes([number - 13])) if number < 269 else (14, (number - 269).to_bytes(2, "big"))


def packet(kind: int, body: bytes, flags: int = 0) -> bytes:
    """Return a control packet (MQTT 5 §2.1)."""
    remaining, left = b"", len(body)
    for _ in range(variable_bytes(len(body))):
        left, digit = divmod(left, 128)
        remaining += bytes([digit | (128 if left else 0)])
    return bytes([kind << 4 | flags]) + remaining + body


def text(value: str) -> bytes:
    """Return a UTF-8 string behind its length (MQTT 5 §1.5.4)."""
    return len(value.encode()).to_bytes(2, "big") + value.encode()


def connect(client_identifier: str) -> bytes:
    """Return CONNECT with a clean start and a keep alive of 60 s (MQTT 5 §3.1)."""
    return packet(1, text("MQTT") + b"\x05\x02\x00\x3c\x00" + text(client_identifier))


def connack() -> bytes:
    """Return CONNACK with Topic Alias Maximum 10, which Mosquitto announces too (MQTT 5 §3.2)."""
    return packet(2, b"\x00\x00\x03\x22\x00\x0a")


def subscribe(identifier: int, topic: str, qos: int) -> bytes:
    """Return SUBSCRIBE (MQTT 5 §3.8)."""
    return packet(8, identifier.to_bytes(2, "big") + b"\x00" + text(topic) + bytes([qos]), 2)


def suback(identifier: int, qos: int) -> bytes:
    """Return SUBACK (MQTT 5 §3.9)."""
    return packet(9, identifier.to_bytes(2, "big") + b"\x00" + bytes([qos]))


def publish(topic: str, identifier: int, qos: int, content: bytes, alias: int | None) -> bytes:
    """Return PUBLISH, with a topic alias where one is given (MQTT 5 §3.3)."""
    number = identifier.to_bytes(2, "big") if qos else b""
    properties = b"\x00" if alias is None else b"\x03\x23" + alias.to_bytes(2, "big")
    return packet(3, text(topic) + number + properties + content, qos << 1)


def acknowledgement(kind: int, identifier: int) -> bytes:
    """Return PUBACK, PUBREC, PUBREL or PUBCOMP without a reason code (MQTT 5 §3.4 to §3.7)."""
    return packet(kind, identifier.to_bytes(2, "big"), 2 if kind == 6 else 0)


UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: 192.0.2.2:8080\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
SWITCHING = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)
"""RFC 6455 §1.2, with the key and accept value of its example."""


def websocket(content: bytes) -> bytes:
    """Return a masked binary frame (RFC 6455 §5.2)."""
    mask, count = b"\x37\xfa\x21\x3d", len(content)
    length = (
        bytes([0x80 | count])
        if count < 126
        else b"\xfe" + count.to_bytes(2, "big")
        if count < 65536
        else b"\xff" + count.to_bytes(8, "big")
    )
    return b"\x82" + length + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(content))


def sn(kind: int, body: bytes) -> bytes:
    """Return an MQTT-SN message (MQTT-SN 1.2 §5.2)."""
    count = 2 + len(body)
    length = bytes([count]) if count < 256 else b"\x01" + (count + 2).to_bytes(2, "big")
    return length + bytes([kind]) + body


def sn_opening(topic: str) -> list[tuple[bool, bytes]]:
    """Return CONNECT, CONNACK, REGISTER and REGACK (MQTT-SN 1.2 §5.4.4 to §5.4.11)."""
    return [
        (True, sn(0x04, b"\x04\x01\x00\x3csender")),
        (False, sn(0x05, b"\x00")),
        (True, sn(0x0A, b"\x00\x00\x00\x01" + topic.encode())),
        (False, sn(0x0B, b"\x00\x01\x00\x01\x00")),
    ]


def sn_publish(identifier: int, qos: int, content: bytes) -> bytes:
    """Return PUBLISH (MQTT-SN 1.2 §5.4.12)."""
    return sn(0x0C, bytes([qos << 5]) + b"\x00\x01" + (identifier if qos else 0).to_bytes(2, "big") + content)


def sn_flow(identifier: int, qos: int) -> list[bytes]:
    """Return what answers a PUBLISH, by turns: PUBACK, or PUBREC, PUBREL and PUBCOMP (MQTT-SN 1.2 §5.4.13, §5.4.14)."""
    number = identifier.to_bytes(2, "big")
    if qos == 1:
        return [sn(0x0D, b"\x00\x01" + number + b"\x00")]
    return [sn(kind, number) for kind in (0x0F, 0x10, 0x0E)] if qos == 2 else []
