"""CSV and TSV files: dialects, types of cells, refusals with file and line, round trips."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.data.dataset import Dataset
from ranksieve.io.csv_files import looks_like_csv, read_csv, write_csv
from tests.refusals import refused_data
from tests.test_cli import run

TEXT = 'qid,doc_id,label,bm25,fresh,title\n1,a,2,1.5,true,red shoe\n1,b,0,,false,"hat, blue"\n2,,1,3,true,\n'


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Function that writes a file in the temporary folder."""
    monkeypatch.chdir(tmp_path)

    def write(content, name="d.csv"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_dialects(file, delimiter, end, mark):
    text = TEXT.replace(",", delimiter).replace(f"hat{delimiter}", "hat,").replace("\n", end)
    data = read_csv(file(mark + text.encode()))
    np.testing.assert_array_equal(data.X, [[1.5, 1], [np.nan, 0], [3, 1]])
    assert data.feature_names == ("bm25", "fresh")
    assert data.y.tolist() == [2, 0, 1]
    assert data.qid.tolist() == [1, 1, 2]
    assert list(data.doc_ids) == ["a", "b", None]
    assert {name: list(column) for name, column in data.texts.items()} == {
        "title": ["red shoe", "hat, blue", ""]
    }
    assert data.source == "d.csv"


def test_decimal_commas_of_semicolon_files(file):
    data = read_csv(file("qid;label;price;title\n1;1;1,5;a\n1;0;-20,25;b,c\n"))
    assert data.X.tolist() == [[1.5], [-20.25]]
    assert list(data.texts["title"]) == ["a", "b,c"]


def test_missing_values_in_cells(file):
    cells = ["", "NULL", "null", "NaN", "nan", "NA", "N/A", " "]
    data = read_csv(file("qid,label,x\n" + "".join(f"1,0,{cell}\n" for cell in cells) + "1,1,2\n"))
    assert np.isnan(data.X[:-1]).all()
    assert data.X[-1, 0] == 2


def test_a_line_break_in_quotes(file):
    data = read_csv(file('qid,label,x,title\n1,0,1,"a\nb"\n1,1,2,c\n'))
    assert list(data.texts["title"]) == ["a\nb", "c"]
    with refused_data("d.csv", 4):
        read_csv(file('qid,label,x,title\n1,0,1,"a\nb"\n1,1,many,c\n1,1,2,c\n'))


def test_the_pandas_index_column_is_not_a_feature(file):
    assert read_csv(file(",qid,label,x\n0,1,0,5\n1,1,1,6\n")).feature_names == ("x",)


def test_spaces_around_names_and_numbers(file):
    data = read_csv(file("qid, label, x\n1, 1, 2.5\n1, 0, 3\n"))
    assert data.feature_names == ("x",)
    assert data.X.tolist() == [[2.5], [3.0]]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["7", "12"], [7, 12]),
        (["007", "7"], ["007", "7"]),
        (["a", "1"], ["a", "1"]),
        (["1.5", "2"], ["1.5", "2"]),
    ],
)
def test_query_ids_have_the_same_type_as_in_letor_text(file, ids, expected):
    assert read_csv(file(f"qid,label,x\n{ids[0]},0,1\n{ids[1]},1,2\n")).qid.tolist() == expected


def test_csv_is_detected_by_name_or_header(file):
    for name in ("d.csv", "d.TSV", "d.txt", "d"):
        assert rs.read_dataset(file(TEXT, name)).n_docs == 3
    for name in ("d.csv.gz", "d.tsv.gz", "d.gz"):
        assert rs.read_dataset(file(gzip.compress(TEXT.encode()), name)).n_docs == 3


@pytest.mark.parametrize(
    ("start", "header"),
    [
        (b"qid,label,bm25\n1,0,2\n", True),
        (b"query\tgrade\tprice", True),
        (b"2 qid:10 1:0.5 # a,b,c\n", False),
        (b"# made by x, y, z\n2 qid:1 1:1\n", False),
        (b"1,2,3\n", False),
        (b"a,b\n", False),
        (b"", False),
        (b"\x00a,b,c,d\n", False),
    ],
)
def test_detection_of_headers(start, header):
    assert looks_like_csv(start) == header


