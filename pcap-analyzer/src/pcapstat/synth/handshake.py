"""Handshakes of TLS and DTLS: flights with the messages and lengths of the standards; keys, cookies and certificates are zeros.

With a certificate and ECDHE for TLS, with a pre-shared key for DTLS: what the studies' libraries do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pcapstat.synth.scenario import Scenario
from pcapstat.theory.security import PROTECTIONS

CHANGE_CIPHER_SPEC, HANDSHAKE, APPLICATION_DATA = 20, 22, 23
CLIENT_HELLO, SERVER_HELLO, HELLO_VERIFY_REQUEST, CERTIFICATE, SERVER_KEY_EXCHANGE, SERVER_HELLO_DONE, CLIENT_KEY_EXCHANGE = (
    1,
    2,
    3,
    11,
    12,
    14,
    16,
)
"""Content types and handshake types (RFC 5246 §6.2.1, §7.4, RFC 6347 §4.3.2)."""
SUITES = {
    "tls1.3": (0x1302, 48),
    "tls1.3-ccm8": (0x1305, 32),
    "tls1.2-gcm": (0xC02B, 12),
    "tls1.2-chacha20": (0xCCA9, 12),
    "tls1.2-ccm8": (0xC0AE, 12),
    "dtls1.2-gcm": (0x00A8, 12),
    "dtls1.2-ccm": (0xC0A4, 12),
    "dtls1.2-ccm8": (0xC0A8, 12),
    "dtls1.2-chacha20": (0xCCAB, 12),
    "dtls1.3": (0x1301, 32),
    "dtls1.3-ccm8": (0x1305, 32),
}
"""Of each protection: a cipher suite, and the bytes of Finished's verify data (RFC 5246 §7.4.9; RFC 8446 §4.4.4: the hash)."""
RANDOM, COOKIE, SESSION_ID, P256_POINT, ECDSA_SIGNATURE = bytes(range(32)), bytes(32), bytes(32), bytes(65), bytes(71)
"""Values of the lengths that they have: a point behind its form (RFC 8422 §5.4.1), a P-256 signature in DER, mostly 70 to 72 bytes."""
TICKET_BYTES = 208
"""A ticket of OpenSSL's."""
EXTENDED_MASTER_SECRET = b"\x00\x17\x00\x00"
GROUPS_AND_SIGNATURES = b"\x00\x0a\x00\x04\x00\x02\x00\x17" + b"\x00\x0d\x00\x04\x00\x02\x04\x03"
"""RFC 7627; secp256r1 and ecdsa_secp256r1_sha256 (RFC 8446 §4.2.3, §4.2.7)."""
POINT_FORMATS = b"\x00\x0b\x00\x02\x01\x00"


@dataclass(frozen=True)
class Record:
    """A record's content type and content, in the clear or protected by the keys of an epoch (RFC 9147 §6.1; TLS counts alike here)."""

    kind: int
    content: bytes
    epoch: int = 0


@dataclass(frozen=True)
class Flight:
    """Records that one side sends at once."""

    from_client: bool
    records: tuple[Record, ...]


def vector(count: int, content: bytes) -> bytes:
    """Return bytes behind their length in `count` bytes (RFC 8446 §3.4)."""
    return len(content).to_bytes(count, "big") + content


def message(scenario: Scenario, kind: int, sequence: int, body: bytes) -> bytes:
    """Return a handshake message (RFC 8446 §4); over DTLS with its number and fragment (RFC 6347 §4.2.2)."""
    head = bytes([kind]) + len(body).to_bytes(3, "big")
    if scenario.transport == "tcp":
        return head + body
    return head + sequence.to_bytes(2, "big") + bytes(3) + len(body).to_bytes(3, "big") + body


def version_of(scenario: Scenario) -> bytes:
    """Return the legacy version of TLS 1.2 or DTLS 1.2."""
    return b"\x03\x03" if scenario.transport == "tcp" else b"\xfe\xfd"


def client_hello(scenario: Scenario, cookie: bytes, session_id: bytes, extensions: bytes) -> bytes:
    """Return the body of a ClientHello with one cipher suite (RFC 5246 §7.4.1.2, RFC 6347 §4.2.1)."""
    cookies = vector(1, cookie) if scenario.transport == "udp" else b""
    suite = SUITES[scenario.security][0].to_bytes(2, "big")
    return version_of(scenario) + RANDOM + vector(1, session_id) + cookies + vector(2, suite) + b"\x01\x00" + vector(2, extensions)


def server_hello(scenario: Scenario, session_id: bytes, extensions: bytes) -> bytes:
    """Return the body of a ServerHello (RFC 5246 §7.4.1.3)."""
    suite = SUITES[scenario.security][0].to_bytes(2, "big")
    return version_of(scenario) + RANDOM + vector(1, session_id) + suite + b"\x00" + vector(2, extensions)


def finished(scenario: Scenario, sequence: int, epoch: int) -> Record:
    """Return Finished, protected."""
    return Record(HANDSHAKE, message(scenario, 20, sequence, bytes(SUITES[scenario.security][1])), epoch)


