"""SparseRanker: paths, model selection, budgets, confidence, refits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ranksieve.choice.decide import best, one_standard_error, tied_with
from ranksieve.choice.families import DEFAULT_FAMILIES
from ranksieve.choice.folds import Folds
from ranksieve.choice.held_out import average_over, standard_error
from ranksieve.data.dataset import Dataset
from ranksieve.losses import SquaredHinge
from ranksieve.metrics import Evaluator, evaluate
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties import L1, Ridge
from ranksieve.prepare.missing import FILLS
from ranksieve.prepare.scaling import NORMALISATIONS
from ranksieve.rankers import SparseRanker
from ranksieve.rankers.frontier import frontier
from ranksieve.rankers.sparse_ranker import CV_REPEATS
from tests.conftest import random_dataset
from tests.pairs import sqrt_query_weight
from tests.refusals import refused_data, refused_parameter
from tests.solving import prox_newton
from tests.tiers import tiered


@pytest.fixture(scope="module")
def train():
    return random_dataset(seed=31, n_queries=40, n_features=12, longest=25)


def halves(data):
    even = np.arange(data.n_queries) % 2 == 0
    return data.select_queries(even), data.select_queries(~even)


def l1_ranker(**options):
    """A SparseRanker with only the ℓ1 path, selected on validation data without smoothing."""
    return SparseRanker(**{"families": ("l1",), "cv": 0, "smoothing": 1, **options})


def test_selects_the_best_point_of_the_path_on_validation_data(train):
    a, b = halves(train)
    fitted = l1_ranker(metric="map", profile="standard").fit(a, valid=b)
    path = sparse_path(
        a,
        alphas=fitted.choice_.family.strengths,
        normalise="within_z",
        loss=SquaredHinge(pair_weighting="sqrt"),
    )
    X = path.preparation.apply(b).X
    means = [evaluate(X @ w, b, ["map"], "standard").mean["map"] for w in path.coefs]
    used = path.n_nonzero >= 1
    assert fitted.choice_.validation.mean[fitted.choice_.index] == pytest.approx(
        np.max(np.array(means)[used])
    )
    np.testing.assert_allclose(fitted.coef_, path.coefs[fitted.choice_.index], rtol=1e-4, atol=1e-6)
    assert fitted.choice_.candidate.strength == path.alphas[fitted.choice_.index]
    assert fitted.gap_ <= 1e-6 * fitted.objective_


@pytest.mark.parametrize("k", tiered([1, 2, 3, 5], [1, 3]))
@pytest.mark.parametrize("families", [DEFAULT_FAMILIES, ("refitted", "forward"), ("forward",)])
def test_the_budget_is_never_exceeded(train, k, families):
    a, b = halves(train)
    assert 1 <= len(SparseRanker(k, "ndcg@3", families=families, n_alphas=8).fit(a, valid=b).support_) <= k


def test_forward_selection_is_used_if_a_coarse_grid_exceeds_the_budget(train):
    path = sparse_path(train, n_alphas=3)
    assert path.n_nonzero[1] > 1
    fitted = SparseRanker(1, "ndcg@3", n_alphas=3, cv=3).fit(train)
    assert len(fitted.support_) == 1


def test_cross_validation_holds_out_whole_queries(train):
    """The held-out value of a query is that of models fitted without it, up to one Newton step."""
    fitted = SparseRanker(metric="ndcg@5", cv=4, random_state=5, families=("l1",)).fit(train)
    folds = Folds(fitted.preparation_.for_learning(train), 4, CV_REPEATS, 5)
    values = np.zeros((len(fitted.choice_.family), train.n_queries))
    for queries in folds.queries:
        others = np.setdiff1d(np.arange(train.n_queries), queries)
        rest = folds._data.select_queries(others)
        exact = sparse_path(
            rest, alphas=fitted.choice_.family.strengths, query_weight=sqrt_query_weight(rest)
        )
        held_out = folds._data.select_queries(queries)
        measured = Evaluator(held_out, "standard").evaluate_many(held_out.X @ exact.coefs.T, "ndcg@5")
        values[:, queries] += measured / len(folds.splits)
    chosen = values.mean(axis=1)[fitted.choice_.family.n_nonzero >= 1]
    reported = fitted.choice_.validation.values.mean(axis=1)[fitted.choice_.family.n_nonzero >= 1]
    np.testing.assert_allclose(reported, chosen, atol=0.005)


def test_held_out_queries_are_pooled(train):
    a, b = halves(train)
    both = SparseRanker(metric="map").fit(a, valid=b)
    assert both.choice_.confidence.n_queries == a.n_queries + b.n_queries
    assert both.n_folds_ == 5
    alone = SparseRanker(metric="map", cv=0).fit(a, valid=b)
    assert alone.choice_.confidence.n_queries == b.n_queries
    assert alone.n_folds_ == 0
    np.testing.assert_array_equal(alone.choice_.validation.query_ids, b.queries.ids)


def test_enough_validation_data_replace_cross_validation(train, monkeypatch):
    a, b = halves(train)
    monkeypatch.setattr("ranksieve.choice.held_out.ENOUGH_QUERIES", 5)
    assert SparseRanker(metric="map").fit(a, valid=b).n_folds_ == 0
    assert SparseRanker(metric="map", cv=3).fit(a, valid=b).n_folds_ == 3


def test_values_are_averaged_over_neighbours():
    values = np.array([[0.0, 1.0], [1.0, 1.0], [5.0, 4.0], [0.0, 0.0]])
    near = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) <= 1
    np.testing.assert_allclose(average_over(values, near), [[0.5, 1.0], [2.0, 2.0], [2.0, 5 / 3], [2.5, 2.0]])
    np.testing.assert_array_equal(average_over(values, np.eye(4, dtype=bool)), values)


def test_points_without_features_are_not_averaged(train):
    """The first point of a path has no features and the worst value, which must not affect its neighbours."""
    a, b = halves(train)
    for options in ({}, {"cv": 0}, {"min_ratio": 0.5, "cv": 0}):  # the last path continues to smaller α
        ranker = SparseRanker(families=("l1", "log"), n_alphas=12, **options).fit(a, valid=b)
        for family in ranker.choice_.families:
            values, used = family.validation.values, family.n_nonzero > 0
            assert not used[0]
            assert used[1:].all()
            np.testing.assert_array_equal(family.validation.smoothed[0], values[0])
            for k in range(1, len(values)):
                expected = values[max(1, k - 2) : k + 3].mean(axis=0)
                np.testing.assert_allclose(family.validation.smoothed[k], expected)


@pytest.mark.parametrize("cv", [0, 3])
def test_selection_frequency_resamples_held_out_queries_without_refits(train, cv):
    """Recomputed with other draws: the best candidate of each sample and the shares of its features."""
    a, b = halves(train)
    ranker = SparseRanker(3, "ndcg@5", families=("l1",), cv=cv).fit(a, valid=b)
    family, n = ranker.choice_.families[0], len(ranker.choice_.validation.query_ids)
    allowed = np.flatnonzero((family.n_nonzero <= 3) & (family.n_nonzero > 0))
    values, rng, shares = ranker.choice_.values[allowed], np.random.default_rng(99), []
    for _ in range(2000):
        mean = values[:, rng.integers(0, n, n)].mean(axis=1)
        best = allowed[min(np.flatnonzero(mean == mean.max()), key=lambda k: family.n_nonzero[allowed[k]])]
        versions = family.coefs[best][None] if cv == 0 else family.fold_coefs[best]
        shares.append((versions != 0).mean(axis=0))
    np.testing.assert_allclose(ranker.choice_.confidence.frequency, np.mean(shares, axis=0), atol=0.12)
    assert np.ptp(ranker.choice_.confidence.frequency) > 0.5


def test_confidence(train):
    a, b = halves(train)
    fitted = SparseRanker(2, "ndcg@5").fit(a, valid=b)
    confidence, values = fitted.choice_.confidence, fitted.choice_.validation.values[fitted.choice_.index]
    assert confidence.mean == values.mean()
    assert confidence.low < confidence.mean < confidence.high
    assert confidence.high - confidence.mean == pytest.approx(
        1.96 * values.std(ddof=1) / np.sqrt(len(values))
    )
    assert confidence.frequency.shape == (12,)
    assert confidence.frequency.min() >= 0
    assert confidence.frequency.max() <= 1
    assert set(np.flatnonzero(confidence.frequency > 0.99)) <= set(fitted.support_)
    assert confidence.fewest_tied <= len(fitted.support_)
    unlimited = SparseRanker(metric="ndcg@5").fit(a, valid=b).choice_.confidence
    assert unlimited.loss == 0
    assert confidence.loss_low <= confidence.loss <= confidence.loss_high
    assert confidence.best_features > 2
    assert confidence.best_is_beyond
    assert not unlimited.best_is_beyond


@pytest.mark.parametrize("options", [{"max_features": 6}, {"max_cost": 6.0, "feature_costs": {"*": 1.0}}])
def test_best_is_beyond_the_budget(train, options):
    a, b = halves(train)
    small = SparseRanker(metric="ndcg@5", rule="one_standard_error", **options).fit(a, valid=b)
    candidates, confidence = small.choice_, small.choice_.confidence
    over = np.concatenate([[1 <= n <= 6 for n in f.n_nonzero] for f in candidates.families])
    means = np.concatenate([f.validation.mean for f in candidates.families])
    beyond = [] if candidates.beyond is None else candidates.beyond.validation.mean.tolist()
    best_within = means[candidates.allowed].max()
    best_beyond = max([-np.inf, *means[~over & (np.abs(candidates.coefs).sum(axis=1) > 0)], *beyond])
    assert confidence.best_is_beyond == (best_beyond > best_within)
    assert (confidence.best_features > 6) == confidence.best_is_beyond


def test_ties_are_determined_by_paired_differences():
    rng = np.random.default_rng(0)
    base = rng.random(400)
    values = np.array([base, base + 0.01 * rng.normal(size=400), base - 0.1])
    assert tied_with(values, 0).tolist() == [True, True, False]


def test_refit_on_all_keeps_the_features_and_uses_all_data(train):
    a, b = halves(train)
    for options in ({}, {"families": ("forward",)}, {"families": ("log",)}, {"families": ("refitted",)}):
        one = SparseRanker(3, "ndcg@5", n_alphas=10, **options).fit(a, valid=b)
        both = SparseRanker(3, "ndcg@5", n_alphas=10, refit_on="all", **options).fit(a, valid=b)
        assert set(both.support_) <= set(one.support_)
        assert not np.array_equal(both.coef_, one.coef_)
        assert both.gap_ <= 1e-6 * both.objective_
        together = one.preparation_.for_learning(a.joined(b))
        objective = make_objective(together, query_weight=sqrt_query_weight(together))
        value = objective.evaluate(both.coef_).value + both.choice_.candidate.penalty.value(both.coef_)
        assert both.objective_ == pytest.approx(value)
        assert value < objective.evaluate(one.coef_).value + both.choice_.candidate.penalty.value(one.coef_)


def test_a_grid_with_its_best_point_near_the_end_is_extended(train):
    short = l1_ranker(metric="map", n_alphas=4, min_ratio=0.5).fit(*halves(train)[:1], valid=halves(train)[1])
    assert len(short.choice_.family) > 4
    np.testing.assert_allclose(np.diff(np.log(short.choice_.family.strengths[3:])), np.log(0.5) / 3, rtol=0.1)


def test_a_grid_of_the_user_is_not_extended_with_a_warning(train):
    a, b = halves(train)
    path = sparse_path(a, normalise="within_z", n_alphas=30)
    with pytest.warns(UserWarning, match="the best point of the path is its last"):
        fitted = l1_ranker(metric="map", alphas=path.alphas[:4]).fit(a, valid=b)
    assert len(fitted.choice_.family) == 4


def test_validation_data_that_are_training_data_are_named(train):
    with pytest.warns(UserWarning, match="40 of the 40 validation queries"):
        SparseRanker(metric="map", cv=0).fit(train, valid=train)
    some = train.select_queries(np.arange(3))
    with pytest.warns(UserWarning, match="3 of the 3 validation queries"):
        SparseRanker(metric="map", cv=0).fit(train, valid=some)


def test_a_single_query_cannot_be_held_out(train):
    with pytest.warns(UserWarning, match="only one query has documents with different labels"):
        fitted = SparseRanker(metric="map").fit(train.select_queries(np.arange(1)))
    assert fitted.n_folds_ == 0


def test_all_columns_constant(train):
    flat = Dataset(np.ones((train.n_docs, 3)), train.y, train.qid)
    with refused_data() as info:
        SparseRanker().fit(flat)
    assert "no feature distinguishes any pair" in info.value.reason


def test_unknown_families(train):
    with refused_parameter("families", "l2"):
        SparseRanker(families=("l2",)).fit(train)
    with refused_parameter("families", ()):
        SparseRanker(families=()).fit(train)


def test_cv_of_zero_needs_validation_data(train):
    with refused_parameter("cv", 0):
        SparseRanker(cv=0).fit(train)


def test_selection_rules():
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
    threshold = (
        dense.choice_.validation.mean[dense.choice_.index]
        - dense.choice_.validation.standard_error[dense.choice_.index]
    )
    assert sparse.choice_.validation.mean[sparse.choice_.index] >= threshold


@pytest.mark.parametrize("family", ["refitted", "forward"])
def test_weights_without_l1_minimise_the_loss_on_the_support(train, family):
    a, b = halves(train)
    fitted = SparseRanker(4, "ndcg@5", families=(family,)).fit(a, valid=b)
    support = fitted.support_
    X = fitted.preparation_.apply(a).X
    reduced = a.replace_features(X[:, support], [f"x{j}" for j in support])
    objective = make_objective(reduced, query_weight=sqrt_query_weight(reduced))
    expected = prox_newton(objective, Ridge(fitted.choice_.candidate.strength), tol=1e-10)
    np.testing.assert_allclose(fitted.coef_[support], expected.w, atol=1e-4)
    assert fitted.to_model().certificate["ridge"] == fitted.choice_.candidate.strength
    assert "alpha" not in fitted.to_model().certificate


def test_the_log_penalty_shrinks_less_and_is_certified(train):
    a, b = halves(train)
    log = SparseRanker(metric="ndcg@5", families=("log",), cv=0).fit(a, valid=b)
    l1 = l1_ranker(metric="ndcg@5", alphas=log.choice_.family.strengths).fit(a, valid=b)
    assert (log.choice_.family.n_nonzero <= l1.choice_.family.n_nonzero).mean() > 0.8
    assert (log.choice_.family.gaps <= 1e-6 * log.choice_.family.objectives).all()
    largest = np.argmax(np.abs(l1.choice_.family.coefs[10]))
    assert abs(log.choice_.family.coefs[10, largest]) > abs(l1.choice_.family.coefs[10, largest])


def test_l1_weights_affect_the_selection(train):
    weights = np.ones(12)
    weights[0] = np.inf
    assert SparseRanker(metric="ndcg@5", l1_weights=weights, cv=3).fit(train).coef_[0] == 0


def test_penalty_object_and_elastic_net(train):
    a, b = halves(train)
    how = {"metric": "ndcg@5", "n_alphas": 10}
    by_name = SparseRanker(penalty="elastic_net", l1_ratio=0.4, **how).fit(a, valid=b)
    default = SparseRanker(**how).fit(a, valid=b)
    with_object = SparseRanker(penalty=L1(), **how).fit(a, valid=b)
    np.testing.assert_array_equal(with_object.coef_, default.coef_)
    assert by_name.choice_.family.n_nonzero.max() >= 1


def test_query_weight_zero_removes_queries(train):
    a, b = halves(train)
    weight = (np.arange(a.n_queries) < 12).astype(float)
    weighted = SparseRanker(metric="ndcg@5", n_alphas=10).fit(a, valid=b, query_weight=weight)
    subset = SparseRanker(metric="ndcg@5", n_alphas=10).fit(a.select_queries(weight > 0), valid=b)
    np.testing.assert_allclose(weighted.coef_, subset.coef_, atol=1e-6)


def test_progress_ends_with_the_last_family(train):
    steps = []
    SparseRanker(metric="ndcg@5", n_alphas=8, cv=3).fit(train, progress=lambda *step: steps.append(step))
    assert [total for _, total in steps] == sorted(total for _, total in steps) or len(steps) > 8
    assert all(0 < done <= total for done, total in steps)


def test_a_metric_that_cannot_distinguish_models_causes_a_warning():
    data = random_dataset(seed=1, n_queries=20, longest=6)
    with pytest.warns(UserWarning, match="cannot guide the choice"):
        SparseRanker(metric="ndcg@10", profile="letor").fit(data)


@pytest.mark.parametrize(
    "parameters",
    [
        {"rule": "worst"},
        {"refit_on": "maybe"},
        {"max_features": 0},
        {"max_features": "3"},
        {"max_cost": "3", "feature_costs": {"*": 1.0}},
        {"cv": 1},
        {"max_features": None, "alphas": [1e6], "families": ["l1"]},
    ],
)
def test_bad_parameters(small, parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        SparseRanker(metric="map", **parameters).fit(small)


def test_validation_data_of_another_width(small):
    narrow = Dataset(small.X[:, :3], small.y, small.qid)
    with refused_data() as info:
        SparseRanker().fit(small, valid=narrow)
    assert "valid" in info.value.reason


@pytest.mark.parametrize("learn", [SparseRanker().fit, frontier])
def test_unusable_validation_data_are_refused(small, learn):
    one_label = Dataset(small.X, np.ones(small.n_docs), small.qid)
    alone = Dataset(small.X, small.y, np.arange(small.n_docs))
    for valid in (one_label, alone):
        with refused_data() as info:
            learn(small, valid=valid)
        assert "validation data" in info.value.reason
    with refused_parameter("valid"):
        learn(small, valid=(small.X, small.y))


def renamed(data, columns):
    names = [data.feature_names[j] for j in columns]
    return Dataset(data.X[:, columns], data.y, data.qid, names)


@pytest.mark.parametrize("normalise", ["none", "z"])
def test_columns_of_other_data_are_matched_by_name(train, normalise):
    """Validation data and documents to rank can have their columns in another order."""
    turned = renamed(train, np.arange(train.n_features)[::-1])
    valid = random_dataset(seed=32, n_queries=20, n_features=12, longest=25)
    other_way = renamed(valid, np.arange(train.n_features)[::-1])
    one = SparseRanker(normalise=normalise, n_alphas=8).fit(train, valid=valid)
    other = SparseRanker(normalise=normalise, n_alphas=8).fit(train, valid=other_way)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.predict(turned), one.predict(train))
    assert one.score(turned) == one.score(train)


def test_columns_with_other_names_are_refused_and_without_names_matched_by_position(train):
    names = [f"signal_{j}" for j in range(train.n_features)]
    named, strange = (train.replace_features(train.X, [first, *names[1:]]) for first in (names[0], "price"))
    with refused_data() as info:
        SparseRanker(profile="standard").fit(named, valid=strange)
    assert "signal_0" in info.value.reason
    valid = random_dataset(seed=32, n_queries=10, n_features=12, longest=25)
    fitted = SparseRanker(profile="standard", n_alphas=5).fit(named, valid=valid)
    with refused_data() as info:
        fitted.predict(strange)
    assert "signal_0" in info.value.reason
    np.testing.assert_array_equal(fitted.predict(train), fitted.predict(named))


def test_query_weights_can_be_a_list(train):
    def coef(weight):
        return SparseRanker(profile="standard", n_alphas=5, cv=2).fit(train, query_weight=weight).coef_

    weight = np.linspace(1, 2, train.n_queries)
    np.testing.assert_array_equal(coef(weight), coef(weight.tolist()))


# --- validation and evaluation -----------------------------------------------------------------------------

FORMS = {
    "float64": np.asarray,
    "float32": np.float32,
    "CSR": sp.csr_array,
    "CSR32": lambda X: sp.csr_array(np.float32(X)),
}


def with_many_ties(form, seed, holes=False):
    """Rounded features, so that many documents of a query have equal or nearly equal scores."""
    data = random_dataset(seed=seed, n_queries=60, n_features=12, longest=40)
    X = (data.X * np.linspace(0.2, 1, 12)).round(1) + 0.0
    if holes:
        X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return Dataset(FORMS[form](X), data.y, data.qid)


def assert_reported_is_evaluated(fitted, valid):
    validation = fitted.choice_.validation
    again = evaluate(fitted.predict(valid), valid, validation.metric, validation.profile)
    np.testing.assert_array_equal(validation.values[fitted.choice_.index], again.per_query[validation.metric])
    assert again.mean[validation.metric] in fitted.to_model().metrics.values()


@pytest.mark.parametrize("form", tiered(FORMS, list(FORMS)[:1]))
@pytest.mark.parametrize("normalise", NORMALISATIONS)
def test_the_validation_value_equals_evaluate_bit_for_bit(form, normalise):
    train, valid = with_many_ties(form, 0), with_many_ties(form, 100)
    fitted = SparseRanker(normalise=normalise, profile="standard", n_alphas=8, cv=0).fit(train, valid=valid)
    assert_reported_is_evaluated(fitted, valid)


@pytest.mark.parametrize("form", tiered(FORMS, list(FORMS)[:1]))
@pytest.mark.parametrize("missing", FILLS)
def test_the_validation_value_equals_evaluate_with_missing_values(form, missing):
    train, valid = (with_many_ties(form, seed, holes=True) for seed in (1, 101))
    fitted = SparseRanker(missing=missing, profile="standard", n_alphas=8, cv=0).fit(train, valid=valid)
    assert_reported_is_evaluated(fitted, valid)
