"""MQTT as captures have it: identifiers of both directions, aliases set before, several brokers' habits, other protocols around it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import click.testing
import pyarrow as pa
import pytest
from against_standards.building import (
    C,
    S,
    Said,
    ack,
    capture,
    connack,
    connack_311,
    connect,
    connect_311,
    packets,
    publish,
    publish_311,
    suback,
    subscribe,
    two_connections,
)
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

import pcapstat
from pcapstat.cli.tables import make

PUBACK = 4


def rows(path: Path, table: str, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    """Return columns of a table."""
    found = pa.table(pcapstat.open(path, engine="native", **options).table(table))
    return list(zip(*(found.column(column).to_pylist() for column in columns), strict=True))


def notes(path: Path, session: int | None, **options: Any) -> set[str]:
    """Return what the capture does not show of a session."""
    return {note for note, number in rows(path, "notes", "note", "session", **options) if number == session}


def test_each_side_has_packet_identifiers_of_its_own(tmp_path: Path) -> None:
    """Trap 29: both use 1 at a time (MQTT 5 §2.2.1); each PUBACK ends the other side's PUBLISH, and 1 is free at once."""
    said = [(C, connect()), (S, connack()), (C, publish(1, 1, payload=b"up")), (S, publish(1, 1, payload=b"down"))]
    said += [(S, ack(PUBACK, 1)), (C, ack(PUBACK, 1)), (C, publish(1, 1, payload=b"next")), (S, ack(PUBACK, 1))]
    path = capture(tmp_path / "x.pcap", said, "tcp", 1883)
    flows = rows(path, "exchanges", "kind", "direction", "outcome", "ack_rtt_ns", "payload_bytes")

    assert sorted(flow[1:] for flow in flows if flow[0] == "PUBLISH QoS 1") == [
        ("c2s", "complete", 10_000_000, 4),
        ("c2s", "complete", 20_000_000, 2),
        ("s2c", "complete", 20_000_000, 4),
    ]
    assert "both-ways" in notes(path, 0)


def test_behind_the_last_wanted_message_only_its_acknowledgement_counts(tmp_path: Path) -> None:
    """With --stop-after: the second message is never acknowledged; the third one, and its PUBACK from the receiver, are behind it."""
    said = [(C, connect()), (S, connack()), (S, publish(1, 1)), (C, ack(PUBACK, 1))]
    said += [(S, publish(2, 1)), (S, publish(3, 1)), (C, ack(PUBACK, 3))]
    path = capture(tmp_path / "x.pcap", said, "tcp", 1883)

    [session] = pcapstat.open(path, engine="native", stop_after=2).summary().sessions
    assert (session.messages, session.data_messages) == (5, 2)


@pytest.mark.parametrize(("version", "payload", "inferred"), [(None, b"one", True), (5, b"one", False), (4, b"\0one", False)])
def test_the_version_decides_where_the_payload_begins(version: int | None, payload: bytes, inferred: bool, tmp_path: Path) -> None:
    """Trap 26: without a CONNECT the empty properties of MQTT 5 (§3.3.2.3.1) may be the payload's first byte in 3.1.1."""
    path = tmp_path / "x.pcap"
    wrpcap(str(path), packets([(C, publish(payload=b"one"))], "tcp", 1883)[3:])

    assert rows(path, "messages", "payload", show_payload=True, mqtt_version=version) == [(payload,)]
    assert ("version-unknown" in notes(path, 0, mqtt_version=version)) == inferred


@pytest.mark.parametrize("code", [0x80, 0x97])
def test_a_reason_code_that_tells_of_an_error_ends_a_flow(code: int, tmp_path: Path) -> None:
    """Trap 30: behind PUBREC with 0x80 or more comes no PUBREL (MQTT 5 §4.3.3); the identifier is free for the next."""
    said = [(C, connect()), (S, connack()), (C, publish(1, 2)), (S, ack(5, 1, code)), (C, publish(1, 2))]
    said += [(S, ack(5, 1, 0x10)), (C, ack(6, 1)), (S, ack(7, 1))]
    path = capture(tmp_path / "x.pcap", said, "tcp", 1883)

    flows = rows(path, "exchanges", "kind", "frame_first", "frame_last", "outcome", "result")
    assert [flow[1:] for flow in flows if flow[0] == "PUBLISH QoS 2"] == [(6, 7, "complete", f"0x{code:02x}"), (8, 11, "complete", "0x10")]


