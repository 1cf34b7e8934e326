"""Who does the work: the processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from typing import Any

from pcapstat.archive.sources import Source
from pcapstat.archive.work import ALL, Job, Part, Record, Share, finish, measure, process
from pcapstat.errors import EXIT_UNREADABLE, PcapstatError, ToolMissing

CORES_OF_A_PASS = 2
"""Cores that a pass over a large capture keeps at work by itself: one thread reads, one decodes, one writes."""
HANDFUL = 8
"""Captures that a process of this machine is given at a time, where there are many."""
RETRIES = 3
"""How often Dask gives a capture to another worker when its own dies."""
DESERTED = "distributed.scheduler.no-workers-timeout"
"""Dask's setting of how long work waits where there is no worker; without it, as Dask comes, it would wait for ever."""
DESERTED_S = 60
STEP_S = 0.2


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
    """Work on this machine, one process a core or as many as are told. Raises OutputError, and ToolMissing where a process was ended."""
    count = workers or os.cpu_count() or 1
    parts = count // CORES_OF_A_PASS
    is_shared = any(len(shares(job, source, parts)) > 1 for source in sources)
    if count == 1 or (len(sources) == 1 and not is_shared):
        yield from (process(job, source) for source in sources)
        return
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(count if is_shared else min(count, len(sources) or 1), initializer=end_with_parent) as pool:
        progress = Progress(job, pool.submit)
        futures = progress.hand_out(sources, parts, max(1, min(HANDFUL, len(sources) // (HANDFUL * count))))
        try:
            yield from chain.from_iterable(map(progress.records, as_completed(futures)))
        except BrokenProcessPool:
            raise ToolMissing("a worker process was ended (run the same command again: what is complete stays)") from None
        except BaseException:
            # nobody waits for what is under way: it is written whole or not at all
            for worker in set(multiprocessing.active_children()).difference(others):
                worker.kill()
            raise


def end_with_parent() -> None:
    """Let a worker end at once when the process that gives it work was ended; what a terminal sends to both is that process's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=end_after, args=(parent.sentinel,), daemon=True).start()


def end_after(sentinel: int) -> None:
    """End this process once the other one has ended."""
    multiprocessing.connection.wait([sentinel])
    os._exit(EXIT_UNREADABLE)


@contextlib.contextmanager
def cluster(address: str) -> Iterator[Any]:
    """Return a client of a Dask cluster. Raises ToolMissing without Dask or without the cluster."""
    try:
        distributed: Any = importlib.import_module("dask.distributed")
    except ImportError:
        raise ToolMissing("dask: not installed (pip install 'pcapstat[dask]')") from None
    # it would write tracebacks of what is told in one line
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise ToolMissing(f"{address}: {error} (start it with dask scheduler and dask worker)") from None
    with client:
        yield client


def on_dask(job: Job, sources: Sequence[Source], client: Any) -> Iterator[Record]:
    """Work on a Dask cluster whose workers see the same files. Raises OutputError, and ToolMissing where the cluster fails."""
    progress = Progress(job, functools.partial(client.submit, pure=False, retries=RETRIES))
    futures = progress.hand_out(sources, len(client.ncores()), 1)
    try:
        yield from chain.from_iterable(map(progress.records, ended(futures, client)))
    except PcapstatError:
        raise
    except Exception as error:
        # Dask's own errors have no class in common
        told = f"Dask: {type(error).__name__}: {' '.join(str(error).split())}"
        raise ToolMissing(f"{told} (look at the cluster, then run the same command again: what is complete stays)") from None


def ended(futures: Sequence[Any], client: Any) -> Iterator[Any]:
    """Return a cluster's futures as they end. Raises ToolMissing where it has had no worker for too long."""
    dask: Any = importlib.import_module("dask")
    distributed: Any = importlib.import_module("dask.distributed")
    patience_s = dask.utils.parse_timedelta(dask.config.get(DESERTED, None) or DESERTED_S)
    waiting = distributed.as_completed(futures)
    seen_s = time.monotonic()
    while not waiting.is_empty():
        some = waiting.next_batch(block=False)
        yield from some
        if some or client.ncores():
            seen_s = time.monotonic()
        elif time.monotonic() - seen_s > patience_s:
            raise ToolMissing(f"Dask: no worker for {patience_s:.0f} s (start one with dask worker, then run the same command again)")
        if not some:
            time.sleep(STEP_S)
