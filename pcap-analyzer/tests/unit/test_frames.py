"""Frames as captures have them: other link layers, check sequences, padding, lengths and stamps that lie, files that hold several."""

from __future__ import annotations

import gzip
import struct
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from against_standards.building import (
    ACK,
    CON,
    CONTENT,
    GET,
    MACS,
    NON,
    POST,
    C,
    S,
    Said,
    coap,
    connack_311,
    connect_311,
    mqtt,
    packets,
    text,
)
from scapy.layers.inet import GRE, ICMP, IP, UDP, fragment
from scapy.layers.l2 import ARP, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw
from scapy.utils import wrpcap

import pcapstat
from pcapstat import crosscheck
from pcapstat.metrics.sessions import Choices
from unit.test_pcapng import SECTION, block

SAID: Said = [(C, coap(CON, GET, 1, b"A", [(11, b"a")])), (S, coap(ACK, CONTENT, 1, b"A", [], b"21"))]
"""A request of 7 bytes and its answer of 8."""
IP_BYTES, UDP_BYTES, GET_BYTES = 20, 8, 7
SECOND = 1_000_000_000
START_S = 1_700_000_000


def built(said: Said = SAID) -> list[Any]:
    """Return Ethernet frames."""
    return packets(said, "udp", 5683)


def request(last: bytes = b"a") -> bytes:
    """Return the request's frame, whose last byte is the path."""
    return bytes(built()[0])[:-1] + last


def pcap(path: Path, *frames: bytes, link: int = 1, times: list[tuple[int, int]] | None = None, original: int | None = None) -> Path:
    """Write a pcap whose link type may announce a check sequence in its upper bits, with stamps in seconds and microseconds."""
    stamps = times or [(START_S + number, 0) for number in range(len(frames))]
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    records = (
        struct.pack("<IIII", *stamp, len(frame), original or len(frame)) + frame for stamp, frame in zip(stamps, frames, strict=True)
    )
    path.write_bytes(head + b"".join(records))
    return path


def interface(link: int = 1, code: int = 0, value: bytes = b"", order: str = "<") -> bytes:
    """Return an interface description block (draft-ietf-opsawg-pcapng §4.2) with one option."""
    option = struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4 + 4) if code else b""
    return swapped(1, struct.pack(order + "HHI", link, 0, 0) + option, order)


def packet(number: int, time: int, data: bytes, order: str = "<") -> bytes:
    """Return an enhanced packet block (§4.3)."""
    return swapped(6, struct.pack(order + "IIIII", number, time >> 32, time & 0xFFFFFFFF, len(data), len(data)) + data, order)


def swapped(kind: int, body: bytes, order: str) -> bytes:
    """Return a block in a byte order."""
    whole = block(kind, body)
    length = struct.pack(order + "I", len(whole))
    return struct.pack(order + "I", kind) + length + whole[8:-4] + length


def rows(capture: Path, table: str = "messages") -> list[dict[str, Any]]:
    """Return the rows of a table."""
    found: list[dict[str, Any]] = pa.table(pcapstat.open(capture, engine="native").table(table)).to_pylist()
    return found


def notes(capture: Path) -> dict[str, str]:
    """Return what the capture does not show, by identifier."""
    return {row["note"]: row["text"] for row in rows(capture, "notes")}


def split(capture: Path) -> list[tuple[int, ...]]:
    """Return bytes of each message's frame, link, padding, IP, transport and CoAP's own."""
    columns = ("frame_bytes", "link_bytes", "padding_bytes", "ip_bytes", "transport_bytes")
    return [(*(row[name] for name in columns), row["header_bytes"] + row["option_bytes"] + row["payload_bytes"]) for row in rows(capture)]


