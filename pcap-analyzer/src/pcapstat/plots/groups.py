"""Figures of several runs: bars by label with their spread over rounds, and lines over a label that is a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pcapstat.labels import joined
from pcapstat.plots import base

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import LineStyleType

QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]?)B?", re.IGNORECASE)
FACTORS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}
UNITS = ("ms", "s", "bytes")
WIDE = 100
"""An axis whose largest value is as many times its least is logarithmic."""


LONG = 8
"""Names of more letters stand aslant below their bars."""
DASHES: tuple[LineStyleType, ...] = ("-", (0, (6, 2)), (0, (6, 2, 1, 2)), (0, (3, 1)))
"""Lines can be told apart where they cover each other, and without colour."""


def quantity(label: object) -> float | None:
    """Read a label as a number: "150", "10kb" (10,000), "1 MB". None where it is no number."""
    found = QUANTITY.fullmatch(str(label).strip())
    return float(found[1]) * FACTORS[found[2].lower()] if found else None


def titled(name: str, unit: str = "") -> str:
    """Write a name as an axis title with its unit, which may stand at the name's end ("interval_ms")."""
    words = name.split("_")
    if not unit and len(words) > 1 and words[-1] in UNITS:
        unit = words.pop()
    return " ".join(words) + (f", {unit}" if unit else "")


def named(tidy: pd.DataFrame, labels: Sequence[str]) -> pd.Series[str]:
    """Return the name of each row's group by the labels."""
    import pandas as pd

    rows = tidy[list(labels)].astype(str).itertuples(index=False, name=None)
    return pd.Series([joined(row) for row in rows], index=tidy.index, dtype=str)


def panels(tidy: pd.DataFrame, width: float) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]]]:
    """Return a figure with axes for each compared figure, and its rows."""
    names = list(dict.fromkeys(tidy["figure"]))
    figure, grid = base.axes(max(width * len(names), 5.0), 4.2, ncols=max(len(names), 1), squeeze=False)
    shown = [(axis, in_milliseconds(tidy[tidy["figure"] == name])) for axis, name in zip(grid[0], names, strict=False)]
    if not names:
        base.say_empty(grid[0][0], "figure to compare")
    return figure, shown


def in_milliseconds(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of a figure's rows, short times in milliseconds."""
    rows = rows.copy()
    if rows["unit"].iloc[0] == "s" and rows["value"].max() < 1:
        rows["value"] *= 1000
        rows["unit"] = "ms"
    return rows


def bars(tidy: pd.DataFrame, by: Sequence[str]) -> Figure:
    """Draw the first label by colour, the others side by side: bars are means of rounds, their lines sample SDs, points rounds."""
    import seaborn as sns

    several = len(by) > 1
    # a colour is the same label's in all panels, also where one of them does not have it
    colours = list(dict.fromkeys(tidy[by[0]])) if several else None
    figure, shown = panels(tidy, 3.2 + 0.25 * (named(tidy, by).nunique() if len(tidy) else 0))
    for axis, rows in shown:
        drawn = rows[["value"]].assign(group=named(rows, by[1:] if several else by), colour=named(rows, by[:1]))
        looks = {"x": "group", "y": "value", "ax": axis, "hue": "colour" if several else None, "hue_order": colours}
        sns.barplot(drawn, **looks, errorbar="sd", capsize=0.2, err_kws={"color": "0.25", "linewidth": 1.2}, width=0.8)
        points = {"palette": ["0.15"] * len(colours)} if colours else {"color": "0.15"}
        sns.stripplot(drawn, **looks, **points, dodge=several, size=3, legend=False)
        finish(axis, rows, "")
        if drawn["group"].str.len().max() > LONG:
            axis.tick_params(axis="x", rotation=30)
            for text in axis.get_xticklabels():
                text.set_horizontalalignment("right")
    base.gather_legend(figure, [axis for axis, _ in shown])
    return figure


def lines(tidy: pd.DataFrame, by: Sequence[str]) -> Figure:
    """Draw lines over the last label, read as a number; other labels by colour and marker; a group without a number is a dotted level."""
    figure, shown = panels(tidy, 5.5)
    names = list(dict.fromkeys(named(tidy, by[:-1])))
    for axis, rows in shown:
        at = rows[by[-1]].map(quantity).astype(float)
        drawn = rows[["value"]].assign(at=at, group=named(rows, by[:-1]))
        draw_lines(axis, drawn, names)
        finish(axis, rows, titled(by[-1]))
        for scale, column in (("x", "at"), ("y", "value")):
            least, most = drawn[column].min(), drawn[column].max()
            if least > 0 and most >= WIDE * least:
                axis.set(**{f"{scale}scale": "log"})
                base.number_decades(getattr(axis, f"{scale}axis"))
        if axis.get_yscale() == "linear" and drawn["value"].min() >= 0:
            axis.set_ylim(0, None)
    base.gather_legend(figure, [axis for axis, _ in shown])
    return figure


def draw_lines(axis: Axes, rows: pd.DataFrame, names: Sequence[str]) -> None:
    """Draw each group: its mean with the sample SD over rounds, or a dotted level. `names` are the groups of all panels."""
    import seaborn as sns

    colours = sns.color_palette(base.PALETTE, len(names))
    for name, group in rows.groupby("group", sort=False):
        index = names.index(str(name))
        colour, marker = colours[index], "osD^vPX*"[index % 8]
        placed = group.dropna(subset="at")
        if placed.empty:
            axis.axhline(group["value"].mean(), color=colour, linestyle=":", label=str(name))
            continue
        rounds = placed.groupby("at")["value"].agg(["mean", "std"])
        looks = {"color": colour, "marker": marker, "linestyle": DASHES[index % len(DASHES)]}
        axis.plot(rounds.index, rounds["mean"], **looks, label=str(name))
        axis.errorbar(rounds.index, rounds["mean"], rounds["std"].fillna(0), color=colour, linestyle="none", capsize=3)


def finish(axis: Axes, rows: pd.DataFrame, x_title: str) -> None:
    """Title the axes with their units."""
    first = rows.iloc[0]
    axis.set(xlabel=x_title, ylabel=titled(str(first["figure"]), str(first["unit"])))
