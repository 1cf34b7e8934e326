"""The reference is made from the code and fresh; every command, error and link of the docs is there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pcapstat.cli import COMMANDS
from pcapstat.errors import ERRORS

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "captures" / "README.md"])


def generated() -> dict[str, str]:
    """Return the pages as docs/generate.py makes them now, in a process of its own: click keeps help that a test has seen."""
    script = "import generate, json; print(json.dumps(generate.made()))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT / "docs", capture_output=True, check=True)
    pages: dict[str, str] = json.loads(done.stdout)
    return pages


def test_the_reference_is_fresh() -> None:
    """Run `make reference` where this fails."""
    written = {path.name: path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md")}
    assert written == generated()


def test_every_command_is_in_the_readme_and_has_help() -> None:
    """A command that nobody can find is none."""
    readme = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"pcapstat {name}" not in readme] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Links to files of the project exist."""
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_error_has_a_remedy_in_its_example() -> None:
    """Each kind of error shows an example line that ends with what to do."""
    assert all(re.search(r"Example: `.*\(.*\)`", " ".join((error.__doc__ or "").split())) for error in ERRORS)
