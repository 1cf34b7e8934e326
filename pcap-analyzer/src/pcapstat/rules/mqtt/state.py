"""What an MQTT connection has shown so far, and how its rows are read."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache

from pcapstat.errors import UsageError
from pcapstat.rules.rule import Message, collector
from pcapstat.theory import mqtt

RULES, rule = collector("mqtt")
CLIENT, SERVER = "c2s", "s2c"
ACKS = {"PUBACK": 1, "PUBREC": 2, "PUBREL": 2, "PUBCOMP": 2}
REQUESTS = {"SUBSCRIBE": "SUBACK", "UNSUBSCRIBE": "UNSUBACK"}
DEFAULT_RECEIVE_MAXIMUM = 65_535
FAILURE = 0x80
"""Reason codes from here on are failures (MQTT 5 §2.4)."""

Pairs = tuple[tuple[str, str], ...]


@dataclass
class Side:
    """What one side has sent that waits for an answer, and what it announced."""

    publishes: dict[int, str] = field(default_factory=dict)
    """Packet identifiers in use by PUBLISH: "PUBACK", "PUBREC", "PUBREL" or "PUBCOMP" is what comes next."""
    requests: dict[int, str] = field(default_factory=dict)
    order: OrderedDict[int, None] = field(default_factory=OrderedDict)
    """Identifiers of QoS 1 and 2 PUBLISH packets that the peer has not acknowledged, in order."""
    received: OrderedDict[int, None] = field(default_factory=OrderedDict)
    """Identifiers of PUBREC packets that came and that no PUBREL has answered, in order."""
    used: set[int] = field(default_factory=set)
    """Identifiers of all its PUBLISH packets in this connection."""
    repeated: set[int] = field(default_factory=set)
    """Those of PUBLISH packets that were sent again in this connection: each transmission is acknowledged."""
    aliases: set[int] = field(default_factory=set)
    is_heard: bool = False
    """Whether the capture has messages of this side: it may hold one direction only."""
    last_ns: int | None = None
    receive_maximum: int = DEFAULT_RECEIVE_MAXIMUM
    maximum_packet: int | None = None
    topic_alias_maximum: int = 0

    def lose(self) -> None:
        """Forget what waits for an answer: it may have come."""
        for waiting in (self.publishes, self.requests, self.order, self.received):
            waiting.clear()
        self.last_ns = None


@dataclass
class Subscription:
    """A topic filter of this connection: the highest QoS its messages may have, and whether each SUBSCRIBE of it had an identifier."""

    qos: int
    has_identifier: bool
    granted: int | None = None
    """The highest QoS that a SUBACK gave it."""


Name = tuple[str, int, str]
"""A server's address and port, and a client identifier."""


@dataclass
class Clients:
    """Of each client of each server: the last connection that the server accepted, and when."""

    accepted: dict[Name, tuple[State, int]] = field(default_factory=dict)


