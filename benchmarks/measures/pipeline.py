"""The tuned pipeline: fit every grid point, select by NDCG@10 on validation data, evaluate on test data.

Seconds are for each of the five folds; those of ranksieve include cross-validation over the training queries.
p-values: paired t-test over the test queries against the best competitor.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.competitors.base import Competitor
from benchmarks.harness import Skipped
from benchmarks.measures.base import Measure, Row, Run, row
from ranksieve.io.folds import Fold

METRICS = ("ndcg@10", "map")


def pipeline(run: Run) -> Iterator[Row]:
    if run.data_set.folds is None:
        raise Skipped("no folds")
    folds = run.data_set.folds()
    if run.competitor.module in ("ranksieve", "skglm"):
        tune(run.competitor, folds[0])  # compile
    results = [tune(run.competitor, fold) for fold in folds]
    yield row("tuned pipeline", "s", [result["seconds"] for result in results], tried=results[0]["tried"])
    yield row("features used", "features", [result["features"] for result in results])
    for metric in METRICS:
        values = np.concatenate([result[metric] for result in results])
        more = {"mean": float(np.nanmean(values)), "per_query": np.round(values, 6).tolist()}
        yield row(f"test {metric}", metric, [float(np.nanmean(r[metric])) for r in results], **more)


def tune(competitor: Competitor, fold: Fold) -> dict[str, Any]:
    """Select on validation data, then evaluate on test data; the seconds do not include the evaluation."""
    from ranksieve.metrics import evaluate

    start = time.perf_counter()
    best_value, best_ranker, n_models = -np.inf, None, 0
    for point in competitor.grid:
        ranker = competitor.fit(fold.train, fold.valid, **point)
        n_models += ranker.n_models
        value = evaluate(ranker.scores(fold.valid), fold.valid, METRICS[0]).mean[METRICS[0]]
        if value > best_value:
            best_value, best_ranker = value, ranker
    seconds = time.perf_counter() - start
    assert best_ranker is not None
    evaluation = evaluate(best_ranker.scores(fold.test), fold.test, METRICS)
    summary = {"seconds": seconds, "features": best_ranker.n_features, "tried": n_models}
    return {**summary, **{m: evaluation.per_query[m] for m in METRICS}}


MEASURE = Measure(
    "pipeline",
    "The tuned pipeline",
    pipeline,
    ("ohsumed", "mq2008"),
    quick=("mq2008",),  # small enough for solvers on pairs
    limit=(90.0, 7200.0),
)