def test_an_alias_set_before_the_capture_names_no_topic(tmp_path: Path) -> None:
    """Trap 25: MQTT 5 §3.3.2.3.4."""
    path = tmp_path / "x.pcap"
    wrpcap(str(path), packets([(C, publish(topic="", properties=b"\x23\0\1", payload=b"one"))], "tcp", 1883)[3:])

    [row] = rows(path, "messages", "topic_name", "topic_name_bytes", "topic_alias", "payload_bytes", mqtt_version=5)
    assert (row[0] or "", *row[1:]) == ("", 0, 1, 3)
    assert {"alias-unknown", "mid-stream"} <= notes(path, 0, mqtt_version=5)


def test_a_broker_may_answer_in_the_older_form(tmp_path: Path) -> None:
    """Trap 79: CONNACK of two bytes to a CONNECT of MQTT 5; on a port of its own the protocol is known by that CONNECT, with a note."""
    said = [(C, connect()), (S, connack_311()), (C, publish(1, 1, payload=b"one")), (S, ack(PUBACK, 1))]
    for port, expected in ((1883, set()), (31_999, {"heuristic"})):
        path = capture(tmp_path / f"{port}.pcap", said, "tcp", port)
        found = rows(path, "messages", "kind", "payload_bytes", "malformed")
        assert found == [("CONNECT", 0, None), ("CONNACK", 0, None), ("PUBLISH", 3, None), ("PUBACK", 0, None)]
        assert notes(path, 0) & {"heuristic", "malformed"} == expected


def test_messages_of_one_segment_share_its_headers(tmp_path: Path) -> None:
    """Traps 20, 24, 35: three messages of 8 bytes behind 54 of Ethernet, IP and TCP, all at one time; edges are rounded down."""
    said = [(C, connect_311()), (S, connack_311()), (C, b"".join(publish_311(number, 1) for number in (1, 2, 3)))]
    path = capture(tmp_path / "x.pcap", said, "tcp", 1883)
    found = rows(path, "messages", "frame", "frame_bytes", "link_bytes", "ip_bytes", "transport_bytes", "header_bytes", "payload_bytes")

    assert found[2:] == [(6, 24, 4, 6, 6, 7, 1), (6, 27, 5, 7, 7, 7, 1), (6, 27, 5, 7, 7, 7, 1)]
    assert len({time for time, frame in rows(path, "messages", "time_ns", "frame") if frame == 6}) == 1


SUBSCRIBER: Said = [
    (C, connect(identifier="s"), 0.03),
    (S, connack(), 0.04),
    (C, subscribe(1, "t", "#"), 0.05),
    (S, suback(1, 0, 0), 0.06),
]
PUBLISHER: Said = [(C, connect(identifier="p"), 0.1), (S, connack(), 0.11), (C, publish(), 0.15)]


def test_a_second_copy_by_another_subscription_is_no_second_delivery(tmp_path: Path) -> None:
    """Trap 33: two filters match (MQTT 5 §3.3.4); both copies are data, only the first has a delay."""
    path = two_connections(tmp_path / "x.pcap", [*SUBSCRIBER, (S, publish(), 0.2), (S, publish(), 0.21)], PUBLISHER, 0.0)
    delivered = rows(path, "exchanges", "direction", "kind", "delay_ns", "payload_bytes")

    assert [row[2:] for row in delivered if row[:2] == ("s2c", "PUBLISH QoS 0")] == [(50_000_000, 1), (None, 1)]


def test_what_the_broker_refuses_is_data_and_is_not_delivered(tmp_path: Path) -> None:
    """MQTT 5 §4.3.2, §2.4: behind PUBACK with 0x87 the broker has no such message; what it delivers is the equal one that it accepted."""
    publisher = [(C, connect(identifier="p"), 0.1), (S, connack(), 0.11), (C, publish(1, 1), 0.12), (S, ack(PUBACK, 1, 0x87), 0.13)]
    publisher += [(C, publish(2, 1), 0.15), (S, ack(PUBACK, 2, 0x10), 0.16)]
    path = two_connections(tmp_path / "x.pcap", [*SUBSCRIBER, (S, publish(), 0.2)], publisher, 0.0)

    flows = rows(path, "exchanges", "direction", "kind", "result", "outcome", "delay_ns")
    assert [flow[2:] for flow in flows if flow[1] == "PUBLISH QoS 1"] == [("0x87", "complete", None), ("0x10", "complete", None)]
    assert [flow[4] for flow in flows if flow[:2] == ("s2c", "PUBLISH QoS 0")] == [50_000_000]
    told = {row[0]: row[1:] for row in rows(path, "notes", "note", "session", "frame_first", "count")}
    # behind twice three packets of TCP's opening and four of the subscriber's
    assert (told["not-accepted"], told["undelivered"][0]) == ((1, 14, 1), 1)
    # both payloads of one byte reached the broker
    assert [session.data_bytes for session in pcapstat.open(path).summary().sessions] == [1, 2]


