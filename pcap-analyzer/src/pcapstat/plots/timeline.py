"""Retransmissions over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pcapstat.plots import base

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from pcapstat.capture import Capture


def table(captures: Sequence[Capture]) -> pd.DataFrame:
    """Return a row a message: capture, session, time_s, kind, what ("first" or "sent again")."""
    rows = base.rows(captures, "messages", ["session", "time_ns", "kind", "is_retransmission"])
    rows["what"] = rows.pop("is_retransmission").map({True: "sent again", False: "first"})
    return rows[["capture", "session", "time_s", "kind", "what"]]


def draw(tidy: pd.DataFrame) -> Figure:
    """Draw a line a kind of message of each capture; what was sent again stands out."""
    import seaborn as sns

    is_several = tidy["capture"].nunique() > 1
    named = tidy.assign(name=tidy["capture"] + ", " + tidy["kind"] if is_several else tidy["kind"])
    figure, axis = base.axes(7, 1.5 + 0.35 * max(named["name"].nunique(), 2))
    if tidy.empty:
        base.say_empty(axis, "message")
        return figure
    for what, size, colour, order in (("first", 12, "C0", 1), ("sent again", 40, "C1", 2)):
        shown = named[named["what"] == what]
        sns.scatterplot(
            shown, x="time_s", y="name", s=size, color=colour, linewidth=0, ax=axis, zorder=order, label=f"{what} ({len(shown)})"
        )
    axis.set(xlabel="time since the first message, s", ylabel="")
    base.gather_legend(figure, [axis])
    return figure
