"""Claims checked on the results of studies. To add a claim, add a function and an entry in CLAIMS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from papers.choices import PaperResults
from papers.claims.base import NO, NOT_SIGNIFICANT, YES, ClaimVerdict, holds_by_difference
from papers.studies import fenchelrank, fsmrank, listmle, minbatsrank, penalties
from papers.studies.base import (
    METRIC,
    Outcome,
    compare_outcomes,
    first_row,
    fmean,
    means,
    rows_of,
)
from ranksieve.metrics.significance import SIGNIFICANCE_LEVEL


@dataclass(frozen=True)
class Finding:
    """The result as text, and whether the claim holds."""

    text: str
    holds: str


Check = Callable[[PaperResults], Finding | None]


def verdicts(results: PaperResults) -> list[ClaimVerdict]:
    """Verdicts on all claims about studies in the results."""
    verdict_list = []
    for (paper, claim, comparison), check in CLAIMS.items():
        finding = check(results)
        if finding is not None:
            verdict_list.append(ClaimVerdict(paper, claim, comparison, finding.text, finding.holds))
    return verdict_list


def _is_better(first: Sequence[Outcome], second: Sequence[Outcome]) -> Finding:
    """Whether the first is better than the second."""
    difference, p = compare_outcomes(first, second)
    return Finding(_difference_text(difference, p), holds_by_difference(difference, p))


def _difference_text(difference: float, p: float) -> str:
    return f"{difference:+.4f}, p = {min(p, 1.0 - p):.2g}"


def _outcomes(results: PaperResults, study: str, name: str) -> list[Any]:
    return [row["variants"][name] for row in rows_of(results, study)]


def importance_helps(results: PaperResults) -> Finding | None:
    if not rows_of(results, "fsmrank_parts"):
        return None
    names = (fsmrank.WITH_IMPORTANCE, fsmrank.WITHOUT_IMPORTANCE)
    fine, coarse = (
        _is_better(*(_outcomes(results, "fsmrank_parts", f"{name}{grid}") for name in names))
        for grid in ("", ", half decades")
    )
    return Finding(f"{fine.text}; with λ2 on half decades {coarse.text}", fine.holds)


def similarity_does_not_matter(results: PaperResults) -> Finding | None:
    if not rows_of(results, "fsmrank_parts"):
        return None
    names = (fsmrank.WITH_SIMILARITY, fsmrank.WITHOUT_SIMILARITY)
    with_similarity, without = (_outcomes(results, "fsmrank_parts", name) for name in names)
    difference, p = compare_outcomes(with_similarity, without)
    return Finding(_difference_text(difference, p), YES if min(p, 1.0 - p) >= SIGNIFICANCE_LEVEL else NO)


def accelerated_is_faster(results: PaperResults) -> Finding | None:
    row = first_row(results, "fsmrank_descent")
    if row is None:
        return None
    iterations = {name: fsmrank.iterations_to(row, name, 1e-3) for name in row["runs"]}
    accelerated, subgradient = iterations["FSMRank"], iterations["subgradient"]
    text = f"{_count_text(accelerated)} iterations against {_count_text(subgradient)}"
    faster = accelerated is not None and (subgradient is None or accelerated < subgradient)
    return Finding(text, YES if faster else NO)


def _count_text(iterations: int | None) -> str:
    return f"more than {fsmrank.MAX_ITER}" if iterations is None else str(iterations)


def fsmrank_beats_refitted(results: PaperResults) -> Finding | None:
    """Figs. 1–3, for at least ten features."""
    rows = rows_of(results, "selectors")
    curves = [curve[METRIC] for curve in results.truncation_curves("fsmrank")]
    sizes = [s for s in (rows[0]["n_features"] if rows else ()) if s >= 10]
    shared = [s for s in sizes if all(s in row["n_features"] for row in rows)]
    if not curves or not all(curves) or not shared:
        return None
    truncated = {s: fmean([curve[min(s, len(curve)) - 1] for curve in curves]) for s in shared}
    wins = {
        name: sum(
            truncated[s]
            > fmean([r["selectors"][name]["test"][METRIC][r["n_features"].index(s)] for r in rows])
            for s in shared
        )
        for name in ("gas", "fsmsvm")
    }
    text = f"above GAS-E for {wins['gas']}, above FSMSVM for {wins['fsmsvm']} of {len(shared)} sizes"
    return Finding(text, YES if min(wins.values()) == len(shared) else NO)


def feature_wise_helps(results: PaperResults) -> Finding | None:
    rows = rows_of(results, "minbatsrank_rates")
    names = (minbatsrank.FEATURE_WISE, minbatsrank.NONFEA)
    feature_wise, nonfea = (minbatsrank.seed_means(rows, name) for name in names)
    return _is_better(feature_wise, nonfea) if feature_wise and nonfea else None


def fenchelrank_is_faster(results: PaperResults) -> Finding | None:
    return _at_matched_radius(results, "seconds", "{:.2f} s against {:.2f} s")


def fenchelrank_is_sparser(results: PaperResults) -> Finding | None:
    return _at_matched_radius(results, "sparsity", "{:.3f} against {:.3f}")


def _at_matched_radius(results: PaperResults, key: str, form: str) -> Finding | None:
    """Values with the paper's C and with the selected α; the claim is about the first."""
    rows = rows_of(results, "fenchelrank_radius")
    pairs = {}
    for name in (fenchelrank.PAPER_C, fenchelrank.SELECTED) if rows else ():
        runs = [row["alphas"][name]["runs"] for row in rows]
        if all("FenchelRank" in run for run in runs):
            pairs[name] = [fmean([run[method][key] for run in runs]) for method in ("FenchelRank", "TGRank")]
    if fenchelrank.PAPER_C not in pairs:
        return None
    text = "; ".join(f"{form.format(*pair)} ({fenchelrank.LABELS[name]})" for name, pair in pairs.items())
    value, tgrank_value = pairs[fenchelrank.PAPER_C]
    return Finding(text, YES if value < tgrank_value else NO)


