"""MQTT publications: identifiers, topic names and aliases, DUP, QoS flows, flow control (MQTT 5 §2.2.1, §3.3 to §3.7, §4.3 to §4.9)."""

from __future__ import annotations

from pcapstat.rules.mqtt.state import ACKS, CLIENT, REQUESTS, SERVER, State, first_code, pairs, properties, rule
from pcapstat.rules.rule import Message


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
        is_used = identifier in mine.publishes or identifier in mine.requests
        if is_used and not is_again and state.peer(message).is_heard:
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
    if kind not in ACKS or not state.knows_peer(message) or first_code(message) == 0x92 or not state.is_new:
        return None
    side = state.mine(message) if kind == "PUBREL" else state.peer(message)
    # each transmission of a PUBLISH is acknowledged; before version 5 there may be several in a connection
    if identifier in side.publishes or identifier in side.repeated:
        return None
    # the session may hold flows of a connection before this one; with a clean start it does not
    return f"{kind} with packet identifier {identifier}, of which no PUBLISH waits"


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
    return f"Topic Alias {alias} where {most} is the most" if alias and alias > most and state.knows_peer(message) else None


@rule(
    "MQTT-3.3.4-7",
    "MQTT 5 §3.3.4 (client), MQTT-3.3.4-9 (server)",
    "error",
    "no more PUBLISH packets wait for an answer than Receive Maximum",
)
def receive_maximum_is_kept(message: Message, state: State) -> str | None:
    """Judge how many of this connection are in flight; a client that does not wait for CONNACK may not have known how many may be."""
    is_judged = message["kind"] == "PUBLISH" and message["qos"] and state.version == 5 and state.is_whole
    most, mine = state.peer(message).receive_maximum, state.mine(message)
    if not is_judged or len(mine.publishes) < most or (message["direction"] == CLIENT and state.is_early):
        return None
    count = len((mine.publishes.keys() & mine.used) | {message["message_id"]})
    return f"{count} PUBLISH packets in flight where Receive Maximum is {most}" if count > most else None


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
    "a client's PUBACK and PUBREC packets come in the order of the PUBLISH packets",
)
def answers_are_in_order(message: Message, state: State) -> str | None:
    """Judge the order of a client's, for each quality of service by itself; a server is not bound to it."""
    if message["kind"] not in {"PUBACK", "PUBREC"} or message["direction"] != CLIENT:
        return None
    peer, kind, identifier = state.peer(message), message["kind"], message["message_id"]
    if identifier not in peer.order or peer.publishes.get(identifier) != kind:
        return None
    first = next(each for each in peer.order if peer.publishes.get(each) == kind)
    return f"{kind} of {identifier} while {first} came before it" if first != identifier else None


@rule("MQTT-3.2.2-11", "MQTT 5 §3.2.2.3.4", "error", "a client's PUBLISH is within the server's Maximum QoS")
def maximum_qos_is_kept(message: Message, state: State) -> str | None:
    """Judge QoS by what CONNACK told; a client that does not wait for it may not have known."""
    most = int((state.granted or {}).get("Maximum QoS", 2))
    is_judged = message["kind"] == "PUBLISH" and message["direction"] == CLIENT and not state.is_early
    return f"QoS {message['qos']} where {most} is the most" if is_judged and message["qos"] > most else None


@rule("MQTT-3.2.2-14", "MQTT 5 §3.2.2.3.5", "error", "no RETAIN where the server does not retain")
def retain_is_available(message: Message, state: State) -> str | None:
    """Judge RETAIN by what CONNACK told; a client that does not wait for it may not have known."""
    is_judged = message["kind"] == "PUBLISH" and message["direction"] == CLIENT and not state.is_early
    is_broken = is_judged and message["retain"] and (state.granted or {}).get("Retain Available") == "0"
    return "RETAIN 1 with Retain Available 0" if is_broken else None


