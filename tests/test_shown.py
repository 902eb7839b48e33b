"""Results print themselves: one line, text, HTML and data frames."""

from __future__ import annotations

import contextlib
import io
import re

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.cli.fit_output import Outcome, show
from ranksieve.show.fit import selection_text
from ranksieve.show.result import Shown, Summary, Table, as_html, as_text

MAX_REPR, MAX_HTML = 3_000, 60_000


@pytest.fixture(scope="module")
def data():
    return rs.make_ranking(n_queries=40, n_features=30, n_informative=5, random_state=0)


@pytest.fixture(scope="module")
def ranker(data):
    return rs.SparseRanker(5).fit(data)


@pytest.fixture(scope="module")
def results(data, ranker, tmp_path_factory):
    """One of each kind of result."""
    model = ranker.to_model()
    evaluation = rs.evaluate(ranker, data, ["ndcg@10", "map"])
    other = rs.evaluate(model, data, ["ndcg@10", "map"])
    curves = rs.SparseRanker(3, shape="curves").fit(data)
    refitted = rs.SparseRanker(5).fit(data, previous=model)
    subset = rs.BestSubset(2, max_nodes=20).fit(data)
    out = tmp_path_factory.mktemp("bench")
    return {
        "model": model,
        "model of curves": curves.to_model(),
        "scorecard": rs.make_scorecard(model, data),
        "dense model": rs.RankSVM().fit(data).to_model(),
        "boosted model": rs.baselines.RankBoost(n_rounds=5).fit(data).to_model(),
        "choice": ranker.choice_,
        "choice of curves": curves.choice_,
        "evaluation": evaluation,
        "comparison": rs.compare({"a": evaluation, "b": other}),
        "comparison of many": rs.compare(
            {f"ranking {k}": one for k, one in enumerate([evaluation, other] * 8)}
        ),
        "frontier": rs.frontier(data),
        "path": rs.sparse_path(data),
        "subset": subset.subset_,
        "verification": rs.verify(model, data, refit=False),
        "query": rs.explain_query(model, data, data.qid[0]),
        "pair": rs.explain_pair(model, data, 0, 1),
        "importances": rs.feature_importance(model, data),
        "worst": rs.worst_queries(model, data),
        "inspection": rs.inspect_features(data),
        "changes": refitted.changes_,
        "bench": rs.bench({"toy": rs.deal_folds(data, 3)}, ["ranksvm"], out=out, grid="fast"),
    }


def test_every_result_is_one_short_line_and_a_table_of_limited_size(results):
    for name, result in results.items():
        assert isinstance(result, Shown), name
        line, html = repr(result), result._repr_html_()
        assert "\n" not in line, name
        assert len(line) <= MAX_REPR, name
        assert "<table>" in html or name in ("boosted model", "worst"), name
        assert len(html) <= MAX_HTML, name
        assert str(result).strip(), name
        assert len(result.to_frame()) > 0, name


def test_no_fitted_attribute_dumps_itself(data):
    rankers = [
        rs.SparseRanker(5, feature_costs=dict.fromkeys(data.feature_names, 1.0)).fit(data),
        rs.SparseRanker(5, shape="curves").fit(data),
        rs.RankSVM(missing="indicator", normalise="z").fit(data),
        rs.GridRanker("rankrls", 5, parameters={"alpha": 0.01}).fit(data),
        rs.BestSubset(2, max_nodes=20).fit(data),
    ]
    for ranker in rankers:
        for name, value in vars(ranker).items():
            if not isinstance(value, np.ndarray):
                assert len(repr(value)) <= MAX_REPR, name


def test_a_ranker_is_one_line_before_and_after_the_fit(ranker):
    assert repr(ranker) == "SparseRanker(max_features=5)"
    assert str(rs.SparseRanker(5)) == "SparseRanker(max_features=5)"


@pytest.mark.parametrize(
    "make",
    [
        lambda data: rs.SparseRanker(5).fit(data),
        lambda data: rs.SparseRanker(5).fit(data, valid=data.select_queries(range(10))),
        lambda data: rs.SparseRanker(3, shape="curves").fit(data),
        lambda data: rs.SparseRanker(3, profile="letor").fit(data),
        lambda data: rs.GridRanker("rankrls", 5, parameters={"alpha": 0.01}).fit(data),
        lambda data: rs.RankSVM().fit(data),
        lambda data: rs.baselines.RankBoost(n_rounds=5).fit(data),
    ],
    ids=["folds", "valid", "curves", "letor", "grid", "no selection", "boosted"],
)
@pytest.mark.filterwarnings("ignore")
def test_the_summary_is_what_the_command_line_prints(make, data):
    ranker = make(data)
    model = ranker.to_model()
    valid = "the validation data" if "valid" in model.data else None
    short = "\n".join(line for line in str(ranker).splitlines() if "fewer than" in line)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        show(Outcome(ranker, model, selection_text(ranker, valid), short), None, {})
    assert f"{ranker.summary()}\n" == printed.getvalue()
    assert str(ranker) == str(ranker.summary()) == repr(ranker.summary())


def test_lists_that_are_too_short_are_reported(data):
    assert "fewer than 10 documents" in str(rs.SparseRanker(3, profile="letor").fit(data))
    assert "fewer than" not in str(rs.SparseRanker(3).fit(data))


