"""fit on the command line: model selection and how it is reported."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.show.fit import selection_text
from ranksieve.show.sentences import SELECTION_FREQUENCY, choice_sentences, optimality
from tests.test_cli import refused, run

QUICK = ("--set", "n_alphas=10", "--profile", "standard", "-o", "m.json")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = rs.make_ranking(n_queries=40, n_features=8, n_informative=4, random_state=2)
    rs.io.write_letor(data.select_queries(range(25)), "train.txt")
    rs.io.write_letor(data.select_queries(range(25, 40)), "vali.txt")
    return tmp_path


def fitted(valid: bool = True, **parameters) -> rs.SparseRanker:
    data, held_out = rs.io.read_letor("train.txt"), rs.io.read_letor("vali.txt")
    ranker = rs.SparseRanker(**{"n_alphas": 10, "profile": "standard"} | parameters)
    return ranker.fit(data, valid=held_out if valid else None)


def test_cv_can_be_a_number_or_auto(here):
    content = json.loads(run("fit", "train.txt", *QUICK, "--set", "cv=3", "--json").stdout)
    assert content["choice"] == "by 3-fold cross-validation over the training queries"
    assert rs.load_model("m.json") == fitted(valid=False, cv=3).to_model()
    run("fit", "train.txt", *QUICK, "--set", "cv=auto")
    assert rs.load_model("m.json") == fitted(valid=False).to_model()
    assert refused("fit", "train.txt", *QUICK, "--set", "cv=1").facts == ("cv", 1)


def test_json_has_the_confidence_of_the_selection(here):
    content = json.loads(run("fit", "train.txt", "--max-features", 3, *QUICK, "--json").stdout)
    ranker = fitted(valid=False, max_features=3)
    confidence = ranker.choice_.confidence
    assert content["family"] == ranker.choice_.family.label
    reported = content["confidence"]
    assert (reported["mean"], reported["low"], reported["high"]) == (
        confidence.mean,
        confidence.low,
        confidence.high,
    )
    assert (reported["loss"], reported["n_tied"]) == (confidence.loss, confidence.n_tied)
    assert reported["frequency"] == {
        f"f{j + 1}": confidence.frequency[j] for j in np.flatnonzero(confidence.frequency)
    }
    other = json.loads(run("fit", "train.txt", "--method", "fenchelrank", "-o", "m.json", "--json").stdout)
    assert (other["family"], other["confidence"]) == (None, None)


def test_families_can_be_named(here):
    run("fit", "train.txt", *QUICK, "--set", "families=['l1']")
    assert rs.load_model("m.json") == fitted(valid=False, families=["l1"]).to_model()
    assert "at α = " in run("fit", "train.txt", *QUICK, "--set", "families=l1").stdout
    assert refused("fit", "train.txt", *QUICK, "--set", "families=['l2']").facts == ("families", "l2")


def test_refit_on_all_uses_the_validation_queries_too(here):
    valid = ("--valid", "vali.txt")
    run("fit", "train.txt", *valid, *QUICK)
    trained = rs.load_model("m.json")
    run("fit", "train.txt", *valid, *QUICK, "--set", "refit_on=all")
    both = rs.load_model("m.json")
    assert both == fitted(refit_on="all").to_model()
    assert both.names == trained.names
    assert not np.array_equal(both.coef, trained.coef)
    printed = run("fit", "train.txt", *valid, *QUICK, "--set", "refit_on=all", "--report", "r.html").stdout
    page = Path("r.html").read_text(encoding="utf-8")
    for text in (printed, page):
        assert "The weights were then refitted to the training and validation data together." in text
    assert "vali.txt (also used for fitting)" in page
    assert "then refitted" not in run("fit", "train.txt", *QUICK, "--set", "refit_on=all").stdout


@pytest.mark.parametrize("family", ["l1", "forward"])
def test_terminal_and_page_have_the_same_headline(here, family):
    printed = run(
        "fit", "train.txt", "--valid", "vali.txt", "--max-features", 3, *QUICK, "--set", "n_alphas=25",
        "--set", f"families=['{family}']", "--report", "r.html",
    ).stdout  # fmt: skip
    page = unescape(Path("r.html").read_text(encoding="utf-8"))
    ranker = fitted(max_features=3, families=[family], n_alphas=25)
    headline = choice_sentences(
        ranker, "on vali.txt and by 5-fold cross-validation over the training queries"
    )
    assert len(headline) == (5 if family == "l1" else 4)  # with curves instead of lines
    assert "Best candidate beyond the budget: " in headline[2]
    model = ranker.to_model()
    proof = optimality(model.certificate, model.parameters)
    for sentence in (*headline, proof):
        assert f"{sentence}\n" in printed
        assert sentence in page
    assert ("with ridge " in proof, "α" in proof) == (family == "forward", family == "l1")


def test_features_are_printed_with_their_selection_frequency(here):
    printed = run("fit", "train.txt", *QUICK).stdout
    ranker = fitted(valid=False)
    assert " selected " in printed
    assert f"Selected: {SELECTION_FREQUENCY}\n" in printed
    for j in ranker.support_:
        row = next(line.split() for line in printed.splitlines() if line.split()[:1] == [f"f{j + 1}"])
        assert " ".join(row[2:]) == f"{100 * ranker.choice_.confidence.frequency[j]:.0f} %"


def test_text_of_the_selection():
    data = rs.make_ranking(n_queries=12, n_features=4, n_informative=2, random_state=0)
    valid, one = data.select_queries(range(8, 12)), data.select_queries([0])
    data = data.select_queries(range(8))
    ranker = rs.SparseRanker(n_alphas=5, profile="standard")
    crossed = "by 5-fold cross-validation over the training queries"
    assert selection_text(ranker.fit(data), None) == crossed
    assert selection_text(ranker.fit(data, valid=valid), "v.txt") == f"on v.txt and {crossed}"
    alone = rs.SparseRanker(n_alphas=5, profile="standard", cv=0)
    assert selection_text(alone.fit(data, valid=valid), "v.txt") == "on v.txt"
    with pytest.warns(UserWarning, match="only one query"):
        ranker.fit(one)
    assert selection_text(ranker, None) == "on the training data"


def test_text_of_the_selection_for_other_methods():
    data = rs.make_ranking(n_queries=12, n_features=4, n_informative=2, random_state=0)
    data, valid = data.select_queries(range(8)), data.select_queries(range(8, 12))
    ranker = rs.GridRanker("ranksvm-l1", max_features=2, cv=3)
    crossed = "by 3-fold cross-validation over the training queries"
    assert selection_text(ranker.fit(data), None) == crossed
    assert selection_text(ranker.fit(data, valid=valid), "v.txt") == "on v.txt"
    assert selection_text(rs.FenchelRank(), None) == ""
