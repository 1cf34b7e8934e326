"""Archives: signals, full disks, permissions, other runs and captures that change lose and falsify nothing."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import dask
import pyarrow as pa
import pytest
from places import CAPTURES

import pcapstat
from pcapstat.archive import work
from pcapstat.archive.folder import alone
from pcapstat.archive.schedule import cluster, locally, on_dask
from pcapstat.archive.sources import listed
from pcapstat.archive.work import Job, Record, done
from pcapstat.crosscheck import without_secrets
from pcapstat.errors import OutputError, ToolMissing

SAMPLE = CAPTURES / "a-paho-qos0.pcapng"
OTHER = CAPTURES / "a-paho-qos1.pcapng"
CLOSED = CAPTURES / "a-paho-tls-qos1.pcapng"
PROGRAM = [sys.executable, "-c", "from pcapstat.cli import main; main()"]
TABLES = ("messages", "exchanges", "sessions", "directions", "kinds", "timings", "notes")


def run(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run pcapstat."""
    return subprocess.run([*PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, **options)


def rows_of(dataset: Path) -> dict[str, dict[str, str]]:
    """Return the rows of a dataset's table captures, by the captures' names."""
    return {Path(row["source"]).name: row for row in pcapstat.dataset(dataset).table("captures").to_table().to_pylist()}


def protocols_of(dataset: Path) -> set[str]:
    """Return the protocols of a dataset's sessions."""
    return {row["protocol"] for row in pcapstat.dataset(dataset).table("sessions").to_table(columns=["protocol"]).to_pylist()}


def content(dataset: Path) -> dict[str, bytes]:
    """Return the files of a dataset's tables, by path."""
    return {str(path.relative_to(dataset)): path.read_bytes() for path in sorted(dataset.rglob("*.parquet"))}


def job_of(dataset: Path) -> Job:
    """Return what `batch --engine native` does."""
    return Job(str(dataset), TABLES, (("engine", "native"),), None)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return an archive of forty captures."""
    (tmp_path / "archive").mkdir()
    for number in range(40):
        shutil.copy(OTHER, tmp_path / "archive" / f"{number}.pcapng")
    return tmp_path / "archive"


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_run_that_was_killed(archive: Path, tmp_path: Path, stop: signal.Signals) -> None:
    """Nobody is left who keeps a processor, or writes into the dataset: the pipe that all of them hold is closed."""
    command = [*PROGRAM, "batch", str(archive), "-O", str(tmp_path / "ds"), "--engine", "native", "--workers", "3"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        while not (tmp_path / "ds" / "captures").is_dir():
            time.sleep(0.01)
        process.send_signal(stop)
        process.communicate(timeout=10)
    assert process.returncode == -stop
    assert run("batch", archive, "-O", tmp_path / "ds", "--engine", "native").returncode == 0
    assert not (tmp_path / "ds" / "_parts").exists()


def test_ctrl_c_ends_all_processes_at_once_without_a_traceback(archive: Path, tmp_path: Path) -> None:
    """A terminal sends SIGINT to the workers too."""
    command = [*PROGRAM, "batch", str(archive), "-O", str(tmp_path / "ds"), "--engine", "native", "--workers", "3"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        while not (tmp_path / "ds" / "captures").is_dir():
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert (process.returncode, "Traceback" in said) == (130, False)


def test_a_full_disk_ends_the_run_and_is_no_fault_of_a_capture(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk. Nothing is recorded; with room the same command measures all."""
    (tmp_path / "archive").mkdir()
    for number in range(2):
        shutil.copy(OTHER, tmp_path / "archive" / f"{number}.pcapng")
    words = ["batch", tmp_path / "archive", "-O", tmp_path / "ds", "--engine", "native", "--workers", "1"]
    full = run(*words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)))
    (line,) = [line for line in full.stderr.splitlines() if line.startswith("pcapstat: ")]
    assert (full.returncode, "File too large" in line, "part.parquet" in line) == (3, True, True)
    there = run(*words)
    assert (there.returncode, "2 captures: 2 complete, 0 unchanged\n" in there.stderr) == (0, True)


def test_two_runs_do_not_work_on_one_dataset(archive: Path, tmp_path: Path) -> None:
    """The second one is refused in one line and harms nothing; afterwards it may."""
    words = ["batch", archive, "-O", tmp_path / "ds", "--engine", "native"]
    with alone(tmp_path / "ds"):
        (tmp_path / "ds" / "_parts").mkdir()
        refused = run(*words)
        assert (refused.returncode, refused.stderr.count("pcapstat: ")) == (3, 1)
        assert "another run is at work on it" in refused.stderr
        assert (tmp_path / "ds" / "_parts").is_dir()
    assert run(*words).returncode == 0


