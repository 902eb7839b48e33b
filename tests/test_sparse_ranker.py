"""SparseRanker: the path and the choice on it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ranksieve.data.dataset import Dataset
from ranksieve.estimators import SparseRanker, frontier
from ranksieve.estimators.choice import best, one_standard_error, standard_error
from ranksieve.metrics import evaluate
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties import L1, Ridge
from ranksieve.preparation.missing import FILLS
from ranksieve.preparation.normalise import NORMALISATIONS
from tests.conftest import random_dataset
from tests.refusals import COUNT, among, wrong
from tests.solving import prox_newton


@pytest.fixture(scope="module")
def train():
    return random_dataset(seed=31, n_queries=40, n_features=12, longest=25)


def halves(data):
    even = np.arange(data.n_queries) % 2 == 0
    return data.select_queries(even), data.select_queries(~even)


def test_chooses_the_best_point_of_the_path_on_validation(train):
    a, b = halves(train)
    fitted = SparseRanker(metric="map", profile="standard").fit(a, valid=b)
    path = sparse_path(a, normalise="z")
    seen = path.preparation.apply(b).X
    means = [evaluate(seen @ w, b, ["map"], "standard").mean["map"] for w in path.coefs]
    used = path.n_nonzero >= 1
    assert fitted.validation_.mean[fitted.chosen_] == pytest.approx(np.max(np.array(means)[used]))
    np.testing.assert_array_equal(fitted.coef_, path.coefs[fitted.chosen_])
    assert fitted.alpha_ == path.alphas[fitted.chosen_]
    assert fitted.gap_ <= 1e-6 * fitted.objective_


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("refit", ["shrunk", "unshrunk"])
def test_the_budget_is_never_exceeded(train, k, refit):
    a, b = halves(train)
    assert 1 <= len(SparseRanker(k, "ndcg@3", refit=refit).fit(a, valid=b).support_) <= k


def test_a_coarse_grid_is_refined_where_it_jumps_over_the_budget(train):
    path = sparse_path(train, n_alphas=3)
    assert path.n_nonzero[1] > 1
    fitted = SparseRanker(1, "ndcg@3", n_alphas=3, cv=3).fit(train)
    assert len(fitted.support_) == 1


def test_cross_validation_holds_out_whole_queries(train):
    """Each query's held-out value is that of a path fitted without it."""
    fitted = SparseRanker(metric="ndcg@5", cv=4, random_state=3).fit(train)
    fold_of = np.random.default_rng(3).permutation(train.n_queries) % 4
    others = train.select_queries(fold_of != 0)
    held_out = train.select_queries(fold_of == 0)
    path = sparse_path(others, alphas=fitted.path_.alphas)
    for k in (10, 50, 99):
        expected = evaluate(held_out.X @ path.coefs[k], held_out, ["ndcg@5"]).per_query["ndcg@5"]
        np.testing.assert_allclose(fitted.validation_.values[k, fold_of == 0], expected)


def test_rules():
    values = np.array([[0.2, 0.4], [0.5, 0.7], [0.6, 0.8], [0.6, 0.8]])
    n_nonzero = np.array([1, 2, 3, 4])
    assert best(values, n_nonzero) == 2
    assert standard_error(values)[2] == pytest.approx(0.1)
    assert one_standard_error(values, n_nonzero) == 1


def test_one_standard_error_is_never_denser(train):
    a, b = halves(train)
    dense = SparseRanker(rule="best", metric="ndcg@5").fit(a, valid=b)
    sparse = SparseRanker(rule="one_standard_error", metric="ndcg@5").fit(a, valid=b)
    assert len(sparse.support_) <= len(dense.support_)
    threshold = dense.validation_.mean[dense.chosen_] - dense.validation_.standard_error[dense.chosen_]
    assert sparse.validation_.mean[sparse.chosen_] >= threshold


