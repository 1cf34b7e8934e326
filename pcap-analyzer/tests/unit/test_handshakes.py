"""What a session tells of its handshake, from datagrams and segments by hand."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Packet
from scapy.utils import wrpcap

import pcapstat

CLIENT_HELLO, SERVER_HELLO, SERVER_HELLO_DONE, CLIENT_KEY_EXCHANGE = 1, 2, 14, 16
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 20, 21, 22, 23


def session(path: Path, packets: list[Packet]) -> dict[str, Any]:
    """Return the only session of packets that are a millisecond apart."""
    for number, packet in enumerate(packets):
        packet.time = 1_700_000_000 + number / 1000
    wrpcap(str(path), packets)
    [row] = pa.table(pcapstat.open(path).sessions).to_pylist()
    return dict(row)


def datagram(is_client: bool, *parts: bytes, port: int = 5684) -> Packet:
    """Return a datagram between the client and the server."""
    ends = {"sport": 40_000, "dport": port} if is_client else {"sport": port, "dport": 40_000}
    addresses = {"src": "192.0.2.1", "dst": "192.0.2.2"} if is_client else {"src": "192.0.2.2", "dst": "192.0.2.1"}
    return IP(**addresses) / UDP(**ends) / b"".join(parts)


def record(content_type: int, epoch: int, number: int, fragment: bytes) -> bytes:
    """RFC 6347 §4.1."""
    return struct.pack("!BHHHIH", content_type, 0xFEFD, epoch, 0, number, len(fragment)) + fragment


def message(kind: int, number: int, body: bytes) -> bytes:
    """RFC 6347 §4.2.2, in one fragment, which is a record with the message's number."""
    length = len(body).to_bytes(3, "big")
    return record(HANDSHAKE, 0, number, bytes([kind]) + length + struct.pack("!H", number) + bytes(3) + length + body)


def finished(number: int) -> bytes:
    """ChangeCipherSpec, and 40 bytes that are encrypted (AES-128-CCM-8: 8 + 24 + 8)."""
    return record(CHANGE_CIPHER_SPEC, 0, number, b"\1") + record(HANDSHAKE, 1, 0, bytes(40))


def test_a_renegotiation_is_no_part_of_the_time_that_the_handshake_took(tmp_path: Path) -> None:
    """Four flights, a millisecond apart; then data, and behind it another ClientHello that the server refuses (RFC 5246 §7.2.2)."""
    hello = b"\xfe\xfd" + bytes(range(32)) + b"\0"
    row = session(
        tmp_path / "renegotiation.pcap",
        [
            datagram(True, message(CLIENT_HELLO, 0, hello + b"\0\0\2\xc0\xa8\1\0")),
            datagram(False, message(SERVER_HELLO, 0, hello + b"\xc0\xa8\0"), message(SERVER_HELLO_DONE, 1, b"")),
            datagram(True, message(CLIENT_KEY_EXCHANGE, 1, b"\0\2id"), finished(2)),
            datagram(False, finished(2)),
            datagram(True, record(APPLICATION_DATA, 1, 1, bytes(26))),
            datagram(True, record(HANDSHAKE, 1, 2, bytes(90))),
            datagram(False, record(ALERT, 1, 1, bytes(18))),
        ],
    )

    assert (row["handshake_ns"], row["handshake_flights"]) == (3_000_000, 4)
    assert (row["exchanges_complete"], row["exchanges_unanswered"]) == (1, 1)


def test_what_protects_a_connection_is_told_where_its_handshake_is_missing(tmp_path: Path) -> None:
    """Records of application data alone: TLS, of a version and with a cipher suite that they do not show (RFC 8446 §5.1)."""
    segment = IP() / TCP(sport=40_000, dport=8883, flags="PA", seq=1) / (b"\x17\3\3\0\x20" + bytes(32))

    assert session(tmp_path / "middle.pcap", [segment])["security"] == "TLS"


def packet(first: int, destination: bytes, source: bytes, protected: bytes) -> bytes:
    """RFC 9000 §17.2: a long header, without a token where it is an Initial's; none of the connection IDs is a single byte."""
    ids = b"".join(bytes([len(id_)]) + id_ for id_ in (destination, source))
    token = b"\0" if first & 0x30 == 0 else b""
    return bytes([first]) + b"\0\0\0\1" + ids + token + struct.pack("!H", 0x4000 | len(protected)) + protected


