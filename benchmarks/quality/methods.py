"""The methods of the quality benchmark: each is fitted to training data and tuned on validation data."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from benchmarks.harness import Skipped
from ranksieve import Dataset, SparseRanker
from ranksieve._types import AnyArray
from ranksieve.methods import METHODS
from ranksieve.metrics import Evaluator
from ranksieve.prepare import Preparation

METRIC = "ndcg@10"
BUDGETS = (10, 5, 3)
MAX_ROUNDS, PATIENCE = 1500, 50
FIRST_TREES = {"num_leaves": 15, "min_data_in_leaf": 20, "learning_rate": 0.1}
TREE_GRID = {"num_leaves": (7, 31), "min_data_in_leaf": (5, 80), "learning_rate": (0.03, 0.3)}
LINEAR_BOOSTING = tuple({"eta": eta, "alpha": alpha} for eta in (0.5, 0.05) for alpha in (0.0, 1e-3, 1e-2))


class Fitted(NamedTuple):
    """Function of a data set that returns scores, the number of features it uses, and their importance."""

    predict: Callable[[Dataset], AnyArray]
    n_features: int
    importance: AnyArray | None = None


Fit: TypeAlias = Callable[[Dataset, Dataset, str], Fitted]
"""Function of training data, validation data and profile."""


def quality(predict: Callable[[Dataset], AnyArray], data: Dataset, profile: str) -> float:
    """Mean NDCG@10, in expectation over the orders of tied documents."""
    return Evaluator(data, profile, ties="mean").evaluate(predict(data), METRIC).mean[METRIC]


def best_on(valid: Dataset, profile: str, candidates: Iterable[Fitted]) -> Fitted:
    """The candidate with the highest metric on validation data."""
    return max(candidates, key=lambda one: quality(one.predict, valid, profile))


def flagship(train: Dataset, valid: Dataset, profile: str, **parameters: Any) -> Fitted:
    """SparseRanker, selected by cross-validation and validation data together, as users call it."""
    ranker = SparseRanker(profile=profile, **parameters).fit(train, valid=valid)
    return Fitted(ranker.predict, len(ranker.support_))


def core(name: str, step: int, train: Dataset, valid: Dataset, profile: str) -> Fitted:
    """A method of METHODS: every ``step``-th point of its grid, the best one by validation data."""
    preparation = Preparation.learn(train, "auto")
    prepared, unseen = preparation.apply(train), preparation.apply(valid)

    def fits() -> Iterable[Fitted]:
        for point in METHODS[name].grid[::step]:
            ranker = METHODS[name].make(**point).fit(prepared)
            yield Fitted(ranker.predict, len(ranker.support_))

    best = best_on(unseen, profile, fits())
    return Fitted(lambda data: best.predict(preparation.apply(data)), best.n_features)


def best_feature(train: Dataset, valid: Dataset, profile: str) -> Fitted:
    """The feature, with its sign, that ranks training and validation data best on its own."""
    preparation = Preparation.learn(train)
    both = preparation.filled(train.joined(valid))

    def alone(j: int, sign: float) -> Fitted:
        return Fitted(lambda data: sign * preparation.filled(data).X[:, j], 1)

    columns = itertools.product(range(train.n_features), (1.0, -1.0))
    best = max(
        columns, key=lambda column: quality(lambda data: column[1] * data.X[:, column[0]], both, profile)
    )
    return alone(*best)


def lightgbm(train: Dataset, valid: Dataset, profile: str, num_leaves: int | None = None) -> Fitted:
    """LightGBM's lambdarank with early stopping, tuned one parameter after the other."""
    try:
        import lightgbm as lgb
    except ImportError:
        raise Skipped("lightgbm is not installed") from None
    fixed = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [10],
        "num_threads": 1,
        "seed": 0,
        "verbosity": -1,
    }
    fixed["label_gain"] = (np.exp2(np.arange(1 + max(train.y.max(), valid.y.max()))) - 1).tolist()

    def lists(data: Dataset, reference: Any = None) -> Any:
        grouped = data.in_query_order(np.arange(data.n_queries))
        options = {"feature_pre_filter": False, "verbosity": -1}
        labels, sizes = grouped.y.astype(int), grouped.queries.sizes
        return lgb.Dataset(
            grouped.X, labels, group=sizes, reference=reference, params=options, free_raw_data=False
        )

    learn = lists(train)
    measured = lists(valid, learn)

    def fit(parameters: Mapping[str, Any]) -> tuple[float, Mapping[str, Any], Fitted]:
        stop = lgb.early_stopping(PATIENCE, verbose=False)
        booster = lgb.train(
            {**fixed, **parameters}, learn, MAX_ROUNDS, valid_sets=[measured], callbacks=[stop]
        )
        gains = booster.feature_importance("gain", iteration=booster.best_iteration)
        fitted = Fitted(lambda data: np.asarray(booster.predict(data.X)), int(np.count_nonzero(gains)), gains)
        return quality(fitted.predict, valid, profile), parameters, fitted

    grid: dict[str, Sequence[float]] = dict(TREE_GRID)
    first: dict[str, float] = dict(FIRST_TREES)
    if num_leaves is not None:
        del grid["num_leaves"]
        first["num_leaves"] = num_leaves
    best = fit(first)
    for name, others in grid.items():
        best = max([best, *(fit({**best[1], name: value}) for value in others)], key=lambda run: run[0])
    return best[2]


