"""Rules: numbered sentences of the standards, held against each message of a capture."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pcapstat.rules import coap, mqtt, records
from pcapstat.rules.rule import SEVERITIES, Message, Rule, Violation

PROTOCOLS: dict[str, Any] = {"coap": coap, "mqtt": mqtt, "tls": records, "dtls": records}
"""Module of each protocol: RULES, and begin(is_whole) that makes a session's state."""
MALFORMED = Rule(
    "format", "the section that the explanation names", "error", "a message keeps the format", "*", lambda message, _: message["malformed"]
)
RULES: tuple[Rule, ...] = (MALFORMED, *mqtt.RULES, *coap.RULES, *records.RULES)
"""All rules."""


def judge(messages: Iterator[Message], begun_before: Collection[int]) -> Iterator[Violation]:
    """Judge messages in their order, rows of the table messages. `begun_before` are the sessions that began before the capture."""
    states: dict[tuple[int, str], Any] = {}
    for message in messages:
        session, protocol = message["session"], message["protocol"]
        if message["malformed"]:
            yield violation(MALFORMED, message, message["malformed"])
        module = PROTOCOLS.get(protocol)
        if module is None:
            continue
        if (session, protocol) not in states:
            states[session, protocol] = module.begin(session not in begun_before)
        state = states[session, protocol]
        if message["malformed"]:
            # what it said is not known, so that the connection is not known whole any more
            state.is_whole = False
            continue
        for rule in module.RULES:
            explanation = rule.check(message, state)
            if explanation:
                yield violation(rule, message, explanation)
        state.take(message)


def violation(rule: Rule, message: Message, explanation: str) -> Violation:
    """Return what a message breaks."""
    return Violation(
        rule.id,
        rule.severity,
        message["file"] or "",
        -1 if message["session"] is None else message["session"],
        message["frame"],
        f"frame.number == {message['frame']}",
        explanation,
        rule.text,
        rule.source,
    )


__all__ = ["RULES", "SEVERITIES", "Rule", "Violation", "judge"]
