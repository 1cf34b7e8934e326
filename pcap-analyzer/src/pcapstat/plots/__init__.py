"""Figures of captures: each from a tidy table that can be saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pcapstat.plots import delay, overhead, rate, sequence, sizes, timeline

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from pcapstat.capture import Capture

Tidy = Callable[[Sequence["Capture"]], "pd.DataFrame"]
Draw = Callable[["pd.DataFrame"], "Figure"]

PLOTS: dict[str, tuple[Tidy, Draw, str]] = {
    "rate": (rate.table, rate.draw, "messages and payload bytes per second over time"),
    "delay": (delay.table, delay.draw, "distribution (ECDF) of round trips and delays"),
    "delay-over-time": (delay.table, delay.draw_over_time, "round trips and delays over time"),
    "overhead": (overhead.table, overhead.draw, "bytes of each session by layer, stacked"),
    "sizes": (sizes.table, sizes.draw, "sizes of messages by kind, observed, specified and minimal"),
    "sequence": (sequence.table, sequence.draw, "sequence diagram of a session"),
    "timeline": (timeline.table, timeline.draw, "retransmissions over time"),
}
"""Name of a figure: its tidy table, what draws it, what it shows."""
