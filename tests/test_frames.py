"""Frames and parquet files: accepted and rejected input, round trips, detection of file formats."""

import importlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from ranksieve.baselines import RankBoost
from ranksieve.data.dataset import Dataset
from ranksieve.io.frames import from_frame, read_parquet, to_frame, write_parquet
from ranksieve.io.letor import read_letor, write_letor
from ranksieve.io.load import convert_dataset, read_dataset, write_dataset
from ranksieve.rankers import SparseRanker, SparseRankSVM
from ranksieve.synthetic import make_ranking
from tests.refusals import refused_data, refused_parameter

COLUMNS = {
    "qid": ["a", "a", "b"],
    "bm25": [1.5, 0.0, 3.0],
    "clicks": [3, 4, 5],
    "label": [2, 0, 1],
    "fresh": [True, False, True],
}
KINDS = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "arrow": pa.table,
}
kinds = pytest.mark.parametrize("kind", KINDS)


@kinds
def test_from_frame(kind):
    data = from_frame(KINDS[kind](COLUMNS))
    assert data.feature_names == ("bm25", "clicks", "fresh")
    np.testing.assert_array_equal(data.X, [[1.5, 3, 1], [0, 4, 0], [3, 5, 1]])
    assert data.y.tolist() == [2, 0, 1]
    assert data.qid.tolist() == ["a", "a", "b"]
    assert data.qid.dtype.kind == "U"
    assert data.doc_ids is None


@kinds
def test_named_columns(kind):
    frame = KINDS[kind](COLUMNS | {"url": ["u", "v", "w"], "query": [1, 1, 2], "grade": [0.5, 1.0, 0.0]})
    data = from_frame(frame, qid="query", label="grade", doc_id="url", features=["clicks", "bm25"])
    assert data.feature_names == ("clicks", "bm25")
    assert data.qid.tolist() == [1, 1, 2]
    assert data.qid.dtype.kind == "i"
    assert data.y.tolist() == [0.5, 1.0, 0.0]
    assert list(data.doc_ids) == ["u", "v", "w"]


@kinds
def test_query_ids_that_differ_by_a_trailing_nul_are_different(kind):
    data = from_frame(KINDS[kind](COLUMNS | {"qid": ["a", "a\0", "a"]}))
    assert data.queries.ids.tolist() == ["a", "a\0"]


@kinds
def test_doc_id_and_comment_columns_are_recognised_by_name(kind):
    data = from_frame(KINDS[kind](COLUMNS | {"doc_id": [7, 8, 9], "comment": ["x", None, "z"]}))
    assert list(data.doc_ids) == [7, 8, 9]
    assert list(data.comments) == ["x", "", "z"]
    assert data.feature_names == ("bm25", "clicks", "fresh")
    assert "comment" in from_frame(KINDS[kind](COLUMNS | {"comment": [1, 2, 3]})).feature_names


@kinds
def test_nulls_follow_the_policy(kind):
    frame = KINDS[kind](COLUMNS | {"bm25": [None, 2.0, 3.0], "clicks": [3, None, 5]})
    with refused_data() as info:
        from_frame(frame, missing="error")
    assert "bm25 of row 0 (query a)" in info.value.reason
    assert from_frame(frame, missing="zero").X[:, :2].tolist() == [[0, 3], [2, 0], [3, 5]]
    assert from_frame(frame, missing="query_min").X[:, :2].tolist() == [[2, 3], [2, 3], [3, 5]]
    assert from_frame(frame, missing="column_mean").X[:, :2].tolist() == [[2.5, 3], [2, 4], [3, 5]]
    assert np.isnan(from_frame(frame, missing="keep").X).sum() == 2
    assert np.isnan(from_frame(frame).X).sum() == 2


@kinds
def test_bad_columns(kind):
    def reason(columns, **options):
        with refused_data() as info:
            from_frame(KINDS[kind](columns), **options)
        return info.value.reason

    other = {"query_id": COLUMNS["qid"], "x": [1, 2, 3], "label": [1, 0, 1]}
    assert "`qid='query_id'`" in reason(other)
    assert "`label='label'`" in reason(COLUMNS, label="lable")
    assert "`features='zzz'`" in reason(COLUMNS, features=["zzz"])
    assert "title (" in reason(COLUMNS | {"title": ["t", "u", "v"]}, features=["bm25", "title"])
    assert "'label' has type" in reason(COLUMNS | {"label": ["good", "bad", "bad"]})
    assert "query id of row 1" in reason(COLUMNS | {"qid": ["a", None, "b"]})
    assert "label of row 1 is nan" in reason(COLUMNS | {"label": [1.0, None, 0.0]})
    assert "0 features" in reason({"qid": [1], "label": [1]})
    with refused_parameter("missing", "mean"):
        from_frame(KINDS[kind](COLUMNS), missing="mean")


