"""Fits on a GPU: the same results as on the CPU, with certificates that the CPU verifies."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.objective import make_objective
from ranksieve.penalties import L1
from ranksieve.penalties.base import duality_gap
from ranksieve.synthetic import make_ranking
from tests.refusals import refused_parameter


@pytest.fixture(scope="module")
def data():
    dataset = make_ranking(30, 8, 3, docs_per_query=(6, 12), random_state=1)
    return dataset.replace_features(dataset.X.astype(np.float32))


def recomputed(data, w, alpha):
    """Objective and gap computed on the CPU in float64."""
    objective = make_objective(data)
    point = objective.evaluate(w)
    return duality_gap(objective, L1(alpha).slopes(len(w)), point, objective.gradient(point))


def test_a_path_has_the_same_supports_and_valid_gaps(data):
    host, gpu = (rs.sparse_path(data, n_alphas=6, tol=1e-5, device=device) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu.alphas, host.alphas, rtol=1e-12)
    np.testing.assert_array_equal(gpu.coefs != 0, host.coefs != 0)
    np.testing.assert_allclose(gpu.coefs, host.coefs, atol=1e-6)
    np.testing.assert_allclose(gpu.objectives, host.objectives, rtol=1e-6)
    assert gpu.converged.all()
    for w, alpha, objective, gap in zip(gpu.coefs, gpu.alphas, gpu.objectives, gpu.gaps, strict=True):
        primal, proven = recomputed(data, w, alpha)
        assert objective == pytest.approx(primal, rel=1e-12)
        assert gap == pytest.approx(proven, rel=1e-6, abs=1e-12 * primal)


RANKERS = {
    "ranksvm": rs.RankSVM(C=1.0, average=True),
    "cs_ranksvm": rs.baselines.CSRankSVM(C=1.0, average=True),
    "l1": rs.SparseRankSVM(alpha=0.05),
    "log": rs.SparseRankSVM("log", alpha=0.01, max_rounds=3, tol=1e-4),
    "fenchelrank": rs.FenchelRank(radius=2.0, max_iter=8, tol=1e-9),
}


@pytest.mark.parametrize("name", RANKERS)
def test_rankers_have_the_same_coefficients(name, data):
    host = RANKERS[name]
    gpu = type(host)(**{**host.get_params(), "device": "cuda"}).fit(data)
    host = type(host)(**host.get_params()).fit(data)
    np.testing.assert_array_equal(gpu.support_, host.support_)
    np.testing.assert_allclose(gpu.coef_, host.coef_, atol=1e-5 * np.abs(host.coef_).max())
    assert gpu.objective_ == pytest.approx(host.objective_, rel=1e-6)
    np.testing.assert_allclose(gpu.predict(data), host.predict(data), atol=1e-4)


def test_more_features_than_max_hessian_features(monkeypatch, data):
    monkeypatch.setattr("ranksieve.solvers.newton.MAX_HESSIAN_FEATURES", 2)
    host, gpu = (rs.RankSVM(C=1.0, average=True, device=device).fit(data) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu.coef_, host.coef_, atol=1e-5)


def test_sparse_ranker_selects_the_same_model(data, tmp_path):
    options = {"n_alphas": 4, "max_features": 3, "families": ("l1", "log"), "cv": 2, "tol": 1e-4}
    host, gpu = (rs.SparseRanker(**options, device=device).fit(data) for device in ("cpu", "cuda"))
    assert gpu.choice_.family.label == host.choice_.family.label
    np.testing.assert_array_equal(gpu.support_, host.support_)
    np.testing.assert_allclose(gpu.coef_, host.coef_, atol=1e-3 * np.abs(host.coef_).max())
    np.testing.assert_allclose(gpu.choice_.validation.mean, host.choice_.validation.mean, atol=1e-12)
    model = gpu.to_model()
    assert model.parameters["device"] == "cuda"
    assert host.to_model().parameters["device"] == "cpu"
    model.save(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["parameters"]["device"] == "cuda"
    checked = rs.verify(rs.load_model(tmp_path / "model.json"), data)
    assert checked.holds, checked


def test_sparse_ranker_with_forward_selection_and_refit(data):
    options = {"n_alphas": 3, "max_features": 2, "families": ("forward",), "cv": 2, "refit_on": "all"}
    valid = make_ranking(12, 8, 3, docs_per_query=(6, 9), random_state=2)
    host, gpu = (
        rs.SparseRanker(**options, device=device).fit(data, valid=valid) for device in ("cpu", "cuda")
    )
    np.testing.assert_array_equal(gpu.support_, host.support_)
    np.testing.assert_allclose(gpu.coef_, host.coef_, rtol=1e-4)


@pytest.mark.parametrize("normalise", ["none", "within_z", "query_z"])
@pytest.mark.parametrize("missing", ["zero", "column_mean"])
def test_scores_are_bit_identical_to_the_cpu(normalise, missing, data):
    X = np.array(data.X)
    X[::5, 1] = np.nan
    holey = data.replace_features(X)
    ranker = rs.RankSVM(normalise=normalise, missing=missing).fit(holey)
    model = ranker.to_model()
    np.testing.assert_array_equal(model.predict(holey, device="cuda"), model.predict(holey))
    np.testing.assert_array_equal(ranker.set_params(device="cuda").predict(holey), model.predict(holey))


def test_unsupported_losses_are_refused(data):
    with refused_parameter("device", "cuda"):
        rs.sparse_path(data, loss="cost_sensitive_listmle", device="cuda")


@pytest.mark.parametrize("normalise", ["within_z", "query_min_max"])
def test_certificates_of_normalised_features_are_verified(normalise, data):
    far = np.array(data.X, dtype=np.float64)
    far[:, 0] = 1e6 + 10.0 * far[:, 0]
    with pytest.warns(UserWarning, match="float64"):
        model = (
            rs.SparseRankSVM(alpha=0.05, normalise=normalise, device="cuda")
            .fit(data.replace_features(far))
            .to_model()
        )
    checked = rs.verify(model, data.replace_features(far))
    assert checked.holds, checked
