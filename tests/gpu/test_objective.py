"""The objective on a GPU equals that on the CPU: values, gradients, Hessians, parts and line searches."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.data.dataset import Dataset
from ranksieve.gpu.matrix import on_device
from ranksieve.losses import SquaredHinge
from ranksieve.objective import make_objective
from tests.conftest import random_dataset

KINDS = ("plain", "weights of documents", "weights of levels", "many labels", "tiles", "float16")


class Case:
    """CPU and GPU objective of the same data, evaluated at the same weights."""

    def __init__(self, kind: str, monkeypatch, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        data = random_dataset(seed=seed, n_queries=8, n_features=7, longest=40, n_levels=4)
        y = rng.permutation(len(data)).astype(float) // 3 if kind == "many labels" else data.y
        weighted = kind in ("weights of documents", "weights of levels")
        data = Dataset(
            data.X.astype(np.float32), y, data.qid,
            document_weight=rng.uniform(0.5, 2.0, len(data)) if weighted else None,
        )  # fmt: skip
        table = np.arange(16.0).reshape(4, 4) + 1.0 if kind == "weights of levels" else None
        loss = SquaredHinge(table, "sqrt" if weighted else "pairs")
        if kind in ("tiles", "weights of levels"):
            monkeypatch.setattr("ranksieve.gpu.features.TASK_ROWS", (16,))
            monkeypatch.setattr("ranksieve.gpu.loss.HESSIAN_COLUMNS", 16)
        if kind == "float16":
            monkeypatch.setattr("ranksieve.gpu.features.FLOAT16_MIN_DOCUMENTS", 1)
        self.data, weight = data, rng.uniform(0.5, 2.0, data.n_queries)
        self.host = make_objective(data, loss, weight)
        self.gpu = make_objective(on_device(data, "cuda"), loss, weight)
        self.w, self.v = 0.3 * rng.normal(size=7), rng.normal(size=7)
        self.at_host, self.at_gpu = self.host.evaluate(self.w), self.gpu.evaluate(self.w)
        self.hessian = 1e-3 if kind == "float16" else 1e-6
        self.cuts = np.array([0, 3, 5, data.n_queries])


@pytest.fixture(params=KINDS)
def case(request, monkeypatch):
    return Case(request.param, monkeypatch)


def assert_near(actual, expected, share=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=share * np.max(np.abs(expected)))


def test_values_gradients_and_bounds_of_certificates(case):
    assert case.gpu.loss.normaliser == pytest.approx(case.host.loss.normaliser, rel=1e-14)
    assert case.at_gpu.value == pytest.approx(case.at_host.value, rel=1e-13)
    assert case.at_gpu.slack == pytest.approx(case.at_host.slack, rel=1e-13)
    assert_near(case.gpu.gradient(case.at_gpu), case.host.gradient(case.at_host))
    bounds = case.gpu.gradient_error(case.at_gpu), case.host.gradient_error(case.at_host)
    assert np.all(bounds[0] >= (1 - 1e-9) * bounds[1])  # the GPU uses a bound on the scores
    assert case.gpu.value_error(case.at_gpu) >= (1 - 1e-9) * case.host.value_error(case.at_host)
    for scale in (0.3, 1.0):
        expected = case.host.dual(case.at_host, scale)
        assert case.gpu.dual(case.at_gpu, scale) == pytest.approx(expected, rel=1e-12)


def test_hessians(case):
    columns = np.array([0, 2, 3, 6])
    assert_near(
        case.gpu.hessian(case.at_gpu, columns), case.host.hessian(case.at_host, columns), case.hessian
    )
    assert_near(case.gpu.curvatures(case.at_gpu), case.host.curvatures(case.at_host), case.hessian)
    result, expected = (
        one.hessian_product(at, case.v) for one, at in ((case.gpu, case.at_gpu), (case.host, case.at_host))
    )
    assert_near(result, expected)


def test_parts_add_up(case):
    assert_near(case.gpu.gradients(case.at_gpu, case.cuts), case.host.gradients(case.at_host, case.cuts))
    columns = np.array([1, 2, 5])
    expected = case.host.hessians(case.at_host, columns, case.cuts)
    assert_near(case.gpu.hessians(case.at_gpu, columns, case.cuts), expected, case.hessian)


def test_lines(case):
    lines = [
        one.slopes_along(at, one.scores(case.v))
        for one, at in ((case.gpu, case.at_gpu), (case.host, case.at_host))
    ]
    for step in (0.0, 0.3, 2.0):
        result, expected = (line(step) for line in lines)
        assert result == pytest.approx(expected, rel=1e-9, abs=1e-9)
    slope = case.host.slope_along(case.at_host, case.host.scores(case.v))
    assert case.gpu.slope_along(case.at_gpu, case.gpu.scores(case.v)) == pytest.approx(slope, rel=1e-9)
    curvature = case.host.curvature_along(case.at_host, case.host.scores(case.v))
    result = case.gpu.curvature_along(case.at_gpu, case.gpu.scores(case.v))
    assert result == pytest.approx(curvature, rel=1e-9)


def test_subsets_of_columns_and_queries(monkeypatch):
    case = Case("plain", monkeypatch)
    columns = np.array([1, 4, 6])
    host, gpu = case.host.restricted(columns), case.gpu.restricted(columns)
    w = case.w[columns]
    at_host, at_gpu = host.evaluate(w), gpu.evaluate(w)
    assert at_gpu.value == pytest.approx(at_host.value, rel=1e-13)
    assert_near(gpu.gradient(at_gpu), host.gradient(at_host))
    assert gpu.features.column(1).cpu().numpy() == pytest.approx(case.data.X[:, 4])
    host, gpu = case.host.sample(2), case.gpu.sample(2)
    assert gpu.evaluate(case.w).value == pytest.approx(host.evaluate(case.w).value, rel=1e-13)


def test_repeated_evaluations_are_bit_identical(case):
    again = case.gpu.evaluate(case.w)
    assert again.value == case.at_gpu.value
    np.testing.assert_array_equal(case.gpu.features.transposed(again.at.gradient),
                                  case.gpu.features.transposed(case.at_gpu.at.gradient))  # fmt: skip
    columns = np.arange(7)
    np.testing.assert_array_equal(case.gpu.hessian(again, columns), case.gpu.hessian(case.at_gpu, columns))


@pytest.mark.filterwarnings("ignore:overflow")  # in Triton's interpreter
@pytest.mark.filterwarnings("ignore:invalid")
def test_overflowing_scores_have_an_infinite_value(monkeypatch):
    case = Case("plain", monkeypatch)
    assert case.gpu.evaluate(np.full(7, 1e300)).value == np.inf


@pytest.mark.parametrize("n_features", [1, 47, 136, 700, 5000])
def test_products_with_any_number_of_features(n_features):
    rng = np.random.default_rng(n_features)
    X = rng.standard_normal((23, n_features)).astype(np.float32)
    data = Dataset(X, np.arange(23) % 3, np.repeat([0, 1, 2], [9, 1, 13]))
    features = make_objective(on_device(data, "cuda")).features
    w, g, X = rng.standard_normal(n_features), rng.standard_normal(23), X.astype(np.float64)
    on_gpu = features.lists.to_device(g)
    np.testing.assert_allclose(features.scores(w).cpu().numpy(), X @ w, rtol=0, atol=1e-13 * n_features)
    np.testing.assert_allclose(features.transposed(on_gpu), X.T @ g, rtol=0, atol=1e-13)
    parts = features.transposed_parts(on_gpu, np.array([0, 9, 23]))
    np.testing.assert_allclose(parts, [X[:9].T @ g[:9], X[9:].T @ g[9:]], rtol=0, atol=1e-13)
