"""Streams of which the capture lacks something: where decoding goes on, and what is known there. Known traffic, and tshark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from against_standards.building import C, S, capture, connack_311, connect_311, publish_311
from scapy.layers.inet import fragment
from scapy.utils import wrpcap

import pcapstat
from unit.test_mqtt import ANSWER, REQUEST, websocket
from unit.test_tcp import CONNACK, CONNECT, Connection, messages, publish, tshark


def counted(path: Path) -> tuple[int, int]:
    """Return the bytes that all figures are made of, and the capture's."""
    sums = pcapstat.open(path, engine="native").sums()
    sessions = [sums.session(number) for number in range(len(sums))]
    found = sum(sum(row["parts"]) for session in sessions for row in session["kinds"]) + sum(row["bytes"] for row in sums.others)
    found += sum(sum(row["control_parts"]) + sum(row["unassigned_parts"]) for session in sessions for row in session["directions"])
    return found, sum(row["frame_bytes"] for row in sums.captures)


@pytest.mark.parametrize("cuts", [[2], [1, 2], [1], [2, 4], [1, 2, 3, 4, 5, 6, 7]], ids=str)
@pytest.mark.parametrize("lost", [None, 3], ids=["start", "gap"])
def test_a_sender_may_write_headers_by_themselves(cuts: list[int], lost: int | None, tmp_path: Path) -> None:
    """Each PUBLISH comes in several segments, the first of which are too short to tell: all are found, as tshark finds them."""
    connection = Connection(is_opened=lost is not None)
    if lost is not None:
        connection.send(0.03, 0, CONNECT)
        connection.send(0.04, 1, CONNACK)
    for number in range(1, 21):
        whole = publish(number, b"21.5 C")
        for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            if number == lost:
                connection.lose(0, whole[start:end])
            else:
                connection.send(number + start / 100, 0, whole[start:end])
    path = connection.write(tmp_path / "x.pcap")

    found = [
        (str(frame), str(identifier)) for kind, frame, identifier in messages(path, "kind", "frame", "message_id") if kind == "PUBLISH"
    ]
    assert [int(identifier) for _, identifier in found] == [number for number in range(1, 21) if number != lost]
    if lost is None:
        assert found == tshark(path, "mqtt.msgtype == 3", "frame.number", "mqtt.msgid")


@pytest.mark.parametrize(("length", "segment"), [(400_000, 1000), (20_000, 1449), (200, 99)])
def test_a_capture_may_begin_within_a_long_publication(length: int, segment: int, tmp_path: Path) -> None:
    """The rest of many segments' bytes, and behind it 20 PUBLISH; of fewer bytes, in segments none of which begins a packet."""
    stream = b"x" * length + b"".join(publish(number, b"21.5 C") for number in range(1, 21))
    connection = Connection(is_opened=False)
    for place in range(0, len(stream), segment):
        connection.send(place / 1e6, 0, stream[place : place + segment])

    assert messages(connection.write(tmp_path / "x.pcap"), "kind", "message_id") == [("PUBLISH", number) for number in range(1, 21)]


@pytest.mark.parametrize("begin", [b"\x82\xf0\x10", b"\xa2\xf0\x10", b"\xe0\0\x82\xf0\x10", b"\x40\x02\0\x07\xa2\x85\x20", b"\x32\xf0\x10"])
def test_bytes_of_a_payload_are_no_control_packet(begin: bytes, tmp_path: Path) -> None:
    """Binary payload that looks like a longer packet's start does not hide the publications behind it."""
    payload = (begin + bytes(range(128, 256))) * 40
    connection = Connection(is_opened=False)
    connection.send(0.0, 0, payload[:1400])
    connection.send(0.1, 0, payload[1400:2800])
    for number in range(1, 11):
        connection.send(number, 0, publish(number, b"21.5 C"))

    found = [row for row in messages(connection.write(tmp_path / "x.pcap"), "kind", "message_id", "malformed")]
    assert found == [("PUBLISH", number, None) for number in range(1, 11)]


