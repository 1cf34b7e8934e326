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
    "websockets": "15.0.1",
    "mqtt-sn-12": "1.0.9",
    "recorder": "1",
}
"""The pinned version of each library; requirements.txt, pom.xml and apt.txt say the same."""

MQTT_SN_12_LIMIT = 248
"""Bytes of payload that mqtt-sn-12 can publish: it never writes the long length field."""

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
    "payload": "hi",
    "count": 200,
    "stop": 100,
    "spacing_ms": 20,
    "patience_s": 20,
    "resource": "Resource1",
}
TEN_MS: dict[str, str | int] = STUDY_A | {"count": 100, "spacing_ms": 10}
"""A run where all that is sent can be received."""
THREE = ("receiver", "sender", "broker")


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
                        f"a-{tag}{suffix}-{kind}",
                        driver,
                        "A",
                        library,
                        transport,
                        f"Observe, {kind.upper()} notifications",
                        security,
                        record=both,
                        parameters=STUDY_A | {"confirm": confirm},
                    )
                )
    return rows


def _study_a_cid() -> Scenario:
    return Scenario(
        "a-californium-dtls-cid-con",
        "californium",
        "A",
        "Californium",
        "CoAP",
        "Observe, CON notifications, a connection ID of 6 bytes as the study's",
        DTLS_PSK,
        parameters=STUDY_A | {"confirm": 1, "cid_bytes": 6},
    )


def _study_a_mqtt() -> list[Scenario]:
    rows = []
    for library, driver, tag in (("Paho MQTT v5", "paho", "paho"), ("HiveMQ MQTT Client", "hivemq", "hivemq")):
        for security in ("", TLS_13):
            for qos in (0, 1):
                everywhere = ("broker", "receiver", "sender") if qos and not security else ("broker",)
                rows.append(
                    Scenario(
                        f"a-{tag}{'-tls' if security else ''}-qos{qos}",
                        driver,
                        "A",
                        library,
                        "MQTT 5",
                        f"publish and subscribe, QoS {qos}" + (", user name and password" if security else ""),
                        security,
                        "Mosquitto",
                        ("receiver", "sender", "broker"),
                        everywhere,
                        parameters=STUDY_A | {"qos": qos},
                    )
                )
    return rows


def _at_broker(
    name: str,
    study: str,
    shows: str,
    parameters: dict[str, str | int],
    *,
    security: str = "",
    driver: str = "paho_python",
    points: tuple[str, ...] = THREE,
    path: dict[str, float] | None = None,
) -> Scenario:
    """Return a run over Mosquitto, recorded there: by default with Paho for Python."""
    library = "Paho MQTT v5" if driver == "paho" else "Paho MQTT Python"
    protocol = "MQTT 5" if driver == "paho" or parameters.get("mqtt") == 5 else "MQTT 3.1.1"
    record = ("receiver",) if path else ("broker",)
    return Scenario(
        name, driver, study, library, protocol, shows, security, "Mosquitto", points, record, TEN_MS | parameters, path
    )


def _study_b() -> list[Scenario]:
    common: dict[str, str | int] = {"payload": "hl7", "spacing_ms": 100, "patience_s": 30, "count": 60, "stop": 60}
    rows = [_at_broker("b-paho-qos2", "B", "HL7 v2 messages, QoS 2", common | {"qos": 2, "stop": 50}, driver="paho")]
    for poll_ms in (50, 100, 150, 200):
        requests = 5000 // poll_ms
        timing = {"mode": "poll", "poll_ms": poll_ms, "stop": requests, "confirm": 1}
        shows = f"HL7 v2 messages, polled every {poll_ms} ms"
        rows.append(
            Scenario(
                f"b-californium-poll{poll_ms}",
                "californium",
                "B",
                "Californium",
                "CoAP",
                shows,
                parameters=common | timing,
            )
        )
    return rows


