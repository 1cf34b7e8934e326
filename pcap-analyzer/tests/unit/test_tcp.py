"""Streams of TCP as captures have them: messages split early, segments that the capture lost, what TCP itself sends again."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from against_standards.building import MACS
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

import pcapstat
from pcapstat.metrics.sessions import Choices

CLIENT, SERVER = ("10.0.0.1", 50_000), ("10.0.0.2", 1883)
CONNECT = b"\x10\x0f\0\x04MQTT\x04\x02\0\x3c\0\x03esp"
"""MQTT 3.1.1 §3.1: Clean Session, keep alive 60 s, client identifier "esp"."""
CONNACK = b"\x20\x02\0\0"


def publish(identifier: int, payload: bytes) -> bytes:
    """Build a PUBLISH with QoS 1 on the topic "s/t" (MQTT 3.1.1 §3.3), up to 16,383 bytes."""
    body = b"\0\x03s/t" + identifier.to_bytes(2) + payload
    length = bytes([len(body)]) if len(body) < 128 else bytes([len(body) & 127 | 128, len(body) >> 7])
    return b"\x32" + length + body


def puback(identifier: int) -> bytes:
    """Build a PUBACK (MQTT 3.1.1 §3.4)."""
    return b"\x40\x02" + identifier.to_bytes(2)


class Connection:
    """One connection's packets, by hand: what each side has sent decides the numbers."""

    def __init__(self, server_port: int = SERVER[1], *, is_opened: bool = True) -> None:
        """Begin with TCP's handshake, unless the capture begins later."""
        self.ports = (CLIENT[1], server_port)
        self.sent = [1000, 5000]
        self.packets: list[Packet] = []
        if is_opened:
            self.send(0.0, 0, flags="S")
            self.send(0.01, 1, flags="SA")
            self.send(0.02, 0, flags="A")

    def send(self, seconds: float, side: int, data: bytes = b"", flags: str = "PA", back: int = 0, window: int = 8192) -> None:
        """Add a segment from the client (0) or the server (1), beginning `back` bytes before what comes next."""
        addresses = (CLIENT[0], SERVER[0])
        tcp = TCP(sport=self.ports[side], dport=self.ports[1 - side], flags=flags, seq=(self.sent[side] - back) % 2**32, window=window)
        tcp.ack = self.sent[1 - side] % 2**32 if "A" in flags else 0
        packet = Ether(**MACS) / IP(src=addresses[side], dst=addresses[1 - side], id=len(self.packets) + 1) / tcp
        packet = packet / Raw(data) if data else packet
        packet.time = 1_700_000_000 + seconds
        self.packets.append(packet)
        self.sent[side] += max(0, len(data) + ("S" in flags or "F" in flags) - back)

    def lose(self, side: int, data: bytes) -> None:
        """Send what the capture does not get."""
        self.sent[side] += len(data)

    def write(self, path: Path) -> Path:
        """Write the capture."""
        wrpcap(str(path), self.packets, nano=True)
        return path


