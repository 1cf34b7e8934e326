"""pcapstat query: SQL on a dataset."""

from __future__ import annotations

import click

from pcapstat.cli.options import NamedPath, chosen_format, output_options
from pcapstat.cli.output import destination
from pcapstat.errors import UsageError


@click.command("query")
@click.argument("dataset", type=NamedPath(exists=True, file_okay=False))
@click.argument("sql")
@output_options
def command(dataset: str, sql: str, form: str | None, output: str | None) -> None:
    """Ask a dataset of pcapstat batch in SQL (DuckDB). Its tables are those of `pcapstat schema` that it holds."""
    import duckdb
    import pyarrow as pa

    from pcapstat.archive import Dataset
    from pcapstat.formats import FORMATS

    connection = Dataset(dataset).connect()
    try:
        result = connection.sql(sql)
        # what is wrong with a value is told only when it is asked for
        table = None if result is None else result.to_arrow_table()
    except duckdb.Error as error:
        raise UsageError(f"{' '.join(str(error).split())} (pcapstat schema lists the columns)") from None
    if table is None:
        raise UsageError("the statement gives no rows (write a SELECT)")
    with destination(output) as file:
        try:
            FORMATS[chosen_format(form, output)](table, file, [])
        except pa.ArrowException as error:
            raise UsageError(f"{error} (cast the column, or choose another --format)") from None
