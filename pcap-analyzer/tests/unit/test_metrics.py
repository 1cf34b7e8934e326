"""The formulas of metrics.md with numbers computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pcapstat.cli import page
from pcapstat.metrics.sessions import Choices, layer_bytes, time1, time2
from pcapstat.metrics.statistics import ratio, times

PARTS = [14, 6, 20, 8, 29, 4, 3, 10, 2]


@pytest.mark.parametrize(("layer", "expected"), [("frame", 96), ("ip", 76), ("transport", 48), ("security", 19), ("application", 19)])
def test_layers_count_their_parts(layer: str, expected: int) -> None:
    """Ethernet 14, padding 6, IP 20, UDP 8, record 29, then 4 + 3 + 10 + 2 of the protocol."""
    assert layer_bytes(PARTS, layer) == expected


def test_ratios_without_denominator_are_not_available() -> None:
    """A zero denominator gives None, never 0 or infinity."""
    assert ratio(5, 0) is None
    assert ratio(0, 5) == 0


def test_rates_have_si_prefixes_and_bytes_are_exact() -> None:
    """Trap 82: k is 1,000, also for bits; a size is a whole number."""
    assert page.rate(1024.0) == "1.024 kB/s (8.192 kbit/s)"
    assert page.rate(999.0) == "999.0 B/s (7.992 kbit/s)"
    assert page.count(1_048_576) == "1 048 576"
    assert (page.rate(None), page.duration(None)) == ("n/a", "n/a")


def row(**cells: Any) -> dict[str, Any]:
    """Make a row of the table sessions."""
    return {"time1_transport_ns": 1, "time1_security_ns": None, "time1_application_ns": 3} | cells


def test_time1_falls_back_to_what_is_visible() -> None:
    """The application's opening by default; the handshake's where it is hidden; the wanted one or nothing where the user chose."""
    assert time1(row(), None) == ("application", 3)
    assert time1(row(time1_application_ns=None, time1_security_ns=2), None) == ("security", 2)
    assert time1(row(), "transport") == ("transport", 1)
    assert time1(row(), "security") == (None, None)


def test_time2_is_the_acknowledgement_where_one_is_due() -> None:
    """CON, QoS 1 and 2: the acknowledgement of the last data message; NON, QoS 0: its arrival."""
    direction = {"is_ack_expected": True, "data_last_ack_ns": 9, "data_last_ns": 8}
    assert time2(direction) == ("acknowledgement", 9)
    assert time2(direction | {"is_ack_expected": False}) == ("arrival", 8)
    assert time2(direction | {"data_last_ack_ns": None}) == ("arrival", 8)


def test_standard_deviation_is_the_samples() -> None:
    """10, 20, 30 ms: mean 20 ms, sample SD 10 ms; one sample has none."""
    cells = {
        "timing": "rtt",
        "kind": "GET",
        "retransmitted": 0,
        "negative": 0,
        "median_ns": 20e6,
        "p95_ns": 30e6,
        "p99_ns": 30e6,
        "max_ns": 30e6,
    }
    three = times(cells | {"count": 3, "sum_ns": 60_000_000, "squared_deviations_ns2": 2e14})
    one = times(cells | {"count": 1, "sum_ns": 10_000_000, "squared_deviations_ns2": 0.0})

    assert (three.mean_s, three.sd_s) == (pytest.approx(0.02), pytest.approx(0.01))
    assert one.sd_s is None


@pytest.mark.parametrize(("count", "p95_s", "p99_s"), [(19, None, None), (20, 0.03, None), (99, 0.03, None), (100, 0.03, 0.04)])
def test_percentiles_of_few_values_are_not_available(count: int, p95_s: float | None, p99_s: float | None) -> None:
    """Trap 81: the nearest rank, 0.95 n and 0.99 n rounded up, is below the last one from 20 and from 100 values on."""
    cells = {"timing": "rtt", "kind": "GET", "retransmitted": 0, "negative": 0, "count": count, "sum_ns": 0, "squared_deviations_ns2": 0.0}
    found = times(cells | {"median_ns": 20e6, "p95_ns": 30e6, "p99_ns": 40e6, "max_ns": 50e6})

    assert (found.p95_s, found.p99_s) == (p95_s, p99_s)


def test_default_choices_are_those_of_study_a() -> None:
    """Bytes on the wire, transport control counted."""
    assert Choices() == Choices(layer="frame", time1=None, transport_control=True)


def test_a_number_is_never_folded() -> None:
    """SI Brochure §5.4.4 sets digits in groups of three; wherever the line ends, they stay together."""
    for before in range(1, 80):
        lines = page.folded("x" * before + " opaque 1 234 567 bytes")
        assert [line for line in lines if "1 234 567" in line and len(line) <= page.WIDTH]
