"""What all figures share: tables of several captures, colours that colour-blind people can tell apart, axes in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pcapstat.labels import stem_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pcapstat.capture import Capture

PALETTE = "colorblind"
"""Seaborn's palette after Wong, Nature Methods 8:441 (2011)."""


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
    sns.set_theme(style="whitegrid", palette=PALETTE)
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**options)


def say_empty(axis: Axes, what: str) -> None:
    """Say in the figure that there is nothing to draw."""
    axis.text(0.5, 0.5, f"no {what} in the capture", ha="center", va="center", transform=axis.transAxes)
