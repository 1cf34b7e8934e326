"""Each rule: a capture that breaks it, and one that nearly does; and the recordings, which break what the docs say and nothing else."""

from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import click.testing
import pyarrow as pa
import pytest
from places import CAPTURES

import pcapstat
from against_standards.building import (
    ACK,
    CON,
    CONTENT,
    GET,
    NON,
    C,
    S,
    Said,
    ack,
    capture,
    coap,
    coap_tcp,
    mqtt,
    packets,
    publish,
    subscribe,
    two_connections,
)
from against_standards.coap_cases import COAP, GROUP, STREAMS
from against_standards.mqtt_cases import MQTT, TAKEN_OVER, TWO, UNNAMED_311
from against_standards.quiet_cases import BOTH_WAYS, MISSING, OPEN, QUIET
from against_standards.record_cases import DTLS, TLS
from against_standards.variant_cases import VARIANTS
from pcapstat.cli.validate import command
from pcapstat.rules import RULES, judge

CASES = [
    *((identifier, *cases, "tcp", 1883, False) for identifier, cases in MQTT.items()),
    *((identifier, *cases, "udp", 5683, False) for identifier, cases in COAP.items()),
    *((identifier, *cases, "udp", 5683, True) for identifier, cases in GROUP.items()),
    *((identifier, *cases, "tcp", 5683, False) for identifier, cases in STREAMS.items()),
    *((identifier, *cases, "tcp", 8883, False) for identifier, cases in TLS.items()),
    *((identifier, *cases, "udp", 5684, False) for identifier, cases in DTLS.items()),
]


def broken(path: Path, **options: object) -> dict[str, int]:
    """Count the violations of each rule in a capture."""
    opened = pcapstat.open(path, **options)  # type: ignore[arg-type]
    found: dict[str, int] = {}
    for violation in judge(opened.messages.rows, pa.table(opened.notes).to_pylist()):
        found[violation.rule] = found.get(violation.rule, 0) + 1
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_rule_is_broken_by_one_capture_and_not_by_the_one_beside_it(case: tuple[str, Said, Said, str, int, bool], tmp_path: Path) -> None:
    """The breaking one is found; the one that nearly does breaks no rule at all."""
    identifier, breaking, nearly, transport, port, group = case
    assert identifier in broken(capture(tmp_path / "breaking.pcap", breaking, transport, port, group))
    assert broken(capture(tmp_path / "nearly.pcap", nearly, transport, port, group)) == {}


def test_a_side_that_sends_no_csm_breaks_its_rule_once(tmp_path: Path) -> None:
    """Californium 3.13 sends none over TCP: it is the first message of each side that should be one (RFC 8323 §5.3)."""
    said: Said = [(side, coap_tcp(code, bytes([token]))) for token in range(3) for side, code in ((C, GET), (S, CONTENT))]
    assert broken(capture(tmp_path / "without.pcap", said, "tcp", 5683)) == {"RFC8323-5.3-csm": 2}


@pytest.mark.parametrize("identifier", TWO)
def test_a_rule_over_two_connections_is_broken_by_one_pair_of_them(identifier: str, tmp_path: Path) -> None:
    """The breaking pair breaks this rule only; the one that nearly does breaks none."""
    breaking, nearly = TWO[identifier]
    assert set(broken(two_connections(tmp_path / "breaking.pcap", *breaking, 1.0))) == {identifier}
    assert broken(two_connections(tmp_path / "nearly.pcap", *nearly, 1.0)) == {}


@pytest.mark.parametrize("name", TAKEN_OVER)
def test_a_client_that_was_accepted_anew_is_not_served_in_its_old_connection(name: str, tmp_path: Path) -> None:
    """Whatever it asks for there; one that was not accepted, or is another, changes nothing for the old one."""
    old, new, expected = TAKEN_OVER[name]
    assert set(broken(two_connections(tmp_path / "two.pcap", old, new, 1.0))) == expected


def separate(said: Said) -> Said:
    """Send each piggybacked response separately instead: behind an Empty Acknowledgement, and confirmed (RFC 7252 §5.2.2)."""
    out: list[tuple[bool, bytes]] = []
    for from_client, data, *_ in said:
        if from_client or data[0] >> 4 & 3 != ACK:
            out.append((from_client, data))
            continue
        own = 0x7000 + len(out)
        out += [(S, coap(ACK, 0, int.from_bytes(data[2:4]))), (S, bytes([data[0] & 0xCF | CON << 4, data[1]]) + own.to_bytes(2) + data[4:])]
        out.append((C, coap(ACK, 0, own)))
    return out


