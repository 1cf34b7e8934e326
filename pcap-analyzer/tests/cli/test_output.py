"""Where the output goes: what is there already is kept, what goes wrong is one line, what is hostile is not obeyed."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from against_standards.building import MACS
from places import CAPTURES
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from pcapstat.cli.output import descriptor_of
from pcapstat.formats import FORMATS
from pcapstat.formats.arrow import BATCH_ROWS

SAMPLE = CAPTURES / "a-paho-qos1.pcapng"
SESSIONS = 2
FILE_LIMIT_BYTES = 1000
PYTHON = [sys.executable, "-c", "from pcapstat.cli import main; main()"]


def run(*words: str | Path | bytes, prepare: Callable[[], None] | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run pcapstat, after `prepare` in its process."""
    command = [*PYTHON, *(word if isinstance(word, bytes) else str(word) for word in words)]
    return subprocess.run(command, capture_output=True, env=os.environ | environment, check=False, preexec_fn=prepare)


def through_shell(script: str, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run a script of bash, in which "$@" is pcapstat with these words."""
    return subprocess.run(["bash", "-c", script, "bash", *PYTHON, *map(str, words)], capture_output=True, check=False)


def small_files_only() -> None:
    """Let no file grow: to write fails with EFBIG, as it would with ENOSPC on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT_BYTES, FILE_LIMIT_BYTES))


def check_one_line(done: subprocess.CompletedProcess[bytes], code: int, said: str) -> None:
    """Check that a command left with a code and a line."""
    lines = [line for line in done.stderr.decode().splitlines() if not line.startswith(("Usage:", "Try ")) and line]
    assert (done.returncode, len(lines)) == (code, 1), done.stderr.decode()
    assert said in lines[0]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Return a copy of a capture, alone in a folder."""
    copy = tmp_path / "own" / "p.pcapng"
    copy.parent.mkdir()
    copy.write_bytes(SAMPLE.read_bytes())
    return copy


@pytest.mark.parametrize("words", [["messages", "p"], ["messages", "-r", "p"], ["summarize", "p"], ["validate", "p"], ["crosscheck", "p"]])
@pytest.mark.parametrize("name", ["p", "link", "./p", "hard"])
def test_no_capture_is_replaced_by_what_is_made_of_it(words: list[str], name: str, capture: Path) -> None:
    """The same file by any name is refused as usage."""
    names = {"p": capture, "link": capture.with_name("link"), "./p": f"{capture.parent}/../own/p.pcapng", "hard": capture.with_name("hard")}
    capture.with_name("link").symlink_to("p.pcapng")
    capture.with_name("hard").hardlink_to(capture)
    done = run(*(names.get(word, word) for word in words), "--format", "csv", "-O", names[name])
    check_one_line(done, 2, str(names[name]))
    assert capture.read_bytes() == SAMPLE.read_bytes()
    assert len(list(capture.parent.iterdir())) == 3


def test_what_else_a_command_reads_is_not_replaced(capture: Path) -> None:
    """Standard input, key logs, a capture whose secrets are extracted."""
    keys = capture.with_name("keys.json")
    keys.write_text(f"CLIENT_RANDOM {'00' * 32} {'00' * 48}\n")
    check_one_line(run("summarize", SAMPLE, "--keylog", keys, "-O", keys), 2, "keys.json")
    check_one_line(run("secrets", "extract", CAPTURES / "c-http2.pcapng", "-O", capture.with_name("no") / "x"), 3, "no")
    check_one_line(through_shell('"$@" < ' + str(capture), "messages", "-", "--format", "csv", "-O", capture), 2, "p.pcapng")
    assert capture.read_bytes() == SAMPLE.read_bytes()
    assert keys.read_text().startswith("CLIENT_RANDOM")


def test_a_named_pipe_is_written_to(tmp_path: Path) -> None:
    """It stays a pipe, and its reader gets all."""
    pipe, read = tmp_path / "pipe.csv", bytearray()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.extend(pipe.read_bytes()))
    reader.start()
    assert run("sessions", SAMPLE, "-O", pipe).returncode == 0
    reader.join()
    assert (pipe.is_fifo(), len(read.splitlines())) == (True, 1 + SESSIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe.csv"]


def test_a_terminal_is_written_to() -> None:
    """A device stays what it is."""
    leader, follower = os.openpty()
    name = os.ttyname(follower)
    assert run("sessions", SAMPLE, "--format", "csv", "--columns", "session", "-O", name).returncode == 0
    assert os.read(leader, 1000).split() == [b'"session"', b"0", b"1"]
    assert os.path.samestat(os.stat(name), os.fstat(follower))
    os.close(leader)
    os.close(follower)


@pytest.mark.parametrize("name", ["/proc/self/fd/1", "/dev/fd/1"])
def test_a_descriptor_is_written_to_behind_what_it_holds(name: str, tmp_path: Path) -> None:
    """Also where it is of a file; process substitution is such a name too."""
    target = tmp_path / "all.txt"
    script = f'(echo before; "$@"; "$@"; echo behind) > {target}'
    assert through_shell(script, "sessions", SAMPLE, "--format", "csv", "--columns", "session", "-O", name).stderr == b""
    assert target.read_text().split() == ["before", *2 * ['"session"', "0", "1"], "behind"]
    done = through_shell('"$@" -O >(cat)', "sessions", SAMPLE, "--format", "csv", "--columns", "session")
    assert (done.returncode, done.stderr) == (0, b"")


def test_names_of_descriptors_are_known() -> None:
    """Those of Linux's proc(5) and of shells."""
    names = ("/dev/stdout", "/dev/stderr", "/dev/fd/63", "/proc/self/fd/3", "/dev/fd/x", "/dev/null", "1")
    assert [descriptor_of(name) for name in names] == [1, 2, 63, 3, None, None, None]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_written(is_there: bool, tmp_path: Path) -> None:
    """Also where it leads to nothing yet."""
    link, target = tmp_path / "link.csv", tmp_path / "inner" / "target.csv"
    target.parent.mkdir()
    if is_there:
        target.write_text("old")
    link.symlink_to("inner/target.csv")
    assert run("sessions", SAMPLE, "-O", link).returncode == 0
    assert link.is_symlink()
    assert len(target.read_text().splitlines()) == 1 + SESSIONS
    assert [path.name for path in target.parent.iterdir()] == ["target.csv"]


