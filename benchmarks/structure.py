"""Statistics of the source, and of the functions used by some calls.

``python -m benchmarks.structure [--files]``

Kernels run as plain Python, so that their functions are counted; functions called on import are not.
"""

from __future__ import annotations

import os

os.environ["NUMBA_DISABLE_JIT"] = "1"  # must be set before numba is imported

import ast
import contextlib
import io
import statistics
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations
from pathlib import Path
from types import FrameType
from typing import Any

from sklearn.base import BaseEstimator

import ranksieve as rs
from benchmarks.harness import HERE

ROOT = HERE.parent
SOURCE = ROOT / "src" / "ranksieve"
PAPERS = ROOT / "papers"
SMALL_FILE = 100  # lines
MIN_DUPLICATE = 6  # equal lines


def main() -> None:
    paths = sorted(SOURCE.rglob("*.py"))
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    functions = [f for path, tree in trees.items() for f in _functions(path, tree)]
    lengths = {name: length for name, length, _ in functions}
    signatures = {name: parameters for name, _, parameters in functions}
    longest, widest = max(lengths, key=lambda n: lengths[n]), max(signatures, key=lambda n: signatures[n])
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    importers = Counter(t for path, tree in trees.items() for t in _imported(path, tree, set(paths)))
    modules = [path for path in paths if path.name != "__init__.py"]
    classes = [n for tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    papers = [len(path.read_text(encoding="utf-8").splitlines()) for path in PAPERS.rglob("*.py")]
    rows: list[tuple[str, Any]] = [
        ("files", len(paths)),
        ("lines", sum(lines.values())),
        ("lines of imports", sum(len(_import_lines(tree)) for tree in trees.values())),
        ("functions", f"{len(functions)}, median body {statistics.median(lengths.values()):g} lines"),
        ("classes", len(classes)),
        ("layers", len(layers)),
        (f"files under {SMALL_FILE} lines", sum(n < SMALL_FILE for n in lines.values())),
        ("files with one importer", sum(importers[path] == 1 for path in modules)),
        (f"duplicates of at least {MIN_DUPLICATE} lines", _count_duplicates(trees)),
        ("public names", len(dir(rs))),
        ("classes between RankSVM and BaseEstimator", rs.RankSVM.__mro__.index(BaseEstimator) - 1),
        ("longest function", f"{longest}, {lengths[longest]} lines"),
        ("longest signature", f"{widest}, {signatures[widest]} parameters"),
        ("papers/: files, lines", f"{len(papers)}, {sum(papers)}"),
    ]
    for name, prepare in CALLS.items():
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder))()  # load the modules, which would be counted otherwise
            files = _functions_called(prepare(Path(folder)))
        rows.append((f"{name}: files, functions", f"{len(files)}, {sum(files.values())}"))
        if "--files" in sys.argv:
            rows.append(("", " ".join(sorted(files))))
    for name, value in rows:
        print(f"{name:52} {value}")


def _functions(path: Path, tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """(name, lines of the body without docstring, parameters) of each function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (node.end_lineno or node.lineno) - body[0].lineno + 1 if body else 0
            arguments = node.args
            count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
            count -= bool(arguments.args) and arguments.args[0].arg in ("self", "cls")
            yield f"{path.relative_to(SOURCE)}:{node.name}", length, count


def _import_lines(tree: ast.Module) -> set[int]:
    """Line numbers of the import statements."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {n for node in nodes for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def _count_duplicates(trees: Mapping[Path, ast.Module]) -> int:
    """Number of duplicates in two files, ignoring indentation, blank lines and imports."""
    locations: defaultdict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    for path, tree in trees.items():
        imports, text = _import_lines(tree), path.read_text(encoding="utf-8").splitlines()
        lines = [line.strip() for n, line in enumerate(text, 1) if line.strip() and n not in imports]
        for start in range(len(lines) - MIN_DUPLICATE + 1):
            locations[tuple(lines[start : start + MIN_DUPLICATE])].append((path, start))
    pairs = {pair for equal in locations.values() for pair in combinations(equal, 2)}
    starts = {
        ((a, i), (b, j)) for (a, i), (b, j) in pairs if a != b and ((a, i - 1), (b, j - 1)) not in pairs
    }
    return len(starts)


def _imported(path: Path, tree: ast.Module, files: set[Path]) -> set[Path]:
    """Files of the package that a file imports, except what an ``__init__.py`` imports from its folder."""
    imported: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ranksieve"):
            module = ROOT / "src" / Path(*(node.module or "").split("."))
            for name in node.names:
                submodules = [module / f"{name.name}.py", module / name.name / "__init__.py"]
                candidates = [*submodules, module.with_suffix(".py"), module / "__init__.py"]
                imported |= set(next(([file] for file in candidates if file in files), []))
    return {file for file in imported if path != file and path != file.with_name("__init__.py")}


def _functions_called(run: Callable[[], object]) -> Counter[str]:
    """Number of functions called in each file of the package."""
    called: set[tuple[str, str, int]] = set()

    def record(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>":
            called.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    sys.setprofile(record)
    try:
        run()
    finally:
        sys.setprofile(None)
    names = (Path(file) for file, _, _ in called if file.endswith(".py") and file.startswith(str(SOURCE)))
    return Counter(str(name.relative_to(SOURCE)) for name in names)


def _data() -> rs.Dataset:
    return rs.make_ranking(16, 8, 3, docs_per_query=(6, 8))


def _file(folder: Path) -> Path:
    rs.io.write_letor(_data(), folder / "train.txt")
    return folder / "train.txt"


def _fit(folder: Path) -> Callable[[], object]:
    page = ("--report", folder / "r.html")
    return partial(_command, "fit", _file(folder), "--max-features", 3, "-o", folder / "m.json", *page)


def _flagship(folder: Path) -> Callable[[], object]:
    data = _data()
    frame = rs.to_frame(data)
    return lambda: rs.SparseRanker(max_features=3).fit(rs.from_frame(frame))


def _path(folder: Path) -> Callable[[], object]:
    return partial(rs.sparse_path, _data(), n_alphas=10)


def _ranksvm(folder: Path) -> Callable[[], object]:
    return partial(rs.RankSVM().fit, _data())


def _export(folder: Path) -> Callable[[], object]:
    rs.RankSVM().fit(_data()).to_model().save(folder / "model.json")
    return partial(_command, "export", folder / "model.json", "--to", "elasticsearch", "-o", folder / "out")


def _bench(folder: Path) -> Callable[[], object]:
    """Bench one method on a data file, with a new output folder."""
    out = tempfile.mkdtemp(dir=folder)
    args = ("bench", _file(folder), "--methods", "ranksvm", "--grid", "fast", "--n-jobs", 1, "-o", out)
    return partial(_command, *args)


def _command(*args: object) -> None:
    from ranksieve.cli import app

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as stderr:
        try:
            app([str(arg) for arg in args])
        except SystemExit as end:
            if end.code:
                raise RuntimeError(stderr.getvalue()) from None


CALLS = {
    "fit with a page, command line": _fit,
    "SparseRanker.fit": _flagship,
    "sparse_path": _path,
    "RankSVM().fit": _ranksvm,
    "export, command line": _export,
    "bench of one method, command line": _bench,
}

if __name__ == "__main__":
    main()
