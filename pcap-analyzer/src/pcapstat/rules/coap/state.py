"""What two CoAP endpoints have shown so far, and how their rows are read."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache

from pcapstat.errors import PcapstatError
from pcapstat.rules.rule import Message, collector
from pcapstat.theory import coap

RULES, rule = collector("coap")
ACK_TIMEOUT_S, MAX_RETRANSMIT, NSTART, PROBING_RATE = 2, 4, 1, 1
EXCHANGE_LIFETIME_NS, MAX_TRANSMIT_SPAN_S = 247 * 10**9, 45
"""RFC 7252 §4.8: the defaults."""
SECOND_NS, VALID = 10**9, 67
KEPT_NS, SWEEP_LEAST = 2 * EXCHANGE_LIFETIME_NS, 512
"""How long messages are kept: longer than any answer takes; and how many are kept in any case."""
MESSAGE_IDS, SHOWN = 2**16, 5
"""How many Message IDs there are, and how many of them an explanation names."""
Options = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Sent:
    """A message with a Message ID of its sender's: when it was sent, and how it was answered."""

    kind: str
    code: int
    token: str
    content: int
    """A hash of what tells it from another message with its Message ID."""
    times_ns: list[int]
    identifications: list[int | None]
    """IP identifications of its transmissions."""
    block1_num: int | None
    block2: tuple[int, int] | None
    """Of a request: where the block that it asks for begins, and its size, in bytes."""
    is_notification: bool
    subject: tuple[str | None, str | None]
    """Path and query."""
    since: int = 0
    """How many Confirmable messages its sender had sent when it was last seen to wait for an answer."""
    is_waiting: bool = False
    is_answered: bool = False
    has_empty_answer: bool = False


@dataclass
class Outstanding:
    """Confirmable messages of one side: those that wait for an answer, and when all were sent for the first time."""

    waiting: OrderedDict[int, Sent] = field(default_factory=OrderedDict)
    """By Message ID, in order."""
    asking: dict[str, dict[int, Sent]] = field(default_factory=dict)
    """By token and Message ID: the requests among them."""
    times_ns: list[int] = field(default_factory=list)
    message_ids: list[int] = field(default_factory=list)
    """Of the last messages, in order; `forgotten` were sent before them."""
    forgotten: int = 0

    def put(self, message: Message, sent: Sent) -> None:
        """Take a new message; what waits for longer than EXCHANGE_LIFETIME was given up."""
        while self.waiting and not is_within_lifetime(next(iter(self.waiting.values())), message):
            self.end(next(iter(self.waiting)))
        if len(self.times_ns) == 2 * MESSAGE_IDS:
            del self.times_ns[:MESSAGE_IDS], self.message_ids[:MESSAGE_IDS]
            self.forgotten += MESSAGE_IDS
        self.times_ns.append(message["time_ns"])
        self.message_ids.append(message["message_id"])
        self.waiting[message["message_id"]] = sent
        sent.is_waiting = True
        self.see(sent)
        if 0 < sent.code < 32:
            self.asking.setdefault(sent.token, {})[message["message_id"]] = sent

    def see(self, sent: Sent) -> None:
        """Take note that a message is seen to wait."""
        sent.since = self.forgotten + len(self.times_ns)

    def end(self, message_id: int) -> None:
        """Take a message out of those that wait."""
        sent = self.waiting.pop(message_id, None)
        if sent is None:
            return
        sent.is_waiting = False
        asking = self.asking.get(sent.token, {})
        asking.pop(message_id, None)
        if not asking:
            self.asking.pop(sent.token, None)

    def overtaking(self, sent: Sent) -> tuple[int, list[int]]:
        """Return how many others were sent while a message waited, within ACK_TIMEOUT, and the Message IDs of the first of them."""
        if not sent.is_waiting:
            return 0, []
        first = max(0, sent.since - self.forgotten)
        end = bisect_left(self.times_ns, sent.times_ns[-1] + ACK_TIMEOUT_S * SECOND_NS, first)
        return end - first, self.message_ids[first : min(end, first + SHOWN)]


@dataclass
class Probe:
    """Non-confirmable requests that nothing has answered: since when, and their bytes."""

    since_ns: int
    count: int


