"""MQTT: numbered conformance statements of MQTT 5, with their numbers in 3.1.1, that a capture can show to be broken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pcapstat.rules.rule import Message, collector

RULES, rule = collector("mqtt")
CLIENT, SERVER = "c2s", "s2c"
ACKS = {"PUBACK": 1, "PUBREC": 2, "PUBREL": 2, "PUBCOMP": 2}
REQUESTS = {"SUBSCRIBE": "SUBACK", "UNSUBSCRIBE": "UNSUBACK"}
DEFAULT_RECEIVE_MAXIMUM = 65_535


@dataclass
class Side:
    """What one side has sent that waits for an answer."""

    publishes: dict[int, str] = field(default_factory=dict)
    """Packet identifiers in use by PUBLISH: "PUBACK", "PUBREC", "PUBREL" or "PUBCOMP" is what comes next."""
    requests: dict[int, str] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    """Identifiers of QoS 1 and 2 PUBLISH packets that the peer has not acknowledged, in order."""
    last_ns: int | None = None
    receive_maximum: int = DEFAULT_RECEIVE_MAXIMUM
    maximum_packet: int | None = None
    topic_alias_maximum: int = 0


@dataclass
class State:
    """What a connection has shown so far. `is_whole` tells that it was captured from its start without a gap."""

    is_whole: bool = True
    version: int | None = None
    sides: dict[str, Side] = field(default_factory=lambda: {CLIENT: Side(), SERVER: Side()})
    has_connect: bool = False
    connack_code: int | None = None
    is_clean: bool = False
    keep_alive_s: int = 0
    is_disconnected: bool = False
    pings: int = 0
    filters: dict[int, int] = field(default_factory=dict)

    def mine(self, message: Message) -> Side:
        """Return the sender's side."""
        return self.sides[message["direction"]]

    def peer(self, message: Message) -> Side:
        """Return the receiver's side."""
        return self.sides[SERVER if message["direction"] == CLIENT else CLIENT]

    def take(self, message: Message) -> None:
        """Learn from a message that was judged."""
        if message["is_after_gap"]:
            self.is_whole = False
        kind = message["kind"]
        self.mine(message).last_ns = message["time_ns"]
        if kind in {"CONNECT", "CONNACK"}:
            self.connect(message) if kind == "CONNECT" else self.connack(message)
        elif kind in {"PUBLISH", *ACKS}:
            self.publication(message)
        elif kind in REQUESTS or kind in REQUESTS.values():
            self.request(message)
        self.pings += {"PINGREQ": 1, "PINGRESP": -1}.get(kind, 0)
        self.is_disconnected |= kind == "DISCONNECT" and message["direction"] == CLIENT

    def publication(self, message: Message) -> None:
        """Follow the flows of QoS 1 and 2 (MQTT 5 §4.3)."""
        kind, identifier = message["kind"], message["message_id"]
        mine, peer = self.mine(message), self.peer(message)
        if kind == "PUBLISH" and message["qos"]:
            mine.publishes.setdefault(identifier, "PUBACK" if message["qos"] == 1 else "PUBREC")
            if identifier not in mine.order:
                mine.order.append(identifier)
        elif kind in {"PUBACK", "PUBREC"}:
            self.acknowledge(kind, identifier, message, peer)
        elif kind == "PUBREL":
            mine.publishes[identifier] = "PUBCOMP"
        elif kind == "PUBCOMP":
            peer.publishes.pop(identifier, None)

    def request(self, message: Message) -> None:
        """Follow SUBSCRIBE and UNSUBSCRIBE and their answers."""
        kind, identifier = message["kind"], message["message_id"]
        if kind in REQUESTS:
            self.mine(message).requests[identifier] = REQUESTS[kind]
            self.filters[identifier] = len((message["topic_filters"] or "").splitlines())
        else:
            self.peer(message).requests.pop(identifier, None)

    def connect(self, message: Message) -> None:
        """Learn what the client announces."""
        self.has_connect, self.version = True, message["version"]
        self.is_clean = bool(message["clean_start"])
        self.keep_alive_s = message["keep_alive_s"] or 0
        announce(self.sides[CLIENT], message)

    def connack(self, message: Message) -> None:
        """Learn what the server announces."""
        self.connack_code = first_code(message)
        told = properties(message)
        self.keep_alive_s = int(told.get("Server Keep Alive", self.keep_alive_s))
        announce(self.sides[SERVER], message)

    def acknowledge(self, kind: str, identifier: int, message: Message, peer: Side) -> None:
        """Follow PUBACK and PUBREC; a PUBREC with a failure ends its flow (MQTT 5 §4.3.3)."""
        if identifier in peer.order:
            peer.order.remove(identifier)
        if kind == "PUBACK" or first_code(message) >= 0x80:
            peer.publishes.pop(identifier, None)
        elif identifier in peer.publishes:
            peer.publishes[identifier] = "PUBREL"


