"""MQTT control packets: MQTT 5 §2 and §3; of MQTT 3.1.1 the same without property length and properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pcapstat.errors import UsageError
from pcapstat.theory.size import Line, Size, exactly, size

PROPERTIES: dict[str, str] = {
    "Payload Format Indicator": "byte",
    "Message Expiry Interval": "four",
    "Content Type": "text",
    "Response Topic": "text",
    "Correlation Data": "binary",
    "Subscription Identifier": "variable",
    "Session Expiry Interval": "four",
    "Assigned Client Identifier": "text",
    "Server Keep Alive": "two",
    "Authentication Method": "text",
    "Authentication Data": "binary",
    "Request Problem Information": "byte",
    "Will Delay Interval": "four",
    "Request Response Information": "byte",
    "Response Information": "text",
    "Server Reference": "text",
    "Reason String": "text",
    "Receive Maximum": "two",
    "Topic Alias Maximum": "two",
    "Topic Alias": "two",
    "Maximum QoS": "byte",
    "Retain Available": "byte",
    "User Property": "pair",
    "Maximum Packet Size": "four",
    "Wildcard Subscription Available": "byte",
    "Subscription Identifier Available": "byte",
    "Shared Subscription Available": "byte",
}
"""The type of each property (MQTT 5 §2.2.2.2)."""
MOST_REMAINING = 268_435_455


def variable_bytes(value: int) -> int:
    """Return the length of a Variable Byte Integer in its shortest form (MQTT 5 §1.5.5). Raises UsageError beyond its range."""
    if not 0 <= value <= MOST_REMAINING:
        raise UsageError(f"{value} does not fit a Variable Byte Integer, {MOST_REMAINING} at most (MQTT 5 §1.5.5)")
    return 1 if value < 128 else 2 if value < 16384 else 3 if value < 2_097_152 else 4


INTEGERS = {"byte": (1, "§1.5.1"), "two": (2, "§1.5.2"), "four": (4, "§1.5.3")}
"""Bytes of the integers, and their sections in MQTT 5."""
MOST_TEXT = 65_535
"""Bytes of a string or of binary data (MQTT 5 §1.5.4, §1.5.6)."""


def text_bytes(name: str, count: int, section: str = "§1.5.4") -> int:
    """Return the length of a string or binary data with its length field of two bytes. Raises UsageError where it does not fit that."""
    if count > MOST_TEXT:
        raise UsageError(f"{name}: {count} bytes, where {MOST_TEXT} are the most (MQTT 5 {section})")
    return 2 + count


def integer(name: str, value: str) -> int:
    """Read a number. Raises UsageError where it is none."""
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"{name}={value}: no number (MQTT 5 §2.2.2.2)") from None


def binary_bytes(name: str, value: str) -> int:
    """Return the length of binary data. Raises UsageError where it is neither hexadecimal nor "(n bytes)"."""
    if value.startswith("(") and value.endswith(" bytes)"):
        return integer(name, value[1:-7])
    try:
        return len(bytes.fromhex(value))
    except ValueError:
        raise UsageError(f"{name}={value}: not hexadecimal (MQTT 5 §1.5.6)") from None


def property_bytes(name: str, value: str) -> int:
    """Return the length of a property with its identifier.

    A User Property's value is written "name=value"; binary data in hexadecimal, or as "(n bytes)" as the column `properties` shows it.
    Raises UsageError where the property's type cannot hold the value.
    """
    if name not in PROPERTIES:
        raise UsageError(f"no MQTT property {name} (there are: {', '.join(PROPERTIES)})")
    kind = PROPERTIES[name]
    if kind == "pair":
        key, _, text = value.partition("=")
        return 1 + text_bytes(name, len(key.encode())) + text_bytes(name, len(text.encode()))
    if kind == "binary":
        return 1 + text_bytes(name, binary_bytes(name, value), "§1.5.6")
    if kind == "text":
        return 1 + text_bytes(name, len(value.encode()))
    number = integer(name, value)
    if kind == "variable":
        return 1 + variable_bytes(number)
    count, section = INTEGERS[kind]
    if not 0 <= number < 256**count:
        raise UsageError(f"{name}={value}: the number has {count} bytes, {256**count - 1} at most (MQTT 5 {section})")
    return 1 + count


Properties = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Packet:
    """What a control packet says, as far as its size depends on it. Strings count in UTF-8; None leaves a field out."""

    kind: str
    version: int = 5
    properties: Properties = ()
    topic_bytes: int = 0
    qos: int = 0
    payload_bytes: int = 0
    client_identifier_bytes: int = 0
    user_name_bytes: int | None = None
    password_bytes: int | None = None
    will_topic_bytes: int | None = None
    will_payload_bytes: int = 0
    will_properties: Properties = ()
    filters_bytes: Sequence[int] = field(default_factory=tuple)
    has_reason_code: bool | None = None
    reason_codes: int = 1


def properties(packet: Packet, given: Properties, section: str, prefix: str = "") -> list[Line]:
    """Return the property length and the properties; none before MQTT 5. Raises UsageError for properties before it."""
    if packet.version < 5:
        if given:
            raise UsageError(f"{packet.kind} with properties: MQTT 3.1 and 3.1.1 have none (MQTT 5 §2.2.2)")
        return []
    lines = [exactly("option", f"{name}: {value}", property_bytes(name, value), "MQTT 5 §2.2.2.2") for name, value in given]
    length = sum(line.least for line in lines)
    return [exactly("option", f"{prefix}Property Length", variable_bytes(length), section), *lines]


def text(name: str, count: int, source: str) -> list[Line]:
    """Return a string or binary data behind its length of two bytes. Raises UsageError where it does not fit that."""
    text_bytes(name, count)
    return [exactly("header", f"{name} length", 2, source), exactly("header", name, count, source)]


def connect(packet: Packet) -> list[Line]:
    """MQTT 5 §3.1."""
    name = 6 if packet.version != 3 else 8
    lines = [
        exactly("header", "Protocol Name", name, "MQTT 5 §3.1.2.1"),
        exactly("header", "Protocol Version", 1, "MQTT 5 §3.1.2.2"),
        exactly("header", "Connect Flags", 1, "MQTT 5 §3.1.2.3"),
        exactly("header", "Keep Alive", 2, "MQTT 5 §3.1.2.10"),
        *properties(packet, packet.properties, "MQTT 5 §3.1.2.11"),
        *text("Client Identifier", packet.client_identifier_bytes, "MQTT 5 §3.1.3.1"),
    ]
    if packet.will_topic_bytes is not None:
        lines += properties(packet, packet.will_properties, "MQTT 5 §3.1.3.2", "Will ")
        lines += text("Will Topic", packet.will_topic_bytes, "MQTT 5 §3.1.3.3")
        lines += text("Will Payload", packet.will_payload_bytes, "MQTT 5 §3.1.3.4")
    if packet.user_name_bytes is not None:
        lines += text("User Name", packet.user_name_bytes, "MQTT 5 §3.1.3.5")
    if packet.password_bytes is not None:
        lines += text("Password", packet.password_bytes, "MQTT 5 §3.1.3.6")
    return lines


def connack(packet: Packet) -> list[Line]:
    """MQTT 5 §3.2."""
    return [
        exactly("header", "Connect Acknowledge Flags", 1, "MQTT 5 §3.2.2.1"),
        exactly("header", "Connect Reason Code", 1, "MQTT 5 §3.2.2.2"),
        *properties(packet, packet.properties, "MQTT 5 §3.2.2.3"),
    ]


def publish(packet: Packet) -> list[Line]:
    """MQTT 5 §3.3."""
    return [
        *text("Topic Name", packet.topic_bytes, "MQTT 5 §3.3.2.1"),
        *([exactly("header", "Packet Identifier", 2, "MQTT 5 §3.3.2.2")] if packet.qos else []),
        *properties(packet, packet.properties, "MQTT 5 §3.3.2.3"),
        exactly("payload", "Payload", packet.payload_bytes, "MQTT 5 §3.3.3"),
    ]


SECTIONS = {
    **{"PUBACK": "§3.4", "PUBREC": "§3.5", "PUBREL": "§3.6", "PUBCOMP": "§3.7"},
    **{"SUBSCRIBE": "§3.8", "SUBACK": "§3.9", "UNSUBSCRIBE": "§3.10", "UNSUBACK": "§3.11", "DISCONNECT": "§3.14", "AUTH": "§3.15"},
}
"""Sections of MQTT 5 on the control packets that have the same fields as others."""


def section(packet: Packet, rest: str) -> str:
    """Return a section on a packet: `rest` is what follows the packet's own number."""
    return f"MQTT 5 {SECTIONS[packet.kind]}{rest}"


