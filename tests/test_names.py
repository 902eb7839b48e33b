"""Feature names for LETOR text: files of names, passed or next to the text; models with names."""

from pathlib import Path

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.io.letor import read_names
from tests.refusals import refused_data
from tests.test_cli import refused, run

TEXT = "1 qid:1 1:0.5 2:1 3:2\n0 qid:1 1:0.1 2:3 3:1\n2 qid:2 1:0.2 2:1 3:7\n0 qid:2 1:0.9 2:2 3:5\n"
NAMES = ("bm25 title", "price", "clicks")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.txt").write_text(TEXT)


@pytest.fixture
def named():
    return rs.io.read_letor("d.txt", names=NAMES)


@pytest.mark.parametrize(
    "content",
    [
        "bm25 title\nprice\nclicks\n",
        "\n bm25 title\r\nprice\r\nclicks\n\n",
        "1:bm25 title\n2: price\n3:clicks\n",
        "index,name\n1,bm25 title\n3,clicks\n2,price\n",
        "1\tbm25 title\n2\tprice\n3\tclicks\n",
    ],
)
def test_formats_of_files(content):
    Path("names.txt").write_text(content)
    assert read_names("names.txt").names == NAMES
    assert rs.io.read_letor("d.txt", names="names.txt").feature_names == NAMES
    assert rs.read_dataset("d.txt", names=Path("names.txt")).feature_names == NAMES
    assert next(rs.io.stream_letor("d.txt", names="names.txt")).feature_names == NAMES
    assert rs.io.convert_dataset("d.txt", "d.ranksieve", names="names.txt").feature_names == NAMES


@pytest.mark.parametrize(
    ("content", "file", "line", "word"),
    [
        ("", "names.txt", None, "no names"),
        ("a\nb\n", "d.txt", None, "2 names"),
        ("a\nb\nc\nd\n", "d.txt", None, "4 names"),
        ("1:a\n2:b\n", "d.txt", None, "2 names"),
        ("a\nb\na\n", "names.txt", 3, "called 'a'"),
        ("1:a\n2:b\n1:c\n", "names.txt", 3, "feature 1"),
        ("0:a\n1:b\n2:c\n", "names.txt", 1, "number 0"),
    ],
)
def test_refusals(content, file, line, word):
    Path("names.txt").write_text(content)
    for read in (
        rs.io.read_letor,
        lambda path, names: rs.io.convert_dataset(path, "d.ranksieve", names=names),
    ):
        with refused_data(file, line) as info:
            read("d.txt", names="names.txt")
        assert word in info.value.reason
    assert refused("inspect", "d.txt", "--names", "names.txt") == str(info.value)


def test_numbered_names_can_exceed_the_features():
    Path("names.txt").write_text("1:a\n5:e\n")
    data = rs.io.read_letor("d.txt", names="names.txt")
    assert data.feature_names == ("a", "f2", "f3", "f4", "e")
    assert not data.X[:, 3:].any()
    sparse = rs.io.read_letor("d.txt", names="names.txt", sparse=True)
    assert sparse.X.shape == (4, 5)
    stored = rs.io.convert_dataset("d.txt", "d.ranksieve", names="names.txt")
    np.testing.assert_array_equal(stored.X[:], data.X)
    assert stored.feature_names == data.feature_names


@pytest.mark.parametrize("target", ["e.txt", "e.txt.gz"])
def test_names_are_written_next_to_the_text(named, target):
    rs.io.write_letor(named, target)
    assert Path("e.txt.names").read_text() == "1:bm25 title\n2:price\n3:clicks\n"
    assert rs.io.read_letor(target).feature_names == NAMES
    assert next(rs.io.stream_letor(target)).feature_names == NAMES
    assert rs.io.convert_dataset(target, "e.ranksieve").feature_names == NAMES
    rs.io.write_letor(rs.io.read_letor("d.txt"), target)
    assert not Path("e.txt.names").exists()
    assert rs.io.read_letor(target).feature_names == ("f1", "f2", "f3")


def test_a_failed_write_leaves_no_names(named):
    named.X[0, 0] = np.inf
    with refused_data():
        rs.io.write_letor(named, "e.txt")
    assert not list(Path().glob("e.txt*"))


def test_names_with_line_breaks_are_refused(named):
    data = named.replace_features(named.X, ["a\nb", "c", "d"])
    with refused_data() as info:
        rs.io.write_letor(data, "e.txt")
    assert "'a\\nb'" in info.value.reason
    assert not Path("e.txt").exists()


def test_several_texts_need_the_same_names(named):
    rs.io.write_letor(named, "a.txt")
    rs.io.write_letor(named.replace_features(named.X, ["x", "y", "z"]), "b.txt")
    with refused_data("b.txt.names"):
        rs.io.read_letor(["a.txt", "b.txt"])
    assert rs.io.read_letor(["a.txt", "d.txt"]).feature_names == NAMES


def test_models_with_names_refuse_data_without_them(named):
    model = rs.FenchelRank(radius=2).fit(named).to_model()
    plain = rs.io.read_letor("d.txt")
    with refused_data() as info:
        model.predict(plain)
    assert "`names`" in info.value.reason
    with refused_data() as info:
        rs.RankSVM().fit(plain).to_model().predict(plain.select_features(np.array([0, 1])))
    assert info.value.reason.endswith(": f3")
    ranker = rs.FenchelRank(radius=2).fit(named)
    with refused_data() as info:
        ranker.predict(rs.Dataset(plain.X[:, :2], plain.y, plain.qid))
    assert "`names`" in info.value.reason
    np.testing.assert_array_equal(ranker.predict(plain), ranker.predict(named))  # by position


def test_names_on_the_command_line(named):
    rs.write_dataset(named, "d.csv")
    run("convert", "d.csv", "e.txt.gz")
    assert run("inspect", "e.txt.gz").stdout.count("bm25 title") == 1
    run("fit", "e.txt.gz", "--method", "fenchelrank", "-o", "m.json")
    assert set(rs.load_model("m.json").names) <= set(NAMES)
    assert "--names" in refused("rank", "m.json", "d.txt")
    Path("names.txt").write_text("\n".join(NAMES))
    assert (
        run("rank", "m.json", "d.txt", "--names", "names.txt").stdout == run("rank", "m.json", "d.csv").stdout
    )


def test_names_with_a_stream():
    Path("names.txt").write_text("\n".join(NAMES))
    options = ("--method", "minbatsrank", "--stream", "--set", "l1=0.01", "--names", "names.txt")
    run("fit", "d.txt", *options, "-o", "m.json")
    assert set(rs.load_model("m.json").names) <= set(NAMES)
    assert rs.load_model("m.json").names
