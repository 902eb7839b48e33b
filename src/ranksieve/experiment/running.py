"""Run methods over LETOR's folds into a folder of results, in as many processes as wanted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from joblib import Parallel, delayed

from ranksieve._parallel import use_threads
from ranksieve.data import Fold, deal_folds, find_collections, load_letor_folds, read_dataset
from ranksieve.experiment.fold_run import Place, make_places, run_fold
from ranksieve.experiment.methods import GRIDS, METHODS, Method
from ranksieve.experiment.protocol import Point
from ranksieve.experiment.results import Results, load_results
from ranksieve.experiment.studies import STUDIES, run_studies
from ranksieve.metrics import parse
from ranksieve.metrics.lookup import lookup
from ranksieve.metrics.profiles import as_profile

PAPER_METHODS = (
    "fenchelrank", "fsmrank", "minbatsrank", "ranksvm-l1", "ranksvm-log", "ranksvm-mcp", "ranksvm-l0.5",
    "sparselistmle", "sparseranker", "ranksvm", "adarank-ndcg", "listnet",
)  # fmt: skip
Progress = Callable[[int, int], None]
Task = tuple[int, Callable[[], None]]  # how many fits it is worth, and how to do it


def bench(
    source: str | os.PathLike[str] | Mapping[str, Sequence[Fold]],
    methods: str | Sequence[str] = PAPER_METHODS,
    *,
    out: str | os.PathLike[str],
    data_sets: Sequence[str] | None = None,
    grid: str = "paper",
    select: str | None = None,
    profile: str = "letor",
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Results:
    """Fit every grid point on train, choose on vali, measure test, and write it all down.

    Every finished fit is one line in ``out``. A run that was killed goes on where it stopped when it is
    called again with the same arguments, and gives the same results. A folder may hold several data sets and
    grow by further methods.

    Parameters
    ----------
    source : path, or mapping of name to folds
        A folder of LETOR collections (or one collection), each with Fold1, Fold2, …; or one data file, whose
        queries are dealt into five folds.
    methods : sequence of str, or "all"
        Names of the table METHODS.
    out : path
        The folder of results.
    data_sets : sequence of str, optional
        Which collections of ``source``; default all.
    grid : "paper" or "fast"
        All points of the papers' grids, or at most five values of one parameter, three of each of several.
    select : str, optional
        Metric for the choice on vali; default the one of each method's paper.
    profile : str
        Metric conventions.
    n_jobs : int
        Processes; each uses one thread if there are several.
    progress : callable, optional
        Called with (fits done, fits in all).
    """
    names = METHODS if methods == "all" else dict.fromkeys(methods)
    chosen = {name: lookup(METHODS, name, "method") for name in names}
    if not chosen:
        raise ValueError(f"no method was named; known: {', '.join(METHODS)}")
    if select is not None:
        parse(select)
    as_profile(profile)
    thin = lookup(GRIDS, grid, "grid")
    found = _folds(source, data_sets)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    grids = {name: thin(method.grid) for name, method in chosen.items()}
    tasks: list[Task] = []
    for data_set, folds in found.items():
        for place in make_places(folder, data_set, folds, profile):
            tasks += _tasks(place, chosen, grids, select)
    _run(tasks, n_jobs, progress)
    return load_results(folder)


def _folds(
    source: str | os.PathLike[str] | Mapping[str, Sequence[Fold]], names: Sequence[str] | None
) -> Mapping[str, Sequence[Fold]]:
    if isinstance(source, Mapping):
        return {name: lookup(source, name, "data set") for name in names or source}
    if Path(source).is_file():
        return {Path(source).name.partition(".")[0]: deal_folds(read_dataset(source))}
    found = find_collections(source)
    paths = {name: lookup(found, name, "data set") for name in names or found}
    return {name: load_letor_folds(path, widen=False) for name, path in paths.items()}


def _tasks(
    place: Place, methods: Mapping[str, Method], grids: Mapping[str, Sequence[Point]], select: str | None
) -> Iterator[Task]:
    yield len(STUDIES), partial(run_studies, place)
    for name, method in methods.items():
        run = partial(run_fold, place, name, method, grids[name], select or method.select)
        yield len(grids[name]), run


def _run(tasks: Sequence[Task], n_jobs: int, progress: Progress | None) -> None:
    total, done = sum(worth for worth, _ in tasks), 0
    jobs = (delayed(_alone if n_jobs > 1 else _plainly)(*task) for task in tasks)
    for worth in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs):
        done += worth
        if progress is not None:
            progress(done, total)


def _plainly(worth: int, work: Callable[[], None]) -> int:
    work()
    return worth


def _alone(worth: int, work: Callable[[], None]) -> int:
    with use_threads(1):
        return _plainly(worth, work)
