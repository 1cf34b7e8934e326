"""Sums that a thread of their own adds up are those of the rows, which are made where the messages are found."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pandas as pd
import pyarrow as pa
import pytest
from places import ROOT

import pcapstat

FRAMES = 30_000
"""Enough for several batches in each thread."""
PARTS = ["link", "padding", "ip", "transport", "security", "header", "option", "payload", "opaque"]
KEYS = ["session", "direction", "protocol", "kind", "variant"]


def generator() -> ModuleType:
    """Return the module that writes the captures of the bench."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "pcap-analyzer" / "benches" / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=[("mqtt", 40), ("coap", 300)], ids=lambda param: str(param[0]))
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> pcapstat.Capture:
    """Write a capture that is too large for one thread."""
    kind, endpoints = request.param
    path: Path = tmp_path_factory.mktemp("threads") / f"{kind}.pcap"
    generator().write(path, kind, FRAMES, endpoints)
    return pcapstat.open(path)


def frame(capture: pcapstat.Capture, table: str) -> pd.DataFrame:
    """Return a table as pandas has it."""
    return pa.table(capture.table(table)).to_pandas()


def test_kinds_are_the_sums_of_their_messages(capture: pcapstat.Capture) -> None:
    """Messages, bytes by part, smallest and largest message of every kind."""
    kinds = frame(capture, "kinds")
    rows = frame(capture, "messages")
    rows["own"] = rows[[f"{part}_bytes" for part in PARTS[5:]]].sum(axis=1)
    sums = rows.groupby(KEYS).agg(messages=("message", "count"), least=("own", "min"), most=("own", "max"))
    sums[PARTS] = rows.groupby(KEYS)[[f"{part}_bytes" for part in PARTS]].sum().to_numpy()

    kinds[PARTS] = kinds["parts"].tolist()
    told = kinds.set_index(KEYS).sort_index()[["messages", "message_bytes_min", "message_bytes_max", *PARTS]]
    assert len(told) > 100
    assert told.to_numpy().tolist() == sums.sort_index()[["messages", "least", "most", *PARTS]].to_numpy().tolist()


def test_timings_are_those_of_the_exchanges(capture: pcapstat.Capture) -> None:
    """Count, sum, extremes and median of the times to acknowledgement and response."""
    timings = frame(capture, "timings").set_index(["session", "kind"]).sort_index()
    exchanges = frame(capture, "exchanges")
    for timing in ("ack_rtt", "rtt"):
        column = f"{timing}_ns"
        found = exchanges.dropna(subset=[column]).groupby(["session", "kind"])[column]
        expected = found.agg(["count", "sum", "min", "max", "median"]).sort_index().astype("int64")
        told = timings[timings["timing"] == timing]

        assert (told["retransmitted"] == 0).all()
        assert told[["count", "sum_ns", "min_ns", "max_ns", "median_ns"]].to_numpy().tolist() == expected.to_numpy().tolist()
