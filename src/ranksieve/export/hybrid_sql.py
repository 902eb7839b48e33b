"""Hybrid search in SQL: one query over a table with a column of scores per clause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranksieve.data.result_lists import rank_constant
from ranksieve.errors import ParameterError
from ranksieve.export.base import (
    ANY_NAME,
    Options,
    Product,
    engine_names,
    fill_values,
    not_exportable,
    prepare_for_export,
)

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

TABLE, QUERY, DOCUMENT = "results", "query", "document"
RANK = "__rank"  # ending of helper columns
SQL_KINDS = ("list_min_max", "list_l2", "list_z")


def hybrid_sql(model: LinearModel, options: Options) -> Product:
    """A query for PostgreSQL, DuckDB and SQLite that ranks the documents of each query.

    The table ``results`` has the columns ``query`` and ``document`` and one per clause: its score, NULL for
    documents that it did not return.
    """
    engine, kind = "SQL", model.preparation.normalisation.kind
    by_rank = rank_constant(kind) is not None
    model = prepare_for_export(model, engine, within=(kind,) if by_rank else SQL_KINDS)
    folded = model if model.per_query else model.folded()
    names = engine_names(folded.names, options.names, ANY_NAME, engine)
    for name in names:
        if name.lower() in (QUERY, DOCUMENT, "score") or name.endswith(RANK):
            raise ParameterError("names", name, f"is a column of the query itself; rename it for {engine}")
    folded_names = [name.casefold() for name in names]
    for number, name in enumerate(folded_names):
        if name in folded_names[:number]:
            raise ParameterError(
                "names", names[number], "differs from another column only in case; rename it"
            )
    values = [_value(quoted(name), kind) for name in names]
    fills = fill_values(model) or [0.0] * len(names)
    summands = [
        f"{term.weight!r} * COALESCE({value}, {fill!r})"
        for term, value, fill in zip(folded.terms, values, fills, strict=True)
    ]
    if not summands:
        raise not_exportable("the model uses no clause, so there is nothing to compute")
    score = "\n     + ".join([*summands, *([repr(folded.intercept)] if folded.intercept else [])])
    lines = [*_with(names, kind), f"SELECT {QUERY}, {DOCUMENT},", f"       {score} AS score"]
    lines += [f"FROM {'ranked' if by_rank else 'spread' if kind == 'list_z' else TABLE}"]
    lines += [f"ORDER BY {QUERY}, score DESC;"]
    note = f"The table {TABLE} has the columns {QUERY}, {DOCUMENT} and one per clause, NULL if not returned."
    return Product({f"{options.name}.sql": "\n".join(lines) + "\n"}, (note,))


def quoted(name: str) -> str:
    """An identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def _value(column: str, kind: str) -> str:
    """The normalised score of a clause, NULL where it did not return the document."""
    window = f"(PARTITION BY {QUERY})"
    if (k := rank_constant(kind)) is not None:
        if kind.startswith("reciprocal@"):
            return f"1.0 / ({k} + {column})"
        ranks = quoted(column[1:-1].replace('""', '"') + RANK)
        return (
            f"CASE WHEN {column} IS NOT NULL THEN AVG(1.0 / ({k} + {ranks})) OVER "
            f"(PARTITION BY {QUERY}, {column}) END"
        )
    if kind == "list_min_max":
        low, high = f"MIN({column}) OVER {window}", f"MAX({column}) OVER {window}"
        scaled = f"({column} - {low}) / ({high} - {low})"
        return f"CASE WHEN {column} IS NULL THEN 0 WHEN {high} = {low} THEN 1 ELSE {scaled} END"
    if kind == "list_l2":
        return f"{column} / NULLIF(SQRT(SUM({column} * {column}) OVER {window}), 0)"
    if kind == "list_z":
        centred = quoted(column[1:-1].replace('""', '"') + RANK)
        return f"{centred} / NULLIF(SQRT(AVG({centred} * {centred}) OVER {window}), 0)"
    return column


def _with(names: list[str], kind: str) -> list[str]:
    """Helper columns: ranks of the returned documents, or scores minus their mean."""
    if kind.startswith("reciprocal_rank@"):
        ranks = [
            f"ROW_NUMBER() OVER (PARTITION BY {QUERY}, {quoted(name)} IS NULL ORDER BY {quoted(name)} DESC)"
            f" AS {quoted(name + RANK)}"
            for name in names
        ]
        return [f"WITH ranked AS (SELECT *, {', '.join(ranks)} FROM {TABLE})"]
    if kind.startswith("reciprocal@"):
        return [f"WITH ranked AS (SELECT * FROM {TABLE})"]
    if kind == "list_z":
        centred = [
            f"{quoted(name)} - AVG({quoted(name)}) OVER (PARTITION BY {QUERY}) AS {quoted(name + RANK)}"
            for name in names
        ]
        return [f"WITH spread AS (SELECT *, {', '.join(centred)} FROM {TABLE})"]
    return []
