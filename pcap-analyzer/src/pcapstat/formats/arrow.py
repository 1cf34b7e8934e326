"""Formats that pyarrow writes: CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import IO, Any

BATCH_ROWS = 1 << 15
"""Rows in a batch of the core, at most."""


def reader(table: Any, columns: list[str]) -> Any:
    """Return a RecordBatchReader of the table, with only `columns` where they are given."""
    import pyarrow as pa

    stream = pa.RecordBatchReader.from_stream(table)
    if not columns:
        return stream
    schema = pa.schema([stream.schema.field(name) for name in columns])
    return pa.RecordBatchReader.from_batches(schema, (batch.select(columns) for batch in stream))


def declared(kinds: Mapping[str, Any]) -> Any:
    """Return the schema of rows by what a class declares of them, so that columns have their types whatever has a value.

    What is neither number nor text is left out.
    """
    import pyarrow as pa

    types: dict[Any, pa.DataType] = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    types |= {kind | None: arrow_type for kind, arrow_type in types.items()}
    found = {name: types.get(kind) for name, kind in kinds.items()}
    return pa.schema([(name, kind) for name, kind in found.items() if kind is not None])


def csv(table: Any, file: IO[bytes], columns: list[str]) -> None:
    """Write comma-separated values with a header; lists joined by a space, bytes in hexadecimal."""
    import pyarrow as pa
    import pyarrow.csv

    stream = reader(table, columns)
    writer = None
    for batch in stream:
        flat = flatten(batch)
        if writer is None:
            writer = pa.csv.CSVWriter(file, flat.schema)
        writer.write_batch(flat)
    if writer is None:
        writer = pa.csv.CSVWriter(file, flatten(pa.RecordBatch.from_pylist([], schema=stream.schema)).schema)
    writer.close()


def flatten(batch: Any) -> Any:
    """Bring columns that CSV cannot hold into text: lists, bytes, and as JSON what has parts of its own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from pcapstat.formats.notation import as_json

    arrays = []
    for column in batch.columns:
        if is_compound(column.type):
            arrays.append(pa.array([None if value is None else as_json(value) for value in column.to_pylist()], pa.string()))
        elif pa.types.is_list(column.type):
            texts = pc.cast(column, pa.list_(pa.string()))
            arrays.append(pc.binary_join(texts, " "))
        elif pa.types.is_binary(column.type):
            arrays.append(pa.array([None if value is None else value.hex() for value in column.to_pylist()], pa.string()))
        else:
            arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def is_compound(kind: Any) -> bool:
    """Whether values of this Arrow type have parts with names or units of their own, other than a list of simple ones."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        return pa.types.is_nested(kind.value_type) or is_compound(kind.value_type)
    return bool(pa.types.is_nested(kind) or kind == pa.month_day_nano_interval())


def parquet(table: Any, file: IO[bytes], columns: list[str]) -> None:
    """Write Parquet; units and docs stay in the schema's metadata."""
    import pyarrow.parquet as pq

    stream = reader(table, columns)
    begun = list(islice(stream, 1))
    with pq.ParquetWriter(file, stream.schema, **packing(stream.schema, begun)) as writer:
        for batch in chain(begun, stream):
            writer.write_batch(batch)


def packing(schema: Any, begun: list[Any]) -> dict[str, Any]:
    """Return the options by which Parquet packs such columns well, of which the first batches are known. Each batch is a row group.

    Numbers of 64 bits (times, frames), of which hardly two are the same, by their differences, also in lists; texts by dictionaries; other
    numbers as they are, of which zstd makes less than of numbers in a dictionary; all with zstd. A column that begins without a value,
    as half of a message's do, is left to snappy: to set up zstd takes longer than the rest of its packing. A batch of a column is one page:
    to begin another one takes longer than to compress it. Of numbers, not of texts, a row group tells the least and the greatest, by which
    readers pass over it.
    """
    import pyarrow as pa

    empty = {name for batch in begun for name, column in zip(schema.names, batch.columns, strict=True) if column.null_count == len(column)}
    parts = [(field.name in empty, path, kind) for field in schema for path, kind in leaves(field.name, field.type)]
    wide = [path for _, path, kind in parts if kind in (pa.int64(), pa.uint64())]
    return {
        "compression": {path: "snappy" if is_empty else "zstd" for is_empty, path, _ in parts},
        "compression_level": {path: 1 for is_empty, path, _ in parts if not is_empty},
        "use_dictionary": [path for _, path, kind in parts if not pa.types.is_primitive(kind)] or False,
        "column_encoding": dict.fromkeys(wide, "DELTA_BINARY_PACKED"),
        "max_rows_per_page": BATCH_ROWS,
        "write_statistics": [field.name for field in schema if pa.types.is_primitive(field.type)],
    }


def leaves(path: str, kind: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a column is of Parquet's columns, which have no parts: their paths and types."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        parts = [(child.name, child.type) for child in kind]
    elif pa.types.is_map(kind):
        parts = [("key_value.key", kind.key_type), ("key_value.value", kind.item_type)]
    elif isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        parts = [("list.element", kind.value_type)]
    else:
        yield path, kind
        return
    for name, part in parts:
        yield from leaves(f"{path}.{name}", part)
