"""RankLib's text format for linear models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranksieve._version import __version__
from ranksieve.export.base import (
    FILE_NAME,
    NameRule,
    Options,
    Product,
    check_model_name,
    constant_left_out,
    engine_names,
    exportable,
    warn_of_means,
)

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

FEATURE_ID = NameRule(r"[1-9][0-9]{0,8}", "RankLib numbers features from 1")


def ranklib(model: LinearModel, options: Options) -> Product:
    """One line of ``id:weight`` under the heading of Coordinate Ascent, the plain linear model.

    A feature's number is its column in the training data, from 1, unless ``names`` gives another. Scores lack
    the constant of intercept and normalisation, which the format cannot hold.
    """
    check_model_name(FILE_NAME, options.name)
    model = exportable(model, "RankLib")
    warn_of_means(model, "RankLib")
    folded = model.folded()
    columns = {term.name: str(term.index + 1) for term in model.terms}
    numbers = engine_names(model.names, {**columns, **options.names}, FEATURE_ID, "RankLib")
    pairs = " ".join(f"{number}:{term.weight!r}" for number, term in zip(numbers, folded.terms, strict=True))
    text = f"## Coordinate Ascent\n## Exported by ranksieve {__version__}\n{pairs}\n"
    return Product({f"{options.name}.txt": text}, constant_left_out(folded.intercept, "RankLib's format"))
