"""Expected errors: their type and attributes. Texts of messages are asserted in tests/test_errors.py."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from ranksieve.errors import DataError, ParameterError

ANY_VALUE = object()


@contextmanager
def refused_parameter(name, value=ANY_VALUE):
    """Expect a ParameterError about a parameter, with this value if one is given."""
    with pytest.raises(ParameterError) as info:
        yield info
    assert info.value.name == name, str(info.value)
    actual = info.value.value
    assert value is ANY_VALUE or actual is value or np.all(actual == value), str(info.value)
    assert_one_sentence(info.value)


@contextmanager
def refused_data(file=None, line=None):
    """Expect a DataError about a file (its path or name; None for data in memory) and a line."""
    with pytest.raises(DataError) as info:
        yield info
    error = info.value
    assert (file is None) == (error.file is None), str(error)
    assert file is None or str(file) == error.file or error.file.endswith(f"/{file}"), str(error)
    assert error.line == line, str(error)
    assert_one_sentence(error)


def assert_one_sentence(error):
    text = str(error)
    assert text
    assert "\n" not in text
    assert not text.endswith(".")
    assert "`" not in text


@contextmanager
def refused_as(facts):
    """Expect an error about a parameter, (name,) or (name, value), or about data, a part of the message."""
    about_data = isinstance(facts, str)
    with refused_data() if about_data else refused_parameter(*facts) as info:
        yield info
    assert not about_data or facts in info.value.reason, str(info.value)
