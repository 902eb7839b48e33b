"""Compare what two commits compute, bit by bit: ``python -m tests.compare_commits BEFORE [AFTER]``.

Each commit is checked out in a temporary worktree (AFTER: by default the working tree) and runs the cases
below in separate processes, with one thread and with two. A case is a fit, an export or a command; its result
consists of all numbers, files and printed lines. Prints "no difference" and exits with 0, or lists the
differences and exits with 1. Bits depend on the processor and on library versions, so both commits run on the
same machine and no results are stored.

Cases look up classes by name in all modules that have held them (:func:`find`). If a change renames a class,
add it to ``RENAMED``; the case does not change.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import os
import pickle
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
THREADS = ("1", "2")
PLACES = (
    "ranksieve", "ranksieve.baselines", "ranksieve.io", "ranksieve.rankers", "ranksieve.estimators",
    "ranksieve.selection", "ranksieve.losses", "ranksieve.baselines.modified_huber",
)  # fmt: skip
RENAMED: dict[str, tuple[str, ...]] = {"GridRanker": ("BudgetedRanker",)}
PARAMETERS = {  # renamed parameters of methods
    "k": "max_features", "t": "max_features", "K": "max_features", "eps": "tol", "epsilon": "tol",
    "seed": "random_state", "weights": "l1_weights",
}  # fmt: skip
METHOD_NAMES = {"sparserank": "proxrank"}
TIMES = re.compile(r"\b[0-9.]+ (s|ms|seconds|minutes)\b")
ATTRIBUTES = ("coef_", "objective_", "gap_", "n_iter_", "support_", "ranking_", "ridge_", "bound_")


def find(name: str) -> Any:
    """A public class or function, in whichever module this commit has it."""
    for place in PLACES:
        with contextlib.suppress(ImportError, AttributeError):
            module = importlib.import_module(place)
            for one in (name, *RENAMED.get(name, ())):
                if hasattr(module, one):
                    return getattr(module, one)
    raise AttributeError(f"no {name} in {', '.join(PLACES)}")


# --- Data ---------------------------------------------------------------------------------------------------


def make_data(n_queries: int = 30, n_features: int = 12, seed: int = 0) -> Any:
    make = find("make_ranking")
    draws = {"random_state" if "random_state" in signature(make).parameters else "seed": seed}
    return make(n_queries=n_queries, n_features=n_features, n_informative=4, noise=1.0, **draws)


def weighted(data: Any) -> Any:
    weight = np.random.default_rng(1).choice([0.5, 1.0, 3.0], data.n_docs)
    return find("Dataset")(data.X, data.y, data.qid, document_weight=weight)


def with_gaps(data: Any) -> Any:
    X = np.where(np.random.default_rng(2).random(data.X.shape) < 0.05, np.nan, data.X)
    return find("Dataset")(X, data.y, data.qid)


def in_any_order(data: Any) -> Any:
    return data.select_rows(np.random.default_rng(3).permutation(data.n_docs))


# --- Results ------------------------------------------------------------------------------------------------


def facts(ranker: Any, data: Any) -> dict[str, Any]:
    """Fitted attributes, model and scores of a ranker."""
    attributes = {name: getattr(ranker, name) for name in ATTRIBUTES if hasattr(ranker, name)}
    attributes["scores"] = ranker.predict(data)
    model = ranker.to_model().to_dict()
    stated = dict(model["parameters"])
    for old, new in PARAMETERS.items():
        if old in stated and new not in stated:
            stated[new] = stated.pop(old)
    attributes["model"] = {**model, "parameters": stated}
    if (choice := getattr(ranker, "choice_", None)) is not None:
        attributes["held out"] = choice.validation.mean[choice.index]
    elif hasattr(ranker, "validation_"):  # commits without choice_
        attributes["held out"] = ranker.validation_.mean[ranker.chosen_]
    return attributes


def fitted(ranker: Any, data: Any, *args: Any, **options: Any) -> dict[str, Any]:
    return facts(ranker.fit(data, *args, **options), data)


def path_facts(path: Any) -> dict[str, Any]:
    names = ("alphas", "coefs", "objectives", "gaps", "n_iter", "converged", "feature_names")
    return {name: getattr(path, name) for name in names}


def frontier_facts(frontier: Any) -> dict[str, Any]:
    names = ("families", "coefs", "mean", "standard_error", "n_features", "costs", "optimal")
    return {name: getattr(frontier, name) for name in names}


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def printed(*command: str) -> dict[str, Any]:
    """Exit code and output of a command, without times."""
    done = subprocess.run(
        [sys.executable, "-c", "from ranksieve.cli import main; main()", *command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )
    return {
        "code": done.returncode,
        "out": TIMES.sub("TIME", done.stdout).splitlines(),
        "err": TIMES.sub("TIME", done.stderr).splitlines(),
    }


# --- Cases --------------------------------------------------------------------------------------------------


def cases(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names and functions of the cases; files go to ``folder``, which is also the working directory."""
    yield from method_cases()
    yield from problem_cases()
    yield from choice_cases()
    yield from data_cases(folder)
    yield from export_cases(folder)
    yield from command_cases()


