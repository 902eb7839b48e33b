"""ranksieve explain: sentences, tables, JSON, pages, refusals."""

from __future__ import annotations

import json
import re
from dataclasses import asdict

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.model.linear import LinearModel, Term
from ranksieve.prepare import MissingPolicy, Normalisation, Preparation
from ranksieve.report.explain_page import ExplainPage, explain_page, model_sentences
from ranksieve.show.explain import pair_sentence, worst_sentence
from tests.test_cli import refused, run
from tests.test_report import text_of

NAMES = ["bm25_title", "price", "clicks_7d"]
DATA = rs.Dataset(
    [[0.9, 1.0, 3.0], [0.2, 1.0, 5.0], [0.5, 0.0, 1.0], [0.1, 0.2, 0.3], [0.4, 0.5, 0.6]],
    [2, 0, 1, 1, 0],
    ["shoes", "shoes", "shoes", "hats", "hats"],
    NAMES,
    ["A", "B", "C", "A", "D"],
)
MODEL = LinearModel((Term("bm25_title", 0, 2.0), Term("clicks_7d", 2, -0.25)), 3, intercept=1.0)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rs.write_dataset(DATA, "d.parquet")
    MODEL.save("m.json")
    return "m.json", "d.parquet"


def test_a_pair_as_sentence(files):
    text = run("explain", *files, "--query", "shoes", "--doc", "A", "--above", "B").stdout
    assert text.startswith(
        "A ranks above B by 1.9: bm25_title +1.4 (0.9 against 0.2), clicks_7d +0.5 (3 against 5).\n"
    )
    assert re.search(r"bm25_title +0\.9 +0\.2 +2 +\+1\.4", text)
    assert "The 2 contributions add up to +1.9 = 2.05 - 0.15. Ranks: 1 for A, 3 for B." in text
    below = run("explain", *files, "--query", "shoes", "--doc", "2", "--above", "A", "--top", 1).stdout
    assert below.startswith("B ranks below A by 1.9: bm25_title -1.4 (0.2 against 0.9) and 1 smaller.\n")
    assert "clicks_7d" not in below


def test_equal_documents_rank_level():
    data = rs.Dataset([[1.0], [1.0]], [0, 1], [1, 1])
    pair = rs.explain_pair(LinearModel((Term("f1", 0, 2.0),), 1), data, 0, 1)
    assert pair_sentence(pair, 5) == (
        "document 1 of query 1 ranks level with document 2 of query 1: no feature in use differs."
    )


def test_a_query_as_a_table(files):
    text = run("explain", *files, "--query", "shoes").stdout
    rows = [line.split() for line in text.splitlines() if re.match(r" *\d ", line)]
    assert rows == [
        ["1", "A", "2", "2.05", "+1.8", "-0.75"],
        ["2", "C", "1", "1.75", "+1", "-0.25"],
        ["3", "B", "0", "0.15", "+0.4", "-1.25"],
        ["1", "A", "0.9", "3"],  # the values in the data
        ["2", "C", "0.5", "1"],
        ["3", "B", "0.2", "5"],
    ]
    assert "Query shoes" in text
    assert "Each row adds up to the score minus the constant 1." in text
    narrow = run("explain", *files, "--query", "shoes", "--top", 1).stdout
    assert "others" in narrow
    assert "clicks_7d" not in narrow


def test_json_equals_the_library(files):
    pair = run("explain", *files, "--query", "shoes", "--doc", "A", "--above", "C", "--json").stdout
    expected = rs.explain_pair(MODEL, DATA, "A", "C", "shoes").to_dict()
    assert json.loads(pair) == json.loads(json.dumps(expected))
    query = json.loads(run("explain", *files, "--query", "hats", "--json").stdout)
    assert query == json.loads(json.dumps(rs.explain_query(MODEL, DATA, "hats").to_dict()))
    options = ("--metric", "map", "--metric", "ndcg@2", "--profile", "standard")
    drops = json.loads(run("explain", *files, "--drop", *options, "--json").stdout)
    expected_drops = rs.feature_importance(MODEL, DATA, ["map", "ndcg@2"], profile="standard")
    rows = [asdict(drop) for drop in expected_drops]
    expected = {"n_queries": 2, "profile": "standard", "ties": "mean", "drops": rows}
    assert drops == json.loads(json.dumps(expected))
    lowest = json.loads(run("explain", *files, "--worst", "2", *options[:2], "--json").stdout)["worst"]
    by = {"metric": "map", "n": 2}
    assert lowest == [one.to_dict() for one in rs.worst_queries(MODEL.predict(DATA), DATA, **by)]


