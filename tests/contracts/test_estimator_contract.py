"""Every estimator: scikit-learn's conventions, query ids, data frames, model files."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import ranksieve as rs
from ranksieve.data.dataset import Dataset
from ranksieve.model.foreign import read_model
from ranksieve.model.linear import load_model
from tests.conftest import random_dataset
from tests.rankers import ESTIMATORS
from tests.refusals import refused_data, refused_parameter

LINEAR = [name for name, kind in ESTIMATORS.items() if kind().can("linear")]
FEW_STEPS = {"max_iter": 10, "n_rounds": 10, "n_alphas": 4, "cv": 2}


def quick(name):
    """The estimator with its defaults, except for two slow ones."""
    return ESTIMATORS[name](**{"tgrank": {"max_iter": 200}, "sparseranker": {"n_alphas": 8}}.get(name, {}))


@pytest.fixture(scope="module", params=ESTIMATORS)
def name(request):
    return request.param


@pytest.fixture
def estimator(name):
    return quick(name)


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=21, n_queries=30, n_features=6, longest=20)


@pytest.fixture(scope="module")
def fitted(name, data):
    """Shared by tests, which must not modify it."""
    return quick(name).fit(data)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.filterwarnings("ignore:qid is None")
@pytest.mark.filterwarnings("ignore:.*cannot guide the choice")
@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix")
def test_check_estimator(estimator):
    few = {key: value for key, value in FEW_STEPS.items() if hasattr(estimator, key)}
    check_estimator(estimator.set_params(**few), on_skip=None)


def test_arrays_and_dataset_give_the_same(estimator, fitted, data):
    again = estimator.fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(fitted.predict(data), again.predict(data.X))


def test_row_order_and_ids_do_not_matter_and_scores_keep_the_row_order(estimator, fitted, data):
    rows = np.random.default_rng(0).permutation(data.n_docs)
    ids = np.empty(data.n_docs, dtype=object)
    ids[:] = [("query", int(q)) for q in data.qid]
    rows = np.concatenate([_first_rows(data), np.setdiff1d(rows, _first_rows(data), assume_unique=True)])
    shuffled = estimator.fit(data.X[rows], data.y[rows], qid=ids[rows])
    np.testing.assert_allclose(fitted.predict(data.select_rows(rows)), fitted.predict(data)[rows], rtol=1e-12)
    np.testing.assert_allclose(shuffled.predict(data.X), fitted.predict(data), atol=1e-4)


def _first_rows(data):
    """First row of each query: as the first rows of shuffled data they keep the order of the queries."""
    return data.queries.order[data.queries.offsets[:-1]]


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, lambda X: X.astype(np.float32)])
def test_matrices(estimator, data, kind):
    fitted = estimator.fit(kind(data.X), data.y, qid=data.qid)
    np.testing.assert_allclose(fitted.predict(kind(data.X)), fitted.predict(data.X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_feature_names_of_frames_are_used(estimator, fitted, data, frame):
    names = [f"signal_{j}" for j in range(6)]
    X = frame({name: data.X[:, j] for j, name in enumerate(names)})
    again = estimator.fit(X, data.y, qid=data.qid)
    assert list(again.feature_names_in_) == names
    np.testing.assert_allclose(again.predict(X), fitted.predict(data), rtol=1e-6, atol=1e-8)


def test_grid_search_with_routing_uses_the_queries(estimator, data, routing):
    search = GridSearchCV(estimator, {}, cv=GroupKFold(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(data.X, data.y, groups=data.qid)
    split = next(iter(GroupKFold(2).split(data.X, data.y, data.qid)))
    train, test = (data.select_rows(rows) for rows in split)
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(
        clone(estimator).fit(train).score(test)
    )


def test_pipeline_with_a_scaler(estimator, data, routing):
    pipe = make_pipeline(StandardScaler(), estimator).fit(data.X, data.y, groups=data.qid)
    scaled = data.replace_features(StandardScaler().fit_transform(data.X))
    np.testing.assert_allclose(pipe.predict(data.X), clone(estimator).fit(scaled).predict(scaled), rtol=1e-9)
    assert pipe.score(data.X, data.y, groups=data.qid) == pytest.approx(pipe[-1].score(scaled))


def test_missing_query_ids_cause_a_warning(estimator, data):
    with pytest.warns(UserWarning, match="qid is None"):
        clone(estimator).fit(data.X, data.y)


def test_score_without_query_ids_is_refused_after_a_fit_with_them_else_warns(estimator, fitted, data):
    with refused_parameter("qid", None):
        fitted.score(data.X, data.y)
    with pytest.warns(UserWarning, match="qid is None"):
        alone = clone(estimator).fit(data.X, data.y)
    one_query = Dataset(data.X, data.y, np.zeros(data.n_docs))
    with pytest.warns(UserWarning, match="qid is None"):
        assert alone.score(data.X, data.y) == alone.score(one_query)


def test_sample_weight_in_score_applies_to_queries(fitted, data):
    weight = np.where(data.qid == data.qid[0], 1.0, 0.0)
    first = data.select_rows(data.qid == data.qid[0])
    assert fitted.score(data, sample_weight=weight) == pytest.approx(fitted.score(first))


def test_pickle_and_clone(estimator, fitted, data):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(data), fitted.predict(data))
    assert clone(fitted).get_params() == estimator.get_params()


def test_fit_does_not_change_parameters(estimator, data):
    before = estimator.get_params()
    assert estimator.fit(data).get_params() == before


@pytest.mark.parametrize("name", LINEAR, scope="module", indirect=True)
def test_a_linear_ranker_reports_gap_iterations_and_support(fitted, data):
    assert fitted.gap_ >= 0 or np.isnan(fitted.gap_)
    assert fitted.n_iter_ >= 1
    assert len(fitted.trace_) >= 1
    np.testing.assert_array_equal(fitted.support_, np.flatnonzero(fitted.coef_))
    X = fitted.preparation_.apply(data).X
    np.testing.assert_allclose(fitted.predict(data), X @ fitted.coef_, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", LINEAR, scope="module", indirect=True)
def test_model_file_gives_the_same_scores(estimator, data, tmp_path):
    names = [f"signal_{j}" for j in range(6)]
    fitted = estimator.fit(data.replace_features(data.X, names))
    fitted.to_model().save(tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(model.predict(data.X), fitted.predict(data))
    assert model.method == type(estimator).__name__
    assert model.n_features == 6
    assert set(model.names) == {names[j] for j in fitted.support_}


@pytest.mark.parametrize(
    "name", [name for name in ESTIMATORS if name not in LINEAR], scope="module", indirect=True
)
def test_model_file_of_a_ranker_that_is_not_linear_gives_the_same_scores(estimator, data, tmp_path):
    names = [f"signal_{j}" for j in range(6)]
    fitted = estimator.fit(data.replace_features(data.X, names))
    fitted.to_model().save(tmp_path / "model.json")
    model = read_model(tmp_path / "model.json")
    np.testing.assert_array_equal(model.predict(data.X), fitted.predict(data))
    assert model.method == type(estimator).__name__
    assert model.names == [names[j] for j in fitted.support_]
    with refused_data("model.json") as info:
        load_model(tmp_path / "model.json")
    assert "not linear" in info.value.reason


def test_labels_in_addition_to_a_dataset_are_refused(estimator, data):
    with refused_parameter("y"):
        estimator.fit(data, data.y)


def test_prediction_with_another_number_of_features(fitted, data):
    narrow = Dataset(data.X[:, :4], data.y, data.qid)
    with refused_data() as info:
        fitted.predict(narrow)
    assert "fitted on 6 features" in info.value.reason


def test_missing_values_are_named(estimator, data):
    X = data.X.copy()
    X[7, 2] = np.nan
    with refused_data() as info:
        estimator.set_params(missing="error").fit(Dataset(X, data.y, data.qid))
    assert "feature f3 of row 7" in info.value.reason


def test_no_pairs(estimator):
    with refused_data() as info:
        estimator.fit(Dataset(np.eye(4), np.ones(4), [0, 0, 1, 1]))
    assert "pair" in info.value.reason


def test_a_fit_keeps_the_callers_metadata_requests():
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = rs.RankSVM().set_fit_request(query_weight=True)
        before = str(ranker.get_metadata_routing())
        ranker.fit(rs.make_ranking(8, 3, 2))
        assert str(ranker.get_metadata_routing()) == before
