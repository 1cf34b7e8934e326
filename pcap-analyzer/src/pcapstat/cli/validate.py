"""pcapstat validate: messages held against the standards' rules, and their sizes against what the standards specify."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import IO, Any

import click

from pcapstat import __version__, errors
from pcapstat.cli.options import FORMAT_NAMES, capture_options, chosen_format, opened, writing
from pcapstat.cli.output import destination

FAIL_ON = {"error": {"error"}, "warning": {"error", "warning"}, "note": {"error", "warning", "note"}, "never": set()}


@click.command("validate")
@capture_options
@writing(*FORMAT_NAMES, "sarif", "junit")
@click.option(
    "--fail-on", type=click.Choice(list(FAIL_ON)), default="warning", show_default=True, help="Least severity that makes the exit code 1."
)
@click.option("--sizes", is_flag=True, help="Observed, specified and minimal size of each message instead.")
@click.option("--rules", "lists_rules", is_flag=True, help="List the rules instead.")
def command(files: tuple[str, ...], read: tuple[str, ...], form: str | None, output: str | None, **options: Any) -> int:
    """Hold each message against the rules of its standard: format, identifiers, flows, order, retransmission, limits.

    A row is a message that breaks a rule, with its frame. Leaves with 1 where there is one (--fail-on).
    """
    from pcapstat.rules import RULES

    fail_on, lists_sizes, lists_rules = options.pop("fail_on"), options.pop("sizes"), options.pop("lists_rules")
    rules = [{"id": rule.id, "severity": rule.severity, "source": rule.source, "text": rule.text} for rule in RULES]
    form = chosen_format(form, output)
    with destination(output) as file:
        if lists_rules:
            write(rules, list(rules[0]), form, file)
            return errors.EXIT_FINE
        rows = list(judged([*read, *files], options, lists_sizes))
        if form == "sarif":
            from pcapstat.formats.reports import sarif

            sarif(rows, rules, __version__, file)
        elif form == "junit":
            from pcapstat.formats.reports import junit

            junit(rows, rules, file)
        else:
            write(rows, SIZE_COLUMNS if lists_sizes else COLUMNS, form, file)
    if lists_sizes:
        return errors.EXIT_CHECK_FAILED if any(row["specified"] not in {None, row["observed"]} for row in rows) else errors.EXIT_FINE
    kinds = len({row["rule"] for row in rows})
    click.echo(f"{len(rows)} violation{'s'[len(rows) == 1 :]} of {kinds} rule{'s'[kinds == 1 :]}", err=True)
    return errors.EXIT_CHECK_FAILED if any(row["severity"] in FAIL_ON[fail_on] for row in rows) else errors.EXIT_FINE


COLUMNS = ["rule", "severity", "session", "frame", "explanation", "file", "filter", "text", "source"]
SIZE_COLUMNS = ["session", "frame", "kind", "observed", "specified", "minimal", "file"]


def judged(paths: list[str], options: dict[str, Any], lists_sizes: bool) -> Iterator[dict[str, Any]]:
    """Judge each capture by itself. Standard input is kept in a file, since two passes are made."""
    from pcapstat.rules import judge
    from pcapstat.rules.sizes import sizes
    from pcapstat.spool import kept

    for path in paths or [""]:
        with kept(path) as file:
            capture = opened((file,) if file else (), (), dict(options))
            if lists_sizes:
                found: Iterable[Any] = sizes(rows_of(capture.messages))
            else:
                found = judge(rows_of(capture.messages), rows_of(capture.notes))
            for row in found:
                yield asdict(row) | {"file": path}


def rows_of(table: Any) -> Iterator[dict[str, Any]]:
    """Return a table's rows one by one."""
    import pyarrow as pa

    for batch in pa.RecordBatchReader.from_stream(table):
        yield from batch.to_pylist()


def write(rows: list[dict[str, Any]], columns: list[str], form: str, file: IO[bytes]) -> None:
    """Write rows in one of the tables' formats."""
    import pyarrow as pa

    from pcapstat.formats import FORMATS

    numbers = {"session", "frame", "observed", "specified", "minimal"}
    schema = pa.schema([(name, pa.int64() if name in numbers else pa.string()) for name in columns])
    FORMATS[form](pa.Table.from_pylist(rows, schema=schema), file, [])
