"""CoAP as captures have it: identifiers of two endpoints, bytes that look like others, what is no CoAP at all."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from against_standards.building import ACK, CON, CONTENT, GET, NON, RST, C, S, capture, coap, packets
from scapy.layers.inet import IP
from scapy.utils import wrpcap

import pcapstat

PATH, BLOCK2 = (11, b"a"), 23


def rows(path: Path, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Return columns of a table."""
    found = pa.table(pcapstat.open(path, engine="native").table(table))
    return list(zip(*(found.column(column).to_pylist() for column in columns), strict=True))


def test_each_endpoint_counts_its_own_message_ids(tmp_path: Path) -> None:
    """Traps 6, 87: a separate response (RFC 7252 §5.2.2) may have the request's ID by chance; it is no duplicate, and has its own ACK."""
    said = [(C, coap(CON, GET, 1, b"A", [PATH])), (S, coap(ACK, 0, 1)), (S, coap(CON, CONTENT, 1, b"A", [], b"21")), (C, coap(ACK, 0, 1))]
    path = capture(tmp_path / "x.pcap", said, "udp", 5683)

    assert rows(path, "messages", "is_data", "is_retransmission", "exchange") == [
        (False, False, 0),
        (False, False, 0),
        (True, False, 0),
        (False, False, 0),
    ]
    assert rows(path, "exchanges", "outcome", "ack_rtt_ns", "rtt_ns") == [("complete", 10_000_000, 20_000_000)]


def test_a_late_ack_of_the_request_ends_no_session(tmp_path: Path) -> None:
    """Trap 2 with --stop-after: between the response, which is data, and the client's ACK of it comes the server's ACK of the request."""
    asked, late = (C, coap(CON, GET, 1, b"A", [PATH])), (S, coap(ACK, 0, 1))
    answered, acknowledged = (S, coap(CON, CONTENT, 9, b"A", [], b"21")), (C, coap(ACK, 0, 9))
    again = (C, coap(CON, GET, 2, b"B", [PATH]))
    path = capture(tmp_path / "x.pcap", [asked, answered, late, acknowledged, again], "udp", 5683)

    [session] = pcapstat.open(path, engine="native", stop_after=1).summary().sessions
    assert (session.time2, session.messages, session.data_messages) == ("acknowledgement", 4, 1)
    # the four messages are 10 ms apart
    assert session.delta_time_s == 0.03


def test_an_answer_from_another_address_is_no_answer(tmp_path: Path) -> None:
    """Trap 14: what a server with two addresses, or a NAT, does to a request that is not to a group; the request is noted as unanswered."""
    [asked] = packets([(C, coap(NON, GET, 1, b"A", [PATH]))], "udp", 5683)
    [answer] = packets([(S, coap(NON, CONTENT, 9, b"A", [], b"21"), 0.05)], "udp", 5683)
    answer[IP].src = "192.0.2.9"
    path = tmp_path / "x.pcap"
    wrpcap(str(path), [asked, answer])

    assert rows(path, "exchanges", "outcome", "rtt_ns") == [("unanswered", None)]
    assert ("unanswered", 0) in rows(path, "notes", "note", "session")


def test_answers_that_belong_to_nothing_or_to_several_are_noted(tmp_path: Path) -> None:
    """A response and an ACK without a request (frames 1, 2); one with the empty token where two requests have it (trap 3)."""
    lost = [(S, coap(NON, CONTENT, 9, b"A", [], b"21")), (S, coap(ACK, 0, 7))]
    anonymous = [(C, coap(NON, GET, 1, b"", [PATH])), (C, coap(NON, GET, 2, b"", [PATH])), (S, coap(NON, CONTENT, 10, b"", [], b"21"))]
    path = capture(tmp_path / "x.pcap", [*lost, *anonymous], "udp", 5683)

    told = {note: rest for note, *rest in rows(path, "notes", "note", "frame_first", "frame_last", "count")}
    assert told["unmatched"][:2] == [1, 2]
    assert "ambiguous" in told
    # whichever request it answers: its payload was delivered
    assert rows(path, "messages", "is_data")[-1] == (True,)


