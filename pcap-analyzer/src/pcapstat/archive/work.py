"""The work on one capture: its tables written whole or not at all, and a record of it."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pcapstat.archive.sources import Source
from pcapstat.engines import Choice
from pcapstat.errors import PcapstatError, ToolMissing

if TYPE_CHECKING:
    import pyarrow as pa

    from pcapstat import _native
    from pcapstat.capture import Capture

OUTCOMES = ("complete", "damaged", "failed")
"""Of a capture, the best first."""
RECORDS = "_records"
"""Folder of the records: a JSON file a capture. Readers of Parquet pass over names with an underscore."""


LAYOUT = 4
"""Number of the way in which captures are written; one that was written in another way is done again."""
QUICKLY_PACKED: dict[str, Any] = {"compression": "snappy", "use_dictionary": False}
SMALL = 10_000
"""A capture of no more messages is packed quickly: to begin each of its many columns costs zstd and dictionaries more than its rows do."""


@dataclass(frozen=True)
class Job:
    """What is to be done for every capture."""

    dataset: str
    tables: tuple[str, ...]
    options: tuple[tuple[str, Any], ...]
    labels: str | None
    split_bytes: int = 0
    """Captures larger than this are shared among workers; 0 for none. Rows do not depend on it."""

    def check(self) -> None:
        """Raise UsageError where no capture could be measured by these options: before any is touched."""
        from pcapstat.archive.labelling import check_names
        from pcapstat.capture import open as open_capture
        from pcapstat.engines.tshark import key_log
        from pcapstat.labels import compiled

        capture = open_capture("-", **dict(self.options))
        if capture.wanted_engine != "native":
            for path in capture.secrets.keylog:
                key_log(path)
        if self.labels is not None:
            check_names(f"--labels {self.labels}", compiled(self.labels).groupindex)

    def fingerprint(self) -> str:
        """Return what tells this job from one with other options."""
        return hashlib.sha256(json.dumps([LAYOUT, self.tables, self.options, self.labels], default=str).encode()).hexdigest()


@dataclass(frozen=True)
class Record:
    """What became of a capture: complete, damaged (figures of what is there), or failed; by which engine, and why by that."""

    source: str
    stamp: str
    sha256: str
    job: str
    outcome: str
    error: str
    engine: str
    engine_reason: str
    lacks_tool: bool
    """Whether it is so for want of a program: it failed, or tshark would have opened what is encrypted in it."""
    labels: Mapping[str, str]
    labels_sha256: str
    """Of the file of labels beside it; empty where there is none."""
    files: Mapping[str, int]
    """Bytes of each file of the dataset that holds the capture: after a loss of power a file may be there and not whole."""


def identity(source: Source) -> str:
    """Return the name of a capture's partition."""
    return hashlib.sha256(source.name.encode()).hexdigest()[:16]


def record_path(job: Job, source: Source) -> Path:
    """Return where a capture's record is."""
    return Path(job.dataset) / RECORDS / f"{identity(source)}.json"


def done(job: Job, source: Source) -> Record | None:
    """Return the record of a capture that is as it says, with all its files there; none where it is to be measured."""
    try:
        told = json.loads(record_path(job, source).read_text())
    except (OSError, ValueError):
        return None
    if told.get("job") != job.fingerprint():
        return None
    record = Record(**told)
    are_whole = all(has_bytes(Path(job.dataset) / name, size) for name, size in record.files.items())
    return record if are_whole and not is_worth_another(record) and is_unchanged(record, source) else None


def is_worth_another(record: Record) -> bool:
    """Whether it may go better now: what failed for want of a tool is tried again, what was read without tshark once that is there."""
    from pcapstat.capture import missing

    return record.lacks_tool and (record.outcome == "failed" or missing() is None)


def is_unchanged(record: Record, source: Source) -> bool:
    """Whether a capture and its file of labels are what they were when it was measured. Where the stamp differs its content decides."""
    if record.labels_sha256 != digest_of_labels(source):
        return False
    if record.stamp and record.stamp == source.stamp():
        return True
    with tempfile.TemporaryDirectory(prefix="pcapstat-") as folder:
        try:
            return bool(record.sha256 == digest(source.fetch(Path(folder))))
        except (OSError, PcapstatError):
            return False


def has_bytes(path: Path, size: int) -> bool:
    """Whether a file is there and as large as it was written."""
    return path.is_file() and path.stat().st_size == size


def digest(path: Path) -> str:
    """Return the hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_labels(source: Source) -> str:
    """Return the hash of the file of labels beside a capture; empty where there is none, or none that can be read."""
    from pcapstat.archive.labelling import file_beside

    file = file_beside(Path(source.container)) if source.is_file else None
    try:
        return "" if file is None else digest(file)
    except OSError:
        return ""


@dataclass(frozen=True)
class Share:
    """A part of the work on a capture: of messages and exchanges the rows of every `count`-th session; the first has all else."""

    index: int = 0
    count: int = 1


ALL = Share()
SHARED = ("messages", "exchanges")


@dataclass(frozen=True)
class Part:
    """What became of a share; fields as in Record."""

    sha256: str
    outcome: str
    error: str
    engine: str
    engine_reason: str
    lacks_tool: bool
    labels: Mapping[str, str]
    files: tuple[str, ...]


def process(job: Job, source: Source) -> Record:
    """Measure one capture and write its partitions. Whatever is wrong with it is told by its record: nothing is raised for it."""
    return finish(job, source, [measure(job, source, ALL)])


def measure(job: Job, source: Source, share: Share) -> Part:
    """Write a share of a capture's tables."""
    if source.is_file:
        return measured(job, source, share, Path())
    with tempfile.TemporaryDirectory(prefix="pcapstat-") as folder:
        return measured(job, source, share, Path(folder))


