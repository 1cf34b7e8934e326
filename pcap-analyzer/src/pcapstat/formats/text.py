"""Formats that people and scripts read as text: aligned table, JSON, NDJSON, Markdown, HTML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from pcapstat.formats.arrow import reader

MARGIN = 2


def rows(table: Any, columns: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the table's rows, batch by batch."""
    for batch in reader(table, columns):
        yield from batch.to_pylist()


def plain(value: Any) -> Any:
    """Bring a value to what JSON can hold."""
    return value.hex() if isinstance(value, bytes) else value


def shown(value: Any) -> str:
    """Bring a value to what a person reads: nothing for none, one line."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(plain(value)).replace("\n", " ")


def write(file: IO[bytes], text: str) -> None:
    """Write text in UTF-8."""
    file.write(text.encode("utf-8", "replace"))


def as_json(row: dict[str, Any]) -> str:
    """Write a row as a JSON object."""
    import json

    return json.dumps(row, default=plain, ensure_ascii=False)


def ndjson(table: Any, file: IO[bytes], columns: list[str]) -> None:
    """Write one JSON object a line."""
    for row in rows(table, columns):
        write(file, as_json(row) + "\n")


def json_array(table: Any, file: IO[bytes], columns: list[str]) -> None:
    """Write a JSON array of objects."""
    separator = "["
    for row in rows(table, columns):
        write(file, separator + as_json(row))
        separator = ",\n "
    write(file, "[]\n" if separator == "[" else "]\n")


def markdown(table: Any, file: IO[bytes], columns: list[str]) -> None:
    """Write a Markdown table."""
    stream = reader(table, columns)
    names = stream.schema.names
    write(file, "| " + " | ".join(names) + " |\n|" + " --- |" * len(names) + "\n")
    for batch in stream:
        for row in batch.to_pylist():
            write(file, "| " + " | ".join(shown(row[name]).replace("|", "\\|") for name in names) + " |\n")


def html(table: Any, file: IO[bytes], columns: list[str]) -> None:
    """Write a page with one table."""
    from html import escape

    stream = reader(table, columns)
    names = stream.schema.names
    style = "body{font:14px sans-serif}table{border-collapse:collapse}td,th{border:1px solid #999;padding:2px 6px;text-align:left}"
    write(file, f'<!doctype html><html lang="en"><meta charset="utf-8"><title>pcapstat</title><style>{style}</style><table><thead><tr>')
    write(file, "".join(f"<th>{name}</th>" for name in names) + "</tr></thead><tbody>\n")
    for batch in stream:
        for row in batch.to_pylist():
            write(file, "<tr>" + "".join(f"<td>{escape(shown(row[name]))}</td>" for name in names) + "</tr>\n")
    write(file, "</tbody></table></html>\n")


def table(table: Any, file: IO[bytes], columns: list[str]) -> None:
    """Write aligned columns, as many as the terminal is wide; the others are named below, to be chosen with --columns."""
    import shutil

    stream = reader(table, columns)
    names = stream.schema.names
    width = shutil.get_terminal_size((80, 24)).columns
    left_out: list[str] | None = None
    for batch in stream:
        cells = [[shown(row[name]) for name in names] for row in batch.to_pylist()]
        if left_out is None:
            filled = [any(row[at] for row in cells) for at in range(len(names))] if not columns else [True] * len(names)
            widths = [max(len(name), *(len(row[at]) for row in cells)) for at, name in enumerate(names)]
            kept, left_out = fit(names, widths, filled, width)
            write(file, line([names[at] for at in kept], [widths[at] for at in kept]))
        for row in cells:
            write(file, line([row[at] for at in kept], [widths[at] for at in kept]))
    if left_out:
        write(file, f"\n{len(left_out)} more columns: wider output, --columns or another --format shows them\n")


def fit(names: list[str], widths: list[int], filled: list[bool], width: int) -> tuple[list[int], list[str]]:
    """Choose the columns that fit: those that hold something, from the left."""
    kept: list[int] = []
    used = 0
    for at in range(len(names)):
        if filled[at] and (not kept or used + widths[at] + MARGIN <= width):
            kept.append(at)
            used += widths[at] + MARGIN
    return kept, [name for at, name in enumerate(names) if at not in kept]


def line(cells: list[str], widths: list[int]) -> str:
    """Align one row."""
    padded = (cell.ljust(size) for cell, size in zip(cells, widths, strict=True))
    return (" " * MARGIN).join(padded).rstrip() + "\n"