def messages(capture: Path, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    """Return columns of the messages."""
    table = pa.table(pcapstat.open(capture, engine="native", **options).messages)
    return list(zip(*(table.column(column).to_pylist() for column in columns), strict=True))


def tshark(capture: Path, display_filter: str, *fields: str, options: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """Return fields of the frames that tshark selects."""
    words = [word for field in fields for word in ("-e", field)]
    command = ["tshark", "-n", "-r", str(capture), *options, "-Y", display_filter, "-T", "fields", *words]
    return [tuple(line.split("\t")) for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()]


def test_a_connect_whose_first_segment_is_short_is_found(tmp_path: Path) -> None:
    """Small clients send the fixed header by itself: the CONNECT is complete where tshark shows it."""
    for cut in range(1, len(CONNECT)):
        connection = Connection()
        connection.send(0.03, 0, CONNECT[:cut])
        connection.send(0.04, 1, flags="A")
        connection.send(0.05, 0, CONNECT[cut:])
        connection.send(0.06, 1, CONNACK)
        capture = connection.write(tmp_path / f"{cut}.pcap")

        found = messages(capture, "kind", "frame", "client_identifier")
        assert found == [("CONNECT", 6, "esp"), ("CONNACK", 7, None)], cut
    assert tshark(capture, "mqtt.msgtype == 1", "frame.number", "mqtt.clientid") == [("6", "esp")]


def test_a_client_hello_whose_first_segment_is_short_is_found(tmp_path: Path) -> None:
    """A record's header may be cut anywhere."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="broker.example")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        hello = outgoing.read()
    for cut in range(1, 7):
        connection = Connection(8883)
        connection.send(0.03, 0, hello[:cut])
        connection.send(0.04, 0, hello[cut:])
        capture = connection.write(tmp_path / f"{cut}.pcap")

        assert messages(capture, "protocol", "frame", "server_name") == [("tls", 5, "broker.example")], cut
    assert tshark(capture, "tls.handshake.type == 1", "frame.number") == [("5",)]


def lossy(payloads: list[bytes], lost: int) -> Connection:
    """Build publications that are acknowledged each, one of which the capture does not get."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    for number, payload in enumerate(payloads, 1):
        if number == lost:
            connection.lose(0, publish(number, payload))
        else:
            connection.send(number, 0, publish(number, payload))
        connection.send(number + 0.0002, 1, puback(number))
    return connection


def test_what_stands_behind_a_gap_is_where_it_was_captured(tmp_path: Path) -> None:
    """One segment is missing: the others are complete in the frames where tshark shows them, and each finds its acknowledgement."""
    for lost in (4, 19):
        capture = lossy([b"%d" % number for number in range(20)], lost).write(tmp_path / f"{lost}.pcap")

        found = sorted(
            (frame, kind, identifier) for frame, kind, identifier in messages(capture, "frame", "kind", "message_id") if identifier
        )
        kinds = {"3": "PUBLISH", "4": "PUBACK"}
        listed = tshark(capture, "mqtt.msgid", "frame.number", "mqtt.msgtype", "mqtt.msgid")
        assert found == [(int(frame), kinds[kind], int(identifier)) for frame, kind, identifier in listed]
        [session] = pa.table(pcapstat.open(capture).sessions).to_pylist()
        # the CONNECT's exchange, and one of each publication but that which is missing
        assert (session["exchanges_complete"], session["exchanges_unanswered"]) == (20, 0)


def test_a_gap_that_an_acknowledgement_alone_tells_of_may_be_filled_late(tmp_path: Path) -> None:
    """Frames that the capture mixed up, by less than a millisecond: nothing is given up."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    first, second = publish(1, b"one"), publish(2, b"two")
    connection.lose(0, first)
    connection.send(1.0001, 0, second)
    connection.send(1.0002, 1, flags="A")
    connection.send(1.0003, 0, first, back=len(first) + len(second))
    capture = connection.write(tmp_path / "mixed.pcap")

    assert messages(capture, "kind", "message_id")[2:] == [("PUBLISH", 1), ("PUBLISH", 2)]


def test_messages_behind_a_hole_that_is_filled_keep_their_own_times(tmp_path: Path) -> None:
    """Trap 21: the first of three segments comes last; each message's bytes have their times, all are complete with it."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    first, second, third = (publish(number, b"x") for number in (1, 2, 3))
    connection.lose(0, first)
    connection.send(1.25, 0, second)
    connection.send(1.5, 0, third)
    connection.send(1.75, 0, first, back=len(first + second + third))
    capture = connection.write(tmp_path / "filled.pcap")

    found = messages(capture, "message_id", "frame", "frame_first", "time_first_ns", "time_ns", "is_after_gap")[2:]
    start, filled = 1_700_000_000_000_000_000, 1_700_000_001_750_000_000
    assert found == [
        (1, 8, 8, filled, filled, False),
        (2, 8, 6, start + 1_250_000_000, filled, False),
        (3, 8, 7, start + 1_500_000_000, filled, False),
    ]
    [session] = pa.table(pcapstat.open(capture).sessions).to_pylist()
    assert (session["tcp_out_of_order"], session["lost_bytes"]) == (1, 0)


def test_what_tcp_sends_again_is_no_data(tmp_path: Path) -> None:
    """Traps 22, 39, 40: the same bytes once more, then other bytes at their place with a new message behind; what came first is used."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    first, second = publish(1, b"AAAA"), publish(2, b"x")
    connection.send(1.0, 0, first)
    connection.send(1.5, 0, first, back=len(first))
    connection.send(2.0, 0, first.replace(b"A", b"B") + second, back=len(first))
    capture = connection.write(tmp_path / "again.pcap")

    found = messages(capture, "frame", "message_id", "payload", "is_data", show_payload=True)[2:]
    assert found == [(6, 1, b"AAAA", True), (8, 2, b"x", True)]
    [session] = pcapstat.open(capture).summary().sessions
    assert (session.data_bytes, session.tcp_retransmissions) == (5, len(tshark(capture, "tcp.analysis.retransmission", "frame.number")))
    # three of the handshake, and the segment that brought nothing
    assert session.control_frames == 4


def test_frames_without_a_message_can_be_left_out(tmp_path: Path) -> None:
    """Traps 43, 44: TCP's handshake and a bare ACK, 4 frames of 54 bytes, are overhead unless they are left out; the ACK's time is told."""
    connection = Connection()
    connection.send(0.0625, 0, CONNECT)
    connection.send(0.125, 1, CONNACK)
    connection.send(0.25, 0, publish(1, b"x"))
    connection.send(0.4375, 1, flags="A")
    connection.send(0.5, 1, puback(1))
    capture = connection.write(tmp_path / "control.pcap")

    [whole] = pcapstat.open(capture).summary().sessions
    [without] = pcapstat.open(capture).summary(Choices(transport_control=False)).sessions
    assert (whole.control_frames, whole.control_bytes, whole.overhead_bytes - without.overhead_bytes) == (4, 4 * 54, 4 * 54)
    found = {time.timing: time for time in whole.times if time.kind in ("", "PUBLISH QoS 1")}
    assert found["ack_rtt"].median_s == pytest.approx(0.25)
    assert found["tcp_ack"].max_s == pytest.approx(0.1875)


def test_a_pause_is_no_loss(tmp_path: Path) -> None:
    """Trap 69: nothing for two and a half hours, but no sequence number is missing."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    for number, seconds in ((1, 1.0), (2, 9_000.0)):
        connection.send(seconds, 0, publish(number, b"x"))
        connection.send(seconds + 0.01, 1, puback(number))
    capture = connection.write(tmp_path / "pause.pcap")

    [session] = pcapstat.open(capture).summary().sessions
    assert (session.lost_bytes, session.exchanges_unanswered) == (0, 0)
    assert "gap" not in {note["note"] for note in session.notes}


def test_a_port_pair_that_is_used_again_is_another_session(tmp_path: Path) -> None:
    """Trap 65: a SYN with another sequence number opens a connection of its own, as tshark's tcp.stream does."""
    first, second = Connection(), Connection(is_opened=False)
    second.sent = [900_000, 700_000]
    for seconds, side, flags in ((10.0, 0, "S"), (10.01, 1, "SA"), (10.02, 0, "A")):
        second.send(seconds, side, flags=flags)
    for connection, seconds in ((first, 0.03), (second, 10.03)):
        connection.send(seconds, 0, CONNECT)
        connection.send(seconds + 0.01, 1, CONNACK)
    first.packets += second.packets
    capture = first.write(tmp_path / "again.pcap")

    streams = tshark(capture, "mqtt", "tcp.stream")
    assert [(str(stream),) for (stream,) in messages(capture, "session")] == streams == [("0",), ("0",), ("1",), ("1",)]


def test_requests_of_http_may_go_ahead_of_answers(tmp_path: Path) -> None:
    """Trap 49: two requests in one segment, two answers in another (RFC 9112 §9.3.2); 100 (RFC 9110 §15.2.1) comes first."""
    connection = Connection(80)
    connection.send(1.0, 0, b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    connection.send(1.125, 1, answer + b"aa" + answer + b"bb")
    connection.send(2.0, 0, b"PUT /c HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
    connection.send(2.125, 1, b"HTTP/1.1 100 Continue\r\n\r\n")
    connection.send(2.25, 0, b"ccc")
    connection.send(2.5, 1, b"HTTP/1.1 204 No Content\r\n\r\n")
    capture = connection.write(tmp_path / "http.pcap")

    table = pa.table(pcapstat.open(capture, engine="native").exchanges).select(["frame_first", "frame_response", "kind", "result"])
    assert sorted(tuple(row.values()) for row in table.to_pylist()) == [
        (4, 5, "GET", "200"),
        (4, 5, "GET", "200"),
        (7, 9, "PUT", "204"),
    ]


def test_letters_at_the_end_of_a_segment_are_no_control_packet(tmp_path: Path) -> None:
    """Trap 23: "pppp" is the header and identifier of a PUBCOMP with 112 bytes (MQTT 5 §3.7), and stands where the bytes at hand end."""
    connect = b"\x10\x10\0\x04MQTT\x05\x02\0\x3c\0\0\x03esp"
    payload = b"p" * 300
    whole = [b"\x32" + bytes([0xB4, 0x02]) + b"\0\x03s/t" + number.to_bytes(2) + b"\0" + payload for number in range(1, 8)]
    connection = Connection()
    connection.send(0.03, 0, connect)
    connection.send(0.04, 1, b"\x20\x03\0\0\0")
    for number, packet in enumerate(whole):
        halves = packet[:150], packet[150:]
        connection.lose(0, halves[0]) if number == 1 else connection.send(number + 1.0, 0, halves[0])
        connection.send(number + 1.1, 0, halves[1])
        connection.send(number + 1.2, 1, puback(number + 1))
    capture = connection.write(tmp_path / "letters.pcap")

    found = [row for row in messages(capture, "kind", "message_id", "malformed") if row[0] not in {"CONNECT", "CONNACK", "PUBACK"}]
    assert found == [("PUBLISH", number, None) for number in (1, 3, 4, 5, 6, 7)]
    [session] = pcapstat.open(capture).summary().sessions
    assert (session.lost_bytes, session.malformed, session.data_messages) == (150, 0, 6)


def without_end(last: bytes, kept: int) -> Connection:
    """Return a connection of whose last message only so many bytes were captured."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    if kept:
        connection.send(1.0, 0, last[:kept])
    connection.lose(0, last[kept:])
    return connection


def test_the_end_of_a_connection_tells_what_is_missing_before_it(tmp_path: Path) -> None:
    """A FIN has its place behind the last byte (RFC 9293 §3.4): what the capture lacks before it is lost, as tshark says too."""
    last = publish(1, b"x" * 40)
    for kept in (0, 20, len(last)):
        connection = without_end(last, kept)
        connection.send(1.1, 0, flags="FA")
        connection.send(1.2, 1, flags="FA")
        connection.send(1.3, 0, flags="A")
        capture = connection.write(tmp_path / f"{kept}.pcap")

        [session] = pcapstat.open(capture).summary().sessions
        assert session.lost_bytes == len(last) - kept
        frames = tshark(capture, "tcp.analysis.lost_segment", "frame.number")
        fin = str(6 + bool(kept))
        assert ([note["frame_first"] for note in session.notes if note["note"] == "gap"], frames) == (
            ([], []) if kept == len(last) else ([int(fin)], [(fin,)])
        )
        assert session.control_frames == 6


@pytest.mark.parametrize(
    "ends", [[(0, "R")], [(0, "RA")], [(1, "A")], [(1, "RA")], [(1, "A"), (0, "FA")], [(1, "A"), (0, "R")]], ids=lambda ends: str(ends)
)
@pytest.mark.parametrize("kept", [0, 20, 49])
def test_what_the_peer_acknowledged_or_a_reset_is_behind_is_lost_where_it_is_not_there(
    ends: list[tuple[int, str]], kept: int, tmp_path: Path
) -> None:
    """A RST has the number of the next byte (RFC 9293 §3.5.2, §3.10.4), an acknowledgement that of the next one awaited (§3.4)."""
    last = publish(1, b"x" * 40)
    connection = without_end(last, kept)
    for number, (side, flags) in enumerate(ends):
        connection.send(1.1 + number / 10, side, flags=flags)
    capture = connection.write(tmp_path / "ends.pcap")

    assert len(last) == 49
    [session] = pa.table(pcapstat.open(capture).sessions).to_pylist()
    assert (session["lost_bytes"], session["tcp_out_of_order"], session["tcp_retransmissions"]) == (len(last) - kept, 0, 0)
    if ends[0][0] == 1:
        assert bool(tshark(capture, "tcp.analysis.ack_lost_segment", "frame.number")) == (kept < len(last))


Ends = list[tuple[int, str, bytes]]
"""Who sends which flags, and what the client sent before that, which the capture lacks: "F" is a FIN, which takes a number too."""


def lost_at_end(path: Path, kept: int, ends: Ends) -> int:
    """Return the bytes that a connection lacks whose last message was captured in part."""
    connection = without_end(publish(1, b"x" * 40)[:kept], kept)
    for number, (side, flags, lost) in enumerate(ends):
        connection.lose(0, lost)
        connection.send(1.1 + number / 10, side, flags=flags)
    [session] = pa.table(pcapstat.open(connection.write(path)).sessions).to_pylist()
    assert (session["tcp_out_of_order"], session["tcp_retransmissions"]) == (0, 0)
    return int(session["lost_bytes"])


@pytest.mark.parametrize("kept", [0, 20, 47])
def test_a_fin_that_is_lost_with_the_last_bytes_is_none_of_them(kept: int, tmp_path: Path) -> None:
    """RFC 9293 §3.4, §3.6: the server acknowledges the client's FIN by one number more than there are bytes."""
    rest = publish(1, b"x" * 40)[kept:]
    both = rest + b"F"
    for ends in (
        # the client ends first: the server's FIN acknowledges that, and is acknowledged
        [(1, "FA", both), (0, "A", b"")],
        [(1, "A", both), (1, "FA", b""), (0, "A", b"")],
        # the server does: its last packet acknowledges the client's FIN
        [(1, "FA", b""), (1, "A", both)],
        [(1, "FA", b""), (0, "A", b""), (1, "A", both), (1, "A", b"")],
        # the server does, when it has got the last bytes; the client's FIN comes later, or is lost, or is not sent yet
        [(1, "A", rest), (1, "FA", b""), (0, "A", b""), (0, "FA", b""), (1, "A", b"")],
        [(1, "A", rest), (1, "FA", b""), (0, "A", b""), (1, "A", b"F")],
        [(1, "FA", rest)],
    ):
        assert lost_at_end(tmp_path / "ends.pcap", kept, ends) == len(rest), ends


def test_an_acknowledgement_that_was_captured_before_its_data_tells_of_no_loss(tmp_path: Path) -> None:
    """The capture mixed up frames of two directions: all is there, nothing came out of order, and what has no time to its ACK has none."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    for number in range(1, 4):
        connection.send(number, 0, publish(number, b"one"))
        connection.send(number + 0.0001, 1, puback(number))
        if number == 2:
            connection.packets[-2:] = connection.packets[:-3:-1]
            connection.send(2.5, 1, flags="A")
    connection.send(3.5, 0, flags="A")
    capture = connection.write(tmp_path / "mixed.pcap")

    opened = pcapstat.open(capture)
    [session] = pa.table(opened.sessions).to_pylist()
    assert (session["lost_bytes"], session["tcp_out_of_order"], session["tcp_retransmissions"]) == (0, 0, 0)
    assert sorted(row[1] for row in messages(capture, "kind", "message_id") if row[0] == "PUBLISH") == [1, 2, 3]
    [acknowledged] = [timing for timing in pa.table(opened.table("timings")).to_pylist() if timing["timing"] == "tcp_ack"]
    # of CONNECT, CONNACK, three PUBACKs, and of two publications: that of the second one has no end at 2.5 s
    assert acknowledged["count"] == 7


def test_text_behind_a_gap_is_no_control_packet(tmp_path: Path) -> None:
    """The first segment of a JSON text is missing: words of the rest look like packets, but not like packets of MQTT 3.1.1."""
    text = (b'{"sensor":"attic-by-window","battery":88,"temp":21.5,"probe":"number 7"},' * 60)[:4000]
    whole = publish(1, text)
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    connection.lose(0, whole[:1448])
    connection.send(1.001, 0, whole[1448:2896])
    connection.send(1.002, 0, whole[2896:])
    connection.send(1.01, 1, puback(1))
    connection.send(2.0, 0, publish(2, b"next"))
    connection.send(2.01, 1, puback(2))
    capture = connection.write(tmp_path / "text.pcap")

    found = messages(capture, "kind", "message_id")
    assert found == [("CONNECT", None), ("CONNACK", None), ("PUBACK", 1), ("PUBLISH", 2), ("PUBACK", 2)]


def test_what_tcp_sends_again_is_counted_as_tshark_does(tmp_path: Path) -> None:
    """A SYN and a FIN sent again are retransmissions, a keep-alive probe is none; a handshake with a second SYN is no sample (Karn)."""
    connection = Connection(is_opened=False)
    connection.send(0.0, 0, flags="S")
    connection.send(1.0, 0, flags="S", back=1)
    connection.send(1.02, 1, flags="SA")
    connection.send(1.04, 0, flags="A")
    connection.send(1.05, 0, CONNECT)
    connection.send(1.06, 1, CONNACK)
    connection.send(61.0, 0, b"\0", flags="A", back=1)
    connection.send(61.01, 1, flags="A")
    connection.send(62.0, 0, flags="FA")
    connection.send(63.0, 0, flags="FA", back=1)
    capture = connection.write(tmp_path / "again.pcap")

    capture_sessions = pcapstat.open(capture)
    [session] = pa.table(capture_sessions.sessions).to_pylist()
    assert session["tcp_retransmissions"] == len(tshark(capture, "tcp.analysis.retransmission", "frame.number")) == 2
    assert len(tshark(capture, "tcp.analysis.keep_alive", "frame.number")) == 1
    timings = pa.table(capture_sessions.table("timings")).to_pylist()
    [handshake] = [timing for timing in timings if timing["timing"] == "tcp_handshake"]
    assert (handshake["count"], handshake["retransmitted"]) == (0, 1)


def test_what_a_reset_says_is_no_message(tmp_path: Path) -> None:
    """RFC 9293 §3.5.3: a RST may carry text on why."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    connection.send(0.05, 1, b"connection table full", flags="RA")
    capture = connection.write(tmp_path / "reset.pcap")

    assert messages(capture, "kind", "malformed") == [("CONNECT", None), ("CONNACK", None)]
    [session] = pa.table(pcapstat.open(capture).sessions).to_pylist()
    assert session["frame_last"] == 6


def test_a_rule_names_the_servers_port(tmp_path: Path) -> None:
    """A capture that begins in mid-stream with the server's data: the side at the rule's port is the server."""
    connection = Connection(18_830, is_opened=False)
    connection.send(0.0, 1, publish(1, b"one"))
    connection.send(0.01, 0, puback(1))
    connection.send(0.02, 0, b"\xc0\0")
    capture = connection.write(tmp_path / "rule.pcap")

    found = messages(capture, "kind", "direction", decode_as=["tcp.port==18830,mqtt"])
    assert found == [("PUBLISH", "s2c"), ("PUBACK", "c2s"), ("PINGREQ", "c2s")]
