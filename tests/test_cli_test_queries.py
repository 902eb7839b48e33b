"""fit --test: queries not used for selection, reported first."""

from __future__ import annotations

import json

import pytest

import ranksieve as rs
from tests.test_cli import refused, run
from tests.test_report import text_of

OPTIONS = ["--set", "n_alphas=8", "--set", "cv=2", "--max-features", "3", "--profile", "standard"]
TESTED = ["--test", "test.txt", "-o", "m.json"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = rs.make_ranking(n_queries=40, n_features=6, n_informative=3, random_state=0)
    rs.io.write_letor(data.select_queries(range(30)), "train.txt")
    rs.io.write_letor(data.select_queries(range(30, 40)), "test.txt")
    return tmp_path


def test_test_queries_are_not_used_for_selection_and_come_first(here):
    run("fit", "train.txt", *OPTIONS, "-o", "without.json")
    output = run(
        "fit", "train.txt", *OPTIONS, "--test", "test.txt", "-o", "m.json", "--report", "r.html"
    ).stdout
    assert rs.load_model("m.json") == rs.load_model("without.json")
    test = rs.io.read_letor("test.txt")
    evaluation = rs.evaluate(rs.load_model("m.json").predict(test), test, "ndcg@10", "standard")
    beginning = f"Test NDCG@10: {evaluation.mean['ndcg@10']:.4f} (95 % CI "
    assert output.startswith(beginning)
    text = text_of((here / "r.html").read_text(encoding="utf-8"))
    assert beginning in text
    sentence = "Test data: used neither for fitting nor for selection."
    assert f"; 10 queries of test.txt; standard profile). {sentence}" in text
    assert "test.txt (test data)" in text


def test_as_json(here):
    content = json.loads(
        run("fit", "train.txt", *OPTIONS, "--test", "test.txt", "-o", "m.json", "--json").stdout
    )
    test = rs.io.read_letor("test.txt")
    evaluation = rs.evaluate(rs.load_model("m.json").predict(test), test, "map", "standard")
    assert content["test"]["map"] == pytest.approx(evaluation.mean["map"])
    assert json.loads(run("fit", "train.txt", *OPTIONS, "-o", "m.json", "--json").stdout)["test"] is None


def test_a_missing_test_file_is_reported_before_the_fit(here):
    assert "gone.txt" in refused("fit", "train.txt", "--test", "gone.txt", "-o", "m.json")
    assert not (here / "m.json").exists()


def test_test_queries_are_read_with_the_same_options(here):
    for name in ("train", "test"):
        frame = rs.to_frame(rs.io.read_letor(f"{name}.txt"))
        frame.rename(columns={"qid": "search", "label": "grade"}).assign(words="x").to_csv(
            f"{name}.csv", index=False
        )
    options = ["--qid-column", "search", "--label-column", "grade", *OPTIONS, "-o", "m.json"]
    output = run("fit", "train.csv", "--test", "test.csv", *options).stdout
    assert "; 10 queries of test.csv; standard profile). Test data: used neither" in " ".join(output.split())
    weighed = [*options, "--document-weights", "f6"]
    run("fit", "train.csv", "--test", "test.csv", *weighed)
    assert "f6" not in rs.load_model("m.json").names
