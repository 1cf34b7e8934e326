"""pcapstat theory: what the standards say that a message weighs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pcapstat.cli.options import NamedPath, chosen_format, output_options
from pcapstat.cli.output import destination

if TYPE_CHECKING:
    from pcapstat.theory import Size

SECURITIES = (
    "none", "tls1.3", "tls1.3-ccm8", "tls1.2-gcm", "tls1.2-chacha20", "tls1.2-ccm8",
    "dtls1.2-gcm", "dtls1.2-ccm", "dtls1.2-ccm8", "dtls1.2-chacha20", "dtls1.3", "dtls1.3-ccm8",
)  # fmt: skip
"""Names of theory.security.PROTECTIONS, here so that --help need not load it; a test compares the two."""


@click.group("theory")
def command() -> None:
    """Print the specified size of a message, field by field, with the section of the standard behind each line.

    With --link and --security the frame around it too. A range stands where a field may vary.
    """


LINKS = ["none", "ethernet", "vlan", "sll", "sll2", "null", "raw"]


def padded(context: click.Context, parameter: click.Parameter, count: int) -> int:
    """Refuse TCP options that are not padded."""
    if count % 4:
        raise click.BadParameter(f"{count} is no multiple of 4, to which TCP options are padded (RFC 9293 §3.1)", context, parameter)
    return count


def around_options(transport: str, protections: Sequence[str] = SECURITIES, protection: str = "none") -> Callable[[Any], Any]:
    """Return what adds the options of what carries the message, and of the output."""
    options = [
        click.option("--security", type=click.Choice(protections), default=protection, show_default=True, help="Record protection."),
        click.option(
            "--link",
            type=click.Choice(LINKS),
            default="none",
            show_default=True,
            help="Link header; none leaves link, IP and transport out.",
        ),
        click.option("--ip", type=click.Choice(["4", "6"]), default="4", show_default=True, help="IP version."),
        click.option(
            "--mtu",
            type=click.IntRange(68, 65_535),
            default=1500,
            show_default=True,
            metavar="BYTES",
            help="Longest packet: what is longer takes several.",
        ),
    ]
    if transport == "tcp":
        options.append(
            click.option(
                "--tcp-options",
                "tcp_options_bytes",
                type=click.IntRange(0, 40),
                default=12,
                show_default=True,
                callback=padded,
                help="Bytes of TCP options.",
            )
        )

    def add(function: Any) -> Any:
        function = output_options(function)
        for option in reversed(options):
            function = option(function)
        return function

    return add


def show(content: Size, transport: str, form: str | None, output: str | None, security: str, ip: str, **rest: Any) -> None:
    """Write a size with what is around it."""
    from pcapstat.theory.envelope import Path as Carrier
    from pcapstat.theory.envelope import around

    whole = around(content, Carrier(transport, ip=int(ip), **rest), security)
    rows: list[dict[str, Any]] = [
        {"part": line.part, "field": line.field, "bytes": span(line.least, line.most), "source": line.source} for line in whole.lines
    ]
    rows.append({"part": "all", "field": "", "bytes": span(whole.least, whole.most), "source": ""})
    write(rows, form, output)


def span(least: int, most: int) -> str:
    """Write a range."""
    return str(least) if least == most else f"{least}…{most}"


def write(rows: list[dict[str, Any]], form: str | None, output: str | None) -> None:
    """Write rows in a format."""
    import pyarrow as pa

    from pcapstat.formats import FORMATS

    with destination(output) as file:
        FORMATS[chosen_format(form, output)](pa.Table.from_pylist(rows), file, [])


def pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[tuple[str, str]]:
    """Read NAME=VALUE words."""
    del context, parameter
    return [(name, value) for name, _, value in (word.partition("=") for word in values)]


OPTION = click.option(
    "--option", "options", multiple=True, callback=pairs, metavar="NAME=VALUE", help="A CoAP option: Uri-Path=a, Observe=."
)
TOKEN = click.option("--token", type=click.IntRange(0, 8), metavar="BYTES", help="Token length; a range where it is left out.")
PAYLOAD = click.option("--payload", type=click.IntRange(0), default=0, show_default=True, metavar="BYTES", help="Payload.")
MASKED = click.option("--masked/--not-masked", default=True, show_default=True, help="Clients mask.")
VARIANTS = {"coap": ("message", "udp"), "coap-tcp": ("message_over_tcp", "tcp"), "coap-ws": ("message_over_websockets", "tcp")}


def coap_command(name: str, about: str) -> click.Command:
    """Make the command of one way that CoAP travels."""
    _, transport = VARIANTS[name]

    @click.command(name, help=about)
    @OPTION
    @TOKEN
    @PAYLOAD
    @around_options(transport)
    def made(options: list[tuple[str, str]], token: int | None, payload: int, masked: bool | None = None, **rest: Any) -> None:
        from pcapstat.theory import coap
        from pcapstat.theory.others import in_websocket

        message = getattr(coap, VARIANTS[name][0])(token, options, payload)
        coap.check(options, transport)
        show(message if masked is None else in_websocket(message, is_masked=masked), transport, **rest)

    return MASKED(made) if name == "coap-ws" else made


command.add_command(coap_command("coap", "A CoAP message over UDP (RFC 7252)."))
command.add_command(coap_command("coap-tcp", "A CoAP message over TCP (RFC 8323)."))
command.add_command(coap_command("coap-ws", "A CoAP message in a WebSocket frame, with that frame's header (RFC 8323)."))


@command.command("mqtt")
@click.argument("kind", metavar="PACKET")
@click.option("--mqtt-version", type=click.Choice(["3.1", "3.1.1", "5"]), default="5", show_default=True)
@click.option("--topic", help="Topic name; empty with a topic alias.")
@click.option(
    "--filter", "filters", multiple=True, help="Topic filter of SUBSCRIBE, UNSUBSCRIBE; in their acknowledgements a reason code each."
)
@click.option("--qos", type=click.IntRange(0, 2), help="Of PUBLISH; 0 where it is left out.")
@click.option("--property", "properties", multiple=True, callback=pairs, metavar="NAME=VALUE", help="A property: 'Topic Alias=1'.")
@click.option("--client-id", help="Client identifier of CONNECT.")
@click.option("--user-name", help="User name of CONNECT.")
@click.option("--password-bytes", type=click.IntRange(0), help="Length of the password of CONNECT.")
@click.option("--will-topic", help="Topic of CONNECT's will.")
@click.option("--will-payload", type=click.IntRange(0), metavar="BYTES", help="Payload of the will.")
@click.option("--will-property", "will_properties", multiple=True, callback=pairs, metavar="NAME=VALUE", help="A property of the will.")
@click.option("--reason-code", is_flag=True, default=None, help="With a reason code where it may be left out.")
@click.option("--payload", type=click.IntRange(0), metavar="BYTES", help="Payload of PUBLISH.")
@around_options("tcp")
def mqtt_command(kind: str, mqtt_version: str, **options: Any) -> None:
    """Print the size of an MQTT control packet: CONNECT, PUBLISH, PUBACK and so on."""
    from pcapstat.theory import mqtt
    from pcapstat.theory.mqtt_allowed import OWNERS, check

    names = {"--filter": "filters", "--will-property": "will_properties"}
    told = {option: options.pop(names.get(option, option.removeprefix("--").replace("-", "_"))) for option in OWNERS}
    given = {option for option, value in told.items() if value is not None and value not in ((), [])}
    filters = told["--filter"]
    packet = mqtt.Packet(
        kind.upper(),
        version={"3.1": 3, "3.1.1": 4, "5": 5}[mqtt_version],
        properties=options.pop("properties"),
        topic_bytes=utf8_bytes(told["--topic"] or ""),
        qos=told["--qos"] or 0,
        payload_bytes=told["--payload"] or 0,
        client_identifier_bytes=utf8_bytes(told["--client-id"] or ""),
        user_name_bytes=None if told["--user-name"] is None else utf8_bytes(told["--user-name"]),
        password_bytes=told["--password-bytes"],
        will_topic_bytes=None if told["--will-topic"] is None else utf8_bytes(told["--will-topic"]),
        will_payload_bytes=told["--will-payload"] or 0,
        will_properties=told["--will-property"],
        filters_bytes=tuple(utf8_bytes(each) for each in filters),
        has_reason_code=told["--reason-code"],
        reason_codes=max(1, len(filters)),
    )
    size = mqtt.size_of(packet)
    check(packet, given, {option: told[option] or "" for option in ("--topic", "--will-topic")}, filters)
    show(size, "tcp", **options)


def utf8_bytes(text: str) -> int:
    """Return the length of a text in UTF-8."""
    return len(text.encode())


@command.command("mqtt-sn")
@click.argument("kind", metavar="MESSAGE")
@click.option(
    "--variable",
    type=click.IntRange(0),
    default=0,
    metavar="BYTES",
    help="Topic name, client identifier, will message, gateway's address or duration.",
)
@PAYLOAD
@around_options("udp")
def mqtt_sn_command(kind: str, variable: int, payload: int, **options: Any) -> None:
    """Print the size of an MQTT-SN 1.2 message: CONNECT, REGISTER, PUBLISH and so on."""
    from pcapstat.theory.others import mqtt_sn

    show(mqtt_sn(kind.upper(), variable, payload), "udp", **options)


@command.command("websocket")
@MASKED
@PAYLOAD
@around_options("tcp")
def websocket_command(masked: bool, payload: int, **options: Any) -> None:
    """Print the size of a WebSocket frame (RFC 6455)."""
    from pcapstat.theory.others import websocket

    show(websocket(payload, is_masked=masked), "tcp", **options)


@command.command("http2")
@click.argument("kind", metavar="FRAME", default="DATA")
@click.option("--padding", type=click.IntRange(0, 255), metavar="BYTES", help="Padding.")
@PAYLOAD
@around_options("tcp")
def http2_command(kind: str, padding: int | None, payload: int, **options: Any) -> None:
    """Print the size of an HTTP/2 frame (RFC 9113): DATA, HEADERS (payload: the compressed field block) and so on."""
    from pcapstat.theory.others import http2

    show(http2(kind.upper(), payload, padding), "tcp", **options)


def record_command(name: str, default: str, transport: str) -> click.Command:
    """Make the command of a security protocol."""

    @click.command(name, help=f"A {name.upper()} record of application data; --security says which protection.")
    @PAYLOAD
    @around_options(transport, [each for each in SECURITIES if each != "none"], default)
    def made(payload: int, security: str, **options: Any) -> None:
        from pcapstat.theory.security import PROTECTIONS, check_content
        from pcapstat.theory.size import exactly, size

        check_content(payload)
        protection = PROTECTIONS[security]
        content = size(exactly("payload", "content", payload, protection.header_source if protection else ""))
        show(content, transport, security=security, **options)

    return made


command.add_command(record_command("tls", "tls1.3", "tcp"))
command.add_command(record_command("dtls", "dtls1.2-ccm8", "udp"))


@command.command("study-a")
@click.option("--recordings", type=NamedPath(exists=True, file_okay=False), metavar="FOLDER", help="Measure captures/a-*.pcapng there too.")
@output_options
def study_a_command(recordings: str | None, form: str | None, output: str | None) -> None:
    """Print Study A's packet sizes: its formulas with the numbers put in, and the sizes by the standards."""
    from pcapstat import study_a

    rows = []
    for row in study_a.rows():
        told = {"library": row.library, "message": row.message, "predicted": row.formula_bytes, "specified": row.specified.bytes}
        if recordings:
            told["measured"] = ", ".join(map(str, study_a.measured(row, Path(recordings))))
        rows.append(told | {"formula": row.formula, "explanation": row.explanation})
    write(rows, form, output)
