"""Feature logs of search engines: formats, the join with judgements, refusals."""

import copy
import gzip
import json
import math

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.io.tables import Judgements
from tests.refusals import refused_data, refused_parameter

GRADES = {"1": {"7555": 4.0, "1370": 3.0}, "2": {"4241": 1.0, "1370": 0.0}}
JUDGED = Judgements(GRADES, {"rambo": "1", "rocky": "2"})


def hit(document, *values, entry="log_entry1", names=("title", "body")):
    pairs = [
        {"name": n} if v is None else {"name": n, "value": v} for n, v in zip(names, values, strict=True)
    ]
    return {"_index": "tmdb", "_id": document, "_score": 1.0, "fields": {"_ltrlog": [{entry: pairs}]}}


def response(*hits):
    return {"took": 3, "timed_out": False, "hits": {"total": {"value": len(hits)}, "hits": list(hits)}}


RAMBO = response(hit("7555", 9.5, 10.75), hit("1370", 2.5, None))
ROCKY = response(hit("4241", 7, 1e-3), hit("1370", 0.0, -4.5))
X = [[9.5, 10.75], [2.5, math.nan], [7, 1e-3], [0, -4.5]]

FORMS = {
    "json lines": [RAMBO | {"qid": "1"}, ROCKY | {"qid": 2}],
    "wrapped": [{"query_id": 1, "response": RAMBO}, {"query": "2", "response": ROCKY}],
    "keywords": [RAMBO | {"keywords": "rambo"}, ROCKY | {"query": "rocky"}],
    "list": [[RAMBO | {"qid": "1"}, {"qid": "2", "response": ROCKY}]],
    "by query": [{"1": RAMBO, "rocky": ROCKY}],
    "multi-search": [{"took": 5, "responses": [RAMBO | {"qid": "1"}, ROCKY | {"qid": "2"}]}],
    "bare hits": [{"qid": "1", "hits": RAMBO["hits"]["hits"]}, {"qid": "2", "hits": ROCKY["hits"]["hits"]}],
    "one query twice": [
        {"qid": "1", "response": response(RAMBO["hits"]["hits"][0])},
        {"qid": "1", "response": response(RAMBO["hits"]["hits"][1])},
        {"qid": "2", "response": ROCKY},
    ],
}


@pytest.fixture
def log(tmp_path):
    def write(*values, name="log.json", **options):
        (tmp_path / name).write_text("\n".join(json.dumps(value, **options) for value in values))
        return tmp_path / name

    return write


def reason(path, judged=JUDGED, line=None, **options):
    with refused_data(path, line) as info:
        rs.io.read_ltr_log(path, judged, **options)
    return info.value.reason


@pytest.mark.parametrize("form", FORMS)
def test_every_format(log, form):
    data = rs.io.read_ltr_log(log(*FORMS[form]), JUDGED, missing="keep")
    np.testing.assert_array_equal(data.X, X)
    assert data.y.tolist() == [4, 3, 1, 0]
    assert data.qid.tolist() == [1, 1, 2, 2]
    assert data.feature_names == ("title", "body")
    assert list(data.doc_ids) == ["7555", "1370", "4241", "1370"]


def test_a_single_response_for_a_single_query_needs_no_id(log):
    data = rs.io.read_ltr_log(log(RAMBO, indent=2), Judgements({"rambo": GRADES["1"]}), missing="zero")
    assert data.qid.tolist() == ["rambo", "rambo"]
    assert data.X.tolist() == [[9.5, 10.75], [2.5, 0.0]]


def test_judgements_from_a_file_and_a_compressed_log(tmp_path):
    (tmp_path / "j.csv").write_text("grade,keywords,docId\n4,rambo,7555\n3,rambo,1370\n")
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(json.dumps(RAMBO | {"query": "rambo"}).encode()))
    data = rs.io.read_ltr_log(tmp_path / "log.jsonl.gz", tmp_path / "j.csv", missing="zero")
    assert data.y.tolist() == [4, 3]


def test_mappings_logged_by_early_releases(log):
    old = copy.deepcopy(RAMBO)
    for one in old["hits"]["hits"]:
        one["fields"]["_ltrlog"] = [{"log_entry1": {"title": 1.5, "body": 2.5}}]
    data = rs.io.read_ltr_log(log(old | {"qid": "1"}), Judgements({"1": GRADES["1"]}))
    assert data.X.tolist() == [[1.5, 2.5]] * 2


