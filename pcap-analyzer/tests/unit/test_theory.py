"""The size model: values written in the standards and studies, and every message of the recordings."""

from __future__ import annotations

import json
from pathlib import Path

import click.testing
import pyarrow as pa
import pytest
from places import CAPTURES

import pcapstat
from pcapstat import study_a
from pcapstat.cli.theory import SECURITIES, command
from pcapstat.errors import UsageError
from pcapstat.rules.sizes import by_standard
from pcapstat.theory import coap, mqtt
from pcapstat.theory.envelope import Path as Carrier
from pcapstat.theory.envelope import around
from pcapstat.theory.others import http2, mqtt_sn, websocket
from pcapstat.theory.security import PROTECTIONS, record

WANTED = ("a-", "b-", "d-aiocoap", "d-paho", "e-californium", "e-paho")
CLEAR = [path for path in sorted(CAPTURES.glob("*.pcapng")) if path.name.startswith(WANTED) and "tls" not in path.name]


def test_binary_properties_are_sized_as_the_table_shows_them() -> None:
    """MQTT 5 §3.3.2.3.6: identifier, length of two bytes, data; the column `properties` shows the data's length only."""
    assert mqtt.property_bytes("Correlation Data", "(3 bytes)") == mqtt.property_bytes("Correlation Data", "0a0b0c") == 1 + 2 + 3


def test_the_standards_examples() -> None:
    """RFC 7252 Figure 16 and 20, RFC 6455 §5.7, RFC 7541's frame header, MQTT 5 §1.5.5."""
    temperature = coap.message(0, [("Uri-Path", "temperature")])
    assert (temperature.bytes, coap.message(0, [], 6).bytes) == (16, 11)  # GET /temperature; 2.05 "22.3 C"
    assert coap.message(1, [("Uri-Path", "temperature")]).bytes == 17
    assert coap.message(is_empty=True).bytes == 4
    assert (websocket(5, is_masked=False).bytes, websocket(5, is_masked=True).bytes) == (7, 11)  # "Hello"
    assert (websocket(256, is_masked=False).bytes, websocket(65536, is_masked=False).bytes) == (260, 65546)
    assert http2("DATA", 10).bytes == 19
    assert [mqtt.variable_bytes(value) for value in (0, 127, 128, 16383, 16384, 2097151, 2097152, 268435455)] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert mqtt.size_of(mqtt.Packet("PINGREQ")).bytes == 2
    assert (mqtt_sn("PUBLISH", payload_bytes=10).bytes, mqtt_sn("PUBLISH", payload_bytes=300).bytes) == (17, 309)


def test_a_range_stands_where_the_standard_leaves_one() -> None:
    """A token of 0 to 8 bytes (RFC 7252 §5.3.1)."""
    message = coap.message(None, [], 0)
    assert (message.least, message.most) == (4, 12)
    with pytest.raises(ValueError, match="4 to 12"):
        _ = message.bytes


def test_records_are_as_packet_sizes_says() -> None:
    """TLS 1.3: content + 1 + 16 + 5; TLS 1.2 AES-GCM: 8 + content + 16 + 5; DTLS 1.2 CCM_8: 13 + 8 + content + 8; UDP, IPv4, Ethernet."""
    message = coap.message(8, [], 10)
    carriers = {name: "tcp" if name.startswith("tls") else "udp" for name in PROTECTIONS}
    added = {name: around(message, Carrier(carriers[name]), name).bytes - message.bytes for name in PROTECTIONS}
    expected = {"none": 0, "tls1.3": 22, "tls1.2-gcm": 29, "tls1.2-chacha20": 21, "dtls1.2-ccm8": 29, "dtls1.2-gcm": 37, "dtls1.3": 22}
    assert added | expected == added
    assert around(message, Carrier("udp", "ethernet")).bytes - message.bytes == 14 + 20 + 8
    assert around(message, Carrier("tcp", "sll2", ip=6, tcp_options_bytes=0)).bytes - message.bytes == 20 + 40 + 20
    assert tuple(PROTECTIONS) == SECURITIES
    # RFC 9146 §4: header, an ID of 6 bytes, explicit nonce, real type, tag
    assert sum(line.most for line in record("dtls1.2-ccm8", connection_id_bytes=6)) == 13 + 6 + 8 + 1 + 8


@pytest.mark.parametrize("path", CLEAR, ids=lambda path: path.stem)
def test_each_recorded_message_has_its_specified_size(path: Path) -> None:
    """Options and properties read back from the tables give the size on the wire, for every CoAP message and MQTT PUBLISH in the clear."""
    checked = 0
    for row in pa.table(pcapstat.open(path, engine="native").messages).to_pylist():
        own = row["header_bytes"] + row["option_bytes"] + row["payload_bytes"]
        if row["protocol"] == "coap" and row["transport"] == "udp":
            token = len(row["token"] or "") // 2
            expected = coap.message(token, coap.from_text(row["options"]), row["payload_bytes"], is_empty=row["code"] == 0)
        elif row["protocol"] == "mqtt" and row["kind"] == "PUBLISH":
            packet = mqtt.Packet(
                "PUBLISH",
                version=5 if row["option_bytes"] else 4,
                topic_bytes=row["topic_name_bytes"],
                qos=row["qos"],
                properties=mqtt.from_text(row["properties"]),
                payload_bytes=row["payload_bytes"],
            )
            expected = mqtt.size_of(packet)
        else:
            continue
        checked += 1
        assert expected.bytes == own, row
    assert checked


