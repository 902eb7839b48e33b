"""Every method on extreme data: a valid ranker, or an error of one clear sentence."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.methods import METHODS
from tests.extremes.cases import Case
from tests.extremes.judging import judge

every_method = pytest.mark.parametrize("method", METHODS)
pytestmark = pytest.mark.filterwarnings("ignore::ranksieve.prepare.scaling.ScaleWarning")

REFUSED = [  # by every method, with this text
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
EITHER = [  # fitted or refused
    {"shape": "one document"},
    {"features": "constant"},
    {"labels": "negative"},
    {"labels": "billions"},
]


def words(case):
    return ", ".join(str(value) for value in case.values())


@every_method
def test_unusable_data_are_refused(method):
    for case, word in REFUSED:
        outcome = judge(Case(method, **case))
        assert (outcome.what, word in outcome.words) == ("refused", True), outcome


@every_method
@pytest.mark.parametrize("case", FITTED, ids=words)
def test_extreme_but_usable_data_give_a_valid_ranker(method, case):
    outcome = judge(Case(method, **case))
    assert outcome.what == "fitted", outcome


@every_method
@pytest.mark.parametrize("case", EITHER, ids=words)
def test_borderline_data_are_fitted_or_refused(method, case):
    outcome = judge(Case(method, **case))
    assert outcome.what in ("fitted", "refused"), outcome


@every_method
@pytest.mark.parametrize("exponent", [-90, 90])
def test_normalised_features_do_not_depend_on_units(method, exponent):
    """Scaling by powers of two is exact, so the scores are bit-identical."""
    case = Case(method, parameters={"normalise": "z"})
    plain = case.data()
    scaled = plain.replace_features(plain.X * 2.0**exponent)
    scores = [case.ranker().fit(data).predict(data) for data in (plain, scaled)]
    np.testing.assert_array_equal(*scores)
