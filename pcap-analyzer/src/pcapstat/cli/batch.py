"""pcapstat batch: archives into a dataset."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pcapstat import errors
from pcapstat.cli.options import CAPTURE, NamedPath
from pcapstat.cli.output import complain

if TYPE_CHECKING:
    from pcapstat.archive.work import Record

TABLE_NAMES = ("messages", "exchanges", "sessions", "directions", "kinds", "timings", "notes")
"""Names of archive.TABLES that are written on demand; a test compares the two."""


@click.command("batch")
@click.argument("archives", nargs=-1, required=True, type=CAPTURE, metavar="ARCHIVE…")
@click.option("-O", "--output", required=True, type=NamedPath(file_okay=False), metavar="DATASET", help="The dataset's folder.")
@click.option("--labels", metavar="PATTERN", help="Labels in the paths: '{library}/{qos}/round{round:d}.pcapng'.")
@click.option("--tables", default=",".join(TABLE_NAMES), show_default=True, metavar="NAMES", help="Tables, separated by commas.")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes; one a core where it is left out.")
@click.option(
    "--split", default=256, show_default=True, type=click.IntRange(0), metavar="MB", help="Share larger captures among workers; 0 for none."
)
@click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler instead: tcp://host:8786.")
@click.option("--resume/--fresh", default=True, show_default=True, help="Leave alone what is complete and unchanged, or do all again.")
@click.option("-d", "--decode-as", multiple=True, metavar="RULE", help="Decode a port as a protocol: udp.port==5700,coap.")
@click.option("--stop-after", type=click.IntRange(1), metavar="N", help="End each session at its N-th data message.")
@click.option("--engine", type=click.Choice(["native", "tshark", "auto"]), default="auto", show_default=True, help="As with summarize.")
@click.option("--keylog", multiple=True, type=NamedPath(), metavar="FILE", help="TLS key log, for all captures.")
def command(archives: tuple[str, ...], output: str, labels: str | None, tables: str, resume: bool, **options: Any) -> int:
    """Measure every capture below folders, globs, tar and zip files or addresses into one partitioned Parquet dataset.

    A capture that cannot be read is recorded with its error in the table captures and stops nothing (exit code 4). A run that was ended
    goes on where it was; a second run does only what changed.
    """
    from pcapstat.archive.folder import alone
    from pcapstat.archive.schedule import cluster, locally, on_dask
    from pcapstat.archive.sources import listed, named
    from pcapstat.archive.work import Job, copies, done, measured_otherwise
    from pcapstat.formats.text import counted

    workers, scheduler, split = (options.pop(name) for name in ("workers", "scheduler", "split"))
    wanted = tuple(name.strip() for name in tables.split(","))
    unknown = [name for name in wanted if name not in TABLE_NAMES]
    if unknown:
        raise errors.UsageError(f"--tables {tables}: no table {', '.join(unknown)} (there are: {', '.join(TABLE_NAMES)})")
    options["keylog"] = tuple(map(os.path.abspath, options["keylog"]))
    told = tuple(sorted((name, list(value) if isinstance(value, tuple) else value) for name, value in options.items()))
    job = Job(str(Path(output).resolve()), wanted, told, labels, split * 1_000_000)
    job.check()
    closed: list[str] = []
    sources = listed(list(archives), closed.append)
    for line in closed:
        complain(line)
    outcomes: Counter[str] = Counter()
    with cluster(scheduler) if scheduler else contextlib.nullcontext() as client, alone(Path(job.dataset)):
        known = {source: done(job, source) if resume else None for source in sources}
        todo = [source for source, record in known.items() if record is None]
        there = [record for record in known.values() if record is not None]
        unchanged = Counter(record.outcome for record in there)
        records = on_dask(job, todo, client) if client else locally(job, todo, workers)
        with counting(records, len(todo)) as bar:
            for record in bar:
                there.append(record)
                outcomes[record.outcome] += 1
                if record.error:
                    complain(named(record.source, record.error))
        others = measured_otherwise(job, sources)
    if others:
        were, these, them = ("was", "this one", "it") if others == 1 else ("were", "these", "them")
        complain(f"{output}: {others} of its other captures {were} measured with other options (name {these} too, to measure {them} again)")
    if twice := copies(there):
        name, first = twice[0]
        more = f", and {counted(len(twice) - 1, 'more capture')} that of another" if twice[1:] else ""
        complain(f"{output}: {name} has the content of {first}{more}: each counts (leave out what is to count once)")
    what = listing(outcomes) or "nothing to do"
    click.echo(f"{counted(len(sources), 'capture')}: {what}, {unchanged.total()} unchanged{faulty(unchanged)}", err=True)
    return errors.EXIT_DAMAGED if closed or (outcomes + unchanged).keys() - {"complete"} else errors.EXIT_FINE


def counting(records: Iterable[Record], length: int) -> contextlib.AbstractContextManager[Iterable[Record]]:
    """Show how many captures are done, where standard error is a terminal: elsewhere click would write its label and no more."""
    if not sys.stderr.isatty():
        return contextlib.nullcontext(records)
    return click.progressbar(records, length=length, label="captures", show_pos=True, file=sys.stderr)


def listing(outcomes: Counter[str]) -> str:
    """Write how often each outcome was."""
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))


def faulty(unchanged: Counter[str]) -> str:
    """Tell how many captures that were not touched are recorded as damaged or failed, and where the reasons are."""
    rest = Counter({outcome: count for outcome, count in unchanged.items() if outcome != "complete"})
    return f" (of these {listing(rest)}: the table captures tells why)" if rest else ""
