"""LightGBM's model files, as ``save_model`` writes them."""

from __future__ import annotations

from functools import cache
from typing import Any

from ranksieve._types import FloatArray
from ranksieve.boosted.lightgbm_text import booster_of, booster_scores, lightgbm_for, read_text
from ranksieve.errors import DataError
from ranksieve.foreign.boosters import BoosterModel

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