def test_a_delay_below_zero_stays_so(tmp_path: Path) -> None:
    """Trap 34: the delivery is captured behind the publication but stamped 10 ms before it."""
    frames = packets(SUBSCRIBER, "tcp", 1883) + packets(PUBLISHER, "tcp", 1883, client_port=40_001)
    delivery = packets([*SUBSCRIBER, (S, publish(), 0.14)], "tcp", 1883)[-1]
    path = tmp_path / "x.pcap"
    wrpcap(str(path), [*frames, delivery])

    assert [delay for (delay,) in rows(path, "exchanges", "delay_ns") if delay is not None] == [-10_000_000]
    delays = [row[1:] for row in rows(path, "timings", "timing", "count", "negative", "min_ns") if row[0] == "delay"]
    assert delays == [(1, 1, -10_000_000)]
    assert "time-backwards" in notes(path, None)


def test_a_delivery_captured_before_its_publication_is_not_linked(tmp_path: Path) -> None:
    """Trap 34: as interfaces mix frames up; the publication is noted as delivered to nobody."""
    frames = packets(SUBSCRIBER, "tcp", 1883) + packets(PUBLISHER, "tcp", 1883, client_port=40_001)
    frames.insert(-1, packets([*SUBSCRIBER, (S, publish(), 0.149)], "tcp", 1883)[-1])
    path = tmp_path / "x.pcap"
    wrpcap(str(path), frames)

    assert {delay for (delay,) in rows(path, "exchanges", "delay_ns")} == {None}
    assert "undelivered" in notes(path, 1)


def test_what_a_gateway_translates_is_linked(tmp_path: Path) -> None:
    """Trap 38: MQTT-SN 1.2 §5.4.10, §5.4.12: topic "t" is registered as 7 and published so; it reaches a subscriber of MQTT."""
    sensor = [
        (C, b"\x07\x04\x04\x01\x00\x3ca", 0.1),
        (S, b"\x03\x05\x00", 0.11),
        (C, b"\x07\x0a\x00\x00\x00\x01t", 0.12),
        (S, b"\x07\x0b\x00\x07\x00\x01\x00", 0.13),
        (C, b"\x08\x0c\x00\x00\x07\x00\x00x", 0.15),
    ]
    frames = packets(sensor, "udp", 1884) + packets([*SUBSCRIBER, (S, publish(), 0.2)], "tcp", 1883)
    path = tmp_path / "x.pcap"
    wrpcap(str(path), sorted(frames, key=lambda frame: float(frame.time)))

    found = rows(path, "exchanges", "protocol", "kind", "delay_ns", decode_as=["udp.port==1884,mqttsn"])
    assert [row for row in found if "PUBLISH" in row[1]] == [("mqttsn", "PUBLISH QoS 0", None), ("mqtt", "PUBLISH QoS 0", 50_000_000)]


def test_identifiers_that_were_not_captured_pair_nothing(tmp_path: Path) -> None:
    """Trap 54: two PUBLISH and the PUBACK of the first, all cut behind their fixed header; nobody can tell which one it acknowledges."""
    frames = packets([(C, connect()), (S, connack()), (C, publish(1, 1)), (C, publish(2, 1)), (S, ack(4, 1))], "tcp", 1883)
    path = tmp_path / "x.pcap"
    lengths = [len(frame) for frame in frames]
    cut = [Ether(bytes(frame)[: 54 + 2]) if number > 4 else frame for number, frame in enumerate(frames)]
    for frame, before, length in zip(cut, frames, lengths, strict=True):
        frame.time, frame.wirelen = before.time, length
    wrpcap(str(path), cut)

    found = rows(path, "exchanges", "kind", "outcome", "rtt_ns")
    assert [row for row in found if row[0] == "PUBLISH QoS 1"] == [("PUBLISH QoS 1", "ambiguous", None)] * 2
    assert {"ambiguous", "snap-length"} <= notes(path, 0) | notes(path, None)


