"""One driver a library: which programs to start at which point, in which order."""

from __future__ import annotations

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
    lines = ["persistence false", "log_type error", "log_type warning", "log_type notice", "log_type information", "user root"]
    lines += ["max_queued_messages 0", f"listener {mqtt_port(run.scenario)} {address('broker')}"]
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
    """Port of the broker."""
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


DRIVERS: dict[str, Callable[[Run], list[Start]]] = {
    "californium": californium,
    "java_coap": java_coap,
    "paho": paho,
    "hivemq": hivemq,
}
