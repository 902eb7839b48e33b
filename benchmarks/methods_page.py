"""Update docs/methods from the table of methods: ``make docs``.

README.md is generated. In the page of each method, only the parts between ``<!-- facts -->`` or
``<!-- output -->`` and ``<!-- end -->`` are generated; edit the rest by hand.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

from benchmarks.method_facts import facts, grid_text
from ranksieve.methods import METHODS, Method

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "methods"
LINE_LENGTH, MAX_ROWS = 100, 8
PAGE_INTRODUCTION = """# Methods

Generated from the table `ranksieve.methods.METHODS` by `make docs`. Every linear method works with
`ranksieve fit --method NAME`; "choice" is the metric that its paper uses to select parameters.
To decide which one to use, see [choosing a method and a penalty](../choosing.md).

Pages about groups of methods: [first-order methods](first_order.md),
[boosting and structural SVM](boosting.md), [SVMs and least squares](svms.md),
[sparse SVMs](sparse_ranksvm.md), [selectors](selectors.md).

| name | method | source | loss | penalty | solver | linear | grid | choice |
|---|---|---|---|---|---|---|---|---|
"""
EXAMPLE_DATA = """
## Example data

The pages of the methods show the output of `fit` for these data, where five of twenty features are relevant:

```python
{code}
```

```text
{output}```
"""
EXAMPLE_CODE = """
import ranksieve as rs

data = rs.make_ranking(n_queries=60, n_features=20, n_informative=5, random_state=0)
rs.io.write_letor(data.select_queries(range(40)), "train.txt")
rs.io.write_letor(data.select_queries(range(40, 60)), "test.txt")
print("informative:", [name for name, weight in zip(data.feature_names, data.truth, strict=True) if weight])
""".strip()


def methods_page() -> str:
    lines = "".join(_page_line(name, method) for name, method in METHODS.items())
    with example_folder() as output:
        return PAGE_INTRODUCTION + lines + EXAMPLE_DATA.format(code=EXAMPLE_CODE, output=output)


def method_page(name: str, text: str) -> str:
    """The page of a method with new facts, and with the output of its command in the current folder."""
    command = re.search(r"^\$ ranksieve (.*?)$", text.replace("\\\n", " "), flags=re.M)
    if command is None:
        raise ValueError(f"docs/methods/{name}.md shows no command")
    output = f"```\n{output_of(shlex.split(command[1]))}```\n"
    return replace_part(replace_part(text, "facts", facts(name)), "output", output)


def replace_part(text: str, part: str, content: str) -> str:
    """Replace the part between its markers."""
    pattern = rf"(<!-- {part} -->\n).*?(<!-- end -->)"
    new_text, count = re.subn(pattern, lambda m: f"{m[1]}\n{content}\n{m[2]}", text, flags=re.S)
    if count != 1:
        raise ValueError(f"the page has {count} parts <!-- {part} -->; expected one")
    return new_text


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
def example_folder() -> Iterator[str]:
    """Change to a temporary folder with the example data; yields what making them prints."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(EXAMPLE_CODE, {})
        yield printed.getvalue()


def _page_line(name: str, method: Method) -> str:
    linear = "yes" if method.linear else "no"
    cells = (
        f"[{method.title}]({name}.md)",
        method.source,
        method.loss,
        method.penalty,
        method.solver,
        linear,
        grid_text(method),
    )
    return f"| `{name}` | {' | '.join(cells)} | {method.select} |\n"


def main() -> None:
    (FOLDER / "README.md").write_text(methods_page(), encoding="utf-8")
    with example_folder():
        for name in METHODS:
            page = FOLDER / f"{name}.md"
            page.write_text(method_page(name, page.read_text(encoding="utf-8")), encoding="utf-8")
            sys.stdout.write(f"{page.name}\n")


if __name__ == "__main__":
    main()
