"""The work on one capture: its tables written whole or not at all, and a record of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcapstat.archive.folder import whole
from pcapstat.archive.sources import GONE, Source
from pcapstat.engines import Choice, environment_key_log
from pcapstat.errors import OutputError, PcapstatError, UnreadableCapture, UsageError, naming
from pcapstat.schema import tables

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pcapstat.capture import Capture

OUTCOMES = ("complete", "damaged", "failed")
"""Of a capture, the best first."""
RECORDS = "_records"
"""Folder of the records: a JSON file a capture. Readers of Parquet pass over names with an underscore."""


LAYOUT = 6
"""Number of the way in which captures are written; one that was written in another way is done again."""
QUICKLY_PACKED: dict[str, Any] = {"compression": "snappy", "use_dictionary": False}
SMALL = 10_000
"""A capture of no more frames is packed quickly: to begin each of its many columns costs zstd and dictionaries more than its rows do."""


@dataclass(frozen=True)
class Job:
    """What is to be done for every capture."""

    dataset: str
    tables: tuple[str, ...]
    options: tuple[tuple[str, Any], ...]
    labels: str | None
    split_bytes: int = 0
    """Captures larger than this are shared among workers; 0 for none. Rows do not depend on it."""
    environment: str = field(default_factory=environment_key_log)
    """The key log that SSLKEYLOGFILE names where the command runs: workers have environments of their own."""

    def opened(self, path: str | Path, name: str | None = None) -> Capture:
        """Open a capture by these options. Raises UsageError where one of them cannot be."""
        from pcapstat.capture import open as open_capture

        capture = open_capture(path, name=name, **dict(self.options))
        return replace(capture, secrets=capture.secrets._replace(environment=self.environment))

    def check(self) -> None:
        """Raise UsageError where no capture could be measured by these options: before any is touched."""
        from pcapstat.archive.labelling import check_names
        from pcapstat.engines.tshark import key_log
        from pcapstat.labels import compiled

        capture = self.opened("-")
        if capture.wanted_engine != "native":
            for path in capture.secrets.keylog:
                key_log(path)
        if self.labels is not None:
            check_names(f"--labels {self.labels}", compiled(self.labels).groupindex)
        # told to all workers as it is here
        _ = self.fingerprint

    @property
    def key_logs(self) -> list[str]:
        """The key logs that are used: those of the user, and that of the environment."""
        capture = self.opened("-")
        return [] if capture.wanted_engine == "native" else capture.secrets.key_logs

    @cached_property
    def fingerprint(self) -> str:
        """What tells this job from one with other options, other keys in the key logs, or tables of other columns."""
        columns = [(table.name, column.name, column.data_type) for table in tables().values() for column in table.columns]
        told = [LAYOUT, columns, self.tables, self.options, self.labels, [digest(Path(path)) for path in self.key_logs]]
        return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()


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
    is_passing: bool
    """Whether the same capture may go better: it failed for another reason than what is in it, or tshark would have opened more."""
    labels: Mapping[str, str]
    labels_sha256: str
    """Of the file of labels beside it; empty where there is none."""
    files: Mapping[str, int]
    """Bytes of each file of the dataset that holds the capture: after a loss of power a file may be there and not whole."""


def identity(source: Source) -> str:
    """Return the name of a capture's partition."""
    return hashlib.sha256(source.name.encode()).hexdigest()[:16]


def record_name(source: Source) -> str:
    """Return where in a dataset a capture's record is."""
    return f"{RECORDS}/{identity(source)}.json"