@rule(
    "MQTT-3.3.1-3",
    "MQTT 5 §3.3.1.1 (also MQTT-4.3.2-2, -4.3.3-2), 3.1.1 §3.3.1.1",
    "error",
    "DUP is 1 only where this sender sent the packet before",
)
def dup_tells_a_repetition(message: Message, state: State) -> str | None:
    """Judge DUP in a session that began with this connection: what was not sent here was not sent before."""
    is_judged = message["kind"] == "PUBLISH" and message["qos"] and message["dup"] and state.is_whole and state.is_new
    is_broken = is_judged and message["message_id"] not in state.mine(message).used
    return f"DUP 1 in the first PUBLISH with packet identifier {message['message_id']} of a new session" if is_broken else None


@rule(
    "MQTT-3.3.2-3",
    "MQTT 5 §3.3.2.1 (also MQTT-4.7.2-1), 3.1.1 §3.3.2.1",
    "error",
    "a message to a client matches a subscription of its own",
)
def topic_was_subscribed(message: Message, state: State) -> str | None:
    """Judge the topic name in a session that began with this connection."""
    if not is_delivery(message, state) or state.matching(message["topic_name"]):
        return None
    return f"topic name {message['topic_name']!r}, which no topic filter of the client matches"


def is_delivery(message: Message, state: State) -> bool:
    """Whether it is a PUBLISH to a client all of whose subscriptions are in the capture."""
    is_known = state.knows_peer(message) and state.is_new and state.is_filters_known
    return bool(message["kind"] == "PUBLISH" and message["direction"] == SERVER and is_known and message["topic_name"])


@rule("MQTT-3.3.2-7", "MQTT 5 §3.3.2.3.4", "error", "a topic alias stands for a name that was sent in this connection")
def alias_was_set(message: Message, state: State) -> str | None:
    """Judge an alias without a topic name."""
    alias = message["topic_alias"] if message["topic_name_bytes"] == 0 else None
    is_broken = alias and state.is_whole and alias not in state.mine(message).aliases
    return f"Topic Alias {alias}, which no topic name was given to" if is_broken else None


@rule("MQTT-3.3.2-14", "MQTT 5 §3.3.2.3.5", "error", "a response topic has no wildcards")
def response_topic_has_no_wildcard(message: Message, _: State) -> str | None:
    """Judge Response Topic."""
    name = (properties(message) or {}).get("Response Topic", "") if message["kind"] == "PUBLISH" else ""
    return f"response topic {name!r}" if any(each in name for each in "#+") else None


@rule(
    "MQTT-3.3.4-3",
    "MQTT 5 §3.3.4 (also MQTT-3.3.4-4, -5)",
    "error",
    "a message to a client has the identifiers of the subscriptions that it matches, and no others",
)
def subscription_identifiers_fit(message: Message, state: State) -> str | None:
    """Judge Subscription Identifiers in a session that began with this connection."""
    given = pairs(message) if is_delivery(message, state) else None
    if given is None:
        return None
    found = [value for name, value in given if name == "Subscription Identifier"]
    strange = [value for value in found if value not in state.identifiers]
    if strange:
        return f"Subscription Identifier {', '.join(strange)}, which no subscription has"
    matching = state.matching(message["topic_name"])
    is_missing = not found and bool(matching) and all(each.has_identifier for each in matching)
    return "no Subscription Identifier though each subscription that matches has one" if is_missing else None


@rule("MQTT-3.3.4-6", "MQTT 5 §3.3.4", "error", "a client's PUBLISH has no Subscription Identifier")
def client_sends_no_subscription_identifier(message: Message, _: State) -> str | None:
    """Judge a client's properties."""
    is_judged = message["kind"] == "PUBLISH" and message["direction"] == CLIENT
    return "Subscription Identifier" if is_judged and "Subscription Identifier" in (properties(message) or {}) else None


@rule("MQTT-3.8.4-8", "MQTT 5 §3.8.4 (also MQTT-4.8.2-3), 3.1.1 §3.8.4 (MQTT-3.8.4-6)", "error", "a message has the QoS granted at most")
def granted_qos_is_kept(message: Message, state: State) -> str | None:
    """Judge the QoS of a message to a client; until SUBACK the QoS asked for counts."""
    matching = state.matching(message["topic_name"]) if is_delivery(message, state) else []
    most = max((each.qos for each in matching), default=2)
    return f"QoS {message['qos']} where {most} was granted" if matching and message["qos"] > most else None