def test_notifications_of_a_registration_before_the_capture_are_data(tmp_path: Path) -> None:
    """RFC 7641 §3.2: with its Observe option a response says what it is; each is delivered once. A Reset ends the registration (§3.6)."""

    def notify(kind: int, message_id: int, value: int, token: bytes = b"T") -> tuple[bool, bytes]:
        return S, coap(kind, CONTENT, message_id, token, [(6, bytes([value]))], b"21.5")

    said = [notify(CON, 1, 7), (C, coap(ACK, 0, 1)), notify(CON, 2, 8), notify(CON, 2, 8), (C, coap(ACK, 0, 2))]
    said += [
        notify(NON, 3, 5),
        notify(NON, 4, 9, b"U"),
        notify(NON, 5, 9),
        (C, coap(RST, 0, 5)),
        notify(NON, 6, 10),
        notify(NON, 7, 10, b"U"),
    ]
    path = capture(tmp_path / "x.pcap", said, "udp", 5683)

    # by place: 7, 8, (again), stale 5, of the other registration, 9 which is refused, and behind that none
    assert [row[0] for row in rows(path, "messages", "is_data", "variant") if row[1]] == [True, True, False, False, True, True, False, True]
    [session] = pcapstat.open(path, engine="native").summary().sessions
    assert (session.data_messages, session.data_bytes, session.retransmissions) == (5, 20, 1)
    assert [note["note"] for note in session.notes] == ["no-opening", "unmatched"]
    assert [row[0] for row in rows(path, "exchanges", "parent")] == [None] * 6


def test_responses_to_what_was_asked_before_the_capture_are_data(tmp_path: Path) -> None:
    """RFC 7252 §5.2: payload reaches the client, once, whatever it asked; behind a request another token's is stray."""
    for said, expected in (
        ([(S, coap(ACK, CONTENT, 1, b"A", [], b"21")), (S, coap(ACK, CONTENT, 1, b"A", [], b"21"))], [True, False]),
        ([(S, coap(CON, CONTENT, 1, b"A", [], b"21")), (S, coap(CON, CONTENT, 1, b"A", [], b"21"))], [True, False]),
        ([(S, coap(ACK, CONTENT, 1, b"A", [], b"21")), (S, coap(ACK, CONTENT, 2, b"B", [], b"22"))], [True, True]),
        # diagnostic payload (§5.5.2), and none
        ([(S, coap(ACK, 0x84, 1, b"A", [], b"none")), (S, coap(ACK, CONTENT, 2, b"B"))], [False, False]),
        ([(C, coap(CON, GET, 7, b"Z", [PATH])), (S, coap(ACK, CONTENT, 1, b"A", [], b"21"))], [False, False]),
    ):
        path = capture(tmp_path / "x.pcap", said, "udp", 5683)
        assert [row[0] for row in rows(path, "messages", "is_data")] == expected
        again = [row[0] for row in rows(path, "messages", "is_retransmission")]
        assert again == [False, said[0] == said[1]]
        assert "unmatched" in {note for (note,) in rows(path, "notes", "note")}


def test_the_marker_is_found_behind_the_options(tmp_path: Path) -> None:
    """Trap 16: 0xff in the token, in an ETag and in the payload's first byte is no payload marker (RFC 7252 §3)."""
    asked, answer = coap(CON, GET, 1, b"\xff\xff", [(4, b"\xff\xff\xff")]), coap(ACK, CONTENT, 1, b"\xff\xff", [], b"\xff21")
    path = capture(tmp_path / "x.pcap", [(C, asked), (S, answer)], "udp", 5683)

    # header 4 and token 2; option 1 + 3; the marker counts as header
    assert rows(path, "messages", "header_bytes", "option_bytes", "payload_bytes") == [(6, 4, 0), (7, 0, 3)]


