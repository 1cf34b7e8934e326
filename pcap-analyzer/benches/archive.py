"""Archives, as whole processes: two workers against one, what a small capture costs, and a comparison over ten million messages."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import generate
from run import PCAPSTAT, measure

CAPTURES = int(os.environ.get("BENCH_CAPTURES", "500"))
MESSAGES = int(os.environ.get("BENCH_MESSAGES", "10000000"))
SMALL_FRAMES = 400
LARGE_FRAMES = 1_000_000
TURNS = 3
GOALS = {"workers": 1.7, "overhead_ms": 20.0, "compare_s": 10.0, "compare_mb": 1000.0}
"""Two workers at least so many times as fast as one; the others at most."""


def batch(archive: Path, dataset: Path, workers: int, split_mb: int = 0) -> float:
    """Return the wall time of measuring an archive anew, in seconds."""
    shutil.rmtree(dataset, ignore_errors=True)
    command = [*PCAPSTAT, "batch", str(archive), "-O", str(dataset), "--workers", str(workers), "--engine", "native"]
    command += ["--split", str(split_mb)]
    return measure(command, 1)[0]


def small(folder: Path) -> None:
    """Measure many small captures by one worker and by two, in turns: other work of the machine meets both. The best of each counts."""
    archive, one = folder / "small", folder / "one"
    for place, count in ((archive, CAPTURES), (one, 1)):
        place.mkdir()
        for number in range(count):
            generate.write(place / f"run-round{number}.pcap", "coap", SMALL_FRAMES, 4)
    turns = [(batch(archive, folder / "ds", 1), batch(archive, folder / "ds", 2), batch(one, folder / "ds", 1)) for _ in range(TURNS)]
    by_one, by_two, start = (min(times) for times in zip(*turns, strict=True))
    print(f"{CAPTURES} captures of {SMALL_FRAMES} frames")
    told("two workers against one", by_one / by_two, "x", GOALS["workers"], by_one / by_two >= GOALS["workers"])
    each_ms = (by_one - start) / (CAPTURES - 1) * 1000
    told("a small capture, one worker", each_ms, "ms", GOALS["overhead_ms"], each_ms <= GOALS["overhead_ms"])


def large(folder: Path) -> None:
    """Measure rounds of a large capture, then compare them from the dataset."""
    archive, dataset = folder / "large", folder / "large-dataset"
    archive.mkdir()
    first = archive / "run-round1.pcap"
    generate.write(first, "mqtt", LARGE_FRAMES, 400)
    whole_s, shared_s = batch(archive, dataset, 4), batch(archive, dataset, 4, 1)
    print(f"one capture of {LARGE_FRAMES} frames: {whole_s:.1f} s whole, {shared_s:.1f} s in two shares ({whole_s / shared_s:.2f} x)")
    rounds = max(MESSAGES // LARGE_FRAMES, 1)
    for number in range(2, rounds + 1):
        (archive / f"run-round{number}.pcap").symlink_to(first)
    whole_s = batch(archive, dataset, os.cpu_count() or 1)
    wall_s, peak_mb = measure([*PCAPSTAT, "compare", str(dataset), "--figure", "goodput", "--figure", "overhead"])
    print(f"a dataset of {rounds} captures of {LARGE_FRAMES} frames, about a message each; made in {whole_s:.1f} s")
    told("compare", wall_s, "s", GOALS["compare_s"], wall_s <= GOALS["compare_s"])
    told("its memory", peak_mb, "MB", GOALS["compare_mb"], peak_mb <= GOALS["compare_mb"])


def told(title: str, value: float, unit: str, goal: float, is_met: bool) -> None:
    """Print a figure beside its goal."""
    print(f"  {title:<30}{value:>9.2f} {unit:<3} goal {goal:g}: {'met' if is_met else 'missed'}")


def main() -> None:
    """Generate, measure, print."""
    with tempfile.TemporaryDirectory() as name:
        small(Path(name))
        large(Path(name))


if __name__ == "__main__":
    main()