INSIDE = request()[14:]
SLL, SLL2 = b"\0\0\0\1\0\6" + bytes(8) + b"\x08\0", b"\x08\0\0\0\0\0\0\1\0\1\0\6" + bytes(8)
LINKS = {
    "Ethernet": (1, request(), 14),
    "802.1Q": (1, request()[:12] + b"\x81\0\0\5" + request()[12:], 18),
    "802.1ad": (1, request()[:12] + b"\x88\xa8\0\5\x81\0\0\6" + request()[12:], 22),
    "LINUX_SLL": (113, SLL + INSIDE, 16),
    "LINUX_SLL2": (276, SLL2 + INSIDE, 20),
    "NULL": (0, b"\2\0\0\0" + INSIDE, 4),
    "RAW": (101, INSIDE, 0),
}
"""LINKTYPE, a frame, and how long its link header is (tcpdump.org/linktypes.html, IEEE 802.1Q)."""


@pytest.mark.parametrize("name", LINKS)
def test_runs_over_other_links_are_alike_from_ip_on(name: str, tmp_path: Path) -> None:
    """Trap 52: the link header has the length of its kind; by `--layer ip` each counts the same 35 bytes."""
    link, frame, header_bytes = LINKS[name]
    capture = pcap(tmp_path / "x.pcap", frame, link=link)

    assert split(capture) == [(len(frame), header_bytes, 0, IP_BYTES, UDP_BYTES, GET_BYTES)]
    [session] = pcapstat.open(capture).summary(Choices(layer="ip")).sessions
    assert session.session_bytes == IP_BYTES + UDP_BYTES + GET_BYTES


def test_a_link_type_that_is_not_decoded_is_noted(tmp_path: Path) -> None:
    """Trap 52: LINKTYPE_USER0 is nobody's."""
    assert "LINKTYPE 147" in notes(pcap(tmp_path / "x.pcap", request(), link=147))["link-type"]


def test_padding_counts_as_such(tmp_path: Path) -> None:
    """Trap 50: the frame of 49 bytes that arrives with 60."""
    assert split(pcap(tmp_path / "x.pcap", request() + bytes(11))) == [(60, 14, 11, IP_BYTES, UDP_BYTES, GET_BYTES)]


def test_a_check_sequence_that_is_announced_is_the_links(tmp_path: Path) -> None:
    """Trap 51: by pcap's link type field (length 4 of 16 bits in the top nibble, bit 26 says so) and by if_fcslen; else it is a trailer."""
    with_sum = request() + b"\1\2\3\4"
    by_pcap = pcap(tmp_path / "x.pcap", with_sum, link=2 << 28 | 1 << 26 | 1)
    by_option = tmp_path / "x.pcapng"
    by_option.write_bytes(SECTION + interface(1, 13, b"\4") + packet(0, START_S * 1_000_000, with_sum))

    assert split(by_pcap) == split(by_option) == [(53, 18, 0, IP_BYTES, UDP_BYTES, GET_BYTES)]
    assert split(pcap(tmp_path / "silent.pcap", with_sum)) == [(53, 14, 4, IP_BYTES, UDP_BYTES, GET_BYTES)]


def test_wrong_checksums_are_no_reason_to_leave_packets_out(tmp_path: Path) -> None:
    """Trap 42: with offload the capture of what is sent has them (IPv4 at 24, UDP at 40)."""
    frame = bytearray(request())
    frame[24:26], frame[40:42] = b"\0\0", b"\x12\x34"

    assert len(rows(pcap(tmp_path / "x.pcap", bytes(frame)))) == 1


@pytest.mark.parametrize(("client", "noted"), [("192.0.2.1", True), ("127.0.0.1", False)])
def test_segments_that_the_card_was_to_cut_are_noted(client: str, noted: bool, tmp_path: Path) -> None:
    """Trap 41: one frame with 4,000 bytes, whose IP length the card would have filled in; on a loopback interface nothing is cut."""
    said: Said = [(C, connect_311()), (S, connack_311()), (C, mqtt(3, text("t") + b"z" * 4000))]
    frames = packets(said, "tcp", 1883)
    for frame in frames:
        frame[IP].src, frame[IP].dst = (client if end == "192.0.2.1" else end for end in (frame[IP].src, frame[IP].dst))
    whole = [bytearray(bytes(frame)) for frame in frames]
    whole[-1][16:18] = b"\0\0"
    capture = pcap(tmp_path / "x.pcap", *map(bytes, whole))

    assert [row["payload_bytes"] for row in rows(capture)] == [0, 0, 4000]
    assert ("huge-segment" in notes(capture)) == noted


