"""CoAP: what RFC 7252, RFC 7641 and RFC 7959 ask of messages, as far as a capture can show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pcapstat.rules.rule import Message, collector

RULES, rule = collector("coap")
ACK_TIMEOUT_S, ACK_RANDOM_FACTOR, MAX_RETRANSMIT, NSTART = 2, 1.5, 4, 1
EXCHANGE_LIFETIME_NS, MAX_TRANSMIT_SPAN_NS = 247 * 10**9, 45 * 10**9
"""RFC 7252 §4.8: the defaults."""
ONCE = frozenset(
    {
        *("Uri-Host", "Uri-Port", "Content-Format", "Max-Age", "Accept", "Size1", "Proxy-Uri", "Proxy-Scheme", "If-None-Match"),
        *("Observe", "OSCORE", "Hop-Limit", "Block1", "Block2", "Size2", "No-Response", "Echo", "EDHOC"),
    }
)
"""Options that may be there once (RFC 7252 §5.10, RFC 7641 §2, RFC 7959 §2.1, and the others' definitions)."""


@dataclass
class Sent:
    """A confirmable message: when it was sent, how often, the waits between, and whether it was answered."""

    content: tuple[Any, ...]
    times_ns: list[int]
    is_answered: bool = False


@dataclass
class State:
    """What two endpoints have shown so far."""

    sent: dict[tuple[str, int], Sent] = field(default_factory=dict)
    """By direction and Message ID: the last message of each."""
    tokens: dict[tuple[str, str], int] = field(default_factory=dict)
    """By the requester's direction and token: how many requests used it."""
    observed: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By token: the last notification's Observe value and time."""
    formats: dict[str, int | None] = field(default_factory=dict)
    """By token: the Content-Format of the first notification."""
    is_whole: bool = True

    def take(self, message: Message) -> None:
        """Learn from a message that was judged."""
        key = (message["direction"], message["message_id"])
        if message["kind"] in {"CON", "NON"}:
            before = self.sent.get(key)
            if before is not None and is_same(before, message) and is_within_lifetime(before, message):
                before.times_ns.append(message["time_ns"])
            else:
                self.sent[key] = Sent(content_of(message), [message["time_ns"]])
        else:
            answered = self.sent.get((other(message["direction"]), message["message_id"]))
            if answered is not None:
                answered.is_answered = True
        token = message["token"] or ""
        if is_request(message):
            asked = (message["direction"], token)
            self.tokens[asked] = self.tokens.get(asked, 0) + 1
            if message["observe"] == 0 and not message["is_retransmission"]:
                self.observed.pop(token, None)
                self.formats.pop(token, None)
        elif is_notification(message) and not message["is_retransmission"]:
            self.observed[token] = (message["observe"], message["time_ns"])
            self.formats.setdefault(token, message["content_format"])


def other(direction: str) -> str:
    """Return the opposite direction."""
    return "s2c" if direction == "c2s" else "c2s"


def is_request(message: Message) -> bool:
    """Whether it is a request (RFC 7252 §5.8)."""
    return 0 < (message["code"] or 0) < 32


def is_response(message: Message) -> bool:
    """Whether it is a response (RFC 7252 §5.9)."""
    return 64 <= (message["code"] or 0) < 192


def is_notification(message: Message) -> bool:
    """Whether it is a notification (RFC 7641 §3.2)."""
    return message["observe"] is not None and 64 <= (message["code"] or 0) < 96


def content_of(message: Message) -> tuple[Any, ...]:
    """Return what tells a message from another one with its Message ID."""
    return (message["kind"], message["code"], message["token"], message["options"], message["payload_hash"])


def is_same(before: Sent, message: Message) -> bool:
    """Whether a message was sent before."""
    return before.content == content_of(message)


def is_within_lifetime(before: Sent, message: Message) -> bool:
    """Whether a Message ID is still that of the message before (RFC 7252 §4.8.2)."""
    return bool(message["time_ns"] - before.times_ns[0] < EXCHANGE_LIFETIME_NS)


def options(message: Message) -> list[str]:
    """Return the names of the options, in order."""
    return [option.partition(": ")[0] for option in (message["options"] or "").split("; ") if option]


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
    "the first retransmission comes 2 to 3 s after, each further one after twice the wait",
)
def back_off_doubles(message: Message, state: State) -> str | None:
    """Judge the wait before a retransmission, with a tenth to either side for timers and path."""
    before = again(message, state)
    if before is None or before.is_answered:
        return None
    wait_s = (message["time_ns"] - before.times_ns[-1]) / 1e9
    if len(before.times_ns) == 1:
        least, most = float(ACK_TIMEOUT_S), ACK_TIMEOUT_S * ACK_RANDOM_FACTOR
    else:
        last_s = (before.times_ns[-1] - before.times_ns[-2]) / 1e9
        least = most = 2 * last_s
    is_right = least * 0.9 <= wait_s <= most * 1.1
    return None if is_right else f"sent again after {wait_s:.3f} s where {least:.3f} to {most:.3f} s are due"


