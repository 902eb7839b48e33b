"""Models in the formats of search engines. One file and one line here adds a target."""

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
from ranksieve.export.elasticsearch import MODEL_NAME, RESCORED, learning_to_rank_plugin
from ranksieve.export.hybrid import WINDOW, elasticsearch_linear, mongodb, opensearch_hybrid, sub_queries
from ranksieve.export.lucene import feature_list
from ranksieve.export.onnx_graph import onnx
from ranksieve.export.painless import painless_script
from ranksieve.export.plain_files import json_model, python, ranklib
from ranksieve.export.qdrant import qdrant
from ranksieve.export.solr import solr
from ranksieve.export.vespa import PROFILE_NAME, RERANKED, vespa

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset
    from ranksieve.model.linear import FittedRanker, LinearModel

NAMED = frozenset({"name", "names"})
WINDOWED = NAMED | {"window"}


def _plugin(make: Maker, rule: NameRule) -> Target:
    """A learning-to-rank plugin."""
    return Target(make, NAMED | {"featureset", "sample", "store"}, True, feature_list, rule)


def _hybrid(make: Maker, rule: NameRule) -> Target:
    """A weighted sum of sub-queries."""
    return Target(make, WINDOWED | {"featureset"}, True, sub_queries, rule, WINDOW)


def _script(engine: str) -> Target:
    make = partial(painless_script, engine=engine)
    return Target(make, WINDOWED, folder=True, model_name=MODEL_NAME, window=RESCORED)


def _vespa(phase: str) -> Target:
    """A later phase, which takes a part of the documents."""
    make = partial(vespa, phase=phase)
    return Target(make, WINDOWED, folder=True, model_name=PROFILE_NAME, window=RERANKED)


EXPORTS: dict[str, Target] = {
    "elasticsearch": _plugin(partial(learning_to_rank_plugin, engine="Elasticsearch"), MODEL_NAME),
    "opensearch": _plugin(partial(learning_to_rank_plugin, engine="OpenSearch"), MODEL_NAME),
    "solr": _plugin(solr, FILE_NAME),
    "elasticsearch_script": _script("Elasticsearch"),
    "opensearch_script": _script("OpenSearch"),
    "elasticsearch_linear": _hybrid(elasticsearch_linear, MODEL_NAME),
    "opensearch_hybrid": _hybrid(opensearch_hybrid, MODEL_NAME),
    "mongodb": _hybrid(mongodb, FILE_NAME),
    "qdrant": Target(qdrant, WINDOWED, folder=True, window=WINDOW),
    "vespa": Target(vespa, NAMED, folder=True, model_name=PROFILE_NAME),
    "vespa_second_phase": _vespa("second"),
    "vespa_global_phase": _vespa("global"),
    "ranklib": Target(ranklib, NAMED),
    "onnx": Target(onnx, NAMED | {"dtype"}),
    "json": Target(json_model, frozenset({"name"})),
    "python": Target(python, NAMED),
}


@dataclass(frozen=True)
class Exported:
    """What was written, what differs from the model, and the commands that load it."""

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

    What the format cannot say is refused with the reason, before anything is written. Each file appears whole
    or not at all.

    Parameters
    ----------
    model : LinearModel or fitted ranker
    target : str
        A name of ``EXPORTS``: elasticsearch, opensearch, solr, vespa, ranklib, onnx, json, python, …
    path : path
        The folder to write to, made if need be, or the file for a target that is one file.
    name : str, optional
        The model's name in the engine; default "ranker".
    names : mapping, optional
        From our feature names to the engine's.
    featureset : object, optional
        The engine's own definitions of all features, as parsed JSON; what the model does not use is left out.
        For a hybrid search an object from feature names to queries will do.
    sample : Dataset, optional
        Documents that show how low scores get, for engines that take no negative score.
    store : str, optional
        The engine's feature store.
    dtype : "float32" or "float64", optional
        Numbers of an ONNX graph.
    window : int, optional
        How many of the first documents are scored again, or returned by each sub-query.
    """
    given = {"name": name, "names": names, "featureset": featureset, "sample": sample, "store": store}
    given |= {"dtype": dtype, "window": window}
    options = {option: value for option, value in given.items() if value is not None}
    return write_export(make_export(model, target, options), target, path)


def make_export(model: LinearModel | FittedRanker, target: str, options: Mapping[str, Any]) -> Product:
    """The files of an export in memory."""
    from ranksieve.model.linear import linear_model

    entry = lookup(EXPORTS, target, "target")
    chosen = entry.options(target, options)
    return entry.make(linear_model(model, "so it has no weights to export"), chosen)


def write_export(product: Product, target: str, path: str | os.PathLike[str]) -> Exported:
    """Write the files of an export."""
    place = Path(path)
    contents = paths_of(product, EXPORTS[target], place)
    for file in contents:
        if file != place and file.is_symlink():
            reason = "is a link, but an export writes into its folder only; remove the link"
            raise OSError(errno.ELOOP, reason, str(file))
    if EXPORTS[target].folder:
        _make_folder(place)
    for file, content in contents.items():
        with atomic_write(file, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)  # type: ignore[arg-type]
    return Exported(tuple(contents), product.notes, product.load(str(place)))


def _make_folder(place: Path) -> None:
    if place.exists() and not place.is_dir():
        reason = "is a file, but this export writes several files; name a folder"
        raise OSError(errno.ENOTDIR, reason, str(place))
    place.mkdir(exist_ok=True)


__all__ = ["EXPORTS", "Exported", "export_model", "make_export", "paths_of", "write_export"]
