"""pcapstat validate: messages held against the standards' rules, and their sizes against what the standards specify."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import IO, Any

import click

from pcapstat import __version__, errors
from pcapstat.capture import Table
from pcapstat.cli.options import FORMAT_NAMES, capture_options, chosen_format, named, writing
from pcapstat.cli.output import destination
from pcapstat.cli.several import Several

REPORTS = ("sarif", "junit")
"""Formats of violations, for other programs."""
FAIL_ON = {"error": {"error"}, "warning": {"error", "warning"}, "note": {"error", "warning", "note"}, "never": set()}


@click.command("validate")
@capture_options
@writing(*FORMAT_NAMES, *REPORTS)
@click.option(
    "--fail-on", type=click.Choice(list(FAIL_ON)), default="warning", show_default=True, help="Least severity that makes the exit code 1."
)
@click.option("--sizes", is_flag=True, help="Observed, specified and minimal size of each message instead.")
@click.option("--rules", "lists_rules", is_flag=True, help="List the rules instead.")
def command(files: tuple[str, ...], read: tuple[str, ...], form: str | None, output: str | None, **options: Any) -> int:
    """Hold each message against the rules of its standard: format, identifiers, flows, order, retransmission, limits.

    A row is a message that breaks a rule, with its frame. Leaves with 1 where there is one (--fail-on).
    """
    from pcapstat.formats.text import counted
    from pcapstat.rules import RULES

    fail_on, lists_sizes, lists_rules = options.pop("fail_on"), options.pop("sizes"), options.pop("lists_rules")
    rules = [{"id": rule.id, "severity": rule.severity, "source": rule.source, "text": rule.text} for rule in RULES]
    form = chosen_format(form, output)
    if form in REPORTS and (lists_rules or lists_sizes):
        raise errors.UsageError(f"--format {form} is for violations (leave {'--rules' if lists_rules else '--sizes'} out)")
    several, seen = Several(options), set[str]()
    with destination(output) as file:
        if lists_rules:
            list_rules(rules, form, file)
            return errors.EXIT_FINE
        rows = list(judged(named(files, read), several, seen, lists_sizes))
        if form == "sarif":
            from pcapstat.formats.reports import sarif

            sarif(rows, rules, __version__, file)
        elif form == "junit":
            from pcapstat.formats.reports import junit

            junit(rows, rules, file)
        else:
            write(rows, SIZE_COLUMNS if lists_sizes else COLUMNS, form, file)
    if lists_sizes:
        return several.leave(has_failed=any(row["specified"] not in {None, row["observed"]} for row in rows))
    broken = len({row["rule"] for row in rows})
    click.echo(
        ", ".join([counted(len(rows), "violation") + (f" of {counted(broken, 'rule')}" if broken else ""), tried_of(seen)]), err=True
    )
    return several.leave(has_failed=any(row["severity"] in FAIL_ON[fail_on] for row in rows))


def tried_of(seen: set[str]) -> str:
    """Say how many rules were tried: those of the protocols that the captures hold."""
    from pcapstat.formats.text import counted
    from pcapstat.rules import tried

    return f"{counted(len(tried(seen)), 'rule')} tried"


COLUMNS = ["rule", "severity", "session", "frame", "explanation", "file", "filter", "text", "source"]
SIZE_COLUMNS = ["session", "frame", "kind", "observed", "specified", "minimal", "file"]


def judged(paths: list[str], several: Several, seen: set[str], lists_sizes: bool) -> Iterator[dict[str, Any]]:
    """Judge each capture by itself; `seen` becomes the protocols of the messages that were judged."""
    from pcapstat.rules import judge
    from pcapstat.rules.sizes import sizes

    for path in paths:
        with several.opened(path) as capture:
            messages = functools.partial(noting, capture.messages, seen)
            found: Iterable[Any] = sizes(messages()) if lists_sizes else judge(messages, capture.notes.rows())
            for row in found:
                yield asdict(row) | {"file": path}


def noting(messages: Table, seen: set[str]) -> Iterator[dict[str, Any]]:
    """Return messages as they are, and take note of their protocols."""
    for message in messages.rows():
        seen.add(message["protocol"])
        yield message


def list_rules(rules: list[dict[str, str]], form: str, file: IO[bytes]) -> None:
    """Write the rules; for people each as a paragraph, since what it asks is wider than a terminal."""
    from pcapstat.formats import text

    if form != "table":
        return write(rules, list(rules[0]), form, file)
    for rule in rules:
        head = click.wrap_text(f"{rule['id']} ({rule['severity']}; {rule['source']})", 78, "", "    ")
        text.write(file, f"{head}\n{click.wrap_text(rule['text'], 78, '    ', '    ')}\n")


def write(rows: list[dict[str, Any]], columns: list[str], form: str, file: IO[bytes]) -> None:
    """Write rows in one of the tables' formats."""
    import pyarrow as pa

    from pcapstat.formats import FORMATS

    numbers = {"session", "frame", "observed", "specified", "minimal"}
    schema = pa.schema([(name, pa.int64() if name in numbers else pa.string()) for name in columns])
    FORMATS[form](pa.Table.from_pylist(rows, schema=schema), file, [])
