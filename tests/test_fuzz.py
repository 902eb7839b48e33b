"""Hostile files of every kind: those that fuzzing found, with their messages, and a few of each target."""

from __future__ import annotations

import datetime
import json
import tracemalloc
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ranksieve as rs
from ranksieve.cli.options import read_scores
from ranksieve.io.letor import read_names
from ranksieve.io.tables import read_queries
from tests.fuzz.child import draw_input, try_input
from tests.fuzz.targets import TARGETS
from tests.refusals import refused_data, refused_parameter
from tests.test_booster_models import changed

pytestmark = pytest.mark.full
SEED = 17
FEW = {
    "letor": 1,
    "letor-bounds": 1,
    "commands": 8,
    "parquet-types": 40,
    "parquet": 20,
    "folder": 40,
    "any-data": 30,
    "csv": 40,
}
LARGEST = 10_000_000


@pytest.mark.parametrize("target", TARGETS)
def test_a_few_inputs_of_each_target(target, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSIEVE_FUZZ_FOLDER", str(tmp_path))
    for number in range(FEW.get(target, 60)):
        value = draw_input(target, SEED, number)
        _, fault = try_input(target, value)
        assert not fault, (number, value)


HUGE = "'10000000000'"
TREE = ("learner", "gradient_booster", "model", "trees", 0)
FILES = {
    "blanks that float does not know": (
        lambda path: read_scores(str(path)),
        b"0.5\n\x1f7x\n",
        2,
        "'\\x1f7x'",
    ),
    "huge RankLib number": (rs.read_model, b"## AdaRank\n10000000000:1\n", 2, HUGE),
    "huge number of a stump": (rs.read_model, b"## RankBoost\n10000000000:1:1\n", 2, HUGE),
    "huge fastrank number": (
        lambda path: rs.read_model(path, first_feature=1),
        b'{"SingleFeature": {"fid": 10000000000, "dir": 1}}',
        None,
        "fid is 10000000000",
    ),
    "neurons that are not there": (
        rs.read_model,
        b"## RankNet\n1\n1\n9999999\n0 0 1\n",
        5,
        "9999999 weights",
    ),
    "half a letter": (
        rs.read_model,
        b'{"format": "\\ud800"}',
        None,
        "line 1 column 13",
    ),
    "XGBoost without a list": (
        rs.read_model,
        json.dumps(changed((*TREE, "split_type"), 1)).encode(),
        None,
        "categorical",
    ),
    "long cost": (
        rs.io.read_costs,
        json.dumps({"a": "x" * 3000}).encode(),
        1,
        f"'a' costs '{'x' * 59}…",
    ),
    "long header": (rs.io.read_costs, b"y" * 3000, 1, f"'{'y' * 59}…"),
    "huge number of a name": (
        read_names, b"1:a\n99999999:b\n", 2, "number 99999999"
    ),
    "damaged parquet": (rs.read_dataset, b"PAR1" + b"\0" * 20 + b"PAR1", None, "parquet"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_files_found_by_fuzzing(case, tmp_path):
    read, content, line, word = FILES[case]
    path = tmp_path / "file"
    path.write_bytes(content)
    with refused_data(path, line) as info:
        read(path)
    assert word in info.value.reason


LINE_ENDS = {"\n", "\r\n", "\r"}
TABLES = {
    rs.io.read_judgements: "query,doc,grade\na,1,2\nb,2,0\n",
    rs.io.read_qrels: "1 0 7555 4\n1 0 8 0\n",
    rs.io.read_run: "1 Q0 7555 1 9.5 tag\n1 Q0 8 2 1 tag\n",
    rs.io.read_costs: "feature,cost\nf1,2\nf2,1\n",
    rs.io.read_query_weights: "query,weight\n1,2\n2,3\n",
    read_queries: "qid,query\n1,red shoe\n2,hat\n",
    rs.read_model: "## AdaRank\n## x\n1:0.5 2:1\n",
}


@pytest.mark.parametrize("read", TABLES, ids=lambda read: read.__name__)
def test_all_line_endings_are_accepted(read, tmp_path):
    results = []
    for end in LINE_ENDS:
        (tmp_path / "file").write_bytes(TABLES[read].replace("\n", end).encode())
        results.append(repr(read(tmp_path / "file")))
    assert results == results[:1] * 3


@pytest.mark.parametrize("letter", ["\u2028", "\x85", "\x0c", "\x1c"])
def test_other_characters_do_not_end_a_line(letter, tmp_path):
    (tmp_path / "w.csv").write_text(f"a{letter}b,1\nc,2\n", encoding="utf-8")
    assert rs.io.read_query_weights(tmp_path / "w.csv") == {f"a{letter}b": 1.0, "c": 2.0}
    (tmp_path / "c.csv").write_text(f"feature,cost\na{letter}b,1\n", encoding="utf-8")
    assert rs.io.read_costs(tmp_path / "c.csv").to_dict() == {"features": {f"a{letter}b": 1.0}}


def test_scores_beyond_float32_tie_without_a_warning():
    evaluation = rs.evaluate_run({"1": {"a": 1e308, "b": 1e300, "c": 1.0}}, {"1": {"b": 1.0}}, ["mrr"])
    assert evaluation.mean["mrr"] == 1.0  # equal scores come in descending order of the name


def test_a_quoted_query_can_begin_with_a_hash(tmp_path):
    (tmp_path / "j.csv").write_text('# note\n # note\nquery,doc,grade\n"#5",a,1\nb,c,2\n')
    assert rs.io.read_judgements(tmp_path / "j.csv").grades == {"#5": {"a": 1.0}, "b": {"c": 2.0}}


# --- Parquet ---------------------------------------------------------------------------------------------


def parquet(path, names=("qid", "label", "a"), **columns):
    arrays = {"qid": pa.array([1, 1]), "label": pa.array([0, 1]), "a": pa.array([0.5, 1.5]), **columns}
    pq.write_table(pa.Table.from_arrays([arrays[name] for name in names], names=list(names)), path)
    return path


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_integers_beyond_float64_are_rounded_as_in_text(kind, tmp_path):
    path = parquet(
        tmp_path / "d.parquet", a=pa.array([2**53 + 1, None], kind), label=pa.array([2**60 + 1, 0])
    )
    data = rs.read_dataset(path)
    np.testing.assert_array_equal(data.X[:, 0], [float(2**53 + 1), np.nan])
    assert data.y.tolist() == [2.0**60, 0.0]


ODD = {
    "decimal": pa.array([Decimal("1.5"), None]),
    "date": pa.array([None, None], pa.date32()),
    "list": pa.array([None, None], pa.list_(pa.float64())),
    "float16": pa.array([np.float16(1.5), None], pa.float16()),
}


@pytest.mark.parametrize("kind", ODD)
def test_columns_of_unusual_types_with_numbers_or_nulls(kind, tmp_path):
    X = rs.read_dataset(parquet(tmp_path / "d.parquet", a=ODD[kind])).X
    assert np.isnan(X[1, 0])
    assert np.isnan(X[0, 0]) or X[0, 0] == 1.5


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([Decimal("1.5")] * 2),
        pa.array([datetime.time(1)] * 2),
        pa.array([b"a"] * 2, pa.binary(1)),
        pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int64())),
    ],
    ids=str,
)
def test_query_ids_that_a_folder_cannot_store(ids, tmp_path):
    path = parquet(tmp_path / "d.parquet", qid=ids)
    with refused_data(path) as info:
        rs.io.convert_dataset(path, tmp_path / "d.ranksieve")
    assert "'qid'" in info.value.reason


