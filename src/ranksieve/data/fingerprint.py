"""Short names for the exact content of data."""

from __future__ import annotations

import hashlib

import numpy as np
import scipy.sparse as sp

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset

DIGITS = 16
ROWS_AT_ONCE = 65536


def fingerprint(data: Dataset) -> str:
    """First 16 hex digits of the SHA-256 over shape, features, labels and query boundaries."""
    digest = hashlib.sha256(repr((data.X.shape, str(data.X.dtype), data.feature_names)).encode())
    if sp.issparse(data.X):
        for part in (data.X.indptr, data.X.indices, data.X.data):
            digest.update(np.ascontiguousarray(part).data)
    else:
        for start in range(0, data.n_docs, ROWS_AT_ONCE):
            digest.update(np.ascontiguousarray(data.X[start : start + ROWS_AT_ONCE]).data)
    for rows in (data.y, data.queries.order, data.queries.offsets):
        digest.update(np.ascontiguousarray(rows).data)
    return digest.hexdigest()[:DIGITS]


def fingerprint_of_weights(weights: FloatArray) -> str:
    """First 16 hex digits of the SHA-256 over the numbers."""
    return hashlib.sha256(np.ascontiguousarray(weights, dtype=np.float64).data).hexdigest()[:DIGITS]
