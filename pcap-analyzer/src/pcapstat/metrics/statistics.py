"""Statistics of measured times from the sums that the core keeps."""

import math
from typing import Any, NamedTuple

FEWEST_P95, FEWEST_P99 = 20, 100
"""Samples from which on the 95th and the 99th percentile, by nearest rank, are not just the largest one."""


class Times(NamedTuple):
    """Statistics of one measured time: seconds; `sd_s` is the sample standard deviation, None for fewer than two samples.

    `p95_s` and `p99_s` are None for fewer than 20 and 100 samples: such percentiles would only be the maximum.
    """

    timing: str
    kind: str
    count: int  # type: ignore[assignment]  # nobody counts values in a row
    retransmitted: int
    negative: int
    median_s: float | None
    mean_s: float | None
    sd_s: float | None
    p95_s: float | None
    p99_s: float | None
    max_s: float | None


def ratio(numerator: float, denominator: float) -> float | None:
    """Divide; n/a (None) by zero, never infinity (metrics.md, Honesty)."""
    return numerator / denominator if denominator else None


def seconds(nanoseconds: int | None) -> float | None:
    """Nanoseconds as seconds."""
    return None if nanoseconds is None else nanoseconds / 1e9


def times(row: dict[str, Any]) -> Times:
    """Statistics of a row of the table timings."""
    count = row["count"]
    known = count > 0
    variance = row["squared_deviations_ns2"] / (count - 1) if count > 1 else None
    return Times(
        timing=row["timing"],
        kind=row["kind"],
        count=count,
        retransmitted=row["retransmitted"],
        negative=row["negative"],
        median_s=seconds(row["median_ns"]) if known else None,
        mean_s=row["sum_ns"] / count / 1e9 if known else None,
        sd_s=None if variance is None else math.sqrt(variance) / 1e9,
        p95_s=seconds(row["p95_ns"]) if count >= FEWEST_P95 else None,
        p99_s=seconds(row["p99_ns"]) if count >= FEWEST_P99 else None,
        max_s=seconds(row["max_ns"]) if known else None,
    )
