"""Every field that the rows of PROTOCOLS map to Wireshark's names is the same in tshark, message by message, over all captures at hand."""

from __future__ import annotations

import csv
import fnmatch
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from against_tshark import dissect

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SHARED = ROOT.parent / "shared" / "captures"
Difference = tuple[str, int, str, str, str, object, object]


EXTRA_ARGUMENTS = {"mqttsn": "-d udp.port==1883,mqttsn"}
"""What tshark has to be told of our recordings, by a word of their names: it has no port of MQTT-SN's own."""


def captures(protocols: set[str] = dissect.PROTOCOLS) -> Iterator[tuple[str, Path, str]]:
    """Name, file and tshark's extra arguments of each capture that holds one of the protocols."""
    for path in sorted((ROOT / "captures").glob("*.pcapng")):
        yield path.name, path, next((told for word, told in EXTRA_ARGUMENTS.items() if word in path.name), "")
    if not SHARED.is_dir():
        return
    with (SHARED / "MANIFEST.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            seen = {entry.split(":")[0] for entry in row["protocols_seen(tshark io,phs frames)"].split()}
            if seen & protocols:
                yield row["path"], SHARED / row["path"], row["tshark_extra_args"]


def explained() -> list[dict[str, str]]:
    """Rows of explained.csv: patterns of capture, protocol, kind of message and column, with the reason."""
    with (HERE / "explained.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def is_explained(name: str, protocol: str, kind: str, column: str, rules: list[dict[str, str]]) -> bool:
    """Whether a row of explained.csv covers a difference."""
    return any(
        fnmatch.fnmatchcase(name, rule["capture"])
        and rule["protocol"] in {"*", protocol}
        and rule["kind"] in {"*", kind}
        and rule["column"] in {"*", column}
        for rule in rules
    )


@pytest.fixture(scope="session")
def found() -> dict[str, list[tuple[int, str, str, str, object, object]]]:
    """Return all differences by capture, found once for the whole run."""
    listed = list(captures())
    assert listed, "no capture to compare"
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda entry: list(dissect.differences(entry[1], entry[2])), listed)
        return {name: differences for (name, _, _), differences in zip(listed, results, strict=True)}


def test_fields_agree_with_tshark(found: dict[str, list[tuple[int, str, str, str, object, object]]]) -> None:
    """Each difference between tshark and the native engine is explained."""
    rules = explained()
    unexplained = [
        (name, *difference)
        for name, differences in found.items()
        for difference in differences
        if not is_explained(name, difference[1], difference[2], difference[3], rules)
    ]
    shown = "\n".join(map(str, unexplained[:40]))
    assert not unexplained, f"{len(unexplained)} differences, the first of them:\n{shown}"


def test_explanations_are_needed(found: dict[str, list[tuple[int, str, str, str, object, object]]]) -> None:
    """A row of explained.csv about one capture that explains nothing any more is removed."""
    idle = [
        rule
        for rule in explained()
        if "*" not in rule["capture"]
        and rule["protocol"] != "http"
        and (SHARED.is_dir() or "/" not in rule["capture"])
        and not any(is_explained(rule["capture"], row[1], row[2], row[3], [rule]) for row in found.get(rule["capture"], []))
    ]
    assert not idle
