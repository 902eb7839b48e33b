"""Claims that studies decide. One function and one line in CLAIMS add a claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from papers.choices import PaperResults
from papers.claims.base import IN_DIRECTION, NO, YES, Verdict, by_difference
from papers.studies import fenchelrank, fsmrank, listmle, minbatsrank, penalties
from papers.studies.base import (
    METRIC,
    Outcome,
    better_than,
    first_row,
    fmean,
    means,
    rows_of,
)
from ranksieve.metrics.significance import SIGNIFICANCE_LEVEL


@dataclass(frozen=True)
class Finding:
    """What was measured, in words, and whether the claim holds by it."""

    words: str
    holds: str


Check = Callable[[PaperResults], Finding | None]


def verdicts(results: PaperResults) -> list[Verdict]:
    """On all claims that the studies at hand can tell of."""
    found = []
    for (paper, claim, comparison), check in CLAIMS.items():
        finding = check(results)
        if finding is not None:
            found.append(Verdict(paper, claim, comparison, finding.words, finding.holds))
    return found


def _better(pair: Sequence[Sequence[Outcome]]) -> Finding:
    """Is the first better than the second?"""
    difference, p = better_than(pair[0], pair[1])
    return Finding(_difference_words(difference, p), by_difference(difference, p))


def _difference_words(difference: float, p: float) -> str:
    return f"{difference:+.4f}, p = {min(p, 1.0 - p):.2g}"


def _outcomes(results: PaperResults, study: str, name: str) -> list[Any]:
    return [row["variants"][name] for row in rows_of(results, study)]


def importance_helps(results: PaperResults) -> Finding | None:
    if not rows_of(results, "fsmrank_parts"):
        return None
    names = (fsmrank.WITH_IMPORTANCE, fsmrank.WITHOUT_IMPORTANCE)
    fine, coarse = (
        _better([_outcomes(results, "fsmrank_parts", f"{name}{grid}") for name in names])
        for grid in ("", ", half decades")
    )
    return Finding(f"{fine.words}; with λ2 on half decades {coarse.words}", fine.holds)


def similarity_does_not_matter(results: PaperResults) -> Finding | None:
    if not rows_of(results, "fsmrank_parts"):
        return None
    names = (fsmrank.WITH_SIMILARITY, fsmrank.WITHOUT_SIMILARITY)
    with_it, without = (_outcomes(results, "fsmrank_parts", name) for name in names)
    difference, p = better_than(with_it, without)
    return Finding(_difference_words(difference, p), YES if min(p, 1.0 - p) >= SIGNIFICANCE_LEVEL else NO)


def accelerated_is_faster(results: PaperResults) -> Finding | None:
    row = first_row(results, "fsmrank_descent")
    if row is None:
        return None
    found = {name: fsmrank.iterations_to(row, name, 1e-3) for name in row["runs"]}
    ours, theirs = found["FSMRank"], found["subgradient"]
    words = f"{_count(ours)} iterations against {_count(theirs)} to 0.1 % of the optimum"
    return Finding(words, YES if ours is not None and (theirs is None or ours < theirs) else NO)


def _count(value: int | None) -> str:
    return f"more than {fsmrank.MAX_ITER}" if value is None else str(value)


def fsmrank_beats_refitted(results: PaperResults) -> Finding | None:
    """Figs. 1–3, for ten features or more."""
    rows = rows_of(results, "selectors")
    curves = [curve[METRIC] for curve in results.curves("fsmrank")]
    sizes = [s for s in (rows[0]["n_features"] if rows else ()) if s >= 10]
    shared = [s for s in sizes if all(s in row["n_features"] for row in rows)]
    if not curves or not all(curves) or not shared:
        return None
    cut = {s: fmean([curve[min(s, len(curve)) - 1] for curve in curves]) for s in shared}
    wins = {
        name: sum(
            cut[s] > fmean([r["selectors"][name]["test"][METRIC][r["n_features"].index(s)] for r in rows])
            for s in shared
        )
        for name in ("gas", "fsmsvm")
    }
    words = f"above GAS-E for {wins['gas']}, above FSMSVM for {wins['fsmsvm']} of {len(shared)} sizes"
    return Finding(words, YES if min(wins.values()) == len(shared) else NO)


def feature_wise_helps(results: PaperResults) -> Finding | None:
    rows = rows_of(results, "minbatsrank_rates")
    pair = [minbatsrank.seed_means(rows, name) for name in (minbatsrank.FEATURE_WISE, minbatsrank.NONFEA)]
    return _better(pair) if all(pair) else None


def fenchelrank_is_faster(results: PaperResults) -> Finding | None:
    return _race(results, "seconds", "{:.2f} s against {:.2f} s")


def fenchelrank_is_sparser(results: PaperResults) -> Finding | None:
    return _race(results, "sparsity", "{:.3f} against {:.3f}")


def _race(results: PaperResults, key: str, form: str) -> Finding | None:
    """At the paper's C, which decides, and at the α that validation chooses."""
    rows = rows_of(results, "fenchelrank_radius")
    found = {}
    for name in (fenchelrank.PRINTED, fenchelrank.CHOSEN) if rows else ():
        runs = [row["alphas"][name]["runs"] for row in rows]
        if all("FenchelRank" in run for run in runs):
            found[name] = [fmean([run[of][key] for run in runs]) for of in ("FenchelRank", "TGRank")]
    if fenchelrank.PRINTED not in found:
        return None
    words = "; ".join(f"{form.format(*pair)} ({name})" for name, pair in found.items())
    ours, theirs = found[fenchelrank.PRINTED]
    return Finding(words, YES if ours < theirs else NO)


