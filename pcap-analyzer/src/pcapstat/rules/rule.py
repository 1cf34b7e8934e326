"""What a rule is: a numbered sentence of a standard, and a function that judges a message by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SEVERITIES = ("error", "warning", "note")
"""Of a MUST, of a SHOULD or a default that may be configured, of what is worth a look."""
Message = dict[str, Any]
"""A row of the table messages."""


@dataclass(frozen=True)
class Rule:
    """A rule: identifier, where it is written, how grave breaking it is, what it asks in our words, for which protocol, and its judge.

    `check` is given a message and what the session's messages before it showed; it returns what is wrong, or None.
    """

    id: str
    source: str
    severity: str
    text: str
    protocol: str
    check: Callable[[Message, Any], str | None]


@dataclass(frozen=True)
class Violation:
    """A message that breaks a rule."""

    rule: str
    severity: str
    file: str
    session: int
    frame: int
    filter: str
    explanation: str
    text: str
    source: str


Judge = Callable[[Message, Any], str | None]


def collector(protocol: str) -> tuple[list[Rule], Callable[[str, str, str, str], Callable[[Judge], Judge]]]:
    """Return an empty list of rules and the decorator that puts a function into it: `@rule(id, source, severity, text)`."""
    rules: list[Rule] = []

    def rule(identifier: str, source: str, severity: str, text: str) -> Callable[[Judge], Judge]:
        def put(check: Judge) -> Judge:
            rules.append(Rule(identifier, source, severity, text, protocol, check))
            return check

        return put

    return rules, rule
