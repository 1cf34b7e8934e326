"""Figures: the tables behind them hold what the capture holds, and each is an image in every format."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import click.testing
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.legend import Legend
from matplotlib.patches import Patch
from matplotlib.text import Text
from places import CAPTURES

import pcapstat
from pcapstat.cli import compare
from pcapstat.cli.plot import KINDS, command
from pcapstat.errors import UsageError
from pcapstat.plots import CHARTS, PLOTS, base
from pcapstat.plots.groups import quantity, titled
from pcapstat.plots.rate import binned

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


def test_no_bar_of_bytes_begins_behind_another_one_ends() -> None:
    """Data that WebSocket compressed is a part as long as it is on the wire, and the parts add up to what is there."""
    capture = pcapstat.open(CAPTURES / "e-websocket-1024.pcapng")
    sessions = {session.session: session for session in capture.summary().sessions}
    overhead = PLOTS["overhead"][0]([capture])
    assert any(session.overhead_by_part_bytes.get("compression", 0) < 0 for session in sessions.values())
    assert (overhead["bytes"] > 0).all()
    sums = overhead.groupby("session")["bytes"].sum()
    assert dict(sums) == {number: session.overhead_bytes + session.data_bytes for number, session in sessions.items()}


def test_the_rate_is_that_of_each_receiver_and_nought_where_nothing_comes() -> None:
    """A broker's capture has two receivers of the same messages; a bin without a message is a row with 0."""
    rate = PLOTS["rate"][0]([pcapstat.open(CAPTURES / "b-paho-qos2.pcapng")])
    messages = (rate["messages_per_s"] * rate["bin_width_s"]).groupby(rate["receiver"]).sum().round()
    assert messages.to_dict() == {"192.0.2.3:1883": 60, "192.0.2.1:51232": 50}
    rows = pd.DataFrame({"bin": [2, 2, 5], "is_data": True, "payload_bytes": [10, 10, 30]})
    assert binned(rows, 0.5)["messages_per_s"].to_list() == [4, 0, 0, 2]
    assert binned(rows, 0.5)["payload_bytes_per_s"].to_list() == [40, 0, 0, 60]
    assert binned(rows, 0.5)["bin_s"].to_list() == [1, 1.5, 2, 2.5]


def test_a_figure_without_data_says_so(tmp_path: Path) -> None:
    """A capture without exchanges makes a figure that tells it, and a name without a format is refused."""
    empty = CAPTURES / "e-tcp-128.pcapng"
    run = click.testing.CliRunner().invoke
    assert run(command, [str(empty), "--kind", "delay", "-O", str(tmp_path / "x.png")], standalone_mode=False).exception is None
    refused = run(command, [str(CON), "-O", str(tmp_path / "x.gif")], standalone_mode=False)
    assert "end the name with .png" in str(refused.exception)
    assert tuple(PLOTS) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_capture_without_messages_is_a_figure_too(kind: str, tmp_path: Path) -> None:
    """One frame of ARP: every kind tells that there is nothing to draw."""
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + struct.pack("<IIII", 1, 0, 42, 42)
    (tmp_path / "arp.pcap").write_bytes(header + b"\xff" * 6 + b"\x02" * 6 + b"\x08\x06" + bytes(28))
    words = [str(tmp_path / "arp.pcap"), "--kind", kind, "-O", str(tmp_path / "x.png")]
    done = click.testing.CliRunner().invoke(command, words, standalone_mode=False)
    assert done.exception is None
    assert "nothing to draw" in done.stderr


@pytest.mark.parametrize("chart", compare.CHART_NAMES)
@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_each_chart_of_runs_is_an_image_with_its_table(chart: str, suffix: str, tmp_path: Path) -> None:
    """A row a run and figure; the table that compare writes stands beside it."""
    image, data = tmp_path / f"chart.{suffix}", tmp_path / "chart.csv"
    runs = [str(CAPTURES / f"d-{name}.pcapng") for name in ("aiocoap-100b", "aiocoap-10kb", "http1-100b", "http1-10kb")]
    words = [*runs, "--labels", "d-{library}-{size}.pcapng", "--figure", "overhead", "--figure", "goodput", "--chart", chart]
    done = click.testing.CliRunner().invoke(compare.command, [*words, "--plot", str(image), "--data", str(data)], standalone_mode=False)
    assert done.exception is None
    assert image.read_bytes().startswith(BEGINNINGS[suffix])
    tidy = pd.read_csv(data)
    assert sorted(zip(tidy["library"], tidy["size"], tidy["figure"], strict=True)) == sorted(
        (library, size, figure) for library in ("aiocoap", "http1") for size in ("100b", "10kb") for figure in ("overhead", "goodput")
    )
    assert tuple(CHARTS) == compare.CHART_NAMES


