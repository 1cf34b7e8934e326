"""A second opinion: what tshark's own dissectors say of a capture, compared with what the core says, message by message and field by field.

The two share nothing but the names of fields (`wireshark` in the rows of protocols). Differences that are known stand in `explained.csv`
with their reason: pattern of capture, protocol, kind of message, column, versions of tshark that show it, where it is (`WHERE`), reason;
`*` stands for any.
"""

from __future__ import annotations

import csv
import fnmatch
import functools
import re
import struct
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from pcapstat import _native, wireshark
from pcapstat.capture import Capture
from pcapstat.engines.tshark import Run, without_contents

EXPLAINED = Path(__file__).with_name("explained.csv")
QUOTING = {"icmp", "icmpv6"}
"""Protocols that quote datagrams of others (trap 84): those are no messages."""
COPIES = {"captured-twice", "link-retransmission"}
"""Notes of frames that count as frames, not as messages."""
SECURITY = {"tls", "dtls", "quic"}
BYTES_AS_HEX = {"token", "connection_id"}
SECRETS_BLOCK = 0x0000_000A
SEVERAL = {"alpn": ",", "uri_path": "/", "uri_query": "&"}
Place = tuple[int, ...]
"""Where messages are compared: the number of their frame; of some protocols their TCP stream and source port."""
Messages = dict[tuple[Place, str], list[dict[str, Any]]]


@dataclass(frozen=True)
class Shape:
    """How tshark lays out a protocol in PDML; as a rule a layer is a message.

    `row` is the protocol's row (`decode_as`), where several have its name. `records` are the fields that hold a message each, `without` the
    values of fields of layers that hold none. `shows` tells which kinds of ours it shows at all. `by_stream`: it shows a message at another
    frame than the core does, so that those of a direction are compared in their order.
    """

    row: str | None = None
    records: tuple[str, ...] = ()
    without: tuple[tuple[str, frozenset[str]], ...] = ()
    shows: Callable[[str], bool] = lambda _kind: True
    by_stream: bool = False


STANZAS = ("iq", "message", "presence")
PACKETS = ("Initial", "0-RTT", "Handshake", "Retry", "1-RTT", "Padding", "Version Negotiation")
CLOSED = {
    "tls": Shape(records=("tls.record",)),
    "dtls": Shape(records=("dtls.record",)),
    "http2": Shape(records=("http2.stream",)),
    "http": Shape(shows=lambda kind: kind in {"Request", "Response"}, by_stream=True),
    "quic": Shape(row="quic"),
    "xmpp": Shape(records=tuple(f"xmpp.{name}" for name in STANZAS), shows=lambda kind: kind in STANZAS, by_stream=True),
}
HANDSHAKES = (("quic.long.packet_type", frozenset("023")), ("quic.long.packet_type_v2", frozenset("130")))
"""Initial, Handshake and Retry, whose frames are no messages (RFC 9000 §17.2, RFC 9369 §3.2); those of 0-RTT packets are."""
FRAMES = Shape(row="quic_frames", records=("quic.frame",), without=HANDSHAKES, shows=lambda kind: kind not in PACKETS)
CARRIED = {"mqtt", "coap", "xmpp"}
"""Protocols that WebSockets carry."""
ALSO = {"http3": "quic"}
"""Protocols whose rows are frames of another."""


def shapes(is_open: bool) -> dict[str, Shape]:
    """Return what can be compared: what has a field in Wireshark's names. Where records are opened, their content takes their place."""
    known = {row["name"]: CLOSED.get(row["name"], Shape()) for row in _native.protocols() if row["wireshark"]}
    if not is_open:
        return known
    return {name: shape for name, shape in known.items() if name not in SECURITY} | {"quic": FRAMES}


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
    tshark: str
    where: str
    reason: str

    def is_of(self, version: tuple[int, ...]) -> bool:
        """Whether it is about this version of tshark: "*", "<4.2" or ">=4.2"."""
        if self.tshark == "*":
            return True
        is_older = version < tuple(int(number) for number in self.tshark.lstrip("<>=").split("."))
        return is_older == self.tshark.startswith("<")

    def covers(self, difference: Difference) -> bool:
        """Whether it explains a difference. A capture is known by the end of its path."""
        path = difference.capture
        is_capture = fnmatch.fnmatchcase(path, self.capture) or fnmatch.fnmatchcase(path, f"*/{self.capture}")
        pairs = ((self.protocol, difference.protocol), (self.kind, difference.kind), (self.column, difference.column))
        return is_capture and all(pattern in {"*", value} for pattern, value in pairs)

    def explains(self, difference: Difference, both: Opinions) -> bool:
        """Whether it explains a difference between these opinions."""
        return self.covers(difference) and (self.where == "*" or WHERE[self.where](difference, both))


