"""Of each rule of CoAP: what is said in a capture that breaks it, and in one that nearly does."""

from __future__ import annotations

from against_standards.building import (
    ABORT,
    ACK,
    CHANGED,
    CON,
    CONTENT,
    CONTINUE,
    CSM,
    DELETE,
    GET,
    NON,
    NOT_FOUND,
    PING_7,
    PONG_7,
    POST,
    RST,
    VALID,
    C,
    S,
    Said,
    coap,
    coap_tcp,
)

ETAG, OBSERVE, LOCATION_PATH, URI_PATH, FORMAT, MAX_AGE, BLOCK2, BLOCK1, PROXY_URI = 4, 6, 8, 11, 12, 14, 23, 27, 35
ASK = coap(CON, GET, 1, b"\1", [(OBSERVE, b"")])
TOLD = coap(ACK, CONTENT, 1, b"\1", [(OBSERVE, b"\5")], b"x")


def told(number: int, value: bytes, *options: tuple[int, bytes]) -> bytes:
    """Return a notification."""
    return coap(NON, CONTENT, number, b"\1", [(OBSERVE, value), *options], b"x")


def plain(number: int, token: bytes = b"\1") -> bytes:
    """Return a GET."""
    return coap(CON, GET, number, token)


def answer(number: int, *options: tuple[int, bytes], code: int = CONTENT, payload: bytes = b"x") -> bytes:
    """Return a piggybacked response."""
    return coap(ACK, code, number, b"\1", options, payload)


def ask(number: int, *options: tuple[int, bytes], code: int = GET, payload: bytes = b"") -> bytes:
    """Return a Confirmable request."""
    return coap(CON, code, number, b"\1", options, payload)


