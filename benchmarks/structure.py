"""How the source is built, and what one call passes through: ``python -m benchmarks.structure [--files]``.

Kernels run as plain Python, so that their functions count; what is done on import does not.
"""

from __future__ import annotations

import os

os.environ["NUMBA_DISABLE_JIT"] = "1"  # read when numba is imported

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
SMALL = 100  # lines
RUN = 6  # equal lines that count as a duplicate


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
        (f"files under {SMALL} lines", sum(n < SMALL for n in lines.values())),
        ("files with one importer", sum(importers[path] == 1 for path in modules)),
        (f"pairs of places with {RUN} or more equal lines", _equal_runs(trees)),
        ("public names", len(dir(rs))),
        ("classes between RankSVM and BaseEstimator", rs.RankSVM.__mro__.index(BaseEstimator) - 1),
        ("longest function", f"{longest}, {lengths[longest]} lines"),
        ("longest signature", f"{widest}, {signatures[widest]} parameters"),
        ("papers/: files, lines", f"{len(papers)}, {sum(papers)}"),
    ]
    for name, run in RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            run(Path(folder))()  # loads modules, which would count otherwise
            files = _passed_through(run(Path(folder)))
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
            own = count - (bool(arguments.args) and arguments.args[0].arg in ("self", "cls"))
            yield f"{path.relative_to(SOURCE)}:{node.name}", length, own


def _import_lines(tree: ast.Module) -> set[int]:
    """The numbers of all lines of imports."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {n for node in nodes for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def _equal_runs(trees: Mapping[Path, ast.Module]) -> int:
    """Pairs of places in two files whose lines are equal, but for indentation, blank lines and imports."""
    places: defaultdict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    for path, tree in trees.items():
        imports, text = _import_lines(tree), path.read_text(encoding="utf-8").splitlines()
        kept = [line.strip() for n, line in enumerate(text, 1) if line.strip() and n not in imports]
        for start in range(len(kept) - RUN + 1):
            places[tuple(kept[start : start + RUN])].append((path, start))
    pairs = {pair for equal in places.values() for pair in combinations(equal, 2)}
    begins = {
        ((a, i), (b, j)) for (a, i), (b, j) in pairs if a != b and ((a, i - 1), (b, j - 1)) not in pairs
    }
    return len(begins)


def _imported(path: Path, tree: ast.Module, known: set[Path]) -> set[Path]:
    """The files of the package that a file imports; a room's table does not count."""
    found: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ranksieve"):
            place = ROOT / "src" / Path(*(node.module or "").split("."))
            for name in node.names:
                inside = [place / f"{name.name}.py", place / name.name / "__init__.py"]
                choices = [*inside, place.with_suffix(".py"), place / "__init__.py"]
                found |= set(next(([one] for one in choices if one in known), []))
    return {one for one in found if path != one and path != one.with_name("__init__.py")}


def _passed_through(run: Callable[[], object]) -> Counter[str]:
    """How many functions of each file of the package are called."""
    seen: set[tuple[str, str, int]] = set()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>":
            seen.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    names = (Path(file) for file, _, _ in seen if file.endswith(".py") and file.startswith(str(SOURCE)))
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
    """One method on one's own file; a new folder each time."""
    out = tempfile.mkdtemp(dir=folder)
    words = ("bench", _file(folder), "--methods", "ranksvm", "--grid", "fast", "--n-jobs", 1, "-o", out)
    return partial(_command, *words)


def _command(*words: object) -> None:
    from ranksieve.cli import app

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            app([str(word) for word in words])
        except SystemExit as end:
            if end.code:
                raise RuntimeError(said.getvalue()) from None


RUNS = {
    "fit with a page, command line": _fit,
    "SparseRanker.fit": _flagship,
    "sparse_path": _path,
    "RankSVM().fit": _ranksvm,
    "export, command line": _export,
    "bench of one method, command line": _bench,
}

if __name__ == "__main__":
    main()
