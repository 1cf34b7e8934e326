"""Of each rule of CoAP: what is said in a capture that breaks it, and in one that nearly does."""

from __future__ import annotations

from against_standards.building import ACK, CON, CONTENT, GET, NON, RST, C, S, Said, coap

OBSERVE, FORMAT, BLOCK2 = 6, 12, 23
ASK = coap(CON, GET, 1, b"\1", [(OBSERVE, b"")])
TOLD = coap(ACK, CONTENT, 1, b"\1", [(OBSERVE, b"\5")], b"x")


def told(number: int, value: bytes, *options: tuple[int, bytes]) -> bytes:
    """Return a notification."""
    return coap(NON, CONTENT, number, b"\1", [(OBSERVE, value), *options], b"x")


def plain(number: int, token: bytes = b"\1") -> bytes:
    """Return a GET."""
    return coap(CON, GET, number, token)


COAP: dict[str, tuple[Said, Said]] = {
    "RFC7252-4.4-message-id": ([(C, plain(1)), (C, plain(1, b"\2"))], [(C, plain(1), 0.0), (C, plain(1, b"\2"), 248.0)]),
    "RFC7252-4.2-timeout": (
        [(C, plain(1), 0.0), (C, plain(1), 1.0)],
        [(C, plain(1), 0.0), (C, plain(1), 2.5), (C, plain(1), 7.5), (C, plain(1), 17.5)],
    ),
    "RFC7252-4.2-max-retransmit": (
        [(C, plain(1), time) for time in (0.0, 2.0, 6.0, 14.0, 30.0, 62.0)],
        [(C, plain(1), time) for time in (0.0, 2.0, 6.0, 14.0, 30.0)],
    ),
    "RFC7252-4.2-answered": (
        [(C, plain(1), 0.0), (S, coap(ACK, 0, 1), 0.1), (C, plain(1), 2.1)],
        [(C, plain(1), 0.0), (C, plain(1), 2.1), (S, coap(ACK, 0, 1), 2.2)],
    ),
    "RFC7252-4.2-ack": ([(C, plain(1)), (S, coap(ACK, CONTENT, 2, b"\1"))], [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1"))]),
    "RFC7252-4.2-ack-content": ([(C, plain(1)), (S, coap(ACK, GET, 1, b"\1"))], [(C, plain(1)), (S, coap(RST, 0, 1))]),
    "RFC7252-4.3-non": ([(C, plain(1)), (C, coap(NON, 0, 2))], [(C, plain(1)), (C, coap(CON, 0, 2))]),
    "RFC7252-5.3.1-token": ([(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\2"))], [(C, plain(1, b"")), (S, coap(ACK, CONTENT, 1))]),
    "RFC7252-5.4.5-repeated": (
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [(FORMAT, b""), (FORMAT, b"")]))],
        [(C, coap(CON, GET, 1, b"\1", [(11, b"a"), (11, b"a")]))],
    ),
    "RFC7252-4.6-size": (
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [], b"x" * 1147))],
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [], b"x" * 1146))],
    ),
    "RFC7641-3.4-order": ([(C, ASK), (S, TOLD), (S, told(9, b"\4"))], [(C, ASK), (S, TOLD), (S, told(9, b"\6")), (S, told(10, b"\7"))]),
    "RFC7641-4.2-format": ([(C, ASK), (S, TOLD), (S, told(9, b"\6", (FORMAT, b"")))], [(C, ASK), (S, TOLD), (S, told(9, b"\6"))]),
    "RFC7959-2.2-szx": ([(C, coap(CON, GET, 1, b"\1", [(BLOCK2, b"\7")]))], [(C, coap(CON, GET, 1, b"\1", [(BLOCK2, b"\6")]))]),
    "RFC7959-2.3-size": (
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [(BLOCK2, b"\x08")], b"x" * 15))],
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [(BLOCK2, b"\x08")], b"x" * 16))],
    ),
}
GROUP: dict[str, tuple[Said, Said]] = {"RFC7252-8.1-multicast": ([(C, plain(1))], [(C, coap(NON, GET, 1, b"\1"))])}
