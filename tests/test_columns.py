"""Roles of columns: names and patterns, text columns, texts of queries; in Python and on the command line."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ranksieve as rs
from ranksieve.io.frames import columns_matching
from ranksieve.io.tables import read_queries
from tests.refusals import refused_data, refused_parameter
from tests.test_cli import refused, run

TABLE = {
    "query_id": ["q1", "q1", "q2", "q2"],
    "grade": [1, 0, 2, 0],
    "url": ["a", "b", "c", "d"],
    "bm25_title": [1.0, 2.0, 3.0, 4.0],
    "bm25_body": [4.0, 3.0, 2.0, 1.0],
    "clicks": [1, 0, 5, 0],
    "user_age": [30, 31, 32, 33],
    "title": ["red shoe", None, "hat", "blue hat"],
}
NAMED = {"qid": "query_id", "label": "grade", "doc_id": "url"}
OPTIONS = ("--qid-column", "query_id", "--label-column", "grade", "--doc-column", "url")
TITLES = ["red shoe", "", "hat", "blue hat"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The table in each file format, and the same data as LETOR text."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(TABLE), "d.parquet")
    data = rs.from_frame(pa.table(TABLE), **NAMED)
    rs.to_frame(data).rename(columns={"qid": "query_id", "label": "grade", "doc_id": "url"}).to_csv("d.csv")
    rs.io.write_letor(data, "d.txt")
    Path("queries.tsv").write_text('qid\tquery\nq1\t"red" shoes\nq2\thats\n')
    return data


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ("bm25_*", ["bm25_title", "bm25_body"]),
        (["*_body", "bm25_*"], ["bm25_body", "bm25_title"]),
        (["x[1]"], ["x[1]"]),
        ((), []),
        ("?1", ["x1"]),
    ],
)
def test_patterns(patterns, names):
    assert columns_matching(patterns, ["bm25_title", "bm25_body", "x1", "x[1]"], "features") == names


def test_a_pattern_that_matches_nothing():
    with refused_data() as info:
        columns_matching("bm52_*", ["bm25_title", "clicks"], "features")
    assert "`features='bm52_*'`" in info.value.reason
    assert info.value.reason.endswith(" bm25_title")
    with refused_data() as info:
        columns_matching("zz", ["bm25_title", "clicks"], "ignore")
    assert "`ignore='zz'`" in info.value.reason
    assert info.value.reason.endswith(" bm25_title, clicks")


@pytest.mark.parametrize("name", ["d.parquet", "d.csv"])
def test_columns_of_files(here, name):
    data = rs.read_dataset(name, **NAMED, features=["clicks", "bm25_*"], ignore="bm25_body")
    assert data.feature_names == ("clicks", "bm25_title")
    assert data.qid.tolist() == TABLE["query_id"]
    assert data.y.tolist() == TABLE["grade"]
    assert list(data.doc_ids) == TABLE["url"]
    assert list(data.texts["title"]) == TITLES
    others = rs.read_dataset(name, **NAMED, ignore=["user_*", "title"])
    assert others.feature_names == ("bm25_title", "bm25_body", "clicks")
    assert others.texts == {}


def test_patterns_do_not_match_ids_and_labels():
    data = rs.from_frame(pa.table(TABLE), **NAMED, features="*", ignore="title")
    assert data.feature_names == ("bm25_title", "bm25_body", "clicks", "user_age")
    with refused_data() as info:
        rs.from_frame(pa.table(TABLE), **NAMED, features="gr*")
    assert "`features='gr*'`" in info.value.reason
    with refused_data() as info:
        rs.from_frame(pa.table(TABLE), **NAMED, features=["clicks", "title"])
    assert "title (String)" in info.value.reason


@pytest.mark.parametrize("target", ["e.parquet", "e.csv", "e.ranksieve"])
def test_round_trip_of_text_columns(here, target):
    rs.write_dataset(here, target)
    back = rs.read_dataset(target)
    assert list(back.texts["title"]) == TITLES
    assert back.feature_names == here.feature_names
    rows = back.select_rows(np.array([2, 0]))
    assert list(rows.texts["title"]) == ["hat", "red shoe"]


def test_text_columns_of_scattered_queries_follow_their_rows(here):
    mixed = here.select_rows(np.array([2, 0, 3, 1]))
    with pytest.warns(UserWarning, match="not contiguous"):
        rs.write_dataset(mixed, "m.ranksieve")
    assert list(rs.open_dataset("m.ranksieve").texts["title"]) == ["hat", "blue hat", "red shoe", ""]


def test_texts_are_converted_from_parquet_to_a_folder(here):
    stored = rs.io.convert_dataset("d.parquet", "p.ranksieve", **NAMED, features="bm25_*")
    assert stored.feature_names == ("bm25_title", "bm25_body")
    assert list(stored.texts["title"]) == TITLES


def test_a_text_cannot_have_the_name_of_another_column():
    data = rs.Dataset([[1.0]], [1], [1], ["x"], texts={"x": ["a"]})
    with refused_data() as info:
        rs.to_frame(data)
    assert "called x" in info.value.reason


# --- Texts of queries --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "qid\tquery\n1\tred shoes\n2\that, blue\n",
        "1\tred shoes\n2\that, blue\n",
        'id,text\n1,red shoes\n2,"hat, blue"\n',
    ],
)
def test_files_of_queries(tmp_path, content):
    (tmp_path / "q.tsv").write_text(content)
    assert read_queries(tmp_path / "q.tsv") == {"1": "red shoes", "2": "hat, blue"}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", None),
        ("1\ta\tb\n", 1),
        ("1\ta\n1\tb\n", 2),
    ],
)
def test_damaged_files_of_queries(tmp_path, monkeypatch, content, line):
    monkeypatch.chdir(tmp_path)
    Path("q.tsv").write_text(content)
    with refused_data("q.tsv", line):
        read_queries("q.tsv")


def test_texts_of_queries_are_matched_by_id(small):
    texts = {str(query): f"text {query}" for query in small.query_ids.tolist()}
    data = rs.io.with_query_texts(small, texts)
    assert list(data.texts["query"]) == [f"text {query}" for query in small.qid.tolist()]
    with pytest.warns(UserWarning, match="5 of 6 queries"):
        rs.io.with_query_texts(small, {"0": "zero"})
    with refused_parameter("queries"):
        rs.io.with_query_texts(small, {"q0": "zero"})


# --- The command line --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["d.parquet", "d.csv"])
def test_options_on_the_command_line(here, name):
    chosen = ("--features", "bm25_*,clicks", "--ignore", "*_body", *OPTIONS)
    run("convert", name, "out.parquet", *chosen, "--queries", "queries.tsv")
    data = rs.read_dataset("out.parquet")
    assert data.feature_names == ("bm25_title", "clicks")
    assert list(data.texts["query"]) == ["red shoes", "red shoes", "hats", "hats"]
    assert list(data.texts["title"]) == TITLES
    assert json.loads(run("inspect", name, *chosen, "--json").stdout)["n_features"] == 2
    run("fit", name, "--method", "fenchelrank", *chosen, "-o", "m.json")
    scored = run("rank", "m.json", name, *chosen).stdout
    assert run("rank", "m.json", name, *OPTIONS).stdout == scored
    for command in (
        ("evaluate", "m.json", name),
        ("compare", "m.json", "m2.json", name),
        ("explain", "m.json", name, "--query", "q1"),
        ("path", name),
        ("verify", "m.json", name, "--features", "bm25_title,clicks"),
        ("subset", name, "--max-features", "1"),
        ("frontier", name, "--max-features", "1"),
        ("scorecard", "m.json", name, "-o", "card.json"),
    ):
        Path("m2.json").write_bytes(Path("m.json").read_bytes())
        run(*command, *OPTIONS)
    Path("scores.txt").write_text(scored)
    run("evaluate", "scores.txt", name, *OPTIONS)


REFUSED = {  # beginning and part of the message
    "d.parquet": ("d.parquet: ", "--qid-column query_id"),
    "d.parquet --qid-column query_id": ("d.parquet: ", "--label-column grade"),
    "d.csv ALL --features bm52_*": ("d.csv: ", "--features bm52_*"),
    "d.csv ALL --ignore zz": ("d.csv: ", "--ignore zz"),
    "d.csv --qid-column query_id --label-column grade --doc-column uri": ("d.csv: ", "'uri'"),
    "d.csv ALL --features title": ("d.csv:2: ", "'title'"),
    "d.csv ALL --names n.txt": ("d.csv: ", "--names"),
    "d.txt --qid-column q": ("d.txt: ", "--qid-column"),
    "d.txt --label-column q": ("d.txt: ", "--label-column"),
    "d.txt --doc-column q": ("d.txt: ", "--doc-column"),
    "d.txt --features q": ("d.txt: ", "--features"),
    "log.jsonl --ignore q": ("log.jsonl: ", "--ignore"),
    "d.ranksieve --ignore q": ("d.ranksieve: ", "--ignore"),
    "d.parquet ALL --queries none.tsv": ("none.tsv: ", "such as q1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_messages_name_options(here, case):
    Path("log.jsonl").write_text("{}")
    Path("none.tsv").write_text("x\ty\n")
    arguments = case.replace("ALL", " ".join(OPTIONS)).split()
    text, (beginning, part) = refused("inspect", *arguments), REFUSED[case]
    assert text.startswith(beginning)
    assert part in text


def test_column_options_are_refused_with_a_stream(here):
    message = refused(
        "fit", "d.txt", "--method", "minbatsrank", "--stream", "--features", "x", "-o", "m.json"
    )
    assert message.startswith("d.txt: ")
    assert "--features" in message


def test_suggested_policies_work_in_every_command(here):
    Path("holes.txt").write_text("1 qid:1 1:NULL 2:1\n0 qid:1 1:3 2:2\n")
    for command in (
        ("fit", "holes.txt", "-o", "m.json"),
        ("path", "holes.txt"),
        ("convert", "holes.txt", "o.txt"),
    ):
        assert "--missing zero" in refused(*command, "--missing", "error")
        for policy in ("zero", "query_min", "column_mean"):
            run(*command, "--missing", policy)


def test_messages_of_export_name_its_arguments(here):
    rs.FenchelRank(radius=2).fit(here).to_model().save("m.json")
    message = refused("export", "m.json", "--to", "json", "-o", "x.json", "d.txt")
    assert "DATA" in message