@dataclass(frozen=True)
class Opinions:
    """What tshark and the core say of one protocol in one frame, or in one direction of a stream.

    `is_websocket` tells whether tshark shows frames of a WebSocket there, `is_carrying` whether the core has bytes of messages in it.
    """

    theirs: Sequence[dict[str, Any]]
    ours: Sequence[dict[str, Any]]
    is_websocket: bool = False
    is_carrying: bool = False

    def is_nameless(self, message: int) -> bool:
        """Whether a message of the core's has a topic alias, and no topic."""
        row = self.ours[message]
        return row["topic_alias"] is not None and row["topic_name"] is None


WHERE: dict[str, Callable[[Difference, Opinions], bool]] = {
    "hidden types": lambda _, both: len(both.theirs) == sum(row["content_type"] is not None for row in both.ours),
    "in websocket": lambda _, both: both.is_websocket and len(both.theirs) < len(both.ours),
    "carrier": lambda _, both: both.is_carrying and len(both.theirs) > len(both.ours),
    "alias unknown": lambda difference, both: both.is_nameless(difference.message),
}
"""Where differences are that a row explains in any capture."""


@functools.cache
def rules() -> tuple[Rule, ...]:
    """Return the rows of explained.csv about the tshark at hand."""
    version = wireshark.version(wireshark.find())
    with EXPLAINED.open(encoding="utf-8", newline="") as file:
        return tuple(rule for rule in (Rule(**row) for row in csv.DictReader(file)) if rule.is_of(version))


@functools.cache
def columns_of(protocol: str, row: str | None) -> dict[str, str]:
    """Return Wireshark's field names of a protocol with our columns, of all its rows or of one."""
    rows = [known for known in _native.protocols() if known["name"] == protocol and row in {None, known["decode_as"]}]
    return {field: column for known in rows for field, column in known["wireshark"]}


@functools.cache
def types() -> dict[str, str]:
    """Return the type of each column of the table messages."""
    return {column["name"]: column["data_type"] for table in _native.schema() if table["name"] == "messages" for column in table["columns"]}


def differences(capture: Capture) -> Iterator[Difference]:
    """Compare both opinions of a capture; secrets that it has are used by both.

    Raises ToolMissing without tshark, UnreadableCapture where the capture cannot be read. Memory grows with the capture's messages.
    """
    ours, notes = from_core(capture)
    theirs = from_tshark(capture)
    copies = Copies(notes)
    carrying = carrying_frames(ours)
    name = capture.name or ", ".join(capture.paths)
    for place, protocol in sorted(theirs.keys() | ours.keys()):
        is_websocket = (place, "websocket") in theirs
        both = Opinions(theirs.get((place, protocol), []), ours.get((place, protocol), []), is_websocket, place[0] in carrying)
        known = copies.reason(protocol, both.theirs, both.ours)
        for difference in at_place(name, protocol, both.theirs, both.ours):
            reason = next((rule.reason for rule in rules() if rule.explains(difference, both)), known)
            yield Difference(**{**asdict(difference), "explanation": reason})


def carrying_frames(ours: Messages) -> set[int]:
    """Return the frames with bytes of messages that WebSockets carry."""
    return {frame for (_, protocol), rows in ours.items() if protocol in CARRIED for row in rows for frame in row["frames"]}


class Copies:
    """Frames that the core takes for copies of others, without messages of their own: tshark shows the messages there once more."""

    def __init__(self, notes: Iterable[dict[str, Any]]) -> None:
        """Take the frames that rows of the table notes tell of copies in."""
        self.told = [(range(note["frame_first"], note["frame_last"] + 1), note["note"]) for note in notes if note["note"] in COPIES]
        self.shown = set[str]()
        """What tshark showed in frames whose messages the core has."""

    def reason(self, protocol: str, theirs: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]]) -> str | None:
        """Return why the core has no messages where tshark has some: a note tells of copies here, and tshark showed the same before."""
        if not (self.told and theirs):
            return None
        content = repr((protocol, [sorted((name, value) for name, value in row.items() if name != "frame") for row in theirs]))
        if ours:
            self.shown.add(content)
            return None
        note = next((note for frames, note in self.told if theirs[0]["frame"] in frames), None)
        return f"a copy of a frame before it counts as a frame, not as messages (note {note})" if note and content in self.shown else None


def at_place(name: str, protocol: str, theirs: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]]) -> Iterator[Difference]:
    """Compare the messages of one protocol in one frame, or in one direction of a stream."""
    if len(theirs) != len(ours):
        frame = min(row["frame"] for row in (*theirs, *ours))
        yield Difference(name, frame, protocol, 0, "", "messages", str(len(theirs)), str(len(ours)))
        return
    for index, (expected, row) in enumerate(zip(theirs, ours, strict=True)):
        for column in expected.keys() - {"frame"}:
            if row["malformed"] is None and row[column] != expected[column]:
                yield Difference(name, row["frame"], protocol, index, row["kind"], column, str(expected[column]), str(row[column]))


