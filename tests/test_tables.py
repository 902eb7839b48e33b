"""Tables against the numbers that they show, and their formats."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from ranksieve.experiment.benching import bench
from ranksieve.experiment.results import Results, load_results
from ranksieve.experiment.tables import (
    RESULT_TABLES,
    TABLE_FORMATS,
    Cell,
    ResultTable,
    _significance_cells,
    accuracy_table,
    all_tables,
    baselines_by_data_set,
    default_baseline,
    latex,
    markdown,
    number_cell,
    significance_table,
    time_table,
    write_tables,
)
from ranksieve.methods import METHODS
from ranksieve.metrics.significance import PairedTest
from tests.refusals import refused_data, refused_parameter

HERE = ["fenchelrank", "ranksvm", "rankboost", "ranksvm-l1"]


@pytest.fixture(scope="module")
def results(synthetic_folds, tmp_path_factory):
    """Results under the name of a data set with published numbers."""
    folder = tmp_path_factory.mktemp("results")
    how = {"out": folder, "grid": "fast"}
    return bench({"OHSUMED": synthetic_folds}, HERE, **how).data_sets["OHSUMED"]


def column(table, name):
    place = table.columns.index(name)
    return {row[0].text: row[place] for row in table.rows}


def test_accuracy_is_the_mean_over_folds_and_the_best_is_bold(results):
    table = accuracy_table(results, "ranksvm")
    cells = column(table, "N@10")
    for name, result in results.results.items():
        expected = np.mean([fold.test.per_query["ndcg@10"].mean() for fold in result.folds])
        assert cells[METHODS[name].title].value == pytest.approx(expected)
        assert cells[METHODS[name].title].text == f"{expected:.4f}"
    best = max(cells.values(), key=lambda cell: cell.value)
    assert [cell.bold for cell in cells.values()] == [cell.value == best.value for cell in cells.values()]
    densities = column(table, "density")
    assert densities["RankBoost"] == Cell(None, "–")
    linear = {name: cell.value for name, cell in densities.items() if cell.value is not None}
    assert [name for name, cell in densities.items() if cell.bold] == [min(linear, key=linear.get)]


def test_significance_uses_pooled_queries(results):
    table = significance_table(results, "ranksvm")
    place = table.columns.index("p (t)")
    for row in table.rows:
        name = next(name for name in HERE if METHODS[name].title == row[0].text)
        metric = {"MAP": "map"}.get(row[1].text, row[1].text.replace("N@", "ndcg@"))
        a, b = (results.results[method].pooled(metric) for method in (name, "ranksvm"))
        assert row[place].value == pytest.approx(ttest_rel(a, b).pvalue)
        assert row[2].value == pytest.approx((a - b).mean())
    marked = {
        (row[0].text, row[1].text) for row in table.rows if row[place].value < 0.05 and row[2].value > 0
    }
    accuracy = accuracy_table(results, "ranksvm")
    significant = {
        (row[0].text, head)
        for row in accuracy.rows
        for head, cell in zip(accuracy.columns, row, strict=True)
        if "*" in cell.marks
    }
    assert significant == marked


def test_times_count_every_fit(results):
    table = time_table(results, "ranksvm")
    assert column(table, "fits")["RankSVM-Primal"].value == 5 * 3
    for name in ("chosen fit", "whole grid, all folds"):
        assert all(cell.value > 0 for cell in column(table, name).values())


def test_the_baseline_can_be_chosen(results):
    assert default_baseline(results) == "ranksvm"
    assert default_baseline(results, "fenchelrank") == "fenchelrank"
    with refused_parameter("baseline", "fenchel"):
        default_baseline(results, "fenchel")


def test_a_baseline_is_used_if_it_has_results(results):
    alone = replace(results, methods={"ranksvm": results.methods["ranksvm"]})
    both = Results(Path(), {"a": results, "b": alone})
    assert baselines_by_data_set(both, "fenchelrank") == {"a": "fenchelrank", "b": None}
    with refused_parameter("baseline", "fenchel"):
        baselines_by_data_set(both, "fenchel")
    titles = [table.title for table in all_tables(both, "fenchelrank") if table.name == "significance"]
    assert titles == [f"OHSUMED: each method against {name}" for name in ("FenchelRank", "RankSVM-Primal")]


@pytest.fixture
def tables():
    cells = (Cell("A_1 & ℓ|", "A_1 & ℓ|"), Cell(0.123456789, "0.1235", True, "*†"), Cell(None, "–"))
    return [ResultTable("t", "50 % of", ("method", "N@1", "x"), (cells,), "note")]


def test_markdown(tables, tmp_path):
    write_tables(tables, tmp_path / "t.md")
    assert (tmp_path / "t.md").read_text() == (
        "### 50 % of\n\n| method | N@1 | x |\n| --- | ---: | ---: |\n"
        "| A_1 & ℓ\\| | **0.1235\\*†** | – |\n\nnote\n"
    )


def test_latex(tables, tmp_path):
    write_tables(tables, tmp_path / "t.tex")
    text = (tmp_path / "t.tex").read_text()
    assert r"A\_1 \& $\ell$\textbar{} & \textbf{0.1235}$^{*\dagger}$ & -- \\" in text
    assert r"\caption{50 \% of. note}" in text
    assert text.count("{tabular}") == 2
    assert r"\begin{tabular}{lrr}" in text


def test_names_of_data_sets_are_escaped():
    table = ResultTable("t", r"a{b}^~\<#$_*`[|", ("x",), ((Cell(1.0, "1"),),))
    assert latex([table]).splitlines()[2] == (
        r"\caption{a\{b\}\textasciicircum{}\textasciitilde{}\textbackslash{}\textless{}\#\$\_*`[\textbar{}. }"
    )
    assert markdown([table]).splitlines()[0] == r"### a{b}^~\\\<#$\_\*\`\[\|"


def test_a_difference_that_rounds_to_zero_has_no_minus():
    equal = PairedTest(
        "map", "fenchelrank", "ranksvm", 9, 0.5, 0.5, -1e-9, -2e-9, 1, 7, 1, 0.5, 0.5, 1.0, 1.0
    )
    assert [cell.text for cell in _significance_cells(equal)[2:4]] == ["+0.0000", "+0.00 %"]


def test_csv_and_json_keep_full_precision(tables, tmp_path):
    for suffix in (".csv", ".json"):
        write_tables(tables, tmp_path / f"t{suffix}")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text())))
    assert [row["value"] for row in rows] == ["A_1 & ℓ|", "0.123456789", ""]
    assert (rows[1]["column"], rows[1]["best"], rows[1]["marks"]) == ("N@1", "1", "*†")
    (table,) = json.loads((tmp_path / "t.json").read_text())
    assert table["rows"][0][1] == {"value": 0.123456789, "text": "0.1235", "best": True, "marks": "*†"}


def test_a_spread_is_written_after_its_mean(tmp_path):
    cell = number_cell(0.45678, best=0.45678, spread=0.00123)
    assert cell == Cell(0.45678, "0.4568 ± 0.0012", True, "", 0.00123)
    table = ResultTable("t", "t", ("N@1",), ((cell,),))
    for suffix in (".csv", ".json", ".md", ".tex"):
        write_tables([table], tmp_path / f"t{suffix}")
    (row,) = csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text()))
    assert (row["value"], row["spread"]) == ("0.45678", "0.00123")
    assert json.loads((tmp_path / "t.json").read_text())[0]["rows"][0][0]["spread"] == 0.00123
    assert "**0.4568 ± 0.0012**" in (tmp_path / "t.md").read_text()
    assert r"0.4568 $\pm$ 0.0012" in (tmp_path / "t.tex").read_text()


def test_an_unknown_format_is_refused(tables, tmp_path):
    with refused_data("t.doc"):
        write_tables(tables, tmp_path / "t.doc")
    assert list(tmp_path.iterdir()) == []


def test_every_format_writes_all_tables(results):
    tables = all_tables(Results(Path(), {"OHSUMED": results}))
    assert [table.name for table in tables] == [
        "accuracy", "significance", "times",
    ]  # fmt: skip
    assert len(tables) == len(RESULT_TABLES)
    for write in TABLE_FORMATS.values():
        text = write(tables)
        assert all(table.title in text.replace("\\", "") for table in tables if table.rows)


def test_load_results_returns_the_results_of_bench(results, synthetic_folds, tmp_path):
    bench({"x": synthetic_folds}, ["ranksvm"], out=tmp_path, grid="fast")
    loaded = load_results(tmp_path).data_sets["x"]
    assert loaded.results["ranksvm"].mean("map") == results.results["ranksvm"].mean("map")
    assert loaded.n_queries == sum(fold.test.n_queries for fold in synthetic_folds)
