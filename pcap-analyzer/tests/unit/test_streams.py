"""What becomes of a session beside its own packets: its peer's address changes, a group answers, ICMP refuses its datagrams."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from places import CAPTURES
from scapy.layers.inet import IP, UDP
from scapy.utils import rdpcap, wrpcap

import pcapstat

CONNECTION_ID = CAPTURES / "a-californium-dtls-cid-con.pcapng"
MOVED_PORT = 61_234


def noted(capture: Path, kind: str) -> list[dict[str, Any]]:
    """Return the notes of one kind."""
    return [note for note in pa.table(pcapstat.open(capture).notes).to_pylist() if note["note"] == kind]


def move_client(capture: Path, to: Path, frame: int) -> tuple[int, int]:
    """Write a copy in which the client has another port from a frame on; return its old port and how many of its datagrams moved."""
    packets = rdpcap(str(capture))
    client = next(packet[UDP].sport for packet in packets if UDP in packet)
    moved = 0
    for packet in packets[frame - 1 :]:
        if UDP in packet and client in (packet[UDP].sport, packet[UDP].dport):
            moved += packet[UDP].sport == client
            side = "sport" if packet[UDP].sport == client else "dport"
            setattr(packet[UDP], side, MOVED_PORT)
    wrpcap(str(to), packets, nano=True)
    return client, moved


@pytest.mark.parametrize("frame", [60, 150])
def test_a_peer_with_a_connection_id_may_move(tmp_path: Path, frame: int) -> None:
    """RFC 9146 §6: the session goes on from the new address with all that was agreed, and one note says so."""
    copy = tmp_path / "moved.pcap"
    client, moved = move_client(CONNECTION_ID, copy, frame)
    before, after = (pcapstat.open(capture) for capture in (CONNECTION_ID, copy))

    assert moved > 10
    columns = ["time_ns", "direction", "kind", "variant", "frame_bytes", "connection_id", "session"]
    assert pa.table(after.messages).select(columns).to_pylist() == pa.table(before.messages).select(columns).to_pylist()
    [note] = noted(copy, "peer-moved")
    assert f":{client} to " in note["text"]
    assert note["text"].endswith(f":{MOVED_PORT}")
    assert noted(CONNECTION_ID, "peer-moved") == []


def test_the_filter_of_a_session_shows_its_frames_behind_a_move_too(tmp_path: Path) -> None:
    """Wireshark numbers a stream by its addresses and ports, so the frames from the new port are in another one."""
    copy = tmp_path / "moved.pcap"
    move_client(CONNECTION_ID, copy, 60)
    [session] = pcapstat.open(copy).summary().sessions
    streams = {message["stream"] for message in pa.table(pcapstat.open(copy).messages).to_pylist()}

    assert len(streams) == 2
    assert session.filter == " or ".join(f"udp.stream eq {stream}" for stream in sorted(streams))


def test_members_of_a_group_number_their_messages_independently(tmp_path: Path) -> None:
    """RFC 7252 §4.4: message IDs are a source endpoint's own, so the same one of two members is no retransmission; of one member it is."""
    capture = tmp_path / "group.pcap"
    ends = {"sport": 40_000, "dport": 5683}
    request = IP(src="10.0.0.1", dst="224.0.1.187") / UDP(**ends) / b"\x51\x01\0\x01T\xb1a"
    answers = [(7, b"\0\x01"), (8, b"\0\x01"), (9, b"\0\x21"), (8, b"\0\x01")]
    packets = [request] + [
        IP(src=f"10.0.0.{member}", dst="10.0.0.1", id=number)
        / UDP(sport=5683, dport=40_000)
        / (b"\x51\x45" + message_id + b"T\xff%d" % member)
        for number, (member, message_id) in enumerate(answers, 1)
    ]
    for number, packet in enumerate(packets):
        packet.time = 1_700_000_000 + number / 100
    wrpcap(str(capture), packets)
    messages = pa.table(pcapstat.open(capture).messages).to_pylist()

    assert [message["is_data"] for message in messages] == [False, True, True, True, False]
    assert [message["is_retransmission"] for message in messages] == [False, False, False, False, True]
    assert {message["exchange"] for message in messages} == {0}


@pytest.mark.parametrize("name", ["a-californium-con", "a-californium-non", "a-java-coap-con"])
def test_refusals_stand_beside_their_session(name: str) -> None:
    """Study A's receiver leaves while messages are on their way: as many are refused as tshark finds ICMP errors with its port."""
    capture = CAPTURES / f"{name}.pcapng"
    command = ["tshark", "-n", "-r", str(capture), "-Y", "icmp.type == 3 and udp.port == 5683", "-T", "fields", "-e", "frame.number"]
    frames = [int(line) for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()]

    refused = noted(capture, "refused")
    assert sum(note["count"] for note in refused) == len(frames) > 0
    assert (refused[0]["frame_first"], refused[-1]["frame_last"]) == (frames[0], frames[-1])
    assert all(note["text"].endswith("port unreachable") for note in refused)
