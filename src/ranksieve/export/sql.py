"""SQL that PostgreSQL, DuckDB and SQLite all read: a model as an expression over columns, and a query."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ranksieve.errors import ParameterError, printable, warn_caller
from ranksieve.export.base import (
    ANY_NAME,
    Options,
    Product,
    centre_and_scale,
    engine_names,
    fill_values,
    prepare_for_export,
    source_names,
)

if TYPE_CHECKING:
    from ranksieve.model.linear import Curve, LinearModel

TABLE, QUERY_ID, DOCUMENT_ID = "YOUR_TABLE", "YOUR_QUERY_ID", "YOUR_DOCUMENT_ID"
LONGEST_NAME = 63  # bytes in PostgreSQL, which cuts longer names
GROUP = 100  # summands in parentheses: DuckDB and SQLite limit the depth of an expression to 1000
LARGEST = "1.7976931348623157e308"
PER_QUERY = ("query_z", "query_min_max", "query_min")
BY_PROGRAM = ("duckdb YOUR_DATABASE <", "psql YOUR_DATABASE --file", "sqlite3 YOUR_DATABASE <")


def sql(model: LinearModel, options: Options) -> Product:
    """An expression and a query that ranks the rows of a table by it.

    What a model computes within each query becomes window functions in stages of the query; then there is no
    single expression.
    """
    model = prepare_for_export(model, "SQL", indicators=True, within=PER_QUERY)
    names = engine_names(source_names(model), options.names, ANY_NAME, "SQL")
    if options.name.lower() in {name.lower() for name in (*names, QUERY_ID, DOCUMENT_ID)}:
        raise ParameterError("name", options.name, "is also the name of a column; choose another one")
    _warn_of_long_names(names)
    values = _values(model, names)
    files = {}
    if model.per_query:
        query = _staged(model, values, options.name)
    else:
        expression = _sum(model, _scaled(model, values))
        files["expression.sql"] = f"{expression}\n"
        query = _select(expression, f"{TABLE} AS d", options.name)
    files["query.sql"] = query
    return Product(files, (), lambda folder: _load(folder))


def _warn_of_long_names(names: Sequence[str]) -> None:
    long = [printable(name) for name in names if len(name.encode()) > LONGEST_NAME]
    if long:
        warn_caller(
            f"PostgreSQL cuts names after {LONGEST_NAME} bytes, so it may read other columns than "
            f"{', '.join(long)}; rename them with `names`"
        )


def quoted(name: str) -> str:
    """A quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def number(value: float) -> str:
    """A literal of type double: with an exponent, because DuckDB reads others as decimals."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def double(expression: str) -> str:
    """Also of a CASE of literals, which are decimals in PostgreSQL."""
    return f"CAST({expression} AS DOUBLE PRECISION)"


def _values(model: LinearModel, names: Sequence[str]) -> list[str]:
    """Column of each term, filled where it is missing: NULL, or NaN, which SQLite does not have."""
    indicators, by_query = model.preparation.missing.indicators, model.preparation.missing.per_query
    fills = fill_values(model)
    values = []
    for k, (term, name) in enumerate(zip(model.terms, names, strict=True)):
        value = double(f"d.{quoted(name)}")
        present = f"NULLIF({value}, 'NaN')"
        if term.name in indicators:
            value = double(f"CASE WHEN {present} IS NULL THEN 1e0 ELSE 0e0 END")
        elif by_query:
            value = f"COALESCE({present}, MIN({present}) OVER (PARTITION BY d.{QUERY_ID}), 0e0)"
        elif fills is not None:
            value = f"COALESCE({present}, {number(fills[k])})"
        values.append(value)
    return values


def _scaled(model: LinearModel, values: Sequence[str]) -> list[str]:
    if not model.preparation.normalisation.learns:
        return list(values)
    pairs = zip(*(part.tolist() for part in centre_and_scale(model)), strict=True)
    return [
        f"(({value} - {number(centre)}) / {number(scale)})"
        for value, (centre, scale) in zip(values, pairs, strict=True)
    ]


def _sum(model: LinearModel, values: Sequence[str]) -> str:
    """Σ weight · value + intercept, in the order in which the model adds."""
    summands = [
        f"{number(term.weight)} * {value if term.curve is None else _case(term.curve, value)}"
        for term, value in zip(model.terms, values, strict=True)
    ]
    if model.intercept:
        summands.append(number(model.intercept))
    groups = ["\n+ ".join(summands[k : k + GROUP]) for k in range(0, len(summands), GROUP)]
    return groups[0] if len(groups) == 1 else "\n+ ".join(f"({group})" for group in groups)


def _case(curve: Curve, value: str) -> str:
    """Levels of a curve; NULL is not less than a number, and NaN greater than all."""
    limits = [*map(number, curve.thresholds)]
    cases = [f"WHEN {value} < {t} THEN {number(a)}" for t, a in zip(limits, curve.levels, strict=False)]
    last = f"WHEN {value} <= {LARGEST} THEN {number(curve.levels[-1])}"
    return double(" ".join(["CASE", *cases, last, f"ELSE {number(curve.missing)} END"]))


def _staged(model: LinearModel, values: Sequence[str], name: str) -> str:
    """Stages: filled values, for query_z their deviations from the mean, scaled values, and the sum."""
    kind, window = model.preparation.normalisation.kind, f"WINDOW q AS (PARTITION BY d.{QUERY_ID})"
    columns = [f"x{k}" for k in range(1, len(values) + 1)]
    stages = [_stage("filled", values, columns, f"FROM {TABLE} AS d")]
    if kind == "query_z":
        # The mean of equal values has a rounding error, which a division by the deviation would magnify.
        deviations = [
            f"CASE WHEN MIN(d.{x}) OVER q = MAX(d.{x}) OVER q THEN 0e0 ELSE d.{x} - AVG(d.{x}) OVER q END"
            for x in columns
        ]
        stages.append(_stage("centred", deviations, columns, f"FROM filled AS d {window}"))
        scales = [f"SQRT(AVG(d.{x} * d.{x}) OVER q)" for x in columns]
        scaled = [f"d.{x} / COALESCE(NULLIF({s}, 0e0), 1e0)" for x, s in zip(columns, scales, strict=True)]
        stages.append(_stage("scaled", scaled, columns, f"FROM centred AS d {window}"))
    elif kind == "query_min_max":
        ranges = [f"COALESCE(NULLIF(MAX(d.{x}) OVER q - MIN(d.{x}) OVER q, 0e0), 1e0)" for x in columns]
        scaled = [f"(d.{x} - MIN(d.{x}) OVER q) / {r}" for x, r in zip(columns, ranges, strict=True)]
        stages.append(_stage("scaled", scaled, columns, f"FROM filled AS d {window}"))
    last = "filled" if len(stages) == 1 else "scaled"
    inputs = [f"d.{x}" for x in columns]
    inputs = inputs if model.preparation.normalisation.per_query else _scaled(model, inputs)
    return f"WITH {', '.join(stages)}\n" + _select(_sum(model, inputs), f"{last} AS d", name)


def _stage(name: str, values: Sequence[str], columns: Sequence[str], source: str) -> str:
    rows = ",\n".join(f"  {value} AS {column}" for value, column in zip(values, columns, strict=True))
    return f"{name} AS (\n  SELECT d.{QUERY_ID}, d.{DOCUMENT_ID},\n{rows}\n  {source}\n)"


def _select(expression: str, source: str, name: str) -> str:
    """NULLs last: a document without a feature that the model does not fill has no score."""
    return (
        f"SELECT d.{QUERY_ID}, d.{DOCUMENT_ID},\n({expression}) AS {quoted(name)}\n"
        f"FROM {source}\nORDER BY d.{QUERY_ID}, {quoted(name)} DESC NULLS LAST;\n"
    )


def _load(folder: str) -> tuple[str, ...]:
    return tuple(f"{program} {shlex.quote(f'{folder}/query.sql')}" for program in BY_PROGRAM)
