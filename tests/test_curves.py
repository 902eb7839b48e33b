"""Curves: step functions of features, their proofs, models, files and limits."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ranksieve import (
    Dataset,
    SparseRanker,
    card_text,
    explain_query,
    export_model,
    feature_importance,
    frontier,
    load_model,
    make_ranking,
    make_scorecard,
    selection_frequency,
    sparse_path,
    verify,
)
from ranksieve._parallel import use_threads
from ranksieve.data.steps import MISSING, StepMatrix
from ranksieve.errors import DataError, ParameterError
from ranksieve.model.linear import Curve, model_from_dict
from ranksieve.objective import make_objective
from ranksieve.prepare.steps import N_THRESHOLDS, learn_steps, threshold_between, thresholds_of
from tests.refusals import refused_parameter


def curved_data(seed=0, n_queries=30, size=10, shuffled=False):
    """Labels depend on a wave of f1, on f2 being missing and on the flag f4; f5 is constant, f6 missing."""
    rng = np.random.default_rng(seed)
    n = n_queries * size
    X = rng.normal(size=(n, 6))
    X[rng.random(n) < 0.2, 1] = np.nan
    X[:, 3], X[:, 4], X[:, 5] = rng.integers(0, 2, n), 7.0, np.nan
    score = np.sin(2.0 * X[:, 0]) + np.isnan(X[:, 1]) + X[:, 3] + 0.3 * rng.normal(size=n)
    y = np.digitize(score, [0.5, 1.5]).astype(float)
    qid = np.repeat(np.arange(n_queries), size)
    rows = rng.permutation(n) if shuffled else np.arange(n)
    return Dataset(X[rows], y[rows], qid[rows])


@pytest.fixture(scope="module")
def data():
    return curved_data()


@pytest.fixture(scope="module")
def fitted(data):
    return SparseRanker(shape="curves", max_features=3, n_alphas=12).fit(data)


def explicit_steps(steps, X):
    """The n × steps matrix, by comparisons."""
    columns = []
    for j, thresholds in enumerate(steps.thresholds):
        columns += [X[:, j] >= t for t in thresholds]
        columns += [np.isnan(X[:, j])] if steps.missing[j] else []
    return np.array(columns, dtype=float).T


def explicit_gap(S, data, w, alpha):
    """Objective and duality gap of the squared hinge over explicit pairs, with α Σ|w|."""
    better, worse = [], []
    for q in np.unique(data.qid):
        rows = np.flatnonzero(data.qid == q)
        pairs = [(i, j) for i in rows for j in rows if data.y[i] > data.y[j]]
        better += [i for i, _ in pairs]
        worse += [j for _, j in pairs]
    differences = S[better] - S[worse]
    slack = np.maximum(0.0, 1.0 - differences @ w)
    p = len(slack)
    gradient = -2.0 / p * differences.T @ slack
    scale = min(1.0, alpha / np.abs(gradient).max())
    objective = slack @ slack / p + alpha * np.abs(w).sum()
    dual = 2.0 * scale * slack.sum() / p - scale**2 * (slack @ slack) / p
    return objective, objective - dual


@pytest.mark.parametrize("shuffled", [False, True])
def test_objectives_and_gaps_are_those_of_explicit_steps_and_pairs(shuffled):
    data = curved_data(1, shuffled=shuffled)
    path = sparse_path(data, shape="curves", n_alphas=8, min_ratio=0.03, tol=1e-4)
    S = explicit_steps(path.preparation.steps, data.X)
    for k, w in enumerate(path.coefs):
        objective, gap = explicit_gap(S, data, w, path.alphas[k])
        assert path.objectives[k] == pytest.approx(objective, abs=1e-9)
        assert path.gaps[k] == pytest.approx(gap, abs=1e-9)
        assert path.gaps[k] <= 1e-4 * objective


def test_products_and_derivatives_are_those_of_a_dense_matrix(data):
    steps = learn_steps(data)
    prepared, S = steps.apply(data), explicit_steps(steps, data.X)
    np.testing.assert_array_equal(prepared.X[:], S)
    np.testing.assert_array_equal(np.asarray(prepared.X[:, [3, 1]]), S[:, [3, 1]])
    virtual, dense = make_objective(prepared), make_objective(Dataset(S, data.y, data.qid))
    np.testing.assert_array_equal(virtual.varies, dense.varies)
    w = np.random.default_rng(2).normal(size=S.shape[1])
    at, point = virtual.evaluate(w), dense.evaluate(w)
    np.testing.assert_allclose(at.scores, S @ w, atol=1e-12)
    np.testing.assert_allclose(virtual.gradient(at), dense.gradient(point), atol=1e-12)
    np.testing.assert_allclose(virtual.curvatures(at), dense.curvatures(point), atol=1e-12)
    columns = np.arange(0, S.shape[1], 5)
    hessian = dense.hessian(point, columns)
    np.testing.assert_allclose(virtual.hessian(at, columns), hessian, atol=1e-12)
    virtual.features.keep(columns)
    np.testing.assert_allclose(virtual.hessian(virtual.evaluate(w), columns), hessian, atol=1e-12)
    np.testing.assert_allclose(virtual.hessian_product(at, w), dense.hessian_product(point, w), atol=1e-12)
    cuts = np.array([0, 3, 11, data.n_queries])
    np.testing.assert_allclose(virtual.gradients(at, cuts), dense.gradients(point, cuts), atol=1e-10)
    part, few = virtual.restricted(columns), w[columns]
    np.testing.assert_allclose(part.gradient(part.evaluate(few)), dense.restricted(columns).gradient(
        dense.restricted(columns).evaluate(few)), atol=1e-12)  # fmt: skip
    np.testing.assert_array_equal(virtual.features.column(4), S[:, 4])


def test_a_path_has_the_same_bits_for_one_thread_and_two():
    data = curved_data(3, n_queries=5000, size=10)  # several blocks
    paths = []
    for n in (1, 2):
        with use_threads(n):
            paths.append(sparse_path(data, shape="curves", n_alphas=3, min_ratio=0.3))
    np.testing.assert_array_equal(paths[0].coefs, paths[1].coefs)
    np.testing.assert_array_equal(paths[0].gaps, paths[1].gaps)


def test_thresholds_separate_neighbours_also_in_float32():
    rng = np.random.default_rng(4)
    values = np.unique(np.concatenate([rng.normal(size=200), 1.0 + 1e-8 * np.arange(40), [1e-40, 3e38]]))
    for low, high in itertools.pairwise(values):
        t = threshold_between(float(low), float(high))
        if np.float32(low) == np.float32(high):
            assert t is None
        else:
            assert low < t <= high
            assert np.float32(low) < np.float32(t) <= np.float32(high)
    assert threshold_between(1.0, 2.0) == 1.5


def test_thresholds_share_the_weight_and_heavy_values_stand_alone():
    values, ones = np.concatenate([np.zeros(900), np.linspace(1.0, 2.0, 100)]), np.ones(1000)
    thresholds = thresholds_of(values, ones)
    assert N_THRESHOLDS - 4 <= len(thresholds) <= N_THRESHOLDS
    assert thresholds[0] == 0.5
    assert thresholds_of(np.array([3.0, np.nan, 1.0, 1.0]), np.ones(4)) == (2.0,)
    assert thresholds_of(np.array([1.0, 1.0, np.nan]), np.ones(3)) == ()
    assert thresholds_of(np.full(3, np.nan), np.ones(3)) == ()
    twice = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    weight = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
    repeated = np.repeat(twice, weight.astype(int))
    assert thresholds_of(twice, weight, 2) == thresholds_of(repeated, np.ones(len(repeated)), 2)


def test_constant_and_missing_features_have_no_step_and_two_values_one(data):
    steps = learn_steps(data)
    assert [len(thresholds) for thresholds in steps.thresholds] == [32, 32, 32, 1, 0, 0]
    assert steps.missing == (False, True, False, False, False, False)
    assert steps.names[-1] == "f4 ≥ 0.5"
    codes = steps.apply(data).X.codes
    assert (codes[1] == MISSING).sum() == np.isnan(data.X[:, 1]).sum()
    assert (codes[5] == MISSING).all()
    constant = Dataset(np.ones((4, 2)), [1, 0, 1, 0], [0, 0, 1, 1])
    with pytest.raises(DataError, match="same value"):
        sparse_path(constant, shape="curves")


def test_predictions_are_the_step_matrix_times_the_weights(data, fitted):
    S = explicit_steps(fitted.preparation_.steps, data.X)
    scores = fitted.predict(data.X)
    np.testing.assert_allclose(scores, S @ fitted.coef_, atol=1e-12)
    by_codes = fitted.preparation_.apply(data).X.scores_of_models(fitted.coef_[None])
    np.testing.assert_array_equal(by_codes[:, 0], scores)
    np.testing.assert_array_equal(fitted.to_model().predict(data.X.astype(np.float64)[::-1])[::-1], scores)


def test_end_levels_hold_and_a_new_missing_value_contributes_nothing(data, fitted):
    curve = fitted.to_model().terms[0].curve
    assert curve(np.array([-1e9, 1e9, np.nan])).tolist() == [curve.levels[0], curve.levels[-1], 0.0]
    row = data.X[:1].copy()
    row[0] = np.nan
    term = next(term for term in fitted.to_model().terms if term.name == "f2")
    assert term.curve.missing > 0
    assert fitted.predict(row)[0] == term.curve.missing


def test_limits_and_costs_count_features(data):
    costs = {"f1": 1, "f2": 2, "f3": 1, "f4": 1, "f5": 1, "f6": 1}
    ranker = SparseRanker(
        shape="curves", n_alphas=8, feature_costs=costs, max_cost=3, must_not="f4", families=("l1", "log")
    ).fit(data)
    assert set(ranker.support_) <= {0, 1, 2}
    assert ranker.costs_.of(ranker.to_model().names) <= 3
    assert len(ranker.choice_.confidence.frequency) == data.n_features
    assert max(family.n_nonzero.max() for family in ranker.choice_.families) <= data.n_features


def test_a_required_feature_has_one_step_without_penalty(data):
    path = sparse_path(data, shape="curves", n_alphas=12, must_have="f3")
    columns = path.preparation.steps.columns
    own = columns.of(["f3"])
    assert np.flatnonzero(path.coefs[0]).tolist() == [own[len(own) // 2]]
    assert (path.coefs[:, own] != 0).any(axis=1).all()
    assert path.relative_gaps.max() <= 1e-6
    for family in ("l1", "log"):
        ranker = SparseRanker(shape="curves", n_alphas=8, must_have="f3", families=family).fit(data)
        assert "f3" in ranker.to_model().names
        assert verify(ranker, data).holds


@pytest.mark.parametrize("shape", ["curves", "auto"])
def test_a_required_feature_may_be_constant(data, shape):
    ranker = SparseRanker(shape=shape, n_alphas=8, must_have=["f3", "f5"], missing="auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of lines about missing values
        model = ranker.fit(data).to_model()
    assert "f3" in model.names
    assert "f5" not in model.names


def test_auto_fits_lines_to_values_that_float32_does_not_distinguish():
    x, qid = np.random.default_rng(0).random(80), np.repeat(np.arange(20), 4)
    far = Dataset(1e9 + x[:, None], np.digitize(x, [0.5]).astype(float), qid)
    ranker = SparseRanker(n_alphas=5).fit(far)
    assert ranker.support_.tolist() == [0]
    assert ranker.curves_gain_ is None
    with pytest.raises(DataError, match="as float32"):
        SparseRanker(shape="curves").fit(far)


def test_signs_make_curves_monotone(data):
    ranker = SparseRanker(shape="curves", n_alphas=8, signs={"f1": "+", "f2": "-"}).fit(data)
    curves = {term.name: term.curve for term in ranker.to_model().terms}
    assert (curves["f1"].steps >= 0).all()
    assert (curves["f1"].steps > 0).any()
    assert (curves["f2"].steps <= 0).all()
    assert curves["f2"].missing > 0  # the level of missing values is free
    assert verify(ranker, data, refit=False).verdicts[-1].holds


@pytest.mark.parametrize("options", [{}, {"max_features": 2}, {"pair_weighting": "queries", "rule": "best"}])
def test_all_claims_hold_and_a_changed_level_is_found(data, options):
    train = data.select_queries(np.arange(20))
    valid = data.select_queries(np.arange(20, 30))
    ranker = SparseRanker(shape="curves", n_alphas=12, refit_on="all", **options).fit(train, valid=valid)
    model = ranker.to_model()
    assert verify(model, train, valid).holds
    term = model.terms[0]
    for change in (
        {"levels": (*term.curve.levels[:-1], term.curve.levels[-1] + 1e-6)},
        {"thresholds": (*term.curve.thresholds[:-1], term.curve.thresholds[-1] + 1e-6)},
        {"missing": term.curve.missing + 1e-6},
        {"levels": tuple(level + 1.0 for level in term.curve.levels)},
    ):
        changed = replace(term, curve=replace(term.curve, **change))
        forged = replace(model, terms=(changed, *model.terms[1:]))
        assert not verify(forged, train, valid, refit=False).holds
    lines = replace(model, parameters={**model.parameters, "shape": "linear"})
    assert not verify(lines, train, valid, refit=False).holds


def test_the_model_file_contains_the_curves(fitted, data, tmp_path):
    model = fitted.to_model()
    model.save(tmp_path / "model.json")
    read = load_model(tmp_path / "model.json")
    assert read == model
    np.testing.assert_array_equal(read.predict(data), fitted.predict(data))
    content = model.to_dict()
    assert content["format_version"] == 5
    content["terms"][0]["curve"]["levels"] = content["terms"][0]["curve"]["levels"][:-1]
    with pytest.raises(DataError, match=r"terms\[0\].curve"):
        model_from_dict(content)
    line = SparseRanker(n_alphas=5, missing="zero").fit(data).to_model().to_dict()
    assert line["format_version"] == 4
    assert "curve" not in line["terms"][0]
    with pytest.raises(DataError, match="version 5"):
        model_from_dict({**line, "format_version": 5})


def test_a_curve_has_a_level_more_than_thresholds_in_ascending_order():
    with pytest.raises(ParameterError, match="levels"):
        Curve((1.0,), (0.0,))
    with pytest.raises(ParameterError, match="thresholds"):
        Curve((2.0, 1.0), (0.0, 1.0, 2.0))


def test_explanations_are_exact_sums(fitted, data):
    query = explain_query(fitted, data, 3)
    np.testing.assert_allclose(query.contributions.sum(axis=1), query.scores, atol=1e-12)
    drop = feature_importance(fitted, data, n_permutations=10)[0]
    assert drop.loss > 0


def test_the_python_module_is_bit_identical(fitted, data, tmp_path):
    model = fitted.to_model()
    export_model(model, "python", tmp_path / "ranker.py")
    scope = {}
    exec((tmp_path / "ranker.py").read_text(), scope)
    rows = [dict(zip(data.feature_names, row, strict=True)) for row in data.X.tolist()]
    np.testing.assert_array_equal([scope["score"](row) for row in rows], model.predict(data))


@pytest.mark.parametrize("signs", [None, {"f1": "+"}])
def test_scorecards_have_points_per_range(data, signs, tmp_path):
    ranker = SparseRanker(shape="curves", max_features=3, n_alphas=12, signs=signs).fit(data)
    card = make_scorecard(ranker, data, levels=5)
    card.save(tmp_path / "card.json")
    assert load_model(tmp_path / "card.json") == card
    assert verify(card, data).holds
    assert all(1 <= abs(points) <= 5 for points in card.card.points.values())
    assert set(card.card.points) <= set(ranker.to_model().weights_by_name)
    assert 0 <= card.certificate["relative_gap"] < 0.2
    for term in card.terms:
        assert all(float(level).is_integer() for level in (*term.curve.levels, term.curve.missing))
        assert signs is None or term.name != "f1" or (term.curve.steps > 0).all()
    row = int(np.flatnonzero(~np.isnan(data.X[:, 1]))[0])
    best = explain_query(card, data, data.query_ids[0]).rows[0]
    text = card_text(card, data)
    assert text.count("missing") == sum(term.curve.missing != 0 for term in card.terms) + int(
        np.isnan(data.X[best, [term.index for term in card.terms]]).sum()
    )
    points = sum(term.curve(data.X[row : row + 1, term.index])[0] for term in card.terms)
    assert card.predict(data)[row] == points


@pytest.mark.parametrize("units", [{"f1": 2.0}, {"f1 ≥ 0.5": 2.0}])
def test_curves_have_no_units(fitted, data, units):
    with refused_parameter("units", units):
        make_scorecard(fitted, data, units=units)


def test_a_changed_point_is_found(fitted, data):
    card = make_scorecard(fitted, data)
    content = card.to_dict()
    step, points = next(iter(content["card"]["points"].items()))
    content["card"]["points"][step] = points - 1 if points > 1 else points + 1
    with pytest.raises(DataError, match="the weight of"):
        model_from_dict(content)


def test_a_previous_model_with_curves_gives_its_features(data):
    first, second = (data.select_queries(part) for part in (range(15), range(15, data.n_queries)))
    old = SparseRanker(2, shape="curves", n_alphas=10).fit(first).to_model()
    ranker = SparseRanker(2, shape="auto").fit(second, previous=old)
    new = ranker.to_model()
    assert ranker.choice_.family.label == "l1 with the previous features"
    assert set(new.names) <= set(old.names)
    assert new.certificate["alpha"] == old.certificate["alpha"]
    assert new.certificate["relative_gap"] <= 1e-6
    change = ranker.changes_.features[0]
    ranges = [{name: curve.range for name, curve in model.curves.items()} for model in (old, new)]
    assert (change.before, change.after) == tuple(one[change.feature] for one in ranges)
    assert verify(new, second, previous=old).holds
    again = SparseRanker(2, shape="curves").fit(second, previous=old)
    np.testing.assert_array_equal(again.coef_, ranker.coef_)


def test_lines_and_curves_are_not_updated_to_one_another(fitted, data):
    line = SparseRanker(shape="linear", n_alphas=5, missing="zero").fit(data)
    for shape, previous in (("linear", fitted), ("curves", line)):
        with refused_parameter("shape", shape):
            SparseRanker(shape=shape).fit(data, previous=previous)
    with pytest.warns(UserWarning, match="missing values"):
        assert SparseRanker(shape="auto").fit(data, previous=line).preparation_.steps is None


@pytest.mark.parametrize(
    "options",
    [{"families": "forward"}, {"normalise": "z"}, {"missing": "zero"}, {"device": "cuda"}, {"shape": "wave"}],
)
def test_unsupported_parameters_are_refused(data, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        SparseRanker(**{"shape": "curves", **options}).fit(data)


def test_other_results_of_a_choice_are_about_features(fitted, data):
    points = frontier(data, shape="curves", n_alphas=5, families=("l1",))
    assert points.n_features.max() <= data.n_features
    assert set(points.to_dict()["points"][-1].get("features", ["f1"])) <= set(data.feature_names)
    frequency = selection_frequency(fitted, data, n_subsamples=2)
    assert frequency.shape == (data.n_features,)
    assert frequency[0] == 1.0


def test_data_on_disk_have_the_curves_of_data_in_memory(data, tmp_path):
    from ranksieve.io import convert_dataset

    on_disk = convert_dataset(data, tmp_path / "folder")
    paths = [sparse_path(one, shape="curves", n_alphas=4, min_ratio=0.2) for one in (data, on_disk)]
    np.testing.assert_array_equal(paths[0].coefs, paths[1].coefs)
    assert isinstance(paths[1].preparation.apply(on_disk).X, StepMatrix)


def test_auto_selects_curves_where_they_rank_held_out_queries_better():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (1200, 4))
    y = (np.abs(X[:, 0]) + 0.2 * rng.normal(size=1200) < 0.6).astype(float)
    bent, straight = (
        Dataset(X, labels, np.repeat(np.arange(60), 20))
        for labels in (y, (X[:, 1] + 0.5 * rng.normal(size=1200) > 1).astype(float))
    )
    for data, has_curves in ((bent, True), (straight, False)):
        line, curves, auto = (SparseRanker(shape=shape).fit(data) for shape in ("linear", "curves", "auto"))
        gain = curves.choice_.chosen_values - line.choice_.chosen_values
        assert auto.curves_gain_[0] == pytest.approx(gain.mean())
        assert (gain.mean() > stats.sem(gain)) == has_curves == auto.to_model().has_curves
        chosen = curves if has_curves else line
        np.testing.assert_array_equal(auto.predict(data), chosen.predict(data))
        np.testing.assert_array_equal(auto.coef_, chosen.coef_)
        assert line.curves_gain_ is curves.curves_gain_ is None
        assert all(verdict.holds for verdict in verify(auto.to_model(), data).verdicts)


def test_auto_fits_lines_alone_with_parameters_of_lines():
    data = make_ranking(n_queries=20, n_features=5, n_informative=3, random_state=0)
    assert SparseRanker(shape="auto", normalise="z").fit(data).curves_gain_ is None
    assert SparseRanker(shape="auto", families=("forward",)).fit(data).curves_gain_ is None
    assert SparseRanker(shape="auto").fit(data, previous=SparseRanker().fit(data)).curves_gain_ is None


def test_the_progress_of_auto_is_that_of_one_fit():
    data, shares = make_ranking(n_queries=20, n_features=5, n_informative=3, random_state=0), []
    SparseRanker(shape="auto", cv=2).fit(data, progress=lambda done, total: shares.append(done / total))
    assert 0 < shares[0] < 0.5 < shares[-1] <= max(shares) <= 1
