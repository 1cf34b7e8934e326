"""HTTP/2 as clients and servers speak it: extensions, pushes, field blocks over several frames, what a gap hides."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from unit.test_http import C, S, exchanges, messages, talk

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""RFC 9113 §3.4"""
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, CONTINUATION = 0, 1, 3, 4, 5, 6, 9
END_STREAM, END_HEADERS = 1, 4
ACK = 1
GET = b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"
"""RFC 7541 C.4.1: :method GET, :scheme http, :path /, :authority www.example.com."""
GET_AGAIN = b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf"
"""RFC 7541 C.4.2: the same and cache-control: no-cache; :authority is what the request before put into the dynamic table."""
STATUS_200, STATUS_304, STATUS_404 = b"\x88", b"\x8b", b"\x8d"
"""RFC 7541 Appendix A: indexes 8, 11 and 13 of the static table."""


def frame(kind: int, flags: int, stream_id: int, content: bytes = b"") -> bytes:
    """Build a frame (RFC 9113 §4.1)."""
    return len(content).to_bytes(3) + bytes([kind, flags]) + stream_id.to_bytes(4) + content


OPENING = [(C, PREFACE + frame(SETTINGS, 0, 0)), (S, frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0)), (C, frame(SETTINGS, ACK, 0))]
ASK = frame(HEADERS, END_HEADERS | END_STREAM, 1, GET)
ANSWER = frame(HEADERS, END_HEADERS, 1, STATUS_200) + frame(DATA, END_STREAM, 1, b"hello")


def test_frames_of_extensions_are_passed_over(tmp_path: Path) -> None:
    """RFC 9113 §5.5: "Implementations MUST ignore unknown or unsupported values" - those behind them are found."""
    grease = frame(0xFA, 0x1F, 1, b"grease")
    capture = talk(tmp_path, *OPENING, (C, ASK + grease), (S, grease + ANSWER))

    assert messages(capture, "kind", "variant", "header_bytes", "option_bytes", "payload_bytes")[5:] == [
        ("HEADERS", "GET", 9, 17, 0),
        ("unknown", "", 15, 0, 0),
        ("unknown", "", 15, 0, 0),
        ("HEADERS", "200", 9, 1, 0),
        ("DATA", "", 9, 0, 5),
    ]
    assert exchanges(capture)[2:] == [("GET", "complete", "200")]


def test_a_gap_hides_what_field_blocks_refer_to(tmp_path: Path) -> None:
    """RFC 7541 §2.3.2: what a lost HEADERS put into the dynamic table is not known, so no later field block is read by it."""
    again = frame(HEADERS, END_HEADERS | END_STREAM, 3, GET_AGAIN)
    whole = talk(tmp_path, *OPENING, (C, ASK), (C, again))
    # :method GET, :scheme http, :path /, :authority www.example.com, cache-control no-cache
    names_and_values = 7 + 3 + 7 + 4 + 5 + 1 + 10 + 15 + 13 + 8
    assert messages(whole, "variant", "field_section_bytes")[-1] == ("GET", names_and_values)

    cut = talk(tmp_path, *OPENING, (C, ASK), (C, again), (S, frame(HEADERS, END_HEADERS | END_STREAM, 3, STATUS_404)), lost=frozenset({3}))
    assert messages(cut, "kind", "variant", "field_section_bytes", "option_bytes")[-2:] == [
        ("HEADERS", "", None, 12),
        ("HEADERS", "404", 10, 1),
    ]
    assert exchanges(cut)[-1] == ("request", "complete", "404")


def test_a_push_is_an_exchange_of_its_own(tmp_path: Path) -> None:
    """RFC 9113 §8.4: PUSH_PROMISE is no response to the request whose stream it comes in; what it promises comes in another."""
    promise = frame(PUSH_PROMISE, END_HEADERS, 1, (2).to_bytes(4) + b"\x82\x86\x85")
    pushed = frame(HEADERS, END_HEADERS, 2, STATUS_200) + frame(DATA, END_STREAM, 2, b"push")
    capture = talk(tmp_path, *OPENING, (C, ASK), (S, promise), (S, ANSWER), (S, pushed))

    rows = {row["kind"]: row for row in pa.table(capture.exchanges).to_pylist()}
    get, push = rows["GET"], rows["push"]
    # frames 4 to 9 open the connection; each segment is acknowledged
    assert (get["frame_first"], get["frame_response"], get["messages"], get["result"]) == (10, 14, 3, "200")
    assert (push["frame_first"], push["frame_last"], push["messages"], push["payload_bytes"], push["resource"]) == (
        12,
        16,
        3,
        4,
        "/index.html",
    )
    assert (push["direction"], push["outcome"], push["rtt_ns"]) == ("s2c", "complete", None)