def announce(side: Side, message: Message) -> None:
    """Take the limits that a side announces to its peer (MQTT 5 §3.1.2.11, §3.2.2.3)."""
    told = properties(message)
    side.receive_maximum = int(told.get("Receive Maximum", DEFAULT_RECEIVE_MAXIMUM))
    side.topic_alias_maximum = int(told.get("Topic Alias Maximum", 0))
    side.maximum_packet = int(told["Maximum Packet Size"]) if "Maximum Packet Size" in told else None


def properties(message: Message) -> dict[str, str]:
    """Return properties by name; of repeated ones the last."""
    pairs = (given.partition(": ") for given in (message["properties"] or "").split("; "))
    return {name: value for name, _, value in pairs if name}


def first_code(message: Message) -> int:
    """Return the first reason or return code; 0 where none is there."""
    codes = (message["reason_codes"] or "0").split(",")
    return int(codes[0]) if codes[0].strip().isdigit() else 0


def own_bytes(message: Message) -> int:
    """Return the packet's length."""
    return int(message["header_bytes"] + message["option_bytes"] + message["payload_bytes"])


@rule("MQTT-3.1.0-1", "MQTT 5 §3.1, 3.1.1 §3.1", "error", "the client's first packet is CONNECT")
def connect_is_first(message: Message, state: State) -> str | None:
    """Judge a client's packet before CONNECT."""
    is_early = state.is_whole and not state.has_connect and message["direction"] == CLIENT and message["kind"] != "CONNECT"
    return f"{message['kind']} before CONNECT" if is_early else None


@rule("MQTT-3.1.0-2", "MQTT 5 §3.1, 3.1.1 §3.1", "error", "CONNECT is sent once in a connection")
def connect_is_once(message: Message, state: State) -> str | None:
    """Judge a further CONNECT."""
    return "a further CONNECT" if message["kind"] == "CONNECT" and state.has_connect else None


@rule("MQTT-3.2.0-1", "MQTT 5 §3.2, 3.1.1 §3.2", "error", "the server's first packet, AUTH aside, is CONNACK")
def connack_is_first(message: Message, state: State) -> str | None:
    """Judge a server's packet before CONNACK."""
    is_early = state.is_whole and state.connack_code is None and message["direction"] == SERVER
    return f"{message['kind']} before CONNACK" if is_early and message["kind"] not in {"CONNACK", "AUTH", "DISCONNECT"} else None


@rule("MQTT-3.2.0-2", "MQTT 5 §3.2", "error", "CONNACK is sent once in a connection")
def connack_is_once(message: Message, state: State) -> str | None:
    """Judge a further CONNACK."""
    return "a further CONNACK" if message["kind"] == "CONNACK" and state.connack_code is not None else None


@rule("MQTT-3.2.2-2", "MQTT 5 §3.2.2.1.1, 3.1.1 §3.2.2.2 (MQTT-3.2.2-1)", "error", "a clean start is answered with Session Present 0")
def clean_start_has_no_session(message: Message, state: State) -> str | None:
    """Judge Session Present."""
    is_broken = message["kind"] == "CONNACK" and state.is_clean and message["session_present"]
    return "Session Present 1 although the client asked for a clean start" if is_broken else None