@rule("MQTT-4.3.3-4", "MQTT 5 §4.3.3, 3.1.1 §4.3.3 (MQTT-4.3.3-1)", "error", "PUBREL comes behind PUBREC")
def release_is_behind_receipt(message: Message, state: State) -> str | None:
    """Judge PUBREL."""
    expected = (
        state.mine(message).publishes.get(message["message_id"]) if message["kind"] == "PUBREL" and state.knows_peer(message) else None
    )
    return f"PUBREL where {expected} is awaited" if expected in {"PUBREC", "PUBACK"} else None


@rule("MQTT-4.3.3-6", "MQTT 5 §4.3.3, 3.1.1 §4.3.3 (MQTT-4.3.3-1)", "error", "a PUBLISH is not sent again behind its PUBREL")
def released_is_not_repeated(message: Message, state: State) -> str | None:
    """Judge a PUBLISH that is sent again."""
    is_again = message["kind"] == "PUBLISH" and message["qos"] and message["dup"]
    is_broken = is_again and state.mine(message).publishes.get(message["message_id"]) == "PUBCOMP"
    return f"PUBLISH with packet identifier {message['message_id']} behind its PUBREL" if is_broken else None


@rule("MQTT-4.3.3-11", "MQTT 5 §4.3.3, 3.1.1 §4.3.3 (MQTT-4.3.3-2)", "error", "PUBCOMP comes behind PUBREL")
def completion_is_behind_release(message: Message, state: State) -> str | None:
    """Judge PUBCOMP."""
    expected = (
        state.peer(message).publishes.get(message["message_id"]) if message["kind"] == "PUBCOMP" and state.knows_peer(message) else None
    )
    return f"PUBCOMP where {expected} is awaited" if expected not in {None, "PUBCOMP"} else None


@rule("MQTT-4.4.0-1", "MQTT 5 §4.4", "error", "within a connection no packet is sent again")
def nothing_is_repeated(message: Message, state: State) -> str | None:
    """Judge a PUBLISH or PUBREL that went out in this connection before; MQTT 3.1.1 allows it."""
    expected = state.mine(message).publishes.get(message["message_id"]) if state.version == 5 and state.is_whole else None
    is_publish = message["kind"] == "PUBLISH" and message["qos"] and message["dup"] and message["message_id"] in state.mine(message).used
    is_again = (is_publish and expected is not None) or (message["kind"] == "PUBREL" and expected == "PUBCOMP")
    return f"{message['kind']} with packet identifier {message['message_id']} again in the same connection" if is_again else None


@rule("MQTT-4.6.0-4", "MQTT 5 §4.6, 3.1.1 §4.6", "error", "a client's PUBREL packets come in the order of the PUBREC packets")
def releases_are_in_order(message: Message, state: State) -> str | None:
    """Judge a client's PUBREL."""
    waiting = state.mine(message).received
    is_judged = message["kind"] == "PUBREL" and message["direction"] == CLIENT and message["message_id"] in waiting
    first = next(iter(waiting)) if is_judged else message["message_id"]
    return f"PUBREL of {message['message_id']} while {first} came before it" if first != message["message_id"] else None


@rule("MQTT-4.6.0-1", "MQTT 5 §4.6, 3.1.1 §4.6", "error", "a client sends PUBLISH packets again in the order in which it sent them first")
def repetitions_are_in_order(message: Message, state: State) -> str | None:
    """Judge what is sent again in a connection after the one that it was sent in first."""
    identifier, places, last = message["message_id"], state.unacknowledged, state.last_repeated
    is_judged = message["kind"] == "PUBLISH" and message["direction"] == CLIENT and message["dup"] and identifier in places
    if not is_judged or last is None or places[last] <= places[identifier]:
        return None
    return f"packet identifier {identifier} behind {last}, which was sent after it"
