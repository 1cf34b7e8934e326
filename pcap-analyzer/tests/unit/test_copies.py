"""Packets that the capture took twice are no messages, in whatever order the copies stand; what is sent again is one (traps 7, 60)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from against_standards.building import CONTENT, GET, MACS, NON, C, S, coap, connack_311, connect_311, packets, publish_311
from scapy.layers.inet import IP, UDP, fragment
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

import pcapstat
from pcapstat import crosscheck

US = 1e-6


def written(path: Path, frames: list[tuple[float, Any]]) -> Path:
    """Write frames, each at its time in seconds."""
    with_time = [frame.copy() for _, frame in frames]
    for frame, (time_s, _) in zip(with_time, frames, strict=True):
        frame.time = 1_700_000_000 + time_s
    wrpcap(str(path), with_time, nano=True)
    return path


def identified(frames: list[Any]) -> list[Any]:
    """Give each packet an IP identification of its own."""
    for number, frame in enumerate(frames, 1):
        frame[IP].id = number
    return frames


def removed_by_editcap(capture: Path) -> int:
    """Return how many frames `editcap -d` takes for copies."""
    done = subprocess.run(["editcap", "-d", str(capture), str(capture) + ".less"], capture_output=True, text=True, check=True)
    found = re.search(r"(\d+) packets? skipped", done.stderr)
    assert found
    return int(found[1])


def session(capture: Path) -> dict[str, Any]:
    """Return the capture's only session."""
    [row] = pa.table(pcapstat.open(capture).sessions).to_pylist()
    return dict(row)


def data_messages(capture: Path, **options: Any) -> int:
    """Return how many messages bring data."""
    return sum(pa.table(pcapstat.open(capture, **options).messages)["is_data"].to_pylist())


def notes(capture: Path) -> set[str]:
    """Return what the capture could not show."""
    return {row["note"] for row in pa.table(pcapstat.open(capture).notes).to_pylist()}


def notifications() -> list[Any]:
    """Return a registration, its answer, and four notifications that are not confirmed."""
    said = [(C, coap(NON, GET, 1, b"o", [(6, b"")])), (S, coap(NON, CONTENT, 2, b"o", [(6, b"\1")], b"a"))]
    said += [(S, coap(NON, CONTENT, 3 + number, b"o", [(6, bytes([2 + number]))], b"b%d" % number)) for number in range(4)]
    return identified(packets(said, "udp", 5683))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("step_s", [10 * US, -3 * US])
def test_copies_behind_a_burst_are_no_messages(tmp_path: Path, count: int, step_s: float) -> None:
    """As many copies as `editcap -d` removes, whether the second interface stamps them later or earlier; nothing is sent again."""
    before, burst = notifications()[:2], notifications()[2 : 2 + count]
    original = [(1 + 2 * number * US, frame) for number, frame in enumerate(burst)]
    copies = [(time_s + step_s, frame) for time_s, frame in original]
    capture = written(tmp_path / "copies.pcap", [(0, before[0]), (0.01, before[1]), *original, *copies])

    row = session(capture)
    assert (row["captured_twice"], row["retransmissions"]) == (removed_by_editcap(capture), 0) == (count, 0)
    assert data_messages(capture) == 1 + count


def test_crosscheck_explains_what_tshark_shows_in_copies(tmp_path: Path) -> None:
    """A message in each of the copies that `editcap -d` removes is tshark's, and none of the core's; what was not shown before is none."""
    timed = [(number * 0.1, frame) for number, frame in enumerate(notifications())]
    capture = written(tmp_path / "copies.pcap", [copy for time_s, frame in timed for copy in ((time_s, frame), (time_s + 5 * US, frame))])

    found = list(crosscheck.differences(pcapstat.open(capture)))
    assert [(each.frame, each.tshark, each.pcapstat) for each in found] == [(2 * number + 2, "1", "0") for number in range(6)]
    assert len(found) == removed_by_editcap(capture)
    assert all("captured-twice" in str(each.explanation) for each in found)

    copies = crosscheck.Copies([{"note": "captured-twice", "frame_first": 2, "frame_last": 12}])
    assert copies.reason("coap", [{"frame": 2, "message_id": 1}], []) is None