@dataclass
class State:
    """What two endpoints have shown so far. `is_whole` tells that they were captured from their start without a gap."""

    sent: dict[tuple[str, int], Sent] = field(default_factory=dict)
    """By direction and Message ID: the last message of each."""
    outstanding: dict[str, Outstanding] = field(default_factory=lambda: {"c2s": Outstanding(), "s2c": Outstanding()})
    """By direction."""
    probes: dict[str, Probe] = field(default_factory=dict)
    tokens: dict[str, set[str]] = field(default_factory=lambda: {"c2s": set(), "s2c": set()})
    """By the requester's direction: the tokens of all requests."""
    requests: dict[tuple[str, str], Sent] = field(default_factory=dict)
    """By the requester's direction and token: requests that no response has answered; of several with a token the last one."""
    observed: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By token: the last notification's Observe value and time."""
    formats: dict[str, int | None] = field(default_factory=dict)
    """By token: the Content-Format of the first notification."""
    confirmed_ns: dict[str, int] = field(default_factory=dict)
    """By token: when the client last showed that it is there, or was asked to."""
    reset_ns: dict[str, int] = field(default_factory=dict)
    """By token: when the client rejected a notification."""
    served: dict[tuple[str, tuple[str | None, str | None]], tuple[int, int]] = field(default_factory=dict)
    """By the requester's direction, path and query: where the last block of a response ended, and its size."""
    pings: dict[str, list[str]] = field(default_factory=lambda: {"c2s": [], "s2c": []})
    """By direction: tokens of Ping messages over TCP that wait for Pong."""
    aborted: set[str] = field(default_factory=set)
    heard: set[str] = field(default_factory=set)
    """Directions that the capture has messages of: it may hold one only."""
    first_ns: int | None = None
    identification: dict[str, int] = field(default_factory=dict)
    """By direction: the IP identification of the first packet that has one."""
    identifying: set[str] = field(default_factory=set)
    """Directions whose sender gives its packets different ones: then equal ones are of one packet."""
    sweep_at: int = SWEEP_LEAST
    """How many messages are kept before those are looked for that can be forgotten."""
    is_whole: bool = True

    def lose(self) -> None:
        """Take note that messages are missing."""
        self.is_whole = False

    def take(self, message: Message) -> None:
        """Learn from a message that was judged."""
        self.heard.add(message["direction"])
        self.take_identification(message)
        if self.first_ns is None:
            self.first_ns = message["time_ns"]
        self.probes.pop(other(message["direction"]), None)
        if message["kind"] in {"CON", "NON"}:
            self.take_new(message)
        elif message["kind"] in {"ACK", "RST"}:
            self.take_answer(message)
        elif message["transport"] == "tcp":
            self.take_signal(message)
        if is_request(message):
            self.take_request(message)
        elif is_response(message):
            self.take_response(message)

    def take_identification(self, message: Message) -> None:
        """Learn whether the sender gives its packets IP identifications that tell them apart."""
        direction, identification = message["direction"], message["ip_identification"]
        if identification is not None and self.identification.setdefault(direction, identification) != identification:
            self.identifying.add(direction)

    def is_doubled(self, before: Sent, message: Message) -> bool:
        """Whether it is a transmission of before that the network doubled (RFC 7252 §4.5): what is sent again is another packet."""
        return message["direction"] in self.identifying and message["ip_identification"] in before.identifications

    def take_new(self, message: Message) -> None:
        """Follow a message with a Message ID of its sender's, or one of its transmissions."""
        key = (message["direction"], message["message_id"])
        before = self.sent.get(key)
        if before is not None and is_same(before, message) and is_within_lifetime(before, message):
            if self.is_doubled(before, message):
                return
            before.times_ns.append(message["time_ns"])
            before.identifications.append(message["ip_identification"])
            self.outstanding[message["direction"]].see(before)
            return
        if len(self.sent) >= self.sweep_at:
            self.sweep(message["time_ns"])
        self.sent[key] = sent_of(message)
        outstanding = self.outstanding[message["direction"]]
        outstanding.end(message["message_id"])
        if message["kind"] == "CON":
            outstanding.put(message, self.sent[key])
        elif is_request(message) and message["no_response"] is None and not is_group(message):
            probe = self.probes.setdefault(message["direction"], Probe(message["time_ns"], 0))
            probe.count += own_bytes(message)

    def sweep(self, now_ns: int) -> None:
        """Forget messages whose Message IDs have long been free, so that memory is that of the last minutes."""
        self.sent = {key: sent for key, sent in self.sent.items() if now_ns - sent.times_ns[-1] < KEPT_NS}
        self.requests = {key: sent for key, sent in self.requests.items() if now_ns - sent.times_ns[-1] < KEPT_NS}
        self.sweep_at = max(SWEEP_LEAST, 2 * len(self.sent))

    def take_answer(self, message: Message) -> None:
        """Follow an Acknowledgement or Reset."""
        answered = self.sent.get((other(message["direction"]), message["message_id"]))
        self.outstanding[other(message["direction"])].end(message["message_id"])
        if answered is None:
            return
        answered.is_answered = True
        answered.has_empty_answer |= message["kind"] == "ACK" and message["code"] == 0
        if is_response(message):
            self.serve(message, answered)
        if answered.is_notification and message["kind"] == "RST":
            self.reset_ns[answered.token] = message["time_ns"]

    def serve(self, message: Message, request: Sent) -> None:
        """Follow the blocks of responses."""
        block = asked_block(message) if is_success(message) and message["block2_more"] else None
        if block is not None:
            self.served[other(message["direction"]), request.subject] = (sum(block), block[1])

    def take_signal(self, message: Message) -> None:
        """Follow signaling messages (RFC 8323 §5)."""
        direction, kind, token = message["direction"], message["kind"], message["token"] or ""
        if kind == "Ping":
            self.pings[direction].append(token)
        elif kind == "Pong" and token in self.pings[other(direction)]:
            self.pings[other(direction)].remove(token)
        elif kind == "Abort":
            self.aborted.add(direction)

    def take_request(self, message: Message) -> None:
        """Follow a request: its token, and what it registers."""
        token = message["token"] or ""
        self.tokens[message["direction"]].add(token)
        if token and message["kind"] in {"CON", "NON"} and not message["is_retransmission"]:
            self.requests[message["direction"], token] = self.sent[message["direction"], message["message_id"]]
        if message["observe"] == 0 and not message["is_retransmission"]:
            self.observed.pop(token, None)
            self.formats.pop(token, None)
            self.reset_ns.pop(token, None)
            self.confirmed_ns[token] = message["time_ns"]

    def take_response(self, message: Message) -> None:
        """Follow a response: what it ends, and the notification that it is."""
        token = message["token"] or ""
        requester = self.outstanding[other(message["direction"])]
        for message_id in list(requester.asking.get(token, ())):
            requester.end(message_id)
        request = self.requests.pop((other(message["direction"]), token), None)
        if request is not None and message["kind"] != "ACK":
            self.serve(message, request)
        if not is_notification(message):
            return
        if message["kind"] == "CON" or token not in self.confirmed_ns:
            self.confirmed_ns[token] = message["time_ns"]
        if not message["is_retransmission"]:
            self.observed[token] = (message["observe"], message["time_ns"])
            if message["code"] != VALID:
                self.formats.setdefault(token, message["content_format"])

    def is_known_since(self, message: Message) -> bool:
        """Whether the capture shows all that a message may answer: over UDP what was sent within EXCHANGE_LIFETIME before it."""
        if not self.knows_peer(message):
            return False
        is_long = self.first_ns is not None and message["time_ns"] - self.first_ns > EXCHANGE_LIFETIME_NS
        return message["transport"] == "tcp" or is_long

    def knows_peer(self, message: Message) -> bool:
        """Whether the capture has what the receiver of a message sends, without a gap."""
        return self.is_whole and other(message["direction"]) in self.heard


