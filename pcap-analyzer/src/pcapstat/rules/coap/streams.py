"""CoAP over TCP and WebSockets: settings and signaling (RFC 8323)."""

from __future__ import annotations

from pcapstat.rules.coap.state import State, other, rule
from pcapstat.rules.rule import Message


@rule("RFC8323-5.3-csm", "RFC 8323 §5.3", "error", "each side's first message is a CSM")
def settings_go_first(message: Message, state: State) -> str | None:
    """Judge the first message of a side; those behind it would only say the same again."""
    is_first = message["transport"] == "tcp" and state.is_whole and message["direction"] not in state.heard
    return f"{message['kind']} before CSM" if is_first and message["kind"] != "CSM" else None


@rule("RFC8323-5.4-pong", "RFC 8323 §5.4", "error", "Pong has the token of a Ping")
def pong_answers_a_ping(message: Message, state: State) -> str | None:
    """Judge Pong."""
    token = message["token"] or ""
    is_broken = message["kind"] == "Pong" and state.knows_peer(message) and token not in state.pings[other(message["direction"])]
    return f"Pong with token {token!r}, which no Ping had" if is_broken else None


@rule("RFC8323-5.6-abort", "RFC 8323 §5.6", "error", "behind Abort its sender sends nothing")
def abort_is_last(message: Message, state: State) -> str | None:
    """Judge what comes behind Abort."""
    return f"{message['kind']} behind Abort" if message["direction"] in state.aborted else None
