"""Errors have attributes, and their message is worded for Python or for the command line."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from ranksieve.cli.output import error_sentence
from ranksieve.errors import DataError, ParameterError, in_python, on_command_line, while_doing
from ranksieve.synthetic import make_ranking

OPTIONS = {"max_features": "--max-features", "missing": "--missing", "costs": "--costs"}


@pytest.mark.parametrize(
    ("error", "python", "command_line"),
    [
        (
            ParameterError("max_features", 0, "must be at least 1"),
            "max_features=0: must be at least 1",
            "--max-features 0: must be at least 1",
        ),
        (
            ParameterError("missing", "blank", "unknown; choose `missing='zero'`, or give `costs`"),
            "missing='blank': unknown; choose missing='zero', or give costs",
            "--missing blank: unknown; choose --missing zero, or give --costs",
        ),
        (ParameterError("costs", None, "is needed"), "costs=None: is needed", "--costs: is needed"),
        (ParameterError("alpha", -1, "must be positive"), "alpha=-1: must be positive", None),
        (ParameterError("alphas", np.ones(3), "must descend"), "alphas: must descend", None),
        (ParameterError("valid", [np.ones((2, 1))], "is bad"), "valid=[array([[1.], [1.]])]: is bad", None),
        (DataError("a.txt", 3, "has no label"), "a.txt:3: has no label", None),
        (DataError("a.txt", None, "is empty"), "a.txt: is empty", None),
        (DataError(None, None, "row 3 has no label"), "row 3 has no label", None),
        (ParameterError("data", make_ranking(2, 3, 1), "is too wide"), "data: is too wide", None),
    ],
)
def test_an_error_is_worded_for_python_and_for_the_command_line(error, python, command_line):
    assert str(error) == python
    assert on_command_line(error.text, OPTIONS) == (command_line or python)


def test_errors_can_be_sent_to_another_process():
    for error in (ParameterError("alpha", -1, "must be positive"), DataError("a.txt", 3, "has no label")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)


def test_file_and_line_can_be_added_later():
    error = DataError(None, None, "has no label").at("a.txt", 3)
    assert (error.file, error.line) == ("a.txt", 3)
    assert (error.at("b.txt", 7).file, error.at("b.txt", 7).line) == ("b.txt", 3)


def test_errors_name_the_current_task():
    def fail():
        with while_doing("fitting"), while_doing("fold 1"):
            raise ParameterError("costs", None, "is needed")

    with pytest.raises(ParameterError, match=r"^costs=None: is needed\nfold 1\nfitting$") as info:
        fail()
    assert error_sentence(info.value, OPTIONS) == "fitting: fold 1: --costs: is needed"


def test_other_text_in_backticks_is_kept():
    assert in_python("run `pip install x`") == "run `pip install x`"
