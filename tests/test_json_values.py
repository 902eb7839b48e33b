"""Decoding and conversion of JSON values, and messages about wrong types."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksieve._util.files import Finite, convert_to, decode_json
from ranksieve.errors import DataError


class Example(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    weights: list[Finite]
    note: str | None = None
    count: int = 1


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(values)
def test_valid_json_is_decoded_like_the_standard_library(value):
    text = json.dumps(value)
    assert decode_json(text) == json.loads(text)


def test_integers_beyond_floats_are_infinite():
    assert decode_json("[1" + "0" * 400 + ", -1" + "0" * 5000 + "]") == [math.inf, -math.inf]
    assert decode_json(str(10**300)) == 10**300


def test_deep_nesting_is_refused():
    with pytest.raises(json.JSONDecodeError, match="nested"):
        decode_json("[" * 100_000)


def test_a_valid_object():
    result = convert_to({"weights": (1, 2.5), "name": "a"}, Example, "it")
    assert result == Example("a", [1.0, 2.5], None, 1)
    assert isinstance(result.weights[0], float)
    full = {"name": "a", "weights": [], "note": "b", "count": 3}
    assert convert_to(full, Example) == Example("a", [], "b", 3)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "it: expected 'object', got 'int'"),
        ({"weights": []}, "it: object missing required field 'name'"),
        ({"name": 5, "weights": []}, "it.name: expected 'str', got 'int'"),
        ({"name": "a", "weights": "12"}, "it.weights: expected 'array', got 'str'"),
        ({"name": "a", "weights": [True]}, "it.weights[0]: expected 'float', got 'bool'"),
        ({"name": "a", "weights": [0.0, math.nan]}, "it.weights[1]: expected a finite number"),
        ({"name": "a", "weights": [], "count": None}, "it.count: expected 'int', got 'null'"),
        ({"name": "a", "weights": [], "count": 1.0}, "it.count: expected 'int', got 'float'"),
        ({"name": "a", "weights": [], "more": 1}, "it: object contains unknown field 'more'"),
    ],
)
def test_other_types_are_refused_with_their_path(value, words):
    with pytest.raises(DataError) as caught:
        convert_to(value, Example, "it")
    assert caught.value.reason == words


def test_unknown_names_are_escaped_and_shortened():
    with pytest.raises(DataError) as caught:
        convert_to({"name": "a", "weights": [], "m\nore" * 99: 1}, Example)
    assert caught.value.reason.isprintable()
    assert len(caught.value.reason) < 120
