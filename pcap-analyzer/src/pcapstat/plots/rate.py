"""Messages and payload bytes per second over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pcapstat.plots import base

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from pcapstat.capture import Capture

MOST_BINS, LEAST_BINS = 50, 10
PER_BIN = 8
"""Messages of the busiest receiver that a bin should hold: with fewer the rate jumps from bin to bin by whole messages."""
LARGEST = 12
"""Receivers that are shown: those with the most data messages."""
COLUMNS = ["capture", "receiver", "bin_s", "bin_width_s", "messages_per_s", "payload_bytes_per_s"]


def table(captures: Sequence[Capture]) -> pd.DataFrame:
    """Return a row a receiver of data and bin of time: capture, receiver, the bin's begin and width, messages and payload bytes per second.

    Bins reach from a receiver's first data message to its last; one without a message is 0. They begin with the capture's first message, so
    a receiver's first bin and its last may be filled in part: their rates are those of the whole bins.
    """
    import pandas as pd

    rows = base.rows(captures, "messages", ["time_ns", "is_data", "payload_bytes", "destination_address", "destination_port"])
    rows = rows[rows["is_data"]]
    if rows.empty:
        return pd.DataFrame(columns=COLUMNS)
    rows["payload_bytes"] = rows["payload_bytes"].where(rows["payload_bytes"] > 0, rows["payload_size"])
    rows["receiver"] = rows["destination_address"] + ":" + rows["destination_port"].astype(str)
    largest = rows.groupby(["capture", "receiver"]).size().nlargest(LARGEST)
    bins = min(max(int(largest.max()) // PER_BIN, LEAST_BINS), MOST_BINS)
    width_s = max(float(rows["time_s"].max()) / bins, 1e-6)
    # the last message lies on the last bin's edge and belongs to it
    rows["bin"] = (rows["time_s"] // width_s).astype(int).clip(upper=bins - 1)
    several = rows.set_index(["capture", "receiver"])
    return pd.concat([binned(several.loc[[name]], width_s).assign(capture=name[0], receiver=name[1]) for name in largest.index])[COLUMNS]


def binned(rows: pd.DataFrame, width_s: float) -> pd.DataFrame:
    """Return the rates of one receiver by bin."""
    sums = rows.groupby("bin").agg(messages_per_s=("is_data", "size"), payload_bytes_per_s=("payload_bytes", "sum"))
    sums = sums.reindex(range(sums.index.min(), sums.index.max() + 1), fill_value=0) / width_s
    return sums.assign(bin_s=sums.index * width_s, bin_width_s=width_s)


def draw(tidy: pd.DataFrame) -> Figure:
    """Two panels above each other, a line a receiver."""
    import pandas as pd
    import seaborn as sns

    figure, (upper, lower) = base.axes(7, 4.6, nrows=2, sharex=True)
    if tidy.empty:
        base.say_empty(upper, "data message")
        return figure
    shown = tidy.assign(name=tidy["capture"] + " → " + tidy["receiver"])
    # a bin is as wide as it is: the last one of a receiver too
    last = shown.groupby("name", sort=False).tail(1)
    shown = pd.concat([shown, last.assign(bin_s=last["bin_s"] + last["bin_width_s"])], ignore_index=True)
    sns.lineplot(shown, x="bin_s", y="messages_per_s", hue="name", ax=upper, drawstyle="steps-post")
    sns.lineplot(shown, x="bin_s", y="payload_bytes_per_s", hue="name", ax=lower, drawstyle="steps-post", legend=False)
    base.gather_legend(figure, [upper])
    upper.set(ylabel="data messages/s", ylim=(0, None))
    lower.set(ylabel="payload, B/s", xlabel="time since the first message, s", ylim=(0, None))
    return figure
