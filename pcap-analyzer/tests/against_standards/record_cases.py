"""Of each rule of TLS and DTLS records: what is said in a capture that breaks it, and in one that nearly does."""

from __future__ import annotations

from against_standards.building import C, S, Said, datagram_handshake, datagram_record, handshake, record, server_hello

CHANGE, ALERT, HANDSHAKE, DATA = 20, 21, 22, 23
CLIENT_HELLO, SERVER_HELLO, CERTIFICATE = 1, 2, 11
FATAL, CLOSE, CONTENT = record(ALERT, b"\x02\x28"), record(ALERT, b"\x01\x00"), record(DATA, b"x" * 32)
HELLO = record(HANDSHAKE, handshake(CLIENT_HELLO, b"\x03\x03" + b"r" * 32 + b"\0\0\x02\x13\x01\x01\0"), b"\x03\x01")
AES_128_GCM_SHA256, RSA_NULL_SHA, RSA_AES_128_GCM = 0x1301, 0x0002, 0x009C
OLD, CHANGED = record(HANDSHAKE, handshake(SERVER_HELLO, server_hello(RSA_AES_128_GCM))), record(CHANGE, b"\1")
NEW = record(HANDSHAKE, handshake(SERVER_HELLO, server_hello(AES_128_GCM_SHA256, extensions=b"\0\x2b\0\x02\x03\x04")))


def chosen(suite: int, version: bytes) -> Said:
    """Return ClientHello and ServerHello, in a record of that version."""
    return [(C, HELLO), (S, record(HANDSHAKE, handshake(SERVER_HELLO, server_hello(suite, version)), version))]


TLS: dict[str, tuple[Said, Said]] = {
    "RFC8446-6.2-alert": ([(C, HELLO), (S, FATAL), (S, CONTENT)], [(C, HELLO), (S, FATAL), (C, CONTENT)]),
    "RFC8446-6.1-close": ([(C, HELLO), (C, CLOSE), (C, CONTENT)], [(C, HELLO), (C, CLOSE), (S, CONTENT)]),
    "RFC8446-4.1.2-first": ([(C, CHANGED), (C, HELLO)], [(C, HELLO), (C, CHANGED)]),
    "RFC8996-2-version": (chosen(RSA_AES_128_GCM, b"\x03\x02"), chosen(RSA_AES_128_GCM, b"\x03\x03")),
    "RFC9325-4.1-suite": (chosen(RSA_NULL_SHA, b"\x03\x03"), chosen(RSA_AES_128_GCM, b"\x03\x03")),
    "RFC8446-5.1-length": (
        [(C, HELLO), (S, OLD), (S, record(HANDSHAKE, handshake(CERTIFICATE, bytes(16_381))))],
        [(C, HELLO), (S, OLD), (S, record(HANDSHAKE, handshake(CERTIFICATE, bytes(16_380))))],
    ),
    "RFC5246-7.4.9-protected": (
        [(C, HELLO), (S, OLD), (C, CONTENT)],
        [(C, HELLO), (S, OLD), (C, CHANGED), (C, CONTENT)],
    ),
}
SHORT_HELLO = b"\xfe\xfd" + b"r" * 32 + b"\0\0\0\x02\xc0\xa8\x01\0"


def datagram(kind: int, epoch: int, number: int, fragment: bytes = b"x" * 40) -> bytes:
    """Return a record of DTLS 1.2."""
    return datagram_record(kind, epoch, number, fragment)


ANOTHER_HELLO = b"\xfe\xfd" + b"s" * 32 + b"\x04last\0\0\x02\xc0\xa8\x01\0"
GREETING: Said = [(C, datagram(HANDSHAKE, 0, 0, datagram_handshake(CLIENT_HELLO, 0, SHORT_HELLO)))]
DTLS: dict[str, tuple[Said, Said]] = {
    "RFC6347-4.1-epoch": ([*GREETING, (C, datagram(DATA, 0, 1))], [*GREETING, (C, datagram(DATA, 1, 0))]),
    "RFC6347-4.1-number": (
        [*GREETING, (C, datagram(DATA, 1, 1)), (C, datagram(DATA, 1, 1, b"y" * 41))],
        [
            *GREETING,
            *[(C, datagram(DATA, 1, 1)), (C, datagram(DATA, 1, 1)), (C, datagram(DATA, 1, 2, b"y" * 41))],
            # from the same port, with a session to resume
            (C, datagram(HANDSHAKE, 0, 0, datagram_handshake(CLIENT_HELLO, 0, ANOTHER_HELLO))),
        ],
    ),
}