def acknowledgement(packet: Packet) -> list[Line]:
    """MQTT 5 §3.4 to §3.7: the reason code may be left out where it is 0 and there are no properties, and the property length with it."""
    lines = [exactly("header", "Packet Identifier", 2, section(packet, ".2"))]
    return lines + reason(packet)


def reason(packet: Packet) -> list[Line]:
    """Return reason code and properties, each there only where it has to be, or where it is said to be."""
    has_properties = bool(packet.properties)
    if packet.version < 5 or not (packet.has_reason_code or has_properties):
        return []
    code = exactly("header", "Reason Code", 1, section(packet, ".2.1"))
    return [code, *(properties(packet, packet.properties, section(packet, ".2.2")) if has_properties else [])]


def subscribe(packet: Packet) -> list[Line]:
    """MQTT 5 §3.8."""
    lines = [exactly("header", "Packet Identifier", 2, "MQTT 5 §3.8.2"), *properties(packet, packet.properties, "MQTT 5 §3.8.2.1")]
    for count in packet.filters_bytes:
        lines += [
            *text("Topic Filter", count, "MQTT 5 §3.8.3"),
            exactly("header", "Subscription Options", 1, "MQTT 5 §3.8.3.1"),
        ]
    return lines


def unsubscribe(packet: Packet) -> list[Line]:
    """MQTT 5 §3.10."""
    lines = [exactly("header", "Packet Identifier", 2, "MQTT 5 §3.10.2"), *properties(packet, packet.properties, "MQTT 5 §3.10.2.1")]
    for count in packet.filters_bytes:
        lines += text("Topic Filter", count, "MQTT 5 §3.10.3")
    return lines


