"""The commands of docs/shop.md run on the files of its Python blocks and print the output on the page."""

from __future__ import annotations

import pytest

import ranksieve as rs
from tests.pages import ROOT, blocks, commands, run_page

pytestmark = pytest.mark.full
PAGE = ROOT / "docs" / "shop.md"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """(folder in which the page ran, variables of its Python blocks)."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return folder, run_page(PAGE, with_commands=True)


def test_every_command_runs_and_fit_writes_the_same_model(shop):
    folder, names = shop
    listed = [command[0] for block in blocks(PAGE) for command in commands(block.text)]
    assert {"inspect", "frontier", "fit", "evaluate", "explain", "export"} <= set(listed)
    model = rs.load_model(folder / "model.json")
    assert model.terms == names["model"].terms
    assert model.metrics["cost"] <= 5


def test_the_files_match_the_page(shop):
    folder, names = shop
    assert rs.io.read_costs(folder / "ms.csv").to_dict() == rs.shop_costs().to_dict()
    assert all(
        names["model"].coef[names["shop"].feature_names.index(name)] >= 0 for name in names["counters"]
    )
