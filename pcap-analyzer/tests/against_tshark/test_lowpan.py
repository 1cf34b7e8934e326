"""CoAP over 6LoWPAN, built with scapy: the messages that tshark shows, and sizes that add up to the frames."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pcapstat
from pcapstat import crosscheck

SIZES = (0, 10, 64, 200, 700)
"""Payloads of one frame, and of several fragments (RFC 4944 §5.3: frames of 127 bytes)."""


def frames(payload_bytes: int, sequence: int = 1) -> list[object]:
    """IEEE 802.15.4 frames without check sequence that carry a CoAP POST, each with its sequence number."""
    from scapy.contrib.coap import CoAP
    from scapy.layers.dot15d4 import Dot15d4, Dot15d4Data
    from scapy.layers.inet import UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.sixlowpan import LoWPAN_IPHC, LoWPANFragmentationFirst, sixlowpan_fragment

    coap = CoAP(type=0, code=2, msg_id=7 + payload_bytes, token=b"\x01\x02", options=[("Uri-Path", b"a")])
    payload = b"\xff" + b"x" * payload_bytes if payload_bytes else b""
    packet = IPv6(src="fe80::ff:fe00:1", dst="fe80::ff:fe00:2", hlim=64) / UDP(sport=61617, dport=5683) / (bytes(coap) + payload)

    def mac(number: int) -> object:
        return Dot15d4(fcf_frametype=1, fcf_srcaddrmode=2, fcf_destaddrmode=2, fcf_panidcompress=True, seqnum=number)

    data = Dot15d4Data(src_addr=1, dest_addr=2, dest_panid=0xABCD, src_panid=0xABCD)
    whole = LoWPAN_IPHC(tf=3, nh=0, hlim=2, sac=0, sam=0, m=0, dac=0, dam=0) / packet
    if payload_bytes < 60:
        return [mac(sequence) / data / whole]
    parts = sixlowpan_fragment(LoWPANFragmentationFirst() / whole, datagram_tag=payload_bytes)
    return [mac(sequence + index) / data / part for index, part in enumerate(parts)]


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


def sent_at(path: Path, frames: list[tuple[float, object]]) -> pcapstat.Capture:
    """Return a capture of frames at these times in seconds."""
    from scapy.utils import PcapWriter

    with PcapWriter(str(path), linktype=230) as writer:
        for time_s, frame in frames:
            frame.time = time_s  # type: ignore[attr-defined]
            writer.write(frame)
    return pcapstat.open(path, engine="native")


def test_a_frame_that_the_link_layer_sends_again_is_no_message(tmp_path: Path) -> None:
    """IEEE 802.15.4-2006 §7.5.6.4.3: what is not acknowledged is sent again as it is. CoAP's own retransmission is another frame."""
    sent = [(0.0, 1), (0.005, 1), (0.012, 1), (2.5, 9), (2.506, 9)]
    capture = sent_at(tmp_path / "again.pcap", [(time_s, frames(10, sequence)[0]) for time_s, sequence in sent])
    rows = pa.table(capture.messages).to_pylist()
    session = pa.table(capture.sessions).to_pylist()[0]

    assert [(row["frames"], row["is_retransmission"], row["is_data"]) for row in rows] == [([1], False, True), ([4], True, False)]
    assert [(each.frame, each.explanation is None) for each in crosscheck.differences(capture)] == [(2, False), (3, False), (5, False)]
    assert (session["link_retransmissions"], session["captured_twice"], session["retransmissions"], session["control_frames"]) == (
        3,
        0,
        1,
        3,
    )


