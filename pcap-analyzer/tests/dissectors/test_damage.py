"""Messages that are long, and frames that are cut: the dissectors show what the tables have, and never an error of Lua's."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from against_standards.building import MACS
from places import CAPTURES, SHARED
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6DestUnreach, IPv6
from scapy.layers.l2 import Ether
from scapy.utils import PcapWriter

import pcapstat
from dissectors.shown import DISSECTORS, parsed, run, values
from pcapstat.schema import PARTS
from pcapstat.synth.encode import connack, connect, packet, sn, text

OVERHEAD = "pcapstat_overhead.lua"
ALL = sorted(path.name for path in DISSECTORS.glob("*.lua"))
COLUMNS = ("frame_bytes", *(f"{part}_bytes" for part in PARTS))
USER_PROPERTY = b"\x26" + text("k" * 10) + text("v" * 9000)
FILTERS = b"".join(text(f"{number:03d}{'f' * 200}") + b"\x01" for number in range(60))
CLIENT, SERVER, SEGMENT = "192.0.2.1", "192.0.2.2", 1460


def written(path: Path, frames: Sequence[Any]) -> Path:
    """Write frames, a millisecond apart."""
    with PcapWriter(str(path)) as writer:
        for number, frame in enumerate(frames):
            frame.time = 1_700_000_000 + number / 1000
            writer.write(frame)
    return path


def around(transport: Any, content: bytes) -> Any:
    """Put data from the client into a frame."""
    return Ether(**MACS) / IP(src=CLIENT, dst=SERVER) / transport / content


def stream(port: int, content: bytes) -> list[Any]:
    """Return the segments of what a client says."""
    frames = [around(TCP(sport=40000, dport=port, flags="S", seq=0), b"")]
    for at in range(0, len(content), SEGMENT):
        part = content[at : at + SEGMENT]
        frames.append(around(TCP(sport=40000, dport=port, flags="PA", seq=1 + at, ack=1), part))
    return frames


def long_mqtt() -> list[Any]:
    """Return CONNECT, PUBLISH with a topic of 10,000 bytes, a property of 9,000, a payload of 20,000; SUBSCRIBE with 60 filters."""
    content = connect("c") + packet(3, text("t" * 10_000) + b"\x00" + b"PAYLOAD")
    # a property length of 9015 in two bytes (MQTT 5 §1.5.5)
    content += packet(3, text("t") + b"\xb7\x46" + USER_PROPERTY + b"PAYLOAD")
    content += packet(3, text("t") + b"\x00" + bytes(20_000)) + packet(8, b"\x00\x01\x00" + FILTERS, 2)
    return stream(1883, content)


def long_coap() -> list[Any]:
    """Return a POST with 40 Uri-Path options of 255 bytes: a delta of 11 or 0, a length with an extended byte of 242."""
    paths = b"\xbd\xf2" + b"p" * 255 + (b"\x0d\xf2" + b"p" * 255) * 39
    return [around(UDP(sport=40001, dport=5683), b"\x40\x02\x00\x01" + paths + b"\xff12345")]


def long_mqttsn() -> list[Any]:
    """Return a PUBLISH with 10,000 bytes of data."""
    return [around(UDP(sport=40001, dport=1883), sn(0x0C, b"\x20\x00\x01\x00\x05" + bytes(10_000)))]


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        # header, option, payload by hand: type, Remaining Length of 1 to 3 bytes, topic behind its length; property length
        (
            long_mqtt(),
            [
                (16 - 1, 1, 0),
                (1 + 2 + 2 + 10_000, 1, 7),
                (1 + 2 + 3, 2 + 9015, 7),
                (1 + 3 + 3, 1, 20_000),
                (1 + 2 + 2 + 60 * (2 + 203 + 1), 1, 0),
            ],
        ),
        (long_coap(), [(4 + 1, 40 * 257, 5)]),
        (long_mqttsn(), [(3 + 1 + 5, 0, 10_000)]),
    ],
    ids=["MQTT", "CoAP", "MQTT-SN"],
)
def test_long_messages_have_their_parts(frames: list[Any], expected: list[tuple[int, ...]], tmp_path: Path) -> None:
    """What stands before a payload may be of any length; the table says the same."""
    path = written(tmp_path / "mqttsn.pcap" if len(frames) == 1 and frames[0].dport == 1883 else tmp_path / "long.pcap", frames)
    rule = ["udp.port==1883,mqttsn"] if path.stem == "mqttsn" else []
    shown = [
        values(message) for _, tree in parsed(path, OVERHEAD, ()) for message in tree.findall("field[@name='pcapstat_overhead.message']")
    ]
    assert [tuple(int(fields[f"{part}_bytes"]) for part in ("header", "option", "payload")) for fields in shown] == expected
    table = pa.table(pcapstat.open(path, decode_as=rule).messages).to_pylist()
    assert [tuple(int(fields[column]) for column in COLUMNS) for fields in shown] == [
        tuple(row[column] for column in COLUMNS) for row in table
    ]
    assert {fields["observed_bytes"] for fields in shown if "observed_bytes" in fields} == {
        fields["specified_bytes"] for fields in shown if "specified_bytes" in fields
    }


def cut(path: Path, frames: Sequence[tuple[Any, int]]) -> Path:
    """Write frames of which so many bytes were captured."""
    with PcapWriter(str(path)) as writer:
        writer.write_header(frames[0][0])
        for frame, length in frames:
            content = bytes(frame)
            writer.write_packet(content[:length], sec=1_700_000_000, usec=0, caplen=min(length, len(content)), wirelen=len(content))
    return path


def test_cut_datagrams_have_the_bytes_of_the_wire(tmp_path: Path) -> None:
    """Header, option, payload, opaque of 19 bytes: 4, a token of 2, Uri-Path (2), marker, payload of 10; likewise of MQTT-SN's PUBLISH.

    What is known of a cut message has its place (RFC 7252 §3): the token's length stands in the first byte, an option's in its own.
    """
    coap = around(UDP(sport=40001, dport=5683), b"\x42\x02\x00\x01TT\xb1a\xff0123456789")
    publish = around(UDP(sport=40001, dport=1883), sn(0x0C, b"\x20\x00\x01\x00\x05" + bytes(12)))
    assert len(coap) == len(publish) == 42 + 19
    lengths = (42 + 5, 42 + 7, 42 + 8, 42 + 9, 42 + 10, 42 + 19)
    path = cut(tmp_path / "mqttsn-cut.pcap", [(frame, length) for frame in (coap, publish) for length in lengths])
    shown = [
        values(message) for _, tree in parsed(path, OVERHEAD, ()) for message in tree.findall("field[@name='pcapstat_overhead.message']")
    ]
    parts = [tuple(int(fields[f"{part}_bytes"]) for part in ("header", "option", "payload", "opaque")) for fields in shown]
    assert parts[:6] == [(6, 0, 0, 13), (6, 2, 0, 11), (6, 2, 0, 11), (7, 2, 10, 0), (7, 2, 10, 0), (7, 2, 10, 0)]
    assert parts[6:] == [(5, 0, 0, 14), (7, 0, 12, 0), (7, 0, 12, 0), (7, 0, 12, 0), (7, 0, 12, 0), (7, 0, 12, 0)]
    table = pa.table(pcapstat.open(path, decode_as=["udp.port==1883,mqttsn"]).messages).to_pylist()
    assert [tuple(row[f"{part}_bytes"] for part in ("header", "option", "payload", "opaque")) for row in table] == parts
    assert {fields["frame_bytes"] for fields in shown} == {str(42 + 19)}


PIECES = [f"{part}_bytes" for part in ("header", "option", "payload", "opaque")]


def shown_pieces(path: Path) -> list[tuple[int, ...]]:
    """Return frame and bytes by part of each message that the dissector shows."""
    fields = [word for part in PIECES for word in ("-e", f"pcapstat_overhead.{part}")]
    # where Wireshark puts segments in order it shows nothing behind one that is cut
    told = run(path, [OVERHEAD], ["-T", "fields", "-e", "frame.number", *fields], ["tcp.reassemble_out_of_order:FALSE"])
    return sorted(
        tuple(map(int, (frame, *message)))
        for frame, *columns in (line.split("\t") for line in told.splitlines())
        for message in zip(*(column.split(",") for column in columns), strict=True)
        if message != ("",) * len(PIECES)
    )


def pieces(path: Path) -> list[tuple[int, ...]]:
    """Return the same of the table."""
    return sorted((row["frame"], *(row[part] for part in PIECES)) for row in pa.table(pcapstat.open(path).messages).to_pylist())


@pytest.mark.parametrize(
    ("name", "snap_bytes"),
    [*(("a-paho-qos1", count) for count in (68, 70, 72, 74, 76, 82, 88)), *(("loss-paho-python-qos2", count) for count in (72, 78, 88))],
)
def test_cut_segments_have_the_bytes_of_the_wire(name: str, snap_bytes: int, tmp_path: Path) -> None:
    """Of MQTT's packets, which are found again behind what was not captured: frame by frame and part by part those of the table."""
    path = tmp_path / "cut.pcapng"
    subprocess.run(["editcap", "-s", str(snap_bytes), str(CAPTURES / f"{name}.pcapng"), str(path)], check=True)
    assert len(pieces(path)) > 90
    assert shown_pieces(path) == pieces(path)


