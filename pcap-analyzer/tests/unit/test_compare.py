"""Comparison of runs: statistics computed by hand or printed in their sources, labels, and Study A's verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import click.testing
import pytest
from places import CAPTURES

import pcapstat
from pcapstat import compare
from pcapstat.cli.compare import FIGURE_NAMES, command, readable
from pcapstat.errors import UsageError
from pcapstat.labels import of_path
from pcapstat.metrics.sessions import receiver_of

ROUNDS = [str(CAPTURES / f"a-californium-non{suffix}.pcapng") for suffix in ("", "-round2", "-round3")]


def test_a_groups_statistics() -> None:
    """2, 4, 9: mean 5, SD √13, Student's t for two degrees of freedom 4.3027 (any table), so 5 ± 4.3027 · √(13/3); 1, 3: 2 ± 12.706."""
    group = compare.statistics("goodput", "B/s", "x", [2, 4, 9], 1)
    assert (group.n, group.median, group.mean, group.sd) == (3, 4, 5, pytest.approx(13**0.5))
    assert (group.ci_low, group.ci_high) == (pytest.approx(5 - 8.9567, abs=1e-4), pytest.approx(5 + 8.9567, abs=1e-4))
    assert (group.boot_low, group.boot_high) == (2, 9)
    two = compare.statistics("goodput", "B/s", "x", [1, 3], 1)
    assert (two.sd, two.ci_low, two.ci_high) == (
        pytest.approx(2**0.5),
        pytest.approx(2 - 12.7062, abs=1e-4),
        pytest.approx(14.7062, abs=1e-4),
    )
    alone = compare.statistics("goodput", "B/s", "x", [5], 1)
    assert (alone.sd, alone.ci_low, alone.boot_low) == (None, None, None)


def test_more_of_these_figures_is_better_and_less_of_all_others() -> None:
    """What is carried in a time; all else is time, or bytes and messages that carry nothing."""
    more = {name for name, (_, more_is_better, _) in compare.FIGURES.items() if more_is_better}
    assert more == {"goodput", "throughput", "throughput_all", "message_rate", "arrival_rate"}


def test_a_time_is_that_of_the_kind_with_most_samples() -> None:
    """Of five GET and three POST the GETs' median; where nothing was measured there is none."""
    session = made(1).session
    get, post = (session.times[0]._replace(timing="rtt", count=count, median_s=count / 100) for count in (5, 3))
    assert compare.FIGURES["rtt"][0](session._replace(times=[post, get])) == 0.05
    assert compare.FIGURES["delay"][0](session._replace(times=[post, get])) is None


def test_effect_and_correction() -> None:
    """Cliff's delta from its definition; Holm's correction of his steps: 4 p1, 3 p2, …, never falling."""
    assert compare.cliffs_delta([1, 2, 3], [4, 5]) == -1
    assert compare.cliffs_delta([1, 3], [2, 2]) == 0
    assert compare.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert compare.holm([0.4, 0.6]) == [0.8, 0.8]
    assert compare.holm([0.6, 0.7]) == [1, 1]
    assert compare.mann_whitney([1, 2, 3], [4, 5, 6]) == pytest.approx(0.1)  # 2 of 20 orders are as extreme
    assert compare.mann_whitney([1], [2, 3]) is None


def test_verdicts_are_study_a_s_words_made_definite() -> None:
    """Slightly better in one group of two each: negligible; better in one of two each: irregular; the same one in both: that one."""
    couple = ("Paho", "HiveMQ")
    assert compare.overall(couple, [0.02, -0.03], True, 0.05) == "negligible"
    assert compare.overall(couple, [0.2, -0.03], True, 0.05) == "irregular"
    assert compare.overall(couple, [-0.2, -0.3], True, 0.05) == "HiveMQ"
    assert compare.overall(couple, [-0.2, -0.3], False, 0.05) == "Paho"
    assert compare.overall(couple, [0.01, 0.02], True, 0.05) == "Paho (slightly)"


def test_labels_come_from_the_path() -> None:
    """By a pattern, or the file's name without its round."""
    assert of_path("x/a-java-coap-con.pcapng", "a-{library}-{type}.pcapng") == {"library": "java-coap", "type": "con"}
    assert of_path("d/Paho/qos1/round12.pcapng", "{library}/{qos}/round{round:d}.pcapng") == {
        "library": "Paho",
        "qos": "qos1",
        "round": "12",
    }
    assert of_path("d/run-round3.pcapng.gz", None) == {"run": "run", "round": "3"}
    with pytest.raises(UsageError, match="does not fit"):
        of_path("d/x.pcap", "{a}/round{round:d}.pcap")
    with pytest.raises(UsageError, match="a label twice"):
        of_path("d/x.pcap", "{a}/{a}")


@pytest.mark.parametrize(
    ("path", "run", "number"),
    [
        ("d/poll-0.5s.pcapng", "poll-0.5s", "1"),
        ("d/poll-0.7s.PCAP.GZ", "poll-0.7s", "1"),
        ("d/x.sender.round2.cap", "x.sender", "2"),
        ("d/2026.11.22.trace", "2026.11.22", "1"),
        ("-", "-", "1"),
    ],
)
def test_a_runs_name_may_have_dots(path: str, run: str, number: str) -> None:
    """Runs that differ behind a dot are two runs, not rounds of one."""
    assert of_path(path, None) == {"run": run, "round": number}


