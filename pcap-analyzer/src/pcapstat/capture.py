"""A capture as tables and figures: what the command line does, in the same words."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pcapstat import _native
from pcapstat.errors import UnreadableCapture, UsageError
from pcapstat.metrics.sessions import Choices, Summary, summarize

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Table:
    """A table of a capture. Offers Arrow's PyCapsule interface, so that pyarrow, polars, DuckDB and pandas take it without a copy.

    Each use makes a pass over the capture; rows come in batches and memory stays bounded.
    """

    name: str
    reader: _native.Reader

    def stream(self) -> _native.ArrowStream:
        """Begin a pass. Raises UnreadableCapture where nothing can be read."""
        try:
            return self.reader.table(self.name)
        except _native.NativeError as error:
            raise UnreadableCapture(str(error)) from None

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

    @cached_property
    def _reader(self) -> _native.Reader:
        try:
            return _native.Reader(list(self.paths), **self.options)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def table(self, name: str) -> Table:
        """Return a table by its name in `pcapstat schema`."""
        return Table(name, self._reader)

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
            raise UnreadableCapture(str(error)) from None

    def summary(self, choices: Choices | None = None) -> Summary:
        """Return the figures of all sessions, as metrics.md of the docs defines them."""
        return summarize(self.sums(), choices or Choices())


def open(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    decode_as: Sequence[str] = (),
    stop_after: int | None = None,
    payload_size: int | None = None,
    mqtt_version: int | None = None,
    show_payload: bool = False,
    show_secrets: bool = False,
) -> Capture:
    """Open a capture: a path, or several that belong together; "-" is standard input. Nothing is read yet."""
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    options = {
        "decode_as": list(decode_as),
        "stop_after": stop_after,
        "payload_size": payload_size,
        "mqtt_version": mqtt_version,
        "show_payload": show_payload,
        "show_secrets": show_secrets,
    }
    return Capture(tuple(os.fspath(path) for path in several), options)
