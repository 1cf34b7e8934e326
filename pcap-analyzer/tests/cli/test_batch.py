"""Archives: what becomes of every capture, killed and resumed, by one process, several, or a Dask cluster."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pytest
from places import CAPTURES

import pcapstat
from pcapstat import wireshark
from pcapstat.archive.schedule import cluster, locally, on_dask
from pcapstat.archive.sources import listed
from pcapstat.archive.work import Job
from pcapstat.errors import PcapstatError

NAMES = ("a-californium-con", "a-californium-non", "a-java-coap-con", "a-java-coap-non", "a-paho-qos0", "a-paho-qos1", "a-hivemq-qos0")
LABELS = "{library}/{name}.pcapng"


def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pcapstat."""
    command = [sys.executable, "-c", "from pcapstat.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def captures_of(dataset: Path) -> dict[str, dict[str, str]]:
    """Return the rows of a dataset's table captures, by the captures' names."""
    return {Path(row["source"]).name: row for row in pcapstat.dataset(dataset).table("captures").to_table().to_pylist()}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return an archive of small captures, a folder a library."""
    for name in NAMES:
        target = tmp_path / "archive" / name.split("-")[1] / f"{name}.pcapng"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CAPTURES / f"{name}.pcapng", target)
    return tmp_path / "archive"


def content(dataset: Path) -> dict[str, bytes]:
    """Return the files of a dataset's tables, by path."""
    return {str(path.relative_to(dataset)): path.read_bytes() for path in sorted(dataset.rglob("*.parquet"))}


def test_an_archive_becomes_tables_that_others_open(archive: Path, tmp_path: Path) -> None:
    """Rows are those of each capture by itself; DuckDB, polars and pyarrow open the folders as they are; labels come from the path."""
    done = run("batch", archive, "-O", tmp_path / "ds", "--labels", LABELS, "--engine", "native")
    assert (done.returncode, done.stdout) == (0, "")
    table = pcapstat.dataset(tmp_path / "ds").table("messages")
    expected = sum(pa.table(pcapstat.open(CAPTURES / f"{name}.pcapng", engine="native").messages).num_rows for name in NAMES)
    assert table.count_rows() == expected
    assert polars.read_parquet(tmp_path / "ds" / "messages", hive_partitioning=True).height == expected
    query = f"select library, count(*) from read_parquet('{tmp_path}/ds/captures/*/*.parquet') group by all order by 1"
    assert duckdb.sql(query).fetchall() == [("californium", 2), ("hivemq", 1), ("java", 2), ("paho", 2)]
    asked = run("query", tmp_path / "ds", "select count(*) n from messages", "--format", "json")
    assert json.loads(asked.stdout) == [{"n": expected}]
    wrong = run("query", tmp_path / "ds", "select nothing from messages")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_a_second_run_does_only_what_changed(archive: Path, tmp_path: Path) -> None:
    """Unchanged captures stay as they are, also where only their time of modification differs."""
    words = ["batch", archive, "-O", tmp_path / "ds", "--engine", "native"]
    run(*words)
    before = content(tmp_path / "ds")
    changed = archive / "paho" / "a-paho-qos0.pcapng"
    shutil.copy(CAPTURES / "b-paho-qos2.pcapng", changed)
    os.utime(archive / "java" / "a-java-coap-con.pcapng")
    again = run(*words)
    assert "7 captures: 1 complete, 6 unchanged" in again.stderr
    after = content(tmp_path / "ds")
    assert {path.split("/")[1] for path in before if before[path] != after[path]} != set()
    assert len({path.split("/")[1] for path in before if before[path] != after[path]}) == 1


def test_a_file_that_is_not_whole_is_made_again(archive: Path, tmp_path: Path) -> None:
    """After a loss of power a file may be there and cut; its size tells."""
    words = ["batch", archive, "-O", tmp_path / "ds", "--engine", "native"]
    run(*words)
    before = content(tmp_path / "ds")
    cut = next((tmp_path / "ds" / "messages").rglob("*.parquet"))
    cut.write_bytes(cut.read_bytes()[:-100])
    assert "7 captures: 1 complete, 6 unchanged" in run(*words).stderr
    assert content(tmp_path / "ds") == before


@pytest.mark.parametrize("after_s", [0.15, 0.3, 0.45])
def test_a_run_that_was_killed_goes_on_and_ends_the_same(archive: Path, tmp_path: Path, after_s: float) -> None:
    """Killed at some moment, then run again: byte for byte what an uninterrupted run writes."""
    words = [
        sys.executable,
        "-c",
        "from pcapstat.cli import main; main()",
        "batch",
        str(archive),
        "--engine",
        "native",
        "--workers",
        "1",
        "-O",
    ]
    with subprocess.Popen([*words, str(tmp_path / "killed")], stderr=subprocess.DEVNULL, start_new_session=True) as process:
        time.sleep(after_s)
        os.killpg(process.pid, signal.SIGKILL)
    assert run("batch", archive, "--engine", "native", "-O", tmp_path / "killed").returncode == 0
    assert run("batch", archive, "--engine", "native", "-O", tmp_path / "whole").returncode == 0
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_a_damaged_capture_is_recorded_and_stops_nothing(archive: Path, tmp_path: Path) -> None:
    """Cut off: figures of what is there. No capture at all: its error. Exit code 4."""
    data = (CAPTURES / "a-paho-qos1.pcapng").read_bytes()
    (archive / "cut.pcapng").write_bytes(data[:20_001])
    (archive / "none.pcapng").write_bytes(b"this is no capture")
    done = run("batch", archive, "-O", tmp_path / "ds", "--engine", "native")
    assert done.returncode == 4
    rows = {Path(row["source"]).name: row for row in pcapstat.dataset(tmp_path / "ds").table("captures").to_table().to_pylist()}
    assert len(rows) == 9
    assert (rows["cut.pcapng"]["outcome"], rows["none.pcapng"]["outcome"]) == ("damaged", "failed")
    assert "none.pcapng" in rows["none.pcapng"]["error"]


def test_a_second_run_tells_of_captures_that_stay_damaged(archive: Path, tmp_path: Path) -> None:
    """What was recorded counts for the summary and the exit code until it is repaired."""
    data = (CAPTURES / "a-paho-qos1.pcapng").read_bytes()
    (archive / "cut.pcapng").write_bytes(data[:20_001])
    (archive / "none.pcapng").write_bytes(b"this is no capture")
    words = ["batch", archive, "-O", tmp_path / "ds", "--engine", "native"]
    assert run(*words).returncode == 4
    before = content(tmp_path / "ds")
    again = run(*words)
    assert (again.returncode, content(tmp_path / "ds")) == (4, before)
    assert "9 captures: nothing to do, 9 unchanged (of these 1 damaged, 1 failed: the table captures tells why)" in again.stderr
    for name in ("cut", "none"):
        (archive / f"{name}.pcapng").write_bytes(data)
    repaired = run(*words)
    assert (repaired.returncode, "9 captures: 2 complete, 7 unchanged\n" in repaired.stderr) == (0, True)


def test_what_failed_for_want_of_a_tool_is_tried_again(tmp_path: Path) -> None:
    """A key log was given and tshark is not there: failed; with tshark the same command opens it."""
    recording = CAPTURES / "a-paho-tls-qos1.pcapng"
    words = ["batch", recording, "-O", tmp_path / "ds", "--keylog", recording.with_suffix(".keys")]
    gone = {"PCAPSTAT_TSHARK": str(tmp_path / "tshark")}
    for _ in range(2):
        failed = run(*words, **gone)
        assert (failed.returncode, "1 capture: 1 failed, 0 unchanged" in failed.stderr) == (4, True)
    assert captures_of(tmp_path / "ds")[recording.name]["outcome"] == "failed"
    done = run(*words)
    assert (done.returncode, "1 capture: 1 complete, 0 unchanged" in done.stderr) == (0, True)
    row = captures_of(tmp_path / "ds")[recording.name]
    assert (row["outcome"], row["engine"], row["engine_reason"]) == ("complete", "tshark", "secrets are given")
    # standard error is no terminal here: nothing of the progress that one shows
    assert run(*words).stderr == "1 capture: nothing to do, 1 unchanged\n"


def test_tshark_reads_a_capture_once_for_all_tables(tmp_path: Path) -> None:
    """A program in tshark's place notes what it is asked for; the rows are those that tshark opens for each table by itself."""
    capture, key_log = (CAPTURES / f"a-paho-tls-qos1.{suffix}" for suffix in ("pcapng", "keys"))
    asked, stand_in = tmp_path / "asked", tmp_path / "tshark"
    stand_in.write_text(f'#!/bin/sh\necho "$*" >> {asked}\nexec {wireshark.find()} "$@"\n')
    stand_in.chmod(0o755)
    words = ["batch", capture, "-O", tmp_path / "ds", "--keylog", key_log]
    assert run(*words, PCAPSTAT_TSHARK=str(stand_in)).returncode == 0
    assert [" -T pdml " in line for line in asked.read_text().splitlines()].count(True) == 1
    for table in ("messages", "exchanges", "sessions", "directions", "kinds", "timings", "notes"):
        expected = pcapstat.open(capture, keylog=[key_log]).table(table).to_arrow()
        columns = [name for name in expected.column_names if name != "file"]
        found = pcapstat.dataset(tmp_path / "ds").table(table).to_table(columns=columns)
        assert found.to_pylist() == expected.select(columns).to_pylist()


def test_what_was_read_without_tshark_is_read_again_with_it(tmp_path: Path) -> None:
    """Secrets are embedded: the native engine leaves the sessions closed, and the record says so until tshark is there."""
    recording = CAPTURES / "a-paho-tls-qos1.pcapng"
    words = ["batch", recording, "-O", tmp_path / "ds"]
    gone = {"PCAPSTAT_TSHARK": str(tmp_path / "tshark")}
    assert run(*words, **gone).returncode == 0
    row = captures_of(tmp_path / "ds")[recording.name]
    assert (row["outcome"], row["engine"], ": no such program" in row["engine_reason"]) == ("complete", "native", True)
    assert "nothing to do, 1 unchanged" in run(*words, **gone).stderr
    assert "1 capture: 1 complete, 0 unchanged" in run(*words).stderr
    row = captures_of(tmp_path / "ds")[recording.name]
    assert (row["engine"], row["engine_reason"]) == ("tshark", "secrets are embedded in the capture")
    sessions = pcapstat.dataset(tmp_path / "ds").table("sessions").to_table(columns=["protocol"]).to_pylist()
    assert {session["protocol"] for session in sessions} == {"mqtt"}
    assert "nothing to do, 1 unchanged\n" in run(*words).stderr


def test_a_name_that_is_not_utf_8_stops_nothing(archive: Path, tmp_path: Path) -> None:
    """It is recorded as failed, its bytes escaped; the others are measured."""
    shutil.copy(CAPTURES / "a-paho-qos1.pcapng", os.fsencode(archive) + b"/caf\xe9.pcapng")
    done = run("batch", archive, "-O", tmp_path / "ds", "--engine", "native")
    assert (done.returncode, "8 captures: 7 complete, 1 failed, 0 unchanged" in done.stderr) == (4, True)
    row = captures_of(tmp_path / "ds")["caf\\xe9.pcapng"]
    assert (row["outcome"], "no UTF-8 (rename the file)" in row["error"]) == ("failed", True)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-d", "foo"], 2, "-d foo"),
        (["-d", "tcp.port==1,no_such_protocol"], 2, "no_such_protocol"),
        (["--labels", "{lib"], 2, "--labels {lib"),
        (["--keylog", "none.keys"], 2, "none.keys"),
        (["--scheduler", "tcp://127.0.0.1:9"], 5, "tcp://127.0.0.1:9"),
        (["--scheduler", "nonsense"], 5, "nonsense"),
    ],
)
def test_what_cannot_be_done_for_any_capture_is_refused_before_the_work(
    archive: Path, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    """One line, the exit code of its kind, and no dataset."""
    done = run("batch", archive, "-O", tmp_path / "ds", *words, DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="1s")
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("pcapstat: ")]
    assert (done.returncode, said in line, "Traceback" in done.stderr) == (code, True, False)
    assert not (tmp_path / "ds").exists()


