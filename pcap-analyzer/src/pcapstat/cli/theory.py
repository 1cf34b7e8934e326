"""pcapstat theory: what the standards say that a message weighs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pcapstat.cli.options import chosen_format, output_options
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


def around_options(function: Any) -> Any:
    """Add the options of what carries the message, and of the output."""
    for option in reversed(
        (
            click.option("--security", type=click.Choice(SECURITIES), default="none", show_default=True, help="Record protection."),
            click.option(
                "--link",
                type=click.Choice(["none", "ethernet", "vlan", "sll", "sll2", "null", "raw"]),
                default="none",
                show_default=True,
                help="Link header; none leaves link, IP and transport out.",
            ),
            click.option("--ip", type=click.Choice(["4", "6"]), default="4", show_default=True, help="IP version."),
            click.option("--tcp-options", type=click.IntRange(0, 40), default=12, show_default=True, help="Bytes of TCP options."),
        )
    ):
        function = option(function)
    return output_options(function)


def show(content: Size, transport: str, security: str, link: str, ip: str, tcp_options: int, form: str | None, output: str | None) -> None:
    """Write a size with what is around it."""
    from pcapstat.theory.envelope import around

    whole = around(content, transport=transport, link=link, ip=int(ip), tcp_options_bytes=tcp_options, security=security)
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
VARIANTS = {"coap": ("message", "udp"), "coap-tcp": ("message_over_tcp", "tcp"), "coap-ws": ("message_over_websockets", "tcp")}


def coap_command(name: str, about: str) -> click.Command:
    """Make the command of one way that CoAP travels."""

    @click.command(name, help=about)
    @OPTION
    @TOKEN
    @PAYLOAD
    @around_options
    def made(options: list[tuple[str, str]], token: int | None, payload: int, **rest: Any) -> None:
        from pcapstat.theory import coap

        function, transport = VARIANTS[name]
        show(getattr(coap, function)(token, options, payload), transport, **rest)

    return made


command.add_command(coap_command("coap", "A CoAP message over UDP (RFC 7252)."))
command.add_command(coap_command("coap-tcp", "A CoAP message over TCP (RFC 8323)."))
command.add_command(coap_command("coap-ws", "A CoAP message in a WebSocket frame (RFC 8323)."))


@command.command("mqtt")
@click.argument("kind", metavar="PACKET")
@click.option("--mqtt-version", type=click.Choice(["3.1", "3.1.1", "5"]), default="5", show_default=True)
@click.option("--topic", default="", help="Topic name; empty with a topic alias.")
@click.option("--filter", "filters", multiple=True, help="Topic filter of SUBSCRIBE, UNSUBSCRIBE; may be repeated.")
@click.option("--qos", type=click.IntRange(0, 2), default=0, show_default=True)
@click.option("--property", "properties", multiple=True, callback=pairs, metavar="NAME=VALUE", help="A property: 'Topic Alias=1'.")
@click.option("--client-id", default="", help="Client identifier of CONNECT.")
@click.option("--user-name", help="User name of CONNECT.")
@click.option("--password-bytes", type=click.IntRange(0), help="Length of the password of CONNECT.")
@click.option("--reason-code", is_flag=True, help="With a reason code where it may be left out.")
@PAYLOAD
@around_options
def mqtt_command(kind: str, mqtt_version: str, topic: str, filters: tuple[str, ...], qos: int, payload: int, **options: Any) -> None:
    """Print the size of an MQTT control packet: CONNECT, PUBLISH, PUBACK and so on."""
    from pcapstat.theory import mqtt

    user_name = options.pop("user_name")
    packet = mqtt.Packet(
        kind.upper(),
        version={"3.1": 3, "3.1.1": 4, "5": 5}[mqtt_version],
        properties=options.pop("properties"),
        topic_bytes=len(topic.encode()),
        qos=qos,
        payload_bytes=payload,
        client_identifier_bytes=len(options.pop("client_id").encode()),
        user_name_bytes=None if user_name is None else len(user_name.encode()),
        password_bytes=options.pop("password_bytes"),
        filters_bytes=tuple(len(each.encode()) for each in filters),
        has_reason_code=options.pop("reason_code"),
    )
    show(mqtt.size_of(packet), "tcp", **options)


@command.command("mqtt-sn")
@click.argument("kind", metavar="MESSAGE")
@click.option("--variable", type=click.IntRange(0), default=0, metavar="BYTES", help="Topic name, client identifier or duration.")
@PAYLOAD
@around_options
def mqtt_sn_command(kind: str, variable: int, payload: int, **options: Any) -> None:
    """Print the size of an MQTT-SN 1.2 message: CONNECT, REGISTER, PUBLISH and so on."""
    from pcapstat.theory.others import mqtt_sn

    show(mqtt_sn(kind.upper(), variable, payload), "udp", **options)


@command.command("websocket")
@click.option("--masked/--not-masked", default=True, show_default=True, help="Clients mask.")
@PAYLOAD
@around_options
def websocket_command(masked: bool, payload: int, **options: Any) -> None:
    """Print the size of a WebSocket frame (RFC 6455)."""
    from pcapstat.theory.others import websocket

    show(websocket(payload, is_masked=masked), "tcp", **options)


@command.command("http2")
@click.argument("kind", metavar="FRAME", default="DATA")
@click.option("--padding", type=click.IntRange(0, 255), metavar="BYTES", help="Padding.")
@PAYLOAD
@around_options
def http2_command(kind: str, padding: int | None, payload: int, **options: Any) -> None:
    """Print the size of an HTTP/2 frame (RFC 9113): DATA, HEADERS (payload: the compressed field block) and so on."""
    from pcapstat.theory.others import http2

    show(http2(kind.upper(), payload, padding), "tcp", **options)


def record_command(name: str, default: str, transport: str) -> click.Command:
    """Make the command of a security protocol."""

    @click.command(name, help=f"A {name.upper()} record of application data; --security says which protection.")
    @PAYLOAD
    @around_options
    def made(payload: int, security: str, **options: Any) -> None:
        from pcapstat.theory.size import exactly, size

        content = size(exactly("payload", "content", payload, "RFC 8446 §5.4" if name == "tls" else "RFC 6347 §4.1"))
        show(content, transport, default if security == "none" else security, **options)

    return made


command.add_command(record_command("tls", "tls1.3", "tcp"))
command.add_command(record_command("dtls", "dtls1.2-ccm8", "udp"))


@command.command("study-a")
@click.option(
    "--recordings", type=click.Path(exists=True, file_okay=False), metavar="FOLDER", help="Measure captures/a-*.pcapng there too."
)
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
