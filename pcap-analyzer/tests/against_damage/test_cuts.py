"""Captures cut at every byte and with bytes changed: figures or one clear error, never a panic."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from places import CAPTURES

import pcapstat
from pcapstat.errors import UnreadableCapture

SMALL = CAPTURES / "a-californium-con.pcapng"
HEAD_BYTES = 3000


def outcome(path: Path) -> str:
    """Read a capture: "fine", "damaged" with one line each, or "unreadable" with one line."""
    try:
        summary = pcapstat.open(path).summary()
    except UnreadableCapture as error:
        lines, found = [str(error)], "unreadable"
    else:
        lines, found = summary.damage, "damaged" if summary.damage else "fine"
    assert all("\n" not in line and path.name in line for line in lines)
    return found


def test_cut_at_every_byte(tmp_path: Path) -> None:
    """Each cut of the first bytes is unreadable, damaged, or by chance between two blocks."""
    data = SMALL.read_bytes()[:HEAD_BYTES]
    path = tmp_path / "cut.pcapng"
    outcomes = []
    for end in range(len(data)):
        path.write_bytes(data[:end])
        outcomes.append(outcome(path))

    assert outcomes[0] == "unreadable"
    assert {"damaged", "fine"} <= set(outcomes)


@pytest.mark.parametrize("seed", range(200))
def test_changed_bytes(tmp_path: Path, seed: int) -> None:
    """Random changes of a capture never stop the process."""
    chance = random.Random(seed)
    data = bytearray(SMALL.read_bytes())
    for _ in range(chance.randrange(1, 40)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path = tmp_path / "changed.pcapng"
    path.write_bytes(data)

    assert outcome(path) in {"fine", "damaged", "unreadable"}
