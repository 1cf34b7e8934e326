"""Exchanges in Wireshark are those of `pcapstat exchanges` in the standards' less ordinary sequences, which recordings seldom have."""

from __future__ import annotations

from pathlib import Path

import pytest
from against_standards.building import (
    ACK,
    CON,
    CONTENT,
    GET,
    NON,
    RST,
    C,
    S,
    Said,
    ack,
    capture,
    coap,
    connack,
    connack_311,
    connect,
    mqtt,
    packets,
    publish,
    suback,
    subscribe,
    text,
    two_connections,
)
from scapy.utils import wrpcap

from dissectors.test_exchange import of_lua, of_table, shown

OBSERVE, BLOCK2, BLOCK1, NO_RESPONSE, PATH = 6, 23, 27, 258, (11, b"a")
PUT, CHANGED, INCOMPLETE = 3, 68, 136
REGISTERS, ANSWERS = (OBSERVE, b""), (OBSERVE, b"\x01")
AS_PUBLISHED = 0b1000
"""Of a subscription's options (MQTT 5 §3.8.3.1)."""
COLUMNS = ("kind", "outcome", "frame_first", "frame_last", "rtt_ns", "payload_bytes", "retransmissions", "parent")
MS = 1_000_000
NOT_IN_ORDER = ("-o", "tcp.reassemble_out_of_order:FALSE")
"""Wireshark goes on behind a hole."""

Exchange = tuple[str, str, int, int, int | None, int, int, int | None]


def exchange(
    kind: str,
    outcome: str,
    first: int,
    last: int,
    rtt_ms: int | None = None,
    data: int = 0,
    again: int = 0,
    parent: int | None = None,
) -> Exchange:
    """Return an exchange by what is compared with hand-computed values."""
    return (kind, outcome, first, last, None if rtt_ms is None else rtt_ms * MS, data, again, parent)


def get(message_id: int, token: bytes = b"T", *options: tuple[int, bytes], kind: int = CON) -> bytes:
    """Return a GET of /a; a zero-length Observe is the value 0, which registers (RFC 7641 §2)."""
    return coap(kind, GET, message_id, token, sorted((*options, PATH)))


def other(message_id: int, token: bytes = b"T", *options: tuple[int, bytes]) -> bytes:
    """Return a GET of /b."""
    return coap(CON, GET, message_id, token, sorted((*options, (11, b"b"))))


def content(kind: int, message_id: int, token: bytes = b"T", *options: tuple[int, bytes], payload: bytes = b"21") -> bytes:
    """Return a 2.05."""
    return coap(kind, CONTENT, message_id, token, sorted(options), payload)


def empty(kind: int, message_id: int) -> bytes:
    """Return an Empty message (RFC 7252 §4.1)."""
    return coap(kind, 0, message_id)


def block(number: int, more: bool, size: int = 16) -> bytes:
    """Return the value of a block option (RFC 7959 §2.2)."""
    return bytes([number << 4 | more << 3 | size.bit_length() - 5])


def put(message_id: int, number: int, more: bool) -> bytes:
    """Return a PUT of one block of 16 bytes."""
    return coap(CON, PUT, message_id, b"T", [PATH, (BLOCK1, block(number, more))], b"x" * 16)


def changed(message_id: int, number: int) -> bytes:
    """Return a 2.04 of a server that keeps no state between blocks: More is not set (RFC 7959 §2.3, Figure 8)."""
    return coap(ACK, CHANGED, message_id, b"T", [(BLOCK1, block(number, more=False))])


REGISTRATION: Said = [(C, get(1, b"T", REGISTERS)), (S, content(ACK, 1, b"T", ANSWERS))]

