"""TREC runs and qrels: reading, writing, and the same metrics as trec_eval."""

import re

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

import ranksieve as rs
from ranksieve.io.tables import read_judgements
from ranksieve.io.text_files import finite_number
from ranksieve.metrics.evaluate import evaluate_run
from ranksieve.metrics.profiles import PROFILES
from tests.refusals import refused_data
from tests.tiers import examples

MEASURES = {
    "ndcg": "ndcg", "ndcg@3": "ndcg_cut_3", "map": "map", "map@3": "map_cut_3", "mrr": "recip_rank",
    "p@3": "P_3", "p@10": "P_10", "r@3": "recall_3", "r@10": "recall_10",
}  # fmt: skip
DOCUMENTS = ["a", "B", "c", "D10", "D9", "é", "z"]


def put(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def reason(call, path, line=None):
    with refused_data(path, line) as info:
        call(path)
    return info.value.reason


# ---------------------------------------------------------------- against trec_eval

scores = st.sampled_from([0.0, 1.0, 1.0 + 1e-12, -2.5, 3.0, 1e-3])
results = st.dictionaries(st.sampled_from(DOCUMENTS), scores, min_size=1)
# trec_eval hangs on queries with only negative grades, so the first document has a grade ≥ 0.
grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 3), max_size=6).map(
    lambda judged: {"first": 0, **judged}
)
pairs = st.lists(st.tuples(results, grades), min_size=1, max_size=4)


@examples(150)
@given(pairs)
def test_metrics_equal_trec_eval(cases):
    run = {f"q{k}": scores for k, (scores, _) in enumerate(cases)}
    qrels = {f"q{k}": grades for k, (_, grades) in enumerate(cases)}
    names = {re.sub(r"_(\d+)$", r".\1", measure) for measure in MEASURES.values()}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)
    ours = evaluate_run(run, qrels, list(MEASURES))
    for metric, measure in MEASURES.items():
        expected = [theirs[query][measure] for query in ours.query_ids]
        np.testing.assert_allclose(ours.per_query[metric], expected, atol=1e-12, err_msg=metric)


def test_exponential_gain_equals_ir_measures():
    """For gain 2^y − 1 ir_measures uses gdeval, which prints five digits."""
    import ir_measures

    qrels = {"1": {"a": 2, "b": 0, "c": 1}, "2": {"a": 1, "x": 3}}
    run = {"1": {"b": 3.0, "a": 2.0, "u": 1.0}, "2": {"a": 1.0, "u": 2.0}}
    measure = ir_measures.nDCG(dcg="exp-log2") @ 5
    theirs = {m.query_id: m.value for m in ir_measures.iter_calc([measure], qrels, run)}
    ours = evaluate_run(run, qrels, "ndcg@5", "standard")
    np.testing.assert_allclose(ours.per_query["ndcg@5"], [theirs["1"], theirs["2"]], atol=1e-5)


@pytest.mark.parametrize(
    ("k", "gdeval"),
    [(1, [0.0, 0.0, 0.1875]), (3, [0.03125, 0.16797, 0.2605]), (20, [0.21802, 0.16797, 0.2605])],
)
def test_err_of_a_run_equals_gdeval(k, gdeval):
    """Values of ir_measures 0.4.3 (gdeval 1.2a, five digits): R = (2^y − 1)/16, labels below 0 count as 0."""
    qrels = {
        "1": {"a": 4, "b": 1, "c": 0, "d": 2, "not found": 3},
        "2": {"a": -2, "b": 3, "c": 1},
        "3": {"a": 1, "b": 2, "c": 2},
    }
    run = {
        "1": {"c": 9.0, "b": 8.0, "not judged": 7.0, "d": 6.0, "a": 5.0},
        "2": {"a": 3.0, "c": 2.0, "b": 1.0},
        "3": {"a": 1.0, "b": 1.0, "c": 0.5},  # a tie: b before a
    }
    np.testing.assert_allclose(evaluate_run(run, qrels, f"err@{k}").per_query[f"err@{k}"], gdeval, atol=6e-6)


def test_err_ignores_documents_that_were_not_retrieved():
    qrels = {"1": {"a": 0, "not found": 4}}
    assert evaluate_run({"1": {"a": 1.0}}, qrels, "err", "standard").mean["err"] == 0.0
    assert evaluate_run({"1": {"a": 1.0, "not found": 0.0}}, qrels, "err", "standard").mean["err"] > 0.4


