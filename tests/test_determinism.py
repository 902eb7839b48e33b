"""Bit-identical results for the same input, seed and version: with two threads, and in concurrent fits."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve._parallel import split_blocks, use_threads
from ranksieve.cli import app
from tests.conftest import ROOT, random_dataset
from tests.rankers import RANKERS
from tests.test_parallel import blas_threads, two_blas_threads  # noqa: F401

FEW_STEPS = {
    "max_iter": 5, "n_rounds": 5, "n_alphas": 3, "cv": 2, "time_limit": np.inf, "n_subsamples": 4
}  # fmt: skip
PROGRAM = "from tests.test_determinism import make_all; make_all()"
QUICK = "--set n_alphas=6 --set cv=2"
COMMANDS = {
    "model.json": f"fit ../train.txt {QUICK} --max-features 3 -o model.json --report fit.html",
    "fit.html": "",
    "boosted.json": "fit ../train.txt --method rankboost --set n_rounds=4 -o boosted.json",
    "frontier.html": "frontier ../train.txt --costs ../costs.csv --report frontier.html",
    "subset.html": "subset ../train.txt --max-features 2 --report subset.html",
    "inspect.html": "inspect ../train.txt --report inspect.html",
    "explain.html": "explain model.json ../train.txt --query 1 --report explain.html",
    "scorecard.json": "scorecard model.json ../train.txt -o scorecard.json",
    "scores.run": "rank model.json ../train.txt --format trec -o scores.run",
    "module.py": "export model.json --to python -o module.py",
    "data.txt.gz": "convert ../train.txt data.txt.gz",
    "data.csv.gz": "convert ../train.txt data.csv.gz",
    "data.parquet": "convert ../train.txt data.parquet",
    "data.ranksieve": "convert ../train.txt data.ranksieve",
}


def bits(ranker, data):
    """The fitted arrays and the scores, as bytes."""
    learned = {
        name: value for name, value in vars(ranker).items() if name.endswith("_") and "seconds" not in name
    }
    arrays = [
        learned[name] for name in sorted(learned) if isinstance(learned[name], np.ndarray | float | int)
    ]
    arrays += [ranker.predict(data)]
    return [np.asarray(one).tobytes() for one in arrays if np.asarray(one).dtype != object]


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=5, n_queries=60, n_features=12, longest=20)


@pytest.mark.parametrize("name", RANKERS)
def test_fits_are_bit_identical_with_two_threads_and_in_parallel(name, data, small_blocks):
    assert len(split_blocks(data.queries.offsets)) > 2, "one block would not use two threads"
    defaults = RANKERS[name]().get_params(deep=False)
    few = {parameter: value for parameter, value in FEW_STEPS.items() if parameter in defaults}

    def fitted(n_threads):
        with use_threads(n_threads):
            return bits(RANKERS[name](**few).fit(data), data)

    expected, results = fitted(1), []
    threads = [threading.Thread(target=lambda: results.append(fitted(2))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(expected) > 1
    assert results == [expected, expected]


def test_the_frontier_limits_blas_to_one_thread(two_blas_threads):  # noqa: F811
    """With two BLAS threads, the order of sums varies between runs."""
    data, thread_counts = rs.make_ranking(8, 3, 1, docs_per_query=(4, 6), random_state=1), set()
    rs.frontier(data, n_alphas=3, cv=2, progress=lambda done, total: thread_counts.update(blas_threads()))
    assert thread_counts == {1}


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory):
    """The files of all commands, written here and by a process with other hash seed and thread counts."""
    base = tmp_path_factory.mktemp("twice")
    data = rs.make_ranking(12, 5, 2, docs_per_query=(5, 8), random_state=3)
    rs.io.write_letor(data, base / "train.txt")
    (base / "costs.csv").write_text("feature,cost,group\nf1,1,\nf2,2,\nf3,4,\nf4,3,calls\nf5,3,calls\n")
    for folder in ("here", "there"):
        (base / folder).mkdir()
    settings = {"PYTHONHASHSEED": "7", "RANKSIEVE_THREADS": "2", "OMP_NUM_THREADS": "2"}
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-c", PROGRAM]
    subprocess.run(command, cwd=base / "there", env=os.environ | settings | paths, check=True, timeout=600)
    with pytest.MonkeyPatch.context() as patch, use_threads(1):
        patch.chdir(base / "here")
        make_all()
    return base


def make_all():
    """Run all commands in the current folder."""
    for words in filter(None, COMMANDS.values()):
        result = CliRunner().invoke(app, words.split())
        assert result.exit_code == 0, (words, result.output, result.exception)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.full
def test_files_have_the_same_bytes_in_another_process(name, artefacts):
    assert _content(artefacts / "here" / name) == _content(artefacts / "there" / name)


def _content(path: Path) -> dict[str, bytes]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name: file.read_bytes() for file in files}
