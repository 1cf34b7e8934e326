"""The studies' notebooks run from the captures to the end, and are kept without output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from places import ROOT

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def run(notebook: Any) -> None:
    """Run a notebook's cells in their order, as a user would in its folder. Raises CellExecutionError at the first that fails."""
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(FOLDER)}}).execute()


def code(notebook: Any) -> list[Any]:
    """Return the cells with code."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_runs(path: Path) -> None:
    """From captures to tables and figures; its assertions hold what its prose says of agreement with the printed figures."""
    notebook = nbformat.read(path, as_version=4)
    run(notebook)
    shown = [output.get("data", {}) for cell in code(notebook) for output in cell.outputs]
    assert any("image/png" in data for data in shown)
    assert any("agrees" in data.get("text/plain", "") for data in shown)


def test_there_is_a_notebook_for_each_study_without_output() -> None:
    """Outputs are made anew in every run; only what people wrote is kept."""
    assert [path.stem for path in NOTEBOOKS] == [f"study_{letter}" for letter in "abcde"]
    cells = [cell for path in NOTEBOOKS for cell in code(nbformat.read(path, as_version=4))]
    assert [cell.source for cell in cells if cell.outputs or cell.execution_count] == []


def test_prose_that_numbers_contradict_fails() -> None:
    """A changed printed figure ends the run at the assertion that holds the verdict."""
    notebook = nbformat.read(FOLDER / "study_e.ipynb", as_version=4)
    changed = next(cell for cell in code(notebook) if "networks = printed" in cell.source)
    changed.source += '\nnetworks.loc["Energy MQTT", "tokyo"] *= 3'
    with pytest.raises(CellExecutionError, match="AssertionError"):
        run(notebook)
