"""Selectors against their definitions: brute force, literal implementations, planted features."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from ranksieve.baselines import FSMSVM, GAS, FBPCRank, FSRank, StabilitySelection
from ranksieve.baselines.filters import greedy, loss_drop
from ranksieve.baselines.wrappers import JointMinimum, forward_backward
from ranksieve.data.dataset import Dataset
from ranksieve.io.folds import load_letor_folds
from ranksieve.losses import CostSensitiveListMLE
from ranksieve.metrics import evaluate
from ranksieve.objective import LocalObjective, make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties.similarity import nearest_positive_semidefinite
from ranksieve.rankers import FSMRank, RankSVM, SparseRankSVM
from ranksieve.rankers.measures import feature_importance, feature_similarity
from ranksieve.synthetic import make_ranking
from tests.conftest import random_dataset
from tests.refusals import refused_data, refused_parameter
from tests.tiers import examples


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=3, n_queries=25, n_features=8, longest=25)


def equal_columns(n_features=5):
    """Data with equal features: ties everywhere."""
    data = random_dataset(seed=4, n_queries=20, n_features=1, longest=25)
    return Dataset(np.repeat(data.X, n_features, axis=1), data.y, data.qid)


# FS-Rank


@pytest.mark.parametrize("metric", ["ndcg@10", "map", "ndcg@3"])
def test_fsrank_selects_the_best_single_features(data, metric):
    def alone(column):
        return max(evaluate(s, data, metric, "letor").mean[metric] for s in (column, -column))

    values = np.array([alone(column) for column in data.X.T])
    fitted = FSRank(max_features=3, metric=metric).fit(data)
    np.testing.assert_allclose(fitted.importance_, values)
    np.testing.assert_array_equal(fitted.selected_, np.argsort(-values)[:3])


def test_ties_everywhere_are_broken_by_the_order_of_columns():
    tied = equal_columns()
    assert FSRank(max_features=3).fit(tied).selected_.tolist() == [0, 1, 2]
    assert GAS(max_features=3).fit(tied).selected_.tolist() == [0, 1, 2]
    assert FSMSVM(max_features=3).fit(tied).selected_.tolist() == [0, 1, 2]
    assert FBPCRank().fit(tied).selected_.tolist() == [0]
    assert FBPCRank(RankSVM()).fit(tied).selected_.tolist() == [0]


def test_fsrank_with_an_unknown_metric(data):
    with refused_parameter("metric", "ncdg"):
        FSRank(max_features=2, metric="ncdg@10").fit(data)


# GAS


def literal_gas(importance, similarity, c, k):
    """Algorithm 1 of Geng et al. with a dictionary of scores."""
    score, chosen = dict(enumerate(importance)), []
    for _ in range(k):
        best = max(score, key=lambda j: (score[j], -j))
        chosen.append(best)
        del score[best]
        for j in score:
            score[j] -= similarity[best, j] * 2 * c
    return chosen


@examples(40)
@given(st.integers(0, 2**31), st.integers(1, 9), st.floats(0, 2))
def test_greedy_search_equals_the_published_algorithm(seed, k, c):
    rng = np.random.default_rng(seed)
    importance, A = rng.random(9), rng.random((9, 9))
    similarity = (A + A.T) / 2
    selected, scores = greedy(importance, similarity, c, np.arange(9), k)
    assert selected.tolist() == literal_gas(importance, similarity, c, k)
    assert scores[0] == importance.max()
    assert np.all(np.diff(scores) <= 0)


def test_gas_with_its_measures(data):
    for importance in ("ndcg", "map"):
        fitted = GAS(max_features=4, importance=importance, c=0.1).fit(data)
        s, A = feature_importance(importance, data), feature_similarity("kendall", data)
        assert fitted.selected_.tolist() == literal_gas(s, A, 0.1, 4)
    np.testing.assert_array_equal(
        GAS(max_features=4, c=0).fit(data).selected_, FSRank(max_features=4).fit(data).selected_
    )


def test_gas_does_not_select_copies(data):
    best = FSRank(max_features=1).fit(data).selected_[0]
    copied = Dataset(np.column_stack([data.X, data.X[:, best] * 2 + 1]), data.y, data.qid)
    assert {best, 8} <= set(GAS(max_features=4, c=0).fit(copied).selected_)
    assert 8 not in GAS(max_features=4, c=0.5).fit(copied).selected_


def test_loss_importance_is_the_decrease_of_the_loss_by_one_weight(data):
    objective = make_objective(data)

    def least(j):
        def loss(w):
            return objective.evaluate(w * np.eye(data.n_features)[j]).value

        return minimize_scalar(loss, bracket=(-1, 1), tol=1e-12).fun

    expected = [1 - least(j) for j in range(data.n_features)]
    np.testing.assert_allclose(loss_drop(data), expected, atol=1e-10)
    assert (
        GAS(max_features=3, importance="loss", c=0).fit(data).selected_.tolist()
        == np.argsort(expected)[::-1][:3].tolist()
    )


def test_loss_importance_of_a_perfect_and_of_a_useless_feature():
    y = np.array([0.0, 1.0, 2.0, 0.0, 2.0])
    X = np.column_stack([y * 1e-3, -y * 1e3, np.ones(5)])
    np.testing.assert_allclose(loss_drop(Dataset(X, y, [0, 0, 0, 1, 1])), [1.0, 1.0, 0.0], atol=1e-12)


def test_gas_with_custom_measures(data):
    importance = np.array([0.1, 0.9, 0.8, 0.0, 0.5, 0.2, 0.3, 0.0])
    measures = {"importance": importance, "similarity": np.eye(8)}
    assert GAS(max_features=3, **measures).fit(data).selected_.tolist() == [1, 2, 4]
    with refused_parameter("max_features", 7):
        GAS(max_features=7, **measures).fit(data)


@pytest.mark.parametrize(
    "parameters",
    [
        {"importance": np.ones(3)},
        {"similarity": np.eye(3)},
        {"importance": "los"},
        {"similarity": "kendal"},
    ],
)
def test_gas_with_wrong_measures(data, parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        GAS(max_features=2, **parameters).fit(data)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (GAS, {"c": -1.0, "max_features": 2}),
        (FBPCRank, {"max_features": 0}),
        (FBPCRank, {"tol": -1.0}),
        (FBPCRank, {"C": 0.0}),
        (StabilitySelection, {"n_subsamples": 0}),
        (StabilitySelection, {"share": 1.0}),
        (StabilitySelection, {"threshold": 0.5}),
        (StabilitySelection, {"max_features": 0}),
        (StabilitySelection, {"n_alphas": 0}),
        (StabilitySelection, {"min_ratio": 2.0}),
    ],
)
def test_parameters_of_wrong_types(data, kind, parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        kind(**parameters).fit(data)


def test_gas_with_700_features():
    wide = make_ranking(n_queries=20, n_features=700, n_informative=20, docs_per_query=20, random_state=0)
    chosen = GAS(max_features=50, c=0.05).fit(wide).selected_
    assert len(set(chosen)) == 50


# FSMSVM


def test_fsmsvm_selects_the_largest_weights_of_fsmrank(data):
    weights = FSMRank(1e-3, 1e-2).fit(data).coef_
    fitted = FSMSVM(max_features=3, alpha=1e-3, similarity_weight=1e-2).fit(data)
    np.testing.assert_array_equal(fitted.selected_, np.argsort(-np.abs(weights))[:3])
    np.testing.assert_array_equal(fitted.fsmrank_.coef_, weights)


def test_fsmsvm_continues_by_importance_after_fsmranks_weights(data):
    fitted = FSMSVM(max_features=6, alpha=0.2).fit(data)
    weights, importance = fitted.fsmrank_.coef_, fitted.fsmrank_.importance_
    used = int(np.count_nonzero(weights))
    assert 1 <= used < 6
    assert set(fitted.selected_[:used]) == set(np.flatnonzero(weights))
    rest = np.flatnonzero(weights == 0)
    np.testing.assert_array_equal(fitted.selected_[used:], rest[np.argsort(-importance[rest])][: 6 - used])


@pytest.mark.parametrize(("name", "shape"), [("importance", (3,)), ("similarity", (3, 3))])
def test_fsmsvm_with_measures_of_wrong_shape(data, name, shape):
    with refused_parameter(name):
        FSMSVM(max_features=2, **{name: np.ones(shape)}).fit(data)


# FBPCRank


def joint(data, C=1.0, loss=None):
    A = nearest_positive_semidefinite(feature_similarity("pearson", data))
    bound = None if loss is None else loss.bind(data.y, data.queries)
    objective = make_objective(data) if bound is None else LocalObjective(data.X, bound)
    return JointMinimum(objective, C, A)


def value_by_scipy(criterion, columns):
    """The value of a set by BFGS."""
    if not columns:
        return criterion.C * criterion.objective.at_zero.value
    A = criterion.similarity[np.ix_(columns, columns)]

    def value(v):
        w = np.zeros(criterion.objective.n_features)
        w[list(columns)] = v
        point = criterion.objective.evaluate(w)
        slope = criterion.C * criterion.objective.gradient(point)[list(columns)] + A @ v
        return criterion.C * point.value + 0.5 * v @ A @ v, slope

    return minimize(value, np.zeros(len(columns)), jac=True, method="BFGS", options={"gtol": 1e-10}).fun


@pytest.mark.parametrize("loss", [None, CostSensitiveListMLE()])
def test_value_of_a_set_is_the_joint_minimum(data, loss):
    criterion = joint(data, 3.0, loss)
    subset = criterion.empty
    for j in (4, 0, 6):
        subset = criterion.grow(subset, j)
        assert subset.value == pytest.approx(value_by_scipy(criterion, subset.columns), rel=1e-9)
    smaller = criterion.shrink(subset, 0)
    assert smaller.columns == (4, 6)
    assert smaller.value == pytest.approx(value_by_scipy(criterion, (4, 6)), rel=1e-9)


@examples(15)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 3.0, 100.0]))
def test_bounds_on_gain_and_loss_are_valid(seed, C):
    criterion = joint(random_dataset(seed=seed, n_queries=12, n_features=6, longest=12), C)
    subset = criterion.empty
    for j in np.random.default_rng(seed).permutation(6)[:4]:
        for other in set(range(6)) - set(subset.columns):
            gain = subset.value - criterion.grow(subset, other).value
            assert -1e-9 <= gain <= criterion.max_decrease(subset)[other] + 1e-9
        subset = criterion.grow(subset, int(j))
        for i, member in enumerate(subset.columns):
            rise = criterion.shrink(subset, member).value - subset.value
            assert rise >= criterion.min_increase(subset)[i] - 1e-9


def literal_fbpc(value, d, K, eps):
    """Algorithm 2 with corrected inequalities, trying every feature."""
    R, moves = [], []
    for _ in range(d):
        if len(R) == d:
            break
        best = min((j for j in range(d) if j not in R), key=lambda j: value([*R, j]))
        if value(R) - value([*R, best]) <= eps:
            break
        R = [*R, best]
        moves.append(("in", best))
        while R:
            least = min(R, key=lambda j: value([i for i in R if i != j]))
            smaller = [i for i in R if i != least]
            if value(smaller) - value(R) >= eps:
                break
            R = smaller
            moves.append(("out", least))
        if len(R) >= K:
            break
    return R, moves


def with_a_sum(seed=0):
    """The label depends on features 1 and 2; feature 0, their noisy sum, is the best one but redundant."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(40), 15)
    X = rng.normal(size=(600, 5))
    s = X[:, 1] + X[:, 2]
    X[:, 0] = s + rng.normal(size=600)
    return Dataset(X, np.digitize(s, [0.5, 1.5]).astype(float), qid)


