"""The command line: parse, call once, print, leave with a number."""

from __future__ import annotations

import gc
import importlib
import os
import sys

import click

from pcapstat import __version__
from pcapstat.capture import escaped
from pcapstat.cli.output import ReaderGone, complain, standard_streams
from pcapstat.errors import EXIT_FINE, EXIT_UNREADABLE, PcapstatError

COMMANDS = {
    "summarize": "Figures of each session: ΔTime, goodput, throughput, overhead, delays",
    "messages": "The table of messages",
    "exchanges": "The table of exchanges",
    "sessions": "The table of sessions, as sums",
    "notes": "The table of what the capture does not show",
    "compare": "Runs side by side: rounds aggregated, intervals, tests, ranking",
    "plot": "Figures: rate, delays, overhead, sizes, sequence, retransmissions",
    "batch": "Archives of captures into one partitioned Parquet dataset",
    "query": "SQL on such a dataset",
    "validate": "Messages that break the standards' rules, with their frames",
    "theory": "What the standards say that a message weighs, field by field",
    "synth": "The ideal capture of a scenario, by scapy",
    "crosscheck": "Where tshark's dissectors and the core differ on a capture",
    "dissectors": "Lua dissectors for Wireshark: install, uninstall, list, path, check",
    "secrets": "Embed secrets in a capture, or extract them",
    "schema": "The tables' columns: types, units, meaning",
    "completion": "Shell completion for bash, zsh or fish",
}
"""Each command and its line in --help; its module is loaded only when it is called."""

TABLE_COMMANDS = ("messages", "exchanges", "sessions", "notes")


class Text(type(click.STRING)):  # type: ignore[misc]
    """Text of the user's: UTF-8, whatever encoding the locale has."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text. Bytes that are no UTF-8 are refused."""
        try:
            return os.fsencode(value).decode()
        except UnicodeEncodeError:
            # a default of ours that the locale has no bytes for
            return value
        except UnicodeDecodeError:
            raise click.BadParameter(f"{escaped(value)} is no UTF-8.", ctx, param) from None


def take_utf8(command: click.Command) -> None:
    """Let all parameters of a command, and of those below it, that are text be UTF-8; paths may have any bytes."""
    for parameter in command.params:
        if parameter.type is click.STRING:
            parameter.type = Text()
    for below in getattr(command, "commands", {}).values():
        take_utf8(below)


class Commands(click.Group):
    """Commands that are loaded when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command's module."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in TABLE_COMMANDS:
            from pcapstat.cli.tables import make

            made = make(cmd_name, COMMANDS[cmd_name])
            take_utf8(made)
            return made
        command: click.Command = importlib.import_module(f"pcapstat.cli.{cmd_name}").command
        take_utf8(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="pcapstat")
def cli() -> None:
    """Measure IoT protocols (CoAP, MQTT, DTLS, TLS) from packet captures.

    Exit codes: 0 fine, 1 a check failed, 2 usage, 3 unreadable input or no place for the output, 4 figures given but a capture was
    damaged, 5 a tool is missing.
    """


def main() -> None:
    """Run the command line; errors are one line on standard error."""
    # what is loaded by now stays: to look for cycles in it again, before the interpreter ends too, takes a tenth of a small capture's time
    gc.freeze()
    # pyarrow brings numpy, whose linear algebra would keep a thread a processor busy with waiting for work that no command has
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    standard_streams()
    sys.exit(exit_code())


def explain(error: click.ClickException) -> None:
    """Say on one line what is wrong with a command's words; one that has none is shown its help."""
    # click 8.1 has no such error
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        error.show()
        return
    context = getattr(error, "ctx", None)
    where = f" ({context.command_path} --help tells what there is)" if context else ""
    complain(" ".join(error.format_message().split()).rstrip(".") + where)


def exit_code() -> int:
    """Run a command, and say what stopped it."""
    try:
        try:
            code = cli.main(standalone_mode=False)
        finally:
            sys.stdout.flush()
    except ReaderGone:
        return EXIT_FINE
    except click.ClickException as error:
        explain(error)
        return error.exit_code
    except PcapstatError as error:
        complain(error)
        return error.exit_code
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        complain(f"{place}{error.strerror or error} (check the path, its permissions and the room on the disk)")
        return EXIT_UNREADABLE
    except (click.Abort, KeyboardInterrupt):
        return 130
    return code if isinstance(code, int) else EXIT_FINE
