"""The commands that write a table: messages, exchanges, sessions, notes."""

from __future__ import annotations

from typing import Any

import click

from pcapstat.capture import Table, stopping
from pcapstat.cli.options import capture_options, chosen_format, leave, opened, output_options
from pcapstat.cli.output import destination
from pcapstat.cli.progress import shown


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
        wanted = pa.array(self.sessions)
        batches = (batch.filter(pc.is_in(batch.column("session"), wanted.cast(batch.column("session").type))) for batch in reader)
        return pa.RecordBatchReader.from_batches(reader.schema, batches).__arrow_c_stream__(requested_schema)


def make(name: str, about: str) -> click.Command:
    """Make the command of a table."""

    @click.command(name, help=about + ".")
    @capture_options
    @output_options
    @click.option("--session", "sessions", type=int, multiple=True, metavar="N", help="Only this session; may be repeated.")
    @click.option("--columns", metavar="NAMES", help="Columns, separated by commas.")
    @click.option("--show-payload", is_flag=True, help="Fill the column payload.")
    @click.option("--show-secrets", is_flag=True, help="Show user names.")
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
        return leave(stream.source.damage, is_strict and stream.source.has_notes)

    return command


def check_columns(table: str, chosen: list[str]) -> None:
    """Refuse columns that the table does not have."""
    from pcapstat.schema import tables

    known = {column.name for column in tables()[table].columns}
    unknown = [name for name in chosen if name not in known]
    if len(set(chosen)) != len(chosen):
        raise click.UsageError("--columns: a column twice")
    if unknown:
        raise click.UsageError(f"no column {', '.join(unknown)} in {table} (pcapstat schema {table} lists them)")
