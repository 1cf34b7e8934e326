"""The laboratory: namespaces, links, recordings and processes of one run, all removed when the run is over."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HUB = "pcapstat-hub"
ADDRESSES = {"receiver": "192.0.2.1", "sender": "192.0.2.2", "broker": "192.0.2.3"}
"""IPv4 address of each point, from the block for documentation of RFC 5737."""


def run(*command: str, timeout_s: float = 300) -> str:
    """Run `command` to its end and return what it printed; a failure carries its error output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:6])}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def address(point: str) -> str:
    """Return the address of a point; further ones are `receiver2`, `sender3` and on."""
    name, number = point.rstrip("0123456789"), point[len(point.rstrip("0123456789")) :]
    first = int(ADDRESSES[name].rsplit(".", 1)[1])
    return f"192.0.2.{first + 10 * (int(number) - 1) if number else first}"


class Lab:
    """Namespaces joined by a bridge, or by a process that loses and delays frames."""

    def __init__(self, points: Sequence[str], work: Path, path: Mapping[str, float] | None = None) -> None:
        """`points` name the namespaces; `work` takes every file of the run; `path` is the plan of a bad link."""
        self.points = list(points)
        self.work = work
        self.path = path
        self._files: list[IO[bytes]] = []
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """Build the namespaces and their links."""
        self.work.mkdir(parents=True, exist_ok=True)
        self._remove()
        run("ip", "netns", "add", HUB)
        if self.path is None:
            _inside(HUB, "ip", "link", "add", "bridge", "type", "bridge", "forward_delay", "0")
            _inside(HUB, "ip", "link", "set", "bridge", "up")
        for number, point in enumerate(self.points, start=1):
            self._join(number, point)
        if self.path is not None:
            plan = [f"{key}={value}" for key, value in self.path.items()]
            relay = str(Path(__file__).with_name("relay.py"))
            self._spawn(["ip", "netns", "exec", HUB, "python3", relay, *self.points, *plan], "relay")
        time.sleep(0.3)
        return self

    def __exit__(self, *_: object) -> None:
        """End what is still running, by its id, and remove the namespaces."""
        for process in reversed(self._processes):
            stop(process)
        for file in self._files:
            file.close()
        self._remove()

    def start(self, point: str, command: Sequence[str], log: str, env: Mapping[str, str] | None = None) -> Process:
        """Start `command` in the namespace of `point`; what it prints goes to the file `log`, errors to `log.err`."""
        return Process(self._spawn(["ip", "netns", "exec", point_name(point), *command], log, env), self.work / log)

    def record(self, point: str) -> Process:
        """Record every frame at `point`, with nanosecond times of the host's clock."""
        file = self.work / f"{point}.pcap"
        command = [
            "tcpdump",
            "-i",
            "eth0",
            "-n",
            "-s",
            "0",
            "-U",
            "--immediate-mode",
            "--time-stamp-precision=nano",
            "-B",
            "8192",
        ]
        recorder = self.start(point, [*command, "-Z", "root", "-w", str(file)], f"tcpdump-{point}")
        recorder.wait_for("listening on", 10)
        return recorder

    def _join(self, number: int, point: str) -> None:
        name = point_name(point)
        run("ip", "netns", "add", name)
        _inside(name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        run("ip", "link", "add", "name", "eth0", "netns", name, "type", "veth", "peer", "name", point, "netns", HUB)
        _inside(name, "ip", "link", "set", "eth0", "address", f"02:00:00:00:00:{number:02x}")
        _inside(name, "ip", "address", "add", f"{address(point)}/24", "dev", "eth0")
        _inside(name, "ip", "link", "set", "lo", "up")
        _inside(name, "ip", "link", "set", "eth0", "up")
        _inside(HUB, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        if self.path is None:
            _inside(HUB, "ip", "link", "set", point, "master", "bridge")
        _inside(HUB, "ip", "link", "set", point, "up")
        for namespace, device in ((name, "eth0"), (HUB, point)):
            _inside(
                namespace, "ethtool", "-K", device, "tx", "off", "rx", "off", "tso", "off", "gso", "off", "gro", "off"
            )

    def _spawn(self, command: Sequence[str], log: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        output, errors = (self.work / log).open("wb"), (self.work / f"{log}.err").open("wb")
        self._files += [output, errors]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env={**os.environ, **(env or {})}
        )
        self._processes.append(process)
        return process

    def _remove(self) -> None:
        present = {line.split()[0] for line in run("ip", "netns", "list").splitlines() if line}
        for name in [HUB, *(point_name(point) for point in self.points)]:
            if name in present:
                run("ip", "netns", "delete", name)


class Process:
    """A process of the laboratory and the file that holds what it printed."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """`log` is the file that takes the output of `process`."""
        self.process = process
        self.log = log

    def output(self) -> str:
        """Return what the process has printed so far."""
        return self.log.read_text(errors="replace")

    def text(self) -> str:
        """Return what the process has printed so far, errors last."""
        return self.output() + Path(f"{self.log}.err").read_text(errors="replace")

    def wait_for(self, words: str, timeout_s: float) -> None:
        """Wait until the process has printed `words`."""
        end = time.monotonic() + timeout_s
        while words not in self.text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.log.name}: no '{words}': {self.text()[-1500:]}")
            time.sleep(0.02)

    def wait(self, timeout_s: float) -> None:
        """Wait for the end of the process; one that fails or hangs is an error."""
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired as late:
            raise RuntimeError(f"{self.log.name}: still running: {self.text()[-1500:]}") from late
        if code != 0:
            raise RuntimeError(f"{self.log.name}: exit code {code}: {self.text()[-1500:]}")

    def stop(self) -> None:
        """End the process if it still runs."""
        stop(self.process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, and insist after five seconds."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def point_name(point: str) -> str:
    """Return the name of the namespace of a point."""
    return f"pcapstat-{point}"


def _inside(namespace: str, *command: str) -> None:
    run("ip", "netns", "exec", namespace, *command)
