"""Every linear ranker's model records its parameters and the fingerprints of its data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from ranksieve._util.files import to_plain
from ranksieve.baselines import AdaRank, FSRank
from ranksieve.data.dataset import fingerprint
from ranksieve.rankers import MinBatSRank, RankSVM, SparseRanker, SparseRankSVM
from tests.conftest import QUICK, random_dataset
from tests.rankers import ESTIMATORS, SELECTORS, of_size

LINEAR = {name: kind for name, kind in {**ESTIMATORS, **SELECTORS}.items() if kind().can("linear")}
SMALL = {"k": 3, "n_subsamples": 6, "n_rounds": 8, **QUICK}
OTHER = {str: "other", bool: True, int: 7, float: 0.5}


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=21, n_queries=30, n_features=6, longest=20)


@pytest.fixture(params=LINEAR)
def ranker(request):
    kind = LINEAR[request.param]
    names = kind().get_params(deep=False)
    return kind(**{key: value for key, value in SMALL.items() if key in names}, **of_size(kind, 3))


def test_parameters_are_recorded_at_the_fit(ranker, data):
    expected = {name: to_plain(value) for name, value in ranker.get_params(deep=False).items()}
    before = ranker.fit(data).to_model()
    assert before.parameters == expected
    later = {name: OTHER.get(type(value), [1.0]) for name, value in ranker.get_params(deep=False).items()}
    if "missing" in later:
        later["missing"] = "zero"
    assert ranker.set_params(**later).to_model() == before


def test_a_base_is_recorded_with_its_parameters(data):
    base = RankSVM(0.5, average=True)
    recorded = FSRank(2, base=base).fit(data).to_model().parameters["base"]
    assert recorded == {"method": "RankSVM", "parameters": to_plain(base.get_params(deep=False))}
    foreign = FSRank(2, base=OtherBase()).fit(data).to_model().parameters["base"]
    assert foreign == repr(OtherBase())


class OtherBase(BaseEstimator):
    """A base from outside the package: equal weights."""

    def fit(self, X, y=None, qid=None):
        self.coef_ = np.ones(X.n_features)
        return self


def test_data_and_query_weights_are_recorded(ranker, data):
    weight = np.linspace(1, 2, data.n_queries)
    plain_fit, weighted = ranker.fit(data).to_model(), ranker.fit(data, query_weight=weight).to_model()
    assert plain_fit.data == {"train": fingerprint(data)}
    assert plain_fit.fingerprint == fingerprint(data)
    assert weighted.data.keys() == {"train", "query_weight"}
    assert ranker.fit(data, query_weight=weight.tolist()).to_model().data == weighted.data
    assert ranker.fit(data, query_weight=2 * weight).to_model().data != weighted.data


def test_validation_data_are_recorded(data):
    others = [random_dataset(seed=seed, n_queries=30, n_features=6, longest=20) for seed in (22, 23)]
    models = [SparseRanker(**QUICK).fit(data, valid=valid).to_model() for valid in others]
    assert [model.data for model in models] == [
        {"train": fingerprint(data), "valid": fingerprint(valid)} for valid in others
    ]


def test_later_changes_of_a_parameter_in_place_are_not_recorded(data):
    signs, costs = {"f1": 1}, {"*": 1.0}
    ranker = SparseRanker(signs=signs, feature_costs=costs, max_cost=3.0, **QUICK).fit(data)
    before = ranker.to_model()
    signs["f2"], costs["f1"] = -1, 9.0
    assert ranker.to_model() == before
    assert before.parameters["signs"] == {"f1": 1.0}


def test_metrics_and_certificates_keep_their_names(data):
    ranker = SparseRanker(metric="map", profile="standard", n_alphas=10).fit(data)
    ranker.set_params(metric="ndcg@5", profile="letor")
    assert list(ranker.to_model().metrics) == ["held-out map (standard)"]
    boosted = AdaRank("map").fit(data).set_params(metric="ndcg@5")
    assert list(boosted.to_model().metrics) == ["train map"]
    concave = SparseRankSVM("log").fit(data).set_params(penalty="l1")
    assert "gap_of_last_round" in concave.to_model().certificate


def test_missing_values_are_filled_as_in_the_fit(data):
    X = data.X.copy()
    X[3, 2] = np.nan
    ranker = SparseRanker(missing="zero", **QUICK).fit(data)
    holes = data.replace_features(X)
    expected = ranker.predict(holes)
    np.testing.assert_array_equal(ranker.set_params(missing="error").predict(holes), expected)


def test_incremental_learning_records_parameters_but_no_data(data, tmp_path):
    ranker = MinBatSRank(l1=2.0).partial_fit(data)
    assert ranker.to_model().data == {}
    ranker.save_state(tmp_path / "state.json")
    assert MinBatSRank().load_state(tmp_path / "state.json").to_model() == ranker.to_model()
    assert ranker.set_params(l1=5.0).to_model().parameters["l1"] == 2.0
