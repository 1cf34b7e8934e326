"""What the Lua dissectors show of a capture in tshark, and what the command line says of it."""

from __future__ import annotations

import os
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from places import CAPTURES, ROOT

import pcapstat
from pcapstat import wireshark
from pcapstat.engines import Secrets
from pcapstat.engines.tshark import GIVEN, opening

DISSECTORS = ROOT / "dissectors"
PROTOCOLS = ("coap", "mqtt", "mqttsn", "tls", "dtls")
"""Whose messages the dissectors show."""
RULES = {"mqttsn": ("udp.port==1883,mqttsn", "udp.port==1883,mqttsn"), "aiocoap-ws": ("tcp.port==8683,http", "tcp.port==8683,websocket")}
"""What tshark, and pcapstat, have to be told of our recordings, by a word of their names (captures/README.md)."""


COMPRESSED = {"c-aiocoap-ws-observe"}
"""CoAP in compressed WebSocket frames, which the dissectors do not open (docs/how-to/wireshark.md, Limits)."""


def captures() -> list[Path]:
    """Return the recordings whose messages both sides show."""
    return [path for path in sorted(CAPTURES.glob("*.pcapng")) if path.stem not in COMPRESSED]


def decode_as(path: Path, reader: int) -> list[str]:
    """Return the rules for a recording: of tshark (0), of pcapstat (1)."""
    return [rules[reader] for word, rules in RULES.items() if word in path.name]


def keys(path: Path) -> list[str]:
    """Return the file with the recording's secrets, if there is one."""
    file = path.with_suffix(".keys")
    return [str(file)] if file.exists() else []


def run(path: Path, scripts: Sequence[str], arguments: Sequence[str], preferences: Sequence[str] = ()) -> str:
    """Return what tshark prints with these dissectors loaded, with the recording's secrets and a clean configuration."""
    with tempfile.TemporaryDirectory() as folder:
        given = [*GIVEN, *opening(Secrets(tuple(keys(path))), Path(folder)), *preferences]
        words = [wireshark.find(), "-n", "-r", str(path)]
        words += [word for rule in decode_as(path, 0) for word in ("-d", rule)]
        words += [word for script in scripts for word in ("-X", f"lua_script:{DISSECTORS / script}")]
        words += [word for preference in given for word in ("-o", preference)]
        environment = os.environ | {"WIRESHARK_CONFIG_DIR": folder, "HOME": folder}
        done = subprocess.run([*words, *arguments], capture_output=True, text=True, check=True, env=environment)
    assert "Lua" not in done.stderr, done.stderr
    return done.stdout


@cache
def trees(path: Path, script: str, arguments: tuple[str, ...] = ()) -> list[tuple[int, ElementTree.Element]]:
    """Return each frame's number and the tree of a dissector in it."""
    return list(parsed(path, script, arguments))


def parsed(path: Path, script: str, arguments: tuple[str, ...]) -> Iterator[tuple[int, ElementTree.Element]]:
    """Read tshark's PDML."""
    name = Path(script).stem
    root = ElementTree.fromstring(run(path, [script], ["-T", "pdml", "-J", name, *arguments]))
    for packet in root.iter("packet"):
        proto = packet.find(f"proto[@name='{name}']")
        if proto is not None:
            number = packet.find("proto/field[@name='num']")
            assert number is not None
            yield int(number.attrib["show"]), proto


def values(element: ElementTree.Element) -> dict[str, str]:
    """Return an element's own fields: last word of the name, value."""
    return {field.attrib["name"].partition(".")[2]: field.attrib.get("show", "") for field in element.findall("field")}


@cache
def messages(path: Path) -> list[dict[str, Any]]:
    """Return the rows of `pcapstat messages` whose protocols the dissectors show."""
    table = pa.table(pcapstat.open(path, decode_as=decode_as(path, 1), keylog=keys(path)).messages)
    return [row for row in table.to_pylist() if row["protocol"] in PROTOCOLS]
