"""ranksieve scorecard: the card, its loss of accuracy, the files, refusals."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.cli.scorecard import read_units
from ranksieve.model.linear import Term
from ranksieve.show.sentences import optimality
from tests.test_cli import process, put, refused, run
from tests.test_report import text_of

DATA = rs.make_ranking(n_queries=40, n_features=8, n_informative=4, docs_per_query=12, random_state=2)
TRAIN, VALID = DATA.select_queries(range(28)), DATA.select_queries(range(28, 40))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scorecard")
    rs.io.write_letor(TRAIN, folder / "train.txt")
    rs.io.write_letor(VALID, folder / "vali.txt")
    rs.SparseRanker(max_features=4, cv=2).fit(TRAIN).to_model().save(folder / "model.json")
    return folder


@pytest.fixture(autouse=True)
def here(home, monkeypatch):
    monkeypatch.chdir(home)


def run_scorecard(*options, model="model.json"):
    return run("scorecard", model, "train.txt", "-o", "card.json", *options)


def test_the_card_is_shown_and_written():
    text = run_scorecard().stdout
    card = rs.load_model("card.json")
    assert card == rs.make_scorecard(rs.load_model("model.json"), rs.io.read_letor("train.txt"))
    assert text.startswith(rs.card_text(card, rs.io.read_letor("train.txt")))
    assert optimality(card.certificate, card.parameters) in text
    assert text.endswith("Wrote card.json.\n")
    assert "held-out" not in text


def test_card_and_model_are_evaluated_on_held_out_queries():
    text = run_scorecard("--valid", "vali.txt", "--metric", "ndcg@5", "--metric", "map").stdout
    card, model, valid = rs.load_model("card.json"), rs.load_model("model.json"), rs.io.read_letor("vali.txt")
    for metric in ("ndcg@5", "map"):
        ours, theirs = (rs.evaluate(one.predict(valid), valid, metric).mean[metric] for one in (card, model))
        row = rf"{metric.upper()} +{ours:.4f} +{theirs:.4f} +{re.escape(f'{ours - theirs:+.4f}')}"
        assert re.search(row, text)
        assert card.metrics[f"held-out {metric} (standard)"] == ours
    assert "held-out   scorecard   model.json   difference" in text
    assert "Held-out queries: vali.txt; standard profile (used to select the model)." in text


def test_levels_and_units():
    first, second, *_ = rs.load_model("model.json").names
    run_scorecard("--levels", 3, "--units", f"{first}=0.4, {second}=0.25")
    card = rs.load_model("card.json").card
    assert card.levels == 3
    assert (card.units[first], card.units[second]) == (0.4, 0.25)


def test_units_of_text():
    assert read_units("a=1, b=c=2e3") == {"a": 1.0, "b=c": 2000.0}


def test_json():
    content = json.loads(run_scorecard("--valid", "vali.txt", "--json").stdout)
    card = rs.load_model("card.json")
    assert content["model"] == json.loads(json.dumps(card.to_dict()))
    assert content["card"] == rs.card_text(card, rs.io.read_letor("train.txt"))
    assert set(content["held_out"]) == {"scorecard", "model.json"}
    assert (content["output"], content["report"]) == ("card.json", None)


def test_the_page(home):
    run_scorecard("--valid", "vali.txt", "--report", "card.html")
    page = (home / "card.html").read_text(encoding="utf-8")
    assert "<h1>Scorecard</h1>" in page
    assert "Held-out queries: vali.txt; NDCG@10" in text_of(page)


def test_a_card_can_be_used_like_any_model(home):
    run_scorecard()
    card, valid = rs.load_model("card.json"), rs.io.read_letor("vali.txt")
    scores = run("rank", "card.json", "vali.txt").stdout.split()
    np.testing.assert_array_equal(np.array(scores, dtype=float), card.predict(valid))
    assert "NDCG@10" in run("evaluate", "card.json", "vali.txt").stdout
    assert card.names[0] in run("explain", "card.json", "vali.txt", "--drop").stdout
    run("compare", "card.json", "model.json", "vali.txt")
    run("export", "card.json", "--to", "python", "-o", "card.py")
    module = {}
    exec((home / "card.py").read_text(encoding="utf-8"), module)
    document = dict(zip(valid.feature_names, valid.X[0].tolist(), strict=True))
    assert module["score"](document) == card.predict(valid)[0]


def test_a_linear_model_of_ranklib_can_become_a_card(home):
    put(home / "linear.txt", "## Coordinate Ascent\n1:0.5 3:-0.25 8:1.0\n")
    run_scorecard(model="linear.txt")
    assert set(rs.load_model("card.json").names) <= {"f1", "f3", "f8"}


def test_features_without_points_are_named():
    constant = np.column_stack([TRAIN.X, TRAIN.queries.query_of_grouped])
    rs.write_dataset(rs.Dataset(constant, TRAIN.y, TRAIN.qid), "wide.parquet")
    model = rs.LinearModel((Term("f1", 0, 1.0), Term("f9", 8, 1.0)), 9)
    model.save("wide.json")
    text = run("scorecard", "wide.json", "wide.parquet", "-o", "card.json").stdout
    assert "Features with 0 points, which are not on the card: f9." in text


TREES = """## LambdaMART
## No. of trees = 1
<ensemble>
<tree id="1" weight="0.1"><split><feature> 1 </feature><threshold> 0.5 </threshold>
<split pos="left"><output> -1.0 </output></split>
<split pos="right"><output> 1.0 </output></split></split></tree>
</ensemble>
"""


def test_refusals(home):
    command = ("scorecard", "model.json", "train.txt", "-o", "other.json")
    assert "'--levels'" in refused(*command, "--levels", 0)
    assert "'--levels'" in refused(*command, "--levels", 100)
    assert refused(*command, "--metric", "map").facts == ("metric", ["map"])
    assert refused(*command, "--units", "f1").facts == ("units", "f1")
    unused = refused(*command, "--units", "price=2")
    assert unused.facts[0] == "units"
    assert "'price'" in unused
    assert refused("scorecard", "model.json", "train.txt", "-o", "model.json").facts == ("model.json", None)
    run_scorecard()
    again = refused("scorecard", "card.json", "train.txt", "-o", "other.json")
    assert again.facts[0] == "model"
    assert again.startswith("making a scorecard of card.json: ")
    put(home / "trees.txt", TREES)
    trees = refused("scorecard", "trees.txt", "train.txt", "-o", "other.json")
    assert "LambdaMART" in trees.reason
    put(home / "flat.txt", "1 qid:1 1:1 8:2\n1 qid:1 1:2 8:1\n")
    flat = refused("scorecard", "model.json", "flat.txt", "-o", "other.json")
    assert "pair" in flat.reason
    rs.write_dataset(rs.Dataset(TRAIN.X[:, :1], TRAIN.y, TRAIN.qid, ["price"]), "price.parquet")
    lacking = refused("scorecard", "model.json", "price.parquet", "-o", "other.json")
    assert "4 of the model's features" in lacking.reason
    content = json.loads((home / "card.json").read_text())
    content["terms"][0]["weight"] *= 1.5
    put(home / "bent.json", json.dumps(content))
    bent = refused("rank", "bent.json", "vali.txt")
    assert bent.facts == ("bent.json", None)
    assert "points per" in bent.reason
    assert not (home / "other.json").exists()


@pytest.mark.full
def test_the_card_can_go_to_standard_output():
    done = process("scorecard", "model.json", "train.txt", "-o", "/dev/stdout")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["method"] == "Scorecard"
    assert b"Scorecard: " in done.stderr


def test_verify_accepts_a_card_with_metrics(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = rs.make_ranking(n_queries=30, n_features=6, n_informative=3, random_state=4)
    rs.io.write_letor(data.select_queries(range(20)), "train.txt")
    rs.io.write_letor(data.select_queries(range(20, 30)), "vali.txt")
    run("subset", "train.txt", "--max-features", "3", "-o", "m.json")
    run("scorecard", "m.json", "train.txt", "--valid", "vali.txt", "-o", "card.json")
    train, valid, card = (
        rs.io.read_letor("train.txt"),
        rs.io.read_letor("vali.txt"),
        rs.load_model("card.json"),
    )
    assert {one.holds for one in rs.verify(card, train, valid).verdicts} == {True}
    name = next(iter(card.metrics))
    forged = replace(card, metrics={name: card.metrics[name] + 0.01})
    verdicts = {one.claim: one.holds for one in rs.verify(forged, train, valid).verdicts}
    assert verdicts[name] is False
    assert {one.claim: one.holds for one in rs.verify(card, train).verdicts}[name] is None
