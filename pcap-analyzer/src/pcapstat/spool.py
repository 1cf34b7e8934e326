"""Pipes for those who read more than once: standard input, named pipes, what a shell's `<(…)` gives."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from pcapstat.errors import UnreadableCapture


def is_read_once(path: str) -> bool:
    """Whether what a path names is gone once it was read."""
    return path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))


def keep(path: str, target: str) -> None:
    """Copy what comes through a pipe to the file `target`. Raises UnreadableCapture where the pipe may not be read."""
    # imported here and below: most captures are files
    import shutil

    try:
        with contextlib.nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as pipe, open(target, "wb") as file:
            shutil.copyfileobj(pipe, file)
    except OSError as error:
        raise UnreadableCapture(f"{path}: {error.strerror} (write the capture to a file)") from None


@contextlib.contextmanager
def kept(path: str) -> Iterator[str]:
    """Return a path; for a pipe that of a temporary file with what came through it, which goes afterwards."""
    if not is_read_once(path):
        yield path
        return
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="pcapstat-") as file:
        keep(path, file.name)
        yield file.name
