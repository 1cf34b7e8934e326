"""Speed and memory of whole processes, as ratios measured in one run on generated captures of a million frames."""

from __future__ import annotations

import compileall
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import generate

import pcapstat

FRAMES = int(os.environ.get("BENCH_FRAMES", "1000000"))
LONGER = 10
"""How many times as long the longest capture is."""
NFSTREAM = "import sys, nfstream; print(sum(1 for _ in nfstream.NFStreamer(source=sys.argv[1], n_meters=1)))"
FIELDS = {
    "times, and bytes by layer": ["frame.number", "frame.time_epoch", "frame.len", "ip.hdr_len", "tcp.hdr_len", "tcp.len", "udp.length"],
    "who talks": ["ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "tcp.stream", "udp.srcport", "udp.dstport", "udp.stream"],
    "what TCP sends again, or the capture took twice": ["tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "ip.id"],
    "MQTT's flows and sessions": [
        "mqtt.msgtype",
        "mqtt.qos",
        "mqtt.dupflag",
        "mqtt.msgid",
        "mqtt.len",
        "mqtt.topic",
        "mqtt.topic_len",
        "mqtt.property.topic_alias",
        "mqtt.clientid",
        "mqtt.ver",
    ],
    "CoAP's exchanges": [
        "coap.type",
        "coap.code",
        "coap.mid",
        "coap.token",
        "coap.opt.observe",
        "coap.opt.uri_path",
        "coap.opt.block_number",
        "coap.payload_length",
    ],
}
"""What a summary is made of."""
PCAPSTAT = [sys.executable, "-c", "from pcapstat.cli import main; main()"]


def once(command: list[str]) -> tuple[float, float]:
    """Return the wall time in seconds and the peak memory in MB of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def measure(listed: dict[str, tuple[list[str], int]]) -> dict[str, tuple[float, float]]:
    """Return the median wall times and the peaks of commands with their numbers of runs.

    They take turns: where the machine is slower for a while, it is so for all of them.
    """
    results: dict[str, list[tuple[float, float]]] = {title: [] for title in listed}
    for turn in range(max(runs for _, runs in listed.values())):
        for title, (command, runs) in listed.items():
            if turn < runs:
                results[title].append(once(command))
    return {title: (statistics.median(wall for wall, _ in found), max(peak for _, peak in found)) for title, found in results.items()}


def commands(capture: Path, folder: Path) -> dict[str, tuple[list[str], int]]:
    """Return what is measured, with the number of runs."""
    fields = [word for fields in FIELDS.values() for field in fields for word in ("-e", field)]
    listed = {
        "plain reading": (["cat", str(capture)], 3),
        "pcapstat summarize": ([*PCAPSTAT, "summarize", str(capture)], 5),
        "pcapstat messages, Parquet": ([*PCAPSTAT, "messages", str(capture), "-O", str(folder / "messages.parquet")], 3),
        "capinfos": (["capinfos", str(capture)], 5),
        "tshark -T fields": (["tshark", "-n", "-r", str(capture), "-T", "fields", *fields], 1),
    }
    if importlib.util.find_spec("nfstream"):
        listed["nfstream (flows only)"] = ([sys.executable, "-c", NFSTREAM, str(capture)], 3)
    one_core = ["taskset", "-c", "0", *listed["pcapstat summarize"][0]]
    listed["pcapstat summarize, one core"] = (one_core, 3)
    return {name: entry for name, entry in listed.items() if shutil.which(entry[0][0])}


def engine(capture: Path) -> dict[str, tuple[list[str], int]]:
    """Return what the tshark engine is measured against: the PDML that tshark writes with everything switched on."""
    by_tshark = [*PCAPSTAT, "summarize", "--engine", "tshark", str(capture)]
    return {"tshark -T pdml": (["tshark", "-n", "-r", str(capture), "-T", "pdml"], 3), "pcapstat summarize, tshark engine": (by_tshark, 3)}


def generated(capture: Path, kind: str, frames: int, endpoints: int) -> None:
    """Write a capture, and wait until it is on the disk: writing it out would slow down what is measured first."""
    generate.write(capture, kind, frames, endpoints)
    os.sync()


def show(results: dict[str, tuple[float, float]], base: str) -> None:
    """Print wall time, its ratio to that of `base`, and peak memory."""
    for title, (wall_s, peak_mb) in results.items():
        print(f"  {title:<34}{wall_s:>9.3f} s{wall_s / results[base][0]:>9.2f} x{peak_mb:>9.0f} MB")


def main() -> None:
    """Generate, measure, print. The package is compiled first, as pip does when it installs one that is not editable."""
    compileall.compile_dir(Path(pcapstat.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, endpoints in (("mqtt", 400), ("coap", 5000), ("mqtt", 20_000)):
            capture = folder / f"{kind}.pcap"
            generated(capture, kind, FRAMES, endpoints)
            print(f"\n{kind}: {FRAMES} frames, {endpoints} endpoints, {capture.stat().st_size / 1e6:.0f} MB")
            show(measure(commands(capture, folder)), "pcapstat summarize")
        generated(capture, "mqtt", LONGER * FRAMES, 400)
        print(f"\nmqtt: {LONGER * FRAMES} frames, 400 endpoints, {capture.stat().st_size / 1e6:.0f} MB")
        short = commands(capture, folder)
        show(measure({title: (short[title][0], 3) for title in ("pcapstat summarize", "capinfos")}), "pcapstat summarize")
        generated(capture, "mqtt", FRAMES // 20, 400)
        print(f"\nengine tshark: mqtt, {FRAMES // 20} frames")
        show(measure(engine(capture)), "tshark -T pdml")


if __name__ == "__main__":
    main()