def test_what_is_malformed_keeps_its_bytes(tmp_path: Path) -> None:
    """Trap 18: a reserved token length and a marker without payload (RFC 7252 §3)."""
    said = [(C, coap(CON, GET, 1, b"A", [PATH])), (C, b"\x49\x01\x00\x02123456789"), (C, b"\x40\x01\x00\x03\xff")]
    path = capture(tmp_path / "x.pcap", said, "udp", 5683)
    [session] = pcapstat.open(path).summary().sessions

    assert rows(path, "messages", "opaque_bytes") == [(0,), (13,), (5,)]
    assert (session.malformed, session.session_bytes) == (2, 3 * (14 + 20 + 8) + 7 + 13 + 5)
    assert "malformed" in {note["note"] for note in session.notes}


def test_the_order_of_notifications_is_that_of_their_values(tmp_path: Path) -> None:
    """Trap 11: RFC 7641 §3.4 with the wrap at 2^24; a value that is not newer counts again once 128 s have passed."""
    values = [(0xFFFFFE, 1.0), (0, 2.0), (0xFFFFFF, 3.0), (0, 4.0), (0xFFFFFF, 129.5), (0xFFFFFF, 130.5)]
    said: list[Any] = [(C, coap(CON, GET, 1, b"T", [(6, b""), PATH])), (S, coap(ACK, CONTENT, 1, b"T", [(6, b"\xff\xff\xfd")], b"x"))]
    for number, (value, seconds) in enumerate(values, 10):
        said.append((S, coap(NON, CONTENT, number, b"T", [(6, value.to_bytes(3).lstrip(b"\0"))], b"x"), seconds))
    path = capture(tmp_path / "x.pcap", said, "udp", 5683)

    assert [is_data for is_data, _ in rows(path, "messages", "is_data", "kind")[2:]] == [True, True, False, False, False, True]


def test_a_server_may_send_smaller_blocks(tmp_path: Path) -> None:
    """Trap 12: asked for blocks of 1,024 bytes, it sends 64 (RFC 7959 §2.4), and each block is asked for with a token of its own."""
    said = [
        (C, coap(CON, GET, 1, b"A", [PATH, (BLOCK2, b"\x06")])),
        (S, coap(ACK, CONTENT, 1, b"A", [(BLOCK2, b"\x0a")], b"x" * 64)),
        (C, coap(CON, GET, 2, b"B", [PATH, (BLOCK2, b"\x12")])),
        (S, coap(ACK, CONTENT, 2, b"B", [(BLOCK2, b"\x12")], b"x" * 10)),
    ]
    path = capture(tmp_path / "x.pcap", said, "udp", 5683)

    assert rows(path, "exchanges", "kind", "outcome", "rtt_ns", "parts", "payload_bytes") == [
        ("GET block-wise", "complete", 30_000_000, 2, 74)
    ]


def test_random_datagrams_are_no_coap(tmp_path: Path) -> None:
    """Trap 80: each begins with version 1, as a quarter of all bytes do; their port is listed instead."""
    chance = random.Random(80)
    said = [(C, bytes([0x40 | chance.randrange(64)]) + chance.randbytes(60)) for _ in range(50)]
    path = capture(tmp_path / "x.pcap", said, "udp", 40_001)

    assert rows(path, "messages", "kind") == []
    [listed] = pcapstat.open(path).summary().unmatched_ports
    assert (listed["transport"], listed["packets"]) == ("udp", 50)


def test_what_was_sent_again_is_no_sample(tmp_path: Path) -> None:
    """Traps 8, 9, 81: the exchange has its time from the first request; statistics leave it out (Karn) and are n/a without any sample."""
    asked, answer = coap(CON, GET, 1, b"A", [PATH]), coap(ACK, CONTENT, 1, b"A", [], b"21")
    said = [(C, asked, 0.5), (C, asked, 3.0), (S, answer, 3.125), (S, answer, 3.25)]
    path = capture(tmp_path / "x.pcap", said, "udp", 5683)
    [session] = pcapstat.open(path).summary().sessions

    assert rows(path, "exchanges", "rtt_ns", "retransmissions", "messages") == [(2_625_000_000, 2, 4)]
    assert session.data_messages == 1
    [rtt] = [time for time in session.times if time.timing == "rtt"]
    assert (rtt.count, rtt.retransmitted, rtt.median_s, rtt.mean_s, rtt.p95_s) == (0, 1, None, None, None)