COAP: dict[str, tuple[Said, list[Exchange]]] = {
    # RFC 7252 §5.3.2: "the Message ID of the Confirmable request and the Acknowledgment MUST match, and the tokens of the response
    # and original request MUST match"
    "a response on an ACK answers the request with its ID too": (
        [(C, get(1)), (C, get(2)), (S, content(ACK, 1, payload=b"first")), (S, content(ACK, 2))],
        [exchange("GET", "complete", 1, 3, 20, 5), exchange("GET", "complete", 2, 4, 20, 2)],
    ),
    "a request whose token is taken is superseded without an answer": (
        [(C, get(1)), (C, get(2)), (S, content(ACK, 2))],
        [exchange("GET", "superseded", 1, 1), exchange("GET", "complete", 2, 3, 10, 2)],
    ),
    "behind an empty ACK nothing names a superseded request": (
        [(C, get(1)), (S, empty(ACK, 1)), (C, get(2)), (S, content(CON, 9)), (C, empty(ACK, 9))],
        [exchange("GET", "superseded", 1, 2), exchange("GET", "complete", 3, 5, 10, 2)],
    ),
    # RFC 7641 §3.6; a NON was complete when it was sent
    "a reset of a NON notification cancels": (
        [*REGISTRATION, (S, content(NON, 7, b"T", (OBSERVE, b"\x02"))), (C, empty(RST, 7)), (S, content(NON, 8, b"T", (OBSERVE, b"\x03")))],
        [exchange("observe", "cancelled", 1, 2, 10, 2), exchange("notification", "complete", 3, 4, None, 2, parent=1)],
    ),
    # RFC 7641 §3.2: a response without Observe is the last one
    "the last notification brings its data": (
        [*REGISTRATION, (S, content(NON, 7, b"T", (OBSERVE, b"\x02"))), (S, content(NON, 8, payload=b"end"))],
        [
            exchange("observe", "cancelled", 1, 2, 10, 2),
            exchange("notification", "complete", 3, 3, None, 2, parent=1),
            exchange("notification", "complete", 4, 4, None, 3, parent=1),
        ],
    ),
    # RFC 7641 §3.3.1
    "a renewal is a request of its own": (
        [
            *REGISTRATION,
            (C, get(2, b"T", REGISTERS)),
            (S, content(NON, 7, b"T", (OBSERVE, b"\x02"))),
            (S, content(ACK, 2, b"T", (OBSERVE, b"\x03"))),
            (S, content(NON, 8, b"T", (OBSERVE, b"\x04"))),
            (C, empty(RST, 8)),
        ],
        [
            exchange("observe", "complete", 1, 2, 10, 2),
            exchange("observe", "cancelled", 3, 5, 20, 2),
            exchange("notification", "complete", 4, 4, None, 2, parent=3),
            exchange("notification", "complete", 6, 7, None, 2, parent=3),
        ],
    ),
    # RFC 7959 §3.4, Figure 12
    "later blocks of what is observed are asked for by requests of their own": (
        [
            (C, get(1, b"T", REGISTERS)),
            (S, content(ACK, 1, b"T", ANSWERS, (BLOCK2, block(0, more=True)), payload=b"x" * 16)),
            (C, get(2, b"U", (BLOCK2, block(1, more=False)))),
            (S, content(ACK, 2, b"U", (BLOCK2, block(1, more=False)))),
            (S, content(NON, 7, b"T", (OBSERVE, b"\x02"), (BLOCK2, block(0, more=True)), payload=b"x" * 16)),
        ],
        [
            exchange("observe", "open", 1, 2, 10, 16),
            exchange("GET", "complete", 3, 4, 10, 2),
            exchange("notification", "complete", 5, 5, None, 16, parent=1),
        ],
    ),
    "a stateless transfer ends at its last block": (
        [
            (C, put(1, 0, more=True)),
            (S, changed(1, 0)),
            (C, put(2, 1, more=True)),
            (S, changed(2, 1)),
            (C, put(3, 2, more=False)),
            (S, changed(3, 2)),
        ],
        [exchange("PUT block-wise", "complete", 1, 6, 50, 48)],
    ),
    # RFC 7959 §2.9.2: the client begins anew; what it sends then is another transfer
    "a transfer that was refused midway ends there": (
        [
            (C, put(1, 0, more=True)),
            (S, coap(ACK, INCOMPLETE, 1, b"T", [(BLOCK1, block(0, more=False))])),
            (C, put(2, 0, more=True)),
            (S, changed(2, 0)),
            (C, put(3, 1, more=False)),
            (S, changed(3, 1)),
        ],
        [exchange("PUT block-wise", "complete", 1, 2, 10, 16), exchange("PUT block-wise", "complete", 3, 6, 30, 32)],
    ),
    # RFC 7252 §5.10.1, §5.10.2: Uri-Host (3), and Proxy-Uri (35) in the place of all, name the resource too
    "transfers of one path at several hosts are kept apart": (
        [
            (C, get(1, b"1", (3, b"h1"))),
            (S, content(ACK, 1, b"1", (BLOCK2, block(0, more=True)), payload=b"x" * 16)),
            (C, get(2, b"2", (3, b"h2"))),
            (S, content(ACK, 2, b"2", (BLOCK2, block(0, more=True)), payload=b"y" * 16)),
            (C, get(3, b"3", (3, b"h2"), (BLOCK2, block(1, more=False)))),
            (S, content(ACK, 3, b"3", (BLOCK2, block(1, more=False)), payload=b"y")),
            (C, get(4, b"4", (3, b"h1"), (BLOCK2, block(1, more=False)))),
            (S, content(ACK, 4, b"4", (BLOCK2, block(1, more=False)), payload=b"xx")),
        ],
        [exchange("GET block-wise", "complete", 1, 8, 70, 18), exchange("GET block-wise", "complete", 3, 6, 30, 17)],
    ),
    # RFC 7967 §2.1: 26 suppresses all classes of responses, 0 none
    "a request that suppresses responses is not unanswered": (
        [
            (C, coap(NON, PUT, 1, b"1", [PATH, (NO_RESPONSE, b"\x1a")], b"x")),
            (C, coap(CON, PUT, 2, b"2", [PATH, (NO_RESPONSE, b"\x02")], b"x")),
            (S, empty(ACK, 2)),
            (C, coap(NON, PUT, 3, b"3", [PATH, (NO_RESPONSE, b"")], b"x")),
        ],
        [
            exchange("PUT", "suppressed", 1, 1, None, 1),
            exchange("PUT", "suppressed", 2, 3, None, 1),
            exchange("PUT", "unanswered", 4, 4, None, 1),
        ],
    ),
    # RFC 7641 §3.2, §3.6: the registration is older than the capture
    "notifications of a registration before the capture": (
        [
            (S, content(CON, 7, b"T", (OBSERVE, b"\x02"))),
            (C, empty(ACK, 7)),
            (S, content(NON, 8, b"T", (OBSERVE, b"\x03"))),
            (S, content(NON, 9, b"", (OBSERVE, b"\x03"))),
            (C, empty(RST, 8)),
            (S, content(NON, 10, b"T", (OBSERVE, b"\x04"))),
            (S, content(NON, 11, b"", (OBSERVE, b"\x04"))),
        ],
        [
            exchange("notification", "complete", 1, 2, None, 2),
            exchange("notification", "complete", 3, 5, None, 2),
            exchange("notification", "complete", 4, 4, None, 2),
            exchange("notification", "complete", 7, 7, None, 2),
        ],
    ),
    # RFC 7252 §5.3.1, RFC 7959 §2.4: each block is a request of its own, behind which its token is free
    "one token for a transfer and for a request between its blocks": (
        [
            *((C, get(1)), (S, content(ACK, 1, b"T", (BLOCK2, b"\x08"), payload=16 * b"x")), (C, other(2)), (S, content(ACK, 2))),
            *((C, get(3, b"T", (BLOCK2, b"\x10"))), (S, content(ACK, 3, b"T", (BLOCK2, b"\x10")))),
        ],
        [exchange("GET block-wise", "complete", 1, 6, 50, 18), exchange("GET", "complete", 3, 4, 10, 2)],
    ),
    "a transfer that begins anew": (
        [
            *((C, get(1)), (S, content(ACK, 1, b"T", (BLOCK2, b"\x08"), payload=16 * b"x"))),
            *((C, get(2)), (S, content(ACK, 2, b"T", (BLOCK2, b"\x08"), payload=16 * b"x"))),
            *((C, get(3, b"T", (BLOCK2, b"\x10"))), (S, content(ACK, 3, b"T", (BLOCK2, b"\x10")))),
        ],
        [exchange("GET block-wise", "superseded", 1, 2, None, 16), exchange("GET block-wise", "complete", 3, 6, 30, 18)],
    ),
    "transfers of which the next block is not asked for, or does not come": (
        [
            *((C, get(1)), (S, content(ACK, 1, b"T", (BLOCK2, b"\x08"), payload=16 * b"x")), (C, other(2)), (S, content(ACK, 2))),
            *(
                (C, other(3, b"U")),
                (S, content(ACK, 3, b"U", (BLOCK2, b"\x08"), payload=16 * b"x")),
                (C, other(4, b"V", (BLOCK2, b"\x10"))),
            ),
        ],
        [
            exchange("GET block-wise", "open", 1, 2, None, 16),
            exchange("GET", "complete", 3, 4, 10, 2),
            exchange("GET block-wise", "unanswered", 5, 7, None, 16),
        ],
    ),
    "a separate response without token while a transfer without one goes on": (
        [
            *((C, get(1, b"")), (S, content(ACK, 1, b"", (BLOCK2, b"\x08"), payload=16 * b"x")), (C, other(2, b"")), (S, empty(ACK, 2))),
            *((S, content(CON, 7, b"")), (C, empty(ACK, 7)), (C, get(3, b"", (BLOCK2, b"\x10")))),
            (S, content(ACK, 3, b"", (BLOCK2, b"\x10"))),
        ],
        [exchange("GET block-wise", "complete", 1, 8, 70, 18), exchange("GET", "complete", 3, 6, 20, 2)],
    ),
    # RFC 7252 §4.5: the second is a duplicate of the first, which answers nothing
    "a response without a request belongs to no exchange, also when it is sent again": (
        [(C, get(1)), (S, content(ACK, 1)), (S, content(NON, 9, b"X")), (S, content(NON, 9, b"X"))],
        [exchange("GET", "complete", 1, 2, 10, 2)],
    ),
}


