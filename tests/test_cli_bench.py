"""ranksieve bench on the command line."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from ranksieve.cli import app
from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import write_letor
from ranksieve.synthetic import make_ranking
from tests.test_cli import refused

RUN = CliRunner()
MAIN = "from ranksieve.cli import main; main()"


@pytest.fixture(scope="module")
def letor(synthetic_folds, tmp_path_factory):
    root = tmp_path_factory.mktemp("letor")
    for number, fold in enumerate(synthetic_folds, start=1):
        folder = root / "toy" / f"Fold{number}"
        folder.mkdir(parents=True)
        for part, data in zip(("train", "vali", "test"), fold, strict=True):
            write_letor(data, folder / f"{part}.txt")
    return root


def call(*arguments):
    return RUN.invoke(app, ["bench", *map(str, arguments)])


def test_tables_on_the_terminal_and_as_json(letor, tmp_path):
    arguments = (letor, "--methods", "ranksvm,adarank-ndcg", "--grid", "fast", "-o", tmp_path, "--n-jobs", 1)
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    assert "toy: test accuracy" in result.stdout
    assert "AdaRank-NDCG" in result.stdout
    assert f"ranksieve tables {tmp_path} --report report.html" in result.stdout.replace("\n", "")
    again = call(*arguments, "--json")
    tables = json.loads(again.stdout)["tables"]
    assert [table["name"] for table in tables][:2] == ["accuracy", "significance"]
    number = tables[0]["rows"][0][tables[0]["columns"].index("MAP")]["text"]
    assert number in result.stdout


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--methods", "rankswm"], ("methods", "rankswm")),
        (["--data-sets", "toi"], ("data_sets", "toi")),
        (["--metric", "ndgc@10"], ("metric", "ndgc")),
        (["--profile", "lettor"], ("profile", "lettor")),
        (["--methods", ","], ("methods", [])),
        (["--methods", "listnet", "--baseline", "ranksvm"], ("baseline", "ranksvm")),
    ],
)
def test_bad_requests_are_one_sentence(letor, tmp_path, arguments, facts):
    refusal = refused("bench", letor, "-o", tmp_path / "out", *arguments)
    assert refusal.facts == facts
    assert refusal.startswith(arguments[-2])
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A data file with labels 0 to 4."""
    data = make_ranking(30, 8, 3, docs_per_query=(10, 14), n_levels=5, random_state=3)
    assert data.y.max() == 4
    path = tmp_path_factory.mktemp("graded") / "shop.txt"
    write_letor(data, path)
    return path


def profiles_of(folder):
    headers = [json.loads(path.read_text().splitlines()[0]) for path in folder.glob("*/*/*.jsonl")]
    return {header["identity"]["profile"] for header in headers}


def test_folds_and_labels_determine_the_profile(letor, graded, tmp_path):
    for source, name, profile in ((letor, "toy", "letor"), (graded, "shop", "standard")):
        arguments = (
            source,
            "--methods",
            "ranksvm,fsmrank",
            "--grid",
            "fast",
            "--n-jobs",
            1,
            "-o",
            tmp_path / name,
        )
        shown = call(*arguments)
        assert shown.exit_code == 0, shown.output
        assert f"Means over folds, {profile} profile;" in " ".join(shown.stdout.split())
        assert profiles_of(tmp_path / name) == {profile}


def test_a_profile_that_is_too_narrow_is_refused_before_the_first_fit(graded, tmp_path):
    refusal = refused("bench", graded, "-o", tmp_path / "out", "--profile", "letor")
    assert "shop, fold 1" in refusal
    assert "--profile mslr" in refusal
    assert not (tmp_path / "out").exists()
    shown = call(
        graded,
        "-o",
        tmp_path / "out",
        "--profile",
        "mslr",
        "--methods",
        "ranksvm",
        "--grid",
        "fast",
        "--n-jobs",
        1,
    )
    assert shown.exit_code == 0, shown.output


def test_labels_beyond_every_profile_are_refused_before_the_first_fit(tmp_path):
    data = make_ranking(30, 8, 3, docs_per_query=(10, 14), random_state=3)
    write_letor(Dataset(data.X, 3 * data.y, data.qid), tmp_path / "shop.txt")
    refusal = refused("bench", tmp_path / "shop.txt", "-o", tmp_path / "out")
    assert "shop, fold 1" in refusal
    assert "0 to 4" in refusal.reason
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_version_is_refused(letor, tmp_path):
    arguments = (
        letor, "--methods", "ranksvm", "--grid", "fast", "-o", tmp_path, "--n-jobs", 1, "--profile", "letor"
    )  # fmt: skip
    assert call(*arguments).exit_code == 0
    path = tmp_path / "toy" / "ranksvm" / "Fold2.jsonl"
    header, *rows = path.read_text().splitlines(keepends=True)
    path.write_text(header.replace('"format_version": 3', '"format_version": 7') + "".join(rows))
    refusal = refused("bench", *arguments)
    assert refusal.facts == (str(path), 1)
    assert "version 7" in refusal.reason


