"""Conversations that break a rule in another way than the rule's own case does: other direction, other transport, other answer."""

from __future__ import annotations

from against_standards.building import (
    CONTENT,
    GET,
    C,
    S,
    Said,
    ack,
    coap_tcp,
    connack,
    connect,
    publish,
    suback,
    subscribe,
)

OPEN: Said = [(C, connect()), (S, connack())]
SETTINGS: Said = [(C, coap_tcp(225)), (S, coap_tcp(225))]
ASKED = (C, subscribe(1, "t", qos=2))
VARIANTS: dict[str, tuple[str, Said, int]] = {
    # MQTT-3.8.4-8: the maximum QoS granted, not the one asked for
    "less was granted than asked for": ("MQTT-3.8.4-8", [*OPEN, ASKED, (S, suback(1, 0)), (S, publish(1, 1))], 1883),
    "more is asked for later and refused": (
        "MQTT-3.8.4-8",
        [
            *((C, connect()), (S, connack()), (C, subscribe(1, "t", qos=0)), (S, suback(1, 0))),
            *((C, subscribe(2, "t", qos=2)), (S, publish(1, 2)), (S, suback(2, 0x87)), (C, ack(5, 1)), (S, ack(6, 1)), (C, ack(7, 1))),
            (S, publish(2, 1)),
        ],
        1883,
    ),
    "a refused subscription": ("MQTT-3.3.2-3", [*OPEN, ASKED, (S, suback(1, 0x87)), (S, publish())], 1883),
    # RFC 7252 §12.1 for every transport; RFC 8323 §5.1 takes class 7
    "a reserved class over TCP": ("RFC7252-12.1-class", [*SETTINGS, (C, coap_tcp(GET, b"a")), (S, coap_tcp(0x68, b"a"))], 5683),
    "a method of class 1 over TCP": ("RFC7252-12.1-class", [*SETTINGS, (C, coap_tcp(0x21, b"a"))], 5683),
    "a response with a strange token over TCP": (
        "RFC7252-5.3.1-token",
        [*SETTINGS, (C, coap_tcp(GET, b"a")), (S, coap_tcp(CONTENT, b"b"))],
        5683,
    ),
    "a server's Receive Maximum": (
        "MQTT-3.3.4-7",
        [(C, connect(b"\x21\0\1")), (S, connack()), ASKED, (S, suback(1, 2)), (S, publish(1, 1)), (S, publish(2, 1))],
        1883,
    ),
    "a client's PUBCOMP": (
        "MQTT-4.3.3-11",
        [*OPEN, ASKED, (S, suback(1, 2)), (S, publish(3, 2)), (C, ack(5, 3)), (C, ack(7, 3))],
        1883,
    ),
}
"""By what is wrong: the rule, the conversation over TCP, and its port."""
