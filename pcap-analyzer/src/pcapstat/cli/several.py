"""Captures that a command reads one by one, and what it has to say of them when it leaves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pcapstat import Capture
from pcapstat.cli.options import leave, opened
from pcapstat.errors import EXIT_CHECK_FAILED
from pcapstat.spool import kept


class Several:
    """Captures that are read each by itself, with the same options."""

    def __init__(self, options: dict[str, Any]) -> None:
        """Begin with none; `options` are those of `capture_options`."""
        self.options = options
        self.is_strict = options["strict"]
        self.damage: list[list[str]] = []
        self.has_notes = False

    @contextlib.contextmanager
    def opened(self, path: str) -> Iterator[Capture]:
        """Open the capture at a path and take note of its damage. Standard input is kept in a file: several passes may be made."""
        with kept(path) as file:
            capture = opened((file,), (), {**self.options, "name": path if file != path else None})
            lines: list[str] = []
            self.damage.append(lines)
            yield capture
            lines += capture.damage
            self.has_notes |= self.is_strict and capture.has_notes

    def leave(self, has_failed: bool = False) -> int:
        """Say what damaged the captures, and return the exit code: 1 where a check failed, else that of damage."""
        code = leave([line for lines in self.damage for line in lines], self.has_notes)
        return EXIT_CHECK_FAILED if has_failed else code
