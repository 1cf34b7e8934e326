"""Bytes of flows: frames as Arkime and nDPI count them, payload without retransmissions as Arkime does, IP bytes as Zeek does."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import SHARED

from against_expected.flows import Flow, Key, flows, key

NDPI_FLOW = re.compile(r"^\t\d+\t(?:UDP|TCP) (\S+) <?-> (\S+) .*?\[\d+ pkts/(\d+) bytes <?-> \d+ pkts/(\d+) bytes\]")
OTHER_BYTES = {
    "tls_invalid_reads.pcap": "nDPI leaves out a frame that tshark counts as we do",
    "single-packets.pcap": "of a lone response Arkime takes the sender for the client",
}
BEFORE = {
    "mysql-tls.pcap": "MySQL's greeting before TLS",
    "smtp-starttls.pcap": "SMTP before STARTTLS",
    "socks-http-example.pcap": "SOCKS before HTTP",
    "socks-http-pass.pcap": "SOCKS before HTTP",
    "socks-https-example.pcap": "SOCKS before TLS",
    "socks5-reverse.pcap": "SOCKS before HTTP",
    "single-packets.pcap": "Arkime counts no payload of a stream that it sees one packet of",
    "zeek/ftp__ftp-auth-tls.pcap": "FTP before AUTH TLS",
    "zeek/tls__irc-starttls.pcap": "IRC before STARTTLS",
}
"""What comes before a protocol that is decoded counts as transport control here, as payload there."""


def captures(tool: str, suffix: str) -> list[Path]:
    """Return the captures of a tool that have an expected result."""
    return [path for path in sorted((SHARED / tool).glob("*.pcap*")) if expected(path, suffix).is_file()]


def expected(path: Path, suffix: str) -> Path:
    """Return the expected result of a capture."""
    stem = path.name if suffix == ".out" else path.stem
    return path.parent / "expected" / f"{stem}{suffix}"


def unique(listed: Iterator[tuple[Key, Flow]]) -> dict[Key, Flow]:
    """Return the flows whose four-tuple comes once."""
    pairs = list(listed)
    count = Counter(name for name, _ in pairs)
    return {name: flow for name, flow in pairs if count[name] == 1 and name[1] != name[3]}


def of_arkime(path: Path) -> Iterator[tuple[Key, Flow]]:
    """Read the sessions that Arkime expects."""
    for session in json.loads(expected(path, ".test").read_text()).get("sessions3", []):
        body = session["body"]
        source, destination = body.get("source", {}), body.get("destination", {})
        if "port" in source and "port" in destination:
            name = key(source["ip"], source["port"], destination["ip"], destination["port"])
            payload = (body.get("client", {}).get("bytes", 0), body.get("server", {}).get("bytes", 0))
            yield name, Flow((source["bytes"], destination["bytes"]), payload)


def of_ndpi(path: Path) -> Iterator[tuple[Key, Flow]]:
    """Read the flows that nDPI expects; it tells no payload bytes, and writes some IPv6 addresses in a form of its own."""
    for line in expected(path, ".out").read_text(errors="replace").splitlines():
        found = NDPI_FLOW.match(line)
        if found:
            try:
                ends = [end.rpartition(":") for end in found.groups()[:2]]
                name = key(ends[0][0].strip("[]"), int(ends[0][2]), ends[1][0].strip("[]"), int(ends[1][2]))
            except ValueError:
                continue
            yield name, Flow((int(found[3]), int(found[4])), (0, 0))


@pytest.mark.parametrize(("tool", "suffix", "read", "least"), [("arkime", ".test", of_arkime, 45), ("ndpi", ".out", of_ndpi, 300)])
def test_frames_are_counted_alike(tool: str, suffix: str, read: object, least: int) -> None:
    """Bytes on the wire of each flow, both ways."""
    compared, wrong = 0, []
    for path in captures(tool, suffix):
        ours = flows(path)
        for name, flow in unique(read(path)).items():  # type: ignore[operator]
            if name in ours:
                compared += 1
                if ours[name].frame_bytes != flow.frame_bytes and path.name not in OTHER_BYTES:
                    wrong.append((path.name, name, ours[name].frame_bytes, flow.frame_bytes))
    assert not wrong
    assert compared >= least or not SHARED.is_dir()


def test_payload_is_counted_once_as_arkime_does() -> None:
    """TCP and UDP payload without retransmissions and overlaps: the numerator of a goodput."""
    compared, wrong = 0, []
    for path in captures("arkime", ".test"):
        ours = flows(path)
        for name, flow in unique(of_arkime(path)).items():
            if name in ours and path.name not in BEFORE:
                compared += 1
                if ours[name].payload_bytes != flow.payload_bytes:
                    wrong.append((path.name, name, ours[name].payload_bytes, flow.payload_bytes))
    assert not wrong
    assert compared >= 30 or not SHARED.is_dir()


def of_zeek() -> Iterator[tuple[str, dict[str, str]]]:
    """Read the lines of conn.log of captures that one script was run on."""
    if not SHARED.is_dir():
        return
    with (SHARED / "MANIFEST.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["path"].startswith("zeek/")]
    for row in rows:
        logs = [name for name in row["expected_results"].split(";") if name.endswith("/conn.log")]
        lines = (SHARED / logs[0]).read_text().splitlines() if len(logs) == 1 else []
        names = next((line.split("\t")[1:] for line in lines if line.startswith("#fields")), [])
        for line in lines:
            values = line.split("\t")
            if not line.startswith("#") and len(values) == len(names):
                yield row["path"], dict(zip(names, values, strict=True))


def test_payload_is_counted_as_zeek_does() -> None:
    """orig_bytes and resp_bytes: TCP payload by sequence number, UDP payload."""
    compared, wrong = 0, []
    for path, line in of_zeek():
        told = (line.get("orig_bytes", "-"), line.get("resp_bytes", "-"))
        name = (line["id.orig_h"], int(line["id.orig_p"]), line["id.resp_h"], int(line["id.resp_p"]))
        ours = flows(SHARED / path).get(name) if "-" not in told and path not in BEFORE else None
        if ours:
            compared += 1
            if ours.payload_bytes != (int(told[0]), int(told[1])):
                wrong.append((path, name, ours.payload_bytes, told))
    assert not wrong
    assert compared >= 9 or not SHARED.is_dir()