@pytest.mark.parametrize(
    ("address", "code", "said"),
    [("s3://bucket/x", 5, "pcapstat[cloud]"), ("s3://bucket/x.pcap", 5, "pcapstat[cloud]"), ("foo://x/y", 2, "foo")],
)
def test_an_address_without_its_package_is_one_line(monkeypatch: pytest.MonkeyPatch, address: str, code: int, said: str) -> None:
    """What fsspec says where s3fs is not installed, with the extra that brings fsspec."""
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(PcapstatError, match=re.escape(said)) as raised:
        listed([address])
    assert raised.value.exit_code == code
    assert str(raised.value).count("\n") == 0


def test_tar_and_zip_files_globs_and_labels_beside(archive: Path, tmp_path: Path) -> None:
    """Members of archive files count as captures; a file beside one gives labels."""
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(archive / "paho", "paho")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        zipped.write(archive / "java" / "a-java-coap-con.pcapng", "x/y.pcapng")
    (archive / "hivemq" / "a-hivemq-qos0.labels.yaml").write_text("labels: 3\nplace: lab\n")
    done = run("batch", tmp_path / "a.tar.gz", tmp_path / "a.zip", f"{archive}/hivemq/*", "-O", tmp_path / "ds", "--engine", "native")
    assert done.returncode == 0, done.stderr
    rows = pcapstat.dataset(tmp_path / "ds").table("captures").to_table().to_pylist()
    assert sorted(Path(row["source"]).name for row in rows) == [
        "a-hivemq-qos0.pcapng",
        "a-paho-qos0.pcapng",
        "a-paho-qos1.pcapng",
        "y.pcapng",
    ]
    missing = run("batch", tmp_path / "nowhere", "-O", tmp_path / "ds")
    assert (missing.returncode, missing.stderr.count("\n")) == (3, 1)


