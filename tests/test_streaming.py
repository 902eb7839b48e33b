"""Features on disk: bit-identical to memory, and only necessary reads."""

from __future__ import annotations

import itertools
import tempfile

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.data import disk as disk_dataset
from ranksieve.data import feature_matrix as streamed_features
from ranksieve.data.disk import DiskDataset, DiskMatrix, write_block
from ranksieve.data.matrix import RowRange, SomeColumns
from ranksieve.losses import squared_hinge
from ranksieve.objective import StreamedObjective, make_objective
from ranksieve.penalties import L1
from ranksieve.prepare import Preparation
from ranksieve.solvers import Problem, ProxNewton
from tests.refusals import refused_data

D = 24


def draw(dtype=np.float64, far=True, seed=0, n_queries=40):
    """Ranking data; with ``far``, some columns have a large offset."""
    rng = np.random.default_rng(seed)
    data = rs.make_ranking(n_queries, D, 6, docs_per_query=(2, 60), random_state=seed)
    X = data.X * rng.uniform(0.5, 2.0, D)
    if far:
        X[:, [3, 11]] += 1000.0
    return rs.Dataset(X.astype(dtype), data.y, data.qid)


@pytest.fixture
def on_disk(tmp_path, monkeypatch):
    """Function that writes a data set to disk in blocks of random sizes; with small pieces and chunks."""
    monkeypatch.setattr(streamed_features, "PIECE_ROWS", 90)
    monkeypatch.setattr(streamed_features, "CHUNK_ROWS", 17)

    def put(data, name="features.bin"):
        rng, n = np.random.default_rng(1), data.n_docs
        starts = np.concatenate([[0], np.sort(rng.choice(np.arange(1, n), 6, replace=False)), [n]])
        with open(tmp_path / name, "wb") as file:
            for a, b in itertools.pairwise(starts):
                write_block(file, np.asarray(data.X)[a:b], data.X.dtype)
        X = DiskMatrix(tmp_path / name, starts, data.n_features, data.X.dtype)
        return DiskDataset(X, data.y, data.queries, data.feature_names)

    return put


def weights(seed, n_used):
    rng = np.random.default_rng(seed)
    w = np.zeros(D)
    w[rng.choice(D, n_used, replace=False)] = rng.normal(size=n_used)
    return w


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_used", [0, 1, 5, 6, 7, 13, 24])
@pytest.mark.parametrize("cached", [(), (0, 3, 5, 11, 20), tuple(range(12))])
def test_every_operation_is_bit_identical_to_memory(on_disk, dtype, n_used, cached):
    data = draw(dtype)
    memory, disk = make_objective(data), make_objective(on_disk(data))
    assert len(memory.features.centred) >= 2
    w, columns = weights(n_used, n_used), np.array([1, 3, 4, 11, 17])
    np.testing.assert_array_equal(memory.features.max_abs, disk.features.max_abs)
    scores = [objective.scores(w) for objective in (memory, disk)]
    for objective in (memory, disk):
        objective.features.keep(np.array(cached, dtype=np.int64))
    scores += [objective.scores(w) for objective in (memory, disk)]
    for other in scores[1:]:
        np.testing.assert_array_equal(other, scores[0])
    a, b = memory.evaluate(w), disk.evaluate(w)
    cuts = np.array([0, 7, 8, 30, data.n_queries])
    for ours, theirs in [
        (memory.gradient(a), disk.gradient(b)),
        (memory.gradients(a, cuts), disk.gradients(b, cuts)),
        (memory.hessian(a, columns), disk.hessian(b, columns)),
        (memory.hessians(a, columns, cuts), disk.hessians(b, columns, cuts)),
        (memory.curvatures(a), disk.curvatures(b)),
        (memory.hessian_product(a, w), disk.hessian_product(b, w)),
        (memory.features.column(3), disk.features.column(3)),
        (memory.restricted(columns).scores(w[columns]), disk.restricted(columns).scores(w[columns])),
    ]:
        np.testing.assert_array_equal(ours, theirs)
    g = memory.loss.queries.restore(a.at.gradient)
    np.testing.assert_array_equal(
        disk.features.transposed_columns(g, columns), memory.features.transposed(g)[columns]
    )


def test_objectives_of_different_columns_are_independent(tmp_path):
    """Caches of objectives of different columns must not be mixed up."""
    data = draw(far=False)
    disk = make_objective(rs.io.convert_dataset(data, tmp_path / "train.ranksieve"))
    memory = make_objective(data)
    for seed in range(4):
        columns = np.sort(np.random.default_rng(seed).choice(D, 3, replace=False))
        w = np.array([0.5, -1.0, 0.25])
        ours, theirs = memory.restricted(columns), disk.restricted(columns)
        np.testing.assert_array_equal(theirs.scores(w), ours.scores(w))
        np.testing.assert_allclose(theirs.scores(w), data.X[:, columns] @ w, rtol=1e-12, atol=1e-12)
        at, there = ours.evaluate(w), theirs.evaluate(w)
        np.testing.assert_array_equal(theirs.gradient(there), ours.gradient(at))
        np.testing.assert_array_equal(theirs.hessian(there, np.arange(3)), ours.hessian(at, np.arange(3)))


