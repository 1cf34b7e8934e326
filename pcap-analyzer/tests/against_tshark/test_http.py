"""HTTP/1.x and tshark: the same requests and responses in every stream.

Frames are not compared: tshark shows a message where its content ends, the core one with chunks or without a length where its head ends.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import pyarrow as pa

from against_tshark.listed import captures, opened
from pcapstat import crosscheck

FIELDS = ("tcp.stream", "http.request.method", "http.response.code")


def words_by_tshark(path: Path, decode_as: list[str]) -> dict[int, list[str]]:
    """Return methods and status codes of each TCP stream, no secrets given."""
    rules = [word for rule in decode_as for word in ("-d", rule)]
    fields = [word for field in FIELDS for word in ("-e", field)]
    wanted = ["-Y", "http.request.method || http.response.code", "-T", "fields", *fields]
    found = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        bare = crosscheck.without_secrets(path, Path(folder))
        command = ["tshark", "-n", "-r", str(bare), "-o", "tcp.reassemble_out_of_order:TRUE", *rules, *wanted]
        lines = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.splitlines()
    for line in lines:
        stream, *words = line.split("\t")
        if stream:
            found[int(stream.split(",")[0])].extend(word for cell in words for word in cell.split(",") if word)
    return dict(found)


def words_by_core(path: Path, decode_as: list[str]) -> dict[int, list[str]]:
    """Read the same by the core."""
    found = defaultdict(list)
    for row in pa.table(opened(path, decode_as).messages).to_pylist():
        if row["protocol"] == "http" and row["kind"] in {"Request", "Response"} and row["malformed"] is None:
            found[row["stream"]].append(row["variant"])
    return dict(found)


def test_requests_and_responses_are_those_of_tshark() -> None:
    """Each difference is explained, a row for a capture."""
    wrong = []
    for name, path, decode_as in captures({"http", "websocket"}):
        theirs, ours = words_by_tshark(path, decode_as), words_by_core(path, decode_as)
        both = sorted(theirs.keys() | ours.keys())
        streams = [stream for stream in both if sorted(theirs.get(stream, [])) != sorted(ours.get(stream, []))]
        difference = crosscheck.Difference(str(path), 0, "http", 0, "", "", "", "")
        if streams and not any(rule.covers(difference) for rule in crosscheck.rules()):
            wrong.append((name, [(stream, theirs.get(stream), ours.get(stream)) for stream in streams]))
    assert not wrong, "\n".join(str(line)[:300] for line in wrong)
