"""XGBoost's model files, as ``save_model`` writes them: JSON or UBJSON with the key learner."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.messages import how_to_install
from ranksieve.errors import DataError
from ranksieve.foreign.boosters import BoosterModel
from ranksieve.foreign.ubjson import LENGTHS, decode_ubjson
from ranksieve.foreign.xgboost_content import read_content

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
