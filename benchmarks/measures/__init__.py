"""The measures. To add one, write a module with a MEASURE and add it to MEASURES."""

from __future__ import annotations

from benchmarks.measures import (
    fenchelrank,
    growth,
    logs,
    memory,
    path,
    pipeline,
    predictions,
    reading,
    roofline,
    startup,
    threads,
    to_objective,
    writing,
)
from benchmarks.measures.base import Measure

MEASURES: dict[str, Measure] = {
    module.MEASURE.name: module.MEASURE
    for module in (
        to_objective, path, fenchelrank, pipeline, memory, reading, writing, logs, startup, predictions,
        threads, roofline, growth,
    )
}  # fmt: skip