def test_copies_of_segments_are_not_sent_again(tmp_path: Path) -> None:
    """Two segments and then their copies: two messages."""
    frames = identified(packets([(C, connect_311()), (S, connack_311()), (C, publish_311()), (C, publish_311())], "tcp", 1883))
    times_s = [float(frame.time) - 1_700_000_000 for frame in frames]
    copies = [(times_s[-1] + 20 * US, frames[-2]), (times_s[-1] + 30 * US, frames[-1])]
    times_s[-2] = times_s[-1] - 10 * US
    capture = written(tmp_path / "copies.pcap", [*zip(times_s, frames, strict=True), *copies])

    row = session(capture)
    assert (row["captured_twice"], row["tcp_retransmissions"]) == (removed_by_editcap(capture), 0) == (2, 0)
    assert data_messages(capture) == 2


def test_copies_of_an_opening_without_identification_are_not_sent_again(tmp_path: Path) -> None:
    """Linux answers a SYN with identification 0 (RFC 6864 §4.1): SYN and SYN-ACK captured twice are no TCP retransmissions."""
    frames = packets([(C, connect_311()), (S, connack_311())], "tcp", 1883)
    for frame in frames:
        frame[IP].id = 0
    timed = [(float(frame.time) - 1_700_000_000, frame) for frame in frames]
    copies = [(time_s + 10 * US, frame) for time_s, frame in timed[:2]]
    capture = written(tmp_path / "copies.pcap", sorted([*timed, *copies], key=lambda entry: entry[0]))

    row = session(capture)
    assert (row["captured_twice"], row["tcp_retransmissions"]) == (removed_by_editcap(capture), 0) == (2, 0)


@pytest.mark.parametrize("order", ["aabb", "abab", "aaabbb"])
def test_fragments_captured_twice_make_one_message(tmp_path: Path, order: str) -> None:
    """RFC 791 §3.2: the datagram is whole at its first two fragments, its message has only their bytes, and no fragment is missing."""
    [datagram] = identified(packets([(C, coap(NON, GET, 1, b"t", [(11, b"r" * 12)], b"z" * 60))], "udp", 5683))
    pieces = dict(zip("ab", fragment(datagram, fragsize=48), strict=True))
    capture = written(tmp_path / "fragments.pcap", [(10 * number * US, pieces[name]) for number, name in enumerate(order)])

    [message] = pa.table(pcapstat.open(capture).messages).to_pylist()
    assert message["frames"] == [1, order.index("b") + 1]
    assert message["frame_bytes"] == sum(len(piece) for piece in pieces.values())
    assert session(capture)["captured_twice"] == min(order.count("a"), order.count("b")) - 1
    assert not notes(capture) & {"fragment-missing", "fragment-overlap"}


@pytest.mark.parametrize(("port", "times"), [(5683, 2), (9999, 1)])
def test_fragments_of_a_datagram_without_a_message_are_as_many_frames(tmp_path: Path, port: int, times: int) -> None:
    """RFC 791 §3.2: 98 bytes in fragments of 48 are three frames, whether the datagram is a copy or of a port that nobody knows."""
    data = coap(NON, GET, 1, b"t", [(11, b"r" * 12)], b"z" * 71) if port == 5683 else b"\xee" * 90
    pieces = fragment(Ether(**MACS) / IP(src="192.0.2.1", dst="192.0.2.2", id=7) / UDP(sport=40000, dport=port) / data, fragsize=48)
    capture = written(tmp_path / "fragments.pcap", [(10 * number * US, piece) for number, piece in enumerate(pieces * times)])

    bytes_of_all = sum(len(piece) for piece in pieces)
    if times == 2:
        assert (session(capture)["control_frames"], session(capture)["captured_twice"]) == (3, 1)
    else:
        [other] = pcapstat.open(capture).summary().others
        assert (other["protocol"], other["frames"], other["bytes"]) == ("udp", 3, bytes_of_all)


def test_fragments_of_a_datagram_that_is_filtered_out_are_as_many_frames(tmp_path: Path) -> None:
    """A display filter of tshark's that nothing passes leaves out three frames, not one."""
    data = coap(NON, GET, 1, b"t", [(11, b"r" * 12)], b"z" * 71)
    pieces = fragment(Ether(**MACS) / IP(src="192.0.2.1", dst="192.0.2.2", id=7) / UDP(sport=40000, dport=5683) / data, fragsize=48)
    capture = written(tmp_path / "fragments.pcap", [(10 * number * US, piece) for number, piece in enumerate(pieces)])

    [other] = pcapstat.open(capture, engine="tshark", tshark=pcapstat.Tshark(display_filter="coap.mid == 2")).summary().others
    assert (other["protocol"], other["frames"], other["bytes"]) == ("filtered", 3, sum(len(piece) for piece in pieces))


