"""The LETOR protocol on small synthetic folds."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.data.describe import varying_columns
from ranksieve.io.folds import Fold
from ranksieve.methods import METHODS, parameter_grid
from ranksieve.metrics import evaluate
from ranksieve.rankers import FenchelRank, SparseRankSVM
from tests.conftest import random_dataset
from tests.protocol import five_fold
from tests.refusals import refused_parameter


@pytest.fixture(scope="module")
def folds():
    parts = [
        random_dataset(seed=7, n_queries=60, longest=25).select_queries(np.arange(k, 60, 5)) for k in range(5)
    ]
    return [Fold(parts[k], parts[(k + 1) % 5], parts[(k + 2) % 5]) for k in range(5)]


def test_selects_on_valid_and_reports_test(folds):
    grid = parameter_grid(radius=[0.1, 1.0, 4.0])
    result = five_fold(FenchelRank, grid, folds, select="map")
    for fold, fold_result in zip(folds, result.folds, strict=True):
        fits = [FenchelRank(**point).fit(fold.train) for point in grid]
        values = [evaluate(fit.predict(fold.valid), fold.valid, ["map"]).mean["map"] for fit in fits]
        best = int(np.argmax(values))
        assert fold_result.parameters == grid[best]
        assert fold_result.validation == pytest.approx(values[best])
        test = evaluate(fits[best].predict(fold.test), fold.test, ["map"]).mean["map"]
        assert fold_result.test.mean["map"] == pytest.approx(test)
    assert result.mean("map") == pytest.approx(np.mean([f.test.mean["map"] for f in result.folds]))
    assert len(result.pooled("map")) == sum(fold.test.n_queries for fold in folds)


@pytest.mark.full
def test_results_do_not_depend_on_n_jobs(folds):
    grid = parameter_grid(alpha=[0.1, 0.01])
    alone = five_fold(SparseRankSVM, grid, folds[:2])
    together = five_fold(SparseRankSVM, grid, folds[:2], n_jobs=2)
    for a, b in zip(alone.folds, together.folds, strict=True):
        np.testing.assert_array_equal(a.coef, b.coef)


def test_a_model_without_features_is_selected_last(folds):
    result = five_fold(SparseRankSVM, parameter_grid(alpha=[1e6, 0.01]), folds[:1])
    assert result.folds[0].parameters == {"alpha": 0.01}


def test_constant_features_are_recognised(small):
    X = np.column_stack([small.X, np.ones(small.n_docs), small.qid.astype(float)])
    data = small.replace_features(X, [f"x{j}" for j in range(7)])
    np.testing.assert_array_equal(varying_columns(data), [True] * 5 + [False] * 2)


def test_an_empty_grid_is_refused(folds):
    with refused_parameter("methods", "method"):
        five_fold(FenchelRank, [], folds)


def test_grids_have_the_published_sizes():
    sizes = {name: len(method.grid) for name, method in METHODS.items()}
    assert sizes["fenchelrank"] == 9
    assert sizes["minbatsrank"] == 12 * 18
    assert sizes["sparselistmle"] == 7


@pytest.mark.parametrize("name", METHODS)
def test_every_grid_point_can_be_made(name):
    for point in METHODS[name].grid:
        METHODS[name].make(**point)
