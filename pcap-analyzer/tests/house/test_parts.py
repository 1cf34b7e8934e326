"""The parts of all bytes add up to the frames, in every capture at hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from places import CAPTURES, shared_captures

import pcapstat
from pcapstat.errors import UnreadableCapture
from pcapstat.metrics.sessions import LAYERS, Choices
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
        sessions = [sums.session(number) for number in range(len(sums))]
        counted = sum(sum(row["parts"]) for session in sessions for row in session["kinds"]) + sum(row["bytes"] for row in sums.others)
        directions = [row for session in sessions for row in session["directions"]]
        counted += sum(sum(row["control_parts"]) + sum(row["unassigned_parts"]) for row in directions)
        assert sum(sums.total()["control_parts"]) == sum(sum(row["control_parts"]) for row in directions)
        missing = counted - sum(row["frame_bytes"] for row in sums.captures)
        if missing != 0 and missing != sum(row["missing_bytes"] for row in pa.table(pcapstat.open(path).messages).to_pylist()):
            wrong.append((path.name, missing))

    assert not wrong


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("a-*.pcapng")), ids=lambda path: path.stem)
def test_each_row_adds_up(path: Path) -> None:
    """The nine parts of each message are its frame_bytes."""
    for row in pa.table(pcapstat.open(path).messages).to_pylist():
        assert row["frame_bytes"] == sum(row[f"{part}_bytes"] for part in PARTS)


@pytest.mark.parametrize("layer", LAYERS)
def test_the_total_is_the_sum_of_the_sessions(layer: str) -> None:
    """What all sessions add up to, made without making each one's figures, is what their figures add up to."""
    several = 0
    for path in captures():
        try:
            summary = pcapstat.open(path).summary(Choices(layer=layer))
        except UnreadableCapture:
            continue
        figures = list(summary.sessions)
        several += len(figures) > 1
        expected = [
            sum(getattr(each, name) for each in figures) for name in ("data_messages", "data_bytes", "session_bytes", "overhead_bytes")
        ]
        total = summary.total
        assert [total.data_messages, total.data_bytes, total.session_bytes, total.overhead_bytes] == expected, path.name
        by_part = [sum(each.overhead_by_part_bytes.values()) for each in figures]
        assert by_part == [each.overhead_bytes for each in figures], path.name
        largest = {each.session for each in summary.sessions.largest(1)}
        assert len(largest) == min(1, len(figures))

    assert several > 10


def test_the_overhead_of_hidden_data_adds_up_too() -> None:
    """Where the user says the payload's size, data is a part of what is hidden in records, not of payload that is seen."""
    paths = [path for path in captures() if path.stem.startswith("a-") and "tls-" in path.stem]
    for path in paths:
        [session, *_] = sorted(pcapstat.open(path, payload_size=10).summary().sessions, key=lambda each: -each.data_messages)
        parts = session.overhead_by_part_bytes
        assert ("payload" in parts, min(parts.values()) > 0, session.data_bytes > 0) == (False, True, True), path.name
        assert sum(parts.values()) == session.overhead_bytes, path.name
    assert len(paths) > 5
