"""Claims about methods: a number of one beside that of others. One line in CLAIMS adds a claim."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from papers.choices import PaperResults
from papers.claims.base import IN_DIRECTION, NO, YES, Verdict, by_difference
from ranksieve.experiment.tables import method_title, metric_heading
from ranksieve.metrics.significance import SIGNIFICANCE_LEVEL, paired_t

BOTH = ("OHSUMED", "MQ2008")
WRITTEN = {"sparsity": "{:.3f}", "varying_sparsity": "{:.3f}", "fit_seconds": "{:.3g} s"}


@dataclass(frozen=True)
class Compared:
    """A number of two methods, and, for a metric, the p-values of either being better over all queries."""

    ours: float
    theirs: float
    p_better: float | None = None
    p_worse: float | None = None


@dataclass(frozen=True)
class Relation:
    """What a claim says of two numbers: in words, and whether it holds."""

    words: str
    holds: Callable[[Compared], str]


def _above(at: Compared) -> str:
    return by_difference(at.ours - at.theirs, 1.0 if at.p_better is None else at.p_better)


def _significantly_above(at: Compared) -> str:
    return NO if _above(at) == IN_DIRECTION else _above(at)


ABOVE = Relation("above", _above)
SIGNIFICANTLY_ABOVE = Relation("significantly above", _significantly_above)
AS_GOOD = Relation(
    "not significantly below",
    lambda at: YES if at.p_worse is not None and at.p_worse >= SIGNIFICANCE_LEVEL else NO,
)
BELOW = Relation("below", lambda at: YES if at.ours < at.theirs else NO)
HALF = Relation("at most half of", lambda at: YES if at.ours <= 0.5 * at.theirs else NO)


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper as comparisons of one method with others, on the data sets it is about.

    ``measure`` is a metric, or a column of :meth:`MethodResult.to_row`.
    """

    paper: str
    words: str
    method: str
    relation: Relation
    others: Sequence[str]
    measure: str = "ndcg@10"
    data_sets: Sequence[str] = BOTH

    def verdicts(self, results: PaperResults) -> Iterator[Verdict]:
        """One for each of the other methods, as far as they were run."""
        if results.name not in self.data_sets or self.method not in results.results:
            return
        measure = {TIME: "seconds of a fit"}.get(self.measure, metric_heading(self.measure))
        for other in self.others:
            if other in results.results:
                at = compared(results, self.method, other, self.measure)
                said = f"{measure} of {method_title(self.method)} {self.relation.words} {method_title(other)}"
                found = found_words(at, WRITTEN.get(self.measure, "{:.4f}"))
                yield Verdict(self.paper, self.words, said, found, self.relation.holds(at))


def found_words(at: Compared, form: str) -> str:
    """The numbers, and for metrics the p-value of the side that is better."""
    text = f"{form.format(at.ours)} against {form.format(at.theirs)}"
    if at.p_better is None or at.p_worse is None:
        return text
    return f"{text}, p = {min(at.p_better, at.p_worse):.2g}"


def compared(results: PaperResults, method: str, other: str, measure: str) -> Compared:
    """The means of two methods over folds, and paired one-sided t-tests over the queries of all folds."""
    ours, theirs = (results.results[name].to_row()[measure] for name in (method, other))
    a, b = (results.pooled[name].per_query.get(measure) for name in (method, other))
    if a is None or b is None:
        return Compared(ours, theirs)
    return Compared(ours, theirs, paired_t(a, b, "greater"), paired_t(b, a, "greater"))


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


def verdicts(results: PaperResults) -> list[Verdict]:
    """On all claims that the results can tell of."""
    return [verdict for claim in CLAIMS for verdict in claim.verdicts(results)]
