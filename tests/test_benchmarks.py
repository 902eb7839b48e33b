"""The race: what ``make bench`` runs, and the pages written from its results."""

import csv
import itertools
import pkgutil
import re
import runpy
import stat
from pathlib import Path
from types import SimpleNamespace

import benchmarks
import benchmarks.__main__ as runner
import numpy as np
import pytest
from benchmarks import harness, page, peers
from benchmarks.competitors import COMPETITORS, RANKSIEVE
from benchmarks.competitors.liblinear_ranksvm import LiblinearRankSVM
from benchmarks.competitors.ranklib import features_of
from benchmarks.competitors.svm_rank import weights_of
from benchmarks.data_sets import DATA_SETS, DataSet
from benchmarks.harness import Skipped
from benchmarks.measures import MEASURES, logs, writing
from benchmarks.measures.base import Run
from benchmarks.measures.roofline import count_work
from benchmarks.pairs import build_pairs, count_pairs
from benchmarks.problems import problems
from benchmarks.results_data import add_ratios, is_current, read_rows, save_rows
from papers.__main__ import main as papers_command
from papers.bench import bench, load_results
from papers.claims import all_verdicts
from papers.comparison import agreement
from papers.published import VARIANTS
from papers.results_page import DATA_SETS as DATA_SETS_OF_THE_PAPERS
from papers.results_page import INTRODUCTION, unique, write_results
from papers.results_page import page as results_page
from papers.stand_ins import Shape
from papers.studies import STUDIES

from ranksieve.io.folds import deal_folds
from ranksieve.io.letor import write_letor
from ranksieve.methods import METHODS
from ranksieve.path import sparse_path
from ranksieve.synthetic import make_ranking

FOLDER = Path(benchmarks.__file__).parent


@pytest.fixture
def tiny(monkeypatch):
    """A small data set with folds, in the table for the time of a test."""
    data = make_ranking(24, 8, 3, docs_per_query=(10, 14), random_state=5)
    entry = DataSet("tiny", "tiny", lambda: data, folds=lambda: deal_folds(data, 3))
    monkeypatch.setitem(DATA_SETS, "tiny", entry)
    return data


@pytest.fixture
def own_results(monkeypatch, tmp_path):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks.data_sets.OUT", tmp_path)
    monkeypatch.setattr("benchmarks.competitors.programs.OUT", tmp_path)
    return tmp_path


def rows_of(measure, competitor, data="tiny"):
    named = {"data": data, "competitor": competitor, "versions": {competitor: "1"}, "how": "quick"}
    shared = {**named, "processor": harness.machine()["processor"]}
    return [{**row, **shared} for row in MEASURES[measure].run(Run(data, COMPETITORS[competitor], repeats=1))]


@pytest.mark.parametrize("name", COMPETITORS)
def test_competitors_are_well_formed(name):
    one = COMPETITORS[name]
    assert one.name == name
    assert one.title
    assert one.licence
    assert one.measures <= set(MEASURES)
    assert one.objectives <= {"l1", "l2"}
    assert bool(one.objectives) == ("to_objective" in one.measures)
    assert list(one.tolerances) == sorted(one.tolerances, reverse=True)
    assert len(one.grid) >= 1
    assert one.variable or one.module
    source = (FOLDER / f"{type(one).__module__.rpartition('.')[2]}.py").name
    assert (FOLDER / "competitors" / source).exists()


@pytest.mark.parametrize("name", MEASURES)
def test_measures_are_well_formed(name):
    measure = MEASURES[name]
    assert measure.name == name
    assert measure.title
    assert set(measure.data_sets(full=False)) <= set(measure.data_sets(full=True)) == set(measure.data)
    assert any(name in one.measures for one in COMPETITORS.values())
    assert "1m" not in measure.data_sets(full=False)


def test_what_the_extra_names_are_competitors():
    packages = {one.package for one in COMPETITORS.values()} | {"ranx"}  # raced by benchmarks.hybrid
    assert {requirement.partition(">")[0] for requirement in peers.peers()} <= packages


def test_a_peer_that_does_not_install_is_skipped_with_a_word(monkeypatch, capsys):
    monkeypatch.setattr(peers, "install", lambda requirement: "catboost" not in requirement)
    peers.main()
    assert capsys.readouterr().out == "skipped: catboost could not be installed\n"


def test_a_peer_that_refuses_the_installed_numpy_is_installed_without_its_dependencies(monkeypatch):
    commands = []

    def run(command, **options):
        commands.append(command[3:])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr("subprocess.run", run)
    assert peers.install("rank2plan>=0.3")
    assert peers.install("celer>=0.7")
    first, second = commands
    assert "--no-deps" in first
    assert first[-4:] == ["rank2plan>=0.3", "pulp<3", "bayesian-optimization<2", "colorama"]
    assert "--no-deps" not in second
    assert second[-1] == "celer>=0.7"


