"""pcapstat secrets: key logs into a capture and out of it (pcapng's decryption secrets blocks)."""

from __future__ import annotations

import click

from pcapstat.cli.options import CAPTURE, NamedPath, leave
from pcapstat.cli.output import destination


@click.group("secrets")
def command() -> None:
    """Embed TLS key logs in a capture, or extract them, so that whoever opens it can decrypt it without further files.

    Whoever has the capture then has the keys: give it to nobody who may not read what it holds.
    """


@command.command("embed")
@click.argument("capture", type=CAPTURE, metavar="FILE")
@click.option("--keylog", multiple=True, required=True, type=NamedPath(), metavar="FILE", help="TLS key log (NSS format).")
@click.option("-O", "--output", required=True, type=NamedPath(dir_okay=False), metavar="FILE", help="The new capture, pcapng.")
def embed_command(capture: str, keylog: tuple[str, ...], output: str) -> int:
    """Write a copy of FILE with the key logs embedded; of a capture that is cut short or damaged what is there (exit code 4)."""
    from pcapstat.secrets import embed

    with destination(output) as file:
        damage = embed(capture, keylog, file)
    return leave(damage)


@command.command("extract")
@click.argument("capture", type=CAPTURE, metavar="FILE")
@click.option("-O", "--output", type=NamedPath(dir_okay=False), metavar="FILE", help="Write to FILE, whole or not at all.")
def extract_command(capture: str, output: str | None) -> None:
    """Write the key logs that are embedded in FILE."""
    from pcapstat.secrets import extract

    text = extract(capture)
    with destination(output) as file:
        file.write(text)
