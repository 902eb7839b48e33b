"""Slow reference implementations on explicit pairs."""

from __future__ import annotations

import numpy as np


def explicit_pairs(y, qid):
    """All (i, j) of one query with y_i > y_j."""
    return np.array(
        [(i, j) for i in range(len(y)) for j in range(len(y)) if qid[i] == qid[j] and y[i] > y[j]], dtype=int
    ).reshape(-1, 2)


def pair_weights(pairs, y, qid, query_weight=None, level_weights=None):
    weight = np.ones(len(pairs))
    if query_weight is not None:
        weight *= [query_weight[qid[i]] for i, _ in pairs]
    if level_weights is not None:
        weight *= [level_weights[int(y[i]), int(y[j])] for i, j in pairs]
    return weight


def sqrt_weights(pairs, qid):
    """1/√P for each pair of a query with P pairs: the default weights of SparseRanker."""
    query = np.asarray(qid)[pairs[:, 0]]
    return np.array([1.0 / np.sqrt(np.count_nonzero(query == one)) for one in query])


def sqrt_query_weight(data):
    """1/√P of each query with P pairs (any weight without pairs): the default of SparseRanker."""
    pairs = explicit_pairs(data.y, data.qid)
    counts = [np.count_nonzero(data.qid[pairs[:, 0]] == query) for query in data.query_ids]
    return 1.0 / np.sqrt(np.maximum(counts, 1))


def squared_hinge(s, pairs, weight):
    """Σ ω max(0, 1 − (s_i − s_j))², its gradient, its generalised Hessian and Σ ω ξ, in long double."""
    s = np.asarray(s, dtype=np.longdouble)
    value, slack, gradient = np.longdouble(0), np.longdouble(0), np.zeros(len(s), dtype=np.longdouble)
    hessian = np.zeros((len(s), len(s)))
    for (i, j), omega in zip(pairs, weight, strict=True):
        xi = 1 - (s[i] - s[j])
        if xi > 0:
            value += omega * xi**2
            slack += omega * xi
            gradient[i] -= 2 * omega * xi
            gradient[j] += 2 * omega * xi
            e = np.zeros(len(s))
            e[i], e[j] = 1, -1
            hessian += 2 * omega * np.outer(e, e)
    return float(value), gradient.astype(float), hessian, float(slack)


def l1_gap(X, y, qid, w, slopes):
    """Objective and duality gap of mean squared hinge + Σ slopes·|w| from explicit pair differences."""
    pairs = explicit_pairs(y, qid)
    K = X[pairs[:, 0]] - X[pairs[:, 1]]
    xi = np.maximum(0.0, 1.0 - K @ w)
    p = len(pairs)
    primal = xi @ xi / p + slopes @ np.abs(w)
    dual_point = 2.0 * xi / p
    reach = np.abs(K.T @ dual_point)
    dual_point = dual_point * min(1.0, np.min(slopes / np.maximum(reach, 1e-300)))
    assert np.all(np.abs(K.T @ dual_point) <= slopes * (1 + 1e-12))
    # Conjugate of the mean squared hinge: Σ u − p u²/4.
    return primal, primal - (dual_point.sum() - p * (dual_point @ dual_point) / 4.0)
