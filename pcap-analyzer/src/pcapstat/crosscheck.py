"""A second opinion: what tshark's own dissectors say of a capture, compared with what the core says, message by message and field by field.

The two share nothing but the names of fields (`wireshark` in the rows of protocols). Differences that are known stand in `explained.csv`
with their reason: pattern of capture, protocol, kind of message, column, reason; `*` stands for any.
"""

from __future__ import annotations

import csv
import fnmatch
import functools
import struct
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from pcapstat import _native, wireshark
from pcapstat.capture import Capture
from pcapstat.engines.tshark import Run, without_contents

EXPLAINED = Path(__file__).with_name("explained.csv")
QUOTING = {"icmp", "icmpv6"}
"""Protocols that quote datagrams of others (trap 84): those are no messages."""
SECURITY = {"tls", "dtls", "quic"}
BYTES_AS_HEX = {"token", "connection_id"}
SECRETS_BLOCK = 0x0000_000A
SEVERAL = {"alpn": ",", "uri_path": "/", "uri_query": "&"}
Messages = dict[tuple[int, str], list[dict[str, Any]]]


@dataclass(frozen=True)
class Difference:
    """One field that differs: `column` is "messages" where the two count different messages of a protocol in a frame."""

    capture: str
    frame: int
    protocol: str
    message: int
    kind: str
    column: str
    tshark: str
    pcapstat: str
    explanation: str | None = None


@dataclass(frozen=True)
class Rule:
    """A row of explained.csv."""

    capture: str
    protocol: str
    kind: str
    column: str
    reason: str

    def covers(self, difference: Difference) -> bool:
        """Whether it explains a difference. A capture is known by the end of its path."""
        path = difference.capture
        is_capture = fnmatch.fnmatchcase(path, self.capture) or fnmatch.fnmatchcase(path, f"*/{self.capture}")
        pairs = ((self.protocol, difference.protocol), (self.kind, difference.kind), (self.column, difference.column))
        return is_capture and all(pattern in {"*", value} for pattern, value in pairs)


@functools.cache
def rules() -> tuple[Rule, ...]:
    """Return the rows of explained.csv."""
    with EXPLAINED.open(newline="") as file:
        return tuple(Rule(**row) for row in csv.DictReader(file))


@functools.cache
def columns_of(protocol: str) -> dict[str, str]:
    """Return Wireshark's field names of a protocol with our columns."""
    return {field: column for row in _native.protocols() if row["name"] == protocol for field, column in row["wireshark"]}


@functools.cache
def protocols() -> frozenset[str]:
    """Return the protocols that can be compared: those with a field in Wireshark's names."""
    return frozenset(row["name"] for row in _native.protocols() if row["wireshark"])


@functools.cache
def types() -> dict[str, str]:
    """Return the type of each column of the table messages."""
    return {column["name"]: column["data_type"] for table in _native.schema() if table["name"] == "messages" for column in table["columns"]}


def differences(capture: Capture) -> Iterator[Difference]:
    """Compare both opinions of a capture; secrets that it has are used by both.

    Raises ToolMissing without tshark, UnreadableCapture where the capture cannot be read. Memory grows with the capture's messages.
    """
    ours = from_core(capture)
    theirs = from_tshark(capture)
    name = ", ".join(capture.paths)
    for frame, protocol in sorted(theirs.keys() | ours.keys()):
        for difference in in_frame(name, frame, protocol, theirs.get((frame, protocol), []), ours.get((frame, protocol), [])):
            reason = next((rule.reason for rule in rules() if rule.covers(difference)), None)
            yield Difference(**{**asdict(difference), "explanation": reason})


def in_frame(
    name: str, frame: int, protocol: str, theirs: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]]
) -> Iterator[Difference]:
    """Compare the messages of one protocol in one frame."""
    if len(theirs) != len(ours):
        yield Difference(name, frame, protocol, 0, "", "messages", str(len(theirs)), str(len(ours)))
        return
    for index, (expected, row) in enumerate(zip(theirs, ours, strict=True)):
        for column, value in expected.items():
            if row["malformed"] is None and row[column] != value:
                yield Difference(name, frame, protocol, index, row["kind"], column, str(value), str(row[column]))


