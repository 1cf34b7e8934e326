"""The command line's words: usage errors are one line, text is UTF-8 in any locale, and what is read says what is wrong with it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from places import CAPTURES

import pcapstat
from pcapstat.errors import UsageError

SAMPLE = CAPTURES / "a-paho-qos1.pcapng"
BYTES = b"\xff\xc3"
"""No UTF-8 (RFC 3629, section 3)."""
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""A locale without UTF-8."""


PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
"""Of Linux: prctl(2), capabilities(7)."""


def run(*words: str | bytes | Path, before: Callable[[], None] | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run pcapstat; `before` is called in the new process."""
    command = [os.fsencode(word) for word in (sys.executable, "-m", "pcapstat", *words)]
    return subprocess.run(command, capture_output=True, check=False, env={**os.environ, **environment}, preexec_fn=before)


def heed_permissions() -> None:
    """Give up root's right to read all, where this process has it."""
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["summarize"], b"no capture"),
        (["compare"], b"no capture"),
        (["plot", "-O", "x.png"], b"no capture"),
        (["crosscheck"], b"no capture"),
        (["summarize", "--layer", "foo", SAMPLE], b"'foo'"),
        (["summarize", "--nothing"], b"--nothing"),
        (["nothing"], b"nothing"),
        (["completion"], b"bash, zsh, fish"),
        (["messages", SAMPLE, "--columns", "kind,frame,kind"], b"twice"),
        (["batch", SAMPLE], b"--output"),
    ],
)
def test_words_that_cannot_be_are_one_line(words: list[str | Path], said: bytes) -> None:
    """With the command whose help tells more; exit code 2, and nothing on standard output."""
    done = run(*words)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert done.stderr.startswith(b"pcapstat: ")
    assert said in done.stderr
    assert b" --help tells what there is)" in done.stderr


def test_a_command_without_words_shows_its_help() -> None:
    """All commands are listed."""
    done = run()
    assert b"Usage: " in done.stderr + done.stdout
    assert b"summarize" in done.stderr + done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["plot", SAMPLE, "-O", "x.png", "--title"],
        ["theory", "mqtt", "PUBLISH", "--topic"],
        ["summarize", SAMPLE, "-Y"],
        ["summarize", SAMPLE, "-o"],
        ["summarize", SAMPLE, "--profile"],
        ["batch", SAMPLE, "-O", "ds", "--labels"],
        ["secrets", "extract"],
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_bytes_that_are_no_text_are_one_line(words: list[str | Path], tmp_path: Path) -> None:
    """They are refused where they stand, with an escape for each."""
    command = [os.fsencode(word) for word in (sys.executable, "-m", "pcapstat", *words, BYTES)]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr.count(b"\n")) == (3 if words[0] == "secrets" else 2, 1)
    assert b"\\xff\\xc3" in done.stderr
    assert b"UTF-8" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["crosscheck", SAMPLE],
        ["theory", "coap", "--option", "Uri-Path=ü"],
        ["plot", SAMPLE, "-O", "x.png", "--title", "ΔT"],
        ["synth", "--list"],
    ],
    ids=lambda words: words[0],
)
def test_text_is_utf_8_in_any_locale(words: list[str | Path], tmp_path: Path) -> None:
    """The user's words, and files of the project: what is told is the same."""
    command = [os.fsencode(word) for word in (sys.executable, "-m", "pcapstat", *words)]
    told = [
        subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, env={**os.environ, **locale})
        for locale in ({"LC_ALL": "C.UTF-8"}, ASCII)
    ]
    assert [done.returncode for done in told] == [0, 0]
    assert told[0].stdout == told[1].stdout


def test_an_empty_name_is_refused(tmp_path: Path) -> None:
    """As of a variable of the shell that is not set: it is not the folder that the command runs in."""
    for words in (["batch", SAMPLE, "-O", ""], ["summarize", ""], ["plot", SAMPLE, "-O", "x.png", "--data", ""]):
        command = [os.fsencode(word) for word in (sys.executable, "-m", "pcapstat", *words)]
        done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
        assert b"an empty name" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_labels_beside_a_capture_are_utf_8_in_any_locale(tmp_path: Path) -> None:
    """Also with a byte order mark, as editors of Windows write it."""
    capture = tmp_path / "x.pcapng"
    capture.write_bytes(SAMPLE.read_bytes())
    for name, text in (("yaml", "place: Zürich\n"), ("json", '{"place": "Zürich"}')):
        (tmp_path / f"x.labels.{name}").write_bytes(b"\xef\xbb\xbf" + text.encode())
        done = run("batch", capture, "-O", tmp_path / name, "--engine", "native", **ASCII)
        assert done.returncode == 0
        (row,) = pcapstat.dataset(tmp_path / name).table("captures").to_table().to_pylist()
        assert row["place"] == "Zürich"


