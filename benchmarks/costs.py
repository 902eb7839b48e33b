"""Does knowing the costs help? Ten seeds of two kinds of costly synthetic data, at several cost budgets.

Shop: `make_shop` with `shop_costs`. Drawn: `make_ranking` with log-normal costs, every third block of five
correlated features a group that is paid once. At each budget the model chosen with costs stands against the
best candidate without them (same families and held-out queries) that costs no more; where there is none, that
is said and counts for neither. NDCG@10 on the validation queries, which help to guide both choices, and on
test queries, which guide none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import keep
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
    blocks = [names[first::12] for first in range(12)]  # what shares a factor in make_ranking
    units = []
    for number, block in enumerate(blocks):
        grouped = number % 3 == 0
        members = [tuple(block)] if grouped else [(name,) for name in block]
        units += [CostUnit(f"{m[0]}…" if grouped else m[0], float(rng.lognormal(0, 1)), m) for m in members]
    return data, FeatureCosts(tuple(units))


def split(data: Dataset) -> list[Dataset]:
    return [
        data.select_queries(part) for part in np.split(np.arange(data.n_queries), np.cumsum(N_QUERIES)[:-1])
    ]


def against_plain(data: Dataset, costs: FeatureCosts) -> list[dict[str, Any]]:
    train, valid, test = split(data)
    columns = costs.columns(data.feature_names)
    plain = SparseRanker(metric=METRIC, profile=PROFILE).fit(train, valid=valid)
    rows = []
    for share in SHARES:
        limit = share * columns.of(np.arange(data.n_features))
        ranker = SparseRanker(metric=METRIC, profile=PROFILE, feature_costs=costs, max_cost=limit)
        ranker.fit(train, valid=valid)
        row = {"share": share, "budget": limit}
        row |= measured("costs", ranker, ranker.coef_, columns, valid, test)
        families, names = plain.choice_.families, plain.choice_.feature_names
        budget = Budget(max_cost=limit, costs=columns)
        if allowed(families, budget).any():
            w = choose(families, budget, names).candidate.coef
            row |= measured("plain", plain, w, columns, valid, test)
        rows.append(row)
    return rows


def measured(
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
    """Over the seeds of one budget."""
    both = [row for row in rows if "plain_valid" in row]
    gain = {part: [row[f"costs_{part}"] - row[f"plain_{part}"] for row in both] for part in ("valid", "test")}
    return {
        "share": rows[0]["share"],
        "seeds": len(rows),
        "plain_path_has_no_model": len(rows) - len(both),
        "better_on_validation": sum(g > 0 for g in gain["valid"]),
        "better_on_test": sum(g > 0 for g in gain["test"]),
        "mean_gain_validation": float(np.mean(gain["valid"])) if both else None,
        "mean_gain_test": float(np.mean(gain["test"])) if both else None,
        "mean_costs_test": float(np.mean([row["costs_test"] for row in rows])),
    }


def main() -> None:
    result = {}
    for make in (shop, drawn):
        rows = [row for seed in SEEDS for row in against_plain(*make(seed))]
        tables = [summary([row for row in rows if row["share"] == share]) for share in SHARES]
        for table in tables:
            print(make.__name__, {k: round(v, 4) if isinstance(v, float) else v for k, v in table.items()})
        result[make.__name__] = {"budgets": tables, "rows": rows}
    keep("costs", result, quiet=True)


if __name__ == "__main__":
    main()
