"""The papers' experiments: bench with their studies, their variants of methods and their conventions."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from papers import stand_ins
from papers.choices import PREFIX, ChoiceStudy, Reproduction, paper_results
from papers.claims import claims_tables
from papers.comparison import OTHER_PROFILES
from papers.published import VARIANTS
from papers.published_tables import (
    agreement_table,
    difference_table,
    p_value_table,
    published_table,
    unmatched_table,
)
from papers.studies import STUDIES, study_tables
from ranksieve import experiment
from ranksieve._parallel import use_threads
from ranksieve.errors import lookup, while_doing
from ranksieve.experiment import Study
from ranksieve.experiment.benching import DEFAULT_METHODS
from ranksieve.experiment.tables import (
    ResultTable,
    accuracy_table,
    all_tables,
    significance_table,
    time_table,
)
from ranksieve.io.folds import Fold
from ranksieve.methods import METHOD_HINTS, METHODS, Method

STAND_INS_STUDY = "stand_ins"
TABLES: tuple[Callable[[Any, str], ResultTable], ...] = (
    accuracy_table, significance_table, agreement_table, published_table, difference_table, p_value_table,
    unmatched_table, time_table,
)  # fmt: skip


def bench(
    source: str | os.PathLike[str] | Mapping[str, Sequence[Fold]],
    methods: str | Sequence[str] | Mapping[str, Method] = DEFAULT_METHODS,
    *,
    out: str | os.PathLike[str],
    studies: bool | str | Sequence[str] = True,
    n_jobs: int = 1,
    **options: Any,
) -> Reproduction:
    """:func:`ranksieve.bench` with the papers' studies, and with VARIANTS among the names of methods.

    Parameters
    ----------
    studies : bool, "all" or sequence of str
        True: what the pictures show of any data (single features, paths, solvers) and the further experiments
        of the papers whose methods are run; names of STUDIES: these; "all": every one, and ``stand_ins``,
        timings on synthetic data with the shapes of other collections.
    """
    known = methods if isinstance(methods, Mapping) else {**METHODS, **VARIANTS}
    names = METHODS if methods == "all" else methods
    chosen = {name: lookup(known, name, "methods", METHOD_HINTS) for name in names}
    wanted, folder = wanted_studies(studies, chosen), Path(out).absolute()
    collections = list(stand_ins.SHAPES) if STAND_INS_STUDY in wanted else []
    for name in collections:
        stand_ins.check_stand_in(folder, name)
    measures: dict[str, Study] = {name: study for name, study in STUDIES.items() if name in wanted}
    measures |= {PREFIX + name: ChoiceStudy(name, method, OTHER_PROFILES) for name, method in chosen.items()}
    experiment.bench(source, chosen, out=out, n_jobs=n_jobs, **options)
    experiment.bench(source, chosen, out=out, studies=measures, n_jobs=n_jobs, **options)  # on these fits
    Parallel(n_jobs=n_jobs)(delayed(_run_stand_in)(folder, name, n_jobs > 1) for name in collections)
    return load_results(out)


def _run_stand_in(folder: Path, name: str, alone: bool) -> None:
    with use_threads(1) if alone else nullcontext(), while_doing(f"stand-in for {name}"):
        stand_ins.run_stand_in(folder, name)


def wanted_studies(asked: bool | str | Sequence[str], methods: Collection[str]) -> list[str]:
    """The names of the studies asked for.

    True: those about the data, and those about the methods at hand. "all": every one, and the stand-ins.
    """
    if isinstance(asked, bool):
        own = [name for name, one in STUDIES.items() if not one.methods or set(one.methods) & set(methods)]
        return own if asked else []
    known = {name: name for name in (*STUDIES, STAND_INS_STUDY)}
    return list(known) if asked == "all" else [lookup(known, name, "studies") for name in asked]


def load_results(folder: str | os.PathLike[str]) -> Reproduction:
    """:func:`ranksieve.load_results`, with variants apart from methods: tables show only their numbers."""
    results = experiment.load_results(folder)
    data_sets = {name: paper_results(data, list(VARIANTS)) for name, data in results.data_sets.items()}
    return Reproduction(results.folder, data_sets, results.unfinished)


def tables_with_studies(results: Reproduction, baseline: str | None = None) -> list[ResultTable]:
    """Every table: of the methods on each data set, of the claims, of the studies, of the stand-ins."""
    return [*all_tables(results, baseline, TABLES), *claims_tables(results), *studies_of(results)]


def studies_of(results: Reproduction) -> list[ResultTable]:
    """The tables of the studies alone."""
    tables = [table for data_set in results.data_sets.values() for table in study_tables(data_set)]
    drawn = stand_ins.stand_in_table(results.folder)
    return tables if drawn is None else [*tables, drawn]
