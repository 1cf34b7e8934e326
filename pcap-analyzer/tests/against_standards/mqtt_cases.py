"""Of each rule of MQTT: what is said in a capture that breaks it, and in one that nearly does."""

from __future__ import annotations

from against_standards.building import (
    ASSIGNED,
    METHOD,
    REASON_STRING,
    RESPONSE_INFORMATION,
    RESPONSE_TOPIC,
    C,
    S,
    Said,
    ack,
    auth,
    by,
    connack,
    connack_311,
    connect,
    connect_311,
    disconnect,
    mqtt,
    publish,
    publish_311,
    suback,
    subscribe,
    text,
    unsuback,
    unsubscribe,
)

OPEN: Said = [(C, connect()), (S, connack())]
OPEN_311: Said = [(C, connect_311()), (S, connack_311())]
TOLD: Said = [*OPEN, (C, subscribe(1, "t", qos=1)), (S, suback(1, 1))]
"""A client that is sent what is published to "t"."""
RECEIVE_2, ALIAS_5, SIZE_20 = b"\x21\x00\x02", b"\x22\x00\x05", b"\x27\x00\x00\x00\x14"
EXPIRY, SUBSCRIPTION_7 = b"\x11\x00\x00\x00\x05", b"\x0b\x07"
SHA, PLAIN = by(METHOD, "SHA"), by(METHOD, "PLAIN")
PING, PONG, BYE = mqtt(12), mqtt(13), mqtt(14)


def answered(properties: bytes) -> Said:
    """Return an opening whose CONNACK has properties."""
    return [(C, connect()), (S, connack(properties=properties))]


def asked(properties: bytes) -> Said:
    """Return an opening whose CONNECT has properties."""
    return [(C, connect(properties=properties)), (S, connack())]


