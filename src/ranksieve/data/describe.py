"""Statistics of a data set, and names of its documents and queries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import column_reader
from ranksieve.data.matrix import CELLS_AT_ONCE, dense_rows, is_sparse, nonzero_entries
from ranksieve.data.parts import map_parts
from ranksieve.data.queries import Queries
from ranksieve.errors import ParameterError

MAX_SUGGESTIONS = 3
TITLE_WORDS = {"title", "name", "headline", "heading", "subject"}
QUERY_WORDS = {"query", "search", "keywords", "question"}
TITLE = "title"


@dataclass(frozen=True, eq=False)
class Names:
    """Names and texts of the documents and queries of a data set.

    A text column is about queries (such as the search terms) if its text is the same for all documents of
    each query, else about documents (such as titles). Shown are the columns that are named like a title, or
    like a query ("movie_title", "search terms"); without any, the only column; of several others, none.
    """

    data: Dataset

    def document(self, row: int) -> Any:
        """Id of a document, or "document 2 of query 7"."""
        return document_name(self.data, row)

    def document_text(self, row: int) -> str:
        """Texts of a document; may be empty."""
        return self._join(self._title_columns, row)

    @cached_property
    def _title_columns(self) -> list[str]:
        return _named([name for name in self.data.texts if name not in self.query_columns], TITLE_WORDS)

    def query_text(self, index: int) -> str:
        """Texts of a query, by its index in order of first appearance; may be empty."""
        return self._join(_named(self.query_columns, QUERY_WORDS), int(self.data.queries.rows_of(index)[0]))

    @property
    def query_texts(self) -> dict[Any, str]:
        """Texts of all queries by query id; empty without such texts."""
        if not _named(self.query_columns, QUERY_WORDS):
            return {}
        return {query: self.query_text(k) for k, query in enumerate(self.data.queries.ids.tolist())}

    @cached_property
    def query_columns(self) -> tuple[str, ...]:
        """The text columns that are about queries."""
        grouped = [self.data.queries.rows_of(q) for q in range(self.data.n_queries)]
        if all(len(rows) == 1 for rows in grouped):  # the texts cannot decide; use the column name
            return tuple(name for name in self.data.texts if "query" in name.lower())
        return tuple(
            name
            for name, column in self.data.texts.items()
            if all(len({column[int(row)] for row in rows}) == 1 for rows in grouped)
        )

    def _join(self, columns: Any, row: int) -> str:
        return " · ".join(filter(None, (str(self.data.texts[name][row] or "").strip() for name in columns)))


def _named(columns: Sequence[str], words: set[str]) -> list[str]:
    """The columns whose names have one of the words; without any, the only column; else none."""
    chosen = [name for name in columns if words & set(re.split(r"[\W\d_]+", name.lower()))]
    return chosen or (list(columns) if len(columns) == 1 else [])


def show_texts(data: Dataset, columns: Sequence[str]) -> Dataset:
    """Show these text columns, joined, with each document; the data set is changed and returned."""
    for name in columns:
        if name not in data.texts:
            known = (
                f"the data have {', '.join(data.texts)}" if data.texts else "the data have no text columns"
            )
            raise ParameterError("text", name, f"is not a text column; {known}")
    rows = zip(*(data.texts[name] for name in columns), strict=True)
    title = [" · ".join(filter(None, (str(text or "").strip() for text in row))) for row in rows]
    kept = {name: data.texts[name] for name in Names(data).query_columns if name not in columns}
    data.texts = {**kept, TITLE: title}
    return data


def document_name(data: Dataset, row: int) -> Any:
    """Name of a document in all outputs: its id, or without one "document 2 of query 7"."""
    name = None if data.doc_ids is None else data.doc_ids[row]
    return full_document_name(data, row) if name in (None, "") else plain_id(name)


def full_document_name(data: Dataset, row: int) -> str:
    """Name such as "document D12 of query 7", with the id or the number (from 1) within the query."""
    name = None if data.doc_ids is None else data.doc_ids[row]
    query = plain_id(data.qid[row])
    if name in (None, ""):
        name = int(np.flatnonzero(query_rows(data, query) == row)[0]) + 1
    return f"document {name} of query {query}"


def find_document(data: Dataset, qid: Hashable, document: Hashable) -> int:
    """Row of a document of a query, given by id, by number (from 1) within the query, or by name.

    Names are those of :func:`document_name`.
    """
    rows = query_rows(data, qid)
    if data.doc_ids is not None:
        names = {int(row): str(data.doc_ids[int(row)]) for row in rows}
        matches = [row for row, name in names.items() if name == str(document)]
        if len(matches) > 1:
            reason = f"query {qid} has {len(matches)} documents with this id; use the number within the query"
            raise ParameterError("document", document, reason)
        if matches:
            return matches[0]
    number = str(document).removeprefix("document ").removesuffix(f" of query {qid}")
    if number.isdecimal() and 1 <= int(number) <= len(rows):
        return int(rows[int(number) - 1])
    document_ids = [] if data.doc_ids is None else list(names.values())
    reason = (
        f"query {qid} has no such document{_nearest(document, document_ids)}; it has {len(rows)}; use "
        f"{'an id or ' if document_ids else ''}a number from 1 to {len(rows)}"
    )
    raise ParameterError("document", document, reason)


def query_rows(data: Dataset, qid: Hashable) -> IntArray:
    """Rows of a query, in order; the id may also be given as text."""
    return data.queries.rows_of(query_number(data, qid))


def query_number(data: Dataset, qid: Hashable) -> int:
    """Index of a query in order of first appearance; the id may also be given as text."""
    ids = data.queries.ids.tolist()
    number = next((q for q, one in enumerate(ids) if one == qid), None)
    if number is None:
        texts = [str(one) for one in ids]
        if str(qid) not in texts:
            raise ParameterError("qid", qid, f"is not one of the {len(ids)} queries{_nearest(qid, texts)}")
        number = texts.index(str(qid))
    return number


def plain_id(value: Any) -> Any:
    """Convert a NumPy scalar to a Python object."""
    return value.item() if isinstance(value, np.generic) else value


def _nearest(name: Hashable, names: list[str]) -> str:
    nearest = get_close_matches(str(name), names, n=MAX_SUGGESTIONS, cutoff=0.4)
    return f" (nearest: {', '.join(nearest)})" if nearest else ""


@dataclass(frozen=True)
class Description:
    """Statistics of a data set; features are listed by name.

    ``n_pairs`` is the number of pairs (i, j) of one query with y_i > y_j, ``zero_share`` the share of values
    that are 0.
    """

    n_docs: int
    n_queries: int
    n_features: int
    list_length_min: int
    list_length_median: float
    list_length_max: int
    label_counts: dict[float, int]
    n_pairs: int
    n_queries_without_pairs: int
    n_single_document_queries: int
    n_scattered_queries: int
    constant_features: tuple[str, ...]
    constant_within_queries: tuple[str, ...]
    duplicate_features: tuple[tuple[str, ...], ...]
    missing: dict[str, int]
    n_missing: int
    n_infinite: int
    zero_share: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; labels become text."""
        content = asdict(self)
        content["label_counts"] = {
            repr(label).removesuffix(".0"): count for label, count in self.label_counts.items()
        }
        return content


