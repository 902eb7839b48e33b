"""More selectors against their definitions: loops, refits, all clusterings, small examples."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import kendalltau

from ranksieve.baselines import (
    BFSWrapper,
    BRTree,
    FSRank,
    GreedyRankRLS,
    HierarchicalBEM,
    HierarchicalILTR,
    LambdaMART,
    RankFilter,
    RankRLS,
    RankWrapper,
    boosting,
)
from ranksieve.baselines.filters import k_means, quality
from ranksieve.baselines.rls import LeaveQueryOut, centred_rows
from ranksieve.baselines.wrappers import START_SET, CoordinateAscent, WeightedSet, best_first, split_queries
from ranksieve.data.dataset import Dataset
from ranksieve.metrics import evaluate
from ranksieve.rankers import RankSVM
from tests.conftest import random_dataset
from tests.refusals import refused_parameter
from tests.tiers import examples


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=3, n_queries=25, n_features=8, longest=25)


def rows_of(data):
    return [
        data.queries.order[data.queries.offsets[q] : data.queries.offsets[q + 1]]
        for q in range(data.n_queries)
    ]


def equal_columns(n_features=5):
    data = random_dataset(seed=4, n_queries=20, n_features=1, longest=25)
    return Dataset(np.repeat(data.X, n_features, axis=1), data.y, data.qid)


# RankRLS and greedy RankRLS


def squared_differences(data, w, alpha, weight):
    """The objective of RankRLS as a sum over pairs."""
    total = 0.0
    for q, rows in enumerate(rows_of(data)):
        for i, j in product(rows, rows):
            residual = (data.y[i] - data.y[j]) - w @ (data.X[i] - data.X[j])
            total += weight[q] * residual**2 / (2 * len(rows))
    return total / (weight @ data.queries.sizes) + alpha * w @ w


def test_rankrls_minimises_the_squared_differences(small):
    weight = np.random.default_rng(0).random(small.n_queries) + 0.5
    fitted = RankRLS(0.05).fit(small, query_weight=weight)

    def objective(w):
        return squared_differences(small, w, 0.05, weight)

    assert fitted.objective_ == pytest.approx(objective(fitted.coef_), rel=1e-12)
    assert fitted.objective_ <= minimize(objective, fitted.coef_).fun + 1e-12
    assert abs(fitted.objective_ - objective(fitted.coef_)) <= fitted.gap_ < 1e-12  # including rounding
    assert fitted.trace_.objective[0] == pytest.approx(objective(np.zeros(5)))
    assert fitted.trace_.gap[0] >= fitted.trace_.objective[0] - fitted.objective_


def test_rankrls_with_large_offsets(small):
    far = small.replace_features(small.X + 1e6 * (1 + small.qid[:, None]))
    np.testing.assert_allclose(RankRLS().fit(far).coef_, RankRLS().fit(small).coef_, rtol=1e-6)


def left_out_error(data, columns, alpha, weight):
    """The leave-query-out error by refits without each query."""
    Z = [centred_rows(data, np.array(columns), q, q + 1) for q in range(data.n_queries)]
    n_docs, total = weight @ data.queries.sizes, 0.0
    for q in range(data.n_queries):
        others = np.concatenate([np.sqrt(weight[p]) * Z[p] for p in range(data.n_queries) if p != q])
        ridge = np.sqrt(alpha * n_docs) * np.eye(len(columns))
        system = np.vstack([others[:, :-1], ridge])
        w = np.linalg.lstsq(system, np.append(others[:, -1], np.zeros(len(columns))))[0]
        total += weight[q] * np.sum((Z[q][:, -1] - Z[q][:, :-1] @ w) ** 2)
    return total / n_docs


@pytest.mark.parametrize("alpha", [1e-5, 1e-2, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_left_out_errors_equal_those_of_refits(data, alpha, weighted):
    weight = np.random.default_rng(1).random(data.n_queries) + 0.1 if weighted else np.ones(data.n_queries)
    left_out, chosen = LeaveQueryOut(data, np.arange(8), weight, alpha), []
    for j in (5, 1, 0, 7):
        expected = [left_out_error(data, [*chosen, i], alpha, weight) for i in range(8) if i not in chosen]
        errors = [error for i, error in enumerate(left_out.errors()) if i not in chosen]
        np.testing.assert_allclose(errors, expected, rtol=1e-8)
        left_out.add(j)
        chosen.append(j)


def test_greedy_rankrls_adds_the_feature_with_the_lowest_left_out_error(data):
    fitted, chosen, errors = GreedyRankRLS(max_features=5, alpha=1e-2).fit(data), [], []
    for _ in range(5):
        others = [j for j in range(8) if j not in chosen]
        values = [left_out_error(data, [*chosen, j], 1e-2, np.ones(data.n_queries)) for j in others]
        chosen.append(others[int(np.argmin(values))])
        errors.append(min(values))
    assert fitted.selected_.tolist() == chosen
    np.testing.assert_allclose(fitted.errors_, errors, rtol=1e-8)
    again = RankRLS(1e-2).fit(data.select_features(np.sort(chosen)))
    np.testing.assert_array_equal(fitted.coef_[np.sort(chosen)], again.coef_)


def test_greedy_rankrls_with_copies_and_a_tiny_ridge(data):
    copied = Dataset(np.column_stack([data.X, data.X[:, ::-1]]), data.y, data.qid)
    chosen = GreedyRankRLS(max_features=8, alpha=1e-9).fit(copied).selected_
    assert len(set(chosen)) == 8
    weight = np.ones(data.n_queries)
    expected = left_out_error(copied, chosen.tolist(), 1e-9, weight)
    assert GreedyRankRLS(max_features=8, alpha=1e-9).fit(copied).errors_[-1] == pytest.approx(
        expected, rel=1e-6
    )


# RankFilter and RankWrapper


def scaled(data):
    return data.X / np.ptp(data.X, axis=0)


def literal_filter(data, n):
    """Relief weights by loops over documents and levels."""
    X, total, n_counted = scaled(data), np.zeros(data.n_features), 0
    for rows in rows_of(data):
        levels = sorted(set(data.y[rows]))
        of_level = {m: [i for i in rows if data.y[i] == m] for m in levels}
        counted = [m for m in levels if len(of_level[m]) > 1]
        if len(levels) == 1 or not counted:
            continue
        n_counted += 1
        for level in counted:
            for i in of_level[level]:
                away = {m: abs(m - level) * len(of_level[m]) for m in levels}
                for m in levels:
                    others = sorted((np.abs(X[i] - X[z]).sum(), z) for z in of_level[m] if z != i)
                    mean = np.mean([np.abs(X[i] - X[z]) for _, z in others[:n]], axis=0)
                    worth = -1.0 if m == level else away[m] / sum(away.values())
                    total += worth * mean / len(of_level[level]) / len(counted)
    return total / n_counted


@pytest.mark.parametrize("n", [1, 3, 50])
def test_rankfilter_weights_by_loops(data, n):
    expected = literal_filter(data, n)
    fitted = RankFilter(max_features=3, neighbours=n).fit(data)
    np.testing.assert_allclose(fitted.importance_, expected, atol=1e-12)
    assert fitted.selected_.tolist() == np.argsort(-expected)[:3].tolist()


def literal_wrapper(data, n, scores):
    X = scaled(data)
    far, near, totals = np.zeros(data.n_features), np.zeros(data.n_features), np.zeros(2)
    for rows in rows_of(data):
        rank = {i: sum(scores[z] < scores[i] for z in rows) for i in rows}
        for i in rows:
            others = sorted((np.abs(X[i] - X[z]).sum(), z) for z in rows if z != i)
            for _, z in others[:n]:
                delta = abs(rank[i] - rank[z]) / (len(rows) - 1)
                far += delta * np.abs(X[i] - X[z])
                near += (1 - delta) * np.abs(X[i] - X[z])
                totals += [delta, 1 - delta]
    return far / totals[0] - near / totals[1]


@pytest.mark.parametrize("n", [1, 4, 50])
def test_rankwrapper_weights_by_loops(data, n):
    expected = literal_wrapper(data, n, RankSVM(0.01).fit(data).predict(data))
    fitted = RankWrapper(max_features=3, neighbours=n, base=RankSVM(0.01)).fit(data)
    np.testing.assert_allclose(fitted.importance_, expected, atol=1e-12)
    assert fitted.selected_.tolist() == np.argsort(-expected)[:3].tolist()


def test_ties_with_the_last_neighbour_are_included():
    """So the result does not depend on the order of the rows."""
    rng = np.random.default_rng(5)
    X, y, qid = rng.integers(0, 2, (60, 3)).astype(float), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    order = np.concatenate([rng.permutation(20) + first for first in (0, 20, 40)])
    for selector in (RankFilter(max_features=1), RankWrapper(max_features=1, neighbours=2)):
        one = selector.fit(X, y, qid=qid).importance_
        np.testing.assert_allclose(selector.fit(X[order], y[order], qid=qid).importance_, one, atol=1e-6)


@pytest.mark.parametrize("kind", [RankFilter, RankWrapper])
def test_relief_selects_the_feature_that_separates_levels(kind):
    rng = np.random.default_rng(0)
    qid, y = np.repeat(np.arange(30), 12), rng.integers(0, 3, 360)
    X = rng.random((360, 6))
    X[:, 4] = y + 0.3 * rng.random(360)
    fitted = kind(max_features=1).fit(Dataset(X, y, qid))
    assert fitted.selected_.tolist() == [4]
    scales = 10.0 ** np.arange(6)
    with pytest.warns(UserWarning, match="scale"):
        again = kind(max_features=1, base=RankSVM(1e-6)).fit(Dataset(X * scales, y, qid))
    assert again.selected_.tolist() == [4]


# Hierarchical selection


def literal_quality(similarity, clusters):
    values = []
    for i, own in enumerate(clusters):
        apart = {
            c: np.mean([1 - similarity[i, j] for j in np.flatnonzero(clusters == c) if j != i])
            for c in set(clusters)
            if c != own or np.sum(clusters == own) > 1
        }
        if own not in apart:
            values.append(0.0)
            continue
        a, b = apart[own], min(value for c, value in apart.items() if c != own)
        values.append((b - a) / max(a, b))
    return np.mean(values)


def random_similarity(seed, d=8):
    points = np.random.default_rng(seed).normal(size=(d, 4))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return np.abs(points @ points.T)


@examples(15)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_quality_is_the_mean_silhouette(seed, k):
    clusters = np.random.default_rng(seed).permutation(np.arange(8) % k)
    similarity = random_similarity(seed)
    assert quality(similarity, clusters) == pytest.approx(literal_quality(similarity, clusters), abs=1e-12)


def spread_of(points, clusters):
    return sum(
        np.sum((points[clusters == c] - points[clusters == c].mean(axis=0)) ** 2) for c in set(clusters)
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_k_means_equals_the_best_of_all_clusterings(seed, k):
    points = np.random.default_rng(seed).normal(size=(6, 3))
    clusters = k_means(points @ points.T, k, 40, 0)
    assert set(clusters) == set(range(k))
    every = (np.array(each) for each in product(range(k), repeat=6) if set(each) == set(range(k)))
    assert spread_of(points, clusters) == pytest.approx(
        min(spread_of(points, each) for each in every), rel=1e-9
    )


def test_k_means_of_equal_points():
    assert set(k_means(np.ones((6, 6)), 3, 4, 0)) == {0, 1, 2}
    assert sorted(k_means(np.eye(4), 4, 1, 0)) == [0, 1, 2, 3]


def families(seed=0):
    """Three groups of 3, 2 and 1 features that rank nearly the same; one feature is negated."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(20), 12)
    a, b, c = rng.normal(size=(3, 240))
    noise = 0.1 * rng.normal(size=(6, 240))
    X = np.stack([a, -a, a**3, b, np.exp(b), c]).T + noise.T
    return Dataset(X, np.digitize(a + b + 0.5 * c, [0, 1]).astype(float), qid)


