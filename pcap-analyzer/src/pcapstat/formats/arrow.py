"""Formats that pyarrow writes: CSV and Parquet."""

from __future__ import annotations

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
    """Write Parquet, a row group a batch; units and docs stay in the schema's metadata."""
    import pyarrow.parquet as pq

    stream = reader(table, columns)
    with pq.ParquetWriter(file, stream.schema, **packing(stream.schema)) as writer:
        for batch in stream:
            writer.write_batch(batch)


def packing(schema: Any) -> dict[str, Any]:
    """Return the options by which Parquet packs such columns well.

    Numbers of 64 bits (times, frames), of which hardly two are the same, by their differences, also in lists; all else by dictionaries;
    both with zstd. A table of messages takes a third of the bytes that dictionaries alone make of it. A batch of a column is one page: to
    begin another one takes longer than to compress it. Of numbers, not of texts, a row group tells the least and the greatest, by which
    readers pass over it.
    """
    import pyarrow as pa

    numbers = (pa.int64(), pa.uint64())
    wide = [field.name for field in schema if field.type in numbers]
    wide += [f"{field.name}.list.element" for field in schema if pa.types.is_list(field.type) and field.type.value_type in numbers]
    others = [field.name for field in schema if field.name not in wide]
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": others or False,
        "column_encoding": dict.fromkeys(wide, "DELTA_BINARY_PACKED"),
        "max_rows_per_page": BATCH_ROWS,
        "write_statistics": [field.name for field in schema if pa.types.is_primitive(field.type)],
    }
