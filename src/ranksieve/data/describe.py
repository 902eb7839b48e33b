"""Figures about a data set, and how documents and queries are named."""

from __future__ import annotations

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
from ranksieve.data.matrix import dense_rows, is_sparse, nonzero_entries
from ranksieve.data.parts import in_parts
from ranksieve.data.queries import Queries
from ranksieve.errors import ParameterError

NEAREST = 3
BETWEEN = " · "  # between the texts of several columns


@dataclass(frozen=True, eq=False)
class Names:
    """What the documents and queries of a data set are called, and the texts that belong to them.

    A text column is about queries if it has one text in each of them, like the words of the query, else
    about documents, like their titles.
    """

    data: Dataset

    def document(self, row: int) -> Any:
        """The id of a document, or "document 2 of query 7"."""
        return document_name(self.data, row)

    def document_text(self, row: int) -> str:
        """The texts of a document, empty without any."""
        about = [name for name in self.data.texts if name not in self._of_queries]
        return self._joined(about, row)

    def query_text(self, number: int) -> str:
        """The texts of a query, by its number in order of first appearance; empty without any."""
        return self._joined(self._of_queries, int(self.data.queries.rows_of(number)[0]))

    @property
    def query_texts(self) -> dict[Any, str]:
        """The texts of all queries by their ids; nothing if there are none."""
        if not self._of_queries:
            return {}
        return {query: self.query_text(k) for k, query in enumerate(self.data.queries.ids.tolist())}

    @cached_property
    def _of_queries(self) -> tuple[str, ...]:
        grouped = [self.data.queries.rows_of(q) for q in range(self.data.n_queries)]
        if all(len(rows) == 1 for rows in grouped):  # nothing tells; only a name can
            return tuple(name for name in self.data.texts if "query" in name.lower())
        return tuple(
            name
            for name, column in self.data.texts.items()
            if all(len({column[int(row)] for row in rows}) == 1 for rows in grouped)
        )

    def _joined(self, columns: Any, row: int) -> str:
        return BETWEEN.join(filter(None, (str(self.data.texts[name][row] or "").strip() for name in columns)))


def document_name(data: Dataset, row: int) -> Any:
    """What a document is called everywhere: its id, or if it has none, "document 2 of query 7"."""
    name = None if data.doc_ids is None else data.doc_ids[row]
    return document_words(data, row) if name in (None, "") else plain_id(name)


def document_words(data: Dataset, row: int) -> str:
    """ "document D12 of query 7", by its id, or by its number (from 1) within the query."""
    name = None if data.doc_ids is None else data.doc_ids[row]
    query = plain_id(data.qid[row])
    if name in (None, ""):
        name = int(np.flatnonzero(query_rows(data, query) == row)[0]) + 1
    return f"document {name} of query {query}"


def find_document(data: Dataset, qid: Hashable, document: Hashable) -> int:
    """The row of a document of a query, named by its id, or by its number (from 1) within the query.

    ``document`` may also be what :func:`document_name` gives.
    """
    rows = query_rows(data, qid)
    if data.doc_ids is not None:
        names = {int(row): str(data.doc_ids[int(row)]) for row in rows}
        found = [row for row, name in names.items() if name == str(document)]
        if len(found) > 1:
            reason = f"query {qid} has {len(found)} documents of this name; give the number within the query"
            raise ParameterError("document", document, reason)
        if found:
            return found[0]
    number = str(document).removeprefix("document ").removesuffix(f" of query {qid}")
    if number.isdecimal() and 1 <= int(number) <= len(rows):
        return int(rows[int(number) - 1])
    known = [] if data.doc_ids is None else list(names.values())
    reason = (
        f"query {qid} has no such document{_nearest(document, known)}; it has {len(rows)}, named by "
        f"{'id or ' if known else ''}number from 1 to {len(rows)}"
    )
    raise ParameterError("document", document, reason)


def query_rows(data: Dataset, qid: Hashable) -> IntArray:
    """The rows of a query, in order; its id may also be given as text."""
    return data.queries.rows_of(query_number(data, qid))


def query_number(data: Dataset, qid: Hashable) -> int:
    """The number of a query in order of first appearance; its id may also be given as text."""
    ids = data.queries.ids.tolist()
    number = next((q for q, one in enumerate(ids) if one == qid), None)
    if number is None:
        texts = [str(one) for one in ids]
        if str(qid) not in texts:
            raise ParameterError("qid", qid, f"is none of the {len(ids)} queries{_nearest(qid, texts)}")
        number = texts.index(str(qid))
    return number


def plain_id(value: Any) -> Any:
    """An id as Python's own kind of number or text."""
    return value.item() if isinstance(value, np.generic) else value


def _nearest(name: Hashable, known: list[str]) -> str:
    near = get_close_matches(str(name), known, n=NEAREST, cutoff=0.4)
    return f" (nearest: {', '.join(near)})" if near else ""


CELLS_AT_ONCE = 2**21


