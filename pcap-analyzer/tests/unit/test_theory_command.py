"""`pcapstat theory`: sizes counted by hand at the borders of what fits, and what no standard has is refused by its option's name."""

from __future__ import annotations

import json
from pathlib import Path

import click.testing
import pyarrow as pa
import pytest
from places import CAPTURES

import pcapstat
from pcapstat.cli.theory import command
from pcapstat.errors import UsageError


def printed(words: list[str], folder: Path) -> list[dict[str, str]]:
    """Return the lines of the command."""
    out = folder / "size.json"
    done = click.testing.CliRunner().invoke(command, [*words, "-O", str(out)], standalone_mode=False)
    assert done.exception is None, done.exception
    rows: list[dict[str, str]] = json.loads(out.read_text())
    return rows


@pytest.mark.parametrize(
    ("words", "size"),
    [
        # RFC 8323 §4.2 in RFC 6455 §5.2: 2 and the mask's 4, then Len, Code, token, marker, payload
        (["coap-ws", "--token", "1", "--payload", "10"], "20"),
        (["coap-ws", "--token", "1", "--payload", "10", "--not-masked"], "16"),
        (["coap-ws", "--token", "0", "--payload", "122"], "131"),
        (["coap-ws", "--token", "0", "--payload", "123"], "134"),
        (["coap-ws", "--payload", "116"], "125…135"),
        # packets of 1500 bytes: IPv4 20, TCP 20 and 12 of options leave 1448
        (["websocket", "--not-masked", "--payload", "1444", "--link", "ethernet"], str(14 + 52 + 1448)),
        (["websocket", "--not-masked", "--payload", "1445", "--link", "ethernet"], str(2 * (14 + 52) + 1449)),
        (["websocket", "--not-masked", "--payload", "1424", "--link", "ethernet", "--ip", "6"], str(14 + 72 + 1428)),
        (["websocket", "--not-masked", "--payload", "1425", "--link", "ethernet", "--ip", "6"], str(2 * (14 + 72) + 1429)),
        (["websocket", "--not-masked", "--payload", "1445", "--link", "null", "--mtu", "65535"], str(4 + 52 + 1449)),
        # IPv4 20 and UDP 8 leave 1472; a fragment holds 1480 (RFC 791 §3.2); IPv6's 1448 behind 48 (RFC 8200 §4.5)
        (["coap", "--token", "0", "--payload", "1467", "--link", "ethernet"], str(14 + 28 + 1472)),
        (["coap", "--token", "0", "--payload", "1468", "--link", "ethernet"], str(2 * 34 + 8 + 1473)),
        (["coap", "--token", "0", "--payload", "1447", "--link", "ethernet", "--ip", "6"], str(14 + 48 + 1452)),
        (["coap", "--token", "0", "--payload", "1448", "--link", "ethernet", "--ip", "6"], str(2 * (14 + 48) + 8 + 1453)),
        (["coap", "--payload", "1467", "--link", "raw"], "1500…1528"),
        # RFC 8446 §5.1: 2^14 bytes a record, each with 5 + 1 + 16 more
        (["http2", "--payload", "16375", "--security", "tls1.3"], str(16_384 + 22)),
        (["http2", "--payload", "16376", "--security", "tls1.3"], str(16_385 + 44)),
        # MQTT 5 §3.9.3 and §3.11.3: a reason code for each topic filter; MQTT 3.1.1 §3.11 has none
        (["mqtt", "suback", "--filter", "a", "--filter", "b"], "7"),
        (["mqtt", "unsuback", "--filter", "a", "--filter", "b"], "7"),
        (["mqtt", "unsuback", "--mqtt-version", "3.1.1"], "4"),
        # §3.1.3: client identifier, will properties, will topic, will payload; §3.1.2.1 of MQTT 3.1: "MQIsdp"
        (
            [
                "mqtt",
                "connect",
                "--client-id",
                "abc",
                "--will-topic",
                "w",
                "--will-payload",
                "3",
                "--will-property",
                "Will Delay Interval=3",
            ],
            "32",
        ),
        (["mqtt", "connect", "--mqtt-version", "3.1", "--client-id", "abc"], "19"),
        (["mqtt", "connect", "--mqtt-version", "3.1.1", "--client-id", "abc", "--user-name", "ü", "--password-bytes", "0"], "23"),
        (["mqtt", "publish", "--property", "Topic Alias=1"], "8"),
        (["mqtt", "publish", "--topic", "a", "--payload", "123"], "129"),
        (["mqtt", "publish", "--topic", "a", "--payload", "124"], "131"),
        # a message of MQTT-SN 1.2 without a will's topic has no flags (§5.4.7)
        (["mqtt-sn", "willtopic"], "2"),
        (["mqtt-sn", "willtopicupd", "--variable", "10"], "13"),
        (["mqtt-sn", "willmsgresp"], "3"),
        (["mqtt-sn", "disconnect", "--variable", "2"], "4"),
        # options 13 and 269 behind the one before take one and two bytes more (RFC 7252 §3.1)
        (["coap", "--token", "0", "--option", "12=", "--option", "25=", "--option", "294="], str(4 + 1 + 2 + 3)),
        (["coap", "--token", "0", "--option", "11=", "--option", "23=", "--option", "291="], str(4 + 1 + 1 + 2)),
        (["coap-tcp", "--token", "0", "--option", "Block2=1/0/2048"], "5"),
    ],
)
def test_sizes_at_the_borders(words: list[str], size: str, tmp_path: Path) -> None:
    """The last line is the whole, counted by hand."""
    assert printed(words, tmp_path)[-1]["bytes"] == size