def selection_helps(results: PaperResults) -> Finding | None:
    fsrank = _fsrank_ndcg(results)
    if not fsrank or "ranksvm" not in results.results:
        return None
    dense = results.results["ranksvm"].mean(METRIC)
    wins = sum(value > dense for value in fsrank.values())
    text = f"for {wins} of {len(fsrank)} k: {_range(fsrank)} against {dense:.4f}"
    return Finding(text, YES if wins == len(fsrank) else NO)


def fenchelrank_beats_fsrank(results: PaperResults) -> Finding | None:
    fsrank = _fsrank_ndcg(results)
    if not fsrank or "fenchelrank" not in results.results:
        return None
    sparse = results.results["fenchelrank"].mean(METRIC)
    wins = sum(value < sparse for value in fsrank.values())
    text = f"for {wins} of {len(fsrank)} k: {sparse:.4f} against {_range(fsrank)}"
    return Finding(text, YES if wins == len(fsrank) else NO)


def _range(values: dict[int, float]) -> str:
    return f"{min(values.values()):.4f} to {max(values.values()):.4f}"


def _fsrank_ndcg(results: PaperResults) -> dict[int, float]:
    """NDCG@10 of FS-Rank for each k in Table 7 that is in the results."""
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
        compare_outcomes(
            _outcomes(results, "listmle_cutoffs", listmle.SPARSE.format(k)),
            _outcomes(results, "listmle_cutoffs", listmle.DENSE.format(k)),
        )
        for k in listmle.DENSE_CUTOFFS
    ]
    wins, n_significant = sum(d > 0 for d, _ in pairs), sum(p < SIGNIFICANCE_LEVEL for _, p in pairs)
    text = f"for {wins} of {len(pairs)} k, significant for {n_significant}"
    return Finding(text, NO if wins < len(pairs) else YES if n_significant == wins else NOT_SIGNIFICANT)


def listmle_is_sparsest(results: PaperResults) -> Finding | None:
    rows, names = rows_of(results, "listmle_cutoffs"), listmle.SPARSE_OTHERS
    others = [results.results[name].to_row()["sparsity"] for name in names if name in results.results]
    if not rows or not others:
        return None
    share = fmean([row["degrees"]["1"][listmle.DEGREE_ALPHAS.index(1e-2)] for row in rows])
    return Finding(f"{share:.3f}, others at least {min(others):.3f}", YES if share < min(others) else NO)


def some_size_beats_all(results: PaperResults) -> Finding | None:
    rows = rows_of(results, "listmle_sizes")
    if not rows or len({tuple(row["K"]) for row in rows}) > 1 or len(rows[0]["K"]) < 2:
        return None
    size, fewer = listmle.best_size(rows)
    all_features = [row["variants"][-1] for row in rows]
    difference, p = compare_outcomes(fewer, all_features)
    values = f"K = {size}: {means(fewer)[METRIC]:.4f}, all: {means(all_features)[METRIC]:.4f}"
    text = f"{values}, p = {min(p, 1 - p):.2g}"
    return Finding(text, holds_by_difference(difference, p))