def test_an_alias_behind_a_gap_names_no_topic(tmp_path: Path) -> None:
    """MQTT 5 §3.3.2.3.4: a PUBLISH that is not captured may have set the alias anew (here it did, to "b")."""

    def aliased(topic: bytes, payload: bytes) -> bytes:
        body = len(topic).to_bytes(2) + topic + b"\3\x23\0\1" + payload
        return bytes([0x30, len(body)]) + body

    connection = Connection()
    connection.send(0.03, 0, b"\x10\x10\0\x04MQTT\x05\x02\0\x3c\0\0\x03esp")
    connection.send(0.04, 1, b"\x20\x06\0\0\x03\x22\0\1")
    connection.send(1.0, 0, aliased(b"a", b"1"))
    connection.send(2.0, 0, aliased(b"", b"2"))
    connection.lose(0, aliased(b"b", b"3"))
    connection.send(4.0, 0, aliased(b"", b"4"))
    connection.send(5.0, 0, aliased(b"c", b"5"))
    connection.send(6.0, 0, aliased(b"", b"6"))
    path = connection.write(tmp_path / "x.pcap")

    assert [topic for kind, topic in messages(path, "kind", "topic_name") if kind == "PUBLISH"] == ["a", "a", None, "c", "c"]
    notes = pa.table(pcapstat.open(path, engine="native").notes).to_pylist()
    assert [row["count"] for row in notes if row["note"] == "alias-unknown"] == [1]


def test_a_packet_that_a_websocket_has_not_ended_is_counted(tmp_path: Path) -> None:
    """The capture ends behind a frame (RFC 6455 §5.2) with the first half of a PUBLISH: its bytes are those of the frame."""
    mask, one = b"\1\2\3\4", publish_311(1, 1)
    said = [(C, REQUEST), (S, ANSWER), (C, websocket(connect_311(), mask)), (S, websocket(connack_311())), (C, websocket(one[:5], mask))]
    path = capture(tmp_path / "x.pcap", said, "tcp", 80)

    found, expected = counted(path)
    assert found == expected
    notes = pa.table(pcapstat.open(path, engine="native").notes).to_pylist()
    assert [row["text"].split(": ")[1] for row in notes if row["note"] == "unfinished"] == ["5 bytes"]


def test_what_stands_behind_a_websockets_last_gap_is_counted(tmp_path: Path) -> None:
    """The capture ends before the peer acknowledges what is behind a missing segment: that is decoded, with its own time."""
    connection = Connection(80)
    mask = b"\1\2\3\4"
    connection.send(0.03, 0, REQUEST)
    connection.send(0.04, 1, ANSWER)
    connection.send(0.05, 0, websocket(connect_311(), mask))
    connection.send(0.06, 1, websocket(connack_311()))
    connection.lose(0, websocket(publish_311(1, 1), mask))
    connection.send(1.0, 0, websocket(publish_311(2, 1), mask))
    connection.send(2.0, 0, websocket(publish_311(3, 1), mask))
    path = connection.write(tmp_path / "x.pcap")

    found, expected = counted(path)
    assert found == expected
    start = 1_700_000_000_000_000_000
    rows = [row[1:] for row in messages(path, "kind", "message_id", "frame", "time_ns") if row[0] == "PUBLISH"]
    assert rows == [(2, 8, start + 1_000_000_000), (3, 9, start + 2_000_000_000)]


def test_a_messages_first_and_last_frame_are_so_by_number(tmp_path: Path) -> None:
    """The middle of three segments is captured last, the first one second; then the stream ends within a message."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    whole = publish(1, b"x" * 90)
    connection.lose(0, whole[:60])
    connection.send(1.0, 0, whole[60:])
    connection.send(1.1, 0, whole[:30], back=len(whole))
    connection.send(1.2, 0, whole[30:60], back=len(whole) - 30)
    connection.send(2.0, 0, publish(2, b"y" * 90)[:50])
    path = connection.write(tmp_path / "x.pcap")

    assert messages(path, "kind", "frames", "frame_first", "frame_last")[2:] == [("PUBLISH", [6, 7, 8], 6, 8)]
    [session] = pa.table(pcapstat.open(path, engine="native").sessions).to_pylist()
    assert (session["frame_first"], session["frame_last"]) == (1, 9)
    assert len(tshark(path, "tcp.stream eq 0", "frame.number")) == 9


def test_the_fragments_of_a_messages_first_segment_are_its_frames(tmp_path: Path) -> None:
    """Two segments with a PUBLISH, each of which IP cut into two: all four frames carry bytes of it."""
    connection = Connection()
    connection.send(0.03, 0, CONNECT)
    connection.send(0.04, 1, CONNACK)
    whole = publish(1, b"x" * 90)
    connection.send(1.0, 0, whole[:60])
    connection.send(2.0, 0, whole[60:])
    *opening, first, second = connection.packets
    path = tmp_path / "x.pcap"
    wrpcap(str(path), [*opening, *fragment(first, 40), *fragment(second, 40)], nano=True)

    # of the second one the header of TCP and 20 bytes, then 19 bytes
    assert messages(path, "kind", "frames", "frame_first", "frame_last")[2:] == [("PUBLISH", [6, 7, 8, 9], 6, 9)]
    assert tshark(path, "mqtt.msgtype == 3", "frame.number") == [("9",)]
