"""MQTT: numbered conformance statements of MQTT 5, with their numbers in 3.1.1, that a capture can show to be broken."""

from __future__ import annotations

from typing import Any

from pcapstat.rules.mqtt import connection, contents, publication, subscription
from pcapstat.rules.mqtt.state import RULES, State

PARTS = (contents, connection, publication, subscription)
"""What fills RULES."""


def begin(is_whole: bool) -> Any:
    """Return the state of a connection at its start."""
    return State(is_whole=is_whole)


__all__ = ["PARTS", "RULES", "begin"]
