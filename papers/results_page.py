"""docs/results.md: every method on OHSUMED and MQ2008, beside what the papers print.

    make results

Runs all methods, and what the papers print apart, into benchmarks/out/results (it goes on where it stopped),
then writes the page from these results.
"""

from __future__ import annotations

import os
import time
from typing import Any

from benchmarks.harness import HERE, letor_root

from papers.bench import TABLES, bench, studies_of
from papers.choices import Reproduction
from papers.claims import claims_by_paper, claims_tables, every_verdict
from papers.claims.base import IN_DIRECTION, NO, YES
from papers.comparison import FAR, NDCG_AND_MAP, NEAR, agreement
from papers.published import VARIANTS, numbers_by_data_set, rows_of
from papers.published_tables import papers_table
from ranksieve._util.files import atomic_write
from ranksieve.experiment.tables import all_tables, markdown

DATA_SETS = ("OHSUMED", "MQ2008")
FOLDER = HERE / "out" / "results"
PAGE = HERE.parent / "docs" / "results.md"
INTRODUCTION = """# Results on LETOR

Made by `make results`: `papers.bench` fits every grid point on train, chooses on valid and measures
test, over the five folds of OHSUMED (LETOR 3.0) and MQ2008 (LETOR 4.0), with the metric conventions of
LETOR's scripts. Nothing here is selected by hand or by test data: every choice is the best on valid, every
method of the [table](methods/README.md) is here, and so is every number that the five papers print for these
data, [like with like](experiments.md#like-with-like). The page with pictures:
`python -m papers report results -o report.html`.

The rows of SparseRanker were measured at commit `3edc26a`; its choice has changed since. Run again at
`e8bcb91`, its NDCG@10 is 0.4555 ± 0.0053 on OHSUMED and 0.2310 ± 0.0011 on MQ2008.

## In a minute

"""
REASONS = """
## What differs, and why

- **FenchelRank** is reproduced: the same problem, grid and stopping rule give the paper's digits up to a
  few thousandths in any metric. Frank–Wolfe steps from zero are deterministic; what remains are choices
  on valid that are decided by the fourth digit.
- **FSMRank** prints neither its grids nor how it treats a similarity matrix that is not positive
  semidefinite (|Pearson| is not, on all ten training folds; here it is projected). On OHSUMED it comes
  out lower than printed at NDCG@10, on MQ2008 as printed within noise.
- **MinBatSRank** names neither passes, nor order of queries, nor how many runs its numbers are of. Here it
  makes one pass, with the paper's rates and λ, in five orders of the queries, each chosen on valid.
- **RankSVM with ℓ1, log, MCP and ℓ0.5** solve the paper's problems on another grid (the paper does not
  print its own), chosen by MAP as there. The concave penalties are sparser than ℓ1, as the paper finds.
  Its FenchelRank and FSMRank are chosen by MAP as well, unlike those of the papers they come from.
- **Sparse CS-ListMLE** prints numbers that other conventions made: its NDCG@10 on MQ2008 (near 0.46)
  cannot be that of LETOR's scripts, where lists with fewer than ten documents count 0 and every other
  paper is near 0.23; its folds there were dealt anew; and its OHSUMED numbers lie 0.06 to 0.1 below all
  other papers' for all methods. Of the conventions tried, label 2 alone with gain 1 comes nearest on OHSUMED
  and `standard` on MQ2008. Only the order of methods can be compared, which the table of claims does.
- **Baselines** of LETOR's own lists (RankSVM-Primal on OHSUMED, RankSVM-Struct, ListNet, AdaRank, RankBoost,
  SVM-MAP) were run by others with grids and software that were not published, most of them chosen by MAP,
  as LETOR's site says. OHSUMED's validation parts have 21 or 22 queries: drawing them again moves the test
  NDCG@10 of RankSVM by 0.006 (one standard deviation), so differences of that size are no finding.
- **Seconds** are of different machines and languages.
- **p-values** are of pooled queries in both; the papers' t-tests start from numbers that differ from ours
  by the amounts above, and small differences of means move p-values a lot.
"""
CLAIMS = """
## The papers' claims, one by one

"""
METHODS = """
## Methods and published numbers

"""
EXPERIMENTS = """
## The papers' further experiments

What the [studies](experiments.md#studies) measure.

"""


