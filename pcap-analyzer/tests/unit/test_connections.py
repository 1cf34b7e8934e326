"""Connections one after another on a pair of ports, and what TCP does besides passing bytes on: known traffic, and tshark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from scapy.layers.inet import IP, TCP

import pcapstat
from pcapstat import wireshark
from unit.test_tcp import CONNACK, CONNECT, SERVER, Connection, messages, puback, publish, tshark

NUMBERS = {"ahead": [900_000, 700_000], "behind": [2**32 - 900_000, 2**32 - 700_000], "same": [1000, 5000]}
"""Where the second connection's sequence numbers begin, as seen from those of the first one."""


def talk(connection: Connection, seconds: float, identifiers: list[int]) -> None:
    """Add publications and their acknowledgements."""
    for number, identifier in enumerate(identifiers):
        connection.send(seconds + number, 0, publish(identifier, b"x"))
        connection.send(seconds + number + 0.01, 1, puback(identifier))


def wireshark_is(oldest: tuple[int, int]) -> bool:
    """Whether tshark is of this version or a newer one: each counts streams in another way."""
    return wireshark.version(wireshark.find()) >= oldest


def one_after_another(numbers: list[int], *, begins: bool = True, ends: str = "RA") -> Connection:
    """Build two connections: publications 1 and 2 in the first one, 3 to 5 in the second."""
    first = Connection(is_opened=begins)
    if begins:
        first.send(0.03, 0, CONNECT)
        first.send(0.04, 1, CONNACK)
    talk(first, 1.0, [1, 2])
    first.send(5.0, 0, flags=ends)
    second = Connection(is_opened=False)
    second.sent = list(numbers)
    for seconds, side, flags in ((10.0, 0, "S"), (10.01, 1, "SA"), (10.02, 0, "A")):
        second.send(seconds, side, flags=flags)
    second.send(10.03, 0, CONNECT)
    second.send(10.04, 1, CONNACK)
    talk(second, 11.0, [3, 4, 5])
    first.packets += second.packets
    return first


def is_syn(packet: IP, flags: str) -> bool:
    """Tell whether a packet has exactly these flags."""
    return str(packet[TCP].flags) == flags


@pytest.mark.parametrize("numbers", ["ahead", "behind"])
def test_a_syn_opens_a_stream_where_the_capture_began_in_the_one_before(tmp_path: Path, numbers: str) -> None:
    """The first connection's SYN is not in the capture: streams are tshark's, and those behind them too."""
    connection = one_after_another(NUMBERS[numbers], begins=False)
    third = Connection(is_opened=False)
    third.ports = (50_001, SERVER[1])
    talk(third, 20.0, [6])
    connection.packets += third.packets
    capture = connection.write(tmp_path / "later.pcap")

    found = messages(capture, "stream", "frame")
    assert [(str(stream), str(frame)) for stream, frame in found] == tshark(capture, "mqtt", "tcp.stream", "frame.number")
    sessions = pa.table(pcapstat.open(capture).sessions).to_pylist()
    assert [(row["stream"], row["messages"], row["is_opening_seen"]) for row in sessions] == [(0, 4, False), (1, 8, True), (2, 2, False)]


@pytest.mark.parametrize("numbers", ["ahead", "behind"])
@pytest.mark.parametrize("lost", ["SYN", "client"])
def test_a_syn_ack_may_tell_of_another_connection(tmp_path: Path, numbers: str, lost: str) -> None:
    """The second SYN, or all that the client sends, is not in the capture: what follows neither repeats the first nor leaves a gap."""
    connection = one_after_another(NUMBERS[numbers])
    if lost == "SYN":
        connection.packets = connection.packets[:10] + [packet for packet in connection.packets[10:] if not is_syn(packet, "S")]
    else:
        connection.packets = [packet for packet in connection.packets if packet[TCP].sport == SERVER[1]]
    capture = connection.write(tmp_path / "other.pcap")

    found = messages(capture, "kind", "message_id", "session")
    answers = [("CONNACK", None, 0), ("PUBACK", 1, 0), ("PUBACK", 2, 0)] + [("CONNACK", None, 1)] + [("PUBACK", i, 1) for i in (3, 4, 5)]
    assert [row for row in found if row[0] in ("CONNACK", "PUBACK")] == answers
    assert sum(kind == "PUBLISH" for kind, _, _ in found) == (5 if lost == "SYN" else 0)
    for row in pa.table(pcapstat.open(capture).sessions).to_pylist():
        assert (row["lost_bytes"], row["tcp_retransmissions"]) == (0, 0)
    # Wireshark 4.0 counts them as one stream too, 4.4 as two
    assert {stream for (stream,) in messages(capture, "stream")} == {0}
    assert {int(stream) for (stream,) in tshark(capture, "tcp", "tcp.stream")} == ({0, 1} if wireshark_is((4, 4)) else {0})


@pytest.mark.parametrize("ends", ["RA", "FA"])
def test_a_device_may_begin_with_the_same_numbers_after_each_start(tmp_path: Path, ends: str) -> None:
    """A SYN like the first one behind the connection's end: what follows is said for the first time."""
    capture = one_after_another(NUMBERS["same"], ends=ends).write(tmp_path / "same.pcap")

    found = messages(capture, "kind", "message_id", "session")
    assert [(identifier, session) for kind, identifier, session in found if kind == "PUBLISH"] == [(1, 0), (2, 0), (3, 1), (4, 1), (5, 1)]
    assert [row["tcp_retransmissions"] for row in pa.table(pcapstat.open(capture).sessions).to_pylist()] == [0, 0]


