"""Gain from using feature costs in the fit, on two kinds of synthetic data with ten seeds each.

Shop: `make_shop` with `shop_costs`. Drawn: `make_ranking` with log-normal costs; every third block of five
correlated features is a group that is paid once. For each cost budget, compares the model fitted with costs
with the best affordable candidate of a fit without costs (same families and held-out queries). Budgets
without such a candidate are counted separately. NDCG@10 on the validation queries, which are used for both
selections, and on test queries, which are not used for selection.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import save_result
from ranksieve._types import FloatArray
from ranksieve.choice.decide import allowed, choose
from ranksieve.data.budget import Budget
from ranksieve.data.costs import ColumnCosts, CostUnit, FeatureCosts
from ranksieve.data.dataset import Dataset
from ranksieve.metrics import evaluate
from ranksieve.rankers import SparseRanker
from ranksieve.synthetic import make_ranking, make_shop, shop_costs

SEEDS = range(10)
SHARES = (0.05, 0.1, 0.2, 0.4)  # of the cost of all features
N_QUERIES = (150, 100, 150)  # training, validation, test
METRIC, PROFILE = "ndcg@10", "letor"


def shop(seed: int) -> tuple[Dataset, FeatureCosts]:
    return make_shop(sum(N_QUERIES), random_state=seed), shop_costs()


def drawn(seed: int) -> tuple[Dataset, FeatureCosts]:
    data = make_ranking(
        sum(N_QUERIES), 60, 12, docs_per_query=(12, 40), n_constant=0, correlation=0.7, random_state=seed
    )
    names, rng = data.feature_names, np.random.default_rng(seed)
    blocks = [names[first::12] for first in range(12)]  # these share a factor in make_ranking
    units = []
    for number, block in enumerate(blocks):
        is_group = number % 3 == 0
        members = [tuple(block)] if is_group else [(name,) for name in block]
        units += [CostUnit(f"{m[0]}…" if is_group else m[0], float(rng.lognormal(0, 1)), m) for m in members]
    return data, FeatureCosts(tuple(units))


def split(data: Dataset) -> list[Dataset]:
    return [
        data.select_queries(part) for part in np.split(np.arange(data.n_queries), np.cumsum(N_QUERIES)[:-1])
    ]


def compare_with_plain(data: Dataset, costs: FeatureCosts) -> list[dict[str, Any]]:
    """One row per budget: the model fitted with costs, and the best affordable one fitted without."""
    train, valid, test = split(data)
    columns = costs.columns(data.feature_names)
    plain = SparseRanker(metric=METRIC, profile=PROFILE).fit(train, valid=valid)
    rows = []
    for share in SHARES:
        limit = share * columns.of(np.arange(data.n_features))
        ranker = SparseRanker(metric=METRIC, profile=PROFILE, feature_costs=costs, max_cost=limit)
        ranker.fit(train, valid=valid)
        row = {"share": share, "budget": limit}
        row |= evaluate_model("costs", ranker, ranker.coef_, columns, valid, test)
        families, names = plain.choice_.families, plain.choice_.feature_names
        budget = Budget(max_cost=limit, costs=columns)
        if allowed(families, budget).any():
            w = choose(families, budget, names).candidate.coef
            row |= evaluate_model("plain", plain, w, columns, valid, test)
        rows.append(row)
    return rows


def evaluate_model(
    name: str, ranker: SparseRanker, w: FloatArray, columns: ColumnCosts, valid: Dataset, test: Dataset
) -> dict[str, Any]:
    values = {
        part: evaluate(ranker.preparation_.apply(d).X @ w, d, METRIC, PROFILE).mean[METRIC]
        for part, d in (("valid", valid), ("test", test))
    }
    return {
        f"{name}_cost": columns.of(w != 0),
        f"{name}_features": int(np.count_nonzero(w)),
        **{f"{name}_{part}": value for part, value in values.items()},
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds for one budget."""
    both = [row for row in rows if "plain_valid" in row]
    gains = {
        part: [row[f"costs_{part}"] - row[f"plain_{part}"] for row in both] for part in ("valid", "test")
    }
    return {
        "share": rows[0]["share"],
        "seeds": len(rows),
        "plain_path_has_no_model": len(rows) - len(both),
        "better_on_validation": sum(g > 0 for g in gains["valid"]),
        "better_on_test": sum(g > 0 for g in gains["test"]),
        "mean_gain_validation": float(np.mean(gains["valid"])) if both else None,
        "mean_gain_test": float(np.mean(gains["test"])) if both else None,
        "mean_costs_test": float(np.mean([row["costs_test"] for row in rows])),
    }


def main() -> None:
    result = {}
    for make in (shop, drawn):
        rows = [row for seed in SEEDS for row in compare_with_plain(*make(seed))]
        tables = [summary([row for row in rows if row["share"] == share]) for share in SHARES]
        for table in tables:
            print(make.__name__, {k: round(v, 4) if isinstance(v, float) else v for k, v in table.items()})
        result[make.__name__] = {"budgets": tables, "rows": rows}
    save_result("costs", result, quiet=True)


if __name__ == "__main__":
    main()
