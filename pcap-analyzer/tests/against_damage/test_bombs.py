"""A small capture may hold very many messages: its rows come all the same, and nobody waits for ever."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pyarrow.parquet as pq
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
        packets.append(Ether() / IP(src=source[0], dst=target[0]) / header / Raw(payload))
        next_bytes[source] += len(payload)
    capture, rows = tmp_path / "bomb.pcap", tmp_path / "rows.parquet"
    wrpcap(str(capture), packets)

    words = ["messages", str(capture), "--columns", "frame", "-O", str(rows)]
    subprocess.run([sys.executable, "-c", "from pcapstat.cli import main; main()", *words], check=True, timeout=WAIT_S)

    assert capture.stat().st_size < 20_000
    assert pq.ParquetFile(rows).metadata.num_rows == 2 + FRAMES * DISCONNECTS
