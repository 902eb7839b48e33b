"""Every method at the ends of what data can be: a ranker that keeps its promises, or one clear sentence."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.methods import METHODS
from tests.extremes.cases import Case
from tests.extremes.judging import judge

every_method = pytest.mark.parametrize("method", METHODS)
pytestmark = pytest.mark.filterwarnings("ignore::ranksieve.prepare.scaling.ScaleWarning")

REFUSED = [  # by every method, with this word
    ({"features": "1e+160"}, "largest allowed is 1e+30"),
    ({"features": "1e-160"}, "at least 1e-30"),
    ({"features": "one 1e+160", "parameters": {"normalise": "z"}}, "feature f1 has values as large as"),
    ({"features": "one 1e-160", "parameters": {"normalise": "z"}}, "feature f1 varies by"),
    ({"features": "largest"}, "1.8e+308"),
    ({"query_weight": "some 1e-310"}, "1e-310"),
    ({"labels": "both ends"}, "-1e+30"),
    ({"labels": "tied"}, "no pair"),
]
FITTED = [  # by every method
    {"features": "1e+28"},
    {"features": "1e-28"},
    {"features": "mixed within 1e±20"},
    {"features": "copies"},
    {"shape": "one feature", "labels": "halves"},
    {"shape": "two documents"},
    {"shape": "wide"},
    {"shape": "some queries of one document", "query_weight": "some 1e+28"},
    {"shape": "one query", "kind": "CSR", "ids": "uuid"},
]
EITHER = [  # a sentence or a ranker
    {"shape": "one document"},
    {"features": "constant"},
    {"labels": "negative"},
    {"labels": "billions"},
]


def words(case):
    return ", ".join(str(value) for value in case.values())


@every_method
def test_what_no_ranker_can_learn_from_is_refused(method):
    for case, word in REFUSED:
        outcome = judge(Case(method, **case))
        assert (outcome.what, word in outcome.words) == ("refused", True), outcome


@every_method
@pytest.mark.parametrize("case", FITTED, ids=words)
def test_what_a_ranker_can_learn_from_gives_a_sound_ranker(method, case):
    outcome = judge(Case(method, **case))
    assert outcome.what == "fitted", outcome


@every_method
@pytest.mark.parametrize("case", EITHER, ids=words)
def test_a_sound_ranker_or_a_sentence(method, case):
    outcome = judge(Case(method, **case))
    assert outcome.what in ("fitted", "refused"), outcome


@every_method
@pytest.mark.parametrize("exponent", [-90, 90])
def test_normalised_features_have_no_units(method, exponent):
    """Factors that are powers of two are exact, so that the scores have the same bits."""
    case = Case(method, parameters={"normalise": "z"})
    plain = case.data()
    scaled = plain.replace_features(plain.X * 2.0**exponent)
    scores = [case.ranker().fit(data).predict(data) for data in (plain, scaled)]
    np.testing.assert_array_equal(*scores)
