"""Sizes of MQTT-SN messages, WebSocket and HTTP/2 frames."""

from __future__ import annotations

from collections.abc import Callable

from pcapstat.errors import UsageError
from pcapstat.theory.size import Line, Size, exactly, size

NOTHING, ANY, NAME = range(1), range(65_536), range(1, 65_536)
"""Bytes that a variable field may have: none; any number; one at least."""
CLIENT_IDENTIFIER, DURATION = range(1, 24), range(0, 3, 2)
"""The same of a client identifier (MQTT-SN 1.2 §5.3.1), and of a duration, which may be left out (§5.4.21)."""
MQTT_SN: dict[str, tuple[int, str, range]] = {
    "ADVERTISE": (3, "§5.4.1", NOTHING),
    "SEARCHGW": (1, "§5.4.2", NOTHING),
    "GWINFO": (1, "§5.4.3", ANY),
    "CONNECT": (4, "§5.4.4", CLIENT_IDENTIFIER),
    "CONNACK": (1, "§5.4.5", NOTHING),
    "WILLTOPICREQ": (0, "§5.4.6", NOTHING),
    "WILLTOPIC": (1, "§5.4.7", ANY),
    "WILLMSGREQ": (0, "§5.4.8", NOTHING),
    "WILLMSG": (0, "§5.4.9", ANY),
    "REGISTER": (4, "§5.4.10", NAME),
    "REGACK": (5, "§5.4.11", NOTHING),
    "PUBLISH": (5, "§5.4.12", NOTHING),
    "PUBACK": (5, "§5.4.13", NOTHING),
    "PUBREC": (2, "§5.4.14", NOTHING),
    "PUBREL": (2, "§5.4.14", NOTHING),
    "PUBCOMP": (2, "§5.4.14", NOTHING),
    "SUBSCRIBE": (3, "§5.4.15", NAME),
    "SUBACK": (6, "§5.4.16", NOTHING),
    "UNSUBSCRIBE": (3, "§5.4.17", NAME),
    "UNSUBACK": (2, "§5.4.18", NOTHING),
    "PINGREQ": (0, "§5.4.19", range(24)),
    "PINGRESP": (0, "§5.4.20", NOTHING),
    "DISCONNECT": (0, "§5.4.21", DURATION),
    "WILLTOPICUPD": (1, "§5.4.22", ANY),
    "WILLMSGUPD": (0, "§5.4.23", ANY),
    "WILLTOPICRESP": (1, "§5.4.24", NOTHING),
    "WILLMSGRESP": (1, "§5.4.25", NOTHING),
}
"""Bytes of the fields of a fixed length behind the message type (MQTT-SN 1.2), the section, and which the variable field may have."""
MAY_BE_EMPTY = ("WILLTOPIC", "WILLTOPICUPD")
"""Without a topic they have no flags either: that deletes the will (MQTT-SN 1.2 §5.4.7, §5.4.22)."""
MOST_MQTT_SN = 65_535
"""What a length of two bytes can tell."""


def check_mqtt_sn(kind: str, variable_bytes: int, payload_bytes: int) -> None:
    """Raise UsageError for a message that MQTT-SN 1.2 does not have."""
    if kind not in MQTT_SN:
        raise UsageError(f"no MQTT-SN message {kind} (there are: {', '.join(MQTT_SN)})")
    _, section, lengths = MQTT_SN[kind]
    if variable_bytes not in lengths:
        several = f"{lengths[0]} {'or' if len(lengths) == 2 else 'to'} {lengths[-1]}"
        raise UsageError(f"--variable {variable_bytes}: {kind} has {several if len(lengths) > 1 else 'none'} (MQTT-SN 1.2 {section})")
    if payload_bytes and kind != "PUBLISH":
        raise UsageError(
            f"--payload {payload_bytes}: {kind} has none, only PUBLISH (MQTT-SN 1.2 {section}; a will's message is --variable)"
        )


def mqtt_sn(kind: str, variable_bytes: int = 0, payload_bytes: int = 0) -> Size:
    """Return the size of an MQTT-SN message: `variable_bytes` are topic name, client identifier, will message, address or duration.

    Raises UsageError for a message that cannot be.
    """
    check_mqtt_sn(kind, variable_bytes, payload_bytes)
    fields, section, _ = MQTT_SN[kind]
    if kind in MAY_BE_EMPTY and not variable_bytes:
        fields = 0
    rest = 1 + fields + variable_bytes + payload_bytes
    if rest + 3 > MOST_MQTT_SN:
        raise UsageError(f"{kind} of {rest + 3} bytes: {MOST_MQTT_SN} are the most (MQTT-SN 1.2 §5.2.1)")
    return size(
        exactly("header", "Length", 1 if rest + 1 < 256 else 3, "MQTT-SN 1.2 §5.2.1"),
        exactly("header", "MsgType", 1, "MQTT-SN 1.2 §5.2.2"),
        exactly("header", "fields of a fixed length", fields, f"MQTT-SN 1.2 {section}") if fields else None,
        exactly("header", "fields of a variable length", variable_bytes, f"MQTT-SN 1.2 {section}") if variable_bytes else None,
        exactly("payload", "Data", payload_bytes, "MQTT-SN 1.2 §5.3.4") if payload_bytes else None,
    )


def extended_length(content_bytes: int) -> int:
    """Return the extended bytes of a WebSocket frame's length (RFC 6455 §5.2)."""
    return 0 if content_bytes < 126 else 2 if content_bytes < 65536 else 8


def in_websocket(content: Size, *, is_masked: bool) -> Size:
    """Put a message into a WebSocket frame; what a client sends is masked (RFC 6455 §5.3)."""
    least, most = extended_length(content.least), extended_length(content.most)
    return size(
        exactly("header", "FIN, opcode, MASK, payload length", 2, "RFC 6455 §5.2"),
        Line("header", "Extended payload length", least, most, "RFC 6455 §5.2"),
        exactly("header", "Masking-key", 4 if is_masked else 0, "RFC 6455 §5.3"),
        content.lines,
    )


def websocket(payload_bytes: int, *, is_masked: bool) -> Size:
    """Return the size of a WebSocket frame."""
    return in_websocket(size(exactly("payload", "Payload Data", payload_bytes, "RFC 6455 §5.2")), is_masked=is_masked)


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
