"""fit --stream: the same model as from memory, bounded memory, unsupported options."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.methods import METHODS
from tests.test_cli import refused, run

STREAM = ("--method", "minbatsrank", "--stream", "-o", "m.json")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = rs.make_ranking(n_queries=40, n_features=8, n_informative=4, random_state=2)
    rs.io.write_letor(data, "train.txt")
    rs.write_dataset(data, "train.parquet")
    return tmp_path


def test_the_model_equals_the_one_fitted_in_memory(here):
    output = run("fit", "train.txt", *STREAM, "--set", "l1=500").stdout
    streamed = rs.load_model("m.json")
    run(
        "fit",
        "train.txt",
        "--method",
        "minbatsrank",
        "-o",
        "n.json",
        "--set",
        "l1=500",
        "--set",
        "shuffle=False",
    )
    assert streamed.terms == rs.load_model("n.json").terms
    assert 0 < len(streamed.terms) < 8
    assert f"MinBatSRank uses {len(streamed.terms)} of 8 features." in output
    assert output.endswith("Wrote m.json.\n")


def test_standard_input_and_json(here):
    run("fit", "train.txt", *STREAM)
    expected = rs.load_model("m.json")
    with open("train.txt") as file:
        content = json.loads(run("fit", "-", *STREAM, "--json", input=file.read()).stdout)
    assert rs.load_model("m.json").terms == expected.terms
    assert content["model"]["n_features"] == 8
    assert content["choice"] == ""
    refusal = refused("fit", "-", *STREAM, "--set", "n_epochs=2", input="")
    assert refusal.facts == ("n_epochs", 2)
    assert "--set n_epochs=2: " in refusal


def test_missing_values_are_refused_or_filled(here):
    data = rs.io.read_letor("train.txt")
    data.X[::5, 2] = np.nan
    rs.io.write_letor(data, "holes.txt")
    assert refused("fit", "holes.txt", *STREAM).facts == ("holes.txt", 1)
    mean = refused("fit", "holes.txt", *STREAM, "--missing", "column_mean")
    assert mean.facts == ("missing", "column_mean")
    run("fit", "holes.txt", *STREAM, "--missing", "zero")
    assert rs.load_model("m.json").preparation.missing.policy == "zero"


def test_scattered_queries_are_refused(here):
    (here / "mixed.txt").write_text("1 qid:a 1:1\n0 qid:b 1:2\n0 qid:a 1:3\n")
    refusal = refused("fit", "mixed.txt", *STREAM)
    assert refusal.facts == ("mixed.txt", 3)
    assert "query a" in refusal.reason


@pytest.mark.parametrize(
    ("option", "facts"),
    [
        (("--report", "r.html"), ("stream", True)),
        (("--normalise", "z"), ("stream", True)),
        (("--set", "normalise=z"), ("normalise", "z")),
        (("--valid", "train.txt"), ("stream", True)),
        (("--max-features", "3"), ("stream", True)),
        (("--metric", "map"), ("stream", True)),
        (("--profile", "letor"), ("stream", True)),
    ],
)
def test_options_unsupported_with_a_stream(here, option, facts):
    refusal = refused("fit", "train.txt", *STREAM, *option)
    assert refusal.facts == facts
    assert option[0] in refusal
    assert not (here / "m.json").exists()


def test_normalise_none_is_supported_with_a_stream(here):
    run("fit", "train.txt", *STREAM, "--normalise", "none")


def test_other_methods_and_files_are_refused(here):
    for method in ("sparseranker", "fenchelrank"):
        refusal = refused("fit", "train.txt", "--method", method, "--stream", "-o", "m.json")
        assert refusal.facts == ("method", method)
        assert "use minbatsrank, or leave --stream out" in refusal
    assert refused("fit", "train.parquet", *STREAM).facts == ("train.parquet", None)
    assert [name for name, method in METHODS.items() if method.can("stream")] == ["minbatsrank"]


PEAK = """
import re, sys
from pathlib import Path
from ranksieve.cli import main
sys.argv = ["ranksieve", "fit", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code
status = Path("/proc/self/status").read_text()
print(re.search(r"VmHWM:\\s+(\\d+) kB", status).group(1))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
@pytest.mark.full
def test_memory_does_not_grow_with_the_file(here):
    rng, peaks = np.random.default_rng(0), []
    for n_docs in (2_000, 2_000, 40_000):  # the first fit compiles
        X = rng.random((n_docs, 100)).round(6)
        rs.io.write_letor(rs.Dataset(X, rng.integers(0, 3, n_docs), np.arange(n_docs) // 50), f"{n_docs}.txt")
        command = [sys.executable, "-c", PEAK, f"{n_docs}.txt", *STREAM]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.splitlines()[-1]) / 1024)
    assert peaks[2] < peaks[1] + 25  # MB; the rows of the largest file take 30, its text 40
