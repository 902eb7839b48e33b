"""Runs the code blocks of a documentation page in one process, and compares the output with the page."""

from __future__ import annotations

import contextlib
import io
import math
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from ranksieve.cli import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
OUTPUT = "text"  # language of the blocks that show what the block of Python above prints
FENCE = re.compile(r"^(`{3,})(\w*)\n(.*?)^\1$", flags=re.S | re.M)
NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
ROUNDING = 1e-3  # tolerance of printed numbers: last digits may differ between processors


@dataclass(frozen=True)
class Block:
    """A fenced block and its language."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(language, text) for _, language, text in FENCE.findall(page.read_text(encoding="utf-8"))]


def python_blocks(page: Path) -> list[str]:
    return [block.text for block in blocks(page) if block.language == "python"]


def commands(text: str) -> list[list[str]]:
    """The arguments of each ``ranksieve`` command in a block."""
    lines = text.replace("\\\n", " ").splitlines()
    parts = [part.strip() for line in lines for part in line.removeprefix("$ ").split(" && ")]
    return [shlex.split(part, comments=True)[1:] for part in parts if part.startswith("ranksieve ")]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run_page(page: Path, *, with_commands: bool) -> dict[str, Any]:
    """Run a page and return the variables of its Python blocks; checks the output that it shows."""
    names: dict[str, Any] = {"__name__": "__page__"}
    output = None
    shown = dict(zip(python_blocks(page), shown_outputs(page), strict=True))
    for block in blocks(page):
        if block.language == "python":
            printed = run_python(block.text, page, names)
            if (text := shown[block.text]) is not None:
                assert alike(text, printed), f"{name_of(page)}: prints\n{printed}"
        if with_commands and block.language == "console":
            output = "".join(output_of(command) for command in commands(block.text))
        elif with_commands and block.language == "" and output is not None:
            for line in block.text.splitlines():
                assert is_within(line, output), f"{name_of(page)}: not in the output: {line}"
        if block.language != "console":
            output = None
    return names


def run_python(text: str, page: Path, names: dict[str, Any]) -> str:
    """What a block of Python prints; its variables are kept in ``names``."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, page.name, "exec", dont_inherit=True), names)
    print(printed.getvalue(), end="")  # noqa: T201  # a page prints something
    return printed.getvalue()


def shown_outputs(page: Path) -> list[str | None]:
    """What the page shows below each block of Python, in a block ``text``; None if nothing."""
    text = page.read_text(encoding="utf-8")
    return [other[3] if other is not None and other[2] == OUTPUT else None for _, other in _followed(text)]


def _followed(text: str) -> Iterator[tuple[re.Match[str], re.Match[str] | None]]:
    """Each block of Python with the block right below it, if any."""
    found = list(FENCE.finditer(text))
    for one, other in zip(found, [*found[1:], None], strict=True):
        if one[2] == "python":
            follows = other is not None and not text[one.end() : other.start()].strip()
            yield one, other if follows else None


def with_outputs(page: Path) -> str:
    """The text of a page with what each block of Python prints below it."""
    names: dict[str, Any] = {"__name__": "__page__"}
    text, pieces, last = page.read_text(encoding="utf-8"), [], 0
    below = {one.start(): other for one, other in _followed(text)}
    for one in FENCE.finditer(text):
        if one[2] == "console" and page.parent.name == "tutorials":
            list(map(output_of, commands(one[3])))
        if one[2] != "python":
            continue
        printed, other = run_python(one[3], page, names), below[one.start()]
        is_output = other is not None and (other[2] == OUTPUT or (not other[2] and alike(other[3], printed)))
        pieces.append(text[last : one.end()])
        last = other.end() if other is not None and is_output else one.end()
        if printed.strip():
            lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
            pieces.append(f"\n\n```{OUTPUT}\n" + "\n".join(lines) + "\n```")
    return "".join(pieces) + text[last:]


def output_of(command: list[str]) -> str:
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, (command, result.stderr)
    return result.stdout


def is_within(shown: str, output: str) -> bool:
    """Whether the output contains the words and numbers in sequence; line breaks may differ."""
    few, many = _words(shown), _words(output)
    return any(_same(few, many[k : k + len(few)]) for k in range(len(many) - len(few) + 1))


def alike(one: str, other: str) -> bool:
    """Whether texts have the same words, and the same numbers up to rounding."""
    return _same(_words(one), _words(other))


def _words(text: str) -> list[str]:
    return re.findall(rf"{NUMBER}|[^\W\d]+|[^\s─…]", text)


def _same(one: list[str], other: list[str]) -> bool:
    return len(one) == len(other) and all(map(_equal, one, other))


def _equal(a: str, b: str) -> bool:
    if a == b or not ("." in a and "." in b and re.fullmatch(NUMBER, a) and re.fullmatch(NUMBER, b)):
        return a == b
    return math.isclose(
        float(a.replace(",", "")), float(b.replace(",", "")), rel_tol=ROUNDING, abs_tol=ROUNDING
    )


def main(names: list[str]) -> None:
    """Write below each block of Python what it prints: ``python -m tests.pages docs/budgets.md …``."""
    for name in names:
        page = (ROOT / name).resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            text = with_outputs(page)
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
