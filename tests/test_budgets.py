"""SparseRanker with budgets of features and cost."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ranksieve.choice.candidates import cost_weights
from ranksieve.choice.decide import RULES
from ranksieve.choice.families import FAMILIES
from ranksieve.data.budget import Budget
from ranksieve.data.costs import make_costs
from ranksieve.data.dataset import Dataset
from ranksieve.metrics import evaluate
from ranksieve.model.linear import load_model
from ranksieve.rankers import SparseRanker
from ranksieve.rankers.frontier import frontier
from ranksieve.synthetic import make_shop, shop_costs
from tests.conftest import COSTS, QUICK, random_dataset
from tests.refusals import refused_parameter
from tests.tiers import examples


@pytest.fixture(scope="module")
def shop():
    data = make_shop(120, random_state=5)
    return data.select_queries(range(80)), data.select_queries(range(80, 120))


def priced(data, w, costs=COSTS):
    return make_costs(costs).of(data.feature_names[j] for j in np.flatnonzero(w))


@examples(12)
@given(
    k=st.one_of(st.none(), st.integers(1, 8)),
    cost=st.integers(1, 12),
    families=st.sets(st.sampled_from(sorted(FAMILIES))),
    rule=st.sampled_from(sorted(RULES)),
    must_have=st.sets(st.sampled_from(["f2", "f3"])),
    cv=st.booleans(),
)
def test_a_budget_is_never_exceeded(halves, k, cost, families, rule, must_have, cv):
    train, valid = halves
    if k is not None and k < len(must_have):
        k = len(must_have)
    chosen_from = sorted(families | {"forward"})
    ranker = SparseRanker(
        k, feature_costs=COSTS, max_cost=cost, families=chosen_from, rule=rule, must_have=must_have, **QUICK
    ).set_params(cv=2 if cv else 0, refit_on="train" if cv else "all")
    ranker.fit(train, valid=None if cv else valid)
    assert 1 <= len(ranker.support_) <= (8 if k is None else k)
    assert priced(train, ranker.coef_) <= cost
    assert ranker.to_model().metrics["cost"] == priced(train, ranker.coef_)


@examples(5)
@given(
    seed=st.integers(0, 100),
    limits=st.lists(st.floats(0.5, 12), min_size=2, max_size=4, unique=True),
    cv=st.sampled_from([0, 2]),
)
def test_a_larger_budget_never_selects_a_worse_model(seed, limits, cv):
    train, valid = parts_of(random_dataset(seed=seed, n_queries=24, n_features=8, longest=12))
    chosen = []
    for limit in sorted(limits):
        ranker = SparseRanker(feature_costs=COSTS, max_cost=limit, cv=cv, **QUICK).fit(train, valid=valid)
        chosen.append(ranker.choice_.validation.mean[ranker.choice_.index])
    assert (np.diff(chosen) >= 0).all()


@examples(5)
@given(seed=st.integers(0, 100), cv=st.sampled_from([0, 2]), smoothing=st.sampled_from([1, 5]))
def test_more_features_never_select_a_worse_model(seed, cv, smoothing):
    train, valid = parts_of(random_dataset(seed=seed, n_queries=24, n_features=8, longest=12))
    chosen = []
    for k in (1, 2, 3, 5, 8, None):
        ranker = SparseRanker(k, cv=cv, smoothing=smoothing, **QUICK).fit(train, valid=valid)
        assert len(ranker.support_) <= (k or 8)
        chosen.append(ranker.choice_.validation.mean[ranker.choice_.index])
    assert (np.diff(chosen) >= 0).all()


def parts_of(data):
    even = np.arange(data.n_queries) % 2 == 0
    return data.select_queries(even), data.select_queries(~even)


def test_the_best_candidate_within_the_budget_is_selected(halves):
    train, valid = halves
    ranker = SparseRanker(4, feature_costs=COSTS, max_cost=6, normalise="none", cv=0, smoothing=1, **QUICK)
    choice = ranker.fit(train, valid=valid).choice_
    for family in choice.families:
        for w, values in zip(family.coefs, family.validation.values, strict=True):
            if w.any():
                expected = evaluate(valid.X @ w, valid, "ndcg@5", "standard").per_query["ndcg@5"]
                np.testing.assert_allclose(values, expected)
    allowed = [1 <= np.count_nonzero(w) <= 4 and priced(train, w) <= 6 for w in choice.coefs]
    assert (choice.allowed <= allowed).all()
    best = choice.values.mean(axis=1)[choice.allowed].max()
    assert choice.validation.mean[choice.index] == best
    np.testing.assert_array_equal(ranker.coef_, choice.family.coefs[choice.index])
    assert ranker.gap_ <= 1e-6 * ranker.objective_


@pytest.mark.full
def test_candidates_within_a_cost_include_the_usual_families_and_beat_them(shop):
    train, valid = shop
    plain = SparseRanker().fit(train, valid=valid).choice_
    costs = shop_costs().columns(train.feature_names)
    choice = SparseRanker(feature_costs=shop_costs(), max_cost=6.0).fit(train, valid=valid).choice_
    np.testing.assert_array_equal(choice.families[0].coefs, plain.families[0].coefs)
    affordable = Budget(max_cost=6.0, costs=costs).allows(plain.coefs) & plain.allowed
    assert choice.values[choice.row].mean() > plain.values.mean(axis=1)[affordable].max()


def test_costs_without_a_budget_change_the_candidates_not_the_limit(halves):
    train, valid = halves
    dear = SparseRanker(feature_costs=COSTS, **QUICK).fit(train, valid=valid)
    labels = [family.label for family in dear.choice_.families]
    assert labels == ["l1", "log", "forward", "l1 × cost^0.5", "l1 × cost^1", "forward by cost"]
    cheap = SparseRanker(feature_costs=COSTS, rule="one_standard_error", **QUICK).fit(train, valid=valid)
    assert priced(train, cheap.coef_) <= priced(train, dear.coef_)


def bought(ranker, train, valid):
    families = ranker.fit(train, valid=valid).choice_.families
    return next(family for family in families if family.label == "forward by cost")


def test_forward_selection_by_cost_stays_within_its_limit(halves):
    """The cost of a group is paid once, so some sets use all features of the group."""
    train, valid = halves
    family = bought(SparseRanker(feature_costs=COSTS, max_cost=7, **QUICK), train, valid)
    assert max(priced(train, w) for w in family.coefs) <= 7
    assert any(np.count_nonzero(w[5:]) == 3 for w in family.coefs)


def test_of_equal_sizes_a_costlier_set_has_a_lower_objective(halves):
    train, valid = halves
    models = bought(SparseRanker(feature_costs=COSTS, **QUICK), train, valid)
    costs = np.array([priced(train, w) for w in models.coefs])
    for size in np.unique(models.n_nonzero):
        at = models.n_nonzero == size
        assert (np.diff(costs[at]) > 0).all()
        assert (models.objectives[at][1:] < 0.98 * models.objectives[at][:-1]).all()


def test_forward_selection_uses_the_exact_budget():
    """The best features exceed the budget, and the next best two cost 3 together."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(900, 6))
    y = (X[:, :2].sum(axis=1) + 2.0 * X[:, 4:].sum(axis=1) > 1.0).astype(float)
    data = Dataset(X, y, np.repeat(np.arange(60), 15))
    costs = {"f1": 1.49, "f2": 1.51, "f3": 0.1, "f4": 0.1, "f5": 50.0, "f6": 50.0}
    for limit, features in ((2.99, 1), (3.0, 2)):
        ranker = SparseRanker(feature_costs=costs, max_cost=limit, families=("forward",), cv=2, smoothing=1)
        used = set(ranker.fit(data).support_.tolist())
        assert len(used & {0, 1}) == features


