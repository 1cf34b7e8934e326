"""One driver a library: which programs to start at which point, in which order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import keys
from lab import address

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios import Scenario

HERE = Path(__file__).parent
BUILT = HERE / ".work"
PYTHON = str(BUILT / "venv" / "bin" / "python")


@dataclass
class Run:
    """One scenario in its folder of work."""

    scenario: Scenario
    work: Path

    def options(self, role: str, **more: str | int) -> list[str]:
        """Return the options of an application as key=value."""
        scenario = self.scenario
        options: dict[str, str | int] = {
            **scenario.parameters,
            "role": role,
            "security": scenario.security,
            "payloads": str(self.work / "payloads"),
            "begin": str(self.work / f"begin-{role}"),
            "work": str(self.work),
            **more,
        }
        return [f"{key}={value}" for key, value in options.items()]


@dataclass
class Start:
    """A program to start: a service (a broker) runs until the end, an application is waited for."""

    name: str
    point: str
    command: list[str]
    ready: str = "ready"
    service: bool = False
    logs: bool = True
    env: dict[str, str] = field(default_factory=dict)


def java(run: Run, main: str, role: str, **options: str | int) -> Start:
    """Start a Java driver; with TLS, an agent inside writes the secrets."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    if run.scenario.security.startswith("TLS"):
        agent = BUILT / "java" / "jars" / "extract-tls-secrets-4.0.0.jar"
        command += [f"-javaagent:{agent}={run.work / role}.secrets"]
        for store in ("trustStore", "keyStore"):
            command += [f"-Djavax.net.ssl.{store}={run.work / store}.p12"]
            command += [f"-Djavax.net.ssl.{store}Password={keys.STORE_PASSWORD}"]
            command += [f"-Djavax.net.ssl.{store}Type=PKCS12"]
    classes = f"{BUILT / 'java' / 'classes'}:{BUILT / 'java' / 'jars' / '*'}"
    point = str(options.pop("point", role))
    return Start(role, point, [*command, "-cp", classes, main, *run.options(role, local=address(point), **options)])


def mosquitto(run: Run) -> Start:
    """Start a broker of its own configuration that keeps nothing between runs."""
    lines = [
        "persistence false",
        "log_type error",
        "log_type warning",
        "log_type notice",
        "log_type information",
        "user root",
    ]
    lines += ["max_queued_messages 0"]
    if run.scenario.parameters.get("transport") == "websockets":
        lines += [f"listener {mqtt_port(run.scenario)}", "protocol websockets", "socket_domain ipv4"]
        lines += ["listener 1883 127.0.0.1"]  # Mosquitto 2.0.11 does not start with WebSockets alone
    else:
        lines += [f"listener {mqtt_port(run.scenario)} {address('broker')}"]
    security = run.scenario.security
    if security.startswith("TLS"):
        lines += [f"{word} {run.work / word}.pem" for word in ("cafile", "certfile", "keyfile")]
        lines += [f"tls_version tlsv{security[4:7]}"]
    if security == "TLS 1.3 client certificate":
        lines += ["require_certificate true", "use_identity_as_username true", "allow_anonymous true"]
    elif security.startswith("TLS"):
        lines += ["allow_anonymous false", f"password_file {run.work / 'passwords'}"]
    else:
        lines += ["allow_anonymous true"]
    file = run.work / "mosquitto.conf"
    file.write_text("\n".join(lines) + "\n")
    return Start("broker", "broker", ["mosquitto", "-c", str(file)], "running", service=True, logs=False)


def mqtt_port(scenario: Scenario) -> int:
    """Return the port of the broker."""
    if scenario.parameters.get("transport") == "websockets":
        return 8080
    return 8883 if scenario.security else 1883


def californium(run: Run) -> list[Start]:
    """CoAP over UDP or DTLS."""
    port = 5684 if run.scenario.security else 5683
    psk: dict[str, str | int] = {"port": port, "identity": keys.IDENTITY, "psk": keys.PSK}
    server = f"{address('sender')}:{port}"
    return [java(run, "Californium", "sender", **psk), java(run, "Californium", "receiver", server=server, **psk)]


def java_coap(run: Run) -> list[Start]:
    """CoAP over UDP, or over TLS on TCP."""
    port = 5684 if run.scenario.security else 5683
    server = f"{address('sender')}:{port}"
    return [java(run, "JavaCoap", role, server=server, port=port) for role in ("sender", "receiver")]


def paho(run: Run) -> list[Start]:
    """Eclipse Paho for Java, MQTT 5."""
    return [mosquitto(run), *(_mqtt_java(run, "Paho", role) for role in ("sender", "receiver"))]


def hivemq(run: Run) -> list[Start]:
    """HiveMQ MQTT Client, MQTT 5."""
    return [mosquitto(run), *(_mqtt_java(run, "HiveMq", role) for role in ("sender", "receiver"))]


def _mqtt_java(run: Run, main: str, role: str) -> Start:
    port = mqtt_port(run.scenario)
    server = f"{address('broker')}:{port}"
    return java(run, main, role, server=server, port=port, user=keys.USER, password=keys.PASSWORD)


def python(run: Run, program: str, role: str, point: str, **options: str | int) -> Start:
    """Start a Python application."""
    command = [PYTHON, str(HERE / "apps" / f"{program}_app.py"), *run.options(role, local=address(point), **options)]
    return Start(role, point, command, env={"PYTHONDONTWRITEBYTECODE": "1", "HOME": str(run.work)})


