"""Signs, must_have and must_not in the path: the optimum, its certificate, the grid, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from ranksieve.choice.forward import fit_set
from ranksieve.data.budget import Budget
from ranksieve.data.costs import make_costs
from ranksieve.data.dataset import Dataset
from ranksieve.io.tables import read_signs
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties import L1, ElasticNet
from ranksieve.rankers import SparseRanker
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs
from tests.refusals import refused_data, refused_parameter
from tests.solving import fista, prox_newton
from tests.tiers import examples

NAMES = ["bm25", "price", "clicks", "age", "stock", "rating"]


@pytest.fixture(scope="module")
def data():
    original = random_dataset(seed=12, n_queries=25, n_features=6)
    return Dataset(original.X, original.y, original.qid, NAMES)


def differences(data):
    pairs = explicit_pairs(data.y, data.qid)
    return data.X[pairs[:, 0]] - data.X[pairs[:, 1]]


def bounded_optimum(data, up, down, ridge=0.0):
    """L-BFGS-B on w = u − v with u, v ≥ 0; an infinite slope becomes the bound u = 0 or v = 0."""
    K, d = differences(data), data.n_features
    allowed = np.isfinite(np.concatenate([up, down]))
    slope = np.where(allowed, np.concatenate([up, down]), 0.0)

    def F(uv):
        w = uv[:d] - uv[d:]
        xi = np.maximum(0, 1 - K @ w)
        g = -2 * K.T @ xi / len(K) + ridge * w
        return xi @ xi / len(K) + slope @ uv + ridge * w @ w / 2, np.concatenate([g, -g]) + slope

    bounds = [(0, None if free else 0) for free in allowed]
    options = {"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-11}
    start, before = np.zeros(2 * d), np.inf
    while True:  # its line search may stop far from the optimum; a restart continues
        best = minimize(F, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
        if best.fun >= before:
            return best.fun, best.x[:d] - best.x[d:]
        start, before = best.x, best.fun


def explicit_gap(data, w, up, down):
    """Objective and gap from explicit pairs: u = 2cξ/p is feasible if −up ≤ −Kᵀu ≤ down.

    An unpenalised feature needs Kᵀu = 0, which holds up to rounding at its optimal weight.
    """
    K = differences(data)
    xi, p = np.maximum(0, 1 - K @ w), len(K)
    primal = xi @ xi / p + sum(u * x if x > 0 else v * -x for u, v, x in zip(up, down, w, strict=True) if x)
    reach = K.T @ (2 * xi / p)
    facing = np.where(reach > 0, up, down)
    c = min(1.0, *(side / abs(r) for side, r in zip(facing, reach, strict=True) if side > 0))
    u = c * 2 * xi / p
    assert np.all(K.T @ u <= up + 1e-14)
    assert np.all(-(K.T @ u) <= down + 1e-14)
    return primal, primal - (u.sum() - p * (u @ u) / 4)


def sides(slope, signs):
    return np.where(signs < 0, np.inf, slope), np.where(signs > 0, np.inf, slope)


@examples(25)
@given(st.integers(0, 5), st.lists(st.sampled_from([-1, 0, 1]), min_size=6, max_size=6), st.floats(-3, -0.5))
@example(4, [1, 1, 0, 1, 1, 0], -1.952909935792995)
def test_the_optimum_equals_that_of_a_bounded_solver(seed, signs, exponent):
    problem_data, signs, alpha = (
        random_dataset(seed=seed, n_queries=10, n_features=6),
        np.array(signs),
        10**exponent,
    )
    result = prox_newton(make_objective(problem_data), L1(alpha, signs=signs), tol=1e-10)
    best, w = bounded_optimum(problem_data, *sides(np.full(6, alpha), signs))
    assert result.converged
    assert np.all(result.w * signs >= 0)
    assert result.objective == pytest.approx(best, rel=1e-7)
    np.testing.assert_allclose(result.w, w, atol=2e-3)


def test_elastic_net_with_signs(data):
    signs = np.array([1, -1, 0, 1, -1, 0])
    penalty = ElasticNet(0.05, signs=signs, l1_ratio=0.4)
    result = prox_newton(make_objective(data), penalty, tol=1e-11)
    best, w = bounded_optimum(data, *sides(np.full(6, 0.02), signs), ridge=0.03)
    assert result.converged
    assert result.objective == pytest.approx(best, rel=1e-8)
    np.testing.assert_allclose(result.w, w, atol=1e-4)
    assert fista(make_objective(data), penalty, tol=1e-9).objective == pytest.approx(best, rel=1e-7)


def test_every_point_of_a_signed_path_is_certified_by_explicit_pairs(data):
    unsigned = sparse_path(data, n_alphas=12)
    signs = -np.sign(unsigned.coefs[-1])
    signs[[1, 4]] = 0
    path = sparse_path(data, n_alphas=12, signs=signs)
    assert path.converged.all()
    assert np.any(path.n_nonzero > 0)
    for alpha, w, objective, gap in zip(path.alphas, path.coefs, path.objectives, path.gaps, strict=True):
        assert np.all(w * signs >= 0)
        primal, expected = explicit_gap(data, w, *sides(np.full(6, alpha), signs))
        assert objective == pytest.approx(primal, abs=1e-9)
        assert gap == pytest.approx(expected, abs=1e-9)


def test_the_path_begins_when_an_allowed_feature_enters(data):
    strongest = int(np.argmax(np.abs(sparse_path(data, n_alphas=2).coefs[1])))
    sign = -np.sign(sparse_path(data, n_alphas=2).coefs[1, strongest])
    edge = sparse_path(data, n_alphas=2, signs={strongest: sign}).alphas[0]
    path = sparse_path(data, alphas=[edge * 1.0001, edge * 0.999], signs={strongest: sign})
    assert path.n_nonzero.tolist() == [0, 1]
    assert edge < sparse_path(data, n_alphas=2).alphas[0]


def test_signs_that_agree_with_the_optimum_change_nothing(data):
    unsigned = sparse_path(data, n_alphas=10)
    agreeing = {name: "+" if w > 0 else "-" for name, w in zip(NAMES, unsigned.coefs[-1], strict=True)}
    assert np.all((unsigned.coefs == 0) | (np.sign(unsigned.coefs) == np.sign(unsigned.coefs[-1])))
    bound = sparse_path(data, n_alphas=10, signs=agreeing)
    np.testing.assert_allclose(bound.coefs, unsigned.coefs, atol=1e-5)


def test_refitted_weights_keep_their_signs(data):
    """With all features, some of which would have the other sign without the bound."""
    objective = make_objective(data)
    for ridge in 1e-3 * sparse_path(data, n_alphas=3).alphas:
        free = fit_set(objective, range(6), np.ones(6), ridge, None, 1e-6)
        assert free.w.min() < -0.1
        bound = fit_set(objective, range(6), np.ones(6), ridge, np.ones(6), 1e-6)
        best, expected = bounded_optimum(data, np.zeros(6), np.full(6, np.inf), ridge)
        assert bound.w.min() >= 0
        assert bound.objective == pytest.approx(best, rel=2e-6)
        np.testing.assert_allclose(bound.w, expected, atol=1e-2)


@pytest.mark.parametrize("family", ["l1", "log", "forward", "refitted"])
def test_all_families_keep_signs(data, family):
    """The models of all data and those without a fold."""
    ranker = SparseRanker(families=[family], signs=dict.fromkeys(NAMES, "+"), n_alphas=10, cv=3)
    (only,) = ranker.fit(data).choice_.families
    assert only.coefs.min() >= 0
    assert only.fold_coefs.min() >= 0


@pytest.mark.parametrize("options", [{}, {"penalty": "elastic_net", "l1_ratio": 0.7}])
def test_must_haves_are_unpenalised_and_others_enter_at_the_first_alpha(data, options):
    path = sparse_path(data, n_alphas=20, must_have=["stock", "age"], tol=1e-9, **options)
    others = [NAMES.index(name) for name in NAMES if name not in ("stock", "age")]
    assert path.converged.all()
    assert np.all(path.coefs[:, [NAMES.index("stock"), NAMES.index("age")]] != 0)
    assert np.all(path.coefs[0, others] == 0)
    edge = path.alphas[0]
    again = sparse_path(
        data, alphas=[edge * 1.001, edge * 0.99], must_have=["stock", "age"], tol=1e-12, **options
    )
    assert np.count_nonzero(again.coefs[:, others], axis=1).tolist() == [0, 1]


@pytest.mark.parametrize("seed", [4, 9, 21])
@pytest.mark.parametrize("l1_ratio", [0.1, 0.5])
def test_the_first_alpha_is_exact_with_must_haves_and_a_ridge(seed, l1_ratio):
    problem_data = random_dataset(seed=seed, n_queries=8, n_features=5)
    options = {"penalty": "elastic_net", "l1_ratio": l1_ratio, "must_have": [2]}
    edge = sparse_path(problem_data, n_alphas=2, **options).alphas[0]
    before, after = sparse_path(
        problem_data, alphas=[edge * (1 + 1e-6), edge * (1 - 1e-6)], tol=1e-14, **options
    ).coefs
    assert np.count_nonzero(np.delete(before, 2)) == 0
    assert np.count_nonzero(np.delete(after, 2)) == 1


def test_must_haves_are_certified_by_explicit_pairs(data):
    path = sparse_path(data, n_alphas=10, must_have="stock", must_not=0, signs={"clicks": "+"})
    signs = np.array([0, 0, 1, 0, 0, 0])
    for alpha, w, objective, gap in zip(path.alphas, path.coefs, path.objectives, path.gaps, strict=True):
        slope = np.array([np.inf, alpha, alpha, alpha, 0.0, alpha])
        primal, expected = explicit_gap(data, w, *sides(slope, signs))
        assert objective == pytest.approx(primal, abs=1e-9)
        assert gap == pytest.approx(expected, abs=1e-9)
        assert gap <= 1e-6 * objective
        assert objective == pytest.approx(bounded_optimum(data, *sides(slope, signs))[0], rel=2e-6)


def test_a_weight_of_zero_is_a_must_have(data):
    by_name = sparse_path(data, n_alphas=8, must_have="price")
    by_weight = sparse_path(data, n_alphas=8, l1_weights=[1, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(by_name.coefs, by_weight.coefs)


def test_a_must_have_constant_within_queries_is_harmless(data):
    constant = Dataset(np.column_stack([data.X, np.ones(data.n_docs)]), data.y, data.qid)
    path = sparse_path(constant, n_alphas=8, must_have="f7")
    np.testing.assert_allclose(path.coefs[:, :6], sparse_path(data, n_alphas=8).coefs, atol=1e-9)
    assert np.all(path.coefs[:, 6] == 0)


def test_a_path_of_only_must_haves(data):
    path = sparse_path(data, n_alphas=4, must_have="stock", must_not=[n for n in NAMES if n != "stock"])
    assert path.n_nonzero.tolist() == [1, 1, 1, 1]
    assert path.converged.all()


def test_must_not_equals_removing_the_features(data):
    others = [0, 2, 3, 5]
    path = sparse_path(data, n_alphas=10, must_not=["price", np.int32(4)])
    without = sparse_path(Dataset(data.X[:, others], data.y, data.qid), n_alphas=10)
    np.testing.assert_allclose(path.coefs[:, others], without.coefs, atol=1e-9)
    assert np.all(path.coefs[:, [1, 4]] == 0)


def test_signs_from_a_file(tmp_path):
    table = tmp_path / "signs.tsv"
    table.write_text("feature\tsign\nclicks\t+\n\nprice\t-\nage\t0\nstock\t+1\n", encoding="utf-8")
    assert read_signs(table) == {"clicks": 1, "price": -1, "age": 0, "stock": 1}
    table.write_text("feature,sign\nclicks,+\nprice,down\n", encoding="utf-8")
    with refused_data("signs.tsv", 3):
        read_signs(table)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"must_have": ["prize"]}, ("must_have", "prize")),
        ({"must_not": [6]}, ("must_not", 6)),
        ({"must_have": [1.5]}, ("must_have", 1.5)),
        ({"must_have": [1.0]}, ("must_have", 1.0)),
        ({"must_not": [np.float64(1.0)]}, ("must_not", 1.0)),
        ({"must_not": [True, False]}, ("must_not", True)),
        ({"must_have": [np.bool_(True)]}, ("must_have", True)),
        ({"must_have": [None]}, ("must_have", None)),
        ({"signs": {2.5: "+"}}, ("signs", 2.5)),
        ({"must_have": "age", "must_not": ["age"]}, ("must_not", ["age"])),
        ({"must_not": NAMES}, ("must_not", NAMES)),
        ({"signs": {"age": "up"}}, ("signs", "age")),
        ({"signs": {"age": 2}}, ("signs", "age")),
        ({"signs": {"years": "+"}}, ("signs", "years")),
        ({"signs": [1, 0]}, ("signs", [1, 0])),
        ({"signs": "+"}, ("signs", "+")),
        ({"penalty": L1(), "signs": {"age": "+"}}, ("signs",)),
        ({"penalty": L1(), "must_have": "age"}, ("l1_weights",)),
        ({"penalty": "elastic_net", "l1_ratio": 0.0}, ("alphas", None)),
    ],
)
def test_bad_constraints(data, options, facts):
    with refused_parameter(*facts):
        sparse_path(data, **options)


@pytest.mark.parametrize("signs", [[0.5, 1.0], [[1.0]], np.nan])
def test_bad_signs_of_a_penalty(signs):
    with refused_parameter("signs", signs):
        L1(signs=signs)


def test_a_penalty_with_signs_for_other_features(data):
    with refused_parameter("signs", [1, 0]):
        prox_newton(make_objective(data), L1(0.1, signs=[1, 0]))


@pytest.mark.parametrize(
    "options",
    [
        {"signs": 1},
        {"l1_weights": {}},
        {"l1_weights": "heavy"},
    ],
)
def test_invalid_signs_and_weights_are_refused(options):
    data = random_dataset(n_features=3)
    with refused_parameter(*next(iter(options.items()))):
        SparseRanker(**options).fit(data)


class Counting(tuple):
    """Names that count how many of them are accessed."""

    n_accessed = 0

    def __iter__(self):
        for name in super().__iter__():
            Counting.n_accessed += 1
            yield name

    def __contains__(self, name):
        return any(one == name for one in self)

    def index(self, name):
        return next(j for j, one in enumerate(self) if one == name)


@pytest.mark.parametrize("name", ["x{}", "x[{}]"])
def test_naming_all_features_takes_linear_time(name):
    names = Counting(name.format(j) for j in range(400))
    some, plain = list(names), tuple(names)
    Counting.n_accessed = 0
    budget = Budget.of(names, must_not=some[1:], signs=dict.fromkeys(some, "+"))
    assert (budget.must_not == [False] + [True] * 399).all()
    costs = make_costs(dict.fromkeys(some, 2.0)).columns(names)
    assert costs.of(np.arange(400)) == 800.0
    assert plain == tuple(some)
    assert Counting.n_accessed < 20 * len(names)
