"""ranksieve verify: the table, the summary, the exit code, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ranksieve as rs
from tests.test_cli import refused, run

QUICK = ("--set", "n_alphas=8", "--set", "cv=2", "--profile", "standard")
VALID = ("--valid", "vali.txt")
HELD_OUT = "held-out ndcg@10 (standard)"
CLAIMS = ["training data", "validation data", "weights", HELD_OUT, "cost", "budget"]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """Training and validation data, and a model fitted on them with a budget."""
    folder = tmp_path_factory.mktemp("verify")
    data = rs.make_ranking(n_queries=24, n_features=8, n_informative=3, random_state=2)
    rs.io.write_letor(data.select_queries(range(14)), folder / "train.txt")
    rs.io.write_letor(data.select_queries(range(14, 24)), folder / "vali.txt")
    rs.io.write_letor(data.select_features([0, 1, 2]), folder / "narrow.txt")
    (folder / "costs.json").write_text('{"*": 1.0}')
    files = [str(folder / name) for name in ("train.txt", "vali.txt", "costs.json", "model.json")]
    limits = ("--max-features", 4, "--max-cost", 5, "--set", "families=['l1']")
    run("fit", files[0], "--valid", files[1], "--costs", files[2], *limits, *QUICK, "-o", files[3])
    return folder


@pytest.fixture(autouse=True)
def here(home, monkeypatch) -> Path:
    monkeypatch.chdir(home)
    return home


def changed(tmp_path: Path, change) -> str:
    """Path of a changed copy of the model file."""
    content = json.loads(Path("model.json").read_text())
    change(content)
    (tmp_path / "changed.json").write_text(json.dumps(content))
    return str(tmp_path / "changed.json")


def rows(text: str) -> dict[str, str]:
    """The verdict on each claim."""
    lines = [line.strip() for line in text.splitlines()]
    answers = ("yes", "no", "not checked")
    return {
        claim: next(a for a in answers if line.removeprefix(claim).strip().startswith(f"{a} "))
        for claim in CLAIMS
        for line in lines
        if line.startswith(claim)
    }


def test_an_honest_model():
    text = run("verify", "model.json", "train.txt", *VALID).stdout
    assert rows(text) == dict.fromkeys(CLAIMS, "yes")
    assert text.split()[:3] == ["claim", "holds", "recomputed"]
    assert f"refit: same weights, {HELD_OUT}" in text
    assert text.splitlines()[-1] == "All 6 claims hold."


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        (lambda c: c["data"].update(train="0000"), "training data"),
        (lambda c: c["data"].update(valid="0000"), "validation data"),
        (lambda c: c["terms"][0].update(weight=c["terms"][0]["weight"] + 0.01), "weights"),
        (lambda c: c["certificate"].update(objective=0.5), "weights"),
        (lambda c: c["metrics"].update({HELD_OUT: 0.99}), HELD_OUT),
        (lambda c: c["metrics"].update(cost=1.0), "cost"),
    ],
)
def test_a_changed_model_exits_with_1_and_the_table(change, claim, tmp_path):
    text = run("verify", changed(tmp_path, change), "train.txt", *VALID, code=1).stdout
    assert rows(text) == dict.fromkeys(CLAIMS, "yes") | {claim: "no"}
    assert text.splitlines()[-1] == f"1 of 6 claims does not hold: {claim}."


def test_json(tmp_path):
    content = json.loads(run("verify", "model.json", "train.txt", *VALID, "--json").stdout)
    assert content["holds"] is True
    assert content["summary"] == "All 6 claims hold."
    assert [one["claim"] for one in content["verdicts"]] == CLAIMS
    assert {one["holds"] for one in content["verdicts"]} == {True}
    wrong = changed(tmp_path, lambda c: c["metrics"].update(cost=1.0))
    content = json.loads(run("verify", wrong, "train.txt", "--json", code=1).stdout)
    assert content["holds"] is False
    assert [one["holds"] for one in content["verdicts"]] == [True, None, True, None, False, True]
    assert content["verdicts"][1]["words"] == "pass --valid"


def test_quick_does_not_fit(monkeypatch):
    monkeypatch.setattr(rs.SparseRanker, "_fit", None)
    text = run("verify", "model.json", "train.txt", *VALID, "--quick").stdout
    assert rows(text) == dict.fromkeys(CLAIMS, "yes") | {HELD_OUT: "not checked"}
    assert text.splitlines()[-1] == "5 of 6 claims hold, 1 not checked."


def test_without_validation_data():
    text = run("verify", "model.json", "train.txt", code=1).stdout
    unknown = dict.fromkeys(("validation data", HELD_OUT), "not checked")
    assert rows(text) == dict.fromkeys(CLAIMS, "yes") | unknown
    assert "the model was fitted with validation data; pass --valid" in text


def test_other_data():
    answers = rows(run("verify", "model.json", "vali.txt", *VALID, code=1).stdout)
    assert [claim for claim, answer in answers.items() if answer == "no"] == [
        "training data",
        "weights",
        HELD_OUT,
    ]


def test_a_model_of_another_release(tmp_path):
    older = changed(tmp_path, lambda c: c.update(version="0.0.1"))
    text = run("verify", older, "train.txt", *VALID, "--quick").stdout
    note, summary = text.splitlines()[-2:]
    assert (
        note == f"The file was written by ranksieve 0.0.1; this is {rs.__version__}, whose fits may differ."
    )
    assert summary == "5 of 6 claims hold, 1 not checked."


def test_other_methods():
    budget = ("--method", "ranksvm-l1", "--max-features", 3, "--set", "alpha=0.05", "--profile", "standard")
    run("fit", "train.txt", *budget, "-o", "budget.json")
    assert "All 4 claims hold." in run("verify", "budget.json", "train.txt").stdout
    run("fit", "train.txt", "--method", "fenchelrank", "-o", "fenchel.json")
    assert "All 2 claims hold." in run("verify", "fenchel.json", "train.txt").stdout


def test_models_of_other_programs_are_refused(tmp_path):
    ranklib = tmp_path / "ranklib.txt"
    ranklib.write_text("## Coordinate Ascent\n1:0.5 2:0.5\n")
    fastrank = tmp_path / "fastrank.json"
    fastrank.write_text(json.dumps({"Linear": {"weights": [0.1, 0.2]}}))
    for file in (ranklib, fastrank):
        assert refused("verify", file, "train.txt").facts == (str(file), None)


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (("model.json", "narrow.txt"), "narrow.txt"),
        (("model.json", "train.txt", "--valid", "narrow.txt"), "narrow.txt"),
        (("costs.json", "train.txt"), "costs.json"),
        (("model.json", "-", "--valid", "-"), "-"),
    ],
)
def test_wrong_input_is_one_sentence(arguments, file):
    assert refused("verify", *arguments).facts == (file, None)


@pytest.mark.parametrize("arguments", [("model.json", "nothing.txt"), ("nothing.json", "train.txt")])
def test_missing_files(arguments):
    refusal = refused("verify", *arguments)
    assert isinstance(refusal.error, FileNotFoundError)
    assert refusal.startswith("nothing.")


def test_validation_data_of_a_model_selected_without_them():
    run("fit", "train.txt", *QUICK, "--set", "families=['l1']", "-o", "alone.json")
    refusal = refused("verify", "alone.json", "train.txt", *VALID)
    assert refusal.facts[0] == "valid"
    assert refusal.startswith("verifying alone.json: --valid: ")
