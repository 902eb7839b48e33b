"""Explanations: exact sums, names, and losses without features, each against a second computation."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ranksieve as rs
from ranksieve.data.describe import Names, document_name, find_document, query_rows, show_texts
from ranksieve.explain import IMPORTANCE_RIDGE_SHARE
from ranksieve.metrics import PROFILES
from ranksieve.metrics.significance import holm, paired_t, randomisation
from ranksieve.model.linear import LinearModel, Term
from ranksieve.objective import make_objective
from ranksieve.penalties import Ridge
from ranksieve.prepare import MissingPolicy, Normalisation, Preparation
from tests.pairs import explicit_pairs
from tests.refusals import refused_as, refused_parameter
from tests.solving import prox_newton
from tests.tiers import examples

EPS = np.finfo(float).eps
TINY = float(np.finfo(np.float64).smallest_subnormal)
numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


def linear(weights, names=None, **fields):
    names = names or [f"f{j + 1}" for j in range(len(weights))]
    terms = tuple(Term(n, j, w) for j, (n, w) in enumerate(zip(names, weights, strict=True)) if w)
    return LinearModel(terms, len(weights), **fields)


@pytest.fixture(scope="module")
def shop():
    return rs.make_ranking(n_queries=25, n_features=8, n_informative=4, random_state=2)


@pytest.fixture(scope="module")
def model(shop):
    return rs.FenchelRank(radius=4).fit(shop).to_model()


# ---------------------------------------------------------------- pairs


@examples(100)
@given(st.lists(st.tuples(numbers.filter(bool), numbers, numbers), min_size=1, max_size=12), numbers)
@example([(0.1, 1.0, 1.0 - EPS / 2)], 0.0)
@example([(1.0816067458525198e-193, 0.0, 1.393245499656647e-243)], 0.0)
def test_a_pair_adds_up_within_the_stated_rounding(parts, intercept):
    weights, x_a, x_b = (list(column) for column in zip(*parts, strict=True))
    data = rs.Dataset(np.array([x_a, x_b]), [1, 0], ["q", "q"])
    pair = rs.explain_pair(linear(weights, intercept=intercept), data, 0, 1)
    assert pair.difference == math.fsum(part.contribution for part in pair.parts)
    exact = sum(Fraction(w) * (Fraction(a) - Fraction(b)) for w, a, b in parts)
    size = sum(abs(Fraction(part.contribution)) for part in pair.parts)
    underflow = len(parts) * TINY  # error of each product by underflow
    assert abs(Fraction(pair.difference) - exact) <= 2 * Fraction(EPS) * size + 2 * Fraction(underflow)
    scores = linear(weights).predict(data)
    terms = sum(abs(w * a) + abs(w * b) for w, a, b in parts)
    assert abs(pair.difference - (scores[0] - scores[1])) <= (len(parts) + 2) * EPS * terms + 4 * underflow


def test_a_pair_in_numbers():
    data = rs.Dataset([[1.0, 5, 2], [3, 5, 0]], [1, 0], [7, 7], ["a", "b", "c"], ["A", "B"])
    pair = rs.explain_pair(linear([0.5, 9.0, 2.0], ["a", "b", "c"], intercept=3.0), data, 0, 1)
    assert (pair.query, pair.a, pair.b, pair.difference) == (7, "A", "B", 3.0)
    assert (pair.score_a, pair.score_b) == (52.5, 49.5)
    assert [(p.feature, p.weight, p.value_a, p.value_b, p.contribution) for p in pair.parts] == [
        ("c", 2.0, 2.0, 0.0, 4.0), ("a", 0.5, 1.0, 3.0, -1.0), ("b", 9.0, 5.0, 5.0, 0.0),
    ]  # fmt: skip
    assert pair.to_dict()["parts"][0] == {
        "feature": "c", "weight": 2.0, "value_a": 2.0, "value_b": 0.0, "contribution": 4.0,
        "logged_a": 2.0, "logged_b": 0.0, "filled_a": 2.0, "filled_b": 0.0,
        "next_a": None, "next_b": None,
    }  # fmt: skip
    assert (pair.rank_a, pair.rank_b, pair.scaled) == (1, 2, False)
    assert rs.explain_pair(linear([0.5, 9.0, 2.0], ["a", "b", "c"]), data, "B", "A", qid=7).difference == -3.0


def test_documents_of_two_queries_are_not_compared(shop, model):
    other = int(query_rows(shop, shop.queries.ids[1])[0])
    with refused_parameter("b", other):
        rs.explain_pair(model, shop, 0, other)
    with refused_parameter("b", 99_999):
        rs.explain_pair(model, shop, 0, 99_999)
    with refused_parameter("b", "D1"):
        rs.explain_pair(model, shop, 0, "D1")


# ---------------------------------------------------------------- queries


@pytest.mark.parametrize("kind", ["none", "z", "min_max", "query_z", "query_min_max"])
@pytest.mark.parametrize("sparse", [False, True])
def test_contributions_add_up_to_the_scores(shop, kind, sparse):
    ranker = rs.SparseRanker(n_alphas=10, cv=2, normalise=kind).fit(shop)
    model = replace(ranker.to_model(), intercept=0.25)
    data = shop.replace_features(sp.csr_array(shop.X)) if sparse else shop
    scores = model.predict(data)
    for query in shop.queries.ids[:5]:
        explanation = rs.explain_query(model, data, query)
        rows = np.flatnonzero(shop.qid == query)
        assert explanation.rows.tolist() == rows[np.argsort(-scores[rows], kind="stable")].tolist()
        np.testing.assert_array_equal(explanation.scores, scores[explanation.rows])
        np.testing.assert_allclose(
            explanation.contributions.sum(axis=1) + explanation.intercept, explanation.scores, atol=1e-12
        )
        np.testing.assert_array_equal(explanation.labels, shop.y[explanation.rows])
        np.testing.assert_array_equal(explanation.contributions, explanation.values * model.weights)
        a, b = explanation.rows[0], explanation.rows[-1]
        pair = rs.explain_pair(model, data, int(a), int(b))
        assert pair.difference == pytest.approx(scores[a] - scores[b], abs=1e-12)


def test_values_are_the_prepared_ones():
    """Within the query: x → (x − min)/range; missing values become the minimum."""
    data = rs.Dataset([[2.0], [np.nan], [6.0], [100.0]], [0, 1, 2, 0], ["q", "q", "q", "other"])
    preparation = Preparation(MissingPolicy("query_min"), Normalisation("query_min_max"))
    model = linear([3.0], preparation=preparation)
    explanation = rs.explain_query(model, data, "q")
    assert explanation.rows.tolist() == [2, 0, 1]
    assert explanation.values.tolist() == [[1.0], [0.0], [0.0]]
    assert explanation.contributions.tolist() == [[3.0], [0.0], [0.0]]
    assert explanation.ranks.tolist() == [1, 2, 3]


def test_original_values_are_reported_too():
    data = rs.Dataset([[20.0], [np.nan], [60.0]], [0, 1, 2], ["q"] * 3, ["price"])
    preparation = Preparation(
        MissingPolicy("column_mean", ("price",), (30.0,)), Normalisation("z", ("price",), (40.0,), (10.0,))
    )
    model = linear([3.0], ["price"], preparation=preparation)
    explanation = rs.explain_query(model, data, "q")
    assert explanation.rows.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(explanation.logged, [[60.0], [np.nan], [20.0]])
    assert explanation.filled.tolist() == [[60.0], [30.0], [20.0]]
    assert explanation.values.tolist() == [[2.0], [-1.0], [-2.0]]
    assert explanation.scaled
    assert explanation.to_dict()["logged"] == [[60.0], [None], [20.0]]
    (part,) = rs.explain_pair(model, data, 1, 0).parts
    assert (part.logged_a, part.filled_a, part.value_a) == (None, 30.0, -1.0)
    assert (part.logged_b, part.filled_b, part.value_b) == (20.0, 20.0, -2.0)


def test_original_values_of_an_indicator():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    X[y == 2, 0] = np.nan
    data = rs.Dataset(X, y, np.repeat(np.arange(6), 10), ["a", "b"])
    model = rs.FenchelRank(radius=8, missing="indicator").fit(data).to_model()
    assert "a is missing" in model.names
    explanation = rs.explain_query(model, data, 0)
    logged = explanation.logged[:, model.names.index("a is missing")]
    np.testing.assert_array_equal(logged, np.isnan(X[explanation.rows, 0]).astype(float))


TOLD = rs.Dataset(
    [[3.0], [2.0], [1.0], [5.0], [4.0]], [0, 0, 1, 1, 0], [1, 1, 1, 2, 2],
    texts={"query": ["red shoes"] * 3 + ["hats"] * 2, "title": ["A", "B", "C", "D", ""]},
)  # fmt: skip


def test_texts_of_queries_and_documents():
    explanation = rs.explain_query(linear([1.0]), TOLD, 1)
    assert (explanation.query_text, explanation.texts) == ("red shoes", ("A", "B", "C"))
    pair = rs.explain_pair(linear([1.0]), TOLD, 4, 3)
    assert (pair.query_text, pair.text_a, pair.text_b) == ("hats", "", "D")
    assert Names(TOLD).query_texts == {1: "red shoes", 2: "hats"}
    assert rs.explain_query(linear([1.0]), NAMED, 1).texts == ()
    single = rs.Dataset([[1.0], [2.0]], [0, 1], [1, 2], texts={"query": ["x", "y"], "title": ["X", "Y"]})
    assert Names(single).query_text(1) == "y"
    assert Names(single).document_text(1) == "Y"


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (["country", "movie_title"], "movie_title 0"),
        (["TITLE", "headline", "brand"], "TITLE 0 · headline 0"),
        (["subtitled", "brand"], ""),
        (["brand"], "brand 0"),
    ],
)
def test_of_several_texts_only_those_named_like_a_title_are_shown(columns, shown):
    texts = {name: [f"{name} 0", f"{name} 1"] for name in columns}
    data = rs.Dataset([[2.0], [1.0]], [0, 1], [7, 7], texts=texts)
    assert Names(data).document_text(0) == shown


def test_named_texts_are_shown_and_those_of_queries_stay():
    texts = {"query": ["red"] * 2, "title": ["A", "B"], "brand": ["x", ""], "country": ["1", "2"]}
    data = show_texts(rs.Dataset([[2.0], [1.0]], [0, 1], [7, 7], texts=texts), ["brand", "country"])
    assert [Names(data).document_text(row) for row in (0, 1)] == ["x · 1", "2"]
    assert Names(data).query_text(0) == "red"
    with refused_parameter("text", "colour"):
        show_texts(data, ["colour"])


# ---------------------------------------------------------------- worst queries


def test_worst_queries_are_those_with_the_lowest_metric(shop, model):
    scores = model.predict(shop)
    values = rs.evaluate(scores, shop, "ndcg@5", "standard").per_query["ndcg@5"]
    worst = rs.worst_queries(scores, shop, "ndcg@5", 6, profile="standard")
    relevant = [shop.y[shop.qid == query].max() >= 1 for query in shop.queries.ids]
    assert [worst_query.value for worst_query in worst] == sorted(values[relevant])[:6]
    for worst_query in worst:
        rows = np.flatnonzero(shop.qid == worst_query.query)
        ranked = rows[np.argsort(-scores[rows], kind="stable")]
        assert worst_query.n_documents == len(rows)
        assert worst_query.rank == 1 + int(np.argmax(shop.y[ranked] >= 1))
        assert worst_query.n_relevant == np.count_nonzero(shop.y[rows] >= 1)


def test_reasons_of_worst_queries():
    first, second = rs.worst_queries(np.array([3.0, 2, 1, 5, 4]), TOLD, "mrr", 5)
    assert (first.query, first.text, first.rank) == (1, "red shoes", 3)
    assert first.why == "its only relevant document is at rank 3 of 3"
    assert (first.document, first.document_text) == ("document 3 of query 1", "C")
    assert (first.first, first.first_text) == ("document 1 of query 1", "A")
    assert second.value == second.rank == 1
    without_relevant = rs.Dataset([[1.0], [2.0]], [0, 0], [1, 1])
    assert rs.worst_queries(np.zeros(2), without_relevant) == (), (
        "a query without relevant documents has no worst ranking"
    )


def test_a_query_as_plain_data(shop, model):
    plain = rs.explain_query(model, shop, shop.queries.ids[0]).to_dict()
    assert plain["features"] == tuple(model.names)
    assert len(plain["contributions"]) == len(plain["documents"]) == len(plain["rows"])
    assert isinstance(plain["scores"][0], float)


# ---------------------------------------------------------------- names


NAMED = rs.Dataset(
    np.arange(6.0)[:, None], [0] * 6, [1, 2, 1, 1, 2, 10], doc_ids=["x", "y", "3", "x2", "x", None]
)


def test_queries_and_documents_by_name():
    assert query_rows(NAMED, 1).tolist() == query_rows(NAMED, "1").tolist() == [0, 2, 3]
    assert find_document(NAMED, 1, "x") == 0
    assert find_document(NAMED, 2, "x") == 4
    assert find_document(NAMED, 1, "3") == 2, "an id goes before a number"
    assert find_document(NAMED, 1, 2) == find_document(NAMED, "1", "2") == 2
    assert find_document(NAMED, 10, "1") == 5
    assert [document_name(NAMED, row) for row in (0, 4, 5)] == ["x", "x", "document 1 of query 10"]
    without = rs.Dataset(np.arange(3.0)[:, None], [0] * 3, ["b", "a", "b"])
    assert find_document(without, "b", document_name(without, 2)) == 2, "names lead back"
    with refused_parameter("document", "document 1 of query a"):
        find_document(without, "b", "document 1 of query a")
    assert [document_name(without, row) for row in range(3)] == [
        "document 1 of query b", "document 1 of query a", "document 2 of query b"
    ]  # fmt: skip


def test_unknown_names():
    with refused_parameter("qid", 11) as info:
        query_rows(NAMED, 11)
    assert "nearest: 1, 10" in info.value.reason
    with refused_parameter("document", "x3") as info:
        find_document(NAMED, 1, "x3")
    assert "nearest: x, 3, x2" in info.value.reason
    with refused_parameter("document", "0"):
        find_document(NAMED, 1, "0")
    twice = rs.Dataset([[1.0], [2.0]], [0, 0], [1, 1], doc_ids=["x", "x"])
    with refused_parameter("document", "x") as info:
        find_document(twice, 1, "x")
    assert "2 documents" in info.value.reason
    assert find_document(twice, 1, "2") == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(value):
    data = rs.Dataset([[1.0, 2.0], [1.0, value]], [0, 1], [7, 7], doc_ids=["x", "y"])
    fault = f"feature f2 of document y of query 7 is {value}"
    with refused_as(fault):
        rs.explain_query(linear([1.0, 1.0]), data, 7)
    with refused_as(fault):
        rs.explain_pair(linear([1.0, 1.0]), data, "x", "y", 7)
    with refused_as(fault):
        rs.feature_importance(linear([1.0, 1.0]), data)


def test_only_linear_models_with_features_are_explained(tmp_path, shop):
    (tmp_path / "m").write_text("## RankBoost\n1:0.5:1.0\n")
    with refused_as("RankLib RankBoost is not a linear model"):
        rs.explain_query(rs.read_model(tmp_path / "m"), shop, 1)
    with refused_parameter("model"):
        rs.feature_importance(linear([0.0]), shop)


def files_of_export(model, data, folder):
    return rs.export_model(model, "python", folder / "ranker.py").files[0].read_text()


TAKES_A_MODEL = {
    "explain_pair": lambda model, data, folder: rs.explain_pair(model, data, 0, 1),
    "explain_query": lambda model, data, folder: rs.explain_query(model, data, data.qid[0]).to_dict(),
    "feature_importance": lambda model, data, folder: rs.feature_importance(model, data, n_permutations=10),
    "worst_queries": lambda model, data, folder: rs.worst_queries(model, data),
    "evaluate": lambda model, data, folder: rs.evaluate(model, data).to_dict(),
    "make_scorecard": lambda model, data, folder: rs.make_scorecard(model, data),
    "export_model": files_of_export,
    "verify": lambda model, data, folder: rs.verify(model, data, refit=False),
    "fit": lambda model, data, folder: rs.SparseRanker(n_alphas=5, cv=2).fit(data, previous=model).to_model(),
}


@pytest.mark.parametrize("take", TAKES_A_MODEL.values(), ids=TAKES_A_MODEL)
def test_a_fitted_ranker_is_accepted_as_a_model(take, shop, tmp_path):
    ranker = rs.FenchelRank(radius=4).fit(shop)
    assert take(ranker, shop, tmp_path) == take(ranker.to_model(), shop, tmp_path)
    with pytest.raises(NotFittedError):
        take(rs.FenchelRank(), shop, tmp_path)


@pytest.mark.parametrize("name", ["explain_query", "make_scorecard", "export_model"])
def test_pipelines_and_rankers_that_are_not_linear_are_refused(name, shop, tmp_path):
    take, boosted = TAKES_A_MODEL[name], rs.baselines.RankBoost(n_rounds=3).fit(shop)
    with refused_as("RankBoost is not"):
        take(boosted, shop, tmp_path)
    with refused_as("rs.to_model(pipeline)"):
        take(make_pipeline(StandardScaler(), rs.FenchelRank(radius=4)), shop, tmp_path)


def test_card_text_needs_a_scorecard(shop):
    with refused_parameter("model"):
        rs.card_text(rs.FenchelRank(radius=4).fit(shop))


# ---------------------------------------------------------------- drops


def test_drops_equal_a_model_without_the_feature(shop, model):
    metrics = ["ndcg@5", "map"]
    drops = rs.feature_importance(
        model, shop, metrics, profile="standard", n_permutations=500, random_state=3
    )
    assert len(drops) == 2 * len(model.terms)
    full = rs.evaluate(model.predict(shop), shop, metrics, "standard")
    for metric in metrics:
        rows = [drop for drop in drops if drop.metric == metric]
        assert [drop.loss for drop in rows] == sorted((drop.loss for drop in rows), reverse=True)
        p_t, p_random = {}, {}
        for drop in rows:
            rest = replace(model, terms=tuple(t for t in model.terms if t.name != drop.feature))
            less = rs.evaluate(rest.predict(shop), shop, metric, "standard")
            assert drop.without == less.mean[metric]
            assert drop.loss == full.mean[metric] - less.mean[metric]
            values = (full.per_query[metric], less.per_query[metric])
            p_t[drop.feature] = drop.p_t
            p_random[drop.feature] = drop.p_randomisation
            assert drop.p_t == paired_t(*values)
            assert drop.p_randomisation == randomisation(*values, 500, 3)
            assert drop.saved is None
        np.testing.assert_allclose([d.p_t_holm for d in rows], holm(list(p_t.values())))
        np.testing.assert_allclose([d.p_randomisation_holm for d in rows], holm(list(p_random.values())))


def test_costs_saved_by_a_drop():
    data = rs.make_ranking(n_queries=10, n_features=3, n_informative=2, random_state=0)
    model = linear([1.0, 1.0, 1.0])
    plain = {
        d.feature: d.saved
        for d in rs.feature_importance(model, data, feature_costs={"f1": 1, "f2": 2.5, "f3": 0})
    }
    assert plain == {"f1": 1.0, "f2": 2.5, "f3": 0.0}
    groups = {"features": {"f3": 4}, "groups": {"clause": {"cost": 3, "features": ["f1", "f2"]}}}
    saved = {d.feature: d.saved for d in rs.feature_importance(model, data, feature_costs=groups)}
    alone = {"f1": 0.0, "f2": 0.0, "f3": 4.0}  # a group is paid until all its features are dropped
    assert saved == alone | {"clause": 3.0}
    one = linear([1.0, 0.0, 1.0])
    assert {d.feature: d.saved for d in rs.feature_importance(one, data, feature_costs=groups)} == {
        "f1": 3.0, "f3": 4.0, "clause": 3.0
    }  # fmt: skip
    with refused_parameter("feature_costs", "f3"):
        rs.feature_importance(model, data, feature_costs={"f1": 1, "f2": 2})


def test_a_group_is_dropped_as_a_whole(shop, model):
    first, second, *_ = model.names
    costs = {"features": {"*": 1.0}, "groups": {"clause": {"cost": 3.0, "features": [first, second]}}}
    drops = rs.feature_importance(model, shop, "map", costs, profile="standard")
    (group,) = [drop for drop in drops if drop.group]
    rest = replace(model, terms=model.terms[2:])
    assert group.feature == "clause"
    assert group.dropped == (first, second)
    assert group.without == rs.evaluate(rest.predict(shop), shop, "map", "standard").mean["map"]
    assert group.saved == 3.0
    assert len(drops) == len(model.terms) + 1


def test_a_group_with_one_feature_in_use_is_tested_once(shop, model):
    costs = {"features": {"*": 1.0}, "groups": {"clause": {"cost": 3.0, "features": [model.names[0]]}}}
    with_group = rs.feature_importance(model, shop, "map", costs, profile="standard")
    alone = {drop.feature: drop for drop in rs.feature_importance(model, shop, "map", profile="standard")}
    drops = [drop for drop in with_group if drop.dropped == (model.names[0],)]
    assert {drop.group for drop in drops} == {True, False}
    assert {drop.p_t_holm for drop in drops} == {alone[model.names[0]].p_t_holm}


def test_drops_with_refit_also_refit_the_full_model():
    """With a copy of the only useful feature, dropping one loses nothing if the other is refitted."""
    base = rs.make_ranking(n_queries=40, n_features=2, n_informative=1, noise=0.0, random_state=1)
    best = int(np.argmax(np.abs(base.truth)))
    useful = base.X[:, [best]] * np.sign(base.truth[best])
    data = base.replace_features(np.hstack([useful, useful]), ["a", "twin"])
    model = linear([2.0, -1.0], ["a", "twin"])
    losses = {d.feature: d.loss for d in rs.feature_importance(model, data, "ndcg@10", profile="standard")}
    assert losses["a"] > 0.1, "the twin alone has a negative weight"
    refitted = rs.feature_importance(model, data, "ndcg@10", profile="standard", train=data)
    assert [drop.loss for drop in refitted] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert refitted[0].value > 0.9


def test_refits_keep_the_pair_weighting_of_the_model():
    data = rs.make_ranking(40, 4, 4, docs_per_query=(3, 30), noise=2.0, random_state=5)
    ranker = rs.SparseRanker(pair_weighting="queries", normalise="none", families="forward", cv=2)
    model = ranker.fit(data).to_model()
    assert len(model.names) > 2

    def refitted(names, weight):
        train = data.select_features(names)
        objective = make_objective(train, query_weight=weight)
        slope = np.abs(objective.gradient(objective.at_zero)).max()
        w = prox_newton(objective, Ridge(IMPORTANCE_RIDGE_SHARE * slope), tol=1e-9).w
        return rs.evaluate(train.X @ w, data, "ndcg@10", profile="standard").mean["ndcg@10"]

    counts = np.array(
        [max(1, len(explicit_pairs(data.y[data.qid == q], [0] * sum(data.qid == q)))) for q in data.query_ids]
    )
    differ = False
    for drop in rs.feature_importance(model, data, "ndcg@10", profile="standard", train=data):
        others = [name for name in model.names if name != drop.feature]
        assert drop.without == pytest.approx(refitted(others, 1.0 / counts), abs=1e-9)
        differ |= abs(drop.without - refitted(others, None)) > 1e-4
    assert differ, "the weighting matters"


def test_a_refit_of_the_only_feature():
    data = rs.make_ranking(n_queries=10, n_features=3, n_informative=2, random_state=0)
    (drop,) = rs.feature_importance(linear([0.0, 1.0, 0.0]), data, train=data)
    zeros = rs.evaluate(np.zeros(data.n_docs), data, "ndcg@10")
    assert drop.without == zeros.mean["ndcg@10"], "without any feature all documents tie"


def test_profiles_that_skip_queries():
    data = rs.Dataset([[1.0], [2.0], [3.0]], [0, 1, 0], [1, 1, 2])
    profile = replace(PROFILES["standard"], empty="skip")
    (drop,) = rs.feature_importance(linear([1.0]), data, "ndcg", profile=profile)
    assert drop.value == 1.0
    assert drop.without == pytest.approx((1 + 1 / math.log2(3)) / 2)  # the two documents are tied
