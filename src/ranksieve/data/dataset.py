"""Dataset: features, labels and query ids of judged documents, with texts and weights."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, TypeAlias, overload

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.features import columns_named
from ranksieve.data.inputs import (
    ENDS,
    as_document_weight,
    as_labels,
    as_matrix,
    beyond,
    check_length,
    checked_names,
    numbered_names,
)
from ranksieve.data.matrix import (
    buffers,
    first_not_finite,
    is_sparse,
    is_streamed,
    stack,
    taken_rows,
    widened,
)
from ranksieve.data.parts import in_parts
from ranksieve.data.queries import (
    Queries,
    as_id_array,
    group_queries,
    local_levels,
    pair_weights,
    pairs_per_query,
)
from ranksieve.errors import DataError, ParameterError, shortened, warn_caller


class TextColumn(Sequence[str]):
    """Strings in one block of UTF-8: entry i is ``block[begins[i]:ends[i]]``, decoded when asked for."""

    __slots__ = ("begins", "block", "ends")

    def __init__(self, block: AnyArray, begins: IntArray, ends: IntArray) -> None:
        self.block = block
        self.begins = begins
        self.ends = ends

    @classmethod
    def of(cls, texts: Sequence[str]) -> TextColumn:
        """Strings in a block of their own."""
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
        """The undecoded bytes of one entry."""
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

    Rows keep the order they came in. ``X`` may be dense float32/float64 (also memory-mapped) or any scipy
    sparse matrix (kept as CSR); other numbers become float64. A missing value is NaN; rankers replace it as
    their parameter ``missing`` says.

    Parameters
    ----------
    X : array, sparse matrix, or pandas/polars/arrow frame
        One row per document.
    y : array
        Graded relevance, one finite number per row.
    qid : array or sequence of hashables
        Query id of each row, any kind, any order.
    feature_names : sequence of str, optional
        Column names; default ``f1, f2, …`` or the frame's own.
    doc_ids : sequence, optional
        Document ids, one per row.
    comments : sequence of str, optional
        The text after ``#`` on each line of a LETOR file.
    truth : array, optional
        The planted weights of synthetic data.
    source : str, optional
        The file that the data come from.
    profile : str, optional
        The metric conventions that the data come with, such as "letor" for LETOR's folds; what measures
        rankings follows them unless told otherwise.
    texts : mapping of str to sequences of str, optional
        Text columns by name, such as the query or the title: one entry per row, shown beside documents.
    document_weight : array, optional
        How much each document counts in losses, ≥ 0: with 2 like two documents, with 0 like none.
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
        """The rows grouped by query."""
        return group_queries(self.qid)

    @cached_property
    def pairs_per_query(self) -> IntArray:
        """How many pairs (i, j) with y_i > y_j each query has."""
        return pairs_per_query(local_levels(self.queries.group(self.y), self.queries), self.queries)

    @property
    def pair_weights(self) -> FloatArray:
        """Σ weight_i·weight_j over the pairs of each query, the weights being those of documents."""
        if self.document_weight is None:
            return self.pairs_per_query.astype(np.float64)
        levels = local_levels(self.queries.group(self.y), self.queries)
        return pair_weights(levels, self.queries, self.queries.group(self.document_weight))

    def row_weights(self, query_weight: FloatArray | None = None) -> FloatArray:
        """As how many rows each counts: its document's weight times that of its query (each 1 without)."""
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
        """The same rows with another feature matrix; planted weights stay if they still fit."""
        truth = self.truth if X.shape[1] == self.n_features else None
        return Dataset(
            X, self.y, self.qid, feature_names or self.feature_names, self.doc_ids,
            truth=truth, **self._beside_features(),
        )  # fmt: skip

    def select_features(self, columns: Any) -> Dataset:
        """The same rows with the chosen columns, in the order given: numbers from 0 on, names, or a mask."""
        columns = self._columns(columns)
        return self.replace_features(self.X[:, columns], [self.feature_names[j] for j in columns])

    def _columns(self, given: Any) -> IntArray:
        if isinstance(given, str):
            given = [given]
        found, n = np.asarray(given), self.n_features
        if found.dtype == bool and found.shape == (n,):
            return np.flatnonzero(found)
        if found.dtype.kind in "iu" and found.ndim == 1 and ((found >= -n) & (found < n)).all():
            return found
        return columns_named(list(given), self.feature_names, "columns")

    def widened(self, n_features: int) -> Dataset:
        """With columns of zeros up to ``n_features``, which is what an absent LETOR feature means."""
        if self.n_features == n_features:
            return self
        return self.replace_features(widened(self.X, n_features), numbered_names(n_features))

    def select_rows(self, rows: IntArray | BoolArray) -> Dataset:
        """The chosen rows, in the order given."""
        index: IntArray = (
            np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows, np.int64)
        )
        if len(index) == 0:
            raise ParameterError("rows", rows, "must choose at least one row")
        return Dataset(
            taken_rows(self.X, index), self.y[index], self.qid[index], self.feature_names,
            take_rows(self.doc_ids, index),
            truth=self.truth, **self._beside_features(index),
        )  # fmt: skip

    def without_weightless(self) -> tuple[Dataset, IntArray]:
        """The documents of positive weight, and the numbers of the queries that have one.

        If no document has, all of them.
        """
        weight = self.document_weight
        if weight is None or weight.all() or not weight.any():
            return self, np.arange(self.n_queries)
        rows = np.flatnonzero(weight)
        kept = self._kept(rows)
        first = kept.queries.order[kept.queries.offsets[:-1]]  # which of its rows is the first of each query
        return kept, self.queries.of_rows(np.arange(self.n_queries))[rows[first]]

    def _kept(self, rows: IntArray) -> Dataset:
        """Some of the rows, ascending, where the data are."""
        return self.select_rows(rows)

    def _beside_features(self, rows: IntArray | slice = ALL_ROWS) -> dict[str, Any]:
        """Arguments of another data set with these rows: what is known of them beside features and ids."""
        return {
            "comments": take_rows(self.comments, rows),
            "texts": {name: take_rows(column, rows) for name, column in self.texts.items()},
            "document_weight": take_rows(self.document_weight, rows),
            "source": self.source,
            "profile": self.profile,
        }

    def select_queries(self, queries: IntArray | BoolArray) -> Dataset:
        """The rows of the chosen queries (numbers in order of first appearance, or a mask)."""
        return self.select_rows(self.queries.rows(queries))

    def in_query_order(self, queries: IntArray) -> Dataset:
        """The rows of the chosen queries, query after query in the order given."""
        return self.select_rows(np.concatenate([self.queries.rows_of(q) for q in queries.tolist()]))

    def joined(self, other: Dataset) -> Dataset:
        """The rows of both, of the same features; queries of the other stay apart from those of this one."""
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
    """Some entries of a column that has one per row, if there is such a column."""
    if values is None or (isinstance(index, slice) and index == ALL_ROWS):
        return values
    if isinstance(values, np.ndarray | TextColumn):
        return values[index]
    return values[index] if isinstance(index, slice) else [values[i] for i in index]