def describe(dataset: Dataset) -> Description:
    """Count documents, queries, pairs and labels; find constant, duplicate and missing features."""
    names, pairs, sizes = np.array(dataset.feature_names), dataset.pairs_per_query, dataset.query_sizes
    parts, label_counts, scattered = zip(*map_parts(dataset, _statistics), strict=True)
    labels: Counter[float] = sum(label_counts, Counter())
    columns = _merge(parts)
    missing = {str(names[j]): int(columns.missing[j]) for j in np.flatnonzero(columns.missing)}
    return Description(
        n_docs=dataset.n_docs,
        n_queries=dataset.n_queries,
        n_features=dataset.n_features,
        list_length_min=int(sizes.min()),
        list_length_median=float(np.median(sizes)),
        list_length_max=int(sizes.max()),
        label_counts={label: labels[label] for label in sorted(labels)},
        n_pairs=int(pairs.sum()),
        n_queries_without_pairs=int(np.sum(pairs == 0)),
        n_single_document_queries=int(np.sum(sizes == 1)),
        n_scattered_queries=sum(scattered),
        constant_features=tuple(names[~columns.varies].tolist()),
        constant_within_queries=tuple(names[~columns.varies_within].tolist()),
        duplicate_features=tuple(tuple(names[group].tolist()) for group in _duplicates(dataset, columns.key)),
        missing=missing,
        n_missing=sum(missing.values()),
        n_infinite=columns.n_infinite,
        zero_share=columns.n_zero / (dataset.n_docs * dataset.n_features),
    )


