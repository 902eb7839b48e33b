"""Best subset search: gaps, time, and test accuracy.

LETOR: five folds of OHSUMED and MQ2008, 1 to 10 features, 60 s for each size. Measures the gap at the root
and at the end, the number of nodes, and the seconds to a gap of 1 %; and test NDCG@10 (letor profile) of the
best subset and of the models of the ℓ1 path, the log penalty and forward selection with at most as many
features (the largest of each family). Films: the same, a fifth of the training queries held out as test data
(standard profile). Synthetic: ten planted features among 136 and 700, each with three correlated copies. Test
data are not used for selection.
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
SMALL_GAP = 0.01
FAMILIES = ("l1", "log", "forward")
COPIES, COPY_NOISE = 3, 0.3


def search_row(ranker: BestSubset) -> dict[str, Any]:
    gaps = np.array(ranker.trace_.gap) / np.array(ranker.trace_.objective)
    within = np.flatnonzero(gaps <= SMALL_GAP)
    return {
        "k": ranker.max_features,
        "objective": ranker.objective_,
        "root_gap": (ranker.objective_ - ranker.root_bound_) / ranker.objective_,
        "gap": ranker.gap_ / ranker.objective_,
        "nodes": ranker.n_iter_,
        "seconds": ranker.subset_.seconds,
        "seconds_to_1_percent": float(ranker.trace_.seconds[within[0]]) if len(within) else None,
        "in_no_better_set": len(ranker.never_),
        "features": [ranker.coef_names_[j] for j in ranker.support_],
    }


def compare_families(train: Dataset, valid: Dataset, test: Dataset, profile: str) -> list[dict[str, Any]]:
    """One row per size: result of the search, and test NDCG@10 of the best subset and of other families."""

    def ndcg(ranker: BestSubset | SparseRanker, coef: FloatArray) -> float:
        scores = scores_of_models(coef[None], test, test.feature_names, ranker.preparation_)[:, 0]
        return float(evaluate(scores, test, "ndcg@10", profile).mean["ndcg@10"])

    rankers = BestSubset(time_limit=TIME_LIMIT).fit_sizes(SIZES, train)
    other = SparseRanker(max(SIZES), families=FAMILIES, n_alphas=100, min_ratio=1e-3).fit(train, valid=valid)
    rows = []
    for size, ranker in zip(SIZES, rankers, strict=True):
        test_values = {"subset": ndcg(ranker, ranker.coef_)}
        for family in other.choice_.families:
            used = family.n_nonzero
            small = np.flatnonzero((used > 0) & (used <= size))
            if len(small):
                last = small[np.flatnonzero(used[small] == used[small].max())[-1]]
                test_values[family.label] = ndcg(other, family.coefs[last])
        rows.append({**search_row(ranker), "test_ndcg@10": test_values})
        print(rows[-1], flush=True)
    return rows


def letor(root: Path) -> dict[str, Any]:
    return {
        name: [
            compare_families(fold.train, fold.valid, fold.test, "letor")
            for fold in load_letor_folds(root / name)
        ]
        for name in ("OHSUMED", "MQ2008")
    }


def films(folder: Path) -> list[dict[str, Any]]:
    train, valid = (read_dataset(folder / f"{part}.parquet") for part in ("train", "vali"))
    part = np.random.default_rng(TEST_SEED).permutation(train.n_queries) % TEST_SHARE
    rest, test = train.select_queries(part != 0), train.select_queries(part == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about missing values
        return compare_families(rest, valid, test, "standard")


def planted(n_features: int, n_queries: int = 300, n_planted: int = 10) -> dict[str, Any]:
    """Search on data with planted features, three noisy copies of each, and irrelevant features."""
    n_copies = COPIES * n_planted
    data = make_ranking(n_queries, n_features - n_copies, n_planted, docs_per_query=30, random_state=0)
    assert data.truth is not None
    truth, rng = np.flatnonzero(data.truth), np.random.default_rng(0)
    columns = np.repeat(truth, COPIES)
    copies = data.X[:, columns] + COPY_NOISE * data.X[:, columns].std(axis=0) * rng.normal(
        size=(data.n_docs, n_copies)
    )
    with_copies = Dataset(np.column_stack([data.X, copies]), data.y, data.qid)
    ranker = BestSubset(n_planted, time_limit=TIME_LIMIT).fit(with_copies)
    n_found = int(np.isin(truth, ranker.support_).sum())
    row = {"d": n_features, "documents": data.n_docs, "planted_found": n_found, **search_row(ranker)}
    print(row, flush=True)
    return row


def summary(folds: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Means and extremes over folds, one row per size."""
    rows = []
    for k in range(len(SIZES)):
        size_rows = [fold[k] for fold in folds]
        to_small_gap = [row["seconds_to_1_percent"] for row in size_rows]
        names = size_rows[0]["test_ndcg@10"]
        rows.append(
            {
                "k": size_rows[0]["k"],
                "root_gap_largest": max(row["root_gap"] for row in size_rows),
                "gap_largest": max(row["gap"] for row in size_rows),
                "proven": sum(row["gap"] <= 1e-8 for row in size_rows),
                "nodes_mean": float(np.mean([row["nodes"] for row in size_rows])),
                "seconds_mean": float(np.mean([row["seconds"] for row in size_rows])),
                "seconds_to_1_percent_largest": None if None in to_small_gap else max(to_small_gap),
                "test_ndcg@10": {
                    name: float(np.mean([row["test_ndcg@10"].get(name, np.nan) for row in size_rows]))
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
