"""The search for the metric conventions of the Sparse CS-ListMLE paper."""

from __future__ import annotations

import numpy as np
import pytest
from papers.bench import bench
from papers.comparison import CONVENTIONS
from papers.studies.conventions import (
    DEALS,
    Fit,
    _verdict,
    conventions_table,
    fits,
    published_baselines,
    redealt,
)

from ranksieve.data.dataset import Dataset
from ranksieve.io.folds import deal_folds
from ranksieve.methods import METHODS
from ranksieve.metrics import evaluate

CS_METHOD = METHODS["csranksvm"]
NAMES = ["csranksvm", "listnet", "cslistmle@3", "fenchelrank"]


@pytest.fixture(scope="module")
def results(synthetic_folds, tmp_path_factory):
    """Under the name of a data set that the paper has numbers for."""
    folder = tmp_path_factory.mktemp("conventions")
    return bench({"OHSUMED": synthetic_folds}, NAMES, out=folder, grid="fast", studies=False).data_sets[
        "OHSUMED"
    ]


def ndcg_of_labels(ranked, k, gain, discount, empty):
    """NDCG@k of one list, term by term."""
    gains, ideal = [gain(y) for y in ranked], sorted((gain(y) for y in ranked), reverse=True)
    dcg, best = (sum(g * discount(i) for i, g in enumerate(one[:k], start=1)) for one in (gains, ideal))
    return dcg / best if best else empty


def test_values_under_a_convention_are_those_of_the_definition(synthetic_folds, results):
    ours = results.result_for("csranksvm", "ndcg@10")
    definitions = {
        "gain y, LETOR's discount, empty queries 1": (lambda y: y, lambda i: 1 / np.log2(max(i, 2)), 1.0),
        "gain 1 from label 1, 1/log2(1 + i)": (lambda y: float(y >= 1), lambda i: 1 / np.log2(1 + i), 0.0),
        "label 2 alone, gain 1, LETOR's discount": (
            lambda y: float(y >= 2), lambda i: 1 / np.log2(max(i, 2)), 0.0,
        ),
    }  # fmt: skip
    for name, definition in definitions.items():
        means = []
        for fold, model in zip(synthetic_folds, ours.folds, strict=True):
            scores = fold.test.X @ model.coef
            values = []
            for query in dict.fromkeys(fold.test.qid.tolist()):
                rows = np.flatnonzero(fold.test.qid == query)
                ranked = fold.test.y[rows[np.argsort(-scores[rows], kind="stable")]]
                values.append(ndcg_of_labels(ranked, 3, *definition))
            means.append(np.mean(values))
        assert ours.other_profiles[name]["ndcg@3"] == pytest.approx(np.mean(means))


def test_the_table_has_the_nearest_conventions_of_the_baselines(results):
    numbers = [row for row in published_baselines("OHSUMED", "ndcg") if row[0] in NAMES]
    assert {name for name, *_ in numbers} == {"csranksvm", "cslistmle@3"}
    assert ("csranksvm", "ndcg@10", 0.3486) in numbers
    all_fits = fits(results, "ndcg")
    assert [fit.mean_size for fit in all_fits] == sorted(fit.mean_size for fit in all_fits)
    assert {fit.convention for fit in all_fits} <= {profile.name for profile in CONVENTIONS}
    worst = max(
        abs(results.result_for(name, fit.select).other_profiles[fit.convention][metric] - value)
        for fit in all_fits[:1]
        for name, metric, value in numbers
    )
    table = conventions_table(results)
    assert table.rows[0][table.columns.index("largest")].value == pytest.approx(worst)
    assert [row[0].text for row in table.rows] == ["NDCG"] * 4 + ["MAP"] * 4
    assert table.rows[0][table.columns.index("published")].text == "8"
    assert table.rows[-1][table.columns.index("published")].text == "3"
    assert "no convention fits" in table.note


def test_dealt_again_every_query_is_tested_once(synthetic_folds):
    fold = synthetic_folds[0]
    values = redealt(fold, "letor")["values"]
    assert [len(one) for one in values.values()] == [len(DEALS)] * 2
    whole = Dataset(*(np.concatenate([getattr(part, name) for part in fold]) for name in ("X", "y", "qid")))
    means = []
    for one in deal_folds(whole, 5, random_state=DEALS[2]):
        rankers = [CS_METHOD.make(**point).fit(one.train) for point in CS_METHOD.grid]
        valid = [
            evaluate(ranker.predict(one.valid), one.valid, "ndcg@10", "letor").mean["ndcg@10"]
            for ranker in rankers
        ]
        scores = rankers[int(np.argmax(valid))].predict(one.test)
        means.append(evaluate(scores, one.test, "map", "standard").mean["map"])
    assert values["map"][2] == pytest.approx(np.mean(means))


def test_no_table_without_the_baselines(shop_results):
    assert conventions_table(shop_results.data_sets["shop"]) is None


def test_the_verdict_follows_the_differences():
    published = np.array([0.1, 0.2, 0.3])

    def verdict(ours):
        return _verdict("MAP", Fit("", "map", ["map"] * 3, ours, published))

    assert verdict(published + 0.009) == "MAP: the first convention fits."
    assert verdict(published + 0.02).endswith("0.020 off on average.")
    assert "another order" in verdict(published[::-1])


def test_the_order_is_that_of_the_methods_not_of_the_metrics():
    metrics = ["ndcg@1"] * 3 + ["ndcg@3"] * 3 + ["map"]
    published = np.array([0.5, 0.6, 0.7, 0.3, 0.4, 0.5, 0.2])
    ours = np.array([0.7, 0.6, 0.5, 0.5, 0.4, 0.3, 0.1])
    assert Fit("", "map", metrics, ours, published).order == -1.0
    assert Fit("", "map", metrics, published, published).order == 1.0
