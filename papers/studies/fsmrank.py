"""FSMRank: parts switched off (Table III), its descent beside a subgradient method (Fig. 5), its bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.choices import PaperResults
from papers.published import IMPORTANCE_WEIGHTS
from papers.studies.base import (
    ACCURACY,
    Chooser,
    accuracy_cells,
    difference_words,
    first_row,
    fit,
    in_unit_range,
    means,
    rows_of,
)
from papers.studies.theory import fsmrank_convergence, fsmrank_generalisation
from ranksieve.data.dataset import Dataset
from ranksieve.experiment.journal import Entry
from ranksieve.experiment.tables import Cell, ResultTable, number_cell, text_cell
from ranksieve.io.folds import Fold
from ranksieve.methods import decades
from ranksieve.objective import make_objective
from ranksieve.rankers import FSMRank
from ranksieve.rankers.fsmrank import SimilarityProblem, fsmrank_lipschitz
from ranksieve.solvers import Fista, Trace
from ranksieve.solvers.proximal import curvature_along_gradient

# λ2 in quarters of a decade; λ1, with which the paper finds no difference, in halves.
LAMBDA2, LAMBDA1 = IMPORTANCE_WEIGHTS, decades(0.5, -4, 2)
PARTS: dict[str, list[dict[str, Any]]] = {
    "λ1 = 0, s = 1": [{"alpha": a, "similarity_weight": 0.0, "importance": "ones"} for a in LAMBDA2],
    "λ1 = 0, s = |Pearson|": [{"alpha": a, "similarity_weight": 0.0} for a in LAMBDA2],
    "λ2 = 0, A = I": [{"alpha": 0.0, "similarity_weight": a, "similarity": "identity"} for a in LAMBDA1],
    "λ2 = 0, A = |Pearson|": [{"alpha": 0.0, "similarity_weight": a} for a in LAMBDA1],
}
WITHOUT_IMPORTANCE, WITH_IMPORTANCE, WITHOUT_SIMILARITY, WITH_SIMILARITY = PARTS
STEPS = (2.0, 4.0, 8.0, 16.0)  # of the subgradient method, in units of 1/L
MAX_ITER = 400  # the paper's T
OPTIMUM_TOL, OPTIMUM_ITER = 1e-7, 3000
DISTANCES = (1e-2, 1e-3, 1e-4)
FAILURE = 0.05  # θ of the generalisation bound


def parts(fold: Fold, profile: str) -> dict[str, Any]:
    """FSMRank without importance, without similarity, and with each of them alone."""
    chooser, found = Chooser(fold, profile), {}
    for name, points in PARTS.items():
        coefs = [fit(FSMRank(**point), fold.train).coef_ for point in points]
        found[name] = chooser.chosen(coefs, points)
        if name in (WITHOUT_IMPORTANCE, WITH_IMPORTANCE):
            found[f"{name}, half decades"] = chooser.chosen(coefs[::2], points[::2])
    return {"variants": found}


def parts_table(results: PaperResults) -> ResultTable | None:
    """The variants of Table III, and what importance and similarity bring."""
    rows = rows_of(results, "fsmrank_parts")
    if not rows:
        return None
    found = {name: [row["variants"][name] for row in rows] for name in rows[0]["variants"]}
    cells = [(text_cell(name), *accuracy_cells(means(outcomes))) for name, outcomes in found.items()]
    half = "{}, half decades"
    importance = difference_words(found[WITH_IMPORTANCE], found[WITHOUT_IMPORTANCE])
    coarse = difference_words(found[half.format(WITH_IMPORTANCE)], found[half.format(WITHOUT_IMPORTANCE)])
    similarity = difference_words(found[WITH_SIMILARITY], found[WITHOUT_SIMILARITY])
    return ResultTable(
        "fsmrank_parts",
        f"{results.name}: FSMRank with importance or similarity switched off",
        ("variant", *ACCURACY),
        tuple(cells),
        "λ2 on a grid of quarter decades (also of half decades, from the same fits), λ1 of half decades, "
        f"chosen on valid by NDCG@10. Importance brings {importance}; on half decades {coarse}. Similarity "
        f"brings {similarity}. The paper: importance helps, similarity makes no significant difference. "
        "One-sided paired t-tests over the test queries of all folds. What the paper prints "
        "is in the table of published numbers.",
    )


def descent(fold: Fold, profile: str) -> dict[str, Any]:
    """The objective against time and iterations: FSMRank's accelerated gradient and a subgradient method.

    The subgradient method takes steps c/(L√t), with the best of several c.
    """
    fit(FSMRank(max_iter=2), fold.train)  # compiles
    ranker = fit(FSMRank(tol=1e-12, max_iter=MAX_ITER), fold.train)
    problem = problem_of(ranker, fold.train)
    best = Fista(OPTIMUM_TOL, OPTIMUM_ITER).solve(problem, ranker.coef_)
    others = {step: subgradient_descent(problem, step, MAX_ITER) for step in STEPS}
    step, slow = min(others.items(), key=lambda item: min(item[1].objective))
    return {
        "optimum": best.objective - best.gap,
        "alpha": ranker.alpha,
        "similarity_weight": ranker.similarity_weight,
        "step": step,
        "runs": {"FSMRank": _curve(ranker.trace_), "subgradient": _curve(slow)},
    }


def problem_of(ranker: FSMRank, train: Dataset) -> SimilarityProblem:
    """What the ranker minimises."""
    problem = ranker.stated_problem(train, None, {})
    if not isinstance(problem, SimilarityProblem):
        raise ValueError("FSMRank minimises a problem with a similarity part")
    return problem


def subgradient_descent(problem: SimilarityProblem, step: float, max_iter: int) -> Trace:
    """w ← w − (step/(L√t))·(∇f + sign(w)∘(λ1·A|w| + λ2/s)), whose last part is 0 where w_j = 0.

    L is the curvature of f at w = 0 along its gradient.
    """
    lipschitz = curvature_along_gradient(problem.objective)
    trace, w = Trace(), np.zeros(problem.n_features)
    slope = np.where(np.isfinite(problem.penalty.slope), problem.penalty.slope, 0.0)
    for t in range(1, max_iter + 2):
        point = problem.evaluate(problem.penalty.variables(w))
        trace.record(problem.value(point), np.nan, w)
        g = problem.objective.gradient(point.loss) + np.sign(w) * (point.similarity_gradient + slope)
        w = w - step / (lipschitz * np.sqrt(t)) * np.where(np.isfinite(problem.penalty.slope), g, 0.0)
    return trace


def _curve(trace: Trace) -> dict[str, Any]:
    """The best objective so far."""
    return {"seconds": trace.seconds, "objective": np.minimum.accumulate(trace.objective)}


def descent_table(results: PaperResults) -> ResultTable | None:
    """Iterations and seconds until the objective is near the optimum."""
    row = first_row(results, "fsmrank_descent")
    if row is None:
        return None
    cells = [
        (text_cell(name), *(cell for near in DISTANCES for cell in _reached(row, name, near)))
        for name in row["runs"]
    ]
    columns = [part for near in DISTANCES for part in (f"iterations to {near:g}", "seconds")]
    return ResultTable(
        "fsmrank_descent",
        f"{results.name}: FSMRank's accelerated gradient and a subgradient method",
        ("method", *columns),
        tuple(cells),
        f"First fold, at most {MAX_ITER} iterations; distance of the objective from the optimum as a share "
        f"of it. The subgradient method has the best of {len(STEPS)} step sizes.",
    )


def iterations_to(row: Entry, name: str, near: float) -> int | None:
    """Iterations until the objective is so near the optimum, as a share of it; None if it never was."""
    away = np.asarray(row["runs"][name]["objective"]) / row["optimum"] - 1.0
    reached = np.flatnonzero(away <= near)
    return int(reached[0]) if len(reached) else None


def _reached(row: Entry, name: str, near: float) -> tuple[Cell, Cell]:
    first = iterations_to(row, name, near)
    if first is None:
        return Cell(None, f"> {MAX_ITER}"), Cell(None, "–")
    return Cell(first, str(first)), number_cell(row["runs"][name]["seconds"][first], "{:.3g}")


def bounds(fold: Fold, profile: str) -> dict[str, Any]:
    """Theorems 2 and 3 in numbers: the bounds, and what was measured; nothing if features leave [0, 1]."""
    if not in_unit_range(fold.train):
        return {}
    ranker = fit(FSMRank(), fold.train)
    problem = problem_of(ranker, fold.train)
    best = Fista(OPTIMUM_TOL, OPTIMUM_ITER).solve(problem, ranker.coef_)
    variables, d = problem.penalty.variables, fold.train.n_features
    lipschitz = fsmrank_lipschitz(d, ranker.similarity_weight)
    zero = variables(np.zeros(d))
    used = ranker.coef_ != 0
    radius = float(np.sum(np.abs(ranker.coef_[used]) / ranker.importance_[used]))
    n_pairs = problem.objective.loss.normaliser
    unseen = make_objective(fold.test).evaluate(ranker.coef_).value
    seen = problem.objective.evaluate(ranker.coef_).value
    return {
        "n_iter": ranker.n_iter_,
        "distance": max(0.0, ranker.objective_ - (best.objective - best.gap)),
        "distance_bound": fsmrank_convergence(lipschitz, zero, variables(best.w), ranker.n_iter_),
        "radius": radius,
        "n_pairs": n_pairs,
        "excess": unseen - seen,
        "excess_bound": fsmrank_generalisation(radius, d, n_pairs, ranker.similarity_weight, FAILURE),
    }