def test_a_dataset_can_be_read_by_others(tmp_path: Path) -> None:
    """Files have the permissions that the umask leaves."""
    run("batch", SAMPLE, "-O", tmp_path / "ds", "--engine", "native", preexec_fn=lambda: os.umask(0o022))
    files = [path for path in (tmp_path / "ds").rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o644}


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_capture_that_changes_while_it_is_read_is_measured_again(is_gone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is damaged, and what is recorded is what it was before; one that goes once it was read is complete."""
    capture = tmp_path / "x.pcapng"
    shutil.copy(SAMPLE, capture)
    written = work.written

    def changed(*words: Any) -> list[str]:
        files = written(*words)
        capture.unlink()
        if not is_gone:
            shutil.copy(OTHER, capture)
        return files

    job, sources = job_of(tmp_path / "ds"), listed([str(capture)])
    monkeypatch.setattr(work, "written", changed)
    (record,) = locally(job, sources, 1)
    assert (record.outcome, "changed while it was read" in record.error) == (("complete", False) if is_gone else ("damaged", True))
    assert done(job, sources[0]) is None
    monkeypatch.setattr(work, "written", written)
    shutil.copy(OTHER, capture)
    (record,) = locally(job, sources, 1)
    assert record.outcome == "complete"
    expected = pa.table(pcapstat.open(OTHER, engine="native").messages).num_rows
    assert pcapstat.dataset(tmp_path / "ds").table("messages").count_rows() == expected


def test_captures_that_vanish_stop_nothing(tmp_path: Path) -> None:
    """They were there when the archive was listed."""
    for number in range(4):
        shutil.copy(SAMPLE, tmp_path / f"{number}.pcapng")
    sources = listed([str(tmp_path)])
    (tmp_path / "1.pcapng").unlink()
    records = list(locally(Job(str(tmp_path / "ds"), TABLES, (("engine", "native"),), None, split_bytes=1), sources, 4))
    assert sorted(record.outcome for record in records) == ["complete"] * 3 + ["failed"]
    assert [done(job_of(tmp_path / "ds"), source) is not None for source in sources] == [True, False, True, True]


@pytest.mark.parametrize("failure", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error"), MemoryError()])
def test_what_failed_for_no_fault_of_its_own_is_tried_again(failure: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may read the capture now, or has a disk that works, sees it measured; its size and time are the same."""
    digest = work.digest

    def fails(_: Path) -> str:
        raise failure

    job, sources = job_of(tmp_path / "ds"), listed([str(SAMPLE)])
    monkeypatch.setattr(work, "digest", fails)
    (record,) = locally(job, sources, 1)
    assert (record.outcome, record.error.count("\n")) == ("failed", 0)
    monkeypatch.setattr(work, "digest", digest)
    assert done(job, sources[0]) is None


def test_a_folder_that_cannot_be_opened_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captures may be in it: it is not passed over in silence."""
    (tmp_path / "closed").mkdir()
    for place in (tmp_path, tmp_path / "closed"):
        shutil.copy(SAMPLE, place)
    scandir = os.scandir

    def refusing(path: str) -> Any:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    lines: list[str] = []
    assert [Path(source.name) for source in listed([str(tmp_path)], lines.append)] == [tmp_path / SAMPLE.name]
    assert len(lines) == 1
    assert lines[0].startswith(f"{tmp_path}/closed: Permission denied (")


def test_what_an_archive_holds_by_several_names_is_told(tmp_path: Path) -> None:
    """Links and copies count as captures of their own, as files do; every run says so. What failed has no figures."""
    shutil.copy(SAMPLE, tmp_path / "a.pcapng")
    (tmp_path / "b.pcapng").symlink_to("a.pcapng")
    shutil.copy(OTHER, tmp_path / "c.pcapng")
    for name in ("x.pcapng", "y.pcapng"):
        (tmp_path / name).write_bytes(b"no capture")
    words = ["batch", tmp_path, "-O", tmp_path / "ds", "--engine", "native"]
    one = f"pcapstat: {tmp_path}/ds: {tmp_path}/b.pcapng has the content of {tmp_path}/a.pcapng: each counts ("
    for _ in range(2):
        assert [line[: len(one)] for line in run(*words).stderr.splitlines() if "has the content of" in line] == [one]
    assert [row["outcome"] for row in rows_of(tmp_path / "ds").values()].count("complete") == 3
    (tmp_path / "d.pcapng").hardlink_to(tmp_path / "c.pcapng")
    assert "a.pcapng, and 1 more capture that of another: each counts (" in run(*words).stderr


def test_links_that_lead_nowhere_or_in_a_circle_are_no_captures(tmp_path: Path) -> None:
    """Also where they are named, or found by a glob; a link to a capture is one, a pipe is none."""
    shutil.copy(SAMPLE, tmp_path / "real.pcapng")
    for link, target in (("there", "real.pcapng"), ("nowhere", "none.pcapng"), ("circle", "circle.pcapng")):
        (tmp_path / f"{link}.pcapng").symlink_to(target)
    (tmp_path / "folder").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.pcapng")
    for spec in (tmp_path, f"{tmp_path}/*.pcapng"):
        assert [Path(source.name).name for source in listed([str(spec)])] == ["real.pcapng", "there.pcapng"]
    for name in ("nowhere", "circle", "pipe"):
        alone_there = run("batch", tmp_path / f"{name}.pcapng", "-O", tmp_path / "ds")
        assert (alone_there.returncode, alone_there.stderr.count("\n")) == (3, 1)


@pytest.mark.parametrize("told", ["", "[]", "null", "{}", '{"job": 1}', '{"job": "x", "new": 1}', "\x00\x00"])
def test_a_record_that_is_not_whole_is_none(told: str, tmp_path: Path) -> None:
    """The capture is measured again."""
    words = ["batch", SAMPLE, "-O", tmp_path / "ds", "--engine", "native"]
    run(*words)
    (record,) = (tmp_path / "ds" / "_records").iterdir()
    record.write_text(told)
    again = run(*words)
    assert (again.returncode, "1 capture: 1 complete, 0 unchanged\n" in again.stderr) == (0, True)


def test_a_damaged_file_of_a_dataset_is_one_line(tmp_path: Path) -> None:
    """Cut off, as a loss of power may leave it: exit code 3 whatever is asked, until batch makes it anew."""
    words = ["batch", SAMPLE, "-O", tmp_path / "ds", "--engine", "native"]
    run(*words)
    (part,) = (tmp_path / "ds" / "kinds").rglob("*.parquet")
    part.write_bytes(part.read_bytes()[:700])
    for asked in (["query", tmp_path / "ds", "select * from kinds"], ["compare", tmp_path / "ds"]):
        failed = run(*asked)
        assert (failed.returncode, failed.stdout, failed.stderr.count("\n")) == (3, "", 1)
        assert "run pcapstat batch again" in failed.stderr
    assert run(*words).returncode == 0
    assert run("compare", tmp_path / "ds").returncode == 0


def test_a_key_log_that_grew_is_used(tmp_path: Path) -> None:
    """The option is the same, what it names is not: the same command opens what it left closed, and then leaves it alone."""
    keys = tmp_path / "keys.log"
    words = ["batch", without_secrets(CLOSED, tmp_path), "-O", tmp_path / "ds", "--keylog", keys]
    keys.write_text("")
    assert run(*words).returncode == 0
    assert protocols_of(tmp_path / "ds") == {"tls"}
    keys.write_bytes(CLOSED.with_suffix(".keys").read_bytes())
    assert "1 capture: 1 complete, 0 unchanged\n" in run(*words).stderr
    assert protocols_of(tmp_path / "ds") == {"mqtt"}
    assert "1 capture: nothing to do, 1 unchanged\n" in run(*words).stderr


def test_the_key_log_of_the_environment_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it encrypted sessions are opened, so a dataset that was made without it is another one; the native engine uses none."""
    monkeypatch.delenv("SSLKEYLOGFILE", raising=False)
    jobs = [Job(str(tmp_path), TABLES, (("engine", engine),), None) for engine in ("auto", "native")]
    before = [job.fingerprint for job in jobs]
    monkeypatch.setenv("SSLKEYLOGFILE", str(CAPTURES / "a-paho-tls-qos1.keys"))
    after = [Job(job.dataset, job.tables, job.options, None).fingerprint for job in jobs]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True]


