"""Mutation operators; the lists of tests and equivalent mutants are up to date."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.__main__ import SOURCE, equivalents, targets
from tests.mutants.operators import mutants_of
from tests.mutants.runner import ROOT

TOY = '''
LIMIT = 3

def count(values, least=2):
    """Number of values of at least ``least``."""
    n = 0
    for value in values:
        if value >= least and not value is None:
            n += 1
    return -n if n > LIMIT else min(n, 5)
'''


def test_each_operator_makes_its_mutants():
    changes = [mutant.change for mutant, _ in mutants_of(TOY)]
    assert changes == [
        "n = 0 → nothing",
        "0 → 1",
        "value >= least and (not value is None) → value >= least or not value is None",
        "value >= least → value > least",
        "value >= least → value < least",
        "not value is None → value is None",
        "value is None → value is not None",
        "n += 1 → n -= 1",
        "n += 1 → nothing",
        "1 → 2",
        "return -n if n > LIMIT else min(n, 5) → return None",
        "-n if n > LIMIT else min(n, 5) → -n",
        "-n if n > LIMIT else min(n, 5) → min(n, 5)",
        "n > LIMIT → n >= LIMIT",
        "n > LIMIT → n <= LIMIT",
        "-n → n",
        "min → max",
        "5 → 6",
    ]


def test_mutants_differ_only_in_their_change():
    texts = [ast.unparse(tree) for _, tree in mutants_of(TOY)]
    assert len(set(texts)) == len(texts)
    assert ast.unparse(ast.parse(TOY)) not in texts
    for text in texts:
        compile(text, "toy", "exec")


@pytest.mark.parametrize(("module", "tests"), [(module, tests) for _, module, tests in targets([])])
def test_lists_are_up_to_date(module, tests):
    for test in tests:
        path, _, name = test.partition("::")
        function = name.partition("[")[0]
        assert f"def {function}" in (ROOT / path).read_text()
    keys = {mutant.key for mutant, _ in mutants_of((SOURCE / module).read_text())}
    assert equivalents(module) <= keys
