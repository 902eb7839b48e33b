"""Models of other programs: which one a file holds, and how to read it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, IntArray, Matrix, PathLike
from ranksieve._util.files import decode_json
from ranksieve._util.messages import how_to_install, shortened
from ranksieve.data.dataset import Dataset
from ranksieve.data.inputs import as_matrix, numbered_names
from ranksieve.data.matrix import value_blocks
from ranksieve.errors import DataError
from ranksieve.model.boosted import BoostedModel, boosted_from_dict, is_boosted
from ranksieve.model.fastrank import is_fastrank, read_fastrank
from ranksieve.model.lightgbm_text import booster_of, booster_scores, is_lightgbm, lightgbm_for, read_text
from ranksieve.model.linear import LinearModel, model_from_dict
from ranksieve.model.ranklib import HEADER, read_ranklib
from ranksieve.model.score_functions import SAME, Scorer
from ranksieve.model.xgboost import LENGTHS, decode_ubjson, read_content

CELLS_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class BoosterModel:
    """A model of LightGBM or XGBoost, which get the values as they are, NaN where one is missing.

    ``names`` are the features that it was trained on, empty if it does not name them. They are found by
    name in the data; where either has no names of its own, by position.
    """

    method: str
    n_features: int
    names: tuple[str, ...]
    scores: Callable[[FloatArray], FloatArray]
    missing: None = None
    chosen_by: None = None

    def predict(self, X: Dataset | Matrix, qid: Any = None) -> FloatArray:
        """Scores in row order."""
        matrix, names = (X.X, X.feature_names) if isinstance(X, Dataset) else as_matrix(X)
        columns = self._places(matrix.shape[1], names)
        scores, rows_at_once = np.empty(matrix.shape[0]), max(1, CELLS_AT_ONCE // max(1, len(columns)))
        for rows, values, _ in value_blocks(matrix, columns, rows_at_once, own=True):
            scores[rows] = self.scores(values)
        return scores

    def _places(self, width: int, given: Sequence[str] | None) -> IntArray:
        """The columns of the data that are the model's features, in its order."""
        place = {name.replace(" ", "_"): column for column, name in enumerate(given or ())}  # LightGBM's way
        place |= {name: column for column, name in enumerate(given or ())}
        lacking = [name for name in self.names if name not in place]
        if self.names and not lacking:
            return np.array([place[name] for name in self.names])
        if self.names and given is not None and tuple(given) != numbered_names(width):
            reason = (
                f"the data lack {len(lacking)} of the features of the {self.method} model: "
                f"{shortened(lacking, 10)}; give both the same feature names"
            )
            raise DataError(None, None, reason)
        if width != self.n_features:
            reason = (
                f"the {self.method} model was trained on {self.n_features} features, but the data have "
                f"{width}; {SAME}"
            )
            raise DataError(None, None, reason)
        return np.arange(width)


WHAT = "a LightGBM model"


def read_lightgbm(text: str, name: str) -> BoosterModel:
    """A LightGBM model; LightGBM itself computes the scores, before any link function."""
    try:
        checked = read_text(text)
    except ValueError as error:
        raise DataError(name, None, f"damaged LightGBM model ({error})") from None
    lightgbm_for(WHAT)

    @cache
    def booster() -> Any:
        return booster_of(checked.text, WHAT)

    def scores(values: FloatArray) -> FloatArray:
        return booster_scores(booster(), values)

    method = f"LightGBM {checked.objective}".strip()
    unnamed = checked.names == tuple(f"Column_{j}" for j in range(len(checked.names)))
    return BoosterModel(method, len(checked.names), () if unnamed else checked.names, scores)


KEY = "learner"
PLACE = r"^(\[.*?\] )?(\S+\.\w+:\d+: )?"  # in XGBoost's source, before what it says of an error


def is_ubjson(content: bytes) -> bool:
    """Whether bytes begin like XGBoost's binary model: { and the length of the first key."""
    return content[:1] == b"{" and content[1:2] in LENGTHS.encode() and KEY.encode() in content[:32]


def is_xgboost(content: Any) -> bool:
    """Whether a JSON value looks like a model of XGBoost."""
    return isinstance(content, dict) and KEY in content


