"""Stand-ins: their shapes, and the measurements on them."""

from __future__ import annotations

import numpy as np
import pytest
from papers import stand_ins
from papers.bench import bench
from papers.claims import of_stand_ins
from papers.claims.base import NO, YES
from papers.stand_ins import SHAPES, Shape, load_stand_ins, make_stand_in, split_evenly

from ranksieve.objective import make_objective
from tests.refusals import refused_data, refused_parameter

TINY = {"TD2003": Shape(20, 300, 12, 2, 3.0), "MSLR": Shape(100, 1500, 14, 5, 6.0, divisor=5)}


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(stand_ins, "SHAPES", TINY)


@pytest.mark.parametrize("name", ["TD2003", "NP2004", "MQ2007", "Yahoo"])
def test_stand_ins_have_the_shape(name):
    shape, data = SHAPES[name], make_stand_in(name)
    n_queries = shape.n_queries // shape.divisor
    assert data.n_queries == n_queries
    assert data.n_docs == shape.n_docs // shape.divisor
    assert data.n_features == shape.n_features
    assert np.unique(data.y).tolist() == list(range(shape.n_levels))
    assert np.count_nonzero(data.y) == round(shape.relevant * n_queries)
    assert data.X.min() >= 0
    assert data.X.max() <= 1


@pytest.mark.parametrize(("name", "pairs"), [("TD2003", 398_562), ("HP2004", 80_306), ("NP2004", 75_747)])
def test_number_of_pairs_equals_that_in_the_papers_table(name, pairs):
    assert make_objective(make_stand_in(name)).loss.normaliser == pytest.approx(pairs, rel=5e-3)


def test_the_same_seed_gives_the_same_bits(tiny):
    first, again, other = (
        make_stand_in("TD2003"),
        make_stand_in("TD2003"),
        make_stand_in("TD2003", random_state=1),
    )
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)
    with refused_parameter("name", "TD2030"):
        make_stand_in("TD2030")


@pytest.mark.parametrize(("total", "n"), [(10, 4), (3, 5), (0, 2)])
def test_spread(total, n):
    parts = split_evenly(np.random.default_rng(0), total, n)
    assert parts.sum() == total
    assert len(parts) == n
    assert np.ptp(parts) <= 1


@pytest.mark.full
def test_bench_measures_stand_ins_once_and_shows_them_in_the_table(tiny, synthetic_folds, tmp_path):
    def run():
        return bench({"toy": synthetic_folds}, ["ranksvm"], out=tmp_path, grid="fast", studies=["stand_ins"])

    first = run()
    measured = load_stand_ins(tmp_path)
    assert list(run().data_sets) == list(first.data_sets) == ["toy"]
    assert load_stand_ins(tmp_path) == measured
    row = measured["MSLR"]
    assert row["shape"]["queries"] == 20
    assert all(run["n_iter"] <= stand_ins.MAX_ITER for name, run in row["runs"].items() if name == "TGRank")
    table = stand_ins.stand_in_table(tmp_path)
    assert [cell.text for cell in (line[0] for line in table.rows)] == ["TD2003", "MSLR, queries / 5"]
    sparser = sum(
        one["runs"]["FenchelRank"]["sparsity"] < one["runs"]["TGRank"]["sparsity"]
        for one in measured.values()
    )
    verdict_of = {(verdict.paper, verdict.claim): verdict for verdict in of_stand_ins.verdicts(first)}
    verdict = verdict_of["FenchelRank", "sparser than other sparse methods"]
    assert verdict.result == f"on {sparser} of 2 stand-ins"
    assert verdict.holds == (YES if sparser == 2 else NO)
    assert len(verdict_of) == len(of_stand_ins.CLAIMS)
    assert stand_ins.stand_in_table(tmp_path / "toy") is None


def test_other_settings_are_refused(tiny, synthetic_folds, tmp_path, monkeypatch):
    bench({"toy": synthetic_folds}, ["ranksvm"], out=tmp_path, grid="fast", studies=["stand_ins"])
    monkeypatch.setattr(stand_ins, "MAX_ITER", 7)
    with refused_data("TD2003.jsonl") as info:
        bench({"toy": synthetic_folds}, ["ranksvm"], out=tmp_path, grid="fast", studies=["stand_ins"])
    assert "max_iter (50)" in info.value.reason
