"""Formats of one text file: a Python module that needs nothing but Python, our model file, RankLib's text."""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

from ranksieve._version import __version__
from ranksieve.export.base import (
    ANY_NAME,
    NameRule,
    Options,
    Product,
    as_json,
    columnwise,
    constant_left_out,
    engine_names,
    exportable,
    fills_of,
    names_read,
    warn_of_means,
)

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

MODULE = Template('''"""$name, exported by ranksieve $version.

score = INTERCEPT + sum of weight * (value - centre) / scale over FEATURES
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan

INTERCEPT = $intercept

# name: (weight, centre, scale, what replaces a missing value; None: it must be there)
FEATURES: dict[str, tuple[float, float, float, float | None]] = {
$features
}
$indicators

def score(features: Mapping[str, float]) -> float:
    """The score of a document with these values; the higher, the better."""
    total = 0.0
    for name, (weight, centre, scale, default) in FEATURES.items():
        value = features.get(name)
        if value is None or isnan(value):
            if default is None:
                raise ValueError(f"feature {name!r} is missing")
            value = default
$present        total += weight * ((value - centre) / scale)
    return total + INTERCEPT


def rank(documents: Iterable[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """Documents, best first; equal scores keep their order."""
    return sorted(documents, key=score, reverse=True)
''')


INDICATORS = """
# features of which counts only whether they are missing: 1 if they are, else 0
INDICATORS = {names!r}
"""
PRESENT = """\
        elif name in INDICATORS:
            value = 0.0
"""


def python(model: LinearModel, options: Options) -> Product:
    """A module with ``score`` and ``rank``, whose scores are the model's to the last bit."""
    model = exportable(model, "a Python function of one document", indicators=True)
    names, about = names_read(model), model.preparation.missing.indicators
    names = engine_names(names, options.names, ANY_NAME, "Python")
    centre, scale = columnwise(model)
    fills: list[float] | list[None] = fills_of(model) or [None] * len(model.terms)
    rows = zip(names, model.weights.tolist(), centre.tolist(), scale.tolist(), fills, strict=True)
    marked = [name for name, term in zip(names, model.terms, strict=True) if term.name in about]
    text = MODULE.substitute(
        name=options.name,
        version=__version__,
        intercept=repr(model.intercept),
        features="\n".join(f"    {name!r}: {tuple(numbers)!r}," for name, *numbers in rows),
        indicators=INDICATORS.format(names=marked) if marked else "",
        present=PRESENT if marked else "",
    )
    return Product({f"{options.name}.py": text})


WHOLE = NameRule(r"[^\ud800-\udfff]*", "half of a character is no text")


def json_model(model: LinearModel, options: Options) -> Product:
    """The file that :meth:`LinearModel.save` writes: everything, also what no engine can say."""
    engine_names(model.names, {}, WHOLE, "JSON", "rename it in the data")
    return Product({f"{options.name}.json": as_json(model.to_dict())})


FEATURE_ID = NameRule(r"[1-9][0-9]{0,8}", "RankLib numbers features from 1")


def ranklib(model: LinearModel, options: Options) -> Product:
    """One line of ``id:weight`` under the heading of Coordinate Ascent, the plain linear model.

    A feature's number is its column in the training data, from 1, unless ``names`` gives another. Scores lack
    the constant of intercept and normalisation, which the format cannot hold.
    """
    model = exportable(model, "RankLib")
    warn_of_means(model, "RankLib")
    folded = model.folded()
    columns = {term.name: str(term.index + 1) for term in model.terms}
    numbers = engine_names(model.names, {**columns, **options.names}, FEATURE_ID, "RankLib")
    pairs = " ".join(f"{number}:{term.weight!r}" for number, term in zip(numbers, folded.terms, strict=True))
    text = f"## Coordinate Ascent\n## Exported by ranksieve {__version__}\n{pairs}\n"
    return Product({f"{options.name}.txt": text}, constant_left_out(folded.intercept, "RankLib's format"))