def test_fragments_of_a_segment_that_is_sent_again_are_as_many_frames(tmp_path: Path) -> None:
    """SYN, SYN-ACK and ACK are control frames, and the two fragments (RFC 791 §3.2) of the 35 bytes of a segment sent again 10 ms later."""
    frames = identified(packets([(C, connect_311())], "tcp", 1883))
    pieces = fragment(frames[-1], fragsize=24)
    in_order = [*frames[:-1], *pieces, *pieces]
    capture = written(tmp_path / "again.pcap", [(0.01 * number, frame) for number, frame in enumerate(in_order)])

    row = session(capture)
    assert (row["messages"], row["tcp_retransmissions"], row["control_frames"]) == (1, 1, 3 + 2)


def test_a_copy_of_one_fragment_is_not_missing_the_other(tmp_path: Path) -> None:
    """The first fragment twice, the second once: the datagram is whole, and its copy is a copy."""
    [datagram] = identified(packets([(C, coap(NON, GET, 1, b"t", [(11, b"r" * 12)], b"z" * 60))], "udp", 5683))
    first, second = fragment(datagram, fragsize=48)
    capture = written(tmp_path / "fragments.pcap", [(0, first), (10 * US, first), (20 * US, second)])

    assert len(pa.table(pcapstat.open(capture).messages)) == 1
    assert {"captured-twice"} == notes(capture) & {"captured-twice", "fragment-missing", "fragment-overlap"}


def test_a_fragment_without_its_others_is_no_part_of_a_later_datagram(tmp_path: Path) -> None:
    """RFC 791 §3.2: what is left of a datagram whose last fragment was lost is not put before that of another with its identification."""
    stale, later = (
        fragment(datagram, fragsize=48)
        for datagram in packets([(C, coap(NON, GET, number, b"t", [(11, b"r" * 12)], b"z" * 60)) for number in (1, 2)], "udp", 5683)
    )
    capture = written(tmp_path / "fragments.pcap", [(0, stale[0]), (5, later[0]), (5.001, later[1])])

    [message] = pa.table(pcapstat.open(capture).messages).to_pylist()
    assert (message["message_id"], message["frames"], message["frame_bytes"]) == (2, [2, 3], sum(len(piece) for piece in later))
    assert notes(capture) & {"fragment-missing", "fragment-overlap"} == {"fragment-missing"}


def test_what_is_sent_again_is_no_copy(tmp_path: Path) -> None:
    """A message with another IP identification half a millisecond later, or with the same one later than a millisecond, was sent again."""
    before, burst = notifications()[:2], notifications()[2:4]
    again = burst[0].copy()
    again[IP].id = 99
    frames = [(1, burst[0]), (1 + 250 * US, burst[1]), (1 + 500 * US, again), (1 + 1_300 * US, burst[1])]
    capture = written(tmp_path / "again.pcap", [(0, before[0]), (0.01, before[1]), *frames])

    row = session(capture)
    assert (row["captured_twice"], row["retransmissions"], data_messages(capture)) == (0, 2, 3)


def test_datagrams_without_identification_are_told_apart_by_all_their_bytes(tmp_path: Path) -> None:
    """IPv6 has no identification: two MQTT-SN messages in a burst that differ at their ends are two, a third that is alike is a copy."""
    bodies = [b"\x0c\x00\x00\x01\x00\x00" + b"temperature 21." + digit for digit in (b"1", b"2", b"1")]
    datagrams = [
        Ether(**MACS) / IPv6(src="fd00::1", dst="fd00::2") / UDP(sport=40000, dport=1884) / (bytes([1 + len(body)]) + body)
        for body in bodies
    ]
    capture = written(tmp_path / "burst.pcap", [(10 * number * US, datagram) for number, datagram in enumerate(datagrams)])

    assert (data_messages(capture), session(capture)["captured_twice"]) == (2, 1)
