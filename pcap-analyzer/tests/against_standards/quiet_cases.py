"""Conversations that break no rule, whole or with frames missing: what the capture lacks is no violation."""

from __future__ import annotations

from against_standards.building import (
    ACK,
    CON,
    CONTENT,
    GET,
    NON,
    PING_7,
    PONG_7,
    VALID,
    C,
    S,
    Said,
    ack,
    coap,
    coap_tcp,
    connack,
    connack_311,
    connect,
    connect_311,
    datagram_handshake,
    datagram_record,
    mqtt,
    publish,
    publish_311,
    server_hello,
    suback,
    subscribe,
    text,
)

PING, PONG, CSM = mqtt(12), mqtt(13), coap_tcp(225)
OPEN: Said = [(C, connect()), (S, connack())]
OPEN_311: Said = [(C, connect_311()), (S, connack_311())]
SUBSCRIBED: Said = [*OPEN, (C, subscribe(1, "#", qos=2)), (S, suback(1, 2))]
LONG = publish(payload=b"x" * 100)
CONNECT_31 = mqtt(1, text("MQIsdp") + bytes([3, 0, 0, 60]) + text("a"))
REGISTRATION = [(6, b""), (11, b"t")]
CLIENT_HELLO = datagram_record(22, 0, 0, datagram_handshake(1, 0, b"\xfe\xfd" + b"r" * 32 + b"\0\0\0\2\xc0\xae\1\0"))
SERVER_HELLO = datagram_record(22, 0, 0, datagram_handshake(2, 0, server_hello(0xC0AE, b"\xfe\xfd")))
HANDSHAKE_FAILURE = b"\2\x28"

