"""Studies for any data: single features, the certified path, FBPCRank by size, convergence of solvers."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.choices import CURVE_METRICS
from ranksieve._types import FloatArray
from ranksieve.baselines import FBPCRank
from ranksieve.choice.held_out import standard_error
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import dense_columns
from ranksieve.io.folds import Fold
from ranksieve.metrics import Evaluator
from ranksieve.model.linear import linear_scores_of_models, nonzero_weights
from ranksieve.objective import make_objective
from ranksieve.path import SparsePath, sparse_path
from ranksieve.penalties import L1, L1Ball
from ranksieve.solvers import Fista, FrankWolfe, Problem, ProxNewton, Result
from ranksieve.solvers.frank_wolfe import VARIANTS

METRIC = "ndcg@10"
N_RANDOM = 10  # random weight vectors, as in FenchelRank's Fig. 1
SIZES = (1, 2, 3, 5, 7, 10, 15, 20)
CONVERGED, MAX_ITER = 1e-6, 3000


def single_features(fold: Fold, profile: str) -> dict[str, Any]:
    """Test NDCG@10 of each feature alone, and of random weights w ≥ 0, Σw = 1 (FenchelRank, Fig. 1)."""
    test = fold.test
    evaluator, equal = Evaluator(test, profile), Evaluator(test, profile, ties="mean")
    alone = [equal.alone(column, METRIC)[0] for column in dense_columns(test.X)]
    weights = np.random.default_rng(0).dirichlet(np.ones(test.n_features), N_RANDOM)
    scores = linear_scores_of_models(test.X, weights)
    random = evaluator.evaluate_many(scores, METRIC).mean(axis=1)
    return {"metric": METRIC, "features": test.feature_names, "alone": alone, "random": random}


def certified_path(fold: Fold, profile: str) -> dict[str, Any]:
    """The ℓ1 path on the training data: weights, gaps, validation and test values of its points."""
    path = sparse_path(fold.train)
    return {
        "alphas": path.alphas,
        "n_nonzero": path.n_nonzero,
        "objectives": path.objectives,
        "relative_gaps": path.relative_gaps,
        "seconds": path.seconds,
        "weights": [nonzero_weights(w, path.feature_names) for w in path.coefs],
        "validation": _metric_means(path, fold.valid, profile),
        "test": _metric_means(path, fold.test, profile),
    }


def _metric_means(path: SparsePath, data: Dataset, profile: str) -> dict[str, dict[str, FloatArray]]:
    scores = linear_scores_of_models(data.X, path.coefs)
    values = {metric: Evaluator(data, profile).evaluate_many(scores, metric) for metric in CURVE_METRICS}
    return {m: {"mean": v.mean(axis=1), "standard_error": standard_error(v)} for m, v in values.items()}


def sizes(fold: Fold, profile: str) -> dict[str, Any]:
    """Test metrics of FBPCRank with at most k features."""
    evaluator = Evaluator(fold.test, profile)
    sizes_here = [k for k in SIZES if k <= fold.train.n_features]
    rankers = [FBPCRank(max_features=k, tol=0.0).fit(fold.train) for k in sizes_here]
    means = [evaluator.evaluate(ranker.predict(fold.test), CURVE_METRICS).mean for ranker in rankers]
    used = [len(ranker.support_) for ranker in rankers]
    return {
        "n_features": used,
        "test": {metric: [mean[metric] for mean in means] for metric in CURVE_METRICS},
    }


def convergence(fold: Fold, profile: str) -> dict[str, Any]:
    """Objective and gap over time of several solvers on one ℓ1 problem, the middle of the path.

    Frank–Wolfe minimises the same loss over the ball with radius r, the norm of the solution; α·r is added to
    its objective.
    """
    alphas = sparse_path(fold.train).alphas
    alpha = float(alphas[len(alphas) // 2])
    objective = make_objective(fold.train)
    problem = Problem(objective, L1(alpha))
    best = ProxNewton(tol=1e-12).solve(problem)
    radius = float(np.abs(best.w).sum())
    runs = {
        "proximal Newton": _trace(ProxNewton(CONVERGED).solve(problem)),
        "FISTA": _trace(Fista(CONVERGED, MAX_ITER).solve(problem)),
    }
    tol = CONVERGED * (best.objective - alpha * radius)
    for variant in VARIANTS:
        result = FrankWolfe(tol, MAX_ITER, variant).solve(Problem(objective, L1Ball(radius)))
        runs[f"Frank–Wolfe, {variant}"] = _trace(result, alpha * radius)
    return {"alpha": alpha, "radius": radius, "optimum": best.objective - best.gap, "runs": runs}


def _trace(result: Result, constant: float = 0.0) -> dict[str, Any]:
    """At most 200 evenly spaced points of a solver's trace."""
    points = np.unique(np.linspace(0, len(result.trace) - 1, 200).round().astype(int))
    columns = {name: np.asarray(values)[points] for name, values in result.trace.to_dict().items()}
    return columns | {"objective": columns["objective"] + constant}