def test_a_complete_run_equals_evaluate():
    """If the run contains exactly the judged documents, both evaluations agree."""
    data = rs.make_ranking(n_queries=12, n_features=3, n_informative=2, random_state=4)
    scores = np.random.default_rng(0).normal(size=data.n_docs)
    run, qrels = {}, {}
    for row, (query, label) in enumerate(zip(data.qid.tolist(), data.y.tolist(), strict=True)):
        run.setdefault(str(query), {})[f"d{row}"] = scores[row]
        qrels.setdefault(str(query), {})[f"d{row}"] = label
    metrics = ["ndcg@5", "dcg", "map", "mrr", "err", "p@5", "r@5"]
    expected = rs.evaluate(scores, data, metrics, "standard")
    for name, values in rs.evaluate_run(run, qrels, metrics, "standard").per_query.items():
        np.testing.assert_allclose(values, expected.per_query[name], err_msg=name)


def test_queries_in_one_file_only():
    qrels, run = {"1": {"a": 1}, "2": {"b": 1}}, {"1": {"a": 1.0}, "9": {"z": 1.0}}
    with pytest.warns(UserWarning, match="1 judged queries .* 1 queries of the run"):
        evaluation = evaluate_run(run, qrels, "map")
    assert evaluation.query_ids.tolist() == ["1", "2"]
    assert evaluation.per_query["map"].tolist() == [1.0, 0.0]


def test_runs_without_common_queries_or_documents_are_refused():
    with refused_data() as info:
        evaluate_run({"q1": {"a": 1.0}}, {"1": {"a": 1}, "2": {"a": 1}})
    assert "q1" in info.value.reason
    with refused_data() as info:
        evaluate_run({"1": {"a": 1.0}}, {"1": {}})
    assert "query 1" in info.value.reason


def test_queries_without_a_relevant_document():
    run, qrels = {"1": {"a": 1.0}, "2": {"a": 1.0}}, {"1": {"a": 0}, "2": {"a": 1}}
    assert evaluate_run(run, qrels, "ndcg").mean["ndcg"] == 0.5
    assert evaluate_run(run, qrels, "ndcg", empty="skip").mean["ndcg"] == 1.0
    assert evaluate_run(run, qrels, "ndcg").profile is PROFILES["trec"]


# ---------------------------------------------------------------- files


def test_round_trip(tmp_path):
    data = rs.Dataset([[1.0], [2.0], [3.0], [0.5]], [0, 2, 1.5, 0], ["q 1", "q 1", "b", "q 1"],
                      doc_ids=["x", "two words", 7, "z"])  # fmt: skip
    rs.io.write_run(data, np.array([0.1, 1 / 3, 5.0, 0.1]), tmp_path / "run", tag="my tag")
    rs.io.write_qrels(data, tmp_path / "qrels")
    assert (tmp_path / "run").read_text().splitlines() == [
        "q_1 Q0 two_words 1 0.3333333333333333 my_tag",
        "q_1 Q0 x 2 0.1 my_tag",
        "q_1 Q0 z 3 0.1 my_tag",
        "b Q0 7 1 5.0 my_tag",
    ]
    assert rs.io.read_run(tmp_path / "run") == {
        "q_1": {"two_words": 1 / 3, "x": 0.1, "z": 0.1},
        "b": {"7": 5.0},
    }
    assert rs.io.read_qrels(tmp_path / "qrels") == {"q_1": {"x": 0, "two_words": 2, "z": 0}, "b": {"7": 1.5}}


def test_documents_without_ids_get_row_numbers(tmp_path):
    data = rs.Dataset([[1.0], [2.0], [3.0]], [0, 2, 1], [1, 1, 1], doc_ids=["x", None, ""])
    rs.io.write_qrels(data, tmp_path / "q")
    assert rs.io.read_qrels(tmp_path / "q") == {"1": {"x": 0, "2": 2, "3": 1}}
    rs.io.write_qrels(rs.Dataset([[1.0], [2.0]], [0, 2], [1, 1]), tmp_path / "q")
    assert rs.io.read_qrels(tmp_path / "q") == {"1": {"1": 0, "2": 2}}