def test_many_columns_are_not_all_listed():
    frame = pl.DataFrame({f"c{k}": [1] for k in range(50)})
    with refused_data() as info:
        from_frame(frame)
    assert ", c19, …" in info.value.reason


def test_float32_is_kept():
    frame = pl.DataFrame(COLUMNS, schema_overrides={"bm25": pl.Float32}).select("qid", "label", "bm25")
    assert from_frame(frame).X.dtype == np.float32


def test_categorical_query_ids():
    frame = pl.DataFrame(COLUMNS, schema_overrides={"qid": pl.Categorical})
    assert from_frame(frame).qid.tolist() == ["a", "a", "b"]


def test_values_that_are_not_frames():
    for thing in (pl.LazyFrame(COLUMNS), [[1, 2]], "file.parquet"):
        with refused_parameter("frame", type(thing).__name__):
            from_frame(thing)


@pytest.mark.parametrize("package", ["narwhals", "pyarrow"])
def test_missing_package(monkeypatch, tmp_path, package):
    original = importlib.import_module

    def without(name, *rest):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr("ranksieve.io.frames.import_module", without)
    call = from_frame if package == "narwhals" else read_parquet
    with pytest.raises(ImportError, match=rf"{package}: .*\.\[frames\]"):
        call(pd.DataFrame(COLUMNS) if package == "narwhals" else tmp_path / "x.parquet")


# ---------------------------------------------------------------- parquet


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parquet_round_trip(tmp_path, sparse, dtype):
    X = np.array([[0.1, np.nan], [-0.0, 1e300 if dtype == np.float64 else 1e30], [3, 0]], dtype=dtype)
    data = Dataset(
        sp.csr_array(X) if sparse else X, [2, 0, 1.5], [7, 7, 8], ["a", "b"], ["d1", "d2", "d3"],
        comments=["c", "", "e"],
    )  # fmt: skip
    write_parquet(data, tmp_path / "data.parquet")
    back = read_parquet(tmp_path / "data.parquet", missing="keep")
    np.testing.assert_array_equal(back.X, X)
    assert back.X.dtype == dtype
    assert back.y.tolist() == [2, 0, 1.5]
    assert back.qid.tolist() == [7, 7, 8]
    assert list(back.doc_ids) == ["d1", "d2", "d3"]
    assert list(back.comments) == ["c", "", "e"]
    assert back.feature_names == ("a", "b")
    assert back.source == str(tmp_path / "data.parquet")
    assert list(tmp_path.iterdir()) == [tmp_path / "data.parquet"]


def test_missing_values_are_written_as_null(tmp_path):
    write_parquet(Dataset([[np.nan], [1.0]], [1, 0], ["a", "a"]), tmp_path / "data.pq")
    assert pq.read_table(tmp_path / "data.pq")["f1"].null_count == 1


def parquet_reason(path, **options):
    with refused_data(path) as info:
        read_parquet(path, **options)
    return info.value.reason


def test_bad_parquet_files(tmp_path):
    path = tmp_path / "x.parquet"
    with pytest.raises(FileNotFoundError, match=r"x\.parquet: "):
        read_parquet(path)
    path.write_text("1 qid:1 1:1\n")
    assert "valid parquet file" in parquet_reason(path)
    path.write_bytes(b"")
    assert "valid parquet file" in parquet_reason(path)
    pl.DataFrame(COLUMNS).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    assert "valid parquet file" in parquet_reason(path)
    pl.DataFrame(COLUMNS | {"bm25": [None, 1, 2]}).write_parquet(path)
    assert "bm25 of row 0 (query a)" in parquet_reason(path, missing="error")
    assert "'nope'" in parquet_reason(path, qid="nope")
    pq.write_table(pa.table([[1], [0], [1.0], [2.0]], names=["qid", "label", "bm25", "bm25"]), path)
    assert "called 'bm25'" in parquet_reason(path)


