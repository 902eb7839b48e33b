"""Streams of complete queries against reading the whole file."""

from __future__ import annotations

import gzip
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import read_letor, write_letor
from ranksieve.io.stream import stream_letor
from tests.conftest import random_dataset
from tests.refusals import refused_data, refused_parameter
from tests.tiers import examples


def joined(chunks):
    """(X, y, qid) of all chunks; asserts that every query is in only one chunk."""
    chunks = list(chunks)
    ids = [set(chunk.qid) for chunk in chunks]
    assert sum(map(len, ids)) == len(set().union(*ids))
    X = [chunk.X.toarray() if sp.issparse(chunk.X) else chunk.X for chunk in chunks]
    return np.concatenate(X), np.concatenate([c.y for c in chunks]), np.concatenate([c.qid for c in chunks])


def assert_same_rows(chunks, whole):
    X, y, qid = joined(chunks)
    np.testing.assert_array_equal(X, whole.X)
    np.testing.assert_array_equal(y, whole.y)
    np.testing.assert_array_equal(qid, whole.qid.astype(str))


@examples(25)
@given(seed=st.integers(0, 1000), chunk_bytes=st.integers(1, 5000))
def test_any_chunk_size_has_the_same_rows(seed, chunk_bytes, tmp_path_factory):
    path = tmp_path_factory.mktemp("stream") / "data.txt"
    data = random_dataset(seed, n_queries=8, n_features=3)
    write_letor(data, path)
    chunks = list(stream_letor(path, n_features=3, chunk_bytes=chunk_bytes))
    assert_same_rows(chunks, data)
    if chunk_bytes < 100:
        assert len(chunks) > 1


@pytest.mark.parametrize("zipped", [False, True])
def test_gzip_blank_lines_comments_and_any_ids(tmp_path, zipped):
    text = b"\n# head\n2 qid:a 1:0.5 # docid = x\r\n\n0 qid:a 2:1\n1 qid:7 1:2\n# between\n0 qid:7 2:3\n"
    path = tmp_path / ("data.txt.gz" if zipped else "data.txt")
    path.write_bytes(gzip.compress(text) if zipped else text)
    for chunk_bytes in (1, 20, 1000):
        X, y, qid = joined(stream_letor(path, n_features=3, chunk_bytes=chunk_bytes))
        np.testing.assert_array_equal(X, [[0.5, 0, 0], [0, 1, 0], [2, 0, 0], [0, 3, 0]])
        np.testing.assert_array_equal(y, [2, 0, 1, 0])
        assert qid.tolist() == ["a", "a", "7", "7"]


def test_queries_are_not_split(tmp_path):
    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(300, 2)), rng.integers(0, 3, 300), [1] * 3 + [2] * 294 + [3] * 3)
    write_letor(data, tmp_path / "data.txt")
    chunks = list(stream_letor(tmp_path / "data.txt", n_features=2, chunk_bytes=200))
    assert [len(chunk) for chunk in chunks] == [3, 294, 3]
    assert_same_rows(chunks, data)


@pytest.mark.parametrize(("sparse", "dtype"), [(True, np.float64), (False, np.float32), (True, np.float32)])
def test_sparse_and_float32(tmp_path, sparse, dtype):
    data = random_dataset(3, n_queries=8, n_features=3)
    write_letor(data, tmp_path / "data.txt")
    options = {"n_features": 3, "sparse": sparse, "dtype": dtype}
    whole = read_letor(tmp_path / "data.txt", **options)
    chunks = list(stream_letor(tmp_path / "data.txt", chunk_bytes=300, **options))
    assert all(chunk.X.dtype == dtype and sp.issparse(chunk.X) == sparse for chunk in chunks)
    X = whole.X.toarray() if sparse else whole.X
    np.testing.assert_array_equal(joined(chunks)[0], X)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("chunk_bytes", [1, 25, 60, 1000])
