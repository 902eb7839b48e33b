"""Bench: the protocol, resuming interrupted runs, errors."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranksieve.data.dataset import Dataset
from ranksieve.experiment.benching import bench
from ranksieve.experiment.fold_run import ALL_METRICS
from ranksieve.experiment.results import load_results
from ranksieve.experiment.tables import accuracy_table, all_tables, json_text, significance_table
from ranksieve.io.folds import Fold, deal_folds
from ranksieve.io.letor import write_letor
from ranksieve.methods import METHODS, limit_sizes, thin_grid
from ranksieve.metrics import Evaluator, evaluate
from ranksieve.synthetic import make_ranking
from tests.conftest import ROOT
from tests.protocol import STUDIES, counts, path
from tests.refusals import refused_data, refused_parameter

METHODS_HERE = ["ranksvm-l1", "ranksvm", "rankboost", "sparseranker"]


@pytest.fixture(scope="module")
def results(synthetic_folds, tmp_path_factory):
    how = {"out": tmp_path_factory.mktemp("results"), "grid": "fast", "studies": STUDIES}
    return bench({"toy": synthetic_folds}, METHODS_HERE, **how)


def tables_without_times(results):
    return json_text([table for table in all_tables(results) if table.name != "times"])


@pytest.mark.parametrize("name", ["ranksvm", "rankboost"])
def test_bench_follows_the_protocol(synthetic_folds, results, name):
    """Fit every grid point on train, select on valid (ties: the first), evaluate on test."""
    method, stored = METHODS[name], results.data_sets["toy"].results[name]
    for fold, ours in zip(synthetic_folds, stored.folds, strict=True):
        grid = thin_grid(method.grid)
        fits = [method.make(**point).fit(fold.train) for point in grid]
        values = [evaluate(fit.predict(fold.valid), fold.valid, method.select) for fit in fits]
        best = int(np.argmax([value.mean[method.select] for value in values]))
        assert dict(ours.parameters) == grid[best]
        assert ours.validation == values[best].mean[method.select]
        test = evaluate(fits[best].predict(fold.test), fold.test, ALL_METRICS)
        for metric in ALL_METRICS:
            np.testing.assert_array_equal(ours.test.per_query[metric], test.per_query[metric])
        if method.linear:
            np.testing.assert_array_equal(ours.coef, fits[best].coef_)
            assert ours.mean("sparsity") == np.mean(fits[best].coef_ != 0)


def test_warm_starts_reach_the_same_optimum(synthetic_folds, results):
    method = METHODS["ranksvm-l1"]
    for fold, stored in zip(synthetic_folds, results.data_sets["toy"].methods["ranksvm-l1"], strict=True):
        for row in stored.fits:
            alone = method.make(**row["parameters"]).fit(fold.train)
            assert row["certificate"]["objective"] == pytest.approx(alone.objective_, rel=2e-6)


def test_the_sparse_ranker_is_selected_on_valid(synthetic_folds, results):
    for fold, stored in zip(
        synthetic_folds, results.data_sets["toy"].results["sparseranker"].folds, strict=True
    ):
        scores = fold.valid.X @ stored.coef
        assert evaluate(scores, fold.valid, "ndcg@10").mean["ndcg@10"] == pytest.approx(stored.validation)


def test_every_fold_has_its_studies(synthetic_folds, results):
    studies = results.data_sets["toy"].studies
    everywhere = {"counts", "path"}
    assert [set(rows) for rows in studies] == [everywhere | {"only_first"}, everywhere, everywhere]
    assert [rows["counts"]["n_docs"] for rows in studies] == [fold.train.n_docs for fold in synthetic_folds]
    assert studies[0]["only_first"]["data_set"] == "toy"
    assert len(studies[0]["path"]["alphas"]) == 5
    assert studies[0]["counts"]["seconds_in_all"] >= 0


def test_finished_studies_are_not_repeated(synthetic_folds, tmp_path):
    folds_studied = []

    def study(place):
        folds_studied.append(place.number)
        return {"number": place.number}

    for studies in ({"one": study}, {"one": study, "two": study}):
        results = bench({"toy": synthetic_folds}, ["rankrls"], out=tmp_path, grid="fast", studies=studies)
    assert folds_studied == [1, 2, 3] * 2
    assert [rows["two"]["number"] for rows in results.data_sets["toy"].studies] == [1, 2, 3]


def test_without_studies_only_methods_are_run(synthetic_folds, tmp_path):
    results = bench({"toy": synthetic_folds[:1]}, ["rankrls"], out=tmp_path, grid="fast")
    assert results.data_sets["toy"].studies == []
    assert [path.name for path in (tmp_path / "toy").iterdir()] == ["rankrls"]
    assert [table.name for table in all_tables(results)] == ["accuracy", "significance", "times"]


@pytest.mark.full
def test_results_do_not_depend_on_n_jobs(synthetic_folds, results, tmp_path):
    parallel = bench({"toy": synthetic_folds}, METHODS_HERE, out=tmp_path, grid="fast", n_jobs=2)
    assert tables_without_times(parallel) == tables_without_times(results)


def test_processes_write_to_the_folder_of_the_call(synthetic_folds, tmp_path, monkeypatch):
    """Worker processes are reused by later calls and keep their working directory."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        results = bench({"toy": synthetic_folds[:2]}, ["rankrls"], out="out", grid="fast", n_jobs=2)
        assert list(results.data_sets["toy"].methods) == ["rankrls"]


