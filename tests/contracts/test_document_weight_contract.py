"""Every estimator and selector: weight 2 equals two copies of a document, weight 0 equals its absence.

Methods without support for document weights reject them.
"""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.data.dataset import Dataset
from ranksieve.prepare.missing import FILLS
from ranksieve.prepare.scaling import NORMALISATIONS
from ranksieve.rankers import SparseRanker, SparseRankSVM
from tests.conftest import QUICK, random_dataset
from tests.contracts.test_query_weight_contract import RANKERS, assert_same, fit, ranker
from tests.refusals import refused_data, refused_parameter

pytestmark = pytest.mark.filterwarnings("ignore:.* training documents have weight 0")
WEIGHING = [name for name, kind in RANKERS.items() if kind().can("document_weight")]
REFUSING = [name for name in RANKERS if name not in WEIGHING]
NOT_BY_MEANS = {  # equal weights c multiply the pairs by c², which changes a sum over pairs but not a mean
    "minbatsrank": "takes steps by sums over pairs",
    "ranksvm": "weighs the sum over pairs with C",
    "csranksvm": "weighs the sum over pairs with C",
    "fsmsvm": "has RankSVM as its base",
    "fbpcrank": "has RankSVM as its base",
    "stabilityselection": "has RankSVM as its base",
    "sparselistmle": "counts weights in positions",
    "cslistmle": "counts weights in positions",
}


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=24, n_queries=16, n_features=7, longest=16)


@pytest.fixture(scope="module")
def valid():
    return random_dataset(seed=25, n_queries=16, n_features=7, longest=16)


def how_often(seed, data):
    return np.random.default_rng(seed).integers(0, 4, data.n_docs)


def weighted(data, weight):
    return Dataset(data.X, data.y, data.qid, document_weight=weight)


def copied(data, times):
    return data.select_rows(np.repeat(np.arange(data.n_docs), times))


@pytest.mark.parametrize("name", WEIGHING)
def test_weight_two_equals_two_copies_and_weight_zero_equals_absence(name, data, valid):
    times = how_often(0, data)
    one, other = fit(name, weighted(data, times), valid), fit(name, copied(data, times), valid)
    assert_same(one, other, data)
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in WEIGHING if name not in NOT_BY_MEANS])
def test_equal_weights_change_nothing(name, data, valid):
    weighted_fit = fit(name, weighted(data, np.full(data.n_docs, 3.0)), valid)
    assert_same(weighted_fit, fit(name, data, valid), data)


@pytest.mark.parametrize("name", REFUSING)
def test_other_methods_reject_weights(name, data, valid):
    with refused_parameter("document_weight") as info:
        fit(name, weighted(data, np.ones(data.n_docs)), valid)
    assert RANKERS[name].__name__ in info.value.reason
    with refused_parameter("document_weight") as info:
        ranker(name).fit(data.X, data.y, data.qid, document_weight=np.ones(data.n_docs))
    assert RANKERS[name].__name__ in info.value.reason


@pytest.mark.parametrize("name", WEIGHING)
def test_weights_can_be_passed_with_arrays(name, data, valid):
    weight = how_often(1, data).astype(float)
    arrays = ranker(name).fit(data.X, data.y, data.qid, document_weight=weight)
    assert arrays._origin.fingerprints == ranker(name).fit(weighted(data, weight))._origin.fingerprints
    with refused_parameter("document_weight", weight):
        ranker(name).fit(data, document_weight=weight)
    with refused_data() as info:
        ranker(name).fit(weighted(data, np.zeros(data.n_docs)))
    assert "pair" in info.value.reason


@pytest.mark.parametrize("normalise", [name for name in NORMALISATIONS if name != "query_z"])
@pytest.mark.parametrize("missing", FILLS)
def test_normalisation_and_fills_use_the_weights(normalise, missing, data, valid):
    X = data.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    holes, times = data.replace_features(X), how_often(2, data)
    one, other = (
        SparseRanker(normalise=normalise, missing=missing, tol=1e-10, cv=0, **QUICK) for _ in range(2)
    )
    one.fit(weighted(holes, times), valid=valid)
    other.fit(copied(holes, times), valid=valid)
    for prepared in ("normalisation_", "missing_"):
        for part in ("centre", "scale", "means"):
            learned = (getattr(getattr(each, prepared), part, ()) for each in (one, other))
            np.testing.assert_allclose(*learned, rtol=1e-12, atol=1e-14)
    assert_same(one, other, holes)


def test_query_weights_follow_their_queries_when_first_documents_are_absent():
    """Rows of weight 0 change the order in which queries appear, and remove some of them."""
    qid = np.array(["a", "b", "a", "c", "b", "c", "d", "d", "a", "b"])
    rng = np.random.default_rng(3)
    X, y, weight = rng.normal(size=(10, 3)), np.array([0, 1, 1, 0, 0, 1, 1, 0, 2, 0.0]), np.ones(10)
    weight[[0, 6, 7]] = 0.0  # a now appears after b; d disappears
    by_id = {"a": 3.0, "b": 0.5, "d": 7.0}
    one = SparseRankSVM(alpha=0.01, tol=1e-12).fit(X, y, qid, document_weight=weight, query_weight=by_id)
    used = weight > 0
    other = SparseRankSVM(alpha=0.01, tol=1e-12).fit(
        X[used], y[used], qid[used], query_weight=np.array([0.5, 3.0, 1.0])
    )
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-10)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-12)
