"""The claims of the papers, checked on our results.

To add a claim, add it to CLAIMS in ``of_methods``, ``of_studies`` or ``of_stand_ins``.
"""

from __future__ import annotations

from collections.abc import Sequence

from papers.choices import PaperResults, Reproduction
from papers.claims import of_methods, of_stand_ins, of_studies
from papers.claims.base import NO, NOT_SIGNIFICANT, ClaimVerdict
from ranksieve.experiment.tables import Cell, ResultTable, text_cell
from ranksieve.metrics.significance import SIGNIFICANCE_LEVEL

NOTE = (
    "Means over folds; p: paired one-sided t-test over the test queries of all folds, for the better side. "
    f"{NOT_SIGNIFICANT.capitalize()}: the difference has the claimed sign, but is not significant at "
    f"{SIGNIFICANCE_LEVEL:.0%}; this does not prove the opposite."
)


def verdicts(results: PaperResults) -> list[ClaimVerdict]:
    """Verdicts on the claims about methods and studies in the results."""
    return [*of_methods.verdicts(results), *of_studies.verdicts(results)]


def all_verdicts(results: Reproduction) -> list[ClaimVerdict]:
    """Verdicts on all data sets and on the stand-ins."""
    on_data_sets = [verdict for data_set in results.data_sets.values() for verdict in verdicts(data_set)]
    return [*on_data_sets, *of_stand_ins.verdicts(results)]


def claims_tables(results: Reproduction) -> list[ResultTable]:
    """One table per data set, and one for the stand-ins; without empty tables."""
    tables = [claims_table(data_set) for data_set in results.data_sets.values()]
    stand_ins = _table("stand_in_claims", "Stand-ins", of_stand_ins.verdicts(results), of_stand_ins.NOTE)
    return [table for table in (*tables, stand_ins) if table.rows]


def claims_table(results: PaperResults) -> ResultTable:
    """Table with one row per verdict."""
    return _table("claims", results.name, verdicts(results), NOTE)


def _table(name: str, data_set: str, rows: Sequence[ClaimVerdict], note: str) -> ResultTable:
    columns = ("paper", "claim", "holds", "comparison", "result")
    title = f"{data_set}: claims of the papers"
    return ResultTable(name, title, columns, tuple(map(_row, rows)), note)


def _row(verdict: ClaimVerdict) -> tuple[Cell, ...]:
    holds = Cell(verdict.holds, verdict.holds, bold=verdict.holds == NO)
    return (
        text_cell(verdict.paper),
        text_cell(verdict.claim),
        holds,
        text_cell(verdict.comparison),
        text_cell(verdict.result),
    )
