"""Mutations of JSON values: parts replaced, duplicated, deleted or moved."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), 2**31,
    2**53 + 1, 2**63, 10**30, 10**400, 10**10, "", "x", "1", "1_0", "nan", "1e999", "\u0661", "\u2028",
    "\ud800", "\0", "f1", "f2", "x" * 500, "<script>", [], [[]], [None], ["f1", "f1"], [1, "a"], [0] * 50,
    {}, {"": 0}, {"a": {"b": []}},
]  # fmt: skip


def mutated_json(rng: Random, value: Any, most: int = 3) -> Any:
    """A copy with up to ``most`` changes."""
    whole = [copy.deepcopy(value)]
    for _ in range(rng.randrange(1, most + 1)):
        places = list(_places(whole))
        holder, key = rng.choice(places)
        change = rng.randrange(8)
        if change == 0 and holder is not whole:
            del holder[key]
        elif change == 1:
            other, its = rng.choice(places)
            holder[key] = copy.deepcopy(other[its])
        elif change == 2 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif change == 3 and isinstance(holder, dict):
            holder[rng.choice(["", "x", "f1", key + " ", "constructor"])] = holder[key]
        elif change == 4 and isinstance(holder[key], float | int):
            holder[key] = rng.choice([-holder[key], holder[key] * 10, holder[key] + 1, str(holder[key])])
        else:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
    return whole[0]


def _places(holder: Any) -> Iterator[tuple[Any, Any]]:
    """Every (list or object, index or name) inside a value."""
    names = list(holder) if isinstance(holder, dict) else range(len(holder))
    for name in names:
        yield holder, name
        if isinstance(holder[name], dict | list):
            yield from _places(holder[name])