def check_finite(data: Dataset, allow_missing: bool = False) -> None:
    """Refuse data with an infinite or, unless allowed, missing feature, naming the first."""
    in_parts(data, partial(_check_finite, allow_missing=allow_missing))


def _check_finite(data: Dataset, allow_missing: bool) -> None:
    place = first_not_finite(data.X, allow_missing)
    if place is None:
        return
    value, (row, column) = data.X[place], place
    what, advice = f"{value}", "features must be finite"
    if np.isnan(value):
        what, advice = "missing (NaN)", MISSING_ADVICE
    reason = f"feature {data.feature_names[column]} of row {row} (query {data.qid[row]}) is {what}; {advice}"
    raise DataError(None, None, reason)


def fingerprint(data: Dataset) -> str:
    """A short name for the exact content: of shape, features, labels, query boundaries and document weights.

    That of data in several parts is made of the names of the parts, so it tells them from the same rows in
    other parts.
    """
    names = in_parts(data, _fingerprint)
    if len(names) == 1:
        return names[0]
    return hashlib.sha256("".join(names).encode()).hexdigest()[:FINGERPRINT_DIGITS]


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
    """A short name for the exact content of an array of numbers."""
    numbers = np.ascontiguousarray(weights, dtype=np.float64)
    return hashlib.sha256(numbers.data).hexdigest()[:FINGERPRINT_DIGITS]


QueryWeight: TypeAlias = FloatArray | Mapping[Any, float]
"""One number per query in order of first appearance, or numbers by query id: queries not named weigh 1."""

NAMED = 5  # query ids in a message


def query_weights(weight: QueryWeight | None, data: Dataset) -> FloatArray | None:
    """One finite weight ≥ 0 per query of the data; None stays None.

    Ids that are text, as files have them, also name queries by the text of their ids.
    """
    if weight is None:
        return None
    if isinstance(weight, Mapping):
        weight = _by_id(weight, data.query_ids)
    return checked_query_weight(weight, data.n_queries)


def _by_id(weight: Mapping[Any, float], ids: AnyArray) -> FloatArray:
    known = ids.tolist()
    place = {str(one): k for k, one in enumerate(known)} | {one: k for k, one in enumerate(known)}
    unknown = [repr(one) for one in weight if one not in place]
    if unknown:
        reason = (
            f"names {len(unknown)} queries that the data do not have: {shortened(unknown, NAMED)}; the first "
            f"query of the data is {known[0]!r}"
        )
        raise ParameterError("query_weight", weight, reason)
    weights = np.ones(len(known))
    for one, value in weight.items():
        weights[place[one]] = value
    return weights


def checked_query_weight(weight: FloatArray | None, n_queries: int) -> FloatArray:
    """One finite weight ≥ 0 per query; ones if none are given."""
    if weight is None:
        return np.ones(n_queries)
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n_queries,):
        reason = f"must hold one weight for each of {n_queries} queries, got shape {weight.shape}"
        raise ParameterError("query_weight", weight, reason)
    if (extreme := beyond(weight)).any():
        raise ParameterError(
            "query_weight", weight, f"holds {weight[extreme][0]:g}; weights must be 0 or {ENDS}"
        )
    return weight


MANY = 0.1  # share of the documents with weight 0 from which a fit warns


def counted(data: Dataset, query_weight: FloatArray | None, warn: bool = False) -> tuple[Dataset, FloatArray]:
    """The queries and documents of positive weight, and the weights of these queries (1 without).

    If every weight is 0, the data come back unchanged, and the loss reports that there is no pair.
    """
    weight = np.ones(data.n_queries) if query_weight is None else np.asarray(query_weight, dtype=np.float64)
    used = weight > 0
    if not used.any():
        return data, weight
    queries = data if used.all() else data.select_queries(used)
    present, numbers = queries.without_weightless()
    if warn and present is not queries:
        _warn_of_absent(queries.n_docs - present.n_docs, queries.n_docs)
    return present, weight[used][numbers]


def _warn_of_absent(n_absent: int, n_docs: int) -> None:
    if n_absent >= MANY * n_docs:
        warn_caller(
            f"{n_absent} of {n_docs} training documents have weight 0, so they are absent: from the fit, and "
            "from the lists on which cross-validation measures it; give every document that users see a "
            "positive weight, such as clicks + 1"
        )