def test_absent_competitors_are_skipped_with_their_word(monkeypatch, capsys, own_results):
    monkeypatch.delenv("RANKSIEVE_LIBLINEAR_RANKSVM", raising=False)
    monkeypatch.setattr(COMPETITORS["skglm"], "module", "no_such_module", raising=False)
    monkeypatch.setattr(runner, "run_part", lambda *arguments: [])
    runner.measure_all(MEASURES["to_objective"], ["ohsumed"], "quick", again=False)
    words = capsys.readouterr().out
    assert "skipped: skglm: not installed" in words
    assert "skipped: liblinear-ranksvm: RANKSIEVE_LIBLINEAR_RANKSVM is not set" in words
    monkeypatch.setenv("RANKSIEVE_LIBLINEAR_RANKSVM", str(own_results / "train"))
    assert (
        COMPETITORS["liblinear-ranksvm"].unavailable_reason() == "RANKSIEVE_LIBLINEAR_RANKSVM: no such file"
    )


def test_absent_data_are_skipped_with_a_word(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKSIEVE_LETOR", str(tmp_path))
    with pytest.raises(Skipped, match="no MQ2008 data"):
        _ = DATA_SETS["mq2008"].path


def test_pairs_give_the_same_objective_as_ours(tiny):
    K, signs = build_pairs(tiny)
    assert len(K) == count_pairs(tiny)
    w = np.random.default_rng(0).standard_normal(tiny.n_features)
    slack = np.maximum(0.0, 1.0 - signs * (K @ w))
    for problem in problems(tiny):
        assert problem.n_pairs == len(K)
        penalty = np.abs(w).sum() if problem.kind == "l1" else 0.5 * w @ w
        # ‖w‖₁ + C Σ ξ² and ½‖w‖² + C Σ ξ² are what LIBLINEAR minimises.
        assert problem.value(w) == pytest.approx((penalty + problem.C * slack @ slack) / (problem.C * len(K)))
        assert problem.distance(w) > 0


def test_too_many_pairs_are_refused(tiny, monkeypatch):
    monkeypatch.setattr("benchmarks.pairs.MAX_BYTES", 100)
    with pytest.raises(Skipped, match="pairs need"):
        build_pairs(tiny)


def test_to_objective_gives_rows_with_ratios(tiny, own_results):
    rows = add_ratios([*rows_of("to_objective", RANKSIEVE), *rows_of("to_objective", "linearsvc")])
    theirs = [row for row in rows if row["competitor"] == "linearsvc" and "median" in row]
    assert {row["what"].partition(",")[0] for row in theirs} == {"l1", "l2"}
    for row in theirs:
        assert row["ours_over_theirs"] > 0
        assert row["distance"] <= float(row["what"].split("to ")[1].partition(",")[0])
    assert any(row["what"].endswith("from the file") for row in theirs)


@pytest.mark.parametrize("kind", MEASURES["writing"].data)
def test_writing_races_and_reads_back(tiny, own_results, monkeypatch, kind):
    monkeypatch.setitem(DATA_SETS, "250k", DATA_SETS["tiny"])
    monkeypatch.setattr(writing, "QUICK_ROWS", 150)
    monkeypatch.setattr(writing, "OUT", own_results)
    ours, theirs = (rows_of("writing", name, kind) for name in (RANKSIEVE, "dump_svmlight_file"))
    raced = {row["what"] for row in theirs}
    assert {row["what"] for row in ours} == raced | {writing.READING, writing.BY_REPR}
    assert sum("ours_over_theirs" in row for row in add_ratios([*ours, *theirs])) == len(raced)


def test_reading_logs_races_with_json(tiny, own_results, monkeypatch):
    monkeypatch.setattr(logs, "OUT", own_results)
    monkeypatch.setitem(logs.SIZES, "14 MB", 200_000)
    rows = rows_of("logs", RANKSIEVE, "14 MB")
    assert [row["what"] for row in rows] == [logs.READING, logs.DECODING]


def test_an_external_program_races_from_its_file(tiny, own_results, monkeypatch):
    train = own_results / "train"
    train.write_text(
        '#!/bin/sh\nshift 7\nprintf "solver_type L2R_L2LOSS_RANKSVM\\nw\\n0.5 \\n0 \\n" > "$2"\n'
    )
    train.chmod(train.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("RANKSIEVE_LIBLINEAR_RANKSVM", str(train))
    program = LiblinearRankSVM()
    w = program.solve(program.prepare(tiny), problems(tiny)[0], 1e-3)
    assert w.tolist() == [0.5, *[0.0] * 7]
    assert program.fit(tiny, tiny, C_times_pairs=1.0).n_features == 1
    assert program.version() == "train"


def test_models_of_other_programs_are_read(tmp_path):
    model = tmp_path / "model"
    model.write_text("SVM-light Version V6.20\n0 # kernel type\n2.0 1:0.25 3:-1 #\n")
    assert weights_of(model, 4).tolist() == [0.5, 0.0, -2.0, 0.0]
    assert features_of("## Coordinate Ascent\n1:0.5 2:0.0 3:-0.1") == 2
    assert features_of("<split><feature> 3 </feature></split><feature> 3 </feature>") == 1


def test_counting_leaves_the_objective_as_it_was(tiny):
    with count_work() as counts:
        watched = sparse_path(tiny, n_alphas=5)
    assert counts["_transposed"] >= 5
    assert counts["columns read"] >= 5 * tiny.n_features
    assert counts["evaluate_scores"] >= counts["hessian"] > 0
    before = dict(counts)
    assert np.array_equal(sparse_path(tiny, n_alphas=5).coefs, watched.coefs)
    assert dict(counts) == before


def test_results_are_known_for_the_same_version_only(own_results, tiny):
    rows = rows_of("path", RANKSIEVE)
    save_rows("path", rows)
    kept = read_rows("path")
    assert kept[0]["points"] == 100
    assert {"data", "competitor", "what", "median", "low", "high", "n", "versions"} <= set(kept[0])
    assert is_current(kept, "tiny", RANKSIEVE, "1", "quick")
    assert not is_current(kept, "tiny", RANKSIEVE, "2", "quick")
    assert not is_current(kept, "tiny", RANKSIEVE, "1", "full")
    assert not is_current(kept, "other", RANKSIEVE, "1", "quick")


def test_a_part_that_fails_or_takes_too_long_is_reported():
    (failed,) = runner.run_in_child("path", "no-such-data", RANKSIEVE, "quick", 60.0)
    assert failed["skipped"].startswith("failed: KeyError")
    (late,) = runner.run_in_child("path", "no-such-data", RANKSIEVE, "quick", 0.001)
    assert late["skipped"] == "not within 0.001 s"


@pytest.mark.full
def test_the_page_is_written_from_results_data(own_results, tiny):
    for name in ("path", "pipeline"):
        save_rows(name, [*rows_of(name, RANKSIEVE), *rows_of(name, "linearsvc")])
    docs = own_results / "docs"
    page.write_page(docs)
    text = (docs / "benchmarks.md").read_text(encoding="utf-8")
    (theirs,) = (row for row in read_rows("path") if row["competitor"] == "linearsvc")
    with (docs / "race" / "path.csv").open(encoding="utf-8") as file:
        (line,) = (row for row in csv.DictReader(file) if row["competitor"] == "linearsvc")
    assert float(line["ours / theirs"]) == theirs["ours_over_theirs"]
    assert "[The path of 100 models](race/path.csv)" in text
    assert "| best |" in text
    assert "![The path of 100 models](images/race-path.svg)" in text
    assert (docs / "images" / "race-path.svg").read_text(encoding="utf-8").count("<circle") == 2
    assert "race/threads.csv" not in text


def test_kept_results_have_the_form_that_the_page_reads():
    for name in MEASURES:
        for row in read_rows(name):
            assert {"data", "competitor", "what", "versions", "processor", "how"} <= set(row)
            measured = {"median", "low", "high", "n", "unit"} <= set(row)
            assert measured != ("skipped" in row)


def test_the_full_run_includes_every_study(monkeypatch, capsys):
    started = []
    monkeypatch.setattr(runpy, "run_module", lambda name, run_name: started.append(name))
    monkeypatch.setattr(runner, "measure_all", lambda *arguments: None)
    monkeypatch.setattr(runner, "write_page", lambda: None)
    monkeypatch.setattr(runner, "write_readme", lambda: None)
    runner.main([])
    assert started == []
    runner.main(["--full"])
    modules = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.ispkg]
    studies = [
        name for name in modules if " save_result(" in (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    ]
    assert started == [f"benchmarks.{name}" for name in studies if name != "harness"]
    with pytest.raises(SystemExit):
        runner.main(["--only", "nothing"])
    assert "unknown: nothing; known: to_objective" in capsys.readouterr().err


@pytest.mark.full
def test_make_results_writes_the_page(synthetic_folds, tmp_path, monkeypatch, capsys):
    """All that ``make results`` does, with a method or two of each kind and tiny stand-ins."""
    for data_set in ("OHSUMED", "MQ2008"):
        for number, fold in enumerate(synthetic_folds[:1], start=1):
            folder = tmp_path / "letor" / data_set / f"Fold{number}"
            folder.mkdir(parents=True)
            for part, data in zip(("train", "vali", "test"), fold, strict=True):
                write_letor(data, folder / f"{part}.txt")
    monkeypatch.setattr("papers.results_page.letor_root", lambda: tmp_path / "letor")
    monkeypatch.setattr("papers.results_page.FOLDER", tmp_path / "runs")
    monkeypatch.setattr("papers.results_page.PAGE", tmp_path / "results.md")
    monkeypatch.setattr("papers.results_page.VARIANTS", {"fsrank-k5": VARIANTS["fsrank-k5"]})
    monkeypatch.setattr("papers.bench.METHODS", {name: METHODS[name] for name in ("ranksvm", "fenchelrank")})
    monkeypatch.setattr("papers.bench.STUDIES", {name: STUDIES[name] for name in ("path", "convergence")})
    monkeypatch.setattr("papers.stand_ins.SHAPES", {"TD2003": Shape(20, 300, 12, 2, 3.0)})
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    papers_command([])
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert text.startswith(INTRODUCTION)
    with (tmp_path / "results" / "accuracy.csv").open(encoding="utf-8") as file:
        rows = [(row["data set"], row["method"]) for row in csv.DictReader(file)]
    assert set(rows) == set(itertools.product(DATA_SETS_OF_THE_PAPERS, ("RankSVM-Primal", "FenchelRank")))
    published = "".join(
        file.read_text(encoding="utf-8") for file in (tmp_path / "results").glob("published*")
    )
    assert "FS-Rank, k = 5" in published
    assert all(f"](results/{file.name})" in text for file in (tmp_path / "results").iterdir())
    assert "[iterations, seconds and sparsity](results/stand_ins.csv)" in text
    assert f"wrote {tmp_path / 'results.md'}" in capsys.readouterr().out


def test_papers_bench_runs_studies_and_variants(synthetic_folds, tmp_path, capsys):
    data = synthetic_folds[0].train
    write_letor(data, tmp_path / "judged.txt")
    how = ["--grid", "fast", "--jobs", "1", "-o", str(tmp_path / "out"), "--profile", "standard"]
    papers_command(["bench", str(tmp_path / "judged.txt"), "--methods", "ranksvm,fsrank-k5", *how])
    assert "judged: test accuracy" in capsys.readouterr().out
    results = load_results(tmp_path / "out").data_sets["judged"]
    assert (list(results.methods), list(results.variants)) == (["ranksvm"], ["fsrank-k5"])
    assert {"single_features", "path", "sizes"} <= set(results.studies[0])
    with pytest.raises(SystemExit, match="studies"):
        papers_command(["bench", str(tmp_path / "judged.txt"), "--studies", "paht", *how])


@pytest.mark.full
def test_the_results_page_describes_the_comparison(synthetic_folds, tmp_path):
    folds = dict.fromkeys(("OHSUMED", "MQ2008"), synthetic_folds[:2])
    results = bench(folds, ["ranksvm", "listnet", "fenchelrank"], out=tmp_path, grid="fast", studies=False)
    write_results(results, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    counts = [row for data in results.data_sets.values() for row in agreement(data)]
    assert sum(row.n_published for row in counts) == 508
    assert (
        f"publish 508 numbers for these data. {sum(row.n_compared for row in counts)} are compared;" in text
    )
    assert "5 have no counterpart" in text
    accuracy = [row for row in counts if row.kind == "NDCG and MAP"]
    assert f"**{sum(row.n_small for row in accuracy)} differ from ours by at most 0.003**" in text
    assert "HP2004 (282)" in text
    verdicts = all_verdicts(results)
    assert f"of {len(verdicts)} comparisons made by the papers' claims" in text
    (claim,) = {one.claim for one in verdicts if one.claim.startswith("sparse models rank better")}
    of_claim = [one.holds for one in verdicts if one.claim == claim]
    unsure = f", {of_claim.count('not significant')} not significant" if "not significant" in of_claim else ""
    assert f"{claim} ({of_claim.count('yes')} of {len(of_claim)}{unsure})" in text
    ours = results.data_sets["OHSUMED"].results["fenchelrank"].mean("ndcg@10")
    assert re.search(rf"\| FenchelRank \| {ours:.4f}", text)
    linked = set(re.findall(r"\]\(page/(\w+\.csv)\)", text.replace("(results/", "(page/")))
    assert linked <= {file.name for file in (tmp_path / "page").iterdir()}
    assert {"published.csv", "unmatched.csv", "tables.csv"} <= linked


def test_columns_of_a_csv_file_have_different_names():
    assert unique(("method", "seconds", "steps", "seconds")) == ["method", "seconds", "steps", "seconds (2)"]


def test_the_page_of_results_is_written_from_the_tables_beside_it():
    docs = harness.HERE.parent / "docs"
    assert (docs / "results.md").read_text(encoding="utf-8") == results_page(docs / "results")