def test_equal_names_within_a_query_are_refused(tmp_path):
    data = rs.Dataset([[1.0], [2.0], [3.0]], [0, 2, 1], [1, 2, 2], doc_ids=["x", "x", "x"])
    with refused_data() as info:
        rs.io.write_qrels(data, tmp_path / "q")
    assert "query 2 has two documents called x" in info.value.reason
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ids", [["a b", "a_b"], ["", "a"], ["a", " "]])
def test_query_ids_with_spaces_and_ambiguous_ids_are_refused(tmp_path, ids):
    data = rs.Dataset([[1.0], [2.0]], [0, 1], ids)
    with refused_data():
        rs.io.write_qrels(data, tmp_path / "q")
    with refused_data():
        rs.io.write_run(data, np.zeros(2), tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("read", "text", "line", "word"),
    [
        ("run", "1 Q0 a 1 0.5 tag\n1 Q0 b 2\n", 2, "4 columns"),
        ("run", "1 Q0 a 1 high tag\n", 1, "score is 'high'"),
        ("run", "1 Q0 a 1 nan tag\n", 1, "score is 'nan'"),
        ("run", "1 Q0 a 1 1 t\n\n1 Q0 a 2 0 t\n", 3, "second result for document a"),
        ("run", "\n \n", None, "no result"),
        ("qrels", "1 0 a\n", 1, "3 columns"),
        ("qrels", "1 0 a 1\n1 0 a 1\n", 2, "second judgement for document a"),
    ],
)
def test_bad_files(tmp_path, read, text, line, word):
    path = put(tmp_path / "file", text)
    assert word in reason(getattr(rs.io, f"read_{read}"), path, line)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="gone: "):
        rs.io.read_run(tmp_path / "gone")
    (tmp_path / "latin").write_bytes(b"1 Q0 a 1 1 t\n1 Q0 \xe9 2 0 t\n")
    assert "UTF-8" in reason(rs.io.read_run, tmp_path / "latin", 2)
    (tmp_path / "cut.gz").write_bytes(b"\x1f\x8b\x08\x00")
    assert "gzip" in reason(rs.io.read_run, tmp_path / "cut.gz")


# ---------------------------------------------------------------- judgements

GRADES = {"1": {"7555": 4.0, "1370": 3.0}, "2": {"4241": 0.5}}
FORMS = {
    "demo": "# qid:1: rambo\n# qid:2: rocky balboa\n\n4\tqid:1 #\t7555\tRambo\n"
    "3 qid:1 1:2.5 2:0 # 1370 First Blood\n0.5 qid:2 # 4241\n",
    "qrels": "1 0 7555 4\n1 0 1370 3\n2 0 4241 0.5\n",
    "csv": "query,doc,grade\n1,7555,4\n1,1370,3\n\n2,4241,0.5\n",
    "plugin's csv": "# a comment\ngrade,keywords,docId\n4,1,7555\n3,1,1370\n0.5,2,4241\n",
    "tsv": 'Label\ttitle\tQuery_ID\t_id\r\n4\t"a, b"\t1\t7555\r\n3\tx\t1\t1370\r\n0.5\t\t2\t4241\r\n',
}


@pytest.mark.parametrize("form", FORMS)
def test_formats_of_judgements(tmp_path, form):
    judged = read_judgements(put(tmp_path / "j", FORMS[form]))
    assert judged.grades == GRADES
    assert judged.query("2") == "2"
    assert judged.query("rocky balboa") == ("2" if form == "demo" else None)


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("", None, "no judgement"),
        ("# only a comment\n", None, "no judgement"),
        ("hello world\n", 1, "'hello world'"),
        ("query,doc,grade\n1,a\n", 2, "2 cells"),
        ("query,doc,grade\n1,a,good\n", 2, "grade is 'good'"),
        ("query,doc,grade\n", None, "no judgement"),
        ("query,doc,grade\n1,a,1\n" + "x" * 200_000 + ",b,1\n", 3, "CSV"),
        ("4 qid:1 # 7\n3 qid:1\n", 2, "'3 qid:1'"),
        ("4 qid:1 # 7\n3 qid:1 # 7\n", 2, "second judgement for document 7"),
    ],
)
def test_bad_judgements(tmp_path, text, line, word):
    path = put(tmp_path / "j", text)
    assert word in reason(read_judgements, path, line)


@pytest.mark.parametrize("text", ["1_000", "١٢", "nan", "inf", "1e400", "0x10", "", "1,5", "1 2", "+-1"])
def test_texts_that_are_not_plain_numbers_are_refused(text):
    with refused_data("run.txt", 3):
        finite_number(text, ("run.txt", 3), "score")


@pytest.mark.parametrize("text", ["1", "-2.", ".5", "+1e-3", " 7 ", "1E5", "0.1"])
def test_plain_numbers(text):
    assert finite_number(text, "run.txt:3", "score") == float(text)
