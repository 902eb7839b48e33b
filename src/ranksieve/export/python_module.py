"""A Python module that needs nothing but Python."""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

from ranksieve._version import __version__
from ranksieve.export.base import (
    ANY_NAME,
    FILE_NAME,
    Options,
    Product,
    check_model_name,
    columnwise,
    engine_names,
    exportable,
    fills_of,
    names_read,
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
    check_model_name(FILE_NAME, options.name)
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