@pytest.mark.parametrize("case", COAP)
def test_exchanges_of_coap(case: str, tmp_path: Path) -> None:
    """Requests, registrations and transfers of CoAP over UDP."""
    said, expected = COAP[case]
    check(capture(tmp_path / "coap.pcap", said, "udp", 5683), expected)


def check(path: Path, expected: list[Exchange]) -> None:
    """Hold the dissector against the table, and both against hand-computed values."""
    rows = [of_lua(fields) for _, fields in sorted(shown(path).items(), key=lambda entry: int(entry[0]))]
    assert rows == of_table(path)
    assert [tuple(row[name] for name in COLUMNS) for row in rows] == expected


def test_signals_answer_no_request(tmp_path: Path) -> None:
    """RFC 8323 §5.4: a Pong (7.03) has the token of its Ping (7.02); a Ping without token is none of the GET without token."""
    csm = b"\0\xe1"
    said = [
        (C, csm),
        (S, csm),
        (C, b"\x20\x01\xb1a"),
        (C, b"\0\xe2"),
        (C, b"\x01\xe2\x07"),
        (S, b"\x01\xe3\x09"),
        (S, b"\0\xe3"),
        (S, b"\x01\xe3\x07"),
        (S, b"\x80\x45\xffpayload"),
        (S, b"\0\xe2"),
        (C, b"\0\xe4"),
    ]
    expected = [
        exchange("GET", "complete", 6, 12, 60, 7),
        exchange("ping", "complete", 7, 10, 30),
        exchange("ping", "complete", 8, 11, 30),
        exchange("ping", "unanswered", 13, 13),
    ]
    check(capture(tmp_path / "coap.pcap", said, "tcp", 5683), expected)


