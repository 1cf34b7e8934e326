"""A capture as tables and figures: what the command line does, in the same words."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pcapstat import _native
from pcapstat.engines import ENGINES, Choice, Secrets, Tshark, choose, environment_key_log
from pcapstat.errors import PcapstatError, ToolMissing, UnreadableCapture, UsageError
from pcapstat.metrics.sessions import Choices, Summary, summarize
from pcapstat.schema import tables

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from pcapstat.engines.tshark import Run

Damage = Callable[[], list[str]]
"""Tells what damaged the capture, one line each; complete once the pass that it is about has ended."""


def stopped(error: _native.NativeError) -> PcapstatError:
    """Return the core's error as one for the user."""
    return ToolMissing(str(error)) if error.kind == "tool" else UnreadableCapture(str(error))


def utf8(path: str | os.PathLike[str], name: str | None) -> str:
    """Return a path as the core takes it, whatever encoding the locale has.

    Raises UnreadableCapture for bytes that are no UTF-8; `name` is what the error calls the path, where that is a copy.
    """
    try:
        return os.fsencode(path).decode()
    except UnicodeDecodeError:
        raise UnreadableCapture(f"{name or escaped(path)}: the name is no UTF-8 (rename the file)") from None


@contextlib.contextmanager
def stopping(stream: _native.ArrowStream) -> Iterator[None]:
    """Raise what ended a pass early as an error for the user."""
    try:
        yield
    except Exception:
        if stream.failure is None:
            raise
        raise stopped(stream.failure) from None


def missing() -> ToolMissing | None:
    """Why tshark cannot be used; none where it can."""
    from pcapstat import wireshark

    try:
        wireshark.version(wireshark.find())
    except ToolMissing as error:
        return error
    return None


@dataclass(frozen=True)
class Table:
    """A table of a capture. Offers Arrow's PyCapsule interface, so that pyarrow, polars, DuckDB and pandas take it without a copy.

    Each use makes a pass over the capture; rows come in batches and memory stays bounded.
    """

    name: str
    reader: _native.Reader
    run: Run | None = None
    """What tshark needs while it works; kept so that it outlives the pass."""
    damage: list[Damage] = field(default_factory=list, repr=False, compare=False)
    """Where passes tell what damaged the capture."""

    def stream(self, wants_notes: bool = False) -> _native.ArrowStream:
        """Begin a pass. Where notes are wanted it knows of any at its end. Raises UnreadableCapture where nothing is read."""
        return begun(self.reader, [self.name], self.damage, wants_notes)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Make a pass and return its rows in batches. Raises UnreadableCapture, and ToolMissing where tshark fails."""
        import pyarrow as pa

        stream = self.stream()
        with stopping(stream):
            yield from pa.RecordBatchReader.from_stream(stream)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Make a pass and return its rows one by one. Raises as `batches` does."""
        for batch in self.batches():
            yield from batch.to_pylist()

    def to_arrow(self) -> pa.Table:
        """Make a pass and return the table as a whole. Raises as `batches` does."""
        import pyarrow as pa

        stream = self.stream()
        with stopping(stream):
            return pa.table(stream)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's C stream in a PyCapsule."""
        return self.stream().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame. Raises as `batches` does."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame


def begun(reader: _native.Reader, names: Sequence[str], damage: list[Damage], wants_notes: bool = False) -> _native.ArrowStream:
    """Begin a pass that fills tables; what damaged the capture is added to `damage`. Raises UnreadableCapture where nothing is read."""
    try:
        stream = reader.tables(names, wants_notes)
    except _native.NativeError as error:
        raise stopped(error) from None
    damage.append(lambda: stream.damage)
    return stream


