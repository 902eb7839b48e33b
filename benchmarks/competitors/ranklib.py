"""RankLib: coordinate ascent (ranker 4) and LambdaMART (ranker 6)."""

from __future__ import annotations

import re
import shutil
from typing import Any

from benchmarks.competitors.base import FittedRanker
from benchmarks.competitors.programs import Program, run
from ranksieve.data.dataset import Dataset


class RankLib(Program):
    """RANKSIEVE_RANKLIB: path of the jar. Models are read by `ranksieve.model.foreign`."""

    licence, variable = "BSD", "RANKSIEVE_RANKLIB"
    ranker: int

    def unavailable_reason(self) -> str:
        return super().unavailable_reason() or ("" if shutil.which("java") else "java is not installed")

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        from ranksieve.model.foreign import read_model

        model = self.folder / "model"
        options = [part for name, value in point.items() for part in (f"-{name}", value)]
        run(
            "java", "-jar", self.program, "-train", self.file_of(train), "-validate", self.file_of(valid),
            "-ranker", self.ranker, "-metric2t", "NDCG@10", "-save", model, *options,
        )  # fmt: skip
        return FittedRanker(read_model(model).predict, features_of(model.read_text()))


class RankLibLinear(RankLib):
    name, title, ranker = "ranklib-linear", "RankLib coordinate ascent", 4
    grid = ({"r": 2, "i": 10}, {"r": 5, "i": 25})


class RankLibTrees(RankLib):
    """LambdaMART with early stopping on the validation file."""

    name, title, ranker = "ranklib-trees", "RankLib LambdaMART", 6
    grid = ({"tree": 200, "leaf": 7}, {"tree": 200, "leaf": 10})


def features_of(model: str) -> int:
    """Number of features in splits (``<feature> 3 </feature>``), or with a weight (``3:0.5``)."""
    splits = re.findall(r"<feature>\s*(\d+)\s*</feature>", model)
    weights = [number for number, value in re.findall(r"\b(\d+):(\S+)", model) if float(value)]
    return len(set(splits or weights))