@rule("MQTT-3.2.2-6", "MQTT 5 §3.2.2.1.1, 3.1.1 §3.2.2.2 (MQTT-3.2.2-4)", "error", "a refusal has Session Present 0")
def refusal_has_no_session(message: Message, _: State) -> str | None:
    """Judge Session Present of a refusal."""
    is_broken = message["kind"] == "CONNACK" and first_code(message) and message["session_present"]
    return f"Session Present 1 with code {first_code(message)}" if is_broken else None


@rule("MQTT-3.2.2-7", "MQTT 5 §3.2.2.2, 3.1.1 §3.2.2.3 (MQTT-3.2.2-5)", "error", "behind a refusal the server sends nothing")
def refusal_is_last(message: Message, state: State) -> str | None:
    """Judge a server's packet behind a refusal."""
    refused = state.version == 5 and (state.connack_code or 0) >= 0x80 or state.version in {3, 4} and (state.connack_code or 0) > 0
    return f"{message['kind']} behind a refusal" if refused and message["direction"] == SERVER else None


@rule(
    "MQTT-2.2.1-3",
    "MQTT 5 §2.2.1, 3.1.1 §2.3.1 (MQTT-2.3.1-1, -2)",
    "error",
    "a client's new packet has an identifier that is not 0 and not in use",
)
def client_identifier_is_free(message: Message, state: State) -> str | None:
    """Judge a client's packet identifier."""
    return identifier_fault(message, state) if message["direction"] == CLIENT else None


@rule(
    "MQTT-2.2.1-4",
    "MQTT 5 §2.2.1, 3.1.1 §2.3.1 (MQTT-2.3.1-4)",
    "error",
    "a server's new packet has an identifier that is not 0 and not in use",
)
def server_identifier_is_free(message: Message, state: State) -> str | None:
    """Judge a server's packet identifier."""
    return identifier_fault(message, state) if message["direction"] == SERVER else None


def identifier_fault(message: Message, state: State) -> str | None:
    """Say what is wrong with the identifier of a new packet: one that is sent again has DUP (MQTT 5 §3.3.1.1)."""
    kind, identifier = message["kind"], message["message_id"]
    if kind in REQUESTS or (kind == "PUBLISH" and message["qos"]):
        if identifier == 0:
            return f"{kind} with packet identifier 0"
        mine = state.mine(message)
        is_again = kind == "PUBLISH" and message["dup"]
        if (identifier in mine.publishes or identifier in mine.requests) and not is_again:
            return f"{kind} with packet identifier {identifier}, which waits for an answer still"
    return None


@rule(
    "MQTT-2.2.1-5",
    "MQTT 5 §2.2.1, 3.1.1 §2.3.1 (MQTT-2.3.1-6)",
    "error",
    "an acknowledgement has the identifier of a PUBLISH that waits for it",
)
def acknowledgement_fits(message: Message, state: State) -> str | None:
    """Judge PUBACK, PUBREC, PUBREL, PUBCOMP; those with a reason code that says so answer what is not known any more."""
    kind, identifier = message["kind"], message["message_id"]
    if kind not in ACKS or not state.is_whole or first_code(message) == 0x92 or not state.is_clean:
        return None
    side = state.mine(message) if kind == "PUBREL" else state.peer(message)
    if identifier in side.publishes:
        return None
    # the session may hold flows of a connection before this one; with a clean start it does not
    return f"{kind} with packet identifier {identifier}, of which no PUBLISH waits"


@rule("MQTT-2.2.1-6", "MQTT 5 §2.2.1, 3.1.1 §2.3.1 (MQTT-2.3.1-7)", "error", "SUBACK and UNSUBACK have the identifier of their request")
def request_is_answered(message: Message, state: State) -> str | None:
    """Judge SUBACK and UNSUBACK."""
    kind, identifier = message["kind"], message["message_id"]
    if kind not in REQUESTS.values() or not state.is_whole:
        return None
    return (
        None
        if state.peer(message).requests.get(identifier) == kind
        else f"{kind} with packet identifier {identifier}, which nothing asked for"
    )


