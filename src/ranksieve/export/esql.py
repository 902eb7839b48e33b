"""ES|QL of Elasticsearch: FORK runs one search per clause, FUSE adds weighted scores or reciprocal ranks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ranksieve.data.result_lists import rank_constant
from ranksieve.export.base import Options, Product, as_json, not_exportable
from ranksieve.export.elasticsearch import ADDRESS
from ranksieve.export.hybrid import BY_RANGE, RESULT_SIZE, hybrid
from ranksieve.export.lucene import curl

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

MAX_BRANCHES = 8
ENGINE = "ES|QL's FUSE"


def esql(model: LinearModel, options: Options) -> Product:
    """A request with the query; a clause is a condition such as MATCH(title, ?words)."""
    search = hybrid(model, options, ENGINE, _match, (BY_RANGE, "query_min", "list_min_max"), by_rank=True)
    if len(search.clauses) > MAX_BRANCHES:
        used = f"the model uses {len(search.clauses)} features"
        raise not_exportable(f"{used}, but FORK has at most {MAX_BRANCHES} branches; use `max_features`")
    k = rank_constant(search.kind)
    branches = [
        f"(WHERE {_condition(clause.query)} | SORT _score DESC | LIMIT {search.window})"
        for clause in search.clauses
    ]
    weights = {f"fork{n}": clause.weight for n, clause in enumerate(search.clauses, start=1)}
    settings: dict[str, Any] = {"weights": weights}
    if k is None:
        settings["normalizer"] = "none" if search.kind not in (BY_RANGE, "list_min_max") else "minmax"
    else:
        settings["rank_constant"] = k
    lines = [
        "FROM YOUR_INDEX METADATA _id, _index, _score",
        "| FORK " + "\n       ".join(branches),
        f"| FUSE {'LINEAR' if k is None else 'RRF'} WITH {json.dumps(settings)}",
        f"| SORT _score DESC | LIMIT {min(RESULT_SIZE, search.window)}",
    ]
    notes = (*search.notes, "Set the parameter words. FUSE is a preview in Elasticsearch 9.2.")
    if len(branches) == 1:  # nothing to fuse
        (clause,) = search.clauses
        weighted = f"| EVAL _score = {clause.weight!r} * _score"
        lines = [lines[0], f"| WHERE {_condition(clause.query)}", weighted, lines[-1]]
        notes = (*search.notes, "Set the parameter words. The scores of the only clause are not normalised.")
    elif search.kind == "list_min_max":
        notes += ("Where all scores of a list are equal, FUSE gives 0 instead of 1.",)
    file = f"{options.name}.json"
    request = {"query": "\n".join(lines), "params": [{"words": "YOUR QUERY"}]}
    return Product(
        {file: as_json(request)}, notes, lambda folder: (curl("POST", f"{ADDRESS}/_query", folder, file),)
    )


def _match(field: str) -> dict[str, str]:
    return {"where": f"MATCH({_quoted(field)}, ?words)"}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _condition(query: Any) -> str:
    """The condition of ``{"where": "MATCH(title, ?words)"}``."""
    if isinstance(query, dict) and isinstance(condition := query.get("where"), str) and condition.strip():
        return condition
    raise not_exportable(
        f'{str(query)[:60]!r} is not a condition; expected {{"where": …}}, such as "MATCH(title, ?words)"'
    )
