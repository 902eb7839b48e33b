"""Every ranker and selector prepares features according to its parameters ``normalise`` and ``missing``."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import ranksieve as rs
from ranksieve.baselines.selector import FeatureSelector
from ranksieve.data.dataset import Dataset
from ranksieve.model.foreign import read_model
from ranksieve.prepare import Preparation
from ranksieve.prepare.scaling import ScaleWarning
from ranksieve.rankers.base import Ranker
from tests.conftest import random_dataset
from tests.rankers import of_size
from tests.refusals import refused_data, refused_parameter

PUBLIC = {name: getattr(place, name) for place in (rs, rs.baselines) for name in place.__all__}
RANKERS = {
    name: kind
    for name, kind in PUBLIC.items()
    if isinstance(kind, type)
    and issubclass(kind, Ranker)
    and kind not in (FeatureSelector, rs.HybridRanker)  # which normalises lists in its own ways
}
SELECTORS = [name for name, kind in RANKERS.items() if issubclass(kind, FeatureSelector)]
SMALL = {
    "k": 3, "n_subsamples": 4, "n_rounds": 10, "n_thresholds": 20, "n_alphas": 5,
    "cv": 2, "metric": "ndcg@5", "profile": "standard",
}  # fmt: skip
FEW_POINTS = {"GridRanker": {"method": "ranksvm"}, "FBPCRank": {"max_features": 5}}  # of a grid
SCALES = np.array([1e3, 1e-3, 1.0, 1e2, 1e-2, 30.0])  # 10⁶ apart


def with_holes(seed, n_queries):
    plain = random_dataset(seed=seed, n_queries=n_queries, n_features=len(SCALES), longest=16)
    X = (plain.X + np.arange(len(SCALES))) * SCALES
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return Dataset(X, plain.y, plain.qid, [f"signal_{j}" for j in range(len(SCALES))])


TRAIN, TEST = with_holes(31, 14), with_holes(32, 8)


def ranker(name, **parameters):
    kind = RANKERS[name]
    parameters_of_kind = {key: value for key, value in SMALL.items() if key in kind().get_params(deep=False)}
    return kind(**parameters_of_kind, **of_size(kind, 3), **FEW_POINTS.get(name, {}), **parameters)


@pytest.fixture(params=RANKERS, scope="module")
def name(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(name):
    return ranker(name, normalise="z", missing="zero").fit(TRAIN)


@pytest.fixture(scope="module")
def within_queries(name):
    return ranker(name, normalise="query_z", missing="query_min").fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)


def test_a_clone_keeps_both_parameters(fitted):
    again = clone(fitted)
    assert (again.normalise, again.missing) == ("z", "zero")
    np.testing.assert_array_equal(again.fit(TRAIN).predict(TEST), fitted.predict(TEST))


def test_fitted_preparation_is_read_only(fitted):
    learned = Preparation.learn(TRAIN, "z", "zero")
    assert fitted.preparation_ == learned
    assert (fitted.normalisation_, fitted.missing_) == (learned.normalisation, learned.missing)
    with pytest.raises(AttributeError):
        fitted.normalisation_ = learned.normalisation


def test_equals_preparation_by_hand(name, fitted):
    filled = np.nan_to_num(TRAIN.X)
    mean, deviation = filled.mean(axis=0), filled.std(axis=0)

    def prepared(data):
        return data.replace_features((np.nan_to_num(data.X) - mean) / deviation)

    by_hand = ranker(name, normalise="none").fit(prepared(TRAIN))
    np.testing.assert_allclose(fitted.predict(TEST), by_hand.predict(prepared(TEST)), rtol=1e-6, atol=1e-8)


def test_normalisation_changes_the_scores(name, fitted):
    filled = TRAIN.replace_features(np.nan_to_num(TRAIN.X))
    context = pytest.warns(ScaleWarning) if RANKERS[name]().can("scale") else nullcontext()
    with context:
        other = ranker(name, normalise="none", missing="zero").fit(filled)
    if name not in ("RankBoost", "LambdaMART"):  # thresholds do not depend on scales
        assert not np.allclose(fitted.predict(TEST), other.predict(TEST))


def test_dataset_array_and_frame_give_the_same_scores(name, fitted):
    frame, test = (pd.DataFrame(data.X, columns=list(data.feature_names)) for data in (TRAIN, TEST))
    expected = fitted.predict(TEST)
    for X, unseen in ((TRAIN.X, TEST.X), (frame, test)):
        again = ranker(name, normalise="z", missing="zero").fit(X, TRAIN.y, qid=TRAIN.qid)
        np.testing.assert_array_equal(again.predict(unseen), expected)


def test_a_sparse_matrix_gives_nearly_the_same_scores(name, fitted):
    X, unseen = sp.csr_array(TRAIN.X), sp.csr_array(TEST.X)
    again = ranker(name, normalise="z", missing="zero").fit(X, TRAIN.y, qid=TRAIN.qid)
    if fitted.can("linear"):
        np.testing.assert_allclose(again.predict(unseen), fitted.predict(TEST), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(again.predict(unseen), again.predict(unseen.toarray()), rtol=1e-9, atol=1e-9)


def test_the_model_file_has_the_same_scores(fitted, tmp_path):
    fitted.to_model().save(tmp_path / "model.json")
    model = read_model(tmp_path / "model.json")
    np.testing.assert_array_equal(model.predict(TEST), fitted.predict(TEST))
    assert model.preparation == fitted.preparation_.of(model.names)


def test_within_queries_every_row_needs_its_query(within_queries):
    with refused_parameter("qid", None):
        within_queries.predict(TEST.X)
    expected = within_queries.predict(TEST)
    np.testing.assert_array_equal(within_queries.predict(TEST.X, TEST.qid), expected)
    assert within_queries.score(TEST) == within_queries.score(TEST.X, TEST.y, TEST.qid)


def test_within_queries_the_order_of_the_rows_does_not_matter(within_queries):
    rows = np.random.default_rng(0).permutation(TEST.n_docs)
    scores = within_queries.predict(TEST.select_rows(rows))
    np.testing.assert_allclose(scores, within_queries.predict(TEST)[rows], rtol=1e-9, atol=1e-12)


def test_missing_values_are_refused_if_requested(name, fitted):
    strict = ranker(name, normalise="z", missing="error")
    with refused_data() as info:
        strict.fit(TRAIN)
    assert "feature signal_" in info.value.reason
    with refused_data() as info:
        strict.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    assert "feature f" in info.value.reason
    used = int(fitted.support_[0]) if fitted.can("linear") else 0
    infinite = TEST.X.copy()
    infinite[0, used] = np.inf
    with refused_data() as info:
        fitted.predict(TEST.replace_features(infinite))
    assert f"feature signal_{used} of row 0" in info.value.reason


def test_by_default_missing_values_get_the_mean_with_a_warning(name):
    with pytest.warns(UserWarning, match=r"6 of 6 features have missing values \(signal_\d in") as record:
        default = ranker(name, normalise="z").fit(TRAIN)
    assert len(record) == 1
    assert default.missing_.policy == "column_mean"
    silent = ranker(name, normalise="z", missing="column_mean").fit(TRAIN)
    np.testing.assert_array_equal(default.predict(TEST), silent.predict(TEST))


def test_complete_training_data_learn_no_fills(name):
    complete = TRAIN.replace_features(np.nan_to_num(TRAIN.X))
    default = ranker(name, normalise="z").fit(complete)
    strict = ranker(name, normalise="z", missing="error").fit(complete)
    assert default.preparation_ == strict.preparation_
    for unseen in (TEST, pd.DataFrame(TEST.X, columns=list(TEST.feature_names))):
        with refused_data() as info:
            default.predict(unseen)
        assert "is missing" in info.value.reason


def test_indicator_adds_features_for_missing_values(name, tmp_path):
    fitted = ranker(name, normalise="within_z", missing="indicator")
    if name in SELECTORS:
        with refused_parameter("missing", "indicator"):
            fitted.fit(TRAIN)
        return
    fitted.fit(TRAIN)
    sources = {f"{feature} is missing": feature for feature in TRAIN.feature_names}
    assert fitted.missing_.indicators == sources
    marked = np.hstack([TRAIN.X, np.isnan(TRAIN.X)])
    by_hand = ranker(name, normalise="within_z", missing="column_mean")
    by_hand.fit(TRAIN.replace_features(marked, [*TRAIN.feature_names, *sources]))
    scores = fitted.predict(TEST)
    unseen = TEST.replace_features(np.hstack([TEST.X, np.isnan(TEST.X)]), [*TEST.feature_names, *sources])
    np.testing.assert_array_equal(scores, by_hand.predict(unseen))
    frame = pd.DataFrame(TEST.X, columns=list(TEST.feature_names))
    np.testing.assert_array_equal(scores, fitted.predict(frame))
    sparse = TEST.replace_features(sp.csr_array(TEST.X))
    np.testing.assert_allclose(scores, fitted.predict(sparse), rtol=1e-12, atol=1e-12)
    if fitted.can("linear"):
        model = fitted.to_model()
        model.save(tmp_path / "model.json")
        np.testing.assert_array_equal(read_model(tmp_path / "model.json").predict(TEST), scores)
        np.testing.assert_allclose(model.without_indicators().predict(TEST), scores, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize(("parameter", "value"), [("normalise", "z"), ("missing", "zero")])
def test_the_base_of_a_selector_must_not_prepare_features(name, parameter, value):
    base = rs.RankSVM(**{parameter: value})
    with refused_parameter("base", base) as info:
        ranker(name, base=base).fit(random_dataset())
    assert f"{parameter}='{value}'" in info.value.reason