def stumps_within(train: Dataset, valid: Dataset, profile: str, max_features: int) -> Fitted:
    """LightGBM stumps, and stumps fitted again on their features with the largest gain."""
    importance = lightgbm(train, valid, profile, num_leaves=2).importance
    assert importance is not None
    columns = np.sort(np.argsort(-importance, kind="stable")[:max_features])
    names = [train.feature_names[j] for j in columns]

    def only(data: Dataset) -> Dataset:
        return data.replace_features(data.X[:, columns], names)

    fitted = lightgbm(only(train), only(valid), profile, num_leaves=2)
    return Fitted(lambda data: fitted.predict(only(data)), fitted.n_features)


def gblinear(train: Dataset, valid: Dataset, profile: str) -> Fitted:
    """XGBoost's linear booster on features with mean 0 and standard deviation 1, with early stopping."""
    try:
        import xgboost as xgb
    except ImportError:
        raise Skipped("xgboost is not installed") from None
    preparation = Preparation.learn(train, "z")

    def lists(data: Dataset) -> Any:
        grouped = preparation.apply(data.in_query_order(np.arange(data.n_queries)))
        matrix = xgb.DMatrix(grouped.X, label=grouped.y)
        matrix.set_group(grouped.queries.sizes)
        return matrix

    learn, measured = lists(train), lists(valid)
    options = {
        "booster": "gblinear", "objective": "rank:pairwise", "eval_metric": METRIC,
        "nthread": 1, "seed": 0, "verbosity": 0,
    }  # fmt: skip
    fits = []
    for point in LINEAR_BOOSTING:
        parameters = {**options, **point}
        watched = {"evals": [(measured, "valid")], "early_stopping_rounds": PATIENCE, "verbose_eval": False}
        rounds = xgb.train(parameters, learn, MAX_ROUNDS, **watched).best_iteration + 1
        booster = xgb.train(parameters, learn, rounds)  # gblinear predicts by its last round only
        used = sum(weight != 0.0 for weight in booster.get_score(importance_type="weight").values())
        predict = partial(_margin, booster, preparation, xgb.DMatrix)
        fits.append(Fitted(predict, used))
    return best_on(valid, profile, fits)


def _margin(booster: Any, preparation: Preparation, matrix: Callable[[Any], Any], data: Dataset) -> AnyArray:
    return np.asarray(booster.predict(matrix(preparation.apply(data).X)))


FLAGSHIP = "SparseRanker"
FITS: dict[str, Fit] = {
    FLAGSHIP: flagship,
    **{f"{FLAGSHIP}, {k} features": partial(flagship, max_features=k) for k in BUDGETS},
    f"{FLAGSHIP}, auto": partial(flagship, shape="auto"),
    **{f"{FLAGSHIP}, auto, {k} features": partial(flagship, shape="auto", max_features=k) for k in BUDGETS},
    "BestSubset": partial(core, "bestsubset", 1),
    "FenchelRank": partial(core, "fenchelrank", 1),
    "FSMRank": partial(core, "fsmrank", 1),
    "MinBatSRank": partial(core, "minbatsrank", 1),
    "RankSVM-ℓ1": partial(core, "ranksvm-l1", 1),
    "RankSVM-log": partial(core, "ranksvm-log", 2),
    "RankSVM-MCP": partial(core, "ranksvm-mcp", 2),
    "RankSVM-ℓ0.5": partial(core, "ranksvm-l0.5", 2),
    "RankSVM-SCAD": partial(core, "ranksvm-scad", 2),
    "Sparse CS-ListMLE": partial(core, "sparselistmle", 1),
    "RankSVM": partial(core, "ranksvm", 1),
    "LightGBM trees": lightgbm,
    "LightGBM stumps": partial(lightgbm, num_leaves=2),
    **{f"LightGBM stumps, {k} features": partial(stumps_within, max_features=k) for k in BUDGETS[:2]},
    "XGBoost gblinear": gblinear,
    "best single feature": best_feature,
}