@dataclass(frozen=True)
class Capture:
    """One capture, in one file or several. Tables and figures are made when asked for. It can be pickled: what was made stays behind."""

    paths: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    wanted_engine: str = "auto"
    secrets: Secrets = field(default_factory=Secrets)
    words: Tshark = field(default_factory=Tshark)
    name: str | None = None
    """What rows and errors call the only path, where that is a copy of what the user named."""

    def __getstate__(self) -> dict[str, Any]:
        """Return what the user chose: readers and passes belong to this process."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def engine(self) -> Choice:
        """The engine that reads the capture, and why."""
        choice = choose(self.wanted_engine, self.paths, self.secrets, self.words)
        is_unasked = self.wanted_engine == "auto" and not (self.secrets or self.words)
        error = missing() if choice.name == "tshark" and is_unasked else None
        return Choice("native", f"{choice.reason}, but {error}") if error else choice

    @cached_property
    def _run(self) -> Run | None:
        if self.engine.name != "tshark":
            return None
        from pcapstat.engines.tshark import Run

        return Run(self.paths, self.options.get("decode_as", ()), self.secrets, self.words)

    @cached_property
    def _damage(self) -> list[Damage]:
        return []

    @property
    def damage(self) -> list[str]:
        """What ended the reading of a file early, one line each, as far as the passes that were made have shown it."""
        return list(dict.fromkeys(line for told in self._damage for line in told()))

    @property
    def has_notes(self) -> bool:
        """Whether there is anything that the capture does not show. Makes a pass."""
        return any(batch.num_rows for batch in self.notes.batches())

    @cached_property
    def _reader(self) -> _native.Reader:
        return self._make_reader(None)

    def _make_reader(self, share: tuple[int, int] | None) -> _native.Reader:
        run = self._run
        try:
            if run is None:
                return _native.Reader(list(self.paths), **self.options, name=self.name, share=share)
            is_filtered = self.words.display_filter is not None
            paths, name = [run.path, *run.unreadable], self.name or run.name
            return _native.Reader(paths, **self.options, tshark=run.command, is_filtered=is_filtered, name=name, share=share)
        except ValueError as error:
            raise UsageError(str(error)) from None

    @property
    def frame(self) -> int:
        """Number of the frame that the pass under way has come to; to be asked from another thread."""
        return self._reader.frame

    def table(self, name: str, share: tuple[int, int] | None = None) -> Table:
        """Return a table by its name in `pcapstat schema`.

        `share` (index, count) leaves of messages and exchanges only the rows of every `count`-th session, from that one on: all indices
        together, each in a process of its own, are the whole table. Raises UsageError for a table that there is not.
        """
        check_tables([name])
        return Table(name, self._reader if share is None else self._make_reader(share), self._run, self._damage)

    def batches(self, names: Sequence[str], share: tuple[int, int] | None = None) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Make one pass that fills several tables; return their rows in batches as they come, each with its table's name.

        Of each table there is a batch, which may be empty; those of sums come last. `share` as for `table`. Raises UsageError for a table
        that there is not, and as `Table.batches` does.
        """
        import pyarrow as pa

        check_tables(names)
        stream = begun(self._reader if share is None else self._make_reader(share), names, self._damage)
        with stopping(stream):
            for name, batch in stream:
                yield name, pa.record_batch(batch)

    @property
    def messages(self) -> Table:
        """One row a message."""
        return self.table("messages")

    @property
    def exchanges(self) -> Table:
        """One row an exchange."""
        return self.table("exchanges")

    @property
    def sessions(self) -> Table:
        """One row a session, as sums."""
        return self.table("sessions")

    @property
    def notes(self) -> Table:
        """What the capture does not show."""
        return self.table("notes")

    def files(self) -> list[dict[str, Any]]:
        """Return the rows of the table captures, by a reading that looks into no frame. Raises UnreadableCapture where there is none."""
        try:
            return self._reader.captures()
        except _native.NativeError as error:
            raise stopped(error) from None

    def sums(self) -> _native.Sums:
        """One pass; all sums. Raises UnreadableCapture where nothing can be read."""
        try:
            sums = self._reader.sums()
        except _native.NativeError as error:
            raise stopped(error) from None
        lines = [told["damage"] for told in sums.captures if told["damage"]]
        self._damage.append(lambda: lines)
        return sums

    def summary(self, choices: Choices | None = None) -> Summary:
        """Return the figures of all sessions, as metrics.md of the docs defines them."""
        sums = self.sums()
        holds_secrets = any(row["secrets"] for row in sums.captures)
        return summarize(sums, choices or Choices(), self.engine.after(holds_secrets, self._run.version if self._run else None))


