"""The dataset's folder: its files are there whole or not at all, and one run at a time works on it."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pcapstat.errors import OutputError, naming

LOCK = "_lock"
"""File that the run at work holds. Readers of Parquet pass over names with an underscore."""
PARTS = "_parts"
"""Folder of files that are not whole yet; what a run that was killed leaves there goes with the next one."""
PATIENCE_S = 3.0
"""A run that was killed has workers, which notice it and end; so long another run waits for them."""
STEP_S = 0.05


@contextlib.contextmanager
def alone(dataset: Path) -> Iterator[None]:
    """Keep other runs away from a dataset. Raises OutputError where one is at work on it, or where it cannot be written."""
    with naming(dataset):
        dataset.mkdir(parents=True, exist_ok=True)
        lock = os.open(dataset / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        take(lock, dataset)
        shutil.rmtree(dataset / PARTS, ignore_errors=True)
        try:
            yield
        finally:
            shutil.rmtree(dataset / PARTS, ignore_errors=True)
    finally:
        os.close(lock)


def take(lock: int, dataset: Path) -> None:
    """Lock the file; it is free again when this process and its workers have ended. Raises OutputError."""
    # imported here: Windows has no such module, and needs none for anything else
    import fcntl

    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in {errno.EAGAIN, errno.EACCES}:
                # a file system without locks: nothing keeps two runs apart
                return
        if time.monotonic() > end:
            raise OutputError(f"{dataset}: another run is at work on it (wait until it has ended)")
        time.sleep(STEP_S)


@contextlib.contextmanager
def whole(dataset: Path, name: str) -> Iterator[IO[bytes]]:
    """Open a file of the dataset that is there whole or not at all, whenever the process ends. Raises OutputError.

    It is not forced to the disk: records tell sizes.
    """
    target = dataset / name
    with naming(target):
        part = dataset / PARTS / uuid.uuid4().hex
        for folder in (part.parent, target.parent):
            folder.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("xb") as file:
                yield file
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