def paho_python(run: Run) -> list[Start]:
    """Eclipse Paho for Python; each sender and receiver that has a point takes part."""
    broker = mosquitto(run)
    options: dict[str, str | int] = {"server": address("broker"), "port": mqtt_port(run.scenario)}
    options |= {"user": keys.USER, "password": keys.PASSWORD}
    clients = sorted(point for point in run.scenario.points if point != "broker")
    return [broker, *(python(run, "paho", point, point, **options) for point in clients)]


def aiocoap(run: Run) -> list[Start]:
    """Start a server that notifies or answers; with mode `put` it takes what the client sends."""
    host, asks = ("receiver", "sender") if run.scenario.parameters["mode"] == "put" else ("sender", "receiver")
    shared: dict[str, str | int] = {"secret": keys.OSCORE_SECRET, "salt": keys.OSCORE_SALT}
    shared |= {"identity": keys.IDENTITY, "psk": keys.PSK}
    default = "coaps" if run.scenario.security == "DTLS 1.2 PSK" else "coap"
    shared["scheme"] = run.scenario.parameters.get("scheme", default)
    server = python(run, "coap", host, host, serves=1, **shared)
    server.env["AIOCOAP_DTLSSERVER_ENABLED"] = "1"
    port = ":8683" if shared["scheme"] == "coap+ws" else ""  # where aiocoap's server waits for a proxy's WebSockets
    return [server, python(run, "coap", asks, asks, server=address(host) + port, **shared)]


def libcoap(run: Run) -> list[Start]:
    """Start the example server, and the example client once a message."""
    options: dict[str, str | int] = {"identity": keys.IDENTITY, "psk": keys.PSK, "server": address("sender")}
    program = ["coap-server-notls"]
    if run.scenario.security:
        program = ["coap-server-gnutls", "-k", keys.PSK, "-h", keys.IDENTITY]
    server = Start("server", "sender", [*program, "-A", address("sender"), "-d", "10"], "", service=True, logs=False)
    settings = run.work / "gnutls.conf"  # without it GnuTLS takes ECDHE_PSK, which a shared secret does not open
    settings.write_text(
        "[overrides]\ntls-disabled-kx = ECDHE-PSK\ntls-disabled-kx = DHE-PSK\ntls-disabled-kx = RSA-PSK\n"
    )
    server.env = {"SSLKEYLOGFILE": str(run.work / "server.secrets"), "GNUTLS_SYSTEM_PRIORITY_FILE": str(settings)}
    return [server, *(python(run, "libcoap", role, "receiver", **options) for role in ("sender", "receiver"))]


def http(run: Run) -> list[Start]:
    """Hypercorn as server; httpx, or aioquic for HTTP/3, as client."""
    options: dict[str, str | int] = {"server": address("sender"), "port": 443 if run.scenario.security else 80}
    return [python(run, "http", role, role, **options) for role in ("sender", "receiver")]


def stream(run: Run) -> list[Start]:
    """TCP or WebSocket; the receiver listens."""
    options: dict[str, str | int] = {"server": address("receiver"), "port": 8080}
    return [python(run, "stream", role, role, **options) for role in ("receiver", "sender")]


def mqttsn(run: Run) -> list[Start]:
    """MQTT-SN with a gateway of the recorder's own."""
    options: dict[str, str | int] = {"server": address("broker"), "port": 1883}
    gateway = python(run, "mqttsn", "gateway", "broker", **options)
    gateway.service, gateway.logs = True, False
    return [gateway, *(python(run, "mqttsn", role, role, **options) for role in ("receiver", "sender"))]


def xmpp(run: Run) -> list[Start]:
    """Prosody of its own configuration, and slixmpp."""
    secured = bool(run.scenario.security)
    plain = "c2s_require_encryption = false; allow_unencrypted_plain_auth = true"
    settings = [
        "run_as_root = true; use_libevent = false; pidfile = DIR/prosody.pid; data_path = DIR/data",
        'modules_enabled = {"roster", "saslauth", "disco", "ping"' + (', "tls"}' if secured else "}"),
        'modules_disabled = {"s2s"}; interfaces = {ADDRESS}; c2s_ports = {5222}; s2s_ports = {}',
        'authentication = "internal_plain"; log = {info = "*console"}; admins = {"sender@localhost"}',
        "ssl = {certificate = DIR/certfile.pem; key = DIR/keyfile.pem}" if secured else plain,
        'VirtualHost "localhost"',
        'Component "pubsub.localhost" "pubsub"',
    ]
    text = "\n".join(settings).replace("ADDRESS", f'"{address("broker")}"')
    text = re.sub(r"DIR(/[\w.]+)", lambda found: f'"{run.work}{found.group(1)}"', text)
    file = run.work / "prosody.cfg.lua"
    file.write_text(text + "\n")
    accounts = run.work / "data" / "localhost" / "accounts"
    accounts.mkdir(parents=True)
    for user in ("sender", "receiver"):
        (accounts / f"{user}.dat").write_text(f'return {{ ["password"] = "{keys.PASSWORD}" }};\n')
    command = ["prosody", "--config", str(file), "-F"]
    server = Start("broker", "broker", command, "Activated service 'c2s'", service=True, logs=False)
    options: dict[str, str | int] = {"server": address("broker"), "password": keys.PASSWORD}
    return [server, *(python(run, "xmpp", role, role, **options) for role in ("sender", "receiver"))]


DRIVERS: dict[str, Callable[[Run], list[Start]]] = {
    "californium": californium,
    "java_coap": java_coap,
    "paho": paho,
    "hivemq": hivemq,
    "paho_python": paho_python,
    "aiocoap": aiocoap,
    "libcoap": libcoap,
    "http": http,
    "stream": stream,
    "mqttsn": mqttsn,
    "xmpp": xmpp,
}
