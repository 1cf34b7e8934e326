"""The command line as a user types it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest
from against_standards import building
from places import CAPTURES

from pcapstat.cli import COMMANDS

SAMPLE = CAPTURES / "a-paho-qos1.pcapng"
FRAMES = 631


def run(*words: str | Path, stdin: bytes = b"", columns: int = 80) -> subprocess.CompletedProcess[bytes]:
    """Run pcapstat."""
    environment = os.environ | {"COLUMNS": str(columns)}
    command = [sys.executable, "-c", "from pcapstat.cli import main; main()", *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, env=environment, check=False)


def test_summary_fits_80_columns() -> None:
    """The table of figures is within 80 columns, and names each session's filter."""
    done = run("summarize", SAMPLE)
    lines = done.stdout.decode().splitlines()

    assert (done.returncode, done.stderr) == (0, b"")
    assert max(map(len, lines)) <= 80
    assert sum("-Y 'tcp.stream eq" in line for line in lines) == 2


def test_summary_from_standard_input_is_the_same() -> None:
    """`-` reads a pipe."""
    by_name = json.loads(run("summarize", SAMPLE, "--format", "json").stdout)["sessions"]
    by_pipe = json.loads(run("summarize", "-", "--format", "json", stdin=SAMPLE.read_bytes()).stdout)["sessions"]
    for session in by_name + by_pipe:
        del session["notes"]

    assert by_name == by_pipe


@pytest.mark.parametrize("form", ["table", "json", "ndjson", "csv", "markdown", "html"])
@pytest.mark.parametrize("command", ["summarize", "messages", "exchanges", "sessions", "notes"])
def test_every_command_has_every_format(command: str, form: str) -> None:
    """Each table comes in each format."""
    done = run(command, SAMPLE, "--format", form)

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout


def test_files_are_written_by_suffix(tmp_path: Path) -> None:
    """CSV and Parquet hold a row for each of the capture's messages."""
    run("messages", SAMPLE, "-O", tmp_path / "x.csv")
    run("messages", SAMPLE, "-O", tmp_path / "x.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "x.parquet")

    assert pyarrow.csv.read_csv(tmp_path / "x.csv").num_rows == table.num_rows == 610
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.csv", "x.parquet"]


def test_parquet_holds_times_and_frame_numbers_by_their_differences(tmp_path: Path) -> None:
    """Also those in lists."""
    run("messages", SAMPLE, "-O", tmp_path / "x.parquet")
    group = pyarrow.parquet.ParquetFile(tmp_path / "x.parquet").metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    by_differences = {column.path_in_schema for column in columns if "DELTA_BINARY_PACKED" in column.encodings}
    assert {"time_ns", "frame", "frames.list.element"} <= by_differences


def test_passwords_and_payloads_are_not_shown_unasked() -> None:
    """The column payload is empty unless asked for."""
    plain = run("messages", SAMPLE, "--format", "ndjson").stdout
    asked = run("messages", SAMPLE, "--format", "ndjson", "--show-payload").stdout

    assert b"Hi!0000050".hex().encode() not in plain
    assert b"Hi!0000050".hex().encode() in asked


def test_user_names_are_shown_where_asked_for_and_passwords_never(tmp_path: Path) -> None:
    """Trap 74: CONNECT of MQTT 3.1.1 (§3.1.3.4, §3.1.3.5) with "alice" and "secret99"."""
    connect = building.connect_311(flags=0xC0, rest=building.text("alice") + building.text("secret99"))
    path = building.capture(tmp_path / "x.pcap", [(building.C, connect)], "tcp", 1883)
    plain = run("messages", path, "--format", "ndjson").stdout
    asked = run("messages", path, "--format", "ndjson", "--show-secrets", "--show-payload").stdout

    assert (b"alice" in plain, b"alice" in asked) == (False, True)
    assert json.loads(plain.splitlines()[0])["user_name"] == "(5 bytes)"
    for output in (plain, asked):
        assert b"secret99" not in output
        assert b"secret99".hex().encode() not in output


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["summarize", "none.pcap"], 3, "none.pcap"),
        (["summarize"], 2, "no capture"),
        (["summarize", "-d", "tcp.port=1,mqtt", "x"], 2, "=="),
        (["messages", str(SAMPLE), "--columns", "nothing"], 2, "nothing"),
        (["summarize", __file__], 3, "test_commands.py"),
    ],
)
def test_errors_are_one_line_with_their_code(words: list[str], code: int, said: str) -> None:
    """Errors name what is wrong, on standard error, without a traceback."""
    done = run(*words)
    text = done.stderr.decode()

    assert (done.returncode, done.stdout) == (code, b"")
    assert said in text
    assert "Traceback" not in text


def test_a_capture_cut_short_gives_figures_and_code_4(tmp_path: Path) -> None:
    """What is whole is used; standard error says where it ends."""
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(SAMPLE.read_bytes()[:-30])
    done = run("summarize", cut)

    assert done.returncode == 4
    assert b"Session 0" in done.stdout
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(name: str) -> None:
    """--help of each command works and names its options."""
    done = run(name, "--help")

    assert done.returncode == 0
    assert b"Usage" in done.stdout


def test_schema_lists_every_table() -> None:
    """The schema names tables, columns and units."""
    tables = json.loads(run("schema", "--format", "json").stdout)

    assert {"messages", "exchanges", "sessions"} <= {table["name"] for table in tables}
    assert all(column["doc"].strip() for table in tables for column in table["columns"])


def test_heavy_modules_are_not_imported() -> None:
    """Help and the summary of a small capture import neither pandas nor pyarrow."""
    script = (
        "import sys; sys.argv = ['pcapstat', 'summarize', sys.argv[1]]\nfrom pcapstat.cli import cli\ncli.main(standalone_mode=False)\n"
    )
    script += "print([name for name in ('pandas', 'pyarrow', 'numpy', 'seaborn', 'scapy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script, SAMPLE], capture_output=True, check=True)

    assert done.stdout.decode().splitlines()[-1] == "[]"


def test_progress_is_shown_on_a_terminal_where_it_takes_long() -> None:
    """Frames so far, on standard error, wiped at the end; nothing of it where that is no terminal, or all is over at once."""
    leader, follower = os.openpty()
    command = [sys.executable, "-c", "from pcapstat.cli import main; main()", "summarize", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=follower) as process:
        assert process.stdin is not None
        data = SAMPLE.read_bytes()
        process.stdin.write(data[:-1000])
        process.stdin.flush()
        time.sleep(2)
        process.stdin.write(data[-1000:])
        process.stdin.close()
        assert process.wait() == 0
    os.close(follower)
    told = os.read(leader, 10_000).decode()
    os.close(leader)
    assert " frames, " in told
    assert told.endswith("\r")


def await_reading(pipe: int) -> None:
    """Wait until whoever reads a pipe has taken all that is in it, at most half a minute."""
    until = time.monotonic() + 30
    while int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder):
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("command", [["summarize"], ["messages"], ["messages", "--format", "csv"]])
def test_an_interrupt_ends_a_pass_without_a_traceback(command: list[str]) -> None:
    """Ctrl-C while standard input is still open: exit code 130, as a shell expects, and at most an empty line."""
    words = [sys.executable, "-c", "from pcapstat.cli import main; main()", *command, "-"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write((CAPTURES / "a-paho-qos1.pcapng").read_bytes()[:20_000])
        process.stdin.flush()
        await_reading(process.stdin.fileno())
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        output, errors = process.communicate()
    assert (output, errors.strip()) == (b"", b"")