@pytest.mark.parametrize("kind", [HierarchicalBEM, HierarchicalILTR])
def test_one_feature_of_each_group(kind):
    grouped = families()
    fitted = kind().fit(grouped)
    assert len(set(fitted.clusters_)) == 3
    assert max(fitted.qualities_, key=fitted.qualities_.get) == 3
    assert [sorted(np.flatnonzero(fitted.clusters_ == c)) for c in fitted.clusters_[[0, 3, 5]]] == [
        [0, 1, 2], [3, 4], [5],
    ]  # fmt: skip
    importance = (
        FSRank(max_features=1).fit(grouped).importance_
        if kind is HierarchicalBEM
        else np.abs(RankSVM().fit(grouped).coef_)
    )
    np.testing.assert_array_equal(fitted.importance_, importance)
    best = [max(family, key=lambda j: importance[j]) for family in ([0, 1, 2], [3, 4], [5])]
    assert fitted.selected_.tolist() == sorted(best, key=lambda j: -importance[j])
    assert len(kind(n_clusters=5).fit(grouped).selected_) == 5


def test_clusters_use_kendalls_tau():
    grouped = families()
    tau = [
        [
            abs(np.mean([kendalltau(grouped.X[r, i], grouped.X[r, j]).statistic for r in rows_of(grouped)]))
            for i in range(6)
        ]
        for j in range(6)
    ]
    fitted = HierarchicalBEM().fit(grouped)
    np.testing.assert_allclose(fitted.similarity_, tau, atol=1e-12)
    for k, value in fitted.qualities_.items():
        clusters = HierarchicalBEM(n_clusters=k).fit(grouped).clusters_
        assert value == pytest.approx(literal_quality(np.array(tau), clusters), abs=1e-12)


