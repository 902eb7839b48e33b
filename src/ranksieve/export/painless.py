"""Elasticsearch and OpenSearch without a plugin: a Painless script for ``script_score``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ranksieve.export.base import (
    ANY_NAME,
    Options,
    Product,
    as_json,
    engine_names,
    exportable,
    fills_of,
    names_read,
    unfit,
)
from ranksieve.export.elasticsearch import ADDRESS
from ranksieve.export.lucene import curl, rescored

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

SCORE = "_score"
FUNCTIONS = {"log1p": "Math.log1p", "ln": "Math.log", "sqrt": "Math.sqrt"}
CALL = re.compile(rf"({'|'.join(FUNCTIONS)})\((.+)\)")
POSITIVE = "return s < 0 ? 1 / (1 - s) : 1 + s;"
MOST_CHARACTERS = 65_535  # script.max_size_in_bytes by default


def painless_script(model: LinearModel, options: Options, engine: str) -> Product:
    """A stored script and an example query: the score s made positive by 1 + s, or 1 / (1 − s) below 0.

    Engines refuse a search as soon as one score is negative, and what documents hold has no lower bound: no
    constant is large enough for sure. The map rises everywhere and is positive everywhere, and in float32 it
    tells negative scores apart as well as it does positive ones (1 / (1 − s) has the relative error of s),
    where exp or a logistic function would make many of them equal.
    """
    source = _source(exportable(model, engine, indicators=True), options, engine)
    match = {"match": {"YOUR_FIELD": "WORDS OF THE USER"}}  # inside too, for its ``_score``
    script_score = {"script_score": {"query": match, "script": {"id": options.name}}}
    files = {
        "script.json": as_json({"script": {"lang": "painless", "source": source}}),
        "query.json": as_json(rescored(match, options.window, script_score)),
    }
    note = (
        f"A score s of the model becomes 1 + s, or 1 / (1 - s) if it is negative, because {engine} takes no "
        "negative scores; the ranking is the same."
    )
    return Product(
        files,
        (note,),
        lambda folder: (
            curl("PUT", f"{ADDRESS}/_scripts/{options.name}", folder, "script.json"),
            curl("POST", f"{ADDRESS}/YOUR_INDEX/_search", folder, "query.json"),
        ),
    )


def _source(model: LinearModel, options: Options, engine: str) -> str:
    folded, about = model.folded(), model.preparation.missing.indicators
    names = engine_names(names_read(model), options.names, ANY_NAME, engine)
    fills = fills_of(model) or [0.0] * len(names)
    lines = [f"double s = {folded.intercept!r};"]
    for name, term, fill in zip(names, folded.terms, fills, strict=True):
        value = _value(name, fill, is_indicator=term.name in about)
        lines.append(f"s += {term.weight!r} * {value};")
    source = "\n".join([*lines, POSITIVE])
    if len(source.encode()) > MOST_CHARACTERS:
        raise unfit(
            f"the script of {len(names)} features has {len(source.encode())} bytes, but {engine} takes "
            f"at most {MOST_CHARACTERS}; fit with a smaller `max_features`"
        )
    return source


def _value(name: str, fill: float, is_indicator: bool) -> str:
    """A feature in Painless: the score of the query, or the value of a field, or a function of it."""
    if name == SCORE:
        return "0.0" if is_indicator else SCORE
    call = CALL.fullmatch(name)
    field = f"doc[{quoted(call[2] if call else name)}]"
    present = f"{FUNCTIONS[call[1]]}({field}.value)" if call else f"{field}.value"
    return f"({field}.size() == 0 ? {fill!r} : {'0.0' if is_indicator else present})"


def quoted(name: str) -> str:
    """Text as a literal of Painless, which knows the escapes of the quote and of the backslash only."""
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
