"""What every Python application shares: its options, its payloads, and the log of what it did."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path


class App:
    """An application of a scenario; prints `S` and `R` lines with time (ns), payload bytes and number."""

    def __init__(self) -> None:
        """Read the options key=value of the command line."""
        self.options = dict(argument.split("=", 1) for argument in sys.argv[1:])
        self.received_count = 0

    def text(self, key: str) -> str:
        """Return an option, empty when it is not given."""
        return self.options.get(key, "")

    def number(self, key: str) -> int:
        """Return an option as a number, 0 when it is not given."""
        return int(self.options.get(key, "0"))

    @property
    def sends(self) -> bool:
        """Whether this application is a sender of data."""
        return self.text("role").startswith("sender")

    @property
    def spacing_s(self) -> float:
        """Pause between two messages."""
        return self.number("spacing_ms") / 1000

    @property
    def full(self) -> bool:
        """Whether the receiver has all that it wants."""
        return self.received_count >= self.number("stop")

    def payloads(self) -> list[bytes]:
        """Return one payload for each message."""
        return Path(self.text("payloads")).read_bytes().split(b"\n")

    def file(self, name: str) -> str:
        """Return the path of a file of the run."""
        return str(Path(self.text("work")) / name)

    def begin(self) -> None:
        """Say that the application is set up, and wait until the recorder lets it begin."""
        print("ready", flush=True)
        while not Path(self.text("begin")).exists():
            time.sleep(0.005)

    @property
    def over(self) -> bool:
        """Whether a client has said that the run is over."""
        return Path(self.file("over")).exists()

    def end(self) -> None:
        """Say that the run is over, for a server to end."""
        Path(self.file("over")).touch()

    def sent(self, payload: bytes) -> None:
        """Log a message that is about to be sent."""
        _log("S", payload)

    def received(self, payload: bytes) -> None:
        """Log a message that was received, unless the application wants no more."""
        if not self.full:
            self.received_count += 1
            _log("R", payload)

    def error(self, what: object) -> None:
        """Log an error."""
        print("E", what, flush=True)


def _log(kind: str, payload: bytes) -> None:
    now = time.time_ns()
    number = re.search(rb"\d{7}", payload)
    print(kind, now, len(payload), int(number.group()) if number else 0, flush=True)