def again(message: Message, state: State) -> Sent | None:
    """Return the confirmable message that this one repeats; what the network doubled repeats none."""
    before = state.sent.get((message["direction"], message["message_id"])) if message["kind"] == "CON" else None
    if before is None or not is_same(before, message) or not is_within_lifetime(before, message):
        return None
    return None if state.is_doubled(before, message) else before


def awaited_by(message: Message, state: State) -> list[Sent]:
    """Return the Confirmable messages that a message shows to be outstanding: that it answers, or is another transmission of."""
    peers = state.outstanding[other(message["direction"])]
    if message["kind"] in {"ACK", "RST"}:
        return [peers.waiting[message["message_id"]]] if message["message_id"] in peers.waiting else []
    before = again(message, state)
    if before is not None:
        return [] if before.is_answered else [before]
    return list(peers.asking.get(message["token"] or "", {}).values()) if is_response(message) else []


def sent_of(message: Message) -> Sent:
    """Return what is kept of a message."""
    return Sent(
        message["kind"],
        message["code"] or 0,
        message["token"] or "",
        content_of(message),
        [message["time_ns"]],
        [message["ip_identification"]],
        message["block1_num"],
        asked_block(message),
        is_notification(message),
        (message["uri_path"], message["uri_query"]),
    )


def asked_block(message: Message) -> tuple[int, int] | None:
    """Return where the block begins that a request asks for with Block2, and its size: the whole body from its start without the option."""
    if message["block2_num"] is None:
        return None
    size = block_bytes(message["block2_szx"])
    return message["block2_num"] * size, size


