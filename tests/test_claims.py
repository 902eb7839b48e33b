"""What the papers claim: the verdicts, from numbers that are recomputed here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel

from ranksieve.experiment.benching import bench
from ranksieve.experiment.claims import (
    ABOVE,
    AS_GOOD,
    BELOW,
    CLAIMS,
    HALF,
    SIGNIFICANTLY_ABOVE,
    Claim,
    Compared,
    claims_of,
    claims_table,
)
from ranksieve.experiment.published import published
from ranksieve.methods import METHODS

HERE = ["fenchelrank", "ranksvm", "ranksvm-l1", "ranksvm-log"]


@pytest.fixture(scope="module")
def results(synthetic_folds, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    return bench({"OHSUMED": synthetic_folds}, HERE, out=folder, grid="fast").data_sets["OHSUMED"]


def test_claims_are_about_methods_and_papers_that_exist():
    papers = {entry.paper for entry in published()}
    for claim in CLAIMS:
        assert claim.paper in papers
        assert {claim.method, *claim.others} <= METHODS.keys()
        assert claim.method not in claim.others


def test_a_verdict_follows_from_the_numbers(results):
    above = Claim("FenchelRank", "better", "fenchelrank", ABOVE, ["ranksvm", "rankboost"], "ndcg@10")
    (verdict,) = above.verdicts(results)  # RankBoost was not run
    means = {
        name: np.mean([fold.test.per_query["ndcg@10"].mean() for fold in results.results[name].folds])
        for name in ("fenchelrank", "ranksvm")
    }
    assert verdict.at.ours == pytest.approx(means["fenchelrank"])
    assert verdict.at.theirs == pytest.approx(means["ranksvm"])
    assert verdict.holds == (means["fenchelrank"] > means["ranksvm"])
    a, b = (results.pooled[name].per_query["ndcg@10"] for name in ("fenchelrank", "ranksvm"))
    assert verdict.at.p_better == pytest.approx(ttest_rel(a, b, alternative="greater").pvalue)
    assert verdict.at.p_worse == pytest.approx(1 - verdict.at.p_better)
    assert f"{means['fenchelrank']:.4f} against {means['ranksvm']:.4f}, p = " in verdict.found


def test_relations():
    better, worse = Compared(0.5, 0.4, 0.01, 0.99), Compared(0.4, 0.5, 0.99, 0.01)
    slightly = Compared(0.45, 0.46, 0.6, 0.4)
    assert [relation.holds(better) for relation in (ABOVE, SIGNIFICANTLY_ABOVE, AS_GOOD)] == [True] * 3
    assert [relation.holds(worse) for relation in (ABOVE, SIGNIFICANTLY_ABOVE, AS_GOOD)] == [False] * 3
    assert [relation.holds(slightly) for relation in (ABOVE, SIGNIFICANTLY_ABOVE, AS_GOOD)] == [
        False, False, True,
    ]  # fmt: skip
    assert BELOW.holds(Compared(0.1, 0.2))
    assert HALF.holds(Compared(0.1, 0.2))
    assert not HALF.holds(Compared(0.11, 0.2))
    assert not AS_GOOD.holds(Compared(0.1, 0.2))  # nothing to test by


def test_the_table_has_a_row_for_each_verdict(results):
    verdicts, table = claims_of(results), claims_table(results)
    assert len(table.rows) == len(verdicts) > 5
    for row, verdict in zip(table.rows, verdicts, strict=True):
        assert row[-1].text == ("yes" if verdict.holds else "no")
        assert verdict.found == row[-2].text
    sparse = next(v for v in verdicts if v.claim.measure == "sparsity")
    assert ", p =" not in sparse.found
