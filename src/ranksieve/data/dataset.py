"""Dataset: features, labels and query ids of judged documents, with texts and weights."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, TypeAlias, overload

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.features import column_indices
from ranksieve.data.inputs import (
    MAGNITUDES,
    as_document_weight,
    as_labels,
    as_matrix,
    check_length,
    checked_names,
    numbered_names,
    out_of_range,
)
from ranksieve.data.matrix import (
    buffers,
    first_not_finite,
    is_sparse,
    is_streamed,
    pad_columns,
    stack,
    take_matrix_rows,
)
from ranksieve.data.parts import map_parts
from ranksieve.data.queries import (
    Queries,
    as_id_array,
    group_queries,
    local_levels,
    pair_weights,
    pairs_per_query,
)
from ranksieve.errors import DataError, ParameterError, short_list, warn_caller


class TextColumn(Sequence[str]):
    """Strings in one block of UTF-8: entry i is ``block[begins[i]:ends[i]]``, decoded on access."""

    __slots__ = ("begins", "block", "ends")

    def __init__(self, block: AnyArray, begins: IntArray, ends: IntArray) -> None:
        self.block = block
        self.begins = begins
        self.ends = ends

    @classmethod
    def of(cls, texts: Sequence[str]) -> TextColumn:
        """Encode strings into a new block."""
        parts = [text.encode("utf-8", errors="surrogateescape") for text in texts]
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        block = np.frombuffer(b"".join(parts), dtype=np.uint8)
        return cls(block, np.concatenate(([0], ends[:-1])), ends)

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice | AnyArray) -> TextColumn: ...
    def __getitem__(self, index: int | slice | AnyArray) -> str | TextColumn:
        if isinstance(index, slice) or np.ndim(index) > 0:
            return TextColumn(self.block, self.begins[index], self.ends[index])
        return self.raw(int(index)).decode("utf-8", errors="replace")

    def raw(self, row: int) -> bytes:
        """Undecoded bytes of one entry."""
        return self.block[self.begins[row] : self.ends[row]].tobytes()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(repr(text) for text in self[:3])
        return f"TextColumn([{shown}{', …' if len(self) > 3 else ''}], {len(self)} strings)"


FINGERPRINT_DIGITS = 16
ALL_ROWS = slice(None)
MISSING_ADVICE = "choose `missing='zero'`, `missing='query_min'` or `missing='column_mean'`, or fill it"


class Dataset:
    """Judged documents: ``X`` (n × d), graded labels ``y`` and query ids ``qid``.

    Rows keep their order. ``X`` may be dense float32/float64 (also memory-mapped) or any scipy sparse matrix
    (stored as CSR); other numeric types are converted to float64. Missing values are NaN; the parameter
    ``missing`` of a ranker says how to replace them.

    Parameters
    ----------
    X : array, sparse matrix, or pandas/polars/arrow frame
        One row per document.
    y : array
        Graded relevance, one finite number per row.
    qid : array or sequence of hashables
        Query id of each row, of any type, in any order.
    feature_names : sequence of str, optional
        Column names; default those of the frame, or ``f1, f2, …``.
    doc_ids : sequence, optional
        Document ids, one per row.
    comments : sequence of str, optional
        The text after ``#`` on each line of a LETOR file.
    truth : array, optional
        True weights of synthetic data.
    source : str, optional
        File that the data were read from.
    profile : str, optional
        Metric conventions of the data, such as "letor" for LETOR's folds: the default for all metrics.
    texts : mapping of str to sequences of str, optional
        Text columns by name, such as the query or the title: one entry per row, shown next to documents.
    document_weight : array, optional
        Weight of each document in losses, ≥ 0: 2 counts as two documents, 0 as none.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        qid: Sequence[Hashable] | AnyArray,
        feature_names: Sequence[str] | None = None,
        doc_ids: Sequence[Any] | None = None,
        *,
        comments: Sequence[str] | None = None,
        truth: AnyArray | None = None,
        source: str | None = None,
        profile: str | None = None,
        texts: Mapping[str, Sequence[str]] | None = None,
        document_weight: Any = None,
    ) -> None:
        matrix, frame_names = as_matrix(X)
        self.X: Matrix = matrix
        self.y: FloatArray = as_labels(y, matrix.shape[0])
        self.qid: AnyArray = as_id_array(qid)
        check_length("qid", self.qid, matrix.shape[0])
        self.feature_names: tuple[str, ...] = checked_names(
            frame_names if feature_names is None else feature_names, matrix.shape[1]
        )
        self.doc_ids = doc_ids
        self.comments = comments
        self.truth = truth
        self.source = source
        self.profile = profile
        self.texts: dict[str, Sequence[str]] = dict(texts or {})
        self.document_weight: FloatArray | None = as_document_weight(document_weight, matrix.shape[0])
        for name, rows in (("doc_ids", doc_ids), ("comments", comments), *self.texts.items()):
            if rows is not None:
                check_length(name, rows, matrix.shape[0])

    @cached_property
    def queries(self) -> Queries:
        """Rows grouped by query."""
        return group_queries(self.qid)

    @cached_property
    def pairs_per_query(self) -> IntArray:
        """Number of pairs (i, j) with y_i > y_j of each query."""
        return pairs_per_query(local_levels(self.queries.group(self.y), self.queries), self.queries)

    @property
    def pair_weights(self) -> FloatArray:
        """Σ weight_i·weight_j over the pairs of each query, with the document weights."""
        if self.document_weight is None:
            return self.pairs_per_query.astype(np.float64)
        levels = local_levels(self.queries.group(self.y), self.queries)
        return pair_weights(levels, self.queries, self.queries.group(self.document_weight))

    def row_weights(self, query_weight: FloatArray | None = None) -> FloatArray:
        """Weight of each row: document weight × query weight (default 1 each)."""
        of_query = np.ones(self.n_docs) if query_weight is None else self.queries.of_rows(query_weight)
        return of_query if self.document_weight is None else of_query * self.document_weight

    @property
    def n_docs(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_queries(self) -> int:
        return self.queries.n_queries

    @property
    def query_sizes(self) -> IntArray:
        """Documents per query."""
        return self.queries.sizes

    @property
    def query_ids(self) -> AnyArray:
        """One id per query, in order of first appearance."""
        return self.queries.ids

    def __len__(self) -> int:
        return self.n_docs

    def __repr__(self) -> str:
        kind = "sparse" if is_sparse(self.X) else "on disk" if is_streamed(self.X) else "dense"
        return (
            f"Dataset({self.n_docs} documents, {self.n_queries} queries, "
            f"{self.n_features} features, {kind} {self.X.dtype})"
        )

    def replace_features(self, X: Matrix, feature_names: Sequence[str] | None = None) -> Dataset:
        """Same rows with another feature matrix; ``truth`` is dropped if the number of features differs."""
        truth = self.truth if X.shape[1] == self.n_features else None
        return Dataset(
            X, self.y, self.qid, feature_names or self.feature_names, self.doc_ids,
            truth=truth, **self._other_fields(),
        )  # fmt: skip

    def select_features(self, columns: Any) -> Dataset:
        """Same rows with the chosen columns, in this order: indices (from 0), names, or a mask."""
        columns = self._columns(columns)
        return self.replace_features(self.X[:, columns], [self.feature_names[j] for j in columns])

    def _columns(self, columns: Any) -> IntArray:
        if isinstance(columns, str):
            columns = [columns]
        index, n = np.asarray(columns), self.n_features
        if index.dtype == bool and index.shape == (n,):
            return np.flatnonzero(index)
        if index.dtype.kind in "iu" and index.ndim == 1 and ((index >= -n) & (index < n)).all():
            return index
        return column_indices(list(columns), self.feature_names, "columns")

    def widened(self, n_features: int) -> Dataset:
        """Append columns of zeros up to ``n_features``: a feature absent from LETOR text is 0."""
        if self.n_features == n_features:
            return self
        return self.replace_features(pad_columns(self.X, n_features), numbered_names(n_features))

    def select_rows(self, rows: IntArray | BoolArray) -> Dataset:
        """Chosen rows (indices or a mask), in this order."""
        index: IntArray = (
            np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows, np.int64)
        )
        if len(index) == 0:
            raise ParameterError("rows", rows, "must choose at least one row")
        return Dataset(
            take_matrix_rows(self.X, index), self.y[index], self.qid[index], self.feature_names,
            take_rows(self.doc_ids, index),
            truth=self.truth, **self._other_fields(index),
        )  # fmt: skip

    def without_zero_weights(self) -> tuple[Dataset, IntArray]:
        """Documents with positive weight, and the indices of the queries that have any.

        If all weights are 0, the data are returned unchanged.
        """
        weight = self.document_weight
        if weight is None or weight.all() or not weight.any():
            return self, np.arange(self.n_queries)
        rows = np.flatnonzero(weight)
        present = self._select_grouped(rows)
        first = present.queries.order[present.queries.offsets[:-1]]  # first row of each query
        return present, self.queries.of_rows(np.arange(self.n_queries))[rows[first]]

    def _select_grouped(self, rows: IntArray) -> Dataset:
        """Chosen rows, those of a query together; data on disk may stay on disk."""
        return self.select_rows(rows)

    def _other_fields(self, rows: IntArray | slice = ALL_ROWS) -> dict[str, Any]:
        """Constructor arguments for these rows, other than features, labels and ids."""
        return {
            "comments": take_rows(self.comments, rows),
            "texts": {name: take_rows(column, rows) for name, column in self.texts.items()},
            "document_weight": take_rows(self.document_weight, rows),
            "source": self.source,
            "profile": self.profile,
        }

    def select_queries(self, queries: IntArray | BoolArray) -> Dataset:
        """Rows of the chosen queries (indices in order of first appearance, or a mask)."""
        return self.select_rows(self.queries.rows(queries))

    def in_query_order(self, queries: IntArray) -> Dataset:
        """Rows of the chosen queries, query after query in this order."""
        return self.select_rows(np.concatenate([self.queries.rows_of(q) for q in queries.tolist()]))

    def joined(self, other: Dataset) -> Dataset:
        """Rows of both data sets, which have the same features; equal query ids stay different queries."""
        shared = set(self.queries.ids.tolist()) & set(other.queries.ids.tolist())
        ids = [self.qid, other.qid]
        if shared or self.qid.dtype != other.qid.dtype:
            ids = [data.queries.of_rows(np.arange(data.n_queries)) for data in (self, other)]
            ids[1] = ids[1] + self.n_queries
        weight = None
        if self.document_weight is not None or other.document_weight is not None:
            weight = np.concatenate([self.row_weights(), other.row_weights()])
        return Dataset(
            stack([self.X, other.X]), np.concatenate([self.y, other.y]), np.concatenate(ids),
            self.feature_names, profile=self.profile, document_weight=weight,
        )  # fmt: skip


