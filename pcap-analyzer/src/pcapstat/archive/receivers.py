"""The receiving session of each capture of a dataset, from the sums alone, by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pcapstat.archive.labelling import RESERVED
from pcapstat.metrics.sessions import Choices, SessionFigures, receiver_of, session_figures
from pcapstat.schema import SUMMED, tables

if TYPE_CHECKING:
    import duckdb

CHUNK = 1000
"""Captures whose rows are held at a time."""
WITH_DATA = """
    SELECT capture, session, receiver, data_messages
    FROM measured_sessions JOIN measured_directions USING (capture, session)
    WHERE direction = CASE receiver WHEN 'client' THEN 's2c' ELSE 'c2s' END AND data_messages > 0
    ORDER BY capture, session
"""


@dataclass(frozen=True)
class Received:
    """A capture of a dataset: its name in the archive, its labels, and the figures of the session that receives the data."""

    source: str
    labels: dict[str, str]
    session: SessionFigures


@dataclass(frozen=True)
class Candidate:
    """A session with data."""

    capture: str
    session: int
    receiver: str
    data_messages: int


def received(connection: duckdb.DuckDBPyConnection, choices: Choices | None) -> Iterator[Received]:
    """Return the receiving sessions in the order of their captures' identities."""
    for table in SUMMED:
        measure(connection, table)
    labels = labels_of_captures(connection)
    chosen = receivers(connection)
    for first in range(0, len(chosen), CHUNK):
        part = chosen[first : first + CHUNK]
        found = {table: rows_of(connection, table, part) for table in SUMMED}
        for each in part:
            rows = {table: found[table].get((each.capture, each.session), []) for table in SUMMED}
            source, told = labels[each.capture]
            figures = session_figures({**rows, "session": rows["sessions"][0], "notes": []}, choices or Choices())
            yield Received(source, told, figures)


def measure(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Make a view of a table as it was measured, of captures that are recorded (a run that was killed leaves parts of others)."""
    # a label of that name may stand there in another case
    there = {name.lower(): kind for name, kind, *_ in connection.execute(f"DESCRIBE {table}").fetchall()}
    columns = [column.name for column in tables()[table].columns if column.name in there]
    listed = ", ".join(own_column(name, there) for name in columns)
    connection.execute(
        f"CREATE VIEW measured_{table} AS SELECT capture, {listed} FROM {table} WHERE capture IN (SELECT capture FROM captures)"
    )


def own_column(name: str, there: dict[str, str]) -> str:
    """Return the SQL for a table's own column: of captures that have a label of its name, what was measured is in NAME_measured."""
    kept = f"{name}_measured"
    if kept not in there:
        return name
    labelled = f"capture IN (SELECT capture FROM captures WHERE {name} IS NOT NULL)"
    return f"CASE WHEN {labelled} THEN {kept} ELSE TRY_CAST({name} AS {there[kept]}) END AS {name}"


def labels_of_captures(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[str, dict[str, str]]]:
    """Return each capture's name and labels; a label that only others have is empty."""
    rows = named(connection.execute("FROM captures"))
    return {row["capture"]: (row["source"], {name: row[name] or "" for name in row if name not in RESERVED}) for row in rows}


def receivers(connection: duckdb.DuckDBPyConnection) -> list[Candidate]:
    """Return the session of each capture that receives its data."""
    rows = (Candidate(*row) for row in connection.execute(WITH_DATA).fetchall())
    chosen = (receiver_of(sessions) for _, sessions in groupby(rows, key=lambda row: row.capture))
    return [session for session in chosen if session is not None]


def rows_of(connection: duckdb.DuckDBPyConnection, table: str, chosen: list[Candidate]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Return the rows of the chosen sessions in a table of sums."""
    keys = ", ".join(f"('{each.capture}', {each.session})" for each in chosen)
    # the bounds let DuckDB pass over the files of other captures
    bounds = f"capture BETWEEN '{chosen[0].capture}' AND '{chosen[-1].capture}'"
    rows = named(connection.execute(f"FROM measured_{table} WHERE {bounds} AND (capture, session) IN ({keys})"))
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["capture"], row["session"]), []).append(row)
    return found


def named(cursor: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Return the rows of a result, each with its columns' names."""
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