def test_links_in_a_tar_file_are_captures(archive: Path, tmp_path: Path) -> None:
    """Tar packs a file's further names as links; one that leads nowhere, or round in a circle, is none."""
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(archive / "paho" / "a-paho-qos0.pcapng", "first.pcapng")
        for name, kind, target in (
            ("hard.pcapng", tarfile.LNKTYPE, "first.pcapng"),
            ("x/soft.pcapng", tarfile.SYMTYPE, "../first.pcapng"),
            ("nowhere.pcapng", tarfile.SYMTYPE, "gone.pcapng"),
            ("circle.pcapng", tarfile.SYMTYPE, "circle.pcapng"),
        ):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, target
            tar.addfile(link)
    assert run("batch", tmp_path / "a.tar", "-O", tmp_path / "ds", "--engine", "native").returncode == 0
    rows = captures_of(tmp_path / "ds")
    assert {name: row["outcome"] for name, row in rows.items()} == dict.fromkeys(("first.pcapng", "hard.pcapng", "soft.pcapng"), "complete")
    assert len({row["sha256"] for row in rows.values()}) == 1


def test_what_ends_with_a_zip_file_is_none(archive: Path, tmp_path: Path) -> None:
    """A capture of a download, a tar file whose last member is one: what they are they are by their beginnings."""
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as zipped:
        zipped.writestr("inner.pcapng", b"no capture")
    capture = tmp_path / "download.pcapng"
    zipped_bytes = (tmp_path / "logs.zip").read_bytes()
    comment = struct.pack("<II", 0x0BAD, 12 + len(zipped_bytes) + -len(zipped_bytes) % 4)
    block = comment + zipped_bytes + bytes(-len(zipped_bytes) % 4) + comment[4:]
    capture.write_bytes((archive / "paho" / "a-paho-qos0.pcapng").read_bytes() + block)
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(archive / "paho" / "a-paho-qos1.pcapng", "first.pcapng")
        tar.add(tmp_path / "logs.zip", "logs.zip")
    assert zipfile.is_zipfile(capture)
    assert zipfile.is_zipfile(tmp_path / "a.tar")
    done = run("batch", capture, tmp_path / "a.tar", "-O", tmp_path / "ds", "--engine", "native")
    assert done.returncode == 0, done.stderr
    assert {name: row["outcome"] for name, row in captures_of(tmp_path / "ds").items()} == {
        "download.pcapng": "complete",
        "first.pcapng": "complete",
    }


