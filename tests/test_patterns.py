"""Shell patterns of features in signs, must_have, must_not and costs, in Python and as options."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.data.budget import Budget
from ranksieve.data.costs import make_costs
from ranksieve.data.features import is_pattern, matching, values_by_column
from ranksieve.io.tables import as_costs
from ranksieve.verification import verify
from tests.refusals import refused_data, refused_parameter
from tests.test_cli import refused, run

NAMES = ["bm25_title", "bm25_body", "BM25_x", "price", "a[1]", "a1", "clicks*"]
QUICK = {"n_alphas": 8, "cv": 2, "families": ["l1", "forward"], "profile": "standard"}


def test_matching_follows_the_shell_and_is_case_sensitive():
    assert matching("bm25_*", NAMES) == ["bm25_title", "bm25_body"]
    assert matching("?m25_*", NAMES) == ["bm25_title", "bm25_body"]
    assert matching("[bB]*25_[!tb]*", NAMES) == ["BM25_x"]


def test_existing_names_that_look_like_patterns_are_names():
    assert not is_pattern("a[1]", NAMES)
    assert values_by_column([("a[1]", 1), ("clicks*", 2)], NAMES, "signs") == {4: 1, 6: 2}
    assert is_pattern("a[1]", NAMES[:4])


def test_names_take_precedence_over_patterns():
    entries = [("bm25_*", 1), ("bm25_body", -1)]
    for order in (entries, entries[::-1]):
        assert values_by_column(order, NAMES, "signs") == {0: 1, 1: -1}
    assert values_by_column([("bm25_*", 1), ("*_title", 1), (0, -1)], NAMES, "signs") == {0: -1, 1: 1}


def test_conflicting_or_unmatched_patterns_are_refused():
    with refused_parameter("signs", "*_title") as info:
        values_by_column([("bm25_*", 1), ("*_title", -1)], NAMES, "signs")
    assert "'bm25_*' about 'bm25_title'" in info.value.reason
    with refused_parameter("signs", "bn25_t*") as info:
        values_by_column([("bn25_t*", 1)], NAMES, "signs")
    assert info.value.reason.endswith("nearest are bm25_title, bm25_body, BM25_x")
    with refused_parameter("signs", "*zzz") as info:
        values_by_column([("*zzz", 1)], NAMES, "signs")
    assert "the data have bm25_title" in info.value.reason


def test_constraints_by_pattern():
    budget = Budget.of(
        NAMES, must_have=["price"], must_not=["[bB]*", "p*"], signs={"bm25_*": "+", "bm25_body": "-"}
    )
    assert budget.must_have.tolist() == [False] * 3 + [True] + [False] * 3
    assert budget.must_not.tolist() == [True] * 3 + [False] * 4, "price is named, p* only matches it"
    assert budget.signs.tolist() == [1, -1, 0, 0, 0, 0, 0]
    with refused_parameter("must_not", ["p*"]):
        Budget.of(NAMES, must_have=["pri*"], must_not=["p*"])


def test_patterns_do_not_match_indicators():
    names = ["price", "price is missing"]
    assert Budget.of(names, signs={"*": "+"}, indicators=names[1:]).signs.tolist() == [1, 0]
    assert Budget.of(names, signs={names[1]: "-"}, indicators=names[1:]).signs.tolist() == [0, -1]


PRICES = {
    "features": {"bm25_*": 0.3, "bm25_body": 2.0, "*": 1.0},
    "groups": {"counters": {"cost": 5.0, "features": ["a*", "clicks*"]}},
}


def test_costs_by_pattern():
    costs = as_costs(PRICES, NAMES)
    assert costs.of(["bm25_title", "bm25_body", "BM25_x"]) == pytest.approx(0.3 + 2.0 + 1.0)
    assert costs.of(["a1", "a[1]", "clicks*"]) == 5.0, "a group is paid once"
    assert make_costs(PRICES).of(["bm25_title", "a1"]) == 5.3, "also before a fit knows all names"
    assert make_costs(costs.to_dict()) == costs
    columns = make_costs(PRICES).columns(NAMES)
    assert columns.of_each.tolist() == [0.3, 2.0, 1.0, 1.0, 5.0, 5.0, 5.0]
    with refused_parameter("feature_costs", "x*"):
        as_costs({"x*": 1, "*": 1}, NAMES)
    with refused_parameter("feature_costs", "*_title"):
        as_costs({"bm25_*": 1, "*_title": 2, "*": 1}, NAMES)
    assert as_costs({"bm25_*": 1, "*_title": 1, "*": 1}, NAMES).of(NAMES) == 7.0


def test_a_cost_file_names_the_line_of_a_pattern(tmp_path):
    (tmp_path / "c.csv").write_text("feature,cost,group\nbm25_*,0.3,\nzz*,1,clause\n*,1,\n")
    with refused_data("c.csv", 3) as info:
        as_costs(tmp_path / "c.csv", NAMES)
    assert "'zz*'" in info.value.reason


@pytest.fixture(scope="module")
def shop() -> rs.Dataset:
    data = rs.make_ranking(n_queries=30, n_features=6, n_informative=4, random_state=0)
    return data.replace_features(data.X, ["bm25_a", "bm25_b", "bm25_c", "price", "x[1]", "x1"])


def test_a_fit_by_pattern_equals_one_by_name_and_can_be_verified(shop):
    by_pattern = rs.SparseRanker(
        4, signs={"bm25_*": 1, "bm25_c": -1}, must_not=["x[1]"],
        feature_costs={"*_a": 2.0, "*": 1.0}, max_cost=5, **QUICK,
    ).fit(shop)  # fmt: skip
    by_name = rs.SparseRanker(
        4, signs={"bm25_a": 1, "bm25_b": 1, "bm25_c": -1}, must_not=["x[1]"],
        feature_costs={"bm25_a": 2.0, "*": 1.0}, max_cost=5, **QUICK,
    ).fit(shop)  # fmt: skip
    np.testing.assert_array_equal(by_pattern.coef_, by_name.coef_)
    model = by_pattern.to_model()
    assert model.parameters["signs"] == {"bm25_*": 1.0, "bm25_c": -1.0}, "patterns are stored unchanged"
    assert "x[1]" not in model.names
    result = verify(model, shop)
    assert result.holds, result
    broken = replace(
        model,
        terms=tuple(replace(term, weight=-term.weight) for term in model.terms),
        parameters={**model.parameters, "must_not": ["bm25_[ab]"]},
    )
    budget = next(v for v in verify(broken, shop, refit=False).verdicts if v.claim == "budget")
    assert budget.holds is False
    assert "wrong signs" in budget.words
    assert "of must_not" in budget.words


@pytest.mark.parametrize("family", ["l1", "forward"])
def test_models_and_cards_keep_signs_by_pattern_and_verify(family):
    data = rs.make_ranking(n_queries=20, n_features=8, n_informative=4, random_state=1)
    options = {**QUICK, "n_alphas": 4, "families": [family]}
    free = rs.SparseRanker(4, **options).fit(data).to_model()
    first = max(free.terms, key=lambda term: abs(term.weight))
    signs = {first.name.replace("f", "?"): "-" if first.weight > 0 else "+"}
    model = rs.SparseRanker(4, **options, signs=signs).fit(data).to_model()
    assert first.name not in model.names
    assert verify(model, data).holds
    card = rs.make_scorecard(replace(free, parameters={**free.parameters, "signs": signs}), data)
    assert first.name not in card.names
    assert verify(card, data).holds


def test_patterns_on_the_command_line(shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rs.write_dataset(shop, "d.parquet")
    options = ["--set", "n_alphas=8", "--set", "cv=2", "--max-features", "3"]
    run("fit", "d.parquet", *options, "--signs", "bm25_*=+,price=-", "--must-not", "x*", "-o", "m.json")
    weights = {term.name: term.weight for term in rs.load_model("m.json").terms}
    assert all(weight > 0 for name, weight in weights.items() if name.startswith("bm25"))
    assert not {"x1", "x[1]"} & weights.keys()
    message = refused("fit", "d.parquet", *options, "--signs", "bn25*=+", "-o", "n.json")
    assert "--signs bn25*: " in message
