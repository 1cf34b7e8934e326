"""HTTP/1.x and tshark: the same requests and responses in every stream.

Frames are not compared: tshark shows a message where its content ends, the core one with chunks or without a length where its head ends.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow as pa

import pcapstat
from against_tshark import dissect
from against_tshark.test_fields import captures, explained, is_explained

FIELDS = ("tcp.stream", "http.request.method", "http.response.code")


def words_by_tshark(path: Path, extra_arguments: str) -> dict[int, list[str]]:
    """Return methods and status codes of each TCP stream."""
    fields = [word for field in FIELDS for word in ("-e", field)]
    found = defaultdict(list)
    for line in dissect.run(path, extra_arguments, ["-Y", "http.request.method || http.response.code", "-T", "fields", *fields]):
        stream, *words = line.split("\t")
        if stream:
            found[int(stream.split(",")[0])].extend(word for cell in words for word in cell.split(",") if word)
    return dict(found)


def words_by_core(path: Path) -> dict[int, list[str]]:
    """Read the same by the core."""
    found = defaultdict(list)
    for row in pa.table(pcapstat.open(path, engine="native").messages).to_pylist():
        if row["protocol"] == "http" and row["kind"] in {"Request", "Response"} and row["malformed"] is None:
            found[row["stream"]].append(row["variant"])
    return dict(found)


def test_requests_and_responses_are_those_of_tshark() -> None:
    """Each difference is explained, a row for a capture."""
    rules = explained()
    wrong = []
    for name, path, extra_arguments in captures({"http", "websocket"}):
        theirs, ours = words_by_tshark(path, extra_arguments), words_by_core(path)
        streams = [
            stream for stream in sorted(theirs.keys() | ours.keys()) if sorted(theirs.get(stream, [])) != sorted(ours.get(stream, []))
        ]
        if streams and not is_explained(name, "http", "", "", rules):
            wrong.append((name, [(stream, theirs.get(stream), ours.get(stream)) for stream in streams]))
    assert not wrong, "\n".join(str(line)[:300] for line in wrong)