@rule("MQTT-3.3.1-2", "MQTT 5 §3.3.1.1, 3.1.1 §3.3.1.1", "error", "DUP is 0 in a PUBLISH of QoS 0")
def qos_0_has_no_dup(message: Message, _: State) -> str | None:
    """Judge DUP."""
    is_broken = message["kind"] == "PUBLISH" and message["qos"] == 0 and message["dup"]
    return "DUP 1 with QoS 0" if is_broken else None


@rule("MQTT-3.3.2-2", "MQTT 5 §3.3.2.1, 3.1.1 §3.3.2.1", "error", "a topic name has no wildcards")
def topic_has_no_wildcard(message: Message, _: State) -> str | None:
    """Judge the topic name."""
    name = message["topic_name"] or ""
    return f"topic name {name!r}" if message["kind"] == "PUBLISH" and any(each in name for each in "#+") else None


@rule("MQTT-3.3.2-8", "MQTT 5 §3.3.2.3.4", "error", "a topic alias is not 0")
def alias_is_not_0(message: Message, _: State) -> str | None:
    """Judge the topic alias."""
    return "Topic Alias 0" if message["topic_alias"] == 0 else None


@rule("MQTT-3.3.2-9", "MQTT 5 §3.3.2.3.4 (also MQTT-3.3.2-10, MQTT-3.1.2-26)", "error", "a topic alias is within the receiver's maximum")
def alias_is_within(message: Message, state: State) -> str | None:
    """Judge the topic alias by what the receiver announced."""
    alias, most = message["topic_alias"], state.peer(message).topic_alias_maximum
    return f"Topic Alias {alias} where {most} is the most" if state.is_whole and alias and alias > most else None


@rule(
    "MQTT-3.3.4-7",
    "MQTT 5 §3.3.4 (client), MQTT-3.3.4-9 (server)",
    "error",
    "no more PUBLISH packets wait for an answer than Receive Maximum",
)
def receive_maximum_is_kept(message: Message, state: State) -> str | None:
    """Judge how many are in flight."""
    if message["kind"] != "PUBLISH" or not message["qos"] or state.version != 5 or not state.is_whole:
        return None
    most, waiting = state.peer(message).receive_maximum, state.mine(message).publishes
    count = len(waiting.keys() | {message["message_id"]})
    return f"{count} PUBLISH packets in flight where Receive Maximum is {most}" if count > most else None


@rule(
    "MQTT-3.1.2-24",
    "MQTT 5 §3.1.2.11.4 (server), MQTT-3.2.2-15 (client)",
    "error",
    "no packet is larger than the receiver's Maximum Packet Size",
)
def packet_size_is_kept(message: Message, state: State) -> str | None:
    """Judge the packet's length."""
    most = state.peer(message).maximum_packet
    return f"{own_bytes(message)} bytes where {most} is the most" if most is not None and own_bytes(message) > most else None


@rule("MQTT-3.1.2-20", "MQTT 5 §3.1.2.10, 3.1.1 §3.1.2.10 (MQTT-3.1.2-23)", "warning", "the client sends something within each keep alive")
def keep_alive_is_kept(message: Message, state: State) -> str | None:
    """Judge the client's silence; the path may have added a little, so a tenth more is let pass."""
    last_ns = state.sides[CLIENT].last_ns
    if message["direction"] != CLIENT or last_ns is None or not state.keep_alive_s:
        return None
    silence_s = (message["time_ns"] - last_ns) / 1e9
    return f"silent for {silence_s:.1f} s with a keep alive of {state.keep_alive_s} s" if silence_s > state.keep_alive_s * 1.1 else None


