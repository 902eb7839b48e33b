"""Accuracy of scorecards (integer points) compared with real-valued weights of the same features.

LETOR: five folds of OHSUMED and MQ2008. On the training data, forward selection gives models with 3, 5 and 10
features and real-valued weights, and a scorecard is made of each. Both are evaluated on validation and test
data (NDCG@10 and MAP, letor profile), which are not used for selection. Also measures the seconds for a
scorecard of 10 features on 10,000 documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import letor_root, save_result, seconds
from ranksieve import Dataset, LinearModel, evaluate, load_letor_folds, make_ranking, make_scorecard
from ranksieve._types import FloatArray
from ranksieve.choice.forward import ForwardSearch
from ranksieve.data.budget import Budget
from ranksieve.io.folds import Fold
from ranksieve.model.linear import Term
from ranksieve.objective import make_objective

SIZES = (3, 5, 10)
LEVELS = (3, 9)
METRICS = ("ndcg@10", "map")


def letor(root: Path) -> dict[str, Any]:
    return {name: five_folds(load_letor_folds(root / name)) for name in ("OHSUMED", "MQ2008")}


def five_folds(folds: Sequence[Fold]) -> list[dict[str, Any]]:
    with_models = [(fold, forward_models(fold.train)) for fold in folds]
    return [
        summary(levels, size, [compare_card(models[size], levels, fold) for fold, models in with_models])
        for levels in LEVELS
        for size in SIZES
    ]


def forward_models(train: Dataset) -> dict[int, LinearModel]:
    """Models of forward selection by number of features."""
    objective = make_objective(train)
    search = ForwardSearch(objective, objective.varies)
    fits = search.path(max(SIZES), Budget(must_not=~objective.varies))
    return {size: model_of(fits[size - 1].w, train, search.ridge) for size in SIZES}


def model_of(w: FloatArray, train: Dataset, ridge: float) -> LinearModel:
    terms = (Term(train.feature_names[j], j, w[j]) for j in np.flatnonzero(w).tolist())
    return LinearModel(tuple(terms), train.n_features, certificate={"ridge": ridge})


def compare_card(model: LinearModel, levels: int, fold: Fold) -> dict[str, Any]:
    card = make_scorecard(model, fold.train, levels)
    certificate = card.certificate
    bound = certificate["gap"] / (certificate["objective"] - certificate["gap"])
    row = {"features": len(card.terms), "bound": bound}
    for part in ("valid", "test"):
        data = getattr(fold, part)
        for kind, scorer in (("real", model), ("card", card)):
            mean = evaluate(scorer.predict(data), data, METRICS, "letor").mean
            row |= {f"{part} {metric} {kind}": mean[metric] for metric in METRICS}
    return row


def summary(levels: int, size: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the folds, losses of the card, and the largest bound."""
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0] if name != "bound"}
    losses = {
        f"{part} {metric} lost": means[f"{part} {metric} real"] - means[f"{part} {metric} card"]
        for part in ("valid", "test")
        for metric in METRICS
    }
    by_fold = [row["test ndcg@10 real"] - row["test ndcg@10 card"] for row in rows]
    worst = max(row["bound"] for row in rows)
    return {
        "levels": levels,
        "size": size,
        "worst bound": worst,
        **means,
        **losses,
        "test ndcg@10 lost by fold": by_fold,
    }


def speed() -> dict[str, Any]:
    data = make_ranking(n_queries=200, n_features=10, n_informative=10, docs_per_query=50, random_state=0)
    model = LinearModel(tuple(Term(f"f{j + 1}", j, 1.0) for j in range(10)), 10)
    return {"documents": data.n_docs, "seconds": seconds(lambda: make_scorecard(model, data), repeats=5)}


def main() -> None:
    root = letor_root()
    if root is None:
        return
    save_result("scorecards", {**letor(root), "ten_features": speed()})


if __name__ == "__main__":
    main()