def test_a_publication_of_several_segments_is_that_of_paho(tmp_path: Path) -> None:
    """Study D's 10 kB at QoS 1: each PUBLISH of the recording takes seven segments of Ethernet."""
    words = ["mqtt", "publish", "--mqtt-version", "3.1.1", "--topic", "Resource1", "--qos", "1", "--payload", "10000", "--link", "ethernet"]
    rows = pa.table(pcapstat.open(CAPTURES / "d-paho-python-qos1-10kb.pcapng", engine="native").messages).to_pylist()
    recorded = {row["frame_bytes"] for row in rows if row["kind"] == "PUBLISH"}
    assert {int(printed(words, tmp_path)[-1]["bytes"])} == recorded


@pytest.mark.parametrize(
    ("kind", "section"), [("pubrec", "§3.5.2.1"), ("pubcomp", "§3.7.2.1"), ("disconnect", "§3.14.2.1"), ("auth", "§3.15.2.1")]
)
def test_a_reason_code_has_the_section_of_its_packet(kind: str, section: str, tmp_path: Path) -> None:
    """MQTT 5 has one on each."""
    rows = printed(["mqtt", kind, "--reason-code"], tmp_path)
    assert [row["source"] for row in rows if row["field"] == "Reason Code"] == [f"MQTT 5 {section}"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mqtt", "publish"], "--topic: one character at least"),
        (["mqtt", "publish", "--mqtt-version", "3.1.1", "--payload", "1"], "--topic"),
        (["mqtt", "publish", "--topic", "a/#"], "wildcards stand in topic filters only (MQTT 5 §3.3.2.1)"),
        (["mqtt", "publish", "--topic", "a\0"], "U+0000 (MQTT 5 §1.5.4)"),
        (["mqtt", "subscribe", "--filter", "a#"], "MQTT 5 §4.7.1"),
        (["mqtt", "subscribe", "--filter", "#/a"], "MQTT 5 §4.7.1"),
        (["mqtt", "subscribe", "--filter", "a+/b"], "MQTT 5 §4.7.1"),
        (["mqtt", "pingreq", "--payload", "1"], "--payload: PINGREQ has no such field, only PUBLISH"),
        (["mqtt", "connect", "--topic", "a"], "--topic: CONNECT has no such field"),
        (["mqtt", "publish", "--topic", "a", "--filter", "b"], "--filter: PUBLISH has no such field"),
        (["mqtt", "publish", "--topic", "a", "--reason-code"], "--reason-code: PUBLISH has no such field"),
        (["mqtt", "puback", "--mqtt-version", "3.1.1", "--reason-code"], "--reason-code: PUBACK has none before MQTT 5"),
        (["mqtt", "auth", "--mqtt-version", "3.1.1"], "--mqtt-version 5"),
        (["mqtt", "connect", "--mqtt-version", "3.1.1", "--password-bytes", "1"], "--password-bytes without --user-name"),
        (["mqtt", "connect", "--will-payload", "1"], "write --will-topic too"),
        (
            ["mqtt", "connect", "--will-topic", "a", "--will-property", "Topic Alias=1"],
            "--will-property Topic Alias: not in the will, only in PUBLISH",
        ),
        (["mqtt", "publish", "--topic", "a", "--property", "Server Keep Alive=1"], "not in PUBLISH, only in CONNACK (MQTT 5 §2.2.2.2)"),
        (["mqtt", "publish", "--topic", "a", "--property", "Topic Alias=0"], "it is 1 at least"),
        (["mqtt", "publish", "--topic", "a", "--property", "Payload Format Indicator=2"], "it is 0 or 1"),
        (["mqtt", "publish", "--property", "Topic Alias=1", "--property", "Topic Alias=2"], "2 times, where PUBLISH has it once"),
        (["mqtt", "connect", "--property", "Authentication Data=00"], "not without Authentication Method"),
        (["mqtt", "publish", "--topic", "a", "--payload", "268435456"], "268435455 are the most"),
        (["coap", "--option", "Observe=1", "--option", "6=02"], "2 times, where a message has it once (RFC 7252 §5.4.5"),
        (["coap", "--option", "Block2=1/0/2048"], "over UDP 1024 is the largest block (RFC 7959 §2.2"),
        (["coap", "--option", "23=01020304"], "4 bytes, where the option has 0 to 3 (RFC 7959 §2.1)"),
        (["coap", "--option", "0="], "1 to 65535"),
        (["coap-tcp", "--payload", str(65_805 + 2**32 - 1)], "(RFC 8323 §3.2)"),
        (["mqtt-sn", "advertise", "--payload", "1"], "--payload 1: ADVERTISE has none"),
        (["mqtt-sn", "puback", "--variable", "1"], "--variable 1: PUBACK has none (MQTT-SN 1.2 §5.4.13)"),
        (["mqtt-sn", "disconnect", "--variable", "1"], "DISCONNECT has 0 or 2"),
        (["mqtt-sn", "connect"], "CONNECT has 1 to 23"),
        (["coap", "--ip", "6", "--mtu", "1279"], "--mtu 1279: a link has 1280 bytes at least for IPv6 (RFC 8200 §5)"),
        (["websocket", "--mtu", "68", "--tcp-options", "28", "--link", "raw"], "a larger --mtu, fewer --tcp-options"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], said: str) -> None:
    """One line with the option, the section, and what is possible."""
    done = click.testing.CliRunner().invoke(command, words, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert "\n" not in str(done.exception)


@pytest.mark.parametrize(
    "words", [["tls", "--security", "none"], ["mqtt", "connect", "--tcp-options", "5"], ["coap", "--tcp-options", "4"]]
)
def test_what_says_nothing_of_the_message_is_no_option(words: list[str]) -> None:
    """A record without protection; TCP options that are not padded (RFC 9293 §3.1); TCP options over UDP."""
    done = click.testing.CliRunner().invoke(command, words, standalone_mode=False)
    assert isinstance(done.exception, click.UsageError)
