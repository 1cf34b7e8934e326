"""The ideal run of a scenario: who sends which bytes when, at the receiver of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pcapstat.synth.scenario import Scenario
from pcapstat.theory import coap as coap_sizes

PAYLOAD = b"Hi!"


@dataclass(frozen=True, order=True)
class Saying:
    """Bytes of one message at a time: `conversation` 0 is the receiver's, 1 the publisher's."""

    time_ms: float
    conversation: int
    from_client: bool = field(compare=False)
    content: bytes = field(compare=False)
    is_repeated: bool = field(compare=False, default=False)


def payload(scenario: Scenario, number: int) -> bytes:
    """Return the numbered test payload of Study A, as long as the scenario says."""
    text = PAYLOAD + f"{number:07d}".encode()
    return (text * (scenario.payload_bytes // len(text) + 1))[: scenario.payload_bytes]


def sayings(scenario: Scenario) -> list[Saying]:
    """Return all messages in the order of their times at the capture point."""
    return sorted(PATTERNS[scenario.protocol, scenario.pattern](scenario))


def due_ms(scenario: Scenario, number: int) -> float:
    """Return when the data message with this number comes.

    One whose first transmission is lost comes with its retransmission; on a stream what was said behind it waits for it (RFC 9293 §3.1).
    """
    time_ms = transmitted_ms(scenario, number)
    if scenario.transport == "udp":
        return time_ms
    return max([time_ms, *(transmitted_ms(scenario, lost) for lost in scenario.loss if lost < number)])


def transmitted_ms(scenario: Scenario, number: int) -> float:
    """Return when the transmission of a data message comes that is not lost."""
    time_ms = 10 * scenario.rtt_ms + number * scenario.interval_ms
    if number not in scenario.loss:
        return time_ms
    is_confirmable = scenario.protocol == "coap" and scenario.kind == "CON"
    return time_ms + (scenario.ack_timeout_ms if is_confirmable else scenario.rto_ms)


def is_lost_for_good(scenario: Scenario, number: int) -> bool:
    """Whether nobody sends it again: NON over UDP, QoS 0 of MQTT-SN."""
    is_unreliable = (scenario.protocol == "coap" and scenario.kind == "NON") or (scenario.protocol == "mqtt-sn" and scenario.qos == 0)
    return number in scenario.loss and is_unreliable


def coap_message(kind: int, code: int, message_id: int, token: bytes, options: list[tuple[str, str]], content: bytes = b"") -> bytes:
    """Encode a CoAP message (RFC 7252 §3); options by name, as the size model knows them. Message IDs begin anew behind 65,535."""
    from pcapstat.synth.encode import coap_options

    head = bytes([1 << 6 | kind << 4 | len(token), code]) + (message_id % 2**16).to_bytes(2, "big") + token
    ordered = sorted(options, key=lambda option: coap_sizes.known(option[0]).number)
    return head + coap_options(ordered) + (b"\xff" + content if content else b"")


CON, NON, ACK = 0, 1, 2
GET, CONTENT = 1, 69


def observe(scenario: Scenario) -> Iterator[Saying]:
    """RFC 7641: a registration, its answer, then a notification each."""
    token = bytes(range(1, scenario.token_bytes + 1))
    half = scenario.rtt_ms / 2
    yield Saying(half, 0, True, coap_message(CON, GET, 1, token, [("Observe", "0"), ("Uri-Path", scenario.resource), *scenario.options]))
    kind = CON if scenario.kind == "CON" else NON
    for number in range(1, scenario.count + 1):
        if is_lost_for_good(scenario, number):
            continue
        options = [("Observe", str(number + 1)), ("Content-Format", "0")]
        content = payload(scenario, number)
        time_ms = due_ms(scenario, number)
        if number == 1:
            yield Saying(half + scenario.rtt_ms, 0, False, coap_message(ACK, CONTENT, 1, token, options, content))
            continue
        is_checked = scenario.confirm_every > 0 and number % scenario.confirm_every == 0
        sent_as = CON if is_checked else kind
        yield Saying(time_ms, 0, False, coap_message(sent_as, CONTENT, 1000 + number, token, options, content))
        if sent_as == CON:
            yield Saying(time_ms + 0.01, 0, True, coap_message(ACK, 0, 1000 + number, b"", []))


def get(scenario: Scenario) -> Iterator[Saying]:
    """RFC 7252: a request and a piggybacked response each; over NON both are NON."""
    kind, answer = (CON, ACK) if scenario.kind == "CON" else (NON, NON)
    for number in range(1, scenario.count + 1):
        if is_lost_for_good(scenario, number):
            continue
        token = number.to_bytes(8, "big")[8 - scenario.token_bytes :]
        time_ms = due_ms(scenario, number)
        asked = [("Uri-Path", scenario.resource), *scenario.options]
        yield Saying(time_ms - scenario.rtt_ms, 0, True, coap_message(kind, GET, number, token, asked))
        reply_id = number if kind == CON else 30000 + number
        yield Saying(
            time_ms, 0, False, coap_message(answer, CONTENT, reply_id, token, [("Content-Format", "0")], payload(scenario, number))
        )


def publish(scenario: Scenario) -> Iterator[Saying]:
    """MQTT 5: connections of subscriber and publisher with the broker, then a PUBLISH each over both legs."""
    from pcapstat.synth import encode

    rtt = scenario.rtt_ms
    opening = [(True, encode.connect("receiver")), (False, encode.connack())]
    opening += [(True, encode.subscribe(1, scenario.resource, scenario.qos)), (False, encode.suback(1, scenario.qos))]
    for step, (from_client, content) in enumerate(opening):
        yield Saying(rtt * (step + 1), 0, from_client, content)
    for step, (from_client, content) in enumerate([(True, encode.connect("sender")), (False, encode.connack())]):
        yield Saying(rtt * (step + 5), 1, from_client, content)
    for number in range(1, scenario.count + 1):
        has_topic = not scenario.topic_alias or number == 1
        time_ms = due_ms(scenario, number)
        content = payload(scenario, number)
        alias = 1 if scenario.topic_alias else None
        yield from flow(
            scenario, time_ms, 1, True, number, encode.publish(scenario.resource if has_topic else "", number, scenario.qos, content, alias)
        )
        yield from flow(scenario, time_ms + rtt, 0, False, number, encode.publish(scenario.resource, number, scenario.qos, content, None))


def flow(scenario: Scenario, time_ms: float, conversation: int, from_client: bool, number: int, content: bytes) -> Iterator[Saying]:
    """MQTT 5 §4.3: a PUBLISH with what its quality of service adds."""
    from pcapstat.synth import encode

    steps = {0: [], 1: [4], 2: [5, 6, 7]}[scenario.qos]
    yield Saying(time_ms, conversation, from_client, content)
    for step, kind in enumerate(steps, start=1):
        is_answer = step % 2 == 1
        yield Saying(time_ms + step * scenario.rtt_ms / 2, conversation, from_client ^ is_answer, encode.acknowledgement(kind, number))


def stream(scenario: Scenario) -> Iterator[Saying]:
    """Messages of an application of its own, from client to server; in WebSocket frames behind the handshake where that is asked for."""
    from pcapstat.synth import encode

    if scenario.protocol == "websocket":
        yield Saying(scenario.rtt_ms, 0, True, encode.UPGRADE)
        yield Saying(2 * scenario.rtt_ms, 0, False, encode.SWITCHING)
    for number in range(1, scenario.count + 1):
        content = payload(scenario, number)
        yield Saying(due_ms(scenario, number), 0, True, encode.websocket(content) if scenario.protocol == "websocket" else content)


def publish_sn(scenario: Scenario) -> Iterator[Saying]:
    """MQTT-SN 1.2: a publisher with its gateway: CONNECT, REGISTER, then a PUBLISH each."""
    from pcapstat.synth import encode

    rtt = scenario.rtt_ms
    for step, (from_client, content) in enumerate(encode.sn_opening(scenario.resource)):
        yield Saying(rtt * (step + 1), 0, from_client, content)
    for number in range(1, scenario.count + 1):
        if is_lost_for_good(scenario, number):
            continue
        time_ms = due_ms(scenario, number)
        yield Saying(time_ms, 0, True, encode.sn_publish(number, scenario.qos, payload(scenario, number)))
        for step, content in enumerate(encode.sn_flow(number, scenario.qos), start=1):
            yield Saying(time_ms + step * rtt / 2, 0, step % 2 == 0, content)


PATTERNS = {
    ("coap", "observe"): observe,
    ("coap", "get"): get,
    ("mqtt", "publish"): publish,
    ("tcp", "stream"): stream,
    ("websocket", "stream"): stream,
    ("mqtt-sn", "publish"): publish_sn,
}
"""What makes the messages of each protocol's pattern."""