def _study_c_coap() -> list[Scenario]:
    rows = []
    for security in ("", DTLS_PSK, OSCORE):
        for mode, shows in (("get", "a GET for each message"), ("observe", "Observe")):
            name = f"c-aiocoap-{'' if not security else 'oscore-' if security == OSCORE else 'dtls-'}{mode}"
            parameters: dict[str, str | int] = TEN_MS | {"mode": mode, "confirm": 1}
            if mode == "observe":
                parameters |= {"count": 200, "spacing_ms": 20}
            rows.append(Scenario(name, "aiocoap", "C", "aiocoap", "CoAP", shows, security, parameters=parameters))
    for tag, transport in (("tcp", "CoAP over TCP"), ("ws", "CoAP over WebSockets")):
        parameters = STUDY_A | {"mode": "observe", "scheme": f"coap+{tag}"}
        rows.append(
            Scenario(f"c-aiocoap-{tag}-observe", "aiocoap", "C", "aiocoap", transport, "Observe", parameters=parameters)
        )
    for scheme, security in (("coap", ""), ("coaps", DTLS_PSK), ("coap+tcp", "")):
        tag = {"coap": "udp", "coaps": "dtls", "coap+tcp": "tcp"}[scheme]
        protocol = "CoAP over TCP" if tag == "tcp" else "CoAP"
        parameters = TEN_MS | {"count": 20, "stop": 20, "scheme": scheme}
        shows = "a PUT for each message, meanwhile GETs, each by a new client"
        rows.append(
            Scenario(f"c-libcoap-{tag}", "libcoap", "C", "libcoap", protocol, shows, security, parameters=parameters)
        )
    return rows


def _study_c_others() -> list[Scenario]:
    many = ("receiver", "receiver2", "receiver3", "sender", "sender2", "broker")
    rows = [
        _at_broker("c-paho-python-tls13-mutual", "C", "QoS 1, client certificates", {"qos": 1}, security=MUTUAL),
        _at_broker("c-paho-python-tls12-user", "C", "QoS 1, user name and password", {"qos": 1}, security=TLS_12),
        _at_broker(
            "c-paho-python-many",
            "C",
            "three subscribers, two publishers, QoS 1",
            {"qos": 1, "count": 25, "stop": 50},
            points=many,
        ),
        _at_broker(
            "c-paho-python-websockets",
            "C",
            "MQTT over WebSockets, QoS 1",
            {"qos": 1, "transport": "websockets", "mqtt": 5},
        ),
    ]
    for version, library, security in (("2", "httpx", TLS_13), ("3", "aioquic", TLS_13)):
        rows.append(
            Scenario(
                f"c-http{version}",
                "http",
                "C",
                library,
                f"HTTP/{version}",
                "a GET for each message on one connection",
                security,
                "Hypercorn",
                parameters=TEN_MS | {"http": version},
            )
        )
    for mode, shows in (("chat", "chat messages"), ("pubsub", "items of a PubSub node")):
        for security in ("", TLS_13):
            name = f"c-xmpp{'-tls' if security else ''}-{mode}"
            parameters: dict[str, str | int] = TEN_MS | {"mode": mode, "count": 50, "stop": 50}
            rows.append(
                Scenario(
                    name, "xmpp", "C", "slixmpp", "XMPP", shows, security, "Prosody", THREE, ("broker",), parameters
                )
            )
    return rows


def _study_d() -> list[Scenario]:
    rows = []
    for label, size, count in (("100b", 100, 3), ("10kb", 10_000, 3), ("1mb", 1_000_000, 1)):
        common = TEN_MS | {
            "payload": "sized",
            "size": size,
            "count": count,
            "stop": count,
            "spacing_ms": 100,
            "patience_s": 90,
        }
        shows = f"{count} transfer{'s' if count > 1 else ''} of {size:,} bytes"
        rows += [
            Scenario(
                f"d-http1-{label}",
                "http",
                "D",
                "httpx",
                "HTTP/1.1",
                shows,
                server="Hypercorn",
                parameters=common | {"http": "1"},
            ),
            Scenario(
                f"d-aiocoap-{label}",
                "aiocoap",
                "D",
                "aiocoap",
                "CoAP",
                f"{shows}, Block2",
                parameters=common | {"mode": "get", "confirm": 1},
            ),
        ]
        if label == "10kb":
            rows.append(
                Scenario(
                    "d-aiocoap-put-10kb",
                    "aiocoap",
                    "D",
                    "aiocoap",
                    "CoAP",
                    f"{shows}, Block1",
                    parameters=common | {"mode": "put", "confirm": 1},
                )
            )
        for qos in (1, 2):
            row = _at_broker(f"d-paho-python-qos{qos}-{label}", "D", f"{shows}, QoS {qos}", common | {"qos": qos})
            rows.append(replace(row, record=("receiver",)))
    return rows


