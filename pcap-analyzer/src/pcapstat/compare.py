"""Several runs side by side: rounds aggregated, differences judged, ranking, and Study A's "negligible" and "irregular" made definite."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pcapstat.capture import Capture
from pcapstat.errors import UsageError
from pcapstat.labels import joined
from pcapstat.metrics.sessions import Choices, SessionFigures, Summary, receiver_of
from pcapstat.metrics.statistics import ratio

if TYPE_CHECKING:
    import pandas as pd

Figure = Callable[[SessionFigures], float | None]


def timing(name: str) -> Figure:
    """Return the figure that is the median of a measured time; of several kinds the one with most samples."""

    def median(session: SessionFigures) -> float | None:
        found = [times for times in session.times if times.timing == name]
        return max(found, key=lambda times: times.count).median_s if found else None

    return median


def both_legs(session: SessionFigures) -> float:
    """Return the overhead of Study A's formula 4: with the publishers' legs, where messages come through a broker."""
    told = session.overhead_both_legs_bytes
    return float(session.overhead_bytes if told is None else told)


FIGURES: dict[str, tuple[Figure, bool, str]] = {
    "delta_time": (lambda session: session.delta_time_s, False, "s"),
    "goodput": (lambda session: session.goodput_bytes_per_s, True, "B/s"),
    "throughput": (lambda session: session.throughput_bytes_per_s, True, "B/s"),
    "throughput_all": (lambda session: session.throughput_all_bytes_per_s, True, "B/s"),
    "overhead": (lambda session: float(session.overhead_bytes), False, "bytes"),
    "overhead_both_legs": (both_legs, False, "bytes"),
    "overhead_ratio": (lambda session: session.overhead_ratio, False, ""),
    "bytes_per_data_byte": (lambda session: ratio(session.session_bytes, session.data_bytes), False, ""),
    "message_rate": (lambda session: session.message_rate_per_s, True, "1/s"),
    "arrival_rate": (lambda session: ratio(session.data_messages - 1, session.data_span_s or 0) or None, True, "1/s"),
    "data_span": (lambda session: session.data_span_s or None, False, "s"),
    "retransmissions": (lambda session: float(session.retransmissions + session.tcp_retransmissions), False, ""),
    "rtt": (timing("rtt"), False, "s"),
    "delay": (timing("delay"), False, "s"),
}
"""Figures that can be compared: what of a session, whether more is better, unit."""
TIDY = ("path", "figure", "value", "unit")
"""Columns of the tidy table that no label can be."""
BOOTSTRAPS = 10_000
SEED = 20_241_121


@dataclass(frozen=True)
class Run:
    """One capture: its labels, and the figures of the session that receives the data."""

    path: str
    labels: Mapping[str, str]
    session: SessionFigures


@dataclass(frozen=True)
class Group:
    """Rounds of one group: sample statistics of a figure, 95 % intervals of the mean (Student's t) and of the median (bootstrap)."""

    figure: str
    unit: str
    group: str
    n: int
    median: float
    mean: float
    sd: float | None
    ci_low: float | None
    ci_high: float | None
    boot_low: float | None
    boot_high: float | None
    least: float
    most: float
    rank: int


@dataclass(frozen=True)
class Pair:
    """Two groups: who is better, relative difference of medians, Cliff's delta, Mann-Whitney's p, and p after Holm's correction."""

    figure: str
    one: str
    other: str
    verdict: str
    difference: float | None
    cliffs_delta: float
    p: float | None
    p_holm: float | None


def receiving(summary: Summary) -> SessionFigures | None:
    """Return the session of a capture that receives the data."""
    return receiver_of(summary.sessions)


def measured(capture: Capture, labels: Mapping[str, str], choices: Choices | None = None) -> Run | None:
    """Measure one capture with its labels; none where no session of it receives data. Raises UnreadableCapture."""
    session = receiving(capture.summary(choices))
    return None if session is None else Run(capture.name or capture.paths[0], labels, session)


def tidy(runs: Sequence[Run], figures: Sequence[str]) -> pd.DataFrame:
    """Return a row a run and figure: path, the run's labels, figure, value, unit. Figures that a run does not have are left out.

    A label that only other runs have is empty. Raises UsageError where a label has the name of one of the table's own columns.
    """
    import pandas as pd

    labels = labels_of(runs)
    taken = [label for label in labels if label in TIDY]
    if taken:
        raise UsageError(f"label {taken[0]} has a name of the tidy table's own (choose another)")
    rows = [
        {
            "path": run.path,
            **dict.fromkeys(labels, ""),
            **run.labels,
            "figure": name,
            "value": FIGURES[name][0](run.session),
            "unit": FIGURES[name][2],
        }
        for name in figures
        for run in runs
    ]
    return pd.DataFrame(rows, columns=["path", *labels, "figure", "value", "unit"]).dropna(subset="value").reset_index(drop=True)


def labels_of(runs: Iterable[Run]) -> list[str]:
    """Return the names of all labels of several runs."""
    return list(dict.fromkeys(label for run in runs for label in run.labels))


def group_of(labels: Mapping[str, str], by: Sequence[str]) -> str:
    """Return the name of the group that a run belongs to; a label that only other runs have is empty."""
    return joined([labels.get(key, "") for key in by])


def values(runs: Iterable[Run], figure: str, by: Sequence[str]) -> dict[str, list[float]]:
    """Return a figure's values by group, in the order of the runs; runs that do not have it are left out."""
    found: dict[str, list[float]] = {}
    for run in runs:
        value = FIGURES[figure][0](run.session)
        if value is not None:
            found.setdefault(group_of(run.labels, by), []).append(value)
    return found


def groups(runs: Sequence[Run], figure: str, by: Sequence[str]) -> list[Group]:
    """Return the statistics of each group, best first; equal medians have the same rank, and the next is left out."""
    more_is_better, unit = FIGURES[figure][1:]
    medians = {name: (float(np.median(sample)), sample) for name, sample in values(runs, figure, by).items()}
    ordered = sorted(medians.items(), key=lambda entry: entry[1][0], reverse=more_is_better)
    ranked = [median for _, (median, _) in ordered]
    return [statistics(figure, unit, name, sample, ranked.index(median) + 1) for name, (median, sample) in ordered]


def statistics(figure: str, unit: str, name: str, sample: Sequence[float], rank: int) -> Group:
    """Return a sample's statistics; intervals and SD need two values."""
    data = np.asarray(sample, dtype=float)
    mean, median = float(data.mean()), float(np.median(data))
    bounds = (float(data.min()), float(data.max()))
    if len(data) < 2:
        return Group(figure, unit, name, len(data), median, mean, None, None, None, None, None, *bounds, rank)
    sd = float(data.std(ddof=1))
    half = student_t(len(data) - 1) * sd / math.sqrt(len(data))
    low, high = bootstrap(data)
    return Group(figure, unit, name, len(data), median, mean, sd, mean - half, mean + half, low, high, *bounds, rank)


def student_t(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t."""
    from scipy.stats import t

    return float(t.ppf(0.975, degrees))


def bootstrap(data: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the median by percentiles of resampled medians (Efron); seeded, so that it is the same every time."""
    generator = np.random.default_rng(SEED)
    medians = np.median(generator.choice(data, (BOOTSTRAPS, len(data))), axis=1)
    low, high = np.percentile(medians, [2.5, 97.5])
    return float(low), float(high)


def cliffs_delta(one: Sequence[float], other: Sequence[float]) -> float:
    """Return how much more often a value of the one is above one of the other than below, -1 to 1 (Cliff 1993)."""
    signs = np.sign(np.subtract.outer(np.asarray(one), np.asarray(other)))
    return float(signs.mean())


def holm(ps: Sequence[float]) -> list[float]:
    """Return p values corrected for their number, step down (Holm 1979)."""
    order = sorted(range(len(ps)), key=lambda index: ps[index])
    corrected, least = [0.0] * len(ps), 0.0
    for step, index in enumerate(order):
        least = max(least, min(1.0, (len(ps) - step) * ps[index]))
        corrected[index] = least
    return corrected


def relative(one: float, other: float) -> float | None:
    """Return how far apart two values are, as a share of the larger."""
    largest = max(abs(one), abs(other))
    return (one - other) / largest if largest else None


def pairs(runs: Sequence[Run], figure: str, by: Sequence[str], negligible: float) -> list[Pair]:
    """Compare each two groups. "negligible" is where medians differ by less than that share of the larger."""
    sampled = values(runs, figure, by)
    couples = list(itertools.combinations(sampled, 2))
    ps = [mann_whitney(sampled[one], sampled[other]) for one, other in couples]
    known = [p for p in ps if p is not None]
    corrected = iter(holm(known))
    found = []
    for (one, other), p in zip(couples, ps, strict=True):
        difference = relative(float(np.median(sampled[one])), float(np.median(sampled[other])))
        p_holm = None if p is None else next(corrected)
        verdict = judged(one, other, difference, more_is_better=FIGURES[figure][1], negligible=negligible)
        found.append(Pair(figure, one, other, verdict, difference, cliffs_delta(sampled[one], sampled[other]), p, p_holm))
    return found


def mann_whitney(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the two-sided p of Mann and Whitney's U; none where a group has a single value."""
    if min(len(one), len(other)) < 2:
        return None
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(one, other, alternative="two-sided").pvalue)


def judged(one: str, other: str, difference: float | None, *, more_is_better: bool, negligible: float) -> str:
    """Return who is better, or that it is negligible."""
    if not difference or abs(difference) < negligible:
        return "negligible"
    return one if (difference > 0) == more_is_better else other


def across(runs: Sequence[Run], figure: str, key: str, negligible: float) -> dict[tuple[str, str], str]:
    """Compare two values of a label over all that the other labels tell apart, as Study A compared libraries over its groups.

    The verdict is who is better in every group, "(slightly)" where it is so by less than `negligible` in each; "negligible" where each is
    slightly better in some; "irregular" where each is better in some, and not slightly in one at least.
    """
    others = sorted({name for run in runs for name in run.labels} - {key, "round"})
    strata: dict[str, list[Run]] = {}
    for run in runs:
        strata.setdefault(group_of(run.labels, others), []).append(run)
    found: dict[tuple[str, str], list[float]] = {}
    for members in strata.values():
        medians = {name: float(np.median(sample)) for name, sample in values(members, figure, [key]).items()}
        for one, other in itertools.combinations(sorted(medians), 2):
            found.setdefault((one, other), []).append(relative(medians[one], medians[other]) or 0.0)
    return {couple: overall(couple, differences, FIGURES[figure][1], negligible) for couple, differences in found.items()}


def overall(couple: tuple[str, str], differences: Sequence[float], more_is_better: bool, negligible: float) -> str:
    """Return the verdict over several groups."""
    winners = {couple[0] if (difference > 0) == more_is_better else couple[1] for difference in differences if difference}
    is_slight = all(abs(difference) < negligible for difference in differences)
    if len(winners) == 1:
        return next(iter(winners)) + (" (slightly)" if is_slight else "")
    return "negligible" if is_slight or not winners else "irregular"
