"""Archives: every capture below folders, globs, tar and zip files or addresses becomes rows of one partitioned Parquet dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pcapstat.errors import UsageError

if TYPE_CHECKING:
    import pyarrow.dataset as ds

TABLES = ("messages", "exchanges", "sessions", "notes", "captures")
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


def dataset(path: str | Path) -> Dataset:
    """Open a dataset that `pcapstat batch` wrote."""
    return Dataset(path)