@dataclass
class State:
    """What a connection has shown so far. `is_whole` tells that it was captured from its start without a gap."""

    is_whole: bool = True
    is_lacking: bool = False
    """Whether messages are missing behind the first one, so that what waits for an answer is not known."""
    clients: Clients = field(default_factory=Clients)
    name: Name | None = None
    late: set[tuple[str, int | None]] = field(default_factory=set)
    """Answers, by kind and packet identifier, to what the client sent here after the server had accepted it in another connection."""
    unacknowledged: dict[int, int] = field(default_factory=dict)
    """Identifiers of the client's PUBLISH packets that the connection before left without an answer, and their places in its order."""
    last_repeated: int | None = None
    """That of them with the last place among those that were sent again."""
    version: int | None = None
    sides: dict[str, Side] = field(default_factory=lambda: {CLIENT: Side(), SERVER: Side()})
    asked: dict[str, str] | None = field(default_factory=dict)
    """Properties of CONNECT; none where they cannot be told."""
    granted: dict[str, str] | None = field(default_factory=dict)
    """Properties of CONNACK; none where they cannot be told."""
    client_identifier: str | None = None
    has_connect: bool = False
    connack_code: int | None = None
    is_clean: bool = False
    is_new: bool = False
    """Whether the session began with this connection: a clean start, or Session Present 0."""
    is_early: bool = False
    """Whether the client sent something before CONNACK, and may not have known it a while later either."""
    is_framed: bool = False
    """Whether the packets are in WebSocket frames, whose header counts with theirs."""
    keep_alive_s: int = 0
    disconnected: set[str] = field(default_factory=set)
    pings: int = 0
    pinged_ns: int | None = None
    """When the client sent the first PINGREQ that waits for an answer."""
    pending: dict[int, list[tuple[str, int]] | None] = field(default_factory=dict)
    """By packet identifier: topic filters and their QoS that wait for SUBACK or UNSUBACK; none where they cannot be told."""
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    identifiers: set[str] = field(default_factory=set)
    """Subscription identifiers of this connection."""
    is_filters_known: bool = True

    def mine(self, message: Message) -> Side:
        """Return the sender's side."""
        return self.sides[message["direction"]]

    def peer(self, message: Message) -> Side:
        """Return the receiver's side."""
        return self.sides[SERVER if message["direction"] == CLIENT else CLIENT]

    def knows_peer(self, message: Message) -> bool:
        """Whether the capture holds all that the receiver of a message said before it."""
        return self.is_whole and self.peer(message).is_heard

    def lose(self) -> None:
        """Take note that messages are missing, and forget what they may have changed."""
        self.is_whole, self.is_lacking, self.pinged_ns = False, True, None
        self.pending.clear()
        for side in self.sides.values():
            side.lose()

    def take(self, message: Message) -> None:
        """Learn from a message that was judged."""
        kind = message["kind"]
        self.mine(message).is_heard = True
        self.is_early |= self.has_connect and self.connack_code is None and message["direction"] == CLIENT and kind != "AUTH"
        if kind in {"CONNECT", "CONNACK"}:
            self.connect(message) if kind == "CONNECT" else self.connack(message)
        elif kind == "DISCONNECT":
            self.disconnected.add(message["direction"])
        if not self.is_lacking:
            self.follow(message)

    def follow(self, message: Message) -> None:
        """Follow what waits for an answer, and the silence between packets."""
        kind = message["kind"]
        self.mine(message).last_ns = message["time_ns"]
        successor_ns = self.successor_ns() if message["direction"] == CLIENT else None
        if successor_ns is not None and successor_ns <= message["time_ns"]:
            self.expect_late(message)
        if kind in {"PUBLISH", *ACKS}:
            self.publication(message)
        elif kind in REQUESTS or kind in REQUESTS.values():
            self.request(message)
        self.pings += {"PINGREQ": 1, "PINGRESP": -1}.get(kind, 0)
        if kind == "PINGRESP":
            self.pinged_ns = None
        elif kind == "PINGREQ" and self.pinged_ns is None:
            self.pinged_ns = message["time_ns"]

    def publication(self, message: Message) -> None:
        """Follow the flows of QoS 1 and 2 (MQTT 5 §4.3)."""
        kind, identifier = message["kind"], message["message_id"]
        mine, peer = self.mine(message), self.peer(message)
        if kind == "PUBLISH":
            if message["direction"] == CLIENT and identifier in self.unacknowledged:
                last = self.last_repeated
                self.last_repeated = identifier if last is None else max(last, identifier, key=self.unacknowledged.__getitem__)
            if message["topic_alias"] is not None:
                mine.aliases.add(message["topic_alias"])
            if message["qos"]:
                self.open_flow(identifier, message["qos"], mine)
        elif kind in {"PUBACK", "PUBREC"}:
            self.acknowledge(kind, identifier, message, peer)
        elif kind == "PUBREL":
            mine.publishes[identifier] = "PUBCOMP"
            mine.received.pop(identifier, None)
        elif kind == "PUBCOMP":
            peer.publishes.pop(identifier, None)

    def open_flow(self, identifier: int, qos: int, mine: Side) -> None:
        """Take the identifier of a PUBLISH into use."""
        if identifier in mine.publishes:
            mine.repeated.add(identifier)
        mine.publishes.setdefault(identifier, "PUBACK" if qos == 1 else "PUBREC")
        mine.used.add(identifier)
        mine.order.setdefault(identifier)

    def acknowledge(self, kind: str, identifier: int, message: Message, peer: Side) -> None:
        """Follow PUBACK and PUBREC; a PUBREC with a failure ends its flow (MQTT 5 §4.3.3)."""
        peer.order.pop(identifier, None)
        if kind == "PUBACK" or first_code(message) >= FAILURE:
            peer.publishes.pop(identifier, None)
        elif peer.publishes.get(identifier) in {"PUBREC", "PUBACK"}:
            peer.publishes[identifier] = "PUBREL"
            peer.received.setdefault(identifier)

    def request(self, message: Message) -> None:
        """Follow SUBSCRIBE and UNSUBSCRIBE and their answers."""
        kind, identifier = message["kind"], message["message_id"]
        if kind in REQUESTS:
            self.mine(message).requests[identifier] = REQUESTS[kind]
            self.pending[identifier] = filters(message)
            if kind == "SUBSCRIBE":
                self.subscribe(message)
        else:
            self.peer(message).requests.pop(identifier, None)
            if kind == "SUBACK":
                self.grant(message)
            self.pending.pop(identifier, None)

    def subscribe(self, message: Message) -> None:
        """Take the filters of a SUBSCRIBE; the server may send what matches them before SUBACK (MQTT 5 §3.8.4)."""
        given, told = filters(message), pairs(message)
        if given is None or told is None:
            self.is_filters_known = False
            return
        numbers = {value for name, value in told if name == "Subscription Identifier"}
        self.identifiers |= numbers
        for name, qos in given:
            subscription = self.subscriptions.setdefault(name, Subscription(0, has_identifier=True))
            subscription.qos = max(subscription.qos, qos)
            subscription.has_identifier &= bool(numbers)

    def grant(self, message: Message) -> None:
        """Take what the server granted, the most of it where there were several; what waits for an answer counts as it was asked for."""
        given = self.pending.pop(message["message_id"], None) or []
        for (name, _), code in zip(given, codes(message), strict=False):
            subscription = self.subscriptions.get(name)
            if subscription is not None and code < FAILURE:
                subscription.granted = max(subscription.granted or 0, code)
        asked = [each for waiting in self.pending.values() for each in waiting or []]
        for name in {name for name, _ in given} & self.subscriptions.keys():
            subscription = self.subscriptions[name]
            counted = [qos for other, qos in asked if other == name] + [each for each in [subscription.granted] if each is not None]
            if counted:
                subscription.qos = max(counted)
            else:
                del self.subscriptions[name]

    def connect(self, message: Message) -> None:
        """Learn what the client announces."""
        self.has_connect, self.version = True, message["version"]
        self.is_clean = self.is_new = bool(message["clean_start"])
        self.is_framed = excess_bytes(message) > 3
        self.keep_alive_s = message["keep_alive_s"] or 0
        self.client_identifier = message["client_identifier"]
        if self.client_identifier:
            self.name = (message["destination_address"], message["destination_port"], self.client_identifier)
        self.asked = properties(message)
        announce(self.sides[CLIENT], self.asked)

    def connack(self, message: Message) -> None:
        """Learn what the server announces."""
        self.connack_code = first_code(message)
        # the byte that has Session Present has no meaning in MQTT 3.1 (§3.2)
        self.is_new = self.is_clean or (message["session_present"] is False and self.version != 3)
        self.granted = properties(message)
        self.keep_alive_s = int((self.granted or {}).get("Server Keep Alive", self.keep_alive_s))
        announce(self.sides[SERVER], self.granted)
        if self.name is not None and self.connack_code == 0:
            before = self.clients.accepted.get(self.name)
            if before is not None and message["session_present"]:
                self.unacknowledged = {each: place for place, each in enumerate(before[0].sides[CLIENT].order)}
            self.clients.accepted[self.name] = (self, message["time_ns"])

    def successor_ns(self) -> int | None:
        """Return when the server accepted the client in a connection after this one."""
        last = self.clients.accepted.get(self.name) if self.name is not None and self.connack_code == 0 else None
        return last[1] if last is not None and last[0] is not self else None

    def expect_late(self, message: Message) -> None:
        """Note the answer that would show that the server goes on with a connection that another one has taken the place of."""
        kind = message["kind"]
        if kind == "PINGREQ" and self.pings == 0:
            self.late.add(("PINGRESP", None))
        elif kind in REQUESTS:
            self.late.add((REQUESTS[kind], message["message_id"]))
        elif kind == "PUBLISH" and message["qos"] and not message["dup"]:
            self.late.add(("PUBACK" if message["qos"] == 1 else "PUBREC", message["message_id"]))

    def matching(self, topic: str) -> list[Subscription]:
        """Return the subscriptions of this connection that match a topic name."""
        return [subscription for name, subscription in self.subscriptions.items() if matches(name, topic)]


