"""What commands over several captures say of damage, of notes, and of captures that hold nothing: compare, plot, validate, crosscheck."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from places import CAPTURES

SAMPLE = CAPTURES / "a-paho-qos1.pcapng"
SILENT = CAPTURES / "e-tcp-128.pcapng"
"""A capture without exchanges."""
COMMANDS = {"compare": [], "plot": ["-O", "x.png"], "validate": [], "crosscheck": []}


def run(folder: Path, *words: str | Path, stdin: bytes = b"") -> tuple[int, str]:
    """Run pcapstat in a folder; return its exit code and what it says on standard error."""
    command = [sys.executable, "-c", "from pcapstat.cli import main; main()", *map(str, words)]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False, cwd=folder)
    return done.returncode, done.stderr.decode()


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """Return the first 3,001 bytes of the sample: 28 whole packets by capinfos, and one byte of the next block."""
    path = tmp_path / "cut.pcapng"
    path.write_bytes(SAMPLE.read_bytes()[:3001])
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_damage_is_told_as_summarize_does(command: str, cut: Path) -> None:
    """The same line, once, and exit code 4; the capture beside it is named nowhere."""
    told = run(cut.parent, "summarize", cut.name)[1]
    assert told.startswith("pcapstat: cut.pcapng: after frame 28: offset 3000: ")
    code, said = run(cut.parent, command, SAMPLE, cut.name, *COMMANDS[command])
    assert code == 4
    assert [line for line in said.splitlines(keepends=True) if line.startswith("pcapstat: ")] == [told]


@pytest.mark.parametrize("command", COMMANDS)
def test_damage_of_standard_input_is_told_too(command: str, cut: Path) -> None:
    """By the name that the user gave, also where several passes are made."""
    words = [*COMMANDS[command], "--labels", "{run}"] if command == "compare" else COMMANDS[command]
    code, said = run(cut.parent, command, "-", *words, stdin=cut.read_bytes())
    assert code == 4
    assert "pcapstat: -: after frame 28: offset 3000: " in said


@pytest.mark.parametrize("command", [*COMMANDS, "messages", "exchanges", "sessions", "notes"])
def test_notes_count_where_the_user_is_strict(command: str, tmp_path: Path) -> None:
    """The sample has notes (`pcapstat notes`), and is otherwise whole: 4 with --strict, 0 without."""
    words = [SAMPLE, *COMMANDS.get(command, [])]
    assert run(tmp_path, command, *words)[0] == 0
    assert run(tmp_path, command, "--strict", *words)[0] == 4


def test_a_check_that_failed_comes_before_damage(tmp_path: Path) -> None:
    """Exit code 1, and the damage is told all the same."""
    # NSTART is broken in frame 301 (docs/how-to/validate.md); the cut is behind it
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes((CAPTURES / "a-java-coap-con.pcapng").read_bytes()[:-1])
    code, said = run(tmp_path, "validate", cut.name)
    assert code == 1
    assert "pcapstat: cut.pcapng: " in said
    assert " violations of 1 rule, " in said


@pytest.mark.parametrize("command", ["plot", "validate", "crosscheck"])
def test_what_a_tool_refuses_is_one_line(command: str, tmp_path: Path) -> None:
    """An option that tshark refuses: a usage error and no traceback, as with summarize."""
    code, said = run(tmp_path, command, "-o", "no.such:thing", SAMPLE, *COMMANDS[command])
    assert (code, said.count("\n")) == (2, 1)


def test_what_could_be_broken_is_told() -> None:
    """A clean capture: how many rules its messages were held against; a capture of another protocol is held against others."""
    rules = {name: run(CAPTURES, "validate", CAPTURES / f"{name}.pcapng")[1] for name in ("a-paho-qos1", "e-tcp-128")}
    assert rules["e-tcp-128"] == "0 violations, 1 rule tried\n"
    count = int(rules["a-paho-qos1"].removeprefix("0 violations, ").split()[0])
    listed = subprocess.run(
        [sys.executable, "-c", "from pcapstat.cli import main; main()", "validate", "--rules", "--format", "csv"],
        capture_output=True,
        check=True,
        text=True,
    ).stdout.splitlines()[1:]
    assert count == sum(line.startswith(('"MQTT', '"format')) for line in listed)


def test_rules_are_listed_with_what_they_ask() -> None:
    """At 80 columns too: MQTT 5 §3.1 has the statement [MQTT-3.1.0-1], "the first packet … MUST be a CONNECT packet"."""
    command = [sys.executable, "-c", "from pcapstat.cli import main; main()", "validate", "--rules"]
    listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout

    assert "MQTT-3.1.0-1 (error; MQTT 5 §3.1, 3.1.1 §3.1)\n    the client's first packet is CONNECT\n" in listed
    assert max(map(len, listed.splitlines())) <= 80


@pytest.mark.parametrize("form", ["sarif", "junit"])
@pytest.mark.parametrize("words", [["--rules"], ["--sizes", str(SAMPLE)]])
def test_reports_are_of_violations(form: str, words: list[str], tmp_path: Path) -> None:
    """Asked for rules or sizes in their formats: a usage error."""
    code, said = run(tmp_path, "validate", *words, "--format", form)
    assert (code, said.count("\n")) == (2, 1)
    assert f"--format {form} is for violations" in said


@pytest.mark.parametrize(("words", "expected"), [([], "Missing option '-O'"), (["-O", "x.gif"], "-O x.gif: no image format")])
def test_a_figure_is_written_to_an_image(words: list[str], expected: str, tmp_path: Path) -> None:
    """Without a place, or to one whose name tells no format: a usage error of one line that says which of the two."""
    code, said = run(tmp_path, "plot", SAMPLE, *words)
    assert (code, said.count("\n")) == (2, 1)
    assert expected in said


def test_a_figure_of_nothing_says_so(tmp_path: Path) -> None:
    """On standard error; the figure is written."""
    code, said = run(tmp_path, "plot", "--kind", "delay", SILENT, "-O", "x.svg")
    assert (code, said.count("\n")) == (0, 1)
    assert "nothing to draw" in said
    assert (tmp_path / "x.svg").is_file()
