"""describe against brute-force counting, dense and sparse."""

import json
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import describe
from tests.tiers import examples

module = import_module("ranksieve.data.describe")

cells = st.sampled_from([0.0, -0.0, 1.0, 2.0, float("nan"), -float("nan"), float("inf")])


def same(a, b):
    return a == b or (a != a and b != b)


def brute_force(X, y, qid):
    rows = {q: [i for i in range(len(y)) if qid[i] == q] for q in dict.fromkeys(qid)}
    columns = [f"f{j + 1}" for j in range(X.shape[1])]
    constant = [n for j, n in enumerate(columns) if all(same(v, X[0, j]) for v in X[:, j])]
    within = [
        name
        for j, name in enumerate(columns)
        if all(same(X[i, j], X[r[0], j]) for r in rows.values() for i in r)
    ]
    pairs = {q: sum(y[i] > y[j] for i in r for j in r) for q, r in rows.items()}
    groups = []
    for j in range(X.shape[1]):
        equal = [g for g in groups if all(same(a, b) for a, b in zip(X[:, g[0]], X[:, j], strict=True))]
        equal[0].append(j) if equal else groups.append([j])
    missing = {n: int(c) for n, c in zip(columns, np.isnan(X).sum(axis=0), strict=True) if c}
    return {
        "n_docs": len(y),
        "n_queries": len(rows),
        "n_features": X.shape[1],
        "list_length_min": min(len(r) for r in rows.values()),
        "list_length_median": float(np.median([len(r) for r in rows.values()])),
        "list_length_max": max(len(r) for r in rows.values()),
        "label_counts": {label: y.count(label) for label in sorted(set(y))},
        "n_pairs": sum(pairs.values()),
        "n_queries_without_pairs": sum(count == 0 for count in pairs.values()),
        "n_single_document_queries": sum(len(r) == 1 for r in rows.values()),
        "n_scattered_queries": sum(r[-1] - r[0] + 1 != len(r) for r in rows.values()),
        "constant_features": tuple(constant),
        "constant_within_queries": tuple(within),
        "duplicate_features": tuple(tuple(columns[j] for j in g) for g in groups if len(g) > 1),
        "missing": missing,
        "n_missing": sum(missing.values()),
        "n_infinite": int(np.isinf(X).sum()),
        "zero_share": float((X == 0).mean()),
    }


@examples(200)
@given(st.data(), st.integers(1, 9), st.integers(1, 5), st.booleans(), st.sampled_from([1, 7, 2**20]))
def test_figures_equal_brute_force(data, n, d, contiguous, cells_at_once):
    X = np.array(data.draw(st.lists(st.lists(cells, min_size=d, max_size=d), min_size=n, max_size=n)))
    y = data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=n, max_size=n))
    qid = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    qid = sorted(qid) if contiguous else qid
    expected = brute_force(X, y, qid)
    before, module.CELLS_AT_ONCE = module.CELLS_AT_ONCE, cells_at_once
    try:
        assert vars(describe(Dataset(X, y, qid))) == expected
        assert vars(describe(Dataset(X.astype(np.float32), y, qid))) == expected
        assert vars(describe(Dataset(sp.csr_array(X), y, qid))) == expected
    finally:
        module.CELLS_AT_ONCE = before


def test_explicit_zeros_count_as_zeros():
    X = sp.csr_array((np.array([0.0, 3.0]), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 3))
    figures = describe(Dataset(X, [0, 1], [1, 1]))
    assert figures.zero_share == 5 / 6
    assert figures.constant_features == ("f1", "f3")
    assert figures.duplicate_features == (("f1", "f3"),)
    assert X.nnz == 2


def test_plain_values_for_json():
    figures = describe(Dataset([[1.0, np.nan], [2.0, 3.0]], [0, 0.5], ["a", "a"]))
    content = json.loads(json.dumps(figures.to_dict()))
    assert content["label_counts"] == {"0": 1, "0.5": 1}
    assert content["missing"] == {"f2": 1}
    assert content["n_pairs"] == 1


def test_hash_collisions_are_not_duplicates(monkeypatch):
    monkeypatch.setattr(module, "_row_factors", lambda n: np.zeros(n, dtype=np.uint64))
    figures = describe(Dataset([[1.0, 2.0, 1.0], [1.0, 5.0, 1.0]], [0, 1], [1, 1]))
    assert figures.duplicate_features == (("f1", "f3"),)


def test_description_cannot_be_changed():
    with pytest.raises(AttributeError):
        describe(Dataset([[1.0]], [0], [1])).n_docs = 3
