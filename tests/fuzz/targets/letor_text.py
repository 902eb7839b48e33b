"""LETOR text, read quickly and slowly."""

from __future__ import annotations

from random import Random

from tests.fuzz.letor import Case, check_letor, letor_case


class LetorTexts:
    """Texts with the options that they are read with."""

    def make(self, rng: Random) -> Case:
        return letor_case(rng)

    def check(self, case: Case) -> bool:
        return check_letor(case)


LETOR = LetorTexts()