def test_a_segment_in_ip_fragments_is_as_it_was_on_the_wire(tmp_path: Path) -> None:
    """RFC 791 §3.2: 20 + 3,006 bytes in three fragments of up to 1,500; no header more was on the wire, so no segment is huge."""
    frames = packets([(C, connect_311()), (S, connack_311()), (C, mqtt(3, text("t") + b"z" * 3000))], "tcp", 1883)
    capture = pcap(tmp_path / "x.pcap", *map(bytes, [*frames[:-1], *fragment(frames[-1], fragsize=1480)]))

    assert split(capture)[-1] == (3 * (14 + IP_BYTES) + 20 + 3006, 3 * 14, 0, 3 * IP_BYTES, 20, 3006)
    assert "huge-segment" not in notes(capture)


def test_a_length_that_lies_is_capped(tmp_path: Path) -> None:
    """Trap 78: UDP's length field says 65,535 where 15 bytes are."""
    frame = bytearray(request())
    frame[38:40] = b"\xff\xff"
    capture = pcap(tmp_path / "x.pcap", bytes(frame))

    assert split(capture) == [(49, 14, 0, IP_BYTES, UDP_BYTES, GET_BYTES)]
    assert "65535 where 15" in notes(capture)["length-lies"]


def test_what_the_snap_length_cut_has_its_original_size(tmp_path: Path) -> None:
    """Trap 54: 60 bytes captured of an answer with 100 bytes of payload."""
    [answer] = built([(S, coap(ACK, CONTENT, 1, b"A", [], b"x" * 100))])
    capture = pcap(tmp_path / "x.pcap", bytes(answer)[:60], original=len(answer))

    assert [(row["frame_bytes"], row["payload_bytes"], row["is_truncated"]) for row in rows(capture)] == [(len(answer), 100, True)]
    assert "60 of 148 bytes" in notes(capture)["snap-length"]


def test_notes_name_the_frames_that_they_are_about(tmp_path: Path) -> None:
    """Traps 54, 56: of five frames the third is stamped before the second, the second and the fourth are cut."""
    frame = request()
    times = [(START_S + second, 0) for second in (1, 3, 2, 4, 5)]
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    bodies = [frame, frame[:45], frame, frame[:45], frame]
    records = [struct.pack("<IIII", *time, len(body), len(frame)) + body for time, body in zip(times, bodies, strict=True)]
    capture = tmp_path / "x.pcap"
    capture.write_bytes(header + b"".join(records))

    told = {row["note"]: (row["frame_first"], row["frame_last"], row["count"]) for row in rows(capture, "notes")}
    assert (told["time-backwards"], told["snap-length"]) == ((3, 3, 1), (2, 4, 2))