def test_a_session_of_one_message_has_no_rate(tmp_path: Path) -> None:
    """Traps 66, 81: no time passes between the first message and the last; n/a, not 0 or infinity."""
    path = capture(tmp_path / "x.pcap", [(C, coap(NON, 2, 1, b"A", [PATH], b"21"))], "udp", 5683)
    [session] = pcapstat.open(path).summary().sessions

    assert (session.data_messages, session.delta_time_s) == (1, 0.0)
    assert (session.goodput_bytes_per_s, session.throughput_bytes_per_s, session.message_rate_per_s) == (None, None, None)


def ask(number: int, token: bytes, path: bytes, block: bytes | None = None) -> tuple[bool, bytes]:
    """Return a GET, of a later block where one is given."""
    return C, coap(CON, GET, number, token, [(11, path), *([] if block is None else [(BLOCK2, block)])])


def answer(number: int, token: bytes, block: bytes | None = None) -> tuple[bool, bytes]:
    """Return a piggybacked response with 16 bytes."""
    return S, coap(ACK, CONTENT, number, token, [] if block is None else [(BLOCK2, block)], 16 * b"x")


FIRST_OF_TWO, SECOND = b"\x08", b"\x10"
"""Values of Block2: number, whether more follow, 16 bytes each (RFC 7959 §2.2)."""
BEGUN = [ask(1, b"A", b"big"), answer(1, b"A", FIRST_OF_TWO)]
BIG, OTHER = ("big", "complete", 2, 32), ("other", "complete", None, 16)


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        # one token for all, as of a client that waits for each response
        ([ask(2, b"A", b"other"), answer(2, b"A"), ask(3, b"A", b"big", SECOND), answer(3, b"A", SECOND)], [BIG, OTHER]),
        # taken before the next block is asked for with another one, and open until that has come
        ([ask(2, b"A", b"other"), ask(3, b"B", b"big", SECOND), answer(3, b"B", SECOND), answer(2, b"A")], [BIG, OTHER]),
        # taken after that
        ([ask(2, b"B", b"big", SECOND), ask(3, b"A", b"other"), answer(2, b"B", SECOND), answer(3, b"A")], [BIG, OTHER]),
        # the transfer does not go on
        ([ask(2, b"A", b"other"), answer(2, b"A")], [("big", "open", 1, 16), OTHER]),
        # it goes on, and its second block does not come
        ([ask(2, b"B", b"big", SECOND)], [("big", "unanswered", 1, 16)]),
        # it begins anew, so the second block is of the second one
        (
            [ask(2, b"A", b"big"), answer(2, b"A", FIRST_OF_TWO), ask(3, b"A", b"big", SECOND), answer(3, b"A", SECOND)],
            [("big", "superseded", 1, 16), BIG],
        ),
    ],
)
def test_between_two_blocks_the_token_is_free(behind: list[tuple[bool, bytes]], expected: list[tuple[Any, ...]], tmp_path: Path) -> None:
    """RFC 7252 §5.3.1: tokens are unique among the requests that wait for a response; each block's is one by itself (RFC 7959 §2.4)."""
    path = capture(tmp_path / "x.pcap", [*BEGUN, *behind], "udp", 5683)

    assert rows(path, "exchanges", "resource", "outcome", "parts", "payload_bytes") == expected


def test_between_two_blocks_a_separate_response_without_token_is_of_the_only_request_that_waits(tmp_path: Path) -> None:
    """Trap 3: the transfer's first block was answered, so the response is not ambiguous; then it goes on."""
    said = [ask(1, b"", b"big"), answer(1, b"", FIRST_OF_TWO), ask(2, b"", b"other"), (S, coap(ACK, 0, 2))]
    said += [(S, coap(CON, CONTENT, 7, b"", [], 16 * b"x")), (C, coap(ACK, 0, 7)), ask(3, b"", b"big", SECOND), answer(3, b"", SECOND)]
    path = capture(tmp_path / "x.pcap", said, "udp", 5683)

    assert rows(path, "exchanges", "resource", "outcome", "parts", "payload_bytes") == [BIG, OTHER]


