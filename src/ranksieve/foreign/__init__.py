"""Models of RankLib, fastrank, LightGBM and XGBoost, so that they can be evaluated and compared here."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ranksieve._types import PathLike
from ranksieve._util.json_values import decode_json
from ranksieve.boosted import BoostedModel, boosted_from_dict, is_boosted
from ranksieve.boosted.lightgbm_text import is_lightgbm
from ranksieve.errors import DataError
from ranksieve.foreign.boosters import BoosterModel
from ranksieve.foreign.fastrank import is_fastrank, read_fastrank
from ranksieve.foreign.lightgbm_model import read_lightgbm
from ranksieve.foreign.model import ForeignModel, Scorer
from ranksieve.foreign.ranklib import HEADER, read_ranklib
from ranksieve.foreign.xgboost_model import is_ubjson, is_xgboost, read_xgboost
from ranksieve.model import LinearModel, model_from_dict

__all__ = ["BoosterModel", "ForeignModel", "ModelFile", "Scorer", "open_model", "read_model"]


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
