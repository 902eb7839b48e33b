"""read_ltr_log against the json module: search responses of 50 hits with 30 features each, one per line.

Beside ours, json's decoding alone; both in turn and in time of the processor, which one thread has to itself
on an idle machine, so that a busy one tells the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import OUT
from benchmarks.measures.base import Measure, Row, Run, row
from ranksieve._types import FloatArray
from ranksieve.io.ltr_log import read_ltr_log
from ranksieve.io.tables import Judgements

SIZES = {"14 MB": 14_000_000, "141 MB": 141_000_000}
HITS, FEATURES = 50, 30
READING, DECODING = "reading a feature log", "json alone"


def logs(run: Run) -> Iterator[Row]:
    path, judged = log_file(SIZES[run.data])
    works = {
        READING: lambda: read_ltr_log(path, judged),
        DECODING: lambda: [json.loads(line) and None for line in path.read_bytes().split(b"\n")],
    }
    times: dict[str, list[float]] = {what: [] for what in works}
    for _ in range(run.repeats):
        for what, work in works.items():
            times[what].append(processor_seconds(work))
    for what, some in times.items():
        yield row(what, "s", some, megabytes=path.stat().st_size / 1e6)


def processor_seconds(work: Callable[[], object]) -> float:
    """Time of the processor that a piece of work takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def log_file(size: int) -> tuple[Path, Judgements]:
    """A log of at least this size, and grades for its documents, made once."""
    path, rng = OUT / "data" / f"log_{size}.jsonl", np.random.default_rng(0)
    names = [f"bm25_field_{j}" for j in range(FEATURES)]
    grades: dict[str, dict[str, float]] = {}
    lines, length = [], 0
    while length < size:
        query = len(grades)
        values = (20 * rng.random((HITS, FEATURES))).round(6)
        lines.append(json.dumps({"qid": query, "took": 3, "hits": {"hits": hits(query, names, values)}}))
        grades[str(query)] = {f"doc{query}-{d}": float(d % 5) for d in range(HITS)}
        length += len(lines[-1]) + 1
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))
    return path, Judgements(grades)


def hits(query: int, names: list[str], values: FloatArray) -> list[dict[str, Any]]:
    """The documents of a response; a tenth of the values are left out."""
    logged = ([_pair(*one) for one in zip(names, row, strict=True)] for row in values.tolist())
    return [
        {
            "_index": "shop",
            "_id": f"doc{query}-{d}",
            "_score": 1.5,
            "_source": {"title": "a red shoe", "price": 12.5},
            "fields": {"_ltrlog": [{"log_entry1": pairs}]},
            "matched_queries": ["logged_featureset"],
        }
        for d, pairs in enumerate(logged)
    ]


def _pair(name: str, value: float) -> dict[str, Any]:
    return {"name": name, "value": value} if value > 2 else {"name": name}


MEASURE = Measure("logs", "Reading feature logs", logs, tuple(SIZES), limit=(900.0, 3600.0))