UPGRADE = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: mqtt\r\n"
REQUEST = (
    b"GET /mqtt HTTP/1.1\r\nHost: b\r\n" + UPGRADE + b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
ANSWER = b"HTTP/1.1 101 Switching Protocols\r\n" + UPGRADE + b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"


def websocket(data: bytes, mask: bytes = b"") -> bytes:
    """Return a binary frame (RFC 6455 §5.2), masked as a client's is."""
    masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data)) if mask else data
    return bytes([0x82, bool(mask) << 7 | len(data)]) + mask + masked


def test_packets_and_websocket_frames_need_not_coincide(tmp_path: Path) -> None:
    """Trap 37: one PUBLISH over two frames, then two in one frame; frame headers (2, or 6 with the mask) count as the packets' header."""
    mask, one = b"\1\2\3\4", publish_311(1, 1)
    said = [(C, REQUEST), (S, ANSWER), (C, websocket(connect_311(), mask)), (S, websocket(connack_311()))]
    said += [(C, websocket(one[:4], mask) + websocket(one[4:], mask)), (C, websocket(publish_311(2, 1) + publish_311(3, 1), mask))]
    path = capture(tmp_path / "x.pcap", said, "tcp", 80)

    found = rows(path, "messages", "kind", "frame", "header_bytes", "payload_bytes")
    assert [row[1:] for row in found if row[0] == "PUBLISH"] == [(8, 7 + 12, 1), (9, 7 + 3, 1), (9, 7 + 3, 1)]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_topic_with_commas_is_one_value(form: str, tmp_path: Path) -> None:
    """Trap 70: tshark's `-T fields` puts a comma between two values; two packets of one frame here are two rows."""
    both = publish(topic="a,b") + publish(topic='c,"d')
    path = capture(tmp_path / "x.pcap", [(C, connect()), (S, connack()), (C, both)], "tcp", 1883)
    out = tmp_path / f"x.{form}"
    words = [str(path), "--columns", "kind,topic_name", "-O", str(out)]
    done = click.testing.CliRunner().invoke(make("messages", "Rows"), words, standalone_mode=False)
    assert done.exception is None

    found = csv.DictReader(out.read_text().splitlines()) if form == "csv" else json.loads(out.read_text())
    assert [row["topic_name"] for row in found if row["kind"] == "PUBLISH"] == ["a,b", 'c,"d']


def test_what_is_sent_behind_the_last_data_is_behind_time2(tmp_path: Path) -> None:
    """metrics.md: throughput ends at Time2. Behind one PUBLISH, or each of two, comes a PINGRESP: the last one counts no more."""
    ping: Said = [(C, b"\xc0\0"), (S, b"\xd0\0")]
    for count in (1, 2):
        frames = packets([*SUBSCRIBER, *([(S, publish()), *ping] * count)], "tcp", 1883)
        path = tmp_path / f"{count}.pcap"
        wrpcap(str(path), frames)

        [received] = [
            sum(parts) for direction, parts in rows(path, "directions", "direction", "received_until_time2") if direction == "s2c"
        ]
        assert received == sum(len(frame) for frame in frames[:-1] if frame.sport == 1883)


def test_publications_that_nobody_received_are_counted(tmp_path: Path) -> None:
    """Each of three: one waits for longer than deliveries are waited for when the second comes, the others until the capture ends."""
    said = [(C, connect()), (S, connack()), (C, publish(), 1.0), (C, publish(), 200.0), (C, publish(topic="u"), 201.0)]
    path = capture(tmp_path / "x.pcap", said, "tcp", 1883)

    told = dict(rows(path, "notes", "note", "text"))
    assert told["undelivered"] == "publications that no captured subscriber received: 3 publications"


def test_a_subscribe_tells_the_version(tmp_path: Path) -> None:
    """Trap 26: the CONNECT is not in the capture; only in MQTT 5 a property length stands behind the identifier (§3.8.2)."""
    for version, packet in ((5, subscribe(1, "a/b")), (4, b"\x82\x08\0\1\0\3a/b\0")):
        path = tmp_path / f"{version}.pcap"
        wrpcap(str(path), packets([(C, packet)], "tcp", 1883)[3:])

        assert rows(path, "messages", "kind", "version", "topic_filters") == [("SUBSCRIBE", version, "a/b QoS 0")]
