"""TLS and DTLS records: RFC 8446, RFC 5246, RFC 6347, and what RFC 8996 and RFC 9325 forbid. Lengths no version has are format errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pcapstat.rules.rule import Message, collector

RULES, rule = collector("tls")
HEADER_BYTES, MOST_PLAIN, MOST_13 = 5, 2**14, 2**14 + 256
"""Record header, and the longest fragments in the clear (RFC 8446 §5.1) and of TLS 1.3 (§5.2)."""
OLD_VERSIONS = {0x0300: "SSL 3.0", 0x0301: "TLS 1.0", 0x0302: "TLS 1.1", 0xFEFF: "DTLS 1.0"}
WEAK = ("_WITH_NULL_", "_WITH_RC4_", "_WITH_DES_", "_EXPORT_")
"""Parts of cipher suites' names (RFC 9325 §4.1)."""


@dataclass
class State:
    """What a connection has shown so far: alerts and by whom, changes of keys, the suite, and DTLS record numbers."""

    is_whole: bool = True
    fatal_from: str | None = None
    closed: set[str] = field(default_factory=set)
    heard: set[str] = field(default_factory=set)
    protected: set[str] = field(default_factory=set)
    cipher_suite: str | None = None
    numbers: dict[tuple[str, int, int], tuple[Any, ...]] = field(default_factory=dict)

    def lose(self) -> None:
        """Take note that records are missing."""
        self.is_whole = False

    def take(self, message: Message) -> None:
        """Learn from a record that was judged."""
        direction = message["direction"]
        self.heard.add(direction)
        self.cipher_suite = message["cipher_suite"] or self.cipher_suite
        if (message["alert"] or "").startswith("fatal"):
            self.fatal_from = direction
        if (message["alert"] or "").endswith(" close_notify"):
            self.closed.add(direction)
        if message["kind"] == "Change Cipher Spec":
            self.protected.add(direction)
        if may_begin_anew(message):
            self.numbers.clear()
            self.fatal_from = None
        number = number_of(message)
        if number is not None:
            self.numbers.setdefault(number, content_of(message))


def may_begin_anew(message: Message) -> bool:
    """Whether a client may begin another handshake with it (RFC 6347 §4.2.8), and count from 0 again."""
    is_hello = message["protocol"] == "dtls" and (message["handshake_types"] or "").startswith("Client Hello")
    return is_hello and not message["epoch"] and not message["message_id"]


def number_of(message: Message) -> tuple[str, int, int] | None:
    """Return sender, epoch and number of a DTLS record; none of DTLS 1.3, which hides it, and of what a server sends without a state."""
    is_known = message["sequence_number"] is not None and message["epoch"] is not None
    is_stateless = (message["handshake_types"] or "").startswith("Hello Verify Request")
    return (message["direction"], message["epoch"], message["sequence_number"]) if is_known and not is_stateless else None


def content_of(message: Message) -> tuple[Any, ...]:
    """Return what tells a record from another one with its number."""
    return (message["kind"], message["handshake_types"], message["message_id"], message["security_bytes"], message["opaque_bytes"])


def is_old_suite(suite: str | None) -> bool:
    """Whether it is one of TLS 1.2 or before: those name their key exchange (RFC 8446 §B.4)."""
    return suite is not None and "_WITH_" in suite


@rule("RFC8446-6.2-alert", "RFC 8446 §6.2, RFC 5246 §7.2.2", "error", "behind a fatal alert its sender sends nothing but alerts")
def fatal_alert_is_last(message: Message, state: State) -> str | None:
    """Judge what comes behind a fatal alert; over UDP another connection may begin between the same ports."""
    is_behind = state.fatal_from == message["direction"] and message["kind"] != "Alert" and not may_begin_anew(message)
    return f"{message['kind']} behind a fatal alert" if is_behind else None


@rule("RFC8446-6.1-close", "RFC 8446 §6.1", "error", "behind close_notify its sender sends nothing")
def closing_is_last(message: Message, state: State) -> str | None:
    """Judge what comes behind close_notify, over TCP: datagrams may have overtaken each other."""
    is_broken = message["transport"] == "tcp" and message["direction"] in state.closed and message["kind"] != "Alert"
    return f"{message['kind']} behind close_notify" if is_broken else None


