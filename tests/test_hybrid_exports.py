"""Exports of hybrid searches: the arithmetic of each engine ranks 1,000 lists as the model does."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from ranksieve.data.dataset import Dataset
from ranksieve.export import export_model
from ranksieve.model.linear import LinearModel, Term
from ranksieve.rankers.hybrid import ENGINES, preparation_of
from tests import hybrid_readers
from tests.refusals import refused_data

N_LISTS, N_CLAUSES = 1000, 4
WEIGHTS = (0.4, 0.3, 0.2, 0.1)
NAMES = tuple(f"c{j}" for j in range(N_CLAUSES))


def lists(seed=0, ties=True):
    """Result lists of 2 to 12 documents: some not returned by a clause, some with equal scores."""
    rng = np.random.default_rng(seed)
    for _ in range(N_LISTS):
        n = int(rng.integers(2, 13))
        scores = rng.gamma(2.0, 3.0, (n, N_CLAUSES)) + 0.1
        if ties:
            scores = np.where(rng.random((n, N_CLAUSES)) < 0.4, np.ceil(scores), scores)
        scores[rng.random((n, N_CLAUSES)) < 0.3] = np.nan
        alone = np.isnan(scores).all(axis=1)
        scores[alone, 0] = rng.random(int(alone.sum())) + 1.0
        yield scores.astype(np.float32).astype(np.float64)


def model_of(kind, weights=WEIGHTS):
    terms = tuple(Term(name, j, weight) for j, (name, weight) in enumerate(zip(NAMES, weights, strict=True)))
    return LinearModel(terms, N_CLAUSES, preparation=preparation_of(kind), method="HybridRanker")


def scores_of(model, scores):
    return model.predict(Dataset(scores, np.zeros(len(scores)), np.zeros(len(scores), dtype=int), NAMES))


def columns_of(scores, names=NAMES):
    return {name: scores[:, j] for j, name in enumerate(names)}


def assert_same_order(ours, theirs, rounding):
    """Documents whose scores differ by more than the rounding are in the same order."""
    order = np.argsort(-ours, kind="stable")
    a, b = ours[order], theirs[order]
    assert (np.diff(b) <= rounding).all()
    apart = -np.diff(a) > rounding
    assert (np.diff(b)[apart] < 0).all()


def z_rounding(kind, scores):
    """Bound of the error of float32 z-scores: the mean is rounded, which a small deviation magnifies."""
    if not kind.startswith("list_z"):
        return 0.0
    magnified = []
    for column in scores.T:
        returned = column[~np.isnan(column)]
        deviation = returned.std() if len(returned) else 0.0
        magnified.append(np.abs(returned).max() / deviation if deviation > 0 else 0.0)
    return float(np.array(WEIGHTS) @ magnified) * 16 * 2.0**-24


ENGINE_KINDS = [
    ("elasticsearch_linear", kind, hybrid_readers.linear_retriever) for kind in ENGINES["elasticsearch"]
] + [("opensearch_hybrid", kind, hybrid_readers.opensearch_hybrid) for kind in ENGINES["opensearch"]]
ENGINE_KINDS += [
    *(("esql", kind, hybrid_readers.esql) for kind in ("none", *ENGINES["elasticsearch"][-2:])),
    ("milvus", "none", hybrid_readers.milvus),
]
BY_SCORE = [one for one in ENGINE_KINDS if not one[1].startswith("reciprocal")]
BY_RANK = [one for one in ENGINE_KINDS if one[1].startswith("reciprocal")]


@pytest.mark.parametrize(("target", "kind", "reader"), BY_SCORE)
def test_scores_of_every_list(target, kind, reader, tmp_path):
    model = model_of(kind)
    export_model(model, target, tmp_path / "out")
    for scores in lists():
        ours, theirs = scores_of(model, scores), reader(tmp_path / "out", columns_of(scores))
        rounding = 1e-6 * max(1.0, float(np.abs(ours).max())) + z_rounding(kind, scores)
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=rounding)
        assert_same_order(ours, theirs, rounding)


@pytest.mark.parametrize(("target", "kind", "reader"), BY_RANK)
def test_reciprocal_ranks_without_ties(target, kind, reader, tmp_path):
    model = model_of(kind)
    export_model(model, target, tmp_path / "out")
    for scores in lists(ties=False):
        ours, theirs = scores_of(model, scores), reader(tmp_path / "out", columns_of(scores))
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-7)
        assert_same_order(ours, theirs, 1e-7)


def test_equal_weights_of_reciprocal_ranks_need_no_weights_in_opensearch(tmp_path):
    """Versions before 3.1 reject weights."""
    model = model_of("reciprocal_rank@60", (0.5,) * N_CLAUSES)
    result = export_model(model, "opensearch_hybrid", tmp_path / "out")
    assert "weights" not in (tmp_path / "out" / "pipeline.json").read_text()
    assert "the model's divided by 0.5, the weight of each clause" in result.notes[-1]
    for scores in list(lists(ties=False))[:100]:
        theirs = hybrid_readers.opensearch_hybrid(tmp_path / "out", columns_of(scores))
        np.testing.assert_allclose(0.5 * theirs, scores_of(model, scores), rtol=0, atol=1e-7)


@pytest.mark.parametrize(("target", "kind", "reader"), BY_RANK)
def test_reciprocal_ranks_with_ties_are_the_mean_over_the_orders_of_the_index(target, kind, reader, tmp_path):
    """Over all rotations of the index each of m tied documents has each of the m ranks equally often."""
    model = model_of(kind)
    export_model(model, target, tmp_path / "out")
    for scores in list(lists())[:100]:
        totals = []
        for j in range(N_CLAUSES):  # one clause at a time: its tied documents rotate among their places
            alone = np.full_like(scores, np.nan)
            alone[:, j] = scores[:, j]
            totals.append(_mean_over_rotations(reader, tmp_path / "out", alone, j))
        mean = np.sum(totals, axis=0)
        np.testing.assert_allclose(scores_of(model, scores), mean, rtol=0, atol=1e-7)


def _mean_over_rotations(reader, folder, scores, clause):
    groups = [np.flatnonzero(scores[:, clause] == value) for value in np.unique(scores[:, clause])]
    groups = [group for group in groups if len(group)]
    rounds = int(np.lcm.reduce([len(group) for group in groups])) if groups else 1
    total = np.zeros(len(scores))
    for turn in range(rounds):
        order = np.arange(len(scores))  # document at each place of the index
        for group in groups:
            order[group] = np.roll(group, turn)
        result = reader(folder, columns_of(scores[order]))
        total[order] += result
    return total / rounds


@pytest.mark.parametrize("kind", ENGINES["vespa"])
def test_vespa_with_weights_as_parameters(kind, tmp_path):
    model, features = model_of(kind), [f"bm25({name})" for name in NAMES]
    names = dict(zip(NAMES, features, strict=True))
    export_model(model, "vespa_global_phase", tmp_path / "out", names=names)
    for scores in lists(ties=kind == "none"):
        theirs = hybrid_readers.vespa_weights(tmp_path / "out", columns_of(scores, features))
        ours = scores_of(model, scores)
        np.testing.assert_allclose(theirs, ours, rtol=1e-12)
        assert_same_order(ours, theirs, 1e-12)


def test_esql_gives_0_where_all_scores_of_a_list_are_equal(tmp_path):
    model = model_of("list_min_max")
    notes = export_model(model, "esql", tmp_path / "out").notes
    assert "Where all scores of a list are equal, FUSE gives 0 instead of 1." in notes
    for scores in lists():
        ours = scores_of(model, scores)
        for j, weight in enumerate(WEIGHTS):
            returned = ~np.isnan(scores[:, j])
            if returned.any() and np.ptp(scores[returned, j]) == 0:
                ours[returned] -= weight
        theirs = hybrid_readers.esql(tmp_path / "out", columns_of(scores))
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-7)
        assert_same_order(ours, theirs, 1e-7)


def test_esql_of_eight_clauses_at_most_and_of_one(tmp_path):
    terms = tuple(Term(f"c{j}", j, 0.1) for j in range(9))
    model = LinearModel(terms, 9, preparation=preparation_of("none"), method="HybridRanker")
    with refused_data() as refusal:
        export_model(model, "esql", tmp_path / "out")
    assert "at most 8 branches" in str(refusal.value)
    single = replace(model, terms=terms[:1], n_features=1, preparation=preparation_of("reciprocal_rank@60"))
    notes = export_model(single, "esql", tmp_path / "one").notes
    assert "The scores of the only clause are not normalised." in notes[-1]
    scores = hybrid_readers.esql(tmp_path / "one", {"c0": np.array([1.0, np.nan, 3.0])})
    assert scores.tolist() == [0.1 * 1.0, 0.0, 0.1 * 3.0]


def test_conditions_and_searches_of_the_user(tmp_path):
    model = model_of("none")
    conditions = {name: {"where": f"MATCH({name}, ?words) AND stock > 0"} for name in NAMES}
    result = export_model(model, "esql", tmp_path / "esql", featureset=conditions)
    query = json.loads(result.files[0].read_text())["query"]
    assert "(WHERE MATCH(c1, ?words) AND stock > 0 | SORT _score DESC | LIMIT 100)" in query
    with refused_data() as refusal:
        export_model(model, "esql", tmp_path / "bad", featureset={**conditions, "c2": {"match": "c2"}})
    assert "is not a condition" in str(refusal.value)
    searches = {name: {"annsField": f"{name}_vector", "data": ["shoes"]} for name in NAMES}
    result = export_model(model, "milvus", tmp_path / "milvus", featureset=searches, window=30)
    (first, *_) = json.loads(result.files[0].read_text())["search"]
    assert first == {"annsField": "c0_vector", "data": ["shoes"], "limit": 30}


def test_milvus_weights_are_at_most_1(tmp_path):
    model = model_of("none", (4.0, 3.0, 2.0, 1.0))
    notes = export_model(model, "milvus", tmp_path / "out").notes
    assert "Scores are the model's divided by 4, because weights must not exceed 1." in notes
    for scores in list(lists())[:100]:
        theirs = 4.0 * hybrid_readers.milvus(tmp_path / "out", columns_of(scores)).astype(np.float64)
        np.testing.assert_allclose(theirs, scores_of(model, scores), rtol=1e-6)


def test_redis_combines_a_text_search_and_a_vector_search(tmp_path):
    two = model_of("none", (0.7, 0.3, 0.0, 0.0))
    model = replace(two, terms=two.terms[:2])
    export_model(model, "redis", tmp_path / "out")
    for scores in lists():
        theirs = hybrid_readers.redis(tmp_path / "out", columns_of(scores))
        ours = scores_of(model, scores)
        np.testing.assert_allclose(theirs, ours, rtol=1e-7, atol=1e-7)
        assert_same_order(ours, theirs, 1e-6)
    queries = {"c0": {"vsim": "@embedding"}, "c1": {"search": '@title:("red \\"shoes")'}}
    result = export_model(model, "redis", tmp_path / "queries", featureset=queries)
    text = result.files[0].read_text()
    assert 'SEARCH "@title:(\\"red \\\\\\"shoes\\")"' in text
    assert 'VSIM "@embedding" $vector' in text
    assert "ALPHA 0.3 BETA 0.7" in text
    with refused_data() as refusal:
        export_model(model, "redis", tmp_path / "both", featureset={one: {"vsim": "@v"} for one in queries})
    assert "one text search and one vector search" in str(refusal.value)
    with refused_data() as refusal:
        export_model(model_of("none"), "redis", tmp_path / "four")
    assert "the model uses 4 features" in str(refusal.value)


def test_qdrant_numbers_the_searches(tmp_path):
    model = model_of("none")
    result = export_model(model, "qdrant", tmp_path / "out")
    assert "$score[1] is c1" in " ".join(result.notes)
    searches = [f"$score[{j}]" for j in range(N_CLAUSES)]
    for scores in lists():
        theirs = hybrid_readers.qdrant(tmp_path / "out", columns_of(scores, searches))
        np.testing.assert_allclose(theirs, scores_of(model, scores), rtol=1e-12)


def test_mongodb_averages_over_the_clauses(tmp_path):
    model = model_of("none")
    export_model(model, "mongodb", tmp_path / "out")
    for scores in lists():
        theirs = hybrid_readers.mongodb(tmp_path / "out", columns_of(scores)) * N_CLAUSES
        np.testing.assert_allclose(theirs, scores_of(model, scores), rtol=1e-6)


def test_qdrant_with_a_document_feature(tmp_path):
    export_model(model_of("none"), "qdrant", tmp_path / "out", names={"c0": "recency"})
    columns = ["recency", "$score[0]", "$score[1]", "$score[2]"]
    for scores in list(lists())[:50]:
        theirs = hybrid_readers.qdrant(tmp_path / "out", columns_of(scores, columns))
        np.testing.assert_allclose(theirs, scores_of(model_of("none"), scores), rtol=1e-12)


@pytest.mark.parametrize("kind", [*ENGINES["sql"], "reciprocal@60"])
def test_sql_in_sqlite(kind, tmp_path):
    model = model_of(kind)
    export_model(model, "sql_hybrid", tmp_path / "hybrid.sql")
    for scores in lists():
        if kind == "reciprocal@60":
            scores = np.ceil(scores)
        theirs = hybrid_readers.sql_hybrid(tmp_path / "hybrid.sql", columns_of(scores))
        ours = scores_of(model, scores)
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-10)
        assert_same_order(ours, theirs, 1e-10)


REFUSED = {
    ("elasticsearch_linear", "list_z"): "list_min_max",
    ("elasticsearch_linear", "list_z@opensearch"): "list_min_max",
    ("opensearch_hybrid", "list_z"): "list_min_max",
    ("qdrant", "list_min_max"): "none",
    ("qdrant", "reciprocal_rank@60"): "none",
    ("mongodb", "list_l2"): "list_min_max",
    ("esql", "list_l2"): "list_min_max",
    ("milvus", "list_min_max"): "none",
    ("milvus", "reciprocal_rank@60"): "none",
    ("redis", "reciprocal_rank@60"): "none",
    ("sql_hybrid", "list_min_max@opensearch"): "list_min_max",
    ("vespa_global_phase", "list_min_max"): "none",
    ("solr", "reciprocal@60"): "none",
}


@pytest.mark.parametrize(("target", "kind"), REFUSED)
def test_a_refusal_names_the_nearest_normalisation_and_its_loss(target, kind, tmp_path):
    title, nearest = "held-out ndcg@10 (standard)", REFUSED[target, kind]
    values = {kind: 0.5, "none": 0.45, **({} if kind == "list_min_max" else {"list_min_max": 0.48})}
    metrics = {title: 0.5} | {f"{title} with {one}": value for one, value in values.items()}
    with refused_data() as refusal:
        export_model(replace(model_of(kind), metrics=metrics), target, tmp_path / "out")
    message = str(refusal.value)
    assert f"combines result lists by {kind}" in message
    assert f"normalise={nearest!r}, {title} {values[nearest]:.4f} instead of 0.5000" in message
    assert not (tmp_path / "out").exists()


def test_opensearch_accepts_five_clauses(tmp_path):
    names = [f"c{j}" for j in range(6)]
    terms = tuple(Term(name, j, 0.1) for j, name in enumerate(names))
    model = LinearModel(terms, 6, preparation=preparation_of("reciprocal_rank@60"), method="HybridRanker")
    with refused_data() as refusal:
        export_model(model, "opensearch_hybrid", tmp_path / "out")
    assert "at most 5 sub-queries" in str(refusal.value)


def test_negative_weights_are_refused(tmp_path):
    model = model_of("list_l2", (0.4, -0.3, 0.2, 0.1))
    with refused_data() as refusal:
        export_model(model, "elasticsearch_linear", tmp_path / "out")
    assert "no negative weights" in str(refusal.value)


def test_notes_about_lists_of_equal_scores(tmp_path):
    for kind, noted in (("list_min_max", True), ("list_min_max@elasticsearch", False)):
        result = export_model(model_of(kind), "elasticsearch_linear", tmp_path / kind)
        assert ("all scores of a list are equal" in " ".join(result.notes)) is noted
