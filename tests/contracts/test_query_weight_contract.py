"""Every estimator and selector: weight 2 equals two copies of a query, weight 0 equals its absence."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ranksieve.data.dataset import Dataset
from ranksieve.prepare.missing import FILLS
from ranksieve.prepare.scaling import NORMALISATIONS
from ranksieve.rankers import SparseRanker
from tests.conftest import QUICK, random_dataset
from tests.pages import ROOT
from tests.rankers import ESTIMATORS, SELECTORS, of_size
from tests.refusals import refused_data

RANKERS = {**ESTIMATORS, **SELECTORS}
NOT_TWICE = {
    "minbatsrank": "learns from one query after another: two steps are not one of double length",
    "lambdamart": "LightGBM counts documents, not weights, in its bins and leaves",
    "stabilityselection": "draws whole queries: of two equal ones it may draw one",
    "brtree": "draws whole queries, and LightGBM counts documents",
    "greedyrankrls": "leaves whole queries out: of two equal ones one stays",
}
SMALL = {"k": 4, "n_subsamples": 8, "n_rounds": 20, "n_thresholds": 20, **QUICK}
EXACT = {"tol": 1e-10, "max_iter": 20_000, "radius": 1.0, "variant": "pairwise"}
SLOW = {
    "tgrank": {"max_iter": 500},
    "rsrank": {"max_iter": 200, "n_rounds": 3},
    "svmmap": {"tol": 1e-8},
    "ranksvmstruct": {"tol": 1e-8},
    "fbpcrank": {"tol": 0.005},  # the least improvement by a feature
    "bfswrapper": {"tol": 1e-3},
}  # the same steps


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=24, n_queries=16, n_features=7, longest=16)


@pytest.fixture(scope="module")
def valid():
    return random_dataset(seed=25, n_queries=16, n_features=7, longest=16)


def ranker(name):
    kind = RANKERS[name]
    parameters = SMALL if name == "adarank" else {**SMALL, **EXACT, **SLOW.get(name, {})}
    parameters = {**parameters, **of_size(kind, 4)}
    # AdaRank's tol is not an accuracy
    return kind(**{key: value for key, value in parameters.items() if key in kind().get_params(deep=False)})


def fit(name, train, valid, **weights):
    if name == "sparseranker":  # repeated queries would change the folds
        return ranker(name).set_params(cv=0).fit(train, valid=valid, **weights)
    return ranker(name).fit(train, **weights)


def repeated(data, times):
    """Data with ``times[q]`` copies of query q, each with its own id."""
    rows = [
        data.queries.order[data.queries.offsets[q] : data.queries.offsets[q + 1]] for q in range(len(times))
    ]
    copies = [
        (rows[q], (q, copy)) for copy in range(max(times)) for q in range(len(times)) if copy < times[q]
    ]
    qid = np.repeat(np.arange(len(copies)), [len(part) for part, _ in copies])
    index = np.concatenate([part for part, _ in copies])
    return Dataset(data.X[index], data.y[index], qid)


def how_often(seed, data):
    return np.random.default_rng(seed).integers(1, 4, data.n_queries)


def which(seed, data):
    return np.random.default_rng(seed).random(data.n_queries) < 0.7


def assert_same(one, other, data):
    for name in ("coef_", "objective_", "level_weights_", "importance_", "similarity_"):
        if hasattr(one, name):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(one.predict(data), other.predict(data), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in RANKERS if name not in NOT_TWICE])
@pytest.mark.parametrize("seed", range(2))
def test_weight_two_equals_two_copies(name, seed, data, valid):
    times = how_often(seed, data)
    weighted = fit(name, data, valid, query_weight=times.astype(float))
    assert_same(weighted, fit(name, repeated(data, times), valid), data)


def test_docs_name_the_methods_in_which_weight_two_is_not_two_copies():
    page = (ROOT / "docs" / "weights.md").read_text(encoding="utf-8")
    exceptions = page.split("All of them weigh queries.")[1].split("Folds hold")[0]
    named = {name for name, kind in RANKERS.items() if re.search(rf"\b{kind.__name__}\b", exceptions)}
    assert named == set(NOT_TWICE)


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("seed", range(2))
def test_weight_zero_equals_absence(name, seed, data, valid):
    used = which(seed, data)
    weighted = fit(name, data, valid, query_weight=used.astype(float))
    assert_same(weighted, fit(name, data.select_queries(used), valid), data)


@pytest.mark.parametrize("normalise", NORMALISATIONS)
@pytest.mark.parametrize("missing", FILLS)
def test_normalisation_and_fills_use_the_weights(normalise, missing, data, valid):
    X = data.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    holes = data.replace_features(X)
    times, used = how_often(0, data), which(0, data)
    for weight, same in ((times, repeated(holes, times)), (used, holes.select_queries(used))):
        one, other = (
            SparseRanker(normalise=normalise, missing=missing, families=["l1"], tol=1e-10, cv=0, **QUICK)
            for _ in range(2)
        )
        one.fit(holes, valid=valid, query_weight=weight.astype(float))
        other.fit(same, valid=valid)
        for prepared in ("normalisation_", "missing_"):
            for part in ("centre", "scale", "means"):
                learned = (getattr(getattr(each, prepared), part, ()) for each in (one, other))
                np.testing.assert_allclose(*learned, rtol=1e-12, atol=1e-14)
        assert_same(one, other, holes)


def test_folds_are_split_without_queries_of_weight_zero(data):
    used = which(1, data)
    weighted = SparseRanker(cv=3, **QUICK).fit(data, query_weight=used.astype(float))
    without = SparseRanker(cv=3, **QUICK).fit(data.select_queries(used))
    np.testing.assert_array_equal(weighted.choice_.validation.values, without.choice_.validation.values)
    np.testing.assert_array_equal(weighted.coef_, without.coef_)


@pytest.mark.parametrize("name", RANKERS)
def test_weights_that_are_all_zero_are_refused(name, data, valid):
    with refused_data() as info:
        fit(name, data, valid, query_weight=np.zeros(data.n_queries))
    assert "pair" in info.value.reason
