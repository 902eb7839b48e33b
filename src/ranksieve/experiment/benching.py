"""Run methods on the folds of data sets, in several processes; results go to a folder."""

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
from ranksieve._util.files import file_name_problem, make_folder, not_a_folder
from ranksieve.errors import ParameterError, lookup, text_of, warn_caller, while_doing
from ranksieve.experiment.fold_run import FoldContext, MethodPlan, Study, fold_contexts, run_fold, run_studies
from ranksieve.experiment.results import STUDIES_FOLDER, Results, load_results
from ranksieve.io.folds import Fold, deal_folds, find_collections, load_letor_folds
from ranksieve.io.load import read_dataset
from ranksieve.methods import GRIDS, METHOD_HINTS, METHODS, Method, as_method, limit_sizes
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
class FoldTask:
    """Run one method, or the studies, on one fold.

    ``name`` and ``identity`` are those of the results file; ``n_fits`` counts in the progress.
    """

    context: FoldContext
    name: str
    n_fits: int
    identity: Mapping[str, Any]
    run: Callable[[FoldContext], None]

    @property
    def label(self) -> str:
        return f"{self.context.label}, {self.name}"


@dataclass(frozen=True, eq=False)
class Plan:
    """Methods and studies to run on every data set, and how its folds are prepared and evaluated."""

    methods: Sequence[MethodPlan]
    studies: Mapping[str, Study]
    profile: str | None
    normalise: str
    missing: str

    def check(self) -> None:
        """Raise an error for a plan that cannot run on any data."""
        for plan in self.methods:
            _check_name("methods", plan.name)
            if not plan.grid:
                raise ParameterError(
                    "methods", plan.name, "has an empty grid; give at least one set of parameters"
                )
        if not isinstance(self.studies, Mapping):
            raise ParameterError("studies", self.studies, "must be a mapping from names to functions")
        if self.profile is not None:
            as_profile(self.profile)
        check_kind(self.normalise)
        check_policy(self.missing, RANKER_POLICIES)

    def tasks(self, folder: Path, data_sets: Mapping[str, Sequence[Fold]]) -> Iterator[FoldTask]:
        """Yield the tasks of all folds; raise an error for unusable names, labels or features."""
        for data_set, folds in data_sets.items():
            _check_name("source", data_set)
            profile = profile_for(self.profile, *(part for fold in folds for part in fold)).name
            prepared = _prepare_folds(data_set, folds, self.normalise, self.missing)
            for context in fold_contexts(folder, data_set, prepared, profile):
                with while_doing(context.label):
                    context.check_labels([plan.select for plan in self.methods])
                yield from self._tasks_of_fold(context)

    def _tasks_of_fold(self, context: FoldContext) -> Iterator[FoldTask]:
        if self.studies:
            study = partial(run_studies, studies=self.studies)
            yield FoldTask(context, STUDIES_FOLDER, len(self.studies), {}, study)
        n_features = int(np.sum(context.notes["varying"]))
        for general in self.methods:
            plan = replace(general, grid=limit_sizes(general.grid, general.method, n_features))
            yield FoldTask(context, plan.name, len(plan.grid), plan.identity, partial(run_fold, plan=plan))


def bench(
    source: str | os.PathLike[str] | Mapping[str, Sequence[Fold]],
    methods: str | Sequence[Any] | Mapping[str, Any] = DEFAULT_METHODS,
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
    """Fit all grid points on training data of each fold, select on validation data, evaluate on test data.

    Only the selected models are evaluated on test data.

    Every finished fit is one line in ``out``. An interrupted run resumes when it is called again with the
    same arguments, and gives the same results. A folder may hold several data sets, and methods can be added
    later. Runs that use the same folder at the same time, even on several machines, share the work.

    Parameters
    ----------
    source : path, or mapping of name to folds
        A folder of LETOR collections (or one collection), each with Fold1, Fold2, …; or one data file, whose
        queries are split into five folds.
    methods : sequence, "all", or mapping of name to method
        Names from the table METHODS, "all" of them, or your own methods: a Method, ``package.module:Class``,
        or a class or object with ``fit`` and ``predict``; a class may have a ``grid``, a list of parameters
        to try.
    out : path
        The results folder.
    data_sets : sequence of str, optional
        The collections of ``source`` to use; default all.
    grid : "paper" or "fast"
        "paper": all points of the papers' grids. "fast": at most five values if the grid has one parameter,
        at most three of each if it has several.
    select : str, optional
        Metric for the selection on validation data; default: the one in each method's paper.
    profile : str, optional
        Metric conventions. By default, for each data set, ``letor`` if it consists of LETOR folds and its
        labels are on that scale (0 to 2), else ``standard``; tables and files state which.
    normalise, missing : str
        How features are scaled and missing values replaced, the same for all methods: learned on the training
        part of each fold. The papers' methods use unscaled features.
    n_seeds : int, optional
        Number of runs of a randomised method, each with another random_state, over the whole grid and with
        its own selection on validation data. Tables show the mean and standard deviation of the selected
        models. Default: the number in the table of methods; 1 with the fast grid.
    studies : mapping of name to function, optional
        Further measurements on each fold. A function gets a ``FoldContext`` with ``fold``, ``number`` and
        ``profile``, and returns plain data, or None to skip this fold. The data are stored like fits;
        ``DataSetResults.studies`` holds them. With ``n_jobs`` above 1 functions must be picklable.
    n_jobs : int
        Number of processes; each uses one thread if there are several.
    progress : callable, optional
        Called with (number of finished fits, total number of fits).
    """
    plan = Plan(_method_plans(methods, grid, select, n_seeds), studies or {}, profile, normalise, missing)
    plan.check()
    folder = Path(out)
    if os.path.lexists(folder) and not folder.is_dir():
        raise not_a_folder(folder, "give a folder for the results")
    # Absolute, because worker processes may have been started in another directory.
    tasks = list(plan.tasks(folder.absolute(), _folds(source, data_sets)))
    for task in tasks:  # check all before the first one starts, so that an error leaves no files
        task.context.check(task.name, task.identity)
    make_folder(folder)
    jobs = (delayed(_run_task)(task, n_jobs > 1) for task in tasks)
    done, total = 0, sum(task.n_fits for task in tasks)
    for n_fits, caught in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs):
        for category, text in caught:
            warn_caller(text, category)
        done += n_fits
        if progress is not None:
            progress(done, total)
    return load_results(folder)