@pytest.mark.parametrize("identifier", ["RFC7959-2.3-echo", "RFC7959-2.4-offset", "RFC7959-2.4-same", "RFC7959-2.4-size"])
def test_blocks_of_separate_responses_are_judged_as_those_of_piggybacked_ones(identifier: str, tmp_path: Path) -> None:
    """RFC 7959 §2.3 and §2.4 speak of requests and responses, whatever messages carry them."""
    breaking, nearly = map(separate, COAP[identifier])
    assert broken(capture(tmp_path / "breaking.pcap", breaking, "udp", 5683)) == {identifier: 1}
    assert broken(capture(tmp_path / "nearly.pcap", nearly, "udp", 5683)) == {}


@pytest.mark.parametrize("name", QUIET)
def test_what_the_standards_allow_gives_no_alarm(name: str, tmp_path: Path) -> None:
    """Conversations that look like violations."""
    assert broken(capture(tmp_path / "quiet.pcap", *QUIET[name])) == {}


@pytest.mark.parametrize("name", MISSING)
def test_what_frames_are_missing_of_gives_no_alarm(name: str, tmp_path: Path) -> None:
    """A gap is seen behind it, in the other direction perhaps; the answer that is not there was in it."""
    from scapy.utils import wrpcap

    said, missing = MISSING[name]
    assert broken(capture(tmp_path / "whole.pcap", said, "tcp", 1883)) == {}
    path = tmp_path / "missing.pcap"
    wrpcap(str(path), [frame for place, frame in enumerate(packets(said, "tcp", 1883), -3) if place not in missing])
    assert broken(path) == {}


def test_frames_in_another_order_give_no_alarm(tmp_path: Path) -> None:
    """A PUBACK that was captured before its PUBLISH, and is stamped behind it."""
    from scapy.utils import wrpcap

    frames = packets(BOTH_WAYS["MQTT"][0], "tcp", 1883)
    path = tmp_path / "order.pcap"
    wrpcap(str(path), [*frames[:7], frames[8], frames[7], *frames[9:]])
    assert broken(path) == {}


def test_frames_in_another_order_silence_the_rules_of_their_session_only(tmp_path: Path) -> None:
    """The first of two connections has a PUBACK that was captured before its PUBLISH, the second one a PUBACK without one."""
    from scapy.utils import wrpcap

    frames = packets(BOTH_WAYS["MQTT"][0], "tcp", 1883)
    second = packets([*OPEN, (C, ack(4, 9))], "tcp", 1883, client_port=40001)
    for frame in second:
        frame.time += 10
    path = tmp_path / "order.pcap"
    wrpcap(str(path), [*frames[:7], frames[8], frames[7], *frames[9:], *second])
    assert set(broken(path)) == {"MQTT-2.2.1-5"}


def test_frames_of_two_connections_in_another_order_silence_no_rule(tmp_path: Path) -> None:
    """What went through different processors is stamped back and forth; the order within each connection is that of its frames."""
    from scapy.utils import wrpcap

    identifier = "MQTT-3.3.2-7"
    first = packets(MQTT[identifier][0], "tcp", 1883)
    second = packets(BOTH_WAYS["MQTT"][0], "tcp", 1883, client_port=40001)
    path = tmp_path / "two.pcap"
    for place, frame in enumerate(second):
        frame.time = first[0].time - 1 + place / 1000
    wrpcap(str(path), [*first, *second])
    assert "time-backwards" in {row["note"] for row in pcapstat.open(path).notes.rows()}
    assert broken(path) == {identifier: 1}


DOUBLED = (0.0, 2.5, 2.6, 7.5, 7.7, 17.5, 17.6, 38.0, 38.2)
"""A GET and its four retransmissions, each of which comes twice (RFC 7252 §4.2, §4.8)."""


