"""The command `schema`: the tables' columns and the protocols."""

from __future__ import annotations

import json

import click


@click.command("schema")
@click.argument("table", required=False)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(table: str | None, form: str) -> None:
    """List tables, or the columns of one TABLE: type, unit, meaning."""
    from pcapstat.schema import tables

    known = tables()
    if table is not None and table not in known:
        raise click.UsageError(f"no table {table}, there are: {', '.join(known)}")
    chosen = [known[table]] if table else list(known.values())
    if form == "json":
        click.echo(
            json.dumps(
                [each._asdict() | {"columns": [column._asdict() for column in each.columns]} for each in chosen],
                indent=1,
                ensure_ascii=False,
            )
        )
        return
    for each in chosen:
        click.echo(f"{each.name}\n{click.wrap_text(' '.join(each.doc.split()), 78, '  ', '  ')}\n")
        for column in each.columns:
            unit = f" [{column.unit}]" if column.unit else ""
            click.echo(f"  {column.name}: {column.data_type}{unit}")
            click.echo(click.wrap_text(" ".join(column.doc.split()), 78, "      ", "      "))
        click.echo()
