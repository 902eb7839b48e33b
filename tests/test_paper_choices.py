"""The papers' choices: each metric chooses for itself, and its choice is measured by further conventions."""

from __future__ import annotations

import numpy as np
import pytest
from papers import bench as module
from papers.bench import bench
from papers.choices import truncation_curve

from ranksieve.experiment.results import TABLE_METRICS
from ranksieve.methods import METHODS
from ranksieve.metrics import Evaluator, evaluate
from ranksieve.metrics.profiles import PROFILES, STANDARD_PROFILE
from tests.test_choices import ALL

HERE = {**ALL, "sparseranker": METHODS["sparseranker"]}


@pytest.fixture(scope="module")
def results(synthetic_folds, tmp_path_factory):
    how = {"out": tmp_path_factory.mktemp("papers"), "studies": False, "n_seeds": 3, "profile": "letor"}
    with pytest.MonkeyPatch.context() as patch:
        profiles = {"toy": [STANDARD_PROFILE], "other": [PROFILES["trec"]]}
        patch.setattr(module, "other_profiles", lambda name: profiles)
        return bench({"toy": synthetic_folds}, HERE, **how).data_sets["toy"]


@pytest.mark.parametrize("name", ["online", "dense", "rankboost"])
@pytest.mark.parametrize("select", ["ndcg@10", "map"])
def test_each_metric_chooses_for_itself(synthetic_folds, results, name, select):
    result, standard = results.result_for(name, select), []
    for fold, ours in zip(synthetic_folds, result.folds, strict=True):
        best = []
        for seed, draw in enumerate(ours.seed_results):
            drawn = {} if ALL[name].seed is None else {"random_state": seed}
            fits = [ALL[name].make(**point, **drawn).fit(fold.train) for point in ALL[name].grid]
            values = [
                evaluate(fit.predict(fold.valid), fold.valid, select, "letor").mean[select] for fit in fits
            ]
            assert draw.validation == max(values)
            scores = fits[int(np.argmax(values))].predict(fold.test)
            expected = evaluate(scores, fold.test, "map", "letor").per_query["map"]
            np.testing.assert_array_equal(draw.test.per_query["map"], expected)
            best.append(evaluate(scores, fold.test, TABLE_METRICS, "standard").mean)
        standard.append({metric: np.mean([one[metric] for one in best]) for metric in TABLE_METRICS})
    assert result.other_profiles.keys() == {"standard"}
    for metric in TABLE_METRICS:
        expected = np.mean([one[metric] for one in standard])
        assert result.other_profiles["standard"][metric] == pytest.approx(expected)


def test_the_methods_own_metric_chooses_as_in_the_tables(results):
    for name in ALL:
        own = results.result_for(name, ALL[name].select)
        np.testing.assert_equal(own.to_row(), results.results[name].to_row())
    assert results.result_for("dense", "err@10") is None
    assert results.result_for("nothing", "map") is None


def test_a_ranker_that_chooses_by_itself_has_one_choice(results):
    assert results.result_for("sparseranker", "ndcg@10") is not None
    assert results.result_for("sparseranker", "map") is None


def test_truncation_keeps_the_largest_weights(synthetic_folds, results):
    fold, coef = synthetic_folds[0], results.results["dense"].folds[0].coef
    curve = results.truncation_curves("dense")[0]
    assert len(curve["map"]) == np.count_nonzero(coef)
    kept = np.where(np.abs(coef) >= np.sort(np.abs(coef))[-3], coef, 0.0)
    expected = evaluate(fold.test.X @ kept, fold.test, "map", "letor").mean["map"]
    assert curve["map"][2] == pytest.approx(expected)
    assert truncation_curve(coef, fold, Evaluator(fold.test, "letor")) == curve
    assert results.truncation_curves("rankboost") == []
