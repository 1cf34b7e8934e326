"""The page of what captures hide: each trap has its row, and each test that a row names is there."""

from __future__ import annotations

import re

import pytest
from places import ROOT

PAGE = (ROOT / "docs" / "explanation" / "traps.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
PLACES = {".py": (ROOT / "pcap-analyzer" / "tests", r"def {}\("), ".rs": (ROOT / "pcap-analyzer" / "native", r"fn {}\(")}
"""Where tests are that a row names, and how they begin."""


def test_each_trap_has_one_row() -> None:
    """By number, 1 to 90."""
    assert sorted(int(number) for number, *_ in ROWS) == list(range(1, 91))


@pytest.mark.parametrize(("number", "answer", "tests"), [(number, answer, tests) for number, _, answer, tests in ROWS])
def test_its_tests_are_there_or_it_says_that_it_is_not_handled(number: str, answer: str, tests: str) -> None:
    """A row without a test says in bold what is not done."""
    named = re.findall(r"`([^`]+?)(\.py|\.rs)::(\w+)`", tests)
    assert ", ".join(f"`{path}{suffix}::{name}`" for path, suffix, name in named) == ("" if tests == "none" else tests), number
    assert named or "**" in answer
    for path, suffix, name in named:
        folder, begins = PLACES[suffix]
        assert re.search(begins.format(name), (folder / f"{path}{suffix}").read_text()), f"{number}: {path}{suffix}::{name}"