def test_unshrunk_weights_minimise_the_loss_on_the_support(train):
    a, b = halves(train)
    fitted = SparseRanker(4, "ndcg@5", refit="unshrunk").fit(a, valid=b)
    support = fitted.support_
    seen = fitted.preparation_.apply(a).X
    kept = a.replace_features(seen[:, support], [f"x{j}" for j in support])
    expected = prox_newton(make_objective(kept), Ridge(1e-3 * fitted.alpha_), tol=1e-10)
    np.testing.assert_allclose(fitted.coef_[support], expected.w, atol=1e-4)
    shrunk = fitted.path_.coefs[fitted.chosen_]
    assert np.abs(fitted.coef_).sum() > np.abs(shrunk).sum()


def test_weights_steer_the_choice(train):
    weights = np.ones(12)
    weights[0] = np.inf
    assert SparseRanker(metric="ndcg@5", weights=weights, cv=3).fit(train).coef_[0] == 0


def test_penalty_object_and_elastic_net(train):
    a, b = halves(train)
    by_name = SparseRanker(metric="ndcg@5", penalty="elastic_net", l1_ratio=0.4).fit(a, valid=b)
    plain = SparseRanker(metric="ndcg@5").fit(a, valid=b)
    given = SparseRanker(metric="ndcg@5", penalty=L1()).fit(a, valid=b)
    np.testing.assert_array_equal(given.coef_, plain.coef_)
    assert by_name.path_.n_nonzero.max() >= 1


def test_query_weight_zero_removes_queries(train):
    a, b = halves(train)
    weight = (np.arange(a.n_queries) < 12).astype(float)
    weighted = SparseRanker(metric="ndcg@5").fit(a, valid=b, query_weight=weight)
    subset = SparseRanker(metric="ndcg@5").fit(a.select_queries(weight > 0), valid=b)
    np.testing.assert_allclose(weighted.coef_, subset.coef_, atol=1e-6)


def test_progress_counts_all_paths(train):
    seen = []
    SparseRanker(metric="ndcg@5", n_alphas=8, cv=3).fit(train, progress=lambda *step: seen.append(step))
    assert seen[-1] == (32, 32)
    assert [done for done, _ in seen] == list(range(1, 33))


def test_a_metric_that_cannot_tell_models_apart_warns():
    data = random_dataset(seed=1, n_queries=20, longest=6)
    with pytest.warns(UserWarning, match="cannot guide the choice"):
        SparseRanker(metric="ndcg@10", profile="letor").fit(data)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        wrong("SparseRanker", among("best", "one_standard_error"), rule="worst"),
        wrong("SparseRanker", among("shrunk", "unshrunk"), refit="maybe"),
        wrong("SparseRanker", COUNT + " or None", max_features=0),
        wrong("SparseRanker", COUNT + " or None", max_features="3"),
        wrong(
            "SparseRanker", "a float in the range [0.0, inf] or None", max_cost="3", feature_costs={"*": 1.0}
        ),
        wrong("SparseRanker", "an int in the range [2, inf)", cv=1),
        ({"alphas": [1e6]}, "no point of the path uses 1 to all features"),
    ],
)
def test_bad_parameters(small, arguments, sentence):
    with pytest.raises(ValueError) as error:
        SparseRanker(metric="map", **arguments).fit(small)
    assert sentence in str(error.value)


def test_validation_data_of_another_width(small):
    narrow = Dataset(small.X[:, :3], small.y, small.qid)
    with pytest.raises(ValueError, match="training data have 5 features but valid has 3"):
        SparseRanker().fit(small, valid=narrow)


@pytest.mark.parametrize("learn", [SparseRanker().fit, SparseRanker().candidates, frontier])
def test_validation_data_that_cannot_choose_are_refused(small, learn):
    alike = Dataset(small.X, np.ones(small.n_docs), small.qid)
    alone = Dataset(small.X, small.y, np.arange(small.n_docs))
    for valid in (alike, alone):
        with pytest.raises(ValueError) as error:
            learn(small, valid=valid)
        assert str(error.value) == (
            "no query of the validation data has documents of different labels, so all models rank them "
            "equally well; give other validation data, or none for cross-validation"
        )
    with pytest.raises(ValueError, match=r"valid must be a Dataset, got tuple; give Dataset\(X, y, qid\)"):
        learn(small, valid=(small.X, small.y, small.qid))


