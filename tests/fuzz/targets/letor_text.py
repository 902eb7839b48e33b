"""LETOR text, read by the fast and the slow reader."""

from __future__ import annotations

from random import Random

from tests.fuzz.letor import Case, check_letor, letor_case


class LetorTexts:
    """Texts with options of the reader."""

    def make(self, rng: Random) -> Case:
        return letor_case(rng)

    def check(self, case: Case) -> bool:
        return check_letor(case)


LETOR = LetorTexts()
