"""Film search with a cost budget: a fit with `max_cost`, the frontier, and fits with `max_features`.

Training data: 1,000 of the training queries, drawn with several seeds. Test data: the validation queries, not
used for selection. For each budget: the model selected by a fit with `max_cost`, the best affordable frontier
point, and the best affordable fit with `max_features` = 1, 2, 3, 5, 8, 12; each with its features, cost,
held-out mean (used for selection) and test NDCG@10. Means over the seeds, and the standard error of the
difference from the fit with `max_cost`.
"""

from __future__ import annotations

import warnings
from time import process_time
from typing import Any

import numpy as np

import ranksieve as rs
from benchmarks.harness import letor_folder, save_result
from ranksieve._types import FloatArray

BUDGETS = (1.0, 2.0, 3.0, 4.0, 5.0, 8.0)
SIZES = (1, 2, 3, 5, 8, 12)
SEEDS = range(3)
QUERIES = 1000
METRIC, PROFILE = "ndcg@10", "standard"


def one_seed(
    everything: rs.Dataset, test: rs.Dataset, costs: rs.FeatureCosts, seed: int
) -> list[dict[str, Any]]:
    queries = np.random.default_rng(seed).permutation(everything.n_queries)[:QUERIES]
    train = everything.select_queries(np.sort(queries))
    names = train.feature_names

    def evaluate_model(coef: FloatArray, held_out: float) -> dict[str, Any]:
        value = rs.evaluate(scale.apply(test).X @ coef, test, METRIC, PROFILE).mean[METRIC]
        used = np.flatnonzero(coef)
        cost = costs.of(names[j] for j in used)
        return {"features": len(used), "cost": cost, "held_out": held_out, "test": value}

    def evaluate_ranker(ranker: rs.SparseRanker) -> dict[str, Any]:
        return evaluate_model(ranker.coef_, float(ranker.choice_.validation.mean[ranker.choice_.index]))

    by_size = [rs.SparseRanker(k).fit(train) for k in SIZES]
    scale = by_size[0].preparation_
    size_rows = [evaluate_ranker(ranker) for ranker in by_size]
    frontier = rs.frontier(train, feature_costs=costs)
    assert frontier.costs is not None
    rows = []
    for budget in BUDGETS:
        start = process_time()
        ranker = rs.SparseRanker(feature_costs=costs, max_cost=budget).fit(train)
        seconds = process_time() - start
        row = {"seed": seed, "budget": budget, "seconds": seconds, "fit": evaluate_ranker(ranker)}
        affordable = np.flatnonzero(frontier.costs <= budget)
        k = affordable[np.argmax(frontier.mean[affordable])]
        row["frontier"] = evaluate_model(frontier.coefs[k], float(frontier.mean[k]))
        if candidates := [candidate for candidate in size_rows if candidate["cost"] <= budget]:
            row["max_features"] = max(candidates, key=lambda candidate: candidate["held_out"])
        rows.append(row)
        print(row, flush=True)
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds for one budget."""
    result = {"budget": rows[0]["budget"], "seconds": float(np.mean([row["seconds"] for row in rows]))}
    for name in ("fit", "frontier", "max_features"):
        with_name = [row for row in rows if name in row]
        if with_name:
            keys = ("features", "cost", "held_out", "test")
            result[name] = {key: float(np.mean([row[name][key] for row in with_name])) for key in keys}
            gains = np.array([row["fit"]["test"] - row[name]["test"] for row in with_name])
            if name != "fit" and len(gains) > 1:
                error = float(gains.std(ddof=1) / len(gains) ** 0.5)
                result[name] |= {"fit_gains": float(gains.mean()), "standard_error": error}
    return result


def main() -> None:
    root = letor_folder() / "films"
    if not (root / "train.parquet").exists():
        print(f"skipped: no film data in {root} (set RANKSIEVE_LETOR)")
        return
    train, test = (rs.read_dataset(root / f"{part}.parquet") for part in ("train", "vali"))
    costs = rs.io.read_costs(root / "costs.csv")
    rows = [row for seed in SEEDS for row in one_seed(train, test, costs, seed)]
    tables = [summary([row for row in rows if row["budget"] == budget]) for budget in BUDGETS]
    for table in tables:
        print(table)
    save_result("cost_budgets", {"queries": QUERIES, "budgets": tables, "rows": rows}, quiet=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
