"""Labels of a capture in an archive: from its path, and from a file beside it."""

from __future__ import annotations

import json
from pathlib import Path

from pcapstat.archive.sources import Source
from pcapstat.errors import UsageError
from pcapstat.labels import of_path


def labels_of(source: Source, path: Path, pattern: str | None) -> dict[str, str]:
    """Return labels: those of the pattern, where one is given, then those of a file beside the capture (NAME.labels.yaml), which win."""
    labels = of_path(source.name, pattern) if pattern else {}
    return labels | (beside(path) if source.member is None else {})


def beside(path: Path) -> dict[str, str]:
    """Return the labels in a file beside the capture: its key `labels`, or all its scalars."""
    stem = path.name.split(".")[0]
    for suffix in (".labels.json", ".labels.yaml", ".labels.yml"):
        file = path.with_name(stem + suffix)
        if file.is_file():
            return scalars(file)
    return {}


def scalars(file: Path) -> dict[str, str]:
    """Read a file of labels. Raises UsageError where it cannot be read."""
    import yaml

    try:
        told = json.loads(file.read_text()) if file.suffix == ".json" else yaml.safe_load(file.read_text())
    except (ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{file}: {' '.join(str(error).split())} (check the file of labels)") from None
    if not isinstance(told, dict):
        raise UsageError(f"{file}: no names with values (write for example qos: 1)")
    return {str(name): str(value) for name, value in told.items() if isinstance(value, str | int | float | bool)}
