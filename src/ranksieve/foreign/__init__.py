"""Models of RankLib and fastrank, so that they can be evaluated and compared here."""

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
from ranksieve.foreign.fastrank import is_fastrank, read_fastrank
from ranksieve.foreign.model import ForeignModel, Scorer
from ranksieve.foreign.ranklib import HEADER, read_ranklib
from ranksieve.model import LinearModel, model_from_dict

__all__ = ["ForeignModel", "ModelFile", "Scorer", "open_model", "read_model"]


def read_model(
    path: PathLike, feature_names: Sequence[str] | None = None, first_feature: int | None = None
) -> Scorer:
    """Read a model of this package, of RankLib or of fastrank, whichever the file holds.

    Others' linear models become a :class:`LinearModel`, those of trees and networks a
    :class:`ForeignModel`; both have ``predict``.

    Parameters
    ----------
    path : path
        A model file of ours (JSON), a RankLib model (text that begins with ``## Coordinate Ascent`` or the
        name of another ranker) or a fastrank model (JSON).
    feature_names : sequence of str, optional
        The names of the columns that others' models know by number only; default f1, f2, …
    first_feature : int, optional
        The number of the first column in a fastrank model: 1 if it was trained on a LETOR file, 0 if on
        arrays; needed where the model does not show it.
    """
    return open_model(path).read(feature_names, first_feature)


@dataclass(frozen=True)
class ModelFile:
    """A model file whose format is known but whose columns have no names yet."""

    name: str
    content: Any

    @cached_property
    def own(self) -> LinearModel | None:
        """The model if it is one of ours, which knows its columns by name."""
        foreign = isinstance(self.content, str) or is_fastrank(self.content)
        return None if foreign else model_from_dict(self.content, self.name)

    def read(self, feature_names: Sequence[str] | None, first_feature: int | None) -> Scorer:
        """The model, for columns of these names."""
        if isinstance(self.content, str):
            return read_ranklib(self.content, self.name, feature_names)
        return self.own or read_fastrank(self.content, self.name, feature_names, first_feature)


def open_model(path: PathLike) -> ModelFile:
    """Recognise a model file: RankLib begins with ``##``, the others are JSON."""
    name = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
        return ModelFile(name, text if text.startswith(HEADER) else decode_json(text))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{name}: not a model file (damaged JSON: {error}); expected a model of ranksieve or fastrank, "
            "or RankLib text that begins with ##"
        ) from None
