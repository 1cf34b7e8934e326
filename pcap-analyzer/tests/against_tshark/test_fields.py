"""Every field that the rows of PROTOCOLS map to Wireshark's names is the same in tshark, message by message, over all captures at hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import pcapstat
from against_tshark.listed import ROOT, SHARED, captures, opened
from against_tshark.test_secrets import OWN_PORTS, secured
from pcapstat import crosscheck


def closed() -> Iterator[pcapstat.Capture]:
    """All captures that hold a protocol of ours, by the native engine."""
    for _, path, decode_as in captures(crosscheck.shapes(is_open=False)):
        yield opened(path, decode_as)


def decrypted() -> Iterator[pcapstat.Capture]:
    """Our recordings and the public captures that have secrets, opened."""
    for path in sorted((ROOT / "captures").glob("*.keys")):
        yield pcapstat.open(path.with_suffix(".pcapng"), keylog=[str(path)])
    for name, secrets in secured():
        if name not in OWN_PORTS:
            yield pcapstat.open(SHARED / name, **secrets)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def found() -> list[crosscheck.Difference]:
    """Return all differences, found once for the whole run."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda capture: list(crosscheck.differences(capture)), [*closed(), *decrypted()])
        return [difference for differences in results for difference in differences]


def test_fields_agree_with_tshark(found: list[crosscheck.Difference]) -> None:
    """Each difference between tshark and the core is explained, in the clear, closed and opened."""
    unexplained = [difference for difference in found if difference.explanation is None]
    shown = "\n".join(map(str, unexplained[:40]))
    assert not unexplained, f"{len(unexplained)} differences, the first of them:\n{shown}"


def test_explanations_are_needed(found: list[crosscheck.Difference]) -> None:
    """A row of explained.csv about one capture that explains nothing any more is removed; newer versions change with each release."""
    here = [rule for rule in crosscheck.rules() if "*" not in rule.capture and (SHARED.is_dir() or "/" not in rule.capture)]
    here = [rule for rule in here if not rule.tshark.startswith(">=")]
    assert not [rule for rule in here if not any(rule.covers(difference) for difference in found)]
