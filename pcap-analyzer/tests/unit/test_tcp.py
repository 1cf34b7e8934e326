"""Streams of TCP as captures have them: messages split early, segments that the capture lost, what TCP itself sends again."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

import pcapstat

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

    def send(self, seconds: float, side: int, data: bytes = b"", flags: str = "PA", back: int = 0) -> None:
        """Add a segment from the client (0) or the server (1), beginning `back` bytes before what comes next."""
        addresses = (CLIENT[0], SERVER[0])
        tcp = TCP(sport=self.ports[side], dport=self.ports[1 - side], flags=flags, seq=self.sent[side] - back)
        tcp.ack = self.sent[1 - side] if "A" in flags else 0
        packet = Ether() / IP(src=addresses[side], dst=addresses[1 - side], id=len(self.packets) + 1) / tcp
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


def tshark(capture: Path, display_filter: str, *fields: str) -> list[tuple[str, ...]]:
    """Return fields of the frames that tshark selects."""
    words = [word for field in fields for word in ("-e", field)]
    command = ["tshark", "-n", "-r", str(capture), "-Y", display_filter, "-T", "fields", *words]
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
