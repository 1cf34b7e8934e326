"""pcapstat crosscheck: where tshark's dissectors and the core say different things of a capture."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_type_hints

import click

from pcapstat.cli.options import capture_options, chosen_format, named, output_options
from pcapstat.cli.output import destination
from pcapstat.cli.several import Several


@click.command("crosscheck")
@capture_options
@output_options
@click.option("--all", "shows_all", is_flag=True, help="Explained differences too, with their reasons.")
def command(files: tuple[str, ...], read: tuple[str, ...], form: str | None, output: str | None, shows_all: bool, **options: Any) -> int:
    """Compare every field that both know, message by message, in what tshark's dissectors and the core say of a capture.

    A row is a difference. Leaves with 1 where one is not explained.
    """
    import pyarrow as pa

    from pcapstat.crosscheck import Difference, differences
    from pcapstat.formats import FORMATS
    from pcapstat.formats.arrow import declared

    several = Several(options)
    found: list[Difference] = []
    for path in named(files, read):
        with several.opened(path) as capture:
            found += differences(capture)
    unexplained = [difference for difference in found if difference.explanation is None]
    rows = [asdict(difference) for difference in (found if shows_all else unexplained)]
    table = pa.Table.from_pylist(rows, schema=declared(get_type_hints(Difference)))
    with destination(output) as file:
        FORMATS[chosen_format(form, output)](table, file, [])
    click.echo(f"{len(found)} differences, {len(found) - len(unexplained)} of them explained", err=True)
    return several.leave(has_failed=bool(unexplained))
