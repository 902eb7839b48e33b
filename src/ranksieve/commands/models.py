"""Models of any origin and the data that they shall score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.commands.files import read_data, widen
from ranksieve.data.dataset import Dataset
from ranksieve.foreign import Scorer, open_model
from ranksieve.model import LinearModel
from ranksieve.preparation import KEPT

STARTS = (b"##", b"{")  # of models; a file of scores begins with a number


def is_model(file: str) -> bool:
    """Whether a file is a model rather than a list of scores, by its name or first bytes."""
    if file.endswith(".json"):
        return True
    try:
        with open(file, "rb") as content:
            return content.read(2).startswith(STARTS)
    except OSError:
        return False


def read_with_models(
    data_file: str, model_files: Sequence[str], missing: str | None, first_feature: int | None
) -> tuple[Dataset, dict[str, Scorer]]:
    """Data wide enough for all models, and the models, with columns of others' models named by the data."""
    files = {file: open_model(file) for file in model_files}
    own = [file.own for file in files.values()]
    fills = any(model is None or (model.missing is not None and model.missing.fills) for model in own)
    data = read_data(data_file, missing or ("keep" if fills else "error"))
    models = {name: file.read(data.feature_names, first_feature) for name, file in files.items()}
    data = widen(data, max(model.n_features for model in models.values()))
    return data, {name: _as_asked(model, missing) for name, model in models.items()}


def _as_asked(model: Scorer, missing: str | None) -> Scorer:
    """A model without its own rule for missing values if another one was asked for."""
    if missing is None or not isinstance(model, LinearModel):
        return model
    return replace(model, preparation=replace(model.preparation, missing=KEPT))


def finite_scores(model: Scorer, data: Dataset) -> FloatArray:
    """Scores in row order; a row without one is refused."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores = model.predict(data)
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise ValueError(
            f"{data.source or 'the data'}: the score of document {bad[0] + 1} is {scores[bad[0]]}, because a "
            "feature in use is missing, infinite or too large; for missing ones choose --missing zero, "
            "query_min or column_mean"
        )
    return scores
