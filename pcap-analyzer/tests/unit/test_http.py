"""HTTP/1.1 and WebSocket as clients and servers speak them: which response answers which request, and where frames follow."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from places import CAPTURES

import pcapstat
from unit.test_tcp import Connection

C, S = 0, 1
UPGRADE = (
    b"GET /chat HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
SWITCHING = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n%s\r\n"
)
HELLO = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
"""RFC 6455 §5.7: a single-frame masked text message, 6 bytes of header and "Hello"."""


def get(path: bytes, method: bytes = b"GET") -> bytes:
    """Build a request without content."""
    return method + b" " + path + b" HTTP/1.1\r\nHost: h\r\n\r\n"


def answer(content: bytes, status: bytes = b"200 OK") -> bytes:
    """Build a response."""
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(content), content)


def talk(path: Path, *turns: tuple[int, bytes], lost: frozenset[int] = frozenset()) -> Any:
    """Write a connection of segments, without those that the capture lost; each is acknowledged."""
    connection = Connection(80)
    for number, (side, data) in enumerate(turns):
        if number in lost:
            connection.lose(side, data)
        else:
            connection.send(0.1 + number / 100, side, data)
        connection.send(0.105 + number / 100, 1 - side, flags="A")
    capture = path / "http.pcap"
    connection.write(capture)
    return pcapstat.open(capture)


def messages(capture: Any, *columns: str) -> list[tuple[Any, ...]]:
    """Return columns of the messages."""
    return [tuple(row[column] for column in columns) for row in pa.table(capture.messages).to_pylist()]


def exchanges(capture: Any) -> list[tuple[str, str, str | None]]:
    """Return kind, outcome and result of the exchanges, in the order of their numbers."""
    rows = sorted(pa.table(capture.exchanges).to_pylist(), key=lambda row: row["exchange"])
    return [(row["kind"], row["outcome"], row["result"]) for row in rows]


def test_an_answer_to_nothing_is_noted(tmp_path: Path) -> None:
    """The capture lost the first of two requests; of what came then its acknowledgement is frame 4, its answer 5."""
    capture = talk(tmp_path, (0, get(b"/a")), (1, answer(b"a")), (0, get(b"/b")), (1, answer(b"b")), lost=frozenset({0}))
    found = [row for batch in capture.notes.batches() for row in batch.to_pylist() if row["note"] == "unmatched"]

    assert [(row["session"], row["frame_first"], row["count"]) for row in found] == [(0, 5, 1)]


def test_content_waits_for_the_server_to_go_on(tmp_path: Path) -> None:
    """RFC 9110 §10.1.1: 100 Continue comes before the content and belongs to the request's exchange; the final response answers it."""
    post = b"POST /up HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
    capture = talk(tmp_path, (C, post), (S, b"HTTP/1.1 100 Continue\r\n\r\n"), (C, b"data"), (S, answer(b"ok")))

    assert messages(capture, "kind", "variant", "payload_bytes", "exchange") == [
        ("Response", "100", 0, 0),
        ("Request", "POST", 4, 0),
        ("Response", "200", 2, 0),
    ]
    [row] = pa.table(capture.exchanges).to_pylist()
    assert (row["kind"], row["outcome"], row["result"], row["messages"]) == ("POST", "complete", "200", 3)
    assert row["rtt_ns"] == pytest.approx(10_000_000, abs=1000)


