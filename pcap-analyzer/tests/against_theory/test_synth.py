"""Synthetic captures: the messages, sizes and times that the scenario asks for, and no rule of the standards broken."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from places import CAPTURES

import pcapstat
from pcapstat.errors import UsageError
from pcapstat.rules import judge
from pcapstat.rules.sizes import sizes
from pcapstat.synth import shipped
from pcapstat.synth.builders import build
from pcapstat.synth.scenario import Scenario, read
from pcapstat.theory import coap
from pcapstat.theory.envelope import around


def made(tmp_path: Path, scenario: Scenario) -> pcapstat.Capture:
    """Build a scenario's capture and open it."""
    path = tmp_path / "made.pcapng"
    build(scenario, path)
    framing = {"frame_length": scenario.payload_bytes} if scenario.protocol == "tcp" else {}
    return pcapstat.open(path, **framing)


@pytest.mark.parametrize("name", shipped())
def test_each_scenario_of_the_project_is_what_it_says(name: str, tmp_path: Path) -> None:
    """As many data messages of the payload as it asks for, each rule kept, each size the specified one."""
    scenario = read(name)
    capture = made(tmp_path, scenario)
    rows = pa.table(capture.messages).to_pylist()
    assert list(judge(iter(rows), [])) == []
    assert all(row.specified in {None, row.observed} for row in sizes(iter(rows)))
    if scenario.security == "none":
        sessions = list(capture.summary().sessions)
        data = {(session.data_messages, session.data_bytes) for session in sessions}
        assert data == {(scenario.count, scenario.count * scenario.payload_bytes)}


def test_a_frame_has_the_size_that_theory_says(tmp_path: Path) -> None:
    """Study A's notification in the clear and in a DTLS record."""
    message = coap.message(8, [("Observe", "13"), ("Content-Format", "0")], 10)
    for security in ("none", "dtls1.2-ccm8"):
        capture = made(tmp_path, Scenario("coap", "observe", count=20, security=security))
        expected = around(message, transport="udp", link="ethernet", security=security).bytes
        assert expected in {row["frame_bytes"] for row in pa.table(capture.messages).to_pylist()}


def test_a_lost_message_is_sent_again_or_missing(tmp_path: Path) -> None:
    """CON comes after the timeout, NON never."""
    con = made(tmp_path, Scenario("coap", "get", kind="CON", count=10, loss=(5,), interval_ms=10, ack_timeout_ms=2000))
    (session,) = con.summary().sessions
    assert session.data_messages == 10
    assert session.delta_time_s == pytest.approx(2.04, abs=0.02)
    non = made(tmp_path, Scenario("coap", "observe", kind="NON", count=10, loss=(5,)))
    (session,) = non.summary().sessions
    assert session.data_messages == 9


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("protocol: smtp", "there are: coap"),
        ("{", "check its YAML"),
        ("count: 3", "no key protocol"),
        ("protocol: coap\nsize: 3", "no key size"),
    ],
)
def test_a_scenario_that_cannot_be_read_is_one_line(text: str, told: str, tmp_path: Path) -> None:
    """Each error names the file, what is wrong, and what is possible."""
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=told) as raised:
        read(str(path))
    assert "\n" not in str(raised.value)


def test_theory_predicts_what_californium_costs(tmp_path: Path) -> None:
    """The overhead of Study A's run, predicted before there is a testbed, is that of our recording to the byte."""
    name, predicted = "a-californium-con", tmp_path / "theory.pcapng"
    build(read(name), predicted)
    overhead = {}
    for path in (predicted, CAPTURES / f"{name}.pcapng"):
        (session,) = pcapstat.open(path, stop_after=100).summary().sessions
        assert session.data_messages == 100
        overhead[path.name] = session.overhead_bytes
    assert len(set(overhead.values())) == 1, overhead
