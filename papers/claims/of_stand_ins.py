"""Claims about time, sparsity and convergence, on stand-ins. One line in CLAIMS adds a claim."""

from __future__ import annotations

from collections.abc import Callable

from papers.choices import Reproduction
from papers.claims.base import NO, YES, Verdict
from papers.stand_ins import load_stand_ins
from ranksieve.experiment.journal import Entry

NOTE = "One fit of each method to synthetic data in the shape of a collection; claims hold if they do on all."


def verdicts(results: Reproduction) -> list[Verdict]:
    """One for each claim; none without stand-ins."""
    rows = list(load_stand_ins(results.folder).values())
    found = []
    for (paper, claim, comparison), test in CLAIMS.items() if rows else ():
        n_held = sum(map(test, rows))
        holds = YES if n_held == len(rows) else NO
        found.append(Verdict(paper, claim, comparison, f"on {n_held} of {len(rows)} stand-ins", holds))
    return found


def _time(row: Entry, name: str) -> float:
    return float(row["runs"][name]["seconds"])


def _share(row: Entry, name: str) -> float:
    return float(row["runs"][name]["sparsity"])


def _fenchelrank_is_faster(row: Entry) -> bool:
    return _time(row, "FenchelRank") < _time(row, "TGRank")


def _fenchelrank_is_sparser(row: Entry) -> bool:
    return _share(row, "FenchelRank") < _share(row, "TGRank")


def _minbatsrank_is_faster(row: Entry) -> bool:
    return _time(row, "MinBatSRank") < min(_time(row, "FenchelRank"), _time(row, "SparseRank"))


def _concave_are_sparser(row: Entry) -> bool:
    return max(_share(row, "RankSVM-log"), _share(row, "RankSVM-ℓ0.5")) < _share(row, "RankSVM-ℓ1")


def _accelerated_is_nearer(row: Entry) -> bool:
    found = {name: run["objective"] for name, run in row["subgradient"].items()}
    return bool(found["FSMRank"] < found["subgradient"])


def _sparse_listmle_is_faster(row: Entry) -> bool:
    return _time(row, "Sparse CS-ListMLE") < _time(row, "CS-ListMLE")


CLAIMS: dict[tuple[str, str, str], Callable[[Entry], bool]] = {
    (
        "FenchelRank", "faster than other sparse methods", "seconds below TGRank's at a matched radius",
    ): _fenchelrank_is_faster,
    (
        "FenchelRank", "sparser than other sparse methods", "below TGRank at a matched radius",
    ): _fenchelrank_is_sparser,
    (
        "MinBatSRank", "faster than other sparse methods", "seconds below FenchelRank's and SparseRank's",
    ): _minbatsrank_is_faster,
    (
        "NonconvexRankSVM", "nonconvex penalties are sparser than ℓ1", "log and ℓ0.5 below ℓ1",
    ): _concave_are_sparser,
    (
        "FSMRank", "converges faster than a subgradient method", "objective after as many iterations",
    ): _accelerated_is_nearer,
    (
        "SparseCSListMLE", "trains faster than the dense method", "seconds below CS-ListMLE's",
    ): _sparse_listmle_is_faster,
}  # fmt: skip
