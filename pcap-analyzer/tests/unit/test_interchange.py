"""Tables through Arrow's PyCapsule interface: each library takes them as they are."""

from __future__ import annotations

import subprocess

import duckdb
import polars
import pyarrow as pa
import pytest
from places import CAPTURES

import pcapstat

NAME = str(CAPTURES / "a-paho-qos1.pcapng")


@pytest.fixture(scope="module")
def publishes() -> int:
    """Return the number of PUBLISH packets that tshark counts; some share a frame."""
    command = ["tshark", "-r", NAME, "-Y", "mqtt", "-T", "fields", "-e", "mqtt.msgtype"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return shown.replace("\n", ",").split(",").count("3")


def test_libraries_take_a_table(publishes: int) -> None:
    """Polars, pandas, pyarrow and DuckDB see the same messages."""
    messages = pcapstat.open(NAME).messages
    taken = polars.DataFrame(messages)
    assert taken.filter(polars.col("kind") == "PUBLISH").height == publishes
    assert (messages.to_pandas()["kind"] == "PUBLISH").sum() == publishes
    assert pa.table(messages).column("kind").to_pylist().count("PUBLISH") == publishes
    assert duckdb.sql("select count(*) from messages where kind = 'PUBLISH'").fetchall() == [(publishes,)]


def test_nothing_is_lost_between_libraries() -> None:
    """Types and values are the same on both sides: integers stay integers, lists lists, what is not there null."""
    messages = pcapstat.open(NAME).messages
    taken = polars.DataFrame(messages)
    assert taken.schema["time_ns"] == polars.Int64
    assert taken.schema["frames"] == polars.List(polars.UInt64)
    assert taken.to_dicts() == pa.table(messages).to_pylist()
