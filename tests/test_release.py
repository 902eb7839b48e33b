"""Requirements of a release: a README that runs, consistent versions, a citation, valid workflows."""

from __future__ import annotations

import re
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

import ranksieve as rs
from tests import readme
from tests.metadata import problems
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
    shown = next(
        block
        for block in blocks(readme.README)
        if not block.language and block.text.startswith("SparseRanker uses")
    )
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


def test_metadata_name_no_person():
    assert PROJECT["project"]["authors"] == [{"name": "ranksieve contributors"}]


def test_the_conda_recipe_has_the_requirements_and_the_version_of_the_project():
    recipe = (ROOT / "packaging" / "conda-forge" / "meta.yaml").read_text(encoding="utf-8")
    assert f'version = "{rs.__version__}"' in recipe
    run = re.search(r"  run:\n(.*?)  run_constrained:", recipe, re.S)[1]
    listed = {line.strip(" -").replace(" ", "") for line in run.splitlines()}
    python = f"python{PROJECT['project']['requires-python']}"
    assert listed == {*PROJECT["project"]["dependencies"], python}
    optional = {line for extra in PROJECT["project"]["optional-dependencies"].values() for line in extra}
    constrained = re.search(r"  run_constrained:\n(.*?)\ntest:", recipe, re.S)[1]
    for line in constrained.split("\n"):
        if name := line.strip(" -").replace(" ", ""):
            assert name.replace("matplotlib-base", "matplotlib") in optional


METADATA = """Metadata-Version: 2.4
Name: ranksieve
Version: {version}
Summary: {summary}
Author: ranksieve contributors
License-Expression: Apache-2.0
Requires-Python: >=3.11
Description-Content-Type: text/markdown
{extras}
{text}
"""


def wheel(path, *, version=rs.__version__, summary="One line.", text="# Text", extras=None, files=()):
    """A file that looks like a wheel."""
    names = PROJECT["project"]["optional-dependencies"] if extras is None else extras
    lines = "".join(f"Provides-Extra: {name}\n" for name in names)
    info = f"ranksieve-{rs.__version__}.dist-info"
    content = METADATA.format(version=version, summary=summary, extras=lines, text=text)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", content)
        archive.writestr(f"{info}/entry_points.txt", "[console_scripts]\nranksieve = ranksieve.cli:main\n")
        archive.writestr(f"{info}/licenses/LICENSE", "Apache")
        for name in ("py.typed", "__init__.pyi", "report/figure.js"):
            archive.writestr(f"ranksieve/{name}", "")
        for name in files:
            archive.writestr(name, "")
    return path


def test_what_registries_refuse_is_found(tmp_path):
    def found(**options):
        return problems(wheel(tmp_path / "a.whl", **options), rs.__version__)

    assert found() == []
    assert found(version="9.9") == [f"is ranksieve 9.9, expected ranksieve {rs.__version__}"]
    assert found(summary="") == ["Summary is missing"]
    assert found(summary="x" * 600) == ["the summary is not one short line"]
    assert found(text="") == ["the description is not Markdown, or empty"]
    assert found(extras=["report"]) == ["has the extras ['report']"]
    assert found(files=["tests/test_a.py"]) == ["has files outside the package: tests"]
