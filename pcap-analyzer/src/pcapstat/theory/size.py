"""What a message weighs, field by field: a range where a field may vary, and the section of the standard behind each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LAYERS = ("link", "ip", "transport", "security", "header", "option", "payload")
"""The parts that a size is split into; names as in the tables' columns (`link_bytes` …)."""


@dataclass(frozen=True)
class Line:
    """One field: its part, its name in the standard, its least and most bytes, and where that is written."""

    part: str
    field: str
    least: int
    most: int
    source: str


@dataclass(frozen=True)
class Size:
    """A message's fields in the order of the wire."""

    lines: tuple[Line, ...]

    @property
    def least(self) -> int:
        """Fewest bytes."""
        return sum(line.least for line in self.lines)

    @property
    def most(self) -> int:
        """Most bytes."""
        return sum(line.most for line in self.lines)

    @property
    def bytes(self) -> int:
        """Return the bytes of a size without ranges. Raises ValueError where it has some."""
        if self.least != self.most:
            raise ValueError(f"the size is a range: {self.least} to {self.most} bytes")
        return self.least

    def part(self, name: str) -> tuple[int, int]:
        """Least and most bytes of one part."""
        lines = [line for line in self.lines if line.part == name]
        return sum(line.least for line in lines), sum(line.most for line in lines)

    def __add__(self, other: Size) -> Size:
        """One behind the other."""
        return Size(self.lines + other.lines)


def repeated(line: Line, least: int, most: int, of_what: str) -> Line:
    """Return what a field makes where it is there `least` to `most` times, once in each of what is named."""
    if most == 1:
        return line
    times = str(least) if least == most else f"{least}…{most}"
    return Line(line.part, f"{line.field}, {times} {of_what}", line.least * least, line.most * most, line.source)


def exactly(part: str, field: str, count: int, source: str) -> Line:
    """Return a field of one length."""
    return Line(part, field, count, count, source)


def size(*lines: Line | Iterable[Line] | None) -> Size:
    """Put fields together; None and empty runs are left out."""
    flat: list[Line] = []
    for line in lines:
        if isinstance(line, Line):
            flat.append(line)
        elif line is not None:
            flat.extend(line)
    return Size(tuple(flat))


def uint_bytes(value: int) -> int:
    """Return the bytes of an unsigned integer without leading zeros (RFC 7252 §3.2): none for 0."""
    return (value.bit_length() + 7) // 8
