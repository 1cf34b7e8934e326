"""Who does the work: the processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from pcapstat.archive.sources import Source
from pcapstat.archive.work import Job, Record, process
from pcapstat.errors import PcapstatError, ToolMissing

RETRIES = 3
"""How often Dask gives a capture to another worker when its own dies."""


def locally(job: Job, sources: Sequence[Source], workers: int | None) -> Iterator[Record]:
    """Work on this machine, one process a core or as many as are told."""
    count = min(workers or os.cpu_count() or 1, max(len(sources), 1))
    if count == 1:
        yield from (process(job, source) for source in sources)
        return
    with ProcessPoolExecutor(count) as pool:
        futures = [pool.submit(process, job, source) for source in sources]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            raise PcapstatError("a worker process was ended (run the same command again: what is complete stays)") from None
        finally:
            for future in futures:
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
        futures = [client.submit(process, job, source, pure=False, retries=RETRIES) for source in sources]
        for future in distributed.as_completed(futures):
            yield future.result()
