"""verify: true claims hold, changed claims do not, and claims that cannot be checked are reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import ranksieve as rs
from ranksieve.methods import METHODS
from ranksieve.metrics import Profile
from ranksieve.model.linear import Term
from ranksieve.penalties import L1
from ranksieve.prepare import Preparation
from ranksieve.verification import PROOFS, Case, NotChecked, Verdict, Verification
from ranksieve.verification.case import recompute
from tests.conftest import COSTS, QUICK, random_dataset
from tests.pairs import l1_gap
from tests.refusals import refused_data, refused_parameter

SMALL = {"max_features": 3, "n_subsamples": 4, "n_rounds": 6, "n_alphas": 6, "cv": 2}
LINEAR = [name for name, method in METHODS.items() if method.linear]
FAST = {**QUICK, "n_alphas": 6, "cv": 2}
HELD_OUT = "held-out ndcg@5 (standard)"


def verdicts(model, data, *args, **options) -> dict[str, bool | None]:
    return {one.claim: one.holds for one in rs.verify(model, data, *args, **options).verdicts}


def text_of(model, data, claim, *args, **options) -> str:
    return next(one.words for one in rs.verify(model, data, *args, **options).verdicts if one.claim == claim)


def sparse(data, valid=None, query_weight=None, **parameters) -> rs.LinearModel:
    return rs.SparseRanker(**FAST | parameters).fit(data, valid=valid, query_weight=query_weight).to_model()


def entry(model, name, **changes) -> rs.LinearModel:
    """The model with changed entries in one of its mappings."""
    return replace(model, **{name: {**getattr(model, name), **changes}})


@pytest.fixture(scope="module")
def train(halves):
    return halves[0]


@pytest.fixture(scope="module")
def model(halves) -> rs.LinearModel:
    """A model with every kind of claim."""
    train, valid = halves
    limits = {"max_cost": 9.0, "max_features": 4, "must_not": ["f8"], "tol": 1e-2}
    return sparse(train, valid, feature_costs=COSTS, families=["log"], **limits)


# --- honest models ---------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LINEAR)
def test_claims_of_every_linear_method_hold(name, train):
    method = METHODS[name]
    options = {key: value for key, value in SMALL.items() if key in method.parameters}
    fitted = method.make(**options).fit(train).to_model()
    verification = rs.verify(fitted, train)
    assert {one.holds for one in verification.verdicts} == {True}, verification
    assert verification.holds
    assert verification.summary == f"All {len(verification.verdicts)} claims hold."
    assert verification.note == ""


def test_all_claims_of_a_model(model, halves):
    train, valid = halves
    verification = rs.verify(model, train, valid)
    assert [one.claim for one in verification.verdicts] == [
        "training data", "validation data", "weights", HELD_OUT, "cost", "budget",
    ]  # fmt: skip
    assert all(one.holds for one in verification.verdicts)
    assert model.certificate["gap"] > 1e-9  # can be reduced in other tests
    texts = {one.claim: one.words for one in verification.verdicts}
    assert texts["training data"] == f"fingerprint {model.data['train']}"
    assert texts["weights"].startswith(
        f"objective {model.certificate['objective']:.6g} at these weights; gap"
    )
    assert texts["weights"].endswith("; refit: same weights")
    value = model.metrics[HELD_OUT]
    assert texts[HELD_OUT] == f"refit: same weights, {HELD_OUT} {value:.4f}"
    assert texts["cost"] == f"by the feature costs in the file: {model.metrics['cost']:g}"
    assert "of at most 4 features; cost" in texts["budget"]
    assert texts["budget"].endswith("no feature of must_not")


@pytest.mark.parametrize(
    "parameters",
    [
        {"families": ["l1"]},
        {"families": ["log"], "must_have": ["f2"], "must_not": [7]},
        {"families": ["forward"], "signs": {"f1": "+"}, "max_features": 3},
        {"families": ["refitted"], "signs": [0, 1, 0, -1, 0, 0, 0, 0]},
        {"families": ["l1"], "penalty": "elastic_net", "l1_ratio": 0.7},
        {"families": ["l1"], "l1_weights": [1, 2, 0.5, 1, 1, np.inf, 1, 1]},
        {"families": ["log"], "normalise": "query_z"},
        {"families": ["forward"], "normalise": "min_max", "rule": "one_standard_error"},
    ],
)
def test_models_of_every_family_can_be_verified(parameters, train, tmp_path):
    sparse(train, **parameters).save(tmp_path / "m.json")
    fitted = rs.load_model(tmp_path / "m.json")
    assert fitted.certificate["family"] == parameters["families"][0]
    assert verdicts(fitted, train, refit=False)["weights"] is True
    assert set(verdicts(fitted, train).values()) == {True}


def test_families_with_cost_weights(train):
    ranker = rs.SparseRanker(**FAST, feature_costs=COSTS, families=["l1"]).fit(train)
    by_cost = next(family for family in ranker.choice_.families if family.label == "l1 × cost^0.5")
    ranker.choice_ = replace(ranker.choice_, families=[by_cost], row=3)
    candidate = ranker.choice_.candidate
    ranker.coef_, ranker.objective_, ranker.gap_ = candidate.coef, candidate.objective, candidate.gap
    fitted = ranker.to_model()
    assert len(fitted.certificate["weights"]) == train.n_features
    assert verdicts(fitted, train, refit=False)["weights"] is True
    without_weights = replace(
        fitted, certificate={k: v for k, v in fitted.certificate.items() if k != "weights"}
    )
    assert verdicts(without_weights, train, refit=False)["weights"] is False


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_features": 3},
        {"max_features": 2, "must_have": ["f2"], "must_not": [7], "signs": {"f1": "+"}},
        {"max_features": 3, "feature_costs": COSTS, "max_cost": 6.0, "normalise": "z"},
        {"max_features": 3, "max_nodes": 1, "ridge": 1e-4},
    ],
)
def test_subset_certificates_can_be_verified(parameters, train, tmp_path):
    rs.BestSubset(**parameters).fit(train).to_model().save(tmp_path / "m.json")
    fitted = rs.load_model(tmp_path / "m.json")
    assert set(verdicts(fitted, train).values()) == {True}
    assert "proven with" in text_of(fitted, train, "subset")
    chosen = sparse(train, families=["subset"], max_features=2)
    assert chosen.certificate["kind"] == "subset"
    assert set(verdicts(chosen, train).values()) == {True}


def test_a_forged_proof_of_a_set(train):
    fitted = rs.BestSubset(2, ridge=1e-4, max_nodes=1).fit(train).to_model()
    proof = fitted.certificate
    assert proof["relative_gap"] > 1e-6

    def claims(**changes) -> bool | None:
        return verdicts(entry(fitted, "certificate", **changes), train)["subset"]

    less = 0.5 * proof["gap"]
    assert claims() is True
    assert "no set has an objective below" in text_of(fitted, train, "subset")
    assert claims(gap=less, relative_gap=less / proof["objective"]) is False
    forged = entry(fitted, "certificate", gap=less, relative_gap=less / proof["objective"])
    assert "the proof gives the bound" in text_of(forged, train, "subset")
    assert claims(relative_gap=0.0) is False
    assert claims(objective=0.99 * proof["objective"]) is False
    assert claims(max_features=1) is False
    assert claims(max_features=5) is False
    assert claims(proof=[]) is False
    assert claims(proof=["- - -"]) is False
    assert claims(proof=["1 2"]) is False
    first, *others = fitted.terms
    assert verdicts(replace(fitted, terms=(replace(first, weight=2 * first.weight), *others)), train) == {
        "training data": True, "subset": False, "budget": True,
    }  # fmt: skip


def test_sets_of_features_within_a_cost(train):
    prices = {name: 1.0 + k for k, name in enumerate(train.feature_names)}
    subset = rs.BestSubset(3, feature_costs=prices, max_cost=9.0, ridge=1e-4, max_nodes=1)
    fitted = subset.fit(train).to_model()
    cost = sum(prices[name] for name in fitted.names)

    def claims(limit) -> bool | None:
        return verdicts(entry(fitted, "certificate", max_cost=limit), train)["subset"]

    assert f"cost {cost:g}" in text_of(fitted, train, "subset")
    assert claims(9.0) is True
    assert claims(cost) is False, "not the limit of the fit"
    dearer = entry(entry(fitted, "certificate", max_cost=0.99 * cost), "parameters", max_cost=0.99 * cost)
    assert verdicts(dearer, train)["subset"] is False


def test_sets_and_cards_fitted_with_query_weights(train):
    weight = np.linspace(0.5, 2.0, train.n_queries)
    fitted = rs.BestSubset(2, max_nodes=1).fit(train, query_weight=weight).to_model()
    card = rs.make_scorecard(fitted, train, query_weight=weight)
    for model, kind in ((fitted, "subset"), (card, "scorecard")):
        assert verdicts(model, train, query_weight=weight)[kind] is True
        assert verdicts(model, train)[kind] is None
        assert "pass query_weight" in text_of(model, train, kind)


def test_a_proof_of_a_set_by_a_method_without_sets(train):
    fitted = rs.RankSVM().fit(train).to_model()
    forged = entry(fitted, "certificate", kind="subset", ridge=1.0, max_features=2, proof=[])
    assert text_of(forged, train, "subset") == "RankSVM does not search for subsets"


@pytest.mark.parametrize(
    "parameters", [{}, {"normalise": "z"}, {"normalise": "query_z"}, {"signs": {"f1": "+"}}]
)
def test_scorecard_certificates_can_be_verified(parameters, train, tmp_path):
    fitted = rs.BestSubset(3, **parameters).fit(train).to_model()
    rs.make_scorecard(fitted, train).save(tmp_path / "card.json")
    card = rs.load_model(tmp_path / "card.json")
    assert set(verdicts(card, train).values()) == {True}
    less = entry(card, "certificate", gap=0.0, relative_gap=0.0)
    assert verdicts(less, train)["scorecard"] is (card.certificate["gap"] < 1e-8)
    other = entry(card, "certificate", objective=0.9 * card.certificate["objective"])
    assert verdicts(other, train)["scorecard"] is False
    first = card.terms[0]
    wrong = entry(card, "parameters", signs={first.name: -float(np.sign(first.weight))})
    assert verdicts(wrong, train)["scorecard"] is not True
    assert "above the best real-valued weights" in text_of(card, train, "scorecard")
    if card.certificate["gap"] >= 1e-8:
        assert "the gap to real-valued weights is" in text_of(less, train, "scorecard")


@pytest.mark.parametrize("family", ["l1", "log", "forward"])
def test_weights_fitted_to_all_data(family, halves):
    train, valid = halves
    both = sparse(train, valid, families=[family], refit_on="all")
    assert set(both.certificate["features"]) >= set(both.names)
    assert set(verdicts(both, train, valid).values()) == {True}
    alone = rs.verify(both, train).verdicts
    assert [one.holds for one in alone] == [True, None, None, None]
    assert alone[2].words == alone[3].words == "the model was fitted with validation data; pass valid"


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("ranksvm-l1", None),
        ("ranksvm-log", {"epsilon": 0.2}),
        ("fsrank", {"C": 0.5}),
        ("ranksvmstruct", None),
    ],
)
def test_methods_with_a_budget(name, parameters, halves):
    train, valid = halves
    options = {"max_features": 3, "parameters": parameters, "profile": "standard", "normalise": "z"}
    ranker = rs.GridRanker(name, **options, feature_costs=COSTS, max_cost=9.0).fit(train, valid=valid)
    fitted = ranker.to_model()
    results = verdicts(fitted, train, valid)
    assert set(results) >= {"weights", "held-out ndcg@10 (standard)", "cost", "budget"}
    assert set(results.values()) == {True}
    changed = replace(fitted, terms=(replace(fitted.terms[0], weight=9.0), *fitted.terms[1:]))
    assert [claim for claim, holds in verdicts(changed, train, valid).items() if not holds] == ["weights"]


def test_methods_selected_by_cross_validation(train):
    ranker = rs.GridRanker("ranksvm", 3, "map", cv=2, random_state=5, profile="letor").fit(train)
    assert set(verdicts(ranker.to_model(), train).values()) == {True}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("missing", ["auto", "zero", "query_min", "indicator"])
def test_missing_values_are_filled_by_the_policy_of_the_model(missing, train):
    X = train.X.copy()
    X[::3, 0] = X[1::4, 3] = np.nan
    holes = train.replace_features(X)
    fitted = sparse(holes, missing=missing, normalise="within_z")
    assert set(verdicts(fitted, holes).values()) == {True}


def test_sparse_matrices(train):
    X = np.where(np.abs(train.X) > 0.5, train.X, 0.0)
    data = train.replace_features(sp.csr_array(X))
    assert set(verdicts(sparse(data, normalise="z"), data).values()) == {True}


def test_query_weights(train):
    weight = np.arange(train.n_queries) % 3.0
    fitted = sparse(train, query_weight=weight, normalise="z")
    assert set(verdicts(fitted, train, query_weight=weight).values()) == {True}
    without = rs.verify(fitted, train)
    assert [one.holds for one in without.verdicts] == [True, None, None, None]
    assert "pass query_weight" in without.verdicts[1].words
    assert "query weights" in without.verdicts[2].words
    other = verdicts(fitted, train, query_weight=weight + 1)
    assert other["query weights"] is False
    assert other["weights"] is False


def test_the_gap_equals_that_of_explicit_pairs(train):
    fitted = rs.SparseRankSVM("l1", 0.05, tol=1e-3).fit(train).to_model()
    again = rs.SparseRankSVM("l1", 0.05)
    recomputed = recompute(again.stated_problem(train, None, fitted.certificate), fitted.coef)
    primal, gap = l1_gap(train.X, train.y, train.qid, fitted.coef, np.full(train.n_features, 0.05))
    assert recomputed.objective == pytest.approx(primal, rel=1e-12)
    assert recomputed.gap == pytest.approx(gap, abs=1e-12)
    assert fitted.certificate["gap"] == pytest.approx(gap, abs=1e-12)
    loose = replace(
        fitted, terms=(replace(fitted.terms[0], weight=fitted.terms[0].weight * 1.01), *fitted.terms[1:])
    )
    primal, gap = l1_gap(train.X, train.y, train.qid, loose.coef, np.full(train.n_features, 0.05))
    stated = entry(loose, "certificate", objective=primal, gap=gap, relative_gap=gap / primal)
    assert verdicts(stated, train)["weights"] is True
    stated = entry(loose, "certificate", objective=primal, gap=0.9 * gap, relative_gap=0.9 * gap / primal)
    assert verdicts(stated, train)["weights"] is False


# --- changed models --------------------------------------------------------------------------------------


def first_weight(model: rs.LinearModel, factor: float) -> rs.LinearModel:
    first, *others = model.terms
    return replace(model, terms=(replace(first, weight=factor * first.weight), *others))


def smaller_gap(model: rs.LinearModel) -> rs.LinearModel:
    gap, share = (0.9 * model.certificate[name] for name in ("gap", "relative_gap"))
    return entry(model, "certificate", gap=gap, relative_gap=share)


CHANGES = {
    "train": (lambda m: entry(m, "data", train="0" * 16), "training data"),
    "valid": (lambda m: entry(m, "data", valid="0" * 16), "validation data"),
    "weight": (lambda m: first_weight(m, 1.001), "weights"),
    "huge weight": (lambda m: first_weight(m, 1e200), "weights"),
    "objective": (lambda m: entry(m, "certificate", objective=0.999 * m.certificate["objective"]), "weights"),
    "gap": (lambda m: smaller_gap(m), "weights"),
    "relative gap": (lambda m: entry(m, "certificate", relative_gap=0.0), "weights"),
    "metric": (lambda m: entry(m, "metrics", **{HELD_OUT: m.metrics[HELD_OUT] + 1e-4}), HELD_OUT),
    "cost": (lambda m: entry(m, "metrics", cost=m.metrics["cost"] + 0.5), "cost"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_only_the_changed_claim_fails(change, model, halves):
    alter, claim = CHANGES[change]
    verification = rs.verify(alter(model), *halves)
    assert [one.claim for one in verification.verdicts if not one.holds] == [claim]
    assert not verification.holds
    assert verification.summary == f"1 of 6 claims does not hold: {claim}."


def other_scales(model: rs.LinearModel) -> Preparation:
    normalisation = model.preparation.normalisation
    doubled = replace(normalisation, scale=tuple(2.0 * scale for scale in normalisation.scale))
    return replace(model.preparation, normalisation=doubled)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: entry(m, "certificate", alpha=1.01 * m.certificate["alpha"]),
        lambda m: entry(m, "certificate", weights={**m.certificate["weights"], m.names[0]: 0.9}),
        lambda m: replace(m, preparation=other_scales(m)),
    ],
    ids=["alpha", "l1 weights", "scales"],
)
def test_a_changed_problem_has_another_objective(change, train):
    fitted = sparse(train, families=["log"], normalise="z")
    assert verdicts(change(fitted), train, refit=False)["weights"] is False


def test_weights_of_another_point_of_the_path(halves):
    """Its certificate is valid, but the selection leads to another point."""
    train, _ = halves
    chosen, other = (sparse(train, families=["l1"], alphas=[alpha]) for alpha in (0.05, 0.1))
    swapped = replace(other, parameters=chosen.parameters, metrics=chosen.metrics)
    assert verdicts(swapped, train, refit=False)["weights"] is True
    results = verdicts(swapped, train)
    assert [claim for claim, holds in results.items() if not holds] == ["weights"]
    assert text_of(swapped, train, "weights").endswith("refit: different weights")
    assert text_of(swapped, train, HELD_OUT).startswith("refit: different weights")


LIMITS = {"max_features": 2, "max_cost": 6.0, "must_not": ["f3", 3], "signs": {"f1": 1.0, "f2": -1.0}}


@pytest.mark.parametrize(
    ("changes", "violation"),
    [
        ({}, ""),
        ({"max_features": 1}, "2 of at most 1 features"),
        ({"max_cost": 5.0}, "cost 6 of at most 5"),
        ({"must_not": ["f1", "f2"]}, "uses f1, f2 of must_not"),
        ({"must_not": [0]}, "uses f1 of must_not"),
        ({"must_not": "f2"}, "uses f2 of must_not"),
        ({"signs": {"f1": -1.0, "f2": -1.0}}, "wrong signs: f1"),
    ],
)
def test_violations_of_budgets_are_reported(changes, violation, train):
    parameters = {**LIMITS, "feature_costs": COSTS, **changes}
    terms = (Term("f1", 0, 0.5), Term("f2", 1, -0.5))
    limited = rs.LinearModel(terms, 8, method="SparseRanker", parameters=parameters, data={"train": ""})
    assert verdicts(limited, train)["budget"] is not bool(violation)
    satisfied = "2 of at most 2 features; cost 6 of at most 6; no feature of must_not; signs as required"
    assert text_of(limited, train, "budget") == (violation or satisfied)
    assert "budget" not in verdicts(replace(limited, method="StabilitySelection"), train)


def test_other_data(model, halves):
    train, valid = halves
    results = verdicts(model, train.select_queries(range(12)), valid)
    assert results.pop("training data") is False
    assert results.pop("weights") is False
    assert results.pop(HELD_OUT) is False
    assert set(results.values()) == {True}


def test_gaps_that_need_a_new_fit(train):
    fitted = rs.baselines.RankSVMStruct(10.0).fit(train).to_model()
    verdict = rs.verify(fitted, train).verdicts[1]
    assert (verdict.claim, verdict.holds) == ("weights", True)
    assert "refit: same weights; gap" in verdict.words
    quick = rs.verify(fitted, train, refit=False).verdicts[1]
    assert quick.holds is None
    assert quick.words.endswith("gap: requires a new fit, which was skipped")
    assert verdicts(smaller_gap(fitted), train)["weights"] is False


@pytest.mark.parametrize("name", ["ranksvm-log", "rsrank", "adarank-ndcg"])
def test_new_fits_of_methods_without_a_gap(name, train):
    fitted = METHODS[name].make().fit(train).to_model()
    assert "no optimality gap is claimed" in text_of(fitted, train, "weights")
    for entries in fitted.certificate:
        changed = entry(fitted, "certificate", **{entries: fitted.certificate[entries] + 1e-3})
        assert verdicts(changed, train)["weights"] is False
    assert verdicts(first_weight(fitted, 1.01), train)["weights"] is False


def test_a_weight_on_an_unusable_feature(train):
    X = train.X.copy()
    X[:, 7] = 1.0
    data = train.replace_features(X)
    fitted = rs.RankSVM(average=True).fit(data).to_model()
    assert "f8" not in fitted.names
    more = replace(fitted, terms=(*fitted.terms, replace(fitted.terms[0], name="f8", index=7)))
    assert verdicts(more, data)["weights"] is False


# --- claims that cannot be checked -----------------------------------------------------------------------


def test_without_a_new_fit(model, halves):
    verification = rs.verify(model, *halves, refit=False)
    assert {one.claim: one.holds for one in verification.verdicts if one.holds is not True} == {
        HELD_OUT: None
    }
    assert verification.holds, "the caller left it out"
    assert verification.summary == "5 of 6 claims hold, 1 not checked."


def test_without_validation_data(model, halves):
    results = verdicts(model, halves[0])
    assert [claim for claim, holds in results.items() if holds is None] == ["validation data", HELD_OUT]
    assert text_of(model, halves[0], HELD_OUT) == "the model was fitted with validation data; pass valid"
    assert not rs.verify(model, halves[0]).holds, "not confirmed"
    assert not rs.verify(model, halves[0], refit=False).holds


def test_an_unknown_kind_of_certificate(model, halves):
    unknown = replace(model, certificate={"kind": "of another release", "sets": [["f1"], ["f2"]]})
    verdict = rs.verify(unknown, *halves).verdicts[2]
    assert verdict == Verdict(
        "of another release", False, "this release does not support certificates of kind 'of another release'"
    )


def test_adding_a_kind_of_certificate(model, halves, monkeypatch):
    def check_subset(case: Case) -> Verdict:
        if "k" not in case.model.certificate:
            raise NotChecked("no number of features")
        return Verdict("subset", len(case.model.terms) <= case.model.certificate["k"], "counted")

    monkeypatch.setitem(PROOFS, "subset", check_subset)
    for proof, holds in (({"k": 8}, True), ({"k": 0}, False), ({}, False)):
        subset = replace(model, certificate={"kind": "subset", **proof})
        assert verdicts(subset, *halves, refit=False)["subset"] is holds


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: replace(m, method="MyRanker"), "no linear method called 'MyRanker'"),
        (lambda m: replace(m, method="LambdaMART"), "no linear method called 'LambdaMART'"),
        (lambda m: entry(m, "parameters", other=1), "has no parameter 'other' in this release"),
        (lambda m: entry(m, "parameters", tol=-1.0), "tol=-1.0: "),
        (
            lambda m: entry(m, "parameters", penalty="Mine(alpha=1.0)"),
            "penalty is a custom object",
        ),
        (lambda m: replace(m, chosen_by=None), "the profile is a custom object"),
        (lambda m: entry(m, "parameters", metric="ndgc"), "the refit failed: metric='ndgc': "),
        (lambda m: entry(m, "parameters", alphas="few"), "the refit failed: could not convert"),
        (
            lambda m: entry(m, "parameters", feature_costs="x.csv"),
            "feature_costs is a custom object",
        ),
        (lambda m: entry(m, "parameters", choice=3), "the model selection cannot be repeated"),
    ],
)
def test_models_that_cannot_be_refitted_are_reported(change, message, model, halves):
    changed = change(model)
    assert verdicts(changed, *halves)[HELD_OUT] is False
    assert message in text_of(changed, *halves[:1], HELD_OUT, halves[1])


def test_unreadable_limits(model, halves):
    verdict = rs.verify(entry(model, "parameters", max_features="few"), *halves, refit=False).verdicts[-1]
    assert (verdict.claim, verdict.holds) == ("budget", False)
    assert verdict.words.startswith("the limits cannot be read: TypeError")


def test_custom_objects(halves):
    train, valid = halves
    custom_penalty = sparse(train, penalty=L1(weights=np.linspace(1, 2, 8)))
    assert verdicts(custom_penalty, train) == {"training data": True, "weights": False, HELD_OUT: False}
    custom_profile = sparse(train, profile=Profile("mine"))
    assert verdicts(custom_profile, train, refit=False)["weights"] is True
    results = verdicts(custom_profile, train)
    assert results["weights"] is False, "the selection cannot be confirmed"
    assert results["held-out ndcg@5 (mine, ties mean)"] is False
    grid = replace(METHODS["ranksvm"], grid=[{"C": 1.0}, {"C": 10.0}])
    chosen = rs.GridRanker(grid, 3, profile="standard").fit(train, valid=valid).to_model()
    assert text_of(chosen, train, "held-out ndcg@10 (standard)", valid).startswith(
        "the grid is a custom object"
    )
    assert verdicts(chosen, train, valid, refit=False)["weights"] is True
    assert verdicts(chosen, train, valid)["weights"] is False


def test_a_fit_with_an_unknown_start(train):
    ranker = rs.SparseRankSVM("mcp", 0.3, warm_start=True)
    ranker.fit(train).set_params(alpha=0.02).fit(train)
    ranker.coef_ = ranker.coef_ * 0.5
    changed = ranker.set_params(max_rounds=1).fit(train).to_model()
    verdict = rs.verify(changed, train).verdicts[1]
    assert verdict.holds is False
    assert "the first fit may have started from weights that are not in the file" in verdict.words


def test_models_of_incremental_learning_cannot_be_checked(train):
    online = rs.MinBatSRank(2.0).partial_fit(train).to_model()
    verification = rs.verify(online, train)
    assert [one.holds for one in verification.verdicts] == [None, None]
    assert not verification.holds, "nothing was confirmed"
    assert verification.summary == "None of 2 claims could be checked."
    assert "no objective is stated" in verification.verdicts[1].words


def test_another_release_is_noted(model, halves):
    older = replace(model, version="0.0.9")
    verification = rs.verify(older, *halves)
    assert verification.note == (
        f"The file was written by ranksieve 0.0.9; this is {rs.__version__}, whose fits may differ."
    )
    assert all(one.holds for one in verification.verdicts)


def test_a_file_must_name_the_family(train):
    fitted = sparse(train, families=["log"])
    certificate = {name: v for name, v in fitted.certificate.items() if name not in ("family", "weights")}
    for version in (rs.__version__, "0.0.9"):
        assert verdicts(replace(fitted, certificate=certificate, version=version), train)["weights"] is False


# --- refusals --------------------------------------------------------------------------------------------


def test_wrong_input_is_refused(model, halves):
    train, valid = halves
    with refused_data() as info:
        rs.verify(model, random_dataset())
    assert "5 features" in info.value.reason
    renamed = train.replace_features(train.X, [f"g{j}" for j in range(8)])
    with refused_data() as info:
        rs.verify(model, renamed, valid)
    assert "lack" in info.value.reason
    with refused_parameter("data"):
        rs.verify(model, train.X)
    alone = sparse(train)
    with refused_parameter("valid", valid):
        rs.verify(alone, train, valid)
    with refused_parameter("query_weight"):
        rs.verify(alone, train, query_weight=np.ones(train.n_queries))
    for wrong in (rs.LinearModel(model.terms, 8), "model.json"):
        with refused_parameter("model", wrong):
            rs.verify(wrong, train)


def test_the_summary_counts():
    right, wrong, unknown = (
        Verdict(name, holds, "") for name, holds in (("a", True), ("b", False), ("c", None))
    )
    assert Verification((right, wrong, wrong)).summary == "2 of 3 claims do not hold: b, b."
    assert Verification((right, unknown)).summary == "1 of 2 claims holds, 1 not checked."
    assert Verification((right, unknown)).to_dict() == {
        "holds": False, "summary": "1 of 2 claims holds, 1 not checked.", "note": "", "problem": "",
        "verdicts": (
            {"claim": "a", "holds": True, "words": "", "left_out": False},
            {"claim": "c", "holds": None, "words": "", "left_out": False},
        ),
    }  # fmt: skip
    assert Verification((right, replace(unknown, left_out=True))).holds
