"""Labels of captures, taken from their paths by a pattern: "{library}/{qos}/round{round:d}.pcapng"."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from pcapstat.errors import UsageError

SUFFIXES = (".pcap", ".pcapng", ".cap", ".ntar", ".dmp")
PACKED = ("", ".gz", ".zst", ".lz4")
ENDINGS = tuple(suffix + packed for suffix in SUFFIXES for packed in PACKED)
"""What names of captures end with."""
FIELD = re.compile(r"\{(\w+)(:d)?\}")
PLAIN = re.compile(r"[^\s']+")
ROUND = re.compile(r"[-_.]?round[-_]?(\d+)$")


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern as a regular expression for the end of a path. Raises UsageError.

    {name} takes no slash, {name:d} digits; where a name could end at several places, the later one counts.
    """
    names = [name for name, _ in FIELD.findall(pattern)]
    if not names:
        raise UsageError(f"--labels {pattern}: no label (write for example '{{library}}-{{qos}}.pcapng')")
    if len(names) != len(set(names)):
        raise UsageError(f"--labels {pattern}: a label twice (give each a name of its own)")
    out, at = "", 0
    for found in FIELD.finditer(pattern):
        out += re.escape(pattern[at : found.start()]) + f"(?P<{found[1]}>{'[0-9]+' if found[2] else '[^/]+'})"
        at = found.end()
    return re.compile(f"(?:^|.*/){out}{re.escape(pattern[at:])}$")


def of_path(path: str, pattern: str | None) -> dict[str, str]:
    """Return the labels of a path. Without a pattern "run" is the file's name without suffix and round, and "round" its number.

    Raises UsageError where the pattern does not fit the path.
    """
    if pattern is None:
        stem = stem_of(path)
        found = ROUND.search(stem)
        return {"run": ROUND.sub("", stem), "round": found[1] if found else "1"}
    match = compiled(pattern).match(path)
    if match is None:
        raise UsageError(f"{path}: does not fit --labels {pattern} (leave the file out, or write another pattern)")
    return dict(match.groupdict())


def stem_of(path: str) -> str:
    """Return the name of a file without what captures end with. Other dots belong to it: "poll-0.5s" is not "poll-0.7s"."""
    name = PurePath(path).name
    ending = next((ending for ending in ENDINGS if name.lower().endswith(ending)), PurePath(name).suffix)
    return name[: len(name) - len(ending)]


def joined(labels: Sequence[str]) -> str:
    """Join labels to a name; of several, one that is empty or has spaces stands in quotes, so that other labels make another name."""
    if len(labels) == 1:
        return labels[0]
    return " ".join(label if PLAIN.fullmatch(label) else shlex.quote(label) for label in labels)