def block_bytes(exponent: int) -> int:
    """Return a block's size; 7 counts like 6 (RFC 7959 §2.2, RFC 8323 §6)."""
    return 16 << min(exponent, 6)


def other(direction: str) -> str:
    """Return the opposite direction."""
    return "s2c" if direction == "c2s" else "c2s"


def is_request(message: Message) -> bool:
    """Whether it is a request (RFC 7252 §5.8)."""
    return 0 < (message["code"] or 0) < 32


def is_response(message: Message) -> bool:
    """Whether it is a response (RFC 7252 §5.9)."""
    return 64 <= (message["code"] or 0) < 192


def is_success(message: Message) -> bool:
    """Whether it is a response of class 2 (RFC 7252 §5.9.1)."""
    return 64 <= (message["code"] or 0) < 96


def is_notification(message: Message) -> bool:
    """Whether it is a notification (RFC 7641 §3.2)."""
    return message["observe"] is not None and is_success(message)


def is_group(message: Message) -> bool:
    """Whether it goes to a multicast address."""
    address = message["destination_address"].lower()
    first = address.split(".")[0]
    return bool(address.startswith("ff") or (first.isdigit() and 224 <= int(first) < 240))


def content_of(message: Message) -> int:
    """Return a hash of what tells a message from another one with its Message ID."""
    return hash((message["kind"], message["code"], message["token"], message["options"], message["payload_hash"]))


def is_same(before: Sent, message: Message) -> bool:
    """Whether a message was sent before."""
    return before.content == content_of(message)


def is_within_lifetime(before: Sent, message: Message) -> bool:
    """Whether a Message ID is still that of the message before (RFC 7252 §4.8.2)."""
    return bool(message["time_ns"] - before.times_ns[0] < EXCHANGE_LIFETIME_NS)


def own_bytes(message: Message) -> int:
    """Return the message's length."""
    return int(message["header_bytes"] + message["option_bytes"] + message["payload_bytes"] + message["opaque_bytes"])


def options(message: Message) -> Options:
    """Return options in order; none where a value with "; " in it makes the column ambiguous, which the bytes tell, and none of OSCORE's.

    Of an OSCORE message the inner options stand behind the outer ones: each set has its own (RFC 8613 §4.1).
    """
    return () if message["is_oscore"] or not message["options"] else read_options(message["options"], message["option_bytes"])


@lru_cache(maxsize=256)
def read_options(text: str, count: int) -> Options:
    """Read the column `options`; nothing where the options in it do not make `count` bytes."""
    given = coap.from_text(text)
    try:
        length = sum(line.least for line in coap.options(given))
    except (PcapstatError, ValueError):
        return ()
    return tuple(given) if length == count else ()


def names(message: Message) -> list[str]:
    """Return the names of the options, in order; a number stands for one that has no name, or a length that it may not have."""
    return [name for name, _ in options(message)]