def dtls_12(scenario: Scenario) -> list[Flight]:
    """RFC 6347 §4.2.4, Figure 1, with a pre-shared key (RFC 4279 §2)."""

    def said(kind: int, sequence: int, body: bytes) -> Record:
        return Record(HANDSHAKE, message(scenario, kind, sequence, body))

    change = Record(CHANGE_CIPHER_SPEC, b"\x01")
    identity = vector(2, scenario.psk_identity.encode())
    return [
        Flight(True, (said(CLIENT_HELLO, 0, client_hello(scenario, b"", b"", EXTENDED_MASTER_SECRET)),)),
        Flight(False, (said(HELLO_VERIFY_REQUEST, 0, b"\xfe\xfd" + vector(1, COOKIE)),)),
        Flight(True, (said(CLIENT_HELLO, 1, client_hello(scenario, COOKIE, b"", EXTENDED_MASTER_SECRET)),)),
        Flight(
            False,
            (said(SERVER_HELLO, 1, server_hello(scenario, SESSION_ID, EXTENDED_MASTER_SECRET)), said(SERVER_HELLO_DONE, 2, b"")),
        ),
        Flight(True, (said(CLIENT_KEY_EXCHANGE, 2, identity), change, finished(scenario, 3, 1))),
        Flight(False, (change, finished(scenario, 3, 1))),
    ]


def tls_12(scenario: Scenario) -> list[Flight]:
    """RFC 5246 §7.3, Figure 1, with a certificate and ECDHE (RFC 8422 §5)."""

    def said(kind: int, body: bytes) -> Record:
        return Record(HANDSHAKE, message(scenario, kind, 0, body))

    change = Record(CHANGE_CIPHER_SPEC, b"\x01")
    hello = client_hello(scenario, b"", b"", GROUPS_AND_SIGNATURES + POINT_FORMATS + EXTENDED_MASTER_SECRET)
    key = b"\x03\x00\x17" + vector(1, P256_POINT) + b"\x04\x03" + vector(2, ECDSA_SIGNATURE)
    answers = (
        said(SERVER_HELLO, server_hello(scenario, SESSION_ID, POINT_FORMATS + EXTENDED_MASTER_SECRET)),
        said(CERTIFICATE, vector(3, vector(3, bytes(scenario.certificate_bytes)))),
        said(SERVER_KEY_EXCHANGE, key),
        said(SERVER_HELLO_DONE, b""),
    )
    return [
        Flight(True, (said(CLIENT_HELLO, hello),)),
        Flight(False, answers),
        Flight(True, (said(CLIENT_KEY_EXCHANGE, vector(1, P256_POINT)), change, finished(scenario, 0, 1))),
        Flight(False, (change, finished(scenario, 0, 1))),
    ]


def tls_13(scenario: Scenario) -> list[Flight]:
    """RFC 8446 §2, Figure 1, with a certificate, and the ChangeCipherSpec of Appendix D.4."""

    def hidden(kind: int, body: bytes, epoch: int = 2) -> Record:
        return Record(HANDSHAKE, message(scenario, kind, 0, body), epoch)

    change, share = Record(CHANGE_CIPHER_SPEC, b"\x01"), b"\x00\x17" + vector(2, P256_POINT)
    asked = GROUPS_AND_SIGNATURES + b"\x00\x2b\x00\x03\x02\x03\x04" + b"\x00\x33" + vector(2, vector(2, share))
    answered = b"\x00\x2b\x00\x02\x03\x04" + b"\x00\x33" + vector(2, share)
    hello = client_hello(scenario, b"", SESSION_ID, asked)
    certificate = b"\x00" + vector(3, vector(3, bytes(scenario.certificate_bytes)) + b"\x00\x00")
    ticket = bytes(8) + vector(1, bytes(8)) + vector(2, bytes(TICKET_BYTES)) + b"\x00\x00"
    answers = (
        Record(HANDSHAKE, message(scenario, SERVER_HELLO, 0, server_hello(scenario, SESSION_ID, answered))),
        change,
        hidden(8, b"\x00\x00"),
        hidden(CERTIFICATE, certificate),
        hidden(15, b"\x04\x03" + vector(2, ECDSA_SIGNATURE)),
        finished(scenario, 0, 2),
    )
    flights = [
        Flight(True, (Record(HANDSHAKE, message(scenario, CLIENT_HELLO, 0, hello)),)),
        Flight(False, answers),
        Flight(True, (change, finished(scenario, 0, 2))),
    ]
    return flights + [Flight(False, (hidden(4, ticket, 3),)) for _ in range(scenario.tickets)]


def dtls_13(scenario: Scenario) -> list[Flight]:
    """RFC 9147 §5.7, Figure 7, with a pre-shared key and without a cookie; the ACK of the client's Finished (§7)."""
    identity = vector(2, vector(2, scenario.psk_identity.encode()) + bytes(4))
    offered = (
        b"\x00\x2b\x00\x03\x02\xfe\xfc" + b"\x00\x2d\x00\x02\x01\x00" + b"\x00\x29" + vector(2, identity + vector(2, vector(1, bytes(32))))
    )
    chosen = b"\x00\x2b\x00\x02\xfe\xfc" + b"\x00\x29\x00\x02\x00\x00"
    answers = (
        Record(HANDSHAKE, message(scenario, SERVER_HELLO, 0, server_hello(scenario, b"", chosen))),
        Record(HANDSHAKE, message(scenario, 8, 1, b"\x00\x00"), 2),
        finished(scenario, 2, 2),
    )
    return [
        Flight(True, (Record(HANDSHAKE, message(scenario, CLIENT_HELLO, 0, client_hello(scenario, b"", b"", offered))),)),
        Flight(False, answers),
        Flight(True, (finished(scenario, 1, 2),)),
        Flight(False, (Record(26, vector(2, bytes(16)), 3),)),
    ]


HANDSHAKES: dict[str, Callable[[Scenario], list[Flight]]] = {"tls1.2": tls_12, "tls1.3": tls_13, "dtls1.2": dtls_12, "dtls1.3": dtls_13}
"""What makes the flights of each version."""


def flights(scenario: Scenario) -> list[Flight]:
    """Return the flights before the first message; none without security."""
    if PROTECTIONS[scenario.security] is None:
        return []
    return HANDSHAKES[scenario.security.partition("-")[0]](scenario)
