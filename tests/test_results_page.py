"""The page of a results folder: its words, its tables, its data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from papers import pictures
from papers.__main__ import main
from papers.page import curves_of_study, page_content, write_page
from typer.testing import CliRunner

from ranksieve.cli import app
from ranksieve.experiment.results import Results
from ranksieve.experiment.tables import accuracy_table
from ranksieve.metrics.significance import compare
from ranksieve.report.results_page import (
    build_results_content,
    certificate_table,
    choose_baseline,
    choose_sparse,
    is_dense,
    jaccard,
    parameter_table,
    provenance_table,
    write_results_page,
)
from ranksieve.show.formats import signed
from tests.figures import assert_drawable
from tests.refusals import refused_parameter
from tests.test_report import Links, data_of, text_of, without_scripts


@pytest.fixture(scope="module")
def shop(shop_results):
    return shop_results.data_sets["shop"]


@pytest.fixture(scope="module")
def content(shop_results):
    return build_results_content(shop_results)


@pytest.fixture(scope="module")
def page(shop_results, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("results-page") / "report.html"
    write_results_page(shop_results, path)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def papers_content(shop_results):
    return page_content(shop_results)


@pytest.fixture(scope="module")
def papers_page(shop_results, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("papers-page") / "report.html"
    write_page(shop_results, path)
    return path.read_text(encoding="utf-8")


def test_page_needs_no_network(papers_page):
    page = papers_page
    links = Links()
    links.feed(page)
    assert [link for link in links.urls if not link.startswith("#")] == []
    rest = without_scripts(page)
    assert "http:" not in rest
    assert "https:" not in rest
    assert "url(" not in rest


def test_names_are_escaped(page):
    rest = without_scripts(page)
    assert "<b>price" not in rest
    assert "&lt;b&gt;price&lt;/b&gt;" in rest


def test_the_page_of_any_results_shows_no_studies(page, shop_results):
    data = data_of(page)
    for at, results in zip(("d1", "d2"), shop_results.data_sets.values(), strict=True):
        assert [name for name in data["figures"] if name.startswith(at)] == [f"{at}-map_against_density"]
        assert data["explorers"][at] == []
        assert set(data["gains"][at]["methods"]) == set(results.methods) - {choose_baseline(results, None)}
    rest = without_scripts(page)
    for name in ("studies", "path"):
        assert f"d2-{name}" not in rest
    for name in ("claims", "published", "agreement"):
        assert f'data-table="{name}"' not in rest


def test_the_papers_page_has_their_tables(papers_page):
    rest = without_scripts(papers_page)
    assert 'id="d2-studies"' in rest
    assert 'href="#d2-studies"' in rest
    assert 'data-table="claims"' in rest


def test_every_data_set_has_everything(papers_page, shop_results):
    data = data_of(papers_page)
    for at, results in zip(("d1", "d2"), shop_results.data_sets.values(), strict=True):
        drawn = set(pictures.PICTURES) - (set() if results.name == "shop" else {"descent", "online"})
        assert {f"{at}-{name}" for name in drawn} <= set(data["figures"])
        assert len(data["explorers"][at]) == {"shop": 2, "corner": 3}[results.name]  # one per fold
        assert set(data["gains"][at]["methods"]) == set(results.methods) - {choose_baseline(results, None)}
    assert "all-removed_features" in data["figures"]


def test_the_explorers_can_be_drawn(papers_page):
    for path in data_of(papers_page)["explorers"]["d2"]:
        assert_drawable(path["figure"])
        assert len(path["figure"]["layout"]["shapes"]) == 2


def test_summary_names_the_numbers(shop, content, page):
    (shop_content,) = [data for data in content.data_sets if data.name == "shop"]
    baseline = choose_baseline(shop, None)
    two = {name: shop.pooled[name] for name in ("sparseranker", baseline)}
    (row,) = compare(two, baseline, ["ndcg@10"]).rows
    assert f"difference {signed(row.difference)}" in shop_content.lead
    assert f"p = {row.p_t:.2g} (paired two-sided t-test)" in shop_content.lead
    assert f"p = {row.p_randomisation:.2g} (randomisation)" in shop_content.answers[3].details
    assert f"of {len(shop.features)} features" in shop_content.lead
    text = text_of(page)
    assert shop_content.lead in text
    for answer in shop_content.answers:
        assert answer.details in text
    lost = shop_content.answers[2]
    assert f"{row.ties} equal, {row.losses} worse" in lost.details


def test_which_features_counts_folds(shop, content):
    (shop_content,) = [data for data in content.data_sets if data.name == "shop"]
    used = [set(fold.chosen["weights"]) for fold in shop.methods["sparseranker"]]
    always = set.intersection(*used)
    assert always
    words = shop_content.answers[0].details.split("In every fold: ")[1].split(".")[0]
    assert all(name in words for name in always)
    assert not any(name in words for name in {"f3", "f4", "f5"} - set.union(*used))


def test_dense_is_what_uses_every_feature(shop):
    assert [name for name in shop.methods if is_dense(shop, name)] == ["ranksvm", "rankboost"]
    best = max(("ranksvm", "rankboost"), key=lambda name: shop.results[name].mean("ndcg@10"))
    assert choose_baseline(shop, None) == best
    assert choose_baseline(shop, "fenchelrank") == "fenchelrank"
    assert choose_sparse(shop, "sparseranker") == "fenchelrank"
    with refused_parameter("baseline", "fenchelrnk"):
        choose_baseline(shop, "fenchelrnk")


def test_a_single_method_is_a_page_without_comparison(shop_results, shop, tmp_path):
    alone = replace(shop, methods={"sparseranker": shop.methods["sparseranker"]}, studies=())
    write_results_page(Results(shop_results.folder, {"shop": alone}), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "there is no other method to compare it with" in text_of(page)
    assert data_of(page)["explorers"]["d1"] == []
    assert data_of(page)["gains"]["d1"]["methods"] == {}


def test_rankers_without_weights_show_none(shop_results, shop):
    def content_of(*names, baseline=None):
        some = replace(shop, methods={name: shop.methods[name] for name in names})
        return build_results_content(Results(shop_results.folder, {"shop": some}), baseline).data_sets[0]

    alone = content_of("rankboost")
    assert alone.lead.startswith("RankBoost uses all 12 features;")
    assert [answer.short for answer in alone.answers] == ["all 12", "no proof"]
    assert alone.features.columns == []
    other = content_of("ranksvm", "rankboost", baseline="ranksvm")
    assert other.method == "rankboost"
    assert list(other.choices) == ["ranksvm"]  # so the table shows its weights
    shown = other.features.methods["ranksvm"]["weight"]
    assert [values["weight"] for _, values in other.features.rows] == shown


def test_a_page_without_weights_has_no_bars(shop_results, shop, tmp_path):
    alone = replace(shop, methods={"rankboost": shop.methods["rankboost"]})
    write_results_page(Results(shop_results.folder, {"shop": alone}), tmp_path / "r.html")
    assert 'class="bar"' not in without_scripts((tmp_path / "r.html").read_text(encoding="utf-8"))


def test_jaccard():
    assert jaccard([{"a", "b"}, {"b", "c"}, {"a", "b"}]) == pytest.approx((1 / 3 + 1 + 1 / 3) / 3)
    assert np.isnan(jaccard([{"a"}]))


def test_tables_are_those_of_the_experiment(shop, page):
    baseline = choose_baseline(shop, None)
    rest = without_scripts(page)
    for row in accuracy_table(shop, baseline).rows:
        for cell in row:
            assert cell.text in rest
    assert rest.count('data-table="accuracy"') == 2


def test_feature_columns(shop, content, papers_content):
    (plain,) = [data for data in content.data_sets if data.name == "shop"]
    assert [column.key for column in plain.features.columns] == ["weight", "folds", "models"]
    (shop_content,) = [data for data in papers_content.data_sets if data.name == "shop"]
    rows = dict(shop_content.features.rows)
    coefs = np.array([fold.coef for fold in shop.results["sparseranker"].folds])
    scaled = (coefs / np.abs(coefs).sum(axis=1, keepdims=True)).mean(axis=0)
    linear = [np.array([f.coef for f in shop.results[m].folds]) for m in shop.methods if m != "rankboost"]
    paths = [point for study in shop.studies for point in study["path"]["weights"]]
    alone = np.mean([study["single_features"]["alone"] for study in shop.studies], axis=0)
    for j, name in enumerate(shop.features):
        expected = {
            "weight": scaled[j],
            "folds": np.mean(coefs[:, j] != 0),
            "models": np.mean(np.concatenate(linear)[:, j] != 0),
            "stability": np.mean([name in point for point in paths]),
            "strength": alone[j],
        }
        assert rows[name] == pytest.approx(expected)
    names = [name for name, _ in shop_content.features.rows]
    other = shop_content.features.methods["ranksvm-log"]["folds"]
    used = [set(fold.chosen["weights"]) for fold in shop.methods["ranksvm-log"]]
    assert other == pytest.approx([np.mean([name in of for of in used]) for name in names])
    assert "rankboost" not in shop_content.features.methods


def test_the_study_of_a_path_marks_its_best_point_on_validation(shop):
    for study in shop.studies:
        path = study["path"]
        curves = curves_of_study(path, shop.features, "ndcg@10", "")
        mean = [m for m, n in zip(curves.mean, path["n_nonzero"], strict=True) if n > 0]
        assert curves.mean[curves.chosen] == max(mean)
        assert curves.points[curves.chosen] == path["weights"][curves.chosen]
        assert curves.n_nonzero[curves.chosen] == min(
            n for m, n in zip(curves.mean, path["n_nonzero"], strict=True) if m == max(mean) and n > 0
        )


def test_certificates_take_the_worst_fold(shop):
    rows = {row[0].value: row for row in certificate_table(shop).rows}
    gaps = [fold.chosen["certificate"]["relative_gap"] for fold in shop.methods["fenchelrank"]]
    assert rows["FenchelRank"][1].value == max(gaps)
    assert rows["RankSVM-log"][1].value is None
    assert rows["RankSVM-log"][2].text.startswith("without a proof")


def test_provenance_holds_versions_fingerprints_grids_and_seeds(shop):
    text = " ".join(cell.text for row in provenance_table(shop).rows for cell in row)
    header = shop.header
    assert f"ranksieve {header['version']}" in text
    for fold in shop.methods["ranksvm"]:
        assert all(fingerprint in text for fingerprint in fold.header["identity"]["fingerprints"].values())
    rows = {row[0].text: [cell.text for cell in row] for row in parameter_table(shop).rows}
    grid = shop.methods["fenchelrank"][0].header["identity"]["grid"]
    assert rows["FenchelRank"][2] == f"{len(grid)}: radius ∈ {{1, 4, 16, 64, 256}}"
    assert "random_state = 0" in rows["SparseRanker"][4]


def test_command_writes_the_page(shop_results, tmp_path):
    target = tmp_path / "page.html"
    arguments = ["tables", str(shop_results.folder), "--report", str(target), "--baseline", "sparseranker"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert str(target) in shown.output.replace("\n", "")
    assert "SparseRanker" in text_of(target.read_text(encoding="utf-8")).split("baseline")[1][:60]


def test_papers_report_writes_the_page_and_the_tables(shop_results, papers_page, tmp_path, capsys):
    for name in ("page.html", "tables.md"):
        main(["report", str(shop_results.folder), "-o", str(tmp_path / name)])
        assert f"Wrote {tmp_path / name}." in capsys.readouterr().out
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == papers_page
    assert "claims of the papers" in (tmp_path / "tables.md").read_text(encoding="utf-8")
    with pytest.raises(SystemExit, match="nothing"):
        main(["report", str(tmp_path / "nothing"), "-o", "page.html"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "tables.docx"], ".tex"),
        (["--report", "missing/page.html"], "does not exist"),
        (["--baseline", "ranksvn", "--report", "page.html"], "did you mean 'ranksvm'"),
    ],
)
def test_bad_requests_are_one_sentence(shop_results, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["tables", str(shop_results.folder), *options])
    assert refused.exit_code == 2
    assert words in refused.output
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_results_is_named(tmp_path):
    refused = CliRunner().invoke(app, ["tables", str(tmp_path / "nothing")])
    assert refused.exit_code == 2
    assert "nothing" in refused.output
