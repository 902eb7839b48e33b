"""What the papers claim, and whether it holds here. One line adds a claim: of methods, studies, stand-ins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from papers.choices import PaperResults, Reproduction
from papers.claims import of_methods, of_stand_ins, of_studies
from papers.claims.base import IN_DIRECTION, NO, YES, Verdict
from ranksieve.experiment.tables import Cell, ResultTable, count_cell, text_cell
from ranksieve.metrics.significance import SIGNIFICANCE_LEVEL

NOTE = (
    "Means over folds; p: paired one-sided t-test over the test queries of all folds, for the side that is "
    f"better. {IN_DIRECTION.capitalize()}: as claimed, but not significantly at {SIGNIFICANCE_LEVEL:.0%}, "
    "which does not prove the opposite either."
)


def verdicts(results: PaperResults) -> list[Verdict]:
    """On all claims that the results can tell of."""
    return [*of_methods.verdicts(results), *of_studies.verdicts(results)]


def every_verdict(results: Reproduction) -> list[Verdict]:
    """Of all data sets, and of the stand-ins."""
    found = [verdict for data_set in results.data_sets.values() for verdict in verdicts(data_set)]
    return [*found, *of_stand_ins.verdicts(results)]


def claims_tables(results: Reproduction) -> list[ResultTable]:
    """One table per data set and one of the stand-ins, of those that there are."""
    tables = [claims_table(data_set) for data_set in results.data_sets.values()]
    drawn = _table("stand_in_claims", "Stand-ins", of_stand_ins.verdicts(results), of_stand_ins.NOTE)
    return [table for table in (*tables, drawn) if table.rows]


def claims_table(results: PaperResults) -> ResultTable:
    """One row per claim and what it compares with."""
    return _table("claims", results.name, verdicts(results), NOTE)


def _table(name: str, place: str, found: Sequence[Verdict], note: str) -> ResultTable:
    columns = ("paper", "claim", "holds", "comparison", "here")
    rows = tuple(_row(verdict) for verdict in found)
    return ResultTable(
        name, f"{place}: what the papers claim, and whether it holds here", columns, rows, note
    )


def _row(verdict: Verdict) -> tuple[Cell, ...]:
    holds = Cell(verdict.holds, verdict.holds, bold=verdict.holds == NO)
    return (
        text_cell(verdict.paper),
        text_cell(verdict.claim),
        holds,
        text_cell(verdict.comparison),
        text_cell(verdict.found),
    )


def claims_by_paper(results: Reproduction) -> ResultTable:
    """How many comparisons each paper's claims make, how many hold, and what fails."""
    found = every_verdict(results)
    rows = []
    for paper in dict.fromkeys(verdict.paper for verdict in found):
        own = [verdict for verdict in found if verdict.paper == paper]
        counts = Counter(verdict.holds for verdict in own)
        tally = [count_cell(len(own)), *(count_cell(counts[answer]) for answer in (YES, IN_DIRECTION, NO))]
        rows.append((text_cell(paper), *tally, text_cell(_failing(own))))
    return ResultTable(
        "claims_by_paper",
        "What the papers claim, and whether it holds here",
        ("paper", "comparisons", "hold", IN_DIRECTION, "do not hold", "what fails, in how many comparisons"),
        tuple(rows),
        f"{IN_DIRECTION.capitalize()}: as claimed, but not significantly at {SIGNIFICANCE_LEVEL:.0%}.",
    )  # fmt: skip


def _failing(own: Sequence[Verdict]) -> str:
    asked, failed = Counter(v.claim for v in own), Counter(v.claim for v in own if v.holds == NO)
    return "; ".join(f"{claim} ({n} of {asked[claim]})" for claim, n in failed.items()) or "none"