@pytest.mark.parametrize(("C", "eps"), [(0.3, 0.005), (1.0, 0.005), (3.0, 0.02), (10.0, 0.005)])
@pytest.mark.parametrize("make", [lambda: random_dataset(seed=3, n_queries=25, n_features=8), with_a_sum])
def test_forward_backward_equals_exhaustive_steps(C, eps, make):
    data = make()
    fitted = FBPCRank(max_features=6, C=C, tol=eps).fit(data)
    criterion = joint(data, C)
    cache = {}

    def value(columns):
        key = tuple(sorted(columns))
        return cache.setdefault(key, value_by_scipy(criterion, key))

    R, moves = literal_fbpc(value, data.n_features, 6, eps)
    assert fitted.selected_.tolist() == R
    assert [(step.action, step.feature) for step in fitted.steps_] == moves
    assert fitted.value_ == pytest.approx(value(R), rel=1e-8)


def test_redundant_features_are_removed():
    fitted = FBPCRank(C=3.0, tol=0.02).fit(with_a_sum())
    actions = [(step.action, step.name) for step in fitted.steps_]
    assert actions == [("in", "f1"), ("in", "f3"), ("in", "f2"), ("out", "f1")]
    assert fitted.selected_.tolist() == [2, 1]
    assert fitted.steps_[-1].objective == fitted.value_
    *gains, cost = np.diff([3.0, *(step.objective for step in fitted.steps_)])
    assert max(gains) < -0.02
    assert 0 < cost < 0.02


