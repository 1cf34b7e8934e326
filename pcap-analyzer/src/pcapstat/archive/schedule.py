"""Who does the work: the processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from typing import Any

from pcapstat.archive.sources import Source
from pcapstat.archive.work import ALL, Job, Part, Record, Share, finish, measure, process
from pcapstat.errors import ToolMissing

CORES_OF_A_PASS = 2
"""Cores that a pass over a large capture keeps at work by itself: one thread reads, one decodes, one writes."""
HANDFUL = 8
"""Captures that a process of this machine is given at a time, where there are many."""
RETRIES = 3
"""How often Dask gives a capture to another worker when its own dies."""


class Progress:
    """The work under way: a future for some captures, or for a share of a large one, whose record is written when all are there."""

    def __init__(self, job: Job, submit: Callable[..., Any]) -> None:
        """Begin with nothing; `submit` takes a function and its arguments, and returns a future."""
        self.job = job
        self.submit = submit
        self.parts: dict[Source, list[Part]] = {}
        self.shares: dict[Any, tuple[Source, Share] | None] = {}

    def hand_out(self, sources: Sequence[Source], count: int, handful: int) -> list[Any]:
        """Submit all work, large captures in `count` shares, and return its futures."""
        small = []
        for source in sources:
            parts = shares(self.job, source, count)
            if parts == [ALL]:
                small.append(source)
                continue
            for share in parts:
                self.shares[self.submit(measure, self.job, source, share)] = (source, share)
        for first in range(0, len(small), handful):
            self.shares[self.submit(process_several, self.job, small[first : first + handful])] = None
        return list(self.shares)

    def records(self, future: Any) -> list[Record]:
        """Return the records of captures that this future was the last of."""
        place = self.shares[future]
        if place is None:
            records: list[Record] = future.result()
            return records
        source, share = place
        parts = self.parts.setdefault(source, [])
        parts.append(future.result())
        is_last = len(parts) == share.count
        return [finish(self.job, source, sorted(parts, key=lambda part: part.files))] if is_last else []


def process_several(job: Job, sources: Sequence[Source]) -> list[Record]:
    """Work on one capture after the other."""
    return [process(job, source) for source in sources]


def shares(job: Job, source: Source, count: int) -> list[Share]:
    """Return the shares of a capture: `count` of a large one, else one."""
    is_large = 0 < job.split_bytes < source.size_bytes()
    return [Share(index, count) for index in range(count)] if is_large and count > 1 else [ALL]


def locally(job: Job, sources: Sequence[Source], workers: int | None) -> Iterator[Record]:
    """Work on this machine, one process a core or as many as are told."""
    count = workers or os.cpu_count() or 1
    parts = count // CORES_OF_A_PASS
    is_shared = any(len(shares(job, source, parts)) > 1 for source in sources)
    if count == 1 or (len(sources) == 1 and not is_shared):
        yield from (process(job, source) for source in sources)
        return
    with ProcessPoolExecutor(count if is_shared else min(count, len(sources) or 1)) as pool:
        progress = Progress(job, pool.submit)
        futures = progress.hand_out(sources, parts, max(1, min(HANDFUL, len(sources) // (HANDFUL * count))))
        try:
            yield from chain.from_iterable(map(progress.records, as_completed(futures)))
        except BrokenProcessPool:
            raise ToolMissing("a worker process was ended (run the same command again: what is complete stays)") from None
        finally:
            for future in futures:
                future.cancel()


def on_dask(job: Job, sources: Sequence[Source], address: str) -> Iterator[Record]:
    """Work on a Dask cluster whose workers see the same files. Raises ToolMissing without Dask or without the cluster."""
    try:
        distributed: Any = importlib.import_module("dask.distributed")
    except ImportError:
        raise ToolMissing("dask: not installed (pip install 'pcapstat[dask]')") from None
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise ToolMissing(f"{address}: {error} (start it with dask scheduler and dask worker)") from None
    with client:
        progress = Progress(job, functools.partial(client.submit, pure=False, retries=RETRIES))
        futures = progress.hand_out(sources, len(client.ncores()), 1)
        yield from chain.from_iterable(map(progress.records, distributed.as_completed(futures)))
