"""A publisher or a subscriber with Paho for Python: MQTT 3.1.1 or 5, over TCP, TLS or WebSockets."""

from __future__ import annotations

import ssl
import time
from typing import Any, Literal

import paho.mqtt.client as mqtt
from app import App
from paho.mqtt.enums import CallbackAPIVersion


def main() -> None:
    """Publish all payloads, or receive until there are enough."""
    app = App()
    transport: Literal["websockets", "tcp"] = "websockets" if app.text("transport") == "websockets" else "tcp"
    version = mqtt.MQTTv5 if app.number("mqtt") == 5 else mqtt.MQTTv311
    client = mqtt.Client(CallbackAPIVersion.VERSION2, app.text("role"), protocol=version, transport=transport)
    secure(app, client)
    client.on_message = lambda _client, _data, message: app.received(bytes(message.payload))
    client.on_connect = lambda *_: connected(app, client)
    app.begin()
    client.connect(app.text("server"), app.number("port"))
    client.loop_start()
    if app.sends:
        publish(app, client)
    else:
        receive(app)
    client.disconnect()
    client.loop_stop()


def connected(app: App, client: mqtt.Client) -> None:
    """Subscribe, if this is a receiver."""
    if not app.sends:
        client.subscribe("Resource1", app.number("qos"))


def secure(app: App, client: mqtt.Client) -> None:
    """Set TLS up: a client's certificate, or user name and password."""
    security = app.text("security")
    if not security:
        return
    context = ssl.create_default_context(cafile=app.file("cafile.pem"))
    context.keylog_filename = app.file(f"{app.text('role')}.secrets")
    if security.startswith("TLS 1.2"):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if security.endswith("client certificate"):
        context.load_cert_chain(app.file("clientcert.pem"), app.file("clientkey.pem"))
    else:
        client.username_pw_set(app.text("user"), app.text("password"))
    client.tls_set_context(context)


def publish(app: App, client: mqtt.Client) -> None:
    """Publish every payload and wait until the last is acknowledged."""
    while not client.is_connected():
        time.sleep(0.01)
    last: Any = None
    for payload in app.payloads():
        app.sent(payload)
        last = client.publish("Resource1", payload, app.number("qos"))
        time.sleep(app.spacing_s)
    if last is not None:
        last.wait_for_publish(30)
    time.sleep(0.2)


def receive(app: App) -> None:
    """Receive until there are enough, or until patience ends."""
    end = time.monotonic() + app.number("patience_s")
    while not app.full:
        if time.monotonic() > end:
            app.error(f"stopped waiting after {app.received_count} messages")
            return
        time.sleep(0.005)
    time.sleep(0.05)


main()
