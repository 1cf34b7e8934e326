"""What carries a message: transport, IP and link headers."""

from __future__ import annotations

from pcapstat.errors import UsageError
from pcapstat.theory.security import check, record
from pcapstat.theory.size import Line, Size, exactly, size

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


def around(content: Size, *, transport: str, link: str = "none", ip: int = 4, tcp_options_bytes: int = 12, security: str = "none") -> Size:
    """Put a message into one record, segment or datagram, packet and frame. `link` "none" leaves all below security out.

    Raises UsageError where it does not fit, or the record is not of this transport.
    """
    check(security, transport, content.least)
    lines: list[Line] = record(security)
    check_datagram(transport, ip, content.least + sum(line.least for line in lines))
    if LINKS[link] is not None or link != "none":
        lines = [*lower(transport, link, ip, tcp_options_bytes), *lines]
    return size(lines, content.lines)


def check_datagram(transport: str, ip: int, count: int) -> None:
    """Raise UsageError where data of so many bytes does not fit a datagram; TCP takes any number."""
    most, section = MOST_DATAGRAM[ip]
    if transport == "udp" and count > most:
        raise UsageError(f"{count} bytes in a datagram: {most} are the most (RFC 768, {section})")


def lower(transport: str, link: str, ip: int, tcp_options_bytes: int) -> list[Line]:
    """Return link, IP and transport headers. TCP's usual option is the timestamp with its padding: 12 bytes (RFC 7323 §3.2)."""
    link_row = LINKS[link]
    lines = [exactly("link", f"{link} header", *link_row)] if link_row and link_row[0] else []
    lines.append(exactly("ip", f"IPv{ip} header", *IP[ip]))
    if transport == "udp":
        return [*lines, exactly("transport", "UDP header", 8, "RFC 768")]
    options = [exactly("transport", "TCP options", tcp_options_bytes, "RFC 9293 §3.2")] if tcp_options_bytes else []
    return [*lines, exactly("transport", "TCP header", 20, "RFC 9293 §3.1"), *options]