def test_the_index_of_a_pandas_frame_is_not_a_feature(tmp_path):
    frame = pd.DataFrame(COLUMNS).iloc[[2, 0, 1]]
    frame.to_parquet(tmp_path / "x.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "x.parquet").names
    assert read_parquet(tmp_path / "x.parquet").feature_names == ("bm25", "clicks", "fresh")


@kinds
def test_a_column_of_nulls_is_missing(kind):
    frame = KINDS[kind](COLUMNS | {"clicks": [None, None, None]})
    data = from_frame(frame, missing="keep")
    assert data.feature_names == ("bm25", "clicks", "fresh")
    assert np.isnan(data.X[:, 1]).all()
    assert from_frame(frame, missing="zero").X[:, 1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("ids", [[[1], [1], [2]], [{"a": 1}, {"a": 1}, {"a": 2}]])
def test_compound_ids_are_refused(ids):
    with refused_data() as info:
        from_frame(pa.table(COLUMNS | {"qid": ids}))
    assert "'qid'" in info.value.reason


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (Dataset([[1.0]], [1], [1], ["qid"]), "called qid"),
        (Dataset([[1.0], [2.0]], [1, 0], [(1,), (2,)]), "query ids"),
    ],
)
def test_data_that_parquet_cannot_store(tmp_path, data, word):
    with refused_data() as info:
        write_parquet(data, tmp_path / "x.parquet")
    assert word in info.value.reason
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- to_frame

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.Table}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("qid", [["b", "a", "b"], [3, 1, 3]])
@pytest.mark.parametrize("doc_ids", [None, ["d1", None, "d3"], [7, 8, 9]])
def test_frame_round_trip(kind, sparse, qid, doc_ids):
    X = np.array([[0.1, np.nan], [-0.0, 1e300], [3, 0]])
    data = Dataset(sp.csr_array(X) if sparse else X, [2, 0, 1.5], qid, ["bm25 title", "é"], doc_ids)
    frame = to_frame(data, kind)
    assert isinstance(frame, FRAMES[kind])
    back = from_frame(frame, missing="keep")
    np.testing.assert_array_equal(back.X, X)
    assert back.feature_names == ("bm25 title", "é")
    assert back.y.tolist() == [2, 0, 1.5]
    assert back.qid.tolist() == qid
    assert (None if back.doc_ids is None else list(back.doc_ids)) == doc_ids


def test_missing_values_are_null_in_a_frame():
    data = Dataset([[np.nan], [1.0]], [1, 0], ["a", "a"])
    assert to_frame(data, "polars")["f1"].null_count() == 1
    assert to_frame(data, "arrow")["f1"].null_count == 1


def test_unknown_kind_of_frame():
    with refused_parameter("kind", "spark"):
        to_frame(Dataset([[1.0]], [1], [1]), "spark")


@pytest.mark.parametrize("doc_ids", [["d1", None], [7, 8], [7, "x"]])
def test_document_ids_keep_their_type_in_parquet(tmp_path, doc_ids):
    write_parquet(Dataset([[1.0], [2.0]], [1, 0], ["a", "a"], doc_ids=doc_ids), tmp_path / "d.parquet")
    expected = ["7", "x"] if "x" in doc_ids else doc_ids
    assert list(read_parquet(tmp_path / "d.parquet").doc_ids) == expected