def test_fbpcrank_stops_at_K(data):
    assert len(FBPCRank(max_features=2, C=100.0, tol=0.0).fit(data).selected_) == 2
    assert len(FBPCRank(max_features=100, C=100.0, tol=0.0).fit(data).selected_) == 8


def test_fbpcrank_with_a_ranker(data):
    """The value of a set is the minimum over multiples of the ranker's weights."""
    base = SparseRankSVM(alpha=1e-3)
    fitted = FBPCRank(base, max_features=3).fit(data)
    A, objective = fitted.similarity_, make_objective(data)

    def value(columns):
        if not columns:
            return 1.0
        order = sorted(columns)
        w = np.zeros(8)
        w[order] = SparseRankSVM(alpha=1e-3).fit(data.X[:, order], data.y, qid=data.qid).coef_
        along = minimize_scalar(
            lambda t: objective.evaluate(t * w).value + 0.5 * t * t * w @ A @ w, tol=1e-12
        )
        return along.fun

    R, _ = literal_fbpc(value, 8, 3, 0.005)
    assert fitted.selected_.tolist() == R
    assert fitted.value_ == pytest.approx(value(R), rel=1e-8)


def test_fbpcrank_with_a_ranker_without_features(data):
    with pytest.warns(UserWarning, match="FBPCRank selected no feature"):
        assert len(FBPCRank(SparseRankSVM(alpha=10.0)).fit(data).selected_) == 0


