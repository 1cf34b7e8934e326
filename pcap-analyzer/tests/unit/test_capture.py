"""The Python interface: what `open` refuses, what a capture keeps, what it tells of damage."""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from places import CAPTURES

import pcapstat
from pcapstat.errors import UnreadableCapture, UsageError
from pcapstat.schema import tables

SAMPLE = CAPTURES / "a-paho-qos1.pcapng"
CUT_BYTES = 3001
CUT_AT = "after frame 28: offset 3000: cut short"
"""Where the sample ends when that many bytes of it are left: tshark and capinfos count 28 packets too."""


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """Return the first bytes of the sample."""
    path = tmp_path / "cut.pcapng"
    path.write_bytes(SAMPLE.read_bytes()[:CUT_BYTES])
    return path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"engine": "foo"}, "there are: native, tshark, auto"),
        ({"mqtt_version": 7}, "none of 3, 4, 5"),
        ({"mqtt_version": "3.1.1"}, "none of 3, 4, 5"),
        ({"stop_after": 0}, "no whole number from 1 to"),
        ({"stop_after": -1}, "no whole number from 1 to"),
        ({"stop_after": 1.5}, "no whole number from 1 to"),
        ({"payload_size": -1}, "no whole number from 0 to"),
        ({"payload_size": 2**32}, "from 0 to 4294967295"),
        ({"frame_length": 0}, "no whole number from 1 to"),
        ({"receiver": "broker"}, "none of client, server"),
        ({"decode_as": ["foo"]}, "-d foo"),
        ({"decode_as": "udp.port==5700,coap"}, "no list of texts"),
        ({"keylog": "x.keys"}, "no list of texts"),
        ({"frame_length": 5, "frame_delimiter": b"x"}, "one of them"),
    ],
)
def test_options_that_cannot_be_are_refused_at_once(options: dict[str, Any], said: str) -> None:
    """Before anything is read: the file is not there."""
    with pytest.raises(UsageError, match=said):
        pcapstat.open("none.pcapng", **options)


def test_paths_that_cannot_be_are_refused_at_once() -> None:
    """None at all, and a name that is not in UTF-8, which is told escaped."""
    with pytest.raises(UsageError, match="no capture"):
        pcapstat.open([])
    with pytest.raises(UnreadableCapture, match=r"caf\\xe9\.pcap: the name is no UTF-8"):
        pcapstat.open("caf\udce9.pcap")


def test_choices_are_public_and_checked() -> None:
    """What the commands' --layer and --time1 offer."""
    layers = [pcapstat.open(SAMPLE).summary(pcapstat.Choices(layer=layer)).total.session_bytes for layer in ("frame", "ip", "transport")]
    assert layers == sorted(layers, reverse=True)
    assert len(set(layers)) == 3
    for wrong in ({"layer": "link"}, {"time1": "frame"}):
        with pytest.raises(UsageError, match="there are"):
            pcapstat.Choices(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a-paho-qos1", "a-paho-tls-qos1", "c-paho-python-many", "a-californium-dtls-con"])
def test_one_pass_fills_all_tables_as_one_each_does(name: str) -> None:
    """Rows, their order and columns with units are those of each table by itself; a share's are its own."""
    capture = pcapstat.open(CAPTURES / f"{name}.pcapng", engine="native")
    for share in (None, (1, 2)):
        found: dict[str, list[pa.RecordBatch]] = {}
        for table, batch in capture.batches(list(tables()), share):
            found.setdefault(table, []).append(batch)
        expected = {table: capture.table(table, share).to_arrow() for table in tables()}
        assert {table: pa.Table.from_batches(batches) for table, batches in found.items()} == expected
        assert all(batches[0].schema.equals(expected[table].schema, check_metadata=True) for table, batches in found.items())
    assert capture.files() == expected["captures"].to_pylist()


def test_one_pass_over_a_capture_without_a_message_has_every_table(tmp_path: Path) -> None:
    """An empty batch tells a table's columns; a table that there is not is refused, and what damaged the capture is told."""
    path = tmp_path / "empty.pcap"
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"cut")
    capture = pcapstat.open(path)
    rows = {table: batch.num_rows for table, batch in capture.batches(["exchanges", "messages", "sessions", "captures"])}
    assert rows == {"exchanges": 0, "messages": 0, "sessions": 0, "captures": 1}
    assert "cut short" in capture.damage[0]
    with pytest.raises(UsageError, match="no table frames"):
        next(capture.batches(["messages", "frames"]))


def test_a_capture_can_be_pickled() -> None:
    """For the workers of a pool; what was made of it stays behind."""
    capture = pcapstat.open(SAMPLE, stop_after=10)
    before = capture.summary().total
    again = pickle.loads(pickle.dumps(capture))
    assert (again, again.summary().total) == (capture, before)


def test_every_pass_tells_the_damage(cut: Path) -> None:
    """Each line once, after any pass, by the name that the user gave."""
    capture = pcapstat.open(cut, name="run 1")
    assert capture.damage == []
    assert len(list(capture.messages.rows())) > 0
    assert [line.partition(" inside")[0] for line in capture.damage] == [f"run 1: {CUT_AT}"]
    told = capture.damage
    capture.summary()
    capture.exchanges.to_pandas()
    assert capture.damage == told
    assert capture.has_notes
    assert pcapstat.open(SAMPLE).damage == []


def test_a_pass_that_fails_raises_an_error_of_ours() -> None:
    """An option that tshark refuses."""
    capture = pcapstat.open(SAMPLE, tshark=pcapstat.Tshark(preferences=("no.such:thing",)))
    for take in (lambda: capture.messages.to_pandas(), lambda: list(capture.messages.rows())):
        with pytest.raises(UsageError, match="unknown preference"):
            take()


def test_importing_stays_cheap() -> None:
    """Neither pyarrow nor pandas nor numpy for a capture or choices."""
    script = "import sys, pcapstat; pcapstat.open('x'), pcapstat.Choices()\n"
    script += "print([name for name in ('pyarrow', 'pandas', 'numpy', 'duckdb') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout == "[]\n"
