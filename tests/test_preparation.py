"""Preparation: filling of missing values, then normalisation."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from ranksieve.data.dataset import Dataset
from ranksieve.data.queries import one_query
from ranksieve.prepare import (
    KEEP_MISSING,
    NO_PREPARATION,
    NOT_NORMALISED,
    MissingPolicy,
    Normalisation,
    Preparation,
)
from ranksieve.prepare.missing import FILLS, learn_missing
from ranksieve.prepare.scaling import NORMALISATIONS, learn_normalisation
from tests.conftest import random_dataset
from tests.refusals import refused_data, refused_parameter


@pytest.fixture
def holes() -> Dataset:
    data = random_dataset(seed=7, n_queries=8, n_features=4)
    data.X[np.random.default_rng(1).random(data.X.shape) < 0.15] = np.nan
    return data


@pytest.mark.parametrize("kind", NORMALISATIONS)
@pytest.mark.parametrize("policy", FILLS)
def test_equals_the_steps_in_sequence(kind, policy, holes):
    learned = Preparation.learn(holes, kind, policy)
    missing = learn_missing(holes, policy)
    filled = missing.apply(holes)
    normalisation = learn_normalisation(filled, kind)
    assert learned == Preparation(missing, normalisation)
    expected = normalisation.apply(filled).X
    np.testing.assert_array_equal(learned.apply(holes).X, expected)
    np.testing.assert_array_equal(learned.transform(holes.X.copy(), holes.queries), expected)
    assert learned.per_query == (kind.startswith("query") or policy == "query_min")
    assert learned.fills
    assert learned.changes_features


def test_for_learning_keeps_differences_of_a_sparse_matrix(holes):
    sparse = holes.replace_features(sp.csr_array(holes.X))
    learned = Preparation.learn(sparse, "z", "zero")
    X, exact = learned.for_learning(sparse).X.toarray(), learned.apply(holes).X
    np.testing.assert_allclose(X - X[0], exact - exact[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["z", "within_z"])
def test_statistics_use_query_weights(kind, holes):
    weight = np.random.default_rng(2).integers(1, 4, holes.n_queries)
    repeated = holes.select_rows(np.repeat(np.arange(holes.n_docs), holes.queries.of_rows(weight)))
    weighted = Preparation.learn(holes, kind, "column_mean", weight.astype(float))
    plain = Preparation.learn(repeated, kind, "column_mean")
    np.testing.assert_allclose(weighted.missing.means, plain.missing.means)
    np.testing.assert_allclose(weighted.normalisation.centre, plain.normalisation.centre)
    np.testing.assert_allclose(weighted.normalisation.scale, plain.normalisation.scale)


def test_some_of_the_features(holes):
    learned = Preparation.learn(holes, "min_max", "column_mean")
    some = learned.of(["f4", "f2"])
    assert some.missing.features == some.normalisation.features == ("f4", "f2")
    expected = learned.apply(holes).X[:, [3, 1]]
    np.testing.assert_array_equal(some.transform(holes.X[:, [3, 1]], holes.queries), expected)
    assert NO_PREPARATION.of(["f4"]) == NO_PREPARATION
    marked = Preparation.learn(holes, "within_z", "indicator")
    assert marked.of(["f4", "f2"]).missing.policy == "column_mean"
    both = marked.of(["f2", "f2 is missing"])
    expected = marked.apply(holes).X[:, [1, 5]]
    np.testing.assert_array_equal(both.transform(holes.X[:, [1, 1]], holes.queries), expected)


@pytest.mark.parametrize("kind", NORMALISATIONS)
@pytest.mark.parametrize("policy", ["error", "keep", "indicator", *FILLS])
def test_updating_the_preparation_of_some_features(kind, policy, holes):
    if policy in ("error", "keep"):
        holes = holes.replace_features(np.nan_to_num(holes.X))
    first, second = (Preparation.learn(data, kind, policy) for data in (holes, halved(holes)))
    assert first.updated(first.of(["f4", "f2"])) == first
    mixed = second.updated(first.of(["f4", "f2"]))
    assert mixed.of(["f4", "f2"]) == first.of(["f4", "f2"])
    assert mixed.of(["f1"]) == second.of(["f1"])


def halved(data):
    return data.replace_features(data.X / 2)


@pytest.mark.parametrize("kind", NORMALISATIONS)
@pytest.mark.parametrize("policy", ["error", "keep", "indicator", *FILLS])
def test_round_trip_as_json(kind, policy, holes):
    data = random_dataset() if policy in ("error", "keep") else holes
    learned = Preparation.learn(data, kind, policy)
    again = Preparation.from_dict(json.loads(json.dumps(learned.to_dict())))
    assert again == learned


def test_the_default_changes_nothing(holes):
    assert (
        Preparation(KEEP_MISSING, NOT_NORMALISED)
        == NO_PREPARATION
        == Preparation.learn(holes, "none", "keep")
    )
    assert NO_PREPARATION.apply(holes) is NO_PREPARATION.for_learning(holes) is holes
    values = holes.X.copy()
    assert NO_PREPARATION.transform(values, one_query(len(values))) is values
    assert not NO_PREPARATION.changes_features
    assert NO_PREPARATION.to_dict() == {"normalisation": None, "missing": None}


def test_missing_values_are_refused_before_a_mean_is_learned(holes):
    with refused_data() as info:
        Preparation.learn(holes, "z", "error")
    assert "is missing" in info.value.reason
    with refused_data() as info:
        Preparation(MissingPolicy("error"), Normalisation("query_z")).apply(holes)
    assert "is missing" in info.value.reason
    with refused_parameter("normalise", "zed"):
        Preparation.learn(holes, "zed", "zero")
    with refused_parameter("missing", "guess"):
        Preparation.learn(holes, "z", "guess")
