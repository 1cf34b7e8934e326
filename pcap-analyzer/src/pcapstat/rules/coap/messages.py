"""CoAP's messaging layer: Message IDs, retransmission, acknowledgement, congestion control (RFC 7252 §4)."""

from __future__ import annotations

from pcapstat.rules.coap.state import (
    ACK_TIMEOUT_S,
    MAX_RETRANSMIT,
    MAX_TRANSMIT_SPAN_S,
    NSTART,
    PROBING_RATE,
    SECOND_NS,
    State,
    again,
    awaited_by,
    is_group,
    is_request,
    is_response,
    is_same,
    is_within_lifetime,
    other,
    own_bytes,
    rule,
)
from pcapstat.rules.rule import Message


@rule("RFC7252-4.4-message-id", "RFC 7252 §4.4", "error", "a Message ID is not used again within EXCHANGE_LIFETIME")
def message_id_is_free(message: Message, state: State) -> str | None:
    """Judge another message with the same Message ID."""
    before = state.sent.get((message["direction"], message["message_id"])) if message["kind"] in {"CON", "NON"} else None
    if before is None or is_same(before, message) or not is_within_lifetime(before, message):
        return None
    since_s = (message["time_ns"] - before.times_ns[0]) / 1e9
    return f"Message ID {message['message_id']} was another message's {since_s:.3f} s before"


@rule(
    "RFC7252-4.2-timeout",
    "RFC 7252 §4.2, §4.8",
    "warning",
    "retransmissions keep to their schedule: 2 s (ACK_TIMEOUT) after the first transmission at the earliest, each wait twice the last",
)
def back_off_doubles(message: Message, state: State) -> str | None:
    """Judge what comes too early, with a tenth for timers and path. What is late may be a sleeper's, or others were lost before."""
    before = again(message, state)
    if before is None or before.is_answered:
        return None
    wait_s = (message["time_ns"] - before.times_ns[-1]) / SECOND_NS
    since_s = (message["time_ns"] - before.times_ns[0]) / SECOND_NS
    least_s = ACK_TIMEOUT_S * (2 ** len(before.times_ns) - 1)
    if wait_s < ACK_TIMEOUT_S * 0.9:
        return f"sent again after {wait_s:.3f} s where {ACK_TIMEOUT_S} s are the least"
    return f"sent again {since_s:.3f} s after the first time where {least_s} s are the least" if since_s < least_s * 0.9 else None


@rule("RFC7252-4.2-max-retransmit", "RFC 7252 §4.2, §4.8", "warning", "a confirmable message is sent again 4 times at most")
def retransmissions_end(message: Message, state: State) -> str | None:
    """Judge how often a message is sent."""
    before = again(message, state)
    count = len(before.times_ns) if before is not None else 0
    return f"sent again for the {count}th time" if count > MAX_RETRANSMIT else None


@rule("RFC7252-4.2-answered", "RFC 7252 §4.2", "note", "what was acknowledged is not sent again")
def answered_is_not_repeated(message: Message, state: State) -> str | None:
    """Judge a retransmission behind its answer; the answer may have been lost behind the capture point."""
    before = again(message, state)
    return "sent again although it was answered (the answer may be lost on its way)" if before is not None and before.is_answered else None


@rule("RFC7252-4.2-ack", "RFC 7252 §4.2", "error", "an Acknowledgement or Reset echoes the Message ID of a message that came")
def acknowledgement_fits(message: Message, state: State) -> str | None:
    """Judge ACK and RST: of a message that may be from before the capture nothing is known."""
    if message["kind"] not in {"ACK", "RST"}:
        return None
    found = state.sent.get((other(message["direction"]), message["message_id"]))
    if found is None:
        is_broken, asked = state.is_known_since(message), "message" if message["kind"] == "RST" else "CON"
        return f"{message['kind']} of Message ID {message['message_id']}, which no {asked} had" if is_broken else None
    is_strange = message["kind"] == "ACK" and found.kind != "CON" and is_within_lifetime(found, message)
    return f"ACK of Message ID {message['message_id']}, which a {found.kind} had" if is_strange else None


@rule("RFC7252-4.2-ack-content", "RFC 7252 §4.2", "error", "an Acknowledgement carries a response or is Empty, a Reset is Empty")
def acknowledgement_carries_no_request(message: Message, _: State) -> str | None:
    """Judge the code of ACK and RST."""
    is_broken = (message["kind"] == "ACK" and is_request(message)) or (message["kind"] == "RST" and message["code"] != 0)
    return f"{message['kind']} with code {message['variant']}" if is_broken else None


