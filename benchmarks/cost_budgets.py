"""What a cost buys in film search: `fit` within a cost beside its frontier and models of few features.

From the training queries 1,000 are drawn as training data, with several seeds; the validation queries are
test data here and choose nothing. For each budget: the model that `fit` chooses within the cost, the best
frontier point that costs no more, and the best choice of `max_features` = 1, 2, 3, 5, 8, 12 that costs no
more, each with its features, its cost, the held-out average that choices are made by, and NDCG@10 on test.
Means over the seeds, with the standard error of the difference from `fit`.
"""

from __future__ import annotations

import warnings
from time import process_time
from typing import Any

import numpy as np

import ranksieve as rs
from benchmarks.harness import keep, letor_folder
from ranksieve._types import FloatArray

BUDGETS = (1.0, 2.0, 3.0, 4.0, 5.0, 8.0)
SIZES = (1, 2, 3, 5, 8, 12)
SEEDS = range(3)
QUERIES = 1000
METRIC, PROFILE = "ndcg@10", "standard"


def one_seed(
    everything: rs.Dataset, test: rs.Dataset, costs: rs.FeatureCosts, seed: int
) -> list[dict[str, Any]]:
    drawn = np.random.default_rng(seed).permutation(everything.n_queries)[:QUERIES]
    train = everything.select_queries(np.sort(drawn))
    names = train.feature_names

    def measured(coef: FloatArray, held_out: float) -> dict[str, Any]:
        value = rs.evaluate(scale.apply(test).X @ coef, test, METRIC, PROFILE).mean[METRIC]
        used = np.flatnonzero(coef)
        cost = costs.of(names[j] for j in used)
        return {"features": len(used), "cost": cost, "held_out": held_out, "test": value}

    def of(ranker: rs.SparseRanker) -> dict[str, Any]:
        return measured(ranker.coef_, float(ranker.choice_.validation.mean[ranker.choice_.index]))

    plain = [rs.SparseRanker(k).fit(train) for k in SIZES]
    scale = plain[0].preparation_
    small = [of(ranker) for ranker in plain]
    found = rs.frontier(train, feature_costs=costs)
    assert found.costs is not None
    rows = []
    for budget in BUDGETS:
        start = process_time()
        fitted = rs.SparseRanker(feature_costs=costs, max_cost=budget).fit(train)
        row = {"seed": seed, "budget": budget, "seconds": process_time() - start, "fit": of(fitted)}
        within = np.flatnonzero(found.costs <= budget)
        k = within[np.argmax(found.mean[within])]
        row["frontier"] = measured(found.coefs[k], float(found.mean[k]))
        if rivals := [one for one in small if one["cost"] <= budget]:
            row["max_features"] = max(rivals, key=lambda one: one["held_out"])
        rows.append(row)
        print(row, flush=True)
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Over the seeds of one budget."""
    result = {"budget": rows[0]["budget"], "seconds": float(np.mean([row["seconds"] for row in rows]))}
    for name in ("fit", "frontier", "max_features"):
        known = [row for row in rows if name in row]
        if known:
            keys = ("features", "cost", "held_out", "test")
            result[name] = {key: float(np.mean([row[name][key] for row in known])) for key in keys}
            gain = np.array([row["fit"]["test"] - row[name]["test"] for row in known])
            if name != "fit" and len(gain) > 1:
                error = float(gain.std(ddof=1) / len(gain) ** 0.5)
                result[name] |= {"fit_gains": float(gain.mean()), "standard_error": error}
    return result


def main() -> None:
    root = letor_folder() / "films"
    if not (root / "train.parquet").exists():
        print(f"skipped: no films at {root} (set RANKSIEVE_LETOR)")
        return
    train, test = (rs.read_dataset(root / f"{part}.parquet") for part in ("train", "vali"))
    costs = rs.io.read_costs(root / "costs.csv")
    rows = [row for seed in SEEDS for row in one_seed(train, test, costs, seed)]
    tables = [summary([row for row in rows if row["budget"] == budget]) for budget in BUDGETS]
    for table in tables:
        print(table)
    keep("cost_budgets", {"queries": QUERIES, "budgets": tables, "rows": rows}, quiet=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
