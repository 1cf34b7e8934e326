"""Write docs/reference from the code: commands, Python, tables, notes, protocols, rules, statements, errors. A test holds them fresh."""

from __future__ import annotations

import csv
import inspect
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import click

import pcapstat
from pcapstat import _native, archive, capture, compare, errors
from pcapstat.cli import COMMANDS, cli
from pcapstat.plots import CHARTS, PLOTS
from pcapstat.rules import RULES
from pcapstat.schema import tables

REFERENCE = Path(__file__).with_name("reference")
STATEMENTS = Path(__file__).with_name("conformance")
STANDARDS = {"mqtt-5": "MQTT 5.0", "mqtt-3.1.1": "MQTT 3.1.1", "rfc7252": "RFC 7252"}
"""Files of statements, and the standards they are of."""
MADE = "<!-- made by docs/generate.py -->\n"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |\n" for line in lines)


def helped(command: click.Command, path: str, parent: click.Context) -> str:
    """Return a command's help, and that of the commands in it."""
    context = click.Context(command, info_name=path.split()[-1], parent=parent, max_content_width=100, terminal_width=100)
    level = "#" * len(path.split())
    text = f"{level} {path}\n\n```text\n{command.get_help(context)}\n```\n\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                text += helped(inner, f"{path} {name}", context)
    return text


def commands() -> str:
    """Return the page of the command line."""
    root = click.Context(cli, info_name="pcapstat", max_content_width=100, terminal_width=100, **cli.context_settings)
    text = "# Commands\n\n"
    for name in COMMANDS:
        command = cli.get_command(root, name)
        if command is not None:
            text += helped(command, f"pcapstat {name}", root)
    return text


def schema() -> str:
    """Return the page of the tables."""
    text = "# Tables\n\n"
    for name, each in tables().items():
        rows = [[f"`{column.name}`", f"`{column.data_type}`", column.unit, column.doc] for column in each.columns]
        text += f"## {name}\n\n{each.doc}\n\n{table(['column', 'type', 'unit', 'what it is'], rows)}\n"
    return text


def notes() -> str:
    """Return the page of the notes."""
    rows = [[f"`{note['note']}`", note["text"], note["affects"]] for note in _native.note_kinds()]
    return f"# Notes\n\nWhat a capture did not show, and which figures that affects.\n\n{table(['note', 'what', 'affects'], rows)}"


def protocols() -> str:
    """Return the page of the protocols."""
    rows = [
        [f"`{row['decode_as']}`", row["name"], row["carrier"], ", ".join(row["ports"]), ", ".join(row["standards"])]
        for row in _native.protocols()
    ]
    heads = ["-d name", "Wireshark's name", "carried in", "ports", "standards"]
    return f"# Protocols\n\nWhat is decoded. `-d udp.port==5700,coap` decodes a port as a protocol.\n\n{table(heads, rows)}"


def rules() -> str:
    """Return the page of the rules."""
    rows = [[f"`{rule.id}`", rule.severity, rule.protocol, rule.text, rule.source] for rule in RULES]
    heads = ["rule", "severity", "protocol", "what it asks", "source"]
    return f"# Rules\n\nWhat `pcapstat validate` holds messages against.\n\n{table(heads, rows)}"


def conformance() -> str:
    """Return the page of the standards' statements: which rule judges each, or why none does."""
    text = (
        "# Conformance statements\n\nEach numbered statement of both MQTT standards and each MUST and MUST NOT of RFC 7252 (numbered "
        "here in the order of its section), in our words, with the [rules](rules.md) that judge it. `not visible`: a capture cannot show "
        "it. `not yet`: what is missing. A line with § is a sentence without a number that a rule "
        "judges. Made from `docs/conformance/*.csv`.\n\n"
    )
    pages = {title: list(csv.DictReader((STATEMENTS / f"{name}.csv").read_text().splitlines())) for name, title in STANDARDS.items()}
    heads = ["standard", "statements", "judged by rules", "not visible", "not yet"]
    text += table(heads, [[title, *map(str, tally(lines))] for title, lines in pages.items()])
    for title, lines in pages.items():
        rows = [[line["id"], line["subject"], marked(line["judgement"]), line["note"]] for line in lines]
        text += f"\n## {title}\n\n{table(['statement', 'what it asks', 'judged by', 'note'], rows)}"
    return text


def tally(lines: list[dict[str, str]]) -> tuple[int, int, int, int]:
    """Count statements, and those that are judged, not visible, and not yet judged."""
    given = [line["judgement"] for line in lines if not line["id"].startswith("§")]
    hidden, missing = given.count("not visible"), given.count("not yet")
    return len(given), len(given) - hidden - missing, hidden, missing


def marked(judgement: str) -> str:
    """Return rules as code, and the two words for none as they are."""
    return judgement if judgement.startswith("not ") else ", ".join(f"`{rule}`" for rule in judgement.split())