def test_a_datagram_that_is_filled_up_tells_nothing_of_the_application(tmp_path: Path) -> None:
    """RFC 9000 §14.1: bytes behind the Initial packet serve the handshake, whose time ends with the client's Handshake packet."""
    client, server = b"\7" * 8, b"\x08" * 8
    row = session(
        tmp_path / "filled.pcap",
        [
            datagram(True, packet(0xC0, server, client, bytes(500)), bytes(672), port=4433),
            datagram(False, packet(0xC0, client, server, bytes(200)), packet(0xE0, client, server, bytes(900)), port=4433),
            datagram(True, packet(0xC0, server, client, bytes(30)), packet(0xE0, server, client, bytes(70)), bytes(1000), port=4433),
            datagram(True, b"\x40" + server + bytes(40), port=4433),
            datagram(True, packet(0xE0, server, client, bytes(30)), port=4433),
        ],
    )

    assert row["time1_application_ns"] is None
    assert (row["handshake_ns"], row["handshake_flights"]) == (2_000_000, 3)
    # every datagram but the application's, with 20 + 8 bytes of headers each
    initial, handshake = 1 + 4 + 9 + 9 + 1 + 2, 1 + 4 + 9 + 9 + 2
    datagrams = [initial + 500 + 672, initial + 200 + handshake + 900, initial + 30 + handshake + 70 + 1000, handshake + 30]
    assert row["handshake_bytes"] == sum(28 + length for length in datagrams)


def test_other_protocols_between_the_same_ports_are_no_records(tmp_path: Path) -> None:
    """RFC 7983 §7: a STUN Binding request (RFC 8489 §5), RTP (RFC 3550 §5.1), ZRTP and a TURN channel behind a ClientHello; all count."""
    hello = b"\xfe\xfd" + bytes(range(32)) + b"\0" + b"\0\0\2\xc0\xa8\1\0"
    stun, rtp = b"\0\1\0\0\x21\x12\xa4\x42" + bytes(12), b"\x80\x60" + bytes(10) + bytes(160)
    others = [stun, rtp, b"\x10\0" + bytes(26), b"\x40\0\0\4" + bytes(4)]
    packets = [datagram(True, message(CLIENT_HELLO, 0, hello)), *(datagram(number % 2 == 0, other) for number, other in enumerate(others))]
    path = tmp_path / "shared.pcap"
    row = session(path, packets)

    opened = pcapstat.open(path, engine="native")
    assert (row["messages"], row["malformed"]) == (1, 0)
    [note] = [note for note in pa.table(opened.notes).to_pylist() if note["note"] == "port-shared"]
    assert (note["frame_first"], note["frame_last"], note["count"], note["text"].split(": ")[-1]) == (2, 5, 4, "228 bytes")
    assert opened.summary().sessions[0].session_bytes == sum(len(bytes(each)) for each in packets)


def test_each_connection_between_the_same_ports_has_its_handshake(tmp_path: Path) -> None:
    """RFC 9000 §7.2: a client that chooses another connection ID begins anew, as HTTP/3 clients do that keep their socket."""
    server = b"\x08" * 8
    packets = []
    for client in (b"\x07" * 4, b"\x06" * 4):
        packets += [
            datagram(True, packet(0xC0, server, client, bytes(1170)), port=4433),
            datagram(False, packet(0xC0, client, server, bytes(200)), packet(0xE0, client, server, bytes(900)), port=4433),
            datagram(True, packet(0xE0, server, client, bytes(70)), b"\x40" + server + bytes(40), port=4433),
        ]

    row = session(tmp_path / "two.pcap", packets)
    assert (row["exchanges_complete"], row["exchanges_unanswered"], row["handshake_ns"]) == (2, 0, 2_000_000)


def test_a_client_of_quic_with_another_port_is_the_same_by_its_connection_id(tmp_path: Path) -> None:
    """RFC 9000 §9: a NAT's new binding leaves the server's connection ID as it was; the port tells nothing else."""
    client, server = b"\x07" * 4, b"\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
    moved, answer = (datagram(is_client, b"\x40" + id_ + bytes(40), port=9443) for is_client, id_ in ((True, server), (False, client)))
    moved[UDP].sport = answer[UDP].dport = 50_000
    path = tmp_path / "moved.pcap"
    row = session(
        path,
        [
            datagram(True, packet(0xC0, server, client, bytes(1170)), port=9443),
            datagram(False, packet(0xC0, client, server, bytes(200)), packet(0xE0, client, server, bytes(900)), port=9443),
            datagram(True, packet(0xE0, server, client, bytes(70)), b"\x40" + server + bytes(40), port=9443),
            moved,
            answer,
        ],
    )

    assert (row["messages"], row["connection_id"], row["control_frames"]) == (7, server.hex(), 0)
    notes = [note["text"] for note in pa.table(pcapstat.open(path).notes).to_pylist() if note["note"] == "peer-moved"]
    assert len(notes) == 1
    assert ":40000 to " in notes[0]
