"""Labels of a capture in an archive: from its comments, its path, and a file beside it, the later before the earlier."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pcapstat.archive.sources import Source
from pcapstat.errors import UsageError
from pcapstat.labels import of_path, stem_of

PAIR = re.compile(r"([A-Za-z]\w*)=(.*)")
RESERVED = ("source", "capture", "sha256", "outcome", "error", "engine", "engine_reason")
"""Columns of a dataset that no label can be, in no case: SQL knows no difference."""


def commented(captures: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the labels in a capture's pcapng comments: of comments that are nothing but key=value pairs; the first of a key counts.

    Values with spaces stand in quotes, as in a shell. Comments of the section come first in a file, before those of packets.
    """
    lines = [line for capture in captures for line in (capture["comments"] or "").splitlines()]
    pairs = [pair for line in lines for pair in pairs_of(line)]
    return {name: value for name, value in reversed(pairs) if name.lower() not in RESERVED}


def pairs_of(line: str) -> list[tuple[str, str]]:
    """Return the pairs of a comment; none where it holds anything else."""
    try:
        found = [PAIR.fullmatch(word) for word in shlex.split(line)]
    except ValueError:
        return []
    pairs = [(match[1], match[2]) for match in found if match]
    return pairs if len(pairs) == len(found) else []


def labels_of(source: Source, path: Path, pattern: str | None) -> dict[str, str]:
    """Return labels: those of the pattern, where one is given, then those of a file beside the capture (NAME.labels.yaml), which win."""
    labels = of_path(source.name, pattern) if pattern else {}
    labels |= beside(path) if source.member is None else {}
    check_names(source.name, labels)
    return labels


def check_names(where: str, labels: Iterable[str]) -> None:
    """Raise UsageError where a label has a name of the dataset's own, which it would hide."""
    taken = [name for name in labels if name.lower() in RESERVED]
    if taken:
        raise UsageError(f"{where}: label {taken[0]} has a name of the dataset's own (choose another)")


def beside(path: Path) -> dict[str, str]:
    """Return the labels in a file beside the capture: its key `labels`, or all its scalars."""
    file = file_beside(path)
    return {} if file is None else scalars(file)


def file_beside(path: Path) -> Path | None:
    """Return the file of labels beside a capture, where there is one."""
    stem = stem_of(path.name)
    files = (path.with_name(stem + suffix) for suffix in (".labels.json", ".labels.yaml", ".labels.yml"))
    return next((file for file in files if file.is_file()), None)


def scalars(file: Path) -> dict[str, str]:
    """Read a file of labels. Raises UsageError where it cannot be read."""
    import yaml

    try:
        told = json.loads(file.read_bytes()) if file.suffix == ".json" else yaml.safe_load(file.read_bytes())
    except (ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{file}: {' '.join(str(error).split())} (check the file of labels)") from None
    if not isinstance(told, dict):
        raise UsageError(f"{file}: no names with values (write for example qos: 1)")
    return {str(name): str(value) for name, value in told.items() if isinstance(value, str | int | float | bool)}