def announce(side: Side, told: dict[str, str] | None) -> None:
    """Take the limits that a side announces to its peer (MQTT 5 §3.1.2.11, §3.2.2.3); the widest where they cannot be told."""
    if told is None:
        told = {"Topic Alias Maximum": "65535"}
    side.receive_maximum = int(told.get("Receive Maximum", DEFAULT_RECEIVE_MAXIMUM))
    side.topic_alias_maximum = int(told.get("Topic Alias Maximum", 0))
    side.maximum_packet = int(told["Maximum Packet Size"]) if "Maximum Packet Size" in told else None


def pairs(message: Message) -> Pairs | None:
    """Return properties in order; none where a value with "; " in it makes the column ambiguous, which the bytes tell."""
    if not message["properties"]:
        return () if message["option_bytes"] <= 1 or message["will_topic"] is not None else None
    has_will = message["kind"] == "CONNECT" and message["will_topic"] is not None
    return read_properties(message["properties"], message["option_bytes"], has_will)


@lru_cache(maxsize=256)
def read_properties(text: str, count: int, has_will: bool) -> Pairs | None:
    """Read the column `properties`; none where what is in it does not make `count` bytes, those of the Will beside it aside."""
    given = mqtt.from_text(text)
    try:
        length = sum(mqtt.property_bytes(name, value) for name, value in given)
    except UsageError:
        return None
    total = mqtt.variable_bytes(length) + length
    return tuple(given) if total == count or (has_will and total < count) else None


