"""Findings of verify at the limits of its tolerances, with numbers by hand."""

from __future__ import annotations

import pytest

import ranksieve as rs
from ranksieve.verification.case import REFIT_TOLERANCE, NotChecked, NotGiven, Recomputed
from ranksieve.verification.claims import _at_weights, _by_new_fit, check_weights


class Stated:
    """A case with fixed values; a new fit is an error unless ``again`` is given."""

    def __init__(self, proof, recomputed=None, again=None, chooses=False):
        self.model, self.recomputed = self._model(proof), recomputed
        self._again, self.chooses, self.states_by_fit, self.same_weights = again, chooses, False, True

    @staticmethod
    def _model(proof):
        stated = {"objective": 1.0, "relative_gap": proof["gap"]} if "gap" in proof else {}
        return rs.LinearModel((), 1, certificate=stated | proof)

    @property
    def refitted(self):
        assert self._again is not None, "no new fit expected"
        return self._model(self._again)


def at(objective=1.0, gap=0.25, slack=0.5, tight=True) -> Recomputed:
    return Recomputed(objective, gap, slack, tight)


@pytest.mark.parametrize(
    ("recomputed", "proof", "findings"),
    [
        (at(1.5), {"objective": 1.0}, [(True, "objective 1.5 at these weights")]),
        (at(0.5), {"objective": 1.0}, [(True, "objective 0.5 at these weights")]),
        (at(1.75), {"objective": 1.0}, [(False, "the objective at these weights is 1.75 (stated: 1)")]),
        (
            at(gap=0.75), {"objective": 1.0, "gap": 0.25},
            [(True, "objective 1 at these weights"), (True, "gap 0.75")],
        ),
        (
            at(gap=1.0), {"objective": 1.0, "gap": 0.25},
            [(True, "objective 1 at these weights"), (False, "the gap at these weights is 1 (stated: 0.25)")],
        ),
        (at(gap=1.0, tight=False), {"objective": 1.0, "gap": 0.25}, [(True, "objective 1 at these weights")]),
    ],
)  # fmt: skip
def test_objective_and_gap_at_the_weights(recomputed, proof, findings):
    assert list(_at_weights(recomputed, proof)) == findings


def test_without_an_objective_there_is_no_claim():
    with pytest.raises(NotGiven, match="no objective is stated"):
        check_weights(Stated({"alpha": 0.1}))
    case = Stated({"alpha": 0.1})
    case.model = rs.LinearModel((), 1, certificate={"gap": 0.1})
    with pytest.raises(NotChecked, match="a gap without an objective"):
        check_weights(case)


@pytest.mark.parametrize("gap", [0.25, 0.5, 0.75])  # the last one is the stated gap plus the slack
def test_a_gap_confirmed_by_the_weights_needs_no_fit(gap):
    verdict = check_weights(Stated({"objective": 1.0, "gap": 0.25}, at(gap=gap, tight=False)))
    assert verdict.holds is True
    assert f"gap {gap:.2g}" in verdict.words


def test_a_gap_not_confirmed_by_the_weights_needs_a_fit():
    proof, recomputed = {"objective": 1.0, "gap": 0.25}, at(gap=0.8, tight=False)
    assert check_weights(Stated(proof, recomputed, {"gap": 0.2})).holds is True
    assert check_weights(Stated(proof, recomputed, {"gap": 0.3})).holds is False


def test_a_wrong_objective_needs_no_fit():
    verdict = check_weights(Stated({"objective": 1.0}, at(5.0), chooses=True))
    assert verdict.holds is False


@pytest.mark.parametrize(
    ("name", "stated", "again", "good"),
    [
        ("gap", 0.5, 0.1, True),  # a smaller gap implies the larger one
        ("gap", 0.0, 100.0 * REFIT_TOLERANCE, True),
        ("gap", 0.0, 101.0 * REFIT_TOLERANCE, False),
        ("objective", 100.0, 100.0, True),
        ("objective", 100.0, 100.0 + 90.0 * REFIT_TOLERANCE, True),
        ("objective", 100.0, 100.0 - 110.0 * REFIT_TOLERANCE, False),
        ("gap_of_last_round", 0.5, 0.1, False),
    ],
)
def test_entries_of_a_new_fit(name, stated, again, good):
    case = Stated({"objective": 100.0, name: stated}, again={"objective": 100.0, name: again})
    (_, words), (holds, _) = _by_new_fit(case, [name])
    assert words == "refit: same weights"
    assert holds is good
