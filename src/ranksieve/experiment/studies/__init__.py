"""Studies: what is measured on each fold beside the methods. One line adds a study, one its table."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from ranksieve._util.messages import lookup
from ranksieve.experiment.cells import Table
from ranksieve.experiment.fold_run import Place
from ranksieve.experiment.results import DataSetResults
from ranksieve.experiment.results_folder import STUDIES_FOLDER
from ranksieve.experiment.studies import (
    any_data,
    fenchelrank,
    fsmrank,
    listmle,
    minbatsrank,
    penalties,
    selectors,
    theory,
)
from ranksieve.experiment.studies.base import Study
from ranksieve.experiment.studies.stand_ins import STAND_INS_STUDY

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
    "minbatsrank_rates": Study(minbatsrank.rates, ("minbatsrank",)),
    "minbatsrank_online": Study(minbatsrank.online, ("minbatsrank",)),
    "listmle_cutoffs": Study(listmle.cutoffs, ("sparselistmle",)),
    "listmle_sizes": Study(listmle.sizes, ("sparselistmle",)),
    "listmle_bounds": Study(listmle.bounds, ("sparselistmle",), first_fold_only=True),
}
STUDY_TABLES: tuple[Callable[[DataSetResults], Table | None], ...] = (
    fsmrank.parts_table,
    fsmrank.descent_table,
    selectors.sizes_table,
    minbatsrank.rates_table,
    minbatsrank.online_table,
    fenchelrank.radius_table,
    listmle.cutoffs_table,
    listmle.degrees_table,
    listmle.sizes_table,
    penalties.map_table,
    penalties.ndcg_table,
    theory.bounds_table,
)
EVERY = "all"


def wanted_studies(asked: bool | str | Sequence[str], methods: Collection[str]) -> list[str]:
    """The names of the studies asked for.

    True: those about the data, and those about the methods at hand. "all": every one, and the stand-ins.
    """
    if isinstance(asked, bool):
        own = [name for name, one in STUDIES.items() if not one.methods or set(one.methods) & set(methods)]
        return own if asked else []
    known = {name: name for name in (*STUDIES, STAND_INS_STUDY)}
    return list(known) if asked == EVERY else [lookup(known, name, "studies") for name in asked]


def run_studies(place: Place, names: Collection[str]) -> None:
    """Run those of the studies that the fold's file does not hold yet."""
    with place.journal(STUDIES_FOLDER, {}, "Studies") as journal:
        done = {row["kind"] for row in journal.rows}
        for name, study in STUDIES.items():
            if name in names and name not in done and (place.number == 1 or not study.first_fold_only):
                began = time.perf_counter()
                found = study.measure(place.fold, place.profile)
                journal.append({"kind": name, "seconds_in_all": time.perf_counter() - began, **found})


def study_tables(results: DataSetResults) -> list[Table]:
    """The tables of all studies that are there."""
    built = (build(results) for build in STUDY_TABLES)
    return [table for table in built if table is not None and table.rows]