def test_loss_without_each_feature(files, tmp_path):
    (tmp_path / "costs.csv").write_text("feature,cost\nbm25_title,4.5\nclicks_7d,0.5\nprice,9\n")
    text = run(
        "explain", *files, "--drop", "--metric", "map", "--profile", "trec", "--costs", "costs.csv"
    ).stdout
    rows = [line.split() for line in text.splitlines() if " MAP " in line]
    assert {row[0]: row[-1] for row in rows} == {"bm25_title": "4.5", "clicks_7d": "0.5"}
    assert "Over 2 queries, other weights unchanged" in text
    assert "saves" not in run("explain", *files, "--drop").stdout


def test_cost_groups_are_dropped_as_a_whole(files, tmp_path):
    (tmp_path / "costs.csv").write_text(
        "feature,cost,group\nbm25_*,4.5,clause\nclicks_7d,4.5,clause\nprice,9,\n"
    )
    text = run("explain", *files, "--drop", "--metric", "map", "--costs", "costs.csv").stdout
    row = next(line for line in text.splitlines() if "group clause: bm25_title" in line)
    assert row.split()[-1] == "4.5"
    saved = {line.split()[0]: line.split()[-1] for line in text.splitlines() if " MAP " in line}
    assert saved["bm25_title"] == saved["clicks_7d"] == "0"


def test_missing_values_and_scales_are_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = rs.Dataset([[20.0], [np.nan], [60.0]], [0, 1, 2], ["q"] * 3, ["price"], ["A", "B", "C"])
    rs.write_dataset(data, "d.parquet")
    preparation = Preparation(
        MissingPolicy("column_mean", ("price",), (30.0,)), Normalisation("z", ("price",), (40.0,), (10.0,))
    )
    model = LinearModel((Term("price", 0, 3.0),), 1, preparation=preparation)
    model.save("m.json")
    text = run("explain", "m.json", "d.parquet", "--query", "q", "--doc", "B", "--above", "A").stdout
    assert text.startswith("B ranks above A by 3: price +3 (missing, filled with 30 against 20).")
    assert re.search(r"price +missing, filled with 30 +20 +-1 +-2 +3 +\+3", text)
    text = run("explain", "m.json", "d.parquet", "--query", "q").stdout
    assert "missing, filled with 30 → -1" in text
    assert "60 → 2" in text
    assert "replaced by the mean of the training data" in " ".join(model_sentences(model))


def test_texts_are_shown_with_ids():
    texts = {"query": ["red shoes"] * 2, "title": ["A & B", "x" * 100]}
    data = rs.Dataset([[2.0], [1.0]], [0, 1], [7, 7], doc_ids=["a", "b"], texts=texts)
    model = LinearModel((Term("f1", 0, 2.0),), 1)
    assert pair_sentence(rs.explain_pair(model, data, 0, 1), 5).startswith("a “A & B” ranks above b “xxx")
    (worst,) = rs.worst_queries(model.predict(data), data)
    assert worst_sentence(worst) == (
        f"Query 7: red shoes: NDCG@10 0.6309; its only relevant document is at rank 2 of 2: b “{'x' * 59}…”; "
        "first is a “A & B”."
    )


def test_the_worst_queries_as_sentences(files):
    text = run("explain", *files, "--worst", 1, "--metric", "mrr", "--profile", "standard").stdout
    assert text.startswith("Query hats: MRR ")
    assert "its only relevant document is at rank" in text


def test_everything_on_a_page(files, tmp_path):
    (tmp_path / "costs.csv").write_text("feature,cost\n*,1\n")
    result = run(
        "explain",
        *files,
        "--report",
        "page.html",
        "--costs",
        "costs.csv",
        "--query",
        "shoes",
        "--query",
        "hats",
    )
    assert result.stdout == "Wrote page.html.\n"
    text = text_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    for part in ("Explanation of m.json", "Loss without each feature", "Worst-ranked queries", "saves"):
        assert part in text
    assert "rank document label score bm25_ title clicks_ 7d" in text  # may break after _
    assert text.index("Query shoes") < text.index("Query hats")
    assert len((tmp_path / "page.html").read_bytes()) < 200_000