@rule("RFC7252-4.2-max-retransmit", "RFC 7252 §4.2, §4.8", "warning", "a confirmable message is sent again 4 times at most")
def retransmissions_end(message: Message, state: State) -> str | None:
    """Judge how often a message is sent."""
    before = again(message, state)
    count = len(before.times_ns) if before is not None else 0
    return f"sent again for the {count}th time" if count > MAX_RETRANSMIT else None


@rule("RFC7252-4.2-answered", "RFC 7252 §4.2", "warning", "what was acknowledged is not sent again")
def answered_is_not_repeated(message: Message, state: State) -> str | None:
    """Judge a retransmission behind its answer; the answer may have been lost behind the capture point."""
    before = again(message, state)
    return "sent again although it was answered (the answer may be lost on its way)" if before is not None and before.is_answered else None


def again(message: Message, state: State) -> Sent | None:
    """Return the confirmable message that this one repeats."""
    if message["kind"] != "CON":
        return None
    before = state.sent.get((message["direction"], message["message_id"]))
    return before if before is not None and is_same(before, message) and is_within_lifetime(before, message) else None


@rule("RFC7252-4.2-ack", "RFC 7252 §4.2", "error", "an Acknowledgement or Reset echoes the Message ID of a message that came")
def acknowledgement_fits(message: Message, state: State) -> str | None:
    """Judge ACK and RST."""
    if message["kind"] not in {"ACK", "RST"} or not state.is_whole:
        return None
    found = state.sent.get((other(message["direction"]), message["message_id"]))
    if found is None or (message["kind"] == "ACK" and found.content[0] != "CON"):
        return f"{message['kind']} of Message ID {message['message_id']}, which no {'CON' if message['kind'] == 'ACK' else 'message'} had"
    return None


@rule("RFC7252-4.2-ack-content", "RFC 7252 §4.2", "error", "an Acknowledgement carries a response or is Empty, a Reset is Empty")
def acknowledgement_carries_no_request(message: Message, _: State) -> str | None:
    """Judge the code of ACK and RST."""
    is_broken = (message["kind"] == "ACK" and is_request(message)) or (message["kind"] == "RST" and message["code"] != 0)
    return f"{message['kind']} with code {message['variant']}" if is_broken else None


@rule("RFC7252-4.3-non", "RFC 7252 §4.3", "error", "a Non-confirmable message is not Empty")
def non_is_not_empty(message: Message, _: State) -> str | None:
    """Judge an Empty NON."""
    return "an Empty NON" if message["kind"] == "NON" and message["code"] == 0 else None


