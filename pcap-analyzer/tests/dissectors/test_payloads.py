"""Payloads that the dissectors find are those that the applications logged (captures/*.truth.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from places import CAPTURES

from dissectors.shown import captures, run

RUNS = [
    path
    for path in captures()
    if path.stem.startswith(("a-", "b-", "reorder-", "loss-")) and path.with_suffix(".truth.json").exists() and "sender" not in path.stem
]


def numbers(path: Path, script: str, field: str, receiver: str, preferences: tuple[str, ...] = ()) -> list[int]:
    """Return the numbers in payloads on their way to an address, in the order of the capture."""
    lines = run(path, [script], ["-T", "fields", "-Y", f"ip.dst == {receiver}", "-e", field], preferences).splitlines()
    return [int(text) for line in lines for text in line.split(",") if text]


def received(path: Path) -> tuple[str, list[int]]:
    """Return the receiver's address and the numbers that its application got."""
    truth = json.loads(path.with_suffix(".truth.json").read_text())
    application = next(each for each in truth["applications"] if each["received"])
    at = truth["columns"].index("id")
    return application["endpoint"], [row[at] for row in application["received"]]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_the_numbers_are_those_that_the_application_got(path: Path) -> None:
    """Each number that the application logged was in a payload that reached it; HL7 messages carry it as their control ID."""
    receiver, ids = received(path)
    script, field = ("hl7_payload.lua", "hl7_payload.control_id") if path.stem.startswith("b-") else ("hi_payload.lua", "hi_payload.number")
    found = numbers(path, script, field, receiver)
    assert sorted(set(ids) - set(found)) == []


def test_loss_and_order_are_told() -> None:
    """In a run with late frames each number that is smaller than one before it is late, and what is missing at the end never came."""
    path = CAPTURES / "reorder-californium-non.pcapng"
    fields = [f"hi_payload.{name}" for name in ("number", "late", "missing", "received")]
    lines = run(path, ["hi_payload.lua"], ["-T", "fields", "-Y", "hi_payload", *(word for field in fields for word in ("-e", field))])
    rows = [line.split("\t") for line in lines.splitlines()]
    seen = [int(row[0]) for row in rows]
    assert [row[1] in {"1", "True"} for row in rows] == [number < max(seen[:at], default=0) for at, number in enumerate(seen)]
    assert int(rows[-1][2]) == max(seen) - min(seen) + 1 - len(set(seen))
    assert int(rows[-1][3]) == len(set(seen))


@pytest.mark.parametrize(("preference", "found"), [("topics:Resource1", 202), ("topics:Other", 0)])
def test_payloads_are_chosen_by_topic(preference: str, found: int) -> None:
    """With a list of topics only their payloads are dissected."""
    path = CAPTURES / "a-paho-qos1.pcapng"
    chosen = ("hi_payload.chosen:2", f"hi_payload.{preference}")
    receiver, ids = received(path)
    both = [
        number for address in (receiver, "192.0.2.3") for number in numbers(path, "hi_payload.lua", "hi_payload.number", address, chosen)
    ]
    assert (len(both) >= found > len(ids)) if found else both == []