@pytest.mark.parametrize(("first", "parts"), [(40, (16, 1, 0, 0)), (41, (5, 1, 0, 0))])
def test_subscriptions_tell_the_version_too(first: int, parts: tuple[int, ...], tmp_path: Path) -> None:
    """A capture that begins with SUBSCRIBE or SUBACK of MQTT 5: a Property Length of one byte behind the identifier (§3.8.2, §3.9.2)."""
    path = tmp_path / "middle.pcapng"
    subprocess.run(["editcap", "-r", str(CAPTURES / "a-paho-qos1.pcapng"), str(path), f"{first}-631"], check=True)
    assert shown_pieces(path) == pieces(path)
    assert pieces(path)[0] == (1, *parts)


KINDS = (*range(0x00, 0x03), *range(0x04, 0x11), *range(0x12, 0x19), *range(0x1A, 0x1E), 0xFE)
"""Message types of MQTT-SN 1.2 (§5.2.2)."""


def test_frames_cut_anywhere_show_no_error(tmp_path: Path) -> None:
    """Snap lengths from nothing of the Ethernet header to all, of datagrams and segments; a UDP length that is none; short messages."""
    short = [around(UDP(sport=40001, dport=1883), sn(kind, bytes(count))) for kind in KINDS for count in range(8)]
    whole = [*long_coap(), *long_mqttsn(), *stream(1883, connect("c") + connack()), around(UDP(sport=1, dport=5683, len=3), bytes(20))]
    cuts = [(frame, length) for frame in [*whole, *short[7::8]] for length in range(1, min(110, len(frame)))]
    path = cut(tmp_path / "mqttsn-cut.pcap", [*cuts, *((frame, len(frame)) for frame in short)])
    for arguments in (["-V"], ["-2", "-Y", "frame", "-V"]):
        assert "Lua Error" not in run(path, ALL, arguments)