def test_data_sets_and_methods_are_added_to_a_folder(synthetic_folds, tmp_path):
    how = {"out": tmp_path, "grid": "fast", "studies": {"counts": counts}}
    bench({"a": synthetic_folds}, ["ranksvm"], **how)
    bench({"a": synthetic_folds}, ["adarank-ndcg"], **how)
    grown = bench({"b": synthetic_folds[:2]}, ["ranksvm"], **how)
    assert {name: list(d.methods) for name, d in grown.data_sets.items()} == {
        "a": ["ranksvm", "adarank-ndcg"],
        "b": ["ranksvm"],
    }


def test_an_unfinished_method_is_named_and_left_out(synthetic_folds, tmp_path):
    how = {"out": tmp_path, "grid": "fast"}
    results = bench({"toy": synthetic_folds}, ["ranksvm", "listnet"], **how)
    path = tmp_path / "toy" / "listnet" / "Fold2.jsonl"
    path.write_bytes(b"\n".join(path.read_bytes().splitlines()[:3]) + b"\n")
    data_set = load_results(tmp_path).data_sets["toy"]
    assert list(data_set.methods) == ["ranksvm"]
    assert data_set.unfinished == {"listnet": "2 of 3 folds are finished"}
    assert "ListNet is left out: 2 of 3 folds are finished" in accuracy_table(data_set, "ranksvm").note
    assert significance_table(data_set, "ranksvm").rows == ()
    again = bench({"toy": synthetic_folds}, ["ranksvm", "listnet"], **how)
    assert tables_without_times(again) == tables_without_times(results)


@pytest.mark.parametrize("lines", [1, 2, 4])
@pytest.mark.parametrize("name", METHODS_HERE)
@pytest.mark.full
def test_a_truncated_journal_is_completed_to_the_same_results(
    synthetic_folds, results, tmp_path, name, lines
):
    first = bench({"toy": synthetic_folds[:1]}, [name], out=tmp_path, grid="fast")
    path = tmp_path / "toy" / name / "Fold1.jsonl"
    content = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(content[:lines]) + content[-1][:17])
    again = bench({"toy": synthetic_folds[:1]}, [name], out=tmp_path, grid="fast")
    assert tables_without_times(again) == tables_without_times(first)


KILLED = """
import sys
from ranksieve.experiment.benching import bench
from tests.protocol import STUDIES
bench(sys.argv[1], ["ranksvm", "fsmrank"], out=sys.argv[2], studies=STUDIES, n_jobs=2)
"""


@pytest.mark.full
def test_kill_and_resume_give_the_same_tables(synthetic_folds, tmp_path):
    for number, fold in enumerate(synthetic_folds[:1], start=1):
        folder = tmp_path / "letor" / "toy" / f"Fold{number}"
        folder.mkdir(parents=True)
        for part, data in zip(("train", "vali", "test"), fold, strict=True):
            write_letor(data, folder / f"{part}.txt")
    root, killed, whole = (str(tmp_path / name) for name in ("letor", "killed", "whole"))
    process = subprocess.Popen([sys.executable, "-c", KILLED, root, killed], start_new_session=True, cwd=ROOT)
    while process.poll() is None and not _some_fits(killed):
        time.sleep(0.01)
    assert process.poll() is None, "the run ended before it could be killed"
    subprocess.run(["kill", "-KILL", "--", f"-{process.pid}"], check=True)
    assert process.wait() == -signal.SIGKILL
    time.sleep(0.2)  # let the last of its workers end; they are in the same process group
    how = {"studies": STUDIES}
    resumed = bench(root, ["ranksvm", "fsmrank"], out=killed, **how)
    uninterrupted = bench(root, ["ranksvm", "fsmrank"], out=whole, **how)
    assert tables_without_times(resumed) == tables_without_times(uninterrupted)


TWICE = """
import sys
from ranksieve.io.folds import deal_folds
from ranksieve.synthetic import make_ranking
from ranksieve.experiment.benching import bench
from tests.protocol import STUDIES
folds = deal_folds(make_ranking(30, 10, 3, docs_per_query=12, random_state=1), 3)
sys.stdin.readline()
bench({"toy": folds}, ["ranksvm", "listnet"], out=sys.argv[1], studies=STUDIES)
"""


