"""A small capture may hold very many messages: its rows come all the same, and nobody waits for ever."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pyarrow.parquet as pq
from against_standards.building import MACS
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

OFFER = b"Sec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover\r\n\r\n"
REQUEST = (
    b"GET /mqtt HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" + OFFER
)
ANSWER = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" + OFFER
)
FRAMES = 10
DISCONNECTS = 500_000
"""Packets of two bytes (MQTT 5 §3.14) in a frame."""
WAIT_S = 120


def deflated() -> bytes:
    """Return a masked WebSocket frame of many packets, deflated to a thousandth (RFC 7692 §7.2.1)."""
    compress = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = (compress.compress(b"\xe0\x00" * DISCONNECTS) + compress.flush(zlib.Z_SYNC_FLUSH))[:-4]
    return b"\xc2\xfe" + struct.pack(">H", len(packed)) + bytes(4) + packed


def test_a_small_capture_of_millions_of_messages_comes_to_its_end(tmp_path: Path) -> None:
    """More rows than wait for their reader at once: eleven kilobytes hold five million."""
    client, server = ("192.0.2.1", 40_000), ("192.0.2.2", 80)
    next_bytes = {client: 1, server: 1}
    packets = []
    for source, target, payload in [(client, server, REQUEST), (server, client, ANSWER), *[(client, server, deflated())] * FRAMES]:
        header = TCP(sport=source[1], dport=target[1], seq=next_bytes[source], ack=next_bytes[target], flags="PA")
        packets.append(Ether(**MACS) / IP(src=source[0], dst=target[0]) / header / Raw(payload))
        next_bytes[source] += len(payload)
    capture, rows = tmp_path / "bomb.pcap", tmp_path / "rows.parquet"
    wrpcap(str(capture), packets)

    words = ["messages", str(capture), "--columns", "frame", "-O", str(rows)]
    subprocess.run([sys.executable, "-c", "from pcapstat.cli import main; main()", *words], check=True, timeout=WAIT_S)

    assert capture.stat().st_size < 20_000
    assert pq.ParquetFile(rows).metadata.num_rows == 2 + FRAMES * DISCONNECTS


def test_requests_that_nobody_answers_cost_no_more_the_more_there_are(tmp_path: Path) -> None:
    """Each NON of 400 a second is open for NON_LIFETIME (RFC 7252 §4.8.2), 145 s: 58,000 at a time."""
    messages, per_s, wait_s = 160_000, 400, 15
    capture = tmp_path / "unanswered.pcap"
    with capture.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101))
        for number in range(messages):
            token = struct.pack(">I", number) if number % 2 else b""
            coap = struct.pack(">BBH", 0x50 | len(token), 2, number & 0xFFFF) + token + b"\xb1a\xff1"
            udp = struct.pack(">HHHH", 40_000, 5683, 8 + len(coap), 0) + coap
            packet = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, b"\x0a\0\0\x01", b"\x0a\0\0\x02") + udp
            file.write(struct.pack("<IIII", number // per_s, number % per_s * 2_500, len(packet), len(packet)) + packet)

    words = ["sessions", str(capture), "--format", "json", "--columns", "messages,exchanges_unanswered"]
    program = [sys.executable, "-c", "from pcapstat.cli import main; main()", *words]
    done = subprocess.run(program, check=True, timeout=wait_s, capture_output=True)

    assert json.loads(done.stdout) == [{"messages": messages, "exchanges_unanswered": messages}]
