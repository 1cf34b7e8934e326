"""Synthetic captures: the ideal run of a scenario, before there is a testbed."""

from __future__ import annotations

from pathlib import Path

SCENARIOS = Path(__file__).with_name("scenarios")
"""Scenario files that come with the project: Studies A, D and E."""


def shipped() -> list[str]:
    """Return the names of the scenarios that come with the project."""
    return sorted(path.stem for path in SCENARIOS.glob("*.yaml"))
