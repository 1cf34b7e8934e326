"""Each rule: a capture that breaks it, and one that nearly does; and the recordings, which break what the docs say and nothing else."""

from __future__ import annotations

import json
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
    RST,
    C,
    S,
    Said,
    ack,
    capture,
    coap,
    connack,
    connect,
    mqtt,
    publish,
    suback,
    subscribe,
)
from pcapstat.cli.validate import command
from pcapstat.rules import RULES, judge

OPEN: Said = [(C, connect()), (S, connack())]
RECEIVE_2, ALIAS_5, SIZE_20 = b"\x21\x00\x02", b"\x22\x00\x05", b"\x27\x00\x00\x00\x14"
PING, PONG, BYE = mqtt(12), mqtt(13), mqtt(14)
MQTT: dict[str, tuple[Said, Said]] = {
    "format": ([*OPEN, (C, b"\x36\x05\x00\x01t\x00\x01")], [*OPEN, (C, publish(1, 2)), (S, ack(5, 1))]),
    "MQTT-3.1.0-1": ([(C, PING), *OPEN], [*OPEN, (C, PING), (S, PONG)]),
    "MQTT-3.1.0-2": ([*OPEN, (C, connect())], OPEN),
    "MQTT-3.2.0-1": ([(C, connect()), (S, publish()), (S, connack())], [*OPEN, (S, publish())]),
    "MQTT-3.2.0-2": ([*OPEN, (S, connack())], OPEN),
    "MQTT-3.2.2-2": ([(C, connect()), (S, connack(present=True))], [(C, connect(clean=False)), (S, connack(present=True))]),
    "MQTT-3.2.2-6": ([(C, connect(clean=False)), (S, connack(0x87, present=True))], [(C, connect()), (S, connack(0x87))]),
    "MQTT-3.2.2-7": ([(C, connect()), (S, connack(0x87)), (S, publish())], [(C, connect()), (S, connack(0x87))]),
    "MQTT-2.2.1-3": (
        [*OPEN, (C, publish(7, 1)), (C, subscribe(7, "a"))],
        [
            *OPEN,
            (C, publish(7, 1)),
            (S, ack(4, 7)),
            (C, subscribe(7, "a")),
            (S, suback(7, 0)),
            (C, publish(7, 1)),
            (C, publish(7, 1, dup=True)),
        ],
    ),
    "MQTT-2.2.1-4": ([*OPEN, (S, publish(0, 1))], [*OPEN, (S, publish(1, 1)), (C, publish(1, 1))]),
    "MQTT-2.2.1-5": ([*OPEN, (C, publish(1, 1)), (S, ack(4, 2))], [*OPEN, (C, publish(1, 1)), (S, ack(4, 1))]),
    "MQTT-2.2.1-6": ([*OPEN, (C, subscribe(1, "a")), (S, suback(2, 0))], [*OPEN, (C, subscribe(1, "a")), (S, suback(1, 0))]),
    "MQTT-3.3.1-2": ([*OPEN, (C, publish(dup=True))], [*OPEN, (C, publish(1, 1, dup=True))]),
    "MQTT-3.3.2-2": ([*OPEN, (C, publish(topic="a/#"))], [*OPEN, (C, publish(topic="$a/b c"))]),
    "MQTT-3.3.2-8": (
        [*OPEN, (C, publish(properties=b"\x23\x00\x00"))],
        [(C, connect()), (S, connack(properties=ALIAS_5)), (C, publish(properties=b"\x23\x00\x01"))],
    ),
    "MQTT-3.3.2-9": (
        [(C, connect()), (S, connack(properties=ALIAS_5)), (C, publish(properties=b"\x23\x00\x06"))],
        [(C, connect()), (S, connack(properties=ALIAS_5)), (C, publish(properties=b"\x23\x00\x05"))],
    ),
    "MQTT-3.3.4-7": (
        [(C, connect()), (S, connack(properties=RECEIVE_2)), *((C, publish(number, 1)) for number in (1, 2, 3))],
        [
            (C, connect()),
            (S, connack(properties=RECEIVE_2)),
            (C, publish(1, 1)),
            (C, publish(2, 2)),
            (S, ack(4, 1)),
            (C, publish(3, 1)),
            (C, publish()),
        ],
    ),
    "MQTT-3.1.2-24": (
        [(C, connect(properties=SIZE_20)), (S, connack()), (S, publish(payload=b"x" * 15))],
        [(C, connect(properties=SIZE_20)), (S, connack()), (S, publish(payload=b"x" * 14)), (C, publish(payload=b"x" * 15))],
    ),
    "MQTT-3.1.2-20": (
        [(C, connect(keep_alive=2)), (S, connack()), (C, PING, 3.0)],
        [(C, connect(keep_alive=2)), (S, connack()), (C, PING, 2.0), (S, PONG)],
    ),
    "MQTT-3.8.3-2": ([*OPEN, (C, mqtt(8, b"\x00\x01\x00", 2))], [*OPEN, (C, subscribe(1, "a"))]),
    "MQTT-3.8.4-6": (
        [*OPEN, (C, subscribe(1, "a", "b")), (S, suback(1, 0))],
        [*OPEN, (C, subscribe(1, "a", "b")), (S, suback(1, 0, 0x80))],
    ),
    "MQTT-3.14.4-1": ([*OPEN, (C, BYE), (C, PING)], [*OPEN, (C, PING), (S, PONG), (C, BYE)]),
    "MQTT-3.3.4-1": (
        [*OPEN, (C, publish(1, 1)), (S, ack(5, 1))],
        [*OPEN, (C, publish(1, 2)), (S, ack(5, 1)), (C, ack(6, 1)), (S, ack(7, 1))],
    ),
    "MQTT-4.6.0-2": (
        [*OPEN, (C, publish(1, 1)), (C, publish(2, 1)), (S, ack(4, 2))],
        [*OPEN, (C, publish(1, 2)), (C, publish(2, 1)), (S, ack(4, 2)), (S, ack(5, 1))],
    ),
    "MQTT-4.7.1-1": ([*OPEN, (C, subscribe(1, "a/b+"))], [*OPEN, (C, subscribe(1, "+/a/#", "#"))]),
    "MQTT-3.12.4-1": ([*OPEN, (C, PING), (C, PING)], [*OPEN, (C, PING), (S, PONG), (C, PING)]),
}
OBSERVE, FORMAT, BLOCK2 = 6, 12, 23
ASK = coap(CON, GET, 1, b"\1", [(OBSERVE, b"")])
TOLD = coap(ACK, CONTENT, 1, b"\1", [(OBSERVE, b"\5")], b"x")


