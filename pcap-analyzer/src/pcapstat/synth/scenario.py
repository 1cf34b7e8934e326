"""A scenario: what is sent, how often, over what path. Read from YAML."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcapstat.errors import UsageError
from pcapstat.synth import SCENARIOS, shipped

PATTERNS = {"coap": ("observe", "get"), "mqtt": ("publish",), "tcp": ("stream",), "websocket": ("stream",), "mqtt-sn": ("publish",)}
"""What can be sent by each protocol: a notification or a response each, a PUBLISH over the broker to a subscriber, a message each."""
PORTS = {"coap": 5683, "mqtt": 1883, "tcp": 8080, "websocket": 8080, "mqtt-sn": 1883}
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
        given = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror} (name a file, or one of: {', '.join(shipped())})") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{name}: {' '.join(str(error).split())} (check its YAML)") from None
    return checked(name, given)


def checked(name: str, given: Any) -> Scenario:
    """Make a scenario of what a file holds."""
    known = {field.name for field in dataclasses.fields(Scenario)}
    if not isinstance(given, dict) or "protocol" not in given:
        raise UsageError(f"{name}: no key protocol (write for example protocol: coap)")
    unknown = sorted(set(given) - known - {"description"})
    if unknown:
        raise UsageError(f"{name}: no key {', '.join(unknown)} (there are: {', '.join(sorted(known))})")
    if given["protocol"] not in PATTERNS:
        raise UsageError(f"{name}: no protocol {given['protocol']} (there are: {', '.join(PATTERNS)})")
    values = {key: value for key, value in given.items() if key in known}
    values["options"] = tuple((str(key), str(value)) for key, value in dict(values.get("options") or {}).items())
    values["loss"] = tuple(values.get("loss") or ())
    values.setdefault("pattern", PATTERNS[given["protocol"]][0])
    if values["pattern"] not in PATTERNS[given["protocol"]]:
        raise UsageError(
            f"{name}: {given['protocol']} has no pattern {values['pattern']} (there are: {', '.join(PATTERNS[given['protocol']])})"
        )
    return Scenario(**values)