@rule("RFC7252-4.3-non", "RFC 7252 §4.3", "error", "a Non-confirmable message is not Empty")
def non_is_not_empty(message: Message, _: State) -> str | None:
    """Judge an Empty NON."""
    return "an Empty NON" if message["kind"] == "NON" and message["code"] == 0 else None


@rule("RFC7252-8.1-multicast", "RFC 7252 §8.1", "error", "a request to a group is Non-confirmable")
def multicast_is_non(message: Message, _: State) -> str | None:
    """Judge a request to a multicast address."""
    return "a CON to a group" if is_group(message) and message["kind"] == "CON" else None


@rule("RFC7252-4.6-size", "RFC 7252 §4.6", "note", "a message fits 1,152 bytes, so that its datagram is not fragmented")
def message_is_small(message: Message, _: State) -> str | None:
    """Judge the size."""
    own = own_bytes(message)
    return f"{own} bytes" if own > 1152 and message["transport"] == "udp" else None


@rule("RFC7252-4.2-span", "RFC 7252 §4.2, §4.8.2", "warning", "all transmissions of a message are within MAX_TRANSMIT_SPAN (45 s)")
def transmissions_stay_in_their_span(message: Message, state: State) -> str | None:
    """Judge a retransmission by the first transmission, with a tenth more for timers and path."""
    before = again(message, state)
    since_s = (message["time_ns"] - before.times_ns[0]) / SECOND_NS if before is not None else 0.0
    return f"sent again {since_s:.3f} s after the first time" if since_s > MAX_TRANSMIT_SPAN_S * 1.1 else None


@rule("RFC7252-4.7-nstart", "RFC 7252 §4.7, RFC 7641 §4.5.1", "warning", "one interaction is outstanding at a time (NSTART)")
def outstanding_are_few(message: Message, state: State) -> str | None:
    """Judge what shows that a Confirmable message was awaited while others were sent: its answer, or its next transmission.

    Without that it may have been given up, by an ICMP error for example (§4.2).
    """
    sender = message["direction"] if again(message, state) is not None else other(message["direction"])
    for sent in awaited_by(message, state):
        count, first = state.outstanding[sender].overtaking(sent)
        if count >= NSTART:
            numbers = ", ".join(str(each) for each in first)
            return f"{count} Confirmable messages were sent while this one was outstanding: Message ID {numbers}"
    return None


@rule("RFC7252-4.7-probing", "RFC 7252 §4.7", "warning", "Non-confirmable requests to who does not answer keep to PROBING_RATE (1 byte/s)")
def probing_is_slow(message: Message, state: State) -> str | None:
    """Judge a further request; while the one before is awaited still, NSTART forbids it as well."""
    probe = state.probes.get(message["direction"])
    is_judged = message["kind"] == "NON" and is_request(message) and message["no_response"] is None and not is_group(message)
    if probe is None or not is_judged or not state.is_whole:
        return None
    since_s = (message["time_ns"] - probe.since_ns) / SECOND_NS
    is_fast = probe.count > since_s * PROBING_RATE
    return f"{probe.count} bytes in {since_s:.3f} s without an answer" if is_fast else None


@rule("RFC7252-5.2.2-separate", "RFC 7252 §5.2.2", "error", "behind an Empty Acknowledgement the response is in no other Acknowledgement")
def promise_is_kept(message: Message, state: State) -> str | None:
    """Judge an Acknowledgement with a response."""
    answered = state.sent.get((other(message["direction"]), message["message_id"])) if message["kind"] == "ACK" else None
    is_broken = answered is not None and answered.has_empty_answer and is_response(message)
    return "a response in an Acknowledgement behind an Empty one" if is_broken else None


@rule("RFC7252-5.2.2-empty", "RFC 7252 §5.2.2", "error", "the Acknowledgement of a response is Empty")
def acknowledged_response_is_empty(message: Message, state: State) -> str | None:
    """Judge an Acknowledgement of a Confirmable response."""
    answered = state.sent.get((other(message["direction"]), message["message_id"])) if message["kind"] == "ACK" else None
    is_broken = answered is not None and answered.code >= 64 and is_response(message)
    return f"{message['variant']} in the Acknowledgement of a response" if is_broken else None
