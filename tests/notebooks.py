"""Runs the notebooks of the documentation: ``python -m tests.notebooks`` stores their output again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SETTINGS = "import matplotlib.pyplot as plt\nplt.rcParams['figure.dpi'] = 72\n"  # small pictures


def executed(path: Path) -> Any:
    """The notebook with the output of a run in an empty folder."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(SETTINGS))
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    del notebook.cells[0]
    for number, cell in enumerate((one for one in notebook.cells if one.cell_type == "code"), start=1):
        cell.execution_count = number
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number
    for cell in notebook.cells:
        cell.metadata.clear()
    return notebook


def texts(notebook: Any) -> list[str]:
    """What the cells print and show as text, in order; the places of pictures and objects are left out."""
    shown = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                shown.append(output.text)
            elif output.output_type in ("execute_result", "display_data"):
                data = output.data
                shown.append("picture" if "image/png" in data else data.get("text/plain", ""))
    return shown


def main() -> None:
    import nbformat

    os.environ["OMP_NUM_THREADS"] = "1"
    for path in NOTEBOOKS:
        nbformat.write(executed(path), path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")  # noqa: T201


if __name__ == "__main__":
    main()