def test_a_refit_shows_what_changed(data, ranker):
    refitted = rs.SparseRanker(5).fit(data, previous=ranker.to_model())
    assert "Changes since the previous model" in str(refitted)


def test_notebooks_show_the_diagram_and_then_the_summary(ranker):
    html = ranker._repr_html_()
    bundle = ranker._repr_mimebundle_()["text/html"]
    assert re.sub("-id-[0-9]+", "", html) == re.sub("-id-[0-9]+", "", bundle)
    assert html.count("Held-out NDCG@10") == 1
    assert html.index("sk-container") < html.index("Held-out NDCG@10") < html.index("<table>")
    assert len(html) <= MAX_HTML
    assert "Held-out" not in rs.SparseRanker(5)._repr_html_()
    assert ranker._repr_mimebundle_()["text/plain"] == repr(ranker)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_frames_come_from_the_library_that_is_there(data, name, monkeypatch):
    pytest.importorskip(name)
    ranker = rs.SparseRanker(5, shape="linear").fit(data)
    other = {"pandas": "polars", "polars": "pandas"}[name]
    monkeypatch.setattr("sys.modules", {k: v for k, v in __import__("sys").modules.items() if k != other})
    frame = ranker.summary().to_frame()
    assert type(frame).__module__.startswith(name)
    assert list(frame.columns) == ["feature", "weight", "selected"]
    weights = dict(zip(ranker.coef_names_, ranker.coef_, strict=True))
    assert dict(zip(frame["feature"], frame["weight"], strict=True)) == {
        term.name: weights[term.name] for term in ranker.to_model().terms
    }


def test_without_pandas_and_polars_the_extra_is_named(ranker, monkeypatch):
    kept = {name: one for name, one in __import__("sys").modules.items() if name not in ("pandas", "polars")}
    monkeypatch.setattr("sys.modules", kept)
    monkeypatch.setattr("ranksieve.show.result.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=re.escape(".[frames]")):
        ranker.summary().to_frame()


def test_html_is_escaped_and_long_tables_are_cut():
    parts = ["a < b", Table(["<x>"], [["<script>"]] * 5000, "t & u")]
    html = as_html(parts)
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "t &amp; u" in html
    assert "more rows" in html
    assert len(html) <= MAX_HTML
    assert as_text(parts).count("<script>") == 5000


def test_a_summary_shows_text_at_the_prompt_and_html_in_notebooks():
    summary = Summary(["one", Table(["n"], [[1.23456]])], {"n": [1.23456]})
    assert repr(summary).startswith("one\n")
    assert "1.235" in repr(summary)
    assert "<p>one</p>" in summary._repr_html_()
    assert summary.to_frame()["n"].to_list() == [1.23456]


def test_the_model_card_has_data_metric_interval_proof_and_limits(data, ranker, results):
    card = ranker.model_card(data)
    sections = re.findall(r"^## (\w+)$", card, flags=re.M)
    assert sections == ["Model", "Data", "Quality", "Features", "Proof", "Limits"]
    confidence = ranker.choice_.confidence
    assert f"95 % CI {confidence.low:.4f} to {confidence.high:.4f}" in card
    assert ranker.to_model().data["train"] in card
    assert "Test NDCG@10: " in card
    assert "Proven: " in card
    assert all(f"| {name} |" in card for name in ranker.to_model().names)
    assert "| points |" in results["scorecard"].model_card()
    unproven = rs.baselines.AdaRank(n_rounds=3).fit(data).model_card()
    assert "Nothing is proven about the weights." in unproven
    named = rs.Dataset(data.X[:, :2], data.y, data.qid, ["<b>a|b", "plain"])
    escaped = rs.RankSVM().fit(named).model_card()
    assert "<b>" not in escaped
    assert "a\\|b" in escaped


def test_weights_are_per_unit_of_the_data_and_scaled_on_request(data):
    raw = rs.Dataset(data.X * 1000.0, data.y, data.qid)
    ranker = rs.RankSVM(normalise="z").fit(raw)
    folded = ranker.to_model().folded()
    frame = ranker.summary().to_frame()
    weights = dict(zip(folded.names, folded.weights, strict=True))
    assert [weights[name] for name in frame["feature"]] == list(frame["weight"])
    sizes = [abs(weight) for weight in frame["scaled_weight"]]
    assert sizes == sorted(sizes, reverse=True)
    top = frame["feature"][0]
    shown = re.search(rf"^ {top} +(\S+)", str(ranker.summary()), flags=re.M)[1]
    assert float(shown) == pytest.approx(weights[top], rel=1e-4)
    scaled = ranker.summary(scaled=True)
    assert "scaled weight" in str(scaled)
    assert "scaled weight" not in str(ranker.summary())
    per_query = rs.RankSVM(normalise="query_z").fit(raw)
    assert "scaled weight" in str(per_query)


def test_a_refit_shows_both_tables_in_one_unit(data):
    raw = rs.Dataset(data.X * 1000.0, data.y, data.qid)
    first = rs.SparseRanker(3, normalise="z").fit(raw)
    text = str(rs.SparseRanker(3, normalise="z").fit(raw, previous=first.to_model()))
    model, changes = text.split("Changes since the previous model")
    rows = dict(re.findall(r"^ (f\d+) +([+-]\S+) +\d+ %", model, flags=re.M))
    assert rows
    for name, weight in rows.items():
        assert re.search(rf"^ {name} .*{re.escape(weight)}", changes, flags=re.M), name
