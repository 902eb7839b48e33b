"""JSON values of a given shape, and the sentences about others."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksieve._util.json_values import checked, decode_json

SHAPE = {"name": str, "weights": [float], "note": (str, None), "count": (int, 1)}
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(values)
def test_sound_json_is_decoded_as_ever(value):
    text = json.dumps(value)
    assert decode_json(text) == json.loads(text)


def test_whole_numbers_beyond_floats_are_infinite():
    assert decode_json("[1" + "0" * 400 + ", -1" + "0" * 5000 + "]") == [math.inf, -math.inf]
    assert decode_json(str(10**300)) == 10**300


def test_deep_nesting_is_damage():
    with pytest.raises(json.JSONDecodeError, match="nested"):
        decode_json("[" * 100_000)


def test_a_sound_object():
    given_value = {"weights": (1, 2.5), "name": "a"}
    expected = {"name": "a", "weights": [1.0, 2.5], "note": None, "count": 1}
    found = checked(given_value, SHAPE, "it")
    assert found == expected
    assert isinstance(found["weights"][0], float)
    assert checked({**given_value, "note": "b", "count": 3}, SHAPE, "it") == {
        **expected,
        "note": "b",
        "count": 3,
    }


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "it is 3"),
        ({"weights": []}, "it has no name"),
        ({"name": 5, "weights": []}, "name is 5"),
        ({"name": "a", "weights": "12"}, "weights is '12'"),
        ({"name": "a", "weights": [True]}, "an entry of weights is True"),
        ({"name": "a", "weights": [math.nan]}, "an entry of weights is nan"),
        ({"name": "a", "weights": [], "count": None}, "count is None"),
        ({"name": "a", "weights": [], "count": 1.0}, "count is 1.0"),
        ({"name": "a", "weights": [], "more": 1}, "it has the unknown entry 'more'"),
        ({"name": list(range(99)), "weights": []}, "16, 1…"),
    ],
)
def test_other_shapes_are_told(value, words):
    with pytest.raises(ValueError) as caught:
        checked(value, SHAPE, "it")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 120