@pytest.mark.parametrize("suffix", [".csv.gz", ".tsv", ".sarif", ".xml", ".v2"])
def test_an_unknown_suffix_is_refused_where_no_format_is_named(suffix: str, tmp_path: Path) -> None:
    """It is no table by chance. --format decides whatever the name is."""
    target = tmp_path / f"x{suffix}"
    check_one_line(run("sessions", SAMPLE, "-O", target), 2, ".parquet")
    assert list(tmp_path.iterdir()) == []
    assert run("sessions", SAMPLE, "-O", target, "--format", "csv").returncode == 0
    assert target.read_text().startswith('"session"')


@pytest.mark.parametrize(
    ("command", "name", "begin"),
    [
        ("sessions", "x.htm", b"<!doctype html>"),
        ("sessions", "x.markdown", b"| session |"),
        ("sessions", "x.PQ", b"PAR1"),
        ("sessions", "x.txt", b"session "),
        ("sessions", "x", b"session "),
        ("validate", "x.sarif", b'{\n "version": "2.1.0"'),
        ("validate", "x.xml", b"<?xml"),
    ],
)
def test_a_known_suffix_decides_the_format(command: str, name: str, begin: bytes, tmp_path: Path) -> None:
    """Also those of violations."""
    run(command, SAMPLE, "-O", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begin)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("command", ["summarize", "messages"])
