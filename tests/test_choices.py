"""Selection in bench: only by validation data, separately for each seed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from ranksieve.data.dataset import Dataset
from ranksieve.experiment.benching import bench
from ranksieve.experiment.fold_run import ALL_METRICS
from ranksieve.experiment.results import load_results
from ranksieve.io.folds import Fold
from ranksieve.methods import METHODS, Method, parameter_grid
from ranksieve.metrics import Evaluator, evaluate
from ranksieve.rankers import MinBatSRank, RankSVM
from tests.refusals import refused_data, refused_parameter

GRID = parameter_grid(rate=[0.5, 0.01], l1=[0.5, 4.0, 64.0])
ONLINE = Method("Online", make=MinBatSRank, grid=GRID)
DENSE = Method("Dense", make=RankSVM, grid=parameter_grid(C=[1e-3, 1.0]), select="map")
ALL = {"online": ONLINE, "dense": DENSE, "rankboost": METHODS["rankboost"]}


def run(folds, out, methods=ALL, **options):
    settings = {"n_seeds": 3, "profile": "letor"} | options
    return bench({"toy": folds}, methods, out=out, **settings).data_sets["toy"]


@pytest.fixture(scope="module")
def folder(synthetic_folds, tmp_path_factory):
    folder = tmp_path_factory.mktemp("choices")
    run(synthetic_folds, folder)
    return folder


@pytest.fixture(scope="module")
def results(folder):
    return load_results(folder).data_sets["toy"]


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()][1:]


def scramble(data, seed):
    """The data with random features, and with the labels permuted within queries."""
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.random(data.n_docs) + 10 * np.unique(data.qid, return_inverse=True)[1])
    return Dataset(rng.normal(size=data.X.shape), data.y[order], data.qid, data.feature_names)


def fitted(method, point, seed, fold):
    ranker = method.make(**point)
    return (ranker if seed is None else ranker.set_params(random_state=seed)).fit(fold.train)


def test_every_selection_is_the_best_on_valid(synthetic_folds, folder):
    """Recompute every selection in the journals by the method's metric on valid."""
    for path in sorted(folder.glob("toy/*/Fold*.jsonl")):
        fold, method = synthetic_folds[int(path.stem[-1]) - 1], ALL[path.parent.name]
        chosen = [row for row in rows_of(path) if row["kind"] == "chosen"]
        seeds = [None] if method.seed is None else [0, 1, 2]
        assert [(row["random_state"], row["select"]) for row in chosen] == [(k, method.select) for k in seeds]
        measure = Evaluator(fold.valid, "letor").evaluate
        for choice in chosen:
            fits = [fitted(method, point, choice["random_state"], fold) for point in method.grid]
            values = [
                measure(fit.predict(fold.valid), choice["select"]).mean[choice["select"]] for fit in fits
            ]
            assert choice["point"] == int(np.argmax(values))
            assert choice["validation"] == max(values)


def test_selections_do_not_depend_on_test_data(synthetic_folds, folder, tmp_path):
    """Other test data do not change any fit, validation value or selection."""
    other = [Fold(f.train, f.valid, scramble(f.test, k)) for k, f in enumerate(synthetic_folds)]
    run(other, tmp_path)
    compared = {"fit": 0, "chosen": 0}
    for path in folder.glob("toy/*/Fold*.jsonl"):
        ours, theirs = (rows_of(root / path.relative_to(folder)) for root in (folder, tmp_path))
        for a, b in zip(ours, theirs, strict=True):
            assert a.get("weights") == b.get("weights")
            if a["kind"] == "tested":
                assert a["test"] != b["test"]
            else:
                assert {**a, "seconds": 0} == {**b, "seconds": 0}
                compared[a["kind"]] += 1
    assert compared == {"fit": 3 * (3 * 6 + 2 + 4), "chosen": 3 * (3 + 1 + 1)}


def test_a_selection_is_written_before_its_test(folder):
    for path in folder.glob("toy/*/Fold*.jsonl"):
        selected = set()
        for row in rows_of(path):
            at = (row["point"], row["random_state"])
            if row["kind"] == "chosen":
                selected.add(at)
            assert row["kind"] != "tested" or at in selected


def test_a_forged_selection_is_refused(synthetic_folds, tmp_path):
    run(synthetic_folds[:1], tmp_path, {"online": ONLINE})
    path = tmp_path / "toy" / "online" / "Fold1.jsonl"
    text = path.read_text()
    (at, row), *_ = [(k, r) for k, r in enumerate(rows_of(path), start=2) if r["kind"] == "chosen"]
    other = (row["point"] + 1) % len(GRID)
    path.write_text(text.replace(json.dumps(row), json.dumps({**row, "point": other})))
    with refused_data("Fold1.jsonl", at) as info:
        load_results(tmp_path)
    assert f"point {other}" in info.value.reason


def test_random_methods_are_run_with_each_seed(synthetic_folds, results):
    method = results.results["online"]
    assert method.n_seeds == 3
    by_seed = []
    for fold, ours in zip(synthetic_folds, method.folds, strict=True):
        tests = []
        for seed, draw in enumerate(ours.seed_results):
            fit = MinBatSRank(**draw.parameters, random_state=seed).fit(fold.train)
            test = evaluate(fit.predict(fold.test), fold.test, ALL_METRICS, "letor")
            np.testing.assert_array_equal(draw.coef, fit.coef_)
            np.testing.assert_array_equal(draw.test.per_query["map"], test.per_query["map"])
            assert draw.sparsity == np.mean(fit.coef_ != 0)
            tests.append(test)
        mean = np.mean([test.per_query["map"] for test in tests], axis=0)
        np.testing.assert_allclose(ours.test.per_query["map"], mean)
        assert ours.mean("sparsity") == pytest.approx(np.mean([draw.sparsity for draw in ours.seed_results]))
        by_seed.append([test.mean["map"] for test in tests])
    assert method.mean("map") == pytest.approx(np.mean(by_seed))
    assert method.spread()["map"] == pytest.approx(np.mean(by_seed, axis=0).std(ddof=1))
    assert method.spread()["map"] > 0


def test_deterministic_methods_are_fitted_once(results):
    for name in ("dense", "rankboost"):
        assert results.results[name].n_seeds == 1
        assert results.results[name].spread() == {}


def test_seeds_in_the_grid_are_kept():
    assert ONLINE.seed == 0
    assert replace(ONLINE, grid=parameter_grid(random_state=[3, 4])).seed is None
    assert DENSE.seed is None


@pytest.mark.parametrize("lines", range(2, 26, 2))
@pytest.mark.full
def test_a_truncated_journal_is_completed_to_the_same_rows(synthetic_folds, folder, tmp_path, lines):
    whole = (folder / "toy" / "online" / "Fold1.jsonl").read_text().splitlines(keepends=True)
    if lines >= len(whole):
        pytest.skip("the file is shorter")
    path = tmp_path / "toy" / "online" / "Fold1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(whole[:lines]) + whole[lines][:9])
    run(synthetic_folds, tmp_path, {"online": ONLINE})
    completed = [{**row, "seconds": 0} for row in rows_of(path)]
    assert completed == [{**row, "seconds": 0} for row in rows_of(folder / "toy" / "online" / "Fold1.jsonl")]


def test_the_number_of_seeds_must_be_an_integer(synthetic_folds, tmp_path):
    with refused_parameter("n_seeds", 0):
        run(synthetic_folds, tmp_path, n_seeds=0)
