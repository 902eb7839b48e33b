"""LambdaMART: equals LightGBM, any labels, any row order, a clear error without LightGBM."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ranksieve.baselines import LambdaMART
from ranksieve.baselines import boosting as lambdamart
from ranksieve.data.dataset import Dataset
from ranksieve.metrics import evaluate
from ranksieve.synthetic import make_ranking
from tests.refusals import refused_data, refused_parameter

lightgbm = pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=60, n_features=8, n_informative=3, random_state=0)


@pytest.fixture(scope="module")
def graded(data):
    """The same documents in the neutral order, with integer labels."""
    rows = lambdamart._neutral_order(data)
    return Dataset(data.X[rows], np.floor(data.y[rows]), data.qid[rows])


def test_equals_lightgbm(graded):
    ours = LambdaMART(20, n_leaves=7, learning_rate=0.1, l2=1.0, truncation=10).fit(graded)
    theirs = lightgbm.LGBMRanker(
        n_estimators=20,
        num_leaves=7,
        learning_rate=0.1,
        reg_lambda=1.0,
        lambdarank_truncation_level=10,
        random_state=0,
        verbose=-1,
        n_jobs=1,
        deterministic=True,
        force_row_wise=True,
    ).fit(graded.X, graded.y.astype(int), group=graded.queries.sizes)
    np.testing.assert_allclose(ours.predict(graded), theirs.booster_.predict(graded.X), rtol=1e-9)
    assert ours.n_iter_ == 20


def test_ndcg_improves(data):
    fitted = LambdaMART(60, min_leaf_docs=5).fit(data)
    ndcg = evaluate(fitted.predict(data), data, "ndcg@10", profile="standard").mean["ndcg@10"]
    blind = evaluate(np.zeros(data.n_docs), data, "ndcg@10", profile="standard").mean["ndcg@10"]
    assert ndcg > blind + 0.1
    assert set(fitted.support_) >= set(np.flatnonzero(data.truth))


def test_labels_are_used_by_their_gains(graded):
    """Labels 0, ½, 1, … are levels with the gains 2^y − 1; unused levels change nothing."""
    halves = Dataset(graded.X, graded.y / 2, graded.qid)
    fitted = LambdaMART(10, min_leaf_docs=5).fit(halves)
    gains = np.exp2(np.arange(graded.y.max() + 1) / 2) - 1
    same = LambdaMART(10, min_leaf_docs=5, options={"label_gain": gains.tolist()}).fit(graded)
    np.testing.assert_allclose(fitted.predict(graded), same.predict(graded), rtol=1e-9)
    with refused_data() as info:
        LambdaMART().fit(Dataset(graded.X, graded.y - 9.0, graded.qid))
    assert "label of row 0" in info.value.reason


def test_the_order_of_rows_does_not_leak_labels(data):
    """Before the first tree all scores are equal, so the order of rows must not change the lambdas."""
    sorted_rows = np.lexsort((-data.y, data.qid))
    first = LambdaMART(5).fit(data).predict(data)
    again = LambdaMART(5).fit(data.select_rows(sorted_rows)).predict(data)
    np.testing.assert_array_equal(first, again)


def test_threads_and_sparse_matrices_do_not_matter(data):
    one = LambdaMART(10, n_jobs=1).fit(data).predict(data)
    np.testing.assert_allclose(LambdaMART(10, n_jobs=2).fit(data).predict(data), one, rtol=1e-9)
    sparse = data.replace_features(sp.csr_array(data.X))
    np.testing.assert_allclose(
        LambdaMART(10, n_jobs=1).fit(sparse).predict(sparse), one, rtol=1e-6, atol=1e-9
    )


def test_n_jobs_reaches_lightgbm(data):
    assert LambdaMART(1, n_jobs=2).fit(data).booster_.params["num_threads"] == 2
    assert LambdaMART(1).fit(data).booster_.params["num_threads"] == 1  # little data
    assert LambdaMART()._threads(10**6) >= 1


def test_query_weights_matter(data):
    weight = np.where(np.arange(data.n_queries) < 30, 1.0, 1e-6)
    part = LambdaMART(10).fit(data, query_weight=weight).predict(data)
    assert not np.allclose(part, LambdaMART(10).fit(data).predict(data))
    ones = LambdaMART(10).fit(data, query_weight=np.ones(data.n_queries)).predict(data)
    np.testing.assert_allclose(ones, LambdaMART(10).fit(data).predict(data), rtol=1e-6, atol=1e-9)


def test_lightgbm_prints_nothing(data, capfd):
    LambdaMART(3).fit(data).predict(data)
    LambdaMART(3, min_leaf_docs=10**6).fit(data)
    assert capfd.readouterr() == ("", "")


def test_callback_is_called_after_every_tree(data):
    calls = []
    LambdaMART(3).fit(data, callback=lambda *news: calls.append(news[0]))
    assert calls == [1, 2, 3]


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_rounds": 0},
        {"n_leaves": 1},
        {"learning_rate": 0.0},
        {"l2": -1.0},
    ],
)
def test_bad_parameters(parameters, data):
    with refused_parameter(*next(iter(parameters.items()))):
        LambdaMART(**parameters).fit(data)


def test_without_lightgbm_the_error_names_the_extra(data, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(lambdamart, "import_module", missing)
    with pytest.raises(ImportError, match=r'pip install "\.\[baselines\]"'):
        LambdaMART().fit(data)
