"""Best subsets: what is proven, how fast, and how the sets rank.

LETOR: five folds of OHSUMED and MQ2008, 1 to 10 features, 60 s for each: the gap at the root and at the end,
regions of sets that were bounded, seconds to a gap of 1 %; test NDCG@10 (letor profile) of the best subset
beside the models of the ℓ1 path, the log penalty and forward selection that use at most as many features (of
each the one with the most). Films: the same, a fifth of the training queries dealt out as test (standard
profile). Synthetic: ten planted features among 136 and 700, each with three correlated copies.
Test parts choose nothing here.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.choice import TEST_SEED, TEST_SHARE
from benchmarks.harness import letor_root, save_result
from ranksieve import (
    BestSubset,
    Dataset,
    SparseRanker,
    evaluate,
    load_letor_folds,
    make_ranking,
    read_dataset,
)
from ranksieve._types import FloatArray
from ranksieve.choice.held_out import scores_of_models

SIZES = range(1, 11)
TIME_LIMIT = 60.0
NEAR = 0.01
FAMILIES = ("l1", "log", "forward")
COPIES, COPY_NOISE = 3, 0.3


def proven(ranker: BestSubset) -> dict[str, Any]:
    gaps = np.array(ranker.trace_.gap) / np.array(ranker.trace_.objective)
    near = np.flatnonzero(gaps <= NEAR)
    return {
        "k": ranker.max_features,
        "objective": ranker.objective_,
        "root_gap": (ranker.objective_ - ranker.root_bound_) / ranker.objective_,
        "gap": ranker.gap_ / ranker.objective_,
        "nodes": ranker.n_iter_,
        "seconds": ranker.subset_.seconds,
        "seconds_to_1_percent": float(ranker.trace_.seconds[near[0]]) if len(near) else None,
        "in_no_better_set": len(ranker.never_),
        "features": [ranker.coef_names_[j] for j in ranker.support_],
    }


def compared(train: Dataset, valid: Dataset, test: Dataset, profile: str) -> list[dict[str, Any]]:
    """One row per size: what is proven, and test NDCG@10 of the best subset and of other families."""

    def ndcg(ranker: BestSubset | SparseRanker, coef: FloatArray) -> float:
        scores = scores_of_models(coef[None], test, test.feature_names, ranker.preparation_)[:, 0]
        return float(evaluate(scores, test, "ndcg@10", profile).mean["ndcg@10"])

    rankers = BestSubset(time_limit=TIME_LIMIT).fit_sizes(SIZES, train)
    other = SparseRanker(max(SIZES), families=FAMILIES, n_alphas=100, min_ratio=1e-3).fit(train, valid=valid)
    rows = []
    for size, ranker in zip(SIZES, rankers, strict=True):
        ranked = {"subset": ndcg(ranker, ranker.coef_)}
        for family in other.choice_.families:
            used = family.n_nonzero
            within = np.flatnonzero((used > 0) & (used <= size))
            if len(within):
                last = within[np.flatnonzero(used[within] == used[within].max())[-1]]
                ranked[family.label] = ndcg(other, family.coefs[last])
        rows.append({**proven(ranker), "test_ndcg@10": ranked})
        print(rows[-1], flush=True)
    return rows


def letor(root: Path) -> dict[str, Any]:
    return {
        name: [compared(fold.train, fold.valid, fold.test, "letor") for fold in load_letor_folds(root / name)]
        for name in ("OHSUMED", "MQ2008")
    }


def films(folder: Path) -> list[dict[str, Any]]:
    train, valid = (read_dataset(folder / f"{part}.parquet") for part in ("train", "vali"))
    dealt = np.random.default_rng(TEST_SEED).permutation(train.n_queries) % TEST_SHARE
    rest, test = train.select_queries(dealt != 0), train.select_queries(dealt == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of missing values
        return compared(rest, valid, test, "standard")


def planted(n_features: int, n_queries: int = 300, n_planted: int = 10) -> dict[str, Any]:
    """Ten planted features, each with three noisy copies, among others."""
    n_copies = COPIES * n_planted
    data = make_ranking(n_queries, n_features - n_copies, n_planted, docs_per_query=30, random_state=0)
    assert data.truth is not None
    truth, rng = np.flatnonzero(data.truth), np.random.default_rng(0)
    columns = np.repeat(truth, COPIES)
    copies = data.X[:, columns] + COPY_NOISE * data.X[:, columns].std(axis=0) * rng.normal(
        size=(data.n_docs, n_copies)
    )
    wide = Dataset(np.column_stack([data.X, copies]), data.y, data.qid)
    ranker = BestSubset(n_planted, time_limit=TIME_LIMIT).fit(wide)
    found = np.isin(truth, ranker.support_)
    row = {"d": n_features, "documents": data.n_docs, "planted_found": int(found.sum()), **proven(ranker)}
    print(row, flush=True)
    return row


def summary(folds: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Means and extremes over folds, one row per size."""
    rows = []
    for k in range(len(SIZES)):
        at = [fold[k] for fold in folds]
        to_near = [row["seconds_to_1_percent"] for row in at]
        names = at[0]["test_ndcg@10"]
        rows.append(
            {
                "k": at[0]["k"],
                "root_gap_largest": max(row["root_gap"] for row in at),
                "gap_largest": max(row["gap"] for row in at),
                "proven": sum(row["gap"] <= 1e-8 for row in at),
                "nodes_mean": float(np.mean([row["nodes"] for row in at])),
                "seconds_mean": float(np.mean([row["seconds"] for row in at])),
                "seconds_to_1_percent_largest": None if None in to_near else max(to_near),
                "test_ndcg@10": {
                    name: float(np.mean([row["test_ndcg@10"].get(name, np.nan) for row in at]))
                    for name in names
                },
            }
        )
    return rows


def main() -> None:
    result: dict[str, Any] = {"time_limit": TIME_LIMIT, "synthetic": [planted(136), planted(700)]}
    root = letor_root()
    if root is not None:
        sets = letor(root)
        result["letor"] = {name: {"summary": summary(folds), "folds": folds} for name, folds in sets.items()}
        if (root / "films" / "train.parquet").exists():
            result["films"] = films(root / "films")
    save_result("subset", result, quiet=True)


if __name__ == "__main__":
    main()