@pytest.mark.parametrize(("options", "parents"), [(AS_PUBLISHED, [None, 15]), (0, [None, None])])
def test_retain_as_published_is_a_delivery(options: int, parents: list[int | None], tmp_path: Path) -> None:
    """MQTT 5 §3.3.1.3: RETAIN tells a live message from a kept one, unless the subscription asks to leave it as published."""
    subscriber = [
        (C, connect(identifier="s"), 0.05),
        (S, connack(), 0.06),
        (C, subscribe(1, "t", qos=options), 0.07),
        (S, suback(1, 0), 0.08),
        (S, publish(retain=True, payload=b"kept"), 0.09),
        (S, publish(retain=True, payload=b"live"), 0.12),
    ]
    publisher = [
        (C, connect(identifier="p"), 0.01),
        (S, connack(), 0.02),
        (C, publish(retain=True, payload=b"kept"), 0.03),
        (C, publish(retain=True, payload=b"live"), 0.105),
    ]
    path = two_connections(tmp_path / "mqtt.pcap", publisher, subscriber, 0)
    rows = of_table(path)

    assert [of_lua(fields) for _, fields in sorted(shown(path).items(), key=lambda entry: int(entry[0]))] == rows
    assert [row["parent"] for row in rows if row["direction"] == "s2c"] == parents