@pytest.mark.parametrize(
    "qid",
    [
        pd.Series(["b", "a", "a"], dtype="category"),
        pl.Series(["b", "a", "a"], dtype=pl.Enum(["a", "b"])),
        pa.array(["b", "a", "a"]).dictionary_encode(),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_categorical_query_ids_become_text(qid):
    columns = {"qid": qid, "label": [1, 0, 1], "x": [1.0, 2.0, 3.0]}
    makers = {pd.Series: pd.DataFrame, pl.Series: pl.DataFrame}
    data = from_frame(makers.get(type(qid), pa.table)(columns))
    assert data.qid.tolist() == ["b", "a", "a"]
    assert data.queries.ids.tolist() == ["b", "a"]


CATEGORIES = {
    "numbers": ([1.5, 2.5, 1.5, None], ("x", "grade"), {}),
    "whole numbers": ([3, 4, 3, None], ("x", "grade"), {}),
    "text": (["a", "b", "a", None], ("x",), {"grade": ["a", "b", "a", ""]}),
    "digits": (["1", "2", "1", "2"], ("x",), {"grade": ["1", "2", "1", "2"]}),
}


@pytest.mark.parametrize("kind", CATEGORIES)
def test_categories_are_read_like_their_values_from_every_source(kind, tmp_path):
    values, features, texts = CATEGORIES[kind]
    columns = {"qid": [1, 1, 2, 2], "label": [0, 1, 0, 1], "x": [1.0, 2.0, 3.0, 4.0], "grade": values}
    frame = pd.DataFrame(columns)
    frame["grade"] = pd.Categorical(values)
    frame["qid"] = frame["qid"].astype("category")
    dictionary = pa.table(columns | {"grade": pa.array(values).dictionary_encode()})
    arrow_backed = frame.astype({"grade": pd.ArrowDtype(dictionary["grade"].type)})
    frame.to_parquet(tmp_path / "pandas.parquet")
    pq.write_table(dictionary, tmp_path / "arrow.parquet")
    tables = [
        pd.DataFrame(columns),
        frame,
        arrow_backed,
        dictionary,
        pl.DataFrame(columns),
        pl.from_pandas(frame),
    ]
    data_sets = [from_frame(table) for table in tables]
    for name in ("pandas", "arrow"):
        data_sets.append(read_dataset(tmp_path / f"{name}.parquet"))
        data_sets.append(convert_dataset(tmp_path / f"{name}.parquet", tmp_path / f"{name}.ranksieve"))
    for data in data_sets:
        assert data.feature_names == features
        assert data.query_ids.tolist() == [1, 2]
        assert {name: list(column) for name, column in data.texts.items()} == texts
        np.testing.assert_array_equal(np.asarray(data.X), np.asarray(data_sets[0].X))


def test_categories_distinguish_query_ids_of_different_types():
    qid = pd.Series([1, 1, "1", "1"], dtype=object)
    for ids in (qid, qid.astype("category")):
        data = from_frame(pd.DataFrame({"qid": ids, "label": [0, 1, 0, 1], "x": [1.0, 2.0, 3.0, 4.0]}))
        assert data.query_ids.tolist() == [1, "1"]


# ---------------------------------------------------------------- rankers and frames

TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
tables = pytest.mark.parametrize("kind", TABLES)


@pytest.fixture
def judged():
    """Columns a, b and c of 40 documents, labels that depend on a, and query ids."""
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=40) for name in "abc"}
    return columns, np.digitize(columns["a"], [-0.5, 0.7]), np.repeat(np.arange(4), 10)


@pytest.mark.parametrize(
    "ids",
    [[str(k) for k in range(40)], pd.Categorical([str(k % 7) for k in range(40)])],
    ids=["text", "category"],
)
@tables
def test_a_text_column_of_digits_is_not_a_feature(kind, ids, judged):
    columns, y, qid = judged
    frame = TABLES[kind](columns | {"doc_id": list(ids)})
    if kind == "pandas":
        frame["doc_id"] = ids
    for ranker in (SparseRankSVM(alpha=0.1), RankBoost(n_rounds=2)):
        with refused_data() as info:
            ranker.fit(frame, y, qid=qid)
        assert "'doc_id'" in info.value.reason
    with refused_data() as info:
        Dataset(frame, y, qid)
    assert "'doc_id'" in info.value.reason
    data = from_frame(TABLES[kind](columns | {"title": list(ids), "label": y, "qid": qid}))
    assert data.feature_names == ("a", "b", "c")


@tables
def test_columns_of_frames_are_matched_by_name(kind, judged):
    """Columns can be in any order, with other columns and text; columns of weight 0 can be missing."""
    columns, y, qid = judged
    for ranker in (
        SparseRankSVM(alpha=0.3, normalise="z"),
        RankBoost(n_rounds=2),
        SparseRanker(max_features=2, cv=2),
    ):
        ranker.fit(TABLES[kind](columns), y, qid=qid)
        used, expected = set(ranker.to_model().names), ranker.predict(TABLES[kind](columns))
        needed = {name: columns[name] for name in "cba" if name in used}
        assert 0 < len(needed) < 3
        for some in (dict(reversed(columns.items())), {"title": ["x"] * 40} | columns | {"d": qid}, needed):
            frame = TABLES[kind](some)
            np.testing.assert_array_equal(ranker.predict(frame), expected)
            np.testing.assert_array_equal(ranker.to_model().predict(frame), expected)
            assert ranker.score(frame, y, qid) == ranker.score(TABLES[kind](columns), y, qid)
        lacking = min(used)
        with refused_data() as info:
            ranker.predict(TABLES[kind]({name: columns[name] for name in "abc" if name != lacking}))
        assert f": {lacking};" in info.value.reason


