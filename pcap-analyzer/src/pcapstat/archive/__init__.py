"""Archives: every capture below folders, globs, tar and zip files or addresses becomes rows of one partitioned Parquet dataset."""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pcapstat.archive.sources import named
from pcapstat.errors import UnreadableCapture, UsageError
from pcapstat.schema import SUMMED

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    import pyarrow.dataset as ds

    from pcapstat.archive.receivers import Received
    from pcapstat.metrics.sessions import Choices

TABLES = ("messages", "exchanges", *SUMMED, "notes", "captures")
"""The tables of a dataset: a folder each, and in it a folder a capture (`capture=ID`)."""
FILE = "file of the dataset"
"""Column of DuckDB's views that is in no table: where a row comes from."""


class Dataset:
    """A dataset on disk. Its tables are pyarrow datasets: pandas, polars, DuckDB and Spark open the same folders as they are."""

    def __init__(self, path: str | Path) -> None:
        """Open it. Raises UsageError where the folder holds none."""
        self.path = Path(path)
        if not any((self.path / table).is_dir() for table in TABLES):
            raise UsageError(f"{path}: no dataset of pcapstat batch (check the path)")

    def table(self, name: str) -> ds.Dataset:
        """Return a table by its name, with the labels of all captures: one that a capture does not have is null there.

        Raises UsageError for a table that there is not, UnreadableCapture where a file of it is damaged.
        """
        import pyarrow as pa
        import pyarrow.dataset as ds

        if name not in TABLES:
            raise UsageError(f"no table {name} (there are: {', '.join(TABLES)})")
        files = sorted(str(path) for path in (self.path / name).rglob("*.parquet"))
        partitioning = ds.partitioning(pa.schema([("capture", pa.string())]), flavor="hive")
        how = {"format": "parquet", "partitioning": partitioning, "partition_base_dir": str(self.path / name)}
        with self.naming_damage():
            return ds.dataset(files, united(ds.dataset(files, **how)), **how)

    def connect(self, tables: Sequence[str] = TABLES) -> duckdb.DuckDBPyConnection:
        """Return a DuckDB connection with a view a table; rows are read when they are asked for.

        Raises UnreadableCapture where a file of one is damaged.
        """
        import duckdb

        connection = duckdb.connect()
        for table in tables:
            if not self.has_table(table):
                continue
            files = f"{glob.escape(str(self.path / table))}/*/*.parquet".replace("'", "''")
            # DuckDB's own partitioning would take folders above the dataset ("qos=1") for columns, in place of those in the files
            how = f"hive_partitioning = false, union_by_name = true, filename = '{FILE}'"
            columns = f"""* EXCLUDE ("{FILE}"), regexp_extract("{FILE}", '.*/capture=([^/]*)/', 1) AS capture"""
            with self.naming_damage():
                connection.execute(f"CREATE VIEW {table} AS SELECT {columns} FROM read_parquet('{files}', {how})")
        return connection

    def has_table(self, name: str) -> bool:
        """Whether there are rows of a table, of some capture."""
        return any((self.path / name).glob("*/*.parquet"))

    def damage(self) -> list[str]:
        """Tell of each capture that is recorded as damaged or failed what happened to it, one line each, in the order of their names."""
        rows = self.table("captures").to_table(["source", "outcome", "error"]).sort_by("source").to_pylist()
        return [named(row["source"], row["error"]) for row in rows if row["outcome"] != "complete"]

    def has_notes(self) -> bool:
        """Whether there is anything that the captures do not show. Raises UsageError where the dataset was made without its notes."""
        if not (self.path / "notes").is_dir():
            raise UsageError(f"{self.path}: no table notes (run pcapstat batch again, with all tables)")
        return bool(self.table("notes").count_rows())

    def receivers(self, choices: Choices | None = None) -> Iterator[Received]:
        """Return of each capture with data its labels and the figures of the session that receives the data, in the captures' order.

        Only sums of sessions are read, a bounded number at a time. Raises UsageError where the dataset has none, UnreadableCapture where
        a file of it is damaged.
        """
        from pcapstat.archive.receivers import received

        missing = [table for table in (*SUMMED, "captures") if not self.has_table(table)]
        if missing:
            raise UsageError(f"{self.path}: no table {', '.join(missing)} (run pcapstat batch again, with all tables)")
        with self.naming_damage():
            yield from received(self.connect((*SUMMED, "captures")), choices)

    @contextlib.contextmanager
    def naming_damage(self) -> Iterator[None]:
        """Turn what is wrong with the dataset's files, after a loss of power perhaps, into an error of one line."""
        import duckdb
        import pyarrow as pa

        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            cause = str(error).splitlines()[0]
            raise UnreadableCapture(f"{self.path}: {cause} (run pcapstat batch again, which makes anew what is not whole)") from None


def united(parts: ds.Dataset) -> pa.Schema:
    """Return the columns of all files of a dataset; what is a label in one of them, and measured in others, is text in all."""
    import pyarrow as pa

    fields: dict[str, pa.Field] = {}
    for fragment in parts.get_fragments():
        for field in fragment.physical_schema:
            is_other = fields.setdefault(field.name, field).type != field.type
            if is_other:
                fields[field.name] = field.with_type(pa.string())
    fields.setdefault("capture", pa.field("capture", pa.string()))
    return pa.schema(list(fields.values()))


def dataset(path: str | Path) -> Dataset:
    """Open a dataset that `pcapstat batch` wrote."""
    return Dataset(path)
