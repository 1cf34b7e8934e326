"""The scenario table: what is recorded, with which library, and how."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

VERSIONS = {
    "Californium": "3.7.0",
    "java-coap": "6.21.0",
    "Paho MQTT v5": "1.2.5",
    "HiveMQ MQTT Client": "1.2.2",
    "aiocoap": "0.4.17",
    "Paho MQTT Python": "2.2.0",
    "libcoap": "4.3.1",
    "httpx": "0.28.1",
    "aioquic": "1.7.2",
    "slixmpp": "1.17.0",
    "Mosquitto": "2.0.11",
    "Hypercorn": "0.18.0",
    "Prosody": "0.12.3",
    "recorder": "1",
}
"""The pinned version of each library; requirements.txt, pom.xml and apt.txt say the same."""

DTLS_PSK = "DTLS 1.2 PSK"
TLS_13 = "TLS 1.3"
TLS_12 = "TLS 1.2"
MUTUAL = "TLS 1.3 client certificate"
OSCORE = "OSCORE"


@dataclass(frozen=True)
class Scenario:
    """One row of the table; `driver` names a function of drivers.py."""

    name: str
    driver: str
    study: str
    library: str
    protocol: str
    shows: str
    security: str = ""
    server: str = ""
    points: tuple[str, ...] = ("receiver", "sender")
    record: tuple[str, ...] = ("receiver",)
    parameters: dict[str, str | int] = field(default_factory=dict)
    path: dict[str, float] | None = None
    rounds: int = 1

    @property
    def version(self) -> str:
        """Version of the library under test."""
        return VERSIONS[self.library]


STUDY_A: dict[str, str | int] = {
    "payload": "hi", "count": 200, "stop": 100, "spacing_ms": 20, "patience_s": 20, "resource": "Resource1",
}
AT_BROKER = {"points": ("receiver", "sender", "broker"), "record": ("broker",), "server": "Mosquitto"}


def _study_a_coap() -> list[Scenario]:
    rows = []
    for library, driver, tag, secured in (
        ("Californium", "californium", "californium", DTLS_PSK),
        ("java-coap", "java_coap", "java-coap", TLS_13),
    ):
        for security in ("", secured):
            for confirm, kind in ((0, "non"), (1, "con")):
                transport = "CoAP over TCP" if security == TLS_13 else "CoAP"
                suffix = {"": "", DTLS_PSK: "-dtls", TLS_13: "-tls"}[security]
                both = ("receiver", "sender") if confirm and not security else ("receiver",)
                rows.append(
                    Scenario(
                        f"a-{tag}{suffix}-{kind}", driver, "A", library, transport,
                        f"Observe, {kind.upper()} notifications", security, record=both,
                        parameters=STUDY_A | {"confirm": confirm},
                    )
                )
    return rows


def _study_a_mqtt() -> list[Scenario]:
    rows = []
    for library, driver, tag in (("Paho MQTT v5", "paho", "paho"), ("HiveMQ MQTT Client", "hivemq", "hivemq")):
        for security in ("", TLS_13):
            for qos in (0, 1):
                everywhere = ("broker", "receiver", "sender") if qos and not security else ("broker",)
                rows.append(
                    Scenario(
                        f"a-{tag}{'-tls' if security else ''}-qos{qos}", driver, "A", library, "MQTT 5",
                        f"publish and subscribe, QoS {qos}" + (", user name and password" if security else ""), security,
                        "Mosquitto", ("receiver", "sender", "broker"), everywhere,
                        parameters=STUDY_A | {"qos": qos},
                    )
                )
    return rows


def table() -> dict[str, Scenario]:
    """Return every scenario by name; rounds after the first are scenarios of their own."""
    first, *others = _study_a_coap()
    rows = [replace(first, rounds=3), *others, *_study_a_mqtt()]
    scenarios = {}
    for row in rows:
        for number in range(1, row.rounds + 1):
            name = row.name if number == 1 else f"{row.name}-round{number}"
            scenarios[name] = replace(row, name=name, parameters=row.parameters | {"round": number})
    return scenarios
