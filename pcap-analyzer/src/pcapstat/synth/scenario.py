"""A scenario: what is sent, how often, over what path. Read from YAML."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcapstat.errors import UsageError
from pcapstat.synth import SCENARIOS, shipped
from pcapstat.theory.coap import value_bytes
from pcapstat.theory.envelope import check_datagram
from pcapstat.theory.security import PROTECTIONS, records

PATTERNS = {"coap": ("observe", "get"), "mqtt": ("publish",), "tcp": ("stream",), "websocket": ("stream",), "mqtt-sn": ("publish",)}
"""What can be sent by each protocol: a notification or a response each, a PUBLISH over the broker to a subscriber, a message each."""
PORTS = {"coap": 5683, "mqtt": 1883, "tcp": 8080, "websocket": 8080, "mqtt-sn": 1883}
RANGES: dict[str, tuple[float, float]] = {
    "qos": (0, 2),
    # each message has an identifier of 16 bits of its own
    "count": (1, 65_535),
    "payload_bytes": (0, 16_000_000),
    "interval_ms": (0, 86_400_000),
    "rtt_ms": (0, 86_400_000),
    "token_bytes": (0, 8),
    "confirm_every": (0, 65_535),
    "certificate_bytes": (1, 16_000),
    "tickets": (0, 100),
    "ack_timeout_ms": (0, 86_400_000),
    "rto_ms": (0, 86_400_000),
    "delayed_ack_ms": (0, 86_400_000),
}
"""The least and most of each number; a day is the longest time."""
WORDS: dict[str, tuple[object, ...]] = {
    "kind": ("CON", "NON"),
    "security": tuple(PROTECTIONS),
    "link": ("ethernet", "raw"),
    "ip": (4, 6),
}
"""What can be written for each key that takes one of a few."""
MOST_NAME_BYTES = 255
"""Of a resource: a Uri-Path's (RFC 7252 §5.10.1). Of a key's name: what fits beside the rest of a flight."""
TRANSPORTS = {"coap": "udp", "mqtt": "tcp", "tcp": "tcp", "websocket": "tcp", "mqtt-sn": "udp"}


@dataclass(frozen=True)
class Scenario:
    """A run. Times in milliseconds; `loss` are the numbers, from 1, of the data messages whose first transmission is lost.

    Of NON notifications each `confirm_every`-th is Confirmable (0: none), as servers find out whether the client is there (RFC 7641 §4.5).
    `certificate_bytes` is the server's certificate in DER; `tickets` are session tickets behind a TLS 1.3 handshake (RFC 8446 §4.6.1);
    `delayed_ack_ms` is how long TCP waits for data to send an acknowledgement along with (RFC 1122 §4.2.3.2).
    """

    protocol: str
    pattern: str = ""
    kind: str = "CON"
    qos: int = 0
    count: int = 100
    payload_bytes: int = 10
    interval_ms: float = 10.0
    rtt_ms: float = 1.0
    token_bytes: int = 8
    resource: str = "Resource1"
    options: tuple[tuple[str, str], ...] = ()
    topic_alias: bool = True
    confirm_every: int = 0
    security: str = "none"
    certificate_bytes: int = 400
    tickets: int = 0
    psk_identity: str = "pcapstat"
    link: str = "ethernet"
    ip: int = 4
    loss: tuple[int, ...] = ()
    ack_timeout_ms: float = 2000.0
    rto_ms: float = 200.0
    delayed_ack_ms: float = 40.0

    @property
    def transport(self) -> str:
        """UDP or TCP."""
        return TRANSPORTS[self.protocol]

    @property
    def port(self) -> int:
        """Return the server's port; secured ones are one above for CoAP, 8883 for MQTT."""
        if self.security == "none":
            return PORTS[self.protocol]
        return {"coap": 5684, "mqtt": 8883}.get(self.protocol, PORTS[self.protocol])


