"""Study A's recordings in the clear: what the tool sees is what the applications logged."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from places import CAPTURES

import pcapstat

LATE_NS = 250_000_000
"""An application may log a message so much later than the capture stamps it (scheduling on a busy machine)."""


def scenarios() -> list[Path]:
    """Truth files of Study A without security."""
    return [path for path in sorted(CAPTURES.glob("a-*.truth.json")) if not json.loads(path.read_text())["security"]]


def data_messages(capture: Path, receiver: str) -> dict[bytes, int]:
    """Payloads of the data messages to an address, with the capture time of the first."""
    table = pa.table(pcapstat.open(capture, show_payload=True).messages)
    rows = [row for row in table.to_pylist() if row["is_data"] and row["destination_address"] == receiver]
    return {row["payload"]: row["time_ns"] for row in reversed(rows)}


def application(truth: dict[str, Any], role: str) -> dict[str, Any]:
    """Return what one application logged."""
    return next(each for each in truth["applications"] if each["role"] == role)


@pytest.mark.parametrize("path", scenarios(), ids=lambda path: path.name.removesuffix(".truth.json"))
def test_each_received_message_is_in_the_capture(path: Path) -> None:
    """Each message that the receiver logged is a data message to it, of the logged size, just before the logged time."""
    truth = json.loads(path.read_text())
    receiver = application(truth, "receiver")
    seen = data_messages(CAPTURES / truth["capture"]["file"], receiver["endpoint"])

    assert receiver["received"]
    for time_ns, size_bytes, number in receiver["received"]:
        payload = f"Hi!{number:07d}".encode()
        assert len(payload) == size_bytes
        assert payload in seen
        assert 0 <= time_ns - seen[payload] < LATE_NS


@pytest.mark.parametrize("path", scenarios(), ids=lambda path: path.name.removesuffix(".truth.json"))
def test_a_session_ends_at_its_hundredth_message(path: Path) -> None:
    """With stop_after the receiver's session holds as many data messages and bytes as the receiver took in, or says why not."""
    truth = json.loads(path.read_text())
    wanted = truth["parameters"]["stop"]
    receiver = application(truth, "receiver")
    summary = pcapstat.open(CAPTURES / truth["capture"]["file"], stop_after=wanted).summary()
    (session,) = (each for each in summary.sessions if each.receiver == "client" and each.client.startswith(receiver["endpoint"] + ":"))

    assert (session.data_messages, session.data_bytes) == (wanted, 10 * wanted)
    logged_s = (receiver["received"][-1][0] - receiver["received"][0][0]) / 1e9
    assert session.delta_time_s is not None
    assert session.delta_time_s == pytest.approx(logged_s, rel=0.5, abs=0.5)
    assert session.goodput_bytes_per_s == pytest.approx(10 * wanted / session.delta_time_s)


@pytest.mark.parametrize("wanted", [1, 20, 100])
def test_what_comes_behind_the_last_message_has_no_times_and_no_leg(wanted: int) -> None:
    """Trap 85: the broker sends on before the last message is acknowledged; of N messages there are N delays, and N publications' leg."""
    path = CAPTURES / "a-paho-qos1.pcapng"
    opening = [row["frame_bytes"] for row in pa.table(pcapstat.open(path).messages).to_pylist() if row["session"] == 0][:2]
    exchanges = {row["exchange"]: row for row in pa.table(pcapstat.open(path).exchanges).to_pylist()}
    delivered = [row for _, row in sorted(exchanges.items()) if row["session"] == 1 and row["kind"] == "PUBLISH QoS 1"][:wanted]
    published = [exchanges[row["parent"]]["frame_bytes"] for row in delivered]
    capture = pcapstat.open(path, stop_after=wanted)
    [delay] = [time for time in capture.summary().sessions[1].times if time.timing == "delay"]
    legs = [sum(row["publisher_parts"]) for row in pa.table(capture.table("directions")).to_pylist() if row["session"] == 1]

    assert delay.count == wanted
    # the publisher's CONNECT with its CONNACK belongs to the leg too
    assert sum(legs) == sum(opening + published)


def test_there_are_recordings() -> None:
    """The recordings of Study A are in the project."""
    assert len(scenarios()) >= 8


def test_the_overhead_of_both_legs_is_that_of_the_frames() -> None:
    """Formula 4: the publisher's CONNECT, CONNACK, and each PUBLISH that came through with its PUBACK, by tshark's frame lengths."""
    path = CAPTURES / "a-paho-qos1.pcapng"
    fields = ["tcp.stream", "mqtt.msgtype", "mqtt.msgid", "mqtt.msg", "frame.len"]
    command = ["tshark", "-n", "-r", str(path), "-Y", "mqtt", "-T", "fields", *(word for field in fields for word in ("-e", field))]
    rows = [line.split("\t") for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()]
    subscribing = next(row[0] for row in rows if row[1] == "8")
    delivered = {payload for row in rows if row[0] == subscribing for payload in row[3].split(",")}
    publishing = [row for row in rows if row[0] != subscribing]
    reached = {row[2] for row in publishing if row[1] == "3" and row[3] in delivered}
    leg = [int(row[4]) for row in publishing if row[1] in {"1", "2"} or (row[1] in {"3", "4"} and row[2] in reached)]

    session = next(session for session in pcapstat.open(path).summary().sessions if session.overhead_both_legs_bytes is not None)
    assert session.overhead_both_legs_bytes == session.overhead_bytes + sum(leg)