def test_features_without_names_are_matched_by_position(judged):
    """Data with the default names f1, f2, … are matched by position."""
    columns, y, qid = judged
    X = np.column_stack(list(columns.values()))
    for train in (
        Dataset(X, y, qid),
        from_frame(pd.DataFrame(X).assign(label=y, qid=qid), features=["0", 1, 2]),
    ):
        ranker = SparseRankSVM(alpha=0.05).fit(train)
        expected = ranker.predict(train)
        np.testing.assert_array_equal(ranker.predict(pd.DataFrame(X)), expected)
    ranker = SparseRankSVM(alpha=0.05).fit(Dataset(X, y, qid))
    for rows in (X, X.tolist(), sp.csr_array(X), pd.DataFrame(columns)):
        np.testing.assert_array_equal(ranker.predict(rows), expected)
    with pytest.raises(ValueError, match="2 features"):
        ranker.predict(X[:, :2])


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([0, 1], ("0", "1")),
        ([("a", "b"), ("a", "c")], ("('a', 'b')", "('a', 'c')")),
        ([None, "x"], ("None", "x")),
        ([pd.Timestamp("2020"), "x"], ("2020-01-01 00:00:00", "x")),
        ([True, 1.5], ("True", "1.5")),
    ],
    ids=str,
)
def test_names_of_columns_that_are_not_text(labels, names):
    frame = pd.DataFrame(np.eye(4)[:, :2])
    frame.columns = pd.Index(labels, dtype=object, tupleize_cols=False)
    frame["qid"], frame["label"] = [1, 1, 2, 2], [0, 1, 0, 1]
    data = from_frame(frame)
    assert (
        data.feature_names == names == Dataset(frame.iloc[:, :2], frame["label"], frame["qid"]).feature_names
    )
    np.testing.assert_array_equal(data.X, np.eye(4)[:, :2])


def test_names_of_columns_equal_those_of_pandas():
    frame = pd.DataFrame([[1, 0, 7.0, 8.0], [1, 1, 9.0, 4.0], [1, 0, 5.0, 6.0]])
    data = from_frame(frame, qid=0, label=1, ignore=[3])
    assert (data.feature_names, data.y.tolist(), data.query_ids.tolist()) == (("2",), [0, 1, 0], [1])
    with refused_data() as info:
        from_frame(frame.set_axis([0, 1, "1", 3], axis=1))
    assert "called '1'" in info.value.reason


# ---------------------------------------------------------------- read_dataset and write_dataset


@pytest.mark.parametrize("name", ["d.txt", "d.txt.gz", "d.parquet", "d.PQ", "d.letor", "d"])
def test_the_format_is_detected_by_name(tmp_path, name):
    data = make_ranking(n_queries=5, n_features=4, n_informative=2)
    write_dataset(data, tmp_path / name)
    start = (tmp_path / name).read_bytes()[:4]
    assert (start == b"PAR1") == (name in ("d.parquet", "d.PQ"))
    assert (start[:2] == b"\x1f\x8b") == name.endswith("gz")
    back = read_dataset(tmp_path / name, missing="zero")
    np.testing.assert_array_equal(back.X, data.X)
    np.testing.assert_array_equal(back.y, data.y)


def test_parquet_is_detected_by_content(tmp_path):
    write_parquet(make_ranking(n_queries=5, n_features=4, n_informative=2), tmp_path / "d.bin")
    assert read_dataset(tmp_path / "d.bin").n_queries == 5


def test_several_letor_files(tmp_path):
    data = make_ranking(n_queries=5, n_features=4, n_informative=2)
    write_letor(data, tmp_path / "a")
    both = read_dataset([tmp_path / "a", tmp_path / "a"])
    assert both.n_docs == 2 * read_letor(tmp_path / "a").n_docs


def test_missing_file_of_unknown_format(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing: "):
        read_dataset(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError, match=": "):
        read_dataset(tmp_path)
