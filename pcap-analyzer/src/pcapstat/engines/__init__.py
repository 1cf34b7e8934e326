"""Engines: how the messages of a capture come to be known. The native one reads all that is not encrypted; tshark opens what is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pcapstat import _native

ENGINES = {
    "native": "The core alone: fast, needs no other program; encrypted content stays closed.",
    "tshark": "The core, with tshark to open what is encrypted by the secrets that it is given or finds in the capture.",
    "auto": "native, unless secrets are given or embedded in the capture.",
}


@dataclass(frozen=True)
class Secrets:
    """What the user has to open encrypted content: key log files, pre-shared keys (hex), RSA key files, OSCORE contexts."""

    keylog: tuple[str, ...] = ()
    psk: tuple[str, ...] = ()
    rsa_key: tuple[str, ...] = ()
    oscore: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return any((self.keylog, self.psk, self.rsa_key, self.oscore))


@dataclass(frozen=True)
class Tshark:
    """What the user tells tshark in its own words: preferences (-o), a display filter (-Y), extension options (-X), a profile (-C)."""

    preferences: tuple[str, ...] = ()
    display_filter: str | None = None
    extensions: tuple[str, ...] = ()
    profile: str | None = None

    def __bool__(self) -> bool:
        """Whether there is any."""
        return any((self.preferences, self.display_filter, self.extensions, self.profile))


@dataclass(frozen=True)
class Choice:
    """The engine that reads a capture, and why it is this one."""

    name: str
    reason: str


def choose(wanted: str, paths: Sequence[str], secrets: Secrets, words: Tshark) -> Choice:
    """Choose the engine. Nothing is read of standard input."""
    if wanted != "auto":
        return Choice(wanted, "as asked for")
    if secrets:
        return Choice("tshark", "secrets are given")
    if words:
        return Choice("tshark", "options for tshark are given")
    if "-" not in paths and embedded_secrets(paths):
        return Choice("tshark", "secrets are embedded in the capture")
    return Choice("native", "no secrets are given or embedded")


def embedded_secrets(paths: Sequence[str]) -> list[bytes]:
    """Return the key logs embedded ahead of the first frame; none where the capture cannot be read: whoever reads it will say so."""
    try:
        return _native.embedded_secrets(list(paths))
    except _native.NativeError:
        return []
