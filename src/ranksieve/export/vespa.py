"""A Vespa rank profile with the model in its first, second or global phase."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ranksieve.data.result_lists import rank_constant
from ranksieve.export.base import (
    NameRule,
    Options,
    Product,
    as_json,
    engine_names,
    make_unique,
    prepare_for_export,
    warn_about_means,
)
from ranksieve.export.hybrid import HYBRID
from ranksieve.export.lucene import USER_QUERY
from ranksieve.export.trees import Node, Split, curve_trees, notes_on_missing

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel, Term

PROFILE_NAME = NameRule(
    r"[A-Za-z_][A-Za-z0-9_-]*",
    "the name of a rank profile must consist of letters, digits, _ and -, and begin with a letter or _",
)
REFERENCE = r"(?!(?:true|false|if|in)\b)[A-Za-z_][A-Za-z0-9_@$]*"
QUOTED = r'"[^"\\{}#\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*"'
PART = rf"(?:[A-Za-z0-9_.,:@$<>=! -]|{QUOTED})*"
ARGUMENTS = rf"\({PART}(\({PART}\){PART})*\)"
OUTPUTS = r"(\.[A-Za-z0-9_]+)*"
MAPPED_NAME = NameRule(
    f"{REFERENCE}({ARGUMENTS})?{OUTPUTS}",
    "a name must be a Vespa rank feature or function, such as bm25(title) or fieldMatch(title).proximity",
)
UNMAPPED_NAME = NameRule(f"{REFERENCE}{ARGUMENTS}{OUTPUTS}", MAPPED_NAME.description)
ADVICE = "map every feature to a Vespa feature with `names`"


VESPA_RERANK_COUNT = 100


def vespa(model: LinearModel, options: Options, phase: str = "first") -> Product:
    """A rank profile that computes the model in double precision, and an example query.

    The first phase scores every match, the second the best matches of each content node, the global phase the
    best matches overall. There ``normalize_linear`` has the values of all of them, so query_min_max can be
    exported.
    """
    if phase == "global" and model.method == HYBRID:
        return _weights_as_parameters(model, options)
    engine = "Vespa" if phase == "first" else f"Vespa's {phase} phase"
    model = prepare_for_export(model, engine, within=("query_min_max",) if phase == "global" else ())
    warn_about_means(model, "Vespa")
    folded = model if model.per_query else model.folded()
    features, notes = _features(folded, options), tuple[str, ...]()
    if model.has_curves:
        trees = curve_trees(model, engine, single=False)
        values, summands = _conditions(trees, features, model.intercept)
        notes = notes_on_missing(model, "Vespa", "may, depending on the feature, read")
    else:
        if model.per_query:
            features = [f"normalize_linear({feature})" for feature in features]
            notes = (
                "Minimum and maximum of each feature are taken over the top "
                f"{options.window} documents of a query.",
            )
        values, summands = _linear(folded, features)
    search = "select * from sources * where userQuery()"
    query = {"yql": search, "query": USER_QUERY, "ranking": options.name}
    files = {
        f"{options.name}.profile": _profile(options.name, values, summands, phase, options.window),
        "query.json": as_json(query),
    }
    return Product(files, notes, lambda folder: _load(folder, options.name))


def _weights_as_parameters(model: LinearModel, options: Options) -> Product:
    """A rank profile whose global phase adds up scores or reciprocal ranks, and a query profile of weights.

    New weights need no new rank profile: they are query parameters. A rank feature that is 0 stands for a
    document that the clause did not return.
    """
    engine, kind = "Vespa's global phase", model.preparation.normalisation.kind
    k = rank_constant(kind)
    model = prepare_for_export(model, engine, within=(kind,) if kind.startswith("reciprocal_rank@") else ())
    warn_about_means(model, engine)
    folded = model if model.per_query else model.folded()
    features = _features(folded, options)
    *constants, _ = _constants(folded.terms, features)
    values = features
    if k is not None:
        values = [f"if({one} > 0, reciprocal_rank({one}, {k}), 0)" for one in features]
    weights = [decimal(term.weight) for term in folded.terms]
    named = list(zip(constants, weights, values, strict=True))
    lines = [
        f"rank-profile {options.name} {{", "    inputs {",
        *(f"        query({constant}) double: {weight}" for constant, weight, _ in named), "    }",
        "    match-features {", *(f"        {one}" for one in features), "    }", "    global-phase {",
        "        expression {",
        "            " + "\n            + ".join(f"query({name}) * {value}" for name, _, value in named),
        "        }", f"        rerank-count: {options.window}", "    }", "}",
    ]  # fmt: skip
    fields = [f'  <field name="input.query({name})">{weight}</field>' for name, weight, _ in named]
    profile = [f'<query-profile id="{options.name}">', *fields, "</query-profile>"]
    query = {"yql": "select * from sources * where userQuery()", "query": USER_QUERY}
    query |= {"ranking": options.name, "queryProfile": options.name}
    files = {
        f"{options.name}.profile": "\n".join(lines) + "\n", f"{options.name}.xml": "\n".join(profile) + "\n",
        "query.json": as_json(query),
    }  # fmt: skip
    notes = [
        "The first phase must be one of the clauses, or a sum of them. A feature that is 0 counts as not "
        f"returned; log the training data from match-features of the top {options.window} documents."
    ]
    if k is not None:
        notes.append(
            "Documents with equal scores get the mean over their ranks from the model, not from Vespa."
        )
    copy = f"cp -- {shlex.quote(f'{{folder}}/{options.name}.xml')} YOUR_APPLICATION/search/query-profiles/"
    return Product(
        files,
        tuple(notes),
        lambda folder: (copy.replace("{folder}", folder), *_load(folder, options.name)),
    )


def _features(model: LinearModel, options: Options) -> list[str]:
    """Rank features of Vespa; a name that is not mapped must have arguments."""
    unmapped = [name for name in model.names if name not in options.names]
    engine_names(unmapped, {}, UNMAPPED_NAME, "Vespa", ADVICE)
    return engine_names(model.names, options.names, MAPPED_NAME, "Vespa", ADVICE)


def _linear(model: LinearModel, features: Sequence[str]) -> tuple[list[str], list[str]]:
    """Constants and summands of the expression."""
    *constants, intercept = _constants(model.terms, features)
    weights = [decimal(term.weight) for term in model.terms]
    values = [f"{constant}: {weight}" for constant, weight in zip(constants, weights, strict=True)]
    summands = [f"{constant} * {feature}" for constant, feature in zip(constants, features, strict=True)]
    if model.intercept:
        values.append(f"{intercept}: {decimal(model.intercept)}")
        summands.append(intercept)
    return values, summands


def _conditions(
    trees: Sequence[Node], features: Sequence[str], intercept: float
) -> tuple[list[str], list[str]]:
    """Constants, of which there are none, and summands of the expression."""
    summands = [_conditional(tree, feature) for tree, feature in zip(trees, features, strict=True)]
    return [], [*summands, *([decimal(intercept)] if intercept else [])]


def _conditional(node: Node, feature: str) -> str:
    """Nested conditions, the form that Vespa compiles into trees; NaN is not less than a number."""
    if not isinstance(node, Split):
        return decimal(node)
    left, right = _conditional(node.left, feature), _conditional(node.right, feature)
    return f"if({feature} < {decimal(node.threshold)}, {left}, {right})"


def _profile(name: str, values: Sequence[str], summands: Sequence[str], phase: str, window: int) -> str:
    lines = [
        f"rank-profile {name} {{",
        *(["    constants {", *(f"        {value}" for value in values), "    }"] if values else []),
        f"    {phase}-phase {{",
        "        expression {",
        "            " + "\n            + ".join(summands),
        "        }",
        *([f"        rerank-count: {window}"] if window else []),
        "    }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def decimal(value: float) -> str:
    """A number without an exponent, which Vespa's schema grammar does not support."""
    return np.format_float_positional(value, unique=True, trim="0")


def _constants(terms: Sequence[Term], features: Sequence[str]) -> list[str]:
    """Names of the weights and of the intercept that do not occur in the features."""
    names = make_unique(["w_" + re.sub(r"[^A-Za-z0-9_]", "_", term.name) for term in terms])
    used = set(re.findall(r"[A-Za-z0-9_]+", " ".join(features)))
    ending = ""
    while any(name + ending in used for name in (*names, "intercept")):
        ending += "_"
    return [name + ending for name in (*names, "intercept")]


def _load(folder: str, name: str) -> tuple[str, ...]:
    profile = shlex.quote(f"{folder}/{name}.profile")
    return (
        f"cp -- {profile} YOUR_APPLICATION/schemas/YOUR_SCHEMA/",
        "vespa deploy YOUR_APPLICATION",
        f"vespa query --file {shlex.quote(f'{folder}/query.json')}",
    )