@examples(4)
@given(
    seed=st.integers(0, 100),
    limits=st.lists(st.floats(0.5, 12), min_size=2, max_size=2, unique=True),
    cv=st.sampled_from([0, 2]),
)
@pytest.mark.full
def test_the_selection_within_a_cost_is_best_among_frontier_and_smaller_budgets(seed, limits, cv):
    """The selection metric is never lower than that of other models of at most the same cost."""
    train, valid = parts_of(random_dataset(seed=seed, n_queries=24, n_features=8, longest=12))
    quick = {"cv": cv, "families": ("l1", "forward"), **QUICK}
    options = {"feature_costs": COSTS, **quick}
    front = frontier(train, valid, **options)
    rivals = list(zip(front.costs, front.mean, strict=True))
    for k in (2, None):
        ranker = SparseRanker(k, **quick).fit(train, valid=valid)
        rivals.append((priced(train, ranker.coef_), ranker.choice_.validation.mean[ranker.choice_.index]))
    for limit in sorted(limits):
        ranker = SparseRanker(max_cost=limit, **options).fit(train, valid=valid)
        value = ranker.choice_.validation.mean[ranker.choice_.index]
        assert value == max([value, *(mean for cost, mean in rivals if cost <= limit)])
        cut = frontier(train, valid, max_cost=limit, **options)
        assert cut.mean.max() == value == front.mean[front.costs <= limit].max()
        np.testing.assert_array_equal(np.sort(cut.mean), np.sort(front.mean[front.costs <= limit]))
        rivals.append((priced(train, ranker.coef_), value))


