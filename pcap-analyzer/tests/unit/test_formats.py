"""Values of every type that SQL gives, in every format; expected JSON is written by hand after RFC 8259."""

from __future__ import annotations

import io
import json
import math

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pcapstat.formats import FORMATS
from pcapstat.formats.notation import as_json
from pcapstat.formats.text import visible

VALUES = [
    ("sum(10::bigint)", "10"),
    ("170141183460469231731687303715884105727::hugeint", "170141183460469231731687303715884105727"),
    ("1.50::decimal(9, 2)", "1.50"),
    ("0::decimal(18, 9)", "0.000000000"),
    ("1 / 3", "0.3333333333333333"),
    ("1.0 / 0", "null"),
    ("'nan'::double", "null"),
    ("null", "null"),
    ("true", "true"),
    ("'\"é'", '"\\"é"'),
    ("chr(13)", '"\\r"'),
    ("date '2024-01-02'", '"2024-01-02"'),
    ("time '10:00:01.5'", '"10:00:01.500000"'),
    ("timestamp '2024-01-02 10:00:01.5'", '"2024-01-02T10:00:01.500000"'),
    ("timestamp_ns '2024-01-02 10:00:01.123456789'", '"2024-01-02T10:00:01.123456789"'),
    ("interval '1 month 2 days 3 seconds'", "[1, 2, 3000000000]"),
    ("'ab'::blob", '"6162"'),
    ("[1.5::decimal(4, 2), 2]", "[1.50, 2.00]"),
    ("{'a': 1.5::decimal(4, 2), 'b': [date '2024-01-01', null]}", '{"a": 1.50, "b": ["2024-01-01", null]}'),
    ("map {'a': 1}", '[["a", 1]]'),
    ("'x'::enum('x', 'y')", '"x"'),
]


def asked(sql: str) -> pa.Table:
    """Return what DuckDB answers."""
    return duckdb.connect().sql(f"select {sql} as v").to_arrow_table()


def written(table: pa.Table, form: str) -> str:
    """Write a table."""
    file = io.BytesIO()
    FORMATS[form](table, file, [])
    return file.getvalue().decode(errors="replace")


@pytest.mark.parametrize(("sql", "expected"), VALUES)
def test_json_has_every_value(sql: str, expected: str) -> None:
    """Exact, and never a word that JSON does not have."""
    assert written(asked(sql), "ndjson") == f'{{"v": {expected}}}\n'
    assert written(asked(sql), "json") == f'[{{"v": {expected}}}]\n'


@pytest.mark.parametrize("form", ["table", "csv", "markdown", "html"])
@pytest.mark.parametrize(("sql", "expected"), VALUES)
def test_other_text_has_every_value_too(sql: str, expected: str, form: str) -> None:
    """A table without a value has its header."""
    told = written(asked(sql), form)
    assert "v" in told
    assert expected == "null" or len(told.split()) > 1


def test_a_page_breaks_no_name() -> None:
    """CSS Text 3 §3: no line is broken within a cell, and what is wider than the window scrolls."""
    assert "td,th{" in (told := written(asked("'a-b'"), "html"))
    assert "white-space:nowrap}" in told[told.index("td,th{") : told.index("</style>")]


@pytest.mark.parametrize("value", [{}, [], [[]], {"a": []}, {"a": {"b": [1, "é", None, True, 1.5]}, "c": [{}, {"d": "\x00\u2028\ud800"}]}])
def test_json_is_laid_out_as_pythons_is(value: object) -> None:
    """On one line, and indented."""
    assert as_json(value) == json.dumps(value, ensure_ascii=False)
    assert as_json(value, "\n") == json.dumps(value, ensure_ascii=False, indent=1)


def test_infinite_numbers_have_no_word_at_any_depth() -> None:
    """RFC 8259 §6: numbers that cannot be written are not permitted."""
    assert as_json({"a": [math.inf, -math.inf, {"b": math.nan}]}) == '{"a": [null, null, {"b": null}]}'


def test_what_steers_a_terminal_is_escaped() -> None:
    """C0, DEL and C1, separators of lines, and Unicode's Bidi_Control (UAX #9 §2): all of them, and nothing else."""
    steering = [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
    assert [code for code in range(0x11_0000) if visible(chr(code)) != chr(code)] == steering
    assert visible("a\x1b[31mä\x9b\u202e") == r"a\x1b[31mä\x9b\u202e"


def test_both_ends_of_an_interval_are_shown_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """At whatever width; what comes behind an interval that does not fit, and does, is shown."""
    table = pa.table({"mean": [490.8], "ci_low": [469.1], "ci_high": [512.4], "boot_low": [480.7], "boot_high": [496.1], "rank": [1]})
    shown = {}
    for width in range(6, 60):
        monkeypatch.setenv("COLUMNS", str(width))
        shown[width] = written(table, "table").split("\n")[0].split()
    assert shown[20] == ["mean", "rank"]
    assert [width for width, heads in shown.items() if ("ci_low" in heads) != ("ci_high" in heads)] == []
    assert [width for width, heads in shown.items() if ("boot_low" in heads) != ("boot_high" in heads)] == []
    assert shown[59] == table.column_names


@pytest.mark.parametrize(("width", "said"), [(6, "2 more columns ("), (10, "1 more column ("), (40, "")])
def test_columns_that_do_not_fit_are_counted_below(width: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One or several; a table that fits has no such line."""
    monkeypatch.setenv("COLUMNS", str(width))
    told = written(pa.table({"one": [1], "two": [2], "three": [3]}), "table")
    assert (told.partition("\n\n")[2][: len(said) or None]) == said


def test_parquet_packs_every_column_whatever_its_parts_and_keeps_what_comes_late() -> None:
    """Paths are those of Parquet's specification of nested types (LogicalTypes.md); a column that begins empty may have values later."""
    point = pa.struct([("x", pa.int64()), ("y", pa.string())])
    kinds = {
        "number": (pa.int64(), 1),
        "late": (pa.string(), "a"),
        "list": (pa.list_(pa.int64()), [1, 2]),
        "struct": (point, {"x": 1, "y": "a"}),
        "structs": (pa.list_(point), [{"x": 1, "y": "a"}]),
        "map": (pa.map_(pa.string(), pa.int64()), [("a", 1)]),
        "a.b": (pa.string(), "dot"),
    }
    schema = pa.schema({name: kind for name, (kind, _) in kinds.items()})
    rows = [{name: value for name, (_, value) in kinds.items()} for _ in range(2)]
    rows[0]["late"] = rows[0]["list"] = None
    file = io.BytesIO()
    FORMATS["parquet"](pa.Table.from_pylist(rows, schema).to_reader(max_chunksize=1), file, [])
    parquet = pq.ParquetFile(file)
    columns = [parquet.metadata.row_group(0).column(number) for number in range(parquet.metadata.num_columns)]

    assert parquet.read().to_pylist() == rows
    assert {column.path_in_schema for column in columns if column.compression == "SNAPPY"} == {"late", "list.list.element"}
    assert {column.path_in_schema for column in columns if column.compression == "ZSTD"} == {
        "number",
        "struct.x",
        "struct.y",
        "structs.list.element.x",
        "structs.list.element.y",
        "map.key_value.key",
        "map.key_value.value",
        "a.b",
    }