def test_a_pair_and_named_texts_on_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {"title": list("vwxyz"), "brand": [f"brand {k}" for k in range(5)]}
    rs.write_dataset(rs.Dataset(DATA.X, DATA.y, DATA.qid, NAMES, DATA.doc_ids, texts=texts), "d.parquet")
    MODEL.save("m.json")
    pair = ("--query", "shoes", "--doc", "B", "--above", "C", "--text", "brand")
    run("explain", "m.json", "d.parquet", *pair, "--report", "page.html")
    text = text_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    # 2 · (0.2 − 0.5) − 0.25 · (5 − 1) = −0.6 − 1
    assert "B “brand 1” (rank 3, label 0) scores 1.6 less than C “brand 2” (rank 2, label 1)." in text
    assert "clicks_ 7d 5 against 1 −1.0000 bm25_ title 0.2 against 0.5 −0.6000" in text
    assert "difference of the scores −1.6000" in text
    refusal = refused("explain", "m.json", "d.parquet", "--drop", "--text", "colour")
    assert refusal.facts == ("text", "colour")


def test_the_page_escapes_hostile_texts():
    nasty = "<script>alert(1)</script>"
    texts = {"query": [nasty] * 2, "title": [nasty, "b"]}
    data = rs.Dataset([[2.0], [1.0]], [0, 1], [nasty] * 2, [nasty], ["<i>", "b"], texts=texts)
    model = LinearModel((Term(nasty, 0, 2.0),), 1, method=nasty)
    drops, worst = rs.feature_importance(model, data), rs.worst_queries(model.predict(data), data)
    content = ExplainPage(nasty, model, "", drops, worst, [rs.explain_query(model, data, nasty)])
    page = explain_page(content)
    assert page == explain_page(content)
    assert nasty not in page
    assert "<i>" not in page
    assert text_of(page).count(nasty) >= 8


def test_letor_text_and_a_stored_normalisation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = rs.make_ranking(n_queries=12, n_features=5, n_informative=2, random_state=0)
    rs.io.write_letor(data, "d.txt")
    model = rs.SparseRanker(n_alphas=8, cv=2, normalise="query_z").fit(data).to_model()
    model.save("m.json")
    query = json.loads(run("explain", "m.json", "d.txt", "--query", data.qid[0], "--json").stdout)
    sums = np.sum(query["contributions"], axis=1)
    np.testing.assert_allclose(sums, model.predict(data)[query["rows"]], atol=1e-12)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (("--query", "shoes", "--doc", "A"), ("doc", "A")),
        (("--query", "shoes", "--above", "A"), ("doc", None)),
        (("--drop", "--doc", "A", "--above", "B"), ("doc", "A")),
        (("--query", "shoes", "--metric", "map"), ("metric", ["map"])),
        (("--query", "shoes", "--profile", "trec"), ("profile", "trec")),
        (("--worst", "2", "--costs", "c.csv"), ("costs", "c.csv")),
        (("--report", "no/such/folder.html"), ("no/such/folder.html", None)),
        (("--query", "shoe"), ("query", "shoe")),
        (("--query", "shoes", "--doc", "E", "--above", "B"), ("document", "E")),
        (("--drop", "--metric", "nope"), ("metric", "nope")),
        (("--drop", "--profile", "nope"), ("profile", "nope")),
    ],
)
def test_refusals(files, options, facts):
    assert refused("explain", *files, *options).facts == facts


def test_missing_cost_file(files):
    refusal = refused("explain", *files, "--drop", "--costs", "gone.csv")
    assert isinstance(refusal.error, FileNotFoundError)
    assert refusal.startswith("gone.csv: ")


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--query", "shoes", "--drop"),
        ("--query", "shoes", "--query", "hats"),
        ("--drop", "--worst", "3"),
    ],
)
def test_explain_needs_exactly_one_task(files, options):
    assert refused("explain", *files, *options).startswith("specify what to explain: one of --query ID")


def test_trees_are_not_explained(files, tmp_path):
    (tmp_path / "trees.txt").write_text("## RankBoost\n1:0.5:1.0\n")
    assert "RankBoost" in refused("explain", "trees.txt", "d.parquet", "--query", "hats").reason
    (tmp_path / "ca.txt").write_text("## Coordinate Ascent\n3:1.0\n")
    assert "clicks_7d" in run("explain", "ca.txt", "d.parquet", "--query", "hats").stdout


def test_help_has_an_example_and_fits_80_columns():
    text = run("explain", "--help", env={"COLUMNS": "80"}).stdout
    assert "For example:\n    ranksieve explain model.json test.txt --query 7" in text
    assert max(len(line) for line in text.splitlines()) <= 80
