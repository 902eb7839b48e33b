"""FSMRank against an independent solver, its certificate, its theorems, its measures and its errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from papers.studies.theory import (
    fsmrank_convergence,
    fsmrank_generalisation,
)
from scipy.optimize import minimize

from ranksieve.data.dataset import Dataset
from ranksieve.io.folds import load_letor_folds
from ranksieve.methods import parameter_grid
from ranksieve.objective import make_objective
from ranksieve.penalties import L1
from ranksieve.penalties.similarity import (
    FORMS,
    feasible_scales,
    is_positive_semidefinite,
    nearest_positive_semidefinite,
)
from ranksieve.rankers.fsmrank import FSMRank, fsmrank_lipschitz
from ranksieve.rankers.measures import feature_importance, feature_similarity
from ranksieve.synthetic import make_ranking
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs
from tests.protocol import five_fold
from tests.refusals import refused_data, refused_parameter
from tests.solving import prox_newton

TIGHT = {"tol": 1e-13, "max_iter": 20_000}


def data_of(seed=0, n_queries=12, n_features=6):
    """Correlated features, some with negative weights."""
    data = random_dataset(seed=seed, n_queries=n_queries, n_features=n_features, longest=18)
    X = data.X.copy()
    X[:, 3] = 0.8 * X[:, 0] + 0.4 * X[:, 3]
    X[:, 4] = -0.7 * X[:, 1] + 0.5 * X[:, 4]
    return Dataset(X, data.y, data.qid)


class Explicit:
    """F(u, v) on explicit pairs; eq. (2) has q(u + v), eq. (1) has q(u − v)."""

    def __init__(self, data, model):
        pairs = explicit_pairs(data.y, data.qid)
        self.K = data.X[pairs[:, 0]] - data.X[pairs[:, 1]]
        self.sign = {"split": 1.0, "signed": -1.0}[model.form]
        self.A = model.similarity_weight * (0.0 if model.similarity_ is None else model.similarity_)
        self.A = np.broadcast_to(self.A, (data.n_features, data.n_features))
        with np.errstate(divide="ignore"):
            self.slope = np.where(model.importance_ > 0, model.alpha / model.importance_, np.inf)

    def __call__(self, uv):
        u, v = np.split(uv, 2)
        xi = np.maximum(0.0, 1.0 - self.K @ (u - v))
        g = -2.0 * self.K.T @ xi / len(self.K)
        pull = self.A @ (u + self.sign * v)
        value = xi @ xi / len(self.K) + 0.5 * (u + self.sign * v) @ pull + self.l1(u + v)
        return value, np.concatenate([g + pull + self.slope, -g + self.sign * pull + self.slope])

    def l1(self, size):
        return self.slope[size > 0] @ size[size > 0]

    def at(self, w):
        return self(np.concatenate([np.maximum(w, 0), np.maximum(-w, 0)]))[0]

    def minimum(self):
        bounds = [(0.0, None if np.isfinite(s) else 0.0) for s in np.tile(self.slope, 2)]
        options = {"maxiter": 20_000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-11}
        finite = np.where(np.isfinite(self.slope), self.slope, 0.0)
        self.slope = finite
        best = minimize(
            self, np.zeros(2 * len(finite)), jac=True, bounds=bounds, method="L-BFGS-B", options=options
        )
        return best.fun, best.x


MEASURES = [
    {},
    {"similarity": "squared_pearson", "importance": "map"},
    {"similarity": "kendall", "importance": "ndcg"},
    {"similarity": "identity", "importance": "ones"},
    {"importance": np.array([0.9, 0.1, 0.5, 0.0, 1.0, 0.3])},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("measures", MEASURES, ids=lambda m: "-".join(map(str, m)) or "default")
@pytest.mark.parametrize(("alpha", "similarity_weight"), [(1e-3, 0.0), (1e-2, 0.05), (3e-3, 1.0)])
def test_agrees_with_lbfgs_on_explicit_pairs(form, measures, alpha, similarity_weight):
    data = data_of()
    model = FSMRank(alpha, similarity_weight, form=form, **measures, **TIGHT).fit(data)
    explicit = Explicit(data, model)
    assert model.objective_ == pytest.approx(explicit.at(model.coef_), rel=1e-12)
    best, uv = explicit.minimum()
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.coef_, uv[:6] - uv[6:], atol=2e-3)
    assert model.gap_ <= 1e-3 * best


def algorithm_1(data, model, n_iter):
    """The paper's Algorithm 1, line by line, on explicit pairs in the doubled variables: objectives."""
    F = Explicit(data, model)
    s, L0 = np.tile(F.slope, 2), (4 + 2 * model.similarity_weight) * data.n_features

    def smooth(x):
        value, gradient = F(x)
        return value - s @ x, gradient - s

    w = z = np.zeros(2 * data.n_features)
    a, L, objectives = 1.0, L0 / 2**10, []
    for _ in range(n_iter):
        before = w
        at_z, g = smooth(z)
        while True:
            w = np.maximum(L * z - g - s, 0) / L
            if smooth(w)[0] <= at_z + g @ (w - z) + L / 2 * (w - z) @ (w - z):
                break
            L *= 2
        objectives.append(F(w)[0])
        a, last = (1 + np.sqrt(1 + 4 * a**2)) / 2, a
        z = w + (last - 1) / a * (w - before)
    return objectives