def selection_helps(results: PaperResults) -> Finding | None:
    found = _fsrank(results)
    if not found or "ranksvm" not in results.results:
        return None
    dense = results.results["ranksvm"].mean(METRIC)
    wins = sum(value > dense for value in found.values())
    words = f"for {wins} of {len(found)} k: {_range(found)} against {dense:.4f}"
    return Finding(words, YES if wins == len(found) else NO)


def fenchelrank_beats_fsrank(results: PaperResults) -> Finding | None:
    found = _fsrank(results)
    if not found or "fenchelrank" not in results.results:
        return None
    sparse = results.results["fenchelrank"].mean(METRIC)
    wins = sum(value < sparse for value in found.values())
    words = f"for {wins} of {len(found)} k: {sparse:.4f} against {_range(found)}"
    return Finding(words, YES if wins == len(found) else NO)


def _range(found: dict[int, float]) -> str:
    return f"N@10 {min(found.values()):.4f} to {max(found.values()):.4f}"


def _fsrank(results: PaperResults) -> dict[int, float]:
    """NDCG@10 of FS-Rank for each k of Table 7 that there is."""
    rows = rows_of(results, "selectors")
    sizes = [s for s in (5, 10, 15, 20, 25) if rows and all(s in row["n_features"] for row in rows)]
    return {
        s: fmean([row["selectors"]["fsrank"]["test"][METRIC][row["n_features"].index(s)] for row in rows])
        for s in sizes
    }


def sparse_listmle_beats_dense(results: PaperResults) -> Finding | None:
    if not rows_of(results, "listmle_cutoffs"):
        return None
    pairs = [
        better_than(
            _outcomes(results, "listmle_cutoffs", listmle.SPARSE.format(k)),
            _outcomes(results, "listmle_cutoffs", listmle.DENSE.format(k)),
        )
        for k in listmle.DENSE_CUTOFFS
    ]
    wins, sure = sum(d > 0 for d, _ in pairs), sum(p < SIGNIFICANCE_LEVEL for _, p in pairs)
    words = f"for {wins} of {len(pairs)} k, significantly for {sure}"
    return Finding(words, NO if wins < len(pairs) else YES if sure == wins else IN_DIRECTION)


def listmle_is_sparsest(results: PaperResults) -> Finding | None:
    rows, names = rows_of(results, "listmle_cutoffs"), listmle.SPARSE_OTHERS
    others = [results.results[name].to_row()["sparsity"] for name in names if name in results.results]
    if not rows or not others:
        return None
    share = fmean([row["degrees"]["1"][listmle.DEGREE_ALPHAS.index(1e-2)] for row in rows])
    words = f"{share:.3f}, the others {min(others):.3f} or more"
    return Finding(words, YES if share < min(others) else NO)


def some_size_beats_all(results: PaperResults) -> Finding | None:
    rows = rows_of(results, "listmle_sizes")
    if not rows or len({tuple(row["K"]) for row in rows}) > 1 or len(rows[0]["K"]) < 2:
        return None
    size, fewer = listmle.best_size(rows)
    every = [row["variants"][-1] for row in rows]
    difference, p = better_than(fewer, every)
    words = (
        f"K = {size}: {means(fewer)[METRIC]:.4f}, all: {means(every)[METRIC]:.4f}, p = {min(p, 1 - p):.2g}"
    )
    return Finding(words, by_difference(difference, p))


