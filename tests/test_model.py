"""The model file."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from ranksieve.model import LinearModel, Term, load_model
from tests.conftest import random_dataset


@pytest.fixture
def model():
    return LinearModel(
        (Term("f2", 1, 0.1 + 0.2), Term("f5", 4, -1e-17)), 5, intercept=0.5, method="SparseRanker",
        parameters={"max_features": 2}, certificate={"objective": 0.9, "gap": 1e-9},
        metrics={"validation map": 0.4}, fingerprint="00ff",
    )  # fmt: skip


def test_round_trip_is_exact(model, tmp_path):
    model.save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json") == model


def test_predict_by_name_and_by_position(model):
    data = random_dataset()
    expected = 0.5 + data.X[:, 1] * (0.1 + 0.2) + data.X[:, 4] * -1e-17
    np.testing.assert_allclose(model.predict(data), expected)
    np.testing.assert_allclose(model.predict(data.X), expected)
    np.testing.assert_allclose(model.predict(sp.csr_array(data.X)), expected)
    frame = pd.DataFrame({"f5": data.X[:, 4], "other": 0.0, "f2": data.X[:, 1]})
    np.testing.assert_allclose(model.predict(frame), expected)


def test_a_model_without_features_gives_its_intercept(small):
    np.testing.assert_array_equal(LinearModel((), 5, 2.0).predict(small), np.full(small.n_docs, 2.0))


def test_missing_columns_are_named(model):
    with pytest.raises(ValueError, match="the data lack 1 of the model's features: f5"):
        model.predict(pd.DataFrame({"f2": [1.0]}))
    with pytest.raises(ValueError, match="the model was trained on 5 features but X has 3"):
        model.predict(np.ones((2, 3)))


def damaged(change):
    def text(model):
        content = model.to_dict()
        change(content)
        return json.dumps(content)

    return text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (lambda m: "", "not a model file (damaged JSON"),
        (lambda m: json.dumps(m.to_dict())[:-40], "not a model file (damaged JSON"),
        (lambda m: "[1, 2]", "not a ranksieve model"),
        (lambda m: '{"format": "other"}', "not a ranksieve model"),
        (
            damaged(lambda c: c.update(format_version=99)),
            "model format version 99, but this ranksieve reads version 1",
        ),
        (damaged(lambda c: c.pop("terms")), "damaged model file ('terms')"),
        (damaged(lambda c: c["terms"][0].update(weight="heavy")), "damaged model file (could not convert"),
        (damaged(lambda c: c["terms"][0].update(index=9)), "a feature index is outside 0..4"),
        (damaged(lambda c: c["terms"][0].update(index=4)), "a feature occurs twice"),
        (damaged(lambda c: c["terms"][0].update(weight=float("nan"))), "a weight is not a finite number"),
        (damaged(lambda c: c.update(extra=1)), "damaged model file"),
    ],
)
def test_damaged_files(model, tmp_path, text, sentence):
    path = tmp_path / "m.json"
    path.write_text(text(model))
    with pytest.raises(ValueError) as error:
        load_model(path)
    assert str(error.value).startswith(str(path))
    assert sentence in str(error.value)


def test_an_unwritable_place_loses_nothing(model, tmp_path):
    with pytest.raises(OSError, match="cannot write there"):
        model.save(tmp_path / "missing" / "m.json")
