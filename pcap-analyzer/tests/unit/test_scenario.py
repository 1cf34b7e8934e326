"""Scenarios: what cannot be in one is a usage error that names file and key."""

from __future__ import annotations

from pathlib import Path

import click.testing
import pytest

from pcapstat.cli.synth import command
from pcapstat.errors import UsageError


def written(text: str, folder: Path) -> click.testing.Result:
    """Write a scenario and its capture."""
    (folder / "s.yaml").write_text(text)
    return click.testing.CliRunner().invoke(command, [str(folder / "s.yaml"), "-O", str(folder / "s.pcapng")], standalone_mode=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("protocol: coap\ncount: abc", "count: abc: a whole number"),
        ("protocol: coap\ncount: -1", "count: -1: a number from 1 to 65535"),
        ("protocol: coap\ncount: 0", "count: 0"),
        ("protocol: coap\ncount: 2.5", "count: 2.5: a whole number"),
        ("protocol: coap\ncount: true", "count: True: a whole number"),
        ("protocol: coap\ninterval_ms: -1", "interval_ms: -1"),
        ("protocol: coap\nrtt_ms: .nan", "rtt_ms: nan"),
        ("protocol: coap\nkind: con", "there are: CON, NON"),
        ("protocol: coap\ntoken_bytes: 9", "from 0 to 8"),
        ("protocol: coap\nresource: 5", "resource: 5: a text"),
        ("protocol: coap\n1: 2\nx: 3", "no key 1, x"),
        ("protocol: coap\nip: 5", "there are: 4, 6"),
        ("protocol: coap\nlink: wifi", "there are: ethernet, raw"),
        ("protocol: coap\nloss: 5", "write for example loss: [5, 17]"),
        ("protocol: coap\nloss: [0]", "loss: [0]"),
        ("protocol: coap\ncount: 10\nloss: [5, 11]", "loss: [11]: there are 10 data messages"),
        ("protocol: coap\noptions: [Accept]", "options: no names with values"),
        ("protocol: coap\noptions: {Accept: text}", "options: Accept=text"),
        ("protocol: coap\noptions: {Nothing: 1}", "options: no CoAP option Nothing"),
        ("protocol: [coap]", "no protocol ['coap']"),
        ("protocol: mqtt\nqos: 3", "qos: 3: a number from 0 to 2"),
        ("protocol: mqtt\ntopic_alias: maybe", "topic_alias: maybe: true or false"),
        ("protocol: mqtt\nsecurity: dtls1.3", "RFC 9147 §3"),
        # 4 bytes of header, a token of 8, Observe (2), Content-Format (1), marker (1): 16,384 with them
        ("protocol: coap\nsecurity: dtls1.2-ccm8\npayload_bytes: 16369", "16385 bytes in a record: 16384 are the most"),
        ("protocol: coap\npayload_bytes: 65492", "65508 bytes in a datagram: 65507 are the most"),
        ("protocol: mqtt-sn\npayload_bytes: 65530", "65507 are the most"),
    ],
)
def test_what_cannot_be_is_refused(text: str, said: str, tmp_path: Path) -> None:
    """In one line, and no capture is written."""
    done = written(text, tmp_path)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert not (tmp_path / "s.pcapng").exists()


@pytest.mark.parametrize(
    "text",
    [
        "protocol: coap\ncount: 1\ninterval_ms: 5\nloss: []\noptions: {Accept: 50}",
        "protocol: coap\nsecurity: dtls1.2-ccm8\npayload_bytes: 16368\ncount: 1",
        "protocol: coap\npayload_bytes: 65491\ncount: 1",
        "protocol: mqtt\ncount: 2\npayload_bytes: 70000",
    ],
)
def test_what_just_can_be_is_written(text: str, tmp_path: Path) -> None:
    """The largest message of a record, of a datagram; numbers with and without a point."""
    assert written(text, tmp_path).exception is None
    assert (tmp_path / "s.pcapng").stat().st_size > 0
