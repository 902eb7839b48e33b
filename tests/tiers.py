"""Test tiers: `make test` skips tests marked ``full``, `make test-full` runs all.

In `make test`, contracts of methods run for one method per kind of fit and loss, and the tests of
``FOR_EVERY_METHOD`` for every method. Tests of processes, faults, browsers and tutorials, and large products
of cases, are marked ``full`` in place. ``RANKSIEVE_TESTS=quick`` also tries fewer examples of each property.
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
    "test_the_model_file_has_the_same_scores",  # fit, save, load and score
    "test_claims_of_every_linear_method_hold",  # fit, save and verify
    "test_borderline_data_are_fitted_or_refused",
}
OTHERS = {*METHODS, *RANKERS} - REPRESENTATIVES
full = pytest.mark.full
QUICK = os.environ.get("RANKSIEVE_TESTS") == "quick"
FEW = 30


def examples(most: int) -> settings:
    """Settings with at most ``most`` examples of a property, in `make test` at most ``FEW``."""
    return settings(max_examples=min(most, FEW) if QUICK else most)


def tiered(cases: Iterable, quick: Collection) -> list:
    """Cases for ``parametrize``; cases not in ``quick`` are marked ``full``."""
    return [pytest.param(case, marks=() if case in quick else full) for case in cases]


def is_about_another_method(item: pytest.Item) -> bool:
    """Whether a case is about a method represented by another one in `make test`."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    names = {getattr(value, "__name__", str(value)).lower() for value in values}
    return item.originalname not in FOR_EVERY_METHOD and not names.isdisjoint(OTHERS)
