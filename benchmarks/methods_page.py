"""Update the generated parts of docs/methods and docs/cli.md: ``make docs``.

In the pages of methods these are the parts between ``<!-- facts -->`` (tables from METHODS) or
``<!-- output -->`` (what the command above prints) and ``<!-- end -->``; the rest is written by hand.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ranksieve.methods import METHODS, Method

DOCS = Path(__file__).resolve().parent.parent / "docs"
FOLDER = DOCS / "methods"
LINE_LENGTH, MAX_ROWS = 100, 8
PAGES: dict[str, tuple[str, ...]] = {
    "README.md": tuple(METHODS),
    "sparseranker.md": ("sparseranker",),
    "bestsubset.md": ("bestsubset",),
    "fenchelrank.md": ("fenchelrank",),
    "fsmrank.md": ("fsmrank",),
    "minbatsrank.md": ("minbatsrank",),
    "sparse_ranksvm.md": ("ranksvm-l1", "ranksvm-log", "ranksvm-mcp", "ranksvm-l0.5", "ranksvm-scad"),
    "sparselistmle.md": ("sparselistmle", "cslistmle"),
    "first_order.md": ("tgrank", "rsrank", "proxrank", "listnet"),
    "svms.md": ("ranksvm", "ranksvmstruct", "csranksvm", "rankrls"),
    "boosting.md": ("adarank-ndcg", "adarank-map", "rankboost", "svmmap", "lambdamart"),
    "selectors.md": (
        "fsrank", "gas", "fsmsvm", "fbpcrank", "stabilityselection", "hierarchicalbem", "hierarchicaliltr",
        "rankfilter", "rankwrapper", "brtree", "bfswrapper", "greedyrankrls",
    ),
}  # fmt: skip
"""The methods in the table of each page."""
CLI_INTRODUCTION = """# Command line

What can each command do? The output of `ranksieve COMMAND --help`. Commands take a model before data; all but
`demo`, `rank` and `convert` print one JSON object with `--json`; bad input is one sentence and exit code 2.
What each is for: [start](index.md).
"""
COLUMNS = (
    "`--method`", "class", "loss", "penalty or choice", "solver", "grid of its paper", "chosen by", "source",
)  # fmt: skip
PART = re.compile(r"(<!-- (facts|output) -->\n).*?(<!-- end -->)", re.S)


def page_of(name: str) -> str:
    """The page that explains a method."""
    return next(page for page, names in list(PAGES.items())[1:] if name in names)


def method_page(page: str, text: str) -> str:
    """The page with new facts and outputs; runs its commands in the current folder."""
    command = ""

    def part(match: re.Match[str]) -> str:
        nonlocal command
        if match[2] == "facts":
            content = facts(PAGES[page], page_of if page == "README.md" else None)
        else:
            shown = re.findall(
                r"^\$ ranksieve (.*?)$", text[: match.start()].replace("\\\n", " "), flags=re.M
            )
            command = shown[-1]
            content = f"```\n{output_of(shlex.split(command))}```\n"
        return f"{match[1]}\n{content}\n{match[3]}"

    return PART.sub(part, text)


def facts(names: Sequence[str], page_of: Callable[[str], str] | None = None) -> str:
    """One row per method; with ``page_of``, fewer facts and a link to its page."""
    rows = [_row(name, page_of(name) if page_of else "") for name in names]
    n_columns = 4 if page_of else len(COLUMNS)
    head, *lines = [f"| {' | '.join(cells[:n_columns])} |\n" for cells in (COLUMNS, *rows)]
    return "".join([head, "|---" * n_columns + "|\n", *lines])


def _row(name: str, page: str) -> Sequence[str]:
    method = METHODS[name]
    kind = f"[{method.title}]({page})" if page else f"`{type(method.make()).__name__}`"
    about = (method.loss, method.penalty, method.solver, grid_text(method), method.select, method.source)
    return (f"`{name}`", kind, *about)


def grid_text(method: Method) -> str:
    """The values of each parameter in the grid."""
    values: dict[str, list[object]] = {}
    for point in method.grid:
        for key, value in point.items():
            if value not in values.setdefault(key, []):
                values[key].append(value)
    return "; ".join(f"`{key}`: {_values_text(distinct)}" for key, distinct in values.items()) or "–"


def _values_text(values: list[object]) -> str:
    texts = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in values]
    return ", ".join(texts) if len(texts) <= 3 else f"{texts[0]} … {texts[-1]} ({len(texts)})"


def cli_page() -> str:
    """The help of every command."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from ranksieve.cli import app

    def help_of(*words: str) -> str:
        shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "100"}, terminal_width=100)
        return f"```text\n{shown.stdout.strip()}\n```\n"

    commands = vars(get_command(app))["commands"]
    parts = [f"## {name}\n\n{help_of(name)}" for name in commands]
    return "\n".join([CLI_INTRODUCTION, help_of(), *parts])


def output_of(command: list[str]) -> str:
    """Output of a command in short lines, with only the first rows of long tables."""
    from typer.testing import CliRunner

    from ranksieve.cli import app

    result = CliRunner().invoke(app, command)
    if result.exit_code:
        raise ValueError(f"ranksieve {shlex.join(command)}: {result.stderr}")
    lines = [textwrap.fill(line.rstrip(), LINE_LENGTH) for line in result.stdout.splitlines()]
    rows = [number for number, line in enumerate(lines) if re.match(r" f\d+ ", line)]
    if len(rows) > MAX_ROWS:
        lines[rows[MAX_ROWS] : rows[-1] + 1] = [" …"]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


@contextlib.contextmanager
def example_folder() -> Iterator[None]:
    """Change to a temporary folder with the example data, made by the code on README.md."""
    code = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), flags=re.S)[
        -1
    ]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, {})
        yield


def main() -> None:
    (DOCS / "cli.md").write_text(cli_page(), encoding="utf-8")
    with example_folder():
        for page in PAGES:
            path = FOLDER / page
            path.write_text(method_page(page, path.read_text(encoding="utf-8")), encoding="utf-8")
            sys.stdout.write(f"{page}\n")


if __name__ == "__main__":
    main()