def read(name: str) -> Scenario:
    """Read a scenario: a file, or the name of one that comes with the project. Raises UsageError that names key and remedy."""
    import yaml

    path = SCENARIOS / f"{name}.yaml" if name in shipped() else Path(name)
    try:
        given = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror} (name a file, or one of: {', '.join(shipped())})") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{name}: {' '.join(str(error).split())} (check its YAML)") from None
    return checked(name, given)


def checked(name: str, given: Any) -> Scenario:
    """Make a scenario of what a file holds."""
    known = {field.name for field in dataclasses.fields(Scenario)}
    if not isinstance(given, dict) or "protocol" not in given:
        raise UsageError(f"{name}: no key protocol (write for example protocol: coap)")
    unknown = sorted(str(key) for key in given if key not in known | {"description"})
    if unknown:
        raise UsageError(f"{name}: no key {', '.join(unknown)} (there are: {', '.join(sorted(known))})")
    if given["protocol"] not in tuple(PATTERNS):
        raise UsageError(f"{name}: no protocol {given['protocol']} (there are: {', '.join(PATTERNS)})")
    values = {key: value for key, value in given.items() if key in known}
    values["options"] = options_of(name, values.get("options") or {})
    values["loss"] = loss_of(name, values.get("loss") or [])
    values.setdefault("pattern", PATTERNS[given["protocol"]][0])
    if values["pattern"] not in PATTERNS[given["protocol"]]:
        raise UsageError(
            f"{name}: {given['protocol']} has no pattern {values['pattern']} (there are: {', '.join(PATTERNS[given['protocol']])})"
        )
    for field in dataclasses.fields(Scenario):
        if field.name in values and field.name not in {"protocol", "options", "loss"}:
            check_value(name, field.name, values[field.name], type(field.default))
    scenario = Scenario(**values)
    beyond = [number for number in scenario.loss if number > scenario.count]
    if beyond:
        raise UsageError(f"{name}: loss: {beyond}: there are {scenario.count} data messages (name some of them, or raise count)")
    records(scenario.security, scenario.transport, scenario.payload_bytes)
    check_datagram(scenario.transport, scenario.ip, scenario.payload_bytes)
    return scenario


def options_of(name: str, given: Any) -> tuple[tuple[str, str], ...]:
    """Return CoAP options. Raises UsageError where one cannot be."""
    if not isinstance(given, dict):
        raise UsageError(f"{name}: options: no names with values (write for example options: {{Uri-Query: a=1}})")
    options = tuple((str(key), str(value)) for key, value in given.items())
    try:
        for option, value in options:
            value_bytes(option, value)
    except UsageError as error:
        raise UsageError(f"{name}: options: {error}") from None
    return options


def loss_of(name: str, given: Any) -> tuple[int, ...]:
    """Return the numbers of the lost messages. Raises UsageError where they are none."""
    if not isinstance(given, list) or not all(type(number) is int and number > 0 for number in given):
        raise UsageError(f"{name}: loss: {given}: no numbers of messages, from 1 on (write for example loss: [5, 17])")
    return tuple(given)


def check_value(name: str, key: str, value: Any, wanted: type) -> None:
    """Raise UsageError where the value of a key is not of its type, or not one that it can have. A number with a point may lack it."""
    is_typed = type(value) is wanted or (wanted is float and type(value) is int)
    if not is_typed or (wanted is float and not math.isfinite(value)):
        raise UsageError(f"{name}: {key}: {value}: {TYPES[wanted]} stands here")
    if key in WORDS and value not in WORDS[key]:
        raise UsageError(f"{name}: {key}: {value}: no such {key} (there are: {', '.join(map(str, WORDS[key]))})")
    least, most = RANGES.get(key, (-math.inf, math.inf))
    if wanted in {int, float} and not least <= value <= most:
        raise UsageError(f"{name}: {key}: {value}: a number from {least} to {most} stands here")
    if wanted is str and len(value.encode()) > MOST_NAME_BYTES:
        raise UsageError(f"{name}: {key}: {len(value.encode())} bytes, where {MOST_NAME_BYTES} are the most")


TYPES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
"""Types of values, in words."""
