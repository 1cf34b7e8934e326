"""Standard input for those who read it more than once."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def kept(path: str) -> Iterator[str]:
    """Return a path; "-" becomes a temporary file with what standard input holds, which goes afterwards."""
    if path != "-":
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="pcapstat-") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield file.name
