"""Every selector: selected columns, scikit-learn's conventions, and the resulting ranker."""

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
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from ranksieve.baselines import BFSWrapper, GreedyRankRLS, RankRLS
from ranksieve.data.dataset import Dataset
from ranksieve.model.linear import load_model
from ranksieve.rankers import RankSVM, SparseRankSVM
from tests.conftest import random_dataset
from tests.rankers import SELECTORS, of_size
from tests.refusals import refused_data, refused_parameter

QUICK = {"n_subsamples": 8, "n_alphas": 10, "n_subsets": 2, "n_rounds": 4}
FEW_STEPS = {"n_subsamples": 2, "n_alphas": 3, "n_subsets": 1, "n_rounds": 2}
N_FEATURES, CONSTANT = 14, (3, 11)
NAMES = [f"signal_{j}" for j in range(N_FEATURES)]


def with_parameters(selector, values):
    """The selector with the values that it has a parameter for."""
    return selector.set_params(**{name: value for name, value in values.items() if hasattr(selector, name)})


def with_size(selector, size):
    """The selector set to that number of features, if it has such a parameter."""
    return selector.set_params(**of_size(type(selector), size))


def quick(name):
    return with_parameters(with_size(SELECTORS[name](), 4), QUICK)


@pytest.fixture(scope="module", params=SELECTORS)
def name(request):
    return request.param


@pytest.fixture
def selector(name):
    return quick(name)


@pytest.fixture(scope="module")
def data():
    data = random_dataset(seed=21, n_queries=30, n_features=N_FEATURES, longest=24)
    data.X[:, CONSTANT[0]] = 2.0
    data.X[:, CONSTANT[1]] = data.qid
    return data


@pytest.fixture(scope="module")
def fitted(name, data):
    """Shared by tests, which must not modify it."""
    return quick(name).fit(data)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.filterwarnings("ignore:qid is None")
@pytest.mark.filterwarnings("ignore:.* selected no feature")
@pytest.mark.filterwarnings("ignore:there is only one query")
@pytest.mark.filterwarnings("ignore:No features were selected")
@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix")
def test_check_estimator(selector):
    check_estimator(with_parameters(with_size(selector, 1), FEW_STEPS), on_skip=None)


def test_it_is_a_selector_and_selects_the_requested_number(fitted):
    assert isinstance(fitted, SelectorMixin)
    support = fitted.get_support()
    assert support.shape == (N_FEATURES,)
    limit = getattr(fitted, "max_features", None) or N_FEATURES
    assert 1 <= support.sum() <= limit
    if of_size(type(fitted), limit):
        assert support.sum() == limit
    np.testing.assert_array_equal(np.sort(fitted.selected_), fitted.get_support(indices=True))


def test_constant_features_are_never_selected(fitted):
    assert not fitted.get_support()[list(CONSTANT)].any()


def test_sizes_are_limited_by_the_usable_features(selector, data):
    if not of_size(type(selector), 1):
        pytest.skip("has no parameter for an exact number of features")
    usable = N_FEATURES - len(CONSTANT)
    assert with_size(selector, usable).fit(data).get_support().sum() == usable
    with refused_parameter("max_features", 13):
        with_size(selector, usable + 1).fit(data)
    for wrong in (0, -1, 2.5):
        with refused_parameter("max_features", wrong):
            with_size(selector, wrong).fit(data)


def test_a_repeated_fit_selects_the_same_features(selector, fitted, data):
    again = selector.fit(data)
    np.testing.assert_array_equal(again.selected_, fitted.selected_)
    np.testing.assert_array_equal(again.coef_, fitted.coef_)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_transform_returns_the_selected_columns(selector, fitted, data, kind):
    again = selector.fit(kind(data.X), data.y, qid=data.qid)
    chosen = again.transform(kind(data.X))
    assert sp.issparse(chosen) == (kind is not np.asarray)
    dense = chosen.toarray() if sp.issparse(chosen) else chosen
    np.testing.assert_array_equal(dense, data.X[:, again.get_support()])
    np.testing.assert_array_equal(again.selected_, fitted.selected_)


def test_transforming_a_dataset_returns_a_dataset(selector, data):
    named = data.replace_features(data.X, NAMES)
    chosen = selector.fit(named).transform(named)
    np.testing.assert_array_equal(chosen.X, data.X[:, selector.get_support()])
    assert list(chosen.feature_names) == [NAMES[j] for j in selector.get_support(indices=True)]
    np.testing.assert_array_equal(chosen.qid, data.qid)
    with refused_data() as info:
        selector.transform(Dataset(data.X[:, :4], data.y, data.qid))
    assert "fitted on 14 features" in info.value.reason


def test_columns_are_matched_by_name(selector, data):
    named, turned = (data.replace_features(data.X[:, ::step], NAMES[::step]) for step in (1, -1))
    expected, chosen = selector.fit(named).transform(named), selector.transform(turned)
    assert chosen.feature_names == expected.feature_names
    np.testing.assert_array_equal(chosen.X, expected.X)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_feature_names_of_frames_are_used(selector, data, frame):
    X = frame({name: data.X[:, j] for j, name in enumerate(NAMES)})
    fitted = selector.fit(X, data.y, qid=data.qid)
    names = [NAMES[j] for j in fitted.get_support(indices=True)]
    assert list(fitted.get_feature_names_out()) == names
    np.testing.assert_array_equal(fitted.transform(X), data.X[:, fitted.get_support()])


def test_transform_can_return_frames(selector, data):
    X = pd.DataFrame(data.X, columns=NAMES)
    chosen = selector.set_output(transform="pandas").fit(X, data.y, qid=data.qid).transform(X)
    pd.testing.assert_frame_equal(chosen, X.loc[:, selector.get_support()])


