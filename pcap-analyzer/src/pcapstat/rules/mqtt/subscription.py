"""MQTT subscriptions: SUBSCRIBE, UNSUBSCRIBE and their answers, topic filters (MQTT 5 §3.8 to §3.11, §4.7, §4.8)."""

from __future__ import annotations

from pcapstat.rules.mqtt.state import REQUESTS, State, codes, filters, properties, rule
from pcapstat.rules.rule import Message


@rule("MQTT-2.2.1-6", "MQTT 5 §2.2.1, 3.1.1 §2.3.1 (MQTT-2.3.1-7)", "error", "SUBACK and UNSUBACK have the identifier of their request")
def request_is_answered(message: Message, state: State) -> str | None:
    """Judge SUBACK and UNSUBACK."""
    kind, identifier = message["kind"], message["message_id"]
    if kind not in REQUESTS.values() or not state.knows_peer(message):
        return None
    return (
        None
        if state.peer(message).requests.get(identifier) == kind
        else f"{kind} with packet identifier {identifier}, which nothing asked for"
    )


@rule("MQTT-3.8.3-2", "MQTT 5 §3.8.3, 3.1.1 §3.8.3 (MQTT-3.8.3-3)", "error", "SUBSCRIBE has a topic filter at least")
def subscribe_has_a_filter(message: Message, _: State) -> str | None:
    """Judge a SUBSCRIBE's payload."""
    return "no topic filter" if message["kind"] == "SUBSCRIBE" and not message["topic_filters"] else None


@rule("MQTT-3.8.4-6", "MQTT 5 §3.8.4, 3.1.1 §3.8.4 (MQTT-3.8.4-5)", "error", "SUBACK has a reason code for each topic filter")
def suback_has_a_code_each(message: Message, state: State) -> str | None:
    """Judge a SUBACK's payload."""
    asked = state.pending.get(message["message_id"]) if message["kind"] == "SUBACK" else None
    count = len(codes(message))
    return f"{count} reason codes for {len(asked)} topic filters" if asked is not None and count != len(asked) else None


@rule("MQTT-4.7.1-1", "MQTT 5 §4.7.1, 3.1.1 §4.7.1 (MQTT-4.7.1-2, -3)", "error", "a wildcard takes a whole level, # the last one")
def filter_is_well_formed(message: Message, _state: State) -> str | None:
    """Judge the topic filters of SUBSCRIBE and UNSUBSCRIBE."""
    for name, _ in (filters(message) if message["kind"] in REQUESTS else None) or []:
        levels = name.split("/")
        is_broken = any("+" in level and level != "+" for level in levels) or any("#" in level and level != "#" for level in levels)
        if is_broken or "#" in levels[:-1]:
            return f"topic filter {name!r}"
    return None


@rule("MQTT-3.2.2-available", "MQTT 5 §3.2.2.3.11 to §3.2.2.3.13 (without a number)", "error", "SUBSCRIBE asks for what the server has")
def subscription_is_available(message: Message, state: State) -> str | None:
    """Judge wildcards, identifiers and shared filters by what CONNACK told; a client that does not wait for it may not have known."""
    told = state.granted if message["kind"] == "SUBSCRIBE" and not state.is_early else None
    given = filters(message) if told else None
    if told is None or given is None:
        return None
    used = {
        "Wildcard Subscription Available": any(set(name) & {"#", "+"} for name, _ in given),
        "Subscription Identifier Available": "Subscription Identifier" in (properties(message) or {}),
        "Shared Subscription Available": any(name.startswith("$share/") for name, _ in given),
    }
    broken = [name for name, is_used in used.items() if is_used and told.get(name) == "0"]
    return f"{', '.join(broken)} is 0" if broken else None


@rule("MQTT-3.8.3-qos", "MQTT 5 §3.8.3.1 (without a number), 3.1.1 §3.8.3.1 (MQTT-3-8.3-4)", "error", "a subscription's QoS is not 3")
def subscription_qos_is_known(message: Message, _: State) -> str | None:
    """Judge SUBSCRIBE."""
    broken = [name for name, qos in filters(message) or [] if qos == 3] if message["kind"] == "SUBSCRIBE" else []
    return f"QoS 3 for {broken[0]!r}" if broken else None


@rule("MQTT-3.10.3-2", "MQTT 5 §3.10.3, 3.1.1 §3.10.3", "error", "UNSUBSCRIBE has a topic filter at least")
def unsubscribe_has_a_filter(message: Message, _: State) -> str | None:
    """Judge an UNSUBSCRIBE's payload."""
    return "no topic filter" if message["kind"] == "UNSUBSCRIBE" and not message["topic_filters"] else None


@rule(
    "MQTT-4.8.2-1",
    "MQTT 5 §4.8.2 (also MQTT-4.8.2-2)",
    "error",
    "a shared subscription is $share/, a name without wildcards, / and a filter",
)
def shared_filter_is_well_formed(message: Message, state: State) -> str | None:
    """Judge filters that begin with $share/; before version 5 that means nothing."""
    given = filters(message) if message["kind"] in REQUESTS and state.version == 5 else None
    for name, _ in given or []:
        parts = name.split("/", 2)
        is_shared = parts[0] == "$share"
        if is_shared and (len(parts) < 3 or not parts[1] or not parts[2] or set(parts[1]) & {"#", "+"}):
            return f"topic filter {name!r}"
    return None