QUIET: dict[str, tuple[Said, str, int]] = {
    # 3.1.1 §4.3.2: the receiver acknowledges each transmission
    "a QoS 1 PUBLISH sent again": (
        [*OPEN_311, (C, publish_311(1, 1)), (C, publish_311(1, 1, dup=True)), (S, ack(4, 1)), (S, ack(4, 1))],
        "tcp",
        1883,
    ),
    # 3.1.1 §4.3.3: the sender answers each PUBREC, also where PUBCOMP came between
    "a QoS 2 PUBLISH sent again": (
        [
            *OPEN_311,
            *((C, publish_311(1, 2)), (C, publish_311(1, 2, dup=True)), (S, ack(5, 1)), (S, ack(5, 1))),
            *((C, ack(6, 1)), (S, ack(7, 1)), (C, ack(6, 1)), (S, ack(7, 1))),
        ],
        "tcp",
        1883,
    ),
    # MQTT 3.1 §3.2: the first byte of CONNACK's variable header is not used
    "a session of MQTT 3.1 that goes on": (
        [(C, CONNECT_31), (S, connack_311()), (S, publish_311(5, 1, dup=True)), (C, ack(4, 5)), (S, ack(6, 9)), (C, ack(7, 9))],
        "tcp",
        1883,
    ),
    # MQTT 5 §3.1.2.10: from where the client finishes a packet to where it starts the next one
    "a PUBLISH that takes longer than the keep alive": (
        [(C, connect(keep_alive=10)), (S, connack()), (C, LONG[:50], 5.0), (C, LONG[50:], 17.0)],
        "tcp",
        1883,
    ),
    # MQTT 5 §4.9: the send quota of a connection counts its PUBLISH packets
    "a PUBREL of the connection before and Receive Maximum": (
        [
            *((C, connect(clean=False)), (S, connack(present=True, properties=b"\x21\x00\x01"))),
            *((C, ack(6, 5)), (C, publish(6, 1)), (S, ack(7, 5)), (S, ack(4, 6))),
        ],
        "tcp",
        1883,
    ),
    # the column topic_filters has a filter a line
    "a PUBLISH that matches a filter with a line feed": (
        [*OPEN, (C, subscribe(1, "a\nb")), (S, suback(1, 0)), (S, publish(topic="a\nb"))],
        "tcp",
        1883,
    ),
    # RFC 7641 §4.2, RFC 7252 §5.9.1.3
    "a notification 2.03": (
        [
            (C, coap(CON, GET, 1, b"a", REGISTRATION)),
            (S, coap(ACK, CONTENT, 1, b"a", [(4, b"e"), (6, b"\1"), (12, b"")], b"x")),
            (S, coap(NON, VALID, 7, b"a", [(4, b"e"), (6, b"\2")])),
            (S, coap(NON, CONTENT, 8, b"a", [(4, b"e"), (6, b"\3"), (12, b"")], b"x")),
        ],
        "udp",
        5683,
    ),
    # RFC 6347 §4.2.8: another connection between the same ports
    "a handshake behind one that failed": (
        [
            *((C, CLIENT_HELLO), (S, SERVER_HELLO), (C, datagram_record(21, 0, 1, HANDSHAKE_FAILURE))),
            *((C, CLIENT_HELLO), (S, SERVER_HELLO), (C, datagram_record(22, 0, 1, datagram_handshake(16, 1, b"xx")))),
        ],
        "udp",
        5684,
    ),
}
"""By what happens in it: a conversation, its transport and its port."""
MISSING: dict[str, tuple[Said, set[int]]] = {
    "PUBACK of an identifier that is used again": (
        [*OPEN, *(each for _ in range(3) for each in ((C, publish(1, 1)), (S, ack(4, 1))))],
        {3},
    ),
    "PUBACK before others of a client": (
        [*SUBSCRIBED, *(each for number in (1, 2, 3) for each in ((S, publish(number, 1)), (C, ack(4, number))))],
        {5},
    ),
    "CONNECT": ([*SUBSCRIBED, (C, publish())], {0}),
    "CONNACK": ([*SUBSCRIBED, (C, publish())], {1}),
    "PINGREQ and PINGRESP": (
        [
            *((C, connect(keep_alive=10)), (S, connack()), (C, PING, 9.0), (S, PONG, 9.1)),
            *((C, PING, 18.0), (S, PONG, 18.1), (C, PING, 27.0), (S, PONG, 27.1)),
        ],
        {4, 5},
    ),
    "PINGRESP": (
        [
            *((C, connect(keep_alive=10)), (S, connack()), (C, PING, 9.0), (S, PONG, 9.1)),
            *((C, PING, 19.5), (S, PONG, 19.6), (C, PING, 29.5), (S, PONG, 29.6)),
        ],
        {3},
    ),
}
"""By what is missing: an MQTT conversation, and the places in it, from 0, that are in no frame."""
LATER: Said = [
    *((C, publish(1, 1)), (S, ack(4, 1)), (C, publish(1, 1)), (S, ack(4, 1)), (S, publish(1, 1)), (C, ack(4, 1))),
    *(
        (S, publish(1, 2)),
        (C, ack(5, 1)),
        (S, ack(6, 1)),
        (C, ack(7, 1)),
        (S, publish(1, 2)),
        (C, ack(5, 1)),
        (S, ack(6, 1)),
        (C, ack(7, 1)),
    ),
    *((C, PING, 20.0), (S, PONG, 20.1), (C, PING, 85.0), (S, PONG, 85.1)),
]
BOTH_WAYS: dict[str, tuple[Said, str, int]] = {
    "MQTT": ([*SUBSCRIBED, *LATER], "tcp", 1883),
    "CoAP over TCP": (
        [
            *((C, CSM), (S, CSM), (C, coap_tcp(GET, b"a")), (S, coap_tcp(CONTENT, b"a"))),
            *((C, coap_tcp(PING_7, b"p")), (S, coap_tcp(PONG_7, b"p"))),
        ],
        "tcp",
        5683,
    ),
    "CoAP for longer than EXCHANGE_LIFETIME": (
        [
            each
            for number in range(30)
            for each in (
                (C, coap(CON, GET, number, bytes([number]), [(11, b"x")]), number * 10 + 0.1),
                (S, coap(ACK, CONTENT, number, bytes([number]), [(12, b"")], b"x"), number * 10 + 0.2),
            )
        ],
        "udp",
        5683,
    ),
}
"""Conversations of which a capture may hold one direction only."""
