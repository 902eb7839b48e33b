"""Requirements of a release: a README that runs, consistent versions, a citation, valid workflows."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import ranksieve as rs
from tests import readme
from tests.pages import blocks, commands, is_within, output_of

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.full
def test_the_commands_of_the_readme_run(tmp_path, monkeypatch):
    """Runs the commands in one process; ``make dist`` runs them in a shell."""
    monkeypatch.chdir(tmp_path)
    output = output_of(["demo"])
    enter, *typed = readme.commands()
    assert enter.startswith("cd demo && ")
    for line in typed:
        if ours := commands(line):
            output += output_of(*ours)
        else:
            subprocess.run(["bash", "-c", line], check=True)
    shown = next(block for block in blocks(readme.README) if block.text.startswith("SparseRanker uses"))
    assert is_within(shown.text, output)
    assert {"inspect.html", "report.html", "ltr", "results.html"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_the_readme_shows_the_main_commands():
    text = "\n".join(readme.commands())
    for command in ("inspect", "fit", "evaluate", "explain", "export", "verify"):
        assert f"ranksieve {command} " in text


def test_citation_and_changelog_name_the_version():
    assert f"\nversion: {rs.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {rs.__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "workflow", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda p: p.stem
)
def test_workflows_call_existing_targets(workflow):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, flags=re.M))
    text = workflow.read_text(encoding="utf-8")
    called = set(re.findall(r"make ([a-z-]+)", text))
    for listed in re.findall(r"target: \[([^\]]*)\]", text):
        called |= set(listed.split(", "))
    assert called
    assert called <= targets


def test_classifiers_and_workflow_name_the_same_pythons():
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    tested = set(re.findall(r'"(3\.\d+)"', text))
    named = {c.rsplit(" ", 1)[1] for c in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", c)}
    assert tested == named
    assert PROJECT["project"]["requires-python"] == f">={min(named, key=lambda v: int(v[2:]))}"