def renamed(data, columns):
    names = [data.feature_names[j] for j in columns]
    return Dataset(data.X[:, columns], data.y, data.qid, names)


@pytest.mark.parametrize("normalise", ["none", "z"])
def test_columns_of_other_data_are_found_by_name(train, normalise):
    """Validation data and documents to rank may come from a table with its columns in another order."""
    turned = renamed(train, np.arange(train.n_features)[::-1])
    one = SparseRanker(normalise=normalise, profile="standard", n_alphas=20).fit(train, valid=train)
    other = SparseRanker(normalise=normalise, profile="standard", n_alphas=20).fit(train, valid=turned)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.predict(turned), one.predict(train))
    assert one.score(turned) == one.score(train)


def test_columns_with_other_names_are_refused_and_without_names_go_by_position(train):
    names = [f"signal_{j}" for j in range(train.n_features)]
    named, strange = (train.replace_features(train.X, [first, *names[1:]]) for first in (names[0], "price"))
    sentence = "SparseRanker was fitted on 1 features that the data set lacks: signal_0; give both the same"
    with pytest.raises(ValueError, match=sentence):
        SparseRanker(profile="standard").fit(named, valid=strange)
    fitted = SparseRanker(profile="standard", n_alphas=5).fit(named, valid=train)
    with pytest.raises(ValueError, match=sentence):
        fitted.predict(strange)
    np.testing.assert_array_equal(fitted.predict(train), fitted.predict(named))


def test_query_weights_may_be_a_list(train):
    def coef(weight):
        return SparseRanker(profile="standard", n_alphas=5, cv=2).fit(train, query_weight=weight).coef_

    weight = np.linspace(1, 2, train.n_queries)
    np.testing.assert_array_equal(coef(weight), coef(weight.tolist()))


def test_a_fold_that_leaves_no_pair_is_named():
    X, y = np.arange(6.0)[:, None], [0, 0, 0, 0, 1, 2]
    with pytest.raises(
        ValueError, match=r"without the queries of fold \d of 2: there is no pair .* give valid"
    ):
        SparseRanker().fit(Dataset(X, y, [0, 0, 0, 1, 1, 1]))


# --- validation and evaluation -----------------------------------------------------------------------------

FORMS = {
    "float64": np.asarray,
    "float32": np.float32,
    "CSR": sp.csr_array,
    "CSR32": lambda X: sp.csr_array(np.float32(X)),
}


def with_many_ties(form, seed, holes=False):
    """Features in tenths, so that many documents of a query have equal scores or nearly so."""
    data = random_dataset(seed=seed, n_queries=60, n_features=12, longest=40)
    X = (data.X * np.linspace(0.2, 1, 12)).round(1) + 0.0
    if holes:
        X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return Dataset(FORMS[form](X), data.y, data.qid)


def assert_reported_is_evaluated(fitted, valid):
    told = fitted.validation_
    again = evaluate(fitted.predict(valid), valid, told.metric, told.profile)
    np.testing.assert_array_equal(told.values[fitted.chosen_], again.per_query[told.metric])
    assert told.mean[fitted.chosen_] == again.mean[told.metric]
    assert again.mean[told.metric] in fitted.to_model().metrics.values()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalise", NORMALISATIONS)
def test_the_validation_value_is_that_of_evaluate_to_the_last_bit(form, normalise):
    for seed in range(4):
        train, valid = with_many_ties(form, seed), with_many_ties(form, seed + 100)
        fitted = SparseRanker(n_alphas=40, normalise=normalise, profile="standard").fit(train, valid=valid)
        assert_reported_is_evaluated(fitted, valid)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("missing", FILLS)
def test_the_validation_value_is_that_of_evaluate_with_missing_values(form, missing):
    for seed in range(4):
        train, valid = (with_many_ties(form, s, holes=True) for s in (seed, seed + 100))
        fitted = SparseRanker(n_alphas=40, missing=missing, profile="standard").fit(train, valid=valid)
        assert_reported_is_evaluated(fitted, valid)