def test_without_n_features_chunks_become_wider(tmp_path, sparse, chunk_bytes):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:a\n0 qid:a 2:1\n0 qid:b 1:4\n2 qid:b 5:3\n1 qid:c 3:2\n")
    chunks = list(stream_letor(path, sparse=sparse, chunk_bytes=chunk_bytes))
    widths = [chunk.n_features for chunk in chunks]
    assert widths == sorted(widths)
    assert widths[-1] == 5
    assert_same_rows([chunk.widened(5) for chunk in chunks], read_letor(path))
    if chunk_bytes < 60:
        assert widths[0] < 5


def test_a_file_without_features(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:a\n0 qid:b\n")
    with refused_data("data.txt") as info:
        list(stream_letor(path, chunk_bytes=1))
    assert "feature" in info.value.reason
    assert sum(len(chunk) for chunk in stream_letor(path, n_features=2)) == 2


@pytest.mark.parametrize("chunk_bytes", [1, 30, 1000])
def test_scattered_queries_are_named_with_their_line(tmp_path, chunk_bytes):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:a 1:1\n0 qid:b 1:2\n\n# note\n0 qid:b 1:3\n2 qid:a 1:4\n")
    with refused_data("data.txt", 6) as info:
        list(stream_letor(path, n_features=1, chunk_bytes=chunk_bytes))
    assert "query a " in info.value.reason


@pytest.mark.parametrize(("policy", "filled"), [("zero", 0.0), ("query_min", 2.0), ("keep", np.nan)])
def test_query_min_uses_the_whole_query(tmp_path, policy, filled):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:a 1:NULL\n0 qid:a 1:5\n0 qid:a 1:2\n1 qid:b 1:1\n")
    X, _, _ = joined(stream_letor(path, n_features=1, missing=policy, chunk_bytes=1))
    np.testing.assert_array_equal(X[:, 0], [filled, 5, 2, 1])


def test_missing_values_are_refused_with_their_line(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:a 1:3\n0 qid:a 1:NULL\n")
    with refused_data("data.txt", 2):
        list(stream_letor(path, n_features=1, chunk_bytes=1, missing="error"))
    assert np.isnan(np.vstack([part.X for part in stream_letor(path, n_features=1)])).sum() == 1


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"n_features": 0}, "n_features"),
        ({"n_features": 2, "chunk_bytes": 0}, "chunk_bytes"),
        ({"n_features": 2, "missing": "column_mean"}, "missing"),
        ({"n_features": 2, "missing": "guess"}, "missing"),
    ],
)
def test_bad_options_are_refused_at_once(options, name):
    with refused_parameter(name, options[name]):
        stream_letor("nowhere.txt", **options)


def test_bad_files(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("# nothing\n\n")
    with refused_data("data.txt"):
        list(stream_letor(path, n_features=2))
    path.write_text("1 qid:a 3:1\n")
    with refused_data("data.txt", 1) as info:
        list(stream_letor(path, n_features=2))
    assert "`n_features=2`" in info.value.reason
    with pytest.raises(FileNotFoundError, match=r"absent\.txt: "):
        list(stream_letor(tmp_path / "absent.txt", n_features=2))


def peak_of_stream(path, chunk_bytes):
    tracemalloc.start()
    try:
        rows = sum(len(chunk) for chunk in stream_letor(path, n_features=20, chunk_bytes=chunk_bytes))
        return rows, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_file(tmp_path):
    features = " ".join(f"{j}:0.{j:06d}" for j in range(1, 21))
    peaks = []
    for n_queries in (15, 15, 120):  # the first run also imports and compiles
        path = tmp_path / f"{n_queries}.txt"
        path.write_text(
            "".join(f"{k % 3} qid:{q} {features}\n" for q in range(n_queries) for k in range(100))
        )
        rows, peak = peak_of_stream(path, 1 << 14)
        assert rows == 100 * n_queries
        assert path.stat().st_size > 10 * (1 << 14)
        peaks.append(peak)
    assert peaks[2] < 1.2 * peaks[1]
