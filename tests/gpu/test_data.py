"""Moving data to a GPU: conversion, warnings and errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import ranksieve as rs
from ranksieve.gpu.matrix import DeviceMatrix, as_host_array, from_gpu, is_on_gpu, on_device
from ranksieve.objective import make_objective
from tests.conftest import random_dataset
from tests.gpu.conftest import HAS_GPU
from tests.refusals import refused_data, refused_parameter

FLOAT64 = pytest.mark.filterwarnings("ignore:the features are float64")


@pytest.fixture
def small():
    data = random_dataset(seed=3, n_queries=6, n_features=4, longest=9)
    return data.replace_features(data.X.astype(np.float32))


def values_at(data, w):
    objective = make_objective(data)
    point = objective.evaluate(w)
    return point.value, objective.gradient(point)


def check_same(data, device_data=None):
    w = np.linspace(-0.5, 0.5, data.n_features)
    value, gradient = values_at(data, w)
    gpu_value, gpu_gradient = values_at(on_device(device_data or data, "cuda"), w)
    assert gpu_value == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(gpu_gradient, gradient, atol=1e-6 * np.abs(gradient).max())


def test_scattered_queries(small):
    order = np.random.default_rng(0).permutation(len(small))
    check_same(small.select_rows(order))


def test_document_weights_of_scattered_queries(small):
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(small))
    data = rs.Dataset(small.X, small.y, small.qid, document_weight=weight)
    check_same(data.select_rows(np.random.default_rng(0).permutation(len(small))))


def test_sparse_and_column_order(small):
    check_same(small, small.replace_features(scipy.sparse.csr_array(small.X)))
    check_same(small, small.replace_features(np.asfortranarray(small.X)))


def test_float64_is_converted_with_a_warning(small):
    data = small.replace_features(small.X.astype(np.float64))
    with pytest.warns(UserWarning, match="float32"):
        moved = on_device(data, "cuda")
    assert moved.X.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(moved.X), small.X)


@FLOAT64
def test_features_with_large_offsets(small):
    X = small.X.astype(np.float64)
    X[:, 2] = 1.7e9 + 1e-3 * X[:, 2]
    check_same(small.replace_features(X))


def test_features_that_do_not_vary_get_no_gradient(small):
    X = small.X.copy()
    X[:, 1] = small.queries.of_rows(np.arange(small.n_queries)).astype(np.float32)
    objective = make_objective(on_device(small.replace_features(X), "cuda"))
    np.testing.assert_array_equal(objective.varies, [True, False, True, True])
    point = objective.evaluate(np.full(4, 0.1))
    assert objective.gradient(point)[1] == 0.0
    assert not objective.hessian(point, np.arange(4))[1].any()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_named(value, small):
    X = small.X.copy()
    X[3, 2] = value
    with refused_data() as info:
        rs.sparse_path(small.replace_features(X), missing="error", device="cuda")
    assert "f3 of row 3" in info.value.reason


def test_rows_and_columns_of_a_matrix_stay_on_the_gpu(small):
    X = on_device(small, "cuda").X
    assert isinstance(X, DeviceMatrix)
    rows, columns = np.array([5, 1, 2]), np.array([3, 0])
    chosen = X.take_rows(rows)[:, columns]
    assert isinstance(chosen, DeviceMatrix)
    np.testing.assert_array_equal(np.asarray(chosen), small.X[rows][:, columns])
    np.testing.assert_array_equal(X[2:4], small.X[2:4])
    assert X[1, 2] == small.X[1, 2]
    assert X.value_range == (small.X.min(), small.X.max())


def test_no_pairs(small):
    data = rs.Dataset(small.X, np.ones(len(small)), small.qid)
    with refused_data() as info:
        make_objective(on_device(data, "cuda"))
    assert "pair" in info.value.reason


def test_too_little_memory_is_an_error_before_copying(monkeypatch):
    import torch

    from ranksieve.gpu.matrix import check_memory

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2 * 10**9, 10**10))
    monkeypatch.setattr("ranksieve.gpu.matrix._cached_memory", lambda device: 0)
    with refused_data() as info:
        check_memory(torch.device("cuda"), {"features": 4 * 10**9, "documents": 10**9})
    assert "(4 GB for features, 1 GB for documents)" in info.value.reason


def test_arrays_of_other_libraries(small):
    import torch

    tensor = torch.from_numpy(small.X)
    assert not is_on_gpu(tensor)
    np.testing.assert_array_equal(rs.Dataset(tensor, small.y, small.qid).X, small.X)
    np.testing.assert_array_equal(np.asarray(from_gpu(tensor)), small.X)
    with pytest.warns(UserWarning, match="float64"):
        np.testing.assert_array_equal(np.asarray(from_gpu(tensor.double())), small.X)
    np.testing.assert_array_equal(as_host_array(tensor), small.X)
    with refused_parameter("X"):
        from_gpu(tensor[0])
    with refused_data():
        from_gpu(tensor[:0])


@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU")
def test_fit_and_predict_with_a_tensor_on_the_gpu(small):
    import torch

    data = rs.Dataset(torch.from_numpy(small.X).cuda(), small.y, small.qid)
    assert isinstance(data.X, DeviceMatrix)
    host, gpu = rs.sparse_path(small, n_alphas=4), rs.sparse_path(data, n_alphas=4)
    np.testing.assert_allclose(gpu.coefs, host.coefs, atol=1e-6)
    ranker = rs.RankSVM().fit(data)
    np.testing.assert_array_equal(ranker.predict(data), rs.RankSVM().fit(data).predict(small))
    X = torch.from_numpy(small.X).cuda()
    np.testing.assert_array_equal(ranker.predict(X), ranker.predict(small))
    fitted_on_arrays = rs.RankSVM().fit(X, small.y, small.qid)
    np.testing.assert_allclose(fitted_on_arrays.coef_, ranker.coef_)
    with pytest.raises(ValueError, match="3 features"):
        fitted_on_arrays.predict(X[:, :3])


@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU")
def test_cupy_arrays(small):
    cupy = pytest.importorskip("cupy")
    data = rs.Dataset(cupy.asarray(small.X), small.y, small.qid)
    np.testing.assert_array_equal(np.asarray(data.X), small.X)