def told(number: int, value: bytes, *options: tuple[int, bytes]) -> bytes:
    """Return a notification."""
    return coap(NON, CONTENT, number, b"\1", [(OBSERVE, value), *options], b"x")


def plain(number: int, token: bytes = b"\1") -> bytes:
    """Return a GET."""
    return coap(CON, GET, number, token)


COAP: dict[str, tuple[Said, Said]] = {
    "RFC7252-4.4-message-id": ([(C, plain(1)), (C, plain(1, b"\2"))], [(C, plain(1), 0.0), (C, plain(1, b"\2"), 248.0)]),
    "RFC7252-4.2-timeout": (
        [(C, plain(1), 0.0), (C, plain(1), 1.0)],
        [(C, plain(1), 0.0), (C, plain(1), 2.5), (C, plain(1), 7.5), (C, plain(1), 17.5)],
    ),
    "RFC7252-4.2-max-retransmit": (
        [(C, plain(1), time) for time in (0.0, 2.0, 6.0, 14.0, 30.0, 62.0)],
        [(C, plain(1), time) for time in (0.0, 2.0, 6.0, 14.0, 30.0)],
    ),
    "RFC7252-4.2-answered": (
        [(C, plain(1), 0.0), (S, coap(ACK, 0, 1), 0.1), (C, plain(1), 2.1)],
        [(C, plain(1), 0.0), (C, plain(1), 2.1), (S, coap(ACK, 0, 1), 2.2)],
    ),
    "RFC7252-4.2-ack": ([(C, plain(1)), (S, coap(ACK, CONTENT, 2, b"\1"))], [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1"))]),
    "RFC7252-4.2-ack-content": ([(C, plain(1)), (S, coap(ACK, GET, 1, b"\1"))], [(C, plain(1)), (S, coap(RST, 0, 1))]),
    "RFC7252-4.3-non": ([(C, plain(1)), (C, coap(NON, 0, 2))], [(C, plain(1)), (C, coap(CON, 0, 2))]),
    "RFC7252-5.3.1-token": ([(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\2"))], [(C, plain(1, b"")), (S, coap(ACK, CONTENT, 1))]),
    "RFC7252-5.4.5-repeated": (
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [(FORMAT, b""), (FORMAT, b"")]))],
        [(C, coap(CON, GET, 1, b"\1", [(11, b"a"), (11, b"a")]))],
    ),
    "RFC7252-4.6-size": (
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [], b"x" * 1147))],
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [], b"x" * 1146))],
    ),
    "RFC7641-3.4-order": ([(C, ASK), (S, TOLD), (S, told(9, b"\4"))], [(C, ASK), (S, TOLD), (S, told(9, b"\6")), (S, told(10, b"\7"))]),
    "RFC7641-4.2-format": ([(C, ASK), (S, TOLD), (S, told(9, b"\6", (FORMAT, b"")))], [(C, ASK), (S, TOLD), (S, told(9, b"\6"))]),
    "RFC7959-2.2-szx": ([(C, coap(CON, GET, 1, b"\1", [(BLOCK2, b"\7")]))], [(C, coap(CON, GET, 1, b"\1", [(BLOCK2, b"\6")]))]),
    "RFC7959-2.3-size": (
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [(BLOCK2, b"\x08")], b"x" * 15))],
        [(C, plain(1)), (S, coap(ACK, CONTENT, 1, b"\1", [(BLOCK2, b"\x08")], b"x" * 16))],
    ),
}
GROUP: dict[str, tuple[Said, Said]] = {"RFC7252-8.1-multicast": ([(C, plain(1))], [(C, coap(NON, GET, 1, b"\1"))])}
ALERT, DATA = b"\x15\x03\x03\x00\x02\x02\x28", b"\x17\x03\x03\x00\x20" + b"x" * 32
HELLO = b"\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x03" + b"r" * 32 + b"\x00\x00\x02\x13\x01\x01\x00"
TLS: dict[str, tuple[Said, Said]] = {
    "RFC8446-6.2-alert": ([(C, HELLO), (S, ALERT), (S, DATA)], [(C, HELLO), (S, ALERT), (C, DATA)]),
}
CASES = [
    *((identifier, *cases, "tcp", 1883, False) for identifier, cases in MQTT.items()),
    *((identifier, *cases, "udp", 5683, False) for identifier, cases in COAP.items()),
    *((identifier, *cases, "udp", 5683, True) for identifier, cases in GROUP.items()),
    *((identifier, *cases, "tcp", 8883, False) for identifier, cases in TLS.items()),
]


