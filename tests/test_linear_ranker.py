"""LinearRanker: bit-identical to the named methods; refusals of wrong parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

import ranksieve as rs
from ranksieve.losses import CostSensitiveListMLE, SquaredHinge
from ranksieve.objective import make_objective
from ranksieve.penalties import L1, MCP, ElasticNet, L1Ball, Penalty, Ridge
from ranksieve.solvers import Fista, FrankWolfe, ProxNewton, Reweighted, TruncatedNewton
from tests.refusals import refused_parameter

DATA = rs.make_ranking(n_queries=40, n_features=10, n_informative=3, noise=0.5, random_state=2)
N_PAIRS = make_objective(DATA).loss.normaliser
L1_WEIGHTS = np.array([1.0, 2.0, 0.5, 1, 1, 1, 1, 1, 1, 0.0])


def results_of(ranker):
    return {
        "coef": ranker.coef_.tolist(),
        "certificate": (ranker.objective_, ranker.gap_, ranker.n_iter_, ranker.converged_),
        "objectives": list(ranker.trace_.objective),
        "scores": ranker.predict(DATA).tolist(),
    }


@pytest.mark.parametrize(
    ("named", "penalty", "solver"),
    [
        (rs.RankSVM(C=1e-2), Ridge(1.0 / (1e-2 * N_PAIRS)), TruncatedNewton(1e-6, 100)),
        (rs.RankSVM(C=10.0, average=True), Ridge(0.1), TruncatedNewton(1e-6, 100)),
        (rs.FenchelRank(2.0), L1Ball(2.0), FrankWolfe(1e-3, 1000)),
        (rs.FenchelRank(2.0, variant="pairwise"), L1Ball(2.0), FrankWolfe(1e-3, 1000, "pairwise")),
        (rs.SparseRankSVM("l1", 0.02), L1(0.02), ProxNewton(1e-6, 10_000)),
        (rs.SparseRankSVM("l1", 0.02, l1_weights=L1_WEIGHTS), L1(0.02, L1_WEIGHTS), ProxNewton(1e-6, 10_000)),
        (rs.SparseRankSVM("l1", 0.02, solver="fista"), L1(0.02), Fista(1e-6, 10_000)),
        (rs.SparseRankSVM("mcp", 0.02), MCP(0.02), Reweighted(1e-6, 50, ProxNewton(1e-6, 50))),
    ],
)
def test_equals_the_named_methods(named, penalty, solver):
    composed = rs.LinearRanker(penalty=penalty, solver=solver)
    assert results_of(composed.fit(DATA)) == results_of(clone(named).fit(DATA))
    own, theirs = composed.to_model(), named.fit(DATA).to_model()
    assert (own.terms, own.certificate, own.data) == (theirs.terms, theirs.certificate, theirs.data)


def test_any_loss():
    named = rs.SparseListMLE(0.1, k=5, solver="newton").fit(DATA)
    composed = rs.LinearRanker(CostSensitiveListMLE(5), L1(0.1), ProxNewton(1e-4, 1000)).fit(DATA)
    assert results_of(composed) == results_of(named)
    assert composed.can("document_weight") == named.can("document_weight")


@pytest.mark.parametrize("penalty", [None, L1(0.02), Ridge(0.1), ElasticNet(0.02, l1_ratio=0.5), L1Ball(3.0)])
def test_a_suitable_solver_converges_for_every_penalty(penalty):
    ranker = rs.LinearRanker(penalty=penalty).fit(DATA)
    assert ranker.converged_
    assert 0 <= ranker.gap_ <= 1e-6


@pytest.mark.parametrize("penalty", [None, L1(0.02, L1_WEIGHTS), Ridge(0.1), L1Ball(3.0), MCP(0.02)])
def test_models_can_be_verified(penalty, tmp_path):
    rs.LinearRanker(penalty=penalty, normalise="z").fit(DATA).to_model().save(tmp_path / "model.json")
    model = rs.load_model(tmp_path / "model.json")
    assert ("gap" in model.certificate) == (not isinstance(penalty, MCP)), "concave: no proof of an optimum"
    assert all(verdict.holds for verdict in rs.verify(model, DATA).verdicts)
    forged = {
        **model.to_dict(),
        "certificate": {**model.certificate, "objective": 0.9 * model.certificate["objective"]},
    }
    assert not rs.verify(rs.model.linear.model_from_dict(forged), DATA).holds


def test_a_penalty_as_in_model_files():
    ranker = rs.LinearRanker(penalty={"kind": "l1", "alpha": 0.02}).fit(DATA)
    assert results_of(ranker) == results_of(rs.LinearRanker(penalty=L1(0.02)).fit(DATA))


def test_warm_start_converges_immediately():
    ranker = rs.LinearRanker(penalty=L1(0.02), warm_start=True).fit(DATA)
    assert ranker.fit(DATA).n_iter_ <= 1


@dataclass
class Unsolvable(Penalty):
    name = "odd"
    offers = frozenset({"odd"})

    def value(self, w):
        return 0.0


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("loss", "squared_hing", "squared_hinge"),
        ("loss", 3, "SquaredHinge()"),
        ("loss", SquaredHinge, "SquaredHinge()"),
        ("penalty", "l1", "L1(0.01)"),
        ("penalty", 0.1, "L1(0.01)"),
        ("penalty", L1, "L1(0.01)"),
        ("penalty", Unsolvable(), "no solver"),
        ("solver", "newton", "prox_newton"),
        ("solver", FrankWolfe, "or a name"),
        ("solver", 3, "or a name"),
        ("solver", FrankWolfe(1e-4, 100), "a norm constraint"),
        ("solver", "truncated_newton", "a quadratic penalty"),
        ("tol", 0.0, "range"),
    ],
)
def test_wrong_parts_are_refused(name, value, word):
    parts = {"penalty": L1(0.02), name: value}
    with refused_parameter(name) as info:
        rs.LinearRanker(**parts).fit(DATA)
    assert word in info.value.reason


def test_an_unknown_kind_of_penalty():
    for stated in ({"kind": "l3", "alpha": 1.0}, {"alpha": 1.0}):
        with refused_parameter("penalty"):
            rs.LinearRanker(penalty=stated).fit(DATA)
