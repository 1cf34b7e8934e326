"""The captures at hand that hold one of given protocols, with what tshark has to be told of them."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path

import pcapstat
from pcapstat import _native

ROOT = Path(__file__).parents[3]
SHARED = ROOT.parent / "shared" / "captures"
EXTRA_ARGUMENTS = {"mqttsn": "-d udp.port==1883,mqttsn"}
"""What tshark has to be told of our recordings, by a word of their names: it has no port of MQTT-SN's own."""


def captures(protocols: Collection[str]) -> Iterator[tuple[str, Path, list[str]]]:
    """Name, file and tshark's decode-as rules of each capture that holds one of the protocols."""
    for path in sorted((ROOT / "captures").glob("*.pcapng")):
        yield path.name, path, rules(next((told for word, told in EXTRA_ARGUMENTS.items() if word in path.name), ""))
    if not SHARED.is_dir():
        return
    with (SHARED / "MANIFEST.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            seen = {entry.split(":")[0] for entry in row["protocols_seen(tshark io,phs frames)"].split()}
            if seen & set(protocols):
                yield row["path"], SHARED / row["path"], rules(row["tshark_extra_args"])


def rules(arguments: str) -> list[str]:
    """Return the decode-as rules that both engines know."""
    words = shlex.split(arguments)
    known = {row["decode_as"] for row in _native.protocols()} | {row["name"] for row in _native.protocols()}
    return [rule for option, rule in zip(words, words[1:], strict=False) if option == "-d" and rule.rsplit(",", 1)[-1] in known]


def opened(path: Path, decode_as: list[str]) -> pcapstat.Capture:
    """Open a capture with the native engine."""
    return pcapstat.open(path, decode_as=decode_as, engine="native")
