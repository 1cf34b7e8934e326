"""libcoap's client, run once a message: a PUT of each payload to the example server, then a GET of what it holds."""

from __future__ import annotations

import subprocess
import time

from app import App


def main() -> None:
    """Put every message, then fetch the last once for each."""
    app = App()
    program = ["coap-client-gnutls" if app.text("security") else "coap-client-notls", "-B", "5"]
    if app.text("security"):
        program += ["-u", app.text("identity"), "-k", app.text("psk")]
    uri = f"{app.text('scheme')}://{app.text('server')}/example_data"
    app.begin()
    if app.sends:
        for payload in app.payloads():
            app.sent(payload)
            call(app, [*program, "-m", "put", "-e", payload.decode(), uri])
            time.sleep(app.spacing_s)
        return
    for _ in range(app.number("stop")):
        app.received(call(app, [*program, "-m", "get", uri]))
        time.sleep(app.spacing_s)


def call(app: App, command: list[str]) -> bytes:
    """Run the client and return the body that it printed."""
    done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    if done.returncode:
        app.error(done.stderr.decode(errors="replace").strip()[:80])
    return done.stdout.rstrip(b"\n")


main()
