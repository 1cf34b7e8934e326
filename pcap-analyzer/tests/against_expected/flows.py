"""Our sessions as those tools count flows: bytes of both directions, by the four-tuple."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import pcapstat
from pcapstat.schema import PARTS

Key = tuple[str, int, str, int]
PAYLOAD = PARTS.index("security")


@dataclass(frozen=True)
class Flow:
    """Bytes from and to the first endpoint of the key: whole frames, and TCP or UDP payload, each byte once."""

    frame_bytes: tuple[int, int]
    payload_bytes: tuple[int, int]

    def turned(self) -> Flow:
        """Return the same, seen from the other side."""
        return Flow(self.frame_bytes[::-1], self.payload_bytes[::-1])


def flows(path: Path) -> dict[Key, Flow]:
    """Return the sessions of a capture by client and server, in both orders; of four-tuples with several sessions, none."""
    capture = pcapstat.open(path, engine="native")
    sums = capture.sums()
    missing = missing_bytes(capture)
    found: dict[Key, list[Flow]] = defaultdict(list)
    for number in range(len(sums)):
        session = sums.session(number)
        row = session["session"]
        key = (row["client_address"], row["client_port"], row["server_address"], row["server_port"])
        sides = [one_way(session, index, missing[row["session"], name]) for index, name in enumerate(("c2s", "s2c"))]
        flow = Flow((sides[0][0], sides[1][0]), (sides[0][1], sides[1][1]))
        found[key].append(flow)
        found[key[2:] + key[:2]].append(flow.turned())
    return {key: several[0] for key, several in found.items() if len(several) == 1}


def missing_bytes(capture: pcapstat.Capture) -> dict[tuple[int, str], int]:
    """Return the bytes of messages that are not in the capture, by session and direction: they count here, other tools do not see them."""
    sums: dict[tuple[int, str], int] = defaultdict(int)
    for row in pa.table(capture.messages).select(["session", "direction", "missing_bytes"]).to_pylist():
        sums[row["session"], row["direction"]] += row["missing_bytes"]
    return sums


def one_way(session: dict[str, Any], index: int, missing: int) -> tuple[int, int]:
    """Return the frame bytes and the payload bytes that one side sent."""
    direction = session["directions"][index]
    name = direction["direction"]
    messages = [
        sum(sizes) for sizes in zip([0] * len(PARTS), *(row["parts"] for row in session["kinds"] if row["direction"] == name), strict=True)
    ]
    unassigned = direction["unassigned_parts"] or [0] * len(PARTS)
    whole = sum(messages) + sum(unassigned) + sum(direction["control_parts"])
    return whole - missing, sum(messages[PAYLOAD:]) + unassigned[-1] - missing


def key(source: str, source_port: int, destination: str, destination_port: int) -> Key:
    """Return a four-tuple with addresses as the core writes them."""
    return (str(ipaddress.ip_address(source)), source_port, str(ipaddress.ip_address(destination)), destination_port)
