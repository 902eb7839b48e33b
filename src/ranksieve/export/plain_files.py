"""Single-file formats: a Python module without dependencies, the ranksieve model file, RankLib text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from string import Template
from typing import TYPE_CHECKING

import numpy as np

from ranksieve._version import __version__
from ranksieve.export.base import (
    ANY_NAME,
    NameRule,
    Options,
    Product,
    as_json,
    centre_and_scale,
    engine_names,
    fill_values,
    float32,
    intercept_note,
    prepare_for_export,
    source_names,
    warn_about_means,
)
from ranksieve.export.lucene import tree_summands, warn_of_changed_pairs
from ranksieve.export.trees import Node, Split, curve_trees, notes_on_missing

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

MODULE = Template('''"""$name, exported by ranksieve $version.

score = INTERCEPT + sum of weight * (value - centre) / scale over FEATURES
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan
$imports
INTERCEPT = $intercept

# name: (weight, centre, scale, value if it is missing; None: it is required)
FEATURES: dict[str, tuple[float, float, float, float | None]] = {
$features
}
$indicators$curves

def score(features: Mapping[str, float]) -> float:
    """Return the score of a document from its feature values; higher is better."""
    total = 0.0
    for name, (weight, centre, scale, default) in FEATURES.items():
        value = features.get(name)
        if value is None or isnan(value):
            if default is None$unless:
                raise ValueError(f"feature {name!r} is missing")
            value = default
$present$look_up        total += weight * ((value - centre) / scale)
    return total + INTERCEPT


def rank(documents: Iterable[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """Return the documents, best first; ties keep their order."""
    return sorted(documents, key=score, reverse=True)
''')


INDICATORS = """
# missing-value indicators: 1 if the feature is missing, else 0
INDICATORS = {names!r}
"""
PRESENT = """\
        elif name in INDICATORS:
            value = 0.0
"""


CURVES = """
# name: (thresholds, levels, level if it is missing); levels[k] is the level from thresholds[k - 1] on
CURVES: dict[str, tuple[tuple[float, ...], tuple[float, ...], float]] = {{
{curves}
}}
"""
LOOK_UP = """\
        if name in CURVES:
            thresholds, levels, missing = CURVES[name]
            value = missing if value is None or isnan(value) else levels[bisect_right(thresholds, value)]
"""


def python(model: LinearModel, options: Options) -> Product:
    """A module with ``score`` and ``rank``; scores are bit-identical to the model's."""
    model = prepare_for_export(model, "a Python function of one document", indicators=True)
    names, indicators = source_names(model), model.preparation.missing.indicators
    names = engine_names(names, options.names, ANY_NAME, "Python")
    centre, scale = centre_and_scale(model)
    fills: list[float] | list[None] = fill_values(model) or [None] * len(model.terms)
    rows = zip(names, model.weights.tolist(), centre.tolist(), scale.tolist(), fills, strict=True)
    indicator_names = [name for name, term in zip(names, model.terms, strict=True) if term.name in indicators]
    curves = {name: term.curve for name, term in zip(names, model.terms, strict=True) if term.curve}
    tables = (f"    {name!r}: {(one.thresholds, one.levels, one.missing)!r}," for name, one in curves.items())
    text = MODULE.substitute(
        name=options.name,
        version=__version__,
        intercept=repr(model.intercept),
        features="\n".join(f"    {name!r}: {tuple(numbers)!r}," for name, *numbers in rows),
        indicators=INDICATORS.format(names=indicator_names) if indicator_names else "",
        present=PRESENT if indicator_names else "",
        imports="from bisect import bisect_right\n" if curves else "",
        curves=CURVES.format(curves="\n".join(tables)) if curves else "",
        unless=" and name not in CURVES" if curves else "",
        look_up=LOOK_UP if curves else "",
    )
    return Product({f"{options.name}.py": text})


WELL_FORMED = NameRule(r"[^\ud800-\udfff]*", "a name must not contain an unpaired surrogate")


def json_model(model: LinearModel, options: Options) -> Product:
    """The file that :meth:`LinearModel.save` writes, which represents every model."""
    engine_names(model.names, {}, WELL_FORMED, "JSON", "rename it in the data")
    return Product({f"{options.name}.json": as_json(model.to_dict())})


FEATURE_ID = NameRule(r"[1-9][0-9]{0,8}", "RankLib names features by their number, from 1")


def ranklib(model: LinearModel, options: Options) -> Product:
    """One line of ``id:weight``, with the header of Coordinate Ascent, RankLib's linear model.

    The number of a feature is its column in the training data, from 1, unless ``names`` overrides it. The
    format has no constant, so scores lack that of the intercept and of normalisation. Curves become the
    trees of LambdaMART.
    """
    model = prepare_for_export(model, "RankLib")
    warn_about_means(model, "RankLib")
    folded = model.folded()
    columns = {term.name: str(term.index + 1) for term in model.terms}
    numbers = engine_names(model.names, {**columns, **options.names}, FEATURE_ID, "RankLib")
    if model.has_curves:
        trees = curve_trees(model, "RankLib", single=True)
        warn_of_changed_pairs(model, options.sample, "RankLib", tree_summands(trees), model.intercept)
        text = _ensemble(trees, numbers, model.intercept)
        return Product({f"{options.name}.txt": text}, notes_on_missing(model, "RankLib"))
    products = [partial(np.multiply, term.weight, dtype=np.float64) for term in folded.terms]
    warn_of_changed_pairs(model, options.sample, "RankLib", products, dtype=np.float64)
    pairs = " ".join(f"{number}:{term.weight!r}" for number, term in zip(numbers, folded.terms, strict=True))
    text = f"## Coordinate Ascent\n## Exported by ranksieve {__version__}\n{pairs}\n"
    return Product({f"{options.name}.txt": text}, intercept_note(folded.intercept, "RankLib's format"))


def _ensemble(trees: Sequence[Node], numbers: list[str], intercept: float) -> str:
    """One tree per feature and one for the constant, without spaces, which RankLib takes for nodes."""
    splits = list(map(_split, trees, numbers))
    if intercept:
        splits.append(_split(float32(intercept, "the intercept"), ""))
    lines = [
        f'<tree id="{k}" weight="1.0"><split>{split}</split></tree>'
        for k, split in enumerate(splits, start=1)
    ]
    header = f"## LambdaMART\n## Exported by ranksieve {__version__}\n"
    return header + "\n".join(["<ensemble>", *lines, "</ensemble>"]) + "\n"


def _split(node: Node, number: str) -> str:
    """Content of a ``split``; values ≤ the threshold go left."""
    if not isinstance(node, Split):
        return f"<output>{node!r}</output>"
    left, right = _split(node.left, number), _split(node.right, number)
    return (
        f"<feature>{number}</feature><threshold>{node.last_left!r}</threshold>"
        f'<split pos="left">{left}</split><split pos="right">{right}</split>'
    )
