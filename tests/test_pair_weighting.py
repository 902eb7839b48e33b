"""Weights of queries by their number of pairs: against explicit pairs, copies, and other kinds of data."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.baselines.losses import Hinge
from ranksieve.baselines.modified_huber import ModifiedHuber
from ranksieve.choice.folds import Folds
from ranksieve.losses import PAIR_WEIGHTINGS, SquaredHinge
from ranksieve.objective import make_objective
from tests.conftest import QUICK, random_dataset
from tests.pairs import explicit_pairs, squared_hinge
from tests.refusals import refused_parameter

pytestmark = pytest.mark.filterwarnings("ignore:.* training documents have weight 0")
SHORT = {"cv": 2, **QUICK}


@pytest.fixture(scope="module")
def data():
    """Queries of 1 to 12 documents, some of weight 0."""
    plain = random_dataset(seed=7, n_queries=16, n_features=5, longest=12)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], plain.n_docs)
    return rs.Dataset(plain.X, plain.y, plain.qid, document_weight=weight)


def weights_of_pairs(data, power, query_weight):
    """For each explicit pair v_i·v_j·u_q·P_q^(−power), P_q the sum of v_i·v_j over the pairs of the query."""
    pairs = explicit_pairs(data.y, data.qid)
    products = data.document_weight[pairs[:, 0]] * data.document_weight[pairs[:, 1]]
    query = data.queries.of_rows(np.arange(data.n_queries))[pairs[:, 0]]
    totals = np.bincount(query, products, minlength=data.n_queries)
    factors = np.array([total**-power if total > 0 else 0.0 for total in totals])
    return pairs, products * (query_weight * factors)[query]


@pytest.mark.parametrize(("name", "power"), PAIR_WEIGHTINGS.items())
@pytest.mark.parametrize("labels", ["few", "many", "table"])
def test_the_squared_hinge_equals_explicit_pairs(data, name, power, labels):
    rng = np.random.default_rng(0)
    y = rng.permutation(data.n_docs) % 40 * 1.0 if labels == "many" else data.y
    data = rs.Dataset(data.X, y, data.qid, document_weight=data.document_weight)
    query_weight, s = rng.uniform(0.5, 2.0, data.n_queries), rng.normal(size=data.n_docs)
    table = np.full((8, 8), 1.0) if labels == "table" else None
    bound = SquaredHinge(table, name).bind(y, data.queries, query_weight, data.document_weight)
    pairs, omega = weights_of_pairs(data, power, query_weight)
    value, gradient, hessian, slack = squared_hinge(s, pairs, omega)
    at = bound.evaluate(data.queries.group(s))
    V = rng.normal(size=(len(s), 2))
    block = bound.curvature_of(at, 0, data.n_queries, data.queries.group(V)).block()
    assert bound.normaliser == pytest.approx(omega.sum(), rel=1e-12)
    assert (at.value, at.slack) == pytest.approx((value, slack), rel=1e-11)
    np.testing.assert_allclose(data.queries.restore(at.gradient), gradient, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(block, V.T @ hessian @ V, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("name", "power"), PAIR_WEIGHTINGS.items())
def test_other_pairwise_losses_equal_explicit_pairs(data, name, power):
    rng = np.random.default_rng(3)
    query_weight, s = rng.uniform(0.5, 2.0, data.n_queries), rng.normal(size=data.n_docs)
    pairs, omega = weights_of_pairs(data, power, query_weight)
    margin = s[pairs[:, 0]] - s[pairs[:, 1]]
    hinge = np.maximum(0.0, 1.0 - margin)
    huber = np.where(margin >= -1.0, hinge**2, -4.0 * margin)
    for loss, values in ((Hinge(pair_weighting=name), hinge), (ModifiedHuber(pair_weighting=name), huber)):
        bound = loss.bind(data.y, data.queries, query_weight, data.document_weight)
        at = bound.evaluate(data.queries.group(s))
        assert bound.normaliser == pytest.approx(omega.sum(), rel=1e-12)
        assert at.value == pytest.approx(omega @ values, rel=1e-11)


@pytest.mark.parametrize("name", PAIR_WEIGHTINGS)
def test_weight_two_equals_two_copies(data, name):
    """Two copies of a query count twice; two copies of a document also change the number of pairs."""
    whole = data.select_rows(np.flatnonzero(data.document_weight))
    w, loss = np.random.default_rng(2).normal(size=5), SquaredHinge(pair_weighting=name)
    some, rest = whole.query_ids[:3], np.isin(whole.qid, whole.query_ids[:3])
    copies = rs.Dataset(
        np.concatenate([whole.X, whole.X[rest]]),
        np.concatenate([whole.y, whole.y[rest]]),
        np.concatenate([whole.qid, -1 - whole.qid[rest]]),
        document_weight=np.concatenate([whole.document_weight, whole.document_weight[rest]]),
    )
    twice = np.where(np.isin(whole.query_ids, some), 2.0, 1.0)
    expected = make_objective(copies, loss).evaluate(w).value
    assert make_objective(whole, loss, twice).evaluate(w).value == pytest.approx(expected, rel=1e-12)
    rows = np.repeat(np.arange(len(whole)), 1 + (np.arange(len(whole)) % 3 == 0))
    doubled = rs.Dataset(whole.X[rows], whole.y[rows], whole.qid[rows])
    weighted = rs.Dataset(whole.X, whole.y, whole.qid, document_weight=np.bincount(rows).astype(float))
    expected = make_objective(doubled, loss).evaluate(w).value
    assert make_objective(weighted, loss).evaluate(w).value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", PAIR_WEIGHTINGS)
def test_means_without_a_fold_equal_objectives_without_it(data, name):
    query_weight = np.random.default_rng(4).uniform(0.5, 2.0, data.n_queries)
    folds = Folds(data, 3, 2, query_weight=query_weight, loss=SquaredHinge(pair_weighting=name))
    point = folds.objective.evaluate(np.linspace(-0.5, 0.5, 5))
    gradients = folds.all_folds.means_without(folds.objective.gradients(point, folds.all_folds.cuts))
    for fold, gradient in enumerate(gradients):
        without = folds.objective_without(fold)
        expected = without.gradient(without.evaluate(point.w))
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", PAIR_WEIGHTINGS)
def test_models_can_be_verified_and_say_their_weighting(data, name, tmp_path):
    rankers = [
        rs.SparseRanker(pair_weighting=name, **SHORT).fit(data),
        rs.BestSubset(2, pair_weighting=name).fit(data),
    ]
    for ranker in rankers:
        model = ranker.to_model()
        assert model.parameters["pair_weighting"] == name
        assert rs.verify(model, data).holds
        assert rs.verify(rs.make_scorecard(model, data), data).holds
    path = tmp_path / "model.json"
    rankers[1].to_model().save(path)
    stated = json.loads(path.read_text())
    stated["parameters"]["pair_weighting"] = next(other for other in PAIR_WEIGHTINGS if other != name)
    path.write_text(json.dumps(stated))
    assert not rs.verify(rs.load_model(path), data).holds


@pytest.mark.parametrize("name", ["sqrt", "queries"])
def test_data_on_disk_give_the_same_fit(data, name, tmp_path):
    loss = SquaredHinge(pair_weighting=name)
    here = rs.sparse_path(data, loss=loss, n_alphas=6)
    there = rs.sparse_path(rs.io.convert_dataset(data, tmp_path / "data.ranksieve"), loss=loss, n_alphas=6)
    np.testing.assert_array_equal(there.coefs, here.coefs)


def test_an_unknown_weighting_is_refused(data):
    with refused_parameter("pair_weighting"):
        rs.SparseRanker(pair_weighting="lists").fit(data)
    with refused_parameter("pair_weighting"):
        make_objective(data, SquaredHinge(pair_weighting="lists"))
