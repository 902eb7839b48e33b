"""The commands of docs/shop.md run on the files that its Python blocks write, and say the same."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli import app
from tests.test_docs import ROOT, python_blocks

PAGE = ROOT / "docs" / "shop.md"


def commands(page: Path) -> list[list[str]]:
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line)[2:] for line in lines if line.startswith("$ ranksieve ")]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The names that the page defines, and the folder that it ran in."""
    folder, names = tmp_path_factory.mktemp("shop"), {"__name__": "__page__"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in python_blocks(PAGE):
            exec(compile(block, PAGE.name, "exec"), names)
    return folder, names


def test_every_command_runs_and_fit_finds_the_same_model(shop, monkeypatch):
    folder, names = shop
    monkeypatch.chdir(folder)
    listed = commands(PAGE)
    assert {"inspect", "frontier", "fit", "evaluate", "explain", "export"} <= {
        command[0] for command in listed
    }
    for command in listed:
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, (command, result.stderr)
    model = rs.load_model("model.json")
    assert model.terms == names["model"].terms
    assert model.metrics["cost"] <= 5


def test_the_files_hold_what_the_page_says(shop):
    folder, names = shop
    assert rs.read_costs(folder / "ms.csv").to_dict() == rs.shop_costs().to_dict()
    assert all(
        names["model"].coef[names["shop"].feature_names.index(name)] >= 0 for name in names["counters"]
    )
