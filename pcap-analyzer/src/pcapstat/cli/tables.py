"""The commands that write a table: messages, exchanges, sessions, notes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from pcapstat.capture import Table, stopping
from pcapstat.cli.options import Command, capture_options, check_sessions, chosen_format, leave, opened, output_options, session_option
from pcapstat.cli.output import destination
from pcapstat.cli.progress import shown
from pcapstat.schema import tables

FILLING = {
    "payload": click.option("--show-payload", is_flag=True, help="Fill the column payload."),
    "user_name": click.option("--show-secrets", is_flag=True, help="Show user names."),
}
"""Columns that are filled only where that is asked for, each with its option: tables that have the column have the option."""


class Stream:
    """A pass under way, with only the wanted sessions."""

    def __init__(self, table: Table, sessions: tuple[int, ...], wants_notes: bool) -> None:
        """Begin the pass."""
        self.source = table.stream(wants_notes)
        self.sessions = sessions

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's C stream, filtered where sessions were chosen."""
        if not self.sessions:
            return self.source.__arrow_c_stream__(requested_schema)
        import pyarrow as pa
        import pyarrow.compute as pc

        reader = pa.RecordBatchReader.from_stream(self.source)
        wanted = pa.array(self.sessions, reader.schema.field("session").type)
        batches = (batch.filter(pc.is_in(batch.column("session"), wanted)) for batch in reader)
        return pa.RecordBatchReader.from_batches(reader.schema, batches).__arrow_c_stream__(requested_schema)


def make(name: str, about: str) -> click.Command:
    """Make the command of a table."""

    @click.command(name, help=about + ".")
    @capture_options
    @output_options
    @session_option
    @click.option("--columns", metavar="NAMES", help="Columns, separated by commas.")
    @filling_options(name)
    def command(
        files: tuple[str, ...],
        read: tuple[str, ...],
        form: str | None,
        output: str | None,
        sessions: tuple[int, ...],
        columns: str | None,
        **options: Any,
    ) -> int:
        from pcapstat.formats import FORMATS

        chosen = [column.strip() for column in columns.split(",")] if columns else []
        check_columns(name, chosen)
        is_strict = options["strict"]
        capture = opened(files, read, options)
        stream = Stream(capture.table(name), sessions, is_strict)
        with shown(capture), destination(output) as file, stopping(stream.source):
            FORMATS[chosen_format(form, output)](stream, file, chosen)
            # one that the capture has may have no row
            check_sessions(stream.source.sessions, sessions)
        return leave(stream.source.damage, is_strict and stream.source.has_notes)

    return command


def filling_options(table: str) -> Callable[[Command], Command]:
    """Return the options that fill columns of a table."""
    columns = {column.name for column in tables()[table].columns}
    wanted = [option for name, option in FILLING.items() if name in columns]
    return lambda command: functools.reduce(lambda made, option: option(made), reversed(wanted), command)


def check_columns(table: str, chosen: list[str]) -> None:
    """Refuse columns that the table does not have."""
    known = {column.name for column in tables()[table].columns}
    unknown = [name for name in chosen if name not in known]
    if len(set(chosen)) != len(chosen):
        raise click.UsageError("--columns: a column twice")
    if unknown:
        raise click.UsageError(f"no column {', '.join(unknown)} in {table} (pcapstat schema {table} lists them)")
