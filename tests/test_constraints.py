"""Constraints on the values of parameters."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
import pytest

from ranksieve.rankers.parameters import Interval, IsNone, OneOf, TrueOrFalse, check
from tests.refusals import refused_parameter


@pytest.mark.parametrize(
    ("constraint", "words", "good", "bad"),
    [
        (Interval(Real, 0, np.inf, "neither"), "a float in the range (0.0, inf)", [1, 0.5, np.float32(2)],
         [0, -1, np.inf, np.nan, "1", True, None]),
        (Interval(Real, 0, np.inf, "both"), "a float in the range [0.0, inf]", [0, np.inf], [-1e-9, np.nan]),
        (Interval(Real, 0, 1, "right"), "a float in the range (0.0, 1.0]", [1, 0.1], [0, 1.1]),
        (Interval(Integral, 2, None, "left"), "an int in the range [2, inf)", [2, np.int64(9), 10**30],
         [1, 2.0, True]),
        (Interval(Integral, None, 3, "neither"), "an int in the range (-inf, 3)", [-9, 2], [3]),
        (OneOf(str, ("a", "b")), "a str among {'a', 'b'}", ["a"], ["c", 1, None]),
        (OneOf(Integral, (0,)), "an int among {0}", [0], [1, 0.0, False]),
        (TrueOrFalse(), "True or False", [True, np.bool_(False)], [0, None]),
        (IsNone(), "None", [None], [0, False]),
    ],
)  # fmt: skip
def test_constraints(constraint, words, good, bad):
    assert str(constraint) == words
    assert [constraint.allows(value) for value in good] == [True] * len(good)
    assert [constraint.allows(value) for value in bad] == [False] * len(bad)


def test_the_message_lists_all_allowed_values():
    constraints = [Interval(Integral, 1, None, "left"), OneOf(str, ("auto",)), IsNone()]
    check("k", "auto", constraints)
    check("k", object(), [])
    with refused_parameter("k", 0) as info:
        check("k", 0, constraints)
    assert info.value.reason == "must be an int in the range [1, inf), a str among {'auto'} or None"