def test_a_chart_shows_means_and_levels() -> None:
    """A bar is as high as its rounds' mean; a group whose label is no number is a level; short times stand in milliseconds."""
    table = {"library": ["x", "x", "y"], "interval_ms": ["50", "50", ""], "figure": "rtt", "value": [0.002, 0.004, 0.01], "unit": "s"}
    tidy = pd.DataFrame(table)
    (bars,) = CHARTS["bars"][0](tidy, ["library"]).axes
    assert sorted(round(patch.get_height(), 6) for patch in bars.patches) == [3, 10]  # type: ignore[attr-defined]
    assert bars.get_ylabel() == "rtt, ms"
    (lines,) = CHARTS["lines"][0](tidy, ["library", "interval_ms"]).axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in lines.get_lines()}  # type: ignore[arg-type]
    assert (drawn["x"], drawn["y"]) == ([pytest.approx(3)], [pytest.approx(10)] * 2)
    assert lines.get_xlabel() == "interval, ms"


def test_a_colour_is_the_same_label_in_all_panels() -> None:
    """A group that does not have the first figure is in the legend, and takes nobody's colour."""
    rows = [("coap", "overhead", 1.0), ("mqtt", "overhead", 3.0), ("mqtt", "delay", 2.0)]
    for first, second in (("overhead", "delay"), ("delay", "overhead")):
        ordered = [row for figure in (first, second) for row in rows if row[1] == figure]
        table = [{"library": name, "size": "10", "figure": figure, "value": value, "unit": ""} for name, figure, value in ordered]
        for chart in CHARTS:
            figure = CHARTS[chart][0](pd.DataFrame(table), ["library", "size"])
            legend = {text.get_text(): colour_of(handle) for text, handle in zip(*entries(figure.legends[0]), strict=True)}
            assert set(legend) == {"coap", "mqtt"}
            for axis in figure.axes:
                drawn = axis.patches if chart == "bars" else [line for line in axis.get_lines() if line.get_label() in legend]
                heights = {colour_of(artist): height_of(artist) for artist in drawn if height_of(artist)}
                told = {name: value for name, of, value in rows if of == axis.get_ylabel()}
                assert {name: heights[legend[name]] for name in told} == told


def test_the_rate_of_closed_records_is_that_of_the_payloads_told() -> None:
    """101 publications of 10 bytes and the SUBACK's record came to the subscriber, as summarize counts them."""
    capture = pcapstat.open(CAPTURES / "a-paho-tls-qos1.pcapng", engine="native", payload_size=10)
    rate = PLOTS["rate"][0]([capture])
    sums = (rate["payload_bytes_per_s"] * rate["bin_width_s"]).groupby(rate["receiver"]).sum().round()
    assert sums["192.0.2.1:60314"] == capture.summary().sessions[1].data_bytes == 1020


def test_sizes_of_messages_that_no_standard_specifies_are_drawn() -> None:
    """What OSCORE protects is not judged: the observed sizes are all there is."""
    sizes = PLOTS["sizes"][0]([pcapstat.open(CAPTURES / "c-aiocoap-oscore-get.pcapng", engine="native")])
    assert set(sizes["which"]) == {"observed"}
    (axis,) = PLOTS["sizes"][1](sizes).axes
    assert [text.get_text() for text in axis.get_yticklabels()] == list(dict.fromkeys(sizes["kind"]))


def entries(legend: Legend) -> tuple[list[Text], list[Any]]:
    """Return the texts of a legend and what stands before them."""
    return legend.get_texts(), list(legend.legend_handles)


def colour_of(artist: Any) -> str:
    """Return the colour of a bar or line."""
    return str(to_hex(artist.get_facecolor() if isinstance(artist, Patch) else artist.get_color()))


def height_of(artist: Any) -> float:
    """Return the height of a bar, or of a line of one point."""
    return float(artist.get_height() if isinstance(artist, Patch) else artist.get_ydata()[0])


def test_a_label_may_be_called_as_what_is_drawn() -> None:
    """Its values stand below the bars."""
    table = {"group": ["x", "y"], "at": ["1", "2"], "figure": "goodput", "value": [3.0, 10.0], "unit": "B/s"}
    (bars,) = CHARTS["bars"][0](pd.DataFrame(table), ["group", "at"]).axes
    assert [text.get_text() for text in bars.get_xticklabels()] == ["1", "2"]
    (lines,) = CHARTS["lines"][0](pd.DataFrame(table), ["at", "group"]).axes
    assert {line.get_label() for line in lines.get_lines()} >= {"1", "2"}


def test_captures_of_one_name_are_not_added_up() -> None:
    """Runs of one name in several folders, a name with the place behind a dot, one capture twice: each has bars of its own."""
    recordings = [CAPTURES / f"a-paho-qos1{place}.pcapng" for place in ("", ".sender", ".receiver")]
    overhead = PLOTS["overhead"][0]([pcapstat.open(path) for path in [*recordings, recordings[0], CON]])
    sums = {str(name): int(rows["bytes"].sum()) for name, rows in overhead.groupby("capture")}
    names = ["a-paho-qos1.pcapng", "a-paho-qos1.sender", "a-paho-qos1.receiver", "a-paho-qos1.pcapng (2)"]
    whole = [pcapstat.open(path).summary().total.session_bytes for path in [*recordings, recordings[0]]]
    assert sums == dict(zip(names, whole, strict=True)) | {"a-californium-con": 11601}


