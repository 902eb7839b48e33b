"""Export of models to search engines. A new target is one module and one line in EXPORTS."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksieve._util.files import atomic_write
from ranksieve.errors import lookup
from ranksieve.export.base import FILE_NAME, Maker, NameRule, Product, Target, paths_of
from ranksieve.export.boosters import lightgbm, xgboost
from ranksieve.export.elasticsearch import MODEL_NAME, RESCORE_WINDOW, learning_to_rank_plugin
from ranksieve.export.elasticsearch_ltr import LTR_WINDOW, MODEL_ID, elasticsearch_ltr
from ranksieve.export.esql import esql
from ranksieve.export.hybrid import (
    HYBRID_WINDOW,
    elasticsearch_linear,
    mongodb,
    opensearch_hybrid,
    sub_queries,
)
from ranksieve.export.hybrid_sql import hybrid_sql
from ranksieve.export.lucene import feature_list
from ranksieve.export.milvus import milvus
from ranksieve.export.onnx_graph import onnx
from ranksieve.export.painless import painless_script
from ranksieve.export.plain_files import json_model, python, ranklib
from ranksieve.export.qdrant import qdrant
from ranksieve.export.redis import redis
from ranksieve.export.solr import solr
from ranksieve.export.sql import sql
from ranksieve.export.vespa import PROFILE_NAME, VESPA_RERANK_COUNT, vespa

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset
    from ranksieve.model.linear import FittedRanker, LinearModel

NAME_OPTIONS = frozenset({"name", "names"})
WINDOW_OPTIONS = NAME_OPTIONS | {"window"}


def _plugin(make: Maker, rule: NameRule) -> Target:
    options = NAME_OPTIONS | {"featureset", "sample", "store"}
    return Target(make, options, folder=True, curves=True, check_featureset=feature_list, model_name=rule)


def _hybrid(make: Maker, rule: NameRule) -> Target:
    return Target(
        make, WINDOW_OPTIONS | {"featureset"}, folder=True, check_featureset=sub_queries, model_name=rule,
        window=HYBRID_WINDOW,
    )  # fmt: skip


def _script(engine: str) -> Target:
    make = partial(painless_script, engine=engine)
    return Target(
        make,
        WINDOW_OPTIONS | {"sample"},
        folder=True,
        curves=True,
        model_name=MODEL_NAME,
        window=RESCORE_WINDOW,
    )


def _vespa(phase: str) -> Target:
    make = partial(vespa, phase=phase)
    return Target(
        make, WINDOW_OPTIONS, folder=True, curves=True, model_name=PROFILE_NAME, window=VESPA_RERANK_COUNT
    )


EXPORTS: dict[str, Target] = {
    "elasticsearch": _plugin(partial(learning_to_rank_plugin, engine="Elasticsearch"), MODEL_NAME),
    "opensearch": _plugin(partial(learning_to_rank_plugin, engine="OpenSearch"), MODEL_NAME),
    "solr": _plugin(solr, FILE_NAME),
    "elasticsearch_script": _script("Elasticsearch"),
    "opensearch_script": _script("OpenSearch"),
    "elasticsearch_ltr": Target(
        elasticsearch_ltr,
        WINDOW_OPTIONS | {"featureset", "sample"},
        folder=True,
        lines=False,
        curves=True,
        check_featureset=sub_queries,
        model_name=MODEL_ID,
        window=LTR_WINDOW,
    ),
    "elasticsearch_linear": _hybrid(elasticsearch_linear, MODEL_NAME),
    "esql": _hybrid(esql, MODEL_NAME),
    "opensearch_hybrid": _hybrid(opensearch_hybrid, MODEL_NAME),
    "mongodb": _hybrid(mongodb, FILE_NAME),
    "milvus": _hybrid(milvus, FILE_NAME),
    "redis": _hybrid(redis, FILE_NAME),
    "qdrant": Target(qdrant, WINDOW_OPTIONS, folder=True, window=HYBRID_WINDOW),
    "vespa": Target(vespa, NAME_OPTIONS, folder=True, curves=True, model_name=PROFILE_NAME),
    "vespa_second_phase": _vespa("second"),
    "vespa_global_phase": _vespa("global"),
    "ranklib": Target(ranklib, NAME_OPTIONS | {"sample"}, curves=True),
    "lightgbm": Target(lightgbm, NAME_OPTIONS, lines=False, curves=True),
    "xgboost": Target(xgboost, NAME_OPTIONS | {"sample"}, lines=False, curves=True),
    "sql": Target(sql, NAME_OPTIONS, folder=True, curves=True),
    "onnx": Target(onnx, NAME_OPTIONS | {"dtype", "sample"}, curves=True),
    "json": Target(json_model, frozenset({"name"}), curves=True),
    "python": Target(python, NAME_OPTIONS, curves=True),
    "sql_hybrid": Target(hybrid_sql, NAME_OPTIONS),
}


@dataclass(frozen=True)
class Exported:
    """Files that were written, notes on differences from the model, and the commands that load the files."""

    files: tuple[Path, ...]
    notes: tuple[str, ...]
    load: tuple[str, ...]


def export_model(
    model: LinearModel | FittedRanker,
    target: str,
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    names: Mapping[str, str] | None = None,
    featureset: Any = None,
    sample: Dataset | None = None,
    store: str | None = None,
    dtype: str | None = None,
    window: int | None = None,
) -> Exported:
    """Write a model for a search engine: ``rs.export_model(model, "solr", "out")``.

    A model that the format cannot represent is refused before anything is written. Each file is written
    atomically.

    Parameters
    ----------
    model : LinearModel or fitted ranker
    target : str
        A name of ``EXPORTS``: elasticsearch, opensearch, solr, vespa, ranklib, onnx, json, python, …
    path : path
        The folder to write to, created if necessary, or the file if the target is a single file.
    name : str, optional
        Name of the model in the engine; default "ranker".
    names : mapping, optional
        Maps feature names of the model to those of the engine.
    featureset : object, optional
        The engine's definitions of all features, as parsed JSON; those that the model does not use are left
        out. For hybrid search and elasticsearch_ltr, a mapping of feature names to queries.
    sample : Dataset, optional
        Documents from which to estimate the lowest score, for engines that reject negative scores, and the
        pairs of documents that 32-bit numbers rank otherwise.
    store : str, optional
        The engine's feature store.
    dtype : "float32" or "float64", optional
        Number type of an ONNX graph.
    window : int, optional
        Number of top documents that are rescored, or returned by each sub-query.
    """
    arguments = {"name": name, "names": names, "featureset": featureset, "sample": sample, "store": store}
    arguments |= {"dtype": dtype, "window": window}
    options = {option: value for option, value in arguments.items() if value is not None}
    return write_export(make_export(model, target, options), target, path)


def make_export(model: LinearModel | FittedRanker, target: str, options: Mapping[str, Any]) -> Product:
    """Make the files of an export in memory."""
    from ranksieve.model.linear import as_linear_model, refuse_curves, refuse_lines

    entry = lookup(EXPORTS, target, "target")
    chosen, linear = entry.options(target, options), as_linear_model(model, "so it has no weights to export")
    if not entry.curves:
        refuse_curves(linear, f"export to {target}")
    if not entry.lines:
        refuse_lines(linear, f"export to {target}")
    return entry.make(linear, chosen)


def write_export(product: Product, target: str, path: str | os.PathLike[str]) -> Exported:
    """Write the files of an export."""
    output = Path(path)
    contents = paths_of(product, EXPORTS[target], output)
    for file in contents:
        if file != output and file.is_symlink():
            reason = "is a symbolic link, and an export writes only into its folder; remove the link"
            raise OSError(errno.ELOOP, reason, str(file))
    if EXPORTS[target].folder:
        _make_folder(output)
    for file, content in contents.items():
        with atomic_write(file, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)  # type: ignore[arg-type]
    return Exported(tuple(contents), product.notes, product.load(str(output)))


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        reason = "is a file, but this export writes several files; give a folder"
        raise OSError(errno.ENOTDIR, reason, str(folder))
    folder.mkdir(exist_ok=True)


__all__ = ["EXPORTS", "Exported", "export_model", "make_export", "paths_of", "write_export"]
