"""Models of scikit-learn pipelines, and arrays and frames as scikit-learn users pass them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import ranksieve as rs
from ranksieve.rankers.base import StandardisedWarning
from tests.refusals import refused_as, refused_data, refused_parameter

RNG = np.random.default_rng(5)
QID = np.repeat(np.arange(30), 12)
FRAME = pd.DataFrame(
    RNG.normal(size=(360, 6)) * [1, 30, 0.2, 5, 1, 20] + [0, 1000, 0, -7, 3, 1],
    columns=["bm25", "clicks", "age", "price", "rank", "votes"],
)
LABELS = ((FRAME.bm25 + FRAME.clicks / 30 - FRAME.price / 5 + RNG.normal(size=360)) > 34).astype(int)
HOLES = FRAME.mask(RNG.random(FRAME.shape) < 0.1)
RANKER = {"normalise": "none", "alpha": 0.01}


def ranker(**parameters):
    return rs.SparseRankSVM(**{**RANKER, **parameters})


def fitted(pipeline, X=FRAME):
    *_, (name, _) = pipeline.steps
    return pipeline.fit(X, LABELS, **{f"{name}__qid": QID})


BY_COLUMNS = ColumnTransformer(
    [
        ("wide", RobustScaler(), ["clicks", "votes"]),
        ("narrow", make_pipeline(StandardScaler(), MinMaxScaler()), slice("age", "rank")),
        ("gone", "drop", [0]),
    ],
    remainder="passthrough",
)


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler()],
        [StandardScaler(with_mean=False)],
        [StandardScaler(with_std=False)],
        [MinMaxScaler((-1, 3))],
        [MaxAbsScaler()],
        [RobustScaler()],
        [RobustScaler(), StandardScaler()],
        [VarianceThreshold(0.5), StandardScaler()],
        [StandardScaler(), "passthrough"],
        [FunctionTransformer(), StandardScaler()],
        [BY_COLUMNS],
    ],
    ids=str,
)
@pytest.mark.parametrize("own", ["none", "z", "within_z", "min_max", "query_min_max", "query_z"])
def test_the_model_of_a_pipeline_scores_raw_features_like_the_pipeline(steps, own):
    pipeline = fitted(make_pipeline(*steps, ranker(normalise=own)))
    model = rs.to_model(pipeline)
    behind = pipeline[:-1].transform(FRAME)
    expected = pipeline[-1].predict(behind, qid=QID)
    np.testing.assert_allclose(model.predict(FRAME, QID), expected, rtol=1e-9, atol=1e-9)
    assert set(model.names) <= set(FRAME.columns)
    assert model.n_features == 6


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
@pytest.mark.parametrize("missing", ["auto", "zero", "column_mean", "query_min", "indicator"])
@pytest.mark.filterwarnings("ignore:.*missing:UserWarning")
def test_fills_of_the_ranker_are_part_of_the_model(scaler, missing):
    pipeline = fitted(make_pipeline(scaler, ranker(missing=missing)), HOLES)
    expected = pipeline[-1].predict(pipeline[:-1].transform(HOLES), qid=QID)
    np.testing.assert_allclose(rs.to_model(pipeline).predict(HOLES, QID), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("strategy", ["mean", "median", "constant"])
@pytest.mark.parametrize("first", [True, False])
def test_imputers_become_fills(strategy, first):
    steps = [SimpleImputer(strategy=strategy), StandardScaler()]
    pipeline = fitted(make_pipeline(*(steps if first else steps[::-1]), ranker()), HOLES)
    expected = pipeline.predict(HOLES)
    np.testing.assert_allclose(rs.to_model(pipeline).predict(HOLES), expected, rtol=1e-9, atol=1e-9)


def test_the_model_is_saved_exported_and_explained_in_raw_units(tmp_path):
    model = rs.to_model(fitted(make_pipeline(StandardScaler(), ranker())))
    model.save(tmp_path / "model.json")
    again = rs.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(FRAME), model.predict(FRAME))
    folded = model.folded()
    np.testing.assert_allclose(folded.predict(FRAME), model.predict(FRAME), rtol=1e-9)
    assert folded.normalisation is None


def test_a_pipeline_of_only_a_ranker_has_the_same_model():
    alone = ranker().fit(FRAME, LABELS, qid=QID)
    np.testing.assert_array_equal(
        rs.to_model(alone).predict(FRAME), rs.to_model(fitted(make_pipeline(ranker()))).predict(FRAME)
    )


@pytest.mark.parametrize(
    ("steps", "facts"),
    [
        ([PCA(2)], ("pca",)),
        ([PowerTransformer()], ("powertransformer",)),
        ([MinMaxScaler(clip=True)], ("minmaxscaler__clip", True)),
        ([SimpleImputer(add_indicator=True)], ("simpleimputer__add_indicator", True)),
        ([SimpleImputer(missing_values=-1)], ("simpleimputer__missing_values", -1)),
        ([FunctionTransformer(np.abs)], ("functiontransformer__func", np.abs)),
        (
            [ColumnTransformer([("a", StandardScaler(), [0]), ("b", RobustScaler(), [0])])],
            "bm25 to the ranker more than once",
        ),
        ([ColumnTransformer([("a", SimpleImputer(), ["bm25"])], remainder="passthrough")], "imputes"),
    ],
    ids=str,
)
def test_unsupported_pipeline_steps_are_rejected(steps, facts):
    pipeline = fitted(make_pipeline(*steps, rs.RankSVM()))
    with refused_as(facts):
        rs.to_model(pipeline)


def test_unsupported_estimators_are_rejected():
    with refused_parameter("estimator"):
        rs.to_model(LinearRegression())
    with refused_parameter("scale"):
        rs.to_model(Pipeline([("scale", StandardScaler()), ("rank", ranker())]))


def test_a_warning_about_models_of_standardised_features():
    scaled = StandardScaler().fit_transform(FRAME)
    behind = ranker().fit(scaled, LABELS, qid=QID)
    with pytest.warns(StandardisedWarning, match=r"ranksieve.to_model\(pipeline\) makes a model"):
        behind.to_model()
    for unscaled in (ranker().fit(FRAME, LABELS, qid=QID), behind.fit(rs.Dataset(FRAME, LABELS, QID))):
        unscaled.to_model()  # no warning: warnings are errors in the tests


# --- Arrays and frames -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "y", "facts"),
    [
        (HOLES, LABELS, "is missing"),
        (FRAME.replace(FRAME.iloc[3, 1], np.inf), LABELS, "feature clicks of row 3"),
        (FRAME, LABELS.astype(float).replace(1.0, np.nan), "the label of row"),
        (FRAME.assign(title="x"), LABELS, "'title'"),
        (FRAME, None, ("y", None)),
    ],
    ids=["nan", "inf", "label", "text", "no labels"],
)
def test_bad_frames_are_refused(X, y, facts):
    with refused_as(facts):
        rs.SparseRanker(missing="error").fit(X, y, qid=QID)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_unused_features_can_be_missing():
    model = rs.SparseRanker(max_features=2, missing="error").fit(FRAME, LABELS, qid=QID)
    used, unused = (FRAME.columns[where] for where in (model.coef_ != 0, model.coef_ == 0))
    frame = FRAME.copy()
    frame.loc[4, unused] = [np.nan, np.inf, -np.inf, np.nan][: len(unused)]
    for X in (frame, frame.to_numpy(), rs.Dataset(frame, LABELS, QID)):
        with np.errstate(all="raise"):
            scores = model.predict(X)
        np.testing.assert_array_equal(scores, model.predict(FRAME))
    frame.loc[7, used[0]] = np.nan
    with refused_data() as info:
        model.predict(frame)
    assert f"feature {used[0]} of row 7" in info.value.reason


@pytest.mark.filterwarnings("ignore:.*are also training queries:UserWarning")
def test_validation_data_can_be_arrays():
    valid = (FRAME, LABELS, QID)
    model = rs.SparseRanker(max_features=3).fit(FRAME, LABELS, qid=QID, valid=valid)
    same = rs.SparseRanker(max_features=3).fit(FRAME, LABELS, qid=QID, valid=rs.Dataset(*valid))
    np.testing.assert_array_equal(model.coef_, same.coef_)
    budgeted = rs.GridRanker("ranksvm", max_features=3)
    np.testing.assert_array_equal(
        budgeted.fit(FRAME, LABELS, qid=QID, valid=valid).coef_,
        budgeted.fit(FRAME, LABELS, qid=QID, valid=rs.Dataset(*valid)).coef_,
    )


@pytest.mark.parametrize("valid", [FRAME, (FRAME, LABELS), "vali.txt"], ids=["frame", "two", "name"])
def test_other_validation_data_are_refused(valid):
    with refused_parameter("valid", valid):
        rs.SparseRanker().fit(FRAME, LABELS, qid=QID, valid=valid)