@pytest.mark.parametrize(("alpha", "similarity_weight"), [(1e-3, 0.0), (1e-2, 0.1)])
def test_iterates_are_those_of_algorithm_1(alpha, similarity_weight):
    data = data_of(1)
    model = FSMRank(alpha, similarity_weight, tol=1e-12, max_iter=40).fit(data)
    np.testing.assert_allclose(model.trace_.objective, [1.0, *algorithm_1(data, model, 40)], rtol=1e-9)


def explicit_gap(data, model):
    """The gap of the docstring at coef_, from explicit pairs."""
    F, w = Explicit(data, model), model.coef_
    xi = np.maximum(0.0, 1.0 - F.K @ w)
    t = np.abs(w) if model.form == "split" else w
    g, h = -2.0 * F.K.T @ xi / len(F.K), F.A @ t
    across, along, slope = np.concatenate([g, -g]), np.concatenate([h, F.sign * h]), np.tile(F.slope, 2)

    def dual(c, theta):
        return 2 * c * xi.mean() - c**2 * (xi**2).mean() - theta**2 * 0.5 * t @ h

    grid = np.linspace(0, 1, 20_001)
    joint = [c for c in grid if np.all(c * (across + along) + slope >= 0)][-1]
    alone = [c for c in grid if np.all(c * across + along + slope >= 0)][-1:]
    return F.at(w) - max([dual(joint, joint), *(dual(c, 1.0) for c in alone)])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("alpha", "similarity_weight"), [(1e-2, 0.0), (1e-2, 0.1), (0.1, 1.0)])
def test_gap_is_that_of_explicit_pairs(form, alpha, similarity_weight):
    data = data_of(3)
    model = FSMRank(alpha, similarity_weight, form=form, max_iter=6).fit(data)
    assert model.gap_ == pytest.approx(explicit_gap(data, model), abs=2e-4)
    assert model.gap_ > 0.005


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("max_iter", [1, 2, 5, 20, 100, 20_000])
@pytest.mark.parametrize("seed", range(3))
def test_gap_bounds_the_distance_to_the_optimum(form, max_iter, seed):
    data = data_of(seed)
    model = FSMRank(0.01, 0.2, form=form, tol=1e-13, max_iter=max_iter).fit(data)
    explicit = Explicit(data, model)
    assert model.objective_ == pytest.approx(explicit.at(model.coef_), rel=1e-12)
    best, _ = explicit.minimum()
    assert model.objective_ - model.gap_ <= best * (1 + 1e-9)
    assert best <= model.objective_ * (1 + 1e-9)
    assert len(model.trace_) == model.n_iter_ + 1
    assert (model.trace_.objective[-1], model.trace_.gap[-1]) == (model.objective_, model.gap_)
    assert np.isnan(model.trace_.gap[:-1]).all()  # the paper's rule does not need them
    if max_iter == 20_000:
        assert model.gap_ <= 1e-5 * best


