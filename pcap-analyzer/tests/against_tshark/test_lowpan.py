"""CoAP over 6LoWPAN, built with scapy: the messages that tshark shows, and sizes that add up to the frames."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pcapstat
from pcapstat import crosscheck

SIZES = (0, 10, 64, 200, 700)
"""Payloads of one frame, and of several fragments (RFC 4944 §5.3: frames of 127 bytes)."""


def frames(payload_bytes: int) -> list[object]:
    """IEEE 802.15.4 frames without check sequence that carry a CoAP POST."""
    from scapy.contrib.coap import CoAP
    from scapy.layers.dot15d4 import Dot15d4, Dot15d4Data
    from scapy.layers.inet import UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.sixlowpan import LoWPAN_IPHC, LoWPANFragmentationFirst, sixlowpan_fragment

    coap = CoAP(type=0, code=2, msg_id=7 + payload_bytes, token=b"\x01\x02", options=[("Uri-Path", b"a")])
    payload = b"\xff" + b"x" * payload_bytes if payload_bytes else b""
    packet = IPv6(src="fe80::ff:fe00:1", dst="fe80::ff:fe00:2", hlim=64) / UDP(sport=61617, dport=5683) / (bytes(coap) + payload)
    mac = Dot15d4(fcf_frametype=1, fcf_srcaddrmode=2, fcf_destaddrmode=2, fcf_panidcompress=True, seqnum=1)
    data = Dot15d4Data(src_addr=1, dest_addr=2, dest_panid=0xABCD, src_panid=0xABCD)
    whole = LoWPAN_IPHC(tf=3, nh=0, hlim=2, sac=0, sam=0, m=0, dac=0, dam=0) / packet
    if payload_bytes < 60:
        return [mac / data / whole]
    parts = sixlowpan_fragment(LoWPANFragmentationFirst() / whole, datagram_tag=payload_bytes)
    return [mac / data / part for part in parts]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a capture with a message of each size."""
    from scapy.utils import PcapWriter

    path = tmp_path_factory.mktemp("lowpan") / "lowpan.pcap"
    with PcapWriter(str(path), linktype=230) as writer:
        for size in SIZES:
            for frame in frames(size):
                writer.write(frame)
    return path


def test_messages_are_those_of_tshark(capture: Path) -> None:
    """Every mapped field of each message agrees, in the frame where its last fragment is."""
    opened = pcapstat.open(capture, engine="native")
    assert list(crosscheck.differences(opened)) == []
    rows = pa.table(opened.messages).to_pylist()
    assert [row["payload_bytes"] for row in rows] == list(SIZES)
    assert [row["protocol"] for row in rows] == ["coap"] * len(SIZES)
    assert all(len(row["frames"]) > 1 for row in rows if row["payload_bytes"] > 100)


def test_a_check_sequence_is_the_links(tmp_path: Path) -> None:
    """Trap 51: LINKTYPE_IEEE802_15_4_WITHFCS has one of 2 bytes at each frame's end, LINKTYPE_IEEE802_15_4_NOFCS has none."""
    from scapy.utils import PcapWriter

    found = []
    for linktype, sequence in ((230, b""), (195, b"\1\2")):
        path = tmp_path / f"{linktype}.pcap"
        with PcapWriter(str(path), linktype=linktype) as writer:
            writer.write(bytes(frames(10)[0]) + sequence)
        [row] = pa.table(pcapstat.open(path, engine="native").messages).to_pylist()
        found.append([row[f"{part}_bytes"] for part in ("frame", "link", "padding", "payload")])

    without, with_sequence = found
    assert with_sequence == [without[0] + 2, without[1] + 2, 0, 10]


def test_parts_add_up_to_the_frames(capture: Path) -> None:
    """Compressed headers count with the bytes that are on the wire."""
    opened = pcapstat.open(capture, engine="native")
    rows = pa.table(opened.messages).to_pylist()
    sums = opened.sums()
    assert sum(row["frame_bytes"] for row in rows) == sum(row["frame_bytes"] for row in sums.captures)
