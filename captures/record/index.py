"""The table of recordings in captures/README.md, made from the truth files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from scenarios import Scenario

BEGIN, END = "<!-- recordings: written by record/record.py -->\n", "<!-- end of recordings -->\n"


def write(captures: Path, scenarios: Mapping[str, Scenario]) -> None:
    """Replace the table by one with a line for each recording there is."""
    lines = ["| recording | study | library | protocol | security | shows | at | frames |\n", "|-|-|-|-|-|-|-|-:|\n"]
    for name, scenario in scenarios.items():
        file = captures / f"{name}.truth.json"
        if file.exists():
            recorded = json.loads(file.read_text())["capture"]
            library = f"{scenario.library} {scenario.version}"
            cells = [
                f"`{name}`",
                scenario.study,
                library,
                scenario.protocol,
                scenario.security or "none",
                scenario.shows,
            ]
            lines.append(f"| {' | '.join([*cells, recorded['point'], str(recorded['frames'])])} |\n")
    readme = captures / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    readme.write_text(before + BEGIN + "".join(lines) + END + after)
