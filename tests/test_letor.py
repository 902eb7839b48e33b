"""read_letor and write_letor: a literal parser, Python's float, scikit-learn, bad input."""

import contextlib
import gzip
import io
import os
import re
import sys
import tempfile
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from ranksieve._parallel import use_threads
from ranksieve.data.dataset import Dataset, TextColumn
from ranksieve.data.describe import describe
from ranksieve.errors import DataError
from ranksieve.io import letor
from ranksieve.io.letor import read_letor, write_letor
from ranksieve.synthetic import make_ranking
from tests.refusals import refused_data, refused_parameter
from tests.tiers import examples

QUICK = examples(150)


@pytest.fixture(scope="module", autouse=True, params=["plain text by Python", "compiled"])
def parser(request):
    """Small plain texts are parsed without compiled code: every test runs with both parsers."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "compiled":
            patch.setattr(letor, "PLAIN_BYTES", 0)
        yield


@pytest.mark.parametrize("bad", [None, 50, 299])
def test_threads_read_the_same_and_find_the_same_line(bad, monkeypatch):
    monkeypatch.setattr(letor, "PLAIN_BYTES", 0)
    lines = [f"{k % 3} qid:{k // 7} 1:{k / 7} 3:{-k}" for k in range(300)]
    if bad is not None:
        lines[bad] += " 2:x"
    outcomes = []
    for n_threads in (1, 2, 4):
        with use_threads(n_threads):
            try:
                data = read_text("\n".join(lines), _chunk_bytes=64)
                outcomes.append((data.X.tolist(), data.y.tolist(), data.qid.tolist()))
            except DataError as error:
                outcomes.append((error.line, error.reason))
    assert outcomes[0] == outcomes[1] == outcomes[2]
    if bad is not None:
        assert outcomes[0][0] == bad + 1


@contextlib.contextmanager
def file_with(content, suffix=".txt"):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data{suffix}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        yield path


def read_text(content, suffix=".txt", **options):
    with file_with(content, suffix) as path:
        return read_letor(path, **options)


def reason(content, line=None, suffix=".txt", **options):
    """The reason of the error, which must name this line."""
    with file_with(content, suffix) as path:
        with refused_data(path, line) as info:
            read_letor(path, **options)
        return info.value.reason


def bits(values):
    return np.asarray(values, dtype=np.float64).view(np.int64)


# ---------------------------------------------------------------- a literal parser, line by line


def slow_document_id(comment):
    words = re.split(r"[ \t\r]+", comment.strip(" \t\r"))
    match = re.search(r"(?:^|[ \t\r])docid[ \t\r]*=[ \t\r]*([^ \t\r]+)", comment, re.IGNORECASE)
    return match[1] if match else words[0]


def slow_read(text):
    labels, queries, rows, comments = [], [], [], []
    for line in text.replace("\r\n", "\n").split("\n"):
        body, _, comment = line.partition("#")
        words = body.split()
        if words:
            labels.append(float(words[0]))
            queries.append(words[1].removeprefix("qid:"))
            pairs = [word.split(":") for word in words[2:]]
            rows.append({int(j): np.nan if v.lower() in ("null", "nan") else float(v) for j, v in pairs})
            comments.append(comment)
    X = np.zeros((len(rows), max((max(row, default=0) for row in rows), default=0)))
    for i, row in enumerate(rows):
        for j, value in row.items():
            X[i, j - 1] = value
    return X, labels, queries, comments


numbers = st.one_of(
    st.sampled_from(
        ["0", "1", "-0", "+3", ".5", "7.", "0.000000", "1e5", "2E-3", "-1.5e+2", "0e999", "00.10"]
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=0, max_value=1).map(str),
)
values = numbers | st.sampled_from(["NULL", "NaN", "null", "nan", "Null", "NAN"])
blanks = st.sampled_from([" ", "  ", "\t", " \t "])
query_ids = st.sampled_from(["1", "10", "-3", "q7", "007", "10032-a", "ö", "qid:4", "9223372036854775808"])
words = st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), max_size=12)
comment_texts = words | st.builds(
    lambda a, b, c, d: f"{a}{b}={c}{d}", words, st.sampled_from(["docid", " docid ", "DocID "]), blanks, words
)


@st.composite
def lines(draw):
    kind = draw(st.sampled_from(["document"] * 6 + ["blank", "comment"]))
    if kind != "document":
        return draw(blanks) if kind == "blank" else draw(blanks) + "#" + draw(words)
    features = draw(
        st.lists(st.tuples(st.integers(1, 12), values), max_size=6, unique_by=lambda pair: pair[0])
    )
    text = draw(st.sampled_from(["", " "])) + draw(numbers.filter(lambda n: np.isfinite(float(n))))
    text += draw(blanks) + "qid:" + draw(query_ids)
    text += "".join(draw(blanks) + f"{j}:{value}" for j, value in features)
    text += draw(st.sampled_from(["", " ", "\t"]))
    return text + ("#" + draw(comment_texts) if draw(st.booleans()) else "")


texts = st.builds(
    lambda parts, end, last: end.join(parts) + (end if last else ""),
    st.lists(lines(), min_size=1, max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)


@examples(250)
@given(texts, st.integers(1, 200))
def test_agrees_with_a_literal_parser(text, chunk_bytes):
    X, labels, queries, comments = slow_read(text)
    if X.shape[1] == 0:
        with refused_data("data.txt"):
            read_text(text, missing="keep", _chunk_bytes=chunk_bytes)
        return
    data = read_text(text, missing="keep", _chunk_bytes=chunk_bytes)
    np.testing.assert_array_equal(bits(data.X), bits(X))
    np.testing.assert_array_equal(bits(data.y), bits(labels))
    assert [str(query) for query in data.qid] == queries
    assert list(data.comments or [""] * len(labels)) == comments
    assert list(data.doc_ids or [""] * len(labels)) == [slow_document_id(text) for text in comments]
    sparse = read_text(text, missing="keep", sparse=True, _chunk_bytes=chunk_bytes)
    np.testing.assert_array_equal(bits(sparse.X.toarray()), bits(X + 0.0))


HALFWAY = ["9007199254740993", "4503599627370497.5", "900719925474099.25", "1152921504606847104e1"]
HARD = [
    "1e23",
    "7e23",
    "3e22",
    "3e-22",
    "7e-23",
    "9007199254740991e23",
    "8.5e22",
    "1e-23",
    "123456789012345678e-30",
    "5e-324",
    "2.2250738585072011e-308",
    "1e308",
]


@examples(250)
@given(st.lists(st.from_regex(r"[+-]?(\d{1,25}(\.\d{0,25})?|\.\d{1,25})([eE][+-]?\d{1,3})?", fullmatch=True)))
@example([*HALFWAY, *HARD, "0." + "0" * 30 + "1", "1" * 40, "0" * 40 + ".5", "123456789012345678"])
def test_numbers_are_bit_identical_to_float(tokens):
    tokens = [token for token in tokens if token.isascii() and np.isfinite(float(token))]
    line = "0 qid:1 1:0 " + " ".join(f"{k + 2}:{token}" for k, token in enumerate(tokens))
    expected = [0.0, *(float(token) for token in tokens)]
    np.testing.assert_array_equal(bits(read_text(line).X[0]), bits(expected))


def test_seventeen_digit_numbers_are_bit_identical_to_float():
    numbers = np.random.default_rng(0).standard_normal(20_000) * 10.0 ** np.arange(-10, 10).repeat(1000)
    text = "".join(f"{value!r} qid:1 1:{value:.17e}\n" for value in numbers.tolist())
    data = read_text(text)
    np.testing.assert_array_equal(bits(data.X[:, 0]), bits(numbers))
    np.testing.assert_array_equal(bits(data.y), bits(numbers))


def test_agrees_with_scikit_learn():
    data = make_ranking(n_queries=30, random_state=1)
    with file_with("") as path:
        write_letor(data, path)
        X, y, qid = load_svmlight_file(str(path), query_id=True, zero_based=False)
        ours = read_letor(path)
    np.testing.assert_array_equal(ours.X, X.toarray())
    np.testing.assert_array_equal(ours.y, y)
    np.testing.assert_array_equal(ours.qid, qid)


# ---------------------------------------------------------------- shapes of text

PLAIN = "2 qid:10 1:0.5 3:-1.5 # docid = A x\n0 qid:10 2:1e2\n1 qid:7 1:3 #B y\n"


def assert_plain(data):
    np.testing.assert_array_equal(data.X, [[0.5, 0, -1.5], [0, 100, 0], [3, 0, 0]])
    assert data.y.tolist() == [2, 0, 1]
    assert data.qid.tolist() == [10, 10, 7]
    assert data.qid.dtype == np.int64
    assert list(data.comments) == [" docid = A x", "", "B y"]
    assert list(data.doc_ids) == ["A", "", "B"]
    assert data.feature_names == ("f1", "f2", "f3")


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.rstrip("\n"),
        "\ufeff" + PLAIN,
        "\n  \n# only a comment\n" + PLAIN + "\n\t\n#\n",
        PLAIN.replace(" qid", "\t\tqid").replace(" 1:", "   1:"),
        "2 qid:10 3:-1.5 1:0.5# docid = A x\n0 qid:10 2:1e2\n1 qid:7 1:3 #B y",
    ],
    ids=["plain", "crlf", "no final newline", "byte order mark", "blank lines", "tabs", "any order"],
)
def test_text_variants(content):
    for chunk_bytes in (1, 5, 37, 1 << 20):
        assert_plain(read_text(content, _chunk_bytes=chunk_bytes))


def test_gzip_by_suffix_and_by_content():
    zipped = gzip.compress(PLAIN.encode())
    assert_plain(read_text(zipped, suffix=".txt.gz"))
    assert_plain(read_text(zipped, suffix=".txt", _chunk_bytes=3))
    assert_plain(read_text(gzip.compress(PLAIN[:36].encode()) + gzip.compress(PLAIN[36:].encode())))


@pytest.mark.parametrize("content", [PLAIN.encode(), gzip.compress(PLAIN.encode())], ids=["plain", "gzip"])
def test_standard_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    data = read_letor("-")
    assert_plain(data)
    assert data.source == "standard input"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 quid:1\n")))
    with refused_data("standard input", 1) as info:
        read_letor("-")
    assert "'quid:1'" in info.value.reason


def test_a_real_pipe_as_standard_input(monkeypatch):
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as end:
        end.write(PLAIN.encode())
    with os.fdopen(reader, "r") as standard_input:
        monkeypatch.setattr(sys, "stdin", standard_input)
        assert_plain(read_letor("-"))


def test_several_files_are_one_data_set():
    with file_with("1 qid:a 1:1 #x\n0 qid:b 1:2\n") as first, file_with("2 qid:a 3:5\n") as second:
        data = read_letor([first, second])
        assert data.source == f"{first}, {second}"
    assert data.n_queries == 2
    assert data.queries.order.tolist() == [0, 2, 1]
    np.testing.assert_array_equal(data.X, [[1, 0, 0], [2, 0, 0], [0, 0, 5]])
    assert list(data.comments) == ["x", "", ""]


def test_errors_in_several_files_name_file_and_line():
    with (
        file_with("1 qid:a 1:1\n0 qid:b 1:2\n") as first,
        file_with("2 qid:a 3:5\n\n2 qid:a 0:1\n") as second,
    ):
        assert str(second) != str(first)
        with refused_data(second, 3) as info:
            read_letor([first, second])
        assert "'0:1'" in info.value.reason


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["1", "-5", "0", "9223372036854775807"], [1, -5, 0, 2**63 - 1]),
        (["1", "02"], ["1", "02"]),
        (["1", "+2"], ["1", "+2"]),
        (["-0", "0"], ["-0", "0"]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["GX-1", "é"], ["GX-1", "é"]),
    ],
)
def test_query_ids_are_integers_only_if_all_are_plain(tokens, expected):
    data = read_text("".join(f"0 qid:{token} 1:1\n" for token in tokens))
    assert data.qid.tolist() == expected
    assert data.qid.dtype.kind == ("i" if isinstance(expected[0], int) else "U")


def test_scattered_queries_keep_their_rows():
    data = read_text("".join(f"{i} qid:{i % 3} 1:{i}\n" for i in range(9)), _chunk_bytes=20)
    assert data.n_queries == 3
    assert data.queries.order.tolist() == [0, 3, 6, 1, 4, 7, 2, 5, 8]


def test_query_ids_with_a_common_prefix_differ():
    data = read_text("0 qid:1 1:1\n0 qid:12 1:1\n0 qid:1 1:1\n0 qid:12 1:1\n0 qid:122 1:1\n")
    assert data.qid.tolist() == [1, 12, 1, 12, 122]


def test_document_ids():
    comments = [
        "docid = A b",
        "docid=B",
        "x docid = C",
        "DOCID\t=\tD",
        "docid =",
        "first second",
        " ",
        "docidX=1",
    ]
    data = read_text("".join(f"0 qid:1 1:1 #{comment}\n" for comment in comments))
    assert list(data.doc_ids) == ["A", "B", "C", "D", "docid", "first", "", "docidX=1"]
    assert isinstance(data.comments, TextColumn)
    assert data.comments[1:3] == ["docid=B", "x docid = C"]
    assert list(data.comments[np.array([5, 0])]) == ["first second", "docid = A b"]
    assert data.select_rows(np.array([2, 0])).doc_ids == ["C", "A"]
    assert data.comments[-1] == "docidX=1"
    assert data.comments != ["other"]
    assert "8 strings" in repr(data.comments)
    with pytest.raises(IndexError):
        data.comments[8]


def test_comments_are_none_if_there_are_none():
    data = read_text("1 qid:1 1:1\n0 qid:1 1:2 #\n")
    assert data.comments is None
    assert data.doc_ids is None


def test_comments_need_not_be_utf8():
    data = read_text(b"1 qid:1 1:1 # caf\xe9 au lait\n")
    assert data.comments[0] == " caf\ufffd au lait"
    with file_with("") as path:
        write_letor(data, path)
        assert path.read_bytes() == b"1 qid:1 1:1 # caf\xe9 au lait\n"


def test_sparse_keeps_explicit_values():
    data = read_text(
        "1 qid:1 7:2 3:0\n0 qid:1\n2 qid:2 1:NULL\n", sparse=True, missing="keep", _chunk_bytes=9
    )
    assert isinstance(data.X, sp.csr_array)
    assert data.X.shape == (3, 7)
    assert data.X.indices.tolist() == [2, 6, 0]
    assert data.X.indptr.tolist() == [0, 2, 2, 3]
    np.testing.assert_array_equal(data.X.data, [0, 2, np.nan])


def test_n_features_sets_the_width():
    assert read_text(PLAIN, n_features=6).X.shape == (3, 6)
    assert read_text(PLAIN, n_features=6, sparse=True).X.shape == (3, 6)
    assert read_text("1 qid:1\n", n_features=2).X.tolist() == [[0, 0]]
    assert "feature 3 is larger than `n_features=2`" in reason(PLAIN, 1, n_features=2)


def test_float32():
    data = read_text(PLAIN, dtype=np.float32)
    assert data.X.dtype == np.float32
    assert_plain(data)
    assert "feature 2 is 1e+39 in float32" in reason("1 qid:1 1:1\n1 qid:1 2:1e39\n", 2, dtype=np.float32)


def test_memory_is_limited():
    text = "".join(
        f"{i % 3} qid:{i // 20} " + " ".join(f"{j}:0.{i:06}" for j in range(1, 47)) + "\n"
        for i in range(9000)
    )
    with file_with(text) as path:
        read_letor(path)
        tracemalloc.start()
        data = read_letor(path, _chunk_bytes=1 << 16)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 3 * (data.X.nbytes + data.y.nbytes + data.qid.nbytes)


# ---------------------------------------------------------------- missing values

HOLES = "1 qid:1 1:4 2:NULL\n0 qid:1 1:NaN 2:null\n0 qid:1 1:2 2:NAN\n1 qid:2 1:6 2:8\n0 qid:2 1:nan 2:nUlL\n"


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("zero", [[4, 0], [0, 0], [2, 0], [6, 8], [0, 0]]),
        ("query_min", [[4, 0], [2, 0], [2, 0], [6, 8], [6, 8]]),
        ("column_mean", [[4, 8], [4, 8], [2, 8], [6, 8], [4, 8]]),
        ("keep", [[4, np.nan], [np.nan, np.nan], [2, np.nan], [6, 8], [np.nan, np.nan]]),
    ],
)
def test_missing_policies(policy, expected, sparse):
    data = read_text(HOLES, missing=policy, sparse=sparse, _chunk_bytes=25)
    np.testing.assert_array_equal(data.X.toarray() if sparse else data.X, expected)


def test_missing_values_are_kept_by_default_or_an_error():
    text = "1 qid:1 1:4\n\n1 qid:1 7:NULL 8:NULL\n1 qid:1 1:NULL\n"
    with file_with(text, ".txt") as path:
        assert np.isnan(read_letor(path).X).sum() == 3
    assert "feature 7 is missing" in reason(text, 3, missing="error")


def test_unknown_policy_is_refused_before_reading():
    with refused_parameter("missing", "mean"):
        read_letor("/nowhere/at/all", missing="mean")


# ---------------------------------------------------------------- bad input

GOOD_LINE = "1 qid:1 1:0.5\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("abc qid:1 1:1", "the label is 'abc'"),
        ("1,5 qid:1 1:1", "the label is '1,5'"),
        ("NaN qid:1 1:1", "the label is 'NaN'"),
        ("inf qid:1 1:1", "the label is 'inf'"),
        ("qid:1 1:1", "the label is 'qid:1'"),
        ("1e999 qid:1 1:1", "the label is 1e999"),
        ("1 1:0.5", "got '1:0.5'"),
        ("1", "got nothing"),
        ("1 # comment", "got nothing"),
        ("1 qid: 1:0.5", "got 'qid:'"),
        ("1 QID:3 1:0.5", "got 'QID:3'"),
        ("1 qid:1 foo", "got 'foo'"),
        ("1 qid:1 3", "got '3'"),
        ("1 qid:1 3:", "got '3:'"),
        ("1 qid:1 3: 5", "got '3:'"),
        ("1 qid:1 :5", "got ':5'"),
        ("1 qid:1 3:x", "got '3:x'"),
        ("1 qid:1 3:1.2.3", "got '3:1.2.3'"),
        ("1 qid:1 3:1e", "got '3:1e'"),
        ("1 qid:1 3:1e+", "got '3:1e+'"),
        ("1 qid:1 3:--1", "got '3:--1'"),
        ("1 qid:1 3:.", "got '3:.'"),
        ("1 qid:1 3:1_000", "got '3:1_000'"),
        ("1 qid:1 3:0x1p3", "got '3:0x1p3'"),
        ("1 qid:1 3:NULLS", "got '3:NULLS'"),
        ("1 qid:1 3:-NaN", "got '3:-NaN'"),
        ("1 qid:1 1.5:2", "got '1.5:2'"),
        ("1 qid:1 qid:2 1:1", "got 'qid:2'"),
        ("1 qid:1 é:2", "got 'é:2'"),
        ("1 qid:1 " + "y" * 90, f"got '{'y' * 40}…'"),
        ("1 qid:1 0:2", "got '0:2'"),
        ("1 qid:1 00:2", "got '00:2'"),
        ("1 qid:1 -4:2", "got '-4:2'"),
        ("1 qid:1 3:inf", "feature 3 is 'inf'"),
        ("1 qid:1 3:-Infinity", "feature 3 is '-Infinity'"),
        ("1 qid:1 3:-1e400", "feature 3 is -1e400"),
        ("1 qid:1 2:1 3:1 3:1", "feature 3 occurs twice"),
        ("1 qid:1 5:1 3:1 9:0 5:2", "feature 5 occurs twice"),
        ("1 qid:1 10000001:1", "feature 10000001 is larger than 10000000"),
        ("1 qid:1 18446744073709551617:1", "feature 18446744073709551617 is larger than 10000000"),
    ],
)
def test_bad_lines(line, words):
    content = GOOD_LINE + "\n# comment\n" + line + "\n" + GOOD_LINE
    for chunk_bytes in (16, 1 << 20):
        assert words in reason(content, 4, _chunk_bytes=chunk_bytes)


def test_the_first_faulty_line_is_named():
    later = "1 qid:1 foo\n"
    assert "twice" in reason("1 qid:1 3:1 3:2\n" + later, 1)
    assert "feature 3 is 1e999" in reason("1 qid:1 3:1e999\n" + later, 1)
    assert "feature 3 is missing" in reason("1 qid:1 3:NULL\n" + later, 1, missing="error")
    assert "query id" in reason(b"1 qid:\xff 3:1\n" + later.encode(), 1)
    assert reason("1 qid:1 1:1 9:1e999 5:x\n", 1)


def test_query_id_that_is_not_utf8():
    assert "b'caf\\xe9'" in reason(b"1 qid:1 1:1\n1 qid:caf\xe9 1:1\n", 2)


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n", "\ufeff", gzip.compress(b"", mtime=0)])
def test_no_documents(content):
    assert "no documents" in reason(content)


def test_no_files_and_no_features():
    with refused_data("the list of files"):
        read_letor([])
    assert "no line has a feature" in reason("1 qid:1\n")


def test_truncated_gzip():
    whole = gzip.compress((GOOD_LINE * 5000).encode())
    assert "truncated" in reason(whole[:-30], suffix=".gz")


def test_corrupt_gzip():
    whole = bytearray(gzip.compress("".join(f"1 qid:1 1:0.{i}\n" for i in range(9999)).encode()))
    whole[len(whole) // 2] ^= 0xFF
    assert re.search(r"corrupt|truncated|NUL", reason(bytes(whole), suffix=".gz"))
    whole = bytearray(gzip.compress(GOOD_LINE.encode()))
    whole[-5] ^= 0xFF
    assert "corrupt" in reason(bytes(whole))
    assert "corrupt" in reason(GOOD_LINE, suffix=".gz")


def test_files_that_are_not_text():
    assert "NUL" in reason(b"1 qid:1 1:1\n1 qid\x00:2 1:1\n")
    assert "NUL" in reason(GOOD_LINE.encode("utf-16"))
    assert "NUL" in reason(b"\x00" * 5000, _chunk_bytes=64)
    assert ".parquet" in reason(b"PAR1\x15\x04\x15")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.txt: "):
        read_letor(tmp_path / "no.txt")
    with pytest.raises(IsADirectoryError, match="folder"):
        read_letor(tmp_path)
    (tmp_path / "file").write_text(GOOD_LINE)
    with pytest.raises(OSError, match="Not a directory"):
        read_letor(tmp_path / "file" / "below")


def test_bad_options():
    with refused_parameter("n_features", 0):
        read_letor("x", n_features=0)
    with refused_parameter("dtype", "int32"):
        read_letor("x", dtype=np.int32)


def test_a_wide_file_needs_sparse():
    text = "1 qid:1 1:1 1000000:1\n" * 150
    assert "150 × 1000000" in reason(text)
    assert read_text(text, sparse=True).X.shape == (150, 1_000_000)


# ---------------------------------------------------------------- writing

finite_or_nan = st.floats(allow_infinity=False, allow_nan=True, width=64)


@QUICK
@given(st.data(), st.integers(1, 5), st.integers(1, 4), st.booleans(), st.sampled_from([".txt", ".txt.gz"]))
def test_round_trip_is_exact(data, n, d, sparse, suffix):
    X = np.array(data.draw(st.lists(st.lists(finite_or_nan, min_size=d, max_size=d), min_size=n, max_size=n)))
    y = data.draw(st.lists(st.floats(allow_infinity=False, allow_nan=False), min_size=n, max_size=n))
    qid = data.draw(st.lists(st.sampled_from(["a", "7", "b-c"]), min_size=n, max_size=n))
    given_data = Dataset(sp.csr_array(X) if sparse else X, y, qid)
    with file_with("", suffix) as path:
        write_letor(given_data, path)
        back = read_letor(path, n_features=d, missing="keep", sparse=sparse)
        assert gzip.decompress(path.read_bytes()) if suffix.endswith("gz") else True
    dense, returned = (m.toarray() if sparse else m for m in (given_data.X, back.X))
    canonical = np.where(np.isnan(dense), np.nan, dense)
    np.testing.assert_array_equal(bits(returned), bits(canonical))
    np.testing.assert_array_equal(bits(back.y), bits(y))
    assert [str(query) for query in back.qid] == qid


def test_written_text():
    X = [[0.0, 1.0, -0.0, 0.1, 1e300, np.nan, -25.0]]
    data = Dataset(X, [2], ["q1"], comments=[" docid = D7 inc = 1"], doc_ids=["D7"])
    with file_with("") as path:
        write_letor(data, path)
        assert path.read_text() == (
            "2 qid:q1 1:0 2:1 3:-0 4:0.1 5:1e+300 6:NULL 7:-25 # docid = D7 inc = 1\n"
        )
        write_letor(Dataset(sp.csr_array([[0, 1.5], [0, 0]]), [1, 0], [3, 3], doc_ids=["x", ""]), path)
        assert path.read_text() == "1 qid:3 2:1.5 #docid = x\n0 qid:3\n"
        write_letor(Dataset(np.float32([[0.1]]), [0.5], [3]), path)
        assert path.read_text() == "0.5 qid:3 1:0.1\n"


def test_round_trip_of_comments_and_ids():
    with file_with(PLAIN) as path:
        write_letor(read_letor(path), path)
        assert_plain(read_letor(path))


def test_round_trip_of_many_rows():
    data = make_ranking(n_queries=300, random_state=3)
    order = np.random.default_rng(0).permutation(data.n_docs)
    data = data.select_rows(order)
    with file_with("") as path:
        write_letor(data, path)
        back = read_letor(path)
    np.testing.assert_array_equal(bits(back.X), bits(data.X))
    np.testing.assert_array_equal(back.qid, data.qid)
    np.testing.assert_array_equal(back.y, data.y)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (Dataset([[1.0]], [1], ["a b"]), "query id 'a b'"),
        (Dataset([[1.0]], [1], ["a#b"]), "query id 'a#b'"),
        (Dataset([[1.0]], [1], [""]), "query id ''"),
        (Dataset([[1.0], [2.0]], [1, 0], [(1,), "(1,)"]), "two query ids"),
        (Dataset([[1.0], [np.inf]], [1, 0], [1, 1]), "f1 of row 1"),
        (Dataset([[1.0]], [1], [1], doc_ids=["a b"]), "document id 'a b'"),
        (Dataset([[1.0]], [1], [1], comments=["a\nb"]), "row 0"),
    ],
)
def test_data_that_letor_text_cannot_store(data, word, tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with refused_data() as info:
        write_letor(data, path)
    assert word in info.value.reason
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# ---------------------------------------------------------------- the real collections


def whole_collection(root, name):
    return read_letor([root / name / f"Fold{k}" / "test.txt" for k in range(1, 6)])


def test_ohsumed_counts(letor_root):
    figures = describe(whole_collection(letor_root, "OHSUMED"))
    assert (figures.n_queries, figures.n_docs, figures.n_features) == (106, 16140, 45)
    assert sorted(figures.label_counts) == [0, 1, 2]
    constant = (5, 6, 7, 20, 21, 22, 35, 36, 37)
    assert figures.constant_within_queries == tuple(f"f{j}" for j in constant)


def test_mq2008_counts(letor_root):
    data = whole_collection(letor_root, "MQ2008")
    figures = describe(data)
    assert (figures.n_queries, figures.n_docs, figures.n_features) == (784, 15211, 46)
    assert figures.constant_within_queries == tuple(f"f{j}" for j in (6, 7, 8, 9, 10, 43))
    assert all(re.fullmatch(r"GX\d+-\d+-\d+", doc_id) for doc_id in data.doc_ids)


def test_mq2008_agrees_with_the_literal_parser(letor_root):
    path = letor_root / "MQ2008" / "Fold1" / "test.txt"
    X, labels, queries, comments = slow_read(path.read_text())
    data = read_letor(path)
    np.testing.assert_array_equal(bits(data.X), bits(X))
    assert data.y.tolist() == labels
    assert [str(query) for query in data.qid] == queries
    assert list(data.comments) == comments


def test_reading_raises_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_plain(read_text(PLAIN))
