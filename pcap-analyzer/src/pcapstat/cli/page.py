"""The summary as a person reads it, within 80 columns, and as JSON."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from textwrap import wrap
from typing import TYPE_CHECKING

from pcapstat import __version__
from pcapstat.formats.text import visible
from pcapstat.metrics.sessions import SessionFigures, Summary

if TYPE_CHECKING:
    from decimal import Decimal

WIDTH = 80
THOUSANDS = re.compile(r"(?<=\d) (?=\d{3}\b)")
KEPT = "\0"
"""What stands for the spaces within numbers where lines are folded."""
EPOCH = datetime.fromtimestamp(0, UTC)
BLOCKS = 8
"""Sessions shown as a block each; more are shown as a line each."""

LINES = 40
"""Sessions shown as a line each; of more, the largest."""

TIMING_WORDS = {
    "ack_rtt": "to ACK",
    "rtt": "to response",
    "delay": "delay",
    "interval": "interval",
    "tcp_handshake": "TCP handshake",
    "tcp_ack": "TCP segment to ACK",
}


def count(number: int) -> str:
    """Write an integer with thin groups of three."""
    return f"{number:,}".replace(",", " ")


def duration(value_s: float | None) -> str:
    """Write seconds with the unit that suits."""
    if value_s is None:
        return "n/a"
    for unit, factor in (("s", 1.0), ("ms", 1e-3)):
        if abs(value_s) >= factor:
            return f"{value_s / factor:.3f} {unit}"
    return f"{value_s / 1e-6:.1f} µs"


def rate(bytes_per_s: float | None) -> str:
    """Write a rate in bytes and bits per second, SI prefixes."""
    if bytes_per_s is None:
        return "n/a"
    return f"{si(bytes_per_s)}B/s ({si(bytes_per_s * 8)}bit/s)"


def si(value: float) -> str:
    """Write a value with an SI prefix."""
    for prefix, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= factor:
            return f"{value / factor:.3f} {prefix}"
    return f"{value:.1f} "


def moment(time_ns: int | None) -> str:
    """Write a time of day, UTC, to the microsecond."""
    return "n/a" if time_ns is None else (EPOCH + timedelta(microseconds=(time_ns + 500) // 1000)).strftime("%Y-%m-%d %H:%M:%S.%f")


def page(summary: Summary, wanted: tuple[int, ...]) -> str:
    """Write the whole summary."""
    lines = head(summary)
    if len(wanted) > BLOCKS or (not wanted and len(summary.sessions) > BLOCKS):
        lines += short(summary, wanted)
    else:
        for session in summary.sessions.chosen(wanted):
            lines += ["", *block(session)]
    lines += foot(summary)
    return "\n".join(visible(line.rstrip()) for line in lines) + "\n"


def head(summary: Summary) -> list[str]:
    """Write what was read."""
    lines: list[str] = []
    for capture in summary.captures:
        lines += folded(str(capture["file"]))
        first, last = capture["time_first_ns"], capture["time_last_ns"]
        span = duration((last - first) / 1e9) if first is not None and last is not None else "n/a"
        text = f"{capture['format']}, {count(capture['frames'])} frames, {count(capture['frame_bytes'])} bytes on the wire, {span}"
        lines += folded(text, first="  ", later="  ")
    layer = "bytes counted at layer: " + summary.choices.layer
    control = "transport control in the overhead: " + ("yes" if summary.choices.transport_control else "no")
    lines.append(f"  {layer}; {control}")
    if summary.engine:
        name = " ".join(filter(None, (summary.engine.name, summary.engine.version)))
        lines += folded(f"engine: {name} ({summary.engine.reason})", first="  ", later="  ")
    return lines


def folded(text: str, first: str = "", later: str = "") -> list[str]:
    """Fold text to lines that begin so, but no number. It is made visible before, since that makes it longer."""
    lines = wrap(THOUSANDS.sub(KEPT, visible(text)), WIDTH, initial_indent=first, subsequent_indent=later)
    return [line.replace(KEPT, " ") for line in lines]


def entry(label: str, text: str) -> list[str]:
    """Write a labelled value, wrapped."""
    return folded(text, first=f"  {label:<14}", later=" " * 16) or [f"  {label}"]


def block(session: SessionFigures) -> list[str]:
    """Write one session."""
    title = f"Session {session.session}  {session.version or session.protocol}  {session.client} → {session.server}"
    lines = [title[:WIDTH]]
    about = [f"security {session.security}", f"data to the {session.receiver}"]
    if session.client_identifier:
        about.insert(0, f"client {session.client_identifier}")
    lines += folded(" · ".join(about), first="  ", later="  ")
    lines += entry("Time1", f"{moment(session.time1_ns)} ({session.time1 or 'n/a'})")
    lines += entry("Time2", f"{moment(session.time2_ns)} ({session.time2 or 'n/a'})")
    lines += entry("ΔTime", duration(session.delta_time_s))
    messages = f"{count(session.data_messages)} messages, {count(session.data_bytes)} bytes"
    lines += entry("Data", messages + (f", {session.message_rate_per_s:.2f} messages/s" if session.message_rate_per_s else ""))
    lines += entry("Goodput", rate(session.goodput_bytes_per_s))
    lines += entry("Throughput", f"{rate(session.throughput_bytes_per_s)} data messages")
    lines += entry("", f"{rate(session.throughput_all_bytes_per_s)} all received")
    lines += overhead(session) + kinds(session) + compression(session) + timings(session) + reliability(session)
    for note in session.notes:
        where = f"frame {note['frame_first']}" if note["count"] == 1 else f"{note['count']} times from frame {note['frame_first']}"
        lines += entry("Note", f"{note['text']} ({where}; affects {note['affects']})")
    frames = f"frames {session.frame_first} to {session.frame_last}"
    return lines + entry("Wireshark", f"-Y '{session.filter}' ({frames})")


def overhead(session: SessionFigures) -> list[str]:
    """Write the overhead, whole and by part."""
    share = "n/a" if session.overhead_ratio is None else f"{100 * session.overhead_ratio:.2f} %"
    lines = entry("Overhead", f"{count(session.overhead_bytes)} of {count(session.session_bytes)} bytes ({share})")
    lines += entry("", ", ".join(f"{part} {count(size)}" for part, size in session.overhead_by_part_bytes.items()))
    if session.overhead_both_legs_bytes is not None:
        lines += entry("", f"{count(session.overhead_both_legs_bytes)} bytes with the publishers' legs")
    control = f"{count(session.control_frames)} frames, {count(session.control_bytes)} bytes"
    return lines + entry("", f"transport control among it: {control}")


def kinds(session: SessionFigures) -> list[str]:
    """Write messages by kind: how many, own size, bytes at the layer."""
    lines = [f"  {'Messages':<38}{'count':>9}{'size in bytes':>16}{'bytes':>15}"]
    for kind in session.kinds:
        arrow = "→" if kind.direction == "c2s" else "←"
        size = str(kind.bytes_min) if kind.bytes_min == kind.bytes_max else f"{kind.bytes_min}…{kind.bytes_max}"
        lines.append(f"  {arrow} {kind.kind[:35]:<36}{count(kind.messages):>9}{size:>16}{count(kind.layer_bytes):>15}")
    return lines


def compression(session: SessionFigures) -> list[str]:
    """Write what HPACK saved (RFC 7541)."""
    if not session.field_section_bytes:
        return []
    saved = 1 - session.field_block_bytes / session.field_section_bytes
    text = f"{count(session.field_section_bytes)} bytes of field names and values, sent as {count(session.field_block_bytes)}"
    return entry("HPACK", f"{text} ({saved:.2%} saved)")


def timings(session: SessionFigures) -> list[str]:
    """Write the measured times."""
    if not session.times:
        return []
    lines = [f"  {'Times':<27}{'n':>6}{'median':>11}{'mean':>11}{'SD':>11}{'p95':>11}"]
    for times in session.times:
        name = f"{times.kind} {TIMING_WORDS[times.timing]}".strip()
        cells = "".join(f"{duration(value):>11}" for value in (times.median_s, times.mean_s, times.sd_s, times.p95_s))
        lines.append(f"  {name[:27]:<27}{times.count:>6}{cells}")
    return lines


def reliability(session: SessionFigures) -> list[str]:
    """Write what went wrong on the way, where anything did."""
    counted = {
        "sent again": session.retransmissions,
        "TCP segments sent again": session.tcp_retransmissions,
        "TCP segments out of order": session.tcp_out_of_order,
        "bytes lost in the capture": session.lost_bytes,
        "frames captured twice": session.captured_twice,
        "frames sent again by the link layer": session.link_retransmissions,
        "malformed": session.malformed,
        "unanswered": session.exchanges_unanswered,
    }
    told = [f"{count(number)} {words}" for words, number in counted.items() if number]
    return entry("Reliability", ", ".join(told) if told else "nothing sent again, lost or unanswered")


def short(summary: Summary, wanted: tuple[int, ...]) -> list[str]:
    """Write a line a session, the largest where there are many, and the sums of all."""
    sessions = list(summary.sessions.chosen(wanted)) if wanted else summary.sessions.largest(LINES)
    lines = ["", f"{'':>5} {'protocol':<9}{'client':<24}{'data':>8}{'bytes':>10}{'ΔTime':>11}{'overhead':>11}"]
    for session in sessions:
        client = session.client if len(session.client) <= 23 else session.client[:22] + "…"
        cells = f"{session.data_messages:>8}{session.data_bytes:>10}{duration(session.delta_time_s):>11}{session.overhead_bytes:>11}"
        lines.append(f"{session.session:>5} {session.protocol:<9}{client:<24}{cells}")
    total, left_out = summary.total, len(summary.sessions) - len(sessions)
    if left_out and not wanted:
        lines.append(f"{'…':>5} {left_out:<9}{'smaller sessions':<24}{'(all of them: --format csv, json, …)':>40}")
    sums = f"{total.data_messages:>8}{total.data_bytes:>10}{'':>11}{total.overhead_bytes:>11}"
    return [*lines, f"{'all':>5} {total.sessions:<9}{'sessions':<24}{sums}", "one session in full: --session N"]


def foot(summary: Summary) -> list[str]:
    """Write what is in no session, and notes about the whole."""
    lines = [""]
    others = ", ".join(f"{other['protocol']} {count(other['frames'])}" for other in summary.others)
    if others:
        lines += folded(f"Frames in no session: {others}", later="  ")
    ports: dict[str, list[str]] = defaultdict(list)
    for port in summary.unmatched_ports:
        ports[port["transport"]].append(str(port["port"]))
    for transport, numbers in ports.items():
        shown = " ".join(numbers[:12]) + (" …" if len(numbers) > 12 else "")
        lines += folded(f"Ports of unknown protocols ({transport}; decide with -d): {shown}", later="  ")
    for note in summary.notes:
        lines += folded(f"Note: {note['text']} (affects {note['affects']})", later="  ")
    return lines if len(lines) > 1 else []


def as_json(summary: Summary, wanted: tuple[int, ...]) -> str:
    """Write the summary as one JSON object, with the version that made it."""
    from pcapstat.formats import notation

    sessions = [session.as_dict() | exact_times(session) for session in summary.sessions.chosen(wanted)]
    whole = {
        "pcapstat": __version__,
        "choices": asdict(summary.choices),
        "engine": summary.engine._asdict() if summary.engine else None,
        "captures": summary.captures,
        "sessions": sessions,
        "others": summary.others,
        "unmatched_ports": summary.unmatched_ports,
        "notes": summary.notes,
    }
    return notation.as_json(whole, "\n") + "\n"


def exact_times(session: SessionFigures) -> dict[str, Decimal | None]:
    """Return Time1 and Time2 in seconds with all nine decimals, as tshark writes frame.time_epoch."""
    from decimal import Decimal

    return {
        name: None if time_ns is None else Decimal(time_ns).scaleb(-9)
        for name, time_ns in (("time1_s", session.time1_ns), ("time2_s", session.time2_ns))
    }
