"""A capture as tables and figures: what the command line does, in the same words."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pcapstat import _native
from pcapstat.engines import Choice, Secrets, Tshark, choose
from pcapstat.errors import PcapstatError, ToolMissing, UnreadableCapture, UsageError
from pcapstat.metrics.sessions import Choices, Summary, summarize

if TYPE_CHECKING:
    import pandas as pd

    from pcapstat.engines.tshark import Run


def stopped(error: _native.NativeError) -> PcapstatError:
    """Return the core's error as one for the user."""
    return ToolMissing(str(error)) if error.kind == "tool" else UnreadableCapture(str(error))


def utf8(path: str | os.PathLike[str]) -> str:
    """Return a path as the core takes it, whatever encoding the locale has. Raises UnreadableCapture for bytes that are no UTF-8."""
    name = os.fsencode(path)
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise UnreadableCapture(f"{name.decode(errors='backslashreplace')}: the name is no UTF-8 (rename the file)") from None


def is_there() -> bool:
    """Whether tshark can be used."""
    from pcapstat import wireshark

    try:
        wireshark.version(wireshark.find())
    except ToolMissing:
        return False
    return True


@dataclass(frozen=True)
class Table:
    """A table of a capture. Offers Arrow's PyCapsule interface, so that pyarrow, polars, DuckDB and pandas take it without a copy.

    Each use makes a pass over the capture; rows come in batches and memory stays bounded.
    """

    name: str
    reader: _native.Reader
    run: Run | None = None
    """What tshark needs while it works; kept so that it outlives the pass."""

    def stream(self) -> _native.ArrowStream:
        """Begin a pass. Raises UnreadableCapture where nothing can be read."""
        try:
            return self.reader.table(self.name)
        except _native.NativeError as error:
            raise stopped(error) from None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's C stream in a PyCapsule."""
        return self.stream().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame."""
        import pyarrow as pa

        frame: pd.DataFrame = pa.table(self).to_pandas()
        return frame


@dataclass(frozen=True)
class Capture:
    """One capture, in one file or several. Tables and figures are made when asked for."""

    paths: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    wanted_engine: str = "auto"
    secrets: Secrets = field(default_factory=Secrets)
    words: Tshark = field(default_factory=Tshark)

    @cached_property
    def engine(self) -> Choice:
        """The engine that reads the capture, and why."""
        choice = choose(self.wanted_engine, self.paths, self.secrets, self.words)
        if choice.name == "tshark" and self.wanted_engine == "auto" and not (self.secrets or self.words):
            return choice if is_there() else Choice("native", f"{choice.reason}, but tshark is not there to open what they protect")
        return choice

    @cached_property
    def _run(self) -> Run | None:
        if self.engine.name != "tshark":
            return None
        from pcapstat.engines.tshark import Run

        return Run(self.paths, self.options.get("decode_as", ()), self.secrets, self.words)

    @cached_property
    def _reader(self) -> _native.Reader:
        return self._make_reader(None)

    def _make_reader(self, share: tuple[int, int] | None) -> _native.Reader:
        run = self._run
        try:
            if run is None:
                return _native.Reader(list(self.paths), **self.options, share=share)
            is_filtered = self.words.display_filter is not None
            return _native.Reader([run.path], **self.options, tshark=run.command, is_filtered=is_filtered, name=run.name, share=share)
        except ValueError as error:
            raise UsageError(str(error)) from None

    @property
    def frame(self) -> int:
        """Number of the frame that the pass under way has come to; to be asked from another thread."""
        return self._reader.frame

    def table(self, name: str, share: tuple[int, int] | None = None) -> Table:
        """Return a table by its name in `pcapstat schema`.

        `share` (index, count) leaves of messages and exchanges only the rows of every `count`-th session, from that one on: all indices
        together, each in a process of its own, are the whole table.
        """
        return Table(name, self._reader if share is None else self._make_reader(share), self._run)

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

    def sums(self) -> _native.Sums:
        """One pass; all sums. Raises UnreadableCapture where nothing can be read."""
        try:
            return self._reader.sums()
        except _native.NativeError as error:
            raise stopped(error) from None

    def summary(self, choices: Choices | None = None) -> Summary:
        """Return the figures of all sessions, as metrics.md of the docs defines them."""
        return summarize(self.sums(), choices or Choices(), self.engine)


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
) -> Capture:
    """Open a capture: a path, or several that belong together; "-" is standard input. Nothing is read yet. Raises UnreadableCapture.

    `engine` is one of ENGINES; secrets open what is encrypted, by tshark: NSS key log files, pre-shared keys in hexadecimal, RSA key files
    (PEM), OSCORE contexts ("sender-id=01 recipient-id=02 secret=0102… salt=…").
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
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
    secrets = Secrets(tuple(keylog), tuple(psk), tuple(rsa_key), tuple(oscore))
    return Capture(tuple(map(utf8, several)), options, engine, secrets, tshark or Tshark())