@rule("RFC7252-5.3.1-token", "RFC 7252 §5.3.1", "error", "a response echoes the token of a request")
def token_is_echoed(message: Message, state: State) -> str | None:
    """Judge a response's token."""
    if not is_response(message) or not state.is_whole:
        return None
    asked = state.tokens.get((other(message["direction"]), message["token"] or ""), 0)
    return None if asked else f"no request had the token {message['token']!r}"


@rule("RFC7252-5.4.5-repeated", "RFC 7252 §5.4.5", "error", "an option that is not repeatable is there once")
def option_is_once(message: Message, _: State) -> str | None:
    """Judge repeated options."""
    # of an OSCORE message the inner options stand behind the outer ones: each set has its own Observe (RFC 8613 §4.1.3.5)
    names = options(message) if message["inner_code"] is None else []
    twice = sorted(name for name in ONCE if names.count(name) > 1)
    return f"several {', '.join(twice)}" if twice else None


@rule("RFC7252-8.1-multicast", "RFC 7252 §8.1", "error", "a request to a group is Non-confirmable")
def multicast_is_non(message: Message, _: State) -> str | None:
    """Judge a request to a multicast address."""
    first = message["destination_address"].split(".")[0]
    is_group = message["destination_address"].lower().startswith("ff") or (first.isdigit() and 224 <= int(first) < 240)
    return "a CON to a group" if is_group and message["kind"] == "CON" else None


@rule("RFC7252-4.6-size", "RFC 7252 §4.6", "note", "a message fits 1,152 bytes, so that its datagram is not fragmented")
def message_is_small(message: Message, _: State) -> str | None:
    """Judge the size."""
    own = message["header_bytes"] + message["option_bytes"] + message["payload_bytes"]
    return f"{own} bytes" if own > 1152 else None


@rule("RFC7641-3.4-order", "RFC 7641 §3.4, §4.4", "warning", "notifications have increasing sequence numbers")
def notifications_are_newer(message: Message, state: State) -> str | None:
    """Judge Observe values by the comparison of §3.4: modulo 2^24, anything goes after 128 s."""
    before = state.observed.get(message["token"] or "") if is_notification(message) and not message["is_retransmission"] else None
    if before is None:
        return None
    value, time_ns = before
    now = message["observe"]
    is_newer = (value < now and now - value < 2**23) or (value > now and value - now > 2**23) or message["time_ns"] > time_ns + 128 * 10**9
    return None if is_newer else f"Observe {now} behind {value}: old, out of order on the path, or not counted on"


@rule("RFC7641-4.2-format", "RFC 7641 §4.2", "error", "a notification has the Content-Format of the first response")
def notification_keeps_format(message: Message, state: State) -> str | None:
    """Judge Content-Format."""
    token = message["token"] or ""
    if not is_notification(message) or token not in state.formats or message["content_format"] == state.formats[token]:
        return None
    return f"Content-Format {message['content_format']} where the first had {state.formats[token]}"


@rule("RFC7959-2.2-szx", "RFC 7959 §2.2", "error", "a block size exponent of 7 is reserved")
def szx_is_not_reserved(message: Message, _: State) -> str | None:
    """Judge SZX."""
    return "SZX 7" if message["transport"] == "udp" and 7 in {message["block1_szx"], message["block2_szx"]} else None


@rule("RFC7959-2.3-size", "RFC 7959 §2.3", "error", "a block that is not the last has the size that its option says")
def block_is_full(message: Message, _: State) -> str | None:
    """Judge the payload of a block with the more flag."""
    is_asked = is_request(message)
    more, szx = (message["block1_more"], message["block1_szx"]) if is_asked else (message["block2_more"], message["block2_szx"])
    if not more or szx is None or szx == 7 or message["is_truncated"]:
        return None
    size = 16 << szx
    return None if message["payload_bytes"] == size else f"{message['payload_bytes']} bytes in a block of {size}"


def begin(is_whole: bool) -> Any:
    """Return the state of two endpoints at the start. The capture may have begun later than they did."""
    return State(is_whole=is_whole)
