"""Rank fusion on MQ2008-agg: tuned weights of reciprocal ranks against the usual fusions without weights.

python -m benchmarks.hybrid [seconds] [quality] [ranx]

The collection gives the ranks of 25 systems. On each of 20 fixed splits the weights are fitted on training
and validation queries, and everything is measured on test queries. A query is a test query of about four
splits; tests of significance are paired over queries, with the mean of each query over its splits. Curves of
the ranks, which no engine computes, show what the form 1/(k + rank) loses. With names of parts, the
others keep their results.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import RESULTS, Skipped, save_result
from benchmarks.quality.data_sets import N_SPLITS, read_source, split
from benchmarks.ranx_fusion import race
from ranksieve import Dataset, HybridRanker, SparseRanker
from ranksieve._types import FloatArray
from ranksieve.metrics.evaluate import evaluate_quietly
from ranksieve.metrics.significance import paired_t, randomisation

SOURCE, METRICS, SIZES = "MQ2008-agg", ("ndcg@10", "map"), (None, 10, 5)
BASELINE = "RRF, equal weights"
CURVES = "curves of the ranks (no engine has them)"
REPEATS = 5


def ranks(data: Dataset) -> FloatArray:
    """Ranks with NaN where a system did not return the document."""
    return np.asarray(data.X, dtype=np.float64)


def rrf(data: Dataset) -> FloatArray:
    return np.asarray(np.nansum(1.0 / (60.0 + ranks(data)), axis=1))


def positions(data: Dataset) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(position in the list of each query, length of the list, number of documents of the query)."""
    X = ranks(data)
    place, length, size = np.full(X.shape, np.nan), np.zeros(X.shape), np.zeros(len(X))
    for q in range(data.n_queries):
        rows = data.queries.rows_of(q)
        size[rows] = len(rows)
        for j in range(X.shape[1]):
            returned = rows[~np.isnan(X[rows, j])]
            place[returned[np.argsort(X[returned, j], kind="stable")], j] = np.arange(1, len(returned) + 1)
            length[rows, j] = len(returned)
    return place, length, size


def borda(data: Dataset) -> FloatArray:
    """N − position + 1 points of N documents; those not returned share the remaining points equally."""
    place, length, size = positions(data)
    points = size[:, None] - place + 1
    return np.asarray(np.where(np.isnan(place), (size[:, None] - length + 1) / 2, points).sum(axis=1))


def comb_mnz(data: Dataset) -> FloatArray:
    """Sum of 1 − (position − 1)/length, times the number of systems that returned the document."""
    place, length, _ = positions(data)
    scores = 1.0 - (place - 1.0) / np.where(length > 0, length, 1.0)
    return np.asarray(np.nansum(scores, axis=1) * np.sum(~np.isnan(place), axis=1))


def single(data: Dataset, system: int) -> FloatArray:
    return np.asarray(np.nan_to_num(1.0 / ranks(data)[:, system]))


def best_single(train: Dataset, metric: str) -> int:
    """The system with the best metric on the training queries."""
    means = [
        evaluate_quietly(single(train, j), train, [metric], "standard").mean[metric]
        for j in range(train.n_features)
    ]
    return int(np.argmax(means))


FUSIONS: dict[str, Callable[[Dataset], FloatArray]] = {BASELINE: rrf, "Borda": borda, "CombMNZ": comb_mnz}


