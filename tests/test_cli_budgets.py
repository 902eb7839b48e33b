"""fit and frontier on the command line: costs, must-haves, signs, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ranksieve as rs
from tests.test_cli import refused, run

QUICK = ("--set", "n_alphas=12", "--profile", "standard")
COSTS = "feature,cost,group\nf1,4,\nf2,1,\nf3,0.5,\nf4,2,calls\nf5,2,calls\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = rs.make_ranking(n_queries=30, n_features=5, n_informative=3, random_state=2)
    rs.io.write_letor(data.select_queries(range(20)), "train.txt")
    rs.io.write_letor(data.select_queries(range(20, 30)), "vali.txt")
    (tmp_path / "ms.csv").write_text(COSTS, encoding="utf-8")
    return tmp_path


def fit(*options):
    return ("fit", "train.txt", "--valid", "vali.txt", *QUICK, "-o", "model.json", *options)


def test_fit_within_a_cost_budget(here):
    text = run(*fit("--costs", "ms.csv", "--max-cost", 3)).stdout
    model = rs.load_model("model.json")
    cost = rs.io.read_costs("ms.csv").of(model.names)
    assert cost <= 3
    assert f"Cost: {cost:g} of at most 3." in text
    assert model.parameters["feature_costs"]["groups"] == {"calls": {"cost": 2.0, "features": ["f4", "f5"]}}


def test_fit_with_constraints_on_features(here):
    unconstrained = json.loads(run(*fit("--json")).stdout)["model"]
    strongest = max(unconstrained["terms"], key=lambda term: abs(term["weight"]))
    against = "-" if strongest["weight"] > 0 else "+"
    have, other, never = [f"f{j}" for j in range(1, 6) if f"f{j}" != strongest["name"]][:3]
    constraints = ("--must-have", f"{have}, {other}", "--must-not", never)
    run(*fit(*constraints, "--signs", f"{strongest['name']}={against}"))
    model = rs.load_model("model.json")
    assert {have, other} <= set(model.names)
    assert never not in model.names
    assert model.coef[strongest["index"]] * strongest["weight"] <= 0
    assert model.parameters["must_have"] == [have, other]
    assert "cost" not in model.metrics


def test_signs_from_a_file(here):
    (here / "signs.csv").write_text("feature,sign\n" + "".join(f"f{j},+\n" for j in range(1, 6)))
    run(*fit("--signs", "signs.csv"))
    assert rs.load_model("model.json").coef.min() >= 0


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (["--max-cost", "3"], ("max_cost", 3.0)),
        (["--costs", "bad.csv"], ("bad.csv", 3)),
        (["--costs", "other.csv"], ("other.csv", 2)),
        (["--costs", "few.csv"], ("few.csv", None)),
        (["--costs", "ms.csv", "--max-cost", "0.1"], ("max_cost", 0.1)),
        (["--must-have", "f9"], ("must_have", "f9")),
        (["--must-have", "f1", "--must-not", "f1"], ("must_not", ["f1"])),
        (["--signs", "f1=up"], ("signs", "f1")),
        (["--signs", "f1=+,f2=-,f1=-"], ("signs", "f1=+,f2=-,f1=-")),
        (["--method", "ranksvm", "--must-have", "f1"], ("method", "ranksvm")),
    ],
)
def test_refusals(here, options, facts):
    (here / "bad.csv").write_text("feature,cost\nf1,1\nf2,-1\n")
    (here / "other.csv").write_text("feature,cost\nf9,1\n*,1\n")
    (here / "few.csv").write_text("feature,cost\nf1,1\n")
    command = fit(*options)
    if "ranksvm" in options:
        command = ("fit", "train.txt", "-o", "model.json", *options)
    assert refused(*command).facts == facts
    assert not (here / "model.json").exists()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--costs", "none.csv"], "none.csv: "),
        (["--signs", "signs.csv"], "signs.csv: "),
        (["--signs", "f1-,f2+"], "--signs expects A=+,B*=-"),
    ],
)
def test_missing_files(here, options, word):
    refusal = refused(*fit(*options))
    assert isinstance(refusal.error, FileNotFoundError)
    assert word in refusal
    assert not (here / "model.json").exists()


@pytest.mark.parametrize("command", ["fit", "frontier"])
@pytest.mark.parametrize(("option", "file"), [("--costs", "costs.json"), ("--signs", "signs.json")])
def test_costs_and_signs_are_not_overwritten(here, command, option, file):
    text = '{"*": 1}' if option == "--costs" else "feature,sign\nf1,+\n"
    (here / file).write_text(text)
    assert refused(command, "train.txt", option, file, "-o", file).facts == (file, None)
    assert (here / file).read_text() == text


def test_standard_input_is_read_once(here):
    assert refused("fit", "-", "--costs", "-", "-o", "model.json", input=COSTS).facts == ("-", None)


def test_an_infinite_budget(here):
    assert " of at most inf." in run(*fit("--costs", "ms.csv", "--max-cost", "inf")).stdout
    assert rs.load_model("model.json").metrics["cost"] > 0


def frontier(*options):
    return ("frontier", "train.txt", "--valid", "vali.txt", "--profile", "standard", *options)


def test_frontier_as_table_and_files(here):
    text = run(*frontier("--costs", "ms.csv", "-o", "frontier.json")).stdout
    content = json.loads((here / "frontier.json").read_text())
    assert content["metric"] == "ndcg@10"
    best = max(point["mean"] for point in content["points"])
    assert f"{best:.4f}" in text
    optimal = sum(point["optimal"] for point in content["points"])
    assert f"{len(content['points'])} candidates, {optimal} of them Pareto-optimal in NDCG@10" in text
    run(*frontier("--max-features", 2, "--report", "frontier.html"))
    assert "Accuracy against features and cost" in (here / "frontier.html").read_text(encoding="utf-8")


def test_frontier_as_json_with_every_option(here):
    options = ("--costs", "ms.csv", "--max-cost", 4, "--must-not", "f5", "--metric", "map", "--json")
    content = json.loads(run(*frontier(*options)).stdout)
    assert content["metric"] == "map"
    assert max(point["cost"] for point in content["points"]) <= 4
    assert not any("f5" in point.get("features", ()) for point in content["points"])


def test_refusals_of_frontier(here):
    assert refused(*frontier("--report", "gone/frontier.html")).facts == ("gone/frontier.html", None)
    cutoff = refused(*frontier("--max-cost", "1", "--costs", "ms.csv", "--metric", "ndcg@0"))
    assert cutoff.facts == ("metric", "ndcg@0")
    assert np.all([not path.name.startswith("frontier") for path in here.iterdir()])
