"""The command `summarize`: the figures of each session."""

from __future__ import annotations

from typing import Any

import click

from pcapstat.cli.options import capture_options, chosen_format, destination, leave, opened, output_options
from pcapstat.cli.progress import shown
from pcapstat.metrics.sessions import LAYERS, TIME1, Choices, Summary


@click.command("summarize")
@capture_options
@output_options
@click.option("--session", "sessions", type=int, multiple=True, metavar="N", help="Only this session; may be repeated.")
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

            FORMATS[name](as_table(summary, sessions), file, [])
    has_notes = is_strict and summary.has_notes
    return leave(summary.damage, has_notes)


def as_table(summary: Summary, sessions: tuple[int, ...]) -> Any:
    """Return the figures as an Arrow table, one row a session; what is a list or a dictionary stays in --format json."""
    from dataclasses import fields

    import pyarrow as pa

    from pcapstat.metrics.sessions import SessionFigures

    flat = [field.name for field in fields(SessionFigures) if field.name not in {"kinds", "times", "notes", "overhead_by_part_bytes"}]
    chosen = [[getattr(session, name) for name in flat] for session in summary.sessions.chosen(sessions)]
    return pa.table({name: [row[at] for row in chosen] for at, name in enumerate(flat)})
