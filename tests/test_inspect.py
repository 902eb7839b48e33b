"""Figures of features against brute force, near-duplicates, remarks, the command and its page."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from papers.studies.any_data import single_features

import ranksieve as rs
from ranksieve import inspection
from ranksieve.data.dataset import Dataset
from ranksieve.report.calls import feature_strength
from ranksieve.report.inspect_page import remarks
from tests.conftest import random_dataset
from tests.refusals import refused_parameter
from tests.test_cli import refused, run

HOSTILE = "<b>price</b> & 'x'"


@pytest.fixture
def faulty():
    """Data with one potential problem of each kind."""
    data = random_dataset(seed=5, n_queries=30, n_features=2, longest=20)
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            data.X,
            -3 * data.X[:, 0] + 1e-3 * rng.normal(size=data.n_docs) + data.qid,
            data.y * 2 + 1,
            data.qid,
            1e6 * rng.normal(size=data.n_docs),
            np.where(rng.random(data.n_docs) < 0.4, np.nan, rng.random(data.n_docs)),
            np.full(data.n_docs, np.nan),
            rng.normal(size=data.n_docs),
        ]
    )
    X[0, 8] = np.inf
    names = ["a", "b", "not_a", "answer", "length", "budget", HOSTILE, "never", "odd"]
    return Dataset(X, data.y, data.qid, names, texts={"title": ["t"] * data.n_docs})


def test_a_feature_alone_has_one_value_everywhere():
    data = rs.make_ranking(n_queries=30, n_features=6, n_informative=3, random_state=1)
    X = np.round(data.X, 1) * [1, 1, 1, -1, 1, 1]  # equal values, and one that is better downwards
    data = Dataset(X, data.y, data.qid, profile="letor")
    inspected = [one.metric for one in rs.inspect_features(data, profile="letor").features]
    ranker = rs.SparseRanker(3, n_alphas=8, cv=2, profile="letor").fit(data)
    assert feature_strength(ranker, data).strength == pytest.approx(inspected)
    fold = SimpleNamespace(test=data)
    assert single_features(fold, "letor")["alone"] == pytest.approx(inspected)
    evaluated = rs.evaluate(-X[:, 3], data, "ndcg@10", "letor", ties="mean").mean["ndcg@10"]
    assert inspected[3] == pytest.approx(evaluated)
    assert rs.evaluate(-X[:, 3], data, "ndcg@10", "letor", ties="order").mean["ndcg@10"] != evaluated


def within(x, qid):
    return x - np.array([np.mean(x[qid == query]) for query in qid])


def test_figures_of_each_feature(faulty):
    features = {one.name: one for one in rs.inspect_features(faulty).features}
    x, qid = faulty.X[:, 0], faulty.qid
    one = features["a"]
    assert [one.minimum, one.median, one.maximum] == [x.min(), np.median(x), x.max()]
    assert [one.lower_quartile, one.upper_quartile] == np.quantile(x, [0.25, 0.75]).tolist()
    assert one.deviation == pytest.approx(np.sqrt(np.mean(within(x, qid) ** 2)), rel=1e-12)
    assert (one.missing, one.zeros, one.constant, one.n_infinite) == (0.0, 0.0, False, 0)
    assert sum(one.histogram) == faulty.n_docs
    holes = features[HOSTILE]
    assert holes.missing == np.isnan(faulty.X[:, 6]).mean()
    assert holes.median == np.nanmedian(faulty.X[:, 6])
    assert features["never"].median is None
    assert (features["never"].constant, features["never"].histogram) == (True, ())
    assert (features["odd"].n_infinite, features["odd"].maximum) == (1, faulty.X[1:, 8].max())
    assert features["length"].constant_within_queries
    assert (features["length"].metric, features["length"].deviation) == (0.0, 0.0)


def test_single_features_are_evaluated_in_both_directions(faulty):
    inspection_result = rs.inspect_features(faulty, "ndcg@5", "standard")
    for j in (0, 2, 3):
        values = [rs.evaluate(sign * faulty.X[:, j], faulty, "ndcg@5").mean["ndcg@5"] for sign in (1, -1)]
        assert inspection_result.features[j].metric == pytest.approx(max(values), rel=1e-12)
        assert inspection_result.features[j].direction == (1 if values[0] >= values[1] else -1)
    assert inspection_result.features[3].metric == inspection_result.ideal
    assert 0 < inspection_result.chance < inspection_result.ideal


def test_near_duplicates(faulty):
    (group,) = rs.inspect_features(faulty).alike
    assert group.features == ("a", "not_a")
    z, w = (within(faulty.X[:, j], faulty.qid) for j in (0, 2))
    assert group.correlation == pytest.approx(abs(np.corrcoef(z, w)[0, 1]), rel=1e-9)
    assert rs.inspect_features(faulty, least_correlation=1.0).alike == ()


def test_the_same_figures_from_sparse_data_and_from_disk(tmp_path, monkeypatch):
    data = random_dataset(seed=2, n_queries=12, n_features=4)
    data.X[np.abs(data.X) < 0.4] = 0.0
    expected = rs.inspect_features(data)
    monkeypatch.setattr(inspection, "PRODUCT_ROWS", 7)
    stored = rs.io.convert_dataset(data, tmp_path / "d.ranksieve")
    for other in (data.replace_features(sp.csr_array(data.X)), stored):
        result = rs.inspect_features(other)
        assert result.features == expected.features
        assert result.list_lengths == expected.list_lengths


def test_list_lengths(small):
    lengths = rs.inspect_features(small).list_lengths
    sizes = small.queries.sizes
    assert sum(count for *_, count in lengths) == len(sizes)
    for first, last, count in lengths:
        assert count == np.sum((sizes >= first) & (sizes <= last))


def test_nothing_to_compare():
    result = rs.inspect_features(Dataset([[1.0], [1.0]], [0, 1], [1, 1]))
    assert result.alike == ()
    assert result.features[0].constant


# --- Remarks -----------------------------------------------------------------------------------------------


def test_remarks(faulty):
    sentences = remarks(rs.describe(faulty), rs.inspect_features(faulty), ["title"])
    starts = [
        "answer alone has NDCG@10 0.9",
        "1 value is infinite, in odd: fit refuses them.",
        "13 % of the queries have only one label",
        "never is missing in every row.",
        f"{100 * np.isnan(faulty.X[:, 6]).mean():.0f} % of {HOSTILE} is missing: fit fills them with means",
        "Scales differ ",
        "length is the same for all documents of a query and cannot change a ranking.",
        "a and not_a rank nearly the same: |correlation| within queries 1.000.",
        "Text columns, not used as features: title.",
    ]
    assert [sentence[: len(start)] for sentence, start in zip(sentences, starts, strict=True)] == starts


@pytest.mark.parametrize(
    ("X", "y", "qid", "beginning"),
    [
        ([[1.0], [2.0]], [1, 1], [1, 1], "No query has documents with different labels"),
        ([[1.0], [2.0], [3.0]], [1, 0, 1], [1, 1, 2], "50 % of the queries have only one label"),
        ([[1.0], [2.0], [3.0]], [1, 1, 0], [1, 2, 1], "1 query has rows of other queries in between"),
        ([[1.0], [2.0]], [-1, 1], [1, 1], "The lowest label is -1"),
        ([[float(i)] for i in range(70)], list(range(70)), [1] * 70, "The labels have 70 different values"),
        (
            [[1.0, 1.0], [2.0, 2.0]],
            [0, 1],
            [1, 1],
            "f1 and f2 are equal in every row; one of them",
        ),
    ],
)
def test_other_remarks(X, y, qid, beginning):
    data = Dataset(X, y, qid)
    assert any(
        sentence.startswith(beginning) for sentence in remarks(rs.describe(data), rs.inspect_features(data))
    )


def test_labels_that_cannot_be_measured():
    result = rs.inspect_features(Dataset([[1.0], [2.0]], [-1, 1], [1, 1]))
    assert (result.chance, result.ideal, result.features[0].metric) == (None, None, 0.0)
    assert not result.features[0].constant_within_queries
    with refused_parameter("metric", "ndgc"):
        rs.inspect_features(random_dataset(), "ndgc@10")


def test_no_remarks_on_data_without_problems():
    data = rs.make_ranking(n_queries=20, n_features=5, n_informative=2, random_state=0)
    assert remarks(rs.describe(data), rs.inspect_features(data)) == []


# --- The command and its page ------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch, faulty):
    monkeypatch.chdir(tmp_path)
    rs.write_dataset(faulty, "d.parquet")


def test_the_command(here):
    text = run("inspect", "d.parquet").stdout
    assert text.startswith("- answer alone has NDCG@10")
    lines = text.splitlines()
    first = next(k for k, line in enumerate(lines) if line.lstrip().startswith("feature "))
    names = [line.split("  ")[0].strip() for line in lines[first + 2 : first + 11]]
    assert names[0] == "answer"
    assert set(names) == {"a", "b", "not_a", "answer", "length", "budget", HOSTILE, "never", "odd"}
    short = run("inspect", "d.parquet", "--top", 2).stdout
    assert "The other 7 features are not shown." in short
    assert "budget  " not in short.splitlines()[-6]


def test_json(here, faulty):
    content = json.loads(run("inspect", "d.parquet", "--json").stdout)
    assert content["texts"] == ["title"]
    assert [one["name"] for one in content["features"]] == list(faulty.feature_names)
    assert content["alike"][0]["features"] == ["a", "not_a"]
    assert content["n_infinite"] == 1


def test_the_page(here):
    assert run("inspect", "d.parquet", "--report", "page.html").stdout.endswith("Wrote page.html.\n")
    page = Path("page.html").read_text()
    assert "Contents of d.parquet" in page
    assert "<b>price</b>" not in page
    assert "&lt;b&gt;price&lt;/b&gt; &amp; &#39;x&#39;" in page
    assert page.count("<svg") == 8  # a histogram for each feature that has values
    assert len(page) < 200_000
    assert "http:" not in page.replace("http://www.w3.org/2000/svg", "")


def test_refusals_of_the_command(here):
    assert refused("inspect", "d.parquet", "--report", "gone/page.html").facts == ("gone/page.html", None)
