"""Refit the features that a path chose without the shrinkage of ℓ1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.objective import make_objective
from ranksieve.path import Path
from ranksieve.penalties import ElasticNet
from ranksieve.solvers import Problem, ProxNewton, Result

RIDGE_SHARE = 1e-3  # of α: keeps the refit bounded when the chosen features separate every pair
TOL = 1e-6


def shrunk_path(
    data: Dataset, path: Path, query_weight: FloatArray | None, signs: FloatArray | None = None
) -> Path:
    """The path as it is."""
    return path


def unshrunk_path(
    data: Dataset, path: Path, query_weight: FloatArray | None, signs: FloatArray | None = None
) -> Path:
    """Each point's features refitted: min f(w) + ½(α/1000)‖w‖² over the support, with the signs it must have.

    Objectives and gaps are those of the refits.
    """
    coefs, results = np.zeros_like(path.coefs), []
    with single_threaded_blas():
        for k, alpha in enumerate(path.alphas):
            support = np.flatnonzero(path.coefs[k])
            results.append(_refit(data, support, float(alpha), query_weight, signs))
            coefs[k, support] = results[-1].w
    return replace(
        path,
        coefs=coefs,
        objectives=np.array([r.objective for r in results]),
        gaps=np.array([r.gap for r in results]),
        n_iter=path.n_iter + np.array([r.n_iter for r in results]),
        converged=np.array([r.converged for r in results]),
    )


def _refit(
    data: Dataset,
    support: IntArray,
    alpha: float,
    query_weight: FloatArray | None,
    signs: FloatArray | None,
) -> Result:
    columns = support if len(support) else np.array([0])
    narrow = data.replace_features(data.X[:, columns], [data.feature_names[j] for j in columns])
    objective = make_objective(narrow, query_weight=query_weight)
    bound = None if signs is None else signs[columns]
    ridge = ElasticNet(RIDGE_SHARE * alpha, signs=bound, l1_ratio=0.0)
    result = ProxNewton(TOL, 100 if len(support) else 0).solve(Problem(objective, ridge))
    return replace(result, w=result.w[: len(support)], point=None)