def method_cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    from ranksieve.methods import METHODS

    data, valid = make_data(), make_data(12, seed=1)
    for name, method in METHODS.items():
        uses_valid = method.can("valid") if hasattr(method, "can") else method.uses_valid
        options = {"valid": valid} if uses_valid else {}
        case = f"method {METHOD_NAMES.get(name, name)}"
        yield case, lambda method=method, options=options: fitted(method.make(), data, **options)


def problem_cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    data, path, ranker = make_data(), find("sparse_path"), find("SparseRankSVM")
    for penalty in ("l1", "log", "mcp", "lp", "scad"):
        yield f"penalty {penalty}", lambda penalty=penalty: fitted(ranker(penalty, 0.01), data)
    for loss in ("SquaredHinge", "ModifiedHuber"):
        yield f"path of {loss}", lambda loss=loss: path_facts(path(data, n_alphas=20, loss=find(loss)()))
    yield "path of an elastic net", lambda: path_facts(path(data, "elastic_net", 20, l1_ratio=0.5))
    rules = {"must_have": [0], "must_not": [1], "signs": {"f3": "+", "f4": "-"}}
    yield "path with rules", lambda: path_facts(path(data, n_alphas=20, **rules))
    large = make_data(1500, 10)
    yield "path of many documents", lambda: path_facts(path(large, n_alphas=20))
    yield "RankSVM of many documents", lambda: fitted(find("RankSVM")(C=1e-3), large)


def choice_cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    data, valid, ranker, subset = make_data(), make_data(12, seed=1), find("SparseRanker"), find("BestSubset")
    costs = {f"f{j}": 1.0 + j % 4 for j in range(1, 13)}
    weight = np.random.default_rng(4).choice([1.0, 2.0], data.n_queries)
    yield "choice by cross-validation", lambda: fitted(ranker(cv=3), data)
    yield "choice by validation data", lambda: fitted(ranker(max_features=4), data, valid=valid)
    yield "choice within a cost", lambda: fitted(ranker(feature_costs=costs, max_cost=6.0, cv=3), data)
    rules = {"must_have": ["f2"], "must_not": ["f5"], "signs": {"f3": "+"}}
    yield "choice with rules", lambda: fitted(ranker(max_features=4, cv=3, **rules), data)
    yield "choice of weighted queries", lambda: fitted(ranker(cv=3), data, query_weight=weight)
    yield "choice of weighted documents", lambda: fitted(ranker(cv=3), weighted(data))
    yield "subset", lambda: fitted(subset(3), data)
    yield "subset within a cost", lambda: fitted(subset(4, max_cost=6.0, feature_costs=costs), data)
    grid = find("GridRanker")
    yield "grid of FenchelRank", lambda: fitted(grid("fenchelrank", max_features=4), data, valid=valid)
    frontier = find("frontier")
    yield "frontier", lambda: frontier_facts(frontier(data, feature_costs=costs, cv=3))
    model = ranker(max_features=3, cv=3).fit(data).to_model()
    yield "scorecard", lambda: find("make_scorecard")(model, data).to_dict()
    yield "verification", lambda: [str(one) for one in find("verify")(model, data).verdicts]
    yield "evaluation", lambda: find("evaluate")(model.predict(data), data, ["ndcg@10", "map"]).per_query


