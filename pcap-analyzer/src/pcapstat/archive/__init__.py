"""Archives: every capture below folders, globs, tar and zip files or addresses becomes rows of one partitioned Parquet dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pcapstat.archive.sources import named
from pcapstat.archive.sums import SUMMED
from pcapstat.errors import UsageError

if TYPE_CHECKING:
    import duckdb
    import pyarrow.dataset as ds

    from pcapstat.archive.receivers import Received
    from pcapstat.metrics.sessions import Choices

TABLES = ("messages", "exchanges", *SUMMED, "notes", "captures")
"""The tables of a dataset: a folder each, and in it a folder a capture (`capture=ID`)."""


class Dataset:
    """A dataset on disk. Its tables are pyarrow datasets: pandas, polars, DuckDB and Spark open the same folders as they are."""

    def __init__(self, path: str | Path) -> None:
        """Open it. Raises UsageError where the folder holds none."""
        self.path = Path(path)
        if not any((self.path / table).is_dir() for table in TABLES):
            raise UsageError(f"{path}: no dataset of pcapstat batch (check the path)")

    def table(self, name: str) -> ds.Dataset:
        """Return a table by its name."""
        import pyarrow.dataset as ds

        files = sorted(str(path) for path in (self.path / name).rglob("*.parquet"))
        return ds.dataset(files, format="parquet", partitioning="hive", partition_base_dir=str(self.path / name))

    def connect(self, tables: Sequence[str] = TABLES) -> duckdb.DuckDBPyConnection:
        """Return a DuckDB connection with a view a table; rows are read when they are asked for."""
        import duckdb

        connection = duckdb.connect()
        for table in tables:
            files = str(self.path / table / "*" / "*.parquet").replace("'", "''")
            # a capture's identity is text, also where all its digits are decimal
            how = "hive_partitioning = true, hive_types_autocast = false, union_by_name = true"
            try:
                connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{files}', {how})")
            except duckdb.IOException:
                continue
        return connection

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

        Only sums of sessions are read, a bounded number at a time. Raises UsageError where the dataset has none.
        """
        from pcapstat.archive.receivers import received

        missing = [table for table in (*SUMMED, "captures") if not (self.path / table).is_dir()]
        if missing:
            raise UsageError(f"{self.path}: no table {', '.join(missing)} (run pcapstat batch again, with all tables)")
        return received(self.connect((*SUMMED, "captures")), choices)


def dataset(path: str | Path) -> Dataset:
    """Open a dataset that `pcapstat batch` wrote."""
    return Dataset(path)
