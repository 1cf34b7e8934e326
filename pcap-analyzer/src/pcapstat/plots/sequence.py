"""A sequence diagram: who sent what when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pcapstat.plots import base

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from pcapstat.capture import Capture

MOST = 60
"""Messages that fit a page; the first of the session."""


def table(captures: Sequence[Capture]) -> pd.DataFrame:
    """Return the first sixty messages of the first session: frame, time_ms, from, to, direction, text, is_retransmission."""
    columns = ["session", "frame", "time_ns", "direction", "kind", "variant", "message_id", "payload_bytes", "is_retransmission"]
    ends = ["source_address", "source_port", "destination_address", "destination_port"]
    rows = base.rows(captures[:1], "messages", [*columns, *ends])
    rows = rows[rows["session"] == rows["session"].min()].head(MOST)
    rows["from"] = rows["source_address"] + ":" + rows["source_port"].astype(str)
    rows["to"] = rows["destination_address"] + ":" + rows["destination_port"].astype(str)
    # of no rows pandas keeps the numbers' type, which cannot be added to text
    number = rows["message_id"].map(lambda value: "" if value != value or value is None else f", id {int(value)}").astype(str)
    size = rows["payload_bytes"].map(lambda value: f", {value} B" if value else "").astype(str)
    rows["text"] = (rows["kind"] + " " + rows["variant"]).str.strip() + number + size
    rows["time_ms"] = rows["time_s"] * 1000
    return rows[["frame", "time_ms", "from", "to", "direction", "text", "is_retransmission"]].reset_index(drop=True)


def draw(tidy: pd.DataFrame) -> Figure:
    """Two life lines; an arrow a message, in order, with its time and frame; what was sent again is dashed."""
    figure, axis = base.axes(7, 1.2 + 0.26 * max(len(tidy), 3))
    axis.set_axis_off()
    if tidy.empty:
        base.say_empty(axis, "message")
        return figure
    first = tidy.iloc[0]
    client, server = (first["from"], first["to"]) if first["direction"] == "c2s" else (first["to"], first["from"])
    axis.set(xlim=(-0.35, 1.25), ylim=(len(tidy) + 0.5, -1.2))
    for place, name in ((0, client), (1, server)):
        axis.text(place, -0.8, name, ha="center", fontweight="bold", fontsize=9)
        axis.plot([place, place], [-0.5, len(tidy)], color="0.6", linewidth=1)
    for at, row in enumerate(tidy.itertuples(index=False)):
        start, end = (0, 1) if row.direction == "c2s" else (1, 0)
        style = {"arrowstyle": "->", "color": "C0" if start == 0 else "C1", "linestyle": "--" if row.is_retransmission else "-"}
        axis.annotate("", (end, at), (start, at), arrowprops=style)
        axis.text(0.5, at - 0.08, row.text, ha="center", va="bottom", fontsize=7)
        axis.text(-0.03, at, f"{row.time_ms:.3f} ms", ha="right", va="center", fontsize=7, color="0.35")
        axis.text(1.03, at, f"frame {row.frame}", ha="left", va="center", fontsize=7, color="0.35")
    return figure