@dataclass(frozen=True)
class Description:
    """Figures of a data set; features go by name.

    ``n_pairs`` counts (i, j) of one query with y_i > y_j. ``zero_share`` is the share of values that are 0.
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
        """Plain values for JSON; labels become text."""
        plain = asdict(self)
        plain["label_counts"] = {
            repr(label).removesuffix(".0"): count for label, count in self.label_counts.items()
        }
        return plain


def describe(dataset: Dataset) -> Description:
    """Count documents, queries, pairs and labels; find constant, duplicate and missing features."""
    names, pairs, sizes = np.array(dataset.feature_names), dataset.pairs_per_query, dataset.query_sizes
    parts, label_counts, scattered = zip(*in_parts(dataset, _figures), strict=True)
    labels: Counter[float] = sum(label_counts, Counter())
    columns = _merged(parts)
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
    """Features that are not constant within every query: the others cannot change a ranking."""
    return Columns.of(dataset).varies_within


def _figures(part: Dataset) -> tuple[Columns, Counter[float], int]:
    """What can be said of a part alone: its columns, how often each label occurs, its scattered queries."""
    labels, counts = np.unique(part.y, return_counts=True)
    counter = Counter(dict(zip(labels.tolist(), counts.tolist(), strict=True)))
    return Columns.of(part), counter, _n_scattered(part.queries)


def _n_scattered(queries: Queries) -> int:
    """Queries with rows of other queries between their own."""
    spread = queries.order[queries.offsets[1:] - 1] - queries.order[queries.offsets[:-1]]
    return int(np.sum(spread + 1 != queries.sizes))


@dataclass
class Columns:
    """What one pass finds out about each column.

    ``key`` is Σ_i r_i·bits(x_i) modulo 2^64 with random odd r: equal columns have equal keys, and zeros add
    nothing. ``first`` holds the bits of the first row.
    """

    varies: BoolArray
    varies_within: BoolArray
    missing: IntArray
    key: AnyArray
    first: AnyArray
    n_zero: int = 0
    n_infinite: int = 0

    @classmethod
    def of(cls, dataset: Dataset) -> Columns:
        return _sparse_columns(dataset) if is_sparse(dataset.X) else _dense_columns(dataset)

    @classmethod
    def nothing_yet(cls, dataset: Dataset) -> Columns:
        d = dataset.n_features
        varies, varies_within = np.zeros((2, d), dtype=bool)
        first = _bits(dense_rows(dataset.X, dataset.queries.order[:1]))[0]
        return cls(varies, varies_within, np.zeros(d, dtype=np.int64), np.zeros(d, dtype=np.uint64), first)


def _merged(parts: Sequence[Columns]) -> Columns:
    """What is found out of all parts together."""
    total = parts[0]
    for part in parts[1:]:
        total = Columns(
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
    """Bit patterns that are equal when values are, also for −0 and NaN."""
    wide = values.astype(np.float64) + 0.0
    wide[np.isnan(wide)] = np.nan
    return wide.view(np.uint64)


def _row_factors(n_rows: int) -> AnyArray:
    return np.random.default_rng(0).integers(2**64, size=n_rows, dtype=np.uint64) | np.uint64(1)


def _dense_columns(dataset: Dataset) -> Columns:
    """One pass over blocks of rows in grouped order; neighbours of one query are compared."""
    queries, columns = dataset.queries, Columns.nothing_yet(dataset)
    factors = _row_factors(dataset.n_docs)
    query = queries.query_of_grouped
    for rows, fresh in _row_blocks(queries.n_rows, dataset.n_features):
        block = np.asarray(dataset.X[rows if queries.contiguous else queries.order[rows]])
        bits = _bits(block)
        columns.varies |= (bits != columns.first).any(axis=0)
        same_query = np.diff(query[rows]) == 0
        columns.varies_within |= ((bits[1:] != bits[:-1]) & same_query[:, None]).any(axis=0)
        columns.missing += np.isnan(block[fresh]).sum(axis=0)
        columns.n_infinite += int(np.isinf(block[fresh]).sum())
        columns.n_zero += int(np.sum(block[fresh] == 0))
        columns.key += bits[fresh].T @ factors[rows][fresh]
    return columns


def _row_blocks(n_rows: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of rows that begin with the last row of the block before, and the part of them that is new."""
    step = max(1, CELLS_AT_ONCE // width)
    for start in range(0, n_rows, step):
        overlap = min(start, 1)
        yield slice(start - overlap, min(start + step, n_rows)), slice(overlap, None)


def _sparse_columns(dataset: Dataset) -> Columns:
    """The stored entries alone: a column varies within a query unless all of its rows hold one value."""
    queries, columns, (n, d) = dataset.queries, Columns.nothing_yet(dataset), dataset.X.shape
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
    """Whether a group of ``sizes`` values, of which only the nonzero ones are given, has two that differ."""
    least, most = np.full(len(sizes), 2**64 - 1, dtype=np.uint64), np.zeros(len(sizes), dtype=np.uint64)
    np.minimum.at(least, group, bits)
    np.maximum.at(most, group, bits)
    given = np.bincount(group, minlength=len(sizes))
    varies: BoolArray = (given > 0) & ((given < sizes) | (least != most))
    return varies


def _duplicates(dataset: Dataset, key: AnyArray) -> list[list[int]]:
    """Groups of columns that are equal in every row: equal keys, then compared in every part."""
    order = np.argsort(key, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(key[order])) + 1)
    candidates = [run.tolist() for run in runs if len(run) > 1]
    if not candidates:
        return []
    groups: dict[tuple[int, ...], list[int]] = {}
    columns = [j for run in candidates for j in run]
    for j, *alike in zip(columns, *in_parts(dataset, partial(_alike, candidates=candidates)), strict=True):
        groups.setdefault(tuple(alike), []).append(j)
    return sorted(group for group in groups.values() if len(group) > 1)


def _alike(part: Dataset, candidates: list[list[int]]) -> list[int]:
    """For each candidate the first one of its run that is equal to it."""
    column, found = column_reader(part.X), []
    for run in candidates:
        firsts: list[int] = []
        for j in run:
            bits = _bits(column(j))
            same = next((k for k in firsts if np.array_equal(_bits(column(k)), bits)), j)
            firsts += [j] if same == j else []
            found.append(same)
    return found
