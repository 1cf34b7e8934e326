"""Writers of tables: `FORMATS` names each; all take an Arrow stream batch by batch, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any

from pcapstat.formats import arrow, text

Writer = Callable[[Any, IO[bytes], list[str]], None]

FORMATS: dict[str, Writer] = {
    "table": text.table,
    "json": text.json_array,
    "ndjson": text.ndjson,
    "csv": arrow.csv,
    "parquet": arrow.parquet,
    "markdown": text.markdown,
    "html": text.html,
}
"""Name of a format and what writes it: (table with `__arrow_c_stream__`, binary file, columns or [] for all)."""

SUFFIXES = {
    "": "table",
    ".txt": "table",
    ".json": "json",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".sarif": "sarif",
    ".xml": "junit",
}
"""Formats by the suffix of an output file; the last two are of violations, not of tables."""
