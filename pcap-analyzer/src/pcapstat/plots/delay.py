"""Round trips and delays: their distribution, and over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pcapstat.plots import base

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from pcapstat.capture import Capture

TIMINGS = {"ack_rtt_ns": "to ACK", "rtt_ns": "to response", "delay_ns": "delay to subscriber"}


def table(captures: Sequence[Capture]) -> pd.DataFrame:
    """Return a row a measured time: capture, time_s (of the exchange's begin), kind, timing, value_ms."""
    rows = base.rows(captures, "exchanges", ["time_ns", "kind", *TIMINGS])
    tidy = rows.melt(["capture", "time_s", "kind"], list(TIMINGS), "timing", "value_ms").dropna()
    tidy["timing"] = tidy["timing"].map(TIMINGS)
    tidy["value_ms"] = tidy["value_ms"].astype(float) / 1e6
    return tidy.reset_index(drop=True)


def draw(tidy: pd.DataFrame) -> Figure:
    """Empirical cumulative distribution, time on a logarithmic axis."""
    import seaborn as sns

    figure, axis = base.axes()
    shown = tidy[tidy["value_ms"] > 0]
    if shown.empty:
        base.say_empty(axis, "answered exchange")
        return figure
    several = shown["capture"].nunique() > 1
    sns.ecdfplot(shown, x="value_ms", hue="capture" if several else "timing", ax=axis, log_scale=True)
    axis.set(xlabel="time, ms", ylabel="share of exchanges")
    return figure


def draw_over_time(tidy: pd.DataFrame) -> Figure:
    """Points over time."""
    import seaborn as sns

    figure, axis = base.axes()
    if tidy.empty:
        base.say_empty(axis, "answered exchange")
        return figure
    several = tidy["capture"].nunique() > 1
    sns.scatterplot(tidy, x="time_s", y="value_ms", hue="capture" if several else "timing", s=14, linewidth=0, ax=axis)
    axis.set(xlabel="time since the first exchange, s", ylabel="time, ms", ylim=(0, None))
    return figure
