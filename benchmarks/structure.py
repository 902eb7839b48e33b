"""How the source is built: files, functions, signatures, and the files that a fit and a bench use.

python -m benchmarks.structure
"""

from __future__ import annotations

import ast
import contextlib
import io
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType

import ranksieve as rs
from benchmarks.harness import HERE

SOURCE = HERE.parent / "src" / "ranksieve"


def main() -> None:
    functions = [f for path in SOURCE.rglob("*.py") for f in _functions(path)]
    lengths = {name: length for name, length, _ in functions}
    signatures = {name: parameters for name, _, parameters in functions}
    longest, widest = max(lengths, key=lambda n: lengths[n]), max(signatures, key=lambda n: signatures[n])
    print(f"files: {sum(1 for _ in SOURCE.rglob('*.py'))}")
    print(f"functions: {len(functions)}, median body {statistics.median(lengths.values())} lines")
    print(f"longest function: {longest}, body of {lengths[longest]} lines")
    print(f"longest signature: {widest}, {signatures[widest]} parameters")
    for name, run in (("fit", _fit), ("bench", _bench)):
        with tempfile.TemporaryDirectory() as folder:
            run(Path(folder))  # compiles kernels and loads modules, which would count otherwise
        with tempfile.TemporaryDirectory() as folder:
            files = _passed_through(partial(run, Path(folder)))
        print(f"files that one {name} passes through: {len(files)}")
        print("  " + ", ".join(files))


def _functions(path: Path) -> Iterator[tuple[str, int, int]]:
    """(name, lines of the body without docstring, parameters) of each function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (node.end_lineno or node.lineno) - body[0].lineno + 1 if body else 0
            arguments = node.args
            count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
            own = count - (bool(arguments.args) and arguments.args[0].arg in ("self", "cls"))
            yield f"{path.relative_to(SOURCE)}:{node.name}", length, own


def _passed_through(run: Callable[[], None]) -> list[str]:
    """Files of the package in which a function is called."""
    seen: set[str] = set()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.add(frame.f_code.co_filename)

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return sorted(str(Path(name).relative_to(SOURCE)) for name in seen if name.startswith(str(SOURCE)))


def _fit(folder: Path) -> None:
    """A fit with costs and a page, on the command line."""
    train, costs = folder / "train.txt", folder / "costs.csv"
    rs.write_letor(rs.make_ranking(30, 8, 3, docs_per_query=(10, 14)), train)
    costs.write_text("feature,cost\n*,1\n", encoding="utf-8")
    _command(
        "fit",
        train,
        "--costs",
        costs,
        "--max-cost",
        4,
        "-o",
        folder / "m.json",
        "--report",
        folder / "r.html",
    )


def _bench(folder: Path) -> None:
    """A bench of two methods on a single file."""
    data = folder / "data.txt"
    rs.write_letor(rs.make_ranking(30, 8, 3, docs_per_query=(10, 14)), data)
    _command(
        "bench", data, "--methods", "fenchelrank,ranksvm", "--grid", "fast", "--jobs", 1, "-o", folder / "out"
    )


def _command(*words: object) -> None:
    from ranksieve.cli import app

    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        app([str(word) for word in words])


if __name__ == "__main__":
    main()