@pytest.mark.parametrize(
    ("clean", "present", "delays_ms"),
    [(True, False, [2, 2]), (False, False, [2, 2]), (False, True, [79, 22])],
    ids=["clean", "lost", "resumed"],
)
def test_what_was_published_before_the_subscription_is_not_delivered(
    clean: bool, present: bool, delays_ms: list[int], tmp_path: Path
) -> None:
    """MQTT 5 §3.1.2.4, §3.2.2.1.1: a session that the server did not go on with has no subscription before its SUBSCRIBE."""
    publisher = [(C, connect(identifier="p"), 0.01), (S, connack(), 0.02)]
    publisher += [(C, publish(payload=b"same"), time_s) for time_s in (0.03, 0.107, 0.127)]
    subscriber = [
        (C, connect(identifier="s", clean=clean), 0.05),
        (S, connack(present=present), 0.06),
        (C, subscribe(1, "t"), 0.07),
        (S, suback(1, 0), 0.08),
        (S, publish(payload=b"same"), 0.109),
        (S, publish(payload=b"same"), 0.129),
    ]
    path = two_connections(tmp_path / "mqtt.pcap", publisher, subscriber, 0)
    rows = of_table(path)

    assert [of_lua(fields) for _, fields in sorted(shown(path).items(), key=lambda entry: int(entry[0]))] == rows
    assert [round(row["delay_ns"] / 1e6) for row in rows if row["delay_ns"] is not None] == delays_ms


def aliased(topic: str, payload: bytes) -> bytes:
    """Return a PUBLISH with topic alias 1 (MQTT 5 §3.3.2.3.4)."""
    return publish(topic=topic, properties=b"\x23\0\1", payload=payload)


