"""Claims that compare a value of a method with that of other methods. To add a claim, add it to CLAIMS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from papers.choices import PaperResults
from papers.claims.base import NO, NOT_SIGNIFICANT, YES, ClaimVerdict, holds_by_difference
from ranksieve.experiment.tables import method_title, metric_heading
from ranksieve.metrics.significance import SIGNIFICANCE_LEVEL, paired_t

BOTH = ("OHSUMED", "MQ2008")
FORMATS = {"sparsity": "{:.3f}", "density": "{:.3f}", "fit_seconds": "{:.3g} s"}


@dataclass(frozen=True)
class PairedValues:
    """The values of two methods; for a metric also the p-values that the first is better, or worse."""

    first: float
    second: float
    p_better: float | None = None
    p_worse: float | None = None


@dataclass(frozen=True)
class Relation:
    """The claimed relation of two values: its text, and whether it holds."""

    text: str
    holds: Callable[[PairedValues], str]


def _above(pair: PairedValues) -> str:
    return holds_by_difference(pair.first - pair.second, 1.0 if pair.p_better is None else pair.p_better)


def _significantly_above(pair: PairedValues) -> str:
    return NO if _above(pair) == NOT_SIGNIFICANT else _above(pair)


ABOVE = Relation("above", _above)
SIGNIFICANTLY_ABOVE = Relation("significantly above", _significantly_above)
AS_GOOD = Relation(
    "not significantly below",
    lambda pair: YES if pair.p_worse is not None and pair.p_worse >= SIGNIFICANCE_LEVEL else NO,
)
BELOW = Relation("below", lambda pair: YES if pair.first < pair.second else NO)
HALF = Relation("at most half of", lambda pair: YES if pair.first <= 0.5 * pair.second else NO)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper as comparisons of one method with others, on the data sets it is about.

    ``measure`` is a metric, or a column of :meth:`MethodResult.to_row`.
    """

    paper: str
    text: str
    method: str
    relation: Relation
    others: Sequence[str]
    measure: str = "ndcg@10"
    data_sets: Sequence[str] = BOTH

    def verdicts(self, results: PaperResults) -> Iterator[ClaimVerdict]:
        """One verdict for each of the other methods that was run."""
        if results.name not in self.data_sets or self.method not in results.results:
            return
        measure = {TIME: "fit seconds"}.get(self.measure, metric_heading(self.measure))
        for other in self.others:
            if other in results.results:
                pair = compare_methods(results, self.method, other, self.measure)
                comparison = (
                    f"{measure} of {method_title(self.method)} {self.relation.text} {method_title(other)}"
                )
                result = result_text(pair, FORMATS.get(self.measure, "{:.4f}"))
                yield ClaimVerdict(self.paper, self.text, comparison, result, self.relation.holds(pair))


def result_text(pair: PairedValues, form: str) -> str:
    """Both values, and for metrics the p-value for the better side."""
    text = f"{form.format(pair.first)} against {form.format(pair.second)}"
    if pair.p_better is None or pair.p_worse is None:
        return text
    return f"{text}, p = {min(pair.p_better, pair.p_worse):.2g}"


def compare_methods(results: PaperResults, method: str, other: str, measure: str) -> PairedValues:
    """The means of two methods over folds, and paired one-sided t-tests over the queries of all folds."""
    first, second = (results.results[name].to_row()[measure] for name in (method, other))
    a, b = (results.pooled[name].per_query.get(measure) for name in (method, other))
    if a is None or b is None:
        return PairedValues(first, second)
    return PairedValues(first, second, paired_t(a, b, "greater"), paired_t(b, a, "greater"))


