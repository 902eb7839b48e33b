"""Dataset: accepted and rejected input, selection of rows and columns."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from ranksieve.data.dataset import Dataset, TextColumn
from tests.refusals import refused_data, refused_parameter

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def test_features_are_selected_by_number_name_or_mask():
    data = Dataset(np.arange(12.0).reshape(4, 3), [1, 0, 1, 0], [1, 1, 2, 2], ["bm25", "price", "age"])
    for columns in (
        [2, 0],
        np.array([2, 0]),
        ["age", "bm25"],
        ["age", 0],
        (2, "bm25"),
        np.array(["age", "bm25"]),
    ):
        chosen = data.select_features(columns)
        assert chosen.feature_names == ("age", "bm25")
        np.testing.assert_array_equal(chosen.X, data.X[:, [2, 0]])
    assert data.select_features("price").feature_names == ("price",)
    masked = data.select_features(np.array([False, True, True]))
    assert masked.feature_names == ("price", "age")
    np.testing.assert_array_equal(masked.X, data.X[:, 1:])


@pytest.mark.parametrize(
    ("columns", "refused"), [(["prize"], "prize"), ([0, 3], 3), ([0.5], 0.5), ([True, False], True)]
)
def test_features_that_cannot_be_selected_are_named(columns, refused):
    data = Dataset(np.arange(12.0).reshape(4, 3), [1, 0, 1, 0], [1, 1, 2, 2], ["bm25", "price", "age"])
    with refused_parameter("columns", refused):
        data.select_features(columns)


def test_defaults():
    data = Dataset(X, [1, 0, 2], [7, 7, 8])
    assert (data.n_docs, data.n_features, data.n_queries, len(data)) == (3, 2, 2, 3)
    assert data.feature_names == ("f1", "f2")
    assert data.y.dtype == np.float64
    assert data.X is X
    assert repr(data) == "Dataset(3 documents, 2 queries, 2 features, dense float64)"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_types_are_kept(dtype, tmp_path):
    mapped = np.memmap(tmp_path / "X", dtype=dtype, mode="w+", shape=(3, 2))
    data = Dataset(mapped, [1, 0, 2], [1, 1, 1])
    assert data.X.dtype == dtype
    assert isinstance(data.X, np.memmap)


def test_other_numbers_become_float64():
    assert Dataset([[1, 2], [3, 4]], [0, 1], [1, 1]).X.dtype == np.float64
    assert Dataset(np.array([[True], [False]]), [0, 1], [1, 1]).X.tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_sparse_is_kept_as_csr(form):
    data = Dataset(form(X), [1, 0, 2], [1, 1, 2])
    assert isinstance(data.X, sp.csr_array)
    np.testing.assert_array_equal(data.X.toarray(), X)
    assert "sparse float64" in repr(data)
    assert Dataset(form(X.astype(int)), [1, 0, 2], [1, 1, 2]).X.dtype == np.float64


COLUMNS = {"a": [1, 2, 3], "b": [0.5, None, 2.0]}
FRAMES = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas nullable": pd.DataFrame(COLUMNS).astype({"a": "Int64", "b": "Float64"}),
    "pandas arrow": pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas object": pd.DataFrame(COLUMNS, dtype=object),
    "polars": pl.DataFrame(COLUMNS),
    "arrow": pa.table(COLUMNS),
    "arrow batch": pa.RecordBatch.from_pydict(COLUMNS),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames(kind):
    data = Dataset(FRAMES[kind], [1, 0, 1], ["x", "x", "y"])
    np.testing.assert_array_equal(data.X, [[1, 0.5], [2, np.nan], [3, 2]])
    assert data.feature_names == ("a", "b")
    assert Dataset(FRAMES[kind], [1, 0, 1], [1, 1, 1], feature_names=np.array(["u", "v"])).feature_names == (
        "u",
        "v",
    )


@pytest.mark.parametrize(
    ("frame", "refusal", "word"),
    [
        (pd.DataFrame({"a": [1.0], "b": ["x"]}), refused_data(), "'b' has str"),
        (pd.DataFrame({"a": [1.0, 2], "b": ["1", 2]}), refused_data(), "'b' has object"),
        (pd.DataFrame({"c": pd.Categorical(["a"])}), refused_data(), "'c' has category"),
        (pd.DataFrame({"t": [datetime.datetime(2020, 1, 1)]}), refused_data(), "'t' has datetime64"),
        (pl.DataFrame({"a": [1.0], "b": ["7"]}), refused_data(), "'b' has String"),
        (pl.DataFrame({"l": [[1, 2]]}), refused_data(), "'l' has List"),
        (pa.table({"a": [1.0], "b": ["x"]}), refused_data(), "'b' has string"),
        (pd.DataFrame(X, columns=["a", "a"]), refused_parameter("feature_names", ("a", "a")), ""),
        (pd.DataFrame(index=[1, 2]), refused_data(), "0 features"),
    ],
)
def test_frames_with_invalid_columns(frame, refusal, word):
    with refusal as info:
        Dataset(frame, np.zeros(len(frame)), np.zeros(len(frame)))
    assert word in info.value.reason


@pytest.mark.parametrize(
    ("arguments", "refusal", "word"),
    [
        ((X[0], [1], [1]), refused_parameter("X"), "shape (2,)"),
        ((X[:0], [], [1]), refused_data(), "0 documents"),
        (([["a"], ["b"]], [0, 1], [1, 1]), refused_parameter("X"), "numbers"),
        ((X, [1, 0], [1, 1, 1]), refused_parameter("y"), "2 entries"),
        ((X, [1, 0, 1], [1, 1]), refused_parameter("qid"), "2 entries"),
        ((X, [1, np.nan, 1], [1, 1, 1]), refused_data(), "label of row 1 is nan"),
        ((X, [1, np.inf, 1], [1, 1, 1]), refused_data(), "label of row 1 is inf"),
        ((X, ["a", "b", "c"], [1, 1, 1]), refused_parameter("y"), "numbers"),
        ((X, X, [1, 1, 1]), refused_parameter("y"), "shape (3, 2)"),
        ((X, [1, 0, 1], [1, None, 1]), refused_data(), "query id of row 1"),
        ((X, [1, 0, 1], [1, 1, 1], ["a"]), refused_parameter("feature_names", ("a",)), "2 features"),
        ((X, [1, 0, 1], [1, 1, 1], ["a", "a"]), refused_parameter("feature_names", ("a", "a")), "once"),
        ((X, [1, 0, 1], [1, 1, 1], None, ["d"]), refused_parameter("doc_ids", ["d"]), ""),
    ],
)
def test_bad_arguments(arguments, refusal, word):
    with refusal as info:
        Dataset(*arguments)
    assert word in info.value.reason


def test_comments_must_match_the_rows():
    with refused_parameter("comments", ["a", "b"]):
        Dataset(X, [1, 0, 1], [1, 1, 1], comments=["a", "b"])


def column(texts):
    block = np.frombuffer("".join(texts).encode(), dtype=np.uint8)
    ends = np.cumsum([len(text.encode()) for text in texts])
    return TextColumn(block, np.concatenate(([0], ends[:-1])), ends)


@pytest.mark.parametrize("form", [list, tuple, np.array, column])
def test_selected_rows_keep_all_columns(form):
    data = Dataset(
        X, [1, 0, 2], [7, 8, 7], ["a", "b"], form(["d0", "dé", "d2"]),
        comments=form(["c0", "", "c2"]), truth=np.ones(2), source="here",
    )  # fmt: skip
    part = data.select_rows(np.array([2, 0]))
    np.testing.assert_array_equal(part.X, X[[2, 0]])
    assert part.y.tolist() == [2, 1]
    assert part.qid.tolist() == [7, 7]
    assert list(part.doc_ids) == ["d2", "d0"]
    assert list(part.comments) == ["c2", "c0"]
    assert (part.feature_names, part.source) == (("a", "b"), "here")
    assert list(data.select_rows(np.array([False, True, False])).doc_ids) == ["dé"]
    assert list(data.select_queries(np.array([0])).doc_ids) == ["d0", "d2"]


def test_empty_selection_of_rows_is_refused():
    with refused_parameter("rows"):
        Dataset(X, [1, 0, 2], [7, 8, 7]).select_rows(np.zeros(3, dtype=bool))


def test_replace_features():
    data = Dataset(X, [1, 0, 2], [7, 8, 7], doc_ids=["a", "b", "c"])
    other = data.replace_features(X[:, :1], ["only"])
    assert other.feature_names == ("only",)
    assert other.doc_ids == ["a", "b", "c"]
    np.testing.assert_array_equal(data.X, X)


def test_text_column_compares_with_lists():
    texts = column(["a", "", "ccc"])
    assert texts == ["a", "", "ccc"]
    assert texts != ["a", "", "x"]
    assert texts != ["a"]
    assert (texts == "a") is False
    assert texts[-1] == "ccc"
    assert texts.raw(2) == b"ccc"


def test_texts_and_document_weights_follow_their_rows():
    data = Dataset(
        np.arange(12.0).reshape(4, 3),
        [1, 0, 1, 0],
        ["a", "a", "b", "b"],
        texts={"title": ["A", "B", "C", "D"]},
        document_weight=[1, 2, 3, 4],
    )
    for chosen in (
        data.select_rows(np.array([2, 1])),
        data.select_features(np.array([0])).select_rows([2, 1]),
    ):
        assert list(chosen.texts["title"]) == ["C", "B"]
        np.testing.assert_array_equal(chosen.document_weight, [3.0, 2.0])
    both = data.joined(Dataset(np.ones((2, 3)), [1, 0], ["c", "c"]))
    np.testing.assert_array_equal(both.document_weight, [1.0, 2.0, 3.0, 4.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("weight", "refusal", "word"),
    [
        ([1, 2], refused_parameter("document_weight"), "2 entries"),
        ([1, -1, 1, 1], refused_data(), "row 1 is -1.0"),
        ([1, 1, np.nan, 1], refused_data(), "row 2 is nan"),
        ([[1], [1], [1], [1]], refused_parameter("document_weight"), "shape (4, 1)"),
    ],
)
def test_document_weights_are_checked(weight, refusal, word):
    with refusal as info:
        Dataset(np.ones((4, 2)), [1, 0, 1, 0], [1, 1, 2, 2], document_weight=weight)
    assert word in info.value.reason
