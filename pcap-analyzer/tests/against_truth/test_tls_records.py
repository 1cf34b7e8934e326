"""Messages in TLS records as libraries write them: a record ends where a buffer was full, and a segment may hold many records."""

from __future__ import annotations

import random
import ssl
from pathlib import Path

import pyarrow as pa
import pytest
from against_standards.building import ACK, CON, CONTENT, GET, coap
from unit.test_http2 import DATA, OPENING, frame
from unit.test_tcp import Connection

import pcapstat

SIZES = [100, 0, 16_384, 5, 1000, 5000, 16_384, 16_384, 5, 100, 0, 3000]
STREAM = OPENING[1][1] + b"".join(frame(DATA, 0, 1, bytes([size % 256]) * size) for size in SIZES)


def side(server: bool, keys: Path) -> ssl.SSLContext:
    """Return one end of a connection without certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    if not server:
        context.check_hostname = False
        context.keylog_filename = str(keys)
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
    context.set_alpn_protocols(["h2"])
    return context


class Secured:
    """A TLS connection in memory, whose records are put in segments."""

    def __init__(self, keys: Path, port: int = 8443) -> None:
        """Shake hands."""
        self.connection = Connection(port)
        self.out = [ssl.MemoryBIO(), ssl.MemoryBIO()]
        # what one end reads is taken from the other's output, and put into the capture on the way
        self.taken = [ssl.MemoryBIO(), ssl.MemoryBIO()]
        self.ends = [
            side(False, keys).wrap_bio(self.taken[1], self.out[0]),
            side(True, keys).wrap_bio(self.taken[0], self.out[1], server_side=True),
        ]
        is_done = [False, False]
        while not all(is_done):
            for number, end in enumerate(self.ends):
                try:
                    end.do_handshake()
                    is_done[number] = True
                except ssl.SSLWantReadError:
                    pass
                self.send(number, self.out[number].read(), 60_000)

    def send(self, number: int, data: bytes, segment_bytes: int) -> None:
        """Carry bytes to the other end in segments."""
        for at in range(0, len(data), segment_bytes):
            segment = data[at : at + segment_bytes]
            self.connection.send(1 + len(self.connection.packets) / 1000, number, segment)
            self.connection.send(1 + len(self.connection.packets) / 1000, 1 - number, flags="A")
        self.taken[number].write(data)

    def write(self, number: int, records: list[bytes], segment_bytes: int) -> None:
        """Protect a record each."""
        for record in records:
            self.ends[number].write(record)
        self.send(number, self.out[number].read(), segment_bytes)


@pytest.mark.parametrize("segment_bytes", [1448, 20_000, 60_000])
@pytest.mark.parametrize("record_bytes", [(16_384, 16_384), (4096, 4096), (1, 400), (50, 16_384)])
def test_what_records_cut_is_put_together(tmp_path: Path, record_bytes: tuple[int, int], segment_bytes: int) -> None:
    """RFC 8446 §5.1: record boundaries mean nothing; each message of HTTP/2 is found once, and its parts make up the frames."""
    secured = Secured(tmp_path / "keys")
    chance, records, at = random.Random(1), [], 0
    while at < len(STREAM):
        size = chance.randint(*record_bytes)
        records.append(STREAM[at : at + size])
        at += size
    secured.write(0, [OPENING[0][1]], segment_bytes)
    secured.write(1, records, segment_bytes)
    capture = secured.connection.write(tmp_path / "records.pcap")

    opened = pcapstat.open(capture, keylog=[str(tmp_path / "keys")])
    rows = pa.table(opened.messages).to_pylist()
    assert [row["payload_bytes"] for row in rows if row["kind"] == "DATA"] == SIZES
    assert {row["malformed"] for row in rows} == {None}
    session = opened.sums().session(0)
    parts = [row["parts"] for row in session["kinds"]]
    parts += [row[name] for row in session["directions"] for name in ("control_parts", "unassigned_parts")]
    assert sum(map(sum, parts)) == sum(map(len, secured.connection.packets))


def test_coap_without_lengths_is_a_message_a_record(tmp_path: Path) -> None:
    """Trap 90: messages of RFC 7252 in TLS, as java-coap 5 sends them: two requests in a segment, their answers in two."""
    secured = Secured(tmp_path / "keys", 5684)
    path, form = (11, b"time"), (12, b"")
    secured.write(0, [coap(CON, GET, 1, b"AAAA", [path]), coap(CON, GET, 2, b"BBBB", [path])], 60_000)
    for number, token in [(1, b"AAAA"), (2, b"BBBB")]:
        secured.write(1, [coap(ACK, CONTENT, number, token, [form], b"12:00")], 60_000)
    capture = pcapstat.open(secured.connection.write(tmp_path / "x.pcap"), keylog=[str(tmp_path / "keys")])

    rows = [row for row in pa.table(capture.messages).to_pylist() if row["protocol"] == "coap"]
    assert [(row["kind"], row["message_id"], row["payload_bytes"]) for row in rows] == [
        ("CON", 1, 0),
        ("CON", 2, 0),
        ("ACK", 1, 5),
        ("ACK", 2, 5),
    ]
    exchanges = [row for row in pa.table(capture.exchanges).to_pylist() if row["kind"] == "GET"]
    assert [(row["outcome"], row["payload_bytes"]) for row in exchanges] == [("complete", 5)] * 2