def varying_columns(dataset: Dataset) -> BoolArray:
    """Mask of the features that vary within a query; the others cannot change a ranking."""
    return ColumnStatistics.of(dataset).varies_within


def _statistics(part: Dataset) -> tuple[ColumnStatistics, Counter[float], int]:
    """Statistics of a part: its columns, the count of each label, the number of scattered queries."""
    labels, counts = np.unique(part.y, return_counts=True)
    counter = Counter(dict(zip(labels.tolist(), counts.tolist(), strict=True)))
    return ColumnStatistics.of(part), counter, _n_scattered(part.queries)


def _n_scattered(queries: Queries) -> int:
    """Number of queries whose rows are not contiguous."""
    spread = queries.order[queries.offsets[1:] - 1] - queries.order[queries.offsets[:-1]]
    return int(np.sum(spread + 1 != queries.sizes))


@dataclass
class ColumnStatistics:
    """Statistics of each column, computed in one pass.

    ``key`` is Σ_i r_i·bits(x_i) modulo 2^64 with random odd r: equal columns have equal keys, and zeros add
    nothing. ``first`` are the bits of the first row.
    """

    varies: BoolArray
    varies_within: BoolArray
    missing: IntArray
    key: AnyArray
    first: AnyArray
    n_zero: int = 0
    n_infinite: int = 0

    @classmethod
    def of(cls, dataset: Dataset) -> ColumnStatistics:
        return _sparse_columns(dataset) if is_sparse(dataset.X) else _dense_columns(dataset)

    @classmethod
    def empty(cls, dataset: Dataset) -> ColumnStatistics:
        d = dataset.n_features
        varies, varies_within = np.zeros((2, d), dtype=bool)
        first = _bits(dense_rows(dataset.X, dataset.queries.order[:1]))[0]
        return cls(varies, varies_within, np.zeros(d, dtype=np.int64), np.zeros(d, dtype=np.uint64), first)


def _merge(parts: Sequence[ColumnStatistics]) -> ColumnStatistics:
    total = parts[0]
    for part in parts[1:]:
        total = ColumnStatistics(
            total.varies | part.varies | (total.first != part.first),
            total.varies_within | part.varies_within,
            total.missing + part.missing,
            total.key + part.key,
            total.first,
            total.n_zero + part.n_zero,
            total.n_infinite + part.n_infinite,
        )
    return total


def _bits(values: AnyArray) -> AnyArray:
    """Bit patterns that are equal if the values are; −0 equals 0, and NaN equals NaN."""
    wide = values.astype(np.float64) + 0.0
    wide[np.isnan(wide)] = np.nan
    return wide.view(np.uint64)


def _row_factors(n_rows: int) -> AnyArray:
    return np.random.default_rng(0).integers(2**64, size=n_rows, dtype=np.uint64) | np.uint64(1)


