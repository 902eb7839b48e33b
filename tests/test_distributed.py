"""Distributed data: the same results as in memory, on a local cluster of worker processes."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from tests.refusals import refused_data, refused_parameter
from tests.tiers import full

pytest.importorskip("dask", reason="distributed data need dask (the extra of this name)")
pytest.importorskip("distributed", reason="distributed data need distributed (the extra called dask)")

import dask.array as da
import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster
from distributed.scheduler import KilledWorker
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli.app import app
from ranksieve.dask.cluster import Cluster, ClusterError, readable_error
from ranksieve.dask.objective import LinearScores
from ranksieve.dask.sources import Piece, PieceSource, lay_out
from ranksieve.errors import DataError
from ranksieve.losses import CostSensitiveListMLE, SquaredHinge
from ranksieve.metrics.evaluate import TiesWarning
from ranksieve.objective import make_objective

SAME = {"rtol": 0.0, "atol": 1e-10}


def start_cluster(n_workers: int = 2) -> LocalCluster:
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    )


@pytest.fixture(scope="module")
def client():
    with start_cluster() as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    return rs.make_ranking(60, 12, 4, docs_per_query=(5, 20), random_state=1)


def part_of(data: rs.Dataset, first: int, last: int) -> rs.Dataset | None:
    return data.select_rows(np.arange(first, last)) if last > first else None


def spread(data: rs.Dataset, cuts, client, shuffle=True, n_parts=None):
    """Distribute the data in pieces between row numbers."""
    cuts = [0, *cuts, data.n_docs]
    pieces = [Piece(f"piece {k}", part_of, (data, a, b)) for k, (a, b) in enumerate(pairwise(cuts))]
    return lay_out(Cluster(client), PieceSource(pieces), shuffle, n_parts or len(pieces))


@pytest.fixture(scope="module")
def distributed_data(data, client):
    return spread(data, [data.n_docs // 3 + 1], client)


def frame_of(data, columns=None):
    table = rs.to_frame(data)
    return table if columns is None else table[columns]


# The objective


@pytest.mark.parametrize(
    "loss", ["squared_hinge", SquaredHinge(pair_weighting="sqrt"), CostSensitiveListMLE(5)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_distributed_objective_equals_the_one_in_memory(loss, weighted, data, distributed_data):
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, data.n_queries) if weighted else None
    here, there = make_objective(data, loss, weight), make_objective(distributed_data, loss, weight)
    assert there.loss.normaliser == pytest.approx(here.loss.normaliser, rel=1e-14)
    w, v, columns = 0.3 * rng.normal(size=12), rng.normal(size=12), np.array([7, 2, 5])
    a, b = here.evaluate(w), there.evaluate(w)
    cuts = np.array([0, 10, 25, 26, data.n_queries])
    some = here.restricted(columns), there.restricted(columns)
    for own, remote in [
        (a.value, b.value),
        (a.slack, b.slack),
        (here.gradient(a), there.gradient(b)),
        (here.hessian(a, columns), there.hessian(b, columns)),
        (here.curvatures(a), there.curvatures(b)),
        (here.gradients(a, cuts), there.gradients(b, cuts)),
        (here.hessians(a, columns, cuts), there.hessians(b, columns, cuts)),
        (here.hessian(a, columns[:1]), there.hessian(b, columns[:1])),
        (here.slope_along(a, here.scores(v)), there.slope_along(b, there.scores(v))),
        (here.curvature_along(a, here.scores(v)), there.curvature_along(b, there.scores(v))),
        (here.slopes_along(a, here.scores(v))(0.3), there.slopes_along(b, there.scores(v))(0.3)),
        (here.gradient_error(a), there.gradient_error(b)),
        (here.value_error(a), there.value_error(b)),
        (here.dual(a, 0.5), there.dual(b, 0.5)),
        (here.varies, there.varies),
        *((one.gradient(one.evaluate(w[:3])) for one in some),),
        *((one.hessian(one.evaluate(w[:3]), np.arange(3)) for one in some),),
    ]:
        np.testing.assert_allclose(remote, own, rtol=1e-12, atol=1e-13)


def test_products_and_samples(data, distributed_data):
    here, there = make_objective(data), make_objective(distributed_data)
    w, v = np.full(12, 0.1), np.arange(12.0)
    product = there.hessian_product(there.evaluate(w), v)
    np.testing.assert_allclose(product, here.hessian_product(here.evaluate(w), v), rtol=1e-12)
    own, remote = here.sample(8), there.sample(8)
    np.testing.assert_allclose(remote.evaluate(w).value, own.evaluate(w).value, rtol=1e-13)
    np.testing.assert_allclose(there.sample(1000).evaluate(w).value, here.sample(1000).evaluate(w).value)


def test_an_iteration_takes_one_round_trip(distributed_data):
    objective = make_objective(distributed_data)
    objective.features.keep(np.array([1, 3]))
    before = distributed_data.traffic.copy()
    point = objective.evaluate(np.full(12, 0.1))
    objective.gradient(point)
    objective.hessian(point, np.array([3, 1]))
    objective.hessian(objective.evaluate(point.w), np.array([1]))
    spent = distributed_data.traffic.since(before)
    assert (spent.rounds, spent.tasks, spent.messages) == (1, 2, 4)
    assert 0 < spent.sent < 10_000
    assert 0 < spent.received < 10_000


def test_arithmetic_of_linear_scores():
    s = LinearScores(np.array([1.0, 2.0]))
    t = np.float64(2.0) * s
    t += s * 0.5
    np.testing.assert_array_equal((t - s).w, [1.5, 3.0])


@pytest.mark.full
def test_features_with_large_offsets(data, client):
    X = data.X.copy()
    X[:, 2] += 1e6
    X[:, 5] = 1e7
    X[data.queries.order[: data.n_docs // 2], 2] = 1e6  # constant within the first part
    far = data.replace_features(X)
    here = rs.sparse_path(far, n_alphas=6)
    there = rs.sparse_path(spread(far, [data.n_docs // 2], client), n_alphas=6)
    np.testing.assert_allclose(there.coefs, here.coefs, **SAME)
    np.testing.assert_array_equal(there.n_iter, here.n_iter)


# Methods


@pytest.mark.full
def test_path(data, distributed_data):
    weight = np.random.default_rng(3).integers(0, 3, data.n_queries).astype(float)
    for options in (
        {},
        {"query_weight": weight, "must_have": ["f2"]},
        {"penalty": "elastic_net", "l1_ratio": 0.5},
    ):
        here, there = (rs.sparse_path(one, n_alphas=8, **options) for one in (data, distributed_data))
        np.testing.assert_allclose(there.coefs, here.coefs, **SAME)
        np.testing.assert_allclose(there.gaps, here.gaps, rtol=1e-3, atol=1e-12)
        assert there.converged.all()


@pytest.mark.parametrize(
    "ranker",
    [
        rs.FenchelRank(radius=2.0, tol=0.1),
        pytest.param(rs.FenchelRank(radius=2.0, tol=1e-2, variant="away"), marks=full),
        pytest.param(rs.FenchelRank(radius=2.0, tol=1e-2, variant="pairwise", normalise="z"), marks=full),
        pytest.param(rs.SparseListMLE(alpha=0.05, solver="newton"), marks=full),
        pytest.param(rs.SparseListMLE(alpha=0.05, tol=0.05), marks=full),
        pytest.param(rs.RankSVM(C=0.1), marks=full),
        rs.RankSVM(C=0.1, normalise="within_z"),
        rs.SparseRankSVM(alpha=0.02, normalise="min_max"),
        rs.SparseRankSVM("log", alpha=0.02, normalise="query_z"),
    ],
    ids=repr,
)
def test_methods(ranker, data, distributed_data):
    here = type(ranker)(**ranker.get_params()).fit(data)
    there = ranker.fit(distributed_data)
    np.testing.assert_allclose(there.coef_, here.coef_, **SAME)
    assert there.gap_ == pytest.approx(here.gap_, rel=1e-3, abs=1e-11)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-12)
    np.testing.assert_allclose(there.predict(distributed_data).compute(), here.predict(data), rtol=1e-9)


def test_many_features_by_products(client):
    wide = rs.make_ranking(12, 110, 5, docs_per_query=(5, 8), random_state=2)
    there = rs.RankSVM(C=1e-3).fit(spread(wide, [40], client))
    np.testing.assert_allclose(there.coef_, rs.RankSVM(C=1e-3).fit(wide).coef_, **SAME)


@pytest.mark.full
def test_the_default_ranker(data, distributed_data, client):
    valid = rs.make_ranking(12, 12, 4, docs_per_query=(5, 9), random_state=9)
    there_valid = spread(valid, [valid.n_docs // 2], client)
    options = {"max_features": 1, "n_alphas": 5, "refit_on": "all"}
    here = rs.SparseRanker(**options).fit(data, valid=valid)
    there = rs.SparseRanker(**options).fit(distributed_data, valid=there_valid)
    np.testing.assert_allclose(there.coef_, here.coef_, **SAME)
    np.testing.assert_allclose(there.choice_.coefs, here.choice_.coefs, **SAME)
    np.testing.assert_allclose(there.choice_.validation.values, here.choice_.validation.values, rtol=1e-12)
    assert there.choice_.family.label == here.choice_.family.label
    assert there.preparation_.normalisation.kind == here.preparation_.normalisation.kind
    np.testing.assert_allclose(
        there.to_model().predict(distributed_data).compute(), here.predict(data), rtol=1e-9
    )


@pytest.mark.full
def test_the_default_ranker_without_validation_data_and_with_holes(data, client):
    X = 50.0 * data.X.copy()
    X[::7, 3] = np.nan
    holes = data.replace_features(X)
    cut = int(data.queries.offsets[30])
    options = {"families": ["l1", "log"], "n_alphas": 6, "max_features": 3}
    with pytest.warns(UserWarning, match="f4 in"):
        here = rs.SparseRanker(**options).fit(holes)
    with pytest.warns(UserWarning, match="f4 in"):
        there = rs.SparseRanker(**options).fit(spread(holes, [cut], client))
    np.testing.assert_allclose(there.coef_, here.coef_, **SAME)
    np.testing.assert_allclose(there.missing_.means, here.missing_.means, rtol=1e-13)
    np.testing.assert_allclose(there.normalisation_.scale, here.normalisation_.scale, rtol=1e-13)
    np.testing.assert_allclose(there.choice_.validation.mean, here.choice_.validation.mean, rtol=1e-12)


def test_indicators_and_weights(data, client):
    X = data.X.copy()
    X[::7, 3] = np.nan
    holes, weight = data.replace_features(X), np.arange(60.0) % 4
    there = rs.SparseRankSVM(missing="indicator", normalise="z").fit(
        spread(holes, [77], client), query_weight=weight
    )
    here = rs.SparseRankSVM(missing="indicator", normalise="z").fit(holes, query_weight=weight)
    np.testing.assert_allclose(there.coef_, here.coef_, **SAME)
    assert there.coef_names_ == here.coef_names_


@pytest.mark.full
def test_large_data_start_from_the_same_sample(data, distributed_data, monkeypatch):
    monkeypatch.setattr("ranksieve.solvers.base.SAMPLE_MIN_DOCUMENTS", 100)
    monkeypatch.setattr("ranksieve.solvers.base.SAMPLE_EVERY", 2)
    here, there = (rs.SparseRankSVM(alpha=0.02).fit(one) for one in (data, distributed_data))
    np.testing.assert_allclose(there.coef_, here.coef_, **SAME)
    assert there.n_iter_ == here.n_iter_


def test_unsupported_methods_and_losses_are_refused(distributed_data):
    for learner in (
        rs.baselines.RankBoost(),
        rs.FSMRank(),
        rs.baselines.CSRankSVM(),
        rs.baselines.LambdaMART(),
    ):
        with refused_data() as info:
            learner.fit(distributed_data)
        assert type(learner).__name__ in info.value.reason
        assert "docs/cluster.md" in info.value.reason
    with refused_data() as info:
        rs.io.write_letor(distributed_data, "nowhere.txt")
    assert "in memory" in info.value.reason
    with refused_parameter("loss", "listnet"):
        rs.sparse_path(distributed_data, loss="listnet")


# Measuring and describing


@pytest.mark.parametrize("ties", ["order", "mean", "worst"])
def test_evaluate_with_ties(data, distributed_data, ties):
    scores, metrics = np.round(data.X[:, 0]), ["ndcg@5", "mrr"]
    with pytest.warns(TiesWarning) as shown:
        one = rs.evaluate(scores, data, metrics, ties=ties)
    with pytest.warns(TiesWarning) as shown_there:
        other = rs.evaluate(scores, distributed_data, metrics, ties=ties)
    assert other.ties == ties
    assert [str(w.message) for w in shown_there] == [str(w.message) for w in shown]
    for name, values in one.per_query.items():
        np.testing.assert_allclose(other.per_query[name], values, rtol=1e-13)


def test_evaluate(data, distributed_data):
    model = rs.SparseRankSVM(alpha=0.02).fit(data)
    metrics = ["ndcg@10", "map", "mrr"]
    here = rs.evaluate(model.predict(data), data, metrics, profile="letor")
    for scores in (model, model.to_model(), model.predict(distributed_data), model.predict(data)):
        there = rs.evaluate(scores, distributed_data, metrics, profile="letor")
        for name in here.mean:
            np.testing.assert_array_equal(there.per_query[name], here.per_query[name])
        assert there.too_short == here.too_short
        np.testing.assert_array_equal(there.query_ids, here.query_ids)
    assert model.score(distributed_data) == pytest.approx(model.score(data), rel=1e-14)
    with refused_parameter("scores") as info:
        rs.evaluate(np.zeros(3), distributed_data)
    assert "(3,)" in info.value.reason
    with refused_parameter("scores") as info:
        rs.evaluate(da.zeros(data.n_docs, chunks=data.n_docs // 3 + 1), distributed_data)
    assert "3 chunks" in info.value.reason


def test_describe(data, client):
    X = data.X.copy()
    X[:, 3], X[:, 4], X[:, 6] = X[:, 2], 7.0, X[:, 2]
    X[: data.n_docs // 2, 6] += 1.0  # equal to column 2 only in the second part
    X[0, 5] = np.nan
    X[:, 7] = np.arange(data.n_docs) < data.n_docs // 2
    odd = data.replace_features(X)
    assert rs.describe(spread(odd, [data.n_docs // 2], client)) == rs.describe(odd)


# Sources


@pytest.mark.full
def test_data_frames(data, client):
    table = frame_of(data)
    frame = dd.from_pandas(table, npartitions=3, sort=False)
    distributed = rs.distribute(frame, client=client)
    assert (distributed.n_docs, distributed.n_queries, distributed.n_features) == (
        data.n_docs,
        data.n_queries,
        data.n_features,
    )
    assert "60 queries" in repr(distributed)
    model = rs.RankSVM().fit(data).to_model()
    scores = model.predict(distributed)
    assert scores.npartitions == 3
    expected = pd.Series(model.predict(data), index=table.index)
    pd.testing.assert_series_equal(scores.compute(), expected, check_names=False)
    some = rs.distribute(frame, features=["f3", "f1"], client=client, n_parts=1)
    assert (some.feature_names, some.n_parts) == (("f3", "f1"), 1)
    chosen = data.select_features(np.array([2, 0]))
    pd.testing.assert_series_equal(
        rs.RankSVM().fit(some).predict(some).compute(),
        pd.Series(rs.RankSVM().fit(chosen).predict(chosen), table.index),
        check_names=False,
    )
    with refused_data() as info:
        rs.distribute(frame, label="grade", client=client)
    assert "'grade'" in info.value.reason


def test_queries_across_partitions(data, client):
    shuffled = data.select_rows(np.random.default_rng(5).permutation(data.n_docs))
    distributed = spread(shuffled, [100, 130, 300], client)
    here, there = (rs.sparse_path(one, n_alphas=5) for one in (shuffled, distributed))
    np.testing.assert_allclose(there.coefs, here.coefs, **SAME)
    np.testing.assert_array_equal(distributed.query_ids, shuffled.query_ids)
    model = rs.RankSVM().fit(shuffled)
    np.testing.assert_allclose(model.predict(distributed).compute(), model.predict(shuffled), rtol=1e-12)
    here, there = (
        rs.evaluate(model.predict(shuffled), shuffled),
        rs.evaluate(model.predict(distributed), distributed),
    )
    np.testing.assert_array_equal(there.per_query["map"], here.per_query["map"])
    with refused_data() as info:
        spread(shuffled, [100, 130, 300], client, shuffle=False)
    assert re.match(r"query \d+ is in piece \d and in piece \d;", info.value.reason)
    ends = data.queries.offsets[[20, 40]].tolist()
    assert spread(data, ends, client, shuffle=False).n_parts == 3


@pytest.mark.full
def test_parts_without_pairs_and_empty_partitions(data, client):
    y = data.y.copy()
    cuts = data.queries.offsets[[15, 30]].tolist()
    y[cuts[0] : cuts[1]] = 1.0
    flat = rs.Dataset(data.X, y, data.qid)
    distributed = spread(flat, [cuts[0], cuts[0], cuts[1], cuts[1]], client)
    assert distributed.n_parts == 3
    for fit in (
        lambda one: rs.sparse_path(one, n_alphas=5).coefs,
        lambda one: rs.SparseListMLE(alpha=0.05, solver="newton").fit(one).coef_,
    ):
        np.testing.assert_allclose(fit(distributed), fit(flat), **SAME)
    model = rs.RankSVM().fit(flat)
    assert model.predict(distributed).chunks[0] == tuple(np.diff([0, *cuts, data.n_docs]))
    assert (
        rs.evaluate(model.predict(distributed), distributed).mean
        == rs.evaluate(model.predict(flat), flat).mean
    )
    np.testing.assert_allclose(model.predict(distributed).compute(), model.predict(flat), rtol=1e-12)
    same = rs.Dataset(data.X, np.ones(data.n_docs), data.qid)
    with refused_data() as info:
        rs.sparse_path(spread(same, [cuts[0]], client))
    assert "pair" in info.value.reason
    with refused_data() as info:
        lay_out(Cluster(client), PieceSource([Piece("piece 0", part_of, (data, 0, 0))]), True, 1)
    assert "no rows" in info.value.reason


def test_arrays(data, client):
    X = da.from_array(data.X, chunks=(200, 5))
    distributed = rs.distribute(X, y=da.from_array(data.y, chunks=90), qid=data.qid, client=client)
    np.testing.assert_allclose(rs.RankSVM().fit(distributed).coef_, rs.RankSVM().fit(data).coef_, **SAME)
    with refused_parameter("qid"):
        rs.distribute(X, y=data.y, client=client)
    with refused_parameter("y") as info:
        rs.distribute(X, y=da.ones(3), qid=data.qid, client=client)
    assert "3 entries" in info.value.reason


def test_parquet_files(data, client, tmp_path):
    names = ["label", "qid", *data.feature_names]
    table, half = frame_of(data), data.n_docs // 2
    table[:half].to_parquet(tmp_path / "a.parquet", row_group_size=60)
    other = table[half:].astype({"f2": np.float32})[[*reversed(names)]]
    other.to_parquet(tmp_path / "b.parquet")
    X = data.X.copy()
    X[half:, 1] = X[half:, 1].astype(np.float32)
    expected = rs.Dataset(X, data.y, data.qid)
    coefs = rs.RankSVM().fit(expected).coef_
    for source in ([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path, str(tmp_path / "*.parquet")):
        distributed = rs.distribute(source, client=client)
        assert distributed.feature_names == data.feature_names
        np.testing.assert_allclose(rs.RankSVM().fit(distributed).coef_, coefs, **SAME)
    split = rs.distribute(tmp_path / "a.parquet", client=client, n_parts=3)
    assert split.n_parts == 3
    whole = rs.read_dataset(tmp_path / "a.parquet")
    np.testing.assert_allclose(rs.RankSVM().fit(split).coef_, rs.RankSVM().fit(whole).coef_, **SAME)
    other.drop(columns=["f3", "f4"]).to_parquet(tmp_path / "c.parquet")
    with refused_data(tmp_path / "c.parquet") as info:
        rs.distribute([tmp_path / "a.parquet", tmp_path / "c.parquet"], client=client)
    assert "f3, f4" in info.value.reason
    (tmp_path / "d.parquet").write_bytes(b"PAR1 not really")
    with refused_data(tmp_path / "d.parquet"):
        rs.distribute([tmp_path / "a.parquet", tmp_path / "d.parquet"], client=client)
    with refused_data() as info:
        rs.distribute([tmp_path / "a.parquet", tmp_path / "e.parquet"], client=client)
    assert "e.parquet: " in info.value.reason
    with refused_data(tmp_path / "*.nothing"):
        rs.distribute(str(tmp_path / "*.nothing"), client=client)


def test_a_data_set_on_disk_is_read_by_the_workers(data, client, tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, data.X.shape)
    X[:] = data.X
    distributed = rs.distribute(rs.Dataset(X, data.y, data.qid, data.feature_names), client=client, n_parts=3)
    assert distributed.n_parts == 3
    np.testing.assert_allclose(rs.RankSVM().fit(distributed).coef_, rs.RankSVM().fit(data).coef_, **SAME)


def test_a_folder_is_read_by_the_workers(data, client, tmp_path):
    rs.io.convert_dataset(data, tmp_path / "data.ranksieve")
    distributed = rs.distribute(tmp_path / "data.ranksieve", client=client, n_parts=3)
    assert distributed.n_parts == 3
    np.testing.assert_array_equal(distributed.query_ids, data.query_ids)
    np.testing.assert_allclose(rs.RankSVM().fit(distributed).coef_, rs.RankSVM().fit(data).coef_, **SAME)


def test_columns_of_other_kinds(data, client):
    def mixed(k):
        part = data.select_rows(np.arange(100 * k, 100 * k + 100))
        if k == 0:
            return part.replace_features(part.X.astype(np.float32))
        return part.select_features(np.arange(12)[::-1])

    def lacking(k):
        return mixed(k) if k == 0 else mixed(k).select_features(np.arange(11))

    distributed = lay_out(
        Cluster(client), PieceSource([Piece(f"piece {k}", mixed, (k,)) for k in range(2)]), True, 2
    )
    assert (distributed.feature_names, "float64" in repr(distributed)) == (data.feature_names, True)
    stacked = np.vstack([data.X[:100].astype(np.float32), data.X[100:200]])
    expected = rs.RankSVM().fit(rs.Dataset(stacked, data.y[:200], data.qid[:200]))
    np.testing.assert_allclose(rs.RankSVM().fit(distributed).coef_, expected.coef_, **SAME)
    with refused_data("piece 1") as info:
        lay_out(Cluster(client), PieceSource([Piece(f"piece {k}", lacking, (k,)) for k in range(2)]), True, 2)
    assert "f1" in info.value.reason
    with refused_parameter("source", "int"):
        rs.distribute(3, client=client)
    with refused_parameter("n_parts", 0):
        rs.distribute([], client=client, n_parts=0)


def test_errors_in_the_data_name_the_part(data, client):
    X = data.X.copy()
    X[300, 2] = np.inf
    with refused_data("piece 1") as info:
        rs.sparse_path(spread(data.replace_features(X), [200], client))
    assert "feature f3" in info.value.reason


def fails_without_space(data, first, last):
    raise OSError(errno.ENOSPC, "No space left on device", "/scratch/spill")


def test_a_full_disk_is_named(data, client):
    source = PieceSource([Piece("piece 0", fails_without_space, (data, 0, 10))])
    with pytest.raises(ClusterError, match=r"worker tcp.*/scratch/spill"):
        lay_out(Cluster(client), source, True, 1)


# The cluster


def test_messages_of_failed_parts():
    worker = SimpleNamespace(address="tcp://10.0.0.7:1234")
    for error, message in [
        (
            KilledWorker("task", worker, 3),
            r"piece 4: .* tcp://10\.0\.0\.7:1234",
        ),
        (CancelledError(), "piece 4: the task was cancelled"),
        (MemoryError("0 bytes left"), "piece 4: 0 bytes left"),
        (
            PermissionError(errno.EACCES, "Permission denied", "/data/x"),
            "/data/x: Permission denied",
        ),
        (ClusterError("no space"), "piece 4: no space"),
        (DataError("piece 4", None, "already said"), "^piece 4: already said$"),
    ]:
        assert re.search(message, str(readable_error(error, "piece 4"))), error


def test_workers_of_another_version(data, client, monkeypatch):
    monkeypatch.setattr("ranksieve.__version__", "0.0.1")
    with pytest.raises(ValueError, match=r"ranksieve .*0\.0\.1"):
        rs.distribute(frame_of(data), client=client)
    monkeypatch.undo()
    monkeypatch.setattr("ranksieve.dask.cluster.PACKAGES", ("not_there",))
    with pytest.raises(ValueError, match="not_there"):
        rs.distribute(frame_of(data), client=client)


def test_without_a_cluster(monkeypatch):
    monkeypatch.setattr("ranksieve.dask.cluster.CONNECT_TIMEOUT", 0.5)
    with pytest.raises(ClusterError, match=r"tcp://127\.0\.0\.1:1 "):
        rs.distribute("x.parquet", client="tcp://127.0.0.1:1")


def workers_alive(cluster) -> list[int]:
    return [nanny.process.pid for nanny in cluster.workers.values()]


@pytest.mark.full
def test_a_killed_worker_changes_nothing(data, client):
    distributed = spread(data, [data.n_docs // 2], client)
    here = rs.sparse_path(data, n_alphas=8)
    killed = []

    def kill(done: int, total: int) -> None:
        if done == 4:
            killed.append(workers_alive(client.cluster)[0])
            os.kill(killed[0], signal.SIGKILL)

    there = rs.sparse_path(distributed, n_alphas=8, progress=kill)
    assert killed
    np.testing.assert_allclose(there.coefs, here.coefs, **SAME)
    np.testing.assert_array_equal(there.n_iter, here.n_iter)
    client.wait_for_workers(2)  # for the other tests


def run(*words):
    return subprocess.Popen([sys.executable, *map(str, words)], stderr=subprocess.PIPE, text=True)


def wait_until(condition, seconds=60.0):
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.05)


SCHEDULER = """
import sys
from distributed import LocalCluster
options = dict(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0")
with LocalCluster(**options) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@pytest.mark.full
def test_a_lost_scheduler_is_reported_in_one_sentence(data, tmp_path):
    command = [sys.executable, "-c", SCHEDULER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as scheduler:
        try:
            with Client(scheduler.stdout.readline().strip(), set_as_default=False) as client:
                distributed = spread(data, [data.n_docs // 2], client)

                def stop(done: int, total: int) -> None:
                    if done == 2:
                        scheduler.kill()
                        scheduler.wait()

                with pytest.raises(ClusterError, match="is lost"):
                    rs.sparse_path(distributed, n_alphas=8, progress=stop)
        finally:
            scheduler.kill()


# The command line


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    """A folder of two parquet files."""
    folder = tmp_path_factory.mktemp("parquet")
    table = frame_of(data)
    for k, rows in enumerate((table[:200], table[200:])):
        rows.to_parquet(folder / f"part{k}.parquet")
    return folder


@pytest.mark.full
def test_commands(data, client, folder, tmp_path):
    address, options = client.scheduler.address, ["--normalise", "none", "--n-alphas", 6, "-o"]
    path = call("path", folder, "--cluster", address, *options, tmp_path / "path.json")
    assert path.exit_code == 0, path.output
    coefs = json.loads((tmp_path / "path.json").read_text())["coefs"]
    np.testing.assert_allclose(coefs, rs.sparse_path(data, n_alphas=6).coefs, **SAME)
    fitted = call(
        "fit", folder / "*.parquet", "--cluster", address, "--max-features", 4, "--set", "families=['l1']",
        "--set", "n_alphas=6", "-o", tmp_path / "model.json",
    )  # fmt: skip
    assert fitted.exit_code == 0, fitted.output
    here = rs.SparseRanker(4, families=["l1"], n_alphas=6).fit(data)
    np.testing.assert_allclose(rs.load_model(tmp_path / "model.json").coef, here.coef_, **SAME)
    refused = call(
        "fit", folder, "--cluster", address, "-o", tmp_path / "m.json", "--report", tmp_path / "p.html"
    )
    assert (refused.exit_code, "--report" in refused.stderr) == (2, True)


@pytest.mark.full
def test_an_interrupted_command_releases_its_results(client, folder):
    def others() -> list[int]:
        """Numbers of results that each other client of the scheduler holds or waits for."""

        def find(dask_scheduler):
            return {
                name: len(one.wants_what) for name, one in dask_scheduler.clients.items() if one.wants_what
            }

        return [count for name, count in client.run_on_scheduler(find).items() if name != client.id]

    with run(
        "-c", "from ranksieve.cli import main; main()", "path", folder, "--cluster", client.scheduler.address,
        "--n-alphas", 5000,
    ) as command:  # fmt: skip
        try:
            wait_until(lambda: any(count > 1 for count in others()))
            command.send_signal(signal.SIGINT)
            _, stderr = command.communicate(timeout=60)
        finally:
            command.kill()
    assert command.returncode == 130, stderr
    assert "interrupted" in stderr
    wait_until(lambda: not others())


@pytest.mark.filterwarnings("ignore:.* training documents have weight 0")
@pytest.mark.full
def test_document_weights(data, client, tmp_path):
    weight = np.random.default_rng(4).choice([0.0, 0.5, 2.0], data.n_docs)
    weighed = rs.Dataset(data.X, data.y, data.qid, data.feature_names, document_weight=weight)
    made = spread(weighed, [data.n_docs // 3 + 1], client)
    here, there = (rs.sparse_path(one, n_alphas=2, normalise="within_z") for one in (weighed, made))
    np.testing.assert_allclose(there.objectives, here.objectives, rtol=1e-9)
    np.testing.assert_allclose(there.coefs, here.coefs, atol=1e-6)
    rs.write_dataset(weighed, tmp_path / "train.parquet")
    for source in (weighed, tmp_path / "train.parquet"):
        distributed = rs.distribute(source, client=client)
        np.testing.assert_array_equal(distributed.pair_weights, weighed.pair_weights)
    none_left = np.where(data.qid == data.query_ids[2], 0.0, weight)
    weighed = rs.Dataset(data.X, data.y, data.qid, data.feature_names, document_weight=none_left)
    made = spread(weighed, [data.n_docs // 3 + 1], client)
    few = {"cv": 2, "families": ["l1"], "n_alphas": 4, "smoothing": 1}
    here, there = (rs.SparseRanker(**few).fit(one).choice_.validation for one in (weighed, made))
    np.testing.assert_array_equal(there.query_ids, here.query_ids)
    np.testing.assert_allclose(there.values, here.values, atol=1e-9)
    with refused_parameter("document_weight", "clicks"):
        rs.distribute(weighed, client=client, document_weight="clicks")