def test_fbpcrank_can_use_the_base_only_in_the_second_stage(data):
    base = RankSVM(C=0.5)
    fitted = FBPCRank(base, weights="joint").fit(data)
    np.testing.assert_array_equal(fitted.selected_, FBPCRank().fit(data).selected_)
    assert fitted.base_.C == 0.5


def test_no_feature_improves_by_tol(data):
    with pytest.warns(UserWarning, match="FBPCRank selected no feature, .* C=1"):
        fitted = FBPCRank(tol=0.9).fit(data)
    assert not fitted.get_support().any()
    assert not fitted.predict(data).any()
    assert fitted.base_ is None
    assert fitted.to_model().terms == ()


@pytest.mark.parametrize(
    ("parameters", "facts"),
    [
        ({"loss": "hinge"}, ("solver", "dense_newton")),
        ({"weights": "jiont"}, ("weights", "jiont")),
        ({"similarity": np.ones((2, 3))}, ("similarity", np.ones((2, 3)))),
    ],
)
def test_fbpcrank_with_wrong_parameters(data, parameters, facts):
    with refused_parameter(*facts):
        FBPCRank(**parameters).fit(data)


def test_search_over_equal_features():
    """With copies A is singular and the bounds are useless, so everything is tried."""
    data = equal_columns(3)
    best, _ = forward_backward(joint(data, 50.0), np.arange(3), 3, 0.0)
    assert 1 <= len(best.columns) <= 3
    assert best.value == pytest.approx(value_by_scipy(joint(data, 50.0), best.columns), rel=1e-7)


# Stability selection


@pytest.fixture(scope="module")
def planted():
    return make_ranking(n_queries=80, n_features=30, n_informative=4, noise=0.3, random_state=5)


def test_stability_selection_selects_the_planted_features(planted):
    fitted = StabilitySelection(n_subsamples=20, max_features=6).fit(planted)
    assert set(np.flatnonzero(planted.truth)) <= set(fitted.selected_)
    assert len(fitted.selected_) <= 6
    assert np.all(np.diff(fitted.stability_[fitted.selected_]) <= 0)


