"""Study A's packet sizes: its practical formulas, the same sizes by the standards' model, and what our recordings of the libraries show.

The formulas are those of the study's Tables 5.10 to 5.14, where y is the payload, rsn the resource name's length, tpn the topic's, msgl
and p1 (p2) the length fields of MQTT, sbid the subscription identifier, m what else a message holds, z extra bytes of an ACK.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcapstat.theory import coap, mqtt
from pcapstat.theory.size import Size

TERMS = {"y": 10, "rsn": 9, "tpn": 9, "msgl": 1, "p1": 1, "p2": 0, "sbid": 1, "z": 0}
"""The study's run: 10 bytes of payload, resource or topic "Resource1"; no extra bytes."""
TOPIC = "Resource1"
Seen = Callable[[dict[str, Any]], bool]


@dataclass(frozen=True)
class Row:
    """A message of a library: formula, the model's size of the message as our recording has it, where it is recorded, why these differ."""

    library: str
    message: str
    formula: str
    specified: Size
    recording: str | None = None
    is_it: Seen = lambda _: False
    explanation: str = ""
    m: int = 0

    @property
    def formula_bytes(self) -> int:
        """The formula with the numbers of the run put in."""
        terms = self.formula.replace("(", "").replace(")", "").split(" + ")
        return sum(int(term) if term.isdigit() else (TERMS | {"m": self.m})[term] for term in terms)


def is_coap(kind: str, direction: str, *, has_payload: bool) -> Seen:
    """Choose CoAP messages of a type and direction, with or without payload."""
    return lambda row: (row["kind"], row["direction"]) == (kind, direction) and (row["payload_bytes"] > 0) == has_payload


def is_mqtt(kind: str, direction: str, *, topic: bool | None = None) -> Seen:
    """Choose MQTT packets of a type and direction; by `topic` a PUBLISH with or without its topic name."""

    def is_it(row: dict[str, Any]) -> bool:
        is_kind = (row["kind"], row["direction"]) == (kind, direction)
        return is_kind and (topic is None or bool(row["topic_name_bytes"]) == topic)

    return is_it


NOTIFIED = (("Observe", "13"), ("Content-Format", "0"))
REGISTER = (("Observe", "0"), ("Uri-Path", TOPIC))
TOKEN = "java-coap 6.21.0 has a token of 1 byte where the study's 5.0.0 had 2"
NO_FORMAT = "; the recorder's server sets no Content-Format (2 bytes in the study)"


def coap_rows() -> list[Row]:
    """Rows of both CoAP libraries, in the order of the study's tables."""
    return [*californium_rows(), *java_coap_rows()]


def californium_rows() -> list[Row]:
    """Californium: a token of 8 bytes."""
    library, con, non = "Californium", "a-californium-con", "a-californium-non"
    empty, notified = coap.message(is_empty=True), coap.message(8, NOTIFIED, 10)
    register = coap.message(8, REGISTER)
    return [
        Row(library, "CON, no content", "15 + m", coap.message(8, NOTIFIED)),
        Row(library, "CON, content", "16 + y + m", notified, con, is_coap("CON", "s2c", has_payload=True)),
        Row(library, "NON, content", "16 + y + m", notified, non, is_coap("NON", "s2c", has_payload=True)),
        Row(library, "GET CON, no resource name", "13 + m", coap.message(8, REGISTER[:1])),
        Row(library, "GET CON, resource name", "14 + rsn + m", register, con, is_coap("CON", "c2s", has_payload=False)),
        Row(library, "ACK, no content", "15 + m", coap.message(8, NOTIFIED)),
        Row(library, "ACK, content", "16 + y + m", notified, con, is_coap("ACK", "s2c", has_payload=True)),
        Row(library, "ACK, client to server", "4 + z", empty, con, is_coap("ACK", "c2s", has_payload=False)),
    ]


def java_coap_rows() -> list[Row]:
    """java-coap: a token of 2 bytes in the study, of 1 byte in our recordings."""
    library, con, non = "java-coap", "a-java-coap-con", "a-java-coap-non"
    empty, notified = coap.message(is_empty=True), coap.message(1, (("Observe", "1"),), 10)
    both, register = TOKEN + NO_FORMAT, coap.message(1, REGISTER)
    return [
        Row(library, "CON, content", "11 + y + m", notified, con, is_coap("CON", "s2c", has_payload=True), both),
        Row(library, "NON, content", "11 + y + m", notified, non, is_coap("NON", "s2c", has_payload=True), both),
        Row(library, "GET CON, resource name", "8 + rsn + m", register, con, is_coap("CON", "c2s", has_payload=False), TOKEN),
        Row(library, "ACK, content", "8 + y + m", coap.message(1, REGISTER[:1], 10), con, is_coap("ACK", "s2c", has_payload=True), TOKEN),
        Row(library, "ACK, client to server", "4 + z", empty, con, is_coap("ACK", "c2s", has_payload=False)),
    ]