def run_split(data: Dataset, number: int, metric: str) -> dict[str, Any]:
    """Values of the test queries by method, and the numbers of systems in use."""
    train, valid, test = split(data, number)
    scores = {name: fusion(test) for name, fusion in FUSIONS.items()}
    scores["best single system"] = single(test, best_single(train.joined(valid), metric))
    used, chosen = {}, {}
    for size in SIZES:
        name = f"weighted RRF, {'all' if size is None else f'at most {size}'} systems"
        ranker = HybridRanker(size, metric, values="ranks").fit(train, valid=valid)
        scores[name] = ranker.predict(test)
        used[name], chosen[name] = len(ranker.support_), ranker.hybrid_.chosen.name
    curves = SparseRanker(metric=metric, shape="curves").fit(train, valid=valid)
    scores[CURVES], used[CURVES] = curves.predict(test), len(curves.support_)
    values = {
        name: evaluate_quietly(one, test, [metric], "standard").per_query[metric].tolist()
        for name, one in scores.items()
    }
    return {"values": values, "used": used, "chosen": chosen, "queries": test.query_ids.tolist()}


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean over splits, its standard error, and the difference to RRF with equal weights."""
    rows = []
    for name in runs[0]["values"]:
        means = np.array([np.mean(run["values"][name]) for run in runs])
        base = np.array([np.mean(run["values"][BASELINE]) for run in runs])
        by_query: dict[Any, list[tuple[float, float]]] = {}
        for run in runs:
            for query, a, b in zip(run["queries"], run["values"][name], run["values"][BASELINE], strict=True):
                by_query.setdefault(query, []).append((a, b))
        pairs = np.array([np.mean(one, axis=0) for one in by_query.values()])
        n = len(runs)
        rows.append(
            {
                "method": name,
                "mean": float(means.mean()), "standard_error": float(means.std(ddof=1) / np.sqrt(n)),
                "gain": float((means - base).mean()),
                "gain_standard_error": float((means - base).std(ddof=1) / np.sqrt(n)),
                "splits_won": int(np.sum(means > base)),
                "p_t": paired_t(pairs[:, 0], pairs[:, 1]),
                "p_randomisation": randomisation(pairs[:, 0], pairs[:, 1]),
                "systems": float(np.mean([run["used"].get(name, np.nan) for run in runs]))
                if name in runs[0]["used"] else None,
            }
        )  # fmt: skip
    return rows


def seconds(data: Dataset, **parameters: Any) -> dict[str, float]:
    """The shortest of five fits, after one that compiles: elapsed and processor time."""
    HybridRanker(**parameters).fit(data)
    elapsed, used = [], []
    for _ in range(REPEATS):
        start, start_used = time.perf_counter(), time.process_time()
        HybridRanker(**parameters).fit(data)
        elapsed.append(time.perf_counter() - start)
        used.append(time.process_time() - start_used)
    return {"elapsed": min(elapsed), "processor": min(used)}


def five_clauses() -> Dataset:
    """Scores of five clauses for 50 queries of 100 documents."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 5000) * (rng.random(5000) < 0.3)
    X = y[:, None] + rng.normal(size=(5000, 5)) * rng.uniform(0.8, 3.0, 5)
    X[rng.random(X.shape) < 0.4] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 0.0
    return Dataset(X, y, np.repeat(np.arange(50), 100), [f"clause{j}" for j in range(5)])


def measure_seconds(data: Dataset) -> dict[str, Any]:
    return {
        "seconds of 25 clauses, 784 queries": seconds(data, values="ranks"),
        "seconds of 5 clauses, 50 queries": seconds(five_clauses()),
    }


def measure_quality(data: Dataset) -> dict[str, Any]:
    return {metric: summary([run_split(data, k, metric) for k in range(N_SPLITS)]) for metric in METRICS}


def measure_ranx(data: Dataset) -> dict[str, Any]:
    try:
        return {"ranx": race(data)}
    except Skipped as reason:
        print(f"skipped: {reason}")
        return {}


PARTS = {"seconds": measure_seconds, "quality": measure_quality, "ranx": measure_ranx}


def main() -> None:
    parts = sys.argv[1:] or list(PARTS)
    if unknown := sorted(set(parts) - set(PARTS)):
        sys.exit(f"unknown: {', '.join(unknown)}; known: {', '.join(PARTS)}")
    file, data = RESULTS / "hybrid.json", read_source(SOURCE)
    content: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    content |= {"source": SOURCE, "n_splits": N_SPLITS}
    for part in parts:
        content |= PARTS[part](data)
    content.pop("about", None)
    save_result("hybrid", content)


if __name__ == "__main__":
    main()
