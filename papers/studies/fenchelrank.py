"""FenchelRank: its time beside TGRank's at a matched radius (Table 6), and its bound on iterations."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.choices import PaperResults
from papers.studies.base import Chooser, fmean, in_unit_range, printed, rows_of, timed_fit
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

C = 0.1  # of TGRank in Table 6
MAX_ITER, TOL = 1000, 1e-3  # the paper's T and ε
RADII = (1.0, 2.0, 4.0)
PRINTED, CHOSEN = "C = 0.1", "chosen on vali"


def matched_radius(fold: Fold, profile: str) -> dict[str, Any]:
    """TGRank at a weight α, and FenchelRank in the ball of the solution's norm r = ‖w*‖₁.

    The paper fixes C = 0.1. As a weight on the mean loss, as its eq. (2) has it, that would be α = 10, whose
    solution is w = 0; here C weighs the sum over the p pairs, α = 1/(Cp). A second α is chosen on valid.
    """
    path = sparse_path(fold.train)
    best = int(np.argmax(Chooser(fold, profile).validation(path.coefs)))
    n_pairs = make_objective(fold.train).loss.normaliser
    alphas = {PRINTED: 1.0 / (C * n_pairs), CHOSEN: float(path.alphas[best])}
    return {"alphas": {name: race(fold.train, alpha) for name, alpha in alphas.items()}}


def race(train: Dataset, alpha: float, max_iter: int = MAX_ITER) -> dict[str, Any]:
    """Seconds, sparsity, iterations and objective of TGRank and of FenchelRank for the same problem."""
    problem = Problem(make_objective(train), L1(alpha))
    best = ProxNewton(1e-6).solve(problem)
    radius = float(np.abs(best.w).sum())
    rankers: dict[str, Ranker] = {"TGRank": TGRank(alpha, max_iter=max_iter)}
    if radius > 0:
        rankers["FenchelRank"] = FenchelRank(radius, tol=TOL, max_iter=max_iter)
    found: dict[str, Any] = {
        "alpha": alpha,
        "radius": radius,
        "optimum": best.objective - best.gap,
        "runs": {},
    }
    for name, ranker in rankers.items():
        fitted, seconds = timed_fit(ranker, train)
        w = fitted.coef_
        found["runs"][name] = {
            "seconds": seconds,
            "sparsity": np.mean(w != 0),
            "n_iter": fitted.n_iter_,
            "norm": np.abs(w).sum(),
            "objective": problem.value(problem.evaluate(w)),
        }
    return found


def radius_table(results: PaperResults) -> ResultTable | None:
    """Fold by fold, as Table 6, with what each run reached."""
    rows = rows_of(results, "fenchelrank_radius")
    if not rows:
        return None
    cells = []
    for name in (PRINTED, CHOSEN):
        found = [row["alphas"][name] for row in rows]
        if any("FenchelRank" not in one["runs"] for one in found):
            continue
        cells += [_race_cells(f"{name}, fold {k}", one) for k, one in enumerate(found, start=1)]
        cells.append(_mean_cells(f"{name}, mean", found))
    columns = ["r", "‖w‖₁ of TGRank"]
    for name in ("FenchelRank", "TGRank"):
        columns += [f"{name}: seconds", "iterations", "sparsity", "above optimum"]
    return ResultTable(
        "fenchelrank_radius",
        f"{results.name}: FenchelRank and TGRank at a matched radius",
        ("problem", *columns),
        tuple(cells),
        f"At most {MAX_ITER} iterations, FenchelRank until a gap of {TOL:g}. r = ‖w*‖₁ of TGRank's problem, "
        "by proximal Newton (the paper's table 6, on HP2004 and NP2004, prints r = C‖w‖₁); C = 0.1 weighs "
        "the sum over pairs. TGRank truncates every ten steps, which the paper leaves open. Above optimum: "
        "of the objective with α‖w‖₁, as a share of the least. "
        f"{_printed_words()}",
    )


def _printed_words() -> str:
    """The means of Table 6, which is about other data."""
    tables = [printed("FenchelRank", "6", data_set) for data_set in ("HP2004", "NP2004")]
    mean = {
        (name, key): fmean([table[name][key] for table in tables])
        for name in ("FenchelRank", "TGRank")
        for key in ("seconds", "sparsity")
    }
    fenchel, truncated = (
        f"{mean[name, 'seconds']:.1f} s with {mean[name, 'sparsity']:.2f} of the features"
        for name in ("FenchelRank", "TGRank")
    )
    return f"The paper's means: FenchelRank {fenchel}, TGRank {truncated}."


def _race_cells(label: str, found: Entry) -> tuple[Cell, ...]:
    cells = [
        text_cell(label),
        number_cell(found["radius"], "{:.2f}"),
        number_cell(found["runs"]["TGRank"]["norm"], "{:.2f}"),
    ]
    for name in ("FenchelRank", "TGRank"):
        run = found["runs"][name]
        above = run["objective"] / found["optimum"] - 1.0
        cells += [number_cell(run["seconds"], "{:.2f}"), Cell(run["n_iter"], str(run["n_iter"]))]
        cells += [number_cell(run["sparsity"], "{:.3f}"), number_cell(100 * above, "{:.2f} %")]
    return tuple(cells)


def _mean_cells(label: str, found: list[Entry]) -> tuple[Cell, ...]:
    mean: Entry = {key: fmean([one[key] for one in found]) for key in ("radius", "optimum")}
    mean["runs"] = {
        name: {key: fmean([one["runs"][name][key] for one in found]) for key in found[0]["runs"][name]}
        for name in found[0]["runs"]
    }
    for run in mean["runs"].values():
        run["n_iter"] = round(run["n_iter"])
    return _race_cells(label, mean)


def bounds(fold: Fold, profile: str) -> dict[str, Any]:
    """Theorem 1 in numbers: iterations to ε in balls of several radii, bound and need.

    Nothing if features leave [0, 1], as the theorem wants them.
    """
    if not in_unit_range(fold.train):
        return {}
    path, found = sparse_path(fold.train), []
    for radius in RADII:
        ranker, _ = timed_fit(FenchelRank(radius, tol=TOL, max_iter=MAX_ITER), fold.train)
        objectives, gaps = np.asarray(ranker.trace_.objective), np.asarray(ranker.trace_.gap)
        least = max(least_in_ball(path, radius), float(np.max(objectives - gaps)))
        reached = np.flatnonzero(objectives - least <= TOL)
        found.append({
            "radius": radius,
            "bound": fenchelrank_iterations(radius, TOL),
            "needed": int(reached[0]) if len(reached) else None,
            "stopped": ranker.n_iter_ if ranker.gap_ <= TOL else None,
            "tried": ranker.n_iter_,
        })  # fmt: skip
    return {"tol": TOL, "runs": found}


def least_in_ball(path: SparsePath, radius: float) -> float:
    """A lower bound of min f over ‖w‖₁ ≤ r: the largest of min_w f + α‖w‖₁ − αr over the α of a path."""
    return float(np.max(path.objectives - path.gaps - path.alphas * radius))