def test_extra_logging_is_not_a_feature(log):
    noisy = copy.deepcopy(RAMBO)
    for one in noisy["hits"]["hits"]:
        one["fields"]["_ltrlog"][0]["log_entry1"].append({"name": "extra_logging", "value": {"why": "x"}})
    data = rs.io.read_ltr_log(log(noisy), Judgements({"1": GRADES["1"]}), missing="zero")
    assert data.feature_names == ("title", "body")


def test_several_log_entries(log):
    both = response(hit("7555", 1.0, 2.0), hit("1370", 3.0, 4.0))
    for one in both["hits"]["hits"]:
        one["fields"]["_ltrlog"].append({"more": [{"name": "clicks", "value": 7}]})
    path, judged = log(both), Judgements({"1": GRADES["1"]})
    assert rs.io.read_ltr_log(path, judged).feature_names == ("title", "body", "clicks")
    assert rs.io.read_ltr_log(path, judged, entry="more").X.tolist() == [[7.0], [7.0]]
    unknown = reason(path, judged, entry="nope")
    assert unknown.startswith("document 7555: ")
    assert "`entry='nope'`" in unknown
    for one in both["hits"]["hits"]:
        one["fields"]["_ltrlog"].append({"again": [{"name": "title", "value": 7}]})
    twice = reason(log(both), judged)
    assert twice.startswith("document 7555: title")
    assert "`entry='again'`" in twice


def test_features_logged_for_some_hits_only(log):
    mixed = response(hit("7555", 1.0, 2.0), hit("1370", 3.0, names=("clicks",)))
    data = rs.io.read_ltr_log(log(mixed), Judgements({"1": GRADES["1"]}), missing="keep")
    assert data.feature_names == ("title", "body", "clicks")
    np.testing.assert_array_equal(data.X, [[1, 2, math.nan], [math.nan, math.nan, 3]])


def test_documents_without_a_judgement(log):
    path = log({"1": response(hit("7555", 1, 2), hit("new", 3, 4)), "9": response(hit("7555", 5, 6))})
    judged = Judgements({"1": {"7555": 2.0, "unseen": 1.0}})
    with pytest.warns(UserWarning, match="2 logged documents .* 1 judged documents"):
        assert rs.io.read_ltr_log(path, judged).X.tolist() == [[1, 2]]
    with pytest.warns(UserWarning, match="1 logged documents"):
        data = rs.io.read_ltr_log(path, judged, unjudged="zero")
    assert data.y.tolist() == [2, 0]
    assert list(data.doc_ids) == ["7555", "new"]


