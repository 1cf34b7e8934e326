"""Which control packets MQTT allows: what a size alone does not tell. Messages of captures may break it, and have a size all the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pcapstat.errors import UsageError
from pcapstat.theory.mqtt import FILTERED, Packet, Properties

ACKNOWLEDGEMENTS = ("PUBACK", "PUBREC", "PUBREL", "PUBCOMP")
EXPLAINED = ("CONNACK", *ACKNOWLEDGEMENTS, "SUBACK", "UNSUBACK", "DISCONNECT", "AUTH")
WILL = "the will"
PLACES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Payload Format Indicator", "Message Expiry Interval", "Content Type", "Response Topic"), ("PUBLISH", WILL)),
    "Correlation Data": ("PUBLISH", WILL),
    "Will Delay Interval": (WILL,),
    "Subscription Identifier": ("PUBLISH", "SUBSCRIBE"),
    "Topic Alias": ("PUBLISH",),
    "Session Expiry Interval": ("CONNECT", "CONNACK", "DISCONNECT"),
    **dict.fromkeys(("Authentication Method", "Authentication Data"), ("CONNECT", "CONNACK", "AUTH")),
    **dict.fromkeys(("Request Problem Information", "Request Response Information"), ("CONNECT",)),
    **dict.fromkeys(("Receive Maximum", "Topic Alias Maximum", "Maximum Packet Size"), ("CONNECT", "CONNACK")),
    **dict.fromkeys(("Assigned Client Identifier", "Server Keep Alive", "Response Information", "Maximum QoS"), ("CONNACK",)),
    **dict.fromkeys(("Retain Available", "Wildcard Subscription Available"), ("CONNACK",)),
    **dict.fromkeys(("Subscription Identifier Available", "Shared Subscription Available"), ("CONNACK",)),
    "Server Reference": ("CONNACK", "DISCONNECT"),
    "Reason String": EXPLAINED,
    "User Property": ("CONNECT", "PUBLISH", WILL, "SUBSCRIBE", "UNSUBSCRIBE", *EXPLAINED),
}
"""Where each property may stand (MQTT 5 §2.2.2.2, Table 2-4)."""
SWITCHES = (
    *("Payload Format Indicator", "Request Problem Information", "Request Response Information", "Maximum QoS", "Retain Available"),
    *("Wildcard Subscription Available", "Subscription Identifier Available", "Shared Subscription Available"),
)
NOT_0 = ("Receive Maximum", "Maximum Packet Size", "Subscription Identifier", "Topic Alias")
"""Properties that are 0 or 1, and those that are not 0 (MQTT 5 §3.1.2.11, §3.2.2.3, §3.3.2.3, §3.8.2.1.2)."""
OWNERS = {
    "--topic": ("PUBLISH",),
    "--qos": ("PUBLISH",),
    "--payload": ("PUBLISH",),
    "--filter": (*FILTERED, "SUBACK", "UNSUBACK"),
    "--client-id": ("CONNECT",),
    "--user-name": ("CONNECT",),
    "--password-bytes": ("CONNECT",),
    "--will-topic": ("CONNECT",),
    "--will-payload": ("CONNECT",),
    "--will-property": ("CONNECT",),
    "--reason-code": (*ACKNOWLEDGEMENTS, "DISCONNECT", "AUTH"),
}
"""Control packets that have what an option of the command line tells (MQTT 5 §2.3, §3)."""


def check(packet: Packet, given: set[str], topics: Mapping[str, str], filters: Sequence[str]) -> None:
    """Raise UsageError for what MQTT does not allow. `given` are the options of the command line that were written, `topics` two values."""
    check_options(packet, given)
    if packet.kind == "AUTH" and packet.version < 5:
        raise UsageError("AUTH: MQTT 3.1 and 3.1.1 have none (MQTT 5 §3.15; --mqtt-version 5)")
    if packet.password_bytes is not None and packet.user_name_bytes is None and packet.version < 5:
        raise UsageError("--password-bytes without --user-name: only MQTT 5 has it (MQTT 3.1.1 §3.1.2.9, MQTT 5 §3.1.2.9)")
    check_properties(packet.kind, packet.properties, "--property")
    check_properties(WILL, packet.will_properties, "--will-property")
    if packet.kind == "PUBLISH":
        check_topic_name("--topic", topics["--topic"], may_be_empty="Topic Alias" in dict(packet.properties))
    if "--will-topic" in given:
        check_topic_name("--will-topic", topics["--will-topic"], may_be_empty=False)
    for name in filters:
        check_filter(name)


def check_options(packet: Packet, given: set[str]) -> None:
    """Raise UsageError for an option that says nothing of this packet, or needs another one."""
    for option in sorted(given):
        if packet.kind not in OWNERS[option]:
            raise UsageError(f"{option}: {packet.kind} has no such field, only {', '.join(OWNERS[option])} (MQTT 5 §3; leave it out)")
    if "--reason-code" in given and packet.version < 5:
        raise UsageError(f"--reason-code: {packet.kind} has none before MQTT 5 (MQTT 3.1.1 §3.4; leave it out)")
    if given & {"--will-payload", "--will-property"} and "--will-topic" not in given:
        raise UsageError("--will-payload and --will-property: a will has a topic (MQTT 5 §3.1.3.3; write --will-topic too)")


def check_properties(place: str, given: Properties, option: str) -> None:
    """Raise UsageError for properties that may not stand there, stand there twice, or have a value that is none of theirs."""
    names = [name for name, _ in given]
    for name, value in given:
        if place not in PLACES[name]:
            raise UsageError(f"{option} {name}: not in {place}, only in {', '.join(PLACES[name])} (MQTT 5 §2.2.2.2)")
        may_repeat = name == "User Property" or (name == "Subscription Identifier" and place == "PUBLISH")
        if names.count(name) > 1 and not may_repeat:
            raise UsageError(f"{option} {name}: {names.count(name)} times, where {place} has it once (MQTT 5 §2.2.2.2)")
        if name in SWITCHES and int(value) > 1:
            raise UsageError(f"{option} {name}={value}: it is 0 or 1 (MQTT 5 §2.2.2.2)")
        if name in NOT_0 and int(value) == 0:
            raise UsageError(f"{option} {name}={value}: it is 1 at least (MQTT 5 §2.2.2.2)")
        if name == "Response Topic":
            check_topic_name(f"{option} {name}", value, may_be_empty=False)
    if "Authentication Data" in names and "Authentication Method" not in names:
        raise UsageError(f"{option} Authentication Data: not without Authentication Method (MQTT 5 §3.1.2.11.10)")


def check_topic_name(option: str, topic: str, *, may_be_empty: bool) -> None:
    """Raise UsageError for a topic name that cannot be (MQTT 5 §3.3.2.1, §4.7)."""
    if not topic and not may_be_empty:
        raise UsageError(f"{option}: one character at least, but for a PUBLISH with --property 'Topic Alias=N' (MQTT 5 §3.3.2.1, §4.7.3)")
    if "#" in topic or "+" in topic:
        raise UsageError(f"{option} {topic}: wildcards stand in topic filters only (MQTT 5 §3.3.2.1)")
    check_text(option, topic)


def check_filter(name: str) -> None:
    """Raise UsageError for a topic filter whose wildcards stand where none may (MQTT 5 §4.7.1)."""
    levels = name.split("/")
    is_broken = any(len(level) > 1 and ("#" in level or "+" in level) for level in levels) or "#" in levels[:-1]
    if is_broken:
        raise UsageError(f"--filter {name}: '+' stands for a whole level, '#' for all at the end (MQTT 5 §4.7.1)")
    check_text("--filter", name)


def check_text(option: str, text: str) -> None:
    """Raise UsageError for a character that no string has (MQTT 5 §1.5.4)."""
    if "\0" in text:
        raise UsageError(f"{option}: no string has the character U+0000 (MQTT 5 §1.5.4)")
