"""What stands in MQTT packets: strings, properties and reason codes, and who may send which packet (MQTT 5 §1.5, §2.1 to §2.4)."""

from __future__ import annotations

from pcapstat.rules.mqtt.state import CLIENT, REQUESTS, State, codes, excess_bytes, filters, pairs, properties, rule
from pcapstat.rules.rule import Judge, Message

FROM_CLIENT = {"CONNECT", "SUBSCRIBE", "UNSUBSCRIBE", "PINGREQ"}
FROM_SERVER = {"CONNACK", "SUBACK", "UNSUBACK", "PINGRESP"}
"""MQTT 5 §2.1.2, Table 2-1: packets of one direction."""
FLAGS = (
    *("Request Problem Information", "Request Response Information", "Maximum QoS", "Retain Available"),
    *("Wildcard Subscription Available", "Subscription Identifier Available", "Shared Subscription Available"),
)
NOT_0 = ("Receive Maximum", "Maximum Packet Size", "Subscription Identifier")
"""Properties that are 0 or 1, and those that are not 0 (MQTT 5 §3.1.2.11, §3.2.2.3, §3.8.2.1.2)."""
ACKNOWLEDGED = (0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99)
RELEASED = (0x00, 0x92)
REASON_CODES: dict[str, tuple[str, tuple[int, ...]]] = {
    "CONNACK": (
        "MQTT-3.2.2-8",
        (0x00, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F),
    ),
    "PUBACK": ("MQTT-3.4.2-1", ACKNOWLEDGED),
    "PUBREC": ("MQTT-3.5.2-1", ACKNOWLEDGED),
    "PUBREL": ("MQTT-3.6.2-1", RELEASED),
    "PUBCOMP": ("MQTT-3.7.2-1", RELEASED),
    "SUBACK": ("MQTT-3.9.3-2", (0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2)),
    "UNSUBACK": ("MQTT-3.11.3-2", (0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91)),
    "DISCONNECT": (
        "MQTT-3.14.2-1",
        (0x00, 0x04, *range(0x80, 0x84), 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, *range(0x93, 0xA3)),
    ),
    "AUTH": ("MQTT-3.15.2-1", (0x00, 0x18, 0x19)),
}
"""Reason codes of each packet (MQTT 5 §3.2.2.2, §3.4.2.1, §3.5.2.1, §3.6.2.1, §3.7.2.1, §3.9.3, §3.11.3, §3.14.2.1, §3.15.2.1)."""
RETURN_CODES = {"CONNACK": tuple(range(6)), "SUBACK": (0, 1, 2, 0x80)}
"""Return codes of MQTT 3.1.1 (§3.2.2.3, §3.9.3)."""
SECTIONS_311 = {"CONNACK": ", 3.1.1 §3.2.2.3 (MQTT-3.2.2-6)", "SUBACK": ", 3.1.1 §3.9.3"}


@rule("MQTT-1.5.4-1", "MQTT 5 §1.5.4 (also MQTT-3.3.2-1), 3.1.1 §1.5.3 (MQTT-1.5.3-1)", "error", "a topic name is well-formed UTF-8")
def topic_is_text(message: Message, _: State) -> str | None:
    """Judge a topic name by its bytes: the table has U+FFFD where they are no text, and then other bytes than the wire had."""
    name, count = message["topic_name"] or "", message["topic_name_bytes"]
    is_broken = message["kind"] == "PUBLISH" and count and "\ufffd" in name and len(name.encode()) != count
    return f"topic name {name!r} stands for {count} bytes that are not UTF-8" if is_broken else None


@rule("MQTT-1.5.4-2", "MQTT 5 §1.5.4 (also MQTT-4.7.3-2), 3.1.1 §1.5.3 (MQTT-1.5.3-2)", "error", "a string has no character U+0000")
def strings_have_no_null(message: Message, _: State) -> str | None:
    """Judge names, topics, filters, and properties."""
    columns = ("client_identifier", "will_topic", "topic_name", "topic_filters", "properties")
    broken = [column.replace("_", " ") for column in columns if "\0" in (message[column] or "")]
    return f"U+0000 in {', '.join(broken)}" if broken else None