def page(results: Reproduction) -> str:
    """A first screen, then the reasons, the claims, the tables of all data sets, the further experiments."""
    shown = [table for table in all_tables(results, builders=TABLES) if table.name != "significance"]
    first = markdown([papers_table(results), claims_by_paper(results)])
    return "".join((
        INTRODUCTION, compared_words(results), first, absent_words(results), REASONS,
        CLAIMS, markdown(claims_tables(results)),
        METHODS, markdown(shown),
        EXPERIMENTS, markdown(studies_of(results)),
    ))  # fmt: skip


def compared_words(results: Reproduction) -> str:
    """How many of the printed numbers there are, are compared, and how near ours come."""
    rows = [row for data_set in results.data_sets.values() for row in agreement(data_set)]
    accuracy = [row for row in rows if row.kind == NDCG_AND_MAP]
    near, far, beyond = (sum(getattr(row, f"n_{at}") for row in accuracy) for at in ("near", "far", "beyond"))
    told = every_verdict(results)
    held, in_direction, failed = (sum(v.holds == answer for v in told) for answer in (YES, IN_DIRECTION, NO))
    return (
        f"- **Reproduced**: of {near + far + beyond} values of NDCG and MAP that were chosen and measured as "
        f"in the paper, **{near} are within {NEAR:g} of ours**, {far} more within {FAR:g}, {beyond} beyond.\n"
        f"- **Numbers**: the papers print {sum(row.n_printed for row in rows)} for these data. "
        f"{sum(row.n_compared for row in rows)} are compared; {sum(row.n_unlike for row in rows)} stand "
        "beside ours without a difference, because other conventions, other folds or other machines made "
        f"them; {sum(row.n_unmatched for row in rows)} have no counterpart; "
        f"{sum(row.n_not_run for row in rows)} belong to methods that were not run.\n"
        f"- **Claims**: of {len(told)} comparisons that the papers' claims make, {held} hold, "
        f"{in_direction} hold in direction but not significantly, {failed} do not hold.\n\n"
    )


def absent_words(results: Reproduction) -> str:
    """What the papers print for data that are not at hand."""
    others = {name: n for name, n in numbers_by_data_set().items() if name not in results.data_sets}
    means = others.pop("MEAN", 0)
    absent = ", ".join(f"{name} ({n})" for name, n in sorted(others.items()))
    return (
        f"\nThe papers print {sum(others.values())} more numbers for data that are not at hand: {absent}, "
        f"and {means} means over all data sets. `python -m papers bench` compares these too, given their "
        "folds; claims about time, sparsity and convergence are tried on synthetic stand-ins with their "
        "shapes.\n"
    )


def make_results() -> None:
    root = letor_root()
    if root is None:
        return
    start = time.perf_counter()
    options: dict[str, Any] = {
        "out": FOLDER,
        "n_jobs": len(os.sched_getaffinity(0)),
        "progress": report_progress,
    }
    results = bench(root, "all", data_sets=DATA_SETS, studies="all", **options)
    for data_set in DATA_SETS:
        if apart := [name for name in VARIANTS if rows_of(data_set, name)]:
            results = bench(root, apart, data_sets=[data_set], studies=False, **options)
    print(f"all fits there after {time.perf_counter() - start:.0f} s")
    with atomic_write(PAGE) as file:
        file.write(page(results))
    print(f"wrote {PAGE}")


def report_progress(done: int, total: int) -> None:
    """One line that counts fits."""
    print(f"\r{done} of {total} fits", end="" if done < total else "\n", flush=True)
