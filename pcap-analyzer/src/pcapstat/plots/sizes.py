"""Sizes of messages by kind, against what the standards specify."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pcapstat.plots import base

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from pcapstat.capture import Capture


def table(captures: Sequence[Capture]) -> pd.DataFrame:
    """Return a row a message and size: kind, which (observed, specified, minimal), bytes. CoAP messages and MQTT control packets."""
    import pandas as pd

    from pcapstat.rules.sizes import sizes

    found = [size for capture in captures for size in sizes(capture.messages.rows())]
    rows = [{"kind": size.kind, "observed": size.observed, "specified": size.specified, "minimal": size.minimal} for size in found]
    frame = pd.DataFrame(rows, columns=["kind", "observed", "specified", "minimal"])
    return frame.melt(["kind"], var_name="which", value_name="bytes").dropna().reset_index(drop=True)


def draw(tidy: pd.DataFrame) -> Figure:
    """Ranges with medians, by kind."""
    import seaborn as sns

    figure, axis = base.axes(7, 1.5 + 0.45 * max(tidy["kind"].nunique(), 2))
    if tidy.empty:
        base.say_empty(axis, "CoAP or MQTT message")
        return figure
    shown = tidy.assign(bytes=tidy["bytes"].astype(float))
    sns.pointplot(
        shown,
        y="kind",
        x="bytes",
        hue="which",
        ax=axis,
        estimator="median",
        errorbar=("pi", 100),
        linestyle="none",
        dodge=0.5 if shown["which"].nunique() > 1 else False,
        markersize=5,
    )
    base.gather_legend(figure, [axis])
    axis.set(xlabel="size of the message, bytes (median, least to most)", ylabel="")
    return figure
