"""What carries a message: transport, IP and link headers."""

from __future__ import annotations

from dataclasses import dataclass

from pcapstat.errors import UsageError
from pcapstat.theory.security import record, records
from pcapstat.theory.size import Line, Size, exactly, repeated, size

LINKS: dict[str, tuple[int, str] | None] = {
    "none": None,
    "ethernet": (14, "IEEE 802.3 §3.2"),
    "vlan": (18, "IEEE 802.1Q §9.6"),
    "sll": (16, "LINKTYPE_LINUX_SLL"),
    "sll2": (20, "LINKTYPE_LINUX_SLL2"),
    "null": (4, "LINKTYPE_NULL"),
    "raw": (0, "LINKTYPE_RAW"),
}
"""Link headers, without padding, preamble and check sequence, which captures do not show."""
MOST_DATAGRAM = {4: (65_535 - 20 - 8, "RFC 791 §3.1"), 6: (65_535 - 8, "RFC 8200 §3")}
"""By IP version the bytes of data in a datagram: what lengths of two bytes leave for it, and the section."""
IP = {4: (20, "RFC 791 §3.1"), 6: (40, "RFC 8200 §3")}


MTU, LEAST_MTU = 1500, {4: (68, "RFC 791 §3.2"), 6: (1280, "RFC 8200 §5")}
"""The longest packet of Ethernet, and by IP version the least that a link may have for it."""
TCP, UDP, FRAGMENT = (20, "RFC 9293 §3.1"), (8, "RFC 768"), (8, "RFC 8200 §4.5")
"""Headers: of IPv6 the one of a fragment."""
FRAGMENT_UNIT = 8
"""Fragments other than the last hold a multiple of so many bytes (RFC 791 §3.1, RFC 8200 §4.5)."""


@dataclass(frozen=True)
class Path:
    """What carries a record: transport, link ("none" leaves all below security out), IP version, bytes of TCP options, longest packet."""

    transport: str
    link: str = "none"
    ip: int = 4
    tcp_options_bytes: int = 12
    mtu: int = MTU

    @property
    def segment_bytes(self) -> int:
        """Return the data of a full segment (RFC 9293 §3.7.1). Raises UsageError where there is no room for any."""
        room = self.mtu - IP[self.ip][0] - TCP[0] - self.tcp_options_bytes
        if room <= 0:
            raise UsageError(
                f"no data fits packets of {self.mtu} bytes beside the headers (RFC 9293 §3.7.1; a larger --mtu, fewer --tcp-options)"
            )
        return room

    @property
    def fragment_bytes(self) -> int:
        """Return the data of a full fragment."""
        extension = FRAGMENT[0] if self.ip == 6 else 0
        return (self.mtu - IP[self.ip][0] - extension) // FRAGMENT_UNIT * FRAGMENT_UNIT

    def packets(self, count: int) -> int:
        """Return how many packets carry so many bytes of a stream, or of one datagram with its header."""
        if self.transport == "tcp":
            return max(1, -(-count // self.segment_bytes))
        datagram = UDP[0] + count
        return 1 if IP[self.ip][0] + datagram <= self.mtu else -(-datagram // self.fragment_bytes)


def around(content: Size, path: Path, security: str = "none") -> Size:
    """Put a message into records, segments or a datagram, packets and frames: into as many as it takes, and into no more.

    Raises UsageError where it does not fit, or the record is not of this transport.
    """
    check_mtu(path)
    least, most = (records(security, path.transport, count) for count in (content.least, content.most))
    lines = [repeated(line, least, most, "records") for line in record(security)]
    check_datagram(path.transport, path.ip, content.least + sum(line.least for line in lines))
    secured = size(lines, content.lines)
    return secured if path.link == "none" else size(lower(path, secured.least, secured.most), secured.lines)


def check_mtu(path: Path) -> None:
    """Raise UsageError where no link has packets as short."""
    least, section = LEAST_MTU[path.ip]
    if path.mtu < least:
        raise UsageError(f"--mtu {path.mtu}: a link has {least} bytes at least for IPv{path.ip} ({section})")


def check_datagram(transport: str, ip: int, count: int) -> None:
    """Raise UsageError where data of so many bytes does not fit a datagram; TCP takes any number."""
    most, section = MOST_DATAGRAM[ip]
    if transport == "udp" and count > most:
        raise UsageError(f"{count} bytes in a datagram: {most} are the most (RFC 768, {section})")


def lower(path: Path, least: int, most: int) -> list[Line]:
    """Return link, IP and transport headers around so many bytes. TCP's usual option is the timestamp: 12 bytes (RFC 7323 §3.2)."""
    counts, link = (path.packets(least), path.packets(most)), LINKS[path.link]
    each = [exactly("link", f"{path.link} header", *link)] if link and link[0] else []
    each.append(exactly("ip", f"IPv{path.ip} header", *IP[path.ip]))
    if path.transport == "tcp":
        each.append(exactly("transport", "TCP header", *TCP))
        each += [exactly("transport", "TCP options", path.tcp_options_bytes, "RFC 9293 §3.2")] if path.tcp_options_bytes else []
        return [repeated(line, *counts, "segments") for line in each]
    lines = [repeated(line, *counts, "fragments") for line in each]
    if path.ip == 6 and counts[1] > 1:
        least_count = counts[0] if counts[0] > 1 else 0
        lines.append(repeated(exactly("ip", "Fragment header", *FRAGMENT), least_count, counts[1], "fragments"))
    return [*lines, exactly("transport", "UDP header", *UDP)]
