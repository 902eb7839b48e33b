"""Run methods over folds into a folder of results, in several processes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from ranksieve._parallel import use_threads
from ranksieve._util.files import fault_of_file_name, make_folder, not_a_folder
from ranksieve.errors import ParameterError, lookup, text_of, warn_caller, while_doing
from ranksieve.experiment.fold_run import MethodPlan, Place, Study, make_places, run_fold, run_studies
from ranksieve.experiment.results import STUDIES_FOLDER, Results, load_results
from ranksieve.io.folds import Fold, deal_folds, find_collections, load_letor_folds
from ranksieve.io.load import read_dataset
from ranksieve.methods import GRIDS, KNOWN_AS, METHODS, Method, within
from ranksieve.metrics import parse
from ranksieve.metrics.profiles import as_profile, profile_for
from ranksieve.prepare import Preparation
from ranksieve.prepare.missing import RANKER_POLICIES, check_policy
from ranksieve.prepare.scaling import check_kind, warn_of_scales

DEFAULT_METHODS = (
    "fenchelrank", "fsmrank", "minbatsrank", "ranksvm-l1", "ranksvm-log", "ranksvm-mcp", "ranksvm-l0.5",
    "sparselistmle", "sparseranker", "ranksvm", "adarank-ndcg", "listnet",
)  # fmt: skip
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Task:
    """Work on one fold: a method, or the studies. It is worth as many fits as it makes.

    ``name`` and ``identity`` are those of its file of results.
    """

    place: Place
    name: str
    worth: int
    identity: Mapping[str, Any]
    work: Callable[[Place], None]

    @property
    def label(self) -> str:
        return f"{self.place.label}, {self.name}"


@dataclass(frozen=True, eq=False)
class Plan:
    """What to run on every data set, and how its folds are prepared and measured."""

    methods: Sequence[MethodPlan]
    studies: Mapping[str, Study]
    profile: str | None
    normalise: str
    missing: str

    def check(self) -> None:
        """Refuse what cannot be run on any data."""
        for one in self.methods:
            _check_name("methods", one.name)
            if not one.grid:
                raise ParameterError(
                    "methods", one.name, "has an empty grid; give at least one set of parameters"
                )
        if not isinstance(self.studies, Mapping):
            raise ParameterError("studies", self.studies, "must be a mapping of names to functions")
        if self.profile is not None:
            as_profile(self.profile)
        check_kind(self.normalise)
        check_policy(self.missing, RANKER_POLICIES)

    def tasks(self, folder: Path, data_sets: Mapping[str, Sequence[Fold]]) -> Iterator[Task]:
        """The work on all folds; refuses names, labels and features that cannot be used."""
        for data_set, folds in data_sets.items():
            _check_name("source", data_set)
            by = profile_for(self.profile, *(part for fold in folds for part in fold)).name
            prepared = _prepared_folds(data_set, folds, self.normalise, self.missing)
            for place in make_places(folder, data_set, prepared, by):
                with while_doing(place.label):
                    place.check_measurable([one.select for one in self.methods])
                yield from self._tasks_at(place)

    def _tasks_at(self, place: Place) -> Iterator[Task]:
        if self.studies:
            study = partial(run_studies, studies=self.studies)
            yield Task(place, STUDIES_FOLDER, len(self.studies), {}, study)
        n_features = int(np.sum(place.notes["varying"]))
        for one in self.methods:
            here = replace(one, grid=within(one.grid, one.method, n_features))
            yield Task(place, here.name, len(here.grid), here.identity, partial(run_fold, plan=here))


def bench(
    source: str | os.PathLike[str] | Mapping[str, Sequence[Fold]],
    methods: str | Sequence[str] | Mapping[str, Method] = DEFAULT_METHODS,
    *,
    out: str | os.PathLike[str],
    data_sets: Sequence[str] | None = None,
    grid: str = "paper",
    select: str | None = None,
    profile: str | None = None,
    normalise: str = "auto",
    missing: str = "auto",
    n_seeds: int | None = None,
    studies: Mapping[str, Study] | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Results:
    """Fit every grid point on train, choose on valid, measure test, and write it all down.

    Only what was chosen is measured on test.

    Every finished fit is one line in ``out``. A run that was killed goes on where it stopped when it is
    called again with the same arguments, and gives the same results. A folder may hold several data sets and
    grow by further methods; runs into one folder at the same time, also of several machines that share it,
    divide the work among them.

    Parameters
    ----------
    source : path, or mapping of name to folds
        A folder of LETOR collections (or one collection), each with Fold1, Fold2, …; or one data file, whose
        queries are dealt into five folds.
    methods : sequence of str, "all", or mapping of name to Method
        Names of the table METHODS, "all" of them, or methods of your own.
    out : path
        The folder of results.
    data_sets : sequence of str, optional
        Which collections of ``source``; default all.
    grid : "paper" or "fast"
        All points of the papers' grids, or at most five values of one parameter, three of each of several.
    select : str, optional
        Metric for the choice on valid; default the one of each method's paper.
    profile : str, optional
        Metric conventions. By default, for each data set, ``letor`` if it is one of LETOR's folds and its
        labels are on that scale (0 to 2), else ``standard``; tables and files say which.
    normalise, missing : str
        How features are scaled and missing ones replaced, for all methods alike: learned on the train part of
        each fold. The papers' methods take features as they are.
    n_seeds : int, optional
        How often a method that draws is run, each time with another random_state: all of its grid, and the
        choice on valid. The row is the mean of what was chosen, with its standard deviation. By default as
        often as the table of methods says, with the fast grid once.
    studies : mapping of name to function, optional
        What to measure on each fold apart from the methods. A function gets the fold (a ``Place`` with
        ``fold``, ``number`` and ``profile``) and returns plain data, or None to skip this fold. The data are
        kept like fits, and ``DataSetResults.studies`` holds them. With ``n_jobs`` above 1 functions must be
        picklable.
    n_jobs : int
        Processes; each uses one thread if there are several.
    progress : callable, optional
        Called with (fits done, fits in all).
    """
    plan = Plan(_method_plans(methods, grid, select, n_seeds), studies or {}, profile, normalise, missing)
    plan.check()
    folder = Path(out)
    if os.path.lexists(folder) and not folder.is_dir():
        raise not_a_folder(folder, "give a folder for the results")
    # Absolute, because processes may be older than the current directory.
    tasks = list(plan.tasks(folder.absolute(), _folds(source, data_sets)))
    for task in tasks:  # all of them before any begins: what is refused leaves nothing behind
        task.place.check(task.name, task.identity)
    make_folder(folder)
    jobs = (delayed(_do)(one, n_jobs > 1) for one in tasks)
    done, total = 0, sum(task.worth for task in tasks)
    for worth, caught in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs):
        for category, text in caught:
            warn_caller(text, category)
        done += worth
        if progress is not None:
            progress(done, total)
    return load_results(folder)


def _method_plans(
    methods: str | Sequence[str] | Mapping[str, Method], grid: str, select: str | None, n_seeds: int | None
) -> list[MethodPlan]:
    """Each method with its grid, the metric that chooses, and how often it is run if it draws."""
    names = METHODS if methods == "all" else dict.fromkeys(methods)
    table = methods if isinstance(methods, Mapping) else METHODS
    chosen = {name: lookup(table, name, "methods", KNOWN_AS) for name in names}
    if not chosen:
        raise ParameterError("methods", methods, f"must name at least one of {', '.join(METHODS)}")
    if select is not None:
        parse(select)
    if n_seeds is not None and n_seeds < 1:
        raise ParameterError("n_seeds", n_seeds, "must be at least 1")
    thin = lookup(GRIDS, grid, "grid")
    seeds = {name: n_seeds or (1 if grid == "fast" else one.n_seeds) for name, one in chosen.items()}
    return [
        MethodPlan(name, one, thin(one.grid), select or one.select, seeds[name])
        for name, one in chosen.items()
    ]


def _folds(
    source: str | os.PathLike[str] | Mapping[str, Sequence[Fold]], names: Sequence[str] | None
) -> Mapping[str, Sequence[Fold]]:
    if isinstance(source, Mapping):
        return {name: lookup(source, name, "data_sets") for name in names or source}
    if Path(source).is_file():
        return {Path(source).name.partition(".")[0]: deal_folds(read_dataset(source))}
    collections = find_collections(source)
    paths = {name: lookup(collections, name, "data_sets") for name in names or collections}
    return {name: load_letor_folds(path, widen=False) for name, path in paths.items()}


def _prepared_folds(data_set: str, folds: Sequence[Fold], normalise: str, missing: str) -> list[Fold]:
    """The folds as methods see them; warns of missing values or scales once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prepared = []
        for number, fold in enumerate(folds, start=1):
            with while_doing(f"{data_set}, fold {number}"):
                learned = Preparation.learn(fold.train, normalise, missing)
                prepared.append(Fold(*(learned.for_learning(part) for part in fold)))
        if normalise == "none":
            warn_of_scales(prepared[0].train)
    for warning in {one.category: one for one in reversed(caught)}.values():
        warn_caller(f"{data_set}: {text_of(warning.message)}", warning.category)
    return prepared


def _check_name(parameter: str, name: str) -> None:
    """Refuse a name whose folder would leave the folder of results, or a method with the name of studies."""
    fault = fault_of_file_name(name)
    if parameter == "methods" and name == STUDIES_FOLDER:
        fault = f"{name} has another use there"
    if fault:
        raise ParameterError(parameter, name, f"must be a name that a folder can have: {fault}; rename it")


def _do(task: Task, one_thread: bool) -> tuple[int, list[tuple[type[Warning], str]]]:
    """Do it; how many fits it was worth, and its warnings. Those and errors begin with its label."""
    threads = use_threads(1) if one_thread else nullcontext()
    with threads, warnings.catch_warnings(record=True) as caught, while_doing(task.label):
        task.work(task.place)
    return task.worth, [(one.category, f"{task.label}: {text_of(one.message)}") for one in caught]
