"""pcapstat synth: the ideal capture of a scenario."""

from __future__ import annotations

import os

import click

from pcapstat.cli.options import NamedPath
from pcapstat.cli.output import destination, listed
from pcapstat.errors import naming


@click.command("synth")
@click.argument("scenario", required=False, type=NamedPath())
@click.option("-O", "--output", type=NamedPath(dir_okay=False), metavar="FILE", help="The capture to write, pcapng.")
@click.option("--list", "lists", is_flag=True, help="List the scenarios that come with the project.")
def command(scenario: str | None, output: str | None, lists: bool) -> None:
    """Write the capture of a scenario as it would be without any disturbance: a YAML file, or a name of --list.

    Measure it as any other capture, before there is a testbed, and compare it with the runs afterwards.
    """
    from pcapstat.synth import SCENARIOS, shipped

    if lists:
        firsts = {name: (SCENARIOS / f"{name}.yaml").read_text(encoding="utf-8").splitlines()[0] for name in shipped()}
        return listed((name, first.removeprefix("description: ")) for name, first in firsts.items())
    if scenario is None or output is None:
        raise click.UsageError("name a scenario and with -O the capture to write (--list shows those that come with the project)")
    from pcapstat.synth.builders import build
    from pcapstat.synth.scenario import read

    wanted = read(scenario)
    with destination(output) as file, naming(output):
        frames = build(wanted, os.dup(file.fileno()))
    click.echo(f"{output}: {frames} frames", err=True)