@pytest.mark.parametrize(("is_lost", "parents"), [(True, [None, 15, 16]), (False, [None, 16, 17])], ids=["lost", "there"])
def test_an_alias_behind_a_gap_names_no_topic(is_lost: bool, parents: list[int | None], tmp_path: Path) -> None:
    """MQTT 5 §3.3.2.3.4: a PUBLISH set the alias anew, to "b". The delivery in "a" is of a publisher that the capture does not show."""
    said = [(C, connect(identifier="p"), 0.05), (S, connack(), 0.06), (C, aliased("a", b"1"), 0.07), (C, aliased("b", b"2"), 0.08)]
    said += [(C, aliased("", b"3"), 0.09), (C, aliased("c", b"4"), 0.1), (C, aliased("", b"5"), 0.11)]
    published = packets([*said, (C, mqtt(12), 0.12), (S, mqtt(13), 0.13)], "tcp", 1883)
    said = [(C, connect(identifier="s"), 0.01), (S, connack(), 0.02), (C, subscribe(1, "#"), 0.03), (S, suback(1, 0), 0.04)]
    said += [(S, publish(topic=topic, payload=payload), 0.2) for topic, payload in (("a", b"3"), ("c", b"4"), ("c", b"5"))]
    received = packets(said, "tcp", 1883, client_port=40001)
    if is_lost:
        del published[6]
    path = tmp_path / "mqtt.pcap"
    wrpcap(str(path), [*received[:7], *published, *received[7:]])
    rows = of_table(path)

    assert [row["parent"] for row in rows if row["kind"] == "PUBLISH QoS 0" and row["direction"] == "s2c"] == parents
    assert [of_lua(fields) for _, fields in sorted(shown(path, NOT_IN_ORDER).items(), key=lambda entry: int(entry[0]))] == rows


def test_a_publication_that_is_refused_is_not_delivered(tmp_path: Path) -> None:
    """MQTT 5 §4.3.2: behind PUBACK with 0x87 (not authorized) the broker has no such message; it delivers the equal one behind it."""
    subscriber = [(C, connect(identifier="s"), 0.01), (S, connack(), 0.02), (C, subscribe(1, "t"), 0.03), (S, suback(1, 0), 0.04)]
    publisher = [(C, connect(identifier="p"), 0.05), (S, connack(), 0.06), (C, publish(1, 1), 0.07), (S, ack(4, 1, 0x87), 0.08)]
    publisher += [(C, publish(2, 1), 0.09), (S, ack(4, 2), 0.1)]
    path = two_connections(tmp_path / "mqtt.pcap", [*subscriber, (S, publish(), 0.11)], publisher, 0)
    rows = of_table(path)

    assert [round(row["delay_ns"] / 1e6) for row in rows if row["delay_ns"] is not None] == [20]
    assert [of_lua(fields) for _, fields in sorted(shown(path).items(), key=lambda entry: int(entry[0]))] == rows


def test_a_late_delivery_is_linked_with_its_publication(tmp_path: Path) -> None:
    """Within two minutes of the last publication each one is linked with its delivery, whatever came in between; an older one is not."""
    times = {b"a": 0.1, b"b": 30.0, b"c": 100.0, b"d": 121.0, b"e": 130.0}
    publisher = [(C, connect(identifier="p", keep_alive=0), 0.01), (S, connack(), 0.02)]
    publisher += [(C, publish(payload=payload), time_s) for payload, time_s in times.items()]
    subscriber = [
        (C, connect(identifier="s", keep_alive=0), 0.03),
        (S, connack(), 0.04),
        (S, publish(payload=b"a"), 135.0),
        (S, publish(payload=b"b"), 136.0),
        (S, publish(payload=b"c"), 137.0),
        (S, publish(payload=b"e"), 138.0),
    ]
    path = two_connections(tmp_path / "mqtt.pcap", publisher, subscriber, 0)
    rows = of_table(path)
    first = {round(row["delay_ns"] / 1e9, 1) for row in rows if row["delay_ns"] is not None}
    assert first == {106.0, 37.0, 8.0}
    assert [of_lua(fields) for _, fields in sorted(shown(path).items(), key=lambda entry: int(entry[0]))] == rows


