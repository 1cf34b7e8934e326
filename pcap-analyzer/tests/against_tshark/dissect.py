"""What tshark sees in a capture, and what our core sees, in the same form: a list of messages a frame and protocol."""

from __future__ import annotations

import functools
import shlex
import struct
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from pcapstat import _native

PROTOCOLS = {row["name"] for row in _native.protocols() if row["wireshark"]}
QUOTING = {"icmp", "icmpv6"}
BYTES_AS_HEX = {"token", "connection_id"}
SECRETS_BLOCK = 0x0000_000A
SEVERAL = {"alpn": ",", "uri_path": "/", "uri_query": "&"}
Messages = dict[tuple[int, str], list[dict[str, Any]]]

TYPES = {column["name"]: column["data_type"] for table in _native.schema() if table["name"] == "messages" for column in table["columns"]}


@functools.cache
def columns_of(protocol: str) -> dict[str, str]:
    """Wireshark's field names of a protocol with our columns."""
    return {field: column for row in _native.protocols() if row["name"] == protocol for field, column in row["wireshark"]}


def from_tshark(capture: Path, extra_arguments: str) -> Messages:
    """Dissect with tshark, no secrets given; frames whose payload it decrypted, and datagrams quoted by ICMP (trap 84), are left out."""
    with tempfile.TemporaryDirectory() as folder:
        return dissected(without_secrets(capture, Path(folder)), extra_arguments)


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


def dissected(capture: Path, extra_arguments: str) -> Messages:
    """Run tshark and gather the messages."""
    command = ["tshark", "-n", "-r", str(capture), "-o", "tcp.reassemble_out_of_order:TRUE", *shlex.split(extra_arguments), "-T", "pdml"]
    found: Messages = defaultdict(list)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        for packet in packets(process.stdout):
            number = int(packet.find("proto[@name='geninfo']/field[@name='num']").get("show"))  # type: ignore[union-attr, arg-type]
            layers = [proto for proto in packet.findall("proto") if proto.get("name") in PROTOCOLS]
            names = {proto.get("name") for proto in packet.findall("proto")}
            is_decrypted = bool(names & {"tls", "dtls"}) and bool(names & {"coap", "mqtt"})
            if names & QUOTING or is_decrypted:
                continue
            for layer in layers:
                name = str(layer.get("name"))
                found[number, name].extend(split_records(layer, name))
    return found


def run(capture: Path, extra_arguments: str, arguments: list[str]) -> list[str]:
    """Lines that tshark prints of a capture, no secrets given."""
    with tempfile.TemporaryDirectory() as folder:
        bare = without_secrets(capture, Path(folder))
        command = ["tshark", "-n", "-r", str(bare), "-o", "tcp.reassemble_out_of_order:TRUE", *shlex.split(extra_arguments), *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.splitlines()


def packets(stream: Any) -> Iterator[ET.Element]:
    """Packets one by one; a capture that tshark finds damaged may end the document early."""
    try:
        for _, element in ET.iterparse(stream):
            if element.tag == "packet":
                yield element
                element.clear()
    except ET.ParseError:
        return


def split_records(layer: ET.Element, name: str) -> Iterator[dict[str, Any]]:
    """One dictionary a message: tshark puts all (D)TLS records of a segment into one layer, a field `tls.record` each."""
    records = layer.findall(f"field[@name='{name}.record']") if name in {"tls", "dtls"} else [layer]
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
    if TYPES[column] == "bool":
        return shown in {"1", "True"}
    if TYPES[column].startswith(("uint", "int")):
        return int(shown, 0) if shown else None
    return shown


def from_core(capture: Path, extra_arguments: str) -> Messages:
    """Dissect with our core."""
    words = shlex.split(extra_arguments)
    rules = [rule for option, rule in zip(words, words[1:], strict=False) if option == "-d" and known(rule)]
    reader = _native.Reader([str(capture)], decode_as=rules)
    found: Messages = defaultdict(list)
    for row in pa.RecordBatchReader.from_stream(reader.table("messages")).read_all().to_pylist():
        if row["protocol"] in PROTOCOLS:
            found[row["frame"], row["protocol"]].append(row)
    return found


def known(rule: str) -> bool:
    """Whether the rule names a protocol of ours."""
    return rule.rsplit(",", 1)[-1] in {row["decode_as"] for row in _native.protocols()}


def differences(capture: Path, extra_arguments: str) -> Iterator[tuple[int, str, str, str, Any, Any]]:
    """Frame, protocol, kind of message, column (or "messages"), tshark's value, ours."""
    theirs, ours = from_tshark(capture, extra_arguments), from_core(capture, extra_arguments)
    for key in sorted(theirs.keys() | ours.keys()):
        expected, actual = theirs.get(key, []), ours.get(key, [])
        if len(expected) != len(actual):
            yield (*key, "", "messages", len(expected), len(actual))
            continue
        for wanted, row in zip(expected, actual, strict=True):
            for column, value in wanted.items():
                if row["malformed"] is None and row[column] != value:
                    yield (*key, row["kind"], column, value, row[column])
