"""pcapstat compare: runs side by side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, get_type_hints

import click
from click.core import ParameterSource

from pcapstat import errors
from pcapstat.cli.options import NamedPath, capture_options, chosen_format, named, output_options
from pcapstat.cli.output import complain, destination
from pcapstat.cli.plot import image_suffix, save
from pcapstat.cli.several import Several
from pcapstat.metrics.sessions import Choices

if TYPE_CHECKING:
    import pandas as pd

    from pcapstat.compare import Run

FIGURE_NAMES = (
    *("delta_time", "goodput", "throughput", "throughput_all", "overhead", "overhead_both_legs"),
    *("overhead_ratio", "bytes_per_data_byte"),
    *("message_rate", "arrival_rate", "data_span", "retransmissions", "rtt", "delay"),
)
"""Names of compare.FIGURES, here so that --help need not load it; a test compares the two."""
CHART_NAMES = ("bars", "lines")
"""Names of plots.CHARTS, here for the same reason."""
USUAL = ("delta_time", "goodput", "throughput", "overhead")


@click.command("compare")
@capture_options
@output_options
@click.option("--labels", metavar="PATTERN", help="Labels in the paths: '{library}-{qos}.pcapng'; else run and round from the file's name.")
@click.option(
    "--by", metavar="NAMES", help="Labels that make a group, separated by commas; rounds of a group are aggregated. Default: all but round."
)
@click.option("--figure", "figures", multiple=True, type=click.Choice(FIGURE_NAMES), help="Figure; may be repeated.")
@click.option(
    "--negligible", type=click.FloatRange(0, 1), default=0.05, show_default=True, help="Share below which a difference is negligible."
)
@click.option(
    "--table", "wanted", type=click.Choice(["groups", "pairs", "across"]), default="groups", show_default=True, help="What to write."
)
@click.option("--layer", type=click.Choice(["frame", "ip", "transport", "security", "application"]), default="frame", help="Bytes counted.")
@click.option("--plot", type=NamedPath(dir_okay=False), metavar="FILE", help="Draw the figures too: .png, .svg or .pdf.")
@click.option(
    "--chart", type=click.Choice(CHART_NAMES), default="bars", show_default=True, help="How --plot draws; lines: over the last label."
)
@click.option("--data", type=NamedPath(dir_okay=False), metavar="FILE", help="The tidy table too, as CSV: a row a run and figure.")
def command(
    files: tuple[str, ...],
    read: tuple[str, ...],
    form: str | None,
    output: str | None,
    labels: str | None,
    by: str | None,
    figures: tuple[str, ...],
    negligible: float,
    wanted: str,
    layer: str,
    plot: str | None,
    chart: str,
    data: str | None,
    **options: Any,
) -> int:
    """Compare runs, a capture each: rounds aggregated, with confidence intervals, effect sizes, tests and a ranking.

    Of a folder that pcapstat batch wrote each capture is a run; nothing is measured again, and --by names labels of the dataset.

    groups: median, mean, sample SD, 95 % intervals (t for the mean, bootstrap for the median), rank. pairs: each two groups, with
    Cliff's delta and Mann-Whitney's p, Holm corrected. across: who is better over all other labels (Study A's "negligible", "irregular").
    """
    suffix = image_suffix("--plot", plot) if plot else ""
    from pcapstat.compare import tidy

    several = Several(options)
    runs = [run for path in named(files, read) for run in runs_of(path, labels, Choices(layer=layer), several)]
    if not runs:
        raise errors.UsageError("no run with data (name captures that carry data messages)")
    keys = keys_of(runs, by)
    if plot and chart == "lines" and not keys:
        raise errors.UsageError("--chart lines: no label to draw over (there is only round: --by round)")
    table = tidy(runs, figures or USUAL) if plot or data else None
    rows = [row for figure in figures or USUAL for row in compared(runs, figure, keys, negligible, wanted)]
    if not rows:
        complain("nothing to compare: no two groups have the figure")
    with destination(output) as file:
        write(rows, columns_of(wanted), chosen_format(form, output), file)
    if table is not None:
        picture(table, keys, chart, plot, suffix, data)
    return several.leave()


def keys_of(runs: list[Run], by: str | None) -> list[str]:
    """Return the labels that make a group. Raises UsageError where no run has one of them."""
    from pcapstat.compare import labels_of

    there = labels_of(runs)
    keys = [key.strip() for key in by.split(",")] if by else [key for key in there if key != "round"]
    unknown = [key for key in keys if key not in there]
    if unknown:
        raise errors.UsageError(f"--by {by}: no label {', '.join(unknown)} (there are: {', '.join(there)})")
    return keys


def picture(table: pd.DataFrame, keys: list[str], chart: str, plot: str | None, suffix: str, data: str | None) -> None:
    """Draw the tidy table of the runs, and write it."""
    from pcapstat.plots import CHARTS

    if plot:
        save(CHARTS[chart][0](table, keys), plot, suffix)
    if data:
        with destination(data) as file:
            table.to_csv(file, index=False)


def runs_of(path: str, labels: str | None, choices: Choices, several: Several) -> list[Run]:
    """Measure one capture, or take the runs of a dataset; a capture without data is named and left out."""
    from pcapstat.compare import measured
    from pcapstat.labels import of_path

    if Path(path).is_dir():
        return runs_of_dataset(path, choices, several)
    with several.opened(path) as capture:
        run = measured(capture, of_path(path, labels), choices)
    if run is None:
        complain(f"{path}: no session with data; left out")
        return []
    return [run]


def runs_of_dataset(path: str, choices: Choices, several: Several) -> list[Run]:
    """Return the runs of a dataset; their labels are the dataset's, or run and round from the names of its captures where it has none.

    Raises UsageError where the user asked for something that says how captures are read: that was chosen when the dataset was made.
    """
    from pcapstat.archive import dataset
    from pcapstat.compare import Run
    from pcapstat.labels import of_path

    context = click.get_current_context()
    asked = {"labels", *several.options} - {"strict"}
    told = [name for name in sorted(asked) if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if told:
        raise errors.UsageError(
            f"--{told[0].replace('_', '-')} says how captures are read (give it to pcapstat batch; {path} is a dataset)"
        )
    measured = dataset(path)
    runs = [Run(each.source, each.labels or of_path(each.source, None), each.session) for each in measured.receivers(choices)]
    several.damage.append(measured.damage())
    several.has_notes |= several.is_strict and measured.has_notes()
    return runs


def compared(runs: list[Run], figure: str, keys: list[str], negligible: float, wanted: str) -> list[dict[str, Any]]:
    """Return the rows of one figure."""
    from pcapstat import compare

    if wanted == "groups":
        return [asdict(group) for group in compare.groups(runs, figure, keys)]
    if wanted == "pairs":
        return [asdict(pair) for pair in compare.pairs(runs, figure, keys, negligible)]
    verdicts = [(key, couple, verdict) for key in keys for couple, verdict in compare.across(runs, figure, key, negligible).items()]
    return [{"figure": figure, "label": key, "one": one, "other": other, "verdict": verdict} for key, (one, other), verdict in verdicts]


def columns_of(wanted: str) -> dict[str, Any]:
    """Return the columns of a table, and the types of what they hold."""
    from pcapstat.compare import Group, Pair

    if wanted == "across":
        return dict.fromkeys(("figure", "label", "one", "other", "verdict"), str)
    return get_type_hints({"groups": Group, "pairs": Pair}[wanted])


def write(rows: list[dict[str, Any]], columns: dict[str, Any], form: str, file: IO[bytes]) -> None:
    """Write rows; numbers of a table for people have four digits."""
    import pyarrow as pa

    from pcapstat.formats import FORMATS
    from pcapstat.formats.arrow import declared

    if form in {"table", "markdown"}:
        columns = {name: str if kind in {float, float | None} else kind for name, kind in columns.items()}
        rows = [{name: readable(value) if isinstance(value, float) else value for name, value in row.items()} for row in rows]
    FORMATS[form](pa.Table.from_pylist(rows, schema=declared(columns)), file, [])


def readable(value: float) -> str:
    """Write a number with four digits, from a thousand on all before the point."""
    return f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 else f"{value:.4g}"
