"""The parts of all bytes add up to the frames, in every capture at hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from places import CAPTURES, shared_captures

import pcapstat
from pcapstat.errors import UnreadableCapture
from pcapstat.schema import PARTS


def captures() -> list[Path]:
    """Return all captures."""
    return [*sorted(CAPTURES.glob("*.pcapng")), *shared_captures()]


def test_sums_are_the_frames() -> None:
    """Messages, control frames, unassigned bytes and other frames add up to the bytes on the wire."""
    wrong = []
    for path in captures():
        try:
            sums = pcapstat.open(path).sums()
        except UnreadableCapture:
            continue
        counted = sum(sum(row["parts"]) for row in sums["kinds"]) + sum(row["bytes"] for row in sums["others"])
        counted += sum(sum(row["control_parts"]) + sum(row["unassigned_parts"]) for row in sums["directions"])
        missing = counted - sum(row["frame_bytes"] for row in sums["captures"])
        if missing != 0 and missing != sum(row["missing_bytes"] for row in pa.table(pcapstat.open(path).messages).to_pylist()):
            wrong.append((path.name, missing))

    assert not wrong


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("a-*.pcapng")), ids=lambda path: path.stem)
def test_each_row_adds_up(path: Path) -> None:
    """The nine parts of each message are its frame_bytes."""
    for row in pa.table(pcapstat.open(path).messages).to_pylist():
        assert row["frame_bytes"] == sum(row[f"{part}_bytes"] for part in PARTS)
