"""Extreme data by name: shapes, scales, labels, query ids, kinds of arrays, weights."""

from __future__ import annotations

import datetime
import tempfile
import uuid

import numpy as np
import scipy.sparse as sp

SHAPES = {  # documents per query, and features
    "plain": ([12, 4, 11, 5, 8, 6, 3, 7], 5),
    "one feature": ([5, 4, 6], 1),
    "one query": ([14], 4),
    "two documents": ([2], 3),
    "one document": ([1], 3),
    "queries of one document": ([1, 1, 1, 1], 3),
    "some queries of one document": ([1, 6, 1, 1, 7, 5], 4),
    "queries of two": ([2] * 30, 4),
    "wide": ([7, 6, 7], 300),
}


def labels_of(signal, levels):
    """Labels by quantiles of the signal."""
    return levels[np.digitize(signal, np.quantile(signal, np.linspace(0, 1, len(levels) + 1)[1:-1]))]


LEVELS = {
    "plain": [0, 1, 2],
    "tied": [1],
    "halves": [0, 0.5, 1.5],
    "negative": [-2, -1, 3],
    "all negative": [-3, -2],
    "billions": [0, 1e9],
    "large": [0, 1, 1e300],
    "both ends": [-1e308, 0, 1e308],
    "tiny": [0, 1e-300, 1e-320],
    "many": list(range(40)),
}


def power(exponent):
    return lambda rng, X: X * 10.0**exponent


def mixed(least, largest):
    return lambda rng, X: X * 10.0 ** rng.integers(least, largest + 1, X.shape[1])


def one_column(change):
    """Change the first column only."""

    def changed(rng, X):
        X = X.copy()
        X[:, 0] = change(rng, X[:, 0])
        return X

    return changed


FEATURES = {
    "plain": lambda rng, X: X,
    **{f"1e{k:+d}": power(k) for k in (-300, -160, -150, -31, -28, -20, -10, 10, 20, 28, 31, 150, 160, 300)},
    "one 1e+160": one_column(lambda rng, x: 1e160 * x),
    "one 1e-160": one_column(lambda rng, x: 1e-160 * x),
    "one 1e+28": one_column(lambda rng, x: 1e28 * x),
    "one 1e-28": one_column(lambda rng, x: 1e-28 * x),
    "one 1e+20": one_column(lambda rng, x: 1e20 * x),
    "mixed within 1e±6": mixed(-6, 6),
    "mixed within 1e±20": mixed(-20, 20),
    "mixed within 1e±28": mixed(-28, 28),
    "mixed within 1e±300": mixed(-300, 300),
    "subnormal": lambda rng, X: X * 1e-310,
    "largest": lambda rng, X: np.sign(X) * np.finfo(float).max,
    "one far away": one_column(lambda rng, x: x + 1e15),
    "one very far away": one_column(lambda rng, x: 1e29 + 1e20 * x),
    "one large constant": one_column(lambda rng, x: np.full(len(x), 1e300)),
    "one outlier": one_column(lambda rng, x: np.where(np.arange(len(x)) == len(x) // 2, 1e200, x)),
    "constant": lambda rng, X: np.full(X.shape, 0.1),
    "zero": lambda rng, X: np.zeros(X.shape),
    "copies": lambda rng, X: np.tile(X[:, :1], X.shape[1]),
    "opposite copies": lambda rng, X: X[:, :1] * np.resize([1.0, -1.0], X.shape[1]),
    "copies in other units": lambda rng, X: X[:, :1] * np.resize([1.0, 1e6], X.shape[1]),
    "whole": lambda rng, X: np.round(2 * X),
}


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def mapped(X):
    with tempfile.NamedTemporaryFile() as file:
        array = np.memmap(file.name, dtype=X.dtype, mode="w+", shape=X.shape)
        array[:] = X
        return array


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


KINDS = {
    "plain": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "int8": lambda X: np.clip(np.round(10 * X), -128, 127).astype(np.int8),
    "uint64": lambda X: np.abs(np.round(np.clip(10 * X, -1e18, 1e18))).astype(np.uint64),
    "bool": lambda X: X > 0,
    "object": lambda X: X.astype(object),
    "longdouble": lambda X: X.astype(np.longdouble),
    "big-endian": lambda X: X.astype(">f8"),
    "Fortran": np.asfortranarray,
    "every second": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "read-only": read_only,
    "memory-mapped": mapped,
    "CSR": sp.csr_array,
    "COO": sp.coo_array,
}

IDS = {
    "plain": lambda q: q,
    "text": lambda q: np.array([f"query {i}" for i in q]),
    "bytes": lambda q: np.array([b"q%d" % i for i in q]),
    "ends of int64": lambda q: np.where(q % 2, np.iinfo(np.int64).max - q, np.iinfo(np.int64).min + q),
    "uint64": lambda q: (2**64 - 1 - q.astype(object)).astype(np.uint64),
    "huge": lambda q: [10**30 + int(i) for i in q],
    "float": lambda q: q + 0.5,
    "infinite": lambda q: np.where(q == 0, np.inf, q),
    "bool": lambda q: q % 2 == 0,
    "complex": lambda q: q + 1j,
    "mixed": lambda q: [(str(i), int(i), float(i), (i, "x"))[i % 4] for i in q.tolist()],
    "dates": lambda q: np.datetime64("2000-01-01") + q,
    "datetime": lambda q: [datetime.datetime(2000, 1, 1 + i % 28, i // 28) for i in q.tolist()],
    "durations": lambda q: q.astype("timedelta64[s]"),
    "uuid": lambda q: [uuid.UUID(int=i) for i in q.tolist()],
    "tuples": lambda q: [(i, "de") for i in q.tolist()],
    "frozen sets": lambda q: [frozenset({i, -1}) for i in q.tolist()],
    "interleaved": lambda q: np.random.default_rng(0).permutation(q),
}


def alternating(small):
    return lambda n: np.where(np.arange(n) % 2, 1.0, small)


WEIGHTS = {
    "none": lambda n: None,
    "ones": np.ones,
    "zeros but one": lambda n: np.eye(n)[0],
    **{f"all {value:g}": lambda n, value=value: np.full(n, value) for value in (1e-310, 1e-28, 1e28, 1e300)},
    "some 1e-310": alternating(1e-310),
    "some 1e-17": alternating(1e-17),
    "some 1e+17": alternating(1e17),
    "some 1e-28": alternating(1e-28),
    "some 1e+28": alternating(1e28),
    "some 1e+300": alternating(1e300),
}