@pytest.mark.parametrize(
    ("content", "line", "word"),
    [
        ("", 1, "''"),
        ("qid label x\n", 1, "'qid label x'"),
        ("1,2,3\n4,5,6\n", 1, "numbers"),
        ("qid,label,x,x\n1,0,1,2\n", 1, "called 'x'"),
        ("qid,label,x\n", None, "no documents"),
        ("qid,label,x\n1,0,2\n1,1\n", 3, "2 cells"),
        ("qid,label,x\n1,0,2\n1,1,2\n1,1,wide\n", 4, "'wide'"),
        ("qid,label,x\n1,good,2\n", 2, "'good'"),
        ("qid,label,x\n1,0,2\n1,,3\n", 3, "'label'"),
        ("qid,label,x\n1,0,2\n,1,3\n", 3, "'qid'"),
        ("query,label,x\n1,0,2\n", None, "`qid='query'`"),
        ("a,label,x\n1,0,2\n", None, "`qid`"),
        (b"qid,label,x\n1,0,\xff\n", 2, "UTF-8"),
    ],
)
def test_refusals(file, content, line, word):
    with refused_data("d.csv", line) as info:
        read_csv(file(content))
    assert word in info.value.reason


def test_a_text_column_cannot_be_a_feature(file):
    with refused_data("d.csv", 2) as info:
        read_csv(file(TEXT), features=["bm25", "title"])
    assert "'title'" in info.value.reason


def test_ignored_columns_are_not_checked(file):
    assert read_csv(file("qid,label,x,y\n1,0,2,3\n1,0,2,many\n1,1,2,3\n"), ignore="y").feature_names == ("x",)


def test_damaged_gzip(file):
    with refused_data("d.csv.gz"):
        rs.read_dataset(file(gzip.compress(TEXT.encode() * 99)[:-30], "d.csv.gz"))