def test_a_response_may_come_before_all_of_its_request(tmp_path: Path) -> None:
    """RFC 9112 §9.3: the server refuses while content is still on its way; those that follow keep their own answers."""
    head = b"POST /up HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n"
    capture = talk(
        tmp_path,
        *[(C, head + b"abc"), (S, answer(b"no", b"413 Content Too Large")), (C, b"def")],
        *[(C, get(b"/h", b"HEAD")), (S, b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")],
        *[(C, get(b"/a")), (S, answer(b"a"))],
    )

    assert exchanges(capture) == [("POST", "complete", "413"), ("HEAD", "complete", "200"), ("GET", "complete", "200")]
    assert {fault for (fault,) in messages(capture, "malformed")} == {None}


def test_words_that_are_not_registered_are_words(tmp_path: Path) -> None:
    """RFC 9110 §15: a status code has a class; §9.1: a method is a token; RFC 9112 §2.2: empty lines before a request."""
    capture = talk(
        tmp_path,
        *[(C, get(b"/a") + b"\r\n"), (S, answer(b"err", b"520 Unknown"))],
        *[(C, b"\r\n" + get(b"/a", b"PURGE")), (S, answer(b"gone", b"299 Gone"))],
    )

    assert messages(capture, "kind", "variant", "header_bytes", "payload_bytes", "is_data") == [
        ("Request", "GET", 28, 0, False),
        ("Response", "520", 43, 3, False),
        ("Request", "", 30 + 4, 0, False),
        ("Response", "299", 40, 4, True),
    ]
    assert exchanges(capture) == [("GET", "complete", "520"), ("request", "complete", "299")]


@pytest.mark.parametrize("status", [b"304 Not Modified", b"204 No Content"])
def test_a_response_without_content_ends_with_its_head(tmp_path: Path, status: bytes) -> None:
    """RFC 9112 §6.3: "regardless of the header fields present in the message"."""
    none = b"HTTP/1.1 %s\r\nTransfer-Encoding: chunked\r\n\r\n" % status
    capture = talk(tmp_path, (C, get(b"/a")), (S, none), (C, get(b"/b")), (S, answer(b"b")))

    assert exchanges(capture) == [("GET", "complete", status[:3].decode()), ("GET", "complete", "200")]


def test_an_error_in_chunks_is_no_data(tmp_path: Path) -> None:
    """What a chunked response of an error holds is no more data than the content of another error is."""
    chunked = b"HTTP/1.1 %s\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    turns = [(C, get(b"/a")), (S, chunked % b"404 Not Found"), (C, get(b"/b")), (S, chunked % b"200 OK")]

    assert [is_data for kind, is_data in messages(talk(tmp_path, *turns), "kind", "is_data") if kind == "Chunk"] == [
        False,
        False,
        True,
        False,
    ]


def test_behind_a_lost_response_no_other_one_takes_its_place(tmp_path: Path) -> None:
    """Of two requests one was answered in the gap, which is not known; the next pair is whole again."""
    turns = [turn for path in (b"/1", b"/2", b"/3", b"/4") for turn in ((C, get(path)), (S, answer(path)))]
    capture = talk(tmp_path, *turns, lost=frozenset({3}))

    assert exchanges(capture) == [
        ("GET", "complete", "200"),
        ("GET", "ambiguous", None),
        ("GET", "ambiguous", None),
        ("GET", "complete", "200"),
    ]
    assert [exchange for kind, exchange in messages(capture, "kind", "exchange") if kind == "Response"] == [0, None, 3]


def test_content_goes_on_behind_a_gap(tmp_path: Path) -> None:
    """Content that ends with the connection needs no boundary; behind lost chunks the next response is found."""
    rest = talk(tmp_path, (C, get(b"/a")), (S, b"HTTP/1.1 200 OK\r\n\r\n"), (S, b"1111"), (S, b"2222"), (S, b"3333"), lost=frozenset({3}))
    assert [(kind, bytes_) for kind, bytes_ in messages(rest, "kind", "payload_bytes") if kind == "Content"] == [("Content", 4)] * 2

    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunked = talk(
        tmp_path,
        *[(C, get(b"/a")), (S, head), (S, b"1\r\na\r\n"), (S, b"1\r\nb\r\n0\r\n\r\n")],
        *[(C, get(b"/b")), (S, answer(b"b"))],
        lost=frozenset({2}),
    )
    assert exchanges(chunked) == [("GET", "complete", "200")] * 2
    assert {fault for (fault,) in messages(chunked, "malformed")} == {None}


@pytest.mark.parametrize("before", [[], [(C, get(b"/a")), (S, answer(b"a"))], [(C, UPGRADE), (S, answer(b"who?", b"401 Unauthorized"))]])
@pytest.mark.parametrize("at", [None, 60])
def test_frames_follow_the_answer_101(tmp_path: Path, before: list[tuple[int, bytes]], at: int | None) -> None:
    """RFC 6455 §4.1: also where the connection spoke HTTP before, was refused first, or the request came in two segments."""
    request = [(C, UPGRADE[:at]), *([(C, UPGRADE[at:])] if at else [])]
    capture = talk(tmp_path, *before, *request, (S, SWITCHING % b"" + b"\x89\x01p"), (C, HELLO))

    rows = messages(capture, "protocol", "kind", "header_bytes", "payload_bytes", "is_data")
    assert rows[-2:] == [("websocket", "Ping", 2, 1, False), ("websocket", "Text", 6, 5, True)]
    assert [row[:2] for row in rows[:-2]] == [("http", kind) for kind in ("Request", "Response") * (1 + len(before) // 2)]
    asked = [("GET", "complete", before[1][1].split()[1].decode())] if before else []
    assert exchanges(capture) == [*asked, ("upgrade", "complete", "101"), ("ping", "unanswered", None)]


def test_a_pong_answers_the_ping_with_its_data(tmp_path: Path) -> None:
    """RFC 6455 §5.5.3: identical data; only the last of several pings may be answered, and a pong may answer none."""
    pings = b"\x89\x01a\x89\x01b\x89\x01c"
    capture = talk(
        tmp_path,
        *[(C, UPGRADE), (S, SWITCHING % b""), (S, pings)],
        # masked with 01 02 03 04: "b", then "x"
        *[(C, b"\x8a\x81\x01\x02\x03\x04c"), (C, b"\x8a\x81\x01\x02\x03\x04y"), (S, b"\x8a\0")],
    )

    assert exchanges(capture)[1:] == [("ping", "unanswered", None), ("ping", "complete", None), ("ping", "unanswered", None)]
    assert [exchange for kind, exchange in messages(capture, "kind", "exchange") if kind == "Pong"] == [2, None, None]


@pytest.mark.parametrize("subprotocol", [b"mqtt", b"xmpp"])
def test_a_large_message_in_a_frame_is_a_message_in_sums_too(tmp_path: Path, subprotocol: bytes) -> None:
    """A frame that carries a message is kept as long as it is in the way: sums are those of the rows."""
    offer = b"Sec-WebSocket-Protocol: " + subprotocol + b"\r\n"
    payload = b"x" * 100_000
    # MQTT 3.1.1 §2.2.3: Remaining Length 100005 is a5 8d 06; RFC 7395 §3.3.3: one stanza a frame
    content = {b"mqtt": b"\x30\xa5\x8d\x06\0\x03s/t" + payload, b"xmpp": b"<message><body>" + payload + b"</body></message>"}[subprotocol]
    frame = b"\x82\x7f" + len(content).to_bytes(8) + content
    segments = [(S, frame[at : at + 60_000]) for at in range(0, len(frame), 60_000)]
    capture = talk(tmp_path, (C, UPGRADE.replace(b"\r\n\r\n", b"\r\n" + offer + b"\r\n")), (S, SWITCHING % offer), *segments)

    [row] = [row for row in messages(capture, "protocol", "kind", "payload_bytes", "header_bytes") if row[0] != "http"]
    assert row == (subprotocol.decode(), {b"mqtt": "PUBLISH", b"xmpp": "message"}[subprotocol], 100_000, len(frame) - 100_000)
    assert [session.data_bytes for session in capture.summary().sessions] == [100_000]


def test_an_exchange_tells_what_it_is_about(tmp_path: Path) -> None:
    """The column `resource` is filled where only exchanges are asked for: it is the path that the application asked for."""
    capture = talk(tmp_path, (C, get(b"/lamp?on")), (S, answer(b"a")))
    assert [row["resource"] for row in pa.table(capture.exchanges).to_pylist()] == ["/lamp"]

    for name, resource in [("d-http1-100b", "/Resource1"), ("a-paho-qos1", "Resource1"), ("b-californium-poll50", "Resource1")]:
        rows = pa.table(pcapstat.open(CAPTURES / f"{name}.pcapng").exchanges).to_pylist()
        assert resource in {row["resource"] for row in rows}, name


def text(content: bytes) -> bytes:
    """Build an unmasked text frame."""
    return b"\x81" + bytes([len(content)]) + content


def test_frames_are_found_again_behind_a_gap(tmp_path: Path) -> None:
    """Readings as text go on behind a lost frame; what is left of the one that lost its head is no frame."""
    readings = [text(b'{"t": %d}' % number) for number in range(4)]
    large = b"\x81\x7e\x10\x00" + b"x" * 4096
    turns = [(C, UPGRADE), (S, SWITCHING % b""), (S, readings[0]), (S, large[:2000]), (S, large[2000:]), (S, readings[1] + readings[2])]

    lost_head = messages(talk(tmp_path, *turns, lost=frozenset({3})), "kind", "payload_bytes", "malformed")
    assert lost_head[2:] == [("Text", 8, None), ("Text", 8, None), ("Text", 8, None)]
    lost_end = messages(talk(tmp_path, *turns, lost=frozenset({4})), "kind", "payload_bytes", "missing_bytes")
    assert lost_end[2:] == [("Text", 8, 0), ("Text", 4096, 4100 - 2000), ("Text", 8, 0), ("Text", 8, 0)]


def test_a_packet_that_lost_a_frame_takes_nothing_of_the_next(tmp_path: Path) -> None:
    """MQTT 5 §6: a packet may take several frames; where one is missing, the packets behind it are those that were sent."""
    offer = b"Sec-WebSocket-Protocol: mqtt\r\n"
    # MQTT 3.1.1 §3.3: QoS 0 on "s/t", 20 bytes of payload
    packet = b"\x30\x19\0\x03s/t" + b"y" * 20
    frames = [b"\x82" + bytes([len(part)]) + part for part in (packet, packet[:10], packet[10:], packet, packet)]
    upgrade = UPGRADE.replace(b"\r\n\r\n", b"\r\n" + offer + b"\r\n")
    capture = talk(tmp_path, (C, upgrade), (S, SWITCHING % offer), *[(S, frame) for frame in frames], lost=frozenset({4}))

    rows = messages(capture, "kind", "payload_bytes", "malformed", "is_after_gap")[2:]
    assert rows == [("PUBLISH", 20, None, False), ("PUBLISH", 20, None, True), ("PUBLISH", 20, None, False)]


def test_what_compression_saves_is_less_overhead(tmp_path: Path) -> None:
    """RFC 7692 §7.2.1: a thousand equal letters in a few bytes. What data did not take on the wire is no overhead."""
    compress = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = (compress.compress(b"x" * 1000) + compress.flush(zlib.Z_SYNC_FLUSH))[:-4]
    offer = b"Sec-WebSocket-Extensions: permessage-deflate\r\n"
    upgrade = UPGRADE.removesuffix(b"\r\n") + offer + b"\r\n"
    opened = talk(tmp_path, (C, upgrade), (S, SWITCHING % offer), (S, bytes([0xC1, len(packed)]) + packed))

    [session] = opened.summary().sessions
    parts = session.overhead_by_part_bytes
    assert (session.data_messages, session.data_bytes) == (1, 1000)
    assert ("payload" in parts, parts["compression"]) == (False, len(packed) - 1000)
    assert sum(parts.values()) == session.overhead_bytes
