"""All solvers on the same ℓ1 problems: OHSUMED Fold1 at three points of the path.

The solution at α has norm r; Frank–Wolfe minimises the same loss over the ball with radius r. Each solver
runs to a relative gap of 1e-6 by its own certificate; then the objectives must agree to 1e-6.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import letor_root, save_result
from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import read_letor
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties import L1, L1Ball
from ranksieve.solvers import Fista, FrankWolfe, Problem, ProxNewton
from ranksieve.solvers.frank_wolfe import VARIANTS

TOL = 1e-6
POINTS = (20, 39, 60)


def solve_all(train: Dataset, point: int) -> list[dict[str, Any]]:
    alpha = float(sparse_path(train).alphas[point])
    objective = make_objective(train)
    problem = Problem(objective, L1(alpha))
    newton = timed_solve("proximal Newton", lambda: ProxNewton(TOL).solve(problem))
    radius = float(np.abs(newton["w"]).sum())
    loss = newton["objective"] - alpha * radius
    rows = [newton, timed_solve("FISTA", lambda: Fista(TOL).solve(problem))]
    ball = Problem(objective, L1Ball(radius))
    for variant in VARIANTS:
        solver = FrankWolfe(TOL * loss, 20_000, variant)
        row = timed_solve(f"Frank–Wolfe, {variant}", partial(solver.solve, ball))
        row["objective"] += alpha * float(np.abs(row["w"]).sum())
        rows.append(row)
    return [{"alpha": alpha, "radius": radius, **{k: v for k, v in row.items() if k != "w"}} for row in rows]


def timed_solve(name: str, solve: Callable[[], Any]) -> dict[str, Any]:
    start = time.perf_counter()
    result = solve()
    seconds = time.perf_counter() - start
    return {
        "solver": name,
        "objective": result.objective,
        "gap": result.gap,
        "reached": bool(result.converged),
        "iterations": result.n_iter,
        "seconds": seconds,
        "w": result.w,
    }


def main() -> None:
    root = letor_root()
    if root is None:
        return
    train = read_letor(root / "OHSUMED" / "Fold1" / "train.txt")
    tables = [solve_all(train, point) for point in POINTS]
    for rows in tables:
        print(f"\nalpha {rows[0]['alpha']:.5f}, radius {rows[0]['radius']:.5f}")
        for row in rows:
            row["relative_difference"] = abs(row["objective"] - rows[0]["objective"]) / rows[0]["objective"]
            print(
                f"  {row['solver']:22} {row['objective']:.9f}  difference {row['relative_difference']:.1e}  "
                f"gap {row['gap']:.1e} {'' if row['reached'] else '(not converged) '}"
                f"{row['iterations']:6d} iterations {row['seconds']:8.3f} s"
            )
    worst = max(row["relative_difference"] for rows in tables for row in rows if row["reached"])
    save_result(
        "solvers_agree", {"worst_relative_difference_where_claimed": worst, "problems": tables}, quiet=True
    )
    print(f"\nlargest relative difference of converged solvers: {worst:.1e}")


if __name__ == "__main__":
    main()
