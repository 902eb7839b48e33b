"""What the command line demands of features: costs, must-haves, signs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ranksieve.commands.options import listed
from ranksieve.data.features import as_sign
from ranksieve.formats.feature_tables import read_costs, read_signs


class Demands(NamedTuple):
    """Options as they were written."""

    costs: str | None
    max_cost: float | None
    must_have: str | None
    must_not: str | None
    signs: str | None

    @property
    def files(self) -> tuple[str | None, ...]:
        """The files among them."""
        return self.costs, None if self.signs is None or _is_list(self.signs) else self.signs

    def parsed(self) -> dict[str, Any]:
        """Parameters of the ranker; None where an option is not given."""
        if self.max_cost is not None and self.costs is None:
            raise ValueError(f"--max-cost {self.max_cost:g} needs --costs FILE: what each feature costs")
        return {
            "feature_costs": None if self.costs is None else read_costs(self.costs),
            "max_cost": self.max_cost,
            "must_have": None if self.must_have is None else listed(self.must_have),
            "must_not": None if self.must_not is None else listed(self.must_not),
            "signs": None if self.signs is None else _signs(self.signs),
        }


def _is_list(signs: str) -> bool:
    """Whether the option holds signs rather than the name of a file."""
    return "=" in signs and not Path(signs).exists()


def _signs(text: str) -> dict[str, float]:
    """``name=+,name=-``, or a file."""
    if not _is_list(text):
        return read_signs(text)
    signs: dict[str, float] = {}
    for part in text.split(","):
        name, _, sign = (word.strip() for word in part.rpartition("="))
        if name in signs:
            raise ValueError(f"--signs: {name!r} stands twice in {text}; name it once")
        signs[name] = as_sign(sign, name, "--signs")
    return signs
