"""Every method of the table on LETOR, beside what the papers print.

    python -m benchmarks.papers [method …]

Fits every point of each paper's grid on train, chooses on vali, reports test, means over five folds; results
go to benchmarks/results/papers.json, method by method.
"""

from __future__ import annotations

import json
import math
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
    ("OHSUMED", "ranksvm"): (0.5460, 0.4855, 0.4689, 0.4504, 0.4446, 0.80),
    ("MQ2008", "ranksvm"): (0.3725, 0.4333, 0.4765, 0.2309, 0.4744, 0.87),
    ("OHSUMED", "ranksvmstruct"): (0.5515, 0.4850, 0.4729, 0.4523, 0.4478, None),
    ("MQ2008", "ranksvmstruct"): (0.3627, 0.4286, 0.4695, 0.2279, 0.4696, None),
    ("OHSUMED", "tgrank"): (0.5616, 0.4923, 0.4813, 0.4524, 0.4479, None),
    ("MQ2008", "tgrank"): (0.3626, 0.4303, 0.4712, 0.2277, 0.4709, None),
    ("OHSUMED", "rsrank"): (0.5395, 0.4831, 0.4684, 0.4503, 0.4486, None),
    ("MQ2008", "rsrank"): (0.3686, 0.4340, 0.4734, 0.2282, 0.4781, None),
    ("OHSUMED", "listnet"): (0.5326, 0.4732, 0.4432, 0.4410, 0.4457, None),
    ("MQ2008", "listnet"): (0.3754, 0.4324, 0.4747, 0.2303, 0.4775, None),
    ("OHSUMED", "adarank-ndcg"): (0.5330, 0.4790, 0.4673, 0.4496, 0.4498, None),
    ("MQ2008", "adarank-ndcg"): (0.3826, 0.4420, 0.4821, 0.2307, 0.4824, None),
    ("OHSUMED", "rankboost"): (0.4632, 0.4555, 0.4494, 0.4302, 0.4411, None),
    ("MQ2008", "rankboost"): (0.3856, 0.4288, 0.4666, 0.2255, 0.4775, None),
    ("OHSUMED", "svmmap"): (0.5229, 0.4663, 0.4516, 0.4319, 0.4453, None),
    ("MQ2008", "svmmap"): (0.3516, 0.4102, 0.4515, 0.2179, 0.4569, None),
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
        **{key: None if math.isnan(value) else round(value, 4) for key, value in row.items()},
        "wall_seconds": round(time.perf_counter() - start, 1),
        "fits": len(method.grid) * len(folds),
        "paper": printed,
        "difference": [_difference(o, p) for o, p in zip(ours, printed, strict=True)],
    }


def _difference(ours: float, printed: float | None) -> float | None:
    return None if printed is None or math.isnan(ours) else round(ours - printed, 4)


def show(data_set: str, name: str, row: dict) -> None:
    ours = " ".join(f"{row[c]:.4f}" for c in COLUMNS)
    theirs = " ".join("  –   " if p is None else f"{p:.4f}" for p in row["paper"])
    print(
        f"{data_set:8} {name:18} {ours}  {row['sparsity'] or 1:.3f}  {row['wall_seconds']:7.1f} s | {theirs}",
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
