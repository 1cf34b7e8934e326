"""What each session has come to at its last frame is what `pcapstat summarize` says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from against_standards.building import ACK, CON, CONTENT, GET, C, S, capture, coap

import pcapstat
from dissectors.shown import PROTOCOLS, captures, decode_as, keys, run
from pcapstat.metrics.sessions import Choices

SCRIPT = "pcapstat_session.lua"
TIMES = ("time1", "time2", "delta_time")
NAMES = ("receiver", "time1_by", "time2_by")
COUNTS = ("data_messages", "data_bytes", "session_bytes", "overhead_bytes")
RATIOS = ("goodput", "throughput", "overhead_ratio")
FIELDS = ("client", "server", *NAMES, *TIMES, *COUNTS, *RATIOS)
LAYERS = ("frame", "ip", "transport", "security", "application")


def shown(path: Path, preferences: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """Return the fields at the last frame of each session, by its display filter."""
    wanted = [word for field in ("tcp.stream", "udp.stream", *(f"pcapstat_session.{name}" for name in FIELDS)) for word in ("-e", field)]
    found: dict[str, dict[str, Any]] = {}
    for line in run(path, [SCRIPT], ["-T", "fields", *wanted], preferences).splitlines():
        tcp, udp, *cells = line.split("\t")
        if cells[0]:
            fields = dict(zip(FIELDS, cells, strict=True))
            numbers = {name: round(float(fields[name]) * 1e9) if fields[name] else None for name in TIMES}
            counts = {name: int(fields[name]) for name in COUNTS}
            ratios = {name: pytest.approx(float(fields[name])) if fields[name] else None for name in RATIOS}
            found[f"tcp.stream eq {tcp}" if tcp else f"udp.stream eq {udp}"] = fields | numbers | counts | ratios
    return found


def expected(path: Path, choices: Choices) -> dict[str, dict[str, Any]]:
    """Return the same of the command line; times since the capture's first frame."""
    summary = pcapstat.open(path, decode_as=decode_as(path, 1), keylog=keys(path)).summary(choices)
    begin_s = summary.captures[0]["time_first_ns"]
    found = {}
    for session in summary.sessions:
        if session.protocol in PROTOCOLS:
            rows = summary.sessions.sums.session(session.session)
            main = next(row for row in rows["directions"] if (row["direction"] == "s2c") == (session.receiver == "client"))
            time1_ns = rows["session"][f"time1_{session.time1}_ns"] if session.time1 else None
            time2_ns = main["data_last_ack_ns"] if session.time2 == "acknowledgement" else main["data_last_ns"]
            found[session.filter] = {
                "client": session.client,
                "server": session.server,
                "receiver": session.receiver,
                "time1_by": session.time1 or "",
                "time2_by": session.time2 or "",
                "time1": None if time1_ns is None else time1_ns - begin_s,
                "time2": None if time2_ns is None else time2_ns - begin_s,
                "delta_time": None if time1_ns is None or time2_ns is None else time2_ns - time1_ns,
                "data_messages": session.data_messages,
                "data_bytes": session.data_bytes,
                "session_bytes": session.session_bytes,
                "overhead_bytes": session.overhead_bytes,
                "goodput": session.goodput_bytes_per_s,
                "throughput": session.throughput_bytes_per_s,
                "overhead_ratio": session.overhead_ratio,
            }
    return found


@pytest.mark.parametrize("path", captures(), ids=lambda path: path.stem)
def test_figures_are_those_of_the_summary(path: Path) -> None:
    """Each session ends with the same times, data, rates and overhead."""
    found, wanted = shown(path), expected(path, Choices())
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize("kind", [ACK, CON], ids=["piggybacked", "separate"])
def test_responses_to_what_was_asked_before_the_capture_are_data(kind: int, tmp_path: Path) -> None:
    """RFC 7252 §5.2: two responses, the first of them twice; then a request and its response."""
    first, second = coap(kind, CONTENT, 1, b"A", [], b"21"), coap(kind, CONTENT, 2, b"B", [], b"22.5")
    said = [(S, first), (S, first), (S, second), (C, coap(CON, GET, 9, b"C", [(11, b"a")])), (S, coap(ACK, CONTENT, 9, b"C", [], b"2"))]
    path = capture(tmp_path / "middle.pcap", said, "udp", 5683)

    found = shown(path)
    assert found == expected(path, Choices())
    assert [(session["data_messages"], session["data_bytes"]) for session in found.values()] == [(3, 2 + 4 + 1)]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("name", ["a-paho-tls-qos1", "a-californium-dtls-con", "a-paho-qos1", "c-aiocoap-oscore-get"])
def test_the_layer_is_a_preference(name: str, layer: str) -> None:
    """At each layer the preference shows what --layer does."""
    path = next(path for path in captures() if path.stem == name)
    found = shown(path, (f"pcapstat_session.layer:{LAYERS.index(layer) + 1}",))
    assert found == expected(path, Choices(layer=layer))


@pytest.mark.parametrize("time1", ["application", "security", "transport"])
def test_time1_is_a_preference(time1: str) -> None:
    """Each choice of Time1 shows what --time1 does."""
    path = next(path for path in captures() if path.stem == "a-paho-tls-qos1")
    number = ("application", "security", "transport").index(time1) + 2
    assert shown(path, (f"pcapstat_session.time1:{number}",)) == expected(path, Choices(time1=time1))
