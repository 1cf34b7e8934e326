"""Sizes of MQTT-SN messages, WebSocket and HTTP/2 frames."""

from __future__ import annotations

from pcapstat.errors import UsageError
from pcapstat.theory.size import Size, exactly, size

MQTT_SN: dict[str, tuple[int, str]] = {
    "ADVERTISE": (3, "§5.4.1"),
    "SEARCHGW": (1, "§5.4.2"),
    "GWINFO": (1, "§5.4.3"),
    "CONNECT": (4, "§5.4.4"),
    "CONNACK": (1, "§5.4.5"),
    "WILLTOPICREQ": (0, "§5.4.6"),
    "WILLTOPIC": (1, "§5.4.7"),
    "WILLMSGREQ": (0, "§5.4.8"),
    "WILLMSG": (0, "§5.4.9"),
    "REGISTER": (4, "§5.4.10"),
    "REGACK": (5, "§5.4.11"),
    "PUBLISH": (5, "§5.4.12"),
    "PUBACK": (5, "§5.4.13"),
    "PUBREC": (2, "§5.4.14"),
    "PUBREL": (2, "§5.4.14"),
    "PUBCOMP": (2, "§5.4.14"),
    "SUBSCRIBE": (3, "§5.4.15"),
    "SUBACK": (6, "§5.4.16"),
    "UNSUBSCRIBE": (3, "§5.4.17"),
    "UNSUBACK": (2, "§5.4.18"),
    "PINGREQ": (0, "§5.4.19"),
    "PINGRESP": (0, "§5.4.20"),
    "DISCONNECT": (0, "§5.4.21"),
}
"""Bytes of the fields of a fixed length behind the message type (MQTT-SN 1.2), and the section."""


def mqtt_sn(kind: str, variable_bytes: int = 0, payload_bytes: int = 0) -> Size:
    """Return the size of an MQTT-SN message: `variable_bytes` are topic name, client identifier or duration."""
    if kind not in MQTT_SN:
        raise UsageError(f"no MQTT-SN message {kind} (there are: {', '.join(MQTT_SN)})")
    fields, section = MQTT_SN[kind]
    rest = 1 + fields + variable_bytes + payload_bytes
    return size(
        exactly("header", "Length", 1 if rest + 1 < 256 else 3, "MQTT-SN 1.2 §5.2.1"),
        exactly("header", "MsgType", 1, "MQTT-SN 1.2 §5.2.2"),
        exactly("header", "fields of a fixed length", fields, f"MQTT-SN 1.2 {section}"),
        exactly("header", "fields of a variable length", variable_bytes, f"MQTT-SN 1.2 {section}") if variable_bytes else None,
        exactly("payload", "Data", payload_bytes, "MQTT-SN 1.2 §5.3.4") if payload_bytes else None,
    )


def websocket(payload_bytes: int, *, is_masked: bool) -> Size:
    """Return the size of a WebSocket frame; what a client sends is masked (RFC 6455 §5.3)."""
    extended = 0 if payload_bytes < 126 else 2 if payload_bytes < 65536 else 8
    return size(
        exactly("header", "FIN, opcode, MASK, payload length", 2, "RFC 6455 §5.2"),
        exactly("header", "Extended payload length", extended, "RFC 6455 §5.2"),
        exactly("header", "Masking-key", 4 if is_masked else 0, "RFC 6455 §5.3"),
        exactly("payload", "Payload Data", payload_bytes, "RFC 6455 §5.2"),
    )


def http2(kind: str = "DATA", payload_bytes: int = 0, padding_bytes: int | None = None) -> Size:
    """Return the size of an HTTP/2 frame: of DATA the content, of HEADERS the compressed field block, of others all behind the header."""
    part = {"DATA": "payload", "HEADERS": "option"}.get(kind, "header")
    return size(
        exactly("header", "Length, Type, Flags, Stream Identifier", 9, "RFC 9113 §4.1"),
        None if padding_bytes is None else exactly("header", "Pad Length", 1, "RFC 9113 §6.1"),
        exactly(part, kind, payload_bytes, "RFC 9113 §6"),
        None if padding_bytes is None else exactly("header", "Padding", padding_bytes, "RFC 9113 §6.1"),
    )
