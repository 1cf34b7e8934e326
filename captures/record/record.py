"""Record the sample captures: `python3 captures/record/record.py [--list] [--install] [SCENARIO…]`; needs root.

Each scenario runs in network namespaces made for it; traffic leaves neither them nor the machine.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import capture
import index
import keys
import payloads
import truth
from drivers import BUILT, DRIVERS, HERE, Run, Start
from lab import Lab, Process, address, run
from scenarios import VERSIONS, Scenario, table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CAPTURES = HERE.parent
LIMIT_S = 120
"""No run lasts longer."""


def main() -> int:
    """Record the named scenarios, or all."""
    parser = argparse.ArgumentParser(description="Record the sample captures of pcapstat.")
    parser.add_argument("scenario", nargs="*", help="names of scenarios; all of them when none is given")
    parser.add_argument("--list", action="store_true", help="list the scenarios and end")
    parser.add_argument("--install", action="store_true", help="install the libraries (apt, Maven, PyPI) and end")
    arguments = parser.parse_args()
    scenarios = table()
    if arguments.list:
        print("\n".join(f"{name:34} {row.library}, {row.protocol}: {row.shows}" for name, row in scenarios.items()))
        return 0
    if arguments.install:
        install()
        return 0
    unknown = [name for name in arguments.scenario if name not in scenarios]
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; --list names them")
    if not (BUILT / "java" / "classes").exists():
        install()
    failed = [name for name in arguments.scenario or scenarios if not attempt(scenarios[name])]
    index.write(CAPTURES, scenarios)
    if failed:
        print(f"failed: {' '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def install() -> None:
    """Install what the drivers need, by name and pinned version."""
    packages = (HERE / "apt.txt").read_text().split()
    run("apt-get", "install", "-y", "--no-install-recommends", *packages, timeout_s=900)
    run("python3", "-m", "venv", str(BUILT / "venv"))
    run(str(BUILT / "venv" / "bin" / "pip"), "install", "-q", "-r", str(HERE / "requirements.txt"), timeout_s=900)
    run("mvn", "-q", "-B", "-f", str(HERE / "java" / "pom.xml"), "package", timeout_s=900)


def attempt(scenario: Scenario) -> bool:
    """Record one scenario, say how it went, and leave its earlier recording alone when it fails."""
    try:
        frames = record(scenario)
    except (RuntimeError, subprocess.SubprocessError, OSError) as error:
        print(f"{scenario.name}: {error}", file=sys.stderr)
        return False
    print(f"{scenario.name}: {frames} frames", flush=True)
    return True


def record(scenario: Scenario) -> int:
    """Run a scenario and write its files; return the number of frames of its main capture."""
    work = BUILT / "runs" / scenario.name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "payloads").write_text("\n".join(_payloads(scenario)), newline="")
    if "TLS" in scenario.security or "HTTP/3" in scenario.protocol:
        keys.make_certificates(work)
    starts = DRIVERS[scenario.driver](Run(scenario, work))
    with Lab(scenario.points, work, scenario.path) as lab:
        recorders = {point: lab.record(point) for point in scenario.record}
        processes = _run(lab, work, starts)
        time.sleep(0.5)
        for recorder in recorders.values():
            recorder.stop()
    return _write(scenario, work, recorders, processes)


def _payloads(scenario: Scenario) -> list[str]:
    count = int(scenario.parameters.get("count", 0))
    match scenario.parameters.get("payload"):
        case "hl7":
            return payloads.hl7(count)
        case "sized":
            return payloads.sized(count, int(scenario.parameters["size"]))
        case _:
            return payloads.hi(count)


def _run(lab: Lab, work: Path, starts: Sequence[Start]) -> list[tuple[Start, Process]]:
    """Start everything, let the applications begin in their order, and wait for their ends."""
    processes = [(start, _started(lab, start)) for start in starts]
    for start, process in processes:
        if start.logs and start.ready:
            process.wait_for(start.ready, 60)
    for start, _ in processes:
        (work / f"begin-{start.name}").touch()
        time.sleep(0.2)
    for start, process in processes:
        if not start.service:
            process.wait(LIMIT_S)
    return processes


def _started(lab: Lab, start: Start) -> Process:
    process = lab.start(start.point, start.command, f"{start.name}.log", start.env)
    if start.service and start.ready:
        process.wait_for(start.ready, 20)
    return process


def _write(
    scenario: Scenario, work: Path, recorders: dict[str, Process], processes: list[tuple[Start, Process]]
) -> int:
    key_log = keys.key_log(work)
    secrets = key_log + keys.shared_secrets(scenario.security)
    captures = []
    total = 0
    for number, (point, recorder) in enumerate(recorders.items()):
        file = f"{scenario.name}.pcapng" if number == 0 else f"{scenario.name}.{point}.pcapng"
        dropped = int(re.findall(r"(\d+) packets dropped by kernel", recorder.text())[-1])
        frames = capture.convert(work / f"{point}.pcap", CAPTURES / file, point, key_log, dropped)
        run("tshark", "-n", "-r", str(CAPTURES / file), "-c", "1")
        total = total or frames
        captures.append({"file": file, "point": point, "clock": "host", "frames": frames, "dropped": dropped})
    if secrets:
        (CAPTURES / f"{scenario.name}.keys").write_text(secrets)
    parts: dict[str, Any] = {
        "server": {"library": scenario.server, "version": VERSIONS[scenario.server]} if scenario.server else {},
        "path": _path(scenario, work),
        "addresses": {point: address(point) for point in scenario.points},
        "applications": [
            truth.application(start.name, address(start.point), process.output())
            for start, process in processes
            if start.logs
        ],
        "capture": captures[0],
        "more_captures": captures[1:],
    }
    (CAPTURES / f"{scenario.name}.truth.json").write_text(truth.document(scenario, scenario.name, parts))
    return total


def _path(scenario: Scenario, work: Path) -> dict[str, float | int]:
    if scenario.path is None:
        return {}
    counts = re.findall(r"(\w+)=(\d+)", (work / "relay").read_text())
    return {**scenario.path, **{name: int(count) for name, count in counts}}


if __name__ == "__main__":
    sys.exit(main())