def test_best_subset_from_disk_has_the_same_certificate(tmp_path):
    data = rs.make_ranking(n_queries=40, n_features=12, n_informative=5, noise=1.0, random_state=2)
    ours, theirs = (
        rs.BestSubset(3, max_nodes=40).fit(one)
        for one in (data, rs.io.convert_dataset(data, tmp_path / "train.ranksieve"))
    )
    np.testing.assert_array_equal(theirs.coef_, ours.coef_)
    assert theirs.n_iter_ == ours.n_iter_ > 1
    assert theirs.root_bound_ == ours.root_bound_
    assert theirs.subset_.certificate() == ours.subset_.certificate()


def test_scores_do_not_depend_on_cached_columns():
    data, w = draw(far=False), weights(3, 6)
    features = make_objective(data).features
    before = features.scores(w)
    features.keep(np.flatnonzero(w))
    assert features.keeps(np.flatnonzero(w))
    np.testing.assert_array_equal(features.scores(w), before)


@pytest.mark.parametrize("normalise", ["none", "z", "within_z", "min_max", "query_min_max", "query_z"])
@pytest.mark.parametrize("missing", ["zero", "query_min", "column_mean", "indicator"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_are_prepared_while_reading(on_disk, normalise, missing, dtype):
    X = draw(dtype).X
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    data = draw(dtype).replace_features(X)
    disk = on_disk(data)
    ours, _ = Preparation.learn_and_fill(data, normalise, missing)
    theirs, _ = Preparation.learn_and_fill(disk, normalise, missing)
    assert ours == theirs
    prepared = theirs.for_learning(disk)
    assert prepared.feature_names == ours.for_learning(data).feature_names
    np.testing.assert_array_equal(np.asarray(prepared.X), ours.for_learning(data).X)
    for a, b in [(3, 4), (0, 1), (100, 333)]:
        np.testing.assert_array_equal(prepared.X[a:b], ours.for_learning(data).X[a:b])


def test_a_path_is_bit_identical_and_skips_small_gradients(on_disk, monkeypatch):
    data = draw(far=False, n_queries=60)
    disk = on_disk(data)
    ours, theirs = (rs.sparse_path(one, n_alphas=60, tol=1e-5, min_ratio=0.02) for one in (data, disk))
    for name in ("alphas", "coefs", "objectives", "gaps", "n_iter"):
        np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name))
    assert ours.passes is None
    assert theirs.passes.full < theirs.n_iter.sum()  # less than one pass per step
    assert 0 < theirs.passes.columns < D * theirs.passes.partial / 2
    assert str(theirs.passes).startswith(f"{theirs.passes.full} full passes over the features and")
    assert disk.X.bytes_read < disk.X.nbytes * (theirs.passes.equivalent + 10)


def test_bounds_of_gradients_are_valid(on_disk):
    data = on_disk(draw(far=False))
    objective, rng = make_objective(data), np.random.default_rng(0)
    assert isinstance(objective, StreamedObjective)
    far_away = np.full(D, 1e9)
    for _ in range(5):  # full gradients, until bounds are used
        start = rng.normal(size=D)
        objective.gradient_where_large(objective.evaluate(start), np.zeros(D))
    checked = 0
    for size in (1e-6, 1e-4, 1e-2, 1e-1, 1.0):
        point = objective.evaluate(start + size * np.where(rng.random(D) < 0.2, rng.normal(size=D), 0.0))
        exact, bound = objective.gradient(point), objective._bounds(point).values
        assert np.all(np.abs(bound) >= np.abs(exact))
        checked += int(np.sum(np.abs(bound) < 2 * np.abs(exact)))
    assert checked > D  # the bounds are not just large
    sparse = np.where(np.arange(D) < 3, start, 0.0)
    for _ in range(2):
        g = objective.gradient_where_large(objective.evaluate(sparse), far_away)
    np.testing.assert_array_equal(g[:3], objective.gradient(objective.evaluate(sparse))[:3])


def test_unused_columns_are_not_read_from_disk(on_disk):
    disk = on_disk(draw(far=False))
    objective = make_objective(disk)
    before = disk.X.bytes_read
    objective.scores(np.where(np.isin(np.arange(D), [2, 9]), 1.0, 0.0))
    assert disk.X.bytes_read - before == 2 * disk.n_docs * 8
    assert objective.features.passes.partial == 1


