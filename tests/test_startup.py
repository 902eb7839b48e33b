"""Start-up time: unused libraries are not imported, unused kernels not compiled."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve import baselines, rankers
from ranksieve.cli import app

SLOW = {"jinja2", "joblib", "numba", "pandas", "polars", "pyarrow", "rich", "scipy", "sklearn"}
KERNELS_OF_A_FIT = {"letor_text", "linear", "pairs", "sorted_pairs", "steps"}

ALL_HELP = """
from contextlib import redirect_stdout
from io import StringIO
import typer
from ranksieve.cli import app
for name in ["", *typer.main.get_command(app).commands]:
    with redirect_stdout(StringIO()) as shown:
        try:
            app([*name.split(), "--help"], prog_name="ranksieve")
        except SystemExit as end:
            assert not end.code
    assert "Usage" in shown.getvalue()
"""

COMPILED = """
import json, sys
from numba.core.dispatcher import Dispatcher
from ranksieve.cli import app
try:
    app(["fit", sys.argv[1], "-o", sys.argv[2], "--json"], prog_name="ranksieve")
except SystemExit as end:
    assert not end.code
prefix = "ranksieve.kernels."
modules = [(name[len(prefix):], module) for name, module in sys.modules.items() if name.startswith(prefix)]
print(json.dumps([[name, value.py_func.__name__, len(value.signatures)] for name, module in modules
                  for value in vars(module).values()
                  if isinstance(value, Dispatcher) and value.py_func.__module__ == prefix + name]))
"""


def output_of(code, *args):
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("code", "slow"),
    [
        ("import ranksieve; dir(ranksieve)", SLOW | {"numpy", "typer"}),
        ("import ranksieve.cli", SLOW | {"numpy"}),
        ("import ranksieve.methods, ranksieve.rankers, ranksieve.baselines", SLOW),
        ("import ranksieve.export", SLOW),
        (ALL_HELP, SLOW),
    ],
    ids=["package", "command line", "methods", "export", "help of every command"],
)
def test_slow_libraries_are_not_imported(code, slow):
    loaded = output_of(f"{code}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})")
    assert slow.isdisjoint(loaded.split())


@pytest.mark.full
def test_only_the_used_ranker_is_imported():
    code = "import ranksieve as rs, sys; rs.SparseRanker(); print(*sys.modules)"
    loaded = output_of(code).split()
    assert "ranksieve.rankers.sparse_ranker" in loaded
    assert {"ranksieve.baselines.boosting", "ranksieve.baselines.filters", "jinja2"}.isdisjoint(loaded)


def test_every_lazy_name_exists():
    for package in (rs, rankers, baselines):
        for name in package.__all__:
            assert getattr(package, name) is not None


@pytest.mark.full
def test_a_fit_compiles_few_kernels_once(tmp_path):
    data = rs.make_ranking(n_queries=30, n_features=8, docs_per_query=12, n_informative=3, random_state=0)
    rs.io.write_letor(data, tmp_path / "train.txt")
    last_line = output_of(COMPILED, tmp_path / "train.txt", tmp_path / "model.json").splitlines()[-1]
    used = [(module, name, count) for module, name, count in json.loads(last_line) if count]
    assert {module for module, _, _ in used} <= KERNELS_OF_A_FIT
    twice = [(module, name) for module, name, count in used if count > 1]
    assert twice == [("sorted_pairs", "hessian_parts")]  # of lines and of curves


PROGRAM = """
import sys
from ranksieve.cli import main
sys.argv = ["ranksieve", "fit", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code
print(*{name.partition(".")[0] for name in sys.modules})
"""


@pytest.mark.parametrize("method", ["sparseranker", "ranksvm"])
@pytest.mark.full
def test_the_program_does_not_import_jinja2_and_writes_the_same_model(method, tmp_path):
    data = rs.make_ranking(n_queries=30, n_features=8, docs_per_query=12, n_informative=3, random_state=0)
    rs.io.write_letor(data, tmp_path / "train.txt")
    models = {name: str(tmp_path / f"{name}.json") for name in ("program", "here")}
    fit = [str(tmp_path / "train.txt"), f"--method={method}", "-o"]
    loaded = output_of(PROGRAM, *fit, models["program"]).splitlines()[-1].split()
    assert {"jinja2", "polars"}.isdisjoint(loaded)  # scikit-learn imports pandas if it is installed
    assert CliRunner().invoke(app, ["fit", *fit, models["here"]]).exit_code == 0
    program, here = (rs.load_model(model) for model in models.values())
    assert program.terms == here.terms
    assert program.parameters == here.parameters


ESTIMATOR = (
    PROGRAM
    + """
from sklearn.base import BaseEstimator
import ranksieve as rs
ranker = rs.SparseRanker()
assert isinstance(ranker, BaseEstimator)
assert ranker.__sklearn_tags__().target_tags.required
try:
    ranker.set_params(nonsense=3)
except ValueError as error:
    print(error)
"""
)


def test_rankers_are_estimators_after_running_the_program(tmp_path):
    data = rs.make_ranking(n_queries=20, n_features=4, docs_per_query=8, n_informative=2, random_state=0)
    rs.io.write_letor(data, tmp_path / "train.txt")
    fit = [str(tmp_path / "train.txt"), "--set", "n_alphas=4", "-o", str(tmp_path / "model.json")]
    assert "Invalid parameter 'nonsense'" in output_of(ESTIMATOR, *fit).splitlines()[-1]
