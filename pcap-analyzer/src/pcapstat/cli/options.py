"""Options that several commands share."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from pcapstat import Capture, errors
from pcapstat import open as open_capture
from pcapstat.cli.output import complain
from pcapstat.engines import ENGINES, Tshark

Command = TypeVar("Command", bound=Callable[..., Any])


class NamedPath(click.Path):
    """A path. An empty one, as of a shell's variable that is not set, would be the folder that the command runs in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. An empty one is refused."""
        if not value:
            self.fail("an empty name", param, ctx)
        return super().convert(value, param, ctx)


CAPTURE = NamedPath(readable=False)
"""A capture: whoever reads it says what is wrong with it."""
FORMAT_NAMES = ("table", "json", "ndjson", "csv", "parquet", "markdown", "html")


def unescaped(context: click.Context, parameter: click.Parameter, value: str | None) -> bytes | None:
    """Read bytes written as text with Python's escapes."""
    if value is None:
        return None
    try:
        return value.encode().decode("unicode_escape").encode("latin-1")
    except ValueError:
        raise click.BadParameter(f"{value!r} cannot be read (write for example '\\n' or '\\x00')", context, parameter) from None


ENGINE_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(list(ENGINES)),
        default="auto",
        show_default=True,
        help="native is fast, tshark opens what is encrypted.",
    ),
    click.option("--keylog", multiple=True, type=NamedPath(), metavar="FILE", help="TLS key log (SSLKEYLOGFILE is read too)."),
    click.option("--psk", multiple=True, metavar="HEX", help="Pre-shared key of TLS or DTLS."),
    click.option(
        "--rsa-key", multiple=True, type=NamedPath(), metavar="FILE", help="Server's RSA key (PEM), for key exchange without (EC)DHE."
    ),
    click.option("--oscore", multiple=True, metavar="CONTEXT", help='OSCORE context: "sender-id=01 recipient-id=02 secret=0102…".'),
    click.option("-o", "--preference", multiple=True, metavar="NAME:VALUE", help="A preference of tshark's."),
    click.option("-Y", "--display-filter", metavar="FILTER", help="Only frames that pass this display filter of tshark's."),
    click.option("-X", "--extension", multiple=True, metavar="KEY:VALUE", help="An extension option of tshark's: lua_script:FILE."),
    click.option("--profile", metavar="NAME", help="Your Wireshark profile, instead of a clean configuration."),
)


def capture_options(command: Command) -> Command:
    """Files and what decoders need to know."""
    for option in reversed(
        (
            click.argument("files", nargs=-1, type=CAPTURE, metavar="FILE…"),
            click.option("-r", "--read", multiple=True, type=CAPTURE, metavar="FILE", help="A capture, as with tshark; - is stdin."),
            click.option("-d", "--decode-as", multiple=True, metavar="RULE", help="Decode a port as a protocol: udp.port==5700,coap."),
            click.option("--stop-after", type=click.IntRange(1), metavar="N", help="End each session at its N-th data message."),
            click.option(
                "--payload-size", type=click.IntRange(0), metavar="BYTES", help="Payload of the data messages in encrypted records."
            ),
            click.option("--receiver", type=click.Choice(["client", "server"]), help="Who receives the data; its own is none."),
            click.option("--mqtt-version", type=click.Choice(["3.1", "3.1.1", "5"]), help="Version where no CONNECT was captured."),
            click.option("--frame-length", type=click.IntRange(1), metavar="BYTES", help="Length of messages in unknown TCP streams."),
            click.option(
                "--frame-delimiter",
                callback=unescaped,
                metavar="TEXT",
                help=r"What ends messages in unknown TCP streams: '\r\n', '\x00'.",
            ),
            click.option("--strict", is_flag=True, help="Leave with 4 where a capture has a note."),
            *ENGINE_OPTIONS,
        )
    ):
        command = option(command)
    return command


def writing(*formats: str) -> Callable[[Command], Command]:
    """Return the options of an output in one of these formats: its format and file."""
    told = "Format; else by the output file's suffix, else table."
    # read first, since whether a suffix must be known depends on it
    form = click.option("--format", "form", type=click.Choice(formats), is_eager=True, help=told)
    check = functools.partial(known_suffix, formats)
    kind = NamedPath(dir_okay=False)
    output = click.option("-O", "--output", type=kind, callback=check, metavar="FILE", help="Write to FILE, whole or not at all.")
    return lambda command: form(output(command))


def known_suffix(formats: tuple[str, ...], context: click.Context, parameter: click.Parameter, output: str | None) -> str | None:
    """Refuse a file whose suffix says none of the formats, where --format names none either."""
    from pcapstat.formats import SUFFIXES

    known = [suffix for suffix, form in SUFFIXES.items() if form in formats]
    if output and not context.params.get("form") and suffix_of(output) not in known:
        told = f"{output}: no format has that suffix (end the name with {', '.join(filter(None, known))}, or choose one with --format)"
        raise click.BadParameter(told, context, parameter)
    return output


output_options = writing(*FORMAT_NAMES)
"""Format and file of the output, in each format of tables."""


session_option = click.option(
    "--session", "sessions", type=click.IntRange(0, 2**32 - 1), multiple=True, metavar="N", help="Only this session; may be repeated."
)
"""Sessions by their numbers, which the column session holds."""


def check_sessions(count: int, wanted: tuple[int, ...]) -> None:
    """Refuse sessions that a capture with this number of them does not have."""
    unknown = [str(number) for number in wanted if number not in range(count)]
    if unknown:
        there = f"there are {count}: 0 to {count - 1}" if count else "there is none"
        raise errors.UsageError(f"no session {', '.join(unknown)} in the capture ({there})")


def suffix_of(output: str) -> str:
    """Return what a file's name ends with, from the last point on."""
    return os.path.splitext(output)[1].lower()


MQTT_VERSIONS = {"3.1": 3, "3.1.1": 4, "5": 5}


def named(files: tuple[str, ...], read: tuple[str, ...]) -> list[str]:
    """Return the captures that the user named."""
    if not (files or read):
        raise click.UsageError("no capture: name a FILE, or - for standard input")
    return [*read, *files]


def opened(files: tuple[str, ...], read: tuple[str, ...], options: dict[str, Any]) -> Capture:
    """Open the captures that the user named."""
    paths = named(files, read)
    version = options.pop("mqtt_version", None)
    options.pop("strict", None)
    words = Tshark(tuple(options.pop("preference")), options.pop("display_filter"), tuple(options.pop("extension")), options.pop("profile"))
    return open_capture(paths, mqtt_version=MQTT_VERSIONS.get(version or ""), tshark=words, **options)


def chosen_format(form: str | None, output: str | None) -> str:
    """Return the format: as named, by the file's suffix, or a table."""
    from pcapstat.formats import SUFFIXES

    return form or SUFFIXES[suffix_of(output or "")]


def leave(damage: list[str], has_notes: bool = False) -> int:
    """Say what damaged the captures, and return the exit code."""
    for line in damage:
        complain(line)
    return errors.EXIT_DAMAGED if damage or has_notes else errors.EXIT_FINE