def test_only_the_arrays_of_the_latest_point_are_cached(monkeypatch):
    """Other points recompute their arrays with bit-identical results."""
    data = draw()
    plain = make_objective(data)
    monkeypatch.setattr(squared_hinge, "MAX_CACHED_DOCUMENTS", 0)
    lean = make_objective(data)
    ws = [weights(seed, 5) for seed in range(3)]
    points, expected = [lean.evaluate(w) for w in ws], [plain.evaluate(w) for w in ws]
    for point, other in zip([*points, *points[::-1]], [*expected, *expected[::-1]], strict=True):
        assert (point.value, point.slack) == (other.value, other.slack)
        np.testing.assert_array_equal(lean.gradient(point), plain.gradient(other))
        np.testing.assert_array_equal(lean.hessian(point, np.arange(8)), plain.hessian(other, np.arange(8)))
        assert lean.slopes_along(point, points[1].scores)(0.3) == plain.slopes_along(
            other, expected[1].scores
        )(0.3)


@pytest.mark.parametrize(
    "method", ["RankSVM", "FenchelRank", "SparseListMLE", "SparseRankSVM", "MinBatSRank"]
)
def test_rankers_from_disk_are_equal(on_disk, method):
    data = draw(far=False)
    few = {"tol": 0.05} if method == "SparseListMLE" else {}
    fitted = [getattr(rs, method)(normalise="within_z", **few).fit(one) for one in (data, on_disk(data))]
    np.testing.assert_array_equal(fitted[1].coef_, fitted[0].coef_)
    assert fitted[1].gap_ == fitted[0].gap_ or np.isnan(fitted[0].gap_)


@pytest.mark.parametrize("in_memory", [0, 2**28])
def test_sparse_ranker_from_disk_selects_the_same_model(on_disk, monkeypatch, in_memory):
    monkeypatch.setattr(disk_dataset, "MAX_MEMORY_BYTES", in_memory)
    monkeypatch.setattr(disk_dataset, "PART_ROWS", 300)
    data = draw()
    ours, theirs = (rs.SparseRanker(max_features=4).fit(one) for one in (data, on_disk(data)))
    np.testing.assert_array_equal(theirs.coef_, ours.coef_)
    assert theirs.choice_.family.label == ours.choice_.family.label
    np.testing.assert_allclose(theirs.choice_.validation.mean, ours.choice_.validation.mean, rtol=1e-14)
    assert theirs.to_model().data == ours.to_model().data


def test_reordered_queries_are_written_to_an_anonymous_file(on_disk, monkeypatch, tmp_path):
    folder, files = tmp_path / "temporary", []
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    def write(*block):
        write_block(*block)
        files.append(list(folder.iterdir()))

    monkeypatch.setattr("ranksieve.data.disk.write_block", write)
    monkeypatch.setattr(disk_dataset, "MAX_MEMORY_BYTES", 0)
    data = draw()
    disk, order = on_disk(data), np.random.default_rng(0).permutation(data.n_queries)[:25]
    ours, theirs = data.in_query_order(order), disk.in_query_order(order)
    assert isinstance(theirs, DiskDataset)
    np.testing.assert_array_equal(np.asarray(theirs.X), ours.X)
    np.testing.assert_array_equal(theirs.y, ours.y)
    np.testing.assert_array_equal(theirs.qid, ours.qid)
    assert files == [[]]  # the temporary file has no name, so it cannot be left behind
    with pytest.raises(ValueError, match="another process"):
        theirs.X.__reduce__()


def test_a_full_disk_for_temporary_files(on_disk, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ranksieve.data.disk.write_block", full)
    monkeypatch.setattr(disk_dataset, "MAX_MEMORY_BYTES", 0)
    disk = on_disk(draw())
    with pytest.raises(OSError, match="TMPDIR"):
        disk.in_query_order(np.arange(5))


def test_views_of_rows_and_columns(on_disk):
    data = draw()
    disk = on_disk(data)
    rows, columns = RowRange(disk.X, 37, 210), SomeColumns(disk.X, np.array([5, 1, 1]))
    np.testing.assert_array_equal(np.asarray(rows), data.X[37:210])
    np.testing.assert_array_equal(np.asarray(columns), data.X[:, [5, 1, 1]])
    part = disk.part(3, 9)
    np.testing.assert_array_equal(np.asarray(part.X), data.select_queries(np.arange(3, 9)).X)
    assert next(disk.X.pieces(0, disk.n_docs, 90))[0] == 0
    assert disk.X.value_range == (data.X.min(), data.X.max())


def test_truncated_files(on_disk, tmp_path):
    disk = on_disk(draw())
    content = (tmp_path / "features.bin").read_bytes()
    (tmp_path / "features.bin").write_bytes(content[:-8])
    with refused_data("features.bin") as info:
        DiskMatrix(tmp_path / "features.bin", disk.X.starts, D, np.float64)
    assert f"{len(content) - 8} bytes" in info.value.reason
    with refused_data("features.bin"):
        np.asarray(disk.X)


def test_solving_does_not_depend_on_the_cache_limit(monkeypatch):
    data = draw()
    expected = ProxNewton(1e-9).solve(Problem(make_objective(data), L1(0.01))).w
    monkeypatch.setattr(squared_hinge, "MAX_CACHED_DOCUMENTS", 0)
    np.testing.assert_array_equal(ProxNewton(1e-9).solve(Problem(make_objective(data), L1(0.01))).w, expected)
