"""MQTT sessions that outlive a connection (MQTT 5 §4.1): what was not acknowledged in one is sent again in the next (§4.4, trap 31)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from against_standards.building import C, S, Said, ack, connack, connect, publish, suback, subscribe, two_connections

import pcapstat

PUBACK = 4
OPEN: Said = [(C, connect(clean=False)), (S, connack())]
RESUMED: Said = [(C, connect(clean=False)), (S, connack(present=True))]


def rows(capture: Path, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Return columns of a table."""
    table = pa.table(getattr(pcapstat.open(capture, engine="native"), name))
    return list(zip(*(table.column(column).to_pylist() for column in columns), strict=True))


def test_what_an_earlier_connection_brought_counts_there_only(tmp_path: Path) -> None:
    """Two PUBLISH with QoS 1, of which the second is acknowledged only after the client came back and sent it again with DUP (§3.3.1.1)."""
    first = [*OPEN, (C, publish(1, 1)), (S, ack(PUBACK, 1)), (C, publish(2, 1))]
    second = [*RESUMED, (C, publish(2, 1, dup=True)), (S, ack(PUBACK, 2)), (C, publish(3, 1)), (S, ack(PUBACK, 3))]
    capture = two_connections(tmp_path / "x.pcap", first, second, 1.0)
    summary = pcapstat.open(capture, engine="native").summary()

    assert [session.data_messages for session in summary.sessions] == [2, 1]
    assert [session.retransmissions for session in summary.sessions] == [0, 1]
    assert [[note["note"] for note in session.notes if note["note"] == "sent-before"] for session in summary.sessions] == [
        [],
        ["sent-before"],
    ]


def test_its_exchange_ends_with_the_acknowledgement_and_has_no_time(tmp_path: Path) -> None:
    """A time from what is sent again would be none of the first sending (Karn)."""
    second = [*RESUMED, (C, publish(2, 1, dup=True)), (S, ack(PUBACK, 2))]
    capture = two_connections(tmp_path / "x.pcap", [*OPEN, (C, publish(2, 1))], second, 1.0)
    told = rows(capture, "exchanges", "session", "kind", "outcome", "retransmissions", "payload_bytes", "rtt_ns")

    assert sorted(row[:5] for row in told if row[1] == "PUBLISH QoS 1") == [
        (0, "PUBLISH QoS 1", "unanswered", 0, 1),
        (1, "PUBLISH QoS 1", "complete", 1, 0),
    ]
    assert rows(capture, "messages", "session", "kind", "is_data", "is_retransmission")[-2:] == [
        (1, "PUBLISH", False, True),
        (1, "PUBACK", False, False),
    ]
    times = pcapstat.open(capture, engine="native").summary().sessions[1].times
    assert [(time.count, time.retransmitted) for time in times if time.kind == "PUBLISH QoS 1"] == [(0, 1), (0, 1)]


def test_a_delivery_that_is_sent_again_is_none_of_what_is_published_later(tmp_path: Path) -> None:
    """The server too sends again what was not acknowledged (§4.4)."""
    first = [*OPEN, (C, subscribe(1, "t", qos=1)), (S, suback(1, 1)), (S, publish(7, 1))]
    capture = two_connections(tmp_path / "x.pcap", first, [*RESUMED, (S, publish(7, 1, dup=True)), (C, ack(PUBACK, 7))], 1.0)

    assert [row for row in rows(capture, "messages", "kind", "is_data", "is_retransmission") if row[0] == "PUBLISH"] == [
        ("PUBLISH", True, False),
        ("PUBLISH", False, True),
    ]


@pytest.mark.parametrize(
    "second",
    [
        [(C, connect()), (S, connack()), (C, publish(2, 1, dup=True))],
        [(C, publish(2, 1, dup=True)), (S, ack(PUBACK, 2))],
        [*RESUMED, (C, publish(2, 1))],
    ],
    ids=["the server has no session", "its opening is not in the capture", "without DUP"],
)
def test_what_no_earlier_connection_is_known_to_have_brought_counts(second: Said, tmp_path: Path) -> None:
    """It is the first sending that the capture shows."""
    capture = two_connections(tmp_path / "x.pcap", [*OPEN, (C, publish(1, 1)), (S, ack(PUBACK, 1))], second, 1.0)
    published = [row for row in rows(capture, "messages", "session", "kind", "is_data", "is_retransmission") if row[1] == "PUBLISH"]

    assert published[-1] == (1, "PUBLISH", True, False)
