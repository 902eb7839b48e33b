"""Features of any scale and offset: the same result, a valid certificate, or an error."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import ranksieve as rs
from ranksieve.data.dataset import Dataset
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs
from tests.refusals import refused_data
from tests.test_signs import bounded_optimum


def with_column(data, j, values):
    X = data.X.copy()
    X[:, j] = values
    return Dataset(X, data.y, data.qid, data.feature_names)


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=8, n_queries=20, n_features=6, longest=16)


@pytest.mark.parametrize("scale", [1e-12, 1e-7, 1e-5, 1e3, 1e9])
def test_a_must_have_is_unpenalised_at_any_scale(data, scale):
    unscaled = rs.sparse_path(data, n_alphas=6, must_have="f2")
    scaled = rs.sparse_path(with_column(data, 1, scale * data.X[:, 1]), n_alphas=6, must_have="f2")
    assert scaled.converged.all()
    np.testing.assert_allclose(scaled.coefs[:, 1] * scale, unscaled.coefs[:, 1], rtol=1e-3)
    np.testing.assert_allclose(scaled.objectives, unscaled.objectives, rtol=2e-6)


def test_a_must_have_is_certified_against_another_solver(data):
    small = with_column(data, 1, 1e-7 * data.X[:, 1])
    path = rs.sparse_path(small, n_alphas=5, must_have="f2", tol=1e-8)
    for alpha, objective, gap in zip(path.alphas, path.objectives, path.gaps, strict=True):
        slope = np.full(6, alpha)
        slope[1] = 0.0
        best = bounded_optimum(data, slope, slope)[0]  # unpenalised: independent of the column's scale
        assert objective - best <= gap + 1e-9 * best
        assert objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("offset", [1e6, 1e9, 1e12, 2.0**46])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_an_offset_changes_nothing(data, offset, kind):
    """Compared with the column rounded to the precision of the shifted one."""
    shifted = with_column(data, 1, data.X[:, 1] + offset)
    exact = with_column(data, 1, shifted.X[:, 1] - offset)
    expected = rs.sparse_path(exact, n_alphas=20)
    path = rs.sparse_path(shifted.replace_features(kind(shifted.X)), n_alphas=20)
    assert path.converged.all()
    np.testing.assert_allclose(path.alphas, expected.alphas, rtol=1e-10)
    np.testing.assert_allclose(path.coefs, expected.coefs, atol=1e-6)
    np.testing.assert_allclose(path.objectives, expected.objectives, rtol=1e-6)


def test_offsets_per_query_change_nothing(data):
    shift = np.random.default_rng(0).integers(1, 2**40, data.n_queries)[data.qid].astype(float)
    shifted = with_column(data, 1, np.round(data.X[:, 1], 2) + shift)
    exact = with_column(data, 1, shifted.X[:, 1] - shift)
    np.testing.assert_allclose(
        rs.sparse_path(shifted, n_alphas=10).coefs, rs.sparse_path(exact, n_alphas=10).coefs, atol=1e-6
    )


@pytest.mark.parametrize("kind", [rs.baselines.ProxRank, rs.RankSVM, rs.FenchelRank, rs.SparseRankSVM])
def test_offsets_change_nothing_with_every_solver(data, kind):
    shifted = with_column(data, 1, data.X[:, 1] + 1e12)
    exact = with_column(data, 1, shifted.X[:, 1] - 1e12)
    np.testing.assert_allclose(kind().fit(shifted).coef_, kind().fit(exact).coef_, atol=1e-5)


def test_a_large_constant_is_never_selected(data):
    constant = with_column(data, 1, 1e15 + 7.0 * data.qid)
    assert not rs.sparse_path(constant, n_alphas=30).coefs[:, 1].any()


def exact_objective(data, w, alpha):
    """f(w) + α‖w‖₁ over explicit pairs in exact arithmetic."""
    X = [[Fraction(x) for x in row] for row in data.X]
    weights = [Fraction(x) for x in w]
    pairs = explicit_pairs(data.y, data.qid)
    margins = [sum(v * (a - b) for v, a, b in zip(weights, X[i], X[j], strict=True)) for i, j in pairs]
    loss = sum(max(Fraction(0), 1 - margin) ** 2 for margin in margins) / len(pairs)
    return loss + Fraction(float(alpha)) * sum(abs(v) for v in weights)


@pytest.mark.parametrize("factor", [1.0, 1e4, 1e8])
def test_gaps_are_valid_below_rounding(factor):
    """Against nearby points in exact arithmetic, with an unreachable tolerance."""
    original = random_dataset(seed=3, n_queries=5, n_features=4, longest=8)
    data = with_column(original, 1, factor * original.X[:, 1] + 1e3 * factor)
    alphas = rs.sparse_path(data, n_alphas=4).alphas
    with pytest.warns(UserWarning, match="did not reach"):
        path = rs.sparse_path(data, alphas=alphas, tol=1e-18)
    for k, alpha in enumerate(alphas):
        reached = exact_objective(data, path.coefs[k], alpha)
        nearby = [path.coefs[k] * (1 + step) for step in (-1e-9, -1e-12, 1e-12, 1e-9)]
        best = min(exact_objective(data, w, alpha) for w in nearby)
        assert path.gaps[k] > 0
        assert float(reached - best) <= path.gaps[k]
        assert abs(float(reached - Fraction(float(path.objectives[k])))) <= path.gaps[k]


@pytest.mark.parametrize(
    "ranker",
    [
        rs.baselines.ProxRank(),
        rs.SparseRankSVM(solver="fista"),
        rs.SparseRankSVM(),
        rs.FSMRank(),
        rs.SparseListMLE(),
        rs.baselines.ListNet(),
        rs.SparseRanker(normalise="none"),
        rs.FenchelRank(),
        rs.RankSVM(),
        rs.baselines.TGRank(),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
@pytest.mark.filterwarnings("ignore::ranksieve.prepare.scaling.ScaleWarning")
def test_too_large_columns_are_refused(data, ranker):
    with refused_data() as info:
        ranker.fit(with_column(data, 1, 1e160 * data.X[:, 1]))
    assert "largest allowed is 1e+30" in info.value.reason


@pytest.mark.parametrize("solver", ["fista", "path"])
def test_constant_features_give_a_model_without_features(solver):
    """Their gradient is 0 up to rounding and their curvature exactly 0."""
    rng = np.random.default_rng(19)
    n = int(rng.integers(6, 60))
    qid, y = np.sort(rng.integers(0, 6, n)), rng.integers(0, 4, n)
    data = Dataset(np.column_stack([np.full(n, 0.1), rng.random(6)[qid]]), y, qid)
    assert not rs.SparseRankSVM(solver=solver).fit(data).coef_.any()


def test_a_path_above_its_tolerance_causes_a_warning(data):
    with pytest.warns(UserWarning, match=r"\d+ of 10 points of the path did not reach .* largest is"):
        path = rs.sparse_path(data, n_alphas=10, max_iter=1)
    assert not path.converged.all()


def test_a_ranker_above_its_tolerance_causes_a_warning(data):
    with pytest.warns(UserWarning, match="FenchelRank did not reach tol=1e-09"):
        rs.FenchelRank(tol=1e-9, max_iter=3).fit(data)