STUDY_A = {
    "Californium": {
        "CON, no content": "15 + m",
        "CON, content": "16 + y + m",
        "NON, content": "16 + y + m",
        "GET CON, no resource name": "13 + m",
        "GET CON, resource name": "14 + rsn + m",
        "ACK, no content": "15 + m",
        "ACK, content": "16 + y + m",
        "ACK, client to server": "4 + z",
    },
    "java-coap": {
        "CON, content": "11 + y + m",
        "NON, content": "11 + y + m",
        "GET CON, resource name": "8 + rsn + m",
        "ACK, content": "8 + y + m",
        "ACK, client to server": "4 + z",
    },
    "Paho": {
        "CONNECT": "19 + msgl + p1 + m",
        "CONNACK": "3 + msgl + p1 + m",
        "PUBLISH QoS 0, publisher, first": "6 + msgl + p1 + tpn + m",
        "PUBLISH QoS 0, publisher, later": "6 + msgl + p1 + m",
        "PUBLISH QoS 0, to subscriber": "3 + msgl + p1 + tpn + m",
        "PUBLISH QoS 1, publisher, first": "8 + msgl + p1 + tpn + m",
        "PUBLISH QoS 1, publisher, later": "8 + msgl + p1 + m",
        "PUBLISH QoS 1, to subscriber": "5 + msgl + p1 + tpn + m",
        "PUBACK": "3 + msgl + p2 + m",
        "SUBSCRIBE": "6 + msgl + p1 + tpn + m",
        "SUBACK": "4 + msgl + p1 + m",
    },
}
"""The study's Tables 5.10 to 5.14; HiveMQ's are Paho's but for the subscription identifier, which is in these three."""
WITH_IDENTIFIER = ("PUBLISH QoS 0, to subscriber", "PUBLISH QoS 1, to subscriber", "SUBSCRIBE")
APART = {"CON, content": 3, "NON, content": 3, "GET CON, resource name": 1, "ACK, content": 1}
"""Bytes that java-coap 5.0.0 had more than 6.21.0 has: one of the token, two of Content-Format."""


def test_the_formulas_are_those_of_study_a() -> None:
    """As the study prints them."""
    hivemq = {name: text.replace("tpn", "tpn + 1 + sbid") if name in WITH_IDENTIFIER else text for name, text in STUDY_A["Paho"].items()}
    found: dict[str, dict[str, str]] = {}
    for row in study_a.rows():
        found.setdefault(row.library, {})[row.message] = row.formula
    assert found == STUDY_A | {"HiveMQ": hivemq}


@pytest.mark.parametrize("row", study_a.rows(), ids=lambda row: f"{row.library}: {row.message}")
def test_study_a_is_reproduced(row: study_a.Row) -> None:
    """Each row: the model gives the size measured in our recording of the library; the formula too, but for what the row explains."""
    measured = study_a.measured(row, CAPTURES)
    if row.recording is not None:
        assert row.specified.bytes in measured
    apart = APART.get(row.message, 0) if row.library == "java-coap" else 0
    assert row.formula_bytes - row.specified.bytes == apart
    assert row.explanation or not apart


