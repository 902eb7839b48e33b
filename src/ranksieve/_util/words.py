"""Lists in words."""

from __future__ import annotations

from collections.abc import Sequence


def shortened(names: Sequence[str], most: int) -> str:
    """a, b, c and 4 more."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
