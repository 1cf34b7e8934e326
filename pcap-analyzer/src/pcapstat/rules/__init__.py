"""Rules: numbered sentences of the standards, held against each message of a capture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pcapstat.rules import coap, mqtt, records
from pcapstat.rules.rule import SEVERITIES, Message, Rule, Violation

PROTOCOLS: dict[str, Any] = {"coap": coap, "mqtt": mqtt, "tls": records, "dtls": records}
"""Module of each protocol: RULES, remember() for what its sessions share, begin(is_whole, memory) for a session's state."""
MALFORMED = Rule(
    "format", "the section that the explanation names", "error", "a message keeps the format", "*", lambda message, _: message["malformed"]
)
RULES: tuple[Rule, ...] = (MALFORMED, *mqtt.RULES, *coap.RULES, *records.RULES)
"""All rules."""


LACKING = {"gap", "unparsed", "fragment-missing"}
"""Notes of sessions that lack messages between others. That they do shows only behind the place, and in their own direction."""
DOUBTFUL = {"dropped", "damaged"}
"""Notes of captures that lack frames of any session."""
DISORDERED = "time-backwards"
"""The note of captures that have frames in another order than they went in: which sessions that touches their messages tell."""


def tried(protocols: Iterable[str]) -> tuple[Rule, ...]:
    """Return the rules that messages of these protocols are held against."""
    modules = list(dict.fromkeys(PROTOCOLS[name] for name in sorted(protocols) if name in PROTOCOLS))
    return (MALFORMED, *(rule for module in modules for rule in module.RULES))


def sessions_by_note(notes: Iterable[dict[str, Any]]) -> dict[str, set[int]]:
    """Return the sessions that each kind of note is about; none of them where it is about the capture."""
    told: dict[str, set[int]] = {}
    for note in notes:
        told.setdefault(note["note"], set()).add(note["session"])
    return told


def disordered(messages: Iterable[Message]) -> set[int]:
    """Return the sessions that have a message stamped before one that stands before it."""
    latest_ns: dict[int, int] = {}
    found = set[int]()
    for message in messages:
        session, time_ns = message["session"], message["time_ns"]
        if time_ns < latest_ns.get(session, time_ns):
            found.add(session)
        else:
            latest_ns[session] = time_ns
    return found


def judge(messages: Callable[[], Iterable[Message]], notes: Iterable[dict[str, Any]]) -> Iterator[Violation]:
    """Judge messages in their order, rows of the tables messages and notes: what a capture does not show is not judged.

    `messages` is called once more where times go backwards: an answer may stand before what it answers.
    """
    told = sessions_by_note(notes)
    cut, is_doubtful = told.get("mid-stream", set()), not DOUBTFUL.isdisjoint(told)
    lacking = set[int]().union(*(told.get(note, ()) for note in LACKING), disordered(messages()) if DISORDERED in told else ())
    states: dict[tuple[int, str], Any] = {}
    memories = {protocol: module.remember() for protocol, module in PROTOCOLS.items()}
    for message in messages():
        session, protocol = message["session"], message["protocol"]
        if message["malformed"]:
            yield violation(MALFORMED, message, message["malformed"])
        module = PROTOCOLS.get(protocol)
        if module is None:
            continue
        if (session, protocol) not in states:
            states[session, protocol] = module.begin(session not in cut, memories[protocol])
            if is_doubtful or session in lacking:
                states[session, protocol].lose()
        state = states[session, protocol]
        if message["malformed"] or message["is_after_gap"]:
            # what it said, or what was before it, is not known
            state.lose()
        if message["malformed"]:
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


__all__ = ["RULES", "SEVERITIES", "Rule", "Violation", "judge", "tried"]