def test_frequencies_are_shares_of_subsamples(planted):
    fitted = StabilitySelection(n_subsamples=6, n_alphas=8, random_state=3).fit(planted)
    rng = np.random.default_rng(3)
    grid = sparse_path(planted, n_alphas=8, min_ratio=0.1).alphas
    with_pairs = np.flatnonzero(planted.pairs_per_query)
    counts, ever = np.zeros((8, 30)), []
    for _ in range(6):
        queries = np.sort(rng.choice(with_pairs, len(with_pairs) // 2, replace=False))
        chosen = sparse_path(planted.select_queries(queries), alphas=grid, tol=1e-4).coefs != 0
        counts += chosen
        ever.append(chosen.any(axis=0).sum())
    np.testing.assert_allclose(fitted.alphas_, grid)
    np.testing.assert_allclose(fitted.frequencies_, counts / 6)
    np.testing.assert_array_equal(fitted.get_support(), counts.max(axis=0) / 6 >= 0.7)
    assert fitted.q_ == np.mean(ever)
    varying = 29  # one of thirty is constant within queries
    assert fitted.error_bound_ == pytest.approx(np.mean(ever) ** 2 / (0.4 * varying))


def test_max_features_limits_the_selection_of_each_subsample(planted):
    free = StabilitySelection(n_subsamples=6, n_alphas=12, min_ratio=0.01).fit(planted)
    bound = StabilitySelection(n_subsamples=6, n_alphas=12, min_ratio=0.01, max_features=5).fit(planted)
    assert bound.q_ <= 5 < free.q_
    assert bound.error_bound_ < free.error_bound_
    assert bound.frequencies_.shape == free.frequencies_.shape == (12, 30)
    assert bound.frequencies_.sum(axis=1).max() <= 5
    np.testing.assert_array_equal(bound.frequencies_[:3], free.frequencies_[:3])
    assert bound.frequencies_[-1].sum() > 0


def test_seed_and_jobs(planted):
    def frequencies(**parameters):
        options = {"n_subsamples": 4, "n_alphas": 6, **parameters}
        return StabilitySelection(**options).fit(planted).frequencies_

    with joblib.parallel_config(backend="threading"):  # processes would take seconds to start
        np.testing.assert_array_equal(frequencies(), frequencies(n_jobs=2))
    assert np.any(frequencies() != frequencies(random_state=1))


def test_queries_without_pairs_are_not_drawn(planted):
    flat = planted.y.copy()
    flat[np.isin(planted.qid, np.arange(1, 61))] = 0
    without = Dataset(planted.X, flat, planted.qid)
    alone = without.select_queries(np.arange(60, 80))
    options = {"n_subsamples": 5, "n_alphas": 6}
    np.testing.assert_allclose(
        StabilitySelection(**options).fit(without).frequencies_,
        StabilitySelection(**options).fit(alone).frequencies_,
    )


def test_no_stable_feature(planted):
    with pytest.warns(UserWarning, match=r"below threshold=1"):
        fitted = StabilitySelection(n_subsamples=10, threshold=1.0, max_features=1, n_alphas=5).fit(
            make_ranking(n_queries=6, n_features=30, n_informative=10, noise=3.0, random_state=2)
        )
    assert len(fitted.selected_) == 0


def test_one_query_cannot_be_subsampled(planted):
    with pytest.warns(UserWarning, match="there is only one query that has pairs"):
        StabilitySelection(n_subsamples=2, n_alphas=4).fit(planted.select_queries(np.array([1])))


def test_stability_selection_with_wrong_alphas(planted):
    with refused_parameter("alphas", [0.1, -1.0]):
        StabilitySelection(alphas=[0.1, -1.0]).fit(planted)


def test_no_feature_varies():
    flat = Dataset(np.ones((6, 3)), [0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1])
    for selector in (
        FSRank(max_features=1),
        GAS(max_features=1),
        FSMSVM(max_features=1),
        FBPCRank(),
        StabilitySelection(),
    ):
        with refused_data() as info:
            selector.fit(flat)
        assert "none of the 3 features" in info.value.reason


def test_features_constant_within_queries_with_pairs_are_refused():
    X = np.array([[1.0], [1.0], [0.0], [1.0]])
    with refused_data() as info:
        StabilitySelection().fit(Dataset(X, [0, 1, 1, 1], [0, 0, 1, 1]))
    assert "none of the 1 features" in info.value.reason


# LETOR


@pytest.mark.letor
def test_features_per_fold_of_mq2008(letor_root):
    """Table 1 of the ListMLE paper: 3 to 6 features per fold, nearly always 23 or 39 with 29, 19 or 18."""
    folds = load_letor_folds("MQ2008", letor_root)
    for fold in folds:
        chosen = set((FBPCRank(max_features=15).fit(fold.train).selected_ + 1).tolist())
        assert 2 <= len(chosen) <= 6
        assert chosen & {23, 39}
        assert len(GAS(max_features=10).fit(fold.train).selected_) == 10