def publication(count: int) -> bytes:
    """Return a PUBLISH of `count` bytes, up to 16,386 (MQTT 3.1.1 §2.2.3)."""
    remaining = count - 3 if count > 129 else count - 2
    return packet(3, text("t") + bytes(remaining - 3))


def segments(parts: Sequence[bytes], lost: Sequence[int]) -> list[Any]:
    """Return the segments of a client without those that the capture lost; each part is one."""
    frames, at = [around(TCP(sport=40000, dport=1883, flags="S", seq=0), b"")], 1
    for number, part in enumerate(parts):
        if number not in lost:
            frames.append(around(TCP(sport=40000, dport=1883, flags="PA", seq=at, ack=1), part))
        at += len(part)
    return frames


@pytest.mark.parametrize(
    ("parts", "lost", "sizes"),
    [
        # Ethernet, IPv4 and TCP take 54 bytes of each segment; the two last parts are one message
        (
            [connect("c"), publication(100), publication(100), publication(90), publication(2000)[:1000], publication(2000)[1000:]],
            [1],
            [54 + len(connect("c")), 154, 144, 2108],
        ),
        ([connect("c"), *[publication(60)] * 700], [1], [54 + len(connect("c")), *[114] * 699]),
        ([connect("c"), *[publication(60)] * 9], [1, 4, 5], [54 + len(connect("c")), *[114] * 6]),
    ],
    ids=["one", "for ever", "several"],
)
def test_messages_behind_a_lost_segment_have_their_headers(parts: list[bytes], lost: list[int], sizes: list[int], tmp_path: Path) -> None:
    """Wireshark goes on behind a hole where it does not wait for it: a message answers for the frames that carry it, and no others."""
    path = written(tmp_path / "lost.pcap", segments(parts, lost))
    found = parsed(path, OVERHEAD, ("-o", "tcp.reassemble_out_of_order:FALSE"))
    shown = [values(message) for _, tree in found for message in tree.findall("field[@name='pcapstat_overhead.message']")]
    assert [int(fields["frame_bytes"]) for fields in shown] == sizes


