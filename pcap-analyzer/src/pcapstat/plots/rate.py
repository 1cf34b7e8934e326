"""Messages and payload bytes per second over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pcapstat.plots import base

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from pcapstat.capture import Capture

BINS = 50


def table(captures: Sequence[Capture]) -> pd.DataFrame:
    """Return data messages in 50 bins of time: capture, bin_s (its begin), bin_width_s, messages_per_s, payload_bytes_per_s."""
    import pandas as pd

    rows = base.rows(captures, "messages", ["time_ns", "is_data", "payload_bytes"])
    rows = rows[rows["is_data"]]
    if rows.empty:
        return pd.DataFrame(columns=["capture", "bin_s", "bin_width_s", "messages_per_s", "payload_bytes_per_s"])
    width_s = max(float(rows["time_s"].max()) / BINS, 1e-6)
    rows["bin_s"] = (rows["time_s"] // width_s) * width_s
    grouped = rows.groupby(["capture", "bin_s"], as_index=False).agg(messages=("is_data", "size"), payload_bytes=("payload_bytes", "sum"))
    grouped["bin_width_s"] = width_s
    grouped["messages_per_s"] = grouped.pop("messages") / width_s
    grouped["payload_bytes_per_s"] = grouped.pop("payload_bytes") / width_s
    return grouped


def draw(tidy: pd.DataFrame) -> Figure:
    """Two lines above each other, one a capture."""
    import seaborn as sns

    figure, (upper, lower) = base.axes(7, 5, nrows=2, sharex=True)
    if tidy.empty:
        base.say_empty(upper, "data message")
        return figure
    sns.lineplot(tidy, x="bin_s", y="messages_per_s", hue="capture", ax=upper, drawstyle="steps-post")
    sns.lineplot(tidy, x="bin_s", y="payload_bytes_per_s", hue="capture", ax=lower, drawstyle="steps-post", legend=False)
    upper.set(ylabel="data messages/s", ylim=(0, None))
    lower.set(ylabel="payload, B/s", xlabel="time since the first message, s", ylim=(0, None))
    return figure
