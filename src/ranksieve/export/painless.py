"""Elasticsearch and OpenSearch without a plugin: a Painless script for ``script_score``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksieve.export.base import (
    ANY_NAME,
    Options,
    Product,
    as_json,
    engine_names,
    fill_values,
    not_exportable,
    prepare_for_export,
    source_names,
)
from ranksieve.export.elasticsearch import ADDRESS
from ranksieve.export.lucene import USER_QUERY, centring, curl, rescore_query, shift_note
from ranksieve.export.trees import MISSING, Node, Split, curve_trees

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

FUNCTIONS = {"log1p": "Math.log1p", "ln": "Math.log", "sqrt": "Math.sqrt"}
CALL = re.compile(rf"({'|'.join(FUNCTIONS)})\((.+)\)")
POSITIVE = "return s < 0 ? 1 / (1 - s) : 1 + s;"
MAX_SCRIPT_BYTES = 65_535  # default of script.max_size_in_bytes


def painless_script(model: LinearModel, options: Options, engine: str) -> Product:
    """A stored script and an example query: a score s becomes 1 + s, or 1 / (1 − s) if it is negative.

    Engines reject a search if any score is negative, and field values are unbounded, so no constant shift is
    safe. This map is increasing and positive, and in float32 it resolves negative scores as well as positive
    ones (1 / (1 − s) has the relative error of s); exp or a logistic function would map many to the same
    number.
    """
    shift = 0.0 if options.sample is None else centring(model.predict(options.sample))
    prepared = prepare_for_export(model, engine, indicators=True)
    source = _source(replace(prepared, intercept=prepared.intercept + shift), options, engine)
    match = {"match": {"YOUR_FIELD": USER_QUERY}}  # also inside script_score, which needs its ``_score``
    script_score = {"script_score": {"query": match, "script": {"id": options.name}}}
    files = {
        "script.json": as_json({"script": {"lang": "painless", "source": source}}),
        "query.json": as_json(rescore_query(match, options.window, script_score)),
    }
    note = (
        f"A score s of the model becomes 1 + s, or 1 / (1 - s) if it is negative, because {engine} rejects "
        "negative scores; the ranking is the same."
    )
    return Product(
        files,
        (note, *((shift_note(shift, engine),) if shift else ())),
        lambda folder: (
            curl("PUT", f"{ADDRESS}/_scripts/{options.name}", folder, "script.json"),
            curl("POST", f"{ADDRESS}/YOUR_INDEX/_search", folder, "query.json"),
        ),
    )


def _source(model: LinearModel, options: Options, engine: str) -> str:
    folded, indicators = model.folded(), model.preparation.missing.indicators
    names = engine_names(source_names(model), options.names, ANY_NAME, engine)
    fills = fill_values(model) or [0.0] * len(names)
    lines = [f"double s = {folded.intercept!r};"]
    if model.has_curves:
        for number, (name, tree) in enumerate(
            zip(names, curve_trees(model, engine, single=False), strict=True)
        ):
            lines.append(f"double x{number} = {_value(name, MISSING, is_indicator=False)};")
            lines.append(f"s += {_conditional(tree, f'x{number}')};")
    else:
        for name, term, fill in zip(names, folded.terms, fills, strict=True):
            value = _value(name, fill, is_indicator=term.name in indicators)
            lines.append(f"s += {term.weight!r} * {value};")
    source = "\n".join([*lines, POSITIVE])
    if len(source.encode()) > MAX_SCRIPT_BYTES:
        raise not_exportable(
            f"the script of {len(names)} features has {len(source.encode())} bytes, but {engine} accepts "
            f"at most {MAX_SCRIPT_BYTES}; fit with a smaller `max_features`"
        )
    return source


def _conditional(node: Node, variable: str) -> str:
    if not isinstance(node, Split):
        return repr(node)
    left, right = _conditional(node.left, variable), _conditional(node.right, variable)
    return f"({variable} < {node.threshold!r} ? {left} : {right})"


def _value(name: str, fill: float, is_indicator: bool) -> str:
    """Painless expression of a feature: the query's score, the value of a field, or a function of it."""
    if name == "_score":
        return "0.0" if is_indicator else name
    call = CALL.fullmatch(name)
    field = f"doc[{string_literal(call[2] if call else name)}]"
    present = f"{FUNCTIONS[call[1]]}({field}.value)" if call else f"{field}.value"
    return f"({field}.size() == 0 ? {fill!r} : {'0.0' if is_indicator else present})"


def string_literal(name: str) -> str:
    """Painless string literal; its only escapes are those of the quote and the backslash."""
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
