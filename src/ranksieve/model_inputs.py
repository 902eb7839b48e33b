"""What models read: the columns in use, found by name or place, and prepared."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset
from ranksieve.data.inputs import as_matrix, frame_columns, frame_names, is_frame, names_advice
from ranksieve.data.matrix import dense_block, value_blocks
from ranksieve.data.queries import Queries, group_queries, one_query
from ranksieve.errors import DataError, ParameterError
from ranksieve.preparation import MissingPolicy, Preparation

ROWS_AT_ONCE = 8192
Prepare = Callable[[FloatArray], FloatArray]


class ModelInputs:
    """A model of some features: their names, their columns in the training data, how they are prepared.

    The column of an indicator is that of the feature whose absence it tells.
    """

    n_features: int
    preparation: Preparation

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the features in use."""

    @property
    @abstractmethod
    def columns(self) -> list[int]:
        """Columns of the features in use in the training data, from 0."""

    @property
    def per_query(self) -> bool:
        """Whether a score depends on the other documents of the query."""
        return self.preparation.per_query

    @property
    def missing(self) -> MissingPolicy | None:
        """What replaces missing features; None if nothing does and they are not refused either."""
        return None if self.preparation.missing.policy == "keep" else self.preparation.missing

    def inputs(self, X: Dataset | Matrix, qid: Any = None) -> FloatArray:
        """What a score is made of: one row per document, one column per feature in use, prepared."""
        matrix, columns = self._located(X)
        prepare, _ = self._prepare(X, qid, matrix.shape[0])
        values = dense_block(matrix, slice(None), columns)
        return values if prepare is None else prepare(values)

    def _located(self, X: Dataset | Matrix) -> tuple[Matrix, IntArray]:
        if is_frame(X):  # what the other columns hold does not matter
            names = frame_names(X)
            places = self._places(len(names), names)
            return frame_columns(X, places), np.arange(len(places))
        matrix = X.X if isinstance(X, Dataset) else as_matrix(X)[0]
        return matrix, self._places(matrix.shape[1], X.feature_names if isinstance(X, Dataset) else None)

    def _prepare(self, X: Any, qid: Any, n_rows: int) -> tuple[Prepare | None, int]:
        """What is done to the values before they are scored, and to how many rows at a time."""
        if not (self.names and self.preparation.changes_features):
            return None, ROWS_AT_ONCE
        if self.per_query:
            queries = self._queries(X, qid, n_rows)
            return lambda values: self.preparation.transform(values, queries), n_rows
        return lambda values: self.preparation.transform(values, one_query(len(values))), ROWS_AT_ONCE

    def _queries(self, X: Any, qid: Any, n_rows: int) -> Queries:
        if isinstance(X, Dataset):
            return X.queries
        if qid is None:
            reason = (
                "is needed, because the model prepares features within each query; give one query id per "
                "row, or a Dataset"
            )
            raise ParameterError("qid", None, reason)
        queries = group_queries(qid)
        if queries.n_rows != n_rows:
            raise ParameterError("qid", qid, f"has {queries.n_rows} entries, but X has {n_rows} rows")
        return queries

    def _refuse_missing(self, scores: FloatArray, matrix: Matrix, columns: IntArray) -> None:
        for row in np.flatnonzero(np.isnan(scores)):
            holes = np.flatnonzero(np.isnan(dense_block(matrix, slice(row, row + 1), columns)[0]))
            if len(holes):
                reason = (
                    f"feature {self.names[holes[0]]} of row {row} is missing, and the model has no value for "
                    "it, because none was missing in training or it was fitted with `missing='error'`; fill "
                    "missing values first, or fit with `missing='column_mean'`, `missing='zero'` or "
                    "`missing='query_min'`"
                )
                raise DataError(None, None, reason)

    def _places(self, width: int, names: Sequence[str] | None) -> IntArray:
        if not self.names:
            return np.empty(0, dtype=np.int64)
        if names is None:
            if width != self.n_features:
                raise DataError(
                    None, None, f"the model was trained on {self.n_features} features, but X has {width}"
                )
            return np.array(self.columns)
        place = {name: column for column, name in enumerate(names)}
        about = self.preparation.missing.indicators
        read = [about.get(name, name) for name in self.names]
        missing = [name for name in dict.fromkeys(read) if name not in place]
        if missing:
            reason = (
                f"the data lack {len(missing)} of the model's features: "
                f"{', '.join(missing[:10])}{names_advice(names, missing)}"
            )
            raise DataError(None, None, reason)
        return np.array([place[name] for name in read])


def input_blocks(
    X: Matrix, columns: IntArray, prepare: Prepare | None, rows_at_once: int
) -> Iterator[tuple[slice, AnyArray, IntArray]]:
    """Some rows at a time: which, an array with their prepared values, and where in it the columns are."""
    own = prepare is not None
    for rows, values, places in value_blocks(X, columns, rows_at_once, own):
        yield rows, values if prepare is None else prepare(values), places