def recorded(path: Path) -> Record | None:
    """Return what a run has recorded; none where it is not there, or not whole, or of another layout."""
    try:
        return Record(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def done(job: Job, source: Source) -> Record | None:
    """Return the record of a capture that is as it says, with all its files there; none where it is to be measured."""
    record = recorded(Path(job.dataset) / record_name(source))
    if record is None or record.job != job.fingerprint or is_worth_another(record):
        return None
    are_whole = all(has_bytes(Path(job.dataset) / name, size) for name, size in record.files.items())
    return record if are_whole and is_unchanged(record, source) else None


def measured_otherwise(job: Job, sources: Iterable[Source]) -> int:
    """Return how many captures of the dataset beside these were measured with other options, so that their figures are of another kind."""
    ours = {record_name(source) for source in sources}
    others = (path for path in (Path(job.dataset) / RECORDS).glob("*.json") if f"{RECORDS}/{path.name}" not in ours)
    return sum(record is None or record.job != job.fingerprint for record in map(recorded, others))


def copies(records: Iterable[Record]) -> list[tuple[str, str]]:
    """Return the captures with figures whose content another one has, a link or a copy, each with the first such one by name."""
    firsts: dict[str, str] = {}
    told = sorted((record.source, record.sha256) for record in records if record.outcome != "failed")
    return [(source, firsts[sha256]) for source, sha256 in told if firsts.setdefault(sha256, source) != source]


def is_worth_another(record: Record) -> bool:
    """Whether it may go better now: what failed for no fault of its own is tried again, what was read without tshark once that is there."""
    from pcapstat.capture import missing

    return record.is_passing and (record.outcome == "failed" or missing() is None)


def is_unchanged(record: Record, source: Source) -> bool:
    """Whether a capture and its file of labels are what they were when it was measured. Where the stamp differs its content decides."""
    if record.labels_sha256 != digest_of_labels(source):
        return False
    is_same = record.stamp != GONE and record.stamp == source.stamp()
    return is_same or has_content(source, record.sha256)


def has_content(source: Source, sha256: str) -> bool:
    """Whether the content of a capture has this hash; not where it cannot be read."""
    with tempfile.TemporaryDirectory(prefix="pcapstat-") as folder:
        try:
            return sha256 == digest(source.fetch(Path(folder)))
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

    stamp: str
    sha256: str
    outcome: str
    error: str
    engine: str
    engine_reason: str
    is_passing: bool
    labels: Mapping[str, str]
    labels_sha256: str
    files: tuple[str, ...]


def process(job: Job, source: Source) -> Record:
    """Measure one capture and write its partitions. Whatever is wrong with it is told by its record. Raises OutputError."""
    return finish(job, source, [measure(job, source, ALL)])


def measure(job: Job, source: Source, share: Share) -> Part:
    """Write a share of a capture's tables."""
    if source.is_file:
        return measured(job, source, share, Path())
    with tempfile.TemporaryDirectory(prefix="pcapstat-") as folder:
        return measured(job, source, share, Path(folder))


def finish(job: Job, source: Source, parts: Sequence[Part]) -> Record:
    """Write the row of a capture and, last, its record; what another run left of it and this one did not write goes."""
    first = parts[0]
    worst = max(parts, key=lambda part: OUTCOMES.index(part.outcome))
    if worst.outcome == "complete" and has_changed(source, parts):
        worst = replace(worst, outcome="damaged", error=f"{source.name}: it changed while it was read (run the same command again)")
    files = [name for part in parts for name in part.files]
    told = {"sha256": first.sha256, "outcome": worst.outcome, "error": worst.error}
    told |= {"engine": first.engine, "engine_reason": first.engine_reason}
    files.append(capture_row(job, source, told, first.labels))
    sizes = {name: (Path(job.dataset) / name).stat().st_size for name in files}
    for path in Path(job.dataset).glob(f"*/capture={identity(source)}/part*.parquet"):
        if str(path.relative_to(job.dataset)) not in sizes:
            path.unlink()
    record = Record(
        source=source.name,
        # what was seen before it was read: a capture that has changed since is measured again by the next run
        stamp=first.stamp,
        job=job.fingerprint,
        **told,
        is_passing=any(part.is_passing for part in parts),
        labels=first.labels,
        labels_sha256=first.labels_sha256,
        files=sizes,
    )
    text = json.dumps(asdict(record), indent=1, sort_keys=True).encode()
    with whole(Path(job.dataset), record_name(source)) as file:
        file.write(text)
    return record


def has_changed(source: Source, parts: Sequence[Part]) -> bool:
    """Whether a capture was written to while it was read: its readings may then have seen different frames."""
    contents = {part.sha256 for part in parts}
    is_touched = {source.stamp(), *(part.stamp for part in parts)} - {GONE} != {parts[0].stamp} - {GONE}
    return len(contents) > 1 or (is_touched and not has_content(source, parts[0].sha256))


def measured(job: Job, source: Source, share: Share, folder: Path) -> Part:
    """Write a share of a capture's tables, and tell what went wrong with the capture. Raises OutputError."""
    from pcapstat.archive.labelling import commented, labels_of

    labels: dict[str, str] = {}
    files: list[str] = []
    sha256, outcome, error, is_passing = "", "complete", "", False
    engine = Choice("", "")
    # before anything is read: what changes afterwards is noticed
    stamp, labels_sha256 = source.stamp(), digest_of_labels(source)
    try:
        path = source.fetch(folder)
        sha256 = digest(path)
        labels = labels_of(source, path, job.labels)
        capture = job.opened(path, source.name)
        engine, is_passing = capture.engine, is_makeshift(capture)
        read = capture.files()
        labels = commented(read) | labels
        files = written(job, source, share, capture, labels, sum(file["frames"] for file in read) <= SMALL)
        if capture.damage:
            outcome, error = "damaged", "; ".join(capture.damage)
    except OutputError:
        # a full disk is no fault of the capture, and no other would fare better
        raise
    except Exception as failure:
        # one capture never stops the others; what happened is told
        outcome, error = "failed", told_of(failure)
        is_passing = not isinstance(failure, UnreadableCapture | UsageError)
    return Part(stamp, sha256, outcome, error, engine.name, engine.reason, is_passing, labels, labels_sha256, tuple(files))


def told_of(failure: Exception) -> str:
    """Tell what failed, in one line."""
    if isinstance(failure, PcapstatError):
        return str(failure)
    if isinstance(failure, OSError):
        return f"{failure.strerror or failure} (check the path and its permissions)"
    return f"{type(failure).__name__}: {failure}"


def is_makeshift(capture: Capture) -> bool:
    """Whether the native engine reads a capture only because tshark is not there."""
    from pcapstat.engines import choose

    return capture.engine.name == "native" and choose(capture.wanted_engine, capture.paths, capture.secrets, capture.words).name == "tshark"


def written(job: Job, source: Source, share: Share, capture: Capture, labels: Mapping[str, str], is_small: bool) -> list[str]:
    """Write a share of the tables, all from one pass. Returns their paths in the dataset."""
    names = {table: path_of(source, table, share) for table in job.tables if share.index == 0 or table in SHARED}
    writers: dict[str, pq.ParquetWriter] = {}
    with contextlib.ExitStack() as open_files:
        for table, measured in capture.batches(list(names), (share.index, share.count) if share.count > 1 else None):
            batch = labelled(measured, source, labels)
            with naming(Path(job.dataset) / names[table]):
                if table not in writers:
                    writers[table] = open_files.enter_context(writer(job, names[table], batch, is_small))
                if len(batch):
                    writers[table].write_batch(batch)
    return list(names.values())


@contextlib.contextmanager
def writer(job: Job, name: str, first: pa.RecordBatch, is_small: bool) -> Iterator[pq.ParquetWriter]:
    """Open a file of the dataset for batches like the first one, each of which becomes a row group."""
    import pyarrow.parquet as pq

    from pcapstat.formats.arrow import packing

    options = QUICKLY_PACKED if is_small else packing(first.schema, [first])
    with whole(Path(job.dataset), name) as file, pq.ParquetWriter(file, first.schema, **options) as opened:
        yield opened


def labelled(measured: pa.RecordBatch, source: Source, labels: Mapping[str, str]) -> pa.RecordBatch:
    """Return rows with source and labels behind their own columns.

    `file` is left out: it names a temporary copy. A column that has a label's name, in whatever case, is kept as NAME_measured.
    """
    import pyarrow as pa

    taken = {name.lower() for name in labels}
    told = {"source": source.name, **labels}
    kept = [field for field in measured.schema if field.name != "file"]
    fields = [field.with_name(f"{field.name}_measured" if field.name in taken else field.name) for field in kept]
    schema = pa.schema([*fields, *(pa.field(name, pa.string()) for name in told)])
    extra = [pa.array([value] * len(measured), pa.string()) for value in told.values()]
    return pa.RecordBatch.from_arrays([*(measured.column(field.name) for field in kept), *extra], schema=schema)


def capture_row(job: Job, source: Source, told: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Write the capture's own row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = {"source": source.name, **told, **labels}
    table = pa.table({name: pa.array([value], pa.string()) for name, value in row.items()})
    name = path_of(source, "captures", ALL)
    with whole(Path(job.dataset), name) as file:
        pq.write_table(table, file, **QUICKLY_PACKED)
    return name


def path_of(source: Source, table: str, share: Share) -> str:
    """Return where in a dataset a capture's part of a table is; what no other share has is no part."""
    number = f"-{share.index}-of-{share.count}" if share.count > 1 and table in SHARED else ""
    return f"{table}/capture={identity(source)}/part{number}.parquet"