def finish(job: Job, source: Source, parts: Sequence[Part]) -> Record:
    """Write the row of a capture and, last, its record; what another run left of it and this one did not write goes."""
    worst = max(parts, key=lambda part: OUTCOMES.index(part.outcome))
    first = parts[0]
    files = [name for part in parts for name in part.files]
    told = {"sha256": first.sha256, "outcome": worst.outcome, "error": worst.error}
    told |= {"engine": first.engine, "engine_reason": first.engine_reason}
    files.append(capture_row(job, source, told, first.labels))
    sizes = {name: (Path(job.dataset) / name).stat().st_size for name in files}
    for path in Path(job.dataset).glob(f"*/capture={identity(source)}/part*.parquet"):
        if str(path.relative_to(job.dataset)) not in sizes:
            path.unlink()
    lacks_tool = any(part.lacks_tool for part in parts)
    record = Record(
        source=source.name,
        stamp=source.stamp(),
        job=job.fingerprint(),
        **told,
        lacks_tool=lacks_tool,
        labels=first.labels,
        labels_sha256=digest_of_labels(source),
        files=sizes,
    )
    whole(record_path(job, source), lambda file: file.write(json.dumps(asdict(record), indent=1, sort_keys=True).encode()))
    return record


def measured(job: Job, source: Source, share: Share, folder: Path) -> Part:
    """Write a share of a capture's tables, and tell what went wrong."""
    from pcapstat.archive.labelling import commented, labels_of
    from pcapstat.capture import open as open_capture

    labels: dict[str, str] = {}
    files: list[str] = []
    sha256, outcome, error, lacks_tool = "", "complete", "", False
    engine = Choice("", "")
    try:
        path = source.fetch(folder)
        sha256 = digest(path)
        labels = labels_of(source, path, job.labels)
        capture = open_capture(path, name=source.name, **dict(job.options))
        engine, lacks_tool = capture.engine, is_makeshift(capture)
        sums = capture.sums()
        labels = commented(sums.captures) | labels
        written(job, source, share, capture, sums, labels, files)
        if capture.damage:
            outcome, error = "damaged", "; ".join(capture.damage)
    except (PcapstatError, OSError, EOFError) as failure:
        outcome, error, lacks_tool = "failed", str(failure), isinstance(failure, ToolMissing)
    except Exception as failure:
        # one capture never stops the others; what happened is told
        outcome, error = "failed", f"{type(failure).__name__}: {failure}"
    return Part(sha256, outcome, error, engine.name, engine.reason, lacks_tool, labels, tuple(files))


def is_makeshift(capture: Capture) -> bool:
    """Whether the native engine reads a capture only because tshark is not there."""
    from pcapstat.engines import choose

    return capture.engine.name == "native" and choose(capture.wanted_engine, capture.paths, capture.secrets, capture.words).name == "tshark"


def written(
    job: Job, source: Source, share: Share, capture: Capture, sums: _native.Sums, labels: Mapping[str, str], files: list[str]
) -> None:
    """Write the tables: those of sums from their one pass, each other from a pass of its own."""
    import pyarrow as pa

    from pcapstat.archive.sums import SUMMED, batches, schema
    from pcapstat.capture import stopping

    is_small = sums.messages <= SMALL
    for table in job.tables:
        if share.index and table not in SHARED:
            continue
        if table in SUMMED:
            files.append(partition(job, source, table, rows_of(source, labels, schema(table), batches(sums, table), is_small)))
            continue
        part = share if table in SHARED else ALL
        stream = capture.table(table, (part.index, part.count) if part.count > 1 else None).stream()
        reader = pa.RecordBatchReader.from_stream(stream)
        with stopping(stream):
            files.append(partition(job, source, table, rows_of(source, labels, reader.schema, reader, is_small), part))


def rows_of(
    source: Source, labels: Mapping[str, str], measured: pa.Schema, batches: Iterable[pa.RecordBatch], is_small: bool
) -> Callable[[IO[bytes]], None]:
    """Return what writes rows with source and labels behind their own columns.

    `file` is left out: it names a temporary copy. A column that has a label's name, in whatever case, is kept as NAME_measured.
    """
    import pyarrow as pa

    from pcapstat.formats.arrow import write_packed

    kept = [name for name in measured.names if name != "file"]
    taken = {name.lower() for name in labels}
    fields = [measured.field(name).with_name(f"{name}_measured" if name in taken else name) for name in kept]
    schema = pa.schema([*fields, *(pa.field(name, pa.string()) for name in ("source", *labels))])

    def labelled(batch: pa.RecordBatch) -> pa.RecordBatch:
        extra = [pa.array([value] * len(batch), pa.string()) for value in (source.name, *labels.values())]
        return pa.RecordBatch.from_arrays([*(batch.column(name) for name in kept), *extra], schema=schema)

    return lambda file: write_packed(schema, map(labelled, batches), file, QUICKLY_PACKED if is_small else None)


def capture_row(job: Job, source: Source, told: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Write the capture's own row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = {"source": source.name, **told, **labels}
    table = pa.table({name: pa.array([value], pa.string()) for name, value in row.items()})
    return partition(job, source, "captures", lambda file: pq.write_table(table, file, **QUICKLY_PACKED))


def partition(job: Job, source: Source, table: str, write: Callable[[IO[bytes]], Any], share: Share = ALL) -> str:
    """Write a capture's part of a table. Returns its path in the dataset."""
    number = f"-{share.index}-of-{share.count}" if share.count > 1 else ""
    name = f"{table}/capture={identity(source)}/part{number}.parquet"
    whole(Path(job.dataset) / name, write)
    return name


def whole(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Write a file that is there whole or not at all, whenever the process ends. It is not forced to the disk: records tell sizes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=path.parent, prefix="_part-")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
