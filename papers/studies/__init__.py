"""Studies: further measurements on each fold. To add one, add it to STUDIES and its table to STUDY_TABLES."""

from __future__ import annotations

from collections.abc import Callable

from papers.choices import PaperResults
from papers.studies import (
    any_data,
    conventions,
    fenchelrank,
    fsmrank,
    listmle,
    minbatsrank,
    penalties,
    selectors,
    theory,
)
from papers.studies.base import Study
from ranksieve.experiment.tables import ResultTable

STUDIES: dict[str, Study] = {
    "single_features": Study(any_data.single_features),
    "path": Study(any_data.certified_path),
    "sizes": Study(any_data.sizes),
    "convergence": Study(any_data.convergence, first_fold_only=True),
    "fenchelrank_radius": Study(fenchelrank.matched_radius, ("fenchelrank",)),
    "fenchelrank_bounds": Study(fenchelrank.bounds, ("fenchelrank",), first_fold_only=True),
    "selectors": Study(selectors.sizes, ("fenchelrank", "fsmrank", *selectors.SELECTORS)),
    "fsmrank_parts": Study(fsmrank.parts, ("fsmrank",)),
    "fsmrank_descent": Study(fsmrank.descent, ("fsmrank",), first_fold_only=True),
    "fsmrank_bounds": Study(fsmrank.bounds, ("fsmrank",), first_fold_only=True),
    "minbatsrank_passes": Study(minbatsrank.passes, ("minbatsrank",)),
    "minbatsrank_rates": Study(minbatsrank.rates, ("minbatsrank",)),
    "minbatsrank_online": Study(minbatsrank.online, ("minbatsrank",)),
    "listmle_cutoffs": Study(listmle.cutoffs, ("sparselistmle",)),
    "listmle_sizes": Study(listmle.sizes, ("sparselistmle",)),
    "listmle_redealt": Study(conventions.redealt, ("sparselistmle",), first_fold_only=True),
    "listmle_bounds": Study(listmle.bounds, ("sparselistmle",), first_fold_only=True),
}
STUDY_TABLES: tuple[Callable[[PaperResults], ResultTable | None], ...] = (
    fsmrank.parts_table,
    fsmrank.descent_table,
    selectors.sizes_table,
    minbatsrank.passes_table,
    minbatsrank.rates_table,
    minbatsrank.online_table,
    fenchelrank.radius_table,
    listmle.cutoffs_table,
    listmle.degrees_table,
    listmle.sizes_table,
    conventions.conventions_table,
    penalties.map_table,
    penalties.ndcg_table,
    theory.bounds_table,
)


def study_tables(results: PaperResults) -> list[ResultTable]:
    """The tables of all studies in the results."""
    tables = (build(results) for build in STUDY_TABLES)
    return [table for table in tables if table is not None and table.rows]