def test_duplicate_column_names(tmp_path):
    path = parquet(tmp_path / "d.parquet", names=("qid", "label", "a", "a"))
    with refused_data(path) as info:
        rs.read_dataset(path)
    assert "called 'a'" in info.value.reason
    twice = ("qid", "label", "a", "__index_level_0__", "__index_level_0__")
    path = parquet(tmp_path / "d.parquet", names=twice, __index_level_0__=pa.array([0, 1]))
    assert rs.read_dataset(path).feature_names == ("a",)


@pytest.mark.parametrize(("name", "word"), [("bbbb", "valid parquet file"), ("text", "UTF-8")])
def test_parquet_whose_text_is_not_utf8(name, word, tmp_path):
    texts = pa.array(["text", "text"])
    path = parquet(tmp_path / "d.parquet", names=("qid", "label", "a", "bbbb"), bbbb=texts)
    path.write_bytes(path.read_bytes().replace(name.encode(), b"\xff" * 4))
    for read in (rs.read_dataset, lambda file: rs.io.convert_dataset(file, tmp_path / "d.ranksieve")):
        with refused_data(path) as info:
            read(path)
        assert word in info.value.reason


# --- Sizes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "read", [rs.io.read_letor, lambda *arguments, **options: list(rs.io.stream_letor(*arguments, **options))]
)
@pytest.mark.parametrize("sparse", [False, True])
def test_too_large_n_features_is_refused_before_reading(read, sparse, tmp_path):
    (tmp_path / "d.txt").write_text("1 qid:1 1:1\n")
    tracemalloc.start()
    try:
        with refused_parameter("n_features", 3 * 10**9):
            read(tmp_path / "d.txt", sparse=sparse, n_features=3 * 10**9)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["d.txt", "d.csv", "d.parquet"])
def test_one_long_query_id_does_not_take_memory_in_other_rows(name, tmp_path):
    n_rows, long = 3000, "q" * 20_000
    ids = [long, *(f"q{row // 10}" for row in range(n_rows))]
    data = rs.Dataset(np.ones((len(ids), 1)), np.zeros(len(ids)), ids)
    rs.write_dataset(data, tmp_path / name)
    rs.read_dataset(tmp_path / name)  # imports do not count
    tracemalloc.start()
    try:
        back = rs.read_dataset(tmp_path / name)
        back.queries  # noqa: B018
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20  # ids of fixed width would take 240 MB
    finally:
        tracemalloc.stop()
    assert back.qid.tolist() == ids
    assert back.n_queries == 1 + n_rows // 10
