"""How parts are made of the pieces of a source: columns aligned, and each query whole in one part."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from distributed import Future

from ranksieve._types import AnyArray, BoolArray, IntArray
from ranksieve._util.messages import shortened
from ranksieve.dask.cluster import Cluster, located
from ranksieve.dask.dataset import DistributedDataset, Part
from ranksieve.dask.sources import Piece, Source
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import is_sparse, stack
from ranksieve.data.queries import as_id_array
from ranksieve.errors import DataError

NAMED = 5  # columns in a message


@dataclass(frozen=True)
class Summary:
    """What the client must know of a piece to lay out the parts; no rows."""

    names: tuple[str, ...]
    kind: str
    n_rows: int
    ids: AnyArray
    profile: str | None
    weighted: bool


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the rows of each piece are, so that scores can be put in their order.

    ``sizes`` are those of the pieces; ``origins`` has, for each part, the pieces that its rows are from, and
    a future of each row's (piece, row), or None if they are all rows of these pieces, in order. ``frame`` is
    the Dask DataFrame that the pieces are the partitions of, if there is one.
    """

    sizes: list[int]
    origins: list[tuple[list[int], Future | None]]
    frame: Any


def lay_out(cluster: Cluster, source: Source, shuffle: bool, n_parts: int | None) -> DistributedDataset:
    """Read the pieces on the workers, and make of them parts that hold whole queries."""
    runs = _runs(len(source.pieces), n_parts or cluster.n_threads)
    names = [_named(source.pieces[run.start : run.stop]) for run in runs]
    raw = [
        cluster.submit(
            read_run, [(source.pieces[k].name, source.pieces[k].read, *source.pieces[k].args) for k in run]
        )
        for run in runs
    ]
    found = cluster.round(names, summaries, raw)
    _check_rows(found)
    columns, kind = _common_columns(source.pieces, [one for part in found for one in part])
    moves = _moves(found)
    if moves and not shuffle:
        query, (first, *others) = next(iter(moves.items()))
        reason = (
            f"query {query} is in {names[first]} and in {names[others[0]]}; sort the data by query, or "
            "choose `shuffle=True`"
        )
        raise DataError(None, None, reason)
    return _arranged(cluster, source, runs, names, raw, found, (columns, kind), moves)


def _runs(n_pieces: int, n_parts: int) -> list[range]:
    cuts = np.linspace(0, n_pieces, min(n_pieces, n_parts) + 1).round().astype(int).tolist()
    return [range(a, b) for a, b in pairwise(cuts)]


def _named(pieces: Sequence[Piece]) -> str:
    return pieces[0].name if len(pieces) == 1 else f"{pieces[0].name} to {pieces[-1].name}"


def read_run(run: list[tuple[Any, ...]]) -> list[Dataset | None]:
    """The rows of neighbouring pieces; a failure names its piece."""
    found = []
    for name, read, *args in run:
        try:
            found.append(read(*args))
        except ValueError as error:
            raise located(error, name) from None
    return found


def summaries(pieces: list[Dataset | None]) -> list[Summary | None]:
    """What the client must know of each piece."""
    return [None if data is None else _summary(data) for data in pieces]


def _summary(data: Dataset) -> Summary:
    weighted = data.document_weight is not None
    return Summary(data.feature_names, _kind(data), data.n_docs, data.queries.ids, data.profile, weighted)


def _kind(data: Dataset) -> str:
    return "sparse" if is_sparse(data.X) else str(data.X.dtype.name)


def _check_rows(found: list[list[Summary | None]]) -> None:
    if all(one is None for part in found for one in part):
        raise DataError(None, None, "the source has no rows; a data set needs at least one document")


def _common_columns(pieces: Sequence[Piece], found: list[Summary | None]) -> tuple[tuple[str, ...], str]:
    """The columns of the first piece, which all must have in some order, and a kind that holds all values."""
    known = [(piece.name, one) for piece, one in zip(pieces, found, strict=True) if one is not None]
    where, first = known[0]
    for name, one in known:
        for here, there, lacks in ((first, one, name), (one, first, where)):
            if lacking := [column for column in here.names if column not in set(there.names)]:
                other = where if lacks == name else name
                reason = (
                    f"lacks the column {shortened(lacking, NAMED)}, which {other} has; all need the same "
                    "columns"
                )
                raise DataError(lacks, None, reason)
    for name, one in known:
        if one.weighted != first.weighted:
            having, without = (where, name) if first.weighted else (name, where)
            raise DataError(without, None, f"has no document weights, but {having} has; give both or neither")
    kinds = {one.kind for _, one in known}
    if len(kinds) == 1:
        return first.names, kinds.pop()
    if "sparse" in kinds:
        raise DataError(
            None, None, "some pieces of the source are sparse and others dense; give all in one form"
        )
    return first.names, str(np.result_type(*kinds).name)


def _moves(found: list[list[Summary | None]]) -> dict[Any, list[int]]:
    """The queries whose rows are in several parts, with these parts in order."""
    home: dict[Any, int] = {}
    moves: dict[Any, list[int]] = {}
    for part, pieces in enumerate(found):
        here = {query for one in pieces if one is not None for query in one.ids.tolist()}
        for query in here:
            if query in home:
                moves.setdefault(query, [home[query]]).append(part)
            else:
                home[query] = part
    return moves