def read_xgboost(content: Any, name: str) -> BoosterModel:
    """An XGBoost model, decoded or as UBJSON; XGBoost itself computes the scores, before any link function.

    It computes in float32. If training stopped early, the best iteration is the last that counts.
    """
    try:
        found = read_content(decode_ubjson(content) if isinstance(content, bytes) else content)
    except ValueError as error:
        raise DataError(name, None, f"damaged XGBoost model ({error})") from None
    try:
        xgboost = import_module("xgboost")
    except ImportError:
        raise ImportError(f"{name}: an XGBoost model needs xgboost: {how_to_install('xgboost')}") from None
    booster = xgboost.Booster()
    try:
        booster.load_model(bytearray(json.dumps(found.model).encode()))
    except xgboost.core.XGBoostError as error:
        reason = re.sub(PLACE, "", str(error).split("\n")[0])
        raise DataError(name, None, f"damaged XGBoost model ({reason})") from None

    def scores(values: FloatArray) -> FloatArray:
        rows, rounds = xgboost.DMatrix(values, missing=np.nan), (0, found.n_rounds)
        margins = booster.predict(rows, output_margin=True, iteration_range=rounds, validate_features=False)
        return np.asarray(margins, dtype=np.float64)

    unnamed = found.names == tuple(f"f{j}" for j in range(len(found.names)))
    names = () if unnamed else found.names
    return BoosterModel(f"XGBoost {found.objective}", found.n_features, names, scores)


def read_model(
    path: PathLike, feature_names: Sequence[str] | None = None, first_feature: int | None = None
) -> Scorer:
    """Read a model of this package, of RankLib, fastrank, LightGBM or XGBoost, whichever the file holds.

    Our own are a :class:`LinearModel` or a :class:`BoostedModel`. Others' linear models become a
    :class:`LinearModel`, those of trees and networks a :class:`ForeignModel` or, where LightGBM or XGBoost
    computes the scores, a :class:`BoosterModel`; all have ``predict``.

    Parameters
    ----------
    path : path
        A model file of ours (JSON), a RankLib model (text that begins with ``## Coordinate Ascent`` or the
        name of another ranker), a fastrank model (JSON), or a model that LightGBM (text) or XGBoost (JSON or
        UBJSON) saved; the last two need the package lightgbm or xgboost.
    feature_names : sequence of str, optional
        The names of the columns that others' models know by number only; default f1, f2, …
    first_feature : int, optional
        The number of the first column in a fastrank model: 1 if it was trained on a LETOR file, 0 if on
        arrays; needed where the model does not show it.
    """
    return open_model(path).read(feature_names, first_feature)


@dataclass(frozen=True)
class ModelFile:
    """A model file whose format is known but whose columns have no names yet.

    ``content`` is text of RankLib or LightGBM, UBJSON of XGBoost, or a JSON value.
    """

    name: str
    content: Any

    @cached_property
    def own(self) -> LinearModel | BoostedModel | None:
        """The model if it is one of ours, which knows its columns by name."""
        if isinstance(self.content, str | bytes) or is_fastrank(self.content) or is_xgboost(self.content):
            return None
        if is_boosted(self.content):
            return boosted_from_dict(self.content, self.name)
        return model_from_dict(self.content, self.name)

    def read(self, feature_names: Sequence[str] | None, first_feature: int | None) -> Scorer:
        """The model, for columns of these names."""
        if isinstance(self.content, bytes) or is_xgboost(self.content):
            return read_xgboost(self.content, self.name)
        if not isinstance(self.content, str):
            return self.own or self._fastrank(feature_names, first_feature)
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
    """Recognise a model file by how it begins."""
    name = os.fspath(path)
    content = Path(path).read_bytes()
    if is_ubjson(content):
        return ModelFile(name, content)
    try:
        text = content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        if text.startswith(HEADER) or is_lightgbm(text):
            return ModelFile(name, text)
        return ModelFile(name, decode_json(text))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        reason = (
            f"not a model file (damaged JSON: {error}); expected a model of ranksieve, fastrank, LightGBM or "
            "XGBoost, or RankLib text that begins with ##"
        )
        raise DataError(name, None, reason) from None
