"""What records of TLS and DTLS add to a message, by protection: RFC 5246 §6.2, RFC 8446 §5, RFC 6347 §4.1, RFC 9147 §4."""

from __future__ import annotations

from dataclasses import dataclass

from pcapstat.errors import UsageError
from pcapstat.theory.size import Line, exactly


@dataclass(frozen=True)
class Protection:
    """A record protection: record header, explicit nonce, content type byte, tag; the sections behind them."""

    header_bytes: int
    header_source: str
    nonce_bytes: int
    type_bytes: int
    tag_bytes: int
    source: str


TLS = (5, "RFC 8446 §5.1")
DTLS12 = (13, "RFC 6347 §4.1")
PROTECTIONS = {
    "none": None,
    "tls1.3": Protection(*TLS, 0, 1, 16, "RFC 8446 §5.2"),
    "tls1.3-ccm8": Protection(*TLS, 0, 1, 8, "RFC 8446 §5.2, RFC 6655 §4"),
    "tls1.2-gcm": Protection(*TLS, 8, 0, 16, "RFC 5288 §3"),
    "tls1.2-chacha20": Protection(*TLS, 0, 0, 16, "RFC 7905 §2"),
    "tls1.2-ccm8": Protection(*TLS, 8, 0, 8, "RFC 6655 §4"),
    "dtls1.2-gcm": Protection(*DTLS12, 8, 0, 16, "RFC 5288 §3"),
    "dtls1.2-ccm": Protection(*DTLS12, 8, 0, 16, "RFC 6655 §3"),
    "dtls1.2-ccm8": Protection(*DTLS12, 8, 0, 8, "RFC 6655 §4"),
    "dtls1.2-chacha20": Protection(*DTLS12, 0, 0, 16, "RFC 7905 §2"),
    "dtls1.3": Protection(5, "RFC 9147 §4 (unified header with 16 bits of sequence number and length)", 0, 1, 16, "RFC 8446 §5.2"),
    "dtls1.3-ccm8": Protection(5, "RFC 9147 §4 (unified header with 16 bits of sequence number and length)", 0, 1, 8, "RFC 8446 §5.2"),
}
"""Protections by name."""


MOST_CONTENT = 2**14
"""Bytes of a record's content (RFC 8446 §5.1, RFC 5246 §6.2.1; of DTLS the same: RFC 6347 §4.1, RFC 9147 §4)."""
CARRIERS = {"tls": ("tcp", "a stream: RFC 8446 §1"), "dtls": ("udp", "datagrams: RFC 9147 §3")}
"""What carries the records of each protocol."""


def check(name: str, transport: str) -> None:
    """Raise UsageError where a protection is not of this transport."""
    if PROTECTIONS.get(name) is None:
        return
    protocol = "dtls" if name.startswith("dtls") else "tls"
    carrier, why = CARRIERS[protocol]
    if transport != carrier:
        raise UsageError(f"{name} over {transport.upper()}: {protocol.upper()} protects {why}")


def check_content(content_bytes: int) -> None:
    """Raise UsageError where one record cannot hold as much content."""
    if content_bytes > MOST_CONTENT:
        raise UsageError(f"{content_bytes} bytes in a record: {MOST_CONTENT} are the most (RFC 8446 §5.1, RFC 5246 §6.2.1)")


def records(name: str, transport: str, content_bytes: int) -> int:
    """Return how many records content takes. A stream goes on in further records; a datagram's content has one (RFC 9147 §4.1).

    Raises UsageError where the protection is not of this transport, or the one record cannot hold the content.
    """
    check(name, transport)
    if PROTECTIONS.get(name) is None:
        return 0
    if transport == "udp":
        check_content(content_bytes)
    return max(1, -(-content_bytes // MOST_CONTENT))


def record(name: str, padding_bytes: int = 0, connection_id_bytes: int = 0) -> list[Line]:
    """Return what a record adds to its content. Raises UsageError for a protection that is not known."""
    if name not in PROTECTIONS:
        raise UsageError(f"no protection {name} (there are: {', '.join(PROTECTIONS)})")
    protection = PROTECTIONS[name]
    if protection is None:
        return []
    # with a connection ID, DTLS 1.2 hides the content type as TLS 1.3 does
    type_bytes, type_source = (1, "RFC 9146 §4") if connection_id_bytes else (protection.type_bytes, protection.source)
    lines = [
        exactly("security", "record header", protection.header_bytes, protection.header_source),
        exactly("security", "connection ID", connection_id_bytes, "RFC 9146 §4"),
        exactly("security", "explicit nonce", protection.nonce_bytes, protection.source),
        exactly("security", "content type", type_bytes, type_source),
        exactly("security", "padding", padding_bytes, "RFC 8446 §5.4"),
        exactly("security", "authentication tag", protection.tag_bytes, protection.source),
    ]
    return [line for line in lines if line.most]