def test_hierarchical_selection_of_few_or_equal_features(data):
    for n_features in (1, 2):
        narrow = data.select_features(np.arange(n_features))
        assert len(HierarchicalBEM().fit(narrow).selected_) == n_features
    assert HierarchicalBEM().fit(equal_columns(4)).selected_.tolist()[0] == 0
    with refused_parameter("n_clusters", 9):
        HierarchicalBEM(n_clusters=9).fit(data)


# BRTree


def trees_on(data, columns, **options):
    regression = {"objective": "regression"}
    return LambdaMART(6, n_leaves=7, learning_rate=0.1, options=regression, n_jobs=1, **options).fit(
        data.select_features(np.array(columns))
    )


def gains_of(trees):
    return trees.booster_.feature_importance("gain")


@pytest.fixture(scope="module")
def larger():
    pytest.importorskip("lightgbm")
    return random_dataset(seed=6, n_queries=40, n_features=10, longest=30)


def test_greedy_brtree_selects_the_largest_gains(larger):
    gains = gains_of(trees_on(larger, range(10)))
    fitted = BRTree(max_features=4, search="greedy", n_rounds=6).fit(larger)
    np.testing.assert_allclose(fitted.importance_, gains / gains.sum())
    assert fitted.selected_.tolist() == np.argsort(-gains, kind="stable")[:4].tolist()
    assert len(fitted.values_) == 0


