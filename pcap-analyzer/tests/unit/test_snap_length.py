"""Segments that the snap length has cut: what the lengths in their first bytes tell of the rest, in bytes counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from dissectors.test_damage import cut
from scapy.packet import Packet

from unit.test_mqtt import websocket
from unit.test_tcp import CONNACK, CONNECT, Connection, messages, puback, publish

HEADERS_BYTES = 14 + 20 + 20
"""Of Ethernet, IPv4 and TCP."""
PARTS = ("header_bytes", "option_bytes", "payload_bytes", "opaque_bytes")
PAYLOAD = b"\x7f" + bytes(19)
"""As a Property Length its first byte would be longer than the packet."""
CONNECT_5 = b"\x10\x10\0\x04MQTT\x05\x02\0\x3c\0\0\x03esp"
PUBLISH_5 = b"\x32\x1f\0\x03s/t\0\x07\x03\x23\0\x01" + PAYLOAD
"""MQTT 5 §3.3: fixed header of 2 bytes, topic of 2 + 3, identifier of 2; Property Length and Topic Alias of 1 + 3; the payload."""
PUBLISH_4 = publish(7, PAYLOAD)
"""MQTT 3.1.1 §3.3: the same without properties."""


def captured(packets: list[Packet], bytes_of_last: int, path: Path) -> Path:
    """Write packets of which the last one was cut behind so many bytes of its payload."""
    return cut(path, [*((packet, len(packet)) for packet in packets[:-1]), (packets[-1], HEADERS_BYTES + bytes_of_last)])


@pytest.mark.parametrize(
    ("opening", "packet", "at", "parts"),
    [
        (CONNECT, PUBLISH_4, range(2, 4), None),
        (CONNECT, PUBLISH_4, range(4, 30), (9, 0, 20, 0)),
        (CONNECT_5, PUBLISH_5, range(2, 4), None),
        (CONNECT_5, PUBLISH_5, range(4, 10), (9, 0, 0, 24)),
        (CONNECT_5, PUBLISH_5, range(10, 34), (9, 4, 20, 0)),
        # the version is not known, until the first byte behind the identifier tells
        (b"", PUBLISH_4, range(4, 10), (9, 0, 0, 20)),
        (b"", PUBLISH_4, range(10, 30), (9, 0, 20, 0)),
        (b"", PUBLISH_5, range(4, 13), (9, 0, 0, 24)),
        (b"", PUBLISH_5, range(13, 34), (9, 4, 20, 0)),
    ],
)
def test_lengths_tell_what_was_not_captured(
    opening: bytes, packet: bytes, at: range, parts: tuple[int, ...] | None, tmp_path: Path
) -> None:
    """Of a PUBLISH: the topic's length, the Property Length, and Remaining Length. Where none was captured the rest is opaque."""
    connection = Connection(is_opened=bool(opening))
    if opening:
        connection.send(0.03, 0, opening)
    connection.send(0.05, 0, packet)
    for count in at:
        capture = captured(connection.packets, count, tmp_path / "cut.pcap")
        found = messages(capture, "kind", "topic_name_bytes", "is_data", *PARTS, "malformed")[bool(opening) :]
        expected = parts or (count, 0, 0, len(packet) - count)
        topic_bytes = 3 if count >= 7 else None
        assert found == [("PUBLISH", topic_bytes, True, *expected, None)], count


def test_a_topic_that_would_be_longer_than_its_packet_is_malformed(tmp_path: Path) -> None:
    """The bytes that are missing could not mend it."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.05, 0, b"\x32\x1f\0\xffs/t" + bytes(26))
    capture = captured(connection.packets, 6, tmp_path / "cut.pcap")
    assert [kind for kind, fault in messages(capture, "kind", "malformed") if fault] == ["PUBLISH"]


@pytest.mark.parametrize("count", [2, 3, 4, 8, 12])
def test_a_boundary_is_found_in_segments_that_are_cut(count: int, tmp_path: Path) -> None:
    """Two packets in a segment, the second one's header not captured: those behind it are found, since each fills its segment."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    for number, packets in enumerate([publish(1, b"x" * 20) + publish(2, b"y" * 20), publish(3, b"z" * 20), publish(4, b"z" * 30)]):
        connection.send(1.0 + number, 0, packets)
        connection.send(1.5 + number, 1, puback(number + 1))
    lengths = [(packet, HEADERS_BYTES + count if packet.time >= 1_700_000_001 else len(packet)) for packet in connection.packets]
    capture = cut(tmp_path / "cut.pcap", lengths)

    found = messages(capture, "kind", "frame", "missing_bytes", *PARTS[2:])
    payloads = [(20, 0), (20, 0), (30, 0)] if count >= 4 else [(0, 29 - count), (0, 29 - count), (0, 39 - count)]
    assert [row for row in found if row[0] == "PUBLISH"] == [
        ("PUBLISH", frame, 0, *rest) for frame, rest in zip((6, 8, 10), payloads, strict=True)
    ]


def test_boundaries_of_coap_and_websockets_are_found_so_too(tmp_path: Path) -> None:
    """Behind a segment that the capture lost, in one that it cut (RFC 8323 §3.2, RFC 6455 §5.2)."""
    coap = Connection(5683)
    coap.send(0.03, 0, b"\x00\xe1")
    coap.lose(0, bytes(50))
    coap.send(1.0, 0, b"\xb1\x02A\xff" + b"0123456789")
    assert messages(captured(coap.packets, 4, tmp_path / "coap.pcap"), "kind", *PARTS)[1:] == [("Request", 4, 0, 10, 0)]

    web = Connection(8080)
    web.send(
        0.03, 0, b"GET /mqtt HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    web.send(0.04, 1, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
    web.lose(0, bytes(50))
    web.send(1.0, 0, websocket(b"x" * 60, b"mask"))
    assert messages(captured(web.packets, 10, tmp_path / "web.pcap"), "kind", *PARTS)[2:] == [("Binary", 6, 0, 60, 0)]