def publish(qos: int, properties: tuple[tuple[str, str], ...], topic: str) -> Size:
    """Return a PUBLISH of the study's payload."""
    return mqtt.size_of(mqtt.Packet("PUBLISH", topic_bytes=len(topic), qos=qos, properties=properties, payload_bytes=10))


def mqtt_rows(library: str, name: str, identifier: tuple[tuple[str, str], ...], term: str) -> list[Row]:
    """Rows of an MQTT library; `identifier` is the property that it subscribes with, `term` what that adds to the study's formula."""
    plain = f"a-{name}-qos1"
    connect = mqtt.size_of(mqtt.Packet("CONNECT", client_identifier_bytes=len("sender")))
    connack = mqtt.size_of(mqtt.Packet("CONNACK", properties=(("Topic Alias Maximum", "10"), ("Receive Maximum", "20"))))
    subscribe = mqtt.size_of(mqtt.Packet("SUBSCRIBE", properties=identifier, filters_bytes=(len(TOPIC),)))
    puback, suback = mqtt.size_of(mqtt.Packet("PUBACK")), mqtt.size_of(mqtt.Packet("SUBACK"))
    return [
        Row(library, "CONNECT", "19 + msgl + p1 + m", connect, plain, is_mqtt("CONNECT", "c2s"), NO_USER),
        Row(library, "CONNACK", "3 + msgl + p1 + m", connack, plain, is_mqtt("CONNACK", "s2c"), "m is Mosquitto's properties", 6),
        *(row for qos in (0, 1) for row in publish_rows(library, f"a-{name}-qos{qos}", qos, identifier, term)),
        Row(library, "PUBACK", "3 + msgl + p2 + m", puback, plain, is_mqtt("PUBACK", "c2s")),
        Row(library, "SUBSCRIBE", f"6 + msgl + p1 + tpn{term} + m", subscribe, plain, is_mqtt("SUBSCRIBE", "c2s")),
        Row(library, "SUBACK", "4 + msgl + p1 + m", suback, plain, is_mqtt("SUBACK", "s2c")),
    ]


NO_USER = (
    "our connection in the clear has neither user name nor password; its client identifier takes as many bytes as the formula gives them"
)
ALIAS = (("Topic Alias", "1"),)
PAYLOAD = "m is the payload"


def publish_rows(library: str, capture: str, qos: int, identifier: tuple[tuple[str, str], ...], term: str) -> list[Row]:
    """Rows of PUBLISH: the publisher's first, its later ones by topic alias, and those to the subscriber."""
    base = 3 + 2 * qos
    first, later, to = (is_mqtt("PUBLISH", "c2s", topic=True), is_mqtt("PUBLISH", "c2s", topic=False), is_mqtt("PUBLISH", "s2c"))
    kind = f"PUBLISH QoS {qos}"
    formulas = (f"{base + 3} + msgl + p1 + tpn + m", f"{base + 3} + msgl + p1 + m", f"{base} + msgl + p1 + tpn{term} + m")
    return [
        Row(library, f"{kind}, publisher, first", formulas[0], publish(qos, ALIAS, TOPIC), capture, first, PAYLOAD, 10),
        Row(library, f"{kind}, publisher, later", formulas[1], publish(qos, ALIAS, ""), capture, later, PAYLOAD, 10),
        Row(library, f"{kind}, to subscriber", formulas[2], publish(qos, identifier, TOPIC), capture, to, PAYLOAD, 10),
    ]


def rows() -> list[Row]:
    """All rows. A PUBLISH's payload is not a term of the study's MQTT formulas: it is in m."""
    identifier = (("Subscription Identifier", "1"),)
    return [
        *coap_rows(),
        *mqtt_rows("Paho", "paho", (), ""),
        *mqtt_rows("HiveMQ", "hivemq", identifier, " + 1 + sbid"),
    ]


def measured(row: Row, folder: Path) -> list[int]:
    """Return the sizes, without repetition, that a row's message has in its recording below `folder`; none where it is in no recording."""
    if row.recording is None:
        return []
    import pyarrow as pa

    from pcapstat.capture import open as open_capture

    messages = pa.table(open_capture(folder / f"{row.recording}.pcapng", engine="native").messages)
    columns = ["kind", "direction", "payload_bytes", "header_bytes", "option_bytes", "opaque_bytes", "topic_name_bytes", "reason_codes"]
    found = [message for message in messages.select(columns).to_pylist() if row.is_it(message)]
    return sorted({sum(message[part] for part in ("header_bytes", "option_bytes", "payload_bytes", "opaque_bytes")) for message in found})