@pytest.mark.parametrize(
    ("identifications", "rules"),
    [
        ((1, 2, 2, 3, 3, 4, 4, 5, 5), set()),
        ((1, 2, 3, 4, 5, 6, 7, 8, 9), {"RFC7252-4.2-timeout", "RFC7252-4.2-max-retransmit"}),
        ((1, 1, 1, 1, 1, 1, 1, 1, 1), {"RFC7252-4.2-timeout", "RFC7252-4.2-max-retransmit"}),
        ((0, 0, 0, 0, 0, 0, 0, 0, 0), {"RFC7252-4.2-timeout", "RFC7252-4.2-max-retransmit"}),
    ],
    ids=["doubled", "sent again", "one for all", "none"],
)
def test_what_the_network_doubled_is_no_retransmission(identifications: tuple[int, ...], rules: set[str], tmp_path: Path) -> None:
    """RFC 6864 §4.1, §4.2: what is sent again is another packet, with another IP identification where its sender gives them."""
    from scapy.layers.inet import IP
    from scapy.utils import wrpcap

    frames = packets([(C, coap(CON, GET, 1, b"t"), time_s) for time_s in DOUBLED], "udp", 5683)
    for frame, identification in zip(frames, identifications, strict=True):
        frame[IP].id = identification
    path = tmp_path / "doubled.pcap"
    wrpcap(str(path), frames)
    assert set(broken(path)) == rules
    assert [row["ip_identification"] for row in pcapstat.open(path).messages.rows()] == [number or None for number in identifications]


@pytest.mark.parametrize("first", [0, 6])
@pytest.mark.parametrize("from_client", [True, False])
@pytest.mark.parametrize("name", BOTH_WAYS)
def test_a_capture_of_one_direction_gives_no_alarm(name: str, from_client: bool, first: int, tmp_path: Path) -> None:
    """What the other direction said is not in it, from the opening on or from the middle."""
    from scapy.layers.inet import IP
    from scapy.utils import wrpcap

    frames = packets(*BOTH_WAYS[name])
    path = tmp_path / "one.pcap"
    wrpcap(str(path), [frame for frame in frames[first:] if (frame[IP].src == frames[0][IP].src) == from_client])
    assert broken(path) == {}


def test_many_outstanding_messages_are_judged_in_linear_time(tmp_path: Path) -> None:
    """Forty thousand Confirmable messages that nothing answers, within two seconds; then the first is sent again."""
    (row,) = pcapstat.open(capture(tmp_path / "one.pcap", [(C, coap(CON, GET, 0, b"t"))], "udp", 5683)).messages.rows()
    count, begun_ns = 40_000, row["time_ns"]
    rows = [row | {"message_id": number, "token": f"{number:08x}", "time_ns": begun_ns + number * 1000} for number in range(count)]
    again = rows[0] | {"time_ns": begun_ns + 2 * 10**9}
    begun_s = time.process_time()
    (found,) = judge(lambda: [*rows, again], [])
    assert time.process_time() - begun_s < 30
    assert (found.rule, found.explanation.split()[0]) == ("RFC7252-4.7-nstart", str(count - 1))
    assert found.explanation.endswith("Message ID 1, 2, 3, 4, 5")


def test_messages_are_forgotten_when_their_identifiers_are_free(tmp_path: Path) -> None:
    """Twenty thousand requests, one a second: those of the last 494 s (twice EXCHANGE_LIFETIME) are kept, and as many again at most."""
    from pcapstat.rules.coap.state import State

    (row,) = pcapstat.open(capture(tmp_path / "one.pcap", [(C, coap(NON, GET, 0, b"t"))], "udp", 5683)).messages.rows()
    state = State()
    for number in range(20_000):
        state.take(row | {"message_id": number, "time_ns": row["time_ns"] + number * 10**9})
    assert 494 <= len(state.sent) <= 2 * 494
    assert ("c2s", 19_506) in state.sent


def test_every_rule_has_its_captures() -> None:
    """A rule without a case is not tested."""
    assert {rule.id for rule in RULES} == {case[0] for case in CASES} | {*TWO, "MQTT311-3.1.3-8"}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_rule_is_broken_in_another_way(name: str, tmp_path: Path) -> None:
    """The rule's other cases: this one is found, and nothing else is."""
    identifier, said, port = VARIANTS[name]
    assert set(broken(capture(tmp_path / "variant.pcap", said, "tcp", port))) == {identifier}


def test_a_client_without_name_and_clean_session_is_refused(tmp_path: Path) -> None:
    """MQTT 3.1.1 §3.1.3.1: where the client breaks its rule, the server still has one to keep."""
    breaking, nearly = (capture(tmp_path / f"{number}.pcap", said, "tcp", 1883) for number, said in enumerate(UNNAMED_311))
    assert broken(breaking) == {"MQTT311-3.1.3-7": 1, "MQTT311-3.1.3-8": 1}
    assert broken(nearly) == {"MQTT311-3.1.3-7": 1}