def test_missing_values_follow_the_policy(log):
    path = log(*FORMS["json lines"])
    assert "body of row 1 (query 1)" in reason(path, missing="error")
    assert np.isnan(rs.io.read_ltr_log(path, JUDGED).X).sum() == 1
    assert rs.io.read_ltr_log(path, JUDGED, missing="query_min").X[1].tolist() == [2.5, 10.75]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (RAMBO, "the response does not name its query"),
        ({"qid": "1", "error": {"reason": "gone"}}, "the search engine returned an error"),
        ({"qid": "1", "hits": {}}, "hits.hits"),
        ({"qid": "1", "hits": [{"_score": 1}]}, "hits.hits"),
        ({"qid": "1", "hits": [{"_id": "7"}]}, "document 7: has no fields._ltrlog"),
        (
            {"qid": "1", "hits": [{"_id": "7", "fields": {"_ltrlog": []}}]},
            "document 7: has no fields._ltrlog",
        ),
        ({"qid": "1", "hits": [hit("7", 1, names=(["a"],))]}, "document 7: has no fields._ltrlog"),
        ({"qid": "1", "hits": [hit("7", 1, names=(None,))]}, "document 7: has no fields._ltrlog"),
        ({"qid": "1", "hits": [hit("7", 10**400, 1)]}, "document 7, feature title: the value is inf"),
        ({"1": 5}, "query 1: '5'"),
        ([{"qid": "1", "hits": [hit("7", "high", 1)]}], "response 1, document 7, feature title: "),
        ({"qid": "1", "hits": [hit("7", 1, 2), hit("7", 1, 2)]}, "document 7 of query 1"),
        ({"qid": "1", "hits": [hit("unknown", 1, 2)]}, "no logged document"),
        ({"qid": "1", "hits": [hit("7555", names=())]}, "no hit"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*judged documents are not in the log")
def test_refusals(log, value, words):
    assert reason(log(value)).startswith(words)


def test_damaged_json(log, tmp_path):
    path = tmp_path / "log.json"
    path.write_text('{"qid": "1",\n "hits": [}')
    assert "JSON" in reason(path, line=2)
    path.write_text(json.dumps(RAMBO | {"qid": "1"}) + '\n{"qid": \n')
    assert "JSON" in reason(path, line=2)
    path.write_text("")
    assert "JSON" in reason(path, line=1)


def test_query_ids_beyond_64_bits_stay_text(log):
    one, two = str(2**63 - 1), str(2**63)
    path = log({one: response(hit("a", 1, 2)), two: response(hit("a", 3, 4))})
    grades = {query: {"a": 1.0} for query in (one, two)}
    assert rs.io.read_ltr_log(path, Judgements(grades)).qid.tolist() == [one, two]
    path = log({one: response(hit("a", 1, 2))})
    assert rs.io.read_ltr_log(path, Judgements({one: {"a": 1.0}})).qid.tolist() == [2**63 - 1]


@pytest.mark.parametrize(
    "ids",
    [["-5", "3"], ["0", "7"], ["-0", "1"], ["007", "7"], ["+5", "5"], ["٣", "3"],
     [str(-(2**63)), "1"], [str(-(2**63) - 1), "1"], ["q", "1"]],
)  # fmt: skip
def test_query_ids_have_the_same_type_as_in_letor_text(log, tmp_path, ids):
    path = log({query: response(hit("a", 1, 2)) for query in ids})
    logged = rs.io.read_ltr_log(path, Judgements({query: {"a": 1.0} for query in ids})).qid
    (tmp_path / "d.txt").write_text("".join(f"1 qid:{query} 1:1\n" for query in ids), encoding="utf-8")
    from_letor = rs.io.read_letor(tmp_path / "d.txt").qid
    assert (logged.dtype, logged.tolist()) == (from_letor.dtype, from_letor.tolist())
    assert list(map(str, logged)) == ids


def test_queries_that_differ_by_a_trailing_nul_are_different(log):
    path = log({query: response(hit("a", 1, 2)) for query in ("a", "a\0")})
    judged = Judgements({query: {"a": 1.0} for query in ("a", "a\0")})
    assert rs.io.read_ltr_log(path, judged).qid.tolist() == ["a", "a\0"]


def test_bad_options(log):
    path = log(RAMBO)
    assert "`judgements`" in reason(path, None)
    with refused_parameter("unjudged", "keep"):
        rs.io.read_ltr_log(path, JUDGED, unjudged="keep")
    with refused_parameter("missing", "mean"):
        rs.io.read_ltr_log(path, JUDGED, missing="mean")


@pytest.mark.parametrize("name", ["log.json.gz", "log.jsonl.gz", "log.ndjson.gz", "log.gz"])
def test_read_dataset_recognises_a_compressed_log(tmp_path, name):
    text = "\n".join(json.dumps(value) for value in FORMS["json lines"])
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    np.testing.assert_array_equal(rs.read_dataset(tmp_path / name, judgements=JUDGED).X, X)
    (tmp_path / name).write_bytes(gzip.compress(text.encode())[:-9])
    with refused_data(tmp_path / name):
        rs.io.read_ltr_log(tmp_path / name, JUDGED)


@pytest.mark.parametrize("name", ["log.json", "log.jsonl", "log.ndjson", "log.txt", "log"])
def test_read_dataset_recognises_a_log_by_name_or_content(log, name):
    path = log(*FORMS["list"], name=name)
    data = rs.read_dataset(path, judgements=JUDGED, missing="zero")
    assert data.n_docs == 4
    with refused_data(path.with_suffix(".json")):
        rs.write_dataset(data, path.with_suffix(".json"))


def test_round_trip_from_log_to_letor_text(log, tmp_path):
    data = rs.io.read_ltr_log(log(*FORMS["list"]), JUDGED, missing="keep")
    rs.write_dataset(data, tmp_path / "train.txt")
    back = rs.read_dataset(tmp_path / "train.txt", missing="keep")
    np.testing.assert_array_equal(back.X, data.X)
    assert list(back.doc_ids) == list(data.doc_ids)
    assert back.qid.tolist() == data.qid.tolist()
