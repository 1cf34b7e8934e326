"""Wireshark's tshark: where it is, which version, where its folders are."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

from pcapstat.errors import ToolMissing

OLDEST = (4, 0)
PLACES = ("/Applications/Wireshark.app/Contents/MacOS", r"C:\Program Files\Wireshark")
"""Where installers put it without telling PATH."""


def ran(
    arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, timeout_s: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program of Wireshark's to its end. What it says is UTF-8, whatever encoding the locale has."""
    return subprocess.run(
        arguments, capture_output=True, check=False, encoding="utf-8", errors="replace", env=environment, timeout=timeout_s
    )


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
        told = ran([tshark, "--version"], timeout_s=60).stdout
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
    told = ran([find(), "-G", "folders"], timeout_s=60).stdout
    pairs = (line.split(":", 1) for line in told.splitlines() if ":" in line)
    return {name.strip(): Path(path.strip()) for name, path in pairs if path.strip()}


SECTION, INTERFACE = 0x0A0D_0D0A, 1
PACKETS = (2, 3, 6)
"""Block types of pcapng: section header, interface description; obsolete, simple and enhanced packet."""
LONGEST_BLOCK = 16 * 1024 * 1024
"""Wireshark takes a longer block for damage (wiretap/pcapng.c, MAX_BLOCK_SIZE)."""


def rewritable(capture: str, copy: Path) -> str:
    """Return a capture that editcap and mergecap can write again: itself, or `copy`, where secrets stand before the interfaces.

    They refuse such a pcapng (tried with 4.0.17), although editcap --inject-secrets writes it so.
    """
    try:
        with open(capture, "rb") as file:
            blocks = head(file)
    except OSError:
        return capture
    if blocks == interfaces_first(blocks):
        return capture
    shutil.copyfile(capture, copy)
    put_interfaces_first(copy)
    return str(copy)


def put_interfaces_first(capture: Path) -> None:
    """Move a pcapng's interface description blocks before the secrets; nothing else changes."""
    with capture.open("r+b") as file:
        blocks = head(file)
        file.seek(0)
        file.write(b"".join(block for _, block in interfaces_first(blocks)))


def interfaces_first(blocks: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return blocks in the order of section header, interfaces, all others."""
    return sorted(blocks, key=lambda block: (block[0] != SECTION, block[0] != INTERFACE))


def head(file: IO[bytes]) -> list[tuple[int, bytes]]:
    """Return the blocks ahead of the first packet with their types; none where it is no pcapng, or is damaged before."""
    magic = file.read(12)
    if magic[:4] != b"\x0a\x0d\x0d\x0a":
        return []
    order = "<" if magic[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
    file.seek(0)
    blocks: list[tuple[int, bytes]] = []
    while start := file.read(8):
        kind, length = struct.unpack(order + "II", start.ljust(8, b"\0"))
        if kind in PACKETS or (blocks and kind == SECTION):
            break
        rest = file.read(length - 8) if 12 <= length <= LONGEST_BLOCK else b""
        if len(start + rest) != length:
            return []
        blocks.append((kind, start + rest))
    return blocks