def test_greedy_brtree_does_not_select_copies(larger):
    best = int(BRTree(max_features=1, search="greedy", n_rounds=6).fit(larger).selected_[0])
    similarity = np.eye(10)
    other = (best + 1) % 10
    similarity[best, other] = similarity[other, best] = 1.0
    chosen = (
        BRTree(max_features=9, search="greedy", n_rounds=6, c=5.0, similarity=similarity)
        .fit(larger)
        .selected_
    )
    assert chosen[0] == best
    assert other not in chosen


def test_random_brtree_drops_the_least_important_features(larger):
    """Against a step-by-step implementation of the search."""
    fitted = BRTree(max_features=3, n_subsets=3, n_rounds=6, drop=0.4, share=0.6, random_state=1).fit(larger)
    rng = np.random.default_rng(1)
    learning, judging = split_queries(larger, rng)
    learn, judge = larger.select_queries(learning), larger.select_queries(judging)
    values, subsets = [], []
    for _ in range(3):
        columns = sorted(rng.choice(np.arange(10), 3 + 5, replace=False).tolist())
        for size in (4, 3):
            gains = gains_of(trees_on(learn, columns, random_state=1))
            columns = sorted(np.array(columns)[np.argsort(-gains, kind="stable")[:size]].tolist())
        scores = trees_on(learn, columns, random_state=1).predict(judge.select_features(np.array(columns)))
        values.append(evaluate(scores, judge, "ndcg@5").mean["ndcg@5"])
        subsets.append(columns)
    np.testing.assert_allclose(fitted.values_, values)
    assert sorted(fitted.selected_) == subsets[int(np.argmax(values))]
    assert set(np.flatnonzero(fitted.importance_)) <= set(fitted.selected_)


