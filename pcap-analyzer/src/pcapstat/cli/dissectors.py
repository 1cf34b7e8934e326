"""pcapstat dissectors: the Lua dissectors for Wireshark."""

from __future__ import annotations

import click

from pcapstat.cli.output import complain, listed
from pcapstat.errors import EXIT_CHECK_FAILED, EXIT_FINE


@click.group("dissectors")
def command() -> None:
    """Put the Lua dissectors into Wireshark's personal plugin folder, and take them away again.

    Wireshark then shows at each packet what pcapstat knows. Files that are not pcapstat's are never touched.
    """


@command.command("install")
@click.option("--profile/--no-profile", default=True, show_default=True, help="The profile pcapstat too: columns and colours.")
def install_command(profile: bool) -> None:
    """Copy the dissectors, and the profile "pcapstat", into the folders that tshark names."""
    from pcapstat.plugins import install

    for path in install(with_profile=profile):
        click.echo(path)


@command.command("uninstall")
def uninstall_command() -> int:
    """Remove what install copied; files that were changed since are left and named."""
    from pcapstat.plugins import uninstall

    removed, left = uninstall()
    for path in removed:
        click.echo(path)
    for path in left:
        complain(f"{path}: changed since it was installed, left in its place (remove it by hand)")
    return EXIT_CHECK_FAILED if left else EXIT_FINE


@command.command("list")
def list_command() -> None:
    """List the dissectors: file, whether it is installed, what it shows."""
    from pcapstat.plugins import states

    listed((state.dissector.file, f"{state.dissector.about} ({state.installed})") for state in states())


@command.command("path")
@click.option("--installed", is_flag=True, help="Wireshark's personal plugin folder instead.")
def path_command(installed: bool) -> None:
    """Print the folder of the dissectors, for tshark -X lua_script:FOLDER/FILE."""
    from pcapstat.plugins import SOURCE, plugin_folder

    click.echo(plugin_folder() if installed else SOURCE.resolve())


@command.command("check")
def check_command() -> int:
    """Say whether each installed dissector is the shipped one and is loaded by tshark; exit code 1 where not."""
    from pcapstat.plugins import hindrance, loaded, states

    known, complaints = loaded()
    is_fine = True
    for state in states():
        is_there = state.dissector.protocol in known
        is_fine &= is_there and state.installed == "as shipped"
        click.echo(f"{state.dissector.file:<22} {state.installed:<17} {'loaded' if is_there else 'not loaded'}")
    reason = None if known else hindrance()
    for line in filter(None, (complaints, reason)):
        click.echo(line, err=True)
    return EXIT_FINE if is_fine else EXIT_CHECK_FAILED