def test_a_syn_that_is_refused_at_first_opens_one_connection(tmp_path: Path) -> None:
    """A RST answers the SYN, which comes again and is accepted (RFC 9293 §3.10.7.1: the RST of a closed port has number 0)."""
    connection = Connection(is_opened=False)
    connection.send(0.0, 0, flags="S")
    connection.send(0.001, 1, flags="RA")
    connection.packets[-1][TCP].seq = 0
    connection.send(0.5, 0, flags="S", back=1)
    connection.send(0.51, 1, flags="SA")
    connection.send(0.52, 0, flags="A")
    connection.send(0.53, 0, CONNECT)
    connection.send(0.54, 1, CONNACK)
    capture = connection.write(tmp_path / "refused.pcap")

    [session] = pa.table(pcapstat.open(capture).sessions).to_pylist()
    assert (session["frame_first"], session["messages"]) == (1, 2)
    # Wireshark 4.2 takes the SYN that comes again for another stream's
    assert session["tcp_retransmissions"] == 1
    assert len(tshark(capture, "tcp.analysis.retransmission", "frame.number")) == (0 if wireshark_is((4, 2)) else 1)


def test_a_syn_may_be_answered_twice_with_other_numbers(tmp_path: Path) -> None:
    """SYN cookies (RFC 4987 §3.6): the answer that the client goes on with is the later one."""
    connection = Connection(is_opened=False)
    connection.send(0.0, 0, flags="S")
    connection.send(0.01, 1, flags="SA")
    connection.sent[1] = 3_000_000_000
    connection.send(1.0, 0, flags="S", back=1)
    connection.send(1.01, 1, flags="SA")
    connection.send(1.02, 0, flags="A")
    connection.send(1.03, 0, CONNECT)
    connection.send(1.04, 1, CONNACK)
    talk(connection, 2.0, [1, 2])
    capture = connection.write(tmp_path / "cookies.pcap")

    assert [frame for (frame,) in messages(capture, "frame")] == [6, 7, 8, 9, 10, 11]
    [session] = pa.table(pcapstat.open(capture).sessions).to_pylist()
    assert (session["exchanges_complete"], session["lost_bytes"], session["tcp_retransmissions"]) == (3, 0, 1)


@pytest.mark.parametrize("segments", [100, 1500])
def test_a_hole_that_the_peer_asks_for_is_filled_however_late(tmp_path: Path, segments: int) -> None:
    """The network loses one segment of a large window: all messages are there, as in tshark, and no byte is lost."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    whole = b"".join(publish(number + 1, b"%06d" % number + b"z" * 500) for number in range(segments + 20))
    pieces = [whole[at : at + 500] for at in range(0, len(whole), 500)]
    hole, filled = 5, 5 + segments
    begin = connection.sent[0]
    for number, piece in enumerate(pieces):
        if number == hole:
            connection.lose(0, piece)
            continue
        if number == filled:
            connection.send(1.0 + number / 10_000, 0, pieces[hole], back=connection.sent[0] - begin - 500 * hole)
        connection.send(1.0 + number / 10_000, 0, piece)
        if hole < number < filled and number % 2 == 0:
            connection.send(1.0 + number / 10_000, 1, flags="A")
            connection.packets[-1][TCP].ack = begin + 500 * hole
    connection.send(2.0, 1, flags="A")
    capture = connection.write(tmp_path / "window.pcap")

    command = ("mqtt.msgtype == 3", "mqtt.msgid", "-o", "tcp.reassemble_out_of_order:TRUE")
    listed = [identifier for (line,) in tshark(capture, *command[:2], options=command[2:]) for identifier in line.split(",")]
    assert [str(identifier) for kind, identifier in messages(capture, "kind", "message_id") if kind == "PUBLISH"] == listed
    assert len(listed) == segments + 20
    [session] = pa.table(pcapstat.open(capture).sessions).to_pylist()
    assert (session["lost_bytes"], session["tcp_retransmissions"], session["tcp_out_of_order"]) == (0, 0, 1)


def test_a_probe_of_a_closed_window_is_no_retransmission(tmp_path: Path) -> None:
    """Trap 40: the first byte of what waits, twice (RFC 9293 §3.8.6.1), then all of it."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    waits = publish(1, b"x")
    connection.send(0.05, 1, flags="A", window=0)
    for seconds in (0.5, 1.5):
        connection.send(seconds, 0, waits[:1], flags="A")
        connection.sent[0] -= 1
        connection.send(seconds + 0.01, 1, flags="A", window=0)
    connection.send(2.0, 1, flags="A")
    connection.send(2.01, 0, waits)
    connection.send(2.02, 1, puback(1))
    capture = connection.write(tmp_path / "closed.pcap")

    assert len(tshark(capture, "tcp.analysis.zero_window_probe", "frame.number")) == 2
    [session] = pa.table(pcapstat.open(capture).sessions).to_pylist()
    assert session["tcp_retransmissions"] == len(tshark(capture, "tcp.analysis.retransmission", "frame.number")) == 0
    assert [kind for (kind,) in messages(capture, "kind")] == ["CONNECT", "CONNACK", "PUBLISH", "PUBACK"]
