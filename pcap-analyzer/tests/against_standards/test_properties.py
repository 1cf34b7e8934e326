"""Table 2-4 of MQTT 5: each property's identifier, type and packets, as the table of messages and the size model have them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import pcapstat
from against_standards.building import C, S, capture, connack, mqtt, publish, text, with_length
from pcapstat.theory import mqtt as theory

A_B = "00 02 61 62"
"""A string, or binary data, of two bytes (§1.5.4, §1.5.6)."""
TABLE_2_4 = {
    "CONNECT": [
        ("11 00 00 0e 10", "Session Expiry Interval: 3600"),
        (f"15 {A_B}", "Authentication Method: ab"),
        (f"16 {A_B}", "Authentication Data: (2 bytes)"),
        ("17 01", "Request Problem Information: 1"),
        ("19 00", "Request Response Information: 0"),
        ("21 00 14", "Receive Maximum: 20"),
        ("22 01 00", "Topic Alias Maximum: 256"),
        (f"26 00 01 6b {A_B}", "User Property: k=ab"),
        ("27 00 01 00 00", "Maximum Packet Size: 65536"),
    ],
    "Will": [("18 00 00 00 05", "Will Delay Interval: 5")],
    "CONNACK": [
        (f"12 {A_B}", "Assigned Client Identifier: ab"),
        ("13 00 3c", "Server Keep Alive: 60"),
        (f"1a {A_B}", "Response Information: ab"),
        (f"1c {A_B}", "Server Reference: ab"),
        (f"1f {A_B}", "Reason String: ab"),
        ("24 01", "Maximum QoS: 1"),
        ("25 00", "Retain Available: 0"),
        ("28 01", "Wildcard Subscription Available: 1"),
        ("29 00", "Subscription Identifier Available: 0"),
        ("2a 01", "Shared Subscription Available: 1"),
    ],
    "PUBLISH": [
        ("01 01", "Payload Format Indicator: 1"),
        ("02 00 00 00 0a", "Message Expiry Interval: 10"),
        (f"03 {A_B}", "Content Type: ab"),
        (f"08 {A_B}", "Response Topic: ab"),
        (f"09 {A_B}", "Correlation Data: (2 bytes)"),
        ("0b 80 01", "Subscription Identifier: 128"),
        ("23 00 02", "Topic Alias: 2"),
    ],
}
"""Each of the 27 properties once: its bytes, as §2.2.2.2 and its own section have them, and the text of the column `properties`."""


def encoded(packet: str) -> bytes:
    """Return the bytes of a packet's properties."""
    return b"".join(bytes.fromhex(written) for written, _ in TABLE_2_4[packet])


def connect_with_will() -> bytes:
    """Return CONNECT with properties of its own and of its Will (§3.1)."""
    head = text("MQTT") + bytes([5, 0x06, 0, 60]) + with_length(encoded("CONNECT"))
    return mqtt(1, head + text("a") + with_length(encoded("Will")) + text("w") + text("gone"))


def test_each_property_is_read_as_the_standard_writes_it(tmp_path: Path) -> None:
    """Behind each one the next stands where it should."""
    said = [(C, connect_with_will()), (S, connack(properties=encoded("CONNACK"))), (S, publish(properties=encoded("PUBLISH")))]
    rows = pa.table(pcapstat.open(capture(tmp_path / "x.pcap", said, "tcp", 1883), engine="native").messages).to_pylist()

    shown = {row["kind"]: row["properties"] for row in rows}
    expected = {kind: "; ".join(told for _, told in TABLE_2_4[kind]) for kind in ("CONNECT", "CONNACK", "PUBLISH")}
    assert shown == expected
    lengths = {"CONNECT": 1 + len(encoded("CONNECT")) + 1 + len(encoded("Will")), "CONNACK": 1 + len(encoded("CONNACK"))}
    lengths |= {"PUBLISH": 1 + len(encoded("PUBLISH"))}
    assert {row["kind"]: row["option_bytes"] for row in rows} == lengths
    assert (rows[0]["will_topic"], rows[2]["payload_bytes"]) == ("w", 1)


def test_the_size_model_has_the_same_properties() -> None:
    """Their names, all 27, and their lengths with the identifier."""
    written = [row for rows in TABLE_2_4.values() for row in rows]
    sizes = {told.partition(": ")[0]: len(bytes.fromhex(given)) for given, told in written}

    assert len(written) == len(sizes) == 27
    assert {name: theory.property_bytes(name, value) for _, told in written for name, _, value in [told.partition(": ")]} == sizes
    assert sizes.keys() == theory.PROPERTIES.keys()
