"""What the notebooks share: the project's recordings with their keys, what their applications logged, and the studies' printed figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

import pcapstat

CAPTURES = Path(__file__).parents[1] / "captures"
DATA = Path(__file__).with_name("data")


def logged(name: str) -> dict[str, Any]:
    """Return what the applications of a recording logged (captures/README.md, "The truth file")."""
    truth: dict[str, Any] = json.loads((CAPTURES / f"{name}.truth.json").read_text())
    return truth


def recording(name: str, **options: Any) -> pcapstat.Capture:
    """Open a recording with its keys, where it has some; plain TCP is cut into the messages that its application sent."""
    keys, truth = CAPTURES / f"{name}.keys", logged(name)
    if truth["protocol"] == "TCP":
        options["frame_length"] = truth["parameters"]["size"]
    return pcapstat.open(CAPTURES / f"{name}.pcapng", keylog=[str(keys)] if keys.exists() else [], **options)


def printed(name: str) -> pd.DataFrame:
    """Return printed figures of a study; data/README.md names their source."""
    return pd.read_csv(DATA / f"{name}.csv")


def verdict(*, agrees: bool) -> str:
    """Write whether our figure and the printed one agree."""
    return "agrees" if agrees else "differs"
