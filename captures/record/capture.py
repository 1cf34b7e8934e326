"""From what tcpdump wrote to what is committed: a pcapng that holds the secrets and tells nothing of the machine."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NANOSECOND_PCAP = 0xA1B23C4D
SECTION, INTERFACE, ENHANCED, STATISTICS, SECRETS = 0x0A0D0D0A, 1, 6, 5, 10
"""Block types of draft-ietf-opsawg-pcapng."""
TLS_KEY_LOG = 0x544C534B
ETHERNET = 1


def frames(pcap: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield time in nanoseconds, original length and bytes of each frame of a little-endian nanosecond pcap."""
    if struct.unpack_from("<I", pcap)[0] != NANOSECOND_PCAP:
        raise ValueError("not a little-endian nanosecond pcap")
    at = 24
    while at + 16 <= len(pcap):
        seconds, nanoseconds, kept, original = struct.unpack_from("<IIII", pcap, at)
        yield seconds * 10**9 + nanoseconds, original, pcap[at + 16 : at + 16 + kept]
        at += 16 + kept


def convert(source: Path, target: Path, point: str, key_log: str, dropped: int) -> int:
    """Write `target` (pcapng, nanoseconds) from `source` (pcap) and return the number of frames."""
    out = bytearray(_block(SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    options = _option(2, point.encode()) + _option(9, b"\x09") + _option(0, b"")
    out += _block(INTERFACE, struct.pack("<HHI", ETHERNET, 0, 0) + options)
    if key_log:
        # behind the interface: editcap and mergecap cannot write again what has it before
        secrets = key_log.encode()
        out += _block(SECRETS, struct.pack("<II", TLS_KEY_LOG, len(secrets)) + _padded(secrets))
    recorded = list(frames(source.read_bytes()))
    for time_ns, original, data in recorded:
        head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), original)
        out += _block(ENHANCED, head + _padded(data))
    count, end_ns = len(recorded), recorded[-1][0] if recorded else 0
    counters = _option(4, struct.pack("<Q", count)) + _option(5, struct.pack("<Q", dropped)) + _option(0, b"")
    out += _block(STATISTICS, struct.pack("<III", 0, end_ns >> 32, end_ns & 0xFFFFFFFF) + counters)
    target.write_bytes(out)
    return count


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length
