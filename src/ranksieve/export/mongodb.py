"""MongoDB's stage ``$scoreFusion``: a weighted mean of the scores of several searches."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ranksieve.errors import DataError
from ranksieve.export.base import FILE_NAME, Options, Product, as_json, check_model_name, told_apart
from ranksieve.export.hybrid import SHOWN, WORDS, hybrid

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

PIPELINE = "pipeline.json"


def mongodb(model: LinearModel, options: Options) -> Product:
    """An aggregation pipeline; query_min_max is its normalisation ``minMaxScaler``."""
    check_model_name(FILE_NAME, options.name)
    search = hybrid(model, options, "MongoDB's $scoreFusion", _search)
    names = told_apart([re.sub(r"[.$]", "_", clause.name) for clause in search.clauses])
    stages = [_stages(clause.query, search.window) for clause in search.clauses]
    fusion = {
        "input": {
            "pipelines": dict(zip(names, stages, strict=True)),
            "normalization": "minMaxScaler" if search.by_range else "none",
        },
        "combination": {
            "method": "avg",
            "weights": {name: clause.weight for name, clause in zip(names, search.clauses, strict=True)},
        },
    }
    pipeline = [{"$scoreFusion": fusion}, {"$limit": min(SHOWN, search.window)}]
    note = f"Scores are the model's divided by {len(names)}: $scoreFusion takes the mean over its pipelines."
    return Product({PIPELINE: as_json(pipeline)}, (*search.notes, note), _load)


def _search(field: str) -> Any:
    return {"$search": {"text": {"query": WORDS, "path": field}}}


def _stages(query: Any, window: int) -> list[Any]:
    """The stages of a pipeline as they are, a single one with its limit."""
    stages = query if isinstance(query, list) else [query, {"$limit": window}]
    for stage in stages:
        if not (isinstance(stage, dict) and len(stage) == 1 and next(iter(stage)).startswith("$")):
            raise DataError(
                None,
                None,
                f"{str(stage)[:60]!r} is not a stage of a MongoDB pipeline; expected one such as "
                '{"$search": …} or a list of them',
            )
    return stages


def _load(folder: str) -> tuple[str, ...]:
    file = json.dumps(str(PurePath(folder, PIPELINE)), ensure_ascii=False)
    read = f"JSON.parse(require('fs').readFileSync({file}, 'utf8'))"
    return (f"mongosh YOUR_DATABASE --eval {shlex.quote(f'db.YOUR_COLLECTION.aggregate({read})')}",)