@pytest.mark.parametrize("name", ["d.csv", "d.tsv", "d.csv.gz"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trip(tmp_path, name, dtype):
    X = np.array([[0.1, np.nan], [-0.0, 1e300 if dtype == np.float64 else 1e30], [3, 1 / 3]], dtype=dtype)
    data = Dataset(
        X, [2, 0, 1.5], ["a", "a", "b"], ["bm25 title", "x,y"], ["d1", None, 'd"3'], comments=["c", "", "e"],
        texts={"query": ["red\tshoe", "red\tshoe", "hat, blue"]},
    )  # fmt: skip
    rs.write_dataset(data, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith("gz")
    back = rs.read_dataset(tmp_path / name)
    np.testing.assert_array_equal(back.X.astype(dtype), X)
    assert back.y.tolist() == [2, 0, 1.5]
    assert back.qid.tolist() == ["a", "a", "b"]
    assert list(back.doc_ids) == ["d1", None, 'd"3']
    assert list(back.comments) == ["c", "", "e"]
    assert back.feature_names == ("bm25 title", "x,y")
    assert list(back.texts["query"]) == ["red\tshoe", "red\tshoe", "hat, blue"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_data_on_disk_are_written_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("ranksieve.io.frames.CELLS_PER_TABLE", 12)
    data = rs.make_ranking(n_queries=6, n_features=4, n_informative=2, random_state=0)
    stored = rs.io.convert_dataset(data, tmp_path / "d.ranksieve")
    write_csv(stored, tmp_path / "d.csv")
    np.testing.assert_array_equal(read_csv(tmp_path / "d.csv").X, data.X)


def test_several_csv_files_are_refused(file):
    with refused_data("d.csv, e.csv"):
        rs.io.convert_dataset([file(TEXT), file(TEXT, "e.csv")], "out.ranksieve")


@pytest.mark.parametrize("blank", ["\n", "\r\n\r\n", "  \n\t\n", "\ufeff\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_blank_lines_before_the_header_are_skipped(blank, separator, tmp_path):
    lines = ["qid,label,price", "1,1,2.5", "", "1,0,3"]
    text = blank + "\n".join(lines).replace(",", separator)
    path = tmp_path / "d.csv"
    path.write_text(text, encoding="utf-8", newline="")
    data = rs.io.read_csv(path)
    assert data.feature_names == ("price",)
    assert data.X.ravel().tolist() == [2.5, 3.0]
    path.write_text(text + f"\n1{separator}0{separator}x\n", encoding="utf-8", newline="")
    line = blank.replace("\r\n", "\n").count("\n") + 5
    with refused_data(path, line) as info:
        rs.io.read_csv(path)
    assert "'price'" in info.value.reason


def test_a_blank_first_line_of_costs_signs_and_weights_is_skipped(tmp_path):
    for separator in (",", "\t"):
        (tmp_path / "costs.csv").write_text(f"\n \nfeature{separator}cost\nf1{separator}2\n")
        assert rs.io.read_costs(tmp_path / "costs.csv").of(["f1"]) == 2.0
        (tmp_path / "signs.csv").write_text(f"\nfeature{separator}sign\nf1{separator}+\n")
        assert rs.io.read_signs(tmp_path / "signs.csv") == {"f1": 1.0}
        (tmp_path / "weights.csv").write_text(f"\nquery{separator}weight\nq{separator}2\n")
        assert rs.io.read_query_weights(tmp_path / "weights.csv") == {"q": 2.0}


@pytest.mark.parametrize(
    "cells",
    [["$12", "$13.50"], ["12 €", "9 €"], ["5%", "7%"], ['"1,234"', '"2,500"'], ["USD 3", "EUR 4"],
     ["2kg", "3 kg"], ["unknown", "4", "none", "unknown", "unknown"]],
)  # fmt: skip
def test_leaving_out_a_text_column_like_numbers_causes_a_warning(cells, tmp_path):
    rows = "".join(f"1,{k % 2},{k},{cell},a film of 19{k}\n" for k, cell in enumerate(cells))
    path = tmp_path / "d.csv"
    path.write_text(f"qid,label,stock,price,title\n{rows}", encoding="utf-8")
    example = next(cell.strip('"') for cell in cells if any(one.isdigit() for one in cell))
    with pytest.warns(UserWarning, match=rf"price \(such as '{re.escape(example)}'\)"):
        data = rs.io.read_csv(path)
    assert data.feature_names == ("stock",)
    assert list(data.texts) == ["price", "title"]
    assert rs.io.read_csv(path, ignore="price").feature_names == ("stock",)
    assert rs.io.read_csv(path, features=["stock"]).feature_names == ("stock",)


@pytest.mark.parametrize(
    "cells",
    [["red", "blue"], ["2020-01-02", "2021-03-04"], ["p12", "sku-4"], ["10:30", "9:15"], ["v1.2", "v2"],
     ["a 1", "b 2"], ["true", "false"]],
)  # fmt: skip
def test_words_dates_and_codes_are_texts_without_a_warning(cells, tmp_path):
    rows = "".join(f"1,{k % 2},{k},{cell}\n" for k, cell in enumerate(cells))
    (tmp_path / "d.csv").write_text(f"qid,label,stock,kind\n{rows}")
    assert rs.io.read_csv(tmp_path / "d.csv").feature_names[0] == "stock"


def test_fit_names_omitted_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{k // 4},{k % 2},{k % 2 + k / 99},${k}\n" for k in range(40))
    Path("d.csv").write_text(f"qid,label,stock,price\n{rows}")
    result = run("fit", "d.csv", "-o", "m.json")
    assert "warning: d.csv: " in result.stderr
    assert "price (such as '$0')" in result.stderr
    assert "--ignore" in result.stderr
