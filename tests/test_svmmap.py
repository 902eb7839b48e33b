"""SVM-MAP: the most violated ranking against all rankings, the optimum, results on LETOR."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from ranksieve._parallel import use_threads
from ranksieve.baselines import SVMMAP
from ranksieve.baselines.losses import AveragePrecisionHinge, BoundAveragePrecisionHinge
from ranksieve.data.dataset import Dataset
from ranksieve.data.queries import one_query
from ranksieve.io.folds import load_letor_folds
from ranksieve.methods import METHODS
from tests.conftest import random_dataset
from tests.protocol import five_fold
from tests.refusals import refused_data, refused_parameter
from tests.tiers import examples


def average_precision(marks):
    """AP of relevance values in rank order."""
    hits = np.flatnonzero(marks)
    return float(np.mean([(k + 1) / (place + 1) for k, place in enumerate(hits)]))


def psi_coefficients(order, relevant):
    """c with ⟨w, Ψ⟩ = ⟨c, s⟩: ±1/(RI) for each pair of a relevant and an irrelevant document."""
    c, place = np.zeros(len(order)), np.argsort(order)
    up, low = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    for i in up:
        for j in low:
            sign = 1.0 if place[i] < place[j] else -1.0
            c[i] += sign / (len(up) * len(low))
            c[j] -= sign / (len(up) * len(low))
    return c


def all_planes(relevant):
    """(1 − AP, coefficients of Ψ(π) − Ψ(π*)) of every ranking π."""
    best = psi_coefficients(np.argsort(~relevant, kind="stable"), relevant)
    for order in itertools.permutations(range(len(relevant))):
        order = np.array(order)
        yield 1 - average_precision(relevant[order]), psi_coefficients(order, relevant) - best


@examples(40)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 10_000), st.sampled_from([0.0, 0.1, 0.5, 3.0]))
def test_the_most_violated_ranking_against_all_rankings(n_up, n_low, seed, spread):
    rng = np.random.default_rng(seed)
    relevant = rng.permutation(np.repeat([True, False], [n_up, n_low]))
    s = np.round(rng.normal(scale=spread, size=len(relevant)), 1)  # rounded to have ties
    at = BoundAveragePrecisionHinge(relevant, one_query(len(s))).evaluate(s)
    missed, c = (np.array(part) for part in zip(*all_planes(relevant), strict=True))
    values = missed + c @ s
    assert at.value == pytest.approx(values.max(), abs=1e-12)
    assert at.slack + at.gradient @ s == pytest.approx(at.value, abs=1e-12)
    # The subgradient is a mean of the planes with the maximum value.
    top = values >= values.max() - 1e-9
    target = np.append(at.gradient, [at.slack, 1.0])
    planes = np.vstack([c[top].T, missed[top], np.ones(top.sum())])
    fit = linprog(np.zeros(top.sum()), A_eq=planes, b_eq=target)
    assert fit.status == 0


def test_longer_lists_against_all_interleavings():
    rng = np.random.default_rng(3)
    relevant = np.repeat([True, False], [5, 6])
    for spread in (0.05, 0.3, 1.0):
        s = np.concatenate([np.sort(rng.normal(size=5))[::-1], np.sort(rng.normal(size=6))[::-1]]) * spread
        values = []
        for places in itertools.combinations(range(11), 5):
            order = np.empty(11, dtype=int)
            order[list(places)] = np.arange(5)
            order[np.setdiff1d(np.arange(11), places)] = np.arange(5, 11)
            c = psi_coefficients(order, relevant) - psi_coefficients(np.arange(11), relevant)
            values.append(1 - average_precision(relevant[order]) + c @ s)
        assert BoundAveragePrecisionHinge(relevant, one_query(11)).evaluate(s).value == pytest.approx(
            max(values)
        )


def test_the_loss_is_an_upper_bound_of_one_minus_ap():
    data = random_dataset(seed=4, n_queries=15)
    relevant = data.y >= 1
    s = np.random.default_rng(0).normal(size=data.n_docs)
    total = 0.0
    for q in range(15):
        rows = np.flatnonzero(data.qid == q)
        if 0 < relevant[rows].sum() < len(rows):
            total += 1 - average_precision(relevant[rows[np.argsort(-s[rows])]])
    assert BoundAveragePrecisionHinge(relevant, data.queries).evaluate(s).value >= total > 0


def objective(w, data, C):
    loss = BoundAveragePrecisionHinge(data.y >= 1, data.queries)
    return loss.evaluate(data.X @ w).value / loss.normaliser + w @ w / (2 * C)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_weights_are_optimal(C):
    data = random_dataset(seed=5, n_queries=15, n_features=3)
    fitted = SVMMAP(C, tol=1e-6).fit(data)
    assert fitted.gap_ <= 1e-6
    assert fitted.converged_
    assert fitted.objective_ == pytest.approx(objective(fitted.coef_, data, C), abs=1e-12)
    for start in (fitted.coef_, np.zeros(3), np.ones(3)):
        other = minimize(
            objective,
            start,
            (data, C),
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000},
        )
        assert fitted.objective_ <= other.fun + 1e-6


def test_epsilon_is_the_largest_gap():
    data = random_dataset(seed=6, n_queries=20)
    tight = SVMMAP(tol=1e-5).fit(data)
    for epsilon in (0.1, 1e-2, 1e-3):
        fitted = SVMMAP(tol=epsilon).fit(data)
        assert fitted.gap_ <= epsilon
        assert fitted.objective_ - tight.objective_ <= fitted.gap_ + 1e-12
    assert not SVMMAP(tol=1e-6, max_iter=2).fit(data).converged_


def test_a_query_of_weight_two_counts_as_two():
    data = random_dataset(seed=7, n_queries=8)
    weight = np.array([1.0, 2.0, 1.0, 1.0, 0.0, 1.0, 2.0, 1.0])
    copies = [np.flatnonzero(data.qid == q) for q in range(8) for _ in range(int(weight[q]))]
    qid, rows = np.repeat(np.arange(len(copies)), [len(r) for r in copies]), np.concatenate(copies)
    weighted = SVMMAP(tol=1e-7).fit(data, query_weight=weight)
    repeated = SVMMAP(tol=1e-7).fit(data.X[rows], data.y[rows], qid=qid)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=1e-6)


def test_constant_features_have_weight_zero():
    data = random_dataset(seed=8, n_queries=10, n_features=3)
    X = np.column_stack([data.X[:, 0], data.qid * 0.1, data.X[:, 1:]])
    fitted = SVMMAP().fit(X, data.y, qid=data.qid)
    assert fitted.coef_[1] == 0.0
    assert np.count_nonzero(fitted.coef_) == 3


def test_warm_start_saves_planes():
    data = random_dataset(seed=9, n_queries=20)
    fitted = SVMMAP(warm_start=True).fit(data)
    first = fitted.n_iter_
    again = fitted.fit(data)
    assert again.gap_ <= 1e-3
    assert again.n_iter_ <= first


def test_threads_do_not_change_results(small_blocks):
    data = random_dataset(seed=10, n_queries=300, longest=30)
    fits = []
    for n in (1, 2):
        with use_threads(n):
            fits.append(SVMMAP().fit(data).coef_)
    np.testing.assert_array_equal(*fits)


def test_threshold_of_relevance():
    assert AveragePrecisionHinge(None).relevant(np.array([0.0, 1.0, 2.0])).tolist() == [False, True, True]
    assert AveragePrecisionHinge(2.0).relevant(np.array([0.0, 1.0, 2.0])).tolist() == [False, False, True]
    assert AveragePrecisionHinge(None).relevant(np.array([1.0, 2.0, 3.0])).tolist() == [False, True, True]
    assert AveragePrecisionHinge(None).relevant(np.array([-1.0, 0.5, -1.0])).tolist() == [False, True, False]
    assert AveragePrecisionHinge(1.0).relevant(np.array([1.0, 2.0])).tolist() == [True, True]


def test_data_without_relevant_and_irrelevant_documents_are_refused(small):
    no_pairs = Dataset(np.eye(4), [0, 0, 1, 1], [0, 0, 1, 1])
    with refused_data() as info:
        SVMMAP().fit(no_pairs)
    assert "relevant" in info.value.reason
    with refused_data() as info:
        SVMMAP(relevant_from=7).fit(small)
    assert "relevant_from" in info.value.reason


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": 0.0},
        {"tol": -1.0},
        {"max_iter": 0},
    ],
)
def test_bad_parameters(parameters, small):
    with refused_parameter(*next(iter(parameters.items()))):
        SVMMAP(**parameters).fit(small)


PUBLISHED = {"OHSUMED": (0.4319, 0.4453), "MQ2008": (0.2179, 0.4569)}  # N@10 and MAP


@pytest.mark.letor
@pytest.mark.parametrize("data_set", PUBLISHED)
def test_published_numbers(letor_root, data_set):
    method = METHODS["svmmap"]
    row = five_fold(method.make, method.grid, load_letor_folds(data_set, letor_root), n_jobs=2).to_row()
    assert (row["ndcg@10"], row["map"]) == pytest.approx(PUBLISHED[data_set], abs=0.02)