def broken(path: Path, **options: object) -> dict[str, int]:
    """Count the violations of each rule in a capture."""
    opened = pcapstat.open(path, **options)  # type: ignore[arg-type]
    begun = {note["session"] for note in pa.table(opened.notes).to_pylist() if note["note"] == "mid-stream"}
    found: dict[str, int] = {}
    for violation in judge(iter(pa.table(opened.messages).to_pylist()), begun):
        found[violation.rule] = found.get(violation.rule, 0) + 1
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_rule_is_broken_by_one_capture_and_not_by_the_one_beside_it(case: tuple[str, Said, Said, str, int, bool], tmp_path: Path) -> None:
    """The breaking one is found; the one that nearly does breaks no rule at all."""
    identifier, breaking, nearly, transport, port, group = case
    assert identifier in broken(capture(tmp_path / "breaking.pcap", breaking, transport, port, group))
    assert broken(capture(tmp_path / "nearly.pcap", nearly, transport, port, group)) == {}


def test_every_rule_has_its_captures() -> None:
    """A rule without a case is not tested."""
    assert {rule.id for rule in RULES} == {case[0] for case in CASES}


KNOWN = {
    "loss-californium-con": {"RFC7252-4.2-timeout"},
    "reorder-californium-non": {"RFC7641-3.4-order"},
}
"""What the recordings do break (docs/how-to/validate.md): a timeout that the recorder sets, and a path that reorders."""


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcapng")), ids=lambda path: path.stem)
def test_the_recorded_libraries_give_no_false_alarm(path: Path) -> None:
    """Well-known libraries keep the rules, but for what is known."""
    keys = path.with_suffix(".keys")
    assert set(broken(path, keylog=[str(keys)] if keys.exists() else [])) == KNOWN.get(path.stem, set())


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


def test_observed_sizes_are_the_specified_ones() -> None:
    """Over all recordings in the clear; the minimal size is never above."""
    for path in sorted(CAPTURES.glob("[abcd]-*.pcapng")):
        from pcapstat.rules.sizes import sizes

        for row in sizes(iter(pa.table(pcapstat.open(path, engine="native").messages).to_pylist())):
            assert row.specified in {None, row.observed}, (path.name, row)
            assert row.minimal is None or row.minimal <= row.observed