def test_brtree_depends_on_its_seed(larger):
    def values(seed):
        return BRTree(max_features=3, n_subsets=3, n_rounds=4, random_state=seed).fit(larger).values_

    np.testing.assert_array_equal(values(0), values(0))
    assert np.any(values(0) != values(1))


def test_validation_queries_are_not_used_for_learning(data):
    learning, judging = split_queries(data, np.random.default_rng(0))
    assert np.all(learning != judging)
    assert judging.sum() == np.count_nonzero(data.pairs_per_query) // 3
    assert np.all(data.pairs_per_query[judging] > 0)
    one = data.select_queries(np.flatnonzero(data.pairs_per_query)[:1])
    assert all(part.tolist() == [True] for part in split_queries(one, np.random.default_rng(0)))


def test_brtree_without_lightgbm(data, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(boosting, "import_module", missing)
    with pytest.raises(ImportError, match=r'BRTree needs lightgbm: run pip install "\.\[baselines\]"'):
        BRTree(max_features=2).fit(data)


# BFS-Wrapper


SET_VALUES = {  # of the features 0, 1 and 2; the best pair does not contain the best feature
    (0,): 0.5, (1,): 0.4, (2,): 0.1, (0, 1): 0.45, (0, 2): 0.3, (1, 2): 0.9, (0, 1, 2): 0.9,
}  # fmt: skip


def explorer(values, visited):
    def explore(subset):
        visited.append(subset.columns)
        own = set(subset.columns)
        sets = [own ^ {j} for j in range(3)]
        return subset, [node(tuple(sorted(each)), values) for each in sets if each]

    return explore


def node(columns, values):
    return WeightedSet(columns, np.empty(0), values[columns])


def test_best_first_search_by_hand():
    """∅, then 0 (.5), then 0 and 1 (.45, not better), then 0, 1 and 2 (.9, the best so far)."""
    visited = []
    best = best_first(START_SET, explorer(SET_VALUES, visited), 2, 0.0)
    assert visited == [(), (0,), (0, 1), (0, 1, 2), (1, 2), (1,)]
    assert best.columns == (0, 1, 2)


def test_best_first_search_ends_after_its_patience():
    visited = []
    assert best_first(START_SET, explorer(SET_VALUES, visited), 1, 0.0).columns == (0,)
    assert visited == [(), (0,), (0, 1)]


def test_improvements_below_eps_are_ignored():
    visited = []
    assert best_first(START_SET, explorer(SET_VALUES, visited), 3, 0.5).columns == (0,)
    assert visited == [(), (0,), (0, 1), (0, 1, 2), (1, 2)]


def test_exhaustive_best_first_search_finds_the_best_set():
    rng = np.random.default_rng(0)
    for _ in range(20):
        sets = [each for size in (1, 2, 3) for each in combinations(range(3), size)]
        values = dict(zip(sets, rng.random(7), strict=True))
        assert best_first(START_SET, explorer(values, []), 100, 0.0).value == max(values.values())


@pytest.mark.parametrize("profile", ["letor", "standard"])
@pytest.mark.parametrize("cutoff", [1, 5, 12])
def test_values_along_a_line_equal_evaluate(data, profile, cutoff):
    rounded = Dataset(np.round(data.X, 1), data.y, data.qid, profile=profile)  # with ties
    weight = np.random.default_rng(0).random(data.n_queries)
    ascent = CoordinateAscent(rounded, np.arange(8), cutoff, weight)
    scores, steps = rounded.X[:, 0], np.array([-2.0, 0.0, 0.5])
    (values,) = ascent._along(rounded.queries.group(scores), np.array([3]), steps[None])
    for step, value in zip(steps, values, strict=True):
        per_query = evaluate(
            scores + step * rounded.X[:, 3], rounded, f"ndcg@{cutoff}", ties="order"
        ).per_query
        assert value == pytest.approx(np.average(per_query[f"ndcg@{cutoff}"], weights=weight), abs=1e-12)


def ndcg(data, w):
    return evaluate(data.X @ w, data, "ndcg@5").mean["ndcg@5"]


def test_values_of_sets_equal_those_of_their_weights(data):
    fitted = BFSWrapper(n_subsets=3).fit(data)
    assert len(np.unique(fitted.selected_)) == len(fitted.selected_)
    np.testing.assert_array_equal(fitted.selected_, np.concatenate(fitted.subsets_))
    for columns, value, w in zip(fitted.subsets_, fitted.values_, fitted.combination_.T, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(w), columns)
        assert np.abs(w).sum() == pytest.approx(1.0)
        assert ndcg(data, w) == pytest.approx(value, abs=1e-12)
    alone = max(ndcg(data, sign * one) for one in np.eye(8) for sign in (1, -1))
    assert fitted.values_[0] >= alone


def test_no_change_of_one_weight_improves_a_set(data):
    ascent = CoordinateAscent(data, np.arange(8), 5, np.ones(data.n_queries))
    w = np.array([1.0, -0.2, 0.3])
    start = WeightedSet((0, 1, 2), w, ndcg(data, np.append(w, np.zeros(5))))
    done = ascent.improve(start)
    assert done.value > start.value
    assert ascent.improve(done).value == done.value
    assert ndcg(data, np.append(done.w, np.zeros(5))) == pytest.approx(done.value, abs=1e-12)


def test_weights_of_new_features_are_combined(data):
    fitted = BFSWrapper(n_subsets=3, base=RankSVM(0.5)).fit(data)
    combined = Dataset(data.X @ fitted.combination_, data.y, data.qid)
    base = RankSVM(0.5).fit(combined)
    np.testing.assert_allclose(fitted.base_.coef_, base.coef_, rtol=1e-9)
    np.testing.assert_allclose(fitted.coef_, fitted.combination_ @ base.coef_, rtol=1e-9)
    np.testing.assert_allclose(fitted.to_model().predict(data), base.predict(combined), rtol=1e-9, atol=1e-12)
    assert np.isnan(fitted.gap_)
    assert "gap" not in fitted.to_model().certificate


def test_sets_end_when_all_features_are_used(data):
    fitted = BFSWrapper(n_subsets=50).fit(data)
    assert sorted(fitted.selected_) == list(range(8))
    assert len(fitted.subsets_) < 9
    first = BFSWrapper(n_subsets=1).fit(data)
    np.testing.assert_array_equal(first.combination_[:, 0], fitted.combination_[:, 0])


def test_a_metric_that_is_always_zero_is_refused(data):
    short = Dataset(data.X, data.y, data.qid, profile="letor")
    with refused_parameter("cutoff", 30):
        BFSWrapper(cutoff=30).fit(short)


# All


def test_ties_everywhere_are_broken_by_the_order_of_columns():
    tied = equal_columns()
    for selector in (GreedyRankRLS(max_features=3), RankFilter(max_features=3), RankWrapper(max_features=3)):
        assert selector.fit(tied).selected_.tolist() == [0, 1, 2]
    assert BFSWrapper(n_subsets=1).fit(tied).selected_.tolist() == [0]


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (RankRLS, {"alpha": 0.0}),
        (GreedyRankRLS, {"alpha": -1.0}),
        (RankFilter, {"neighbours": 0}),
        (RankWrapper, {"neighbours": 0}),
        (HierarchicalBEM, {"n_clusters": 0}),
        (HierarchicalILTR, {"random_state": -1}),
        (BRTree, {"search": "best"}),
        (BRTree, {"drop": 1.0}),
        (BFSWrapper, {"patience": 0}),
        (BFSWrapper, {"tol": -1.0}),
    ],
)
def test_parameters_of_wrong_types(data, kind, parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        kind(**parameters).fit(data)
