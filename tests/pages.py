"""Pages of the documentation: their blocks, run in order in one process, and what they show compared."""

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
ROUNDING = 1e-3  # of shown numbers, whose last digits may differ between processors


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
    """The words of each command of ours in a block, without ``ranksieve``."""
    lines = text.replace("\\\n", " ").splitlines()
    parts = [part.strip() for line in lines for part in line.removeprefix("$ ").split(" && ")]
    return [shlex.split(part, comments=True)[1:] for part in parts if part.startswith("ranksieve ")]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run_page(page: Path, *, with_commands: bool) -> dict[str, Any]:
    """The names that the Python blocks define; commands run between them and must say what is shown."""
    names: dict[str, Any] = {"__name__": "__page__"}
    said = None
    for block in blocks(page):
        if block.language == "python":
            exec(compile(block.text, page.name, "exec", dont_inherit=True), names)
        if with_commands and block.language == "console":
            said = "".join(said_by(command) for command in commands(block.text))
        elif with_commands and block.language == "" and said is not None:
            for line in block.text.splitlines():
                assert is_within(line, said), f"{name_of(page)} shows what was not said: {line}"
        if block.language != "console":
            said = None
    return names


def said_by(command: list[str]) -> str:
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, (command, result.stderr)
    return result.stdout


def is_within(shown: str, said: str) -> bool:
    """Whether words and numbers come one after another in what was said; lines may break elsewhere."""
    few, many = _words(shown), _words(said)
    return any(_same(few, many[k : k + len(few)]) for k in range(len(many) - len(few) + 1))


def alike(one: str, other: str) -> bool:
    """Whether texts have the same words, and numbers that differ by rounding alone."""
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
