"""MQTT: numbered conformance statements of MQTT 5, with their numbers in 3.1.1, that a capture can show to be broken."""

from __future__ import annotations

from typing import Any

from pcapstat.rules.mqtt import connection, contents, publication, subscription
from pcapstat.rules.mqtt.state import RULES, Clients, State

PARTS = (contents, connection, publication, subscription)
"""What fills RULES."""


def remember() -> Any:
    """Return what connections tell each other."""
    return Clients()


def begin(is_whole: bool, memory: Any) -> Any:
    """Return the state of a connection at its start."""
    return State(is_whole=is_whole, clients=memory)


__all__ = ["PARTS", "RULES", "begin", "remember"]