def take_rows(values: Any, index: IntArray | slice) -> Any:
    """Entries of a column that has one entry per row; None stays None."""
    if values is None or (isinstance(index, slice) and index == ALL_ROWS):
        return values
    if isinstance(values, np.ndarray | TextColumn):
        return values[index]
    return values[index] if isinstance(index, slice) else [values[i] for i in index]


def check_finite(data: Dataset, allow_missing: bool = False) -> None:
    """Raise DataError for the first infinite (or, unless allowed, missing) feature value."""
    map_parts(data, partial(_check_finite, allow_missing=allow_missing))


def _check_finite(data: Dataset, allow_missing: bool) -> None:
    position = first_not_finite(data.X, allow_missing)
    if position is None:
        return
    value, (row, column) = data.X[position], position
    problem, advice = f"{value}", "features must be finite"
    if np.isnan(value):
        problem, advice = "missing (NaN)", MISSING_ADVICE
    reason = (
        f"feature {data.feature_names[column]} of row {row} (query {data.qid[row]}) is {problem}; {advice}"
    )
    raise DataError(None, None, reason)


def fingerprint(data: Dataset) -> str:
    """Hash of shape, features, labels, query boundaries and document weights.

    For data in several parts it is a hash of their hashes, so it depends on how the data are split.
    """
    digests = map_parts(data, _fingerprint)
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:FINGERPRINT_DIGITS]