def test_multiples_of_a_selected_feature_are_not_selected(halves):
    train, _ = halves
    X = np.column_stack([train.X[:, :3], 2.0 * train.X[:, 0], 0.3 * train.X[:, 0]])
    data = Dataset(X, train.y, train.qid)
    ranker = SparseRanker(feature_costs={"*": 1.0}, families=("forward",), must_have="f1", cv=2, **QUICK)
    for family in ranker.fit(data).choice_.families:
        assert family.n_nonzero.max() == 3
        assert not family.coefs[:, 3:].any()
        assert not family.fold_coefs[:, :, 3:].any()


def test_l1_weights_signs_and_must_not_apply_to_every_family(halves):
    train, valid = halves
    demands = {"must_not": ["f1"], "signs": {"f2": "-", "f6": "+"}, "must_have": "f4"}
    families = (
        SparseRanker(feature_costs=COSTS, max_cost=7, families=sorted(FAMILIES), **demands, **QUICK)
        .fit(train, valid=valid)
        .choice_.families
    )
    for family in families:
        assert np.all(family.coefs[:, 0] == 0)
        assert family.coefs[:, 1].max() <= 0
        assert family.coefs[:, 5].min() >= 0
        assert np.all(family.coefs[:, 3] != 0)


def test_must_have_without_costs(halves):
    train, valid = halves
    ranker = SparseRanker(3, must_have=["f8"], signs=dict.fromkeys(range(7), "+"), **QUICK)
    ranker.fit(train, valid=valid)
    assert ranker.coef_[7] != 0
    assert (ranker.coef_[:7] >= 0).all()
    assert len(ranker.support_) <= 3


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_features_constant_within_queries_are_not_selected(halves, kind):
    train, valid = halves
    noise = np.random.default_rng(0).random(1000)

    def widened(data):
        X = np.column_stack([data.X, noise[data.qid.astype(int)]])
        return Dataset(kind(X), data.y, data.qid)

    costs = {"f9": 0.01, "*": 1.0}
    ranker = SparseRanker(feature_costs=costs, max_cost=1, **QUICK).fit(widened(train), valid=widened(valid))
    assert ranker.support_.tolist() != [8]
    with refused_parameter("max_cost", 0.5):
        SparseRanker(feature_costs=costs, max_cost=0.5, **QUICK).fit(widened(train), valid=widened(valid))