def test_a_scenario_with_a_date_that_is_none_is_one_line(tmp_path: Path) -> None:
    """YAML reads 2026-02-30 as a date, which there is not."""
    (tmp_path / "x.yaml").write_text("protocol: coap\ncount: 2026-02-30\n")
    done = run("synth", tmp_path / "x.yaml", "-O", tmp_path / "x.pcapng")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)


def test_a_capture_that_may_not_be_read_is_unreadable_input(tmp_path: Path) -> None:
    """Exit code 3 and the core's line, as with any other capture that cannot be read."""
    closed = tmp_path / "x.pcapng"
    closed.write_bytes(SAMPLE.read_bytes())
    closed.chmod(0)
    done = run("summarize", closed, before=heed_permissions)
    assert (done.returncode, done.stderr.count(b"\n")) == (3, 1)
    assert b"permission denied" in done.stderr


@pytest.mark.parametrize("output", ["same", "/dev/full", "-"])
def test_secrets_are_embedded_as_every_command_writes(output: str, tmp_path: Path) -> None:
    """Never over the capture itself, a full device is one line, and - is standard output."""
    capture = tmp_path / "x.pcapng"
    capture.write_bytes((CAPTURES / "c-aiocoap-get.pcapng").read_bytes())
    before = capture.read_bytes()
    target = capture if output == "same" else output
    done = run("secrets", "embed", capture, "--keylog", CAPTURES / "a-paho-tls-qos1.keys", "-O", target)
    assert (done.returncode, done.stdout[:4]) == {"same": (2, b""), "/dev/full": (3, b""), "-": (0, b"\x0a\x0d\x0d\x0a")}[output]
    assert capture.read_bytes() == before
    assert list(tmp_path.iterdir()) == [capture]


def test_secrets_in_a_capture_that_is_cut_short_are_embedded_and_the_cut_is_told(tmp_path: Path) -> None:
    """The copy holds the frames before the cut; the line is that of `summarize`, and so is the exit code."""
    cut, target = tmp_path / "cut.pcapng", tmp_path / "whole.pcapng"
    cut.write_bytes(SAMPLE.read_bytes()[:-100])
    done = run("secrets", "embed", cut, "--keylog", CAPTURES / "a-paho-tls-qos1.keys", "-O", target)
    assert (done.returncode, done.stderr) == (4, run("summarize", cut).stderr)
    assert done.stderr.startswith(f"pcapstat: {cut}: after frame 630: ".encode())
    frames = subprocess.run(["capinfos", "-Mcr", "-T", target], capture_output=True, check=True).stdout.split()[-1]
    assert frames == b"630"


def test_secrets_are_embedded_in_what_comes_through_a_pipe() -> None:
    """The copy is that of the file: nothing is read of a pipe that its reader then lacks."""
    keys = str(CAPTURES / "a-paho-tls-qos1.keys")
    copies = []
    for name in (str(SAMPLE), f"<(cat '{SAMPLE}')", f"- < '{SAMPLE}'"):
        command = f"'{sys.executable}' -m pcapstat secrets embed --keylog '{keys}' -O - {name}"
        copies.append(subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout)
    assert copies[1:] == copies[:1] * 2


def test_what_is_no_path_or_table_is_told_in_python_too() -> None:
    """As UsageError, before anything is read; a file object is no path, though its lines are texts."""
    with SAMPLE.open("rb") as file:
        for paths in (None, 3, file, [1]):
            with pytest.raises(UsageError, match="no path"):
                pcapstat.open(paths)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no list"):
        pcapstat.open(SAMPLE, keylog=Path("keys.log"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no table nothing"):
        pcapstat.open(SAMPLE).table("nothing")


@pytest.mark.parametrize(
    ("table", "names"), [("groups", b'"figure","unit","group","n"'), ("pairs", b'"figure","one","other"'), ("across", b'"figure","label"')]
)
def test_a_comparison_without_rows_has_its_header(table: str, names: bytes) -> None:
    """One run makes no pair, and has no delay where it is CoAP: programs that read CSV need the header all the same."""
    done = run("compare", CAPTURES / "a-californium-con.pcapng", "--figure", "delay", "--table", table, "--format", "csv")
    assert (done.returncode, done.stdout.count(b"\n"), done.stdout.startswith(names)) == (0, 1, True)


def test_columns_of_a_comparison_have_their_types_whatever_has_a_value(tmp_path: Path) -> None:
    """One round has no standard deviation: the column is a number nevertheless, so that Parquet files can be read together."""
    done = run("compare", SAMPLE, "-O", tmp_path / "x.parquet")
    schema = pq.read_schema(tmp_path / "x.parquet")
    assert done.returncode == 0
    assert {str(schema.field(name).type) for name in ("sd", "ci_low", "boot_high", "median")} == {"double"}