def _fingerprint(data: Dataset) -> str:
    digest = hashlib.sha256(repr((data.X.shape, str(data.X.dtype), data.feature_names)).encode())
    for part in buffers(data.X):
        digest.update(part.data)
    for rows in (data.y, data.queries.order, data.queries.offsets):
        digest.update(np.ascontiguousarray(rows).data)
    if data.document_weight is not None:
        digest.update(np.ascontiguousarray(data.document_weight).data)
    return digest.hexdigest()[:FINGERPRINT_DIGITS]


def fingerprint_of_weights(weights: FloatArray) -> str:
    """Hash of an array of numbers."""
    numbers = np.ascontiguousarray(weights, dtype=np.float64)
    return hashlib.sha256(numbers.data).hexdigest()[:FINGERPRINT_DIGITS]


QueryWeight: TypeAlias = FloatArray | Mapping[Any, float]
"""One weight per query in order of first appearance, or a mapping from query id to weight (default 1)."""

MAX_SHOWN_QUERIES = 5


def query_weights(weight: QueryWeight | None, data: Dataset) -> FloatArray | None:
    """One finite weight ≥ 0 per query of the data; None stays None.

    A mapping may also use the text of the query ids, as files do.
    """
    if weight is None:
        return None
    if isinstance(weight, Mapping):
        weight = _by_id(weight, data.query_ids)
    return checked_query_weight(weight, data.n_queries)


