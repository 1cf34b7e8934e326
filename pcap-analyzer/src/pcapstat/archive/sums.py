"""The sums of a capture's sessions as Arrow tables, all from one pass."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from pcapstat.schema import tables

if TYPE_CHECKING:
    import pyarrow as pa

    from pcapstat import _native

SUMMED = ("sessions", "directions", "kinds", "timings")
"""Tables that one pass makes together; figures of a session are made of its rows in all four."""
BATCH = 4096
"""Sessions whose rows are held at a time."""


@cache
def schema(table: str) -> pa.Schema:
    """Return a table's Arrow schema, as `pcapstat schema` lists it."""
    import pyarrow as pa

    def arrow(name: str) -> pa.DataType:
        inner = name.removeprefix("list<").removesuffix(">")
        return pa.list_(arrow(inner)) if inner != name else pa.type_for_alias(name)

    return pa.schema([(column.name, arrow(column.data_type)) for column in tables()[table].columns])


def rows(sums: _native.Sums, number: int, table: str) -> list[dict[str, Any]]:
    """Return the rows of one session in a table."""
    session = sums.session(number)
    return [session["session"]] if table == "sessions" else session[table]


def batches(sums: _native.Sums, table: str) -> Iterator[pa.RecordBatch]:
    """Return the rows of a table in batches, a bounded number of sessions at a time."""
    import pyarrow as pa

    columns = schema(table)
    for first in range(0, len(sums), BATCH):
        numbers = range(first, min(first + BATCH, len(sums)))
        yield pa.RecordBatch.from_pylist(list(chain.from_iterable(rows(sums, number, table) for number in numbers)), schema=columns)
