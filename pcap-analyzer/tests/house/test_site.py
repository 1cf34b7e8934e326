"""The documentation: commands of README and tutorial print what stands there, and the site needs no network."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from places import CAPTURES, ROOT

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text().replace("\\\n", "")
CONSOLE = re.compile(r"^```console\n\$ (pcapstat .*)\n((?:(?!```).*\n)*)```", re.MULTILINE)
BLOCKS = CONSOLE.findall(TUTORIAL)
README = CONSOLE.findall((ROOT / "README.md").read_text())
PYTHON = re.findall(r"^```python\n(.*?)```", TUTORIAL, re.MULTILINE | re.DOTALL)
REST = "…"
"""Stands for lines that the tutorial leaves out."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the recordings, as a clone is one."""
    (tmp_path / "captures").symlink_to(CAPTURES)
    return tmp_path


def printed(words: list[str], folder: Path) -> str:
    """Run a program 80 columns wide and return what it prints; it must end well."""
    done = subprocess.run(words, cwd=folder, env=os.environ | {"COLUMNS": "80"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("command", "shown"), [*README, *BLOCKS], ids=[command[:40] for command, _ in [*README, *BLOCKS]])
def test_commands_print_what_is_shown(command: str, shown: str, folder: Path) -> None:
    """Line by line; a line of … stands for any others."""
    words = [sys.executable, "-c", "from pcapstat.cli import main; main()", *shlex.split(command)[1:]]
    pattern = "".join("(?:.*\n)*" if line == REST else re.escape(line) + "\n" for line in shown.splitlines())
    assert re.fullmatch(pattern, printed(words, folder))


def test_the_tutorials_python_runs(folder: Path) -> None:
    """As it stands there."""
    (block,) = PYTHON
    assert printed([sys.executable, "-c", block], folder).startswith("coap 100 10419\n")
    assert (len(README), len(BLOCKS)) == (1, 5)


def test_the_site_builds_without_warnings_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """As `make docs` does; pages may link to other sites but not depend on them."""
    printed([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path / "site")], ROOT)
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 15
    loaded = r"<(?:script|img|iframe)[^>]+src=\"(?:https?:)?//|<link[^>]+rel=\"(?:stylesheet|icon)\"[^>]+href=\"(?:https?:)?//"
    assert [page.name for page in pages if re.search(loaded, page.read_text())] == []
