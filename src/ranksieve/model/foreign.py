"""Models of other programs: detect the format of a model file and read it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve._types import PathLike
from ranksieve._util.files import decode_json
from ranksieve.errors import DataError
from ranksieve.model.boosted import BoostedModel, boosted_from_dict, is_boosted
from ranksieve.model.fastrank import is_fastrank, read_fastrank
from ranksieve.model.lightgbm_text import is_lightgbm, parse_lightgbm
from ranksieve.model.linear import LinearModel, model_from_dict
from ranksieve.model.ranklib import RANKLIB_PREFIX, read_ranklib
from ranksieve.model.score_functions import (
    BoosterModel,
    Linear,
    Scorer,
    WeightedSum,
    linear_model_from_weights,
)
from ranksieve.model.xgboost import parse_xgboost

BINARY_XGBOOST = 'is in the binary format of XGBoost; save the model as JSON with save_model("model.json")'


def read_lightgbm(text: str, name: str) -> BoosterModel:
    """Read a LightGBM model; scores are raw, without a link function."""
    try:
        model = parse_lightgbm(text)
    except ValueError as error:
        raise DataError(name, None, f"damaged LightGBM model ({error})") from None
    unnamed = model.names == tuple(f"Column_{j}" for j in range(len(model.names)))
    return BoosterModel(
        WeightedSum.plain(model.trees),
        f"LightGBM {model.objective}".strip(),
        len(model.names),
        names=() if unnamed else model.names,
        dtype=np.float64,
    )


def is_xgboost(content: Any) -> bool:
    """Whether a JSON value looks like an XGBoost model."""
    return isinstance(content, dict) and "learner" in content


def read_xgboost(content: Any, name: str, feature_names: Sequence[str] | None) -> Scorer:
    """Read an XGBoost model; scores are raw, without a link function.

    Trees are summed in float32, as in XGBoost. If training stopped early, only the trees up to the
    best iteration are used.
    """
    try:
        model = parse_xgboost(content)
    except ValueError as error:
        raise DataError(name, None, f"damaged XGBoost model ({error})") from None
    unnamed = model.names == tuple(f"f{j}" for j in range(len(model.names)))
    names, method = () if unnamed else model.names, f"XGBoost {model.objective}"
    if isinstance(model.function, Linear):
        return linear_model_from_weights(
            model.function.weight, method, names or feature_names, model.intercept
        )
    return BoosterModel(model.function, method, model.n_features, names=names)


def read_model(
    path: PathLike, feature_names: Sequence[str] | None = None, first_feature: int | None = None
) -> Scorer:
    """Read a model of ranksieve, RankLib, fastrank, LightGBM or XGBoost; the format is detected.

    Models of ranksieve are a :class:`LinearModel` or a :class:`BoostedModel`. Linear models of other programs
    become a :class:`LinearModel`, trees and networks a :class:`ForeignModel`. All have ``predict``.

    Parameters
    ----------
    path : path
        A ranksieve model (JSON), a RankLib model (text that begins with ``## Coordinate Ascent`` or the name
        of another ranker), a fastrank model (JSON), or a model saved by LightGBM (text) or XGBoost (JSON).
    feature_names : sequence of str, optional
        Names of the columns, for models that only number them; default f1, f2, …
    first_feature : int, optional
        Number of the first column in a fastrank model: 1 if it was trained on a LETOR file, 0 if on arrays;
        required if it cannot be inferred from the model.
    """
    return open_model(path).read(feature_names, first_feature)


@dataclass(frozen=True)
class ModelFile:
    """A model file of known format, before its columns are named.

    ``content`` is the text of a RankLib or LightGBM model, or a JSON value.
    """

    name: str
    content: Any

    @cached_property
    def ranksieve_model(self) -> LinearModel | BoostedModel | None:
        """The model if ranksieve wrote it, else None."""
        if isinstance(self.content, str) or is_fastrank(self.content) or is_xgboost(self.content):
            return None
        if is_boosted(self.content):
            return boosted_from_dict(self.content, self.name)
        return model_from_dict(self.content, self.name)

    def read(self, feature_names: Sequence[str] | None, first_feature: int | None) -> Scorer:
        """Read the model; ``feature_names`` are the columns of the data."""
        if is_xgboost(self.content):
            return read_xgboost(self.content, self.name, feature_names)
        if not isinstance(self.content, str):
            return self.ranksieve_model or self._fastrank(feature_names, first_feature)
        if is_lightgbm(self.content):
            return read_lightgbm(self.content, self.name)
        return read_ranklib(self.content, self.name, feature_names)

    def _fastrank(self, feature_names: Sequence[str] | None, first_feature: int | None) -> Scorer:
        try:
            return read_fastrank(self.content, feature_names, first_feature)
        except DataError as error:
            raise error.at(self.name) from None
        except RecursionError:
            raise DataError(self.name, None, "the fastrank model is nested too deeply") from None


def open_model(path: PathLike) -> ModelFile:
    """Read a model file and detect its format from its first bytes."""
    name = os.fspath(path)
    content = Path(path).read_bytes()
    if content[:1] == b"{" and b"learner" in content[:32] and content[1:2] in b"iUIlL":
        raise DataError(name, None, BINARY_XGBOOST)
    try:
        text = content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        if text.startswith(RANKLIB_PREFIX) or is_lightgbm(text):
            return ModelFile(name, text)
        return ModelFile(name, decode_json(text))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        reason = (
            f"not a model file (damaged JSON: {error}); expected a model of ranksieve, fastrank, LightGBM or "
            "XGBoost, or RankLib text that begins with ##"
        )
        raise DataError(name, None, reason) from None