def suback(packet: Packet) -> list[Line]:
    """MQTT 5 §3.9, §3.11; an UNSUBACK of MQTT 3.1.1 has no reason codes (MQTT 3.1.1 §3.11)."""
    has_codes = packet.kind == "SUBACK" or packet.version == 5
    return [
        exactly("header", "Packet Identifier", 2, section(packet, ".2")),
        *properties(packet, packet.properties, section(packet, ".2.1")),
        *([exactly("header", "Reason Codes", packet.reason_codes, section(packet, ".3"))] if has_codes else []),
    ]


PACKETS = {
    "CONNECT": connect,
    "CONNACK": connack,
    "PUBLISH": publish,
    "PUBACK": acknowledgement,
    "PUBREC": acknowledgement,
    "PUBREL": acknowledgement,
    "PUBCOMP": acknowledgement,
    "SUBSCRIBE": subscribe,
    "SUBACK": suback,
    "UNSUBSCRIBE": unsubscribe,
    "UNSUBACK": suback,
    "PINGREQ": lambda _: [],
    "PINGRESP": lambda _: [],
    "DISCONNECT": reason,
    "AUTH": reason,
}
"""Control packet types (MQTT 5 §2.1.2) and what makes their variable header and payload."""


FILTERED = {"SUBSCRIBE": "MQTT 5 §3.8.3", "UNSUBSCRIBE": "MQTT 5 §3.10.3"}
"""Control packets with topic filters, one at least."""


def check(packet: Packet) -> None:
    """Raise UsageError for a control packet that does not exist, or lacks what it has to have."""
    if packet.kind not in PACKETS:
        raise UsageError(f"no MQTT control packet {packet.kind} (there are: {', '.join(PACKETS)})")
    if packet.kind in FILTERED and not (packet.filters_bytes and all(packet.filters_bytes)):
        raise UsageError(f"{packet.kind}: one topic filter at least, of one character at least ({FILTERED[packet.kind]}, §4.7.3)")


def size_of(packet: Packet) -> Size:
    """Return the size of a control packet. Raises UsageError for one that cannot be."""
    check(packet)
    body = PACKETS[packet.kind](packet)
    remaining = sum(line.least for line in body)
    if remaining > MOST_REMAINING:
        raise UsageError(
            f"{packet.kind} of {remaining} bytes behind the fixed header: {MOST_REMAINING} are the most (MQTT 5 §1.5.5, §2.1.4)"
        )
    return size(
        exactly("header", "Packet type, flags", 1, "MQTT 5 §2.1.2"),
        exactly("header", "Remaining Length", variable_bytes(remaining), "MQTT 5 §2.1.4"),
        body,
    )


def from_text(text_of_column: str | None) -> list[tuple[str, str]]:
    """Read the column `properties` of the table messages back."""
    pairs = (given.partition(": ") for given in (text_of_column or "").split("; "))
    return [(name, value) for name, _, value in pairs if name]