KNOWN = {
    "a-java-coap-con": {"RFC7252-4.7-nstart"},
    "a-java-coap-con.sender": {"RFC7252-4.7-nstart"},
    "loss-californium-con": {"RFC7252-4.2-timeout"},
    "reorder-californium-non": {"RFC7641-3.4-order"},
}
"""What the recordings do break (docs/how-to/validate.md): notifications at once, a timeout that the recorder sets, a path that reorders."""


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcapng")), ids=lambda path: path.stem)
def test_the_recorded_libraries_give_no_false_alarm(path: Path) -> None:
    """Well-known libraries keep the rules, but for what is known."""
    keys = path.with_suffix(".keys")
    assert set(broken(path, keylog=[str(keys)] if keys.exists() else [])) == KNOWN.get(path.stem, set())


@pytest.mark.parametrize("first", [6, 21])
@pytest.mark.parametrize(
    "name", ["a-californium-con", "a-californium-non", "c-aiocoap-observe", "c-aiocoap-tcp-observe", "a-paho-qos1", "b-paho-qos2"]
)
def test_what_was_before_the_capture_gives_no_false_alarm(name: str, first: int, tmp_path: Path) -> None:
    """The recordings without their first frames: registrations, subscriptions and requests are missing."""
    from scapy.utils import rdpcap, wrpcap

    late = tmp_path / "late.pcap"
    wrpcap(str(late), rdpcap(str(CAPTURES / f"{name}.pcapng"))[first - 1 :])
    assert broken(late) == {}


def test_the_command_fails_where_it_is_told_to(tmp_path: Path) -> None:
    """Exit codes by --fail-on; SARIF and JUnit name the frame."""
    path = str(capture(tmp_path / "c.pcap", COAP["RFC7252-4.2-timeout"][0], "udp", 5683))
    run = click.testing.CliRunner().invoke
    assert run(command, [path], standalone_mode=False).return_value == 1
    assert run(command, [path, "--fail-on", "error"], standalone_mode=False).return_value == 0
    log, suite = tmp_path / "o.sarif", tmp_path / "o.xml"
    run(command, [path, "--format", "sarif", "-O", str(log)], standalone_mode=False)
    (result,) = json.loads(log.read_text())["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("RFC7252-4.2-timeout", "warning")
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 2
    run(command, [path, "--format", "junit", "-O", str(suite)], standalone_mode=False)
    root = ET.parse(suite).getroot()
    assert (root.get("tests"), root.get("failures")) == (str(len(RULES)), "1")


def test_sizes_are_not_told_of_what_columns_do_not_tell(tmp_path: Path) -> None:
    """Bytes that are no UTF-8, and a filter with a line feed: neither is larger or smaller than specified; U+0085 is text as any other."""
    from pcapstat.rules.sizes import sizes

    strange = mqtt(8, b"\0\1\0" + b"\0\2\xff\xfe" + b"\1", 2)
    said: Said = [*OPEN, (C, strange), (C, subscribe(2, "a", "b\n")), (C, subscribe(3, "a\x85b")), (C, publish())]
    rows = list(sizes(pcapstat.open(capture(tmp_path / "mqtt.pcap", said, "tcp", 1883)).messages.rows()))
    assert [row.specified for row in rows[2:]] == [None, None, len(subscribe(3, "a\x85b")), len(publish())]
    query = coap(CON, GET, 1, b"t", [(15, b"=\xd4")])
    (row,) = sizes(pcapstat.open(capture(tmp_path / "coap.pcap", [(C, query)], "udp", 5683)).messages.rows())
    assert (row.observed, row.specified) == (len(query), None)


def test_observed_sizes_are_the_specified_ones() -> None:
    """Over all recordings in the clear; the minimal size is never above."""
    for path in sorted(CAPTURES.glob("[abcd]-*.pcapng")):
        from pcapstat.rules.sizes import sizes

        for row in sizes(iter(pa.table(pcapstat.open(path, engine="native").messages).to_pylist())):
            assert row.specified in {None, row.observed}, (path.name, row)
            assert row.minimal is None or row.minimal <= row.observed
