"""The tables and columns, as the native core declares them: the one list."""

from functools import cache
from typing import NamedTuple

from pcapstat import _native

PARTS = ("link", "padding", "ip", "transport", "security", "header", "option", "payload", "opaque")
"""The nine parts of bytes on the wire, in the order in which the tables' lists hold them."""
SUMMED = ("sessions", "directions", "kinds", "timings")
"""Tables of sums: the figures of a session are made of its rows in all four."""


class Column(NamedTuple):
    """A column: name, Arrow type in words, unit ("" where none), and what it is."""

    name: str
    data_type: str
    unit: str
    doc: str


class Table(NamedTuple):
    """A table: name, what a row is, and its columns."""

    name: str
    doc: str
    columns: tuple[Column, ...]


@cache
def tables() -> dict[str, Table]:
    """Return all tables by name."""
    return {
        table["name"]: Table(table["name"], table["doc"], tuple(Column(**column) for column in table["columns"]))
        for table in _native.schema()
    }
