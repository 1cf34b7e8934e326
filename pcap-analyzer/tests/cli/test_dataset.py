"""Runs of a dataset side by side: the figures are those of the captures by themselves, without another pass over them."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import click.testing
import pytest
from places import CAPTURES

import pcapstat
from pcapstat import compare
from pcapstat.archive import TABLES
from pcapstat.cli import batch, cli
from pcapstat.cli import compare as comparing
from pcapstat.cli import query as querying
from pcapstat.errors import PcapstatError
from pcapstat.metrics.sessions import Choices

RUNS = {
    "californium/none/con-round1": "a-californium-con",
    "californium/none/non-round1": "a-californium-non",
    "californium/none/non-round2": "a-californium-non-round2",
    "java-coap/none/con-round1": "a-java-coap-con",
    "paho/none/qos1-round1": "a-paho-qos1",
}
LABELS = "{library}/{security}/{receiver}-round{round:d}.pcapng"
"""Two labels with names of columns that a session's figures are made from."""


def invoke(command: click.Command, *words: str | Path) -> click.testing.Result:
    """Run a command in this process, below the program: click keeps what it made of a command by itself, its help without `-h`."""
    return click.testing.CliRunner().invoke(cli, [str(command.name), *map(str, words)], standalone_mode=False)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset of five runs; the captures it was made from are gone."""
    folder = tmp_path_factory.mktemp("archive")
    for name, recording in RUNS.items():
        target = folder / "runs" / f"{name}.pcapng"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CAPTURES / f"{recording}.pcapng", target)
    words = [folder / "runs", "-O", folder / "ds", "--labels", LABELS, "--stop-after", "100", "--engine", "native", "--workers", "1"]
    assert invoke(batch.command, *words).exception is None
    shutil.rmtree(folder / "runs")
    return folder / "ds"


@pytest.mark.parametrize("layer", ["frame", "application"])
def test_figures_of_a_dataset_are_those_of_its_captures(dataset: Path, layer: str) -> None:
    """Each figure of each receiving session, at any layer: the choice is made when the dataset is asked."""
    choices = Choices(layer=layer)
    received = {str(Path(*Path(each.source).parts[-3:]).with_suffix("")): each for each in pcapstat.dataset(dataset).receivers(choices)}
    assert set(received) == set(RUNS)
    for name, recording in RUNS.items():
        session = compare.receiving(pcapstat.open(CAPTURES / f"{recording}.pcapng", stop_after=100).summary(choices))
        assert session is not None
        for figure, (value, _, _) in compare.FIGURES.items():
            assert value(received[name].session) == value(session), (name, figure)
        assert received[name].session.kinds == session.kinds
        library, _, rest = name.split("/")
        kind, number = rest.split("-round")
        assert received[name].labels == {"library": library, "security": "none", "receiver": kind, "round": number}


def test_compare_groups_a_dataset_by_its_labels(dataset: Path, tmp_path: Path) -> None:
    """Rounds of a group are aggregated as those of captures are; figures are drawn."""
    out, image = tmp_path / "o.json", tmp_path / "x.svg"
    words = [dataset, "--by", "library,receiver", "--figure", "overhead", "-O", out, "--plot", image]
    assert invoke(comparing.command, *words).exception is None
    groups = {row["group"]: (row["n"], row["median"]) for row in json.loads(out.read_text())}
    assert groups["californium con"] == (1, 10419)  # the study's run by the standards: test_synth holds it
    assert groups["californium non"][0] == 2
    assert set(groups) == {"californium con", "californium non", "java-coap con", "paho qos1"}
    assert image.read_bytes().startswith(b"<?xml")


def test_what_a_dataset_cannot_answer_is_refused(dataset: Path, tmp_path: Path) -> None:
    """How captures are read was chosen before; a label that is not there is named with those that are; sums must be there."""
    assert "--stop-after says how captures are read" in str(invoke(comparing.command, dataset, "--stop-after", "50").exception)
    assert "there are: library, security, receiver, round" in str(invoke(comparing.command, dataset, "--by", "place").exception)
    words = [CAPTURES / "a-californium-con.pcapng", "-O", tmp_path / "few", "--tables", "messages", "--engine", "native"]
    assert invoke(batch.command, *words).exception is None
    assert "no table sessions, directions, kinds, timings" in str(invoke(comparing.command, tmp_path / "few").exception)
    assert set(TABLES) == {*batch.TABLE_NAMES, "captures"}


def commented(data: bytes, block: int, text: str) -> bytes:
    """Return a pcapng file with a comment in its section header (block 0) or first interface (block 1)."""
    at = 0
    for _ in range(block):
        at += struct.unpack_from("<I", data, at + 4)[0]
    (length,) = struct.unpack_from("<I", data, at + 4)
    encoded = text.encode()
    option = struct.pack("<HH", 1, len(encoded)) + encoded.ljust(-(-len(encoded) // 4) * 4, b"\0")
    options_at = at + (24 if block == 0 else 16)
    whole = struct.pack("<I", length + len(option))
    body = data[at + 8 : options_at] + option + data[options_at : at + length - 4]
    return data[:at] + data[at : at + 4] + whole + body + whole + data[at + length :]


def test_comments_of_a_capture_are_labels(tmp_path: Path) -> None:
    """Pairs in comments of the section and of an interface; the path and a file beside win; other comments are none."""
    data = (CAPTURES / "a-californium-con.pcapng").read_bytes()
    data = commented(data, 1, "place=lab round=7")
    data = commented(data, 0, 'library="Californium 3.7.0" kind=CON')
    data = commented(data, 0, "recorded on a = b day")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x-round2.pcapng").write_bytes(data)
    (tmp_path / "runs" / "x-round2.labels.yaml").write_text("kind: confirmable\n")
    words = [tmp_path / "runs", "-O", tmp_path / "ds", "--labels", "x-round{round:d}.pcapng", "--engine", "native"]
    assert invoke(batch.command, *words).exception is None
    (received,) = pcapstat.dataset(tmp_path / "ds").receivers()
    assert received.labels == {"library": "Californium 3.7.0", "kind": "confirmable", "place": "lab", "round": "2"}


def test_a_label_may_have_a_columns_name_in_some_captures(tmp_path: Path) -> None:
    """What was measured is told for all; a capture that is not recorded, as after a kill, is left out."""
    for name in ("a-californium-con", "a-java-coap-con", "a-paho-qos1"):
        shutil.copy(CAPTURES / f"{name}.pcapng", tmp_path / f"{name}.pcapng")
    (tmp_path / "a-java-coap-con.labels.yaml").write_text("session: evening\nalpn: none\ndirection: up\n")
    assert invoke(batch.command, tmp_path, "-O", tmp_path / "ds", "--engine", "native").exception is None
    rows = (
        pcapstat.dataset(tmp_path / "ds").table("sessions").to_table(columns=["source", "session", "session_measured", "alpn"]).to_pylist()
    )
    assert sorted((Path(row.pop("source")).stem, *row.values()) for row in rows) == [
        ("a-californium-con", "0", None, None),
        ("a-java-coap-con", "evening", 0, "none"),
        ("a-paho-qos1", "0", None, None),
        ("a-paho-qos1", "1", None, None),
    ]
    received = {Path(each.source).stem: each for each in pcapstat.dataset(tmp_path / "ds").receivers()}
    assert {name: (each.session.session, each.labels["session"]) for name, each in received.items()} == {
        "a-californium-con": (0, ""),
        "a-java-coap-con": (0, "evening"),
        "a-paho-qos1": (1, ""),
    }
    for path in (tmp_path / "ds" / "captures").rglob("*.parquet"):
        if "java" not in path.read_bytes().decode(errors="replace"):
            path.unlink()
    assert len(list(pcapstat.dataset(tmp_path / "ds").receivers())) == 1


def test_the_folders_above_a_dataset_are_no_columns(dataset: Path, tmp_path: Path) -> None:
    """A folder "qos=9" is no partition of what is in it, and one with brackets no pattern: rows are those of the dataset elsewhere."""
    place = tmp_path / "qos=9" / "session=7" / "it's [1]*" / "ds"
    shutil.copytree(dataset, place)
    sql = "select qos, session, count(*) from messages group by all order by all"
    assert pcapstat.dataset(place).connect().sql(sql).fetchall() == pcapstat.dataset(dataset).connect().sql(sql).fetchall()
    assert list(pcapstat.dataset(place).receivers()) == list(pcapstat.dataset(dataset).receivers())


def test_a_label_may_have_a_columns_name_in_another_case(tmp_path: Path) -> None:
    """SQL knows no difference: the label is there by the name, what was measured by NAME_measured."""
    for name in ("a-java-coap-con", "a-paho-qos1"):
        shutil.copy(CAPTURES / f"{name}.pcapng", tmp_path / f"{name}.pcapng")
    (tmp_path / "a-paho-qos1.labels.yaml").write_text("Session: evening\nProtocol: MQTT\n")
    assert invoke(batch.command, tmp_path, "-O", tmp_path / "ds", "--engine", "native").exception is None
    sql = "select distinct session, session_measured, protocol_measured from messages where protocol = 'MQTT' order by all"
    assert pcapstat.dataset(tmp_path / "ds").connect().sql(sql).fetchall() == [("evening", 0, "mqtt"), ("evening", 1, "mqtt")]
    received = {Path(each.source).stem: each for each in pcapstat.dataset(tmp_path / "ds").receivers()}
    assert {name: (each.session.session, each.session.protocol, each.labels["Protocol"]) for name, each in received.items()} == {
        "a-java-coap-con": (0, "coap", ""),
        "a-paho-qos1": (1, "mqtt", "MQTT"),
    }


def test_a_dataset_of_a_capture_that_cannot_be_read_any_more_is_refused(tmp_path: Path) -> None:
    """Its folders are there, and hold nothing."""
    capture = tmp_path / "x.pcapng"
    shutil.copy(CAPTURES / "a-paho-qos0.pcapng", capture)
    words = [capture, "-O", tmp_path / "ds", "--engine", "native"]
    assert invoke(batch.command, *words).exception is None
    capture.write_bytes(b"this is no capture")
    assert invoke(batch.command, *words).return_value == 4
    assert "no table sessions" in str(invoke(comparing.command, tmp_path / "ds").exception)


@pytest.mark.parametrize("name", ["source", "Capture", "engine", "engine_reason"])
def test_a_label_cannot_have_a_name_of_the_datasets_own(tmp_path: Path, name: str) -> None:
    """It would hide which capture a row is of: refused in the pattern; from a file beside a capture, that one is recorded as failed."""
    shutil.copy(CAPTURES / "a-californium-con.pcapng", tmp_path / "x.pcapng")
    words = [tmp_path / "x.pcapng", "-O", tmp_path / "ds", "--engine", "native"]
    assert "choose another" in str(invoke(batch.command, *words, "--labels", f"{{{name}}}.pcapng").exception)
    assert not (tmp_path / "ds").exists()
    (tmp_path / "x.labels.yaml").write_text(f"{name}: here\n")
    invoke(batch.command, *words)
    (row,) = pcapstat.dataset(tmp_path / "ds").table("captures").to_table().to_pylist()
    assert (row["outcome"], "choose another" in row["error"]) == ("failed", True)


def test_compare_tells_which_captures_of_a_dataset_are_damaged(tmp_path: Path) -> None:
    """As it does of captures: their lines on standard error, and exit code 4; whole ones are named nowhere. Notes count with --strict."""
    data = (CAPTURES / "a-paho-qos1.pcapng").read_bytes()
    for name, content in {"whole": data, "cut": data[:3001], "none": b"this is no capture"}.items():
        (tmp_path / "runs").mkdir(exist_ok=True)
        (tmp_path / "runs" / f"{name}.pcapng").write_bytes(content)
    assert invoke(batch.command, tmp_path / "runs", "-O", tmp_path / "ds").return_value == 4
    done = invoke(comparing.command, tmp_path / "ds", "--figure", "overhead")
    assert done.return_value == 4
    runs = tmp_path / "runs"
    assert [line.partition(" (")[0].partition(" inside")[0] for line in done.stderr.splitlines()] == [
        f"pcapstat: {runs}/cut.pcapng: after frame 28: offset 3000: cut short",
        f"pcapstat: {runs}/none.pcapng: offset 0: not a capture: it begins with 74 68 69 73",
    ]
    for name in ("cut", "none"):
        (runs / f"{name}.pcapng").unlink()
    assert invoke(batch.command, runs, "-O", tmp_path / "fine").return_value == 0
    assert invoke(comparing.command, tmp_path / "fine").return_value == 0
    assert invoke(comparing.command, tmp_path / "fine", "--strict").return_value == 4


@pytest.mark.parametrize("form", ["json", "ndjson", "csv"])
def test_sums_are_written_as_numbers(dataset: Path, form: str, tmp_path: Path) -> None:
    """The statement of docs/how-to/archives.md: DuckDB's sums of whole numbers have 128 bits. Three runs of 100 messages of 10 bytes."""
    sql = "select library, sum(payload_bytes) from messages where is_data and library = 'californium' group by all"
    target = tmp_path / "x"
    assert invoke(querying.command, dataset, sql, "--format", form, "-O", target).exception is None
    told = target.read_text()
    if form == "csv":
        assert told.splitlines()[1] == '"californium",3000'
    else:
        row = json.loads(told)[0] if form == "json" else json.loads(told)
        assert list(row.values()) == ["californium", 3000]


@pytest.mark.parametrize(
    ("sql", "words"), [("select 'a'::int", ["--format", "csv"]), ("select interval '1 day' v", ["--format", "parquet"])]
)
def test_a_statement_that_has_no_answer_is_refused(dataset: Path, sql: str, words: list[str]) -> None:
    """What goes wrong when rows are asked for, or written, is said as usage."""
    refused = invoke(querying.command, dataset, sql, *words)
    assert isinstance(refused.exception, PcapstatError)
    assert refused.exception.exit_code == 2
