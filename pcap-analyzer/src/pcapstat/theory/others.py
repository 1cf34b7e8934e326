"""Sizes of MQTT-SN messages, WebSocket and HTTP/2 frames."""

from __future__ import annotations

from collections.abc import Callable

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
MOST_MQTT_SN = 65_535
"""What a length of two bytes can tell."""


def mqtt_sn(kind: str, variable_bytes: int = 0, payload_bytes: int = 0) -> Size:
    """Return the size of an MQTT-SN message: `variable_bytes` are topic name, client identifier or duration."""
    if kind not in MQTT_SN:
        raise UsageError(f"no MQTT-SN message {kind} (there are: {', '.join(MQTT_SN)})")
    fields, section = MQTT_SN[kind]
    rest = 1 + fields + variable_bytes + payload_bytes
    if rest + 3 > MOST_MQTT_SN:
        raise UsageError(f"{kind} of {rest + 3} bytes: {MOST_MQTT_SN} are the most (MQTT-SN 1.2 §5.2.1)")
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


HTTP2: dict[str, tuple[Callable[[int], bool], str, str]] = {
    "DATA": (lambda _: True, "any length", "§6.1"),
    "HEADERS": (lambda _: True, "any length", "§6.2"),
    "PRIORITY": (lambda count: count == 5, "5 bytes", "§6.3"),
    "RST_STREAM": (lambda count: count == 4, "4 bytes", "§6.4"),
    "SETTINGS": (lambda count: count % 6 == 0, "a multiple of 6 bytes", "§6.5"),
    "PUSH_PROMISE": (lambda count: count >= 4, "4 bytes at least", "§6.6"),
    "PING": (lambda count: count == 8, "8 bytes", "§6.7"),
    "GOAWAY": (lambda count: count >= 8, "8 bytes at least", "§6.8"),
    "WINDOW_UPDATE": (lambda count: count == 4, "4 bytes", "§6.9"),
    "CONTINUATION": (lambda _: True, "any length", "§6.10"),
}
"""Frame types (RFC 9113): whether a payload can have a length, which those are, and the section."""
PADDED = ("DATA", "HEADERS", "PUSH_PROMISE")
MOST_FRAME = 2**24 - 1
"""Frame types that may be padded (RFC 9113 §6.1, §6.2, §6.6), and the longest payload (§4.2)."""


def check_http2(kind: str, payload_bytes: int, padding_bytes: int | None) -> None:
    """Raise UsageError for a frame that RFC 9113 does not have."""
    if kind not in HTTP2:
        raise UsageError(f"no HTTP/2 frame {kind} (RFC 9113 §6; there are: {', '.join(HTTP2)})")
    can_have, lengths, section = HTTP2[kind]
    if not can_have(payload_bytes):
        raise UsageError(f"{kind} with {payload_bytes} bytes of payload: it has {lengths} (RFC 9113 {section})")
    if padding_bytes is not None and kind not in PADDED:
        raise UsageError(f"{kind} with padding: only {', '.join(PADDED)} have it (RFC 9113 {section})")
    if payload_bytes + (0 if padding_bytes is None else 1 + padding_bytes) > MOST_FRAME:
        raise UsageError(f"{kind} with {payload_bytes} bytes of payload: {MOST_FRAME} are the most of a frame (RFC 9113 §4.2)")


def http2(kind: str = "DATA", payload_bytes: int = 0, padding_bytes: int | None = None) -> Size:
    """Return the size of an HTTP/2 frame: of DATA the content, of HEADERS the compressed field block, of others all behind the header.

    Raises UsageError for a frame that cannot be.
    """
    check_http2(kind, payload_bytes, padding_bytes)
    part = {"DATA": "payload", "HEADERS": "option"}.get(kind, "header")
    return size(
        exactly("header", "Length, Type, Flags, Stream Identifier", 9, "RFC 9113 §4.1"),
        None if padding_bytes is None else exactly("header", "Pad Length", 1, "RFC 9113 §6.1"),
        exactly(part, kind, payload_bytes, "RFC 9113 §6"),
        None if padding_bytes is None else exactly("header", "Padding", padding_bytes, "RFC 9113 §6.1"),
    )
