"""Data sets in folders: the same data as in memory, atomic writing, bounded memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import ranksieve as rs
from ranksieve._util import files
from ranksieve._util.files import atomic_folder
from ranksieve.data.dataset import check_finite, fingerprint
from ranksieve.data.disk import DiskMatrix
from ranksieve.data.features import column_blocks, dense_columns
from ranksieve.data.matrix import (
    dense_block,
    missing_per_column,
    spread_and_largest,
)
from ranksieve.io import batches, folder_writer
from tests.conftest import random_dataset
from tests.refusals import refused_data, refused_parameter
from tests.test_cli import QUICK, process, refused, run

HIDDEN = ".out.ranksieve.*"


pytestmark = pytest.mark.filterwarnings("ignore:.*rows of some queries are not contiguous")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small_blocks(monkeypatch):
    """Small blocks, batches and chunks, so that a short text has many of them."""
    monkeypatch.setattr(folder_writer, "MAX_BLOCK_ROWS", 7)
    monkeypatch.setattr(batches, "MAX_BATCH_ROWS", 3)
    monkeypatch.setattr(batches, "CHUNK_BYTES", 90)


def grouped(data):
    """The rows of a data set grouped by query, as in a folder."""
    return data.select_rows(data.queries.order)


def assert_same(opened, data):
    """Assert that the folder has the data in memory, bit for bit."""
    data = grouped(data)
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    assert opened.X.dtype == X.dtype
    assert np.asarray(opened.X).tobytes() == X.tobytes()
    np.testing.assert_array_equal(opened.y, data.y)
    assert opened.qid.dtype.kind == data.qid.dtype.kind
    np.testing.assert_array_equal(opened.qid, data.qid)
    assert opened.feature_names == data.feature_names
    for name in ("doc_ids", "comments"):
        column, expected = getattr(opened, name), getattr(data, name)
        assert (column is None) == (expected is None), name
        assert column is None or list(column) == ["" if one is None else str(one) for one in expected], name
    assert opened.profile == data.profile
    assert fingerprint(opened) == fingerprint(data.replace_features(X))
    starts = opened.X.starts if isinstance(opened.X, DiskMatrix) else []
    assert set(starts) <= set(opened.queries.offsets.tolist())  # no query is in two blocks
    for hidden in Path().glob(".*"):
        raise AssertionError(f"{hidden} was left behind")


def letor_text(seed, n=60, text_ids=False, comments=False, nulls=False, growing=False, first=0):
    """LETOR text with a few queries."""
    rng, lines = np.random.default_rng(seed), []
    queries = first + np.sort(rng.integers(0, 9, n))
    for row, query in enumerate(queries):
        width = 2 + row // 8 if growing else 4
        chosen = np.sort(rng.permutation(width)[: rng.integers(1, width + 1)])
        values = ["NULL" if nulls and rng.random() < 0.2 else repr(float(v)) for v in rng.normal(size=width)]
        line = f"{rng.integers(0, 3)} qid:{f'q{query}é' if text_ids else query} "
        line += " ".join(f"{j + 1}:{values[j]}" for j in chosen)
        if comments and rng.random() < 0.7:
            line += f" # docid = D{row} é" if rng.random() < 0.5 else f"#w{row}"
        lines.append(line)
    return "\n".join(lines) + "\n"


OPTIONS = ("text_ids", "comments", "nulls", "growing")


# --- The same data as in memory ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_letor_text_of_any_kind(small_blocks, seed):
    flags = np.random.default_rng(seed).integers(0, 2, len(OPTIONS)).astype(bool)
    chosen = dict(zip(OPTIONS, flags, strict=True))
    dtype = np.float32 if seed % 3 == 0 else np.float64
    text = letor_text(seed, **chosen).encode()
    Path("a.txt.gz" if seed % 2 else "a.txt").write_bytes(gzip.compress(text) if seed % 2 else text)
    name = "a.txt.gz" if seed % 2 else "a.txt"
    opened = rs.io.convert_dataset(name, "out.ranksieve", dtype=None if dtype == np.float64 else dtype)
    assert_same(opened, rs.io.read_letor(name, dtype=dtype))
    assert opened.queries.contiguous
    assert len(opened.X.starts) > 3


@pytest.mark.parametrize("seed", range(6))
def test_several_text_files_are_concatenated(small_blocks, seed):
    names = [f"part{k}.txt" for k in range(4)]
    for k, name in enumerate(names):
        text = letor_text(
            10 * seed + k, 1 + 12 * k, comments=k == 2, growing=k == 1, text_ids=seed == 5, first=9 * k
        )
        Path(name).write_text(text)
    assert_same(rs.io.convert_dataset(names, "out.ranksieve"), rs.io.read_letor(names))


@pytest.mark.parametrize("policy", ["zero", "query_min", "column_mean", "keep"])
def test_missing_values(small_blocks, policy):
    Path("a.txt").write_text(letor_text(3, nulls=True))
    expected = grouped(rs.io.read_letor("a.txt", missing=policy))
    for source in ("a.txt", rs.io.read_letor("a.txt")):
        if policy == "column_mean" and source == "a.txt":
            with refused_parameter("missing", policy):
                rs.io.convert_dataset(source, "out.ranksieve", missing=policy)
            continue
        opened = rs.io.convert_dataset(source, "out.ranksieve", missing=policy)
        np.testing.assert_allclose(np.asarray(opened.X), expected.X, rtol=1e-14)
        assert opened.n_docs == 60


@pytest.mark.parametrize("n_features", [4, 9])
def test_a_fixed_number_of_features(small_blocks, n_features):
    Path("a.txt").write_text(letor_text(1))
    opened = rs.io.convert_dataset("a.txt", "out.ranksieve", n_features=n_features)
    assert_same(opened, rs.io.read_letor("a.txt", n_features=n_features))


def test_one_document(small_blocks):
    Path("a.txt").write_text("1 qid:x 2:0.5")
    assert_same(rs.io.convert_dataset("a.txt", "out.ranksieve"), rs.io.read_letor("a.txt"))


def test_one_huge_query(small_blocks):
    rng = np.random.default_rng(0)
    qid = np.repeat([1, 2, 3, 4], [2, 500, 3, 3])
    rs.io.write_letor(rs.Dataset(rng.normal(size=(508, 3)), rng.integers(0, 3, 508), qid), "a.txt")
    opened = rs.io.convert_dataset("a.txt", "out.ranksieve")
    assert_same(opened, rs.io.read_letor("a.txt"))
    assert max(np.diff(opened.X.starts)) >= 500


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are Unicode there")
def test_a_source_with_a_non_unicode_name(here):
    Path("old.txt").write_text("1 qid:1 1:1\n0 qid:1 1:0\n")
    odd = Path(os.fsdecode(b"caf\xe9.txt"))
    odd.write_text("1 qid:7 1:3\n0 qid:7 1:2\n")
    for source in ("old.txt", odd):
        run("convert", source, "d.ranksieve")
    assert rs.open_dataset("d.ranksieve").qid.tolist() == [7, 7]
    assert json.loads(Path("d.ranksieve/dataset.json").read_text())["source"].endswith(r"caf\udce9.txt")


def test_an_invalid_text_name_keeps_the_existing_folder(here):
    data = random_dataset()
    rs.write_dataset(data, "d.ranksieve")
    texts = {"t\udce9": ["x"] * data.n_docs}
    odd = rs.Dataset(data.X, data.y, data.qid, texts=texts)
    with refused_data() as info:
        rs.write_dataset(odd, "d.ranksieve")
    assert "unpaired surrogate" in info.value.reason
    assert_same(rs.open_dataset("d.ranksieve"), data)


def block_starts(sizes, most):
    """Boundaries of blocks of whole queries with at most ``most`` rows, or one longer query."""
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    starts, query = [0], 0
    while query < len(sizes):
        query = max(query + 1, int(np.searchsorted(offsets, offsets[query] + most, side="right")) - 1)
        starts.append(int(offsets[query]))
    return np.array(starts)


def test_rows_of_a_query_must_be_contiguous_in_a_file():
    Path("a.txt").write_text("1 qid:1 1:1\n0 qid:2 1:2\n1 qid:1 1:3\n")
    with refused_data("a.txt") as info:
        rs.io.convert_dataset("a.txt", "out.ranksieve")
    assert "query 1 are not contiguous" in info.value.reason
    with pytest.warns(UserWarning, match=r"a\.txt: "):
        rs.write_dataset(rs.read_dataset("a.txt"), "out.ranksieve")
    assert rs.open_dataset("out.ranksieve").X[:, 0].tolist() == [1, 3, 2]


def test_default_blocks_have_about_16384_rows():
    sizes = np.full(500, 100)
    assert block_starts(sizes, 16384).tolist() == [0, 16300, 32600, 48900, 50000]
    assert block_starts(np.array([5, 20000, 5, 9]), 16384).tolist() == [0, 5, 20005, 20019]
    data = random_dataset(0, n_queries=3000, n_features=2)
    rs.io.write_letor(data, "a.txt")
    opened = rs.io.convert_dataset("a.txt", "out.ranksieve")
    assert opened.X.starts.tolist() == block_starts(data.queries.sizes, 16384).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_wide_blocks_have_fewer_rows(small_blocks, monkeypatch, seed):
    monkeypatch.setattr(folder_writer, "MAX_BLOCK_ROWS", 40)
    monkeypatch.setattr(folder_writer, "MAX_BLOCK_CELLS", 60)
    Path("a.txt").write_text(letor_text(seed, growing=True, comments=True))
    opened = rs.io.convert_dataset("a.txt", "out.ranksieve")
    assert_same(opened, rs.io.read_letor("a.txt"))
    assert len(opened.X.starts) > 4


def test_standard_input(small_blocks, monkeypatch):
    text = letor_text(2)
    Path("a.txt").write_text(text)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert_same(rs.io.convert_dataset("-", "out.ranksieve"), rs.io.read_letor("a.txt"))


def frame(seed, n=40, ids="int", doc_ids=None, comments=False, kind=np.float64, nulls=False, scattered=False):
    rng = np.random.default_rng(seed)
    query = rng.integers(0, 7, n) if scattered else np.sort(rng.integers(0, 7, n))
    columns = {"label": rng.integers(0, 4, n)}
    columns["qid"] = {
        "int": query, "int32": query.astype(np.int32), "float": query / 2, "text": [f"q{q}é" for q in query],
        "category": pa.array([f"c{q}" for q in query]).dictionary_encode(),
    }[ids]  # fmt: skip
    if doc_ids is not None:
        names = [f"d{row}" if doc_ids == "text" else row for row in range(n)]
        columns["doc_id"] = [None if doc_ids == "gaps" and row % 3 == 0 else names[row] for row in range(n)]
    if comments:
        columns["comment"] = [None if row % 5 == 0 else f"said {row} é" for row in range(n)]
    for j in range(4):
        values = rng.normal(size=n).astype(kind)
        columns[f"x{j}"] = pa.array(values, mask=rng.random(n) < 0.2 if nulls else None)
    return pa.table(columns)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ids": "text", "doc_ids": "text", "comments": True},
        {"ids": "int32", "doc_ids": "int", "nulls": True},
        {"ids": "float", "doc_ids": "gaps", "kind": np.float32},
        {"ids": "category", "comments": True, "kind": np.float32, "nulls": True},
        {"scattered": True, "ids": "text", "doc_ids": "gaps", "comments": True},
        {"scattered": True, "doc_ids": "text"},
    ],
)
def test_parquet(small_blocks, monkeypatch, options):
    pq.write_table(frame(5, **options), "a.parquet", row_group_size=11)
    data = rs.read_dataset("a.parquet")
    if not options.get("scattered"):
        assert_same(rs.io.convert_dataset("a.parquet", "out.ranksieve"), data)
    rs.write_dataset(data, "b.ranksieve")
    assert_same(rs.open_dataset("b.ranksieve"), data)
    assert_same(rs.io.convert_dataset(rs.open_dataset("b.ranksieve"), "c/"), data)
    monkeypatch.setattr("ranksieve.io.frames.CELLS_PER_TABLE", 40)
    rs.write_dataset(rs.open_dataset("b.ranksieve"), "back.parquet")
    assert_same(rs.io.convert_dataset("back.parquet", "c/"), data)


def test_many_parquet_files_in_another_order_of_columns(small_blocks):
    first, second = frame(1, ids="int32", kind=np.float32), frame(2, n=25, ids="int")
    second = second.set_column(1, "qid", pc.add(second["qid"], 100))
    pq.write_table(first, "a.parquet")
    pq.write_table(second.select(second.column_names[::-1]), "b.parquet")
    opened = rs.io.convert_dataset(["a.parquet", "b.parquet"], "out.ranksieve")
    data = rs.from_frame(pa.concat_tables([first, second], promote_options="permissive"))
    assert_same(opened, data)
    assert opened.X.dtype == np.float64
    pq.write_table(first.set_column(1, "qid", pc.add(first["qid"], 100)), "c.parquet")
    single = rs.io.convert_dataset(["a.parquet", "c.parquet"], "out.ranksieve")
    assert single.X.dtype == np.float32
    assert rs.io.convert_dataset("a.parquet", "out.ranksieve", dtype="float64").X.dtype == np.float64


def test_a_pandas_index_is_not_a_feature(small_blocks):
    table = frame(1)
    table = table.append_column("__index_level_0__", pa.array(range(40)))
    pq.write_table(table, "a.parquet")
    assert_same(rs.io.convert_dataset("a.parquet", "out.ranksieve"), rs.read_dataset("a.parquet"))


def test_data_sets_in_memory(small_blocks):
    data = random_dataset(1, n_queries=9, n_features=5)
    shuffled = data.select_rows(np.random.default_rng(0).permutation(data.n_docs))
    assert_same(rs.io.convert_dataset(shuffled, "out.ranksieve"), shuffled)
    sparse = rs.make_ranking(n_queries=9, n_features=5, n_informative=2, random_state=0)
    sparse = sparse.replace_features(sp.csr_array(sparse.X))
    opened = rs.io.convert_dataset(sparse, "sparse/")
    np.testing.assert_array_equal(np.asarray(opened.X), sparse.X.toarray())
    np.testing.assert_array_equal(opened.truth, sparse.truth)
    mixed = rs.Dataset(np.ones((2, 1)), [0, 1], [("a", 1), 2])
    with refused_data() as info:
        rs.io.convert_dataset(mixed, "mixed/")
    assert "mixed" in info.value.reason
    assert not Path("mixed").exists()


def test_the_folds_of_letor_keep_their_profile():
    Path("Fold1").mkdir()
    Path("Fold1/train.txt").write_text(letor_text(1))
    assert rs.io.convert_dataset("Fold1/train.txt", "out.ranksieve").profile == "letor"


# --- A data set on disk ------------------------------------------------------------------------------------


@pytest.fixture
def pair(small_blocks):
    """The same data on disk and in memory."""
    Path("a.txt").write_text(letor_text(7, n=80, comments=True))
    return rs.io.convert_dataset("a.txt", "out.ranksieve"), rs.io.read_letor("a.txt")


def test_methods_of_a_data_set(pair):
    opened, data = pair
    assert repr(opened).endswith("4 features, on disk float64)")
    assert opened.queries.n_rows == len(opened) == 80
    assert rs.describe(opened) == rs.describe(data)
    np.testing.assert_array_equal(opened.pairs_per_query, data.pairs_per_query)
    assert_same(opened.select_features(np.array([2, 0])), data.select_features(np.array([2, 0])))
    assert "on disk" in repr(opened.select_features(np.array([2, 0])))
    rows = np.array([70, 3, 3, -1])
    for chosen in (opened.select_rows(rows), opened.select_features(np.arange(4)).select_rows(rows)):
        assert fingerprint(chosen) == fingerprint(data.select_rows(rows))
        assert list(chosen.doc_ids) == list(data.select_rows(rows).doc_ids)
    mask = np.arange(opened.n_queries) % 2 == 0
    assert fingerprint(opened.select_queries(mask)) == fingerprint(data.select_queries(mask))
    np.testing.assert_array_equal(opened.queries.rows(mask), data.queries.rows(mask))
    wide = opened.widened(6)
    assert fingerprint(wide) == fingerprint(data.widened(6))
    assert "on disk" in repr(wide)
    replaced = opened.replace_features(np.ones((80, 1)), ["one"])
    assert fingerprint(replaced) == fingerprint(data.replace_features(np.ones((80, 1)), ["one"]))
    assert fingerprint(pickle.loads(pickle.dumps(opened))) == fingerprint(data)
    with refused_parameter("rows"):
        opened.select_rows(np.zeros(80, dtype=bool))


def test_functions_of_matrices(pair, monkeypatch):
    opened, data = pair
    monkeypatch.setattr("ranksieve.data.matrix.CELLS_AT_ONCE", 40)
    monkeypatch.setattr("ranksieve.data.features.CELLS_AT_ONCE", 40)
    monkeypatch.setattr(DiskMatrix, "__array__", None)  # the whole matrix must not be read
    np.testing.assert_array_equal(list(dense_columns(opened.X)), list(dense_columns(data.X)))
    np.testing.assert_array_equal(missing_per_column(opened.X), missing_per_column(data.X))
    rows, columns = np.array([3, 70, 5]), np.array([1, 3])
    np.testing.assert_array_equal(dense_block(opened.X, rows, columns), data.X[rows][:, columns])
    cuts = np.array([0, data.n_queries])
    extremes = [spread_and_largest(one.X, one.queries, cuts) for one in pair]
    np.testing.assert_array_equal(extremes[0], extremes[1])
    for block, expected in zip(column_blocks(opened.X), column_blocks(data.X), strict=True):
        np.testing.assert_array_equal(block[1], expected[1])
    check_finite(opened)
    assert fingerprint(opened) == fingerprint(data)
    assert rs.describe(opened) == rs.describe(data)


def test_values_that_are_not_finite_are_named():
    data = rs.Dataset([[1.0, 2.0], [np.inf, np.nan]], [0, 1], ["a", "b"])
    opened = rs.io.convert_dataset(data, "out.ranksieve")
    for check in (data, opened):
        with refused_data() as info:
            check_finite(check)
        assert "f1 of row 1 (query b) is inf" in info.value.reason
    assert rs.describe(opened) == rs.describe(data)
    with refused_data("out.ranksieve") as info:
        rs.open_dataset("out.ranksieve", missing="error")
    assert "f2 of row 1" in info.value.reason
    assert rs.open_dataset("out.ranksieve", missing="zero").X[1, 1] == 0


def test_a_model_reads_only_its_columns(pair):
    opened, data = pair
    model = rs.FenchelRank(radius=3).fit(data).to_model()
    before = opened.X.bytes_read
    np.testing.assert_array_equal(model.predict(opened), model.predict(data))
    assert opened.X.bytes_read - before == len(model.terms) * data.n_docs * 8


@pytest.mark.parametrize(
    "ranker", [rs.FenchelRank(radius=2), rs.SparseRanker(n_alphas=8, cv=2), rs.baselines.RankBoost()]
)
def test_rankers_have_the_same_scores_as_in_memory(ranker):
    data = rs.make_ranking(n_queries=25, n_features=6, n_informative=2, random_state=2)
    opened = rs.io.convert_dataset(data, "out.ranksieve")
    expected = ranker.fit(data).predict(data)
    np.testing.assert_allclose(ranker.fit(opened).predict(opened), expected, rtol=1e-9, atol=1e-12)


def test_back_to_text_and_parquet(pair):
    opened, data = pair
    for name in ("b.txt", "b.parquet"):
        rs.write_dataset(opened, name)
        assert_same(rs.io.convert_dataset(name, "back/"), data)


# --- Invalid files -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("pair")
def test_damaged_folders():
    shutil.copytree("out.ranksieve", "safe")

    def reason(file="out.ranksieve"):
        with refused_data(file) as info:
            rs.read_dataset("out.ranksieve")
        shutil.rmtree("out.ranksieve")
        shutil.copytree("safe", "out.ranksieve")
        return info.value.reason

    for name in ("features.bin", "labels.bin", "query_sizes.bin", "comments.bin", "texts.bin"):
        content = Path("safe", name).read_bytes()
        Path("out.ranksieve", name).write_bytes(content[:-8])
        assert reason().startswith(f"{name} has {len(content) - 8} bytes")
        Path("out.ranksieve", name).write_bytes(content[:-8] + b"\1" * 8)
        assert reason().startswith(f"{name} does not match its checksum")
        Path("out.ranksieve", name).unlink()
        assert reason().startswith(f"{name} is missing")
    header = json.loads(Path("safe/dataset.json").read_text())
    for change, word in {
        "n_docs": "block_starts", "n_queries": "query_sizes.bin", "dtype": "dtype:", "format": "format",
        "format_version": "version 0", "feature_names": "feature_names:", "query_ids": "query_ids:",
    }.items():  # fmt: skip
        value = header["n_docs"] + 1 if change.startswith("n_") else 0
        Path("out.ranksieve/dataset.json").write_text(json.dumps(header | {change: value}))
        assert word in reason("out.ranksieve" if change == "n_queries" else "dataset.json")
    Path("out.ranksieve/dataset.json").write_text(json.dumps(header | {"query_ids": "object"}))
    assert "'object'" in reason()
    Path("out.ranksieve/dataset.json").write_text("{")
    assert "JSON" in reason("dataset.json")
    Path("out.ranksieve/dataset.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"out\.ranksieve: .*dataset\.json"):
        rs.read_dataset("out.ranksieve")
    with pytest.raises(FileNotFoundError, match="gone: "):
        rs.open_dataset("gone")
    with pytest.raises(FileNotFoundError, match=r"a\.txt: "):
        rs.open_dataset("a.txt")


GOOD = letor_text(0, n=30)


@pytest.mark.parametrize(
    ("content", "line", "word"),
    [
        (b"", None, "no documents"),
        (b"# nothing\n\n", None, "no documents"),
        (b"1 qid:1\n0 qid:2\n", None, "feature"),
        (GOOD.encode() + b"1 qid:1 1:inf\n", 31, "'inf'"),
        (GOOD.encode() + b"1 qid:1 1:NULL\n", 31, "missing"),
        (GOOD.encode() + b"x qid:1 1:1\n", 31, "label is 'x'"),
        (GOOD.encode() + b"1 qid:1 0:1\n", 31, "'0:1'"),
        (gzip.compress(letor_text(0, n=2000).encode())[:-20], None, "gzip"),
        (b"\x1f\x8bnot gzip", None, "corrupt"),
    ],
)
def test_invalid_text_is_refused_and_nothing_is_written(small_blocks, content, line, word):
    Path("bad.txt").write_bytes(content)
    with refused_data("bad.txt", line) as info:
        rs.io.convert_dataset("bad.txt", "out.ranksieve", missing="error")
    assert word in info.value.reason
    assert os.listdir() == ["bad.txt"]


def test_text_that_is_too_sparse_is_refused():
    Path("bad.txt").write_bytes(b"1 qid:1 1:1 9000000:1\n" * 20)
    with refused_data("bad.txt") as info:
        rs.io.convert_dataset("bad.txt", "out.ranksieve")
    assert "20 × 9000000" in info.value.reason
    assert os.listdir() == ["bad.txt"]


def test_dates_can_be_query_ids():
    days = pa.array(np.array(["2024-01-02", "2024-01-02", "2024-01-01"], dtype="datetime64[us]"))
    pq.write_table(pa.table({"qid": days, "label": [0, 1, 2], "x": [1.0, 2.0, 3.0]}), "a.parquet")
    assert_same(rs.io.convert_dataset("a.parquet", "out.ranksieve"), rs.read_dataset("a.parquet"))


def test_invalid_parquet_is_refused_and_nothing_is_written(small_blocks):
    good = frame(1)
    pq.write_table(good, "a.parquet")

    def reason(table, *more, file="b.parquet", **options):
        pq.write_table(table, "b.parquet")
        with refused_data(file) as info:
            rs.io.convert_dataset([*more, "b.parquet"], "out.ranksieve", **options)
        assert sorted(os.listdir()) == ["a.parquet", "b.parquet"]
        return info.value.reason

    assert "no column 'x1'" in reason(good.drop_columns(["x1"]), "a.parquet")
    added = good.append_column("new", good["x1"])
    assert "no column 'new'" in reason(added, "a.parquet", file="a.parquet")
    assert "no column 'qid'" in reason(good.drop_columns(["qid"]))
    assert "ids are text" in reason(frame(1, ids="text"), "a.parquet")
    words = good.set_column(3, "x1", pa.array([*["1"] * 39, "many"]))
    assert "x1 (String)" in reason(words, features=["x0", "x1"])
    assert "'x1' is text" in reason(words, "a.parquet")
    labels = good.set_column(0, "label", pa.array([*[1.0] * 35, None, *[2.0] * 4]))
    assert "label of row 35" in reason(labels)
    ids = good.set_column(1, "qid", pa.array([*[1] * 20, None, *[2] * 19]))
    assert "id of row 20" in reason(ids)
    holes = good.set_column(2, "x0", pa.array([*[1.0] * 22, None, *[2.0] * 17]))
    assert "x0 of row 22 (query" in reason(holes, missing="error")
    large = good.set_column(2, "x0", pa.array([*[1.0] * 22, 1e300, *[2.0] * 17]))
    assert "x0 of row 22 is 1e+300" in reason(large, dtype="float32")
    assert "no documents" in reason(good[:0])
    Path("b.parquet").write_bytes(Path("a.parquet").read_bytes()[:-30])
    with refused_data("b.parquet"):
        rs.io.convert_dataset("b.parquet", "out.ranksieve")
    assert sorted(os.listdir()) == ["a.parquet", "b.parquet"]


@pytest.mark.parametrize(
    ("sources", "options", "refusal"),
    [
        ("a.txt", {"dtype": "int8"}, refused_parameter("dtype", "int8")),
        ("a.txt", {"missing": "guess"}, refused_parameter("missing", "guess")),
        ("a.txt", {"n_features": 0}, refused_parameter("n_features", 0)),
        ("a.txt", {"n_features": 2}, refused_data("a.txt", 1)),
        ("a.txt", {"qid": "q"}, refused_data("a.txt")),
        (["a.txt", "a.parquet"], {}, refused_data("a.txt, a.parquet")),
        ([], {}, refused_data("the list of files")),
        ("gone.txt", {}, pytest.raises(FileNotFoundError, match=r"gone\.txt: ")),
    ],
)
def test_refusals(sources, options, refusal):
    Path("a.txt").write_text(GOOD)
    pq.write_table(frame(1), "a.parquet")
    with refusal:
        rs.io.convert_dataset(sources, "out.ranksieve", **options)
    assert sorted(os.listdir()) == ["a.parquet", "a.txt"]


# --- Atomic writing ----------------------------------------------------------------------------------------


def test_other_folders_and_files_are_refused():
    Path("a.txt").write_text(GOOD)
    Path("other").mkdir()
    Path("other/mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="other/: "):
        rs.io.convert_dataset("a.txt", "other/")
    with pytest.raises(FileExistsError, match=r"a\.txt: "):
        rs.io.convert_dataset("a.txt", "a.txt")
    with pytest.raises(FileNotFoundError, match="gone"):
        rs.io.convert_dataset("a.txt", "gone/out")
    assert os.listdir("other") == ["mine.txt"]


def test_an_old_data_set_is_replaced_atomically(small_blocks):
    Path("a.txt").write_text(letor_text(0, comments=True))
    Path("b.txt").write_text(letor_text(1, n=20))
    old, expected = rs.io.convert_dataset("a.txt", "out.ranksieve"), rs.io.read_letor("a.txt")
    new = rs.io.convert_dataset("b.txt", "out.ranksieve")
    assert_same(new, rs.io.read_letor("b.txt"))
    assert_same(old, expected)  # still open
    assert not Path("out.ranksieve/comments.bin").exists()
    assert sorted(os.listdir()) == ["a.txt", "b.txt", "out.ranksieve"]


@pytest.mark.parametrize("step", ["_write_block", "_write_header", "_add_texts"])
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, OSError(28, "No space left on device"), ValueError("no")]
)
@pytest.mark.parametrize("existing", [False, True])
def test_an_interrupted_conversion_keeps_the_old_data_set(small_blocks, monkeypatch, step, error, existing):
    Path("a.txt").write_text(letor_text(0, comments=True, text_ids=True))
    Path("b.txt").write_text(GOOD)
    if existing:
        rs.io.convert_dataset("b.txt", "out.ranksieve")
    before = sorted(os.listdir())

    def fail(*_):
        raise error

    monkeypatch.setattr(folder_writer.FolderWriter, step, fail)
    with pytest.raises(BaseException) as caught:
        rs.io.convert_dataset("a.txt", "out.ranksieve")
    if isinstance(error, OSError):
        assert "the disk is full" in str(caught.value)
    assert sorted(os.listdir()) == before
    if existing:
        assert_same(rs.open_dataset("out.ranksieve"), rs.io.read_letor("b.txt"))


KILLED = """
import os, signal, sys
import ranksieve as rs
from ranksieve.io import folder_writer
folder_writer.MAX_BLOCK_ROWS = 7
blocks = []
def write(self, rows, real=folder_writer.FolderWriter._write_block):
    real(self, rows)
    blocks.append(rows)
    if len(blocks) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
