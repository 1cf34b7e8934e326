"""Where the captures are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
SHARED = ROOT.parent / "shared" / "captures"
MADE = SHARED / "made"
"""Small captures that each hold one trap; beside the checkout where they are at hand."""


def shared_captures() -> list[Path]:
    """All public captures beside the checkout; none where the folder is not there."""
    if not SHARED.is_dir():
        return []
    return sorted(
        path for path in SHARED.rglob("*") if path.is_file() and not {"expected", "secrets"} & set(path.parts) and is_capture(path)
    )


def is_capture(path: Path) -> bool:
    """Whether the name is a capture's."""
    return any(part in path.name for part in (".pcap", ".cap", ".ntar")) and not path.name.endswith((".xz", ".md", ".csv"))
