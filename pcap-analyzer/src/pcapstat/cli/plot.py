"""pcapstat plot: figures of captures."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pcapstat.cli.options import NamedPath, capture_options, named
from pcapstat.cli.output import complain, destination
from pcapstat.cli.several import Several
from pcapstat.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("rate", "delay", "delay-over-time", "overhead", "sizes", "sequence", "timeline")
"""Names of plots.PLOTS, here so that --help need not load it; a test compares the two."""
IMAGES = ("png", "svg", "pdf")


@click.command("plot")
@capture_options
@click.option("--kind", type=click.Choice(KINDS), default="rate", show_default=True, help="What to draw.")
@click.option("-O", "--output", type=NamedPath(dir_okay=False), required=True, metavar="FILE", help="The image: .png, .svg or .pdf.")
@click.option("--data", type=NamedPath(dir_okay=False), metavar="FILE", help="The tidy table behind the figure too, as CSV.")
@click.option("--title", help="A title.")
def command(
    files: tuple[str, ...], read: tuple[str, ...], kind: str, output: str, data: str | None, title: str | None, **options: Any
) -> int:
    """Draw a figure of one capture or several: rate over time, delays, overhead by layer, sizes against theory, sequence, retransmissions.

    Colours can be told apart by colour-blind people; axes have units; --data writes the table that was drawn.
    """
    suffix = image_suffix("-O", output)
    from pcapstat.plots import PLOTS

    tidy_of, draw, _ = PLOTS[kind]
    several = Several(options)
    with contextlib.ExitStack() as stack:
        tidy = tidy_of([stack.enter_context(several.opened(path)) for path in named(files, read)])
    if tidy.empty:
        complain(f"{output}: nothing to draw (pcapstat summarize tells what the captures hold)")
    figure = draw(tidy)
    if title:
        figure.suptitle(title)
    save(figure, output, suffix)
    if data:
        with destination(data) as file:
            tidy.to_csv(file, index=False)
    return several.leave()


def image_suffix(option: str, output: str) -> str:
    """Return the image's format by its name's end. Raises UsageError where that is none."""
    suffix = Path(output).suffix.removeprefix(".").lower()
    if suffix not in IMAGES:
        raise UsageError(f"{option} {output}: no image format (end the name with .png, .svg or .pdf)")
    return suffix


def save(figure: Figure, output: str, suffix: str) -> None:
    """Write an image whole or not at all; the same figure is the same file."""
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[suffix]
    with destination(output) as file:
        figure.savefig(file, format=suffix, dpi=150, metadata=metadata)
