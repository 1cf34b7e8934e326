"""CoAP: what RFC 7252, RFC 7641, RFC 7959 and RFC 8323 ask of messages, as far as a capture can show it."""

from __future__ import annotations

from typing import Any

from pcapstat.rules.coap import messages, requests, streams, transfers
from pcapstat.rules.coap.state import RULES, State

PARTS = (messages, requests, transfers, streams)
"""What fills RULES."""


def remember() -> Any:
    """Return what sessions tell each other: nothing."""
    return None


def begin(is_whole: bool, _memory: Any) -> Any:
    """Return the state of two endpoints at the start. The capture may have begun later than they did."""
    return State(is_whole=is_whole)


__all__ = ["PARTS", "RULES", "begin", "remember"]
