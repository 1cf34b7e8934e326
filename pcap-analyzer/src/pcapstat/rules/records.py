"""TLS and DTLS records: RFC 8446 and RFC 5246. Lengths beyond their bounds are format errors, which the decoder finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pcapstat.rules.rule import Message, collector

RULES, rule = collector("tls")


@dataclass
class State:
    """What a connection has shown so far: a fatal alert, by whom."""

    fatal_from: str | None = None

    def take(self, message: Message) -> None:
        """Learn from a record that was judged."""
        if (message["alert"] or "").startswith("fatal"):
            self.fatal_from = message["direction"]


@rule("RFC8446-6.2-alert", "RFC 8446 §6.2, RFC 5246 §7.2.2", "error", "behind a fatal alert its sender sends nothing but alerts")
def fatal_alert_is_last(message: Message, state: State) -> str | None:
    """Judge what comes behind a fatal alert."""
    is_behind = state.fatal_from == message["direction"] and message["kind"] != "Alert"
    return f"{message['kind']} behind a fatal alert" if is_behind else None


def begin(is_whole: bool) -> Any:
    """Return the state of a connection at its start."""
    del is_whole
    return State()