@rule("RFC8446-4.1.2-first", "RFC 8446 §4.1.2, RFC 5246 §7.4.1.2", "error", "a connection's first record is a ClientHello or an alert")
def hello_goes_first(message: Message, state: State) -> str | None:
    """Judge the first record over TCP, where the client sends it."""
    is_first = message["direction"] == "c2s" and not state.heard and message["transport"] == "tcp" and state.is_whole
    is_right = (message["handshake_types"] or "").startswith("Client Hello") or message["kind"] == "Alert"
    return f"{message['kind']} first" if is_first and not is_right else None


@rule("RFC8996-2-version", "RFC 8996 §2, RFC 7568 §3", "error", "TLS 1.0, TLS 1.1, DTLS 1.0 and SSL 3.0 are not negotiated")
def version_is_not_deprecated(message: Message, _: State) -> str | None:
    """Judge a record with a ServerHello, which has the version that was chosen; a HelloVerifyRequest may have DTLS 1.0's."""
    is_chosen = (message["handshake_types"] or "").startswith("Server Hello") and message["direction"] == "s2c"
    name = OLD_VERSIONS.get(message["version"] or 0)
    return f"{name} was chosen" if is_chosen and name is not None and message["cipher_suite"] else None


@rule("RFC9325-4.1-suite", "RFC 9325 §4.1, RFC 7465", "error", "no cipher suite without encryption, with RC4, or with less than 112 bits")
def suite_is_strong(message: Message, _: State) -> str | None:
    """Judge the suite of a ServerHello."""
    suite = message["cipher_suite"] or ""
    return suite if any(part in suite for part in WEAK) else None


@rule("RFC8446-5.1-length", "RFC 8446 §5.1, §5.2", "error", "a fragment has 2^14 bytes at most, protected by TLS 1.3 2^14 + 256")
def fragment_is_short(message: Message, state: State) -> str | None:
    """Judge handshake records in the clear, and protected ones of TLS 1.3."""
    if message["protocol"] != "tls" or message["is_truncated"]:
        return None
    length = message["security_bytes"] + message["opaque_bytes"] + message["payload_bytes"] - HEADER_BYTES
    is_plain = message["kind"] == "Handshake" and message["variant"] != "encrypted" and not state.protected
    is_13 = message["kind"] == "Application Data" and state.cipher_suite is not None and not is_old_suite(state.cipher_suite)
    most = MOST_PLAIN if is_plain else MOST_13 if is_13 else length
    return f"{length} bytes where {most} are the most" if length > most else None


@rule("RFC5246-7.4.9-protected", "RFC 5246 §7.4.9", "error", "application data comes behind the sender's ChangeCipherSpec")
def data_is_protected(message: Message, state: State) -> str | None:
    """Judge application data of TLS 1.2 and before."""
    is_judged = message["kind"] == "Application Data" and message["transport"] == "tcp" and is_old_suite(state.cipher_suite)
    is_broken = is_judged and state.is_whole and message["direction"] not in state.protected
    return "application data before ChangeCipherSpec" if is_broken else None


@rule("RFC6347-4.1-epoch", "RFC 6347 §4.1 (RFC 5246 §7.4.9)", "error", "DTLS application data is not in epoch 0, which is not protected")
def data_has_an_epoch(message: Message, _: State) -> str | None:
    """Judge application data over DTLS up to 1.2; 1.3 hides the content type."""
    is_broken = message["protocol"] == "dtls" and message["kind"] == "Application Data" and message["epoch"] == 0
    return "application data in epoch 0" if is_broken and message["content_type"] is not None else None


@rule("RFC6347-4.1-number", "RFC 6347 §4.1", "error", "a DTLS sequence number is used once in an epoch")
def number_is_used_once(message: Message, state: State) -> str | None:
    """Judge a record with the number of another one. The same record again is the path's doing."""
    number = number_of(message)
    before = state.numbers.get(number) if number is not None else None
    is_broken = before is not None and before != content_of(message) and not may_begin_anew(message)
    return f"epoch {message['epoch']}, sequence number {message['sequence_number']} was another record's" if is_broken else None


def remember() -> Any:
    """Return what sessions tell each other: nothing."""
    return None


def begin(is_whole: bool, _memory: Any) -> Any:
    """Return the state of a connection at its start."""
    return State(is_whole=is_whole)
