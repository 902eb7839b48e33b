"""The whole tuned pipeline: every grid point fitted, the best on validation by NDCG@10 measured on test.

Seconds are those of each of the five folds; ours also include cross-validation over the training queries.
Values per query are kept, so that the page can test each competitor against the best, query by query.
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
        tune(run.competitor, folds[0])  # compiles
    done = [tune(run.competitor, fold) for fold in folds]
    yield row("tuned pipeline", "s", [one["seconds"] for one in done], tried=done[0]["tried"])
    yield row("features used", "features", [one["features"] for one in done])
    for metric in METRICS:
        values = np.concatenate([one[metric] for one in done])
        more = {"mean": float(np.nanmean(values)), "per_query": np.round(values, 6).tolist()}
        yield row(f"test {metric}", metric, [float(np.nanmean(one[metric])) for one in done], **more)


def tune(competitor: Competitor, fold: Fold) -> dict[str, Any]:
    """Choose on validation, then measure on test (outside the time)."""
    from ranksieve.metrics import evaluate

    start = time.perf_counter()
    best, chosen, tried = -np.inf, None, 0
    for point in competitor.grid:
        fitted = competitor.fit(fold.train, fold.valid, **point)
        tried += fitted.n_models
        value = evaluate(fitted.scores(fold.valid), fold.valid, METRICS[0]).mean[METRICS[0]]
        if value > best:
            best, chosen = value, fitted
    took = time.perf_counter() - start
    assert chosen is not None
    found = evaluate(chosen.scores(fold.test), fold.test, METRICS)
    told = {"seconds": took, "features": chosen.n_features, "tried": tried}
    return {**told, **{m: found.per_query[m] for m in METRICS}}


MEASURE = Measure(
    "pipeline",
    "The tuned pipeline",
    pipeline,
    ("ohsumed", "mq2008"),
    quick=("mq2008",),  # where solvers on pairs need seconds
    limit=(90.0, 7200.0),
)
