"""FenchelRank: comparison with TGRank at a matched radius (Table 6), and the bound on iterations."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.choices import PaperResults
from papers.studies.base import ModelSelector, fmean, in_unit_range, published_means, rows_of, timed_fit
from papers.studies.theory import fenchelrank_iterations
from ranksieve.baselines import TGRank
from ranksieve.data.dataset import Dataset
from ranksieve.experiment.journal import Entry
from ranksieve.experiment.tables import Cell, ResultTable, number_cell, text_cell
from ranksieve.io.folds import Fold
from ranksieve.objective import make_objective
from ranksieve.path import SparsePath, sparse_path
from ranksieve.penalties import L1
from ranksieve.rankers import FenchelRank
from ranksieve.rankers.base import Ranker
from ranksieve.solvers import Problem, ProxNewton

C = 0.1  # for TGRank in Table 6
MAX_ITER, TOL = 1000, 1e-3  # the paper's T and ε
RADII = (1.0, 2.0, 4.0)
PAPER_C, SELECTED = "C = 0.1", "chosen on vali"  # keys in results files
LABELS = {PAPER_C: "C = 0.1", SELECTED: "α selected on validation data"}


def matched_radius(fold: Fold, profile: str) -> dict[str, Any]:
    """TGRank with the weight α, and FenchelRank in the ball with the norm of the solution, r = ‖w*‖₁.

    The paper fixes C = 0.1. If C weighted the mean loss, as in eq. (2), α would be 10 and the solution w = 0;
    here C weights the sum over the p pairs, α = 1/(Cp). A second α is selected on validation data.
    """
    path = sparse_path(fold.train)
    best = int(np.argmax(ModelSelector(fold, profile).validation_means(path.coefs)))
    n_pairs = make_objective(fold.train).loss.normaliser
    alphas = {PAPER_C: 1.0 / (C * n_pairs), SELECTED: float(path.alphas[best])}
    return {"alphas": {name: fit_both(fold.train, alpha) for name, alpha in alphas.items()}}


def fit_both(train: Dataset, alpha: float, max_iter: int = MAX_ITER) -> dict[str, Any]:
    """Seconds, sparsity, iterations and objective of TGRank and of FenchelRank on the same problem."""
    problem = Problem(make_objective(train), L1(alpha))
    solution = ProxNewton(1e-6).solve(problem)
    radius = float(np.abs(solution.w).sum())
    rankers: dict[str, Ranker] = {"TGRank": TGRank(alpha, max_iter=max_iter)}
    if radius > 0:
        rankers["FenchelRank"] = FenchelRank(radius, tol=TOL, max_iter=max_iter)
    result: dict[str, Any] = {
        "alpha": alpha,
        "radius": radius,
        "optimum": solution.objective - solution.gap,
        "runs": {},
    }
    for name, ranker in rankers.items():
        _, seconds = timed_fit(ranker, train)
        w = ranker.coef_
        result["runs"][name] = {
            "seconds": seconds,
            "sparsity": np.mean(w != 0),
            "n_iter": ranker.n_iter_,
            "norm": np.abs(w).sum(),
            "objective": problem.value(problem.evaluate(w)),
        }
    return result


def radius_table(results: PaperResults) -> ResultTable | None:
    """Table 6 for each fold, with the distance of each run from the optimum."""
    rows = rows_of(results, "fenchelrank_radius")
    if not rows:
        return None
    cells = []
    for name in (PAPER_C, SELECTED):
        folds = [row["alphas"][name] for row in rows]
        if any("FenchelRank" not in fold["runs"] for fold in folds):
            continue
        cells += [_fold_cells(f"{LABELS[name]}, fold {k}", fold) for k, fold in enumerate(folds, start=1)]
        cells.append(_mean_cells(f"{LABELS[name]}, mean", folds))
    columns = ["r", "‖w‖₁ of TGRank"]
    for name in ("FenchelRank", "TGRank"):
        columns += [f"{name}: seconds", "iterations", "sparsity", "above optimum"]
    return ResultTable(
        "fenchelrank_radius",
        f"{results.name}: FenchelRank and TGRank at a matched radius",
        ("problem", *columns),
        tuple(cells),
        f"At most {MAX_ITER} iterations; FenchelRank stops at a gap of {TOL:g}. r = ‖w*‖₁ of TGRank's "
        "problem, solved by proximal Newton (table 6 of the paper, on HP2004 and NP2004, has r = C‖w‖₁); "
        "C = 0.1 weights the sum over pairs. TGRank truncates every ten steps, which the paper does not "
        "specify. Above optimum: of the objective with α‖w‖₁, relative to its minimum. "
        f"{_published_text()}",
    )


def _published_text() -> str:
    """Sentence with the means of Table 6, which is about other data."""
    tables = [published_means("FenchelRank", "6", data_set) for data_set in ("HP2004", "NP2004")]
    mean = {
        (name, key): fmean([table[name][key] for table in tables])
        for name in ("FenchelRank", "TGRank")
        for key in ("seconds", "sparsity")
    }
    fenchelrank, tgrank = (
        f"{mean[name, 'seconds']:.1f} s with {mean[name, 'sparsity']:.2f} of the features"
        for name in ("FenchelRank", "TGRank")
    )
    return f"Means in the paper: FenchelRank {fenchelrank}, TGRank {tgrank}."


def _fold_cells(label: str, fold: Entry) -> tuple[Cell, ...]:
    cells = [
        text_cell(label),
        number_cell(fold["radius"], "{:.2f}"),
        number_cell(fold["runs"]["TGRank"]["norm"], "{:.2f}"),
    ]
    for name in ("FenchelRank", "TGRank"):
        run = fold["runs"][name]
        excess = run["objective"] / fold["optimum"] - 1.0
        cells += [number_cell(run["seconds"], "{:.2f}"), Cell(run["n_iter"], str(run["n_iter"]))]
        cells += [number_cell(run["sparsity"], "{:.3f}"), number_cell(100 * excess, "{:.2f} %")]
    return tuple(cells)


def _mean_cells(label: str, folds: list[Entry]) -> tuple[Cell, ...]:
    mean: Entry = {key: fmean([fold[key] for fold in folds]) for key in ("radius", "optimum")}
    mean["runs"] = {
        name: {key: fmean([fold["runs"][name][key] for fold in folds]) for key in folds[0]["runs"][name]}
        for name in folds[0]["runs"]
    }
    for run in mean["runs"].values():
        run["n_iter"] = round(run["n_iter"])
    return _fold_cells(label, mean)


def bounds(fold: Fold, profile: str) -> dict[str, Any]:
    """Iterations to within ε of the minimum for several radii: measured, and bound by Theorem 1.

    Empty if a feature is outside [0, 1], which the theorem requires.
    """
    if not in_unit_range(fold.train):
        return {}
    path, runs = sparse_path(fold.train), []
    for radius in RADII:
        ranker, _ = timed_fit(FenchelRank(radius, tol=TOL, max_iter=MAX_ITER), fold.train)
        objectives, gaps = np.asarray(ranker.trace_.objective), np.asarray(ranker.trace_.gap)
        lower_bound = max(minimum_in_ball(path, radius), float(np.max(objectives - gaps)))
        within = np.flatnonzero(objectives - lower_bound <= TOL)
        runs.append({
            "radius": radius,
            "bound": fenchelrank_iterations(radius, TOL),
            "needed": int(within[0]) if len(within) else None,
            "stopped": ranker.n_iter_ if ranker.gap_ <= TOL else None,
            "tried": ranker.n_iter_,
        })  # fmt: skip
    return {"tol": TOL, "runs": runs}


def minimum_in_ball(path: SparsePath, radius: float) -> float:
    """Lower bound of min f over ‖w‖₁ ≤ r: the largest of min_w f + α‖w‖₁ − αr over the α of the path."""
    return float(np.max(path.objectives - path.gaps - path.alphas * radius))