def test_rounds_are_aggregated(tmp_path: Path) -> None:
    """Three rounds of one library become one group; its mean is that of the three sessions."""
    out = tmp_path / "o.json"
    words = [*ROUNDS, "--figure", "goodput", "--stop-after", "100", "-O", str(out)]
    assert click.testing.CliRunner().invoke(command, words, standalone_mode=False).exception is None
    (group,) = json.loads(out.read_text())
    goodputs = [compare.receiving(pcapstat.open(path, stop_after=100).summary()).goodput_bytes_per_s for path in ROUNDS]  # type: ignore[union-attr]
    assert (group["group"], group["n"]) == ("a-californium-non", 3)
    assert group["mean"] == pytest.approx(sum(goodputs) / 3)  # type: ignore[arg-type]
    assert tuple(compare.FIGURES) == FIGURE_NAMES


def made(goodput: float, **labels: str) -> compare.Run:
    """Return a run with this goodput."""
    session = compare.receiving(pcapstat.open(CAPTURES / "a-californium-con.pcapng").summary())
    assert session is not None
    return compare.Run("", labels, session._replace(goodput_bytes_per_s=goodput))


def test_equal_groups_have_one_rank_and_no_winner() -> None:
    """Two first places and a third (as in a race); equal medians are negligible also where no difference is."""
    runs = [made(5, run="a"), made(9, run="b"), made(9, run="c")]
    assert [(group.group, group.rank) for group in compare.groups(runs, "goodput", ["run"])] == [("b", 1), ("c", 1), ("a", 3)]
    assert [pair.verdict for pair in compare.pairs(runs, "goodput", ["run"], negligible=0)] == ["b", "c", "negligible"]
    two = [made(19, run="a"), made(20, run="b")]  # 1 of 20 apart, the larger one
    assert [compare.pairs(two, "goodput", ["run"], negligible)[0].verdict for negligible in (0.05, 0.051)] == ["b", "negligible"]
    assert compare.across([*two, made(20, run="c")], "goodput", "run", 0) == {("a", "b"): "b", ("a", "c"): "c", ("b", "c"): "negligible"}


def test_labels_that_read_alike_are_several_groups() -> None:
    """Labels "A B" and "C" are not "A" and "B C"; one that a run does not have is empty, not the next one."""
    runs = [made(1, of="A B", by="C"), made(2, of="A", by="B C"), made(3, of="x"), made(4, by="x")]
    assert [group.group for group in compare.groups(runs, "goodput", ["of", "by"])] == ["'' x", "x ''", "A 'B C'", "'A B' C"]
    assert [group.group for group in compare.groups(runs[:2], "goodput", ["of"])] == ["A", "A B"]
    assert compare.tidy(runs, ["goodput"])["by"].to_list() == ["C", "B C", "", "x"]


def test_a_label_cannot_hide_a_column_of_the_tidy_table() -> None:
    """Its values would be drawn for the figure's."""
    with pytest.raises(UsageError, match="label unit has a name"):
        compare.tidy([made(1, unit="lab")], ["goodput"])


def test_numbers_for_people_have_no_exponents() -> None:
    """10,419 bytes are not 1.042e+04."""
    assert (readable(10419.0), readable(0.0123456), readable(497.64)) == ("10 419", "0.01235", "497.6")


def test_the_receiver_of_a_brokers_capture_is_the_subscriber() -> None:
    """The publisher's session holds more messages; the study measures at the receiver."""
    session = compare.receiving(pcapstat.open(CAPTURES / "a-paho-qos1.pcapng").summary())
    assert session is not None
    assert session.client_identifier == "receiver"


class Taker(NamedTuple):
    """A session as far as the choice of the receiver asks."""

    receiver: str
    data_messages: int


@pytest.mark.parametrize(("taken", "receiver"), [(50, "client"), (49, "server"), (0, "server")])
def test_a_subscriber_that_took_less_than_half_is_not_the_receiver(taken: int, receiver: str) -> None:
    """Of a hundred published messages a subscriber's session with a few is not what the run measures."""
    chosen = receiver_of([Taker("server", 100), Taker("client", taken)])
    assert chosen is not None
    assert chosen.receiver == receiver
    assert receiver_of([Taker("client", 0)]) is None


def test_java_coap_has_less_overhead_than_californium() -> None:
    """Study A's order that is in the bytes: java-coap's messages are smaller, over NON and CON, secured or not."""
    runs = []
    for kind in ("con", "non"):
        for library in ("californium", "java-coap"):
            session = compare.receiving(pcapstat.open(CAPTURES / f"a-{library}-{kind}.pcapng", stop_after=100).summary())
            assert session is not None
            runs.append(compare.Run("", {"library": library, "type": kind}, session))
    assert compare.across(runs, "overhead", "library", 0.05) == {("californium", "java-coap"): "java-coap"}