@pytest.mark.full
def test_two_runs_into_one_folder_share_the_work(tmp_path):
    command = [sys.executable, "-c", TWICE, str(tmp_path)]
    runs = [subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT) for _ in range(2)]
    for run in runs:
        run.stdin.write(b"go\n")
        run.stdin.close()
    assert [run.wait() for run in runs] == [0, 0]
    for file in tmp_path.glob("toy/*/*.jsonl"):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        keys = [(row["kind"], row.get("point"), row.get("select")) for row in rows]
        assert len(set(keys)) == len(keys), file


def _some_fits(folder):
    files = Path(folder).glob("toy/fsmrank/*.jsonl")
    return any(path.read_bytes().count(b"\n") > 5 for path in files)


def test_bad_requests(synthetic_folds, tmp_path):
    folds = {"toy": synthetic_folds}
    with refused_parameter("methods", "fenchelrnk") as info:
        bench(folds, ["fenchelrnk"], out=tmp_path)
    assert "'fenchelrank'" in info.value.reason
    with refused_parameter("data_sets", "TOI") as info:
        bench(folds, ["ranksvm"], out=tmp_path, data_sets=["TOI"])
    assert "'toy'" in info.value.reason
    with refused_parameter("methods", []):
        bench(folds, [], out=tmp_path)
    with refused_parameter("studies", ["path"]):
        bench(folds, ["ranksvm"], out=tmp_path, studies=["path"])
    with refused_parameter("grid", "slow"):
        bench(folds, ["ranksvm"], out=tmp_path, grid="slow")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_results(tmp_path / "nowhere")
    with refused_data(tmp_path):
        load_results(tmp_path)


