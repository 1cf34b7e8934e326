"""CoAP messages: RFC 7252 §3 over UDP, RFC 8323 §3.2 and §4.1 over TCP and WebSockets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pcapstat.errors import UsageError
from pcapstat.theory.size import Line, Size, exactly, size, uint_bytes


class Option(NamedTuple):
    """An option: number, format (RFC 7252 §3.2), section, least and most bytes of its value, whether it may stand more than once."""

    number: int
    format: str
    source: str
    least: int
    most: int
    is_repeatable: bool = False


OPTIONS: dict[str, Option] = {
    "If-Match": Option(1, "opaque", "RFC 7252 §5.10.8.1", 0, 8, is_repeatable=True),
    "Uri-Host": Option(3, "string", "RFC 7252 §5.10.1", 1, 255),
    "ETag": Option(4, "opaque", "RFC 7252 §5.10.6", 1, 8, is_repeatable=True),
    "If-None-Match": Option(5, "empty", "RFC 7252 §5.10.8.2", 0, 0),
    "Observe": Option(6, "uint", "RFC 7641 §2", 0, 3),
    "Uri-Port": Option(7, "uint", "RFC 7252 §5.10.1", 0, 2),
    "Location-Path": Option(8, "string", "RFC 7252 §5.10.7", 0, 255, is_repeatable=True),
    "OSCORE": Option(9, "opaque", "RFC 8613 §2", 0, 255),
    "Uri-Path": Option(11, "string", "RFC 7252 §5.10.1", 0, 255, is_repeatable=True),
    "Content-Format": Option(12, "uint", "RFC 7252 §5.10.3", 0, 2),
    "Max-Age": Option(14, "uint", "RFC 7252 §5.10.5", 0, 4),
    "Uri-Query": Option(15, "string", "RFC 7252 §5.10.1", 0, 255, is_repeatable=True),
    "Hop-Limit": Option(16, "uint", "RFC 8768 §3", 1, 1),
    "Accept": Option(17, "uint", "RFC 7252 §5.10.4", 0, 2),
    "Q-Block1": Option(19, "block", "RFC 9177 §4.1", 0, 3),
    "Location-Query": Option(20, "string", "RFC 7252 §5.10.7", 0, 255, is_repeatable=True),
    "EDHOC": Option(21, "empty", "RFC 9668 §3.1", 0, 0),
    "Block2": Option(23, "block", "RFC 7959 §2.1", 0, 3),
    "Block1": Option(27, "block", "RFC 7959 §2.1", 0, 3),
    "Size2": Option(28, "uint", "RFC 7959 §4", 0, 4),
    "Q-Block2": Option(31, "block", "RFC 9177 §4.1", 0, 3, is_repeatable=True),
    "Proxy-Uri": Option(35, "string", "RFC 7252 §5.10.2", 1, 1034),
    "Proxy-Scheme": Option(39, "string", "RFC 7252 §5.10.2", 1, 255),
    "Size1": Option(60, "uint", "RFC 7252 §5.10.9", 0, 4),
    "Echo": Option(252, "opaque", "RFC 9175 §2.2.1", 1, 40),
    "No-Response": Option(258, "uint", "RFC 7967 §2", 0, 1),
    "Request-Tag": Option(292, "opaque", "RFC 9175 §3.2.1", 0, 8, is_repeatable=True),
}
"""All options (IANA "CoAP Option Numbers")."""
MOST_TOKEN_BYTES = 8
MOST_VALUE_BYTES = 65_804
"""Of an option that the table does not have: what an extended length can tell (RFC 7252 §3.1)."""
MOST_OVER_TCP = 65_805 + 2**32 - 1
"""Options and payload of a message over TCP, as far as its length can tell (RFC 8323 §3.2)."""
BERT_SIZE = 2048
BLOCK_NUMBERS, BLOCK_SIZES = range(2**20), {16 << exponent: exponent for exponent in range(8)}
"""Numbers of blocks, and their sizes with SZX (RFC 7959 §2.2); the last stands for BERT over TCP (RFC 8323 §6)."""

Options = Sequence[tuple[str, str]]


def extended_bytes(number: int) -> int:
    """Return the extended bytes of an option delta or length (RFC 7252 §3.1)."""
    return 0 if number < 13 else 1 if number < 269 else 2


def value_bytes(name: str, value: str) -> int:
    """Return the length of an option's value. Raises UsageError where the option's definition does not allow it."""
    return bytes_of(known(name), name, value)


def bytes_of(option: Option, name: str, value: str) -> int:
    """Return the length of a value: text in UTF-8, numbers without leading zeros, opaque in hexadecimal, blocks as NUM/M/SIZE.

    Raises UsageError where the option does not allow it.
    """
    try:
        count = FORMATS[option.format](value)
    except ValueError:
        raise UsageError(f"{name}={value}: no value of the format {option.format} ({option.source})") from None
    if not option.least <= count <= option.most:
        allowed = f"{option.least} to {option.most}" if option.least < option.most else str(option.most)
        raise UsageError(f"{name}={value[:20]}: {count} bytes, where the option has {allowed} ({option.source})")
    return count


def number_bytes(value: str) -> int:
    """Return the length of a number without leading zeros. Raises ValueError."""
    number = int(value or 0)
    if number < 0:
        raise ValueError
    return uint_bytes(number)


def block_bytes(value: str) -> int:
    """Return the length of a block's NUM/M/SIZE (RFC 7959 §2.2). Raises ValueError."""
    number, more, block_size = (int(part) for part in value.split("/"))
    if number not in BLOCK_NUMBERS or more not in {0, 1} or block_size not in BLOCK_SIZES:
        raise ValueError
    return uint_bytes(number << 4 | more << 3 | BLOCK_SIZES[block_size])


