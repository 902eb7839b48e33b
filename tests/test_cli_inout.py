"""The command line with models of other programs, TREC files and feature logs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ranksieve as rs
from tests.test_cli import refused, run

LOG = {
    "rambo": {
        "hits": {
            "hits": [
                {
                    "_id": d,
                    "fields": {"_ltrlog": [{"log_entry1": [{"name": "title", "value": v}, {"name": "x"}]}]},
                }
                for d, v in (("7555", 9.5), ("1370", 2.5), ("new", 1.0))
            ]
        }
    }
}
RANKLIB = "## Coordinate Ascent\n## Restart = 5\n1:1.0 3:-0.5"
TREES = """## LambdaMART
## No. of trees = 1

<ensemble>
	<tree id="1" weight="0.1">
		<split>
			<feature>2 </feature>
			<threshold> 0.5 </threshold>
			<split pos="left">
				<output>-1.0 </output>
			</split>
			<split pos="right">
				<output>1.5 </output>
			</split>
		</split>
	</tree>
</ensemble>
"""


@pytest.fixture(scope="module")
def data():
    return rs.make_ranking(n_queries=20, n_features=4, n_informative=2, random_state=3)


@pytest.fixture
def here(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    rs.io.write_letor(data, "d.txt")
    named = data.replace_features(data.X, ["bm25", "price", "clicks", "age"])
    rs.write_dataset(named, "named.parquet")
    Path("ca.txt").write_text(RANKLIB)
    Path("trees.txt").write_text(TREES)
    rs.FenchelRank(radius=2).fit(data).to_model().save("own.json")
    Path("fast.json").write_text(json.dumps({"Linear": {"weights": [1.0, 0.0, -0.5, 0.0]}}))
    return tmp_path


def mean(stdout):
    return json.loads(stdout)["mean"]


# --- Models of other programs ------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["d.txt", "named.parquet"])
def test_rank_and_evaluate_with_models_of_other_programs(here, data, source):
    expected = data.X[:, 0] - 0.5 * data.X[:, 2]
    ranked = np.array(run("rank", "ca.txt", source).stdout.split(), float)
    np.testing.assert_allclose(ranked, expected, rtol=1e-12)
    np.testing.assert_array_equal(np.array(run("rank", "fast.json", source).stdout.split(), float), ranked)
    trees = np.array(run("rank", "trees.txt", source).stdout.split(), float)
    below = np.float32(data.X[:, 1]) <= 0.5
    np.testing.assert_array_equal(trees, np.where(below, np.float32(-0.1), np.float32(0.15)))
    means = mean(run("evaluate", "trees.txt", source, "--metric", "map", "--json").stdout)
    assert means == rs.evaluate(trees, data, "map").mean


def test_models_of_three_programs_are_compared(here, data):
    files = ["own.json", "ca.txt", "trees.txt", "fast.json"]
    result = json.loads(run("compare", *files, "d.txt", "--json").stdout)
    assert list(result["mean"]) == ["own", "ca", "trees", "fast"]
    assert result["mean"]["ca"] == result["mean"]["fast"]
    assert len(result["rows"]) == 2 * 6
    scores = rs.load_model("own.json").predict(data)
    assert result["mean"]["own"]["map"] == rs.evaluate(scores, data, "map").mean["map"]


def test_scores_and_ranklib_text_are_distinguished(here):
    Path("scores.txt").write_text(run("rank", "ca.txt", "d.txt").stdout)
    result = json.loads(run("compare", "scores.txt", "ca.txt", "d.txt", "--json").stdout)
    assert result["mean"]["scores"] == result["mean"]["ca"]


def test_a_ranklib_model_on_a_narrower_file(here):
    Path("narrow.txt").write_text("## AdaRank\n1:1.0")
    Path("wide.txt").write_text("## AdaRank\n1:1.0 9:5.0")
    assert run("rank", "wide.txt", "d.txt").stdout == run("rank", "narrow.txt", "d.txt").stdout
    refusal = refused("rank", "wide.txt", "named.parquet")
    assert refusal.facts == (None, None)
    assert "feature 9" in refusal.reason


def test_fastrank_numbering_must_be_specified(here, data):
    Path("single.json").write_text(json.dumps({"SingleFeature": {"fid": 2, "dir": 1.0}}))
    refusal = refused("rank", "single.json", "d.txt")
    assert refusal.facts == ("single.json", None)
    assert "--first-feature" in refusal
    for first in (0, 1):
        scores = run("rank", "single.json", "d.txt", "--first-feature", first).stdout.split()
        np.testing.assert_array_equal(np.array(scores, float), data.X[:, 2 - first])


def test_missing_values_are_zero_for_models_of_other_programs(here):
    Path("holes.txt").write_text("1 qid:1 1:2 2:NULL 3:1 4:0\n0 qid:1 1:1 2:1 3:NULL 4:0\n")
    assert run("rank", "ca.txt", "holes.txt").stdout.split() == ["1.5", "1.0"]
    assert run("rank", "trees.txt", "holes.txt").stdout.split() == [
        repr(float(np.float32(-0.1))),
        "0.15000000596046448",
    ]
    assert refused("rank", "ca.txt", "holes.txt", "--missing", "error").facts == ("holes.txt", 1)


def test_damaged_models(here):
    Path("bad.txt").write_text(RANKLIB.replace("3:-0.5", "3:much"))
    refusal = refused("evaluate", "bad.txt", "d.txt")
    assert refusal.facts == ("bad.txt", 3)
    assert "'much'" in refusal.reason
    Path("bad.txt").write_text(TREES.replace("</tree>", ""))
    refusal = refused("compare", "bad.txt", "ca.txt", "d.txt")
    assert refusal.facts == ("bad.txt", 17)
    assert "XML" in refusal.reason


# --- TREC --------------------------------------------------------------------------------------------------


def test_a_run_against_qrels(here, data):
    run("rank", "own.json", "d.txt", "--format", "trec", "-o", "own.run")
    run("rank", "ca.txt", "d.txt", "--format", "trec", "-o", "ca.run")
    rs.io.write_qrels(data, "qrels.txt")
    options = ("--qrels", "qrels.txt", "--metric", "map", "--metric", "ndcg@3", "--json")
    expected = rs.evaluate_run(rs.io.read_run("own.run"), rs.io.read_qrels("qrels.txt"), ["map", "ndcg@3"])
    output = run("evaluate", "own.run", *options, "--per-query").stdout
    assert json.loads(output) == expected.to_dict()
    compared = json.loads(run("compare", "own.run", "ca.run", *options).stdout)
    assert compared["mean"]["own"] == expected.mean
    assert compared["profile"] == "trec"
    words = run("evaluate", "own.run", "--qrels", "qrels.txt").stdout
    assert "20 queries; trec profile." in words


def test_a_run_has_the_same_metrics_as_its_model(here, data):
    """With distinct scores and all documents judged, run and model have the same ranking."""
    run("rank", "own.json", "d.txt", "--format", "trec", "-o", "own.run")
    rs.io.write_qrels(data, "qrels.txt")
    options = ("--metric", "map", "--metric", "ndcg@5", "--metric", "mrr", "--profile", "trec", "--json")
    by_run = mean(run("evaluate", "own.run", "--qrels", "qrels.txt", *options).stdout)
    by_model = mean(run("evaluate", "own.json", "d.txt", *options).stdout)
    assert by_run == pytest.approx(by_model, abs=1e-12)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("evaluate", "r"), "specify either DATA, or --qrels FILE"),
        (("evaluate", "r", "d.txt", "--qrels", "q"), "d.txt:1: the score is "),  # read as a run
        (("evaluate", "--qrels", "q"), "Missing argument 'MODEL'"),
        (("evaluate", "r", "--qrels", "gone"), "gone: "),
    ],
)
def test_refusals(here, args, message):
    assert refused(*args).startswith(message)


@pytest.mark.parametrize("files", [("ca.txt", "d.txt"), ("d.txt",)])
def test_a_comparison_needs_two_rankings(here, files):
    assert refused("compare", *files).facts[0] == "evaluations"


def test_queries_without_results_cause_a_warning(here):
    Path("q").write_text("1 0 a 1\n2 0 b 1\n")
    Path("r").write_text("1 Q0 a 1 0.5 x\n")
    result = run("evaluate", "r", "--qrels", "q", "--metric", "map", "--json")
    assert mean(result.stdout) == {"map": 0.5}
    assert result.stderr == "ranksieve: warning: 1 judged queries have no results; their value is 0\n"


# --- Feature logs ------------------------------------------------------------------------------------------


def test_a_log_becomes_a_data_set(here):
    Path("log.json").write_text(json.dumps(LOG))
    Path("j.csv").write_text("grade,keywords,docId\n4,rambo,7555\n3,rambo,1370\n")
    result = run("convert", "log.json", "train.parquet", "--judgements", "j.csv")
    assert result.stdout == "Wrote 2 documents of 1 queries to train.parquet.\n"
    assert "log.json: 1 logged documents have no judgement and were left out" in result.stderr
    back = rs.read_dataset("train.parquet", missing="keep")
    assert back.feature_names == ("title", "x")
    assert list(back.doc_ids) == ["7555", "1370"]
    run("convert", "log.json", "all.txt", "--judgements", "j.csv", "--unjudged", "zero", "--missing", "zero")
    assert rs.read_dataset("all.txt").y.tolist() == [4, 3, 0]


def test_a_feature_log_needs_its_options(here):
    Path("log.json").write_text(json.dumps(LOG))
    refusal = refused("convert", "log.json", "t.txt")
    assert refusal.facts == ("log.json", None)
    assert "--judgements" in refusal
    assert refused("convert", "d.txt", "t.txt", "--judgements", "j").facts == ("judgements", "j")
    Path("j").write_text("1 0 7555 4\n")
    refusal = refused("convert", "log.json", "t.txt", "--judgements", "j", "--entry", "nope")
    assert refusal.facts == ("log.json", None)
    assert "log_entry1" in refusal.reason
    assert refused("convert", "log.json", "j", "--judgements", "j").facts == ("j", None)
    assert not Path("t.txt").exists()