def _arranged(
    cluster: Cluster,
    source: Source,
    runs: list[range],
    names: list[str],
    raw: list[Future],
    found: list[list[Summary | None]],
    columns: tuple[tuple[str, ...], str],
    moves: dict[Any, list[int]],
) -> DistributedDataset:
    """Parts with the rows that are to be in them, and what the client knows of them."""
    leaving: list[dict[int, list[Any]]] = [{} for _ in raw]  # of each part: to which part which queries go
    for query, (first, *others) in moves.items():
        for part in others:
            leaving[part].setdefault(first, []).append(query)
    gone = [[query for queries in to.values() for query in queries] for to in leaving]
    coming: list[list[Future]] = [[] for _ in raw]
    for part, to in enumerate(leaving):
        for target, queries in to.items():
            coming[target].append(cluster.submit(taken, raw[part], columns, queries, runs[part].start))
    parts: list[Part] = []
    ids: list[Any] = []
    origins: list[tuple[list[int], Future | None]] = []
    for part, name in enumerate(names):
        here = _ids(found[part], set(gone[part]))
        if not here:
            continue
        sources, origin = list(runs[part]), None
        if gone[part] or coming[part]:
            both = cluster.submit(arranged, raw[part], columns, gone[part], coming[part], runs[part].start)
            rows, origin = (cluster.submit(operator.itemgetter(k), both) for k in (0, 1))
            sources += [k for other, to in enumerate(leaving) if part in to for k in runs[other]]
        else:
            rows = cluster.submit(whole, raw[part], columns)
        parts.append(Part(name, rows, len(ids) + np.arange(len(here))))
        origins.append((sources, origin))
        ids += here
    pieces = [one for part in found for one in part]
    profiles = {one.profile for one in pieces if one is not None}
    layout = Layout([0 if one is None else one.n_rows for one in pieces], origins, source.frame)
    return DistributedDataset(
        cluster, parts, columns[0], as_id_array(ids), columns[1], layout, source.name,
        profiles.pop() if len(profiles) == 1 else None,
    )  # fmt: skip


def _ids(pieces: list[Summary | None], gone: set[Any]) -> list[Any]:
    """The queries of a part in order of first appearance, without those that go elsewhere."""
    given = [query for one in pieces if one is not None for query in one.ids.tolist()]
    return [query for query in dict.fromkeys(given) if query not in gone]


Rows = tuple[Dataset, tuple[IntArray, IntArray]]
"""Some rows, and the piece and row that each comes from."""


def aligned(data: Dataset, columns: tuple[tuple[str, ...], str]) -> Dataset:
    """The data with the columns of all pieces, in their order and kind."""
    names, kind = columns
    if data.feature_names != names:
        place = {name: j for j, name in enumerate(data.feature_names)}
        data = data.select_features(np.array([place[name] for name in names]))
    if _kind(data) == kind:
        return data
    return data.replace_features(np.asarray(data.X).astype(kind))


def whole(pieces: list[Dataset | None], columns: tuple[tuple[str, ...], str]) -> Dataset:
    """All rows of a run of pieces."""
    return _stacked([aligned(data, columns) for data in pieces if data is not None])


def _stacked(parts: Sequence[Dataset]) -> Dataset:
    """Rows below rows of the same columns; a query may go on in the next."""
    if len(parts) == 1:
        return parts[0]
    ids = [query for part in parts for query in part.qid.tolist()]
    same = len({part.qid.dtype.kind for part in parts}) == 1
    qid = np.concatenate([part.qid for part in parts]) if same else as_id_array(ids)
    X, y = stack([part.X for part in parts]), np.concatenate([part.y for part in parts])
    weights = [part.document_weight for part in parts if part.document_weight is not None]
    return Dataset(
        X, y, qid, parts[0].feature_names, profile=parts[0].profile,
        document_weight=np.concatenate(weights) if weights else None,
    )  # fmt: skip


def _with_origin(pieces: list[Dataset | None], columns: tuple[tuple[str, ...], str], first: int) -> Rows:
    """All rows of a run of pieces, of which ``first`` is the number of the first."""
    data = whole(pieces, columns)
    sizes = [0 if one is None else one.n_docs for one in pieces]
    piece = np.repeat(np.arange(first, first + len(sizes)), sizes)
    return data, (piece, np.concatenate([np.arange(size) for size in sizes]))


def taken(
    pieces: list[Dataset | None], columns: tuple[tuple[str, ...], str], queries: list[Any], first: int
) -> Rows:
    """The rows of some queries."""
    return _chosen(*_with_origin(pieces, columns, first), set(queries), True)


def _chosen(data: Dataset, origin: tuple[IntArray, IntArray], queries: set[Any], inside: bool) -> Rows:
    rows = np.flatnonzero(_among(data.qid, queries) == inside)
    return data.select_rows(rows), (origin[0][rows], origin[1][rows])


def _among(qid: AnyArray, queries: set[Any]) -> BoolArray:
    """Which rows are of these queries."""
    if qid.dtype == object:
        return np.array([query in queries for query in qid])
    return np.isin(qid, as_id_array(list(queries)))


def arranged(
    pieces: list[Dataset | None],
    columns: tuple[tuple[str, ...], str],
    gone: list[Any],
    coming: list[Rows],
    first: int,
) -> Rows:
    """The rows of a run of pieces without those of some queries, and below them rows from elsewhere."""
    data, origin = _with_origin(pieces, columns, first)
    if gone:
        data, origin = _chosen(data, origin, set(gone), False)
    own = [(data, origin), *coming]
    rows = [np.concatenate([one[1][k] for one in own]) for k in (0, 1)]
    return _stacked([one[0] for one in own]), (rows[0], rows[1])
