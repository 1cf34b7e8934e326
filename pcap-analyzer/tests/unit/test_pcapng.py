"""Blocks of pcapng (draft-ietf-opsawg-pcapng) beside those that hold frames: which are numbered, and what tells of drops."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from against_standards.building import GET, NON, C, coap, packets

import pcapstat
from pcapstat import wireshark

JOURNAL, EVENT, EVENT_2, EVENT_2_LARGE, EVENT_WITH_FLAGS = 9, 0x204, 0x216, 0x221, 0x208
CUSTOM, CUSTOM_NOT_COPIED = 0xBAD, 0x40000BAD
NAMES, STATISTICS, LOCAL = 4, 5, 0x80000001
IFDROP, OSDROP, DROPCOUNT = 5, 7, 4


def block(kind: int, body: bytes) -> bytes:
    """Return a block (§3.1)."""
    padded = body + bytes(-len(body) % 4)
    length = struct.pack("<I", 12 + len(padded))
    return struct.pack("<I", kind) + length + padded + length


def counters(options: dict[int, int]) -> bytes:
    """Return options whose values have 64 bits (§3.5)."""
    return b"".join(struct.pack("<HHQ", code, 8, value) for code, value in options.items()) + bytes(4 if options else 0)


def frame(message_id: int, interface: int = 0, options: dict[int, int] | None = None) -> bytes:
    """Return an enhanced packet block (§4.3) with a CoAP request."""
    [packet] = packets([(C, coap(NON, GET, message_id))], "udp", 5683)
    data = bytes(packet)
    fixed = struct.pack("<IIIII", interface, 0, message_id, len(data), len(data))
    return block(6, fixed + data + bytes(-len(data) % 4) + counters(options or {}))


def statistics(interface: int, options: dict[int, int]) -> bytes:
    """Return an interface statistics block (§4.6)."""
    return block(STATISTICS, struct.pack("<III", interface, 0, 0) + counters(options))


SECTION = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
INTERFACE = block(1, struct.pack("<HHI", 1, 0, 0))


EVENT_BODY = bytes(18) + struct.pack("<II", 26, 26) + bytes(38)
"""CPU, (flags,) time and thread, then the event's length with its header, which tshark 4.6 looks at."""


def written(path: Path, *blocks: bytes) -> Path:
    """Write a section with two interfaces and these blocks."""
    path.write_bytes(b"".join([SECTION, INTERFACE, INTERFACE, *blocks]))
    return path


def dropped(capture: Path) -> int | None:
    """Return how many frames the capture says were dropped."""
    [count] = pa.table(pcapstat.open(capture).table("captures"))["dropped_frames"].to_pylist()
    return None if count is None else int(count)


@pytest.mark.parametrize(
    "kind", [JOURNAL, EVENT, EVENT_2, EVENT_2_LARGE, EVENT_WITH_FLAGS, CUSTOM, CUSTOM_NOT_COPIED, NAMES, STATISTICS, LOCAL, 0, 11]
)
def test_frames_have_the_numbers_that_tshark_gives_them(tmp_path: Path, kind: int) -> None:
    """Some blocks without traffic are frames for Wireshark: the next frame has the next number but one."""
    body = b"__REALTIME_TIMESTAMP=1\n".ljust(44, b"a") if kind == JOURNAL else EVENT_BODY
    capture = written(tmp_path / "blocks.pcapng", frame(1), block(kind, body), frame(2), block(kind, body), frame(3))
    command = ["tshark", "-n", "-r", str(capture), "-Y", "coap", "-T", "fields", "-e", "frame.number"]
    expected = [int(line) for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()]

    # Wireshark 4.6 counts events with flags too
    is_newer = kind == EVENT_WITH_FLAGS and wireshark.version(wireshark.find()) >= (4, 6)
    assert pa.table(pcapstat.open(capture).messages)["frame"].to_pylist() == ([1, 2, 3] if is_newer else expected)
    assert len(expected) == 3


def test_drops_are_told_by_packets(tmp_path: Path) -> None:
    """epb_dropcount (§4.3) counts since the packet before of the same interface: the sum, over both interfaces."""
    blocks = [frame(1, 0, {DROPCOUNT: 2}), frame(2, 1, {DROPCOUNT: 1}), frame(3, 0), frame(4, 0, {DROPCOUNT: 3})]

    capture = written(tmp_path / "drops.pcapng", *blocks)
    assert dropped(capture) == 6
    [text] = [row["text"] for row in pa.table(pcapstat.open(capture).notes).to_pylist() if row["note"] == "dropped"]
    assert text.endswith(": 6 frames")
    assert dropped(written(tmp_path / "none.pcapng", frame(1, 0, {DROPCOUNT: 0}))) == 0
    assert dropped(written(tmp_path / "unknown.pcapng", frame(1))) is None


def test_drops_are_not_counted_twice(tmp_path: Path) -> None:
    """isb_ifdrop and isb_osdrop (§4.6) count the same drops since the capture's beginning, also those behind the last packet."""
    told = [frame(1, 0, {DROPCOUNT: 2}), frame(2, 0, {DROPCOUNT: 3})]

    assert dropped(written(tmp_path / "both.pcapng", *told, statistics(0, {IFDROP: 4, OSDROP: 3}))) == 7
    assert dropped(written(tmp_path / "early.pcapng", told[0], statistics(0, {IFDROP: 2}), told[1])) == 5
    assert dropped(written(tmp_path / "other.pcapng", *told, statistics(1, {IFDROP: 4}))) == 9
    assert dropped(written(tmp_path / "latest.pcapng", statistics(0, {IFDROP: 3}), frame(1), statistics(0, {IFDROP: 7}))) == 7


def test_obsolete_packet_blocks_tell_of_drops(tmp_path: Path) -> None:
    """Appendix B: drops since the packet before in 16 bits, all of which are set where they are not known."""
    [packet] = packets([(C, coap(NON, GET, 1))], "udp", 5683)
    data = bytes(packet)

    def obsolete(drops: int) -> bytes:
        return block(2, struct.pack("<HHIIII", 0, drops, 0, 1, len(data), len(data)) + data)

    assert dropped(written(tmp_path / "drops.pcapng", obsolete(4), obsolete(0xFFFF), obsolete(5))) == 9
    assert dropped(written(tmp_path / "unknown.pcapng", obsolete(0xFFFF))) is None