def _method_plans(
    methods: str | Sequence[Any] | Mapping[str, Any], grid: str, select: str | None, n_seeds: int | None
) -> list[MethodPlan]:
    """Return each method with its grid, selection metric and number of seeds."""
    if isinstance(methods, Mapping):
        chosen = {name: as_method(method, "methods") for name, method in methods.items()}
    else:
        names = METHODS if methods == "all" else dict.fromkeys(methods)
        chosen = {}
        for one in names:
            if (name := method_name(one)) in chosen:
                reason = f"two methods are called {name}; pass a mapping of names to methods"
                raise ParameterError("methods", methods, reason)
            chosen[name] = _named_method(one)
    if not chosen:
        raise ParameterError("methods", methods, f"must name at least one of {', '.join(METHODS)}")
    if select is not None:
        parse(select)
    if n_seeds is not None and n_seeds < 1:
        raise ParameterError("n_seeds", n_seeds, "must be at least 1")
    choose_points = lookup(GRIDS, grid, "grid")
    seeds = {name: n_seeds or (1 if grid == "fast" else method.n_seeds) for name, method in chosen.items()}
    return [
        MethodPlan(name, method, choose_points(method.grid), select or method.select, seeds[name])
        for name, method in chosen.items()
    ]


def method_name(method: Any) -> str:
    """The name of a method in results: of a class of one's own, its name in lower case."""
    if isinstance(method, str):
        return method.rpartition(":")[2].lower() if ":" in method else method
    return (method if isinstance(method, type) else type(method)).__name__.lower()


def _named_method(method: Any) -> Method:
    if isinstance(method, str) and ":" not in method:
        return lookup(METHODS, method, "methods", METHOD_HINTS)
    return as_method(method, "methods")


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


def _prepare_folds(data_set: str, folds: Sequence[Fold], normalise: str, missing: str) -> list[Fold]:
    """Scale features and replace missing values; warn only once about scales and missing values."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prepared = []
        for number, fold in enumerate(folds, start=1):
            with while_doing(f"{data_set}, fold {number}"):
                preparation = Preparation.learn(fold.train, normalise, missing)
                prepared.append(Fold(*(preparation.for_learning(part) for part in fold)))
        if normalise == "none":
            warn_of_scales(prepared[0].train)
    for warning in {one.category: one for one in reversed(caught)}.values():
        warn_caller(f"{data_set}: {text_of(warning.message)}", warning.category)
    return prepared


def _check_name(parameter: str, name: str) -> None:
    """Raise an error if a name cannot be a folder name, or a method has the name of the studies folder."""
    problem = file_name_problem(name)
    if parameter == "methods" and name == STUDIES_FOLDER:
        problem = f"{name} is the folder of the studies"
    if problem:
        raise ParameterError(parameter, name, f"cannot be a folder name: {problem}; rename it")


def _run_task(task: FoldTask, one_thread: bool) -> tuple[int, list[tuple[type[Warning], str]]]:
    """Return the number of fits and the warnings; warnings and errors start with the task's label."""
    threads = use_threads(1) if one_thread else nullcontext()
    with threads, warnings.catch_warnings(record=True) as caught, while_doing(task.label):
        task.run(task.context)
    return task.n_fits, [(one.category, f"{task.label}: {text_of(one.message)}") for one in caught]
