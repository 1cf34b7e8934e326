"""What crosscheck explains in any capture: where tshark shows less than there is, and the core no topic."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from against_standards.building import C, S, Said, ack, capture, connack, connect, publish
from scapy.utils import wrpcap

import pcapstat
from pcapstat import crosscheck, wireshark
from pcapstat.crosscheck import Difference, Opinions
from unit.test_handshakes import APPLICATION_DATA, CLIENT_HELLO, SERVER_HELLO, datagram, message
from unit.test_mqtt import ANSWER, REQUEST, websocket

MASK = b"\1\2\3\4"
UNIFIED = b"\x2e\1\2\0\x3c" + bytes(60)
"""A record of DTLS 1.3 in epoch 2, with a sequence number of two bytes and a length (RFC 9147 §4)."""


def found(path: Path) -> list[Difference]:
    """Return the differences of a capture in the clear."""
    return list(crosscheck.differences(pcapstat.open(path, engine="native")))


def test_packets_that_websocket_frames_do_not_hold_whole_are_explained(tmp_path: Path) -> None:
    """MQTT 5 §6: packets need not end with a frame. tshark shows seven frames of the WebSocket, the core the six packets in them."""
    one, other = publish(1, 1, payload=b"x" * 40), publish(2, 1)
    said: Said = [(C, REQUEST), (S, ANSWER), (C, websocket(connect(), MASK)), (S, websocket(connack()))]
    said = [*said, *((C, websocket(part, MASK)) for part in (one[:20], one[20:] + other[:5], other[5:]))]
    said = [*said, (S, websocket(ack(4, 1))), (S, websocket(ack(4, 2)))]
    differences = found(capture(tmp_path / "x.pcap", said, "tcp", 80))

    assert sum(int(each.tshark) - int(each.pcapstat) for each in differences if each.protocol == "websocket") == 7
    assert {each.frame for each in differences if each.protocol == "websocket"} == set(range(6, 13))
    assert all(each.explanation for each in differences)


def test_an_alias_without_a_topic_is_explained(tmp_path: Path) -> None:
    """MQTT 5 §3.3.2.3.4: tshark shows the topic's zero bytes as a name, the core none."""
    said = [(C, connect()), (S, connack()), (S, publish(topic="", properties=b"\x23\0\7"))]
    [difference] = found(capture(tmp_path / "x.pcap", said, "tcp", 1883))

    assert (difference.column, difference.tshark, difference.pcapstat) == ("topic_name", "", "None")
    assert "alias" in str(difference.explanation)


@pytest.mark.skipif(wireshark.version(wireshark.find()) >= (4, 2), reason="this tshark knows DTLS 1.3")
def test_records_of_dtls_1_3_are_explained(tmp_path: Path) -> None:
    """RFC 9147 §4: tshark shows the records with the plaintext header (two hellos), not those with the unified one."""
    hello = b"\xfe\xfd" + bytes(range(32)) + b"\0"
    client = message(CLIENT_HELLO, 0, hello + b"\0\0\2\x13\1\1\0\0\x07\0\x2b\0\3\2\xfe\xfc")
    server = message(SERVER_HELLO, 0, hello + b"\x13\1\0\0\6\0\x2b\0\2\xfe\xfc")
    frames = [datagram(True, client), datagram(False, server, UNIFIED), datagram(False, UNIFIED, UNIFIED), datagram(True, UNIFIED)]
    path = tmp_path / "x.pcap"
    wrpcap(str(path), frames)

    differences = found(path)
    assert [(each.frame, each.tshark, each.pcapstat) for each in differences] == [(2, "1", "2"), (3, "0", "2"), (4, "0", "1")]
    assert all("18071" in str(each.explanation) for each in differences)


def test_what_a_condition_does_not_fit_is_not_explained() -> None:
    """A record is missing whose header tells its type, a packet where there is no WebSocket; a topic differs without an alias."""
    plain, hidden = {"content_type": APPLICATION_DATA}, {"content_type": None}
    difference = Difference("x.pcap", 1, "dtls", 0, "", "messages", "0", "2")
    named = {"topic_alias": None, "topic_name": "t"}

    assert not crosscheck.WHERE["hidden types"](difference, Opinions([], [plain, hidden]))
    assert not crosscheck.WHERE["in websocket"](difference, Opinions([], [named]))
    assert not crosscheck.WHERE["carrier"](difference, Opinions([plain], []))
    assert not crosscheck.WHERE["alias unknown"](difference, Opinions([named], [named]))


@pytest.mark.parametrize(
    ("field", "packet_type", "frames"),
    [("packet_type", "1", 2), ("packet_type", "0", 0), ("packet_type", "2", 0), ("packet_type_v2", "2", 2), ("packet_type_v2", "3", 0)],
    ids=["0-RTT", "Initial", "Handshake", "0-RTT of version 2", "Handshake of version 2"],
)
def test_frames_of_early_data_are_messages(field: str, packet_type: str, frames: int) -> None:
    """RFC 9000 §17.2, RFC 9369 §3.2: a layer as tshark writes it of a long header; what 0-RTT packets hold is the application's."""
    layer = ET.Element("proto", name="quic")
    ET.SubElement(layer, "field", name=f"quic.long.{field}", show=packet_type)
    for kind in ("6", "8"):
        frame = ET.SubElement(layer, "field", name="quic.frame")
        ET.SubElement(frame, "field", name="quic.frame_type", show=kind)

    assert len(list(crosscheck.split(layer, "quic", crosscheck.FRAMES))) == frames
