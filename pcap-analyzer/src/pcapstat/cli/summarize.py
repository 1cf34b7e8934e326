"""The command `summarize`: the figures of each session."""

from __future__ import annotations

from typing import Any, get_type_hints

import click

from pcapstat.cli.options import capture_options, check_sessions, chosen_format, leave, opened, output_options, session_option
from pcapstat.cli.output import destination
from pcapstat.cli.progress import shown
from pcapstat.metrics.sessions import LAYERS, TIME1, Choices, Summary


@click.command("summarize")
@capture_options
@output_options
@session_option
@click.option("--layer", type=click.Choice(list(LAYERS)), default="frame", show_default=True, help="Where bytes are counted.")
@click.option("--time1", type=click.Choice(TIME1[::-1]), help="What ΔTime begins with; else the innermost that is visible.")
@click.option("--no-transport-control", is_flag=True, help="Leave frames without a message (SYN, bare ACK) out of the overhead.")
def command(
    files: tuple[str, ...],
    read: tuple[str, ...],
    form: str | None,
    output: str | None,
    sessions: tuple[int, ...],
    layer: str,
    time1: str | None,
    no_transport_control: bool,
    **options: Any,
) -> int:
    """Figures of each session: ΔTime, goodput, throughput, overhead, delays.

    One block a session; each names the Wireshark filter that shows its frames.
    """
    is_strict = options["strict"]
    choices = Choices(layer=layer, time1=time1, transport_control=not no_transport_control)
    capture = opened(files, read, options)
    with shown(capture):
        summary = capture.summary(choices)
    check_sessions(len(summary.sessions), sessions)
    name = chosen_format(form, output)
    with destination(output) as file:
        if name == "table":
            from pcapstat.cli.page import page

            file.write(page(summary, sessions).encode())
        elif name == "json":
            from pcapstat.cli.page import as_json

            file.write(as_json(summary, sessions).encode())
        else:
            from pcapstat.formats import FORMATS

            # Parquet has numbers that programs reckon with, text all the digits of a time
            FORMATS[name](as_table(summary, sessions, is_text=name != "parquet"), file, [])
    has_notes = is_strict and summary.has_notes
    return leave(summary.damage, has_notes)


def as_table(summary: Summary, sessions: tuple[int, ...], *, is_text: bool) -> Any:
    """Return the figures as an Arrow table, one row a session; what is a list or a dictionary stays in --format json.

    Types are those that SessionFigures declares, whatever has a value. As text Time1 and Time2 are decimals, with all nine places.
    """
    import pyarrow as pa

    from pcapstat.cli.page import exact_times
    from pcapstat.formats.arrow import declared
    from pcapstat.metrics.sessions import SessionFigures

    schema = declared(get_type_hints(SessionFigures))
    flat = dict(zip(schema.names, schema.types, strict=True))
    rows = [{name: getattr(session, name) for name in flat} for session in summary.sessions.chosen(sessions)]
    if is_text:
        rows = [row | exact_times(session) for row, session in zip(rows, summary.sessions.chosen(sessions), strict=True)]
        flat |= {"time1_s": pa.decimal128(19, 9), "time2_s": pa.decimal128(19, 9)}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(flat.items())))
