"""Claims about time, sparsity and convergence, checked on the stand-ins. To add a claim, add it to CLAIMS."""

from __future__ import annotations

from collections.abc import Callable

from papers.choices import Reproduction
from papers.claims.base import NO, YES, ClaimVerdict
from papers.stand_ins import load_stand_ins
from ranksieve.experiment.journal import Entry

NOTE = "One fit of each method to each stand-in. A claim holds if it holds on all stand-ins."


def verdicts(results: Reproduction) -> list[ClaimVerdict]:
    """One verdict per claim; none without stand-ins."""
    rows = list(load_stand_ins(results.folder).values())
    verdict_list = []
    for (paper, claim, comparison), holds_on in CLAIMS.items() if rows else ():
        n_hold = sum(map(holds_on, rows))
        holds = YES if n_hold == len(rows) else NO
        text = f"on {n_hold} of {len(rows)} stand-ins"
        verdict_list.append(ClaimVerdict(paper, claim, comparison, text, holds))
    return verdict_list


def _seconds(row: Entry, name: str) -> float:
    return float(row["runs"][name]["seconds"])


def _sparsity(row: Entry, name: str) -> float:
    return float(row["runs"][name]["sparsity"])


def _fenchelrank_is_faster(row: Entry) -> bool:
    return _seconds(row, "FenchelRank") < _seconds(row, "TGRank")


def _fenchelrank_is_sparser(row: Entry) -> bool:
    return _sparsity(row, "FenchelRank") < _sparsity(row, "TGRank")


def _minbatsrank_is_faster(row: Entry) -> bool:
    return _seconds(row, "MinBatSRank") < min(_seconds(row, "FenchelRank"), _seconds(row, "SparseRank"))


def _concave_are_sparser(row: Entry) -> bool:
    return max(_sparsity(row, "RankSVM-log"), _sparsity(row, "RankSVM-ℓ0.5")) < _sparsity(row, "RankSVM-ℓ1")


def _accelerated_has_lower_objective(row: Entry) -> bool:
    objectives = {name: run["objective"] for name, run in row["subgradient"].items()}
    return bool(objectives["FSMRank"] < objectives["subgradient"])


def _sparse_listmle_is_faster(row: Entry) -> bool:
    return _seconds(row, "Sparse CS-ListMLE") < _seconds(row, "CS-ListMLE")


CLAIMS: dict[tuple[str, str, str], Callable[[Entry], bool]] = {
    (
        "FenchelRank", "faster than other sparse methods", "seconds below TGRank at a matched radius",
    ): _fenchelrank_is_faster,
    (
        "FenchelRank", "sparser than other sparse methods", "sparsity below TGRank at a matched radius",
    ): _fenchelrank_is_sparser,
    (
        "MinBatSRank", "faster than other sparse methods", "seconds below FenchelRank and SparseRank",
    ): _minbatsrank_is_faster,
    (
        "NonconvexRankSVM", "nonconvex penalties are sparser than ℓ1", "sparsity of log and ℓ0.5 below ℓ1",
    ): _concave_are_sparser,
    (
        "FSMRank", "converges faster than a subgradient method", "objective after the same iterations",
    ): _accelerated_has_lower_objective,
    (
        "SparseCSListMLE", "trains faster than the dense method", "seconds below CS-ListMLE",
    ): _sparse_listmle_is_faster,
}  # fmt: skip