def test_dup_of_mqtt_3_1_is_a_retransmission(tmp_path: Path) -> None:
    """MQTT 3.1 §2.1: DUP is set when PUBLISH, PUBREL, SUBSCRIBE or UNSUBSCRIBE are sent again."""
    asks, leaves = text("t") + b"\0", text("t")
    said = [
        (C, mqtt(1, text("MQIsdp") + b"\3\2\0\x3c" + text("a"))),
        (S, connack_311()),
        (C, mqtt(8, b"\0\1" + asks, 2)),
        (C, mqtt(8, b"\0\1" + asks, 2 | 8)),
        (S, mqtt(9, b"\0\1\0")),
        (C, mqtt(3, text("t") + b"\0\2x", 4)),
        (S, ack(5, 2)),
        (C, ack(6, 2)),
        (C, mqtt(6, b"\0\2", 2 | 8)),
        (S, ack(7, 2)),
        (C, mqtt(10, b"\0\3" + leaves, 2)),
        (C, mqtt(10, b"\0\3" + leaves, 2 | 8)),
        (S, mqtt(11, b"\0\3")),
    ]
    expected = [
        exchange("CONNECT", "complete", 4, 5, 10),
        exchange("SUBSCRIBE", "complete", 6, 8, 20, again=1),
        exchange("PUBLISH QoS 2", "complete", 9, 13, 40, 1, again=1),
        exchange("UNSUBSCRIBE", "complete", 14, 16, 20, again=1),
    ]
    check(capture(tmp_path / "mqtt.pcap", said, "tcp", 1883), expected)


def test_what_an_earlier_connection_brought_is_sent_again(tmp_path: Path) -> None:
    """MQTT 5 §4.4: in a session that the server goes on with, what was not acknowledged is sent again with DUP."""
    first = [(C, connect(clean=False)), (S, connack()), (C, publish(1, 1))]
    second = [(C, connect(clean=False)), (S, connack(present=True)), (C, publish(1, 1, dup=True)), (S, ack(4, 1))]
    expected = [
        exchange("CONNECT", "complete", 4, 5, 10),
        exchange("PUBLISH QoS 1", "unanswered", 6, 6, data=1),
        exchange("CONNECT", "complete", 10, 11, 10),
        exchange("PUBLISH QoS 1", "complete", 12, 13, 10, again=1),
    ]
    check(two_connections(tmp_path / "mqtt.pcap", first, second, 1.0), expected)


def test_requests_of_mqtt_sn_are_sent_again_as_they_were(tmp_path: Path) -> None:
    """MQTT-SN 1.2 §5.3.4, §6.13: what is not answered is sent again; only PUBLISH and SUBSCRIBE have DUP. §6.3, §6.4: wills."""
    said = [
        (C, b"\x07\x04\x0c\x01\x00\x3ca"),
        (C, b"\x07\x04\x0c\x01\x00\x3ca"),
        (S, b"\x02\x06"),
        (C, b"\x04\x07\x00w"),
        (S, b"\x02\x08"),
        (C, b"\x03\x09m"),
        (S, b"\x03\x05\x00"),
        (C, b"\x06\x12\x00\x00\x01t"),
        (C, b"\x06\x12\x80\x00\x01t"),
        (S, b"\x08\x13\x00\x00\x07\x00\x01\x00"),
        (C, b"\x07\x0a\x00\x00\x00\x02t"),
        (C, b"\x07\x0a\x00\x00\x00\x02t"),
        (S, b"\x07\x0b\x00\x08\x00\x02\x00"),
        (C, b"\x08\x0c\x40\x00\x08\x00\x03x"),
        (S, b"\x04\x0f\x00\x03"),
        (C, b"\x04\x10\x00\x03"),
        (C, b"\x04\x10\x00\x03"),
        (S, b"\x04\x0e\x00\x03"),
        (C, b"\x03\x1cn"),
        (S, b"\x03\x1d\x00"),
        (C, b"\x08\x0c\x61\x00\x01\x00\x00x"),
    ]
    expected = [
        exchange("CONNECT", "complete", 1, 7, 60, again=1),
        exchange("SUBSCRIBE", "complete", 8, 10, 20, again=1),
        exchange("REGISTER", "complete", 11, 13, 20, again=1),
        exchange("PUBLISH QoS 2", "complete", 14, 18, 40, 1, again=1),
        exchange("WILLMSGUPD", "complete", 19, 20, 10),
        exchange("PUBLISH QoS -1", "complete", 21, 21, None, 1),
    ]
    check(capture(tmp_path / "mqttsn.pcap", said, "udp", 1883), expected)
