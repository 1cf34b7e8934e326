"""Bytes of each session by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pcapstat.plots import base

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from pcapstat.capture import Capture


def table(captures: Sequence[Capture]) -> pd.DataFrame:
    """Return a row a session and part: capture, session, part, bytes; the largest twelve sessions of each capture.

    Data that was compressed counts as it is on the wire.
    """
    import pandas as pd

    rows = []
    for capture, name in zip(captures, base.names(captures), strict=True):
        for session in capture.summary().sessions.largest(12):
            parts = dict(session.overhead_by_part_bytes)
            parts["data"] = session.data_bytes + parts.pop("compression", 0)
            rows += [{"capture": name, "session": session.session, "part": part, "bytes": count} for part, count in parts.items() if count]
    return pd.DataFrame(rows, columns=["capture", "session", "part", "bytes"])


def draw(tidy: pd.DataFrame) -> Figure:
    """Stacked bars, one a session."""
    import seaborn as sns

    figure, axis = base.axes(7, 1.5 + 0.35 * max(tidy[["capture", "session"]].drop_duplicates().shape[0], 8))
    if tidy.empty:
        base.say_empty(axis, "session")
        return figure
    wide = tidy.assign(name=tidy["capture"] + ", session " + tidy["session"].astype(str)).pivot_table(
        index="name", columns="part", values="bytes", aggfunc="sum", fill_value=0, sort=False
    )
    wide.plot.barh(stacked=True, ax=axis, color=sns.color_palette(base.PALETTE, len(wide.columns)), width=0.8)
    axis.invert_yaxis()
    axis.set(xlabel="bytes on the wire", ylabel="")
    base.gather_legend(figure, [axis])
    return figure