def test_captures_of_one_name_are_told_apart_by_their_folders() -> None:
    """As much of the path as differs, so that names stay short."""
    paths = ["runs/paho/qos1/run.pcap", "runs/hivemq/qos1/run.pcap", "run.pcap", "other.pcap"]
    captures = [pcapstat.open(path) for path in paths]
    assert base.names(captures) == ["paho/qos1/run.pcap", "hivemq/qos1/run.pcap", "run.pcap", "other"]


def test_negative_delays_are_drawn() -> None:
    """Clocks that differ make them (trap 34): the share begins below nought, and the axis over time reaches down to them."""
    delays = pd.DataFrame(
        {"capture": "x", "time_s": [0.0, 1.0], "kind": "PUBLISH", "timing": "delay to subscriber", "value_ms": [-2.0, 1.0]}
    )
    (share,) = PLOTS["delay"][1](delays).axes
    (line,) = share.get_lines()
    assert (list(line.get_xdata())[1:], list(line.get_ydata())) == ([-2, 1], [0, 0.5, 1])  # type: ignore[arg-type]
    (points,) = PLOTS["delay-over-time"][1](delays).axes
    assert points.get_ylim()[0] < -2


def test_labels_are_read_as_numbers_with_their_units() -> None:
    """SI prefixes, as the recordings' names have them."""
    assert [quantity(label) for label in ("100b", "10kb", "1 MB", "150", "qos2", "")] == [100, 10_000, 1_000_000, 150, None, None]
    assert [titled("length_bytes"), titled("rtt", "s"), titled("arrival_rate")] == ["length, bytes", "rtt, s", "arrival rate"]


def test_a_chart_without_an_image_format_is_refused_before_the_work() -> None:
    """The file's name says the format."""
    done = click.testing.CliRunner().invoke(compare.command, [str(CON), "--plot", "x.gif"], standalone_mode=False)
    assert isinstance(done.exception, UsageError)


def test_what_the_user_names_is_no_formula(tmp_path: Path) -> None:
    r"""A title, or a file's name, with what matplotlib would read as TeX: "\frac" without its two arguments is none."""
    path = tmp_path / r"$\frac$.pcapng"
    path.write_bytes(CON.read_bytes())
    for kind in KINDS:
        words = [str(path), "--kind", kind, "-O", str(tmp_path / "x.svg"), "--title", r"10 $ \frac$"]
        assert click.testing.CliRunner().invoke(command, words, standalone_mode=False).exception is None


@pytest.mark.parametrize("kind", ["rate", "delay", "delay-over-time", "overhead", "sizes", "timeline"])
def test_a_legend_covers_nothing_and_is_within_the_figure(kind: str) -> None:
    """Also one of many captures with long names."""
    names = ["a-paho-qos1.receiver", "a-californium-con", "a-californium-con.sender", "a-californium-non-round2", "a-java-coap-con"]
    figure = PLOTS[kind][1](PLOTS[kind][0]([pcapstat.open(CAPTURES / f"{name}.pcapng") for name in names]))
    figure.draw_without_rendering()
    (legend,) = figure.legends
    place = legend.get_window_extent()
    assert all(not axis.get_legend() and axis.get_tightbbox().y0 >= place.y1 for axis in figure.axes)
    assert place.x0 >= 0
    assert place.x1 <= figure.bbox.x1


def test_the_last_bin_of_a_rate_is_as_wide_as_the_others() -> None:
    """Two bins of half a second end after one second."""
    names = {"capture": "x", "receiver": "y", "bin_width_s": 0.5, "payload_bytes_per_s": 0.0}
    tidy = pd.DataFrame({"bin_s": [0.0, 0.5], "messages_per_s": [4.0, 2.0]}).assign(**names)
    upper = PLOTS["rate"][1](tidy).axes[0]
    assert list(upper.get_lines()[0].get_xdata()) == [0, 0.5, 1]  # type: ignore[arg-type]


def test_a_logarithmic_axis_has_numbers_as_people_write_them() -> None:
    """No powers of ten."""
    delays = pd.DataFrame({"capture": "x", "time_s": 0.0, "kind": "GET", "timing": "to response", "value_ms": [0.05, 2000.0]})
    figure = PLOTS["delay"][1](delays)
    figure.draw_without_rendering()
    shown = [text.get_text() for text in figure.axes[0].get_xticklabels() if text.get_text()]
    assert {"0.1", "1", "10", "100", "1 000"} <= set(shown)
