"""CatBoost's public ranking benchmark on MQ2008, Fold1: published rows, refitted rows, and SparseRanker.

The benchmark fits on train and publishes, for each library, the best test NDCG@10 over its grid and over the
boosting iterations, every tenth of 8,000 (here of 2,000). Queries without a relevant document count 1;
documents with equal scores keep their order in the file: its rule for them, the worst order, has no effect,
because Python's sort only asks which of two is smaller. Its script passes no objective to XGBoost and
LightGBM, so that their rows for regression, pairs and LambdaMART are one and the same least squares;
CatBoost's best row is least squares too. Here, these three rows are fitted again with the published
parameters and measured at the best iteration on test, as published, and at the best iteration on validation
data. SparseRanker chooses on training and validation data.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import ranksieve as rs
from benchmarks.harness import letor_root, save_result
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.io.folds import Fold, load_letor_folds
from ranksieve.metrics import Evaluator

N_ROUNDS, STEP = 2000, 10
METRIC = "ndcg@10"
PUBLISHED = {"catboost": 0.830443, "xgboost": 0.822891, "lightgbm": 0.822661}
Stages = Callable[[Dataset], Iterator[FloatArray]]
"""Scores of a data set after every tenth round; the stages of the benchmark."""


def main() -> None:
    root = letor_root()
    if root is None:
        return
    fold = load_letor_folds("MQ2008", root)[0]
    result: dict[str, Any] = {}
    for name, fit in FITS.items():
        row: dict[str, Any] = {"published": PUBLISHED[name]}
        if importlib.util.find_spec(name) is None:
            print(f"skipped: {name} is not installed")
        else:
            row |= at_best_rounds(fit(fold.train), fold)
        result[name] = row
        print(name, row, flush=True)
    for name, most in {"SparseRanker": None, "SparseRanker, 10 features": 10}.items():
        ranker = rs.SparseRanker(max_features=most, profile="standard").fit(fold.train, valid=fold.valid)
        values = per_query(fold.test, ranker.predict(fold.test)[None])[0]
        error = float(values.std(ddof=1)) / len(values) ** 0.5
        result[name] = {"test": float(values.mean()), "standard error": error}
        result[name]["features"] = len(ranker.support_)
    save_result("catboost_ranking", result)


def per_query(data: Dataset, scores: FloatArray) -> FloatArray:
    """NDCG@10 of each row of scores and each query, by the benchmark's conventions."""
    evaluator = Evaluator(data, "standard", empty=1.0, ties="order")
    values: FloatArray = evaluator.evaluate_many(scores.T, METRIC)
    return values


def at_best_rounds(stages: Stages, fold: Fold) -> dict[str, float]:
    """Test NDCG@10 at the best stage on test and at the best stage on validation data."""
    valid, test = (
        per_query(part, np.array(list(stages(part)))).mean(axis=1) for part in (fold.valid, fold.test)
    )
    on_test, on_valid = int(np.argmax(test)), int(np.argmax(valid))
    return {
        "test, best stage on test": float(test[on_test]),
        "best stage on test": on_test,
        "test, best stage on valid": float(test[on_valid]),
        "best stage on valid": on_valid,
    }


def catboost(train: Dataset) -> Stages:
    from catboost import CatBoost

    options = {"learning_rate": 0.03, "max_bin": 254, "max_depth": 6, "random_seed": 0, "thread_count": 2}
    quiet = {"logging_level": "Silent", "allow_writing_files": False}
    model = CatBoost({"loss_function": "RMSE", "iterations": N_ROUNDS, **options, **quiet})
    model.fit(train.X, train.y)
    return lambda data: map(np.asarray, model.staged_predict(data.X, eval_period=STEP))


def xgboost(train: Dataset) -> Stages:
    import xgboost as xgb

    options = {"learning_rate": 0.03, "max_bin": 254, "max_depth": 4, "seed": 0, "tree_method": "hist"}
    model = xgb.train({**options, "base_score": 0.5, "nthread": 2}, xgb.DMatrix(train.X, train.y), N_ROUNDS)

    def stages(data: Dataset) -> Iterator[FloatArray]:
        matrix, total = xgb.DMatrix(data.X), np.zeros(data.n_docs)
        for first, last in rounds():
            total = total + model.predict(matrix, iteration_range=(first, last), output_margin=True) - 0.5
            yield total

    return stages


def lightgbm(train: Dataset) -> Stages:
    import lightgbm as lgb

    options = {"learning_rate": 0.15, "max_bin": 64, "num_leaves": 16, "random_seed": 0, "num_threads": 2}
    model = lgb.train({**options, "verbose": -1}, lgb.Dataset(train.X, train.y), N_ROUNDS)

    def stages(data: Dataset) -> Iterator[FloatArray]:
        total = np.zeros(data.n_docs)
        for first, last in rounds():
            total = total + model.predict(data.X, start_iteration=first, num_iteration=last - first)
            yield total

    return stages


def rounds() -> Iterator[tuple[int, int]]:
    """The rounds added at each stage: the first one, then ten each, as the benchmark measures."""
    ends = range(1, N_ROUNDS + 1, STEP)
    return zip((0, *ends), ends, strict=False)


Fit = Callable[[Dataset], Stages]
FITS: dict[str, Fit] = {"catboost": catboost, "xgboost": xgboost, "lightgbm": lightgbm}

if __name__ == "__main__":
    main()
