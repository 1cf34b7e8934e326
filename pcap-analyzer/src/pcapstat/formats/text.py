"""Formats that people and scripts read as text: aligned table, JSON, NDJSON, Markdown, HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, repeat
from typing import IO, Any

from pcapstat.formats.arrow import BATCH_ROWS, reader

MARGIN = 2
ROWS = 1 << 10
"""Rows that are held as text at a time."""
STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters (ISO/IEC 6429: C0, DEL, C1), separators of lines and paragraphs, and Bidi_Control characters (Unicode, UAX #9)."""
END = re.compile(r"_(low|high)$")
"""What the names of an interval's two columns end with."""


def rows(stream: Any, as_texts: Iterable[Callable[[Any], str]]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row as text, each column's by a function of its own."""
    for batch in stream:
        for at in range(0, len(batch), ROWS):
            columns = batch.slice(at, ROWS).columns
            yield from zip(*(texts(column, as_text) for column, as_text in zip(columns, as_texts, strict=False)), strict=True)


def texts(column: Any, as_text: Callable[[Any], str]) -> list[str]:
    """Bring a column to text. Where values are often the same, as words, flags and what is none are, each becomes text once."""
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)):
        return [as_text(value) for value in column.to_pylist()]
    encoded = column.dictionary_encode(null_encoding="encode")
    words = [as_text(value) for value in encoded.dictionary.to_pylist()]
    return [words[number] for number in encoded.indices.to_pylist()]


def objects(table: Any, columns: list[str]) -> Iterator[str]:
    """Yield each of the table's rows as a JSON object."""
    from pcapstat.formats.notation import as_json

    def member(name: str) -> Callable[[Any], str]:
        head = f"{as_json(name)}: "
        return lambda value: head + as_json(value)

    stream = reader(table, columns)
    members = [member(name) for name in stream.schema.names]
    for row in rows(stream, members):
        yield "{" + ", ".join(row) + "}"


def shown(value: Any) -> str:
    """Bring a value to what a person reads: nothing for none, one line."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(map(shown, value))
    return visible((value.hex() if isinstance(value, bytes) else str(value)).replace("\n", " "))


def counted(count: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{count} {noun}{'s'[count == 1 :]}"


def visible(text: str) -> str:
    """Escape what steers a terminal instead of being read, as Python writes it: control characters, and marks that turn the direction."""
    return STEERING.sub(lambda found: repr(found[0])[1:-1], text)


def write(file: IO[bytes], text: str) -> None:
    """Write text in UTF-8."""
    file.write(text.encode("utf-8", "replace"))


def ndjson(table: Any, file: IO[bytes], columns: list[str]) -> None:
    """Write one JSON object a line."""
    for row in objects(table, columns):
        write(file, row + "\n")


def json_array(table: Any, file: IO[bytes], columns: list[str]) -> None:
    """Write a JSON array of objects."""
    separator = "["
    for row in objects(table, columns):
        write(file, separator + row)
        separator = ",\n "
    write(file, "[]\n" if separator == "[" else "]\n")


def markdown(table: Any, file: IO[bytes], columns: list[str]) -> None:
    """Write a Markdown table; what would be taken for HTML in it is escaped too."""
    from html import escape

    def cell(value: Any) -> str:
        return escape(shown(value), quote=False).replace("|", "\\|")

    def joined(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |\n"

    stream = reader(table, columns)
    heads = list(map(cell, stream.schema.names))
    write(file, joined(heads) + "|" + " --- |" * len(heads) + "\n")
    for row in rows(stream, repeat(cell)):
        write(file, joined(row))


def html(table: Any, file: IO[bytes], columns: list[str]) -> None:
    """Write a page with one table."""
    from html import escape

    def cell(value: Any) -> str:
        return f"<td>{escape(shown(value))}</td>"

    stream = reader(table, columns)
    heads = [shown(name) for name in stream.schema.names]
    # where the table is wider than the window it scrolls: wrapped, names would break at their hyphens
    cells = "td,th{border:1px solid #999;padding:2px 6px;text-align:left;white-space:nowrap}"
    style = f"body{{font:14px sans-serif}}table{{border-collapse:collapse}}{cells}"
    write(file, f'<!doctype html><html lang="en"><meta charset="utf-8"><title>pcapstat</title><style>{style}</style><table><thead><tr>')
    write(file, "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr></thead><tbody>\n")
    for row in rows(stream, repeat(cell)):
        write(file, "<tr>" + "".join(row) + "</tr>\n")
    write(file, "</tbody></table></html>\n")


def table(table: Any, file: IO[bytes], columns: list[str]) -> None:
    """Write aligned columns, as many as the terminal is wide; a line below tells how many others there are."""
    import shutil

    stream = reader(table, columns)
    heads = [shown(name) for name in stream.schema.names]
    width = shutil.get_terminal_size((80, 24)).columns
    # what the first rows need is what all are given
    first = list(rows(begun(stream), repeat(shown)))
    widths = [max([len(head), *(len(row[at]) for row in first)]) for at, head in enumerate(heads)]
    is_filled = [bool(columns) or any(row[at] for row in first) for at in range(len(heads))]
    filled = [at for at in range(len(heads)) if is_filled[at]]
    kept = fit(heads, widths, filled or list(range(len(heads))), width)
    # of the other rows nothing becomes text that is not shown
    others = rows((batch.select(kept) for batch in stream), repeat(shown))
    for cells in chain(([row[at] for at in kept] for row in chain([heads], first)), others):
        write(file, line(cells, [widths[at] for at in kept]))
    if more := len(heads) - len(kept):
        # not every command that writes tables has --columns
        write(file, f"\n{counted(more, 'more column')} (wider output, another --format or, where offered, --columns)\n")


def begun(stream: Any) -> Iterator[Any]:
    """Yield the first batches of a stream, as many as hold a full batch's rows."""
    count = 0
    for batch in stream:
        yield batch
        count += len(batch)
        if count >= BATCH_ROWS:
            return


def fit(heads: list[str], widths: list[int], filled: list[int], width: int) -> list[int]:
    """Choose the columns that fit: those that hold something, from the left; of an interval both ends or none."""
    kept: list[int] = []
    used = 0
    for _, ends in groupby(filled, lambda at: END.sub("", heads[at])):
        together = list(ends)
        size = sum(widths[at] + MARGIN for at in together)
        if not kept or used + size <= width:
            kept += together
            used += size
    return kept


def line(cells: Iterable[str], widths: list[int]) -> str:
    """Align one row."""
    padded = (cell.ljust(size) for cell, size in zip(cells, widths, strict=True))
    return (" " * MARGIN).join(padded).rstrip() + "\n"
