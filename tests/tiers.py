"""Which cases `make test` runs, and which only `make test-full`: those marked ``full``.

Tests over all methods run in full for one method per kind of fit and loss, and for every method once
(``FOR_EVERY_METHOD``). Processes, faults, browsers, tutorials and whole products of cases are marked where
they are. ``RANKSIEVE_TESTS=quick`` also tries fewer examples of each property.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

import pytest
from hypothesis import settings

from ranksieve.methods import METHODS
from tests.rankers import RANKERS

REPRESENTATIVES = {  # one per kind of fit and loss
    "sparseranker",
    "bestsubset",
    "fenchelrank",
    "fsmrank",
    "minbatsrank",
    "ranksvm-log",
    "sparseranksvm",
    "sparselistmle",
    "rankboost",
    "fsmsvm",
    "stabilityselection",
}
FOR_EVERY_METHOD = {
    "test_the_model_file_gives_the_same_scores",  # fit, save, load and score
    "test_every_linear_method_tells_the_truth",  # fit, save and verify
    "test_a_sound_ranker_or_a_sentence",
}
OTHERS = {*METHODS, *RANKERS} - REPRESENTATIVES
full = pytest.mark.full
QUICK = os.environ.get("RANKSIEVE_TESTS") == "quick"
FEW = 30


def examples(most: int) -> settings:
    """How many examples of a property are tried; `make test` tries at most ``FEW``."""
    return settings(max_examples=min(most, FEW) if QUICK else most)


def tiered(cases: Iterable, quick: Collection) -> list:
    """Cases for ``parametrize``; those that are not among the quick ones are for `make test-full`."""
    return [pytest.param(case, marks=() if case in quick else full) for case in cases]


def is_about_another_method(item: pytest.Item) -> bool:
    """Whether a case is about a method that another one represents."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    names = {getattr(value, "__name__", str(value)).lower() for value in values}
    return item.originalname not in FOR_EVERY_METHOD and not names.isdisjoint(OTHERS)