@pytest.mark.parametrize("order", ["aabbcc", "abbcac", "abcabc", "abccba"])
def test_fragments_that_the_link_layer_sends_again_make_one_message(order: str, tmp_path: Path) -> None:
    """The datagram is made of each fragment once; what is sent again behind the last one begins no other datagram."""
    parts = [frames(200)["abc".index(name)] for name in order]
    capture = sent_at(tmp_path / "again.pcap", [(index * 0.01, part) for index, part in enumerate(parts)])
    rows = pa.table(capture.messages).to_pylist()
    notes = {row["note"]: row["count"] for row in pa.table(capture.notes).to_pylist()}

    assert [(row["payload_bytes"], row["is_retransmission"]) for row in rows] == [(200, False)]
    assert (notes["link-retransmission"], notes.keys() & {"fragment-missing", "fragment-overlap"}) == (3, set())
    assert sum(row["frame_bytes"] for row in capture.sums().captures) == sum(len(bytes(part)) for part in parts)  # type: ignore[call-overload]


MAC = "619801cdab02000100"
"""IEEE 802.15.4-2006 §7.2.2.2: a data frame with sequence number 1 from short address 1 to 2 in PAN abcd."""
COMPRESSED = "7e33 f0f0b116331234 41010009 01 b161"
"""RFC 6282 §3.1, §4.3: IPHC with all but the next header left out, UDP with its ports 61617 and 5683; a GET of /a with message ID 9."""
HOP_BY_HOP = "7e33 e1 06 6304001e0100"
"""RFC 6282 §4.2: IPHC, and a Hop-by-Hop header of six bytes with RPL's option (RFC 6553), behind which comes another compressed header."""
WITHIN = {
    "an IPv6 header in an IPv6 header": ("7e33 ee" + COMPRESSED, 2 + 1 + 2, True),
    "an IPv6 header behind a Hop-by-Hop header": (HOP_BY_HOP + "ee" + COMPRESSED, 10 + 1 + 2, True),
    # RFC 8138: tshark 4.0 does not open page 1
    "RPL packet information with a rank of one byte (§6.1)": ("f1 8305 01" + COMPRESSED, 1 + 3 + 2, False),
    "RPL packet information with instance and rank (§6.1)": ("f1 8005 020100" + COMPRESSED, 1 + 5 + 2, False),
    "a source route of two hops of two bytes, and IP in IP (§5.1, §7)": ("f1 8101 00050006 a106 40" + COMPRESSED, 1 + 6 + 3 + 2, False),
}
"""What stands before the UDP header, how long it is, and whether tshark opens it too."""


@pytest.mark.parametrize("case", WITHIN)
def test_headers_around_the_packet_are_ip_bytes(case: str, tmp_path: Path) -> None:
    """The message is read, and all that was compressed counts as it is on the wire."""
    from scapy.packet import Raw

    inside, ip_bytes, is_opened_by_tshark = WITHIN[case]
    frame = Raw(bytes.fromhex(MAC + inside))
    capture = sent_at(tmp_path / "within.pcap", [(0, frame)])
    [row] = pa.table(capture.messages).to_pylist()

    parts = ("link_bytes", "ip_bytes", "transport_bytes", "header_bytes", "option_bytes")
    assert [row[part] for part in parts] == [9, ip_bytes, 7, 5, 2]
    assert (row["message_id"], row["source_address"], row["destination_address"]) == (9, "fe80::ff:fe00:1", "fe80::ff:fe00:2")
    assert (list(crosscheck.differences(capture)) == []) == is_opened_by_tshark


def test_recoverable_fragments_are_6lowpan(tmp_path: Path) -> None:
    """RFC 8931 §5.1, §5.2: a fragment (dispatch 1110100) and its acknowledgement (1110101) are no fragments of RFC 4944 (11100)."""
    from scapy.packet import Raw

    sent = ["e807 8040 0040" + COMPRESSED, "ea07 ffffffff"]
    capture = sent_at(tmp_path / "rfrag.pcap", [(index, Raw(bytes.fromhex(MAC + inside))) for index, inside in enumerate(sent)])

    assert [(row["protocol"], row["frames"]) for row in capture.summary().others] == [("6lowpan", 2)]
    assert pa.table(capture.messages).num_rows == 0