def _study_e() -> list[Scenario]:
    rows = []
    for size in (128, 1024, 1920):
        count = 50_000 // size
        common: dict[str, str | int] = TEN_MS | {
            "payload": "sized",
            "size": size,
            "count": count,
            "stop": count,
            "spacing_ms": 2,
        }
        shows = f"50 kB in messages of {size} bytes"
        client = "mqtt-sn-12" if size <= MQTT_SN_12_LIMIT else "recorder"
        rows += [
            Scenario(f"e-tcp-{size}", "stream", "E", "recorder", "TCP", shows, parameters=common | {"over": "tcp"}),
            Scenario(
                f"e-websocket-{size}",
                "stream",
                "E",
                "websockets",
                "WebSocket",
                shows,
                parameters=common | {"over": "websocket"},
            ),
            Scenario(
                f"e-californium-{size}",
                "californium",
                "E",
                "Californium",
                "CoAP",
                f"{shows}, a GET each",
                parameters=common | {"mode": "fetch", "confirm": 1},
            ),
            _at_broker(f"e-paho-qos1-{size}", "E", f"{shows}, QoS 1", common | {"qos": 1}),
            Scenario(
                f"e-mqttsn-{size}",
                "mqttsn",
                "E",
                client,
                "MQTT-SN 1.2",
                f"{shows}, QoS 1",
                server="recorder",
                points=THREE,
                record=("broker",),
                parameters=common | {"qos": 1, "client": client},
            ),
        ]
    return rows


def _bad_links() -> list[Scenario]:
    fetch: dict[str, str | int] = TEN_MS | {"mode": "fetch", "confirm": 1, "ack_timeout_ms": 200, "patience_s": 60}
    loss10: dict[str, float] = {"loss": 0.1, "delay_ms": 5, "seed": 1}
    loss5: dict[str, float] = {"loss": 0.05, "delay_ms": 5, "seed": 2}
    reorder: dict[str, float] = {"loss": 0, "delay_ms": 5, "reorder": 0.1, "hold_ms": 30, "seed": 3}
    common: dict[str, str | int] = {"patience_s": 60}
    return [
        Scenario(
            "loss-californium-con",
            "californium",
            "A",
            "Californium",
            "CoAP",
            "a CON GET each, 10 % loss, ACK_TIMEOUT 200 ms",
            parameters=fetch,
            path=loss10,
        ),
        _at_broker("loss-paho-python-qos1", "C", "QoS 1, 5 % loss", common | {"qos": 1}, path=loss5),
        _at_broker("loss-paho-python-qos2", "C", "QoS 2, 5 % loss", common | {"qos": 2}, path=loss5),
        _at_broker(
            "reorder-paho-python-qos1", "C", "QoS 1, 10 % of the frames 30 ms late", common | {"qos": 1}, path=reorder
        ),
        Scenario(
            "reorder-californium-non",
            "californium",
            "A",
            "Californium",
            "CoAP",
            "Observe, 10 % of the frames 30 ms late",
            parameters=STUDY_A | {"confirm": 0},
            path=reorder,
        ),
    ]


def table() -> dict[str, Scenario]:
    """Return every scenario by name; rounds after the first are scenarios of their own."""
    first, *others = _study_a_coap()
    rows = [replace(first, rounds=3), *others, _study_a_cid(), *_study_a_mqtt(), *_bad_links()]
    rows += [*_study_b(), *_study_c_coap(), *_study_c_others(), *_study_d(), *_study_e()]
    scenarios = {}
    for row in rows:
        for number in range(1, row.rounds + 1):
            name = row.name if number == 1 else f"{row.name}-round{number}"
            scenarios[name] = replace(row, name=name, parameters=row.parameters | {"round": number})
    return scenarios