EMPTY_ACK, SEPARATE = coap(ACK, 0, 1), coap(CON, CONTENT, 9, b"\1", [], b"x")
HOUR_S = 3600.0
COAP: dict[str, tuple[Said, Said]] = {
    "RFC7252-4.4-message-id": ([(C, plain(1)), (C, plain(1, b"\2"))], [(C, plain(1), 0.0), (C, plain(1, b"\2"), 248.0)]),
    "RFC7252-4.2-timeout": (
        [(C, plain(1), 0.0), (C, plain(1), 1.0)],
        [(C, plain(1), 0.0), (C, plain(1), 6.0), (C, plain(1), 14.0), (C, plain(1), 30.0)],
    ),
    "RFC7252-4.2-max-retransmit": (
        [(C, plain(1), time) for time in (0.0, 2.0, 6.0, 14.0, 30.0, 62.0)],
        [(C, plain(1), time) for time in (0.0, 2.0, 6.0, 14.0, 30.0)],
    ),
    "RFC7252-4.2-answered": (
        [(C, plain(1), 0.0), (S, coap(ACK, 0, 1), 0.1), (C, plain(1), 2.1)],
        [(C, plain(1), 0.0), (C, plain(1), 2.1), (S, coap(ACK, 0, 1), 2.2)],
    ),
    "RFC7252-4.2-ack": (
        [(C, plain(1), 0.0), (S, coap(ACK, CONTENT, 2, b"\1"), 248.0)],
        [(C, plain(1), 0.0), (S, coap(ACK, CONTENT, 2, b"\1"), 246.0)],
    ),
    "RFC7252-4.2-ack-content": ([(C, plain(1)), (S, coap(ACK, GET, 1, b"\1"))], [(C, plain(1)), (S, coap(RST, 0, 1))]),
    "RFC7252-4.3-non": ([(C, plain(1)), (C, coap(NON, 0, 2))], [(C, plain(1)), (S, answer(1)), (C, coap(CON, 0, 2))]),
    "RFC7252-5.3.1-token": ([(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\2"))], [(C, plain(1, b"")), (S, coap(ACK, CONTENT, 1))]),
    "RFC7252-5.4.5-repeated": (
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [(FORMAT, b""), (FORMAT, b"")]))],
        [(C, coap(CON, GET, 1, b"\1", [(11, b"a"), (11, b"a")]))],
    ),
    "RFC7252-4.6-size": (
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [], b"x" * 1147))],
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [], b"x" * 1146))],
    ),
    "RFC7252-4.2-span": (
        [(C, plain(1), time) for time in (0.0, 3.0, 9.0, 21.0, 51.0)],
        [(C, plain(1), time) for time in (0.0, 3.0, 9.0, 21.0, 45.0)],
    ),
    "RFC7252-4.7-nstart": (
        [(C, plain(1)), (C, plain(2, b"\2")), (S, answer(1)), (S, coap(ACK, CONTENT, 2, b"\2"))],
        [(C, plain(1)), (S, EMPTY_ACK), (C, plain(2, b"\2")), (C, plain(3)), (S, answer(3)), (C, plain(4)), (S, coap(RST, 0, 4))],
    ),
    "RFC7252-4.7-probing": (
        [(C, coap(NON, GET, 1, b"\1"), 0.0), (C, coap(NON, GET, 2, b"\2"), 4.0)],
        [(C, coap(NON, GET, 1, b"\1"), 0.0), (C, coap(NON, GET, 2, b"\2"), 6.0)],
    ),
    "RFC7252-5.2.2-separate": (
        [(C, plain(1)), (S, EMPTY_ACK), (C, plain(1), 2.5), (S, answer(1))],
        [(C, plain(1)), (S, EMPTY_ACK), (S, SEPARATE), (C, coap(ACK, 0, 9))],
    ),
    "RFC7252-5.2.2-empty": (
        [(C, plain(1)), (S, EMPTY_ACK), (S, SEPARATE), (C, coap(ACK, CHANGED, 9, b"\1"))],
        [(C, plain(1)), (S, SEPARATE), (C, coap(ACK, 0, 9)), (S, EMPTY_ACK)],
    ),
    "RFC7252-5.3.2-piggybacked": (
        [(C, plain(1)), (S, answer(1)), (C, plain(2, b"\2")), (S, answer(2))],
        [(C, plain(1)), (S, answer(1)), (C, plain(2)), (S, answer(2))],
    ),
    "RFC7252-5.4-defined": (
        [(C, plain(1)), (S, answer(1, (URI_PATH, b"a")))],
        [(C, ask(1, (URI_PATH, b"a; Max-Age: 5"))), (S, answer(1, (MAX_AGE, b"\5")))],
    ),
    "RFC7252-5.5-payload": ([(C, ask(1, payload=b"x"))], [(C, ask(1, code=POST, payload=b"x")), (S, answer(1)), (C, ask(2, code=DELETE))]),
    "RFC7252-5.9.1.3-valid": (
        [(C, plain(1)), (S, answer(1, code=VALID, payload=b""))],
        [(C, plain(1)), (S, answer(1, (ETAG, b"e"), code=VALID, payload=b""))],
    ),
    "RFC7252-5.10-length": ([(C, ask(1, (OBSERVE, b"\0\0\0\0")))], [(C, ask(1, (OBSERVE, b"\0\0\0"))), (S, TOLD)]),
    "RFC7252-5.10.1-dots": ([(C, ask(1, (URI_PATH, b"..")))], [(C, ask(1, (URI_PATH, b"..."), (URI_PATH, b"a; Uri-Path: ..")))]),
    "RFC7252-5.10.2-proxy": (
        [(C, ask(1, (URI_PATH, b"a"), (PROXY_URI, b"coap://h/a")))],
        [(C, ask(1, (URI_PATH, b"a"), (39, b"coap")))],
    ),
    "RFC7252-5.10.6.1-etag": (
        [(C, plain(1)), (S, answer(1, (ETAG, b"e"), (ETAG, b"f")))],
        [(C, ask(1, (ETAG, b"e"), (ETAG, b"f"))), (S, answer(1, (ETAG, b"e")))],
    ),
    "RFC7252-12.1-class": ([(C, plain(1)), (S, coap(CON, 193, 9, b"\1"))], [(C, plain(1)), (S, coap(CON, 191, 9, b"\1"))]),
    "RFC7252-12.2-experiment": (
        [(C, plain(1)), (S, answer(1, (FORMAT, (65_000).to_bytes(2, "big"))))],
        [(C, plain(1)), (S, answer(1, (FORMAT, (64_999).to_bytes(2, "big"))))],
    ),
    "RFC7641-3.4-order": ([(C, ASK), (S, TOLD), (S, told(9, b"\4"))], [(C, ASK), (S, TOLD), (S, told(9, b"\6")), (S, told(10, b"\7"))]),
    "RFC7641-4.2-format": ([(C, ASK), (S, TOLD), (S, told(9, b"\6", (FORMAT, b"")))], [(C, ASK), (S, TOLD), (S, told(9, b"\6"))]),
    "RFC7641-3.2-error": (
        [(C, ASK), (S, TOLD), (S, coap(NON, NOT_FOUND, 9, b"\1", [(OBSERVE, b"\6")]))],
        [(C, ASK), (S, TOLD), (S, coap(NON, NOT_FOUND, 9, b"\1"))],
    ),
    "RFC7641-3.6-reset": (
        [(C, ASK), (S, TOLD), (S, told(9, b"\6")), (C, coap(RST, 0, 9), 1.0), (S, told(10, b"\7"), 3.5)],
        [(C, ASK), (S, TOLD), (S, told(9, b"\6")), (C, coap(RST, 0, 9), 1.0), (S, told(10, b"\7"), 2.5)],
    ),
    "RFC7641-4.5-confirmable": (
        [(C, ASK, 0.0), (S, TOLD, 0.1), (S, told(9, b"\6"), 12 * HOUR_S), (S, told(10, b"\7"), 25 * HOUR_S)],
        [(C, ASK, 0.0), (S, TOLD, 0.1), (S, told(9, b"\6"), 12 * HOUR_S), (S, told(10, b"\7"), 23 * HOUR_S)],
    ),
    "RFC7959-2.2-last": (
        [(C, plain(1)), (S, answer(1, (BLOCK2, b"\x00"), payload=b"x" * 17))],
        [(C, plain(1)), (S, answer(1, (BLOCK2, b"\x00"), payload=b"x" * 16))],
    ),
    "RFC7959-2.3-echo": (
        [(C, ask(1, (BLOCK1, b"\x18"), code=POST, payload=b"x" * 16)), (S, answer(1, (BLOCK1, b"\x28"), code=CONTINUE, payload=b""))],
        [(C, ask(1, (BLOCK1, b"\x19"), code=POST, payload=b"x" * 32)), (S, answer(1, (BLOCK1, b"\x18"), code=CONTINUE, payload=b""))],
    ),
    "RFC7959-2.4-more": ([(C, ask(1, (BLOCK2, b"\x1a")))], [(C, ask(1, (BLOCK2, b"\x12")))]),
    "RFC7959-2.4-offset": (
        [(C, ask(1, (BLOCK2, b"\x11"))), (S, answer(1, (BLOCK2, b"\x10")))],
        [(C, ask(1, (BLOCK2, b"\x11"))), (S, answer(1, (BLOCK2, b"\x20")))],
    ),
    "RFC7959-2.4-same": (
        [(C, ask(1)), (S, answer(1, (BLOCK2, b"\x09"), payload=b"x" * 32)), (C, ask(2, (BLOCK2, b"\x20")))],
        [(C, ask(1)), (S, answer(1, (BLOCK2, b"\x09"), payload=b"x" * 32)), (C, ask(2, (BLOCK2, b"\x11")))],
    ),
    "RFC7959-2.4-size": (
        [(C, ask(1, (BLOCK2, b"\x00"))), (S, answer(1, (BLOCK2, b"\x01")))],
        [(C, ask(1, (BLOCK2, b"\x01"))), (S, answer(1, (BLOCK2, b"\x00")))],
    ),
    "RFC7959-2.2-szx": ([(C, coap(CON, GET, 1, b"\1", [(BLOCK2, b"\7")]))], [(C, coap(CON, GET, 1, b"\1", [(BLOCK2, b"\6")]))]),
    "RFC7959-2.3-size": (
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [(BLOCK2, b"\x08")], b"x" * 15))],
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [(BLOCK2, b"\x08")], b"x" * 16))],
    ),
}
GROUP: dict[str, tuple[Said, Said]] = {
    "RFC7252-8.1-multicast": ([(C, plain(1))], [(C, coap(NON, GET, 1, b"\1"))]),
    "RFC7252-8.2.1-etag": ([(C, coap(NON, GET, 1, b"\1", [(ETAG, b"e")]))], [(C, coap(NON, POST, 1, b"\1", [(ETAG, b"e")]))]),
}
CSMS: Said = [(C, coap_tcp(CSM)), (S, coap_tcp(CSM))]
STREAMS: dict[str, tuple[Said, Said]] = {
    "RFC8323-5.3-csm": (
        [(C, coap_tcp(CSM)), (C, coap_tcp(GET, b"\1")), (S, coap_tcp(CONTENT, b"\1"))],
        [(C, coap_tcp(CSM)), (C, coap_tcp(GET, b"\1")), (S, coap_tcp(CSM)), (S, coap_tcp(CONTENT, b"\1"))],
    ),
    "RFC8323-5.4-pong": (
        [*CSMS, (C, coap_tcp(PING_7, b"\1")), (S, coap_tcp(PONG_7, b"\2"))],
        [*CSMS, (C, coap_tcp(PING_7, b"\1")), (S, coap_tcp(PONG_7, b"\1"))],
    ),
    "RFC8323-5.6-abort": (
        [*CSMS, (C, coap_tcp(ABORT)), (C, coap_tcp(GET, b"\1"))],
        [*CSMS, (C, coap_tcp(GET, b"\1")), (S, coap_tcp(ABORT))],
    ),
}