def from_core(capture: Capture) -> Messages:
    """Read the messages with the core."""
    import pyarrow as pa

    wanted = {"frame", "protocol", "kind", "malformed"}.union(*(columns_of(name).values() for name in protocols()))
    found: Messages = defaultdict(list)
    for batch in pa.RecordBatchReader.from_stream(capture.messages):
        for row in batch.select(sorted(wanted)).to_pylist():
            if row["protocol"] in compared(capture):
                found[row["frame"], row["protocol"]].append(row)
    return found


def compared(capture: Capture) -> frozenset[str]:
    """Return the protocols to compare: where records are opened, their content takes their place in our table."""
    return protocols() - SECURITY if capture.engine.name == "tshark" else protocols()


def from_tshark(capture: Capture) -> Messages:
    """Read the messages with tshark. Datagrams quoted by ICMP are left out, and with the native engine all that tshark opens by itself."""
    with tempfile.TemporaryDirectory(prefix="pcapstat-") as folder:
        is_open = capture.engine.name == "tshark"
        known = [rule for rule in capture.options["decode_as"]]
        run = Run(capture.paths, known, capture.secrets, capture.words)
        path = run.path if is_open else str(without_secrets(Path(run.path), Path(folder)))
        return gather(without_contents(run.command, path), is_open, compared(capture))


def without_secrets(capture: Path, folder: Path) -> Path:
    """Return a copy without decryption secrets blocks, so that tshark decrypts no more than the native engine; else the capture itself."""
    data = capture.read_bytes()
    if data[:4] != b"\x0a\x0d\x0d\x0a":
        return capture
    order = "<" if data[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
    kept, offset, found = [], 0, False
    while offset + 12 <= len(data):
        kind, length = struct.unpack_from(order + "II", data, offset)
        if length < 12:
            break
        found |= kind == SECRETS_BLOCK
        kept.append(b"" if kind == SECRETS_BLOCK else data[offset : offset + length])
        offset += length
    if not found:
        return capture
    bare = folder / "bare.pcapng"
    bare.write_bytes(b"".join([*kept, data[offset:]]))
    return bare


def gather(command: Sequence[str], is_open: bool, wanted: frozenset[str]) -> Messages:
    """Run tshark and gather the messages of a PDML document."""
    found: Messages = defaultdict(list)
    arguments, environment = wireshark.split_environment(command)
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        if process.stdout is None:
            return found
        for packet in packets(process.stdout):
            layers = packet.findall("proto")
            names = {layer.get("name") for layer in layers}
            is_decrypted = not is_open and bool(names & SECURITY) and bool(names & (wanted - SECURITY))
            if names & QUOTING or is_decrypted:
                continue
            number = int(value_of(packet, "proto[@name='geninfo']/field[@name='num']"))
            for layer in layers:
                name = str(layer.get("name"))
                if name in wanted:
                    found[number, name].extend(split(layer, name))
    return found


def value_of(packet: ET.Element, path: str) -> str:
    """Return what a field shows."""
    field = packet.find(path)
    return "0" if field is None else field.get("show", "0")


def packets(stream: IO[bytes]) -> Iterator[ET.Element]:
    """Read packets one by one; a capture that tshark finds damaged may end the document early."""
    try:
        for _, element in ET.iterparse(stream):
            if element.tag == "packet":
                yield element
                element.clear()
    except ET.ParseError:
        return


RECORDS = {"tls": "tls.record", "dtls": "dtls.record", "http2": "http2.stream"}
"""Fields that hold one message each, where tshark puts several into one layer."""


def split(layer: ET.Element, name: str) -> Iterator[dict[str, Any]]:
    """Return our columns of each message of a layer."""
    records = layer.findall(f"field[@name='{RECORDS[name]}']") if name in RECORDS else [layer]
    names = columns_of(name)
    for record in records:
        columns: dict[str, Any] = {}
        for field in record.iter("field"):
            column = names.get(field.get("name", ""))
            if column is None:
                continue
            value = convert(column, field)
            if column in SEVERAL and column in columns:
                columns[column] += SEVERAL[column] + value
            else:
                columns.setdefault(column, value)
        yield columns


def convert(column: str, field: ET.Element) -> Any:
    """Bring a field to the type of our column."""
    shown = field.get("show", "")
    if column in BYTES_AS_HEX:
        return field.get("value", "")
    if types()[column] == "bool":
        return shown in {"1", "True"}
    if types()[column].startswith(("uint", "int")):
        return int(shown, 0) if shown else None
    return shown
