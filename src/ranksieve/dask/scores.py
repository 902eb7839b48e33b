"""Scores of distributed data in the row order of their source, and back to the parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from distributed import Future

from ranksieve._types import AnyArray, IntArray
from ranksieve.dask.dataset import DistributedDataset
from ranksieve.data.dataset import Dataset
from ranksieve.errors import ParameterError

Origin = tuple[IntArray, IntArray]
"""The piece of the source that each row of a part comes from, and its row there."""


def as_array(data: DistributedDataset, score: Callable[[Dataset], AnyArray]) -> Any:
    """A Dask array with one chunk per piece of the source; of a Dask DataFrame a Series with its index."""
    import dask.array as da
    from dask import delayed

    cluster, layout = data.cluster, data.layout
    chunks = [cluster.submit(score, part.rows) for part in data.held]
    sizes = cluster.round(data.names, len, chunks)  # where a score cannot be had, this says why
    if layout is not None:
        sizes = layout.sizes
        chunks = [cluster.submit(chunk, k, size, _held(data, chunks, k)) for k, size in enumerate(sizes)]
    if layout is not None and layout.frame is not None:
        return _as_series(data, chunks)
    return da.concatenate(
        [da.from_delayed(delayed(one), (size,), np.float64) for one, size in zip(chunks, sizes, strict=True)]
    )


def _as_series(data: DistributedDataset, chunks: list[Future]) -> Any:
    """The scores of a Dask DataFrame's rows, with its index."""
    import dask.dataframe as dd
    import pandas as pd

    frame = data.layout.frame
    with data.cluster.plain_faults():
        indexes = data.cluster.client.compute(list(frame.index.to_delayed()), sync=False)
    parts = [data.cluster.submit(pd.Series, *pair) for pair in zip(chunks, indexes, strict=True)]
    return dd.from_delayed(
        parts, meta=pd.Series(dtype=np.float64), divisions=frame.divisions, verify_meta=False
    )


def _held(data: DistributedDataset, scores: list[Future], piece: int) -> list[tuple[Future, Any]]:
    """The scores of the parts that have rows of a piece, and where in them its rows are."""
    held = []
    for values, (sources, origin) in zip(scores, data.layout.origins, strict=True):
        if piece in sources:
            begin = sum(data.layout.sizes[k] for k in sources if k < piece)
            held.append((values, begin if origin is None else origin))
    return held


def chunk(piece: int, size: int, held: list[tuple[AnyArray, int | Origin]]) -> AnyArray:
    """The scores of a piece: a run of those of one part, or rows of several."""
    scores = np.empty(size)
    for values, origin in held:
        if isinstance(origin, int):
            return values[origin : origin + size]
        mine = origin[0] == piece
        scores[origin[1][mine]] = values[mine]
    return scores


def by_part(data: DistributedDataset, scores: Any) -> list[Any]:
    """What gives the scores of each part: a model, or scores of source rows in the order of the part."""
    if hasattr(scores, "predict"):
        return [_light(scores)] * data.n_parts
    if data.layout is None:
        reason = "are in the row order of a source that is not known here; give the model instead"
        raise ParameterError("scores", scores, reason)
    sizes = data.layout.sizes
    if hasattr(scores, "to_delayed"):
        chunks = data.cluster.client.compute(np.ravel(scores.to_delayed()).tolist(), sync=False)
        filled = [k for k, size in enumerate(sizes) if size]
        if len(chunks) == len(filled):  # Dask leaves out chunks without rows
            given = dict(zip(filled, chunks, strict=True))
            chunks = [given.get(k, np.empty(0)) for k in range(len(sizes))]
        if len(chunks) != len(sizes):
            reason = (
                f"have {len(chunks)} chunks, but the data came in {len(sizes)}; give them as predict returns "
                "them, or the model"
            )
            raise ParameterError("scores", scores, reason)
    else:
        values = np.asarray(scores)
        if values.shape != (sum(sizes),):
            raise ParameterError(
                "scores", values, f"must have shape ({sum(sizes)},), one score per row, got {values.shape}"
            )
        chunks = np.split(values, np.cumsum(sizes)[:-1])
    return [
        data.cluster.submit(of_part, [chunks[k] for k in sources], sources, origin)
        for sources, origin in data.layout.origins
    ]


def _light(ranker: Any) -> Any:
    """What scores like a ranker and is soon sent: its linear model, if it has one."""
    try:
        return ranker.to_model()
    except (AttributeError, ValueError):
        return ranker


def of_part(chunks: list[Any], sources: list[int], origin: Origin | None) -> AnyArray:
    """The scores of a part's rows, from those of the pieces that its rows come from."""
    values = [np.asarray(one) for one in chunks]
    if origin is None:
        return np.concatenate(values)
    scores = np.empty(len(origin[0]))
    for piece, of_piece in zip(sources, values, strict=True):
        mine = origin[0] == piece
        scores[mine] = of_piece[origin[1][mine]]
    return scores
