"""Wireshark's tshark: where it is, which version, where its folders are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pcapstat.errors import ToolMissing

OLDEST = (4, 0)
PLACES = ("/Applications/Wireshark.app/Contents/MacOS", r"C:\Program Files\Wireshark")
"""Where installers put it without telling PATH."""


def find(program: str = "tshark") -> str:
    """Return the path of a program of Wireshark's: by the environment variable PCAPSTAT_TSHARK, PATH, or where installers put it.

    Raises ToolMissing.
    """
    told = os.environ.get("PCAPSTAT_TSHARK")
    if told:
        path = Path(told) if program == "tshark" else Path(told).with_name(program)
        if path.is_file():
            return str(path)
        raise ToolMissing(f"{path}: no such program (set PCAPSTAT_TSHARK to tshark's path, or unset it)")
    found = shutil.which(program) or next((place for place in PLACES if shutil.which(program, path=place)), None)
    if found is None:
        raise ToolMissing(
            f"{program}: not found (install Wireshark {OLDEST[0]}.{OLDEST[1]} or newer: apt install tshark, or wireshark.org)"
        )
    return found if shutil.which(found) else str(shutil.which(program, path=found))


@cache
def version(tshark: str) -> tuple[int, ...]:
    """Return tshark's version. Raises ToolMissing where it cannot be told or is too old."""
    try:
        told = subprocess.run([tshark, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    except OSError as error:
        raise ToolMissing(f"{tshark}: {error.strerror} (install Wireshark 4.0 or newer)") from None
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", told)
    if match is None:
        raise ToolMissing(f"{tshark}: tells no version (install Wireshark 4.0 or newer)")
    numbers = tuple(int(number) for number in match.groups())
    if numbers < OLDEST:
        raise ToolMissing(f"{tshark}: version {match[0]} is too old (install Wireshark 4.0 or newer)")
    return numbers


def split_environment(command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return a command without the "NAME=value" words before it, and the environment with them."""
    words = list(command)
    environment = dict(os.environ)
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    return words, environment


def folders() -> dict[str, Path]:
    """Return tshark's folders by the names that `tshark -G folders` gives them ("Personal Lua Plugins")."""
    told = subprocess.run([find(), "-G", "folders"], capture_output=True, text=True, check=False, timeout=60).stdout
    pairs = (line.split(":", 1) for line in told.splitlines() if ":" in line)
    return {name.strip(): Path(path.strip()) for name, path in pairs if path.strip()}
