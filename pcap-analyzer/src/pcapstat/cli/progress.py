"""Progress of a pass on standard error, where that is a terminal and the pass takes long."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

from pcapstat import Capture

PATIENCE_S = 1.0
"""What is shorter shows nothing."""
STEP_S = 0.2


@contextlib.contextmanager
def shown(capture: Capture) -> Iterator[None]:
    """Show how far the pass under way has come: frames, seconds, frames a second."""
    if not sys.stderr.isatty():
        yield
        return
    is_over = threading.Event()
    watcher = threading.Thread(target=watch, args=(capture, is_over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def watch(capture: Capture, is_over: threading.Event) -> None:
    """Write a line again and again, and wipe it at the end."""
    begun = time.monotonic()
    width = 0
    if is_over.wait(PATIENCE_S):
        return
    while not is_over.wait(STEP_S):
        elapsed_s = time.monotonic() - begun
        line = f"{capture.frame:,} frames, {elapsed_s:.0f} s, {capture.frame / elapsed_s:,.0f} frames/s".replace(",", " ").replace(
            "  ", ", "
        )
        width = max(width, len(line))
        sys.stderr.write(f"\r{line:<{width}}")
        sys.stderr.flush()
    if width:
        sys.stderr.write("\r" + " " * width + "\r")
        sys.stderr.flush()
