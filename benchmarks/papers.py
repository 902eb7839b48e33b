"""The five papers' methods on LETOR, beside what the papers print.

    python -m benchmarks.papers [method …]

Fits every point of each paper's grid on train, chooses on vali, reports test, means over five folds; results
go to benchmarks/results/papers.json, method by method.
"""

from __future__ import annotations

import json
import os
import sys
import time

from benchmarks.harness import HERE, keep, letor_root
from ranksieve.data import load_letor_folds
from ranksieve.experiment import five_fold
from ranksieve.experiment.methods import METHODS

COLUMNS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map")
# N@1, N@3, N@5, N@10, MAP, sparsity as printed; None where the paper has no such number.
PAPER = {
    ("OHSUMED", "fenchelrank"): (0.5456, 0.5166, 0.4826, 0.4637, 0.4486, 0.289),
    ("MQ2008", "fenchelrank"): (0.3762, 0.4402, 0.4790, 0.2317, 0.4785, 0.344),
    ("OHSUMED", "fsmrank"): (0.5394, 0.5013, 0.4824, 0.4613, 0.4498, 0.41),
    ("MQ2008", "fsmrank"): (0.3686, 0.4399, 0.4791, 0.2327, 0.4771, 0.42),
    ("OHSUMED", "minbatsrank"): (0.5704, 0.5030, 0.4816, 0.4663, 0.4511, 0.231),
    ("OHSUMED", "ranksvm-l1"): (None, None, None, None, None, 0.28),
    ("MQ2008", "ranksvm-l1"): (None, None, None, None, None, 0.39),
    ("OHSUMED", "ranksvm-log"): (None, None, None, None, None, 0.12),
    ("MQ2008", "ranksvm-log"): (None, None, None, None, None, 0.09),
    ("OHSUMED", "ranksvm-mcp"): (None, None, None, None, 0.4513, 0.34),
    ("MQ2008", "ranksvm-mcp"): (None, None, None, None, None, 0.27),
    ("OHSUMED", "ranksvm-l0.5"): (None, None, None, None, None, 0.22),
    ("MQ2008", "ranksvm-l0.5"): (None, None, None, None, None, 0.07),
}


def run(data_set: str, name: str, folds: list) -> dict:
    method = METHODS[name]
    start = time.perf_counter()
    result = five_fold(
        method.make, method.grid, folds, select=method.select, n_jobs=len(os.sched_getaffinity(0))
    )
    row = result.to_row()
    printed = PAPER.get((data_set, name), (None,) * 6)
    ours = [row[c] for c in COLUMNS] + [row["sparsity"]]
    return {
        **{key: round(value, 4) for key, value in row.items()},
        "wall_seconds": round(time.perf_counter() - start, 1),
        "fits": len(method.grid) * len(folds),
        "paper": printed,
        "difference": [None if p is None else round(o - p, 4) for o, p in zip(ours, printed, strict=True)],
    }


def show(data_set: str, name: str, row: dict) -> None:
    ours = " ".join(f"{row[c]:.4f}" for c in COLUMNS)
    theirs = " ".join("  –   " if p is None else f"{p:.4f}" for p in row["paper"])
    print(
        f"{data_set:8} {name:15} {ours}  {row['sparsity']:.3f}  {row['wall_seconds']:7.1f} s | {theirs}",
        flush=True,
    )


def main(names: list[str]) -> None:
    if letor_root() is None:
        return
    path = HERE / "results" / "papers.json"
    table = json.loads(path.read_text()) if path.exists() else {}
    print(f"{'':24} N@1    N@3    N@5    N@10   MAP     sparsity       | the paper's")
    for data_set in ("OHSUMED", "MQ2008"):
        folds = load_letor_folds(data_set, letor_root())
        for name in names or METHODS:
            row = table.setdefault(data_set, {})[name] = run(data_set, name, folds)
            show(data_set, name, row)
            keep("papers", {k: v for k, v in table.items() if k != "about"}, quiet=True)


if __name__ == "__main__":
    main(sys.argv[1:])