def from_core(capture: Capture) -> tuple[Messages, list[dict[str, Any]]]:
    """Read the messages, and the rows of the table notes, with the core."""
    wanted = shapes(is_open(capture))
    columns = {column for name, shape in wanted.items() for column in columns_of(name, shape.row).values()}
    wanted_columns = sorted(columns | {"frame", "frames", "stream", "source_port", "protocol", "kind", "malformed"})
    found: Messages = defaultdict(list)
    notes: list[dict[str, Any]] = []
    for table, batch in capture.batches(["messages", "notes"]):
        if table == "notes":
            notes += batch.to_pylist()
            continue
        for row in batch.select(wanted_columns).to_pylist():
            name = ALSO.get(row["protocol"], row["protocol"])
            shape = wanted.get(name)
            if shape and shape.shows(row["kind"]):
                place = (row["stream"], row["source_port"]) if shape.by_stream else (row["frame"],)
                found[place, name].append(row)
    return found, notes


def is_open(capture: Capture) -> bool:
    """Whether records are opened."""
    return bool(capture.engine.name == "tshark")


def from_tshark(capture: Capture) -> Messages:
    """Read the messages with tshark. Datagrams quoted by ICMP are left out, and with the native engine all that tshark opens by itself."""
    with tempfile.TemporaryDirectory(prefix="pcapstat-") as folder:
        known = [rule for rule in capture.options["decode_as"]]
        run = Run(capture.paths, known, capture.secrets, capture.words)
        path = run.path if is_open(capture) else str(without_secrets(Path(run.path), Path(folder)))
        return gather(without_contents(run.command, path), is_open(capture))


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


def gather(command: Sequence[str], opens: bool) -> Messages:
    """Run tshark and gather the messages of a PDML document."""
    wanted = shapes(opens)
    found: Messages = defaultdict(list)
    arguments, environment = wireshark.split_environment(command)
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        if process.stdout is None:
            return found
        for packet in packets(process.stdout):
            layers = packet.findall("proto")
            names = {layer.get("name") for layer in layers}
            is_decrypted = not opens and bool(names & SECURITY) and bool(names & (wanted.keys() - SECURITY))
            if names & QUOTING or is_decrypted:
                continue
            number = int(value_of(packet, "proto[@name='geninfo']/field[@name='num']"))
            for layer in layers:
                name = str(layer.get("name"))
                shape = wanted.get(name)
                if shape:
                    place = stream_of(packet) if shape.by_stream else (number,)
                    found[place, name].extend({"frame": number, **columns} for columns in split(layer, name, shape))
    return {place: rows for place, rows in found.items() if rows}


def stream_of(packet: ET.Element) -> Place:
    """Return the TCP stream's number and the source port."""
    return tuple(int(value_of(packet, f"proto[@name='tcp']/field[@name='tcp.{name}']")) for name in ("stream", "srcport"))


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


def split(layer: ET.Element, name: str, shape: Shape) -> Iterator[dict[str, Any]]:
    """Return our columns of each message of a layer. Compared by stream, a layer without the start of a message has none."""
    records = [field for field in layer if field.get("name") in shape.records] if shape.records else [layer]
    if any(field.get("show") in values for name, values in shape.without for field in layer.iterfind(f"field[@name='{name}']")):
        return
    for record in records:
        columns = columns_in(record, columns_of(name, shape.row))
        if columns or not shape.by_stream:
            yield columns


def columns_in(record: ET.Element, names: dict[str, str]) -> dict[str, Any]:
    """Return our columns of a message. The first of fields of one name counts; of fields of several names for a column, the last."""
    columns: dict[str, Any] = {}
    seen: set[str] = set()
    for field in record.iter():
        name = field.get("name", "")
        column = names.get(name)
        if column is None:
            continue
        value = convert(column, field)
        if column in SEVERAL and column in columns:
            columns[column] += SEVERAL[column] + value
        elif name not in seen:
            columns[column] = value
        seen.add(name)
    return columns


def convert(column: str, field: ET.Element) -> Any:
    """Bring a field to the type of our column. A kind is the word behind the field's label, else the field's own last name."""
    shown = field.get("show", "")
    if column == "kind":
        label = re.search(r": (.+?) \(", field.get("showname", ""))
        return label[1] if label else field.get("name", "").rpartition(".")[2]
    if column in BYTES_AS_HEX:
        return field.get("value", "")
    if types()[column] == "bool":
        return shown in {"1", "True"}
    if types()[column].startswith(("uint", "int")):
        return int(shown, 0) if shown else None
    return shown