def data_cases(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    import scipy.sparse

    data, ranker, make = make_data(), find("SparseRankSVM"), find("Dataset")
    sparse = make(scipy.sparse.csr_array(np.where(np.abs(data.X) > 0.7, data.X, 0.0)), data.y, data.qid)
    narrow = make(np.asarray(data.X, dtype=np.float32), data.y, data.qid)
    on_disk = find("convert_dataset")(data, folder / "data.ranksieve")
    for name, one in {
        "rows in any order": in_any_order(data),
        "sparse rows": sparse,
        "float32": narrow,
        "a folder": on_disk,
        "weighted documents": weighted(data),
    }.items():
        yield f"l1 of {name}", lambda one=one: fitted(ranker("l1", 0.01), one)
    gaps = with_gaps(data)
    for missing in ("column_mean", "query_min", "indicator", "zero"):
        yield f"missing {missing}", lambda missing=missing: fitted(ranker("l1", 0.01, missing=missing), gaps)
    for kind in ("z", "within_z", "min_max", "query_min_max", "query_z"):
        yield f"normalise {kind}", lambda kind=kind: fitted(ranker("l1", 0.01, normalise=kind), data)
    yield "choice from a folder", lambda: fitted(find("SparseRanker")(cv=3), on_disk)


def export_cases(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    from ranksieve.export import EXPORTS

    data, export = make_data(), find("export_model")
    scaled = find("SparseRankSVM")("l1", 0.02, normalise="z").fit(data).to_model()
    positive = find("SparseRanker")(signs={"*": "+"}, normalise="none", max_features=3).fit(data).to_model()

    def exported(target: str) -> Any:
        return [export_files(model, target, names) for model in (scaled, positive) for names in (False, True)]

    def export_files(model: Any, target: str, rank_features: bool) -> Any:
        place = Path(tempfile.mkdtemp(dir=folder)) / target
        names = {"names": {one: f"attribute({one})" for one in model.names}} if rank_features else {}
        try:
            export(model, target, place, **names)
        except ValueError as refusal:
            return str(refusal)
        return files_below(place) if place.is_dir() else place.read_bytes()

    for target in EXPORTS:
        yield f"export {target}", lambda target=target: exported(target)


def command_cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    find("write_letor")(make_data(), "train.txt")
    find("write_letor")(make_data(12, seed=1), "test.txt")
    new = importlib.util.find_spec("ranksieve.cli.methods") is not None  # MODEL before DATA
    for name, command in {
        "fit": "fit train.txt --max-features 3 --test test.txt -o model.json",
        "fit of a method": "fit train.txt --method fenchelrank --valid test.txt -o other.json",
        "evaluate": "evaluate model.json test.txt" if new else "evaluate test.txt --model model.json",
        "compare": f"compare {'' if new else 'test.txt '}model.json other.json{' test.txt' if new else ''}",
        "explain": "explain model.json test.txt --drop",
        "verify": "verify model.json train.txt",
        "scorecard": "scorecard model.json train.txt -o card.json",
        "subset": f"subset train.txt --{'max-features' if new else 'k'} 1..3",
        "path": "path train.txt",
        "inspect": "inspect train.txt",
        "export": "export model.json --to solr -o solr",
        "a mistake": "fit train.txt --max-features x -o model.json",
    }.items():
        yield f"command {name}", lambda command=command: printed(*command.split())
    yield "files of commands", lambda: {name: Path(name).read_bytes() for name in ("model.json", "card.json")}


def run_cases(out: Path, only: str) -> None:
    """Run the cases with the ranksieve on the path, and write their results."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, case in cases(Path(folder)):
            if only not in name:
                continue
            with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("always")
                try:
                    result = case()
                except Exception as fault:  # an error in one commit is a difference
                    result = f"{type(fault).__name__}: {fault}"
            results[name] = plain((result, sorted({str(one.message) for one in caught})), folder)
    out.write_bytes(pickle.dumps(results))


def plain(value: Any, folder: str) -> Any:
    """Convert to lists, dicts, text, bytes and numbers; without paths and times."""
    if isinstance(value, np.ndarray):
        content = value.tolist() if value.dtype == object else value.tobytes()
        return [str(value.dtype), list(value.shape), content]
    if isinstance(value, np.generic):
        return plain(value.item(), folder)
    if isinstance(value, dict):
        return {str(key): plain(one, folder) for key, one in value.items() if "seconds" not in str(key)}
    if isinstance(value, list | tuple):
        return [plain(one, folder) for one in value]
    if isinstance(value, str):
        return value.replace(folder, "FOLDER").replace(str(ROOT), "ROOT")
    if isinstance(value, bytes):
        return value.replace(folder.encode(), b"FOLDER")
    return value.hex() if isinstance(value, float) else value


# --- Comparison ---------------------------------------------------------------------------------------------


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Differences between two results, with their location."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from differences(before.get(key), after.get(key), f"{place} {key}".strip())
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for k, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{place}[{k}]")
    elif before != after or type(before) is not type(after):
        yield f"{place}: {shown(before)} -> {shown(after)}"


def shown(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"-?0x[0-9a-f.]+p[+-]\d+", value):
        return repr(float.fromhex(value))
    return repr(value) if len(repr(value)) <= 100 else repr(value)[:97] + "..."


@contextlib.contextmanager
def checked_out(commit: str | None) -> Iterator[Path]:
    """Folder of a commit's tree; None: the working tree."""
    if commit is None:
        yield ROOT
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "-q", "--detach", folder, commit], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", folder], check=True)


def results_of(commit: str | None, only: str) -> dict[str, dict[str, Any]]:
    """Results of a commit's cases by number of threads."""
    results = {}
    with checked_out(commit) as tree, tempfile.TemporaryDirectory() as folder:
        for threads in THREADS:
            out = Path(folder) / threads
            environment = {
                **os.environ,
                "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{ROOT}",
                "RANKSIEVE_THREADS": threads,
                "OMP_NUM_THREADS": "1",
            }
            command = [sys.executable, "-m", "tests.compare_commits", "--run", str(out), "--only", only]
            subprocess.run([*command, "-"], check=True, env=environment, cwd=folder)
            results[threads] = pickle.loads(out.read_bytes())
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", help="a commit")
    parser.add_argument("after", nargs="?", help="another one; default: the working tree")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run_cases(options.run, options.only)
        return 0
    before, after = (results_of(commit, options.only) for commit in (options.before, options.after))
    changes = [
        f"{name} ({threads} threads): {difference}"
        for threads in THREADS
        for name in [*before[threads], *(name for name in after[threads] if name not in before[threads])]
        for difference in list(differences(before[threads].get(name), after[threads].get(name)))[:5]
    ]
    changes += [
        f"{name} ({side}): 1 and 2 threads differ: {difference}"
        for side, one in (("before", before), ("after", after))
        for name in one["1"]
        for difference in list(differences(one["1"][name], one["2"].get(name)))[:5]
    ]
    answer = f"{len(changes)} differences" if changes else "no difference"
    lines = [*changes, f"{len(after['1'])} cases, each with 1 and 2 threads: {answer}"]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if changes else 0


if __name__ == "__main__":
    sys.exit(main())