def open(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    decode_as: Sequence[str] = (),
    stop_after: int | None = None,
    payload_size: int | None = None,
    receiver: str | None = None,
    mqtt_version: int | None = None,
    frame_length: int | None = None,
    frame_delimiter: bytes | None = None,
    show_payload: bool = False,
    show_secrets: bool = False,
    engine: str = "auto",
    keylog: Sequence[str] = (),
    psk: Sequence[str] = (),
    rsa_key: Sequence[str] = (),
    oscore: Sequence[str] = (),
    tshark: Tshark | None = None,
    name: str | None = None,
) -> Capture:
    """Open a capture: a path, or several that belong together; "-" is standard input. Nothing is read yet.

    `decode_as` are rules such as "udp.port==5700,coap"; `stop_after` ends each session at its N-th data message; `payload_size` is that of
    the data messages in encrypted records, in bytes; `receiver` is "client" or "server"; `mqtt_version` (3, 4 for 3.1.1, 5) is for
    connections whose CONNECT was not captured; `frame_length` in bytes or `frame_delimiter` tell messages in unknown TCP streams apart.
    `engine` is "native", "tshark" or "auto"; secrets open what is encrypted, by tshark: NSS key log files, pre-shared keys in hexadecimal,
    RSA key files (PEM), OSCORE contexts ("sender-id=01 recipient-id=02 secret=0102… salt=…"). `name` is what rows and errors call a path
    that is a copy. Raises UsageError where one of these cannot be, or where the native
    engine is to use secrets; UnreadableCapture where a name is no UTF-8.
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(several, Sequence) or not all(isinstance(path, str | os.PathLike) for path in several):
        raise UsageError(f"{paths!r}: no path, and no list of paths")
    options = {
        "decode_as": list(decode_as),
        "stop_after": stop_after,
        "payload_size": payload_size,
        "receiver": receiver,
        "mqtt_version": mqtt_version,
        "frame_length": frame_length,
        "frame_delimiter": frame_delimiter,
        "show_payload": show_payload,
        "show_secrets": show_secrets,
    }
    lists = {"decode_as": decode_as, "keylog": keylog, "psk": psk, "rsa_key": rsa_key, "oscore": oscore}
    check(engine, options, lists)
    secrets = Secrets(tuple(keylog), tuple(psk), tuple(rsa_key), tuple(oscore), environment_key_log())
    words = tshark or Tshark()
    if engine == "native" and (secrets or words):
        raise UsageError("--engine native: secrets, -o, -Y, -X and --profile are for tshark (leave --engine native out)")
    return Capture(readable(several, name), options, engine, secrets, words, name)


def check_tables(names: Iterable[str]) -> None:
    """Raise UsageError for a table that there is not."""
    for name in names:
        if name not in tables():
            raise UsageError(f"no table {name} (there are: {', '.join(tables())})")


RANGES = {"stop_after": range(1, 2**64), "payload_size": range(2**32), "frame_length": range(1, 2**64)}
"""Options that are whole numbers, and what the core takes."""
ONE_OF: dict[str, tuple[Any, ...]] = {"mqtt_version": (3, 4, 5), "receiver": ("client", "server")}
"""Options that are one of a few; versions as CONNECT has them (MQTT 5 §3.1.2.2, MQTT 3.1.1 §3.1.2.2)."""


def check(engine: str, options: dict[str, Any], lists: dict[str, Sequence[str]]) -> None:
    """Raise UsageError where an option cannot be what it is."""
    if engine not in ENGINES:
        raise UsageError(f"engine {engine!r}: no engine (there are: {', '.join(ENGINES)})")
    for name, numbers in RANGES.items():
        value = options[name]
        if value is not None and not (isinstance(value, int) and value in numbers):
            raise UsageError(f"{name} {value!r}: no whole number from {numbers.start} to {numbers.stop - 1}")
    for name, values in ONE_OF.items():
        if options[name] not in (None, *values):
            raise UsageError(f"{name} {options[name]!r}: none of {', '.join(map(str, values))}")
    for name, words in lists.items():
        if isinstance(words, str | bytes) or not isinstance(words, Iterable):
            raise UsageError(f"{name} {words!r}: no list of texts (write [{str(words)!r}])")
    try:
        _native.Reader([], **options)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from None


def readable(paths: Sequence[str | os.PathLike[str]], name: str | None) -> tuple[str, ...]:
    """Return paths as text. Raises UsageError where there is none, UnreadableCapture where one is no UTF-8."""
    names = tuple(utf8(path, name) for path in paths)
    if not names:
        raise UsageError("no capture (name a path, or several)")
    return names


def escaped(path: str | os.PathLike[str]) -> str:
    r"""Return a path with those bytes written as \xNN that are not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
