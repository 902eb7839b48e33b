"""Hostile names in tables for spreadsheets, Markdown, LaTeX and terminals, and in round trips of data."""

from __future__ import annotations

import csv
import io
import re
import sys
from unicodedata import category

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.cli.output import escape_controls, print_stderr, print_text, table
from ranksieve.experiment.tables import (
    ResultTable,
    count_cell,
    csv_text,
    latex,
    markdown,
    number_cell,
    text_cell,
)
from tests.hostile import CONTROLS, FORMULAS, HALVES, MARKUP, SHOWN
from tests.refusals import refused_data

STARTS = ("=", "+", "-", "@", "\t", "＝", "＋", "－", "＠")
NAMES = (*SHOWN, *CONTROLS)


def table_of(names):
    rows = tuple((text_cell(name), number_cell(-0.25), count_cell(3)) for name in names)
    return ResultTable("t", f"data {names[0]}", (names[-1], "N@1", "n"), rows, "note")


def cells_of(names):
    return list(csv.DictReader(io.StringIO(csv_text([table_of(names)]), newline="")))


def test_no_text_of_a_table_is_a_formula():
    rows = cells_of(NAMES)
    assert [row["value"] for row in rows[1::3]] == ["-0.25"] * len(NAMES)  # numbers are not quoted
    assert [row["value"] for row in rows[::3]] == [f"{quote(name)}{on_one_line(name)}" for name in NAMES]


def on_one_line(name):
    return name.replace("\r", " ").replace("\n", " ")


def quote(name):
    return "'" if name.startswith(STARTS) else ""


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_quoted(name):
    first = cells_of([name])[0]
    assert (first["value"], first["column"], first["title"]) == (f"'{name}", f"'{name}", f"data {name}")


def test_markdown_has_no_markup_but_its_own():
    lines = markdown([table_of(MARKUP)]).splitlines()
    body = [line for line in lines if line.startswith("|")]
    assert len(body) == len(MARKUP) + 2
    assert not re.search(r"(?<!\\)[<\[`]", "\n".join(lines))
    assert len(markdown([table_of(CONTROLS)]).split("\n")) == len(CONTROLS) + 7


def test_latex_has_no_commands_of_names():
    text = latex([table_of(["\\input{/etc/passwd}", "a\n\n\\end{tabular}", "%", "$x^2$"])])
    assert text.count(r"\end{tabular}") == 1
    assert r"\input" not in text
    assert r"\textbackslash{}input\{/etc/passwd\}" in text


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet"])
def test_data_with_hostile_names_are_read_back_exactly(ending, tmp_path):
    names = [name for name in SHOWN if name.strip() == name]
    rng = np.random.default_rng(0)
    ids = [f"{name[:50]} {k}" for k, name in enumerate([*names[:2], "a\rb", "c\nd", "\t=1", "nul\0"])]
    data = rs.Dataset(rng.random((6, len(names))), [0, 1, 2, 0, 1, 2], ids[:1] * 3 + ids[1:2] * 3, names, ids)
    path = tmp_path / f"data.{ending}"
    rs.write_dataset(data, path)
    again = rs.read_dataset(path)
    assert again.feature_names == data.feature_names
    assert list(again.qid) == list(data.qid)
    assert list(again.doc_ids) == ids
    np.testing.assert_array_equal(again.X, data.X)


@pytest.mark.parametrize("name", ["a\nb", "a\rb"])
def test_names_with_line_breaks_are_refused_in_csv(name, tmp_path):
    data = rs.make_ranking(
        n_queries=4, n_features=2, n_informative=1, random_state=0, feature_names=[name, "b"]
    )
    with refused_data() as info:
        rs.write_dataset(data, tmp_path / "data.csv")
    assert ascii(name) in info.value.reason
    assert list(tmp_path.iterdir()) == []


def test_terminals_get_no_commands_from_names(capsys):
    for name in (*NAMES, *HALVES, "\x1b]0;title\x07", "\x1b[2J", "right\u202eleft"):
        print_text(name)
        print_stderr(name)
        table([name], [[name]], title=name)
    output = "".join(capsys.readouterr())
    assert not set(re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", output))
    assert r"\x1b]0;title\x07" in output


def test_invisible_and_bidirectional_characters_are_escaped_on_terminals(capsys):
    invisible = [one for one in map(chr, range(sys.maxunicode + 1)) if category(one) in ("Cf", "Zl", "Zp")]
    assert {"\u200e", "\u200f", "\u061c", "\u200b", "\ufeff", "\U000e0041"} <= set(invisible)
    for character in invisible:
        assert escape_controls(f"a{character}b") == f"a{ascii(character)[1:-1]}b"
    print_text("price\u200f\u061c")
    print_stderr("price\u200e")
    table(["price\u2069"], [["\u200fprice"]], title="\u061cprices")
    output = "".join(capsys.readouterr())
    assert not set(invisible) & set(output)
    assert r"price\u200f\u061c" in output


def test_plain_text_is_not_changed():
    assert escape_controls("ä 名 😀 a\tb\nc [bold]x[/bold]") == "ä 名 😀 a\tb\nc [bold]x[/bold]"
