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


def told_apart(tidy: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the name of what was measured, in which capture where there are several: times to ACK are no other times."""
    several = tidy["capture"].nunique() > 1
    return tidy.assign(name=tidy["capture"] + ", " + tidy["timing"] if several else tidy["timing"])


def draw(tidy: pd.DataFrame) -> Figure:
    """Empirical cumulative distribution, time on a logarithmic axis; on a linear one where clocks that differ make a time negative."""
    import seaborn as sns

    figure, axis = base.axes()
    if tidy.empty:
        base.say_empty(axis, "answered exchange")
        return figure
    is_positive = bool((tidy["value_ms"] > 0).all())
    sns.ecdfplot(told_apart(tidy), x="value_ms", hue="name", ax=axis, log_scale=is_positive)
    if is_positive:
        base.number_decades(axis.xaxis)
    base.gather_legend(figure, [axis])
    axis.set(xlabel="time, ms", ylabel="share of exchanges")
    return figure


def draw_over_time(tidy: pd.DataFrame) -> Figure:
    """Points over time."""
    import seaborn as sns

    figure, axis = base.axes()
    if tidy.empty:
        base.say_empty(axis, "answered exchange")
        return figure
    sns.scatterplot(told_apart(tidy), x="time_s", y="value_ms", hue="name", s=14, linewidth=0, ax=axis)
    base.gather_legend(figure, [axis])
    axis.set(xlabel="time since the first exchange, s", ylabel="time, ms")
    if tidy["value_ms"].min() >= 0:
        axis.set_ylim(0, None)
    return figure