@pytest.mark.parametrize(("kind", "reply"), [(CON, ACK), (NON, NON)])
@pytest.mark.parametrize(("more", "expected"), [([], ("open", 0)), ([b"B"], ("unanswered", 1))])
def test_who_asks_for_no_more_blocks_has_got_what_it_asked_for(
    kind: int, reply: int, more: list[bytes], expected: tuple[str, int], tmp_path: Path
) -> None:
    """RFC 7959 §2.4: each block is asked for. Only a request that no response came for is unanswered, whatever tokens the others had."""
    said = [(C, coap(kind, GET, 1, b"A", [PATH])), (S, coap(reply, CONTENT, 1, b"A", [(BLOCK2, FIRST_OF_TWO)], 16 * b"x"))]
    said += [(C, coap(kind, GET, 2, token, [PATH, (BLOCK2, SECOND)])) for token in more]
    path = capture(tmp_path / "x.pcap", said, "udp", 5683)

    [outcome] = rows(path, "exchanges", "outcome")
    assert (*outcome, *rows(path, "sessions", "exchanges_unanswered")[0]) == expected


def test_an_ack_that_comes_twice_makes_no_time_ambiguous(tmp_path: Path) -> None:
    """Trap 8: the request was sent once, so the time to its last block is a sample; what came twice is an ACK of the first."""
    block = (S, coap(CON, CONTENT, 9, b"A", [(BLOCK2, FIRST_OF_TWO)], 16 * b"x"))
    said = [(C, coap(NON, GET, 1, b"A", [PATH])), block, (C, coap(ACK, 0, 9)), (C, coap(ACK, 0, 9))]
    said += [(C, coap(NON, GET, 2, b"A", [PATH, (BLOCK2, SECOND)])), (S, coap(NON, CONTENT, 10, b"A", [(BLOCK2, SECOND)], b"x"))]
    path = capture(tmp_path / "x.pcap", said, "udp", 5683)

    times = rows(path, "timings", "timing", "count", "retransmitted", "max_ns")
    assert [row[1:] for row in times if row[0] == "rtt"] == [(1, 0, 50_000_000)]


def test_an_answer_with_another_token_is_of_the_request_whose_id_it_acknowledges(tmp_path: Path) -> None:
    """RFC 7252 §4.2: the ACK carries the message's ID; §5.3.2: its token matches no request, so it is no response to one."""
    path = capture(tmp_path / "x.pcap", [(C, coap(CON, GET, 1, b"A", [PATH])), (S, coap(ACK, CONTENT, 1, b"B", [], b"21"))], "udp", 5683)

    assert rows(path, "exchanges", "messages", "frame_last", "rtt_ns") == [(2, 2, None)]


def test_a_request_stays_unanswered_when_its_id_is_forgotten(tmp_path: Path) -> None:
    """RFC 7252 §4.8.2: EXCHANGE_LIFETIME (247 s) behind it a hundred others follow, which are answered."""
    said = [(C, coap(CON, GET, 1, b"old", [PATH]), 0.1)]
    for number in range(2, 102):
        token = number.to_bytes(2, "big")
        asked, answered = coap(CON, GET, number, token, [PATH]), coap(ACK, CONTENT, number, token, [], b"x")
        said += [(C, asked, 300.0 + number), (S, answered, 300.1 + number)]
    path = capture(tmp_path / "x.pcap", said, "udp", 5683)

    assert sorted(rows(path, "exchanges", "outcome")) == [("complete",)] * 100 + [("unanswered",)]
    assert rows(path, "sessions", "exchanges_complete", "exchanges_unanswered") == [(100, 1)]


def test_the_oscore_option_counts_with_its_header(tmp_path: Path) -> None:
    """RFC 7252 §3.1: a length of 12 bytes fits the nibble, one of 13 takes a byte more."""
    said = [(C, coap(CON, 2, count, b"", [(9, bytes([9]) + bytes(count - 1))], bytes(20))) for count in (12, 13)]
    path = capture(tmp_path / "x.pcap", said, "udp", 5683)

    assert rows(path, "messages", "security_bytes", "option_bytes") == [(1 + 12, 0), (1 + 1 + 13, 0)]