def test_the_command_prints_lines_with_their_sections() -> None:
    """As a user types it."""
    words = ["mqtt", "publish", "--topic", "Resource1", "--qos", "1", "--payload", "10", "--property", "Topic Alias=1", "--format", "csv"]
    done = click.testing.CliRunner().invoke(command, words, standalone_mode=False)
    assert done.exception is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        # lengths of values: RFC 7252 Table 4, and each option's section
        (["coap", "--option", "Observe=99999999999"], "5 bytes, where the option has 0 to 3 (RFC 7641 §2)"),
        (["coap", "--option", "Observe=abc"], "RFC 7641 §2"),
        (["coap", "--option", "Max-Age=-1"], "RFC 7252 §5.10.5"),
        (["coap", "--option", "ETag=000102030405060708"], "9 bytes, where the option has 1 to 8 (RFC 7252 §5.10.6)"),
        (["coap", "--option", "ETag=xy"], "RFC 7252 §5.10.6"),
        (["coap", "--option", "If-None-Match=1"], "RFC 7252 §5.10.8.2"),
        (["coap", "--option", f"Uri-Path={'a' * 256}"], "256 bytes, where the option has 0 to 255"),
        (["coap", "--option", "Block2=0/0/17"], "RFC 7959 §2.1"),
        (["coap", "--option", "Block2=1048576/0/16"], "RFC 7959 §2.1"),
        (["coap", "--payload", "65503"], "65508 bytes in a datagram: 65507 are the most (RFC 768, RFC 791 §3.1)"),
        (["coap", "--payload", "65523", "--ip", "6"], "65528 bytes in a datagram: 65527 are the most (RFC 768, RFC 8200 §3)"),
        (["coap", "--security", "tls1.3"], "RFC 8446 §1"),
        (["coap-tcp", "--security", "dtls1.3"], "RFC 9147 §3"),
        (["dtls", "--security", "tls1.3"], "RFC 8446 §1"),
        (["tls", "--payload", "16385"], "16384 are the most (RFC 8446 §5.1"),
        (["mqtt", "publish", "--topic", "a" * 65_536], "65536 bytes, where 65535 are the most (MQTT 5 §1.5.4)"),
        (["mqtt", "publish", "--topic", "a", "--property", "Topic Alias=65536"], "MQTT 5 §1.5.2"),
        (["mqtt", "publish", "--topic", "a", "--property", "Topic Alias=abc"], "no number (MQTT 5"),
        (["mqtt", "publish", "--topic", "a", "--property", "Payload Format Indicator=256"], "MQTT 5 §1.5.1"),
        (["mqtt", "publish", "--topic", "a", "--property", "Message Expiry Interval=4294967296"], "MQTT 5 §1.5.3"),
        (["mqtt", "publish", "--topic", "a", "--property", "Subscription Identifier=268435456"], "MQTT 5 §1.5.5"),
        (["mqtt", "publish", "--topic", "a", "--property", "Correlation Data=xyz"], "MQTT 5 §1.5.6"),
        (["mqtt", "publish", "--topic", "a", "--property", "Topic Alias=1", "--mqtt-version", "3.1.1"], "MQTT 5 §2.2.2"),
        (["mqtt", "publish", "--topic", "a", "--payload", "268435455"], "MQTT 5 §1.5.5"),
        (["mqtt", "subscribe"], "MQTT 5 §3.8.3"),
        (["mqtt", "unsubscribe", "--filter", ""], "MQTT 5 §3.10.3"),
        (["mqtt-sn", "publish", "--payload", "65527"], "65536 bytes: 65535 are the most (MQTT-SN 1.2 §5.2.1)"),
        (["http2", "foo"], "RFC 9113 §6"),
        (["http2", "ping", "--payload", "9"], "8 bytes (RFC 9113 §6.7)"),
        (["http2", "settings", "--payload", "7"], "RFC 9113 §6.5"),
        (["http2", "ping", "--payload", "8", "--padding", "1"], "only DATA, HEADERS, PUSH_PROMISE"),
        (["http2", "data", "--payload", "16777216"], "RFC 9113 §4.2"),
    ],
)
def test_what_no_standard_has_is_refused(words: list[str], said: str) -> None:
    """A usage error that names the section."""
    done = click.testing.CliRunner().invoke(command, words, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)


@pytest.mark.parametrize(
    ("words", "count"),
    [
        # the largest that there are; sizes by hand
        (["coap", "--token", "0", "--option", "Observe=16777215"], 4 + 1 + 3),
        (["coap", "--token", "0", "--option", "Block2=1048575/1/1024"], 4 + 2 + 3),
        (["coap", "--token", "0", "--payload", "65502"], 65_507),
        (["coap", "--token", "0", "--payload", "65522", "--ip", "6"], 65_527),
        (["mqtt", "publish", "--topic", "a" * 65_535], 1 + 3 + 2 + 65_535 + 1),
        (["mqtt", "publish", "--topic", "a", "--property", "Topic Alias=65535"], 1 + 1 + 3 + 1 + 3),
        (["mqtt", "publish", "--topic", "a", "--payload", "268435451"], 1 + 4 + 268_435_455),
        (["mqtt", "subscribe", "--filter", "a"], 1 + 1 + 2 + 1 + 2 + 1 + 1),
        (["mqtt-sn", "publish", "--payload", "65518", "--ip", "6"], 65_527),
        (["http2", "ping", "--payload", "8"], 17),
        (["http2", "data", "--payload", "16777215"], 9 + 16_777_215),
        (["tls", "--payload", "16384"], 5 + 16_384 + 1 + 16),
    ],
)
def test_the_largest_is_not_refused(words: list[str], count: int, tmp_path: Path) -> None:
    """What is one less than refused."""
    out = tmp_path / "size.json"
    done = click.testing.CliRunner().invoke(command, [*words, "-O", str(out)], standalone_mode=False)
    assert done.exception is None
    assert json.loads(out.read_text())[-1]["bytes"] == str(count)


def test_a_message_that_breaks_its_standard_has_no_specified_size() -> None:
    """`validate --sizes` goes on: an Observe of 5 bytes (RFC 7641 §2 has 0 to 3)."""
    row = {"is_oscore": False, "transport": "udp", "code": 69, "options": "Observe: 4294967296", "token": "", "payload_bytes": 0}
    assert by_standard(row | {"protocol": "coap"}) == (None, None)
    assert by_standard(row | {"protocol": "coap", "options": "Observe: 16777215"}) == (8, 8)
