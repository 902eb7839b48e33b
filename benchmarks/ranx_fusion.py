"""The 25 fusion methods of ranx on the ranks of MQ2008-agg: a part of benchmarks.hybrid.

ranx fuses scores. Each system passes 1/(60 + rank), which keeps the order of its ranks; methods of scores run
on these and on ranx's min-max of them. Parameters come from ``optimize_fusion`` with ranx's default grids,
on training and validation queries, by the metric that is reported. Methods with a weight per system try all
combinations of 11 weights, which does not end with 25 systems; they are repeated with the five systems that
are best alone on training and validation queries. Our evaluator measures everything.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.harness import OUT, Skipped
from benchmarks.quality.data_sets import N_SPLITS, split
from ranksieve import Dataset, HybridRanker
from ranksieve._types import FloatArray, IntArray
from ranksieve.metrics.evaluate import evaluate_quietly

BY_SCORE = ("sum", "mnz", "anz", "max", "med", "min")
BY_RANK = ("rrf", "bordafuse", "condorcet", "isr", "log_isr")
LEARNED = ("bayesfuse", "mapfuse", "posfuse", "segfuse")
ONE_PARAMETER = ("rrf", "gmnz", "rbc", "logn_isr", "slidefuse", "probfuse")
WEIGHTED = ("wsum", "wmnz", "mixed", "w_bordafuse", "w_condorcet")
NEEDS_SCORES = ("gmnz", "wsum", "wmnz", "mixed")
METRICS = {"ndcg@10": "ndcg_burges@10", "map": "map"}  # ranx's names
N_TUNED = 3  # splits of the methods that are tuned for minutes
N_BEST = 5  # systems of methods with a weight per system
LIMIT, ENDLESS_LIMIT = 600.0, 60.0  # seconds of processor time to tune; with 25 weights
OURS = "ours"
JOURNAL = OUT / "ranx.jsonl"


class TooLong(Exception):
    """A method exceeded its time."""


@contextmanager
def limited(limit: float) -> Iterator[None]:
    """Raise TooLong after ``limit`` seconds of processor time."""

    def stop(*_: Any) -> None:
        raise TooLong

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


class Lists:
    """The lists of some queries as ranx wants them; a document is named by its row."""

    def __init__(self, data: Dataset) -> None:
        self.data = data
        self.query: IntArray = data.queries.restore(data.queries.query_of_grouped)

    def runs(self) -> list[Any]:
        from ranx import Run

        ranks = np.asarray(self.data.X, dtype=np.float64)
        return [Run(self._by_query(1.0 / (60.0 + column))) for column in ranks.T]

    def qrels(self) -> Any:
        from ranx import Qrels

        judged = self._by_query(np.asarray(self.data.y, dtype=np.float64))
        return Qrels({query: {d: int(y) for d, y in one.items()} for query, one in judged.items()})

    def _by_query(self, values: FloatArray) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {f"q{q}": {} for q in range(self.data.n_queries)}
        for row in np.flatnonzero(~np.isnan(values)):
            found[f"q{self.query[row]}"][f"d{row}"] = float(values[row])
        return found

    def measure(self, fused: Any, metric: str) -> FloatArray:
        """The metric of each query; documents that a method leaves out come last."""
        scores = np.full(len(self.query), np.nan)
        for documents in fused.run.values():
            for document, score in documents.items():
                scores[int(document[1:])] = score
        scores = np.where(np.isnan(scores), np.nanmin(scores) - 1.0, scores)
        values = evaluate_quietly(scores, self.data, [metric], "standard").per_query[metric]
        return np.asarray(values)


class Race:
    """Results by method, metric and split, kept in a journal so that an interrupted race goes on."""

    def __init__(self, data: Dataset) -> None:
        self.data, self.rows = data, dict[tuple[str, str, int], dict[str, Any]]()
        if JOURNAL.exists():
            for line in JOURNAL.read_text().splitlines():
                row = json.loads(line)
                self.rows[row["method"], row["metric"], row["split"]] = row

    def add(self, method: str, metric: str, number: int, **result: Any) -> None:
        row = {"method": method, "metric": metric, "split": number, **result}
        self.rows[method, metric, number] = row
        JOURNAL.parent.mkdir(exist_ok=True)
        with JOURNAL.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)

    def missing(self, methods: Sequence[str], metrics: Sequence[str], number: int) -> bool:
        return any((method, metric, number) not in self.rows for method in methods for metric in metrics)

    def ours(self) -> None:
        """The weighted RRF of HybridRanker on the same splits."""
        for number in range(N_SPLITS):
            for metric in METRICS:
                if self.missing([OURS], [metric], number):
                    train, valid, test = split(self.data, number)
                    start = time.process_time()
                    ranker = HybridRanker(metric=metric, values="ranks").fit(train, valid=valid)
                    used = time.process_time() - start
                    value = evaluate_quietly(ranker.predict(test), test, [metric], "standard").mean[metric]
                    self.add(OURS, metric, number, value=value, seconds=used)

    def untrained(self) -> None:
        """Methods without parameters: all queries are fused once, and each split takes its test queries."""
        from ranx import fuse

        names = [*BY_RANK, *(f"{name} ({norm})" for name in BY_SCORE for norm in ("scores", "min-max"))]
        if not self.missing(names, list(METRICS), N_SPLITS - 1):
            return
        lists = Lists(self.data)
        runs = lists.runs()
        for name in names:
            method, _, norm = name.rstrip(")").partition(" (")
            fused = fuse(runs, "min-max" if norm == "min-max" else None, method)
            for metric in METRICS:
                values = lists.measure(fused, metric)
                for number in range(N_SPLITS):
                    test = np.isin(self.data.query_ids, split(self.data, number)[2].query_ids)
                    self.add(name, metric, number, value=float(values[test].mean()), seconds=0.0)

    def tuned(self, number: int, methods: Sequence[str], metrics: Sequence[str], n_best: int = 0) -> None:
        """Methods that learn from training and validation queries, or are tuned on them."""
        ending = f", {n_best} systems" if n_best else ", tuned"
        if not self.missing([method + ending for method in methods], metrics, number):
            return
        train, valid, test = split(self.data, number)
        judged, asked = Lists(train.joined(valid)), Lists(test)
        qrels, runs, test_runs = judged.qrels(), judged.runs(), asked.runs()
        for method in methods:
            for metric in metrics:
                name = method + ending
                if not self.missing([name], [metric], number):
                    continue
                chosen = self._best_alone(judged, runs, metric, n_best) if n_best else range(len(runs))
                some, others = ([all_runs[j] for j in chosen] for all_runs in (runs, test_runs))
                self._tune(number, method, name, metric, (qrels, some), (asked, others))

    def _tune(
        self,
        number: int,
        method: str,
        name: str,
        metric: str,
        judged: tuple[Any, Any],
        asked: tuple[Any, Any],
    ) -> None:
        from ranx import fuse, optimize_fusion

        options = {} if method in LEARNED else {"show_progress": False}
        norm = "min-max" if method in NEEDS_SCORES else None
        limit = ENDLESS_LIMIT if method in WEIGHTED and len(judged[1]) > N_BEST else LIMIT
        start = time.process_time()
        try:
            with limited(limit):
                best = optimize_fusion(*judged, norm, method, METRICS[metric], **options)
        except TooLong:
            self.add(name, metric, number, value=None, seconds=time.process_time() - start)
            return
        used = time.process_time() - start
        fused = fuse(asked[1], norm, method, best)
        for one in METRICS if method in LEARNED else (metric,):  # what is learned ignores the metric
            self.add(name, one, number, value=float(asked[0].measure(fused, one).mean()), seconds=used)

    def _best_alone(self, lists: Lists, runs: Sequence[Any], metric: str, n: int) -> list[int]:
        means = [float(lists.measure(run, metric).mean()) for run in runs]
        return sorted(np.argsort(means)[::-1][:n].tolist())

    def run(self) -> None:
        self.ours()
        self.untrained()
        for number in range(N_SPLITS):
            self.tuned(number, LEARNED, ["ndcg@10"])
        for number in range(N_TUNED):
            self.tuned(number, ONE_PARAMETER, list(METRICS))
        for number in range(N_TUNED):
            self.tuned(number, self._ended(WEIGHTED), ["ndcg@10"], n_best=N_BEST)
        self.tuned(0, WEIGHTED, ["ndcg@10"])

    def _ended(self, methods: Sequence[str]) -> list[str]:
        """Methods that did not exceed the limit on the first split."""
        ending = f", {N_BEST} systems"
        first = {name: self.rows.get((name + ending, "ndcg@10", 0), {"value": 0.0}) for name in methods}
        return [name for name, row in first.items() if row["value"] is not None]

    def table(self) -> list[dict[str, Any]]:
        """For each method and metric: mean over its splits, and the difference to ours on the same splits."""
        content = []
        for name, metric in dict.fromkeys(key[:2] for key in self.rows):
            splits = [k for k in range(N_SPLITS) if (name, metric, k) in self.rows]
            rows = [self.rows[name, metric, k] for k in splits]
            row = {"method": name, "metric": metric, "n_splits": len(rows)}
            row["seconds"] = float(np.mean([one["seconds"] for one in rows]))
            if any(one["value"] is None for one in rows):
                content.append({**row, "mean": None})
                continue
            values = np.array([one["value"] for one in rows])
            gains = values - [self.rows[OURS, metric, k]["value"] for k in splits]
            errors = [float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else None for x in (values, gains)]
            row |= {"mean": float(values.mean()), "standard_error": errors[0]}
            content.append({**row, "over_ours": float(gains.mean()), "over_ours_standard_error": errors[1]})
        return content


def race(data: Dataset) -> dict[str, Any]:
    """Results of all methods; raises Skipped without ranx."""
    if importlib.util.find_spec("ranx") is None:
        raise Skipped("ranx is not installed; `make bench` installs it")
    contest = Race(data)
    contest.run()
    return {"version": importlib.metadata.version("ranx"), "limit": LIMIT, "rows": contest.table()}