def penalties_rank_alike(results: PaperResults) -> Finding | None:
    found = penalties.by_map(results)
    if len(found) < 2:
        return None
    words, equal = [], True
    for metric, label in (("map", "MAP"), (METRIC, "N@10")):
        best = max(found, key=lambda name: means(found[name])[metric])
        p_values = {n: better_than(found[best], found[n], metric)[1] for n in found if n != best}
        worse = [n for n, p in p_values.items() if p < SIGNIFICANCE_LEVEL]
        words.append(f"{label}: {len(worse)} of {len(found) - 1} significantly below the best")
        equal = equal and not worse
    return Finding("; ".join(words), YES if equal else NO)


def fenchelrank_bound_holds(results: PaperResults) -> Finding | None:
    return _iterations(results, "fenchelrank_bounds")


def listmle_bound_holds(results: PaperResults) -> Finding | None:
    return _iterations(results, "listmle_bounds")


def _iterations(results: PaperResults, study: str) -> Finding | None:
    """No run needs more than its bound; a run that ended before it got there decides nothing."""
    runs = (first_row(results, study) or {}).get("runs", ())
    ended = [run for run in runs if run["needed"] is not None]
    if not ended:
        return None
    slack = [run["bound"] / max(run["needed"], 1) for run in ended]
    undecided = f", {len(runs) - len(ended)} undecided" if len(runs) > len(ended) else ""
    words = f"{len(ended)} runs: {min(slack):.0f} to {max(slack):.0f} times fewer than the bound{undecided}"
    return Finding(words, YES if all(run["needed"] <= run["bound"] for run in ended) else NO)


def fsmrank_bounds_hold(results: PaperResults) -> Finding | None:
    row = first_row(results, "fsmrank_bounds") or {}
    found = {part: (row[part], row[f"{part}_bound"]) for part in ("distance", "excess") if part in row}
    if not found:
        return None
    words = "; ".join(f"{part} {value:.2g}, bound {bound:.3g}" for part, (value, bound) in found.items())
    return Finding(words, YES if all(value <= bound for value, bound in found.values()) else NO)


CLAIMS: dict[tuple[str, str, str], Check] = {
    (
        "FSMRank", "importance of features improves accuracy",
        "table III: N@10 with s = |Pearson|, less with s = 1",
    ): importance_helps,
    (
        "FSMRank", "similarity makes no significant difference",
        "§IV.D: N@10 with A = |Pearson|, less with A = I",
    ): similarity_does_not_matter,
    (
        "FSMRank", "converges faster than a subgradient method",
        "figure 5: iterations to 0.1 % of the optimum",
    ): accelerated_is_faster,
    (
        "FSMRank", "better than other selectors for most numbers of features",
        "figures 1–3: N@10, cut to t ≥ 10 features, above GAS-E and FSMSVM",
    ): fsmrank_beats_refitted,
    (
        "MinBatSRank", "feature-wise rates beat one rate for all",
        "figure 2: N@10, less that of Nonfea with its rate tuned as widely",
    ): feature_wise_helps,
    (
        "FenchelRank", "faster than other sparse methods",
        "table 6: seconds below TGRank's at a matched radius",
    ): fenchelrank_is_faster,
    (
        "FenchelRank", "sparser than other sparse methods", "table 6: below TGRank at a matched radius",
    ): fenchelrank_is_sparser,
    (
        "FenchelRank", "choosing features helps RankSVM",
        "table 7: N@10 of FS-Rank above RankSVM-Primal for every k",
    ): selection_helps,
    (
        "FenchelRank", "better than choosing features", "table 7: N@10 above FS-Rank for every k",
    ): fenchelrank_beats_fsrank,
    (
        "SparseCSListMLE", "sparse above dense", "table 2: N@10 for every k",
    ): sparse_listmle_beats_dense,
    (
        "SparseCSListMLE", "sparser than other sparse methods", "table 5: at λ = 0.01, k = 1",
    ): listmle_is_sparsest,
    (
        "SparseCSListMLE", "some K below all features is best", "figure 3: N@10 with K chosen on valid",
    ): some_size_beats_all,
    (
        "NonconvexRankSVM", "no method is significantly below the best", "tables V, VI",
    ): penalties_rank_alike,
    ("FenchelRank", "theorem 1: iterations", "needed, and the bound"): fenchelrank_bound_holds,
    ("FSMRank", "theorems 2 and 3", "distance and excess loss below their bounds"): fsmrank_bounds_hold,
    ("SparseCSListMLE", "theorem 2(d): iterations", "needed, and the bound"): listmle_bound_holds,
}  # fmt: skip
