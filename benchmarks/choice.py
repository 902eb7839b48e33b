"""Accuracy and time of SparseRanker with its default selection, for several budgets.

LETOR: five folds of OHSUMED and MQ2008; test NDCG@10 and MAP (letor profile) with at most 3, 5, 10 and any
number of features, for several cross-validation splits (``random_state``) and kinds of scaling; seconds of a
fit. Films: raw features with missing values, a fifth of the training queries held out as test data; NDCG@10
(standard profile), and seconds of a fit on all training data with one thread. Test data are not used for
selection.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import letor_root, save_result, seconds
from ranksieve import Dataset, SparseRanker, evaluate, load_letor_folds, read_dataset
from ranksieve._parallel import use_threads
from ranksieve.io.folds import Fold

BUDGETS = (3, 5, 10, None)
SEEDS = range(4)
KINDS = ("auto", "z", "within_z")
FILLS = ("column_mean", "zero", "indicator")
TEST_SHARE, TEST_SEED = 5, 1


def letor(root: Path) -> dict[str, Any]:
    result = {}
    for name in ("OHSUMED", "MQ2008"):
        folds = load_letor_folds(root / name)
        result[name] = {
            "budgets": [five_folds(folds, max_features=k) for k in BUDGETS],
            "dealings": [five_folds(folds, random_state=seed) for seed in SEEDS],  # splits
            "normalise": [five_folds(folds, normalise=kind) for kind in KINDS],
            "seconds_of_a_fit": seconds(partial(fit_fold, folds[0]), repeats=5),
        }
    return result


def fit_fold(fold: Fold) -> SparseRanker:
    return SparseRanker().fit(fold.train, valid=fold.valid)


def five_folds(folds: Sequence[Fold], **options: Any) -> dict[str, Any]:
    rows = [
        fit_and_evaluate(SparseRanker(**options), fold.train, fold.valid, fold.test, "letor")
        for fold in folds
    ]
    means = {name: float(np.mean([row[name] for row in rows])) for name in ("features", "ndcg@10", "map")}
    return {**options, **means, "families": [row["family"] for row in rows]}


def fit_and_evaluate(
    ranker: SparseRanker, train: Dataset, valid: Dataset, test: Dataset, profile: str
) -> dict[str, Any]:
    ranker.fit(train, valid=valid)
    mean = evaluate(ranker.predict(test), test, ["ndcg@10", "map"], profile).mean
    held_out = {"held_out": ranker.choice_.confidence.mean, "loss": ranker.choice_.confidence.loss}
    return {"features": len(ranker.support_), "family": ranker.choice_.family.label, **mean, **held_out}


def films(folder: Path) -> dict[str, Any]:
    train, valid = (read_dataset(folder / f"{part}.parquet") for part in ("train", "vali"))
    part = np.random.default_rng(TEST_SEED).permutation(train.n_queries) % TEST_SHARE
    rest, test = train.select_queries(part != 0), train.select_queries(part == 0)

    def fit(**options: Any) -> dict[str, Any]:
        return options | fit_and_evaluate(SparseRanker(**options), rest, valid, test, "standard")

    with warnings.catch_warnings(), use_threads(1):
        warnings.simplefilter("ignore", UserWarning)  # about missing values
        return {
            "budgets": [fit(max_features=k) for k in BUDGETS],
            "normalise": [fit(max_features=5, normalise=kind) for kind in ("auto", "z")],
            "missing": [fit(max_features=5, missing=policy) for policy in FILLS],
            "seconds_at_5_features_one_thread": seconds(
                lambda: SparseRanker(max_features=5).fit(train, valid=valid), repeats=3
            ),
            "documents": train.n_docs,
        }


def main() -> None:
    root = letor_root()
    if root is None:
        return
    result = letor(root)
    if (root / "films" / "train.parquet").exists():
        result["films"] = films(root / "films")
    save_result("choice", result)


if __name__ == "__main__":
    main()
