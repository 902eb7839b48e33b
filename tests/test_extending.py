"""Adding a loss, penalty, solver, method, metric, exporter or file format: one class and one line in a table.

Each example is defined here and added to its table; everything else must work with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.choice.families import FAMILIES
from ranksieve.cli import app
from ranksieve.experiment import bench
from ranksieve.export import EXPORTS
from ranksieve.export.base import Product, Target
from ranksieve.io.load import FILE_FORMATS, FileFormat
from ranksieve.losses import LOSSES, SquaredHinge
from ranksieve.losses.squared_hinge import FewLabels
from ranksieve.methods import METHODS, Method
from ranksieve.metrics import METRICS, Metric
from ranksieve.objective import make_objective
from ranksieve.penalties import PENALTIES
from ranksieve.penalties.base import Sloped, Slopes
from ranksieve.rankers.base import Ranker
from ranksieve.rankers.parameters import Positive
from ranksieve.solvers import SOLVERS, Problem, ProxNewton, Solver
from tests.refusals import refused_parameter


@pytest.fixture(scope="module")
def data():
    return rs.make_ranking(30, 6, 3, docs_per_query=(8, 12), random_state=5)


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


# ---------------------------------------------------------------- a loss


class HalfMargin:
    """The squared hinge with margin ½, i.e. of doubled scores."""

    name = "half_margin"

    def bind(self, y, queries, query_weight=None, document_weight=None):
        return BoundHalfMargin(y, queries, query_weight, document_weight)


class BoundHalfMargin(FewLabels):
    name: ClassVar[str] = "half_margin"
    offers: ClassVar[frozenset[str]] = frozenset({"hessian"})

    def evaluate(self, s):
        at = super().evaluate(2.0 * s)
        return type(at)(at.value, 2.0 * at.gradient, at.slack, at.state)

    def curvature_of(self, at, first, last, V):
        return super().curvature_of(at, first, last, V).times(4.0)


def test_a_loss(data, monkeypatch):
    monkeypatch.setitem(LOSSES, "half_margin", HalfMargin)
    path = rs.sparse_path(data, loss="half_margin", n_alphas=8)
    plain = rs.sparse_path(data, alphas=path.alphas / 2)
    assert path.converged.all()
    np.testing.assert_allclose(2.0 * path.coefs, plain.coefs, atol=1e-5)
    assert rs.baselines.FBPCRank(max_features=2, tol=0.0, loss="half_margin").fit(data).support_.size == 2


# ---------------------------------------------------------------- a penalty


@dataclass(frozen=True, eq=False)
class Upwards(Sloped):
    """α Σ_j |w_j| over w ≥ 0."""

    name: ClassVar[str] = "upwards"

    def slopes(self, n_features):
        return Slopes(np.full(n_features, self.alpha), np.full(n_features, np.inf))

    def alpha_max(self, g):
        return float(np.max(-g, initial=0.0))


def test_a_penalty(data, monkeypatch):
    monkeypatch.setitem(PENALTIES, "upwards", Upwards)
    path = rs.sparse_path(data, penalty="upwards", n_alphas=8)
    signed = rs.sparse_path(data, alphas=path.alphas, signs=np.ones(data.n_features))
    np.testing.assert_allclose(path.coefs, signed.coefs, atol=1e-7)
    assert rs.SparseRanker(penalty="upwards", n_alphas=8).fit(data).coef_.min() >= 0


# ---------------------------------------------------------------- a family of candidates


def halved(task, path):
    """The models of the path with halved weights, which rank the same."""
    candidates = [replace(one, coef=one.coef / 2, fold_coefs=one.fold_coefs / 2) for one in path.candidates]
    return replace(path, label="halved", candidates=candidates, validation=None)


def test_a_family(data, monkeypatch):
    monkeypatch.setitem(FAMILIES, "halved", halved)
    without = rs.SparseRanker(families=["l1"], n_alphas=8).fit(data)
    fitted = rs.SparseRanker(families=["halved"], n_alphas=8).fit(data)
    assert fitted.choice_.family.label == "halved"
    np.testing.assert_allclose(fitted.coef_, without.coef_ / 2)
    assert fitted.choice_.confidence.mean == without.choice_.confidence.mean
    with refused_parameter("families", "halfed") as info:
        rs.SparseRanker(families=["halfed"]).fit(data)
    assert "'halved'" in info.value.reason


# ---------------------------------------------------------------- a solver


@dataclass(frozen=True)
class CoordinateDescent(Solver):
    """Cyclic coordinate descent with Newton steps."""

    max_iter: int = 2000
    name: ClassVar[str] = "coordinate_descent"
    needs: ClassVar[frozenset[str]] = frozenset({"hessian", "prox", "slopes"})

    def run(self, problem, start, loop):
        point = problem.start(start)
        while not loop.ends(point.w, problem.value(point), problem.gap(point), point=point):
            for j in range(problem.n_features):
                curvature = float(problem.objective.hessian(point, np.array([j]))[0, 0]) or 1.0
                step = np.zeros(problem.n_features)
                step[j] = 1.0 / curvature
                moved = problem.prox(point.w - problem.gradient(point) * step, 1.0 / curvature)
                point = problem.objective.evaluate(np.where(step > 0, moved, point.w))


def test_a_solver(data, monkeypatch):
    monkeypatch.setitem(SOLVERS, "coordinate_descent", CoordinateDescent)
    problem = Problem(make_objective(data), PENALTIES["l1"](0.02))
    iterations = []
    result = SOLVERS["coordinate_descent"]().solve(problem, callback=lambda n, *rest: iterations.append(n))
    assert result.converged
    assert iterations == list(range(result.n_iter + 1))
    np.testing.assert_allclose(result.objective, ProxNewton().solve(problem).objective, rtol=2e-6)
    with pytest.raises(ValueError, match="coordinate_descent"):
        CoordinateDescent().solve(Problem(make_objective(data), PENALTIES["l1_ball"]()))


# ---------------------------------------------------------------- a method


@dataclass(eq=False, repr=False)
class ToyRank(Ranker):
    """The squared hinge with ℓ1, minimised by the solver above."""

    alpha: Positive = 0.05
    tol: Positive = 1e-4

    def _loss(self):
        return SquaredHinge()

    def _penalty(self, objective):
        return PENALTIES["l1"](self.alpha)

    def _solver(self, problem, data):
        return CoordinateDescent(self.tol)


def test_a_method(data, monkeypatch, tmp_path):
    toy = Method(
        "Toy", "this test", "squared hinge", "ℓ1", "coordinates", ToyRank, [{"alpha": 0.1}, {"alpha": 0.02}]
    )
    monkeypatch.setitem(METHODS, "toy", toy)
    results = bench({"small": rs.deal_folds(data, 3)}, ["toy"], out=tmp_path / "results")
    assert len(results.data_sets["small"].results["toy"].folds) == 3
    rs.io.write_letor(data, tmp_path / "train.txt")
    out = run(
        "fit", tmp_path / "train.txt", "--method", "toy", "--set", "alpha=0.02", "-o", tmp_path / "m.json"
    )
    assert out.exit_code == 0, out.output
    model = rs.load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(
        model.coef, ToyRank(0.02).fit(rs.io.read_letor(tmp_path / "train.txt")).coef_
    )
    refused = run(
        "fit", tmp_path / "train.txt", "--method", "toy", "--set", "alpha=-1.0", "-o", tmp_path / "n.json"
    )
    assert refused.exit_code == 2


# ---------------------------------------------------------------- a metric


def first_is_relevant(ranked, k, profile):
    """1 if the first document is relevant, otherwise 0."""
    return ranked.relevant(profile)[ranked.judged.queries.offsets[:-1]]


def test_a_metric(data, monkeypatch, tmp_path):
    monkeypatch.setitem(METRICS, "first", Metric("whether the first document is relevant", first_is_relevant))
    scores = data.X[:, 0]
    expected = rs.evaluate(scores, data, "p@1").per_query["p@1"]
    np.testing.assert_array_equal(rs.evaluate(scores, data, "first").per_query["first"], expected)
    rs.io.write_letor(data, tmp_path / "test.txt")
    (tmp_path / "scores.txt").write_text("".join(f"{score}\n" for score in scores), encoding="utf-8")
    command = (
        "evaluate",
        tmp_path / "scores.txt",
        tmp_path / "test.txt",
        "--metric",
        "first",
        "--json",
    )
    assert json.loads(run(*command).output)["mean"]["first"] == pytest.approx(expected.mean())
    assert rs.SparseRanker(metric="first", n_alphas=6).fit(data).choice_.validation.metric == "first"


# ---------------------------------------------------------------- an exporter


def as_lines(model, options):
    """One line per feature."""
    return Product({f"{options.name}.lines": "".join(f"{t.name} {t.weight!r}\n" for t in model.terms)})


def test_an_exporter(data, monkeypatch, tmp_path):
    monkeypatch.setitem(EXPORTS, "lines", Target(as_lines, frozenset({"name"})))
    model = rs.FenchelRank(2.0).fit(data).to_model()
    model.save(tmp_path / "model.json")
    out = run("export", tmp_path / "model.json", "--to", "lines", "-o", tmp_path / "model.lines")
    assert out.exit_code == 0, out.output
    lines = (tmp_path / "model.lines").read_text(encoding="utf-8").splitlines()
    assert lines == [f"{term.name} {term.weight!r}" for term in model.terms]


# ---------------------------------------------------------------- a file format


def read_npz(path, **options):
    content = np.load(path)
    return rs.Dataset(content["X"], content["y"], content["qid"])


def write_npz(dataset, path):
    np.savez(path, X=dataset.X, y=dataset.y, qid=dataset.qid)


def test_a_file_format(data, monkeypatch, tmp_path):
    monkeypatch.setitem(FILE_FORMATS, "npz", FileFormat((".npz",), (b"PK",), read_npz, write_npz))
    rs.write_dataset(data, tmp_path / "data.npz")
    again = rs.read_dataset(tmp_path / "data.npz")
    np.testing.assert_array_equal(again.X, data.X)
    out = run("fit", tmp_path / "data.npz", "--set", "n_alphas=5", "-o", tmp_path / "m.json")
    assert out.exit_code == 0, out.output


def test_commands_list_the_tables(monkeypatch):
    monkeypatch.setitem(METHODS, "toy", Method("Toy"))
    monkeypatch.setitem(EXPORTS, "lines", Target(as_lines, frozenset()))
    text = run("export", "model.json", "--to", "?", "-o", "out").output
    assert all(name in text for name in EXPORTS)
    rows = [line.split()[0] for line in run("methods").output.splitlines() if line.strip()]
    assert set(METHODS) <= set(rows)


def test_every_class_of_the_table_is_a_public_name():
    kinds = {type(method.make()).__name__ for method in METHODS.values()}
    assert kinds <= {*rs.__all__, *rs.baselines.__all__}
