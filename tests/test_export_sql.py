"""The export to SQL, run by SQLite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ranksieve.data.dataset import Dataset
from ranksieve.export import export_model
from ranksieve.export.sql import GROUP
from ranksieve.model.linear import Curve, LinearModel, Term
from ranksieve.prepare import Preparation
from tests.engine_readers import sql
from tests.refusals import refused_parameter

NAMES = ['the "price"', "it's; DROP TABLE d; --", "größe"]


def documents(holes=False, seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.lognormal(3, 1, n), 1.7e9 + 3e7 * rng.random(n), rng.normal(size=n)])
    X[:6, 2] = 0.1  # constant in the first query
    if holes:
        X[rng.random(X.shape) < 0.2] = np.nan
        X[6:12, 0] = np.nan  # missing in all documents of the second
    return Dataset(X, np.arange(n) % 3, np.repeat(np.arange(n // 6), 6), NAMES)


def model_of(data, kind="none", missing="keep", intercept=0.5):
    terms = tuple(Term(name, j, w) for j, (name, w) in enumerate(zip(NAMES, (0.25, -1.5, 2.0), strict=True)))
    return LinearModel(terms, 3, intercept, Preparation.learn(data, kind, missing).of(NAMES))


def by_query(folder, data):
    """Scores from SQLite, one query at a time."""
    parts = [data.X[data.qid == query] for query in np.unique(data.qid)]
    return np.concatenate([sql(folder, dict(zip(NAMES, part.T, strict=True))) for part in parts])


@pytest.mark.parametrize("kind", ["none", "z", "query_min_max", "query_z"])
@pytest.mark.parametrize("missing", ["keep", "zero", "column_mean", "query_min"])
def test_scores_of_every_preparation(kind, missing, tmp_path):
    data = documents(holes=missing != "keep")
    model = model_of(data, kind, missing)
    result = export_model(model, "sql", tmp_path / "out")
    assert ("expression.sql" in {file.name for file in result.files}) == (not model.per_query)
    np.testing.assert_allclose(by_query(tmp_path / "out", data), model.predict(data), rtol=1e-9, atol=1e-9)


def test_features_that_are_constant_in_a_query_add_nothing(tmp_path):
    data = documents()
    for kind in ("query_z", "query_min_max"):
        model = replace(model_of(data, kind), terms=(Term(NAMES[2], 2, 2.0),))
        export_model(model, "sql", tmp_path / "out")
        assert (by_query(tmp_path / "out", data)[:6] == 0.5).all()


def test_indicators_of_missing_values(tmp_path):
    data = documents(holes=True)
    learned = Preparation.learn(data, "z", "indicator")
    names = [name for name in learned.missing.features if name.startswith(NAMES[0])]
    terms = tuple(Term(name, 0, weight) for name, weight in zip(names, (0.5, 2.0), strict=True))
    for some in (terms, terms[1:]):
        model = LinearModel(some, 3, 0.5, learned.of([term.name for term in some]))
        export_model(model, "sql", tmp_path / "out")
        np.testing.assert_allclose(by_query(tmp_path / "out", data), model.predict(data), rtol=1e-12)


def test_lines_beside_curves(tmp_path):
    data = documents(holes=True).replace_features(np.where([True, False, False], documents(True).X, 1.5))
    curve = Curve((5.0, 20.0, 60.0), (0.0, 1.0, -1.0, 3.0), -7.0)
    model = LinearModel((Term(NAMES[0], 0, 0.5, curve), Term(NAMES[2], 2, 3.0)), 3, 0.25)
    export_model(model, "sql", tmp_path / "out")
    np.testing.assert_array_equal(by_query(tmp_path / "out", data), model.predict(data))


def test_a_value_that_the_model_does_not_fill_gives_no_score_and_comes_last(tmp_path):
    result = export_model(model_of(documents()), "sql", tmp_path / "out")
    scores = sql(tmp_path / "out", {NAMES[0]: [1.0, np.nan], NAMES[1]: [2.0, 2.0], NAMES[2]: [0.0, 0.0]})
    assert np.isnan(scores).tolist() == [False, True]
    assert result.files[1].read_text().rstrip().endswith("DESC NULLS LAST;")


@pytest.mark.parametrize("n", [GROUP, GROUP + 1, 1500])
def test_long_sums_are_not_deeper_than_sqlite_allows(n, tmp_path):
    weights = np.random.default_rng(0).normal(size=n)
    model = LinearModel(tuple(Term(f"f{j}", j, w) for j, w in enumerate(weights.tolist())), n, 1.0)
    export_model(model, "sql", tmp_path / "out")
    X = np.random.default_rng(1).normal(size=(5, n))
    theirs = sql(tmp_path / "out", {f"f{j}": X[:, j] for j in range(n)})
    np.testing.assert_allclose(theirs, model.predict(X), rtol=1e-12)


def test_a_column_with_the_name_of_the_score_is_refused(tmp_path):
    model = LinearModel((Term("Ranker", 0, 1.0),), 1)
    with refused_parameter("name", "ranker"):
        export_model(model, "sql", tmp_path / "out")
    export_model(model, "sql", tmp_path / "out", name="score")


def test_a_warning_about_names_that_postgresql_would_cut(tmp_path):
    model = LinearModel((Term("ä" * 32, 0, 1.0),), 1)
    with pytest.warns(UserWarning, match="PostgreSQL cuts names after 63 bytes"):
        export_model(model, "sql", tmp_path / "out")


def test_numbers_are_read_back_exactly(tmp_path):
    weights = (0.1, 1 / 3, -2.5e-300, 1e22, 5e-324, 123456789.123456789)
    model = LinearModel(tuple(Term(f"f{j}", j, w) for j, w in enumerate(weights)), 6, 0.0)
    export_model(model, "sql", tmp_path / "out")
    for j, weight in enumerate(weights):
        columns = {f"f{k}": [float(k == j)] for k in range(6)}
        assert sql(tmp_path / "out", columns)[0] == pytest.approx(weight, rel=2e-16)
