"""What all figures share: tables of several captures, colours that colour-blind people can tell apart, axes in milliseconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pcapstat.labels import stem_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from pcapstat.capture import Capture

PALETTE = "colorblind"
"""Seaborn's palette after Wong, Nature Methods 8:441 (2011)."""
POINTS_PER_INCH = 72
HANDLE_POINTS, LINE_POINTS = 45.0, 15.0
"""Of a legend: what stands before and behind a name, and how high a line of its small type is."""


def rows(captures: Sequence[Capture], table: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return columns of a table of several captures, with the capture's name, seconds since its first row, and its `payload_size`.

    That is what the user tells of the data messages in closed records: it is in no column.
    """
    import pandas as pd

    frames = []
    for capture, name in zip(captures, names(captures), strict=True):
        frame = capture.table(table).to_arrow().select(list(columns)).to_pandas()
        frame["capture"], frame["payload_size"] = name, capture.options.get("payload_size") or 0
        if "time_ns" in columns:
            frame["time_s"] = (frame["time_ns"] - frame["time_ns"].min()) / 1e9
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def names(captures: Sequence[Capture]) -> list[str]:
    """Return what a figure calls each capture: its file's name without the ending, or as much of its path as others do not have."""
    told = [capture.name or capture.paths[0] for capture in captures]
    short = [stem_of(name) for name in told]
    numbered = [f"{name} ({told[:at].count(name) + 1})" if name in told[:at] else name for at, name in enumerate(told)]
    ends = [PurePath(name).parts for name in numbered]
    return [name if short.count(name) == 1 else own_end(parts, ends) for name, parts in zip(short, ends, strict=True)]


def own_end(parts: tuple[str, ...], several: Sequence[tuple[str, ...]]) -> str:
    """Return the shortest end of a path that no other of several paths has."""
    lengths = range(1, len(parts) + 1)
    length = next((length for length in lengths if sum(other[-length:] == parts[-length:] for other in several) == 1), len(parts))
    return str(PurePath(*parts[-length:]))


def axes(width: float = 7.0, height: float = 4.0, **options: Any) -> tuple[Figure, Any]:
    """Return a figure with axes, without a display."""
    import matplotlib as mpl
    import seaborn as sns
    from matplotlib.figure import Figure

    # the same figure is the same file
    mpl.rcParams["svg.hashsalt"] = "pcapstat"
    # names of files, labels and titles are the user's: a $ in them begins no formula
    sns.set_theme(style="whitegrid", palette=PALETTE, rc={"text.parse_math": False})
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**options)


def gather_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Put one legend for all axes below them, where it covers nothing that is drawn; the figure grows by its lines."""
    shown: dict[str, Any] = {}
    for axis in axes:
        shown = entries(axis) | shown
        legend = axis.get_legend()
        if legend is not None:
            legend.remove()
    if any(shown):
        width = max(map(width_points, shown)) + HANDLE_POINTS
        columns = min(len(shown), max(1, int(figure.get_figwidth() * POINTS_PER_INCH / width)))
        figure.set_figheight(figure.get_figheight() + math.ceil(len(shown) / columns) * LINE_POINTS / POINTS_PER_INCH)
        drawn, names = list(shown.values()), list(shown)
        figure.legend(drawn, names, loc="outside lower center", ncols=columns, fontsize="small", frameon=False)


def width_points(name: str) -> float:
    """Return how wide a name is in the small type of a legend."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(name, FontProperties(size="small"), ismath=False)[0])


def entries(axis: Axes) -> dict[str, Any]:
    """Return what a legend of the axes has: what is drawn with a name, or what seaborn has put into a legend of its own."""
    drawn, names = axis.get_legend_handles_labels()
    legend = axis.get_legend()
    if names or legend is None:
        return dict(zip(names, drawn, strict=True))
    return {text.get_text(): handle for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True)}


def number_decades(axis: Axis) -> None:
    """Write the numbers at a logarithmic axis as people write numbers: 0.1, 1, 1 000."""
    from matplotlib.ticker import LogFormatter

    class Decimal(LogFormatter):
        """The ticks that LogFormatter would number."""

        def __call__(self, x: float, pos: int | None = None) -> str:
            """Return a tick's number; nothing where it has none."""
            return f"{x:,.12g}".replace(",", " ") if super().__call__(x, pos) else ""

    axis.set_major_formatter(Decimal())
    axis.set_minor_formatter(Decimal(minor_thresholds=(1, 0.4)))


def say_empty(axis: Axes, what: str) -> None:
    """Say in the figure that there is nothing to draw."""
    axis.text(0.5, 0.5, f"no {what} in the capture", ha="center", va="center", transform=axis.transAxes)