def test_roots_without_folds_and_differing_widths(synthetic_folds, tmp_path):
    with pytest.raises(FileNotFoundError, match="Fold1"):
        bench(tmp_path, ["ranksvm"], out=tmp_path / "out")
    for part, data in zip(("train", "vali", "test"), synthetic_folds[0], strict=True):
        (tmp_path / "toy" / "Fold1").mkdir(parents=True, exist_ok=True)
        narrow = data.replace_features(data.X[:, :9], data.feature_names[:9]) if part == "test" else data
        write_letor(narrow, tmp_path / "toy" / "Fold1" / f"{part}.txt")
    with refused_data("test.txt") as info:
        bench(tmp_path, ["ranksvm"], out=tmp_path / "out")
    assert "9 features" in info.value.reason
    (tmp_path / "toy" / "Fold1" / "vali.txt").unlink()
    with pytest.raises(FileNotFoundError, match="validation"):
        bench(tmp_path, ["ranksvm"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_data_file_is_split_into_folds(tmp_path):
    data = make_ranking(40, 8, 3, docs_per_query=12, random_state=1)
    write_letor(data, tmp_path / "judged.txt.gz")
    how = {"out": tmp_path / "out", "grid": "fast"}
    data_sets = bench(tmp_path / "judged.txt.gz", ["ranksvm"], **how).data_sets
    assert list(data_sets) == ["judged"]
    assert data_sets["judged"].n_queries == 40


def without_labels(fold, part):
    """The fold with all labels 0 in one part."""
    blank = getattr(fold, part)
    parts = dict(zip(("train", "valid", "test"), fold, strict=True))
    return Fold(**{**parts, part: Dataset(blank.X, np.zeros(blank.n_docs), blank.qid, blank.feature_names)})


def with_short_lists(fold, part):
    """The fold with only the first nine documents of each query in one part."""
    queries = getattr(fold, part).queries
    rows = np.concatenate([queries.order[start : start + 9] for start in queries.offsets[:-1]])
    return replace(fold, **{part: getattr(fold, part).select_rows(rows)})


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.full
def test_errors_and_warnings_name_data_set_fold_and_method(synthetic_folds, tmp_path, n_jobs):
    blind = {"toy": [with_short_lists(with_short_lists(synthetic_folds[0], "valid"), "train")]}
    how = {"profile": "letor", "n_jobs": n_jobs}
    with pytest.warns(UserWarning, match=r"^toy, fold 1, sparseranker: ndcg@10 "):
        bench(blind, ["sparseranker"], out=tmp_path / "blind", **how)
    bad = {"toy": [synthetic_folds[0], without_labels(synthetic_folds[1], "train")]}
    how = {"grid": "fast", "studies": {"path": path}, "n_jobs": n_jobs}
    with refused_data() as info:
        bench(bad, ["ranksvm"], out=tmp_path / "bad", **how)
    assert info.value.__notes__ == ["toy, fold 2, studies"]
    assert "pair" in info.value.reason


def test_errors_of_methods_name_data_set_fold_and_method(synthetic_folds, tmp_path):
    blank = {"toy": [without_labels(synthetic_folds[0], "valid")]}
    with refused_data() as info:
        bench(blank, ["sparseranker"], out=tmp_path)
    assert info.value.__notes__ == ["toy, fold 1, sparseranker"]
    assert "validation data" in info.value.reason


def test_refused_runs_write_no_files(synthetic_folds, tmp_path):
    how = {"out": tmp_path, "studies": {"counts": counts}}
    bench({"toy": synthetic_folds}, ["ranksvm"], grid="fast", **how)
    before = sorted(tmp_path.rglob("*"))
    with refused_data("studies/Fold1.jsonl") as info:
        bench({"toy": synthetic_folds[:2]}, ["listnet"], grid="fast", n_jobs=2, **how)
    assert "n_folds (3)" in info.value.reason
    with refused_data("ranksvm/Fold1.jsonl") as info:
        bench({"new": synthetic_folds, "toy": synthetic_folds}, ["listnet", "ranksvm"], **how)
    assert "another grid" in info.value.reason
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["", "..", "a/b", "/a"])
def test_a_name_that_no_folder_can_have_is_refused(synthetic_folds, tmp_path, name):
    with refused_parameter("source", name):
        bench({name: synthetic_folds}, ["ranksvm"], out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_other_files_and_empty_journals_are_ignored(synthetic_folds, tmp_path):
    how = {"out": tmp_path, "grid": "fast", "studies": {"counts": counts}}
    bench({"toy": synthetic_folds[:1]}, ["ranksvm"], **how)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "toy" / "ranksvm" / "Fold1 (copy).jsonl").write_text("mine")
    (tmp_path / "toy" / "listnet").mkdir()
    (tmp_path / "toy" / "listnet" / "Fold1.jsonl").touch()  # as after a full disk: no header
    assert list(load_results(tmp_path).data_sets["toy"].methods) == ["ranksvm"]
    both = bench({"toy": synthetic_folds[:1]}, ["ranksvm", "listnet"], **how)
    assert list(both.data_sets["toy"].methods) == ["ranksvm", "listnet"]


def test_selectors_select_at_most_the_available_features(tmp_path):
    folds = deal_folds(make_ranking(30, 12, 3, docs_per_query=12, random_state=1), 3)
    how = {"out": tmp_path, "grid": "fast"}
    data_set = bench({"few": folds}, ["fsrank", "gas", "fsmsvm"], **how).data_sets["few"]
    for name in ("fsrank", "gas", "fsmsvm"):
        points = [row["parameters"] for row in data_set.methods[name][0].fits]
        assert [point["max_features"] for point in points] == [5, 5, 5, 12, 12, 12]
    whole = METHODS["gas"].grid
    assert limit_sizes(whole, METHODS["gas"], 25) == whole
    assert limit_sizes(METHODS["ranksvm"].grid, METHODS["ranksvm"], 1) == METHODS["ranksvm"].grid


@pytest.mark.parametrize("name", ["gas", "rankwrapper", "stabilityselection"])
def test_sharing_selections_does_not_change_results(name, tmp_path):
    folds = deal_folds(make_ranking(30, 12, 3, docs_per_query=12, random_state=1), 3)
    method = METHODS[name]
    if name == "stabilityselection":
        method = replace(method, grid=[{**point, "n_subsamples": 8} for point in method.grid])
    how = {"out": tmp_path, "grid": "fast"}
    (fold, *_) = bench({"few": folds[:1]}, {name: method}, **how).data_sets["few"].methods[name]
    evaluator = Evaluator(folds[0].valid)
    for row in fold.fits:
        alone = method.make(**row["parameters"]).fit(folds[0].train)
        expected = evaluator.evaluate(alone.predict(folds[0].valid), ["ndcg@10"]).mean["ndcg@10"]
        assert row["validation"]["ndcg@10"] == expected


def test_incomplete_rows_are_named(synthetic_folds, tmp_path):
    bench({"toy": synthetic_folds}, ["ranksvm"], out=tmp_path, grid="fast")
    path = tmp_path / "toy" / "ranksvm" / "Fold2.jsonl"
    lines = path.read_text().splitlines()
    at = next(k for k, line in enumerate(lines) if '"kind": "tested"' in line)
    lines, complete = lines[:at], json.loads(lines[at])
    no_ids = {key: value for key, value in complete.items() if key != "query_ids"}
    short = {**complete, "test": {**complete["test"], "map": complete["test"]["map"][1:]}}
    for row, message in ((no_ids, "no query_ids"), (short, "value per query")):
        path.write_text("\n".join([*lines, json.dumps(row)]) + "\n")
        with refused_data("Fold2.jsonl", len(lines) + 1) as info:
            load_results(tmp_path)
        assert message in info.value.reason
