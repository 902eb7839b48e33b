"""TARGETS: table of the fuzzed readers. To add one, add a module (or an object in one) and a line here."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import NamedTuple

from tests.fuzz.targets.base import Target


class Entry(NamedTuple):
    """Module and name of a target, which is imported on demand, and its relative number of inputs.

    ``checks_bounds``: compiled functions check array bounds.
    """

    module: str
    name: str
    share: float = 1.0
    checks_bounds: bool = False


TARGETS: dict[str, Entry] = {
    "letor": Entry("letor_text", "LETOR"),
    "letor-bounds": Entry("letor_text", "LETOR", checks_bounds=True),
    "costs": Entry("tables", "COSTS"),
    "signs": Entry("tables", "SIGNS"),
    "query-weights": Entry("tables", "QUERY_WEIGHTS"),
    "feature-names": Entry("tables", "FEATURE_NAMES"),
    "query-texts": Entry("tables", "QUERY_TEXTS"),
    "scores": Entry("tables", "SCORES"),
    "judgements": Entry("judged", "JUDGEMENTS"),
    "qrels": Entry("judged", "TREC_QRELS"),
    "run": Entry("judged", "TREC_RUN"),
    "feature-log": Entry("judged", "LOG"),
    "model": Entry("models", "OURS"),
    "ranklib": Entry("models", "RANKLIB"),
    "fastrank": Entry("models", "FASTRANK_MODELS"),
    "lightgbm": Entry("models", "LIGHTGBM", 0.5),
    "xgboost-json": Entry("models", "XGBOOST_JSON"),
    "csv": Entry("datasets", "CSV", 0.3),
    "any-data": Entry("datasets", "ANY_DATA", 0.3),
    "parquet": Entry("parquet", "PARQUET_FILES", 0.2),
    "parquet-types": Entry("parquet", "PARQUET_TYPES", 0.2),
    "folder": Entry("datasets", "FOLDER", 0.3),
    "commands": Entry("commands", "COMMANDS", 0.02),
}


@cache
def target(name: str) -> Target:
    entry = TARGETS[name]
    result: Target = getattr(import_module(f"tests.fuzz.targets.{entry.module}"), entry.name)
    return result