def test_a_full_disk_is_one_line(command: str, form: str, tmp_path: Path) -> None:
    """Of standard output and of a file, of which nothing stays."""
    done = through_shell('"$@" > /dev/full', command, SAMPLE, "--format", form)
    check_one_line(done, 3, "standard output: No space left on device")
    done = run(command, SAMPLE, "--format", form, "-O", tmp_path / "x", prepare=small_files_only)
    check_one_line(done, 3, "x: File too large")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["plot", str(SAMPLE), "-O", "x.png"],
        ["plot", str(SAMPLE), "-O", "x.svg"],
        ["synth", "a-californium-con", "-O", "x.pcapng"],
        ["compare", str(SAMPLE), "--data", "x.csv", "--figure", "goodput", "--labels", "{" + "long" * 300 + "}.pcapng"],
    ],
)
def test_a_full_disk_is_one_line_of_images_and_captures_too(words: list[str], tmp_path: Path) -> None:
    """The name in it is the one that was given."""
    words = [str(tmp_path / word) if word.startswith("x.") else word for word in words]
    done = run(*words, prepare=small_files_only, MPLCONFIGDIR=os.environ.get("MPLCONFIGDIR", ""))
    check_one_line(done, 3, f"{tmp_path}/x.")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", [["--help"], ["schema"], ["summarize", "--help"], ["synth", "--list"], ["completion", "bash"], ["theory", "tls"]]
)
def test_standard_output_that_takes_nothing_is_one_line(words: list[str]) -> None:
    """Full or closed."""
    check_one_line(through_shell('"$@" > /dev/full', *words), 3, "standard output: No space left on device")
    check_one_line(through_shell('"$@" >&-', *words), 3, "standard output: ")


def test_closed_streams_that_are_not_needed_do_no_harm(tmp_path: Path) -> None:
    """A file is written all the same, and nothing else gets into it."""
    assert through_shell('"$@" >&- 2>&-', "sessions", SAMPLE, "-O", tmp_path / "x.csv").returncode == 0
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 1 + SESSIONS


@pytest.mark.parametrize("words", [["schema"], ["messages", str(SAMPLE), "--format", "csv"], ["summarize", str(SAMPLE)]])
def test_a_reader_that_has_seen_enough_is_no_error(words: list[str]) -> None:
    """Output of each kind, again and again: it depends on who is faster."""
    done = through_shell('for i in 1 2 3 4 5; do "$@" | true; echo ${PIPESTATUS[0]}; done', *words)
    assert (done.stdout.split(), done.stderr) == ([b"0"] * 5, b"")


def test_what_cannot_be_written_names_its_own_file(tmp_path: Path) -> None:
    """Without an option that was not given."""
    done = run("compare", SAMPLE, "--data", tmp_path / "no" / "c.csv")
    check_one_line(done, 3, "no/c.csv: No such file or directory (")
    assert b"-O" not in done.stderr


