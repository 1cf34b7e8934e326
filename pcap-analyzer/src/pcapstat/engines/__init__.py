"""Engines: how the messages of a capture come to be known. The native one reads all that is not encrypted; tshark opens what is."""

import os
from collections.abc import Sequence
from typing import NamedTuple, Self

from pcapstat import _native
from pcapstat.spool import is_read_once

ENGINES = {
    "native": "The core alone: fast, needs no other program; encrypted content stays closed.",
    "tshark": "The core, with tshark to open what is encrypted by the secrets that it is given or finds in the capture.",
    "auto": "native, unless secrets are given, named by SSLKEYLOGFILE, or embedded in the capture.",
}


class Secrets(NamedTuple):
    """What the user has to open encrypted content: key log files, pre-shared keys (hex), RSA key files, OSCORE contexts.

    `environment` is the path that SSLKEYLOGFILE names where the user is, which may be another process, or machine, than reads the capture.
    """

    keylog: tuple[str, ...] = ()
    psk: tuple[str, ...] = ()
    rsa_key: tuple[str, ...] = ()
    oscore: tuple[str, ...] = ()
    environment: str = ""

    def __bool__(self) -> bool:
        """Whether the user has given any."""
        return any((self.keylog, self.psk, self.rsa_key, self.oscore))

    @property
    def key_logs(self) -> list[str]:
        """The key logs that are there, that of the environment once a program has written to it."""
        return [*self.keylog, *filter(os.path.isfile, [self.environment])]


class Tshark(NamedTuple):
    """What the user tells tshark in its own words: preferences (-o), a display filter (-Y), extension options (-X), a profile (-C)."""

    preferences: tuple[str, ...] = ()
    display_filter: str | None = None
    extensions: tuple[str, ...] = ()
    profile: str | None = None

    def __bool__(self) -> bool:
        """Whether there is any."""
        return any((self.preferences, self.display_filter, self.extensions, self.profile))


class Choice(NamedTuple):
    """The engine that reads a capture, why it is this one, and tshark's version once a pass has used it: versions differ."""

    name: str
    reason: str
    version: str | None = None

    def after(self, holds_secrets: bool, version: str | None) -> Self:
        """Return the choice with what the pass has shown: tshark's version, or secrets that the native engine does not use."""
        if version:
            return self._replace(version=version)
        if self.name != "native" or not holds_secrets or self.reason.startswith(EMBEDDED):
            return self
        return self._replace(reason=f"{self.reason}; the secrets embedded in the capture are used by --engine tshark only")


EMBEDDED = "secrets are embedded in the capture"


def choose(wanted: str, paths: Sequence[str], secrets: Secrets, words: Tshark) -> Choice:
    """Choose the engine. Nothing is read of what can be read only once."""
    if wanted != "auto":
        return Choice(wanted, "as asked for")
    reason = reason_for_tshark(paths, secrets, words)
    if reason:
        return Choice("tshark", reason)
    if any(map(is_read_once, paths)):
        return Choice("native", "no secrets are given; what comes through a pipe is not searched for them")
    return Choice("native", "no secrets are given, and the capture begins with none")


def reason_for_tshark(paths: Sequence[str], secrets: Secrets, words: Tshark) -> str | None:
    """Return what speaks for tshark, where anything does."""
    if secrets:
        return "secrets are given"
    if words:
        return "options for tshark are given"
    if secrets.key_logs:
        return "SSLKEYLOGFILE names a key log"
    return EMBEDDED if any(has_secrets(path) for path in paths if not is_read_once(path)) else None


def environment_key_log() -> str:
    """Return the path of the key log that the environment names, for whatever folder; empty where it names none."""
    path = os.environ.get("SSLKEYLOGFILE", "")
    return path and os.path.abspath(path)


def has_secrets(path: str) -> bool:
    """Whether a key log is embedded ahead of the first frame; not where the file cannot be read: whoever reads it will say so."""
    try:
        return bool(_native.embedded_secrets([path]))
    except _native.NativeError:
        return False