def test_tables_of_other_columns_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version of pcapstat whose tables have another column measures what an earlier one measured."""
    before = job_of(tmp_path).fingerprint
    tables = dict(work.tables())
    monkeypatch.setattr(work, "tables", lambda: {name: table for name, table in tables.items() if name != "notes"})
    assert job_of(tmp_path).fingerprint != before


def test_dask_workers_use_the_key_log_of_the_callers_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were started without it, and in another folder: rows and the engine's reason are those of a local run."""
    from dask.distributed import LocalCluster

    monkeypatch.delenv("SSLKEYLOGFILE", raising=False)
    sources = listed([str(without_secrets(CLOSED, tmp_path))])
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as local:
        monkeypatch.chdir(CAPTURES)
        monkeypatch.setenv("SSLKEYLOGFILE", CLOSED.with_suffix(".keys").name)
        with cluster(local.scheduler_address) as client:
            (record,) = on_dask(Job(str(tmp_path / "dask"), TABLES, (), None), sources, client)
    assert (record.outcome, record.engine, record.engine_reason) == ("complete", "tshark", "SSLKEYLOGFILE names a key log")
    list(locally(Job(str(tmp_path / "local"), TABLES, (), None), sources, 1))
    assert content(tmp_path / "dask") == content(tmp_path / "local")


