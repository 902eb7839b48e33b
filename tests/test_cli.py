"""The command line: output, files, and one sentence per error."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli import app, output
from ranksieve.cli.demo import split_queries
from ranksieve.errors import DataError, ParameterError
from ranksieve.methods import METHODS
from ranksieve.show.sentences import choice_sentences, optimality

COMMANDS = (
    "demo", "methods", "fit", "frontier", "subset", "path", "rank", "evaluate", "compare", "hybrid",
    "explain", "scorecard", "verify", "inspect", "convert", "export", "bench", "tables",
)  # fmt: skip
QUICK = ("--set", "n_alphas=15", "--set", "cv=2")
MAIN = "from ranksieve.cli import main; main()"


def run(*args, code=0, **options):
    result = CliRunner().invoke(app, [str(arg) for arg in args], **options)
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result


class Refusal(str):
    """The message of a failed command, with its error (None for usage errors, which typer reports)."""

    error: Any = None

    @property
    def facts(self):
        """Name and value of a parameter, or file and line of data."""
        if isinstance(self.error, ParameterError):
            return self.error.name, self.error.value
        assert isinstance(self.error, DataError), self
        return self.error.file, self.error.line

    @property
    def reason(self) -> str:
        return self.error.reason


def refused(*args, **options) -> Refusal:
    """Run a command that fails: one line on stderr, nothing on stdout."""
    with mock.patch.object(output, "error_sentence", wraps=output.error_sentence) as worded:
        result = run(*args, code=2, **options)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("ranksieve: ")
    assert "`" not in line
    refusal = Refusal(line.removeprefix("ranksieve: "))
    refusal.error = worded.call_args.args[0] if worded.called else None
    return refusal


def process(*args, **options):
    command = [sys.executable, "-c", MAIN, *map(str, args)]
    return subprocess.run(command, check=False, timeout=120, **{"capture_output": True, **options})


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """train, valid and test as LETOR text, and two models."""
    folder = tmp_path_factory.mktemp("cli")
    data = rs.make_ranking(n_queries=30, n_features=12, n_informative=3, random_state=1)
    for name, part in zip(("train", "vali", "test"), split_queries(data, 0), strict=True):
        rs.io.write_letor(part, folder / f"{name}.txt")
    run("fit", folder / "train.txt", "--valid", folder / "vali.txt", *QUICK, "-o", folder / "model.json")
    run("fit", folder / "train.txt", *QUICK, "--max-features", 1, "-o", folder / "one.json")
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


# --- All commands --------------------------------------------------------------------------------------


def test_version():
    assert run("--version").stdout == f"ranksieve {rs.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_fits_80_columns(command):
    text = run(command, "--help", env={"COLUMNS": "80"}).stdout
    assert f"For example:\n    ranksieve {command}" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_help_of_fit_has_sections_with_defaults():
    text = run("fit", "--help", env={"COLUMNS": "80"}).stdout
    sections = [line[:-1] for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert sections == ["Arguments", "Data", "Columns", "Budget", "Model", "Computing", "Output", "Options"]
    assert "[default: ndcg@10]" in text
    assert "ranksvm-mcp" not in text


def test_methods_and_their_parameters_are_listed():
    listed = json.loads(run("methods", "--json").stdout)
    assert list(listed) == list(METHODS)
    assert listed["fsmrank"]["source"] in run("methods").stdout
    text = run("methods", "RankSVM-l1").stdout
    assert all(name in text for name in METHODS["ranksvm-l1"].parameters)
    assert json.loads(run("methods", "gas", "--json").stdout)["parameters"]["max_features"] == 10
    assert refused("methods", "ranksvm-l7").facts == ("method", "ranksvm-l7")


def test_overview_describes_every_command_in_a_full_sentence():
    text = run("--help", env={"COLUMNS": "80"}).stdout
    listed = text.partition("Commands:\n")[2].strip().splitlines()
    assert [line.split()[0] for line in listed] == list(COMMANDS)
    assert "..." not in "".join(listed)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("fit",), "Missing argument 'DATA' (see ranksieve fit --help)"),
        (("fitt",), "No such command 'fitt'. Did you mean 'fit'? (see ranksieve --help)"),
        (("fit", "a", "--wrong"), "No such option: --wrong"),
        (("fit", "a", "-o", "m", "--max-features", "0"), "Invalid value for '--max-features'"),
        (("fit", "a", "-o"), "Option '-o' requires an argument"),
    ],
)
def test_usage_errors_are_one_sentence(args, message):
    assert refused(*args, prog_name="ranksieve").startswith(message)


def test_without_a_command_the_help_is_shown():
    assert run(code=2).stderr == run("--help").stdout


def test_importing_the_command_line_does_not_import_libraries():
    heavy = "['numpy', 'rich', 'jinja2', 'ranksieve.rankers', 'ranksieve.io.load']"
    code = f"import sys, ranksieve.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- demo ------------------------------------------------------------------------------------------------


def test_demo_writes_a_page_and_a_model(here):
    text = run("demo").stdout
    assert "60 features, 8 of them relevant" in text
    assert "; 160 queries; standard profile).\nSelected on 40 validation queries and by 5-fold cross" in text
    for text_part in (
        "found",
        "missed",
        "additional",
        "NDCG@10",
        "MAP",
        "lower the training objective by more than",
        "Fitted ",
    ):
        assert text_part in text
    assert sorted(os.listdir(here)) == ["model.json", "report.html", "test.txt", "train.txt", "vali.txt"]
    model = rs.load_model("model.json")
    assert f"chosen model ({len(model.terms)} features)" in text
    truth = rs.make_ranking(random_state=0).truth
    names = [f"f{j + 1}" for j in np.flatnonzero(truth) if f"f{j + 1}" in model.names]
    assert ", ".join(names) in text


@pytest.mark.full
def test_demo_with_seed_folder_and_page(here):
    run("demo", "--random-state", 5, "-o", "a/b", "--report", "page.html")
    assert sorted(os.listdir(here)) == ["a", "page.html"]
    assert sorted(os.listdir("a/b")) == ["model.json", "test.txt", "train.txt", "vali.txt"]
    other = rs.load_model("a/b/model.json")
    run("demo", "-o", "c")
    assert rs.load_model("c/model.json").fingerprint != other.fingerprint


def test_demo_without_the_report_extra(here, monkeypatch):
    monkeypatch.setattr("ranksieve.report.page.find_spec", lambda name: None)
    assert 'pip install ".[report]"' in run("demo").stdout
    assert sorted(os.listdir(here)) == ["model.json", "test.txt", "train.txt", "vali.txt"]


# --- fit and path ----------------------------------------------------------------------------------------


def test_fit_equals_the_library(home, here):
    result = run(
        "fit", home / "train.txt", "--valid", home / "vali.txt", "--set", "n_alphas=15", "--metric", "map",
        "--profile", "standard", "--max-features", 4, "--set", "rule=one_standard_error", "-o", "m.json",
    )  # fmt: skip
    train, valid_data = rs.io.read_letor(home / "train.txt"), rs.io.read_letor(home / "vali.txt")
    ranker = rs.SparseRanker(4, "map", profile="standard", n_alphas=15, rule="one_standard_error")
    expected = ranker.fit(train, valid=valid_data).to_model()
    assert rs.load_model("m.json") == expected
    for term in expected.terms:
        assert f"{term.weight:+.5g}" in result.stdout
    choice = f"on {home / 'vali.txt'} and by 5-fold cross-validation over the training queries"
    for sentence in (
        *choice_sentences(ranker, choice),
        optimality(expected.certificate, expected.parameters),
    ):
        assert f"{sentence}\n" in result.stdout
    assert result.stderr == ""  # no progress without a terminal


def test_fit_prints_only_json(home, here):
    result = run("fit", home / "train.txt", *QUICK, "-o", "m.json", "--json")
    content = json.loads(result.stdout)
    assert content["model"] == json.loads(Path("m.json").read_text())
    assert content["choice"] == "by 2-fold cross-validation over the training queries"
    assert result.stderr == ""


def test_fit_writes_a_report(home, here):
    run("fit", home / "train.txt", "--valid", home / "vali.txt", *QUICK, "-o", "m.json", "--report", "r.html")
    page = Path("r.html").read_text()
    assert all(f"{term.weight:+.5g}" in page for term in rs.load_model("m.json").terms)
    assert "NDCG@3" in page


def test_a_fit_without_features_is_reported(home, here):
    result = run(
        "fit",
        home / "train.txt",
        "--method",
        "fbpcrank",
        "--set",
        "tol=1000",
        "-o",
        "m.json",
        "--report",
        "r.html",
    )
    n_features = rs.load_model("m.json").n_features
    assert rs.load_model("m.json").terms == ()
    assert f"FBPCRank uses none of the {n_features} features, so all scores are equal." in result.stdout
    assert "Wrote m.json and r.html." in result.stdout
    assert "--set tol=" in result.stderr
    assert "None, so all scores are equal." in Path("r.html").read_text()


def test_set_reads_python_literals_and_strings(home, here):
    run(
        "fit", home / "train.txt", *QUICK, "--set", "alphas=[0.1, 0.05]", "--set", "families=['l1']",
        "--set", "refit_on=all", "-o", "m",
    )  # fmt: skip
    parameters = rs.load_model("m").parameters
    assert parameters["alphas"] == [0.1, 0.05]
    assert parameters["families"] == ["l1"]
    assert parameters["refit_on"] == "all"


def test_path_writes_every_point(home, here):
    text = run("path", home / "train.txt", "--n-alphas", 20, "-o", "path.json").stdout
    content = json.loads(Path("path.json").read_text())
    expected = rs.sparse_path(rs.io.read_letor(home / "train.txt"), n_alphas=20, normalise="auto")
    assert content == expected.to_dict()
    assert max(content["relative_gaps"]) <= 1e-6
    *rows, last = [line for line in text.splitlines() if "e-" in line or "e+" in line]
    assert len(rows) == 10
    assert last.startswith("All 20 points are within ")
    entered = {
        name for name, used in zip(expected.feature_names, expected.coefs.any(axis=0), strict=True) if used
    }
    assert all(name in text for name in entered)


def test_path_json_and_elastic_net(home):
    options = (
        "--penalty",
        "elastic_net",
        "--l1-ratio",
        0.5,
        "--n-alphas",
        5,
        "--tol",
        1e-8,
        "--normalise",
        "none",
    )
    content = json.loads(run("path", home / "train.txt", *options, "--json").stdout)
    data = rs.io.read_letor(home / "train.txt")
    assert content == rs.sparse_path(data, "elastic_net", 5, tol=1e-8, l1_ratio=0.5).to_dict()


# --- rank, evaluate, compare -----------------------------------------------------------------------------


def test_rank_prints_scores_that_read_back(home, here):
    expected = rs.load_model(home / "model.json").predict(rs.io.read_letor(home / "test.txt"))
    printed = run("rank", home / "model.json", home / "test.txt").stdout
    assert [float(line) for line in printed.splitlines()] == expected.tolist()
    assert run("rank", home / "model.json", home / "test.txt", "-o", "s.txt").stdout == ""
    assert Path("s.txt").read_text() == printed


def test_rank_writes_a_trec_run(home):
    test = rs.io.read_letor(home / "test.txt")
    scores = rs.load_model(home / "model.json").predict(test)
    rows = [
        line.split()
        for line in run(
            "rank", home / "model.json", home / "test.txt", "--format", "trec"
        ).stdout.splitlines()
    ]
    assert len(rows) == test.n_docs
    for qid in test.queries.ids:
        mine = [row for row in rows if row[0] == str(qid)]
        assert [int(row[3]) for row in mine] == list(range(1, np.sum(test.qid == qid) + 1))
        assert [float(row[4]) for row in mine] == sorted(scores[test.qid == qid], reverse=True)
        assert all(row[1] == "Q0" and scores[int(row[2]) - 1] == float(row[4]) for row in mine)


def test_trec_run_uses_document_ids(here):
    put(here / "d.txt", "1 qid:a 1:1 #docid = GX1 inc = 1\n0 qid:a 1:3 #docid = GX2\n")
    run("fit", "d.txt", "--profile", "standard", "-o", "m.json")
    text = run("rank", "m.json", "d.txt", "--format", "trec").stdout
    assert [line.split()[:4] for line in text.splitlines()] == [
        ["a", "Q0", "GX1", "1"],
        ["a", "Q0", "GX2", "2"],
    ]


def test_models_score_narrower_and_wider_files(home, here):
    model = rs.load_model(home / "model.json")
    lines = (home / "test.txt").read_text().splitlines()
    expected = [
        float(line) for line in run("rank", home / "model.json", home / "test.txt").stdout.splitlines()
    ]
    wide = put(here / "wide.txt", "\n".join(f"{line} 13:5" for line in lines))
    assert [float(v) for v in run("rank", home / "model.json", wide).stdout.splitlines()] == expected
    narrow = put(here / "narrow.txt", "\n".join(line.rpartition(" ")[0] for line in lines))  # f12 is 0
    data = rs.io.read_letor(home / "test.txt")
    data.X[:, 11] = 0.0
    printed = [float(v) for v in run("rank", home / "model.json", narrow).stdout.splitlines()]
    assert printed == model.predict(data).tolist()


def test_evaluate_equals_the_library(home):
    test = rs.io.read_letor(home / "test.txt")
    scores = rs.load_model(home / "model.json").predict(test)
    expected = rs.evaluate(scores, test, ["ndcg@5", "map"], "standard", "skip").to_dict()
    options = (
        "--metric",
        "NDCG@5",
        "--metric",
        "map",
        "--profile",
        "standard",
    )
    command = ("evaluate", home / "model.json", home / "test.txt", *options, "--empty", "skip")
    content = json.loads(run(*command, "--per-query", "--json").stdout)
    assert content == expected
    short = json.loads(run(*command, "--json").stdout)
    assert short == {k: v for k, v in expected.items() if k not in ("per_query", "query_ids")}
    assert f"{expected['mean']['map']:.4f}" in run(*command).stdout
    assert str(test.queries.ids[0]) in run(*command, "--per-query").stdout


def test_evaluate_reads_scores(home, here):
    run("rank", home / "model.json", home / "test.txt", "-o", "s.txt")
    by_scores = run("evaluate", "s.txt", home / "test.txt", "--json").stdout
    assert by_scores == run("evaluate", home / "model.json", home / "test.txt", "--json").stdout
    piped = run("evaluate", "-", home / "test.txt", "--json", input=Path("s.txt").read_text())
    assert piped.stdout == by_scores


def test_compare_equals_the_library(home, here):
    test = rs.io.read_letor(home / "test.txt")
    run("rank", home / "model.json", home / "test.txt", "-o", "s.txt")
    names = {"model": home / "model.json", "one": home / "one.json"}
    evaluations = {
        name: rs.evaluate(rs.load_model(file).predict(test), test, profile="standard")
        for name, file in names.items()
    }
    evaluations["s"] = evaluations["model"]
    expected = rs.compare(evaluations, "one", alternative="greater").to_dict()
    command = ("compare", *names.values(), "s.txt", home / "test.txt", "--profile", "standard")
    content = json.loads(run(*command, "--baseline", "one", "--alternative", "greater", "--json").stdout)
    assert content["rows"] == expected["rows"]
    assert content["mean"]["one"] == dict(evaluations["one"].mean)
    by_path = run(*command, "--baseline", home / "one.json", "--alternative", "greater", "--json").stdout
    assert json.loads(by_path) == content
    text = run(*command).stdout
    assert "Holm" in text
    assert text.count("NDCG@10 ") >= 3  # three pairs


# --- outputs and validation data -------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "convert", "path"])
def test_unsupported_outputs_to_stdout_are_refused(home, here, command):
    out = ("-",) if command == "convert" else ("-o", "-")
    assert refused(command, home / "train.txt", *out).facts == ("-", None)
    assert list(here.iterdir()) == []


@pytest.fixture
def stdout(here):
    """A link to standard output in its own folder: a bug would replace the link, not /dev/stdout."""
    (here / "links").mkdir()
    (here / "links" / "stdout").symlink_to("/proc/self/fd/1")
    return here / "links" / "stdout"


@pytest.mark.full
def test_a_model_can_be_written_to_a_pipe_with_messages_on_stderr(home, here, stdout):
    fit = ("fit", home / "train.txt", "--valid", home / "vali.txt", *QUICK)
    done = process(*fit, "-o", stdout)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (home / "model.json").read_bytes()
    assert f"Wrote {stdout}." in done.stderr.decode()
    assert json.loads(process(*fit, "-o", stdout, "--json").stderr)["output"] == str(stdout)
    assert stdout.is_symlink()


@pytest.mark.parametrize("mode", ["wb", "ab"])
@pytest.mark.full
def test_converted_data_are_written_to_redirected_stdout(home, here, stdout, mode):
    (here / "b.txt").write_bytes(b"# before\n")
    with (here / "b.txt").open(mode) as file:
        done = process(
            "convert", home / "test.txt", stdout, stdout=file, stderr=subprocess.PIPE, capture_output=False
        )
    assert done.returncode == 0, done.stderr
    before = b"# before\n" if mode == "ab" else b""
    assert (here / "b.txt").read_bytes() == before + (home / "test.txt").read_bytes()
    assert b"Wrote " in done.stderr


@pytest.mark.full
def test_parquet_can_be_written_to_a_pipe(home, here):
    (here / "out.parquet").symlink_to("/proc/self/fd/1")
    (here / "piped").write_bytes(process("convert", home / "test.txt", "out.parquet").stdout)
    (here / "piped").rename("piped.parquet")
    np.testing.assert_array_equal(rs.read_dataset("piped.parquet").X, rs.io.read_letor(home / "test.txt").X)


@pytest.mark.parametrize(
    "command",
    ["path train.txt -o OUT", "export model.json --to json -o OUT", "rank model.json test.txt -o OUT"],
)
@pytest.mark.full
def test_other_outputs_can_be_written_to_a_pipe(home, here, stdout, command):
    words = [{"OUT": stdout}.get(word, word) for word in command.split()]
    in_file = [{"OUT": here / "file"}.get(word, word) for word in command.split()]
    done = process(*words, cwd=home)
    assert done.returncode == 0, done.stderr
    assert process(*in_file, cwd=home).returncode == 0
    assert done.stdout == (here / "file").read_bytes()


def test_dev_null_can_be_used_twice(home, here):
    run("fit", home / "train.txt", *QUICK, "-o", "/dev/null", "--report", "/dev/null")
    assert Path("/dev/null").is_char_device()


def test_outputs_through_links(home, here):
    for link, target in (
        ("dangling", "nowhere/m.json"),
        ("a", "b"),
        ("b", "a"),
        ("twice", home / "train.txt"),
    ):
        (here / link).symlink_to(target)
    fit = ("fit", home / "train.txt", "-o")
    dangling = refused(*fit, "dangling")
    assert dangling.facts == ("dangling", None)
    assert str(here / "nowhere") in dangling.reason
    circle = refused(*fit, "a").error
    assert (circle.errno, circle.filename) == (errno.ELOOP, "a")
    twice = refused(*fit, "twice")
    assert twice.facts == ("twice", None)
    assert "named twice" in twice.reason


def test_a_write_protected_output_is_kept(home, here, monkeypatch):
    Path("m.json").write_text("mine")
    monkeypatch.setattr("ranksieve.cli.options.os.access", lambda path, mode: False)
    refusal = refused("fit", home / "train.txt", "-o", "m.json")
    assert refusal.facts == ("m.json", None)
    assert "write-protected" in refusal.reason
    assert Path("m.json").read_text() == "mine"


@pytest.mark.parametrize("command", [("fit", "-o", "m.json"), ("frontier",)])
def test_validation_columns_are_matched_by_name(home, here, command):
    train, valid_data = (rs.io.read_letor(home / f"{name}.txt") for name in ("train", "vali"))
    names = [f"signal {j}" for j in range(12)]
    rs.write_dataset(train.replace_features(train.X, names), "train.parquet")
    rs.write_dataset(valid_data.replace_features(valid_data.X, names), "same.parquet")
    rs.write_dataset(valid_data.replace_features(valid_data.X[:, ::-1], names[::-1]), "turned.parquet")
    rs.write_dataset(valid_data.replace_features(valid_data.X, ["other", *names[1:]]), "other.parquet")

    def shown(valid):
        return run(command[0], "train.parquet", "--valid", valid, *command[1:]).stdout.replace(valid, "")

    assert shown("turned.parquet") == shown("same.parquet")
    sentence = refused(command[0], "train.parquet", "--valid", "other.parquet", *command[1:])
    assert "signal 0" in sentence


def test_text_settings_stay_text(home, here):
    refusal = refused("fit", home / "train.txt", "-o", "m", "--set", "metric=5")
    assert refusal.facts == ("metric", "5")
    assert refusal.startswith("--set metric=5: ")


def test_overflowing_scores_are_an_error(home, here):
    content = json.loads((home / "model.json").read_text())
    content["terms"][0]["weight"] = content["terms"][1]["weight"] = 1.7e308
    Path("m.json").write_text(json.dumps(content))
    Path("d.txt").write_text("1 qid:1 " + " ".join(f"{j}:9" for j in range(1, 13)) + "\n")
    refusal = refused("rank", "m.json", "d.txt")
    assert refusal.facts == ("d.txt", None)
    assert "document 1 is inf" in refusal.reason


# --- inspect and convert ---------------------------------------------------------------------------------


def test_inspect_counts_missing_values(here):
    file = put(here / "d.txt", "1 qid:1 1:NULL 2:1\n0 qid:1 1:3 2:2\n")
    expected = rs.describe(rs.io.read_letor(file, missing="keep")).to_dict()
    content = json.loads(run("inspect", file, "--json").stdout)
    assert content.items() >= json.loads(json.dumps(expected)).items()
    assert content["missing"] == {"f1": 1}
    text = run("inspect", file).stdout
    assert "f1: 1" in text
    headings = [line.partition("  ")[0].strip() for line in text.splitlines()[3:] if line.strip()]
    assert len(set(headings)) == len(headings)


def test_convert_round_trip(home, here):
    run("convert", home / "test.txt", "a.parquet")
    run("convert", "a.parquet", "b.txt.gz")
    run("convert", "b.txt.gz", "c.txt")
    assert gzip.decompress(Path("b.txt.gz").read_bytes()) == Path("c.txt").read_bytes()
    before, after = rs.io.read_letor(home / "test.txt"), rs.io.read_letor("c.txt")
    np.testing.assert_array_equal(before.X, after.X)
    np.testing.assert_array_equal(before.y, after.y)
    np.testing.assert_array_equal(before.qid, after.qid)


def test_convert_fills_missing_values(here):
    file = put(here / "d.txt", "1 qid:1 1:NULL 2:1\n0 qid:1 1:3 2:2\n")
    run("convert", file, "kept.txt")
    assert "1:NULL" in Path("kept.txt").read_text()
    run("convert", file, "filled.txt", "--missing", "zero")
    assert Path("filled.txt").read_text().startswith("1 qid:1 1:0 2:1")


# --- Errors of input -------------------------------------------------------------------------------------

GOOD = "1 qid:1 1:0.5 2:0.1\n0 qid:1 1:0.2 2:1\n"
HOLES = {
    "nan": ("1 qid:1 1:0.5 2:nan\n0 qid:1 1:0.2 2:1\n", 1),
    "null": (GOOD + "1 qid:2 1:NULL\n", 3),
}
BAD_FILES = {  # content, line, part of the reason
    "inf": (GOOD + "1 qid:2 1:inf\n", 3, "'inf'"),
    "empty": ("", None, "no documents"),
    "one": ("1 qid:1 1:0.5\n", None, "pair"),
    "no pairs": ("1 qid:1 1:0.5\n1 qid:1 1:0.2\n", None, "pair"),
    "label": (GOOD + "good qid:1 1:0.2\n", 3, "'good'"),
    "no label": ("qid:1 1:0.5\n", 1, "'qid:1'"),
    "negative": ("-1 qid:1 1:0.5\n1 qid:1 1:0.2\n", None, "-1"),
    "constant": ("1 qid:1 1:0.5\n0 qid:1 1:0.5\n", None, "feature"),
    "no query": ("1 1:0.5\n", 1, "'1:0.5'"),
    "feature": (GOOD + "1 qid:2 1=3\n", 3, "'1=3'"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_training_file(case, here):
    content, line, word = BAD_FILES[case]
    put(here / "bad.txt", content)
    refusal = refused("fit", "bad.txt", "-o", "m.json")
    assert "bad.txt" in refusal
    assert refusal.facts[1] == line
    assert word in refusal.reason
    assert os.listdir(here) == ["bad.txt"]


@pytest.mark.parametrize("case", HOLES)
def test_missing_values_are_refused_on_demand(case, here):
    content, line = HOLES[case]
    put(here / "bad.txt", content)
    refusal = refused("fit", "bad.txt", "--missing", "error", "-o", "m.json")
    assert refusal.facts == ("bad.txt", line)
    assert "choose --missing zero" in refusal
    assert refused("path", "bad.txt", "--missing", "error").facts == ("bad.txt", line)
    assert os.listdir(here) == ["bad.txt"]


def test_missing_values_are_filled_with_one_warning(here):
    put(here / "d.txt", HOLES["null"][0] + "0 qid:2 1:0.2 2:1\n")
    result = run("fit", "d.txt", "--profile", "standard", "-o", "m.json")
    assert any("1 of 2 features has missing values" in line for line in result.stderr.splitlines())
    assert rs.load_model("m.json").missing.policy == "column_mean"
    run("rank", "m.json", "d.txt")
    run("inspect", "d.txt")
    run("convert", "d.txt", "d.parquet")
    assert np.isnan(rs.read_dataset("d.parquet").X).sum() == 1


def test_a_model_with_indicators_can_score_raw_files(home, here):
    data = rs.io.read_letor(home / "train.txt")
    X = data.X.copy()
    X[np.random.default_rng(0).random(len(X)) < 0.3, 0] = np.nan
    rs.io.write_letor(data.replace_features(X), "holes.txt")
    options = ("--missing", "indicator", "--set", "must_have=f1 is missing", *QUICK)
    run("fit", "holes.txt", *options, "-o", "m.json", "--report", "page.html")
    model = rs.load_model("m.json")
    assert "f1 is missing" in model.names
    scores = [float(line) for line in run("rank", "m.json", "holes.txt").stdout.split()]
    assert scores == model.predict(rs.io.read_letor("holes.txt")).tolist()
    zeros = [float(line) for line in run("rank", "m.json", "holes.txt", "--missing", "zero").stdout.split()]
    assert zeros == model.predict(rs.io.read_letor("holes.txt", missing="zero")).tolist()
    run("evaluate", "m.json", "holes.txt")
    assert "f1 is missing" in run("explain", "m.json", "holes.txt", "--query", data.qid[0]).stdout
    run("explain", "m.json", "holes.txt", "--drop")


def test_missing_values_with_a_policy(here):
    put(here / "d.txt", HOLES["nan"][0])
    run("fit", "d.txt", "--missing", "query_min", "--profile", "standard", "-o", "m.json")
    for policy in ("zeros", "keep"):
        refusal = refused("fit", "d.txt", "--missing", policy, "-o", "m.json")
        assert refusal.facts == ("missing", policy)
        assert refusal.startswith(f"--missing {policy}: ")


def test_scattered_query_ids_work(home, here):
    lines = (home / "test.txt").read_text().splitlines()
    order = np.random.default_rng(0).permutation(len(lines))
    put(here / "mixed.txt", "\n".join(lines[i] for i in order))
    scores = run("rank", home / "model.json", home / "test.txt").stdout.splitlines()
    mixed_scores = run("rank", home / "model.json", "mixed.txt").stdout.splitlines()
    # The rounding of BLAS depends on the row index, so the last bit may differ.
    np.testing.assert_allclose(np.array(mixed_scores, float), np.array(scores, float)[order], rtol=1e-13)
    together, mixed = (
        json.loads(run("evaluate", home / "model.json", file, "--json").stdout)["mean"]
        for file in (home / "test.txt", "mixed.txt")
    )
    assert mixed == pytest.approx(together)


@pytest.mark.parametrize(("shift", "width"), [(-1, 11), (1, 13)])
def test_validation_data_of_another_width(shift, width, home, here):
    lines = (home / "vali.txt").read_text().splitlines()
    changed = [line.rpartition(" ")[0] if shift < 0 else f"{line} 13:1" for line in lines]
    put(here / "v.txt", "\n".join(changed))
    refusal = refused("fit", home / "train.txt", "--valid", "v.txt", "-o", "m.json")
    assert refusal.facts == ("v.txt", None)
    assert f"{width} features" in refusal.reason
    assert f"{max(12, width)}:0" in refusal.reason


@pytest.mark.parametrize("command", ["fit", "frontier"])
def test_validation_data_without_pairs_or_documents(command, home, here):
    lines = (home / "vali.txt").read_text().splitlines()
    put(here / "one_label.txt", "".join(f"1{line[line.index(' ') :]}\n" for line in lines))
    put(here / "empty.txt", "")
    for name, word in (("one_label", "validation data"), ("empty", "no documents")):
        refusal = refused(command, home / "train.txt", "--valid", f"{name}.txt", "-o", "out.json")
        assert refusal.facts == ("empty.txt" if name == "empty" else None, None)
        assert word in refusal.reason
        assert not Path("out.json").exists()


def test_truncated_gzip(home, here):
    (here / "t.txt.gz").write_bytes(gzip.compress((home / "train.txt").read_bytes())[:-2000])
    refusal = refused("fit", "t.txt.gz", "-o", "m.json")
    assert refusal.facts == ("t.txt.gz", None)
    assert "gzip" in refusal.reason


@pytest.mark.parametrize("command", ["fit", "path", "inspect", "evaluate", "rank"])
def test_missing_input_file(command, home, here):
    options = {"fit": ["-o", "m.json"]}
    before = [home / "model.json"] if command in ("rank", "evaluate") else []
    refusal = refused(command, *before, "gone.txt", *options.get(command, []))
    assert refusal == "gone.txt: no such file"
    assert isinstance(refusal.error, FileNotFoundError)


def test_missing_model_and_scores(home, here):
    for command in (
        ("rank", "gone.json", home / "test.txt"),
        ("evaluate", "gone.json", home / "test.txt"),
    ):
        refusal = refused(*command)
        assert refusal.startswith("gone.json: ")
        assert isinstance(refusal.error, FileNotFoundError)
    Path("latin.txt").write_bytes(b"1\n\xff\n")
    refusal = refused("evaluate", "latin.txt", home / "test.txt")
    assert refusal.facts == ("latin.txt", 2)
    assert "UTF-8" in refusal.reason


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"format": "rank', "JSON"),
        ("{}", "ranksieve model"),
        ('{"format": "ranksieve-linear-model", "format_version": 99}', "99"),
        ('{"format": "ranksieve-linear-model", "format_version": 4, "n_features": 1}', "damaged"),
    ],
)
def test_damaged_model(content, words, home, here):
    put(here / "m.json", content)
    for command in (
        ("rank", "m.json", home / "test.txt"),
        ("evaluate", "m.json", home / "test.txt"),
    ):
        refusal = refused(*command)
        assert refusal.facts == ("m.json", None)
        assert words in refusal.reason


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("nowhere/m.json", "does not exist"),
        (".", "is a folder"),
        ("/dev/fd/987654", "is not open"),
        ("train.txt", "named twice"),
    ],
)
def test_unwritable_output_is_refused_before_reading(output, words, home, here, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setattr("ranksieve.cli.options.read_data", pytest.fail)
    for command in (("-o", output), ("-o", here / "m.json", "--report", output)):
        refusal = refused("fit", "train.txt", *command)
        assert refusal.facts == (output, None)
        assert words in refusal.reason


def test_output_folder_without_permission(home, here, monkeypatch):
    def forbidden(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ranksieve.cli.options.tempfile.TemporaryFile", forbidden)
    monkeypatch.setattr("ranksieve.cli.options.read_data", pytest.fail)
    refusal = refused("fit", home / "train.txt", "-o", "m.json")
    assert refusal.facts == ("m.json", None)
    assert "Permission denied" in refusal.reason


@pytest.mark.parametrize("ranker", [rs.RankSVM(), rs.baselines.RankBoost(n_rounds=2)])
def test_a_model_instead_of_data_is_recognised(ranker, home, here):
    data = rs.make_ranking(n_queries=10, n_features=4, n_informative=2, random_state=0)
    ranker.fit(data).to_model().save("own.json")
    for command in (["fit", "-o", "m.json"], ["inspect"], ["convert", "d.csv"]):
        refusal = refused(command[0], "own.json", *command[1:])
        assert refusal.facts == ("own.json", None)
        assert "--from own.json" in refusal


def test_unknown_names_suggest_similar_ones(home, here):
    fit = ("fit", home / "train.txt", "-o", "m.json")
    assert "(did you mean 'sparseranker'?)" in refused(*fit, "--method", "sparsranker")
    lightgbm = refused(*fit, "--method", "LightGBM")
    assert lightgbm.facts == ("method", "lightgbm")
    assert "'lambdamart'" in lightgbm.reason
    unlike = refused(*fit, "--method", "qqq")
    assert unlike.facts == ("method", "qqq")
    assert "mean" not in unlike.reason
    assert "sparseranker" in unlike.reason
    metric = refused(*fit, "--metric", "ndgc@10")
    assert metric.facts == ("metric", "ndgc")
    assert "'ndcg'" in metric.reason
    profile = refused(*fit, "--profile", "lettor")
    assert profile.facts == ("profile", "lettor")
    assert "'letor'" in profile.reason
    setting = refused(*fit, "--set", "n_alpha=3")
    assert setting.facts == ("settings", "n_alpha")
    assert setting.startswith("--set n_alpha: ")
    assert "'n_alphas'" in setting.reason
    assert all(name in setting.reason for name in rs.SparseRanker().get_params())
    evaluate = ("evaluate", home / "model.json", home / "test.txt")
    assert "'map'" in refused(*evaluate, "--metric", "mapp").reason
    empty = refused(*evaluate, "--empty", "2")
    assert empty.facts == ("empty", "2")
    assert "skip" in empty.reason
    form = refused("rank", home / "model.json", home / "test.txt", "--format", "xml")
    assert form.facts == ("form", "xml")
    assert form.startswith("--format xml: ")
    assert refused("path", home / "train.txt", "--penalty", "l2").facts == ("penalty", "l2")
    two = ("compare", home / "model.json", home / "one.json", home / "test.txt")
    assert refused(*two, "--alternative", "less").facts == ("alternative", "less")
    assert refused(*two, "--baseline", "first").facts == ("baseline", "first")


@pytest.mark.parametrize(
    ("setting", "facts"),
    [
        ("tol", ("settings", "tol")),
        ("tol=small", ("tol", "small")),
        ("n_alphas=2.5", ("n_alphas", "2.5")),
        ("rule=worst", ("rule", "worst")),
    ],
)
def test_bad_settings(setting, facts, home, here):
    refusal = refused("fit", home / "train.txt", "-o", "m.json", "--set", setting)
    assert refusal.facts == facts
    assert f"--set {setting}: " in refusal


def test_options_that_a_method_does_not_support(home, here, monkeypatch):
    from ranksieve.methods import METHODS, Method
    from ranksieve.rankers import LinearRanker

    class Plain(LinearRanker):
        def fit(self, X, y=None, qid=None):
            raise NotImplementedError

    monkeypatch.setitem(METHODS, "plain", Method("Plain", make=Plain))
    fit = ("fit", home / "train.txt", "-o", "m.json", "--method", "plain")
    refusal = refused(*fit, "--must-not", "f3")
    assert refusal.facts == ("method", "plain")
    assert refusal == "--method plain: does not use --must-not; leave it out"


def test_bad_scores(home, here):
    test = home / "test.txt"
    for bad in ("x", "inf", "1_000"):
        refusal = refused("evaluate", put(here / "s.txt", f"0.5\n{bad}\n"), test)
        assert refusal.facts == (str(here / "s.txt"), 2)
        assert repr(bad) in refusal.reason
    n_docs = rs.io.read_letor(home / "test.txt").n_docs
    refusal = refused("evaluate", put(here / "s.txt", "1\n"), test)
    assert refusal.facts == (str(here / "s.txt"), None)
    assert f"{n_docs} documents" in refusal.reason


def test_evaluate_needs_data(home):
    refusal = refused("evaluate", home / "model.json")
    assert refusal == "specify either DATA, or --qrels FILE to evaluate TREC runs"


def test_standard_input_is_read_once(here):
    assert refused("fit", "-", "--valid", "-", "-o", "m.json").facts == ("-", None)


def test_compare_needs_different_files(home):
    model = home / "model.json"
    assert refused("compare", model, model, home / "test.txt").facts == (str(model), None)
    assert refused("compare", model, home / "test.txt").facts[0] == "evaluations"


def test_missing_values_that_are_kept_cannot_be_scored(home, here):
    name = rs.load_model(home / "model.json").names[0].removeprefix("f")
    put(here / "d.txt", f"1 qid:1 {name}:NULL 13:1\n")
    refusal = refused("rank", home / "model.json", "d.txt", "--missing", "keep")
    assert refusal.facts == ("d.txt", None)
    assert "document 1 is nan" in refusal.reason


def test_l1_ratio_needs_the_elastic_net(home):
    refusal = refused("path", home / "train.txt", "--l1-ratio", 0.5)
    assert refusal == "--l1-ratio 0.5: needs --penalty elastic_net; leave it out for l1"
    assert refusal.facts == ("l1_ratio", 0.5)


def test_missing_extras_are_named(home, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert 'pip install ".[frames]"' in refused("convert", home / "test.txt", "a.parquet")
    monkeypatch.setattr("ranksieve.report.page.find_spec", lambda name: None)
    monkeypatch.setattr("ranksieve.cli.options.read_data", pytest.fail)
    sentence = refused("fit", home / "train.txt", "-o", "m.json", "--report", "r.html")
    assert 'pip install ".[report]"' in sentence


# --- Other errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            RuntimeError("boom"),
            "unexpected RuntimeError: boom (set RANKSIEVE_TRACEBACK=1 to see the traceback)",
        ),
        (MemoryError(), "not enough memory (the data are too large); use fewer documents or features"),
        (
            type("OutOfMemoryError", (RuntimeError,), {})("CUDA"),
            "not enough memory on the GPU; leave --device",
        ),
        (OSError(28, "No space left on device", "m.json"), "m.json: No space left on device"),
        (ModuleNotFoundError("No module named 'polars'", name="polars"), 'pip install ".[frames]"'),
        (ValueError("two\n  lines"), "two lines"),
    ],
)
def test_every_error_is_one_sentence(error, sentence, home, here, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr("ranksieve.cli.options.read_data", fail)
    assert sentence in refused("fit", home / "train.txt", "-o", "m.json")


def test_traceback_on_request(home, here, monkeypatch):
    def fail(*_):
        raise RuntimeError("boom")

    monkeypatch.setattr("ranksieve.cli.options.read_data", fail)
    result = run("fit", home / "train.txt", "-o", "m", code=2, env={"RANKSIEVE_TRACEBACK": "1"})
    assert result.stderr.startswith("Traceback")
    assert "in fail" in result.stderr


def test_warnings_are_one_line(here):
    put(here / "d.txt", GOOD)
    result = run("fit", "d.txt", "--profile", "letor", "-o", "m.json")
    blind, alone = result.stderr.splitlines()
    assert blind.startswith("ranksieve: warning: ndcg@10 (letor profile) is 0 for every candidate")
    assert alone.startswith("ranksieve: warning: only one query has documents with different labels")


@pytest.mark.full
def test_interrupt_leaves_no_output(home, here):
    put(here / "m.json", "old")
    code = (
        "import os, signal, threading, ranksieve.cli.options as options\n"
        "import ranksieve.cli.output as process; process.SECONDS_TO_LEAVE = 0.1\n"
        "threading.Thread(target=threading.Event().wait).start()\n"  # never ends
        "options.read_data = lambda *args: os.kill(os.getpid(), signal.SIGINT)\n" + MAIN
    )
    arguments = ["fit", str(home / "train.txt"), "-o", "m.json"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 130
    assert done.stderr == "ranksieve: interrupted\n"
    assert done.stdout == ""
    assert Path("m.json").read_text() == "old"
    assert os.listdir(here) == ["m.json"]


@pytest.mark.parametrize(
    ("stop", "how", "code"),
    [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "ended by SIGTERM", 143)],
)
@pytest.mark.full
def test_a_signal_while_waiting_for_standard_input(here, stop, how, code):
    command = [sys.executable, "-u", "-c", MAIN, "fit", "-", "-o", "m.json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        wait_until_reading(waiting.pid)
        waiting.send_signal(stop)
        _, errors = waiting.communicate(timeout=60)
    assert waiting.returncode == code
    assert errors == f"ranksieve: {how}\n"
    assert os.listdir(here) == []


def wait_until_reading(pid: int) -> None:
    """Wait until the process blocks in reading its standard input."""
    import time

    for _ in range(600):
        try:
            call = Path(f"/proc/{pid}/syscall").read_text().split()
        except OSError:
            pytest.skip("this system does not show what a process waits for")
        if call[:2] == ["0", "0x0"]:
            return
        time.sleep(0.05)
    pytest.fail("the process never read its standard input")


@pytest.mark.full
def test_standard_input(home, here):
    text = (home / "train.txt").read_bytes()
    done = process("fit", "-", *QUICK, "-o", "m.json", "--json", input=text)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["output"] == "m.json"
    run("fit", home / "train.txt", *QUICK, "-o", "n.json")
    assert rs.load_model("m.json") == rs.load_model("n.json")


@pytest.mark.parametrize(
    "command", [("rank", "model.json", "test.txt"), ("evaluate", "model.json", "test.txt")]
)
@pytest.mark.full
def test_closed_pipe_is_quiet(home, monkeypatch, command):
    monkeypatch.chdir(home)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = process(*command, capture_output=False, stdout=pipe, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.full
def test_full_disk_on_standard_output(home):
    with open("/dev/full", "wb") as full:
        done = process(
            "rank",
            home / "model.json",
            home / "test.txt",
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 2
    assert done.stderr == b"ranksieve: standard output: cannot be written (No space left on device)\n"
