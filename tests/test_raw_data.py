"""Raw data: warnings about missing values and scales, indicators, path and bench."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import ranksieve as rs
from ranksieve.data.costs import make_costs
from ranksieve.export import export_model
from ranksieve.io.folds import deal_folds
from ranksieve.objective import make_objective
from ranksieve.prepare.missing import learn_missing
from ranksieve.prepare.scaling import ScaleWarning
from ranksieve.rankers.measures import feature_importance, feature_similarity
from tests.conftest import QUICK
from tests.engine_readers import READERS
from tests.refusals import refused_data, refused_parameter

NAMES = ["budget", "runtime", "rating", "votes"]


def films(seed=0, n_queries=24, holes=True, scales=(1.0, 1.0, 1.0, 1.0)):
    """Film data: a missing budget lowers the label."""
    rng = np.random.default_rng(seed)
    n = 10 * n_queries
    X = rng.normal(size=(n, 4)) + 2.0
    unknown = rng.random(n) < 0.3
    noisy = X[:, 0] * ~unknown - 2.0 * unknown + X[:, 2] + 0.3 * rng.normal(size=n)
    y = np.digitize(noisy, np.quantile(noisy, [0.5, 0.8]))
    if holes:
        X[unknown, 0] = np.nan
        X[rng.random(n) < 0.05, 1] = np.nan
    return rs.Dataset(X * scales, y, np.repeat(np.arange(n_queries), 10), NAMES)


TRAIN, TEST = films(0), films(1, 12)
RAW = (1e7, 100.0, 1.0, 1e4)


# --- The warning about missing values --------------------------------------------------------------------


def warning_of(data, **parameters):
    with pytest.warns(UserWarning, match="features") as record:
        rs.RankSVM(**parameters).fit(data)
    assert len(record) == 1
    assert record[0].filename == __file__
    return str(record[0].message)


def test_the_warning_names_features_and_shares():
    assert "2 of 4 features" in warning_of(TRAIN)
    assert "(budget in 32.9 % of the rows, runtime in 6.25 %)" in warning_of(TRAIN)


def test_the_warning_names_features_without_values():
    X = TRAIN.X.copy()
    X[:, 3] = np.nan
    data = TRAIN.replace_features(X)
    assert "(votes)" in warning_of(data)
    with pytest.warns(UserWarning, match=r"\(votes\)"):
        ranker = rs.SparseRanker(**QUICK, shape="linear").fit(data)
    assert ranker.coef_[3] == 0
    assert "votes is missing" not in learn_missing(data, "indicator").features


@pytest.mark.parametrize("policy", ["auto", "column_mean", "indicator"])
def test_data_without_values_are_refused(policy):
    data = TRAIN.replace_features(np.full(TRAIN.X.shape, np.nan))
    with refused_data() as info:
        rs.SparseRanker(missing=policy).fit(data)
    assert "all 4 features" in info.value.reason


def test_complete_data_give_the_same_model_as_policy_error(tmp_path):
    data = films(holes=False)
    models = [rs.RankSVM(missing=policy).fit(data).to_model() for policy in ("auto", "error")]
    contents = [model.to_dict() | {"parameters": None} for model in models]
    assert contents[0] == contents[1]
    assert contents[0]["missing"] == {"policy": "error", "features": (), "means": ()}
    with refused_data() as info:
        models[0].predict(np.full((1, 4), np.nan))
    assert "budget of row 0" in info.value.reason


def test_missing_validation_values_need_fills():
    complete, holes = films(holes=False), films(3)
    with refused_data() as info:
        rs.SparseRanker(**QUICK).fit(complete, valid=holes)
    assert "budget of row" in info.value.reason
    assert "`missing='column_mean'`" in info.value.reason
    chosen = rs.SparseRanker(missing="column_mean", **QUICK).fit(complete, valid=holes)
    assert chosen.missing_.means == pytest.approx(complete.X.mean(axis=0))


def test_a_constant_column_with_missing_values_stays_constant():
    X = TRAIN.X.copy()
    X[:, 3] = np.where(np.arange(len(X)) % 3 == 0, np.nan, 5.0)
    ranker = rs.SparseRanker(missing="column_mean", **QUICK).fit(TRAIN.replace_features(X))
    assert ranker.coef_[3] == 0
    assert ranker.missing_.means[3] == 5.0


def test_missing_values_in_later_chunks_and_files_are_refused_with_a_hint(tmp_path):
    ranker = rs.MinBatSRank().partial_fit(films(holes=False))
    with refused_data() as info:
        ranker.partial_fit(TRAIN)
    assert "`missing='column_mean'`" in info.value.reason
    rs.io.write_letor(TRAIN, tmp_path / "train.txt")
    first = int(np.flatnonzero(np.isnan(TRAIN.X).any(axis=1))[0]) + 1
    with refused_data("train.txt", first):
        rs.MinBatSRank().fit_file(tmp_path / "train.txt", n_features=4)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "use",
    [
        make_objective,
        lambda data: feature_importance("pearson", data),
        lambda data: feature_similarity("kendall", data),
        lambda data: rs.sparse_path(data, missing="error"),
        lambda data: rs.frontier(data, missing="error"),
    ],
)
def test_functions_without_fills_name_feature_and_row_with_a_hint(use, kind):
    with refused_data() as info:
        use(TRAIN.replace_features(kind(TRAIN.X)))
    assert re.search(r"feature \w+ of row \d+ \(query \d+\)", info.value.reason)
    assert "`missing='zero'`" in info.value.reason


def test_a_state_of_minbatsrank_keeps_indicators(tmp_path):
    ranker = rs.MinBatSRank(missing="indicator").partial_fit(TRAIN)
    ranker.save_state(tmp_path / "state.json")
    again = rs.MinBatSRank().load_state(tmp_path / "state.json")
    np.testing.assert_array_equal(again.predict(TEST), ranker.predict(TEST))
    np.testing.assert_array_equal(again.partial_fit(TEST).coef_, ranker.partial_fit(TEST).coef_)


# --- Indicators ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_indicators():
    """A ranker with indicators."""
    return rs.SparseRanker(missing="indicator", families=["log"], **QUICK).fit(TRAIN, valid=films(2))


def test_an_indicator_is_learned_saved_and_explained(with_indicators, tmp_path):
    model = with_indicators.to_model()
    assert {"budget", "budget is missing"} <= set(model.names)
    assert model.weights[model.names.index("budget is missing")] < 0
    model.save(tmp_path / "model.json")
    assert rs.load_model(tmp_path / "model.json") == model
    explanation = rs.explain_query(model, TEST, TEST.qid[0])
    assert "budget is missing" in explanation.features
    np.testing.assert_allclose(
        explanation.contributions.sum(axis=1) + explanation.intercept, explanation.scores
    )
    filled = rs.SparseRanker(missing="column_mean", **QUICK).fit(TRAIN, valid=films(2))
    assert with_indicators.score(TEST) > filled.score(TEST)


def test_without_indicators_the_scores_are_the_same(with_indicators):
    model = with_indicators.to_model()
    folded = model.without_indicators()
    assert not any("is missing" in name for name in folded.names)
    assert folded.missing.policy == "column_mean"
    np.testing.assert_allclose(folded.predict(TEST), model.predict(TEST), rtol=1e-12, atol=1e-13)
    sparse = TEST.replace_features(sp.csr_array(TEST.X))
    np.testing.assert_array_equal(model.predict(sparse), model.predict(TEST))


def model_with_indicator_only(kind="z"):
    """A model with the indicator of the budget, but without the budget."""
    options = {**QUICK, "normalise": kind, "must_not": ["budget"]}
    return rs.SparseRanker(missing="indicator", **options).fit(TRAIN).to_model()


@pytest.mark.parametrize("target", ["python", "onnx"])
@pytest.mark.parametrize("kind", ["none", "z"])
@pytest.mark.parametrize("alone", [False, True])
def test_exports_that_support_fills_have_the_same_scores(target, kind, alone, tmp_path):
    if alone:
        model = model_with_indicator_only(kind)
        assert "budget is missing" in model.names
    else:
        model = rs.SparseRanker(missing="indicator", normalise=kind, **QUICK).fit(TRAIN).to_model()
    (file,) = export_model(model, target, tmp_path / "model.py").files
    columns = {name: TEST.X[:, j].tolist() for j, name in enumerate(NAMES)}
    np.testing.assert_allclose(READERS[target](file, columns), model.predict(TEST), atol=1e-5)


PUT_ZERO = ("elasticsearch", "opensearch", "solr", "ranklib", "vespa", "vespa_second_phase")


@pytest.mark.parametrize("target", PUT_ZERO)
def test_exports_to_engines_report_fills_or_are_refused(target, with_indicators, tmp_path):
    names = {name: f"attribute({name})" for name in NAMES} if target.startswith("vespa") else None
    with pytest.warns(UserWarning, match=r"budget -?\d"):
        export_model(with_indicators.to_model(), target, tmp_path / "out", names=names)
    with pytest.raises(ValueError, match="budget"):
        export_model(model_with_indicator_only(), target, tmp_path / "other", names=names)


def test_an_indicator_shares_the_cost_of_its_feature():
    costs = make_costs({"budget": 5.0, "*": 1.0}).with_indicators(
        learn_missing(TRAIN, "indicator").indicators
    )
    assert costs.of(["budget", "budget is missing"]) == 5.0
    assert costs.of(["runtime is missing"]) == costs.of(["runtime", "runtime is missing"]) == 1.0
    options = {"feature_costs": {"budget": 5.0, "*": 1.0}, "missing": "indicator", **QUICK}
    cheap = rs.SparseRanker(max_cost=4.0, **options).fit(TRAIN)
    assert not any("budget" in name for name in cheap.to_model().names)
    larger = rs.SparseRanker(max_cost=8.0, **options).fit(TRAIN).to_model()
    assert {"budget", "budget is missing"} <= set(larger.names)
    saved = {
        drop.feature: drop.saved
        for drop in rs.feature_importance(larger, TEST, feature_costs=options["feature_costs"])
    }
    assert saved["budget"] == saved["budget is missing"] == 0.0
    front = rs.frontier(TRAIN, **options)
    assert "budget is missing" in front.feature_names


def test_indicators_have_names_and_no_signs():
    signs, name = {"rating": "+"}, "budget is missing"
    bound = rs.SparseRanker(missing="indicator", signs=signs, must_have=[name], **QUICK).fit(TRAIN)
    assert bound.coef_[list(bound.choice_.feature_names).index(name)] < 0
    without = rs.SparseRanker(missing="indicator", must_not=[name], **QUICK).fit(TRAIN)
    assert name not in without.to_model().names
    assert rs.selection_frequency(without, TRAIN, 3).shape == (6,)


# --- Scales ----------------------------------------------------------------------------------------------


def test_different_scales_cause_one_warning():
    raw = films(holes=False, scales=RAW)
    with pytest.warns(ScaleWarning) as record:
        rs.FenchelRank().fit(raw)
    assert len(record) == 1
    assert "budget ranges over" in str(record[0].message)
    assert "rating over" in str(record[0].message)
    with pytest.warns(ScaleWarning) as record:
        rs.baselines.FSRank(max_features=2).fit(raw)
    assert len(record) == 1


def test_no_warning_without_a_reason():
    raw, even = films(holes=False, scales=RAW), films(holes=False, scales=(100.0, 1.0, 0.2, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScaleWarning)
        rs.FenchelRank().fit(even)
        rs.FenchelRank(normalise="z").fit(raw)
        rs.SparseRanker(**QUICK).fit(raw)
        rs.baselines.RankBoost(n_rounds=3).fit(raw)
        rs.baselines.AdaRank(n_rounds=3).fit(raw)
        rs.FenchelRank().fit(rs.make_ranking(20, 8, 3, random_state=0))
        offset = even.replace_features(
            even.X + np.array([0.0, 0.0, 1e9, 0.0])
        )  # large offset, but small scale
        rs.RankSVM().fit(offset)
        rare = even.X.copy()
        rare[:, 3] = np.arange(len(rare)) == 7  # a rare flag has a small deviation, but not a small scale
        rs.RankSVM().fit(even.replace_features(rare))


def test_sparse_ranker_does_not_depend_on_units():
    even, raw = (
        rs.SparseRanker(missing="column_mean", **QUICK).fit(films(scales=s)) for s in ((1.0,) * 4, RAW)
    )
    np.testing.assert_allclose(even.coef_, raw.coef_, rtol=1e-6)


# --- Path and bench --------------------------------------------------------------------------------------


def test_a_path_fills_with_a_warning_and_normalises_if_requested():
    with pytest.warns(UserWarning, match="2 of 4 features"):
        path = rs.sparse_path(TRAIN, n_alphas=5)
    assert path.preparation.missing.policy == "column_mean"
    scaled = rs.sparse_path(TRAIN, n_alphas=5, normalise="z", missing="indicator")
    assert scaled.feature_names == (*NAMES, "budget is missing", "runtime is missing")
    by_hand = rs.sparse_path(scaled.preparation.apply(TRAIN), n_alphas=5)
    np.testing.assert_allclose(scaled.coefs, by_hand.coefs, rtol=1e-9, atol=1e-12)
    assert scaled.to_dict()["normalisation"]["kind"] == "z"
    with refused_parameter("missing", "keep"):
        rs.sparse_path(TRAIN, missing="keep")
    weighted = rs.sparse_path(TRAIN, n_alphas=3, normalise="z", missing="zero", query_weight=np.full(24, 2.0))
    even = rs.sparse_path(TRAIN, n_alphas=3, normalise="z", missing="zero")
    np.testing.assert_allclose(weighted.coefs, even.coefs, rtol=1e-6)


@pytest.mark.full
def test_bench_prepares_data_equally_for_all_methods(tmp_path):
    folds = {"films": deal_folds(films(n_queries=30, scales=RAW), 3)}
    methods = ["sparseranker", "fsrank"]
    how = {"methods": methods, "grid": "fast"}
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        rs.bench(folds, out=tmp_path / "raw", normalise="none", **how)
    assert [one.category for one in record] == [ScaleWarning, UserWarning]
    assert str(record[0].message).startswith("films: the scales of features differ by a factor of")
    assert str(record[1].message).startswith("films: 2 of 4 features have missing values")
    results = rs.bench(folds, out=tmp_path / "z", normalise="z", missing="indicator", **how)
    method = results.data_sets["films"].results["sparseranker"]
    ranker = rs.SparseRanker(missing="indicator", metric="ndcg@10", normalise="z")
    train, valid, test = folds["films"][0]
    by_hand = ranker.fit(train, valid=valid)
    np.testing.assert_allclose(method.folds[0].coef, by_hand.coef_, rtol=1e-6, atol=1e-9)
    measured = rs.evaluate(by_hand.predict(test), test, ["ndcg@10"])
    assert method.folds[0].test.mean["ndcg@10"] == pytest.approx(measured.mean["ndcg@10"])
    with refused_data() as info:
        rs.bench(folds, out=tmp_path / "none", missing="error", **how)
    assert info.value.__notes__ == ["films, fold 1"]
    assert not (tmp_path / "none").exists()
