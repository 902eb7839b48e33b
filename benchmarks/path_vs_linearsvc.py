"""The certified path, and one fit, against scikit-learn's LinearSVC(ℓ1) on materialised pairs.

Both solve min (1/p) Σ max(0, 1 − ⟨w, x_i − x_j⟩)² + α‖w‖₁ on OHSUMED Fold1's training part at the 40th α of
the path. Each side runs in a process of its own, so that peak memory is its own.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import numpy as np

from benchmarks.harness import in_subprocess, keep, letor_root, peak_megabytes, seconds
from ranksieve.formats.letor import read_letor
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties import L1
from ranksieve.solvers import Problem, ProxNewton

POINT = 39  # the 40th


def ours() -> dict[str, float]:
    root = letor_root()
    train = read_letor(root / "OHSUMED" / "Fold1" / "train.txt")
    start = time.perf_counter()
    path = sparse_path(train)
    first_path = time.perf_counter() - start
    path_times = seconds(lambda: sparse_path(train), 7)
    alpha = float(path.alphas[POINT])
    fit_times = seconds(lambda: ProxNewton(1e-6).solve(Problem(make_objective(train), L1(alpha))), 21)
    result = ProxNewton(1e-6).solve(Problem(make_objective(train), L1(alpha)))
    return {
        "alpha": alpha,
        "objective": result.objective,
        "relative_gap": result.relative_gap,
        "worst_relative_gap_of_path": float(path.relative_gaps.max()),
        "path_seconds_first_with_compiling": first_path,
        "path_seconds_median": statistics.median(path_times),
        "newton_steps_of_path": int(path.n_iter.sum()),
        "fit_seconds_median": statistics.median(fit_times),
        "peak_megabytes": peak_megabytes(),
    }


def linear_svc(alpha: float) -> dict[str, float]:
    from sklearn.svm import LinearSVC

    root = letor_root()
    train = read_letor(root / "OHSUMED" / "Fold1" / "train.txt")
    start = time.perf_counter()
    K, signs = materialise(train)
    build = time.perf_counter() - start
    p = len(K)
    svc = LinearSVC(
        penalty="l1", loss="squared_hinge", dual=False, fit_intercept=False, C=1 / (alpha * p), tol=1e-4,
        max_iter=10_000, random_state=0,
    )  # fmt: skip
    start = time.perf_counter()
    svc.fit(K, signs)
    fit = time.perf_counter() - start
    w = svc.coef_[0]
    xi = np.maximum(0.0, 1.0 - signs * (K @ w))
    return {
        "objective": float(xi @ xi / p + alpha * np.abs(w).sum()),
        "pairs": p,
        "build_seconds": build,
        "fit_seconds": fit,
        "peak_megabytes": peak_megabytes(),
    }


def materialise(train):
    """All pair differences; every other one turned round, because LinearSVC wants two classes."""
    blocks = []
    for lo, hi in zip(train.queries.offsets[:-1], train.queries.offsets[1:], strict=True):
        rows = train.queries.order[lo:hi]
        upper, lower = np.nonzero(train.y[rows][:, None] > train.y[rows][None, :])
        blocks.append(train.X[rows[upper]] - train.X[rows[lower]])
    K = np.concatenate(blocks)
    signs = np.where(np.arange(len(K)) % 2, 1.0, -1.0)
    K *= signs[:, None]
    return K, signs


def main() -> None:
    if letor_root() is None:
        return
    us = in_subprocess(__spec__.name, "ours")
    peers = [in_subprocess(__spec__.name, "peer", repr(us["alpha"])) for _ in range(3)]
    peer = min(peers, key=lambda run: run["fit_seconds"])
    keep(
        "path_vs_linearsvc",
        {
            "data": "OHSUMED Fold1 train",
            **{f"ours_{key}": value for key, value in us.items()},
            **{f"linearsvc_{key}": value for key, value in peer.items()},
            "linearsvc_runs": "best of 3",
            "relative_difference_of_objectives": abs(peer["objective"] - us["objective"]) / us["objective"],
            "one_fit_times_faster": peer["fit_seconds"] / us["fit_seconds_median"],
            "path_of_100_as_share_of_one_linearsvc_fit": us["path_seconds_median"] / peer["fit_seconds"],
            "memory_share": us["peak_megabytes"] / peer["peak_megabytes"],
        },
    )


if __name__ == "__main__":
    sides = {"ours": ours, "peer": linear_svc}
    if len(sys.argv) > 1:
        print(json.dumps(sides[sys.argv[1]](*map(float, sys.argv[2:]))))
    else:
        main()