CONTENTS: dict[str, tuple[Said, Said]] = {
    "format": ([*OPEN, (C, b"\x36\x05\x00\x01t\x00\x01")], [*OPEN, (C, publish(1, 2)), (S, ack(5, 1))]),
    "MQTT-1.5.4-1": ([*OPEN, (C, mqtt(3, b"\0\x03\xed\xa0\x80\0x"))], [*OPEN, (C, publish(topic="\ufffd\ud7ff"))]),
    "MQTT-1.5.4-2": ([*OPEN, (C, publish(topic="a\0b"))], [*OPEN, (C, publish(topic="a\1b"))]),
    "MQTT-1.5.5-1": (
        [*OPEN, (C, b"\x30\x85\x00" + text("t") + b"\0x")],
        [*OPEN, (C, b"\x30\x80\x01" + text("t") + b"\0" + b"x" * 124)],
    ),
    "MQTT-2.1.2-direction": ([*OPEN, (S, PING)], [*OPEN, (C, PING), (S, PONG)]),
    "MQTT-2.2.2-once": (
        [*OPEN, (C, publish(properties=b"\x01\x00\x01\x00"))],
        [*OPEN, (C, publish(properties=b"\x26\x00\x01a\x00\x01b" * 2))],
    ),
    "MQTT-2.2.2-value": (answered(b"\x24\x02"), answered(b"\x24\x01")),
    "MQTT-4.7.3-1": (
        [*OPEN, (C, publish(topic=""))],
        [*answered(ALIAS_5), (C, publish(topic=" ", properties=b"\x23\x00\x01")), (C, publish(topic="", properties=b"\x23\x00\x01"))],
    ),
    "MQTT-3.2.2-8": ([(C, connect()), (S, connack(0x8B))], [(C, connect()), (S, connack(0x8A))]),
    "MQTT-3.4.2-1": ([*OPEN, (C, publish(1, 1)), (S, ack(4, 1, 0x92))], [*OPEN, (C, publish(1, 1)), (S, ack(4, 1, 0x10))]),
    "MQTT-3.5.2-1": ([*OPEN, (C, publish(1, 2)), (S, ack(5, 1, 0x92))], [*OPEN, (C, publish(1, 2)), (S, ack(5, 1, 0x91))]),
    "MQTT-3.6.2-1": (
        [*OPEN, (C, publish(1, 2)), (S, ack(5, 1)), (C, ack(6, 1, 0x91))],
        [*OPEN, (C, publish(1, 2)), (S, ack(5, 1)), (C, ack(6, 1, 0x92))],
    ),
    "MQTT-3.7.2-1": (
        [*OPEN, (C, publish(1, 2)), (S, ack(5, 1)), (C, ack(6, 1)), (S, ack(7, 1, 0x91))],
        [*OPEN, (C, publish(1, 2)), (S, ack(5, 1)), (C, ack(6, 1)), (S, ack(7, 1, 0x92))],
    ),
    "MQTT-3.9.3-2": ([*OPEN, (C, subscribe(1, "a")), (S, suback(1, 3))], [*OPEN, (C, subscribe(1, "a")), (S, suback(1, 0x87))]),
    "MQTT-3.11.3-2": (
        [*OPEN, (C, unsubscribe(1, "a", "b")), (S, unsuback(1, 0))],
        [*OPEN, (C, unsubscribe(1, "a", "b")), (S, unsuback(1, 0, 0x11))],
    ),
    "MQTT-3.14.2-1": ([*OPEN, (C, disconnect(0x92))], [*OPEN, (C, disconnect(0x93))]),
    "MQTT-3.15.2-1": ([*asked(SHA), (C, auth(0x17, "SHA"))], [(C, connect(SHA)), (S, connack(properties=SHA)), (C, auth(0x19, "SHA"))]),
}
CONNECTION: dict[str, tuple[Said, Said]] = {
    "MQTT-3.1.0-1": ([(C, PING), *OPEN], [*OPEN, (C, PING), (S, PONG)]),
    "MQTT-3.1.0-2": ([*OPEN, (C, connect())], OPEN),
    "MQTT-3.1.2-22": (
        [(C, connect(keep_alive=2)), (S, connack()), (C, subscribe(1, "t")), (S, suback(1, 0)), (S, publish(), 3.5)],
        [(C, connect(keep_alive=2)), (S, connack()), (C, subscribe(1, "t")), (S, suback(1, 0)), (S, publish(), 3.0)],
    ),
    "MQTT-3.1.2-24": (
        [(C, connect(properties=SIZE_20)), (S, connack()), (C, subscribe(1, "t")), (S, suback(1, 0)), (S, publish(payload=b"x" * 15))],
        [
            *asked(SIZE_20),
            (C, subscribe(1, "t")),
            (S, suback(1, 0)),
            (S, publish(payload=b"x" * 14)),
            (C, publish(payload=b"x" * 15)),
        ],
    ),
    "MQTT-3.1.2-20": (
        [(C, connect(keep_alive=2)), (S, connack()), (C, PING, 3.0)],
        [(C, connect(keep_alive=2)), (S, connack()), (C, PING, 2.0), (S, PONG)],
    ),
    "MQTT-3.1.2-28": (
        answered(by(RESPONSE_INFORMATION, "r")),
        [(C, connect(b"\x19\x01")), (S, connack(properties=by(RESPONSE_INFORMATION, "r")))],
    ),
    "MQTT-3.1.2-29": (
        [*asked(b"\x17\x00"), (C, subscribe(1, "a")), (S, suback(1, 0, properties=by(REASON_STRING, "fine")))],
        [*asked(b"\x17\x01"), (C, subscribe(1, "a")), (S, suback(1, 0, properties=by(REASON_STRING, "fine")))],
    ),
    "MQTT-3.1.2-30": (
        [(C, connect(SHA)), (C, PING), (S, connack(properties=SHA)), (S, PONG)],
        [(C, connect(SHA)), (S, auth(0x18, "SHA")), (C, auth(0x18, "SHA")), (S, connack(properties=SHA)), (C, PING), (S, PONG)],
    ),
    "MQTT-3.2.0-1": (
        [(C, connect()), (C, subscribe(1, "t")), (S, publish()), (S, connack()), (S, suback(1, 0))],
        [(C, connect()), (C, subscribe(1, "t")), (S, connack()), (S, publish()), (S, suback(1, 0))],
    ),
    "MQTT-3.2.0-2": ([*OPEN, (S, connack())], OPEN),
    "MQTT-3.2.2-2": ([(C, connect()), (S, connack(present=True))], [(C, connect(clean=False)), (S, connack(present=True))]),
    "MQTT-3.2.2-6": ([(C, connect(clean=False)), (S, connack(0x87, present=True))], [(C, connect()), (S, connack(0x87))]),
    "MQTT-3.2.2-7": ([(C, connect()), (S, connack(0x87)), (S, PONG)], [(C, connect()), (S, connack(0x87))]),
    "MQTT-3.2.2-16": (
        [(C, connect(identifier="")), (S, connack())],
        [(C, connect(identifier="")), (S, connack(properties=by(ASSIGNED, "b")))],
    ),
    "MQTT311-3.1.2-22": (
        [(C, connect_311(flags=0x40, rest=text("secret"))), (S, connack_311())],
        [(C, connect_311(flags=0xC0, rest=text("") + text("secret"))), (S, connack_311())],
    ),
    "MQTT311-3.1.3-7": (
        [(C, connect_311(clean=False, identifier="")), (S, connack_311(2))],
        [(C, connect_311(clean=True, identifier="")), (S, connack_311())],
    ),
    "MQTT-3.12.4-1": (
        [(C, connect(keep_alive=2)), (S, connack()), (C, PING, 1.0), (C, PING, 3.0)],
        [(C, connect(keep_alive=2)), (S, connack()), (C, PING, 1.0), (C, PING, 2.9), (S, PONG), (S, PONG)],
    ),
    "MQTT-3.14.0-1": ([(C, connect()), (S, disconnect(0x82))], [*OPEN, (S, disconnect(0x82))]),
    "MQTT-3.14.2-2": ([*OPEN, (S, disconnect(0x8B, EXPIRY))], [*asked(EXPIRY), (C, disconnect(0, EXPIRY))]),
    "MQTT-3.14.2-expiry": ([*OPEN, (C, disconnect(0, EXPIRY))], [*asked(EXPIRY), (C, disconnect(0, EXPIRY))]),
    "MQTT-3.14.4-1": ([*OPEN, (C, BYE), (C, PING)], [*OPEN, (C, PING), (S, PONG), (C, BYE)]),
    "MQTT-4.12.0-2": (
        [(C, connect(SHA)), (S, auth(0x19, "SHA"))],
        [(C, connect(SHA)), (S, auth(0x18, "SHA"))],
    ),
    "MQTT-4.12.0-5": (
        [(C, connect(SHA)), (S, auth(0x18, "PLAIN"))],
        [(C, connect(SHA)), (S, connack(properties=SHA)), (C, auth(0x19, "SHA")), (S, mqtt(15))],
    ),
    "MQTT-4.12.0-6": ([*OPEN, (C, auth(0x19, "SHA"))], [(C, connect(SHA)), (S, connack(properties=SHA)), (C, auth(0x19, "SHA"))]),
}
PUBLICATION: dict[str, tuple[Said, Said]] = {
    "MQTT-2.2.1-3": (
        [*OPEN, (C, publish(7, 1)), (C, subscribe(7, "a"))],
        [
            *OPEN_311,
            (C, publish_311(7, 1)),
            (S, ack(4, 7)),
            (C, mqtt(8, b"\x00\x07" + text("a") + b"\0", 2)),
            (S, mqtt(9, b"\x00\x07\x00")),
            (C, publish_311(7, 1)),
            (C, publish_311(7, 1, dup=True)),
        ],
    ),
    "MQTT-2.2.1-4": ([*TOLD, (S, publish(0, 1))], [*TOLD, (S, publish(1, 1)), (C, publish(1, 1))]),
    "MQTT-2.2.1-5": ([*OPEN, (C, publish(1, 1)), (S, ack(4, 2))], [*OPEN, (C, publish(1, 1)), (S, ack(4, 1))]),
    "MQTT-3.2.2-11": ([*answered(b"\x24\x01"), (C, publish(1, 2))], [*answered(b"\x24\x01"), (C, publish(1, 1))]),
    "MQTT-3.2.2-14": ([*answered(b"\x25\x00"), (C, publish(retain=True))], [*answered(b"\x25\x01"), (C, publish(retain=True))]),
    "MQTT-3.3.1-2": ([*OPEN, (C, publish(dup=True))], [*OPEN_311, (C, publish_311(1, 1)), (C, publish_311(1, 1, dup=True))]),
    "MQTT-3.3.1-3": (
        [*OPEN, (C, publish(1, 1, dup=True))],
        [(C, connect(clean=False)), (S, connack(present=True)), (C, publish(1, 1, dup=True))],
    ),
    "MQTT-3.3.2-2": ([*OPEN, (C, publish(topic="a/#"))], [*OPEN, (C, publish(topic="$a/b c"))]),
    "MQTT-3.3.2-3": (
        [*OPEN, (C, subscribe(1, "#", "a/+/c")), (S, suback(1, 0, 0)), (S, publish(topic="$a/b"))],
        [*OPEN, (C, subscribe(1, "$share/g/a/+/c", "d/#")), (S, suback(1, 0, 0)), (S, publish(topic="a//c")), (S, publish(topic="d"))],
    ),
    "MQTT-3.3.2-7": (
        [*answered(ALIAS_5), (C, publish(topic="", properties=b"\x23\x00\x01"))],
        [*answered(ALIAS_5), (C, publish(properties=b"\x23\x00\x01")), (C, publish(topic="", properties=b"\x23\x00\x01"))],
    ),
    "MQTT-3.3.2-8": (
        [*OPEN, (C, publish(properties=b"\x23\x00\x00"))],
        [*answered(ALIAS_5), (C, publish(properties=b"\x23\x00\x01"))],
    ),
    "MQTT-3.3.2-9": (
        [*answered(ALIAS_5), (C, publish(properties=b"\x23\x00\x06"))],
        [*answered(ALIAS_5), (C, publish(properties=b"\x23\x00\x05"))],
    ),
    "MQTT-3.3.2-14": (
        [*OPEN, (C, publish(properties=by(RESPONSE_TOPIC, "a/+")))],
        [*OPEN, (C, publish(properties=by(RESPONSE_TOPIC, "a") + b"\x26" + text("b") + text("; Response Topic: +")))],
    ),
    "MQTT-3.3.4-1": (
        [*OPEN, (C, publish(1, 1)), (S, ack(5, 1))],
        [*OPEN, (C, publish(1, 2)), (S, ack(5, 1)), (C, ack(6, 1)), (S, ack(7, 1))],
    ),
    "MQTT-3.3.4-3": (
        [*OPEN, (C, subscribe(1, "t", properties=SUBSCRIPTION_7)), (S, suback(1, 0)), (S, publish())],
        [
            *OPEN,
            (C, subscribe(1, "t", properties=SUBSCRIPTION_7)),
            (C, subscribe(2, "+")),
            (S, suback(1, 0)),
            (S, suback(2, 0)),
            (S, publish(properties=SUBSCRIPTION_7)),
            (S, publish()),
        ],
    ),
    "MQTT-3.3.4-6": (
        [*OPEN, (C, publish(properties=SUBSCRIPTION_7))],
        [*OPEN, (C, subscribe(1, "t", properties=SUBSCRIPTION_7)), (S, suback(1, 0)), (S, publish(properties=SUBSCRIPTION_7))],
    ),
    "MQTT-3.3.4-7": (
        [*answered(RECEIVE_2), *((C, publish(number, 1)) for number in (1, 2, 3))],
        [*answered(RECEIVE_2), (C, publish(1, 1)), (C, publish(2, 2)), (S, ack(4, 1)), (C, publish(3, 1)), (C, publish())],
    ),
    "MQTT-3.8.4-8": ([*TOLD, (S, publish(1, 2))], [*TOLD, (S, publish(1, 1)), (S, publish())]),
    "MQTT-4.3.3-4": (
        [*OPEN, (C, publish(1, 2)), (C, ack(6, 1))],
        [*OPEN, (C, publish(1, 2)), (S, ack(5, 1, 0x10)), (C, ack(6, 1))],
    ),
    "MQTT-4.3.3-6": (
        [*OPEN_311, (C, publish_311(1, 2)), (S, ack(5, 1)), (C, ack(6, 1)), (C, publish_311(1, 2, dup=True))],
        [*OPEN_311, (C, publish_311(1, 2)), (S, ack(5, 1)), (C, publish_311(1, 2, dup=True))],
    ),
    "MQTT-4.3.3-11": (
        [*OPEN, (C, publish(1, 2)), (S, ack(5, 1)), (S, ack(7, 1))],
        [*OPEN, (C, publish(1, 2)), (S, ack(5, 1)), (C, ack(6, 1)), (S, ack(7, 1))],
    ),
    "MQTT-4.4.0-1": (
        [*OPEN, (C, publish(1, 1)), (C, publish(1, 1, dup=True))],
        [(C, connect(clean=False)), (S, connack(present=True)), (C, publish(1, 1, dup=True)), (C, publish(2, 1))],
    ),
    "MQTT-4.6.0-2": (
        [*TOLD, (S, publish(1, 1)), (S, publish(2, 1)), (C, ack(4, 2))],
        [*OPEN, (C, publish(1, 1)), (C, publish(2, 1)), (S, ack(4, 2)), (S, ack(4, 1))],
    ),
    "MQTT-4.6.0-4": (
        [*OPEN, (C, publish(1, 2)), (C, publish(2, 2)), (S, ack(5, 2)), (S, ack(5, 1)), (C, ack(6, 1))],
        [*OPEN, (C, publish(1, 2)), (C, publish(2, 2)), (S, ack(5, 2)), (S, ack(5, 1)), (C, ack(6, 2)), (C, ack(6, 1))],
    ),
}
SUBSCRIPTION: dict[str, tuple[Said, Said]] = {
    "MQTT-2.2.1-6": ([*OPEN, (C, subscribe(1, "a")), (S, suback(2, 0))], [*OPEN, (C, subscribe(1, "a")), (S, suback(1, 0))]),
    "MQTT-3.2.2-available": (
        [*answered(b"\x28\x00"), (C, subscribe(1, "a/+")), (S, suback(1, 0xA2))],
        [*answered(b"\x28\x00"), (C, subscribe(1, "a", properties=SUBSCRIPTION_7)), (S, suback(1, 0))],
    ),
    "MQTT-3.8.3-2": ([*OPEN, (C, mqtt(8, b"\x00\x01\x00", 2))], [*OPEN, (C, subscribe(1, "a"))]),
    "MQTT-3.8.3-qos": ([*OPEN, (C, subscribe(1, "a", qos=3))], [*OPEN, (C, subscribe(1, "a", qos=2))]),
    "MQTT-3.8.4-6": (
        [*OPEN, (C, subscribe(1, "a", "b")), (S, suback(1, 0))],
        [*OPEN, (C, subscribe(1, "a", "b\n")), (S, suback(1, 0, 0x80))],
    ),
    "MQTT-3.10.3-2": ([*OPEN, (C, unsubscribe(1))], [*OPEN, (C, unsubscribe(1, "a"))]),
    "MQTT-4.7.1-1": ([*OPEN, (C, subscribe(1, "a/b+"))], [*OPEN, (C, subscribe(1, "+/a/#", "#"))]),
    "MQTT-4.8.2-1": ([*OPEN, (C, subscribe(1, "$share/a"))], [*OPEN, (C, subscribe(1, "$share/a/+", "$shared"))]),
}
UNNAMED_311: tuple[Said, Said] = (
    [(C, connect_311(clean=False, identifier="")), (S, connack_311())],
    [(C, connect_311(clean=False, identifier="")), (S, connack_311(2))],
)
"""MQTT311-3.1.3-8: the capture that nearly breaks it breaks MQTT311-3.1.3-7, which the client is refused for."""
STAY: Said = [(C, connect(clean=False)), (S, connack())]
AGAIN: Said = [(C, connect(clean=False)), (S, connack(present=True))]
TWO: dict[str, tuple[tuple[Said, Said], tuple[Said, Said]]] = {
    "MQTT-3.1.4-3": (
        ([*STAY, (C, PING, 2.0), (S, PONG, 2.1)], AGAIN),
        ([*STAY, (C, PING, 0.9), (S, PONG, 2.1), (S, disconnect(0x8E), 2.2)], AGAIN),
    ),
    "MQTT-4.6.0-1": (
        ([*STAY, (C, publish(2, 1)), (C, publish(1, 1))], [*AGAIN, (C, publish(1, 1, dup=True)), (C, publish(2, 1, dup=True))]),
        ([*STAY, (C, publish(2, 1)), (C, publish(1, 1))], [*AGAIN, (C, publish(2, 1, dup=True)), (C, publish(1, 1, dup=True))]),
    ),
}
"""Rules over two connections of a client, the second of which begins a second after the first."""
TAKEN_OVER: dict[str, tuple[Said, Said, set[str]]] = {
    "PUBACK": ([*STAY, (C, publish(1, 1), 2.0), (S, ack(4, 1), 2.1)], AGAIN, {"MQTT-3.1.4-3"}),
    "PUBREC": ([*STAY, (C, publish(1, 2), 2.0), (S, ack(5, 1), 2.1)], AGAIN, {"MQTT-3.1.4-3"}),
    "SUBACK": ([*STAY, (C, subscribe(1, "t"), 2.0), (S, suback(1, 0), 2.1)], AGAIN, {"MQTT-3.1.4-3"}),
    "the second connection is refused": ([*STAY, (C, PING, 2.0), (S, PONG, 2.1)], [(C, connect(clean=False)), (S, connack(0x87))], set()),
    "another client": ([*STAY, (C, PING, 2.0), (S, PONG, 2.1)], [(C, connect(clean=False, identifier="b")), (S, connack())], set()),
}
"""By what the server sends in the old connection, or what the new one is: both connections, and what is broken (MQTT 5 §3.1.4)."""
MQTT = CONTENTS | CONNECTION | PUBLICATION | SUBSCRIPTION