folder_writer.FolderWriter._write_block = write
rs.io.convert_dataset("a.txt", "out.ranksieve")
"""


@pytest.mark.full
def test_a_killed_conversion_keeps_the_old_data_set():
    Path("a.txt").write_text(letor_text(0))
    Path("b.txt").write_text(GOOD)
    rs.io.convert_dataset("b.txt", "out.ranksieve")
    done = subprocess.run([sys.executable, "-c", KILLED], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert fingerprint(rs.open_dataset("out.ranksieve")) == fingerprint(rs.io.read_letor("b.txt"))
    for hidden in Path().glob(HIDDEN):
        shutil.rmtree(hidden)
    assert_same(rs.io.convert_dataset("a.txt", "out.ranksieve"), rs.io.read_letor("a.txt"))


def test_a_folder_moved_aside_is_restored(monkeypatch):
    Path("a.txt").write_text(GOOD)
    rs.io.convert_dataset("a.txt", "out.ranksieve")
    os.rename("out.ranksieve", ".out.ranksieve.0123456789abcdef.old")  # as if killed between two renames
    Path("bad.txt").write_text("?")
    with refused_data("bad.txt", 1):
        rs.io.convert_dataset("bad.txt", "out.ranksieve")
    assert_same(rs.open_dataset("out.ranksieve"), rs.io.read_letor("a.txt"))


def test_two_concurrent_writers(monkeypatch):
    Path("a.txt").write_text(letor_text(0, n=200))
    Path("b.txt").write_text(letor_text(1, n=200))
    faults = []

    def work(name):
        try:
            for _ in range(8):
                rs.io.convert_dataset(name, "out.ranksieve")
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a.txt", "b.txt")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fingerprints = {fingerprint(rs.io.read_letor(name)) for name in ("a.txt", "b.txt")}
    assert fingerprint(rs.open_dataset("out.ranksieve")) in fingerprints
    assert not list(Path().glob(HIDDEN))
    assert not faults


def test_unfinished_folders_of_other_writers_are_not_touched():
    Path("a.txt").write_text(GOOD)
    with atomic_folder("out.ranksieve", lambda _: True) as hidden:
        (hidden / "x").write_text("x")
        rs.io.convert_dataset("a.txt", "out.ranksieve")
        assert (hidden / "x").exists()
    assert os.listdir("out.ranksieve") == ["x"]
    assert not list(Path().glob(HIDDEN))


@pytest.mark.parametrize("killed", [False, True])
def test_without_atomic_exchange_the_old_folder_is_never_lost(monkeypatch, killed):
    Path("a.txt").write_text(GOOD)
    Path("b.txt").write_text(letor_text(1, n=20))
    rs.io.convert_dataset("a.txt", "out.ranksieve")
    monkeypatch.setattr(files, "_exchange", lambda *_: False)
    if killed:  # between the two renames

        def rename(one, other, real=os.rename):
            if Path(other).name == "out.ranksieve" and not str(one).endswith(files.OLD_SUFFIX):
                raise KeyboardInterrupt
            real(one, other)

        monkeypatch.setattr(os, "rename", rename)
        with pytest.raises(KeyboardInterrupt):
            rs.io.convert_dataset("b.txt", "out.ranksieve")
    else:
        rs.io.convert_dataset("b.txt", "out.ranksieve")
    expected = rs.io.read_letor("a.txt" if killed else "b.txt")
    assert fingerprint(rs.open_dataset("out.ranksieve")) == fingerprint(expected)
    assert not list(Path().glob(HIDDEN))


def test_progress_reaches_the_total():
    Path("a.txt").write_text(GOOD)
    steps = []
    rs.io.convert_dataset("a.txt", "out.ranksieve", progress=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (len(GOOD), len(GOOD))


# --- Memory ------------------------------------------------------------------------------------------------

PEAK = """
import sys
import ranksieve as rs
rs.io.convert_dataset(sys.argv[1], sys.argv[2])
with open("/proc/self/status") as status:  # unlike ru_maxrss, not at least what the parent has
    print(next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to measure memory")
@pytest.mark.parametrize("kind", ["letor", "parquet"])
@pytest.mark.full
def test_memory_does_not_grow_with_the_file(here, kind):
    rng = np.random.default_rng(0)
    lines = [
        " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(row)) for row in rng.random((2000, 40)).round(4)
    ]
    peaks = []
    for copies in (15, 60):  # 13 and 53 MB of text
        qid = np.repeat(np.arange(copies * 100), 20)
        if kind == "parquet":
            name = f"{copies}.parquet"
            X = np.tile(rng.random((2000, 40)), (copies, 1))
            columns = {f"x{j}": X[:, j] for j in range(40)}
            pq.write_table(pa.table({"label": qid % 3, "qid": qid, **columns}), name, row_group_size=4096)
        else:
            name = f"{copies}.txt"
            with Path(name).open("w") as file:
                file.writelines(
                    f"{q % 3} qid:{q} {lines[row % 2000]}\n" for row, q in enumerate(qid.tolist())
                )
        done = subprocess.run(
            [sys.executable, "-c", PEAK, name, "out.ranksieve"], check=True, capture_output=True, text=True
        )
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 12, peaks  # the features alone take 29 MB more


# --- The command line --------------------------------------------------------------------------------------


@pytest.fixture
def trained(here):
    """A data set as a file and as a folder, and two models."""
    data = rs.make_ranking(n_queries=25, n_features=6, n_informative=2, random_state=2)
    rs.io.write_letor(data, "d.txt")
    assert run("convert", "d.txt", "d.ranksieve").stdout == (
        f"Wrote {data.n_docs} documents of 25 queries to d.ranksieve.\n"
    )
    rs.FenchelRank(radius=2).fit(data).to_model().save("m.json")
    rs.FenchelRank(radius=0.5).fit(data).to_model().save("n.json")
    return data


@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "DATA", "--json"),
        ("rank", "m.json", "DATA"),
        ("rank", "m.json", "DATA", "--format", "trec"),
        ("evaluate", "m.json", "DATA", "--json"),
        ("compare", "m.json", "n.json", "DATA", "--json"),
        ("explain", "m.json", "DATA", "--drop"),
        ("explain", "m.json", "DATA", "--query", "1"),
        ("path", "DATA"),
        ("fit", "DATA", *QUICK, "--shape", "linear", "-o", "f.json"),
        ("fit", "DATA", "--valid", "DATA", "--method", "fenchelrank", "-o", "f.json"),
        ("subset", "DATA", "--max-features", "2"),
        ("frontier", "DATA", "--max-features", "2"),
        ("scorecard", "m.json", "DATA", "-o", "f.json"),
        ("verify", "m.json", "DATA"),
    ],
)
@pytest.mark.full
def test_every_command_accepts_a_folder(trained, command):
    answers = []
    for name in ("d.txt", "d.ranksieve"):
        result = run(*(name if word == "DATA" else word for word in command))
        weights = rs.load_model("f.json").weights if "f.json" in command else ()
        lines = result.stdout.replace("d.ranksieve", "d.txt").splitlines()
        answers.append(([line for line in lines if not line.startswith("The data stayed on disk")], weights))
    (output, expected), (output_of_folder, weights) = answers
    assert output_of_folder == output
    np.testing.assert_array_equal(weights, expected)