def test_a_budget_for_only_a_useless_must_have_is_refused(halves):
    train, _ = halves
    data = train.replace_features(
        np.column_stack([train.X, train.qid.astype(float)]), [*train.feature_names, "per_query"]
    )
    costs = {"features": {"*": 2.0}, "groups": {"clause": {"cost": 1.0, "features": ["per_query", "f3"]}}}
    demands = {"feature_costs": costs, "must_have": "per_query", **QUICK}
    assert SparseRanker(max_cost=1, **demands).fit(data).support_.tolist() == [2]
    with refused_parameter("max_cost", 0.5) as info:
        SparseRanker(max_cost=0.5, **demands).fit(data)
    assert "'clause'" in info.value.reason


def test_the_model_file_has_costs_and_budget(halves, tmp_path):
    train, valid = halves
    ranker = SparseRanker(feature_costs=COSTS, max_cost=6, signs={0: "+"}, **QUICK).fit(train, valid=valid)
    ranker.to_model().save(tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    assert model.metrics["cost"] == priced(train, ranker.coef_)
    assert model.parameters["max_cost"] == 6
    assert model.parameters["signs"] == {"f1": 1.0}
    assert make_costs(model.parameters["feature_costs"]).of(model.names) == model.metrics["cost"]
    plain = SparseRanker(**QUICK).fit(train, valid=valid).to_model()
    assert "cost" not in plain.metrics


def test_progress_stays_between_zero_and_one(halves):
    train, valid = halves
    steps = []
    SparseRanker(feature_costs=COSTS, max_cost=4, **QUICK).fit(
        train, valid=valid, progress=lambda *step: steps.append(step)
    )
    shares = [done / total for done, total in steps]
    assert 0 < shares[0] <= shares[-1] <= 1


def test_equal_costs_have_equal_weights_and_zero_costs_a_positive_one():
    columns = make_costs({"a": 2.0, "b": 2.0}).columns(("a", "b"))
    np.testing.assert_allclose(cost_weights(columns, 1.0), 1.0)
    columns = make_costs({"a": 0.0, "b": 0.0}).columns(("a", "b"))
    np.testing.assert_allclose(cost_weights(columns, 1.0), 1.0)
    columns = make_costs({"a": 0.0, "b": 1.0, "c": 100.0}).columns(("a", "b", "c"))
    weights = cost_weights(columns, 0.5)
    np.testing.assert_allclose(weights / weights[1], [1.0, 1.0, 10.0])
    assert np.prod(weights) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "name", "value", "word"),
    [
        ({"max_cost": 5}, "max_cost", 5, "feature_costs"),
        ({"max_cost": -1.0, "feature_costs": COSTS}, "max_cost", -1.0, "range"),
        (
            {"max_cost": 0.25, "feature_costs": {**dict.fromkeys(["f1", "f2"], 0.75), "*": 2}},
            "max_cost",
            0.25,
            "the cheapest, 'f1', costs 0.75",
        ),
        (
            {"max_cost": 2, "feature_costs": COSTS, "must_have": ["f6", "f4"]},
            "max_cost",
            2,
            "at least 5",
        ),
        ({"max_features": 1, "must_have": ["f6", "f4"]}, "max_features", 1, "must_have"),
        ({"feature_costs": {"f1": 1.0}}, "feature_costs", "f2", "no cost"),
        ({"feature_costs": {"g1": 1.0, "*": 1}}, "feature_costs", "g1", "'f1'"),
        ({"feature_costs": {"f1": -1.0, "*": 1}}, "feature_costs", "f1", "-1"),
        ({"must_have": ["f1"], "must_not": [0]}, "must_not", [0], "'f1'"),
    ],
)
def test_bad_budgets(halves, options, name, value, word):
    train, valid = halves
    with refused_parameter(name, value) as info:
        SparseRanker(**options, **QUICK).fit(train, valid=valid)
    assert word in info.value.reason
