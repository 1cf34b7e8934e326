"""The list of the standards' statements: complete by the standards' own numbers, and in step with the rules."""

from __future__ import annotations

import csv
import re

import pytest
from places import ROOT

from pcapstat.rules import RULES

STATEMENTS = ROOT / "docs" / "conformance"
MQTT_5 = """
1.5.4-3 1.5.5-1 1.5.7-1 2.1.3-1 2.2.1-6 2.2.2-1 3.1.0-2 3.1.2-30 3.1.3-12 3.1.4-6 3.2.0-2 3.2.2-22 3.3.1-13 3.3.2-20 3.3.4-10
3.4.2-3 3.5.2-3 3.6.1-1 3.6.2-3 3.7.2-3 3.8.1-1 3.8.3-5 3.8.4-8 3.9.2-2 3.9.3-2 3.10.1-1 3.10.3-2 3.10.4-6 3.11.2-2 3.11.3-2
3.12.4-1 3.14.0-1 3.14.1-1 3.14.2-4 3.14.4-3 3.15.1-1 3.15.2-3 4.1.0-2 4.2.0-1 4.3.1-1 4.3.2-5 4.3.3-13 4.4.0-2 4.5.0-2 4.6.0-6
4.7.0-1 4.7.1-2 4.7.2-1 4.7.3-4 4.8.2-6 4.9.0-3 4.12.0-7 4.12.1-2 4.13.1-1 4.13.2-1 6.0.0-4
"""
"""The last statement of each section of MQTT 5's Appendix B: 247, and 4 of WebSockets. Section 2.2.1 begins with 2."""
MQTT_311 = """
1.5.3-3 2.2.2-2 2.3.1-7 3.1.0-2 3.1.2-24 3.1.3-11 3.1.4-5 3.2.0-1 3.2.2-6 3.3.1-12 3.3.2-3 3.3.4-1 3.3.5-2 3.6.1-1 3.8.1-1 3.8.3-4
3.8.4-6 3.9.3-2 3.10.1-1 3.10.3-2 3.10.4-6 3.12.4-1 3.14.1-1 3.14.4-3 4.1.0-2 4.2.0-1 4.3.1-1 4.3.2-2 4.3.3-2 4.4.0-1 4.5.0-2
4.6.0-6 4.7.1-3 4.7.2-1 4.7.3-4 4.8.0-2 6.0.0-4 7.0.0-2 7.1.1-1 7.1.2-1
"""
"""The last statement of each section of MQTT 3.1.1, put together from two transcriptions, neither of which is complete."""
RFC_7252 = """
3-5 3.1-3 3.2-1 4.1-3 4.2-10 4.3-4 4.4-3 4.7-2 4.8.1-3 5.1-2 5.2.1-1 5.2.2-4 5.2.3-1 5.3.1-2 5.3.2-4 5.4-2 5.4.1-4 5.4.3-1 5.4.4-1
5.4.5-2 5.5-2 5.5.2-1 5.6-2 5.6.1-1 5.7.1-8 5.7.2-3 5.8-1 5.9.1.1-1 5.9.1.2-1 5.9.1.3-4 5.9.1.4-1 5.10.1-1 5.10.2-4 5.10.4-1
5.10.6-1 5.10.6.1-1 5.10.7-3 5.10.8-2 6.1-2 6.2-1 6.5-1 7.1-1 7.2.1-1 8-1 8.1-3 8.2-1 8.2.1-1 9.1.1-4 9.1.2-4 9.1.3.1-1 9.1.3.2-5
9.1.3.2.1-1 9.1.3.3-10 10-1 10.1.1-3 10.1.2-2 10.1.3-1 10.1.4-2 10.2.1-1 10.2.2-3 10.2.3-1 10.2.4-2 11.2-2 11.6-1 12.2-1 12.3-1
"""
"""The MUST and MUST NOT of each section of RFC 7252, as often as the words stand in its text; the boilerplate aside; counted by hand."""


def expected(prefix: str, last: str) -> set[str]:
    """Return the identifiers up to the last one of each section."""
    ids = set()
    for given in last.split():
        section, _, count = given.rpartition("-")
        ids |= {f"{prefix}-{section}-{number}" for number in range(1, int(count) + 1)}
    return ids


def lines(name: str) -> list[dict[str, str]]:
    """Return a list's lines."""
    return list(csv.DictReader((STATEMENTS / f"{name}.csv").read_text().splitlines()))


@pytest.mark.parametrize(
    ("name", "ids", "count"),
    [
        ("mqtt-5", expected("MQTT", MQTT_5) - {"MQTT-2.2.1-1"}, 247 + 4),
        ("mqtt-3.1.1", expected("MQTT", MQTT_311), 142),
        ("rfc7252", expected("RFC7252", RFC_7252), 154),
    ],
)
def test_each_statement_of_the_standard_is_listed_once(name: str, ids: set[str], count: int) -> None:
    """By the standards' own numbers; lines with § are sentences without one."""
    listed = [line["id"] for line in lines(name) if not line["id"].startswith("§")]
    assert len(listed) == len(set(listed)) == count
    assert set(listed) == ids


@pytest.mark.parametrize("name", ["mqtt-5", "mqtt-3.1.1", "rfc7252"])
def test_each_line_is_judged_by_rules_or_says_why_not(name: str) -> None:
    """Rules exist; "not visible" and "not yet" have their reason."""
    ids = {rule.id for rule in RULES}
    for line in lines(name):
        if line["judgement"] in {"not visible", "not yet"}:
            assert line["note"], line
        else:
            assert line["judgement"], line
            assert set(line["judgement"].split()) <= ids, line


def test_each_rule_of_these_standards_stands_behind_a_line() -> None:
    """A rule that no statement names would have no source."""
    named = {rule for name in ("mqtt-5", "mqtt-3.1.1", "rfc7252") for line in lines(name) for rule in line["judgement"].split()}
    assert {rule.id for rule in RULES if re.match("format|MQTT|RFC7252", rule.id)} - named == set()
