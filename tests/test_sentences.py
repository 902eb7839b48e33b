"""Sentences about a selection and its certificate: headline, ties, cost of a budget, optimality."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.choice.decide import Confidence
from ranksieve.data.budget import Budget
from ranksieve.metrics import PROFILES
from ranksieve.show.sentences import choice_sentences, family_title, optimality
from tests.conftest import random_dataset

CONFIDENCE = {
    "mean": 0.5, "low": 0.45, "high": 0.55, "n_queries": 120, "n_tied": 0, "fewest_tied": 3,
    "frequency": np.zeros(4), "loss": 0.0, "loss_low": 0.0, "loss_high": 0.0, "best_features": 3,
    "best_is_beyond": False,
}  # fmt: skip


def fitted_ranker(max_features: int | None = None, **confidence: float) -> SimpleNamespace:
    """The attributes of a fitted SparseRanker with three features that the sentences use."""
    return SimpleNamespace(
        can=lambda what: True,
        choice_=SimpleNamespace(
            confidence=Confidence(**{**CONFIDENCE, **confidence}),
            validation=SimpleNamespace(metric="ndcg@10", profile=PROFILES["standard"]),
            n_candidates=40,
            budget=Budget(max_features),
            family=SimpleNamespace(label="l1"),
        ),
        support_=np.arange(3),
    )


def test_headline_is_the_held_out_metric_with_its_interval():
    assert choice_sentences(fitted_ranker(), "on vali.txt") == [
        "Held-out NDCG@10: 0.5000 (95 % CI 0.4500 to 0.5500; 120 queries; standard profile).",
        "Selected on vali.txt.",
        "No other candidate is statistically tied with it.",
    ]


LOSS = {"loss": 0.02, "loss_low": -0.01, "loss_high": 0.05, "best_features": 9}


def test_a_budget_is_compared_with_the_best_candidate_beyond_it():
    _, cost, _ = choice_sentences(fitted_ranker(max_features=3, best_is_beyond=True, **LOSS), "")
    assert cost == (
        "Best candidate beyond the budget: 9 features, NDCG@10 0.5200 (0.0200 higher, 95 % CI −0.0100 to "
        "0.0500); a fit without a budget may find a better one."
    )


def test_sentence_if_the_best_candidate_is_within_the_budget():
    """A rule such as "one_standard_error" may select another model than the best."""
    for max_features in (None, 9):
        _, cost, _ = choice_sentences(fitted_ranker(max_features, **LOSS), "")
        assert cost == (
            "Best candidate: 9 features, NDCG@10 0.5200 (0.0200 higher, 95 % CI −0.0100 to 0.0500)."
        )


def test_sentence_if_the_best_candidate_has_a_lower_value():
    """The best candidate by the average over neighbours can have a lower value."""
    _, cost, _ = choice_sentences(
        fitted_ranker(loss=-0.02, loss_low=-0.05, loss_high=0.01, best_features=9), ""
    )
    assert cost.endswith("NDCG@10 0.4800 (0.0200 lower, 95 % CI −0.0100 to 0.0500).")


@pytest.mark.parametrize(
    ("n_tied", "fewest", "words"),
    [
        (1, 3, "1 other candidate is statistically tied with it; the smallest uses 3 features."),
        (12, 1, "12 other candidates are statistically tied with it; the smallest uses 1 feature."),
    ],
)
def test_ties_are_counted(n_tied, fewest, words):
    assert choice_sentences(fitted_ranker(n_tied=n_tied, fewest_tied=fewest), "")[-1] == words


def test_a_ranker_without_selection_has_no_headline():
    assert choice_sentences(rs.FenchelRank().fit(random_dataset()), "") == []


PROOF = {"objective": 0.25, "relative_gap": 9.2e-7}
BOUND = "no other weights lower the training objective by more than 9.2e-5 %."
ABOUT = "(This is about the weights, not about the choice of features or the metric.)"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, f"Proven: {BOUND} {ABOUT} Training objective 0.25."),
        ({"alpha": 0.0125}, f"Proven: {BOUND} {ABOUT} Training objective 0.25 at α = 0.0125."),
        (
            {"ridge": 0.002, "features": ["a"]},
            f"Proven: for this feature, {BOUND} {ABOUT} Training objective 0.25 with ridge 0.002.",
        ),
        (
            {"ridge": 0.002, "features": ["a", "b"]},
            f"Proven: for these 2 features, {BOUND} {ABOUT} Training objective 0.25 with ridge 0.002.",
        ),
        (
            {"features": ["a", "b"]},
            f"Proven: for the 2 features it was fitted on, {BOUND} {ABOUT} Training objective 0.25.",
        ),
    ],
)
def test_sentences_of_certificates(more, words):
    assert optimality({**PROOF, **more}, {}) == words


LIMITED = {"must_have": ["f2"], "must_not": ["f8", 3, "x_*"], "signs": {"f1": "+", "f4": -1.0, "f5": 0}}
LIMITS = "excludes f8, column 3 (from 0) and x_* and has weights f1 ≥ 0 and f4 ≤ 0"


def test_sentences_of_certificates_name_the_limits():
    sentence = optimality(PROOF, LIMITED)
    assert f"Proven: no other weights of a model that {LIMITS} lower the training objective" in sentence
    assert "excludes" not in optimality({"objective": 0.25}, LIMITED), "nothing is proven"
    card = {"kind": "scorecard", "objective": 0.5, "gap": 0.01}
    assert optimality(card, LIMITED).endswith(
        "weights for these features in a model that has weights f1 ≥ 0 and f4 ≤ 0."
    )
    subset = {"kind": "subset", "objective": 0.5, "ridge": 0.1, "relative_gap": 0.0, "max_features": 3,
              "n_features": 45, "max_cost": 5.0}  # fmt: skip
    assert optimality(subset, LIMITED) == (
        "Proven best: no other set of at most 3 of the 45 features that costs at most 5, includes f2, "
        "excludes f8, column 3 (from 0) and x_* and has weights f1 ≥ 0 and f4 ≤ 0 has a lower training "
        "objective. Training objective 0.5 with ridge 0.1."
    )
    forbidden = optimality(PROOF, {"weights": [1.0, "inf", 2.0]})
    assert "no other weights of a model that excludes column 1 (from 0) lower the" in forbidden


def test_the_sentence_of_a_limited_set_names_the_limits():
    data = random_dataset(seed=3, n_queries=20, n_features=5)
    best = rs.BestSubset(2).fit(data)
    model = rs.BestSubset(2, must_not=best.to_model().names).fit(data).to_model()
    assert model.certificate["objective"] > best.objective_
    sentence = optimality(model.certificate, model.parameters)
    assert f"features that excludes {' and '.join(best.to_model().names)} has a lower" in sentence


def test_sentences_without_objective_or_gap():
    assert optimality({}, {}) == ""
    assert optimality({"objective": 0.25}, {}) == "Training objective 0.25, without a proof of optimality."


def test_sentences_of_tiny_and_large_gaps():
    assert optimality({"objective": 0.25, "relative_gap": 0.0}, {}).startswith(
        "Proven: no other weights lower the training objective by more than rounding error."
    )
    assert optimality({"objective": 0.25, "relative_gap": 0.37}, {}) == (
        "Not proven to be close to optimal: other weights may lower the training objective by up to 37 %. "
        f"{ABOUT} Training objective 0.25."
    )


@pytest.mark.parametrize(
    ("family", "strength", "absent"), [("l1", "at α = ", "ridge"), ("forward", "with ridge ", "α")]
)
def test_sentences_name_the_strength_of_the_family(family, strength, absent):
    data = random_dataset(seed=3, n_queries=20, n_features=5)
    ranker = rs.SparseRanker(families=[family], n_alphas=10, cv=2, profile="standard").fit(data)
    model = ranker.to_model()
    proof = optimality(model.certificate, model.parameters)
    assert f"{strength}{ranker.choice_.candidate.strength:.4g}" in proof
    assert absent not in proof


def test_titles_of_families():
    assert [family_title(label) for label in ("l1", "l1 × cost^0.5", "forward within 5", "mine")] == [
        "ℓ1", "ℓ1 × cost^0.5", "forward selection within 5", "mine",
    ]  # fmt: skip
