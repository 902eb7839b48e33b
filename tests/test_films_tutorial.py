"""The commands of docs/films.md run on the film data and print the output on the page."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli import app
from tests.test_docs import ROOT

pytestmark = pytest.mark.full
PAGE = ROOT / "docs" / "films.md"
FILES = ("train.parquet", "vali.parquet", "costs.csv", "queries.tsv")
MOST_COMMANDS = 12


def blocks() -> list[tuple[str, str]]:
    """(command, output on the page) for each command."""
    text = PAGE.read_text(encoding="utf-8")
    matches = re.findall(r"^```console\n\$ (ranksieve .*?)```(?:\n+```\n(.*?)```)?", text, flags=re.S | re.M)
    return [(command.replace("\\\n", " "), shown) for command, shown in matches]


def test_the_number_of_commands_on_the_page():
    assert 8 <= len(blocks()) <= MOST_COMMANDS


@pytest.mark.letor
def test_every_command_prints_the_output_on_the_page(letor_root, tmp_path, monkeypatch):
    films = letor_root / "films"
    if not (films / FILES[0]).exists():
        pytest.skip(f"no film data at {films} (set RANKSIEVE_LETOR)")
    for name in FILES:
        (tmp_path / name).symlink_to(films / name)
    monkeypatch.chdir(tmp_path)
    for command, shown in blocks():
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, (command, result.stderr)
        output = _plain(result.output)
        for line in shown.splitlines():
            if line.strip(" …"):
                assert _plain(line) in output, (command, line)
    for page in tmp_path.glob("*.html"):
        assert page.stat().st_size < 1_000_000
    assert rs.load_model("model.json").metrics["cost"] <= 5


def _plain(text: str) -> str:
    return " ".join(text.replace("─", "").split())