def test_a_field_block_may_take_several_frames(tmp_path: Path) -> None:
    """RFC 9113 §6.2, §6.10: the request and the status are known with the last CONTINUATION, which END_STREAM waits for."""
    ask = frame(HEADERS, END_STREAM, 1, GET[:2]) + frame(CONTINUATION, 0, 1, GET[2:3]) + frame(CONTINUATION, END_HEADERS, 1, GET[3:])
    answer = frame(HEADERS, END_STREAM, 1) + frame(CONTINUATION, END_HEADERS, 1, STATUS_404)
    capture = talk(tmp_path, *OPENING, (C, ask), (S, answer))

    [row] = [row for row in pa.table(capture.exchanges).to_pylist() if row["kind"] != "SETTINGS"]
    assert (row["kind"], row["resource"], row["outcome"], row["result"], row["messages"]) == ("GET", "/", "complete", "404", 5)


def test_what_comes_behind_the_end_begins_nothing(tmp_path: Path) -> None:
    """RFC 9113 §5.1.1: a client's streams have growing numbers, so trailers of one that was reset are no request."""
    ask = frame(HEADERS, END_HEADERS, 1, GET) + frame(DATA, 0, 1, b"up")
    capture = talk(tmp_path, *OPENING, (C, ask), (S, frame(RST_STREAM, 0, 1, b"\0\0\0\x08")), (C, frame(HEADERS, 5, 1, b"\x90")))

    assert exchanges(capture)[2:] == [("GET", "reset", None)]


def test_acknowledgements_find_what_they_acknowledge(tmp_path: Path) -> None:
    """RFC 9113 §6.7: a PING's answer has its data; §6.5.3: SETTINGS are acknowledged in their order."""
    pings = frame(PING, 0, 0, b"12345678") + frame(PING, 0, 0, b"abcdefgh")
    settings = frame(SETTINGS, 0, 0) * 2
    capture = talk(
        tmp_path,
        *OPENING,
        (C, pings + settings),
        (S, frame(PING, ACK, 0, b"abcdefgh") + frame(SETTINGS, ACK, 0)),
        (S, frame(PING, ACK, 0, b"12345678") + frame(SETTINGS, ACK, 0)),
    )

    rows = sorted(pa.table(capture.exchanges).to_pylist(), key=lambda row: row["exchange"])[2:]
    acknowledged = [(row["kind"], row["outcome"], row["frame_ack"]) for row in rows]
    assert acknowledged == [("PING", "complete", 14), ("PING", "complete", 12), ("SETTINGS", "complete", 12), ("SETTINGS", "complete", 14)]


def test_content_that_is_no_representation_of_success_is_no_data(tmp_path: Path) -> None:
    """As with HTTP/1.1 content of responses other than 2xx does not count as data."""
    answer = frame(HEADERS, END_HEADERS, 1, STATUS_304) + frame(DATA, END_STREAM, 1, b"x")

    assert messages(talk(tmp_path, *OPENING, (C, ASK), (S, answer)), "kind", "is_data")[-1] == ("DATA", False)


def test_frames_in_the_segment_of_the_upgrade_are_frames(tmp_path: Path) -> None:
    """RFC 7540 §3.2: the server's preface may follow its answer 101 at once; the request that asked for it is answered on stream 1."""
    upgrade = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    switching = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    capture = talk(tmp_path, (C, upgrade), (S, switching + frame(SETTINGS, 0, 0) + ANSWER), (C, PREFACE + frame(SETTINGS, ACK, 0)))

    assert messages(capture, "protocol", "kind", "payload_bytes") == [
        ("http", "Request", 0),
        ("http", "Response", 0),
        ("http2", "SETTINGS", 0),
        ("http2", "HEADERS", 0),
        ("http2", "DATA", 5),
        ("http2", "Magic", 0),
        ("http2", "SETTINGS", 0),
    ]
    [row] = [row for row in pa.table(capture.exchanges).to_pylist() if row["kind"] != "SETTINGS"]
    assert (row["kind"], row["outcome"], row["result"], row["messages"], row["payload_bytes"]) == ("GET", "complete", "200", 4, 5)