def test_convert_on_the_command_line(trained):
    run("convert", "d.ranksieve", "back.txt")
    assert Path("back.txt").read_bytes() == Path("d.txt").read_bytes()
    run("convert", "d.ranksieve", "back.parquet")
    run("convert", "back.parquet", "again/", "--dtype", "float32")
    assert rs.open_dataset("again").X.dtype == np.float32
    assert rs.read_dataset("again/").X.dtype == np.float32
    assert fingerprint(rs.read_dataset("back.parquet")) == fingerprint(rs.io.read_letor("d.txt"))
    text = Path("d.txt").read_text()
    for k in (1, 2):
        Path(f"d{k}.txt").write_text(text.replace("qid:", f"qid:{k}0"))
    run("convert", "d.txt", "d1.txt", "d2.txt", "three.ranksieve", "--n-features", "8")
    assert rs.open_dataset("three.ranksieve").X.shape == (3 * trained.n_docs, 8)
    run("convert", "again/", "again/", "--dtype", "float64")
    assert rs.open_dataset("again").X.dtype == np.float64
    assert "--dtype" in refused("convert", "d.txt", "x.txt", "--dtype", "float32")
    assert "folder" in refused("convert", "back.parquet", "back.parquet", "x.parquet")
    assert "once" in refused("convert", "-", "-", "x/")
    assert refused("convert", "d.txt", "x/", "--missing", "guess").startswith("--missing guess")
    Path("mine").mkdir()
    assert refused("convert", "d.txt", "mine/").startswith("mine/: ")
    assert refused("convert", "d.txt", "x/", "--dtype", "int").startswith("--dtype int: ")


