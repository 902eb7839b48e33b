"""Data on a Dask cluster: the same methods and sums, each part's share of them computed where it lies."""

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
    """Make a data set of rows that Dask workers read and keep; it goes where a Dataset goes.

    Each query is whole in one part: rows of a query that a source has in several partitions are moved to the
    first of these. Parts are made by tasks, so those of a lost worker are made again elsewhere.

    Parameters
    ----------
    source : Dask DataFrame, Dask array, parquet files or Dataset
        A DataFrame with features, labels and query ids as columns; an array of features, with ``y`` and
        ``qid``; a parquet file, a list of them, a folder of them or a pattern, or a folder that
        :func:`ranksieve.io.convert_dataset` wrote, in a place that all workers can read; or a data set.
    label : str
        The column of labels.
    qid : str or array
        The column of query ids; with arrays the ids themselves.
    features : sequence of str, optional
        The feature columns, default all others; with arrays their names.
    document_weight : str, optional
        The column of weights of documents; default ``document_weight`` if there is one. Dask arrays have no
        such column, and a data set or a folder brings its own.
    y : array, optional
        The labels, if ``source`` is an array.
    client : distributed.Client or address, optional
        The cluster; default the client that was made last.
    shuffle : bool
        Whether rows may be moved; if not, a query in several partitions is refused.
    n_parts : int, optional
        Parts to make of the source; default its partitions, but at most one for each thread of the workers.
    """
    try:
        from ranksieve.dask.cluster import as_cluster
        from ranksieve.dask.sources import Columns, as_source, lay_out
    except ImportError as error:
        raise ImportError(
            f"distributed data need {error.name}: {how_to_install('dask')}", name=error.name
        ) from None
    if n_parts is not None and n_parts < 1:
        raise ParameterError("n_parts", n_parts, "must be at least 1")
    cluster = as_cluster(client)
    cluster.check_versions()
    columns = Columns(
        label,
        qid if isinstance(qid, str) else "qid",
        None if features is None else tuple(features),
        document_weight,
    )
    return lay_out(cluster, as_source(source, y, qid, columns, cluster, n_parts), shuffle, n_parts)
