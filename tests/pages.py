"""Runs the code blocks of a documentation page in one process, and compares the output with the page."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from ranksieve.cli import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
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
    """Run a page and return the variables of its Python blocks; checks the output of its commands."""
    names: dict[str, Any] = {"__name__": "__page__"}
    output = None
    for block in blocks(page):
        if block.language == "python":
            exec(compile(block.text, page.name, "exec", dont_inherit=True), names)
        if with_commands and block.language == "console":
            output = "".join(output_of(command) for command in commands(block.text))
        elif with_commands and block.language == "" and output is not None:
            for line in block.text.splitlines():
                assert is_within(line, output), f"{name_of(page)}: not in the output: {line}"
        if block.language != "console":
            output = None
    return names


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