def test_names_of_captures_in_capitals_and_with_a_dot_before_them(archive: Path) -> None:
    """Windows writes them in capitals; the same file by its folder and by a glob of "./" is one capture."""
    (archive / "paho" / "a-paho-qos0.pcapng").rename(archive / "paho" / "A.PCAPNG")
    found = [source.name for source in listed([str(archive / "paho"), f"{archive}/./paho/*"])]
    assert [Path(name).name for name in found] == ["A.PCAPNG", "a-paho-qos1.pcapng"]


def test_a_changed_file_of_labels_is_noticed(archive: Path, tmp_path: Path) -> None:
    """The capture beside it gets the new labels; so it is when the file comes, and when it goes."""
    words = ["batch", archive, "-O", tmp_path / "ds", "--engine", "native"]
    run(*words)
    file = archive / "paho" / "a-paho-qos0.labels.yaml"
    for place in ("lab", "field"):
        file.write_text(f"place: {place}\n")
        assert "7 captures: 1 complete, 6 unchanged" in run(*words).stderr
        assert captures_of(tmp_path / "ds")["a-paho-qos0.pcapng"]["place"] == place
    file.unlink()
    assert "7 captures: 1 complete, 6 unchanged" in run(*words).stderr
    assert "place" not in captures_of(tmp_path / "ds")["a-paho-qos0.pcapng"]
    assert "nothing to do, 7 unchanged" in run(*words).stderr


