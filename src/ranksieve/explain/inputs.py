"""What a linear model multiplies its weights with, and what it was before the model prepared it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import dense_block
from ranksieve.data.naming import document_words
from ranksieve.errors import DataError, ParameterError
from ranksieve.model import FittedRanker, LinearModel, linear_model
from ranksieve.preparation import NOT_NORMALISED


@dataclass(frozen=True, eq=False)
class Inputs:
    """Documents × features in use: as logged (NaN where missing), with missing values filled, normalised."""

    logged: FloatArray
    filled: FloatArray
    values: FloatArray


def all_inputs(model: LinearModel, data: Dataset) -> Inputs:
    """The three stages; an indicator is logged as what it is filled with, 0 or 1."""
    values = inputs(model, data)
    matrix, columns = model._located(data)
    unscaled = replace(model, preparation=replace(model.preparation, normalisation=NOT_NORMALISED))
    filled = unscaled.inputs(data)
    logged = np.array(dense_block(matrix, slice(None), columns), dtype=np.float64)
    about = np.isin(model.names, list(model.preparation.missing.indicators))
    return Inputs(np.where(about, filled, logged), filled, values)


def inputs(model: LinearModel, data: Dataset) -> FloatArray:
    """What the weights multiply: rows × features in use, as the model sees them; all of it finite."""
    values = model.inputs(data)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = (int(place) for place in bad[0])
        place = f"feature {model.names[column]} of {document_words(data, row)} is {values[row, column]}"
        raise DataError(None, None, f"{place}; fill missing values or rescale the feature")
    return values


def explainable(given: LinearModel | FittedRanker) -> LinearModel:
    """A linear model with features, or that of a fitted ranker."""
    model = linear_model(given, "so its scores are no sum over features to explain")
    if not model.terms:
        raise ParameterError("model", given, "must use at least one feature")
    return model
