"""A Python module that needs nothing but Python."""

from __future__ import annotations

from string import Template

from ranksieve._version import __version__
from ranksieve.export.base import (
    ANY_NAME,
    FILE_NAME,
    Options,
    Product,
    check_exportable,
    check_model_name,
    columnwise,
    engine_names,
)
from ranksieve.model import LinearModel

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


def score(features: Mapping[str, float]) -> float:
    """The score of a document with these values; the higher, the better."""
    total = 0.0
    for name, (weight, centre, scale, default) in FEATURES.items():
        value = features.get(name)
        if value is None or isnan(value):
            if default is None:
                raise ValueError(f"feature {name!r} is missing")
            value = default
        total += weight * ((value - centre) / scale)
    return total + INTERCEPT


def rank(documents: Iterable[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """Documents, best first; equal scores keep their order."""
    return sorted(documents, key=score, reverse=True)
''')


def python(model: LinearModel, options: Options) -> Product:
    """A module with ``score`` and ``rank``, whose scores are the model's to the last bit."""
    check_model_name(FILE_NAME, options.name)
    check_exportable(model, "a Python function of one document")
    names = engine_names(model.names, options.names, ANY_NAME, "Python")
    centre, scale = columnwise(model)
    rows = zip(names, model.weights.tolist(), centre.tolist(), scale.tolist(), _defaults(model), strict=True)
    text = MODULE.substitute(
        name=options.name,
        version=__version__,
        intercept=repr(model.intercept),
        features="\n".join(f"    {name!r}: {tuple(numbers)!r}," for name, *numbers in rows),
    )
    return Product({f"{options.name}.py": text})


def _defaults(model: LinearModel) -> list[float | None]:
    policy = model.preparation.missing
    if not policy.fills:
        return [None] * len(model.terms)
    return list(policy.means) if policy.learns else [0.0] * len(model.terms)
