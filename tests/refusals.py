"""What is refused: the type of an error and its facts. Texts are asserted in tests/test_errors.py."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from ranksieve.errors import DataError, ParameterError

UNSAID = object()


@contextmanager
def refused_parameter(name, value=UNSAID):
    """Expect a ParameterError about a parameter, and its value if one is given."""
    with pytest.raises(ParameterError) as info:
        yield info
    assert info.value.name == name, str(info.value)
    got = info.value.value
    assert value is UNSAID or got is value or np.all(got == value), str(info.value)
    assert_one_sentence(info.value)


@contextmanager
def refused_data(file=None, line=None):
    """Expect a DataError about a file and a line; a file by its whole path or its name, None for memory."""
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
    """Expect an error about a parameter, given as (name,) or (name, value), or about data: a word of it."""
    about_data = isinstance(facts, str)
    with refused_data() if about_data else refused_parameter(*facts) as info:
        yield info
    assert not about_data or facts in info.value.reason, str(info.value)