def _dense_columns(dataset: Dataset) -> ColumnStatistics:
    """One pass over blocks of rows in grouped order, comparing consecutive rows of a query."""
    queries, columns = dataset.queries, ColumnStatistics.empty(dataset)
    factors = _row_factors(dataset.n_docs)
    query = queries.query_of_grouped
    for rows, new in _row_blocks(queries.n_rows, dataset.n_features):
        block = np.asarray(dataset.X[rows if queries.contiguous else queries.order[rows]])
        bits = _bits(block)
        columns.varies |= (bits != columns.first).any(axis=0)
        same_query = np.diff(query[rows]) == 0
        columns.varies_within |= ((bits[1:] != bits[:-1]) & same_query[:, None]).any(axis=0)
        columns.missing += np.isnan(block[new]).sum(axis=0)
        columns.n_infinite += int(np.isinf(block[new]).sum())
        columns.n_zero += int(np.sum(block[new] == 0))
        columns.key += bits[new].T @ factors[rows][new]
    return columns


def _row_blocks(n_rows: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of rows, each beginning with the last row of the previous one, and the slice of its new rows."""
    step = max(1, CELLS_AT_ONCE // width)
    for start in range(0, n_rows, step):
        overlap = min(start, 1)
        yield slice(start - overlap, min(start + step, n_rows)), slice(overlap, None)


def _sparse_columns(dataset: Dataset) -> ColumnStatistics:
    """One pass over the stored entries."""
    queries, columns, (n, d) = dataset.queries, ColumnStatistics.empty(dataset), dataset.X.shape
    row, column, values = nonzero_entries(dataset.X)
    bits = _bits(values)
    np.add.at(columns.missing, column, np.isnan(values))
    np.add.at(columns.key, column, bits * _row_factors(n)[row])
    columns.n_infinite = int(np.isinf(values).sum())
    columns.n_zero = n * d - len(values)
    columns.varies = _varies(column, bits, np.full(d, n))
    query_of = queries.restore(queries.query_of_grouped)
    cells, code = np.unique(query_of[row] * d + column, return_inverse=True)
    within = _varies(code, bits, queries.sizes[cells // d])
    columns.varies_within[cells[within] % d] = True
    return columns


def _varies(group: IntArray, bits: AnyArray, sizes: IntArray) -> BoolArray:
    """Whether the values of each group differ; ``bits`` has only its nonzero values, ``sizes`` counts all."""
    least, most = np.full(len(sizes), 2**64 - 1, dtype=np.uint64), np.zeros(len(sizes), dtype=np.uint64)
    np.minimum.at(least, group, bits)
    np.maximum.at(most, group, bits)
    n_nonzero = np.bincount(group, minlength=len(sizes))
    varies: BoolArray = (n_nonzero > 0) & ((n_nonzero < sizes) | (least != most))
    return varies


def _duplicates(dataset: Dataset, key: AnyArray) -> list[list[int]]:
    """Groups of equal columns: those with equal keys, compared value by value in every part."""
    order = np.argsort(key, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(key[order])) + 1)
    candidates = [run.tolist() for run in runs if len(run) > 1]
    if not candidates:
        return []
    groups: dict[tuple[int, ...], list[int]] = {}
    columns = [j for run in candidates for j in run]
    first_equal = map_parts(dataset, partial(_first_equal, candidates=candidates))
    for j, *firsts in zip(columns, *first_equal, strict=True):
        groups.setdefault(tuple(firsts), []).append(j)
    return sorted(group for group in groups.values() if len(group) > 1)


def _first_equal(part: Dataset, candidates: list[list[int]]) -> list[int]:
    """First column of its run that is equal to each candidate."""
    column, first_equal = column_reader(part.X), []
    for run in candidates:
        firsts: list[int] = []
        for j in run:
            bits = _bits(column(j))
            same = next((k for k in firsts if np.array_equal(_bits(column(k)), bits)), j)
            firsts += [j] if same == j else []
            first_equal.append(same)
    return first_equal
