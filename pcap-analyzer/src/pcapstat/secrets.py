"""Secrets embedded in a capture: pcapng's decryption secrets blocks of TLS key logs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from pcapstat import _native, wireshark
from pcapstat.capture import open as open_capture
from pcapstat.capture import stopped, utf8
from pcapstat.engines.tshark import LABELS, NO_LINE, key_log
from pcapstat.errors import UnreadableCapture, UsageError
from pcapstat.spool import kept


def embed(capture: str, keylog: Sequence[str], output: IO[bytes]) -> list[str]:
    """Write a copy of a capture with key logs embedded, by Wireshark's editcap, to an open file.

    Returns what damaged the capture, one line each: frames behind it are not in the copy. Raises UsageError where a key log
    holds no line of its format, UnreadableCapture where editcap cannot read the capture.
    """
    editcap = wireshark.find("editcap")
    lines = [line for log in keylog for line in key_log(log)]
    if not any(line.startswith(LABELS) for line in lines):
        raise UsageError(f"{', '.join(keylog)}: {NO_LINE}")
    with tempfile.TemporaryDirectory(prefix="pcapstat-") as folder, kept(capture) as file:
        whole = Path(folder) / "keys.log"
        whole.write_text("\n".join(lines) + "\n", encoding="utf-8")
        source = wireshark.rewritable(file, Path(folder) / "source.pcapng")
        written = Path(folder) / "written.pcapng"
        arguments = [editcap, "-F", "pcapng", "--inject-secrets", f"tls,{whole}", source, str(written)]
        done = wireshark.ran(arguments)
        if done.returncode:
            raise UnreadableCapture(f"{capture}: {done.stderr.strip().splitlines()[-1]} (check it with capinfos)")
        # editcap puts the secrets before the interfaces, and then cannot write what it has written
        wireshark.put_interfaces_first(written)
        with written.open("rb") as copy:
            shutil.copyfileobj(copy, output)
        # editcap leaves with 0 where it copies the beginning only, and says so
        said = " ".join(done.stderr.split())
        return (damage_of(file, capture) or [f"{capture}: {said}"]) if said else []


def damage_of(file: str, name: str) -> list[str]:
    """Tell what damaged a capture, with the last frame before it."""
    capture = open_capture(file, engine="native", name=name)
    capture.sums()
    return capture.damage


def extract(capture: str) -> bytes:
    """Return the key logs embedded in a capture. Raises UnreadableCapture, UsageError where there are none."""
    try:
        secrets = _native.embedded_secrets([utf8(capture, None)], wants_all=True)
    except _native.NativeError as error:
        raise stopped(error) from None
    if not secrets:
        raise UsageError(f"{capture}: no secrets are embedded (embed them with pcapstat secrets embed)")
    return b"".join(secret if secret.endswith(b"\n") else secret + b"\n" for secret in secrets)