@rule("MQTT-3.8.3-2", "MQTT 5 §3.8.3, 3.1.1 §3.8.3 (MQTT-3.8.3-3)", "error", "SUBSCRIBE has a topic filter at least")
def subscribe_has_a_filter(message: Message, _: State) -> str | None:
    """Judge a SUBSCRIBE's payload."""
    return "no topic filter" if message["kind"] == "SUBSCRIBE" and not message["topic_filters"] else None


@rule("MQTT-3.8.4-6", "MQTT 5 §3.8.4, 3.1.1 §3.8.4 (MQTT-3.8.4-5)", "error", "SUBACK has a reason code for each topic filter")
def suback_has_a_code_each(message: Message, state: State) -> str | None:
    """Judge a SUBACK's payload."""
    asked = state.filters.get(message["message_id"]) if message["kind"] == "SUBACK" else None
    codes = len((message["reason_codes"] or "").split(",")) if message["reason_codes"] else 0
    return f"{codes} reason codes for {asked} topic filters" if asked is not None and codes != asked else None


@rule("MQTT-3.14.4-1", "MQTT 5 §3.14.4, 3.1.1 §3.14.4 (MQTT-3.14.4-2)", "error", "behind DISCONNECT the client sends nothing")
def disconnect_is_last(message: Message, state: State) -> str | None:
    """Judge what comes behind DISCONNECT."""
    return f"{message['kind']} behind DISCONNECT" if state.is_disconnected and message["direction"] == CLIENT else None


@rule("MQTT-3.3.4-1", "MQTT 5 §3.3.4, 3.1.1 §3.3.4", "error", "PUBACK answers QoS 1, PUBREC answers QoS 2")
def answer_fits_qos(message: Message, state: State) -> str | None:
    """Judge which acknowledgement comes."""
    expected = state.peer(message).publishes.get(message["message_id"])
    if message["kind"] not in {"PUBACK", "PUBREC"} or expected not in {"PUBACK", "PUBREC"}:
        return None
    return None if message["kind"] == expected else f"{message['kind']} where {expected} has to come"


@rule(
    "MQTT-4.6.0-2",
    "MQTT 5 §4.6, 3.1.1 §4.6 (also MQTT-4.6.0-3)",
    "error",
    "PUBACK and PUBREC packets come in the order of their PUBLISH packets",
)
def answers_are_in_order(message: Message, state: State) -> str | None:
    """Judge the order, for each quality of service by itself."""
    if message["kind"] not in {"PUBACK", "PUBREC"}:
        return None
    peer = state.peer(message)
    waiting = [identifier for identifier in peer.order if peer.publishes.get(identifier) == message["kind"]]
    identifier = message["message_id"]
    is_late = identifier in waiting and waiting[0] != identifier
    return f"{message['kind']} of {identifier} while {waiting[0]} came before it" if is_late else None


@rule("MQTT-4.7.1-1", "MQTT 5 §4.7.1, 3.1.1 §4.7.1 (MQTT-4.7.1-2, -3)", "error", "a wildcard takes a whole level, # the last one")
def filter_is_well_formed(message: Message, _: State) -> str | None:
    """Judge the topic filters of SUBSCRIBE and UNSUBSCRIBE."""
    for line in (message["topic_filters"] or "").splitlines():
        name = line.rsplit(" QoS ", 1)[0] if message["kind"] == "SUBSCRIBE" else line
        levels = name.split("/")
        is_broken = any("+" in level and level != "+" for level in levels) or any("#" in level and level != "#" for level in levels)
        if is_broken or "#" in levels[:-1]:
            return f"topic filter {name!r}"
    return None


@rule("MQTT-3.12.4-1", "MQTT 5 §3.12.4, 3.1.1 §3.12.4", "warning", "the server answers each PINGREQ")
def ping_is_answered(message: Message, state: State) -> str | None:
    """Judge a PINGREQ that follows one without an answer."""
    return "the PINGREQ before was not answered" if message["kind"] == "PINGREQ" and state.pings > 0 else None


def begin(is_whole: bool) -> Any:
    """Return the state of a connection at its start."""
    return State(is_whole=is_whole)