@pytest.mark.parametrize("ranker", [RankSVM(), SparseRankSVM(alpha=1e-3)])
def test_in_a_pipeline_with_routing(selector, fitted, ranker, data, routing):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipe = make_pipeline(selector, clone(ranker)).fit(data.X, data.y, groups=data.qid)
    support = fitted.get_support()
    narrow = data.replace_features(data.X[:, support], [NAMES[j] for j in np.flatnonzero(support)])
    expected = clone(ranker).fit(narrow)
    np.testing.assert_allclose(pipe.predict(data.X), expected.predict(narrow), rtol=1e-9)
    assert pipe.score(data.X, data.y, groups=data.qid) == pytest.approx(expected.score(narrow))


def test_in_a_search_with_routing(selector, data, routing):
    search = GridSearchCV(selector, {"base": [RankSVM(C=1e-3), RankSVM(C=1.0)]}, cv=GroupKFold(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(data.X, data.y, groups=data.qid)
    train, test = next(iter(GroupKFold(2).split(data.X, data.y, data.qid)))
    alone = clone(selector).set_params(base=RankSVM(C=1e-3)).fit(data.select_rows(train))
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(alone.score(data.select_rows(test)))


def test_score_without_query_ids_is_refused(fitted, data):
    with refused_parameter("qid", None):
        fitted.score(data.X, data.y)


def test_the_ranker_is_the_base_fitted_on_the_selected_columns(fitted, data):
    if isinstance(fitted, BFSWrapper):
        pytest.skip("the base ranks by new features")
    support = fitted.get_support()
    narrow = Dataset(data.X[:, support], data.y, data.qid)
    base = (RankRLS() if isinstance(fitted, GreedyRankRLS) else RankSVM()).fit(narrow)
    np.testing.assert_array_equal(fitted.coef_[support], base.coef_)
    assert not fitted.coef_[~support].any()
    np.testing.assert_array_equal(fitted.predict(data), base.predict(narrow))
    assert fitted.score(data) == base.score(narrow)
    assert (fitted.objective_, fitted.gap_) == (base.objective_, base.gap_)


def test_refit_with_another_base_equals_a_full_fit(selector, data):
    first = selector.fit(data)
    other = clone(selector).set_params(base=RankSVM(C=0.01))
    assert other.chooses_like(first) == ("base" in other.refit_parameters)
    assert not other.chooses_like(RankSVM())
    if "base" in other.refit_parameters:
        again = first.set_params(base=RankSVM(C=0.01)).refit(data)
        expected = other.fit(data)
        np.testing.assert_array_equal(again.selected_, expected.selected_)
        np.testing.assert_array_equal(again.coef_, expected.coef_)
        assert again.to_model().parameters == expected.to_model().parameters
    with refused_data() as info:
        first.refit(data.X[:, 1:], data.y, data.qid)
    assert "13 features" in info.value.reason
    with pytest.raises(NotFittedError):
        clone(selector).refit(data)


def test_any_linear_base(selector, data):
    fitted = selector.set_params(base=SparseRankSVM(alpha=0.05)).fit(data)
    assert type(fitted.base_) is SparseRankSVM
    assert set(fitted.support_) <= set(fitted.selected_)


def test_model_file_gives_the_same_scores(selector, data, tmp_path):
    fitted = selector.fit(data.replace_features(data.X, NAMES))
    fitted.to_model().save(tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(model.predict(data.X), fitted.predict(data))
    assert model.method == type(selector).__name__


def test_pickle_and_clone(selector, fitted, data):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(data), fitted.predict(data))
    np.testing.assert_array_equal(again.transform(data).X, fitted.transform(data).X)
    assert clone(fitted).get_params() == selector.get_params()


def test_query_weights_reach_every_stage(selector, data):
    """A query of weight 0 has no influence on any stage."""
    used = np.arange(data.n_queries) < 20
    weighted = clone(selector).fit(data, query_weight=used.astype(float))
    without = clone(selector).fit(data.select_queries(used))
    np.testing.assert_array_equal(weighted.selected_, without.selected_)
    np.testing.assert_allclose(weighted.coef_, without.coef_, rtol=1e-5, atol=1e-7)


class WithoutFit:
    def get_params(self, deep=False):
        return {}


class WithoutWeights(RankSVM):
    """A ranker that is not linear and does not accept query weights."""

    def fit(self, X, y=None, qid=None):
        super().fit(X, y, qid)
        del self.coef_
        return self


@pytest.mark.parametrize(
    ("base", "word"),
    [
        (RankSVM, "class"),
        (WithoutFit(), "no fit"),
        ("ranksvm", "no get_params"),
        (WithoutWeights(), "coef_"),
    ],
)
def test_an_unsuitable_base_is_refused(selector, data, base, word):
    with refused_parameter("base") as info:
        selector.set_params(base=base).fit(data)
    assert word in info.value.reason


def test_a_base_without_query_weights_is_refused(selector, data):
    with refused_parameter("base") as info:
        selector.set_params(base=WithoutWeights()).fit(data, query_weight=np.ones(data.n_queries))
    assert "query_weight" in info.value.reason


def test_wrong_query_weights(selector, data):
    with refused_parameter("query_weight"):
        selector.fit(data, query_weight=np.ones(3))


def test_no_pairs(selector):
    rng = np.random.default_rng(0)
    with refused_data() as info:
        selector.fit(Dataset(rng.normal(size=(8, 6)), np.ones(8), np.repeat([0, 1], 4)))
    assert "pair" in info.value.reason