def test_what_icmp_quotes_in_a_tunnel_is_no_message(tmp_path: Path) -> None:
    """IPv6 in IPv4 (RFC 4213) with an ICMPv6 error about a CoAP request (RFC 4443 §3.1), and the request itself."""
    ends = {"src": "2001:db8::1", "dst": "2001:db8::2"}
    request = IPv6(**ends) / UDP(sport=40001, dport=5683) / b"\x40\x01\x00\x01"
    error = IPv6(src=ends["dst"], dst=ends["src"]) / ICMPv6DestUnreach(code=4) / request
    tunnels = [around(inner, b"") for inner in (request, error)]
    found = parsed(written(tmp_path / "tunnel.pcap", tunnels), OVERHEAD, ())
    assert [frame for frame, tree in found if tree.findall("field[@name='pcapstat_overhead.message']")] == [1]


@pytest.mark.parametrize(
    ("name", "frame", "security", "opaque"),
    [
        # DTLS as before its standard, AES in CBC with SHA: 13, a vector of 16, 20 and the length of padding, of 61 bytes
        ("arkime/wireshark-dtls0.pcap", 7, 50, 11),
        # IDEA and RC2 in CBC, TLS 1.1: 5, a vector of 8, MAC of 20 or 16 and the length of padding
        ("wireshark-notes/tls__all__dump.pcapng", 70, 5 + 8 + 20 + 1, 67),
        ("wireshark-notes/tls__all__dump.pcapng", 55, 5 + 8 + 16 + 1, 71),
        # SSL 2.0's ClientHello (RFC 5246 Appendix E.2): two bytes of length
        ("ndpi/google_ssl.pcap", 4, 126, 0),
        # the client's Finished of a draft of TLS 1.3, 4 + 32 bytes; data behind one
        ("suricata-verify/tls__tls13-draft18__tls13_draft18.pcap", 14, 5 + 4 + 32 + 1 + 16, 0),
        ("arkime/tls-split-client-hello.pcap", 18, 5 + 1 + 16, 70),
    ],
)
def test_records_of_all_ages_have_their_parts(name: str, frame: int, security: int, opaque: int) -> None:
    """What a record adds to its content, counted by hand; the public captures stand beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("no public captures beside the checkout")
    found = {number: tree for number, tree in parsed(SHARED / name, OVERHEAD, ())}
    (fields,) = (values(message) for message in found[frame].findall("field[@name='pcapstat_overhead.message']"))
    assert (int(fields["security_bytes"]), int(fields["opaque_bytes"])) == (security, opaque)