@pytest.mark.full
def test_ctrl_c_on_the_command_line(trained):
    text = Path("d.txt").read_text()
    child = subprocess.Popen(
        [sys.executable, "-c", "from ranksieve.cli import main; main()", "convert", "-", "x.ranksieve"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    child.stdin.write(text.encode())
    child.stdin.flush()
    for _ in range(200):
        if list(Path().glob(".x.ranksieve.*")):
            break
        time.sleep(0.05)
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == 130
    assert errors.decode() == "ranksieve: interrupted\n"
    assert not list(Path().glob("*x.ranksieve*"))


def test_a_feature_log_is_converted_to_a_folder():
    hits = [
        {"_id": d, "fields": {"_ltrlog": [{"e": [{"name": "title", "value": v}, {"name": "x"}]}]}}
        for d, v in (("7555", 9.5), ("1370", 2.5))
    ]
    Path("log.json").write_text(json.dumps({"rambo": {"hits": {"hits": hits}}}))
    Path("j.csv").write_text("grade,keywords,docId\n4,rambo,7555\n3,rambo,1370\n")
    done = process("convert", "log.json", "t.ranksieve", "--judgements", "j.csv", "--missing", "zero")
    assert done.returncode == 0, done.stderr
    opened = rs.open_dataset("t.ranksieve")
    assert list(opened.doc_ids) == ["7555", "1370"]
    np.testing.assert_array_equal(np.asarray(opened.X), [[9.5, 0], [2.5, 0]])
