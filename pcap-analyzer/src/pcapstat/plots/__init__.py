"""Figures of captures: each from a tidy table that can be saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pcapstat.plots import delay, groups, overhead, rate, sequence, sizes, timeline

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from pcapstat.capture import Capture

Tidy = Callable[[Sequence["Capture"]], "pd.DataFrame"]
Draw = Callable[["pd.DataFrame"], "Figure"]
Chart = Callable[["pd.DataFrame", Sequence[str]], "Figure"]

PLOTS: dict[str, tuple[Tidy, Draw, str]] = {
    "rate": (rate.table, rate.draw, "data messages and payload bytes per second over time, a line a receiver"),
    "delay": (delay.table, delay.draw, "distribution (ECDF) of round trips and delays"),
    "delay-over-time": (delay.table, delay.draw_over_time, "round trips and delays over time"),
    "overhead": (overhead.table, overhead.draw, "bytes of each session by layer, stacked"),
    "sizes": (sizes.table, sizes.draw, "sizes of messages by kind, observed, specified and minimal"),
    "sequence": (sequence.table, sequence.draw, "sequence diagram of a session"),
    "timeline": (timeline.table, timeline.draw, "retransmissions over time"),
}
"""Name of a figure: its tidy table, what draws it, what it shows."""

CHARTS: dict[str, tuple[Chart, str]] = {
    "bars": (groups.bars, "figures by label, side by side, with the spread over rounds (Study A, Figures 5.4 to 5.8)"),
    "lines": (
        groups.lines,
        "figures over a label that is a number: polling interval (Study B), payload (C), transfer size (D), message length (E)",
    ),
}
"""Name of a figure of several runs: what draws it from compare.tidy and the labels that make a group, what it shows."""