def properties(message: Message) -> dict[str, str] | None:
    """Return properties by name, of repeated ones the last; none where they cannot be told."""
    given = pairs(message)
    return None if given is None else dict(given)


def filters(message: Message) -> list[tuple[str, int]] | None:
    """Return topic filters and their QoS (0 in UNSUBSCRIBE); none where a line feed in one makes the column ambiguous."""
    has_options = message["kind"] == "SUBSCRIBE"
    lines = message["topic_filters"].split("\n") if message["topic_filters"] is not None else []
    split = [line.rpartition(" QoS ") if has_options else (line, "", "0") for line in lines]
    length = 2 + message["option_bytes"] + sum(2 + len(name.encode()) + has_options for name, _, _ in split)
    return [(name, int(qos)) for name, _, qos in split] if length == message["remaining_length"] else None


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a topic name matches a filter (MQTT 5 §4.7, §4.8.2 for shared ones)."""
    if topic_filter.startswith("$share/"):
        topic_filter = topic_filter.split("/", 2)[-1]
    levels, names = topic_filter.split("/"), topic.split("/")
    if topic.startswith("$") and levels[0] in {"#", "+"}:
        return False
    for at, level in enumerate(levels):
        if level == "#":
            return True
        if at >= len(names) or level not in {"+", names[at]}:
            return False
    return len(levels) == len(names)


def codes(message: Message) -> list[int]:
    """Return reason codes or return codes."""
    return [int(code) for code in (message["reason_codes"] or "").split(",") if code]


def first_code(message: Message) -> int:
    """Return the first reason or return code; 0 where none is there."""
    return next(iter(codes(message)), 0)


def own_bytes(message: Message) -> int:
    """Return the packet's length, by its Remaining Length."""
    remaining = message["remaining_length"] or 0
    return int(1 + mqtt.variable_bytes(remaining) + remaining)


def excess_bytes(message: Message) -> int:
    """Return what its columns count beyond the packet: a WebSocket frame's header, or a Remaining Length with more bytes than it needs."""
    counted = message["header_bytes"] + message["option_bytes"] + message["payload_bytes"] + message["opaque_bytes"]
    return int(counted - own_bytes(message))