def test_dask_workers_may_be_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captures are named as the user sees them, from where the command runs."""
    from dask.distributed import LocalCluster

    (tmp_path / "here").mkdir()
    shutil.copy(SAMPLE, tmp_path / "here" / "x.pcapng")
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as local:
        monkeypatch.chdir(tmp_path / "here")
        with cluster(local.scheduler_address) as client:
            (record,) = on_dask(job_of(tmp_path / "ds"), listed(["x.pcapng"]), client)
    assert (record.source, record.outcome) == ("x.pcapng", "complete")


def test_a_cluster_without_workers_is_one_line_and_what_they_did_stays(tmp_path: Path) -> None:
    """The last worker is gone for good: the run does not wait for ever, and the next one does the rest."""
    from dask.distributed import LocalCluster

    for number in range(2):
        shutil.copy(SAMPLE, tmp_path / f"{number}.pcapng")
    job, sources = job_of(tmp_path / "ds"), listed([str(tmp_path)])
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as local,
        cluster(local.scheduler_address) as client,
        dask.config.set({"distributed.scheduler.no-workers-timeout": "1s"}),
    ):
        (first,) = on_dask(job, sources[:1], client)
        local.scale(0)
        begin_s = time.monotonic()
        with pytest.raises(ToolMissing, match="no worker for 1 s") as told:
            list(on_dask(job, sources, client))
        assert time.monotonic() - begin_s < 20
    assert str(told.value).count("\n") == 0
    assert [done(job, source) for source in sources] == [first, None]


@pytest.mark.parametrize(("raised", "expected"), [(RuntimeError("scheduler\ngone"), ToolMissing), (OutputError("full"), OutputError)])
def test_errors_of_dask_are_one_line_and_ours_stay(raised: Exception, expected: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask's errors have no class in common."""
    import dask.distributed

    class Client:
        def submit(self, *_: Any, **__: Any) -> None:
            """Take work and do nothing."""

        def ncores(self) -> dict[str, int]:
            """Return the cores of one worker."""
            return {"worker": 1}

    def failing(_: Any) -> Any:
        raise raised

    monkeypatch.setattr(dask.distributed, "as_completed", failing)
    with pytest.raises(expected) as told:
        list(on_dask(Job("ds", (), (), None), [], Client()))
    assert str(told.value).count("\n") == 0


def test_records_are_json_that_says_what_was_done(tmp_path: Path) -> None:
    """A record holds the fields of Record, and the size of each file."""
    run("batch", SAMPLE, "-O", tmp_path / "ds", "--engine", "native")
    (path,) = (tmp_path / "ds" / "_records").iterdir()
    record = Record(**json.loads(path.read_text()))
    assert {name: len(data) for name, data in content(tmp_path / "ds").items()} == record.files
    assert rows_of(tmp_path / "ds")[SAMPLE.name]["sha256"] == record.sha256


def test_captures_that_were_measured_with_other_options_are_told(tmp_path: Path) -> None:
    """A dataset whose figures are of two kinds is not made in silence; the same options, or all captures named again, are no matter."""
    words = ("-O", tmp_path / "ds", "--engine", "native")
    runs = [
        run("batch", SAMPLE, *words, "--stop-after", "5"),
        run("batch", OTHER, *words),
        run("batch", SAMPLE, OTHER, *words),
        run("batch", OTHER, *words),
    ]
    assert [done.returncode for done in runs] == [0] * 4
    one = "1 of its other captures was measured with other options (name this one too, to measure it again)"
    assert [one in done.stderr for done in runs] == [False, True, False, False]
    both = run("batch", CAPTURES / "a-hivemq-qos0.pcapng", *words, "--stop-after", "5")
    assert "2 of its other captures were measured with other options (name these too, to measure them again)" in both.stderr