def test_sigterm_leaves_nothing_behind(tmp_path: Path) -> None:
    """At once, also while standard input has nothing to give; the exit code is a shell's for the signal."""
    command = [*PYTHON, "messages", "-", "-O", str(tmp_path / "x.csv")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(SAMPLE.read_bytes()[:20_000])
        process.stdin.flush()
        while not list(tmp_path.iterdir()):
            time.sleep(0.01)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 128 + signal.SIGTERM
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_no_utf_8_is_one_line(capture: Path) -> None:
    """The remedy is to rename it. Output may have such a name."""
    name = os.fsencode(capture.parent) + b"/bad\xff.pcapng"
    os.rename(capture, name)
    for command in ("summarize", "messages", "validate"):
        check_one_line(run(command, name), 3, r"bad\xff.pcapng: the name is no UTF-8 (rename")
    assert run("sessions", SAMPLE, "-O", os.fsencode(capture.parent) + b"/\xff.csv").returncode == 0


def test_names_are_read_in_any_locale(capture: Path) -> None:
    """Python takes the bytes of a name for another encoding there; the file system does not."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    capture.rename(capture.with_name("nô.pcapng"))
    done = run("summarize", os.fsencode(capture.with_name("nô.pcapng")), "--format", "json", **plain)
    assert json.loads(done.stdout)["captures"][0]["file"].endswith("nô.pcapng")
    check_one_line(run("summarize", os.fsencode(capture.with_name("nô")), **plain), 3, "no such file")
    assert run("schema", **plain).returncode == 0


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("table", ["messages", "exchanges", "sessions", "notes"])
def test_a_table_of_no_rows_has_its_header(table: str, form: str, tmp_path: Path) -> None:
    """A capture of no frames has nothing in any table, in each format. Its header is that of draft-ietf-opsawg-pcap."""
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
    done = run(table, empty, "--format", form)
    assert (done.returncode, done.stderr) == (0, b"")
    if form in {"table", "csv", "markdown", "html"}:
        assert {"messages": b"message", "exchanges": b"exchange", "sessions": b"session", "notes": b"note"}[table] in done.stdout
    if form == "json":
        assert json.loads(done.stdout) == []


def test_rows_behind_a_batch_without_any_are_shown() -> None:
    """As when only a later session is wanted: the columns are chosen by the first rows that there are."""
    schema = pa.schema([("session", pa.int64()), ("kind", pa.string())])
    batches = [pa.RecordBatch.from_pylist(rows, schema) for rows in ([], [{"session": 1, "kind": "CONNECT"}])]
    file = io.BytesIO()
    FORMATS["table"](pa.RecordBatchReader.from_batches(schema, batches), file, [])
    assert file.getvalue() == b"session  kind\n1        CONNECT\n"


def test_rows_behind_the_first_have_the_columns_that_these_chose() -> None:
    """In a table wider than the terminal, of more rows than are looked at for its widths."""
    count = BATCH_ROWS + 2
    batches = pa.table({"at": range(count), "wide": ["x" * 90] * count, "empty": [None] * count})
    file = io.BytesIO()
    FORMATS["table"](batches, file, [])
    lines = file.getvalue().decode().splitlines()
    assert [line.strip() for line in lines[: count + 1]] == ["at", *map(str, range(count))]


@pytest.mark.parametrize("form", FORMATS)
def test_a_session_that_is_not_there_has_no_figures(form: str) -> None:
    """That is said as usage, not by an empty page."""
    done = run("summarize", SAMPLE, "--session", "1", "--session", "99", "--format", form)
    check_one_line(done, 2, "no session 99 in the capture (there are 2: 0 to 1)")


@pytest.mark.parametrize("command", ["messages", "exchanges", "sessions", "notes"])
def test_a_session_that_is_not_there_has_no_rows(command: str, tmp_path: Path) -> None:
    """As summarize says it; where one that is there has no row, as one without a note, that is no error."""
    check_one_line(run(command, SAMPLE, "--session", "1", "--session", "99", "-O", tmp_path / "x.csv"), 2, "no session 99")
    check_one_line(run(command, SAMPLE, "--session", "-1"), 2, "-1 is not in the range")
    assert list(tmp_path.iterdir()) == []
    piped = through_shell(f'cat "{SAMPLE}" | "$@"', command, "-", "--session", "99")
    check_one_line(piped, 2, "no session 99 in the capture (there are 2: 0 to 1)")
    there = run(command, SAMPLE, "--session", "1")
    assert (there.returncode, there.stderr) == (0, b"")


def test_lists_fit_80_columns(tmp_path: Path) -> None:
    """Each name begins a line."""
    for words, names in ((["synth", "--list"], 24), (["dissectors", "list"], 5)):
        lines = run(*words, HOME=str(tmp_path)).stdout.decode().splitlines()
        assert max(map(len, lines)) <= 80
        assert sum(not line.startswith(" ") for line in lines) == names


@pytest.mark.parametrize("command", ["messages", "exchanges", "sessions", "notes"])
def test_what_fills_a_column_is_offered_where_that_column_is(command: str) -> None:
    """Payloads and user names are in the table of messages alone."""
    told = run(command, "--help").stdout
    assert [option in told for option in (b"--show-payload", b"--show-secrets")] == [command == "messages"] * 2


HOSTILE = "a\x1b[31m\r\u202e\x9b<b>|"
ESCAPED = r"a\x1b[31m\r\u202e\x9b"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a capture of a client whose identifier holds control characters and what turns the direction of text: MQTT 3.1.1 §3.1."""
    name = HOSTILE.encode()
    body = b"\x00\x04MQTT\x04\x02\x00\x3c" + len(name).to_bytes(2, "big") + name
    ends = Ether(**MACS) / IP(src="192.0.2.1", dst="192.0.2.2")
    target = tmp_path / "hostile.pcap"
    opening = ends / TCP(sport=40000, dport=1883, flags="S", seq=0)
    wrpcap(str(target), [opening, ends / TCP(sport=40000, dport=1883, flags="PA", seq=1, ack=1) / (b"\x10" + bytes([len(body)]) + body)])
    return target


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
@pytest.mark.parametrize("command", ["summarize", "messages"])
def test_what_people_read_does_not_steer_their_terminal(command: str, form: str, hostile: Path) -> None:
    """Control characters are shown as Python writes them, and nothing of a value is markup."""
    words = ["--columns", "client_identifier"] if command == "messages" else []
    told = run(command, hostile, "--format", form, *words, COLUMNS="1000").stdout.decode()
    assert ESCAPED in told
    assert not set(told) & set("\x1b\r\x9b\u202e\x00")
    assert form == "table" or "<b>" not in told
    assert command == "messages" or form != "table" or max(map(len, told.splitlines())) <= 80


@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_what_programs_read_is_exact(form: str, hostile: Path) -> None:
    """Nothing is lost."""
    told = json.loads(run("messages", hostile, "--format", form, "--columns", "client_identifier").stdout)
    assert (told[0] if form == "json" else told) == {"client_identifier": HOSTILE}


def test_errors_do_not_steer_the_terminal(tmp_path: Path) -> None:
    """Names of files are what others chose, too."""
    check_one_line(run("summarize", tmp_path / "x\x1b[2J.pcap"), 3, r"x\x1b[2J.pcap")


@pytest.mark.parametrize("form", ["csv", "json", "ndjson", "table"])
def test_times_have_nine_decimals(form: str) -> None:
    """They are those of tshark's frame.time_epoch: of the CONNECT in frame 12, and of the last PUBACK in the session."""
    command = ["tshark", "-r", str(SAMPLE), "-Y", "tcp.stream == 0 && (frame.number == 12 || mqtt.msgtype == 4)", "-T", "fields"]
    shown = subprocess.run([*command, "-e", "frame.time_epoch"], capture_output=True, text=True, check=True).stdout.split()
    assert shown[0] == "1795219946.327775353"
    if form == "table":
        told = run("summarize", SAMPLE, "--session", "0", "--format", "html").stdout.decode()
        assert f"<td>{shown[0]}</td>" in told
        return
    told = run("summarize", SAMPLE, "--session", "0", "--format", form).stdout.decode()
    if form == "csv":
        head, row = (line.split(",") for line in told.splitlines())
        figures = dict(zip((name.strip('"') for name in head), row, strict=True))
    else:
        figures = json.loads(told, parse_float=str)
        figures = figures["sessions"][0] if form == "json" else figures
    assert (figures["time1_s"], figures["time2_s"]) == (shown[0], shown[-1])
    assert (int(figures["time1_ns"]), int(figures["time2_ns"])) == tuple(int(each.replace(".", "")) for each in (shown[0], shown[-1]))


def test_summaries_of_several_captures_are_read_together(tmp_path: Path) -> None:
    """Columns have the same types, whichever of them have values: none has for the capture without a session."""
    import duckdb
    import polars
    import pyarrow.dataset as ds

    empty = tmp_path / "empty.pcap"
    wrpcap(str(empty), [Ether(**MACS) / IP() / TCP()])
    captures = [*(CAPTURES / f"{name}.pcapng" for name in ("a-paho-qos1", "a-californium-con", "c-libcoap-dtls")), empty]
    files = [tmp_path / f"{number}.parquet" for number in range(len(captures))]
    for source, target in zip(captures, files, strict=True):
        assert run("summarize", source, "--engine", "native", "-O", target).returncode == 0
    schemas = [pq.read_schema(file) for file in files]
    assert all(schema == schemas[0] for schema in schemas)
    counts = [pq.read_table(file).num_rows for file in files]
    names = [str(file) for file in files]
    assert duckdb.sql(f"select count(*), count(handshake_s) < count(*) from read_parquet({names})").fetchall() == [(sum(counts), True)]
    assert ds.dataset(names).to_table().num_rows == polars.read_parquet(names).height == sum(counts)
    assert min(counts[:3]) > 0
    types = {field.name: str(field.type) for field in schemas[0]}
    assert (types["client_identifier"], types["overhead_both_legs_bytes"], types["handshake_s"]) == ("string", "int64", "double")
