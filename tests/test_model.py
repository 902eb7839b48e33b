"""Model files: round trips, predictions, damaged files, bit-identical sums."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from ranksieve.data.matrix import dense_block
from ranksieve.model.linear import (
    LinearModel,
    Term,
    linear_scores,
    linear_scores_of_models,
    load_model,
)
from ranksieve.prepare import Normalisation, Preparation
from tests.conftest import random_dataset
from tests.refusals import refused_data


@pytest.fixture
def model():
    return LinearModel(
        (Term("f2", 1, 0.1 + 0.2), Term("f5", 4, -1e-17)), 5, intercept=0.5, method="SparseRanker",
        parameters={"max_features": 2}, certificate={"objective": 0.9, "gap": 1e-9},
        metrics={"validation map": 0.4}, data={"train": "00ff", "valid": "11ee"},
    )  # fmt: skip


def test_round_trip_is_exact(model, tmp_path):
    model.save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json") == model


@pytest.mark.parametrize(
    "proof",
    [
        {"family": "log", "alpha": 0.1, "weights": {"f1": 0.5, "f2": np.inf}, "features": ["f1", "f2"]},
        {"kind": "of another release", "sets": [[1, 2], ["a"]], "more": {"deep": True}},
    ],
)
def test_certificates_can_have_other_types(model, proof, tmp_path):
    certified = replace(model, certificate=proof)
    certified.save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json") == certified


def test_predict_by_name_and_by_position(model):
    data = random_dataset()
    expected = 0.5 + data.X[:, 1] * (0.1 + 0.2) + data.X[:, 4] * -1e-17
    np.testing.assert_allclose(model.predict(data), expected)
    np.testing.assert_allclose(model.predict(data.X), expected)
    np.testing.assert_allclose(model.predict(sp.csr_array(data.X)), expected)
    frame = pd.DataFrame({"f5": data.X[:, 4], "other": 0.0, "f2": data.X[:, 1]})
    np.testing.assert_allclose(model.predict(frame), expected)


def test_a_model_without_features_returns_its_intercept(small):
    np.testing.assert_array_equal(LinearModel((), 5, 2.0).predict(small), np.full(small.n_docs, 2.0))


def test_missing_columns_are_named(model):
    with refused_data() as info:
        model.predict(pd.DataFrame({"f2": [1.0]}))
    assert ": f5" in info.value.reason
    with refused_data() as info:
        model.predict(np.ones((2, 3)))
    assert "X has 3" in info.value.reason


def damaged(change):
    def text(model):
        content = model.to_dict()
        change(content)
        return json.dumps(content)

    return text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (lambda m: "", "JSON"),
        (lambda m: json.dumps(m.to_dict())[:-40], "JSON"),
        (lambda m: "[1, 2]", '"format"'),
        (lambda m: '{"format": "other"}', '"format"'),
        (
            damaged(lambda c: c.update(format_version=99)),
            "version 99",
        ),
        (lambda m: '{"a":' * 100_000, "nested"),
        (damaged(lambda c: c.pop("terms")), "terms"),
        (damaged(lambda c: c.update(terms="abc")), "terms: expected 'array'"),
        (damaged(lambda c: c.update(terms=[1])), "terms[0]: expected 'object'"),
        (damaged(lambda c: c["terms"][0].pop("name")), "terms[0]: object missing required field 'name'"),
        (damaged(lambda c: c["terms"][0].update(name=None)), "terms[0].name: expected 'str'"),
        (
            damaged(lambda c: c["terms"][0].update(weight="heavy")),
            "terms[0].weight: expected 'float'",
        ),
        (damaged(lambda c: c["terms"][0].update(weight=True)), "weight: expected 'float', got 'bool'"),
        (damaged(lambda c: c["terms"][0].update(weight=10**400)), "weight: expected a finite number"),
        (damaged(lambda c: c["terms"][0].update(index=1.5)), "index: expected 'int'"),
        (
            damaged(lambda c: c["terms"][0].update(index=float("inf"))),
            "index: expected 'int'",
        ),
        (damaged(lambda c: c["terms"][0].update(index=-1)), "a feature index is outside 0..4"),
        (damaged(lambda c: c.update(n_features="5")), "n_features: expected 'int'"),
        (damaged(lambda c: c.update(n_features=5.0)), "n_features: expected 'int'"),
        (damaged(lambda c: c.update(intercept=None)), "intercept: expected 'float'"),
        (damaged(lambda c: c.update(method=["a"])), "method: expected 'str'"),
        (damaged(lambda c: c.update(parameters=None)), "parameters: expected 'object'"),
        (
            damaged(lambda c: c.update(certificate={"gap": "x"})),
            "certificate[...]: expected 'float'",
        ),
        (
            damaged(lambda c: c.update(certificate={"gap": [1.0]})),
            "certificate[...]: expected 'float'",
        ),
        (
            damaged(lambda c: c.update(certificate={"family": 3})),
            "certificate.family: expected 'str'",
        ),
        (
            damaged(lambda c: c.update(certificate={"features": "f1"})),
            "certificate.features: expected 'array'",
        ),
        (
            damaged(lambda c: c.update(certificate={"weights": {"f1": "x"}})),
            "certificate.weights[...]",
        ),
        (damaged(lambda c: c.update(certificate={"kind": 1})), "certificate.kind: expected 'str'"),
        (damaged(lambda c: c["terms"][0].update(index=9)), "a feature index is outside 0..4"),
        (damaged(lambda c: c["terms"][0].update(index=4)), "a feature occurs twice"),
        (
            damaged(lambda c: c["terms"][0].update(weight=float("nan"))),
            "weight: expected a finite number",
        ),
        (damaged(lambda c: c.update(data=None)), "data: expected 'object'"),
        (damaged(lambda c: c.update(data={"train": 3})), "data[...]: expected 'str'"),
        (damaged(lambda c: c.update(fingerprint="00ff")), "'fingerprint'"),
        (damaged(lambda c: c.update(format_version=3)), "version 3"),
        (damaged(lambda c: c.update(extra=1)), "'extra'"),
    ],
)
def test_damaged_files(model, tmp_path, text, words):
    path = tmp_path / "m.json"
    path.write_text(text(model))
    with refused_data(path) as info:
        load_model(path)
    assert words in info.value.reason


def test_an_unwritable_path_is_named(model, tmp_path):
    with pytest.raises(OSError, match=r"m\.json"):
        model.save(tmp_path / "missing" / "m.json")


# --- sums --------------------------------------------------------------------------------------------------


def stored_twice_and_in_disorder(X):
    """X as CSR with duplicate entries 2x and −x for each x and columns in descending order."""
    rows, columns = (index[::-1] for index in np.nonzero(np.ones_like(X)))
    order = np.argsort(rows, kind="stable")
    rows, columns = rows[order], columns[order]
    values = X[rows, columns]
    data = np.column_stack([2 * values, -values]).ravel()
    indptr = np.arange(len(X) + 1) * 2 * X.shape[1]
    return sp.csr_array((data, np.repeat(columns, 2), indptr), X.shape)


def memory_mapped(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


LAYOUTS = {
    "rows": lambda X, folder: np.ascontiguousarray(X),
    "columns": lambda X, folder: np.asfortranarray(X),
    "every second row": lambda X, folder: np.repeat(X, 2, axis=0)[::2],
    "a file": memory_mapped,
    "CSR": lambda X, folder: sp.csr_array(X),
    "CSR in disorder": lambda X, folder: stored_twice_and_in_disorder(X),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_scores_are_sums_in_order_of_the_terms_bit_for_bit(layout, dtype, tmp_path):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(50, 30)) * (rng.random((50, 30)) < 0.5) * 10.0 ** rng.integers(-8, 8, 30)).astype(
        dtype
    )
    X[40:] = X[:10]
    columns = rng.permutation(30)[:17]
    weights = rng.normal(size=17)
    expected = np.zeros(50)
    for column, weight in zip(columns, weights, strict=True):
        expected += X[:, column].astype(np.float64) * weight
    stored = LAYOUTS[layout](X, tmp_path)
    for prepare in (None, lambda values: values):
        for rows_at_once in (1, 7, 50):
            scores = linear_scores(stored, columns, weights, prepare, rows_at_once)
            np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(scores[40:], scores[:10])
    np.testing.assert_array_equal(dense_block(stored, slice(5, 60), columns), X[5:, columns])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_many_models_at_once_are_bit_identical(layout, dtype, tmp_path):
    rng = np.random.default_rng(0)
    n, d = 450, 12  # more rows than one block of the kernel
    X = (rng.normal(size=(n, d)).round(1) * 10.0 ** rng.integers(-8, 8, d)).astype(dtype)
    coefs = rng.normal(size=(9, d)) * (rng.random((9, d)) < np.linspace(0, 1, 9)[:, None])
    coefs[:, 5] = 0.0
    X[:, 5] = np.nan  # no model reads it
    coefs[:4, 7] = 0.0
    X[3, 7] = np.nan  # some models read it
    scores = linear_scores_of_models(LAYOUTS[layout](X, tmp_path), coefs)
    assert scores.shape == (n, 9)
    for coef, of_model in zip(coefs, scores.T, strict=True):
        used = np.flatnonzero(coef)
        np.testing.assert_array_equal(of_model, linear_scores(X, used, coef[used]))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_unused_columns_are_not_read(kind):
    X = np.full((4, 5), np.nan)
    X[:, [1, 3]] = np.arange(8.0).reshape(4, 2)
    model = LinearModel((Term("f4", 3, 2.0), Term("f2", 1, 0.5)), 5)
    np.testing.assert_array_equal(model.predict(kind(X)), 2.0 * X[:, 3] + 0.5 * X[:, 1])


def test_weights_that_cannot_be_folded_are_refused():
    tiny = Normalisation("z", ("f1",), (0.0,), (1e-300,))
    with refused_data():
        LinearModel((Term("f1", 0, 1e10),), 1, preparation=Preparation(normalisation=tiny)).folded()