def test_an_archive_file_that_is_cut_off_is_one_line(archive: Path, tmp_path: Path) -> None:
    """Its list of members cannot be read: exit code 3."""
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(archive, "archive")
    whole = (tmp_path / "a.tar.gz").read_bytes()
    (tmp_path / "a.tar.gz").write_bytes(whole[: len(whole) // 2])
    done = run("batch", tmp_path / "a.tar.gz", "-O", tmp_path / "ds")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "a.tar.gz" in done.stderr


def test_a_dask_cluster_loses_nothing_when_a_worker_dies(archive: Path, tmp_path: Path) -> None:
    """Two workers, one killed in the middle: the dataset is that of a local run."""
    from dask.distributed import LocalCluster

    job = Job(str(tmp_path / "dask"), ("messages", "sessions"), (("engine", "native"),), None)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local,
        cluster(local.scheduler_address) as client,
    ):
        records = on_dask(job, listed([str(archive)]), client)
        first = next(records)
        os.kill(next(iter(local.workers.values())).pid, signal.SIGKILL)
        outcomes = [first.outcome, *(record.outcome for record in records)]
    assert outcomes == ["complete"] * len(NAMES)
    words = ["batch", archive, "-O", tmp_path / "local", "--engine", "native", "--tables", "messages,sessions"]
    assert run(*words).returncode == 0
    assert content(tmp_path / "dask") == content(tmp_path / "local")


def test_a_large_capture_is_shared_by_session(tmp_path: Path) -> None:
    """Rows and numbers are those of one pass; a run that shares otherwise leaves nothing of the one before."""
    source = CAPTURES / "c-paho-python-many.pcapng"
    sources = listed([str(source)])
    tables = ("messages", "exchanges", "sessions", "notes")
    for workers, parts in ((6, 3), (1, 1), (4, 2)):
        job = Job(str(tmp_path / "ds"), tables, (("engine", "native"),), None, split_bytes=1)
        (record,) = locally(job, sources, workers)
        assert record.outcome == "complete"
        assert len(list((tmp_path / "ds" / "messages").rglob("*.parquet"))) == parts
        assert len(list((tmp_path / "ds" / "sessions").rglob("*.parquet"))) == 1
        for table in tables:
            whole = pa.table(pcapstat.open(source, engine="native").table(table))
            whole = whole.select([name for name in whole.column_names if name != "file"])
            shared = pcapstat.dataset(tmp_path / "ds").table(table).to_table(columns=whole.column_names)
            order = [(whole.column_names[0], "ascending")]
            assert shared.sort_by(order).to_pylist() == whole.sort_by(order).to_pylist()
