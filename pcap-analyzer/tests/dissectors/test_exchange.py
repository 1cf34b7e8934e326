"""Exchanges in Wireshark are those of `pcapstat exchanges`, field by field; rules that a message breaks those of `pcapstat validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pcapstat
from dissectors.shown import captures, decode_as, keys, messages, run, trees, values
from pcapstat.rules import judge

SCRIPT = "pcapstat_exchange.lua"
TWO_PASSES = ("-2", "-Y", "frame")
PROTOCOLS = ("coap", "mqtt", "mqttsn")
FRAMES = ("frame_first", "frame_last", "frame_ack", "frame_response")
COUNTS = ("messages", "retransmissions", "payload_bytes")
TIMES = ("ack_rtt", "rtt", "delay", "interval")
JUDGED = (
    "RFC7252-4.2-timeout",
    "RFC7252-4.2-max-retransmit",
    "RFC7252-4.2-answered",
    "RFC7252-4.2-ack-content",
    "RFC7252-4.3-non",
    "RFC7252-4.6-size",
    "RFC7641-3.4-order",
    "RFC7959-2.2-szx",
    "RFC7959-2.3-size",
    "MQTT-3.3.1-2",
    "MQTT-3.3.2-2",
    "MQTT-3.3.2-8",
)


def nanoseconds(text: str | None) -> int | None:
    """Read Wireshark's relative time, seconds with nine decimals."""
    return None if text is None else round(float(text) * 1e9)


def number(text: str | None) -> int | None:
    """Read a number that may not be there."""
    return None if text is None else int(text)


def shown(path: Path, arguments: tuple[str, ...] = ()) -> dict[str, dict[str, str]]:
    """Return the fields of each exchange, by its number: of the last message that shows it, with links of the first."""
    found: dict[str, dict[str, str]] = {}
    for _, tree in trees(path, SCRIPT, (*TWO_PASSES, *arguments)):
        for branch in tree.findall("field[@name='pcapstat_exchange.exchange']"):
            found[branch.attrib["show"]] = values(branch)
    return found


def of_lua(fields: dict[str, str]) -> dict[str, Any]:
    """Return an exchange's fields as the row of the table would have them."""
    row: dict[str, Any] = {name: fields.get(name) for name in ("kind", "direction", "outcome")}
    row |= {name: number(fields.get(name)) for name in (*FRAMES, "parts")}
    row |= {name: int(fields.get(name, 0)) for name in COUNTS}
    row |= {f"{name}_ns": nanoseconds(fields.get(name)) for name in TIMES}
    return row | {"parent": number(fields.get("publication", fields.get("registration")))}


def of_table(path: Path) -> list[dict[str, Any]]:
    """Return the rows of `pcapstat exchanges`; the parent by its first frame."""
    table = pa.table(pcapstat.open(path, decode_as=decode_as(path, 1), keylog=keys(path)).table("exchanges")).to_pylist()
    first = {row["exchange"]: row["frame_first"] for row in table}
    names = [*of_lua({"kind": ""})]
    rows = [row | {"parent": first.get(row["parent"])} for row in table if row["protocol"] in PROTOCOLS]
    return [{name: row[name] for name in names} for row in sorted(rows, key=lambda row: row["exchange"])]


@pytest.mark.parametrize("path", captures(), ids=lambda path: path.stem)
def test_exchanges_are_those_of_the_table(path: Path) -> None:
    """Each exchange has the same frames, times and counts."""
    assert [of_lua(fields) for _, fields in sorted(shown(path).items(), key=lambda entry: int(entry[0]))] == of_table(path)


@pytest.mark.parametrize("path", captures(), ids=lambda path: path.stem)
def test_expert_items_are_the_broken_rules(path: Path) -> None:
    """Each rule that the dissector judges is broken by the messages by which `pcapstat validate` finds it broken."""
    rows = [row for row in messages(path) if row["protocol"] in {"coap", "mqtt"}]
    expected = sorted((found.frame, found.rule) for found in judge(lambda: rows, ()) if found.rule in JUDGED)
    actual = sorted(
        (frame, item.attrib["showname"].partition(":")[0])
        for frame, tree in trees(path, SCRIPT, TWO_PASSES)
        for item in tree.iter("field")
        if item.attrib["name"].startswith("pcapstat_exchange.rule.")
    )
    assert actual == expected


def test_one_look_tells_no_end_that_comes_later() -> None:
    """In tshark's only pass what is answered later is not unanswered, whichever dissector sees the frame first."""
    path = next(path for path in captures() if path.stem == "a-californium-con")
    scripts = ("pcapstat_overhead.lua", SCRIPT)
    shown_now = run(path, scripts, ("-T", "fields", "-e", "frame.number", "-e", "pcapstat_exchange.outcome"))
    outcomes = dict(line.split("\t") for line in shown_now.splitlines())
    rows = pa.table(pcapstat.open(path).exchanges).to_pylist()
    answered = [row for row in rows if row["outcome"] == "complete" and row["frame_last"] > row["frame_first"]]
    assert answered
    for row in answered:
        assert outcomes[str(row["frame_first"])] == ""
        assert outcomes[str(row["frame_last"])] == "complete"
