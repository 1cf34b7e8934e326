"""Bytes by layer and sizes in Wireshark are those of `pcapstat messages` and of the theory, message by message, field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from places import CAPTURES

from dissectors.shown import captures, messages, trees, values
from pcapstat.rules.sizes import sizes
from pcapstat.schema import PARTS

SCRIPT = "pcapstat_overhead.lua"
COLUMNS = ("frame_bytes", *(f"{part}_bytes" for part in PARTS))
OTHERS_INSIDE = {"c-http2", "c-xmpp-tls-chat", "c-xmpp-tls-pubsub"}
"""Recordings whose TLS records hold protocols that the dissectors do not show: they show the records."""
TWICE = ("a-paho-qos1", "a-paho-tls-qos1", "a-californium-dtls-cid-con", "c-aiocoap-tcp-observe", "e-mqttsn-1920")
Row = tuple[Any, ...]


def shown(path: Path, arguments: tuple[str, ...] = ()) -> list[tuple[int, str, dict[str, str]]]:
    """Return frame, title and fields of each message in the dissector's trees."""
    found = []
    for frame, tree in trees(path, SCRIPT, arguments):
        for message in tree.findall("field[@name='pcapstat_overhead.message']"):
            found.append((frame, message.attrib["show"], values(message)))
    return found


def is_compared(path: Path, protocol: str, kind: str) -> bool:
    """Whether the message is shown on both sides."""
    return not (path.stem in OTHERS_INSIDE and (protocol, kind) == ("tls", "Application Data"))


@pytest.mark.parametrize("path", captures(), ids=lambda path: path.stem)
def test_parts_are_those_of_the_messages(path: Path) -> None:
    """Each message has the same bytes in each part."""
    expected = [
        (row["frame"], f"{row['protocol']} {row['kind']}", *(row[column] for column in COLUMNS))
        for row in messages(path)
        if is_compared(path, row["protocol"], row["kind"])
    ]
    actual: list[Row] = []
    for (frame, title, fields), row in zip(
        (entry for entry in shown(path) if is_compared(path, *entry[1].split(" ", 1))), expected, strict=True
    ):
        # the title goes on with the variant
        name = row[1] if title.startswith(row[1]) else title
        actual.append((frame, name, *(int(fields[column]) for column in COLUMNS)))
    assert actual == expected


@pytest.mark.parametrize("name", TWICE)
def test_two_passes_show_the_same(name: str) -> None:
    """What is found in a first pass without visible trees and shown in a second one is what one pass shows."""
    path = CAPTURES / f"{name}.pcapng"
    assert shown(path, ("-2", "-Y", "frame")) == shown(path)


@pytest.mark.parametrize("path", captures(), ids=lambda path: path.stem)
def test_sizes_are_those_of_the_theory(path: Path) -> None:
    """Observed, specified and minimal size of each CoAP message and MQTT control packet are those of `pcapstat validate --sizes`."""
    judged = [size for size in sizes(iter(messages(path))) if size.specified is not None]
    expected = [(size.frame, size.observed, size.specified, size.minimal) for size in judged]
    actual = [
        (frame, *(int(fields[name]) for name in ("observed_bytes", "specified_bytes", "minimal_bytes")))
        for frame, title, fields in shown(path)
        if "specified_bytes" in fields and not title.startswith("mqttsn")
    ]
    assert actual == expected


@pytest.mark.parametrize("path", captures(), ids=lambda path: path.stem)
def test_a_difference_has_a_cause(path: Path) -> None:
    """Where a message is longer than it has to be, the field is named that makes it so."""
    unexplained = [
        (frame, title)
        for frame, title, fields in shown(path)
        if fields.get("difference_bytes", "0") != "0" and "difference_cause" not in fields
    ]
    assert unexplained == []
