"""CPU seconds of read_ltr_log, and of decoding alone with the json module.

The file has one search response per line, with 50 hits of 30 features each. Both are measured in turn with
one thread, so load on the machine does not matter.
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
    path, judgements = log_file(SIZES[run.data])
    calls = {
        READING: lambda: read_ltr_log(path, judgements),
        DECODING: lambda: [json.loads(line) and None for line in path.read_bytes().split(b"\n")],
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(run.repeats):
        for name, call in calls.items():
            times[name].append(cpu_seconds(call))
    for name, seconds in times.items():
        yield row(name, "s", seconds, megabytes=path.stat().st_size / 1e6)


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def log_file(size: int) -> tuple[Path, Judgements]:
    """Write a log of at least this size; return it with grades for its documents."""
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
    """The hits of a response; a tenth of the values are missing."""
    logged = (
        [_entry(name, value) for name, value in zip(names, row, strict=True)] for row in values.tolist()
    )
    return [
        {
            "_index": "shop",
            "_id": f"doc{query}-{d}",
            "_score": 1.5,
            "_source": {"title": "a red shoe", "price": 12.5},
            "fields": {"_ltrlog": [{"log_entry1": entries}]},
            "matched_queries": ["logged_featureset"],
        }
        for d, entries in enumerate(logged)
    ]


def _entry(name: str, value: float) -> dict[str, Any]:
    return {"name": name, "value": value} if value > 2 else {"name": name}


MEASURE = Measure("logs", "Reading feature logs", logs, tuple(SIZES), limit=(900.0, 3600.0))