FORMATS: dict[str, Callable[[str], int]] = {
    "uint": number_bytes,
    "opaque": lambda value: len(bytes.fromhex(value)),
    "block": block_bytes,
    "string": lambda value: len(value.encode()),
    "empty": lambda value: len(value.encode()),
}
"""Length of a value by its format (RFC 7252 §3.2)."""


def known(name: str) -> Option:
    """Return an option's row; a number stands for an opaque option that the table does not have, or of a length that it does not allow.

    Raises UsageError.
    """
    if name in OPTIONS:
        return OPTIONS[name]
    if name.isdecimal() and 0 < int(name) < 65536:
        return Option(int(name), "opaque", "RFC 7252 §5.4.6", 0, MOST_VALUE_BYTES, is_repeatable=True)
    raise UsageError(f"no CoAP option {name} (there are: {', '.join(OPTIONS)}; or write its number, 1 to 65535)")


def check(given: Options, transport: str) -> None:
    """Raise UsageError for options that no message may have. Messages of captures may have them, and have a size all the same."""
    numbers = [known(name).number for name, _ in given]
    for (name, value), number in zip(given, numbers, strict=True):
        option = next((row for row in OPTIONS.values() if row.number == number), known(name))
        # a value behind a number is written in hexadecimal, whatever the option's format
        bytes_of(option._replace(format=known(name).format), name, value)
        if numbers.count(number) > 1 and not option.is_repeatable:
            raise UsageError(
                f"--option {name}: {numbers.count(number)} times, where a message has it once (RFC 7252 §5.4.5; {option.source})"
            )
        if option.format == "block" and transport == "udp" and value.endswith(f"/{BERT_SIZE}"):
            raise UsageError(f"--option {name}={value}: over UDP 1024 is the largest block (RFC 7959 §2.2; coap-tcp has larger ones)")


def options(given: Options) -> list[Line]:
    """Return the options in the order of their numbers, each with delta and length (RFC 7252 §3.1)."""
    lines, before = [], 0
    for name, value in sorted(given, key=lambda pair: known(pair[0]).number):
        option = known(name)
        length = value_bytes(name, value)
        count = 1 + extended_bytes(option.number - before) + extended_bytes(length) + length
        lines.append(exactly("option", f"{name}: {value}" if value else name, count, option.source))
        before = option.number
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
    if length > MOST_OVER_TCP:
        raise UsageError(f"{length} bytes of options and payload in a message: {MOST_OVER_TCP} are the most (RFC 8323 §3.2)")
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
