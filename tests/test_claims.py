"""What the papers claim: the verdicts, from numbers that are recomputed here."""

from __future__ import annotations

import numpy as np
import pytest
from papers.bench import bench
from papers.claims import (
    claims_table,
    of_stand_ins,
    of_studies,
    verdicts,
)
from papers.claims.base import NO, NOT_SIGNIFICANT, YES, holds_by_difference
from papers.claims.of_methods import (
    ABOVE,
    AS_GOOD,
    BELOW,
    CLAIMS,
    HALF,
    SIGNIFICANTLY_ABOVE,
    Claim,
    PairedValues,
    compare_methods,
)
from papers.published import published_numbers
from scipy.stats import ttest_rel

from ranksieve.methods import METHODS

HERE = ["fenchelrank", "ranksvm", "ranksvm-l1", "ranksvm-log"]


@pytest.fixture(scope="module")
def every(synthetic_folds, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    return bench({"OHSUMED": synthetic_folds}, HERE, out=folder, grid="fast", studies=False)


@pytest.fixture(scope="module")
def results(every):
    return every.data_sets["OHSUMED"]


def test_claims_are_about_methods_and_papers_that_exist():
    papers = {entry.paper for entry in published_numbers()}
    for claim in CLAIMS:
        assert {claim.method, *claim.others} <= METHODS.keys()
        assert claim.method not in claim.others
    assert {claim.paper for claim in CLAIMS} == papers
    assert {paper for paper, *_ in (*of_studies.CLAIMS, *of_stand_ins.CLAIMS)} <= papers


def test_a_verdict_follows_from_the_numbers(results):
    above = Claim("FenchelRank", "better", "fenchelrank", ABOVE, ["ranksvm", "rankboost"], "ndcg@10")
    (verdict,) = above.verdicts(results)  # RankBoost was not run
    means = {
        name: np.mean([fold.test.per_query["ndcg@10"].mean() for fold in results.results[name].folds])
        for name in ("fenchelrank", "ranksvm")
    }
    pair = compare_methods(results, "fenchelrank", "ranksvm", "ndcg@10")
    assert (pair.first, pair.second) == pytest.approx((means["fenchelrank"], means["ranksvm"]))
    a, b = (results.pooled[name].per_query["ndcg@10"] for name in ("fenchelrank", "ranksvm"))
    assert pair.p_better == pytest.approx(ttest_rel(a, b, alternative="greater").pvalue)
    assert pair.p_worse == pytest.approx(1 - pair.p_better)
    assert verdict.holds == holds_by_difference(means["fenchelrank"] - means["ranksvm"], pair.p_better)
    assert verdict.comparison == "N@10 of FenchelRank above RankSVM-Primal"
    assert f"{means['fenchelrank']:.4f} against {means['ranksvm']:.4f}, p = " in verdict.result


def test_relations():
    better, worse = PairedValues(0.5, 0.4, 0.01, 0.99), PairedValues(0.4, 0.5, 0.99, 0.01)
    slightly_less, slightly_more = PairedValues(0.45, 0.46, 0.6, 0.4), PairedValues(0.46, 0.45, 0.4, 0.6)
    expected = {
        ABOVE: (YES, NO, NO, NOT_SIGNIFICANT),
        SIGNIFICANTLY_ABOVE: (YES, NO, NO, NO),
        AS_GOOD: (YES, NO, YES, YES),
    }
    for relation, answers in expected.items():
        assert tuple(map(relation.holds, (better, worse, slightly_less, slightly_more))) == answers
    assert BELOW.holds(PairedValues(0.1, 0.2)) == YES
    assert HALF.holds(PairedValues(0.1, 0.2)) == YES
    assert HALF.holds(PairedValues(0.11, 0.2)) == NO
    assert AS_GOOD.holds(PairedValues(0.1, 0.2)) == NO  # nothing to test by


def test_the_table_has_a_row_for_each_verdict(results):
    verdict_list, table = verdicts(results), claims_table(results)
    assert len(table.rows) == len(verdict_list) > 5
    for row, verdict in zip(table.rows, verdict_list, strict=True):
        shown = dict(zip(table.columns, row, strict=True))
        assert [shown[name].text for name in ("paper", "claim", "comparison", "result", "holds")] == list(
            vars(verdict).values()
        )
        assert shown["holds"].bold == (verdict.holds == NO)
    sparse = next(verdict for verdict in verdict_list if "sparsity of" in verdict.comparison)
    assert ", p =" not in sparse.result
