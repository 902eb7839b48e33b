"""MinBatSRank: a literal implementation, and bit-identical results from chunks, files and states."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given
from hypothesis import strategies as st

from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import write_letor
from ranksieve.objective import make_objective
from ranksieve.penalties import L1
from ranksieve.rankers import MinBatSRank
from ranksieve.solvers import ftrl
from ranksieve.synthetic import make_ranking
from tests.conftest import random_dataset
from tests.pairs import l1_gap
from tests.refusals import refused_data, refused_parameter
from tests.solving import prox_newton
from tests.tiers import examples


def literal(data, orders, *, l1, rate, smoothing=1.0, feature_wise=True, batch_pairs=None, query_weight=None):
    """Algorithms 1 and 2 on explicit pairs; returns w and the number of batches."""
    v, w, n, inverse_rate = (np.zeros(data.n_features) for _ in range(4))
    weight = np.ones(data.n_queries) if query_weight is None else query_weight
    tau = 0
    for q in np.concatenate(orders):
        rows = np.flatnonzero(data.qid == data.queries.ids[q])
        pairs = [(i, j) for i in rows for j in rows if data.y[i] > data.y[j] and weight[q] > 0]
        for start in range(0, len(pairs), batch_pairs or len(pairs) or 1):
            g = np.zeros(data.n_features)
            for i, j in pairs[start : start + (batch_pairs or len(pairs))]:
                x = data.X[i] - data.X[j]
                g -= weight[q] * 2.0 * max(0.0, 1.0 - w @ x) * x
            tau += 1
            n = n + g**2
            inverse_before = inverse_rate
            inverse_rate = (np.sqrt(smoothing + n) if feature_wise else np.sqrt(tau)) / rate
            v = v + g - (inverse_rate - inverse_before) * w
            w = np.where(np.abs(v) <= l1, 0.0, -(v - l1 * np.sign(v)) / inverse_rate)
    return w, tau


def in_order(data, n_epochs=1):
    return [np.arange(data.n_queries)] * n_epochs


def split(data, at):
    """The queries before number ``at``, and the others."""
    first = np.arange(data.n_queries) < at
    return data.select_queries(first), data.select_queries(~first)


STEADY = {True: 0.25, False: 0.002}  # a suitable rate for each variant


@pytest.mark.parametrize("feature_wise", [True, False])
@pytest.mark.parametrize("batch_pairs", [None, 1, 7, 10_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_passes_equal_the_literal_algorithm(feature_wise, batch_pairs, weighted):
    data = random_dataset(5, n_queries=12, n_features=6)
    rule = {"l1": 150.0 if weighted else 30.0, "rate": STEADY[feature_wise], "smoothing": 0.5}
    rule |= {"feature_wise": feature_wise, "batch_pairs": batch_pairs}
    weight = np.random.default_rng(0).integers(0, 3, 12).astype(float) if weighted else None
    ranker = MinBatSRank(**rule, n_epochs=3, shuffle=False).fit(data, query_weight=weight)
    w, n_batches = literal(data, in_order(data, 3), **rule, query_weight=weight)
    np.testing.assert_allclose(ranker.coef_, w, rtol=1e-10, atol=1e-12)
    assert ranker.n_batches_ == n_batches
    assert 0 < np.count_nonzero(w) < 6


@examples(30)
@given(
    seed=st.integers(0, 10_000),
    l1=st.just(0.0) | st.floats(1e-30, 100),
    rate=st.floats(2**-10, 0.5),
    n_levels=st.integers(2, 6),
    random_state=st.integers(0, 5),
)
def test_shuffled_epochs_follow_the_documented_orders(seed, l1, rate, n_levels, random_state):
    data = random_dataset(seed, n_queries=5, n_features=3, n_levels=n_levels)
    if not any(len(np.unique(data.y[data.qid == q])) > 1 for q in data.qid):
        return
    orders = [np.random.default_rng([random_state, e]).permutation(data.n_queries) for e in range(2)]
    ranker = MinBatSRank(l1, rate, n_epochs=2, random_state=random_state).fit(data)
    np.testing.assert_allclose(
        ranker.coef_, literal(data, orders, l1=l1, rate=rate)[0], rtol=1e-8, atol=1e-10
    )


def test_the_order_depends_only_on_the_seed(small):
    first, again, other = (MinBatSRank(n_epochs=2, random_state=seed).fit(small) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert not np.array_equal(first.coef_, other.coef_)


@pytest.mark.parametrize("feature_wise", [True, False])
@pytest.mark.parametrize("batch_pairs", [None, 5])
def test_chunks_are_bit_identical_to_one_fit(feature_wise, batch_pairs):
    data = random_dataset(7, n_queries=10)
    options = {"l1": 5.0, "rate": STEADY[feature_wise], "feature_wise": feature_wise}
    options |= {"batch_pairs": batch_pairs, "n_epochs": 1, "shuffle": False}
    whole, parts = MinBatSRank(**options).fit(data), MinBatSRank(**options)
    first, rest = split(data, 3)
    parts.partial_fit(first.X, first.y, qid=first.qid).partial_fit(rest.X, rest.y, qid=rest.qid)
    np.testing.assert_array_equal(parts.coef_, whole.coef_)
    assert (parts.n_batches_, parts.alpha_, parts.n_iter_) == (whole.n_batches_, whole.alpha_, 2)
    assert np.isnan(parts.gap_)
    assert np.isnan(parts.objective_)
    assert len(parts.trace_) == 0
    assert np.any(whole.coef_)


def test_columns_of_later_chunks_are_matched_by_name(small):
    names = [f"signal_{j}" for j in range(small.n_features)]
    first, rest = split(small.replace_features(small.X, names), 3)
    turned = rest.replace_features(rest.X[:, ::-1], names[::-1])
    same = MinBatSRank(l1=1.0).partial_fit(first).partial_fit(rest)
    other = MinBatSRank(l1=1.0).partial_fit(first).partial_fit(turned)
    assert np.any(same.coef_)
    np.testing.assert_array_equal(other.coef_, same.coef_)
    np.testing.assert_array_equal(other.predict(turned), same.predict(rest))


def test_partial_fit_continues_and_fit_restarts(small):
    expected = MinBatSRank().fit(small).coef_
    ranker = MinBatSRank().fit(small).partial_fit(small)
    assert not np.array_equal(ranker.coef_, expected)
    np.testing.assert_array_equal(ranker.fit(small).coef_, expected)


def test_warm_start_continues_the_epochs(small):
    ranker = MinBatSRank(n_epochs=2, warm_start=True).fit(small).fit(small)
    four = MinBatSRank(n_epochs=4).fit(small)
    np.testing.assert_array_equal(ranker.coef_, four.coef_)
    assert (ranker.n_iter_, ranker.alpha_, ranker.gap_) == (4, four.alpha_, four.gap_)


def scattered(data):
    """The same data with interleaved queries; the order of queries and of rows within queries is kept."""
    rank = np.arange(data.n_docs) - data.queries.offsets[data.queries.query_of_grouped]
    return data.select_rows(np.argsort(rank, kind="stable"))


def read_only(data):
    data.X.flags.writeable = False
    return data


FORMS = {
    "csr": lambda data: data.replace_features(sp.csr_array(data.X)),
    "fortran": lambda data: data.replace_features(np.asfortranarray(data.X)),
    "scattered": scattered,
    "read_only": read_only,
    "float32": lambda data: data.replace_features(data.X.astype(np.float32)),
    "csr_float32": lambda data: data.replace_features(sp.csr_array(data.X.astype(np.float32))),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("feature_wise", [True, False])
@pytest.mark.parametrize("cells", [1, 200, 1 << 20])
def test_every_kind_of_matrix_is_bit_identical(form, feature_wise, cells, monkeypatch):
    monkeypatch.setattr(ftrl, "DENSE_BLOCK_CELLS", cells)
    rng = np.random.default_rng(1)
    data = random_dataset(11, n_queries=15, n_features=8)
    X = np.round(data.X, 1).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.5] = 0.0
    X[data.qid % 3 > 0, 4:] = 0.0  # features that are 0 in most queries
    plain = data.replace_features(X)
    options = {"l1": 10.0, "rate": STEADY[feature_wise], "feature_wise": feature_wise, "n_epochs": 3}
    expected = MinBatSRank(**options).fit(plain).coef_
    data_set = FORMS[form](plain.replace_features(X.copy()))
    np.testing.assert_array_equal(MinBatSRank(**options).fit(data_set).coef_, expected)
    assert np.any(expected[4:])


def test_the_order_of_rows_within_a_query_only_affects_rounding(small):
    rows = np.concatenate([np.flatnonzero(small.qid == q)[::-1] for q in small.queries.ids])
    turned = MinBatSRank().fit(small.select_rows(rows))
    np.testing.assert_allclose(turned.coef_, MinBatSRank().fit(small).coef_, rtol=1e-9)


def test_a_query_of_weight_zero_equals_its_absence(small):
    weight = np.ones(small.n_queries)
    weight[2] = 0.0
    with_it = MinBatSRank(shuffle=False).fit(small, query_weight=weight)
    without = MinBatSRank(shuffle=False).fit(small.select_queries(weight > 0))
    np.testing.assert_array_equal(with_it.coef_, without.coef_)
    assert with_it.gap_ == pytest.approx(without.gap_, rel=1e-12)


def test_objective_and_gap_of_the_equivalent_problem(small):
    ranker = MinBatSRank(l1=20.0, n_epochs=4).fit(small)
    n_pairs = make_objective(small).loss.normaliser
    assert ranker.alpha_ == pytest.approx(20.0 / (4 * n_pairs))
    objective, gap = l1_gap(small.X, small.y, small.qid, ranker.coef_, np.full(5, ranker.alpha_))
    assert ranker.objective_ == pytest.approx(objective, rel=1e-9)
    assert ranker.gap_ == pytest.approx(gap, rel=1e-9)
    assert ranker.trace_.objective[-1] == ranker.objective_
    assert len(ranker.trace_) == ranker.n_iter_ + 1 == 5
    assert ranker.trace_.objective[0] == 1.0


def test_many_passes_without_l1_approach_the_optimum():
    data = random_dataset(2, n_queries=20, n_features=5)
    best = prox_newton(make_objective(data), L1(1e-9), tol=1e-8)
    far, near = (MinBatSRank(0.0, 0.1, n_epochs=n).fit(data) for n in (1, 300))
    assert near.objective_ - best.objective < 0.01 * (far.objective_ - best.objective)
    np.testing.assert_allclose(near.coef_, best.w, atol=0.02)


def test_the_gap_bounds_the_distance_from_the_optimum():
    data = random_dataset(2, n_queries=20, n_features=5)
    ranker = MinBatSRank(100.0, n_epochs=3).fit(data)
    best = prox_newton(make_objective(data), L1(ranker.alpha_), tol=1e-10)
    assert ranker.gap_ >= ranker.objective_ - best.objective > 0


def test_callback_is_called_once_per_epoch(small):
    calls = []
    ranker = MinBatSRank(n_epochs=3).fit(small, callback=lambda *arguments: calls.append(arguments))
    assert [epoch for epoch, *_ in calls] == [0, 1, 2, 3]
    np.testing.assert_array_equal(calls[-1][1], ranker.coef_)
    assert not calls[0][1].any()
    assert not np.array_equal(calls[1][1], ranker.coef_)
    assert [objective for *_, objective, _ in calls] == ranker.trace_.objective


@pytest.mark.parametrize("keep", ["file", "pickle"])
def test_learning_continues_from_a_state_bit_for_bit(small, tmp_path, keep):
    first, rest = split(small, 3)
    ranker = MinBatSRank(np.float32(7.5), 0.3, smoothing=0.1, batch_pairs=4).partial_fit(first)
    if keep == "file":
        ranker.save_state(tmp_path / "state.json")
        again = MinBatSRank().load_state(tmp_path / "state.json")
    else:
        again = pickle.loads(pickle.dumps(ranker))
    assert again.get_params() == ranker.get_params()
    np.testing.assert_array_equal(again.predict(first), ranker.predict(first))
    np.testing.assert_array_equal(again.partial_fit(rest).coef_, ranker.partial_fit(rest).coef_)
    assert (again.n_iter_, again.n_batches_, again.alpha_) == (2, ranker.n_batches_, ranker.alpha_)
    assert list(again.feature_names_in_) == list(small.feature_names)


def test_state_keeps_the_preparation(small, tmp_path):
    small.X[2, 1] = np.nan
    first, rest = split(small, 3)
    ranker = MinBatSRank(1.0, normalise="z", missing="column_mean").partial_fit(first)
    ranker.save_state(tmp_path / "state.json")
    again = MinBatSRank().load_state(tmp_path / "state.json")
    assert again.preparation_ == ranker.preparation_
    np.testing.assert_array_equal(again.predict(rest), ranker.predict(rest))
    np.testing.assert_array_equal(again.partial_fit(rest).coef_, ranker.partial_fit(rest).coef_)


def test_damaged_state_files(small, tmp_path):
    path = tmp_path / "state.json"
    MinBatSRank().fit(small).save_state(path)
    good = path.read_text()
    for damaged in (
        good[:50],
        "[]",
        "{}",
        good.replace('"n_pairs"', '"n"'),
        good.replace('"policy"', '"police"'),
        good.replace('"sums": [', '"sums": [0,'),
    ):
        path.write_text(damaged)
        with refused_data(path):
            MinBatSRank().load_state(path)
    path.write_text(good.replace('"format_version": 1', '"format_version": 2'))
    with refused_data(path) as info:
        MinBatSRank().load_state(path)
    assert "version 1" in info.value.reason
    with pytest.raises(FileNotFoundError, match="no such file"):
        MinBatSRank().load_state(tmp_path / "absent.json")


@pytest.mark.parametrize("sparse", [False, True])
def test_a_file_is_bit_identical_to_data_in_memory(tmp_path, sparse):
    data = make_ranking(n_queries=40, n_features=8, n_informative=3, random_state=3)
    write_letor(data, tmp_path / "data.txt")
    in_memory = MinBatSRank(n_epochs=2, shuffle=False).fit(data)
    epochs = []
    ranker = MinBatSRank(n_epochs=2).fit_file(
        tmp_path / "data.txt", n_features=8, sparse=sparse, chunk_bytes=2000,
        callback=lambda epoch, *_: epochs.append(epoch),
    )  # fmt: skip
    np.testing.assert_array_equal(ranker.coef_, in_memory.coef_)
    np.testing.assert_array_equal(ranker.predict(data), in_memory.predict(data))
    assert (ranker.alpha_, ranker.n_iter_, epochs) == (in_memory.alpha_, 2, [0, 1, 2])
    assert np.any(ranker.coef_)
    ranker.to_model().save(tmp_path / "model.json")


@pytest.mark.parametrize("feature_wise", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_number_of_features_of_a_file_can_be_unknown(tmp_path, sparse, feature_wise):
    data = make_ranking(n_queries=40, n_features=8, n_informative=3, random_state=3)
    data.X[:150, 5:] = 0.0  # the last features appear late
    write_letor(Dataset(sp.csr_array(data.X), data.y, data.qid), tmp_path / "data.txt")
    parameters = {"n_epochs": 2, "feature_wise": feature_wise, "rate": 0.001, "l1": 2.0}
    in_memory = MinBatSRank(shuffle=False, **parameters).fit(data)
    ranker = MinBatSRank(**parameters).fit_file(tmp_path / "data.txt", sparse=sparse, chunk_bytes=2000)
    np.testing.assert_array_equal(ranker.coef_, in_memory.coef_)
    assert (ranker.n_features_in_, ranker.alpha_) == (8, in_memory.alpha_)
    assert np.any(ranker.coef_[5:])
    (tmp_path / "narrow.txt").write_text("1 qid:a 2:1\n0 qid:a 1:2\n")
    assert len(ranker.fit_file(tmp_path / "narrow.txt").coef_) == 2
    ranker.set_params(warm_start=True).fit_file(tmp_path / "data.txt")
    assert (len(ranker.coef_), ranker.n_iter_) == (8, 4)
    assert len(ranker.fit_file(tmp_path / "narrow.txt").coef_) == 8


def test_missing_values_of_a_file_are_filled(tmp_path):
    data = make_ranking(n_queries=20, n_features=4, n_informative=2, random_state=3)
    data.X[::7, 1] = np.nan
    write_letor(data, tmp_path / "data.txt")
    in_memory = MinBatSRank(missing="zero", shuffle=False).fit(data)
    ranker = MinBatSRank(missing="zero").fit_file(tmp_path / "data.txt", n_features=4)
    assert ranker.preparation_ == in_memory.preparation_
    np.testing.assert_array_equal(ranker.predict(data), in_memory.predict(data))
    with_argument = MinBatSRank().fit_file(tmp_path / "data.txt", n_features=4, missing="zero")
    np.testing.assert_array_equal(with_argument.predict(data), in_memory.predict(data))
    with refused_parameter("missing", "column_mean"):
        MinBatSRank(missing="column_mean").fit_file(tmp_path / "data.txt", n_features=4)


def test_unusable_files(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:a 1:1\n1 qid:a 1:2\n")
    with refused_data() as info:
        MinBatSRank().fit_file(path, n_features=1)
    assert "pair" in info.value.reason
    with refused_parameter("n_epochs", 5):
        MinBatSRank(n_epochs=5).fit_file("-", n_features=1)
    path.write_text("1 qid:a 1:NULL\n0 qid:a 1:2\n")
    with refused_data() as info:
        MinBatSRank().fit_file(path, n_features=1, missing="keep")
    assert "missing" in info.value.reason


def test_a_chunk_without_pairs_changes_nothing(small):
    flat = Dataset(small.X[:3], np.ones(3), [0, 0, 0])
    ranker = MinBatSRank().partial_fit(flat)
    assert not np.any(ranker.coef_)
    assert ranker.alpha_ == np.inf
    np.testing.assert_array_equal(ranker.partial_fit(small).coef_, MinBatSRank().partial_fit(small).coef_)


@pytest.mark.parametrize(
    "parameters",
    [
        {"rate": 0.0},
        {"rate": np.inf},
        {"l1": -1.0},
        {"smoothing": -1.0},
        {"n_epochs": 0},
        {"batch_pairs": 0},
        {"batch_pairs": 2.5},
        {"random_state": -1},
    ],
)
def test_bad_parameters(small, parameters):
    for learn in ("fit", "partial_fit"):
        with refused_parameter(*next(iter(parameters.items()))):
            getattr(MinBatSRank(**parameters), learn)(small)


def test_bad_chunks(small):
    ranker = MinBatSRank().partial_fit(small.X, small.y, qid=small.qid)
    before = ranker.coef_.copy()
    with refused_data() as info:
        ranker.partial_fit(Dataset(small.X[:, :4], small.y, small.qid))
    assert "5 features" in info.value.reason
    with pytest.raises(ValueError, match="X has 4 features, but MinBatSRank is expecting 5"):
        ranker.partial_fit(small.X[:, :4], small.y, qid=small.qid)
    holes = small.X.copy()
    holes[3, 1] = np.nan
    with refused_data() as info:
        ranker.partial_fit(Dataset(holes, small.y, small.qid))
    assert "feature f2 of row 3" in info.value.reason
    with refused_parameter("y"):
        ranker.partial_fit(small, small.y)
    with refused_parameter("query_weight"):
        ranker.partial_fit(small, query_weight=np.ones(2))
    np.testing.assert_array_equal(ranker.coef_, before)


def test_divergence_is_an_error_and_keeps_the_state(small):
    ranker = MinBatSRank().partial_fit(small)
    before = ranker.coef_.copy()
    with refused_parameter("rate", 0.0625):
        ranker.partial_fit(small.replace_features(small.X * 1e200))
    with refused_parameter("rate", 64.0):
        MinBatSRank(0.0, 64.0, feature_wise=False, n_epochs=40).fit(small)
    np.testing.assert_array_equal(ranker.coef_, before)


def test_partial_fit_without_query_ids_warns(small):
    ranker = MinBatSRank()
    for _ in range(2):
        with pytest.warns(UserWarning, match="qid is None"):
            ranker.partial_fit(small.X, small.y)


def test_routing_passes_groups_to_partial_fit():
    with sklearn.config_context(enable_metadata_routing=True):
        requests = MinBatSRank().get_metadata_routing().partial_fit.requests
    assert requests["qid"] == "groups"


def test_smoothing_zero_and_a_constant_feature(small):
    X = small.X.copy()
    X[:, 2] = 0.0
    ranker = MinBatSRank(l1=0.0, smoothing=0.0).fit(small.replace_features(X))
    assert ranker.coef_[2] == 0.0
    assert np.count_nonzero(ranker.coef_) == 4