@pytest.mark.parametrize("form", FORMS)
def test_a_matrix_with_negative_entries_is_certified_too(form):
    """Then −q's gradient can leave no room at θ = 1, and u, v may both stay positive."""
    data = data_of(4)
    A = np.eye(6)
    A[0, 1] = A[1, 0] = -0.9
    A[2, 5] = A[5, 2] = -0.8
    early = FSMRank(0.01, 0.5, similarity=A, form=form, tol=1e-13, max_iter=3).fit(data)
    late = FSMRank(0.01, 0.5, similarity=A, form=form, **TIGHT).fit(data)
    best, _ = Explicit(data, late).minimum()
    assert late.objective_ == pytest.approx(best, rel=1e-6)
    assert early.objective_ - early.gap_ <= best * (1 + 1e-9)
    assert 0 <= late.gap_ <= 1e-4


def test_scales_are_feasible_and_the_largest():
    rng = np.random.default_rng(0)
    kinds = set()
    for _ in range(200):
        form = FORMS[rng.choice(["split", "signed"])](rng.exponential(size=4))
        g, pull = rng.normal(size=4) * 2 * (rng.random(4) < 0.8), rng.normal(size=4)
        across, along = np.concatenate([g, -g]), form.doubled(pull)
        slope = np.tile(form.slope, 2)
        scales = feasible_scales(form, g, pull)
        kinds.add((form.name, len(scales)))
        for c, theta in scales:
            assert 0 <= c <= 1
            assert np.all(c * across + theta * along + slope >= -1e-12)
        c, theta = scales[-1]
        assert c == theta
        more = min(1.0, c + 1e-6)
        assert c == 1 or np.any(more * (across + along) + slope < 0)
        fixed = [s for s in np.linspace(0, 1, 201) if np.all(s * across + along + slope >= 0)]
        assert len(scales) == 2 or not fixed
        if fixed:
            assert fixed[-1] <= scales[0][0] <= fixed[-1] + 0.005 + 1e-12
    assert kinds == {(name, n) for name in FORMS for n in (1, 2)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alpha", [0.002, 0.02, 0.1])
def test_without_similarity_and_importance_it_is_plain_l1(form, alpha):
    data = data_of(2)
    model = FSMRank(alpha, 0.0, importance="ones", form=form, **TIGHT).fit(data)
    newton = prox_newton(make_objective(data), L1(alpha), tol=1e-10)
    assert model.similarity_ is None
    assert abs(model.objective_ - newton.objective) <= model.gap_ + newton.gap
    assert model.objective_ == pytest.approx(newton.objective, rel=1e-8)
    np.testing.assert_allclose(model.coef_, newton.w, atol=1e-3)


def test_importance_is_a_weight_on_l1():
    data = data_of(2)
    model = FSMRank(0.01, 0.0, **TIGHT).fit(data)
    np.testing.assert_allclose(model.importance_, feature_importance("pearson", data))
    newton = prox_newton(make_objective(data), L1(0.01, 1 / model.importance_), tol=1e-10)
    assert model.objective_ == pytest.approx(newton.objective, rel=1e-8)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alpha", [0.0, 1e-4])
def test_features_of_importance_zero_are_excluded(form, alpha):
    data = data_of()
    X = np.column_stack([data.X, np.full(data.n_docs, 0.1)])
    importances = np.array([1.0, 0.0, 0.5, 1.0, 0.0, 1.0, 0.7])
    by_name = FSMRank(alpha, 0.01, form=form).fit(Dataset(X, data.y, data.qid))
    by_array = FSMRank(alpha, 0.01, form=form, importance=importances).fit(Dataset(X, data.y, data.qid))
    assert by_name.importance_[-1] == 0
    assert by_name.coef_[-1] == 0
    assert np.isfinite([by_name.objective_, by_array.objective_, by_name.gap_, by_array.gap_]).all()
    np.testing.assert_array_equal(by_array.coef_[[1, 4]], 0)
    assert np.count_nonzero(by_array.coef_) >= 3
    others = [0, 2, 3, 5, 6]
    block = by_array.similarity_[np.ix_(others, others)]
    alone = FSMRank(alpha, 0.01, form=form, importance=importances[others], similarity=block, **TIGHT).fit(
        X[:, others], data.y, qid=data.qid
    )
    tight = FSMRank(alpha, 0.01, form=form, importance=importances, **TIGHT).fit(X, data.y, qid=data.qid)
    assert tight.objective_ == pytest.approx(alone.objective_, rel=1e-6)


def test_the_two_equations_differ_where_similar_features_have_opposite_signs():
    rng = np.random.default_rng(3)
    base, own = rng.normal(size=(2, 200))
    X = np.column_stack([base, base + 0.3 * own])
    y = (X @ [-1.0, 1.0] > 0).astype(float)  # the difference of two similar features
    data = Dataset(X, y, np.arange(200) // 20)
    split, signed = (FSMRank(1e-4, 0.5, importance="ones", form=f, **TIGHT).fit(data) for f in FORMS)
    assert signed.coef_[0] < 0 < signed.coef_[1]
    # wᵀAw rewards opposite signs of similar features, |w|ᵀA|w| charges them.
    assert np.abs(signed.coef_).sum() > 1.2 * np.abs(split.coef_).sum()
    assert signed.objective_ < split.objective_ - 0.01


def test_turning_a_feature_round_turns_its_weight_round():
    data = data_of(1)
    flip = np.array([1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
    turned = Dataset(data.X * flip, data.y, data.qid)
    a, b = (FSMRank(1e-3, 0.1).fit(d) for d in (data, turned))
    np.testing.assert_allclose(b.coef_, a.coef_ * flip, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_order_of_features_does_not_matter(form):
    data, columns = data_of(1), [3, 0, 5, 1, 4, 2]
    a = FSMRank(1e-3, 0.1, form=form).fit(data)
    b = FSMRank(1e-3, 0.1, form=form).fit(Dataset(data.X[:, columns], data.y, data.qid))
    np.testing.assert_allclose(b.coef_, a.coef_[columns], atol=1e-9)


def test_similar_features_share_less_weight_as_similarity_weighs_more():
    data = make_ranking(60, 20, 5, random_state=2)
    used = [
        float(np.abs(m.coef_) @ m.similarity_ @ np.abs(m.coef_))
        for m in (FSMRank(1e-3, weight, **TIGHT).fit(data) for weight in (1e-3, 1e-2, 1e-1, 1.0))
    ]
    assert used == sorted(used, reverse=True)


def test_query_weights_are_repeated_queries():
    data = data_of(5)
    counts = np.array([1, 2, 0, 1, 3, 1, 1, 2, 1, 0, 1, 2])
    rows = [
        (data.queries.order[a:b], (q, k))
        for q, (a, b) in enumerate(zip(data.queries.offsets[:-1], data.queries.offsets[1:], strict=True))
        for k in range(counts[q])
    ]
    index = np.concatenate([r for r, _ in rows])
    repeated = Dataset(data.X[index], data.y[index], [i for r, i in rows for _ in r])
    a = FSMRank(1e-3, 0.1, tol=1e-6).fit(data, query_weight=counts.astype(float))
    b = FSMRank(1e-3, 0.1, tol=1e-6).fit(repeated)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-8)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_trace_and_callback_speak_of_weights(form):
    data, seen = data_of(), []
    model = FSMRank(1e-3, 0.1, form=form).fit(data, callback=lambda *step: seen.append(step))
    assert [n for n, *_ in seen] == list(range(model.n_iter_ + 1))
    assert all(len(w) == 6 for _, w, *_ in seen)
    assert model.trace_.n_nonzero == [np.count_nonzero(w) for _, w, *_ in seen]
    assert model.trace_.objective == [objective for *_, objective, _ in seen]
    np.testing.assert_array_equal(model.trace_.gap, [gap for *_, gap in seen])
    changes = np.abs(np.diff(model.trace_.objective)) / model.trace_.objective[:-1]
    assert model.converged_
    assert changes[-1] <= 1e-4 < changes[:-1].min()


def test_max_iter_ends_the_fit():
    model = FSMRank(1e-3, 0.1, max_iter=3).fit(data_of())
    assert model.n_iter_ == 3
    assert not model.converged_


@pytest.mark.parametrize("form", FORMS)
def test_warm_start_begins_at_the_previous_weights(form):
    data = data_of()
    model = FSMRank(1e-3, 0.1, form=form, tol=1e-9, max_iter=5000, warm_start=True).fit(data)
    cold, first = model.n_iter_, model.objective_
    again = model.fit(data)
    assert again.n_iter_ < cold / 2
    assert again.objective_ <= first * (1 + 1e-8)
    model.set_params(importance=np.array([1.0, 0, 1, 1, 1, 1]))
    cold = FSMRank(**{**model.get_params(), "warm_start": False}).fit(data)
    assert model.fit(data).coef_[1] == 0
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-7)


def indefinite():
    A = np.ones((6, 6))
    A[0, 1] = A[1, 0] = 0.0
    return A


def test_psd_project_replaces_the_matrix_by_the_nearest():
    A = indefinite()
    assert not is_positive_semidefinite(A)
    nearest = nearest_positive_semidefinite(A)
    assert is_positive_semidefinite(nearest)
    model = FSMRank(1e-3, 0.1, similarity=A).fit(data_of())
    np.testing.assert_allclose(model.similarity_, nearest)
    assert model.gap_ >= 0
    rng, distance = np.random.default_rng(0), np.linalg.norm(A - nearest)
    for _ in range(100):
        B = rng.normal(size=(6, 6)) * 0.1
        other = nearest_positive_semidefinite(nearest + B + B.T)
        assert np.linalg.norm(A - other) >= distance * (1 - 1e-12)


def test_psd_matrix_is_left_as_it_is():
    data = data_of()
    model = FSMRank(1e-3, 0.1).fit(data)
    np.testing.assert_array_equal(model.similarity_, feature_similarity("pearson", data))
    singular = np.ones((6, 6))
    np.testing.assert_array_equal(FSMRank(1e-3, 0.1, similarity=singular).fit(data).similarity_, singular)


def test_psd_warn_names_the_eigenvalue_and_keeps_the_matrix():
    smallest = np.linalg.eigvalsh(indefinite())[0]
    with pytest.warns(UserWarning, match=f"not positive semidefinite .smallest eigenvalue {smallest:.3g}"):
        model = FSMRank(1e-3, 0.1, similarity=indefinite(), psd="warn").fit(data_of())
    np.testing.assert_array_equal(model.similarity_, indefinite())
    assert np.isnan(model.gap_)


def test_psd_warning_points_at_the_call():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FSMRank(1e-3, 0.1, similarity=indefinite(), psd="warn").fit(data_of())
    assert [w.filename for w in caught] == [__file__]


def test_psd_ignore_keeps_the_matrix_silently():
    model = FSMRank(1e-3, 0.1, similarity=indefinite(), psd="ignore").fit(data_of())
    np.testing.assert_array_equal(model.similarity_, indefinite())
    assert np.isnan(model.gap_)
    assert np.all(np.isnan(model.trace_.gap))
    # Entries ≥ 0 keep eq. (2) bounded below: the result is still a descent from f(0) = 1.
    assert 0 < model.objective_ < 1


def test_psd_error():
    with refused_parameter("psd", "error"):
        FSMRank(1e-3, 0.1, similarity=indefinite(), psd="error").fit(data_of())


def test_an_unbounded_problem_is_named():
    A = np.eye(6) - 3.0
    with refused_data() as info:
        FSMRank(1e-3, 10.0, similarity=A, form="signed", psd="ignore").fit(data_of())
    assert "unbounded below" in info.value.reason


def test_default_measures_never_warn_with_more_features_than_documents():
    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(24, 30)), rng.integers(0, 3, 24), np.arange(24) // 6)
    assert not is_positive_semidefinite(feature_similarity("pearson", data))
    model = FSMRank().fit(data)
    assert model.gap_ >= 0


def unit_data(seed=0):
    return make_ranking(40, 12, 4, docs_per_query=(5, 15), random_state=seed)


@pytest.mark.parametrize("similarity_weight", [0.0, 0.1, 3.0])
def test_theorem_1_bounds_the_curvature_in_both_forms(similarity_weight):
    data = unit_data()
    A = similarity_weight * feature_similarity("pearson", data)
    objective = make_objective(data)
    H = objective.hessian(objective.at_zero, np.arange(12))  # all pairs active: the largest Hessian
    doubled = np.block([[H + A, A - H], [A - H, H + A]])
    bound = fsmrank_lipschitz(12, similarity_weight)
    assert bound == pytest.approx((4 + 2 * similarity_weight) * 12)
    assert np.linalg.eigvalsh(doubled)[-1] <= bound
    assert np.linalg.eigvalsh(H + A)[-1] <= bound / 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("alpha", "similarity_weight"), [(1e-4, 0.0), (1e-3, 0.1), (1e-2, 1.0)])
def test_theorem_2_bounds_every_iteration(form, alpha, similarity_weight):
    data = unit_data()
    model = FSMRank(alpha, similarity_weight, form=form, tol=1e-10, max_iter=400).fit(data)
    best = FSMRank(alpha, similarity_weight, form=form, tol=1e-14, max_iter=20_000).fit(data)
    optimum = FORMS[form](np.ones(12)).variables(best.coef_)
    bound = fsmrank_lipschitz(12, similarity_weight)
    assert len(model.trace_) > 20
    for t, objective in enumerate(model.trace_.objective):
        left = fsmrank_convergence(bound, np.zeros_like(optimum), optimum, t)
        assert objective - best.objective_ <= left + best.gap_
    assert fsmrank_convergence(3.0, np.zeros(2), np.array([1.0, 2.0]), 4) == pytest.approx(30 / 25)


def test_theorem_3_bounds_the_loss_on_unseen_queries():
    train, unseen = unit_data(0), unit_data(1)
    model = FSMRank(1e-3, 0.1).fit(train)
    radius = float(np.abs(model.coef_) @ (1 / model.importance_))
    seen = make_objective(train)
    losses = [objective.evaluate(model.coef_).value for objective in (seen, make_objective(unseen))]
    bound = fsmrank_generalisation(radius, 12, seen.loss.normaliser, 0.1, 0.05)
    assert losses[1] - losses[0] <= bound


def test_theorem_3_by_hand_and_its_trends():
    d, p, C, weight, theta = 3, 200.0, 2.0, 0.5, 0.1
    by_hand = 2 * 15.0 * (4 * np.sqrt(6 / p) + (4 + 0.25 * 4) * np.sqrt(2 * np.log(36) / p)) + (
        9 + 0.25 * 4 - 1
    ) * np.sqrt(np.log(10) / (2 * p))
    assert fsmrank_generalisation(C, d, p, weight, theta) == pytest.approx(by_hand)
    assert fsmrank_generalisation(C, d, 4 * p, weight, theta) == pytest.approx(by_hand / 2)
    assert fsmrank_generalisation(C, d, p, weight, 0.01) > by_hand
    assert fsmrank_generalisation(0.0, d, p, weight, theta) == 0
    # Beyond C = 2d − 1 the slope of the hinge exceeds L0 and takes its place.
    large = fsmrank_generalisation(100.0, 1, 1e6, 0.0, 0.5)
    assert large >= 2 * 2 * 101 * 2 * 100 * np.sqrt(2 / 1e6)


@pytest.mark.parametrize(
    "parameters",
    [
        {"alpha": -1},
        {"alpha": np.nan},
        {"similarity_weight": -0.1},
        {"tol": 0},
        {"max_iter": 0},
        {"form": "eq2"},
        {"psd": "maybe"},
        {"importance": "pears"},
        {"importance": np.ones(5)},
        {"importance": np.zeros(6)},
        {"similarity": "tau"},
        {"similarity": np.eye(7)},
        {"similarity": np.triu(np.ones((6, 6)))},
        {"similarity": "tau", "similarity_weight": 0},
        {"similarity": np.eye(7), "similarity_weight": 0},
    ],
)
def test_bad_parameters(parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        FSMRank(**parameters).fit(data_of())


def test_ndcg_of_short_lists_gives_no_importance():
    data = random_dataset(seed=1, n_queries=8, longest=9)
    with refused_parameter("importance", "ndcg"):
        FSMRank(importance="ndcg").fit(data)


def test_no_pairs_come_before_no_importance():
    with refused_data() as info:
        FSMRank().fit(Dataset(np.ones((4, 2)), np.ones(4), [0, 0, 1, 1]))
    assert "pair" in info.value.reason


PAPER_GRID = parameter_grid(
    similarity_weight=[0.0, 1e-4, 1e-3, 1e-2, 1e-1], alpha=[10 ** (k / 2) for k in range(-10, -2)]
)


@pytest.mark.letor
@pytest.mark.parametrize(
    ("name", "ndcg", "mean_ap", "most"), [("OHSUMED", 0.4515, 0.4485, 0.42), ("MQ2008", 0.228, 0.476, 0.45)]
)
def test_letor(letor_root, monkeypatch, name, ndcg, mean_ap, most):
    monkeypatch.setenv("RANKSIEVE_LETOR", str(letor_root))
    row = five_fold(FSMRank, PAPER_GRID, load_letor_folds(name)).to_row()
    assert row["ndcg@10"] >= ndcg
    assert row["map"] >= mean_ap
    assert row["sparsity"] <= most
