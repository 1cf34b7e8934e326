"""CoAP messages: RFC 7252 §3 over UDP, RFC 8323 §3.2 and §4.1 over TCP and WebSockets."""

from __future__ import annotations

from collections.abc import Sequence

from pcapstat.errors import UsageError
from pcapstat.theory.size import Line, Size, exactly, size, uint_bytes

OPTIONS: dict[str, tuple[int, str, str]] = {
    "If-Match": (1, "opaque", "RFC 7252 §5.10.8.1"),
    "Uri-Host": (3, "string", "RFC 7252 §5.10.1"),
    "ETag": (4, "opaque", "RFC 7252 §5.10.6"),
    "If-None-Match": (5, "empty", "RFC 7252 §5.10.8.2"),
    "Observe": (6, "uint", "RFC 7641 §2"),
    "Uri-Port": (7, "uint", "RFC 7252 §5.10.1"),
    "Location-Path": (8, "string", "RFC 7252 §5.10.7"),
    "OSCORE": (9, "opaque", "RFC 8613 §2"),
    "Uri-Path": (11, "string", "RFC 7252 §5.10.1"),
    "Content-Format": (12, "uint", "RFC 7252 §5.10.3"),
    "Max-Age": (14, "uint", "RFC 7252 §5.10.5"),
    "Uri-Query": (15, "string", "RFC 7252 §5.10.1"),
    "Hop-Limit": (16, "uint", "RFC 8768 §3"),
    "Accept": (17, "uint", "RFC 7252 §5.10.4"),
    "Q-Block1": (19, "block", "RFC 9177 §4.1"),
    "Location-Query": (20, "string", "RFC 7252 §5.10.7"),
    "EDHOC": (21, "empty", "RFC 9668 §3.1"),
    "Block2": (23, "block", "RFC 7959 §2.1"),
    "Block1": (27, "block", "RFC 7959 §2.1"),
    "Size2": (28, "uint", "RFC 7959 §4"),
    "Q-Block2": (31, "block", "RFC 9177 §4.1"),
    "Proxy-Uri": (35, "string", "RFC 7252 §5.10.2"),
    "Proxy-Scheme": (39, "string", "RFC 7252 §5.10.2"),
    "Size1": (60, "uint", "RFC 7252 §5.10.9"),
    "Echo": (252, "opaque", "RFC 9175 §2.2.1"),
    "No-Response": (258, "uint", "RFC 7967 §2"),
    "Request-Tag": (292, "opaque", "RFC 9175 §3.2.1"),
}
"""Number, format (RFC 7252 §3.2) and section of each option (IANA "CoAP Option Numbers")."""
MOST_TOKEN_BYTES = 8

Options = Sequence[tuple[str, str]]


def extended_bytes(number: int) -> int:
    """Return the extended bytes of an option delta or length (RFC 7252 §3.1)."""
    return 0 if number < 13 else 1 if number < 269 else 2


def value_bytes(name: str, value: str) -> int:
    """Return the length of an option's value: text in UTF-8, numbers without leading zeros, opaque in hexadecimal, blocks as NUM/M/SIZE."""
    form = known(name)[1]
    if form == "uint":
        return uint_bytes(int(value or 0))
    if form == "opaque":
        return len(bytes.fromhex(value))
    if form == "block":
        number, more, block_size = (int(part) for part in value.split("/"))
        return uint_bytes(number << 4 | more << 3 | (block_size.bit_length() - 5))
    return 0 if form == "empty" else len(value.encode())


def known(name: str) -> tuple[int, str, str]:
    """Return an option's row; a number stands for an opaque option that the table does not have. Raises UsageError."""
    if name in OPTIONS:
        return OPTIONS[name]
    if name.isdecimal() and int(name) < 65536:
        return int(name), "opaque", "RFC 7252 §5.4.6"
    raise UsageError(f"no CoAP option {name} (there are: {', '.join(OPTIONS)}; or write its number)")


def options(given: Options) -> list[Line]:
    """Return the options in the order of their numbers, each with delta and length (RFC 7252 §3.1)."""
    lines, before = [], 0
    for name, value in sorted(given, key=lambda option: known(option[0])[0]):
        number, _, source = known(name)
        length = value_bytes(name, value)
        count = 1 + extended_bytes(number - before) + extended_bytes(length) + length
        lines.append(exactly("option", f"{name}: {value}" if value else name, count, source))
        before = number
    return lines


def token(count: int | None) -> Line:
    """Return the token: its length, or the range that the standard leaves."""
    least, most = (0, MOST_TOKEN_BYTES) if count is None else (count, count)
    return Line("header", "Token", least, most, "RFC 7252 §5.3.1")


def content(payload_bytes: int) -> list[Line]:
    """Return marker and payload; a message without payload has no marker."""
    if payload_bytes == 0:
        return []
    return [
        exactly("header", "Payload Marker", 1, "RFC 7252 §3"),
        exactly("payload", "Payload", payload_bytes, "RFC 7252 §5.5"),
    ]


def message(token_bytes: int | None = None, given: Options = (), payload_bytes: int = 0, *, is_empty: bool = False) -> Size:
    """Return the size of a message over UDP. An Empty message has neither token nor options nor payload (RFC 7252 §4.1)."""
    header = exactly("header", "Ver, T, TKL, Code, Message ID", 4, "RFC 7252 §3")
    if is_empty:
        return size(header)
    return size(header, token(token_bytes), options(given), content(payload_bytes))


def message_over_tcp(token_bytes: int | None = None, given: Options = (), payload_bytes: int = 0) -> Size:
    """Return the size of a message over TCP, whose length field counts options and payload with its marker (RFC 8323 §3.2)."""
    body = [*options(given), *content(payload_bytes)]
    length = sum(line.least for line in body)
    extended = 0 if length < 13 else 1 if length < 269 else 2 if length < 65805 else 4
    return size(
        exactly("header", "Len, TKL", 1, "RFC 8323 §3.2"),
        exactly("header", "Extended Length", extended, "RFC 8323 §3.2"),
        exactly("header", "Code", 1, "RFC 8323 §3.2"),
        token(token_bytes),
        body,
    )


def message_over_websockets(token_bytes: int | None = None, given: Options = (), payload_bytes: int = 0) -> Size:
    """Return the size of a message in a WebSocket frame, which tells the length (RFC 8323 §4.2)."""
    return size(
        exactly("header", "Len (0), TKL", 1, "RFC 8323 §4.2"),
        exactly("header", "Code", 1, "RFC 8323 §4.2"),
        token(token_bytes),
        options(given),
        content(payload_bytes),
    )


def from_text(text: str | None) -> list[tuple[str, str]]:
    """Read the column `options` of the table messages back. Values with "; " in them cannot be told from several options."""
    return [(name, value) for name, _, value in (option.partition(": ") for option in (text or "").split("; ")) if name]