def penalties_rank_equally(results: PaperResults) -> Finding | None:
    outcomes = penalties.map_outcomes(results)
    if len(outcomes) < 2:
        return None
    texts, equal = [], True
    for metric, label in (("map", "MAP"), (METRIC, "N@10")):
        best = max(outcomes, key=lambda name: means(outcomes[name])[metric])
        p_values = {
            name: compare_outcomes(outcomes[best], outcomes[name], metric)[1]
            for name in outcomes
            if name != best
        }
        worse = [name for name, p in p_values.items() if p < SIGNIFICANCE_LEVEL]
        texts.append(f"{label}: {len(worse)} of {len(outcomes) - 1} significantly below the best")
        equal = equal and not worse
    return Finding("; ".join(texts), YES if equal else NO)


def fenchelrank_bound_holds(results: PaperResults) -> Finding | None:
    return _within_bound(results, "fenchelrank_bounds")


def listmle_bound_holds(results: PaperResults) -> Finding | None:
    return _within_bound(results, "listmle_bounds")


def _within_bound(results: PaperResults, study: str) -> Finding | None:
    """Whether every run needs at most its bound; a run stopped before reaching the accuracy is undecided."""
    runs = (first_row(results, study) or {}).get("runs", ())
    decided = [run for run in runs if run["needed"] is not None]
    if not decided:
        return None
    ratios = [run["bound"] / max(run["needed"], 1) for run in decided]
    undecided = f", {len(runs) - len(decided)} undecided" if len(runs) > len(decided) else ""
    fewer = f"{min(ratios):.0f} to {max(ratios):.0f} times fewer iterations than the bound"
    text = f"{len(decided)} runs: {fewer}{undecided}"
    return Finding(text, YES if all(run["needed"] <= run["bound"] for run in decided) else NO)


def fsmrank_bounds_hold(results: PaperResults) -> Finding | None:
    row = first_row(results, "fsmrank_bounds") or {}
    pairs = {part: (row[part], row[f"{part}_bound"]) for part in ("distance", "excess") if part in row}
    if not pairs:
        return None
    text = "; ".join(f"{part} {value:.2g}, bound {bound:.3g}" for part, (value, bound) in pairs.items())
    return Finding(text, YES if all(value <= bound for value, bound in pairs.values()) else NO)


CLAIMS: dict[tuple[str, str, str], Check] = {
    (
        "FSMRank", "importance of features improves accuracy",
        "table III: N@10 with s = |Pearson| minus s = 1",
    ): importance_helps,
    (
        "FSMRank", "similarity makes no significant difference",
        "§IV.D: N@10 with A = |Pearson| minus A = I",
    ): similarity_does_not_matter,
    (
        "FSMRank", "converges faster than a subgradient method",
        "figure 5: iterations to 0.1 % of the optimum",
    ): accelerated_is_faster,
    (
        "FSMRank", "better than other selectors for most numbers of features",
        "figures 1–3: N@10, truncated to t ≥ 10 features, above GAS-E and FSMSVM",
    ): fsmrank_beats_refitted,
    (
        "MinBatSRank", "feature-wise rates beat one rate for all",
        "figure 2: N@10 minus Nonfea with an equally tuned rate",
    ): feature_wise_helps,
    (
        "FenchelRank", "faster than other sparse methods",
        "table 6: seconds below TGRank at a matched radius",
    ): fenchelrank_is_faster,
    (
        "FenchelRank", "sparser than other sparse methods",
        "table 6: sparsity below TGRank at a matched radius",
    ): fenchelrank_is_sparser,
    (
        "FenchelRank", "feature selection helps RankSVM",
        "table 7: N@10 of FS-Rank above RankSVM-Primal for every k",
    ): selection_helps,
    (
        "FenchelRank", "better than feature selection", "table 7: N@10 above FS-Rank for every k",
    ): fenchelrank_beats_fsrank,
    (
        "SparseCSListMLE", "sparse above dense", "table 2: N@10 for every k",
    ): sparse_listmle_beats_dense,
    (
        "SparseCSListMLE", "sparser than other sparse methods", "table 5: at λ = 0.01, k = 1",
    ): listmle_is_sparsest,
    (
        "SparseCSListMLE", "some K below all features is best",
        "figure 3: N@10 with K selected on validation data",
    ): some_size_beats_all,
    (
        "NonconvexRankSVM", "no method is significantly below the best", "tables V, VI",
    ): penalties_rank_equally,
    ("FenchelRank", "theorem 1: iterations", "iterations within the bound"): fenchelrank_bound_holds,
    ("FSMRank", "theorems 2 and 3", "distance and excess loss within their bounds"): fsmrank_bounds_hold,
    ("SparseCSListMLE", "theorem 2(d): iterations", "iterations within the bound"): listmle_bound_holds,
}  # fmt: skip
