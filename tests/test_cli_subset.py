"""ranksieve subset, and fit with families=subset: tables, pages, models, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.choice.forward import ForwardSearch
from ranksieve.cli.subset import as_sizes
from ranksieve.rankers.best_subset import evaluate_sizes
from ranksieve.report.subset_page import subset_page
from ranksieve.show.sentences import FOLD_SETS, screening_sentences, subset_sentence, tie_sentences
from tests.test_cli import refused, run


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = rs.make_ranking(n_queries=40, n_features=8, n_informative=4, random_state=2)
    rs.io.write_letor(data.select_queries(range(25)), "train.txt")
    rs.io.write_letor(data.select_queries(range(25, 40)), "vali.txt")
    return tmp_path


@pytest.mark.full
def test_table_page_model_and_json_agree(here):
    arguments = ("subset", "train.txt", "--valid", "vali.txt", "--max-features", "1..3")
    result = run(*arguments, "--report", "s.html", "-o", "m.json")
    assert "Proven best: no other set of at most 3 of the 8 features" in result.stdout
    assert "measured on vali.txt and by 5-fold cross-validation" in result.stdout
    assert FOLD_SETS in " ".join(result.stdout.split())
    assert FOLD_SETS in Path("s.html").read_text()
    content = json.loads(run(*arguments, "--json").stdout)
    assert [size["max_features"] for size in content["sizes"]] == [1, 2, 3]
    best = max(content["sizes"], key=lambda size: size["mean"])
    model = rs.load_model("m.json")
    assert {term.name: term.weight for term in model.terms} == best["weights"]
    assert model.certificate["kind"] == "subset"
    assert model.certificate["objective"] == best["objective"]
    page = Path("s.html").read_text()
    for size in content["sizes"]:
        assert ", ".join(size["features"]) in page
        assert f"{size['objective']:.6f}" in page


def test_the_model_ranks_and_exports_like_any_other(here):
    run("subset", "train.txt", "--max-features", "3", "-o", "m.json")
    model, data = rs.load_model("m.json"), rs.io.read_letor("vali.txt")
    ranker = rs.BestSubset(3).fit(rs.io.read_letor("train.txt"))
    assert np.array_equal(model.predict(data), ranker.predict(data))
    run("export", "m.json", "--to", "ranklib", "-o", "ranklib.txt")
    assert "NDCG@10" in run("evaluate", "m.json", "vali.txt").stdout


def test_fit_best_subset(here):
    result = run(
        "fit",
        "train.txt",
        "--set",
        "families=subset",
        "--max-features",
        3,
        "-o",
        "m.json",
        "--report",
        "r.html",
    )
    model = rs.load_model("m.json")
    assert model.certificate["kind"] == "subset"
    assert model.certificate["max_features"] <= 3
    assert "Proven best: no other set of at most" in result.stdout
    assert "Proven best: no other set of at most" in Path("r.html").read_text()
    assert "best subset" in Path("r.html").read_text()
    assert FOLD_SETS in " ".join(result.stdout.split())
    assert FOLD_SETS in Path("r.html").read_text()
    assert FOLD_SETS not in run("fit", "train.txt", "--max-features", 3, "-o", "m.json").stdout


def test_fit_by_method_name(here):
    run("fit", "train.txt", "--method", "bestsubset", "--max-features", 2, "-o", "m.json")
    model = rs.load_model("m.json")
    assert model.method == "BestSubset"
    assert model.certificate["max_features"] == 2


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (["--max-features", "x"], ("max_features", "x")),
        (["--max-features", "0"], ("max_features", "0")),
        (["--max-features", "5..3"], ("max_features", "5..3")),
        (["--max-features", "9"], ("max_features", 9)),
        (["--max-features", "1", "--must-have", "f1,f2"], ("max_features", "1")),
        (["--max-features", "2", "--max-cost", "3"], ("max_cost", 3.0)),
    ],
)
def test_refusals(here, options, facts):
    assert refused("subset", "train.txt", *options).facts == facts


def test_limits_are_part_of_the_proven_claim(here):
    limits = ("--must-have", "f2", "--must-not", "f8", "--signs", "f1=+")
    result = run("subset", "train.txt", "--max-features", "2", *limits, "-o", "limited.json")
    text = " ".join(result.stdout.split())
    sentence = "of the 8 features that includes f2, excludes f8 and has weights f1 ≥ 0 has a"
    assert sentence in text
    assert rs.load_model("limited.json").parameters["must_not"] == ["f8"]
    fitted = run(
        "fit", "train.txt", "--set", "families=subset", "--max-features", "2", *limits, "-o", "chosen.json"
    )
    assert sentence in " ".join(fitted.stdout.split())


def test_parsing_of_sizes():
    assert as_sizes("5") == [5]
    assert as_sizes("1..3,7") == [1, 2, 3, 7]


def subset_size(**changes):
    size = {
        "max_features": 2, "n_features": 7, "objective": 0.5, "bound": 0.49, "root_bound": 0.4, "gap": 0.01,
        "relative_gap": 0.02, "mean": 0.5, "standard_error": 0.01, "n_nodes": 3, "seconds": 1.0, "cost": None,
        "features": ["a<b", "c"], "weights": {"a<b": 1.0, "c": -1.0},
        "never": ["d", "e"], "always": ["c"], "ties": {"c": ["f"]},
    }  # fmt: skip
    return size | changes


def test_texts():
    assert subset_sentence(subset_size(), {}) == (
        "Proven: no other set of at most 2 of the 7 features lowers the training objective by more than 2 %."
    )
    assert "that costs at most 3" in subset_sentence(subset_size(max_cost=3.0), {})
    limits = {"must_not": ["f8"]}
    assert subset_sentence(subset_size(), limits).startswith(
        "Proven: no other set of at most 2 of the 7 features that excludes f8"
    )
    assert "in no better set within these limits: d and e." in screening_sentences(subset_size(), limits)[0]
    assert screening_sentences(subset_size(), {}) == [
        "Proven: 2 features are in no better set: d and e.",
        "Proven: 1 feature is in every better set: c.",
    ]
    assert screening_sentences(subset_size(relative_gap=0.0), {}) == []
    assert tie_sentences(subset_size()) == [
        "c can be replaced by f: within queries they differ only by a factor."
    ]


def test_names_are_escaped_on_the_page():
    content = {
        "n_features": 7, "ridge": 0.1, "pair_weighting": "sqrt", "metric": "ndcg@10", "profile": "standard",
        "chosen": "", "priced": False, "fingerprint": "abc", "sizes": [subset_size()],
        "limits": {"must_not": ["x<y"]},
    }  # fmt: skip
    page = subset_page(content)
    assert "No other set of at most that many features" not in page  # none is proven
    proven = subset_page({**content, "sizes": [subset_size(relative_gap=0.0)]})
    assert "No other set of at most that many features that excludes x&lt;y has a lower" in proven
    assert "no other set of at most 2 of the 7 features that excludes x&lt;y lowers the training" in page
    assert "a&lt;b" in page
    assert "a<b, c" not in page


def test_held_out_values_of_sizes(here):
    train, valid = rs.io.read_letor("train.txt"), rs.io.read_letor("vali.txt")
    rankers = rs.BestSubset().fit_sizes([1, 2], train)
    validation, n_folds = evaluate_sizes(rankers, train, valid, cv=0)
    assert n_folds == 0
    for k, ranker in enumerate(rankers):
        expected = rs.evaluate(ranker.predict(valid), valid, "ndcg@10", "standard").mean["ndcg@10"]
        assert validation.mean[k] == pytest.approx(expected)
    crossed, n_folds = evaluate_sizes(rankers, train)
    assert n_folds == 5
    assert len(crossed.query_ids) == train.n_queries


def test_cross_validation_uses_forward_selection(here, monkeypatch):
    """As reported, the exact search does not run on the folds."""
    train = rs.io.read_letor("train.txt")
    rankers = rs.BestSubset().fit_sizes([1, 2], train)
    n_queries = []

    class Counting(ForwardSearch):
        def path(self, *arguments, **options):
            n_queries.append(np.count_nonzero(self.objective.loss.query_weight))
            return super().path(*arguments, **options)

    monkeypatch.setattr("ranksieve.rankers.best_subset.ForwardSearch", Counting)
    monkeypatch.setattr("ranksieve.subset.SubsetSearch.best", None)
    evaluate_sizes(rankers, train)
    assert (len(n_queries), max(n_queries)) == (5, 20)  # one of the 25 queries has no pairs
