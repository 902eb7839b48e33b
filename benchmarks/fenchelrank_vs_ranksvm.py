"""FenchelRank against RankSVM-Primal: the paired one-sided t-test in Table 3 of the FenchelRank paper.

The tests are over the test queries of all folds. Also computes Fisher's randomisation test.
"""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness import letor_root, save_result
from ranksieve.experiment import bench
from ranksieve.io.folds import Fold, load_letor_folds
from ranksieve.metrics.significance import paired_t, randomisation

METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map")
PAPER = {"OHSUMED": (0.5, 0.0053, 0.0602, 0.0455, 0.0838), "MQ2008": (0.3506, 0.1239, 0.2731, 0.3891, 0.1650)}


def run(name: str, folds: list[Fold]) -> Any:
    with TemporaryDirectory() as out:
        n_jobs = len(os.sched_getaffinity(0))
        results = bench({"data": folds}, [name], out=out, profile="letor", n_jobs=n_jobs)
        return results.data_sets["data"].results[name]


def main() -> None:
    root = letor_root()
    if root is None:
        return
    result = {}
    for data_set, paper_p_values in PAPER.items():
        folds = load_letor_folds(data_set, root)
        fenchel, svm = run("fenchelrank", folds), run("ranksvm", folds)
        print(f"\n{data_set}: {'metric':8} FenchelRank RankSVM  p (t)   p (randomisation)  p in the paper")
        for metric, p_paper in zip(METRICS, paper_p_values, strict=True):
            a, b = fenchel.pooled(metric), svm.pooled(metric)
            p, r = paired_t(a, b, "greater"), randomisation(a, b, alternative="greater")
            means = (fenchel.mean(metric), svm.mean(metric))
            left = f"{'':{len(data_set)}}  {metric:8} {means[0]:.4f}      {means[1]:.4f}"
            print(f"{left}   {p:.4f}  {r:.4f}   {p_paper}")
            result[f"{data_set} {metric}"] = {
                "fenchelrank": means[0], "ranksvm": means[1], "p_t": p, "p_randomisation": r,
                "p_paper": p_paper,
            }  # fmt: skip
    save_result("fenchelrank_vs_ranksvm", result, quiet=True)


if __name__ == "__main__":
    main()
