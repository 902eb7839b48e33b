"""Every Python block of the README and of docs/ runs, page by page, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.methods_page import methods_page

from ranksieve._util.messages import how_to_install

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN_ELSEWHERE = {"shop.md"}  # by test_shop_tutorial


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.S | re.M)


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if python_blocks(p) and p.name not in RUN_ELSEWHERE],
    ids=lambda p: p.relative_to(ROOT).as_posix(),
)
def test_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__page__"}
    for block in python_blocks(page):
        exec(compile(block, page.name, "exec"), names)
    assert capsys.readouterr().out.strip()


def test_the_readme_example_is_about_ten_lines():
    lines = [line for line in python_blocks(ROOT / "README.md")[0].splitlines() if line.strip()]
    assert len(lines) <= 10


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


def test_nothing_promises_an_install_from_a_registry():
    """ranksieve is on none; messages take their words from one place."""
    for page in PAGES:
        assert not re.search(r"pip install [\"']?ranksieve", page.read_text(encoding="utf-8")), page
    source = ROOT / "src" / "ranksieve"
    places = [path for path in source.rglob("*.py") if "pip install" in path.read_text(encoding="utf-8")]
    assert [path.relative_to(source).as_posix() for path in places] == ["_util/messages.py"]
    assert how_to_install("all") == 'run pip install ".[all]" in the checkout of ranksieve'


def test_the_table_of_methods_is_current():
    assert (ROOT / "docs" / "methods" / "README.md").read_text(encoding="utf-8") == methods_page(), (
        "run make docs"
    )