FENCHEL, FSM, MINBAT, LAPORTE, LISTMLE = (
    "FenchelRank", "FSMRank", "MinBatSRank", "NonconvexRankSVM", "SparseCSListMLE",
)  # fmt: skip
CONVEX = ("ranksvm-l1", "fenchelrank", "fsmrank")
OHSUMED = ("OHSUMED",)
SPARSE, TIME = "sparsity", "fit_seconds"
CLAIMS: tuple[Claim, ...] = (
    Claim(FENCHEL, "sparse models rank better than dense ones", "fenchelrank", ABOVE, ["ranksvm"]),
    Claim(FENCHEL, "sparse models rank better than dense ones", "fenchelrank", ABOVE, ["ranksvm"], "map"),
    Claim(FENCHEL, "ranks better than other sparse methods", "fenchelrank", ABOVE, ["tgrank", "rsrank"]),
    Claim(FENCHEL, "sparser than other sparse methods", "fenchelrank", BELOW, ["tgrank", "rsrank"], SPARSE),
    Claim(FENCHEL, "faster than other sparse methods", "fenchelrank", BELOW, ["tgrank"], TIME),
    Claim(
        FENCHEL, "competitive with the state of the art", "fenchelrank", AS_GOOD,
        ["ranksvmstruct", "listnet", "adarank-ndcg", "rankboost"],
    ),
    Claim(FSM, "better than other selectors", "fsmrank", ABOVE, ["gas", "fsmsvm"]),
    Claim(FSM, "better than other selectors", "fsmrank", ABOVE, ["gas", "fsmsvm"], "map"),
    Claim(
        FSM, "significantly better than other selectors", "fsmrank", SIGNIFICANTLY_ABOVE, ["gas", "fsmsvm"],
        "map",
    ),
    Claim(
        FSM, "outperforms the state of the art on OHSUMED", "fsmrank", ABOVE,
        ["ranksvm", "ranksvmstruct", "listnet", "adarank-ndcg", "rankboost", "svmmap"], data_sets=OHSUMED,
    ),
    Claim(
        FSM, "competitive with the state of the art on MQ2008", "fsmrank", AS_GOOD,
        ["ranksvm", "ranksvmstruct", "listnet", "adarank-ndcg", "rankboost", "svmmap"], data_sets=("MQ2008",),
    ),
    Claim(
        MINBAT, "better than other sparse methods", "minbatsrank", ABOVE, ["fenchelrank", "proxrank"],
        data_sets=OHSUMED,
    ),
    Claim(
        MINBAT, "better than dense methods", "minbatsrank", ABOVE, ["listnet", "adarank-ndcg", "ranksvm"],
        data_sets=OHSUMED,
    ),
    Claim(
        MINBAT, "sparser than other sparse methods", "minbatsrank", BELOW, ["fenchelrank", "proxrank"],
        SPARSE, OHSUMED,
    ),
    Claim(
        MINBAT, "faster than other sparse methods", "minbatsrank", BELOW, ["fenchelrank", "proxrank"],
        TIME, OHSUMED,
    ),
    Claim(LAPORTE, "log, ℓ0.5 use half the features of convex methods", "ranksvm-log", HALF, CONVEX, SPARSE),
    Claim(LAPORTE, "log, ℓ0.5 use half the features of convex methods", "ranksvm-l0.5", HALF, CONVEX, SPARSE),
    Claim(LAPORTE, "nonconvex penalties are sparser than ℓ1", "ranksvm-mcp", BELOW, ["ranksvm-l1"], SPARSE),
    Claim(LAPORTE, "nonconvex penalties rank as well", "ranksvm-log", AS_GOOD, CONVEX, "map"),
    Claim(LAPORTE, "nonconvex penalties rank as well", "ranksvm-l0.5", AS_GOOD, CONVEX, "map"),
    Claim(LAPORTE, "nonconvex penalties rank as well", "ranksvm-mcp", AS_GOOD, CONVEX, "map"),
    Claim(LAPORTE, "MCP is best on OHSUMED", "ranksvm-mcp", ABOVE, ["ranksvm-l1"], "map", OHSUMED),
    Claim(LISTMLE, "sparse above dense", "sparselistmle", ABOVE, ["cslistmle", "csranksvm"]),
    Claim(
        LISTMLE, "better than other sparse methods", "sparselistmle", ABOVE,
        ["proxrank", "fenchelrank", "rsrank"], data_sets=OHSUMED,
    ),
    Claim(
        LISTMLE, "sparser than other sparse methods", "sparselistmle", BELOW,
        ["proxrank", "fenchelrank", "rsrank"], SPARSE, OHSUMED,
    ),
    Claim(LISTMLE, "trains faster than the dense method", "sparselistmle", BELOW, ["cslistmle"], TIME),
    Claim(
        LISTMLE, "competitive with the state of the art", "sparselistmle", AS_GOOD,
        ["lambdamart", "listnet", "adarank-ndcg", "rankboost"],
    ),
)  # fmt: skip


def verdicts(results: PaperResults) -> list[ClaimVerdict]:
    """Verdicts on all claims about methods in the results."""
    return [verdict for claim in CLAIMS for verdict in claim.verdicts(results)]
