"""Every field that the rows of PROTOCOLS map to Wireshark's names is the same in tshark, message by message, over all captures at hand."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from against_tshark.listed import SHARED, captures, opened
from pcapstat import crosscheck


@pytest.fixture(scope="session")
def found() -> list[crosscheck.Difference]:
    """Return all differences, found once for the whole run."""
    listed = list(captures(crosscheck.protocols()))
    assert listed, "no capture to compare"
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda entry: list(crosscheck.differences(opened(entry[1], entry[2]))), listed)
        return [difference for differences in results for difference in differences]


def test_fields_agree_with_tshark(found: list[crosscheck.Difference]) -> None:
    """Each difference between tshark and the native engine is explained."""
    unexplained = [difference for difference in found if difference.explanation is None]
    shown = "\n".join(map(str, unexplained[:40]))
    assert not unexplained, f"{len(unexplained)} differences, the first of them:\n{shown}"


def test_explanations_are_needed(found: list[crosscheck.Difference]) -> None:
    """A row of explained.csv about one capture that explains nothing any more is removed."""
    here = [
        rule
        for rule in crosscheck.rules()
        if "*" not in rule.capture and rule.protocol != "http" and (SHARED.is_dir() or "/" not in rule.capture)
    ]
    assert not [rule for rule in here if not any(rule.covers(difference) for difference in found)]
