"""The truth beside a capture: what each application logged, in one schema for all scenarios."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenarios import Scenario

Rows = list[list[int]]
COLUMNS = ["time_ns", "bytes", "id"]


def application(role: str, endpoint: str, log: str) -> dict[str, Any]:
    """Read a log: lines `S time_ns bytes id` (sent), `R time_ns bytes id` (received), `E text` (error)."""
    rows: dict[str, Rows] = {"S": [], "R": []}
    errors = []
    for line in log.splitlines():
        kind, _, rest = line.partition(" ")
        if kind in rows and re.fullmatch(r"\d+ \d+ \d+", rest):
            rows[kind].append([int(value) for value in rest.split()])
        elif kind == "E":
            errors.append(rest)
    return {"role": role, "endpoint": endpoint, "sent": rows["S"], "received": rows["R"], "errors": errors}


def document(scenario: Scenario, name: str, parts: Mapping[str, Any]) -> str:
    """Return the JSON text; rows of numbers stay on one line, so that the file is short and can be read."""
    whole = {
        "scenario": name,
        "study": scenario.study,
        "library": scenario.library,
        "version": scenario.version,
        "protocol": scenario.protocol,
        "security": scenario.security,
        "parameters": dict(scenario.parameters),
        "columns": COLUMNS,
        **parts,
    }
    text = json.dumps(whole, indent=1, ensure_ascii=False)
    return re.sub(r"\[[\d\s,\[\]]*\]", lambda rows: re.sub(r"\s", "", rows.group()), text) + "\n"
