"""Who does the work: the processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from pcapstat.archive.sources import Source
from pcapstat.archive.work import ALL, Job, Part, Record, Share, finish, measure, process
from pcapstat.errors import PcapstatError, ToolMissing

RETRIES = 3
"""How often Dask gives a capture to another worker when its own dies."""


class Progress:
    """The work under way: a future for each capture, or for each share of a large one, whose record is written when all are there."""

    def __init__(self, job: Job, sources: Sequence[Source], workers: int, submit: Callable[..., Any]) -> None:
        """Hand out all work; `submit` takes a function and its arguments, and returns a future."""
        self.job = job
        self.parts: dict[Source, list[Part]] = {}
        self.places: dict[Any, tuple[Source, Share]] = {}
        for source in sources:
            for share in shares(job, source, workers):
                future = submit(process, job, source) if share == ALL else submit(measure, job, source, share)
                self.places[future] = (source, share)

    def record(self, future: Any) -> Record | None:
        """Return a capture's record where this future was the last of it."""
        source, share = self.places[future]
        if share == ALL:
            record: Record = future.result()
            return record
        parts = self.parts.setdefault(source, [])
        parts.append(future.result())
        return finish(self.job, source, sorted(parts, key=lambda part: part.files)) if len(parts) == share.count else None


def shares(job: Job, source: Source, workers: int) -> list[Share]:
    """Return the shares of a capture: one, or for a large capture as many as there are workers."""
    is_large = 0 < job.split_bytes < source.size_bytes()
    return [Share(index, workers) for index in range(workers)] if is_large and workers > 1 else [ALL]


def locally(job: Job, sources: Sequence[Source], workers: int | None) -> Iterator[Record]:
    """Work on this machine, one process a core or as many as are told."""
    count = workers or os.cpu_count() or 1
    is_shared = any(len(shares(job, source, count)) > 1 for source in sources)
    if count == 1 or (len(sources) == 1 and not is_shared):
        yield from (process(job, source) for source in sources)
        return
    with ProcessPoolExecutor(count if is_shared else min(count, len(sources) or 1)) as pool:
        progress = Progress(job, sources, count, pool.submit)
        try:
            yield from filter(None, map(progress.record, as_completed(list(progress.places))))
        except BrokenProcessPool:
            raise PcapstatError("a worker process was ended (run the same command again: what is complete stays)") from None
        finally:
            for future in progress.places:
                future.cancel()


def on_dask(job: Job, sources: Sequence[Source], address: str) -> Iterator[Record]:
    """Work on a Dask cluster whose workers see the same files. Raises ToolMissing without Dask, PcapstatError without the cluster."""
    try:
        distributed: Any = importlib.import_module("dask.distributed")
    except ImportError:
        raise ToolMissing("dask: not installed (pip install 'pcapstat[dask]')") from None
    try:
        client = distributed.Client(address, timeout=10)
    except OSError as error:
        raise PcapstatError(f"{address}: {error} (start it with dask scheduler and dask worker)") from None
    with client:
        workers = max(sum(client.ncores().values()), 1)
        progress = Progress(job, sources, workers, functools.partial(client.submit, pure=False, retries=RETRIES))
        yield from filter(None, map(progress.record, distributed.as_completed(list(progress.places))))
