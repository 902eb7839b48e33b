"""Find an entry of a table by name, or say which names there are."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

Entry = TypeVar("Entry")


def lookup(table: Mapping[str, Entry], name: str, kind: str) -> Entry:
    """``table[name]``; for an unknown name an error that lists the known ones and suggests the nearest."""
    if name in table:
        return table[name]
    folded = {key.lower(): key for key in table}
    nearest = get_close_matches(name.lower(), folded, n=1, cutoff=0.4)
    hint = f" (did you mean {folded[nearest[0]]!r}?)" if nearest else ""
    raise ValueError(f"unknown {kind} {name!r}{hint}; known are {', '.join(table)}")