@rule("MQTT-1.5.5-1", "MQTT 5 §1.5.5", "error", "Remaining Length takes the fewest bytes that hold it")
def remaining_length_is_short(message: Message, state: State) -> str | None:
    """Judge the fixed header; over WebSockets frame headers are counted with the packets, and nothing can be told."""
    excess = excess_bytes(message)
    is_broken = 0 < excess <= 3 and state.is_whole and (state.has_connect or message["kind"] == "CONNECT") and not state.is_framed
    return f"{excess} bytes more than needed" if is_broken and not message["is_truncated"] else None


@rule("MQTT-2.1.2-direction", "MQTT 5 §2.1.2, 3.1.1 §2.2.1 (Table 2-1, 2.1)", "error", "a packet goes in the direction that is its own")
def direction_is_right(message: Message, state: State) -> str | None:
    """Judge the sender of a packet."""
    kind, is_client = message["kind"], message["direction"] == CLIENT
    wrong = FROM_SERVER if is_client else FROM_CLIENT
    is_old_goodbye = kind == "DISCONNECT" and not is_client and state.version in {3, 4}
    return f"{kind} from the {'client' if is_client else 'server'}" if state.has_connect and (kind in wrong or is_old_goodbye) else None


@rule("MQTT-2.2.2-once", "MQTT 5 §2.2.2.2 and each property's section (without a number)", "error", "a property is there once")
def property_is_once(message: Message, _state: State) -> str | None:
    """Judge repeated properties: only User Property is repeatable, and Subscription Identifier in a PUBLISH."""
    names = [name for name, _ in pairs(message) or []]
    if len(names) == len(set(names)):
        return None
    free = {"User Property"} | ({"Subscription Identifier"} if message["kind"] == "PUBLISH" else set())
    twice = sorted({name for name in names if names.count(name) > 1} - free)
    return f"several {', '.join(twice)}" if twice else None


@rule("MQTT-2.2.2-value", "MQTT 5 §2.2.2.2 and each property's section (without a number)", "error", "a property's value is in its range")
def property_is_in_range(message: Message, _: State) -> str | None:
    """Judge properties that are 0 or 1, and those that are not 0."""
    told = properties(message)
    if not told:
        return None
    broken = [name for name in FLAGS if told.get(name, "0") not in {"0", "1"}] + [name for name in NOT_0 if told.get(name) == "0"]
    return "; ".join(f"{name} {told[name]}" for name in broken) or None


@rule("MQTT-4.7.3-1", "MQTT 5 §4.7.3, 3.1.1 §4.7.3", "error", "topic names and filters have a character at least")
def topic_is_not_empty(message: Message, _state: State) -> str | None:
    """Judge the topic of a PUBLISH without an alias, and topic filters."""
    if message["kind"] == "PUBLISH" and message["topic_name_bytes"] == 0 and message["topic_alias"] is None:
        return "an empty topic name"
    given = filters(message) if message["kind"] in REQUESTS and message["topic_filters"] is not None else None
    return "an empty topic filter" if any(not name for name, _ in given or []) else None


def code_fault(message: Message, state: State) -> str | None:
    """Say which codes the packet's list does not have. A server that knows MQTT 3.1.1 only answers in its form."""
    is_old = state.version in {3, 4} or (message["kind"] == "CONNACK" and message["remaining_length"] == 2)
    known = RETURN_CODES.get(message["kind"]) if is_old else REASON_CODES[message["kind"]][1]
    if known is None or not (state.has_connect and state.version in {3, 4, 5}):
        return None
    strange = [f"0x{code:02X}" for code in codes(message) if code not in known]
    return f"code {', '.join(strange)}" if strange else None


def judge_of(kind: str) -> Judge:
    """Return the judge of a packet type's codes."""

    def judge(message: Message, state: State) -> str | None:
        if message["kind"] != kind:
            return None
        asked = state.pending.get(message["message_id"]) if kind == "UNSUBACK" and state.version == 5 else None
        if asked is not None and len(codes(message)) != len(asked):
            return f"{len(codes(message))} reason codes for {len(asked)} topic filters"
        return code_fault(message, state)

    return judge


for packet, (identifier, _) in REASON_CODES.items():
    section = identifier.removeprefix("MQTT-").rpartition("-")[0]
    text = f"{packet} has {'a reason code of its list for each filter' if packet == 'UNSUBACK' else 'reason codes of its list'}"
    rule(identifier, f"MQTT 5 §{section}{SECTIONS_311.get(packet, '')}", "error", text)(judge_of(packet))
