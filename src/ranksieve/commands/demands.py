"""What the command line demands of features: costs, must-haves, signs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ranksieve.data.cost_files import read_costs
from ranksieve.data.signs import as_sign, read_signs


def parse_demands(
    costs: str | None, max_cost: float | None, must_have: str | None, must_not: str | None, signs: str | None
) -> dict[str, Any]:
    """Parameters of the ranker; None where an option is not given."""
    if max_cost is not None and costs is None:
        raise ValueError(f"--max-cost {max_cost:g} needs --costs FILE: what each feature costs")
    return {
        "feature_costs": None if costs is None else read_costs(costs),
        "max_cost": max_cost,
        "must_have": _names(must_have),
        "must_not": _names(must_not),
        "signs": None if signs is None else _signs(signs),
    }


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _signs(text: str) -> dict[str, float]:
    """``name=+,name=-``, or a file."""
    if "=" not in text or Path(text).exists():
        return read_signs(text)
    pairs = [part.rpartition("=") for part in text.split(",")]
    return {name.strip(): as_sign(sign.strip(), name.strip(), "--signs") for name, _, sign in pairs}
