"""The notebooks of the documentation run and show what they store."""

from __future__ import annotations

import json

import pytest

from tests.notebooks import NOTEBOOKS, ROOT, executed, texts
from tests.pages import alike

MAX_BYTES = 250_000


@pytest.mark.full
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_stores(path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    for name in ("nbclient", "ipykernel", "matplotlib"):
        pytest.importorskip(name)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    stored, now = nbformat.read(path, as_version=4), executed(path)
    assert len(texts(stored)) == len(texts(now)) > 5
    for shown, printed in zip(texts(stored), texts(now), strict=True):
        assert alike(shown, printed), printed


def test_notebooks_are_small_and_have_output_without_errors_and_places():
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        assert len(text) <= MAX_BYTES, path.name
        assert "/tmp/" not in text, path.name
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        outputs = [output for cell in cells for output in cell["outputs"]]
        assert all(cell["execution_count"] for cell in cells), path.name
        assert {output["output_type"] for output in outputs} <= {"stream", "display_data", "execute_result"}
        assert not [output for output in outputs if output.get("name") == "stderr"], path.name
        assert sum("image/png" in output.get("data", {}) for output in outputs) >= 1, path.name


def test_notebooks_only_use_data_of_the_package():
    for path in NOTEBOOKS:
        sources = "".join("".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"])
        assert "rs.make_shop(" in sources or "rs.make_ranking(" in sources
        assert "http" not in sources
    assert ROOT / "docs" in NOTEBOOKS[0].parents