def _by_id(weight: Mapping[Any, float], ids: AnyArray) -> FloatArray:
    id_list = ids.tolist()
    index = {str(one): k for k, one in enumerate(id_list)} | {one: k for k, one in enumerate(id_list)}
    unknown = [repr(one) for one in weight if one not in index]
    if unknown:
        reason = (
            f"has {len(unknown)} queries that are not in the data: {short_list(unknown, MAX_SHOWN_QUERIES)}; "
            f"the first query of the data is {id_list[0]!r}"
        )
        raise ParameterError("query_weight", weight, reason)
    weights = np.ones(len(id_list))
    for one, value in weight.items():
        weights[index[one]] = value
    return weights


def checked_query_weight(weight: FloatArray | None, n_queries: int) -> FloatArray:
    """One finite weight ≥ 0 per query; default 1."""
    if weight is None:
        return np.ones(n_queries)
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n_queries,):
        reason = f"must have one weight for each of {n_queries} queries, got shape {weight.shape}"
        raise ParameterError("query_weight", weight, reason)
    if (extreme := out_of_range(weight)).any():
        raise ParameterError(
            "query_weight", weight, f"contains {weight[extreme][0]:g}; weights must be 0 or {MAGNITUDES}"
        )
    return weight


ZERO_WEIGHT_WARNING = 0.1  # share of documents with weight 0 from which a fit warns


def drop_zero_weight(
    data: Dataset, query_weight: FloatArray | None, warn: bool = False
) -> tuple[Dataset, FloatArray]:
    """Drop queries and documents with weight 0; also returns the weights of the remaining queries.

    If every query weight is 0, the data are returned unchanged, and the loss reports that there is no pair.
    """
    weight = np.ones(data.n_queries) if query_weight is None else np.asarray(query_weight, dtype=np.float64)
    used = weight > 0
    if not used.any():
        return data, weight
    queries = data if used.all() else data.select_queries(used)
    present, remaining = queries.without_zero_weights()
    if warn and present is not queries:
        _warn_of_zero_weight(queries.n_docs - present.n_docs, queries.n_docs)
    return present, weight[used][remaining]


def _warn_of_zero_weight(n_dropped: int, n_docs: int) -> None:
    if n_dropped >= ZERO_WEIGHT_WARNING * n_docs:
        warn_caller(
            f"{n_dropped} of {n_docs} training documents have weight 0 and are dropped from the fit and from "
            "the lists used for cross-validation; give every document that users see a positive weight, "
            "such as clicks + 1"
        )
