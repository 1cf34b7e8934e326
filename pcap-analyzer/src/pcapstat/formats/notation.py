"""JSON (RFC 8259) of whatever a table or a summary holds: exact numbers with all their digits, and nothing that JSON has no word for."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any


def number(value: float) -> str:
    """Write a number; one that is infinite or none has no word in JSON (RFC 8259 §6)."""
    return repr(value) if math.isfinite(value) else "null"


SCALARS: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: str,
    float: number,
    Decimal: lambda value: f"{value:f}",
    str: encode_basestring,
    bytes: lambda value: f'"{value.hex()}"',
}


def other(value: Any) -> str:
    """Write a date or time as ISO 8601 has it, and anything else as it reads."""
    return encode_basestring(value.isoformat() if hasattr(value, "isoformat") else str(value))


def as_json(value: Any, begin: str | None = None) -> str:
    """Write a value on one line; or, where `begin` is a line break and the indent behind it, each part of it on a line of its own."""
    scalar = SCALARS.get(type(value))
    if scalar is not None:
        return scalar(value)
    inner = None if begin is None else begin + " "
    if isinstance(value, dict):
        return enclosed("{}", [f"{encode_basestring(str(name))}: {as_json(each, inner)}" for name, each in value.items()], begin)
    if isinstance(value, list | tuple):
        return enclosed("[]", [as_json(each, inner) for each in value], begin)
    return other(value)


def enclosed(braces: str, members: list[str], begin: str | None) -> str:
    """Write members between braces."""
    if begin is None or not members:
        return braces[0] + ", ".join(members) + braces[1]
    return f"{braces[0]}{begin} " + f",{begin} ".join(members) + begin + braces[1]