def test_an_output_that_is_a_file_is_refused(letor, tmp_path):
    (tmp_path / "out").write_text("mine")
    refusal = refused("bench", letor, "--methods", "ranksvm", "-o", tmp_path / "out")
    assert refusal.facts == (str(tmp_path / "out"), None)
    assert (tmp_path / "out").read_text() == "mine"


def start_bench(letor, out, *options):
    """Start bench in a process."""
    command = [sys.executable, "-c", MAIN, "bench", str(letor), "-o", str(out), *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def start_and_wait_for_results(letor, out, *options):
    """Start bench and wait until it has written its first results."""
    process = start_bench(letor, out, *options)
    while process.poll() is None and not list(out.glob("toy/*/*.jsonl")):
        time.sleep(0.01)
    assert process.poll() is None, "the run ended before it could be stopped"
    return process


@pytest.mark.parametrize(
    ("stop", "how", "code"),
    [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "ended by SIGTERM", 143)],
)
@pytest.mark.full
def test_interrupted_runs_print_how_to_resume(letor, tmp_path, stop, how, code):
    out = tmp_path / "out"
    process = start_and_wait_for_results(letor, out, "--methods", "fsmrank", "--profile", "letor")
    process.send_signal(stop)
    message = f"ranksieve: {how}; finished fits are kept in {out}; repeat the command to resume\n"
    assert process.communicate(timeout=60)[1] == message
    assert process.returncode == code


def test_a_refused_run_does_not_block_a_corrected_one(letor, tmp_path):
    data = make_ranking(30, 8, 3, docs_per_query=(10, 14), random_state=3)
    write_letor(Dataset(data.X, data.y - 1, data.qid), tmp_path / "shop.txt")
    common = (tmp_path / "shop.txt", "-o", tmp_path / "out", "--methods", "ranksvm", "--grid", "fast")
    refusal = refused("bench", *common, "--n-jobs", 1)
    assert refusal.startswith("shop, fold 1: ")
    assert refusal.facts == (None, None)
    assert "label" in refusal.reason
    assert not (tmp_path / "out").exists()
    done = call(*common, "--n-jobs", 1, "--profile", "trec")
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def unfinished(letor, tmp_path_factory):
    """Results with an unfinished method on one data set, and no finished method on another one."""
    out = tmp_path_factory.mktemp("unfinished")
    how = ("--methods", "ranksvm,adarank-ndcg", "--grid", "fast", "--n-jobs", 1, "-o", out)
    assert call(letor, *how).exit_code == 0
    shutil.copytree(out / "toy" / "ranksvm", out / "other" / "ranksvm")
    for folder in ("toy", "other"):
        (out / folder / "ranksvm" / "Fold2.jsonl").unlink()
    (out / "other" / "listnet").mkdir()
    return out


LEFT_OUT = [
    "toy: RankSVM-Primal, the usual baseline, is left out: 2 of 3 folds are finished; run bench again to "
    "finish it",
    "other: RankSVM-Primal, the usual baseline, is left out: 2 of 3 folds are finished; run bench again to "
    "finish it",
    "other: ListNet is left out: no fold is finished; run bench again to finish it",
]


def test_unfinished_methods_are_reported(unfinished, tmp_path):
    page = tmp_path / "page.html"
    for options in ((), ("--report", page)):
        result = RUN.invoke(app, ["tables", str(unfinished), *map(str, options)])
        assert result.exit_code == 0, result.output
        assert set(result.stderr.splitlines()) == {f"ranksieve: warning: {line}" for line in LEFT_OUT}
    for line in LEFT_OUT:
        assert f"{line}." in page.read_text()
    result = RUN.invoke(app, ["tables", str(unfinished), "--json"])
    assert sorted(json.loads(result.stdout)["unfinished"]) == sorted(LEFT_OUT)


def test_an_unfinished_baseline_is_refused(unfinished, tmp_path):
    for options in ((), ("--report", tmp_path / "page.html"), ("-o", tmp_path / "tables.md")):
        refusal = refused("tables", unfinished, "--baseline", "ranksvm", *options)
        assert refusal.facts == ("baseline", "ranksvm")
        assert "2 of 3 folds" in refusal.reason
    assert list(tmp_path.iterdir()) == []


def test_results_without_finished_methods_are_refused_with_their_progress(unfinished, tmp_path):
    shutil.copytree(unfinished / "other", tmp_path / "other")
    refusal = refused("tables", tmp_path)
    assert refusal.facts == (str(tmp_path), None)
    assert "ranksvm on other: 2 of 3 folds" in refusal.reason


def test_data_sets_without_the_baseline_use_another_one(letor, tmp_path):
    common = ("--grid", "fast", "-o", tmp_path, "--n-jobs", 1)
    assert call(letor, "--methods", "ranksvm", *common).exit_code == 0
    (letor / "toy").rename(letor / "other")
    try:
        result = call(letor, "--methods", "listnet,adarank-ndcg", "--baseline", "listnet", *common)
    finally:
        (letor / "other").rename(letor / "toy")
    assert result.exit_code == 0, result.output
    assert "other: each method against ListNet" in result.stdout
    assert "toy: test accuracy" in result.stdout