def failures() -> str:
    """Return the page of the errors and exit codes."""
    rows = [[error.__name__, str(error.exit_code), " ".join((error.__doc__ or "").split())] for error in errors.ERRORS]
    codes = [
        ["0", "fine"],
        ["1", "a check failed (validate, crosscheck)"],
        ["2", "usage"],
        ["3", "unreadable input, or no place for the output"],
    ]
    codes += [["4", "figures given, but a capture was damaged or one of several failed"], ["5", "a tool is missing, too old, or failed"]]
    return f"# Errors\n\n{table(['exit code', 'means'], codes)}\n{table(['error', 'exit code', 'when, with an example'], rows)}"


def figures() -> str:
    """Return the page of the figures."""
    kinds = table(["--kind", "shows"], [[f"`{name}`", row[2]] for name, row in PLOTS.items()])
    charts = table(["--chart", "shows"], [[f"`{name}`", row[1]] for name, row in CHARTS.items()])
    return f"# Figures\n\n`pcapstat plot` draws captures:\n\n{kinds}\n`pcapstat compare --plot` draws runs side by side:\n\n{charts}"


def public(thing: type) -> str:
    """Return a class's own methods and properties that are for users, in the order of the code."""
    text = ""
    for name, member in vars(thing).items():
        if name.startswith("_") or name in getattr(thing, "__dataclass_fields__", {}):
            continue
        if isinstance(member, property | cached_property):
            getter = member.fget if isinstance(member, property) else member.func
            text += described(f"{thing.__name__}.{name}", f": {inspect.signature(getter).return_annotation}", getter)
        elif inspect.isfunction(member):
            text += described(f"{thing.__name__}.{name}", call(member), member)
    return text


def described(name: str, signature: str, thing: object) -> str:
    """Return a section with what a name of the Python interface says of itself."""
    return f"### {name}\n\n```text\n{name}{signature}\n```\n\n{inspect.getdoc(thing) or ''}\n\n"


def call(thing: Callable[..., Any]) -> str:
    """Return the parameters of a function or class, and what it returns."""
    signature = inspect.signature(thing)
    lines, is_keyword_only = [], False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not is_keyword_only:
            is_keyword_only = True
            lines.append("*")
        if each.name != "self":
            default = "" if each.default is each.empty else f" = {each.default!r}"
            kind = each.annotation if isinstance(each.annotation, str) else inspect.formatannotation(each.annotation)
            lines.append(f"{each.name}: {kind}{default}")
    back = "" if inspect.isclass(thing) else f" -> {signature.return_annotation}"
    return ("(\n" + "".join(f"    {line},\n" for line in lines) + ")" if len(lines) > 1 else f"({''.join(lines)})") + back


def python() -> str:
    """Return the page of the Python interface."""
    text = "# Python\n\n## Captures\n\n" + described("pcapstat.open", call(pcapstat.open), pcapstat.open)
    for part in (pcapstat.Choices, pcapstat.Tshark):
        text += described(f"pcapstat.{part.__name__}", call(part), part)
    text += public(capture.Capture) + public(capture.Table)
    text += "## Datasets\n\n" + described("pcapstat.dataset", call(pcapstat.dataset), pcapstat.dataset) + public(archive.Dataset)
    text += "## Runs side by side\n\n"
    parts = (compare.measured, compare.receiving, compare.tidy, compare.groups, compare.pairs, compare.across)
    for part in (*parts, compare.Run, compare.Group, compare.Pair):
        text += described(f"pcapstat.compare.{part.__name__}", call(part), part)
    rows = [[f"`{name}`", unit, "more" if more else "less"] for name, (_, more, unit) in compare.FIGURES.items()]
    text += f"`pcapstat.compare.FIGURES` are the figures that can be compared:\n\n{table(['figure', 'unit', 'better is'], rows)}\n"
    return text + "`pcapstat.plots.PLOTS` and `CHARTS` are the [figures](figures.md) that can be drawn.\n"


PAGES = {
    "commands.md": commands,
    "python.md": python,
    "tables.md": schema,
    "notes.md": notes,
    "protocols.md": protocols,
    "rules.md": rules,
    "conformance.md": conformance,
    "errors.md": failures,
    "figures.md": figures,
}
"""Each page and what makes it."""


def made() -> dict[str, str]:
    """Return all pages."""
    return {name: (MADE + page()).rstrip("\n") + "\n" for name, page in PAGES.items()}


def main() -> None:
    """Write the pages."""
    REFERENCE.mkdir(exist_ok=True)
    for name, text in made().items():
        (REFERENCE / name).write_text(text)
        sys.stdout.write(f"{REFERENCE / name}\n")


if __name__ == "__main__":
    main()
