"""Best subset selection: equals enumeration, and bounds are never above the true optimum."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranksieve as rs
from ranksieve.choice.forward import fit_set
from ranksieve.data.budget import Budget
from ranksieve.data.costs import make_costs
from ranksieve.objective import make_objective
from ranksieve.subset import Effort, Proof, SubsetSearch, proven_bound
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs
from tests.refusals import refused_data, refused_parameter
from tests.test_subset_allowed import sets_of
from tests.tiers import examples

RIDGE = 1e-2
TOL = 1e-8


def enumerated(objective, budget, ridge, k):
    """(least objective, set) of all allowed sets, by fitting each of them."""
    usable = np.flatnonzero(budget.usable)
    best = (np.inf, ())
    for size in range(max(1, len(budget.fixed)), k + 1):
        for chosen in itertools.combinations(usable.tolist(), size):
            if not set(budget.fixed) <= set(chosen):
                continue
            if budget.costs is not None and budget.costs.of(np.array(chosen)) > budget.max_cost:
                continue
            start = np.zeros(objective.n_features)
            fit = fit_set(objective, chosen, start, ridge, budget.signs, 1e-10)
            best = min(best, (fit.objective, chosen))
    return best


def search_for(data, ridge=RIDGE, **limits):
    objective = make_objective(data)
    return SubsetSearch(objective, Budget(must_not=~objective.varies, **limits), ridge)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_equals_enumeration_of_20_features(k):
    data = rs.make_ranking(n_queries=15, n_features=20, n_informative=5, random_state=3)
    search = search_for(data)
    result = search.best(k, Effort(gap=0.0))
    least, chosen = enumerated(search.objective, search.budget, RIDGE, k)
    assert result.fit.objective == pytest.approx(least, rel=TOL)
    assert tuple(np.flatnonzero(result.fit.w).tolist()) == chosen
    assert result.bound <= least
    assert result.bound == pytest.approx(least, rel=1e-8)


def priced(seed, n_features):
    """Costs of features, some of them 0, and of a group."""
    rng = np.random.default_rng(seed)
    names = [f"f{j + 1}" for j in range(n_features)]
    alone = {
        name: float(cost) for name, cost in zip(names[3:], rng.integers(0, 4, n_features - 3), strict=True)
    }
    costs = make_costs({"features": alone, "groups": {"call": {"cost": 2.0, "features": names[:3]}}})
    return costs.columns(names)


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 3),
    ridge=st.sampled_from([1e-3, 1e-2, 1e-1]),
    constraint=st.sampled_from(["none", "cost", "signs", "fixed", "all"]),
    nodes=st.sampled_from([1, 3, None]),
)
def test_a_bound_is_never_above_the_true_optimum(seed, k, ridge, constraint, nodes):
    data = random_dataset(seed, n_queries=5, n_features=7)
    rng, limits = np.random.default_rng(seed), {}
    if constraint in ("cost", "all"):
        limits |= {"costs": priced(seed, 7), "max_cost": float(rng.integers(3, 7))}
    if constraint in ("signs", "all"):
        limits["signs"] = rng.choice([-1.0, 0.0, 1.0], 7)
    if constraint in ("fixed", "all"):
        affordable = "costs" not in limits or limits["costs"].of_each[3] <= 3
        limits["must_have"] = (np.arange(7) == 3) & affordable
    search = search_for(data, ridge, **limits)
    if not search.budget.usable[search.budget.fixed].all():
        return
    least, _ = enumerated(search.objective, search.budget, ridge, k)
    result = search.best(k, Effort(gap=0.0, nodes=nodes))
    assert result.root_bound <= result.bound + 1e-15
    assert result.bound <= least * (1 + 1e-12)
    assert result.fit.objective >= least * (1 - TOL)
    if nodes is None:
        assert result.fit.objective == pytest.approx(least, rel=TOL)
        assert result.bound == pytest.approx(least, rel=1e-7)
    proven = proven_bound(result.proof, search.relaxation(k), search.everything, result.bound)
    assert proven == pytest.approx(result.bound, rel=1e-9)


@pytest.mark.parametrize("family", ["forward", "subset"])
def test_fit_and_subset_solve_the_same_problem(family):
    data = rs.make_ranking(n_queries=30, n_features=10, n_informative=4, random_state=2)
    fitted = rs.SparseRanker(3, families=[family], cv=3, profile="standard", tol=1e-10).fit(data)
    names, fit = fitted.to_model().names, fitted.to_model().certificate
    best = rs.BestSubset(len(names), must_have=list(names)).fit(data).to_model()
    assert best.names == names
    assert [t.weight for t in best.terms] == pytest.approx([t.weight for t in fitted.to_model().terms])
    assert best.certificate["objective"] == pytest.approx(fit["objective"], rel=1e-9)
    assert best.certificate["ridge"] == pytest.approx(fit["ridge"], rel=1e-12)
    assert best.parameters["pair_weighting"] == fitted.pair_weighting


def test_bounds_with_and_without_each_feature():
    data = random_dataset(5, n_queries=6, n_features=7)
    search = search_for(data)
    for nodes in (1, 4, None):
        result = search.best(2, Effort(gap=0.0, nodes=nodes))
        sets = [
            (fit_set(search.objective, s, np.zeros(7), RIDGE, None, 1e-10).objective, s)
            for s in itertools.chain(itertools.combinations(range(7), 2), ((j,) for j in range(7)))
        ]
        for j in range(7):
            assert result.with_each[j] <= min(value for value, chosen in sets if j in chosen) + 1e-12
            assert result.without_each[j] <= min(value for value, chosen in sets if j not in chosen) + 1e-12


def test_bounds_of_sums_over_allowed_sets():
    rng = np.random.default_rng(0)
    for seed in range(30):
        a, costs = rng.exponential(size=7), priced(seed, 7)
        allowed = sets_of(3, costs, float(rng.integers(2, 7)))
        search = search_for(random_dataset(5, n_features=7), costs=costs, max_cost=allowed.budget.max_cost)
        region = allowed.narrow(search.everything)
        sums = allowed.max_sums(a, region)
        sets = [
            list(chosen)
            for size in range(4)
            for chosen in itertools.combinations(np.flatnonzero(search.budget.usable), size)
            if costs.of(np.array(chosen, dtype=int)) <= allowed.budget.max_cost
        ]
        assert sums.total >= max(a[s].sum() for s in sets) - 1e-12
        for j in np.flatnonzero(region.free):
            assert sums.with_each[j] >= max((a[s].sum() for s in sets if j in s), default=-np.inf) - 1e-12
            assert sums.without_each[j] >= max(a[s].sum() for s in sets if j not in s) - 1e-12


def test_bounds_at_any_weights_are_valid():
    data = random_dataset(7, n_queries=6, n_features=6)
    search = search_for(data)
    least, _ = enumerated(search.objective, search.budget, RIDGE, 2)
    relaxation, rng = search.relaxation(2), np.random.default_rng(0)
    for scale in (0.0, 0.1, 1.0, 10.0):
        for _ in range(10):
            point = search.objective.evaluate(scale * rng.normal(size=6))
            assert relaxation.bounds(point, search.everything).least <= least


def test_a_tampered_proof_has_a_lower_bound():
    data = random_dataset(11, n_queries=8, n_features=8)
    search = search_for(data, 1e-3)
    result = search.best(2, Effort(gap=0.0))
    relaxation = search.relaxation(2)
    lines = result.proof.to_lines()
    assert len(lines) > 3
    assert Proof.from_lines(lines) == result.proof

    def proven(lines, claim):
        return proven_bound(Proof.from_lines(lines), relaxation, search.everything, claim)

    assert proven(lines, result.bound) == result.bound
    above = result.fit.objective * 1.01
    assert proven(lines, above) < above * (1 - 1e-6)
    leaf = next(k for k, node in enumerate(result.proof.nodes) if k and node.children == [None, None])
    assert proven([*lines[:leaf], "- - -", *lines[leaf + 1 :]], result.bound) < result.bound
    first = lines[0].split(" ")
    circle = " ".join([first[0], "0", "0", *first[3:]])
    assert proven([circle, *lines[1:]], result.bound) == 0.0
    assert proven([*lines[:-1], "- - - 99:1.0"], result.bound) == 0.0
    with refused_data() as info:
        Proof.from_lines(["1 2"])
    assert "line 1" in info.value.reason


def test_the_perspective_relaxation_is_solved():
    """The bound of the root node, against a general solver of the same convex problem over (w, u)."""
    from scipy.optimize import minimize

    data = random_dataset(2, n_queries=8, n_features=5)
    search = search_for(data, 1e-1)
    objective, k = search.objective, 2

    def value(x):
        w, u = x[:5], x[5:]
        return objective.evaluate(w).value + 0.05 * float(np.sum(w**2 / u))

    begin = np.concatenate([np.full(5, 0.1), np.full(5, k / 5)])
    solved = minimize(
        value, begin, method="SLSQP", bounds=[(None, None)] * 5 + [(1e-9, 1)] * 5,
        constraints={"type": "ineq", "fun": lambda x: k - np.sum(x[5:])},
        options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    result = search.best(k, Effort(gap=0.0, nodes=1))
    assert result.root_bound <= solved.fun + 1e-9
    assert result.root_bound == pytest.approx(solved.fun, rel=2e-3)


@pytest.fixture(scope="module")
def train():
    return rs.make_ranking(n_queries=30, n_features=12, n_informative=4, random_state=1)


def test_estimator(train):
    ranker = rs.BestSubset(3).fit(train)
    assert isinstance(ranker, rs.BestSubset)
    assert len(ranker.support_) == 3
    assert ranker.bound_ <= ranker.objective_
    assert ranker.gap_ == pytest.approx(0, abs=1e-8)
    assert sorted(ranker.always_) == sorted(train.feature_names[j] for j in ranker.support_)
    assert not set(ranker.never_) & set(ranker.always_)
    assert len(ranker.never_) == 9
    assert ranker.predict(train).shape == (train.n_docs,)
    assert ranker.ties_ == {}
    again = rs.BestSubset(3).fit(train)
    assert np.array_equal(again.coef_, ranker.coef_)
    assert again.bound_ == ranker.bound_


def test_fit_sizes_equals_single_fits(train):
    rankers = rs.BestSubset().fit_sizes([3, 1, 2], train)
    assert [ranker.max_features for ranker in rankers] == [1, 2, 3]
    for ranker in rankers:
        alone = rs.BestSubset(ranker.max_features).fit(train)
        assert np.array_equal(alone.support_, ranker.support_)
        assert alone.objective_ == pytest.approx(ranker.objective_, rel=1e-9)
    objectives = [ranker.objective_ for ranker in rankers]
    assert objectives == sorted(objectives, reverse=True)


def test_a_time_limit_of_0_gives_the_greedy_set_with_its_root_bound(train):
    ranker = rs.BestSubset(3, time_limit=0).fit(train)
    assert ranker.n_iter_ == 1
    assert ranker.bound_ == ranker.root_bound_ <= ranker.objective_
    assert ranker.bound_ > 0.5 * ranker.objective_


def test_gap_and_nodes_end_the_search(train):
    rough = rs.BestSubset(3, gap=0.05).fit(train)
    assert rough.gap_ <= 0.05 * rough.objective_
    exact = rs.BestSubset(3).fit(train)
    assert rough.n_iter_ <= exact.n_iter_
    assert rs.BestSubset(3, max_nodes=2).fit(train).n_iter_ <= 3


def test_interchangeable_features_are_named(train):
    first = rs.BestSubset(2).fit(train)
    j = int(first.support_[0])
    X = np.column_stack([train.X, train.X[:, j], 2.0 * train.X[:, j]])
    names = [*train.feature_names, "copy", "double"]
    data = rs.Dataset(X, train.y, train.qid, feature_names=names)
    ranker = rs.BestSubset(2, normalise="none").fit(data)
    tied = {name: set(others) for name, others in ranker.ties_.items()}
    chosen = next(name for name in tied if name in {names[j], "copy", "double"})
    assert tied[chosen] == {names[j], "copy", "double"} - {chosen}
    assert ranker.gap_ == pytest.approx(0, abs=1e-8)


def test_constraints_and_costs(train):
    names = train.feature_names
    unconstrained = rs.BestSubset(3).fit(train)
    j = int(unconstrained.support_[0])
    without = rs.BestSubset(3, must_not=[names[j]]).fit(train)
    assert j not in without.support_
    assert without.objective_ > unconstrained.objective_
    unused = next(i for i in range(12) if i not in unconstrained.support_)
    with_must_have = rs.BestSubset(3, must_have=[names[unused]]).fit(train)
    assert unused in with_must_have.support_
    sign = "-" if unconstrained.coef_[j] > 0 else "+"
    signed = rs.BestSubset(3, signs={names[j]: sign}).fit(train)
    assert signed.coef_[j] * (1 if sign == "+" else -1) >= 0
    costs = dict.fromkeys(names, 1.0) | {names[j]: 5.0}
    cheap = rs.BestSubset(3, feature_costs=costs, max_cost=2).fit(train)
    assert len(cheap.support_) <= 2
    assert cheap.to_model().metrics["cost"] <= 2


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"max_features": 13}, ("max_features", 13)),
        ({"max_features": 0}, ("max_features", 0)),
        ({"max_features": 2, "must_have": ["f1", "f2", "f3"]}, ("max_features", 2)),
        ({"max_features": 2, "feature_costs": {"*": 3.0}, "max_cost": 2.0}, ("max_cost", 2.0)),
        ({"max_features": 2, "max_cost": 2.0}, ("max_cost", 2.0)),
        ({"max_features": 2, "time_limit": -1.0}, ("time_limit", -1.0)),
        ({"max_features": 2, "ridge": 0.0}, ("ridge", 0.0)),
        ({"max_features": 2, "must_not": ["f13"]}, ("must_not", "f13")),
    ],
)
def test_refusals(train, options, facts):
    with refused_parameter(*facts):
        rs.BestSubset(**options).fit(train)


def test_constant_data_are_refused(train):
    data = rs.Dataset(np.ones_like(train.X), train.y, train.qid)
    with refused_data() as info:
        rs.BestSubset(1).fit(data)
    assert "no feature" in info.value.reason
    with refused_data() as info:
        rs.BestSubset(1).fit(rs.Dataset(train.X, np.ones(train.n_docs), train.qid))
    assert "pair" in info.value.reason


def test_separable_data_have_a_bound(train):
    y = (train.X[:, 0] > np.median(train.X[:, 0])).astype(float)
    data = rs.Dataset(np.column_stack([100.0 * y, train.X]), y, train.qid)
    ranker = rs.BestSubset(1, normalise="none").fit(data)
    assert ranker.support_.tolist() == [0]
    assert 0 <= ranker.bound_ <= ranker.objective_


def test_a_family_of_candidates(train):
    ranker = rs.SparseRanker(3, families=("l1", "subset"), profile="standard", n_alphas=10).fit(train)
    labels = [family.label for family in ranker.choice_.families]
    assert labels == ["l1", "subset"]
    subset = ranker.choice_.families[1]
    assert subset.n_nonzero.tolist() == [1, 2, 3, 4]
    assert [one.subset.max_features for one in subset.candidates] == [1, 2, 3, 4]
    alone = rs.BestSubset(2).fit(train)
    assert np.array_equal(np.flatnonzero(subset.coefs[1]), alone.support_)
    only = rs.SparseRanker(2, families="subset", profile="standard").fit(train)
    certificate = only.to_model().certificate
    assert certificate["kind"] == "subset"
    assert certificate["max_features"] == len(only.support_)
    assert only.gap_ == pytest.approx(only.objective_ - only.subset_.bound)


@pytest.mark.full
def test_a_family_within_a_cost(train):
    costs = {name: 1.0 + j % 3 for j, name in enumerate(train.feature_names)}
    ranker = rs.SparseRanker(
        families=("subset",), feature_costs=costs, max_cost=4, profile="standard", n_alphas=5
    ).fit(train)
    assert ranker.to_model().metrics["cost"] <= 4
    assert ranker.to_model().certificate["max_cost"] == pytest.approx(4)


def test_refit_on_all_data_has_no_proof_of_the_set(train):
    rest, valid = train.select_queries(range(20)), train.select_queries(range(20, 30))
    ranker = rs.SparseRanker(2, families="subset", refit_on="all", profile="standard").fit(rest, valid=valid)
    assert "kind" not in ranker.to_model().certificate


def exact_objective(data, w, ridge):
    """Mean of max(0, 1 − difference of scores)² over the pairs plus ½μ‖w‖², in exact arithmetic."""
    weights = [Fraction(float(one)) for one in w]
    scores = [sum(Fraction(float(x)) * one for x, one in zip(row, weights, strict=True)) for row in data.X]
    pairs = explicit_pairs(data.y, data.qid)
    short = [max(Fraction(0), 1 - scores[i] + scores[j]) for i, j in pairs.tolist()]
    total = sum(one * one for one in short) / len(short)
    return total + Fraction(ridge) / 2 * sum(one * one for one in weights)


def least_squares_weights(data, chosen, ridge):
    """Weights near the minimum for a set, by least squares over the pairs with margin below 1."""
    pairs, w = explicit_pairs(data.y, data.qid), np.zeros(data.n_features)
    K = data.X[pairs[:, 0]][:, chosen] - data.X[pairs[:, 1]][:, chosen]
    unit = np.abs(K).max(axis=0)
    v = np.zeros(len(chosen))
    for _ in range(40):
        short = K / unit @ v < 1
        system = np.vstack([K[short] / unit / np.sqrt(len(K)), np.diag(np.sqrt(ridge / 2) / unit)])
        right = np.append(np.full(short.sum(), len(K) ** -0.5), np.zeros(len(chosen)))
        v = 0.5 * (v + np.linalg.lstsq(system, right, rcond=None)[0])
    w[list(chosen)] = v / unit
    return w


@pytest.mark.parametrize("seed", [0, 2, 5])
@pytest.mark.parametrize("nearness", [0.0, 1e-14])
@pytest.mark.parametrize("power", [12, -12])
@pytest.mark.full
def test_near_copies_in_different_units_have_valid_bounds(seed, nearness, power):
    rng = np.random.default_rng(seed)
    base = rng.integers(-2, 3, size=(24, 3)).astype(float)
    y = np.digitize(base[:, 0] + 0.5 * rng.normal(size=24), [-0.5, 0.5]).astype(float)
    X = np.hstack([base, base * (1.0 + nearness * rng.normal(size=base.shape))])
    data = rs.Dataset(X * 10.0 ** (power * rng.integers(0, 2, 6)), y, np.repeat(np.arange(4), 6))
    ranker = rs.BestSubset(3, ridge=1e-17, normalise="z", time_limit=np.inf, max_nodes=200).fit(data)
    prepared = ranker.preparation_.apply(data)
    for chosen in itertools.combinations(range(6), 3):
        weights = least_squares_weights(prepared, chosen, ranker.ridge_)
        assert exact_objective(prepared, weights, ranker.ridge_) >= Fraction(ranker.bound_)
