"""Figures: the tables behind them hold what the capture holds, and each is an image in every format."""

from __future__ import annotations

from pathlib import Path

import click.testing
import pandas as pd
import pytest
from places import CAPTURES

import pcapstat
from pcapstat.cli.plot import KINDS, command
from pcapstat.plots import PLOTS

CON = CAPTURES / "a-californium-con.pcapng"
BEGINNINGS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_each_kind_is_an_image_in_each_format(kind: str, suffix: str, tmp_path: Path) -> None:
    """With the table that was drawn beside it."""
    image, data = tmp_path / f"figure.{suffix}", tmp_path / "figure.csv"
    words = [str(CON), "--kind", kind, "-O", str(image), "--data", str(data)]
    done = click.testing.CliRunner().invoke(command, words, standalone_mode=False)
    assert done.exception is None
    assert image.read_bytes().startswith(BEGINNINGS[suffix])
    assert len(pd.read_csv(data)) > 1


def test_tables_hold_what_the_capture_holds() -> None:
    """Rates times bins are the data messages; each exchange's time is there once; the bytes are those of the summary."""
    captures = [pcapstat.open(CON)]
    (session,) = captures[0].summary().sessions
    rate = PLOTS["rate"][0](captures)
    assert round((rate["messages_per_s"] * rate["bin_width_s"]).sum()) == session.data_messages
    delay = PLOTS["delay"][0](captures)
    assert sorted(delay["timing"].value_counts().items()) == [("to ACK", 101), ("to response", 1)]
    overhead = PLOTS["overhead"][0](captures)
    assert overhead["bytes"].sum() == session.overhead_bytes + session.data_bytes
    sizes = PLOTS["sizes"][0](captures)
    assert set(sizes.query("which == 'observed' and kind == 'CON 2.05'")["bytes"]) == {26}
    again = PLOTS["timeline"][0]([pcapstat.open(CAPTURES / "loss-californium-con.pcapng")])
    assert (again["what"] == "sent again").sum() > 0


def test_a_figure_without_data_says_so(tmp_path: Path) -> None:
    """A capture without exchanges makes a figure that tells it, and a name without a format is refused."""
    empty = CAPTURES / "e-tcp-128.pcapng"
    run = click.testing.CliRunner().invoke
    assert run(command, [str(empty), "--kind", "delay", "-O", str(tmp_path / "x.png")], standalone_mode=False).exception is None
    refused = run(command, [str(CON), "-O", str(tmp_path / "x.gif")], standalone_mode=False)
    assert "end the name with .png" in str(refused.exception)
    assert tuple(PLOTS) == KINDS
