"""Bytes by layer and sizes in Wireshark are those of `pcapstat messages` and of the theory, message by message, field by field."""

from __future__ import annotations

from pathlib import Path

import pytest
from dissectors.shown import captures, messages, trees, values

from pcapstat.rules.sizes import sizes
from pcapstat.schema import PARTS

SCRIPT = "pcapstat_overhead.lua"


@pytest.mark.parametrize("path", captures(), ids=lambda path: path.stem)
def test_parts_are_those_of_the_messages(path: Path) -> None:
    """Each message has the same bytes in each part."""
    columns = [f"{part}_bytes" for part in PARTS]
    expected = [(row["frame"], row["protocol"], row["kind"], *(row[column] for column in columns)) for row in messages(path)]
    actual = []
    for frame, tree in trees(path, SCRIPT):
        for message in tree.findall("field[@name='pcapstat_overhead.message']"):
            shown = values(message)
            protocol, kind = message.attrib["show"].split(" ", 1)
            actual.append((frame, protocol, kind, *(int(shown.get(column, 0)) for column in columns)))
    wrong = [(one, other) for one, other in zip(expected, actual, strict=False) if one[:2] != other[:2] or one[3:] != other[3:]]
    assert (len(actual), wrong[:5]) == (len(expected), [])
