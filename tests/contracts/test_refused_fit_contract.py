"""Every estimator and selector: a rejected or interrupted fit does not change the ranker."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest

from ranksieve.baselines import AdaRank, FBPCRank, StabilitySelection
from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import write_letor
from ranksieve.path import sparse_path
from ranksieve.rankers import FenchelRank, FSMRank, MinBatSRank, RankSVM, SparseRanker
from tests.conftest import QUICK, random_dataset
from tests.rankers import ESTIMATORS, SELECTORS, of_size
from tests.refusals import refused_data

RANKERS = {**ESTIMATORS, **SELECTORS}
SMALL = {"k": 3, "n_subsamples": 6, "n_rounds": 8, **QUICK}


def data_set(seed, names=None):
    data = random_dataset(seed=seed, n_queries=30, n_features=6, longest=20)
    return data.replace_features(data.X + seed, names)


def fitted(name, **parameters):
    kind = RANKERS[name]
    names = kind().get_params(deep=False)
    values = {
        key: value for key, value in {**SMALL, **of_size(kind, 3), **parameters}.items() if key in names
    }
    return kind(**values).fit(data_set(1, [f"signal_{j}" for j in range(6)]))


def without_pairs():
    return Dataset(np.random.default_rng(0).normal(size=(8, 4)), np.ones(8), np.repeat([0, 1], 4))


def with_infinity():
    data = data_set(2)
    data.X[7, 2] = np.inf
    return data


WRONG = {
    "no pairs and another width": lambda ranker: ranker.fit(without_pairs()),
    "no pairs in arrays": lambda ranker: ranker.fit(np.eye(4), np.ones(4), qid=[0, 0, 1, 1]),
    "an infinite value": lambda ranker: ranker.fit(with_infinity()),
    "too few query weights": lambda ranker: ranker.fit(data_set(2), query_weight=np.ones(3)),
    "a negative query weight": lambda ranker: ranker.fit(data_set(2), query_weight=np.full(30, -1.0)),
    "labels and a Dataset": lambda ranker: ranker.fit(data_set(2), data_set(2).y),
}


def assert_unchanged_by(ranker, change, error=ValueError):
    test = data_set(3)
    before, scores = dict(vars(ranker)), ranker.predict(test)
    with pytest.raises(error):
        change(ranker)
    after = vars(ranker)
    assert list(after) == list(before)
    assert all(after[key] is value for key, value in before.items())
    np.testing.assert_array_equal(ranker.predict(test), scores)


@pytest.fixture(scope="module", params=RANKERS)
def ranker(request):
    return fitted(request.param)


@pytest.fixture(scope="module")
def prepared():
    return fitted("sparseranker", normalise="z", missing="column_mean")


@pytest.mark.parametrize("wrong", WRONG)
def test_a_refused_fit_changes_nothing(ranker, wrong):
    assert_unchanged_by(ranker, WRONG[wrong])


@pytest.mark.parametrize("wrong", WRONG)
def test_a_refused_fit_keeps_scales_and_means(prepared, wrong):
    assert_unchanged_by(prepared, WRONG[wrong])


@pytest.mark.parametrize("name", RANKERS)
def test_an_interrupted_fit_changes_nothing(name):
    class Stopped(RankSVM):
        now = False

        def fit(self, *args, **kwargs):
            if Stopped.now:
                raise KeyboardInterrupt
            return super().fit(*args, **kwargs)

    calls = []

    def stop(*_):
        calls.append(1)
        if len(calls) == 2 or name == "ranksvm":
            raise KeyboardInterrupt

    ranker = fitted(name, warm_start=True, base=Stopped())
    Stopped.now = True
    parameters = inspect.signature(ranker.fit).parameters
    callbacks = {key: stop for key in ("callback", "progress") if key in parameters}
    assert_unchanged_by(ranker, lambda ranker: ranker.fit(data_set(2), **callbacks), KeyboardInterrupt)


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("step", ["_task", "_fit"])
def test_a_step_of_a_fit_that_fails_at_its_end_changes_nothing(name, step, monkeypatch):
    ranker, done = fitted(name, warm_start=True), getattr(RANKERS[name], step)

    def failing(self, *args, **kwargs):
        done(self, *args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(RANKERS[name], step, failing)
    assert_unchanged_by(ranker, lambda ranker: ranker.fit(data_set(2)), KeyboardInterrupt)


@pytest.mark.parametrize("name", RANKERS)
def test_a_fit_returns_its_attributes_and_assigns_none(name):
    """Only ``_set`` assigns attributes; no step of a fit modifies an array in place."""
    ranker = fitted(name, warm_start=True)
    before, content = dict(vars(ranker)), {key: pickle.dumps(value) for key, value in vars(ranker).items()}
    task = ranker._task(data_set(2))
    attributes = ranker._fit(task)
    assert list(vars(ranker)) == list(before)
    assert all(vars(ranker)[key] is value for key, value in before.items())
    assert {key: pickle.dumps(value) for key, value in vars(ranker).items()} == content
    ranker._set(task.origin, attributes)
    assert vars(ranker)["n_features_in_"] == 6
    assert all(vars(ranker)[key] is value for key, value in attributes.items())


def test_refused_validation_data_change_nothing():
    ranker = fitted("sparseranker", normalise="z", feature_costs={"*": 1.0})
    assert_unchanged_by(ranker, lambda ranker: ranker.fit(data_set(2), valid=without_pairs()))


@pytest.mark.parametrize(
    "change",
    [
        lambda ranker, folder: ranker.partial_fit(without_pairs()),
        lambda ranker, folder: ranker.partial_fit(with_infinity()),
        lambda ranker, folder: ranker.partial_fit(data_set(2), query_weight=np.ones(3)),
        lambda ranker, folder: ranker.fit_file(folder / "no_pairs.txt", n_features=4),
        lambda ranker, folder: ranker.fit_file(folder / "damaged.txt", n_features=4),
        lambda ranker, folder: ranker.load_state(folder / "state.json"),
    ],
)
def test_refused_incremental_learning_changes_nothing(change, tmp_path):
    write_letor(without_pairs(), tmp_path / "no_pairs.txt")
    (tmp_path / "damaged.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.1\n1 qid:2 1:x\n")
    fitted("minbatsrank").save_state(tmp_path / "state.json")
    text = (tmp_path / "state.json").read_text()
    (tmp_path / "state.json").write_text(text.replace('"l1": 64.0', '"l1": 2.0, "unknown": 1'))
    assert_unchanged_by(fitted("minbatsrank"), lambda ranker: change(ranker, tmp_path))


def test_a_refused_first_fit_leaves_the_ranker_unfitted():
    ranker = MinBatSRank()
    before = dict(vars(ranker))
    with refused_data() as info:
        ranker.partial_fit(with_infinity())
    assert "is inf" in info.value.reason
    assert vars(ranker) == before


def test_warnings_name_the_line_of_the_call():
    data = random_dataset(seed=1, n_queries=20, longest=6)
    indefinite = 1.0 - 2.0 * np.eye(5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        AdaRank("ndcg@10").fit(data)
        FBPCRank(tol=1000).fit(data)
        FSMRank(similarity=indefinite, psd="warn").fit(data)
        StabilitySelection(n_subsamples=2).fit(Dataset(data.X, data.y, np.zeros(data.n_docs)))
        RankSVM().fit(data.X, data.y)
        SparseRanker(**QUICK).fit(data.X, data.y)
        FenchelRank(max_iter=1).fit(data)
        sparse_path(data, max_iter=1)
    messages = (
        "is 0 for every feature",
        "selected no feature",
        "not positive semidefinite",
        "only one query",
        "qid is",
        "FenchelRank did not reach tol",
        "points of the path did not reach",
    )
    files = [one.filename for message in messages for one in caught if message in str(one.message)]
    assert files == [__file__] * 8
