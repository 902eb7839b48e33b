"""FSMRank: parts switched off (Table III), comparison with a subgradient method (Fig. 5), bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.choices import PaperResults
from papers.published import IMPORTANCE_WEIGHTS
from papers.studies.base import (
    ACCURACY,
    ModelSelector,
    accuracy_cells,
    difference_text,
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

# λ2 in quarters of a decade; λ1 in halves, because it makes no difference in the paper.
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
    """FSMRank without importance, without similarity, and with only one of them."""
    selector, variants = ModelSelector(fold, profile), {}
    for name, points in PARTS.items():
        coefs = [fit(FSMRank(**point), fold.train).coef_ for point in points]
        variants[name] = selector.select(coefs, points)
        if name in (WITHOUT_IMPORTANCE, WITH_IMPORTANCE):
            variants[f"{name}, half decades"] = selector.select(coefs[::2], points[::2])
    return {"variants": variants}


def parts_table(results: PaperResults) -> ResultTable | None:
    """Table of the variants in Table III, with the gains from importance and similarity."""
    rows = rows_of(results, "fsmrank_parts")
    if not rows:
        return None
    variants = {name: [row["variants"][name] for row in rows] for name in rows[0]["variants"]}
    cells = [(text_cell(name), *accuracy_cells(means(outcomes))) for name, outcomes in variants.items()]
    half = "{}, half decades"
    importance = difference_text(variants[WITH_IMPORTANCE], variants[WITHOUT_IMPORTANCE])
    coarse = difference_text(
        variants[half.format(WITH_IMPORTANCE)], variants[half.format(WITHOUT_IMPORTANCE)]
    )
    similarity = difference_text(variants[WITH_SIMILARITY], variants[WITHOUT_SIMILARITY])
    return ResultTable(
        "fsmrank_parts",
        f"{results.name}: FSMRank with importance or similarity switched off",
        ("variant", *ACCURACY),
        tuple(cells),
        "λ2 on a grid of quarter decades (and of half decades, from the same fits), λ1 on half decades, "
        f"selected on validation data by NDCG@10. Gain from importance: {importance}; on half decades "
        f"{coarse}. Gain from similarity: {similarity}. In the paper, importance helps, and similarity makes "
        "no significant difference. One-sided paired t-tests over the test queries of all folds. The "
        "published values are in the table of published numbers.",
    )


def descent(fold: Fold, profile: str) -> dict[str, Any]:
    """Objective over time and iterations of FSMRank's accelerated gradient and of a subgradient method.

    The subgradient method takes steps c/(L√t), with the best of several c.
    """
    fit(FSMRank(max_iter=2), fold.train)  # compile
    ranker = fit(FSMRank(tol=1e-12, max_iter=MAX_ITER), fold.train)
    problem = problem_of(ranker, fold.train)
    solution = Fista(OPTIMUM_TOL, OPTIMUM_ITER).solve(problem, ranker.coef_)
    traces = {step: subgradient_descent(problem, step, MAX_ITER) for step in STEPS}
    step, best = min(traces.items(), key=lambda item: min(item[1].objective))
    return {
        "optimum": solution.objective - solution.gap,
        "alpha": ranker.alpha,
        "similarity_weight": ranker.similarity_weight,
        "step": step,
        "runs": {"FSMRank": _curve(ranker.trace_), "subgradient": _curve(best)},
    }


def problem_of(ranker: FSMRank, train: Dataset) -> SimilarityProblem:
    """The optimisation problem of the ranker."""
    problem = ranker.stated_problem(train, None, {})
    if not isinstance(problem, SimilarityProblem):
        raise ValueError("the problem of FSMRank must have a similarity term")
    return problem


def subgradient_descent(problem: SimilarityProblem, step: float, max_iter: int) -> Trace:
    """w ← w − (step/(L√t))·(∇f + sign(w)∘(λ1·A|w| + λ2/s)), where sign(0) = 0.

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
    """Seconds, and the best objective up to each iteration."""
    return {"seconds": trace.seconds, "objective": np.minimum.accumulate(trace.objective)}


def descent_table(results: PaperResults) -> ResultTable | None:
    """Table of iterations and seconds until the objective is close to the optimum."""
    row = first_row(results, "fsmrank_descent")
    if row is None:
        return None
    cells = [
        (text_cell(name), *(cell for distance in DISTANCES for cell in _cells_to(row, name, distance)))
        for name in row["runs"]
    ]
    columns = [part for distance in DISTANCES for part in (f"iterations to {distance:g}", "seconds")]
    return ResultTable(
        "fsmrank_descent",
        f"{results.name}: FSMRank's accelerated gradient and a subgradient method",
        ("method", *columns),
        tuple(cells),
        f"First fold, at most {MAX_ITER} iterations; relative distance of the objective from the optimum. "
        f"The subgradient method uses the best of {len(STEPS)} step sizes.",
    )


def iterations_to(row: Entry, name: str, distance: float) -> int | None:
    """Iterations until the relative distance from the optimum is at most ``distance``; None if never."""
    distances = np.asarray(row["runs"][name]["objective"]) / row["optimum"] - 1.0
    within = np.flatnonzero(distances <= distance)
    return int(within[0]) if len(within) else None


def _cells_to(row: Entry, name: str, distance: float) -> tuple[Cell, Cell]:
    first = iterations_to(row, name, distance)
    if first is None:
        return Cell(None, f"> {MAX_ITER}"), Cell(None, "–")
    return Cell(first, str(first)), number_cell(row["runs"][name]["seconds"][first], "{:.3g}")


def bounds(fold: Fold, profile: str) -> dict[str, Any]:
    """The bounds of Theorems 2 and 3, and the measured values; empty if a feature is outside [0, 1]."""
    if not in_unit_range(fold.train):
        return {}
    ranker = fit(FSMRank(), fold.train)
    problem = problem_of(ranker, fold.train)
    solution = Fista(OPTIMUM_TOL, OPTIMUM_ITER).solve(problem, ranker.coef_)
    variables, d = problem.penalty.variables, fold.train.n_features
    lipschitz = fsmrank_lipschitz(d, ranker.similarity_weight)
    zero = variables(np.zeros(d))
    used = ranker.coef_ != 0
    radius = float(np.sum(np.abs(ranker.coef_[used]) / ranker.importance_[used]))
    n_pairs = problem.objective.loss.normaliser
    test_loss = make_objective(fold.test).evaluate(ranker.coef_).value
    train_loss = problem.objective.evaluate(ranker.coef_).value
    return {
        "n_iter": ranker.n_iter_,
        "distance": max(0.0, ranker.objective_ - (solution.objective - solution.gap)),
        "distance_bound": fsmrank_convergence(lipschitz, zero, variables(solution.w), ranker.n_iter_),
        "radius": radius,
        "n_pairs": n_pairs,
        "excess": test_loss - train_loss,
        "excess_bound": fsmrank_generalisation(radius, d, n_pairs, ranker.similarity_weight, FAILURE),
    }
