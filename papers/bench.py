"""Experiments of the papers: ``bench`` with their studies, variants of methods and metric conventions."""

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
from papers.comparison import other_profiles
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
    """Call :func:`ranksieve.bench` with the studies of the papers; ``methods`` may also name VARIANTS.

    Parameters
    ----------
    studies : bool, "all" or sequence of str
        True: the studies that apply to any data (single features, paths, solvers), and those of the papers
        that introduce ``methods``. Names of STUDIES: only these. "all": all of them and ``stand_ins``, which
        measures times on synthetic data with the shapes of other collections. False: none.
    """
    table = methods if isinstance(methods, Mapping) else {**METHODS, **VARIANTS}
    names = METHODS if methods == "all" else methods
    chosen = {name: lookup(table, name, "methods", METHOD_HINTS) for name in names}
    selected, folder = select_studies(studies, chosen), Path(out).absolute()
    collections = list(stand_ins.SHAPES) if STAND_INS_STUDY in selected else []
    for name in collections:
        stand_ins.check_stand_in(folder, name)
    measures: dict[str, Study] = {name: study for name, study in STUDIES.items() if name in selected}
    measures |= {
        PREFIX + name: ChoiceStudy(name, method, other_profiles(name)) for name, method in chosen.items()
    }
    experiment.bench(source, chosen, out=out, n_jobs=n_jobs, **options)
    # A second call, because a ChoiceStudy needs the finished fits.
    experiment.bench(source, chosen, out=out, studies=measures, n_jobs=n_jobs, **options)
    Parallel(n_jobs=n_jobs)(delayed(_run_stand_in)(folder, name, n_jobs > 1) for name in collections)
    return load_results(out)


def _run_stand_in(folder: Path, name: str, one_thread: bool) -> None:
    with use_threads(1) if one_thread else nullcontext(), while_doing(f"stand-in for {name}"):
        stand_ins.run_stand_in(folder, name)


def select_studies(studies: bool | str | Sequence[str], methods: Collection[str]) -> list[str]:
    """The names of the studies for the argument ``studies`` of :func:`bench`."""
    if isinstance(studies, bool):
        applicable = [
            name for name, study in STUDIES.items() if not study.methods or set(study.methods) & set(methods)
        ]
        return applicable if studies else []
    names = {name: name for name in (*STUDIES, STAND_INS_STUDY)}
    return list(names) if studies == "all" else [lookup(names, name, "studies") for name in studies]


def load_results(folder: str | os.PathLike[str]) -> Reproduction:
    """Call :func:`ranksieve.load_results` and separate the variants from the methods.

    Variants are only shown in the comparison with published numbers.
    """
    results = experiment.load_results(folder)
    data_sets = {name: paper_results(data, list(VARIANTS)) for name, data in results.data_sets.items()}
    return Reproduction(results.folder, data_sets, results.unfinished)


def tables_with_studies(results: Reproduction, baseline: str | None = None) -> list[ResultTable]:
    """All tables: methods on each data set, claims, studies, stand-ins."""
    return [*all_tables(results, baseline, TABLES), *claims_tables(results), *all_study_tables(results)]


def all_study_tables(results: Reproduction) -> list[ResultTable]:
    """The tables of the studies on all data sets, and of the stand-ins."""
    tables = [table for data_set in results.data_sets.values() for table in study_tables(data_set)]
    stand_ins_table = stand_ins.stand_in_table(results.folder)
    return tables if stand_ins_table is None else [*tables, stand_ins_table]