def test_stamps_count_as_their_interface_says(tmp_path: Path) -> None:
    """Trap 56: 10^-9, 2^-10, 1 s, an offset of 1,000 s, microseconds (if_tsresol, if_tsoffset), as in tshark; the coarsest is told."""
    capture = tmp_path / "x.pcapng"
    interfaces = interface(1, 9, b"\x09") + interface(1, 9, b"\x8a") + interface(1, 9, b"\0") + interface(1, 14, struct.pack("<q", 1000))
    stamps = [START_S * SECOND + 5, (START_S + 1) * 1024 + 512, START_S + 2, (START_S - 997) * 1_000_000, (START_S + 4) * 1_000_000 + 7]
    capture.write_bytes(SECTION + interfaces + interface() + b"".join(packet(*entry, request()) for entry in enumerate(stamps)))
    command = ["tshark", "-n", "-r", str(capture), "-T", "fields", "-e", "frame.time_epoch"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    times_ns = [row["time_ns"] for row in rows(capture)]
    assert times_ns == [int(time.replace(".", "")) for time in told]
    assert [time_ns - START_S * SECOND for time_ns in times_ns] == [5, 1_500_000_000, 2 * SECOND, 3 * SECOND, 4 * SECOND + 7_000]
    assert rows(capture, "captures")[0]["time_resolution_ns"] == SECOND


def test_stamps_that_go_back_or_jump_are_noted(tmp_path: Path) -> None:
    """Traps 56, 77: the order is the capture's; a time below zero stays below zero, and the note tells why."""
    both = [bytes(frame) for frame in built()]
    capture = pcap(tmp_path / "back.pcap", *both, times=[(START_S + 5, 0), (START_S + 3, 0)])
    [exchange] = rows(capture, "exchanges")
    [session] = pcapstat.open(capture).summary().sessions
    assert (exchange["outcome"], exchange["rtt_ns"], session.delta_time_s) == ("complete", -2 * SECOND, -2.0)
    assert "time-backwards" in notes(capture)

    # five million microseconds behind a second
    beyond = pcap(tmp_path / "beyond.pcap", *both, times=[(START_S, 5_000_000), (START_S + 1, 0)])
    assert rows(beyond)[0]["time_ns"] == (START_S + 5) * SECOND
    assert "time-backwards" in notes(beyond)

    jump = pcap(tmp_path / "jump.pcap", request(), request(b"b"), times=[(START_S, 0), (3 * SECOND, 0)])
    assert "15046 days" in notes(jump)["time-jump"]


def test_a_file_of_several_sections_is_one_capture(tmp_path: Path) -> None:
    """Trap 76: two sections of other byte order, three interfaces with link types and resolutions of their own."""
    section = swapped(0x0A0D0D0A, struct.pack(">IHHq", 0x1A2B3C4D, 1, 0, -1), ">")
    capture = tmp_path / "x.pcapng"
    little = SECTION + interface() + interface(101)
    little += packet(0, START_S * 1_000_000, request(b"a")) + packet(1, (START_S + 1) * 1_000_000, request(b"b")[14:])
    big = section + interface(113, 9, b"\x09", ">") + packet(0, (START_S + 2) * SECOND, SLL + request(b"c")[14:], ">")
    capture.write_bytes(little + big)

    found = [(row["time_ns"] // SECOND - START_S, row["uri_path"], row["link_bytes"]) for row in rows(capture)]
    assert found == [(0, "a", 14), (1, "b", 0), (2, "c", 16)]
    assert rows(capture, "captures")[0]["link_types"] == "1,101,113"


def test_formats_are_told_by_their_first_bytes(tmp_path: Path) -> None:
    """Trap 75: names lie."""
    plain = pcap(tmp_path / "plain.pcapng", request())
    packed = tmp_path / "packed.pcap"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    newer = tmp_path / "newer.pcap"
    newer.write_bytes(SECTION + interface() + packet(0, START_S * 1_000_000, request()))

    found = [(row["format"], row["frames"]) for capture in (plain, packed, newer) for row in rows(capture, "captures")]
    assert found == [("pcap", 1), ("pcap, gzip", 1), ("pcapng", 1)]


def lz4_frame(data: bytes) -> bytes:
    """Return an LZ4 frame with a block that is not compressed (lz4_Frame_format: version 01, blocks independent, at most 64 KiB)."""
    return b"\x04\x22\x4d\x18\x60\x40\x82" + struct.pack("<I", len(data) | 1 << 31) + data + bytes(4)


def test_frames_of_lz4_may_follow_one_another(tmp_path: Path) -> None:
    """Two captures as pcapng, packed and put together, with a frame to be passed over between them (LZ4 frame format: Skippable Frames)."""
    sections = [SECTION + interface() + packet(0, (START_S + number) * 1_000_000, request()) for number in range(2)]
    skippable = b"\x51\x2a\x4d\x18" + struct.pack("<I", 5) + b"hello"
    capture = tmp_path / "x.pcapng.lz4"
    capture.write_bytes(lz4_frame(sections[0]) + skippable + lz4_frame(sections[1]))

    [row] = rows(capture, "captures")
    assert (row["frames"], row["damage"]) == (2, None)

    whole = lz4_frame(sections[0])
    for cut in (4, 2):
        capture.write_bytes(whole[:-cut])
        [row] = rows(capture, "captures")
        assert row["frames"] == 1
        assert "the compressed stream is cut short" in row["damage"]


def test_damage_of_a_compressed_stream_is_called_so(tmp_path: Path) -> None:
    """A block that refers to bytes before its first one: a token for a match alone, four bytes back."""
    capture = tmp_path / "x.pcapng.lz4"
    capture.write_bytes(
        lz4_frame(SECTION + interface() + packet(0, START_S * 1_000_000, request()))[:-4] + struct.pack("<I", 3) + b"\0\xff\xff"
    )

    [row] = rows(capture, "captures")
    assert row["frames"] == 1
    assert "the compressed stream is damaged" in row["damage"]


def test_a_frame_to_be_passed_over_may_come_first(tmp_path: Path) -> None:
    """As pzstd writes it: RFC 8878 §3.1.2, then a frame in a single segment of one raw block (§3.1.1: content size in one byte)."""
    content = SECTION + interface() + packet(0, START_S * 1_000_000, request())
    frame = b"\x28\xb5\x2f\xfd\x20" + bytes([len(content)]) + struct.pack("<I", 1 | len(content) << 3)[:3] + content
    capture = tmp_path / "x.zst"
    capture.write_bytes(b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + struct.pack("<I", len(frame)) + frame)

    [row] = rows(capture, "captures")
    assert (row["frames"], row["format"], row["damage"]) == (1, "pcapng, zstd", None)


def test_what_icmp_quotes_is_no_message(tmp_path: Path) -> None:
    """Traps 84, 87: tshark shows the quote as a second CoAP message; it is a refusal of the first, not one that was sent again."""
    [sent] = built(SAID[:1])
    refusal = (
        Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01") / IP(src="192.0.2.2", dst="192.0.2.1") / ICMP(type=3, code=3) / sent[IP]
    )
    refusal.time = sent.time + 0.01
    capture = tmp_path / "x.pcap"
    wrpcap(str(capture), [sent, refusal])
    command = ["tshark", "-n", "-r", str(capture), "-Y", "coap", "-T", "fields", "-e", "frame.number"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert shown == ["1", "2"]
    assert [(row["frame"], row["is_retransmission"]) for row in rows(capture)] == [(1, False)]
    assert "port unreachable" in notes(capture)["refused"]


def test_outer_headers_of_a_tunnel_are_ip_bytes(tmp_path: Path) -> None:
    """Trap 63: GRE takes 20 + 4 bytes more; a VXLAN tunnel is not opened, its port is listed."""
    [inner] = built(SAID[:1])
    outer = Ether(**MACS) / IP(src="10.0.0.1", dst="10.0.0.2")
    wrpcap(str(tmp_path / "gre.pcap"), [outer / GRE() / inner[IP]])
    wrpcap(str(tmp_path / "vxlan.pcap"), [outer / UDP(sport=5555, dport=4789) / VXLAN(vni=1) / inner])

    assert split(tmp_path / "gre.pcap") == [(73, 14, 0, IP_BYTES + 20 + 4, UDP_BYTES, GET_BYTES)]
    assert rows(tmp_path / "vxlan.pcap") == []
    [listed] = pcapstat.open(tmp_path / "vxlan.pcap").summary().unmatched_ports
    assert (listed["port"], listed["packets"]) == (4789, 1)


@pytest.mark.parametrize(("kind", "header_bytes"), [("gre", 20 + 4 + 4), ("ip", 20 + 4)])
def test_labels_in_a_tunnel_are_ip_bytes(kind: str, header_bytes: int, tmp_path: Path) -> None:
    """RFC 4023 §3, §4: an MPLS label (4 bytes) stands behind the IP header (protocol 137) or behind GRE (type 0x8847); tshark agrees."""
    [inner] = built(SAID[:1])
    label = bytes.fromhex("00005140") + bytes(inner[IP])
    outer = Ether(**MACS) / IP(src="10.0.0.1", dst="10.0.0.2", proto=47 if kind == "gre" else 137)
    capture = pcap(tmp_path / "x.pcap", bytes(outer / (GRE(proto=0x8847) / label if kind == "gre" else Raw(label))))

    assert split(capture) == [(49 + header_bytes, 14, 0, IP_BYTES + header_bytes, UDP_BYTES, GET_BYTES)]
    assert not list(crosscheck.differences(pcapstat.open(capture)))


@pytest.mark.parametrize(
    ("header", "is_opened"),
    [
        # version 1 has its key field always: payload length and call ID
        ("3001880b 001b0007 00000001", True),
        ("3081880b 001b0007 00000001 00000002", True),
        ("2081880b 00000007 00000002", False),
        ("0000880b", True),
    ],
)
def test_ppp_in_gre_is_opened(header: str, is_opened: bool, tmp_path: Path) -> None:
    """RFC 2637 §4.1: S says that a sequence number follows, A an acknowledgment number, without S there is no payload; tshark agrees."""
    [inner] = built(SAID[:1])
    gre, ppp = bytes.fromhex(header), bytes.fromhex("ff030021") + bytes(inner[IP])
    outer = Ether(**MACS) / IP(src="10.0.0.1", dst="10.0.0.2", proto=47) / Raw(gre + (ppp if is_opened else b""))
    capture = pcap(tmp_path / "x.pcap", bytes(outer))

    header_bytes = 20 + len(gre) + 4
    expected = [(49 + header_bytes, 14, 0, IP_BYTES + header_bytes, UDP_BYTES, GET_BYTES)]
    assert split(capture) == (expected if is_opened else [])
    assert not list(crosscheck.differences(pcapstat.open(capture)))


@pytest.mark.parametrize(
    ("payload", "port", "rules", "told"),
    [
        # a payload marker without payload, a reserved token length (RFC 7252 §3)
        (b"\x40\x01\0\x01\xff", 5683, [], ["no coap between udp ports 5000 and 5683"]),
        (b"\x49\x01\0\x01abcdefghi", 5683, [], ["no coap between udp ports 5000 and 5683"]),
        (b"\x40\x01\0\x01\xff", 5683, ["udp.port==5683,none"], []),
        (b"\x40\x01\0\x01\xff", 5700, [], []),
        (b"", 5683, [], []),
    ],
)
def test_a_stream_that_is_not_what_its_port_says_is_noted(
    payload: bytes, port: int, rules: list[str], told: list[str], tmp_path: Path
) -> None:
    """Datagrams that are all malformed make no session: the note says on which port; -d shows what is wrong with them."""
    udp = [Ether(**MACS) / IP(src=f"192.0.2.{host}", dst="192.0.2.9") / UDP(sport=5000, dport=port) / Raw(payload) for host in (1, 2)]
    capture = pcap(tmp_path / "x.pcap", *map(bytes, udp))
    found = [row for row in pcapstat.open(capture, decode_as=rules).notes.rows() if row["note"] == "unlike-port"]

    assert [(row["text"].split(": ")[-1], row["frame_first"], row["frame_last"], row["count"]) for row in found] == [
        (text, 1, 2, 2) for text in told
    ]
    if told:
        opened = pcapstat.open(capture, decode_as=[f"udp.port=={port},coap"])
        assert "malformed" in {row["note"] for row in opened.notes.rows()}


def test_what_came_before_a_protocol_was_recognised_is_noted(tmp_path: Path) -> None:
    """A datagram that is malformed (RFC 7252 §3: a payload marker without payload) ahead of a request: its 5 bytes are in no message."""
    payloads = (b"\x40\x01\0\x01\xff", b"\x40\x01\0\x02\xb1a")
    udp = [Ether(**MACS) / IP(src="192.0.2.1", dst="192.0.2.9") / UDP(sport=5000, dport=5683) / Raw(payload) for payload in payloads]
    found = pcapstat.open(pcap(tmp_path / "x.pcap", *map(bytes, udp)))
    notes = [(row["note"], row["session"], row["frame_first"], row["text"].split(": ")[-1]) for row in found.notes.rows()]

    assert [row["frames"] for row in found.messages.rows()] == [[2]]
    assert ("unparsed", 0, 1, "5 bytes") in notes


def test_fragments_behind_an_authentication_header_are_one_datagram(tmp_path: Path) -> None:
    """RFC 4302 §3.3.4: it is put in before IP fragments, so only the first fragment has it; tshark shows the message at the last one."""
    [inner] = built(SAID[:1])
    header = struct.pack(">BBHII", 17, 4, 0, 1, 1) + bytes(12)
    whole = Ether(**MACS) / IP(src="10.0.0.1", dst="10.0.0.2", proto=51) / Raw(header + bytes(inner[UDP]))
    capture = pcap(tmp_path / "x.pcap", *map(bytes, fragment(whole, fragsize=24)))

    assert split(capture) == [(2 * 34 + 24 + UDP_BYTES + GET_BYTES, 28, 0, 2 * IP_BYTES + 24, UDP_BYTES, GET_BYTES)]
    assert not list(crosscheck.differences(pcapstat.open(capture)))


@pytest.mark.parametrize("cut", [0, 10])
def test_behind_an_authentication_header_there_is_the_packet(cut: int, tmp_path: Path) -> None:
    """RFC 4302 §2: next header, length in words less 2, reserved, SPI, sequence number, check value; all of it is IP's."""
    [inner] = built(SAID[:1])
    header = struct.pack(">BBHII", 17, 4, 0, 1, 1) + bytes(12)
    packet = Ether(**MACS) / IP(src="10.0.0.1", dst="10.0.0.2", proto=51) / Raw((header + bytes(inner[UDP]))[: cut or None])
    wrpcap(str(tmp_path / "ah.pcap"), [packet])

    assert split(tmp_path / "ah.pcap") == ([] if cut else [(73, 14, 0, IP_BYTES + 24, UDP_BYTES, GET_BYTES)])
    others = [(other["protocol"], other["frames"]) for other in pcapstat.open(tmp_path / "ah.pcap").summary().others]
    assert others == ([("ah", 1)] if cut else [])


def test_the_testbeds_other_traffic_is_in_no_session(tmp_path: Path) -> None:
    """Trap 64: ARP and a DNS query are counted apart."""
    query = Raw(b"\x12\x34\1\0\0\1" + bytes(6) + b"\1a\0\0\1\0\1")
    arp, dns = Ether(**MACS) / ARP(), Ether(**MACS) / IP() / UDP(sport=40_000, dport=53) / query
    frames = built()
    capture = tmp_path / "x.pcap"
    wrpcap(str(capture), [arp, dns, *frames])
    summary = pcapstat.open(capture).summary()

    assert [session.session_bytes for session in summary.sessions] == [sum(map(len, frames))]
    assert [(row["protocol"], row["frames"], row["bytes"]) for row in summary.others] == [("arp", 1, len(arp)), ("udp", 1, len(dns))]
    assert [row["port"] for row in summary.unmatched_ports] == [53]


@pytest.mark.parametrize("cut", range(1, 52))
def test_a_message_is_known_by_its_port_wherever_the_snap_length_cut_it(cut: int, tmp_path: Path) -> None:
    """Trap 54: a POST of 51 bytes (RFC 7252 §3), of which the capture has the first ones, as tshark shows it; nothing breaks its format."""
    post = coap(NON, POST, 1, b"ab", [(11, b"sensors-room-kitchen"), (11, b"temperature"), (12, b"\x32")], b'{"v":21}')
    [frame] = packets([(C, post)], "udp", 5683)
    whole = bytes(frame)
    assert len(whole) - 42 == 51
    capture = pcap(tmp_path / "x.pcap", whole[: 42 + cut], original=len(whole))
    command = ["tshark", "-n", "-r", str(capture), "-Y", "coap", "-T", "fields", "-e", "frame.number"]

    [row] = rows(capture)
    assert [str(row["frame"])] == subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert (row["frame_bytes"], row["is_truncated"], row["malformed"]) == (len(whole), cut < 51, None)
