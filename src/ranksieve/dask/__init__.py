"""Data on a Dask cluster: the same methods; each worker computes the sums over its own parts of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ranksieve.errors import ParameterError, how_to_install

if TYPE_CHECKING:
    from ranksieve.dask.dataset import DistributedDataset


def distribute(
    source: Any,
    *,
    label: str = "label",
    qid: Any = "qid",
    features: Sequence[str] | None = None,
    document_weight: str | None = None,
    y: Any = None,
    client: Any = None,
    shuffle: bool = True,
    n_parts: int | None = None,
) -> DistributedDataset:
    """Make a data set whose rows are read and kept by Dask workers; use it like a Dataset.

    Each part has whole queries: if a query is in several partitions of the source, its rows are moved to the
    first of them. Parts are results of tasks, so Dask recomputes those of a lost worker on another one.

    Parameters
    ----------
    source : Dask DataFrame, Dask array, parquet files or Dataset
        A DataFrame with features, labels and query ids as columns; an array of features, with ``y`` and
        ``qid``; a parquet file, a list of them, a folder of them or a pattern, or a folder that
        :func:`ranksieve.io.convert_dataset` wrote, on storage that all workers can read; or a data set.
    label : str
        Column of labels.
    qid : str or array
        Column of query ids; for arrays, the ids themselves.
    features : sequence of str, optional
        Feature columns, default: all others; for arrays, the feature names.
    document_weight : str, optional
        Column of document weights; default: ``document_weight`` if there is one. Not for Dask arrays, which
        have no such column, nor for a data set or folder, which has its own weights.
    y : array, optional
        Labels, if ``source`` is an array.
    client : distributed.Client or address, optional
        The cluster; default: the current client.
    shuffle : bool
        Whether rows may be moved; if False, a query in several partitions is an error.
    n_parts : int, optional
        Number of parts; default: one per partition, at most one per worker thread.
    """
    try:
        from ranksieve.dask.cluster import as_cluster
        from ranksieve.dask.sources import SourceColumns, as_source, lay_out
    except ImportError as error:
        raise ImportError(
            f"distributed data need {error.name}: {how_to_install('dask')}", name=error.name
        ) from None
    if n_parts is not None and n_parts < 1:
        raise ParameterError("n_parts", n_parts, "must be at least 1")
    cluster = as_cluster(client)
    cluster.check_versions()
    columns = SourceColumns(
        label,
        qid if isinstance(qid, str) else "qid",
        None if features is None else tuple(features),
        document_weight,
    )
    return lay_out(cluster, as_source(source, y, qid, columns, cluster, n_parts), shuffle, n_parts)
