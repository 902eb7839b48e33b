"""The commands of docs/shop.md run on the files that its Python blocks write, and say the same."""

from __future__ import annotations

import pytest

import ranksieve as rs
from tests.pages import ROOT, blocks, commands, run_page

pytestmark = pytest.mark.full
PAGE = ROOT / "docs" / "shop.md"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The names that the page defines, and the folder that it ran in."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return folder, run_page(PAGE, with_commands=True)


def test_every_command_runs_and_fit_finds_the_same_model(shop):
    folder, names = shop
    listed = [command[0] for block in blocks(PAGE) for command in commands(block.text)]
    assert {"inspect", "frontier", "fit", "evaluate", "explain", "export"} <= set(listed)
    model = rs.load_model(folder / "model.json")
    assert model.terms == names["model"].terms
    assert model.metrics["cost"] <= 5


def test_the_files_hold_what_the_page_says(shop):
    folder, names = shop
    assert rs.io.read_costs(folder / "ms.csv").to_dict() == rs.shop_costs().to_dict()
    assert all(
        names["model"].coef[names["shop"].feature_names.index(name)] >= 0 for name in names["counters"]
    )
