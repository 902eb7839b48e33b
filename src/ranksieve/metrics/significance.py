"""Paired tests between evaluations: Student's t, Fisher's randomisation, Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve._util.files import to_plain
from ranksieve.errors import DataError, ParameterError
from ranksieve.metrics.evaluate import Evaluation, parse_all
from ranksieve.metrics.table import MetricSpec
from ranksieve.show.formats import metric_title, plural, signed
from ranksieve.show.result import Part, Shown, Table

SIGNIFICANCE_LEVEL = 0.05
"""A difference with a p-value below this is called significant."""

Alternative: TypeAlias = Literal["two-sided", "greater"]

_ROUNDING = 1e-12  # relative differences below this are rounding errors of sums in another order
_CHUNK_CELLS = 1_000_000


@dataclass(frozen=True)
class PairedTest:
    """Comparison of ``a`` with ``b``: ``difference = mean_a − mean_b``; ``wins``: ``a`` is higher.

    ``relative_change`` is the difference divided by mean_b, NaN if mean_b is 0. The ``holm`` p-values are
    corrected for all pairs of the metric.
    """

    metric: str
    a: str
    b: str
    n_queries: int
    mean_a: float
    mean_b: float
    difference: float
    relative_change: float
    wins: int
    ties: int
    losses: int
    p_t: float
    p_randomisation: float
    p_t_holm: float = math.nan
    p_randomisation_holm: float = math.nan


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """One row per pair and metric, and the settings of the tests."""

    rows: tuple[PairedTest, ...]
    baseline: str | None
    alternative: Alternative
    n_permutations: int
    random_state: int

    def _line(self) -> str:
        first = self.rows[0]
        tests = f"{first.a} − {first.b} {signed(first.difference)} {metric_title(first.metric)}"
        more = f" and {plural(len(self.rows) - 1, 'more test')}" if len(self.rows) > 1 else ""
        return f"{tests}, p = {first.p_t:.2g} (t), {first.p_randomisation:.2g} (randomisation){more}"

    def shown(self) -> Sequence[Part]:
        """One row per pair and metric."""
        columns = ["metric", "a", "b", "a - b", "wins", "ties", "losses", "p (t)", "Holm"]
        rows = [
            (metric_title(r.metric), r.a, r.b, f"{r.difference:+.4f}", r.wins, r.ties, r.losses,
             r.p_t, r.p_t_holm, r.p_randomisation, r.p_randomisation_holm)
            for r in self.rows
        ]  # fmt: skip
        note = (
            f"Paired tests over queries, {self.alternative}: t-test and randomisation; "
            "Holm: corrected for the number of pairs per metric."
        )
        return [Table([*columns, "p (random)", "Holm"], rows), note]

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """All fields of the rows."""
        return {one.name: [getattr(row, one.name) for row in self.rows] for one in fields(PairedTest)}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN becomes None."""
        return {**vars(self), "rows": [to_plain(asdict(row)) for row in self.rows]}


def compare(
    evaluations: Mapping[str, Evaluation],
    baseline: str | None = None,
    metrics: str | Sequence[str | MetricSpec] | None = None,
    n_permutations: int = 10_000,
    random_state: int = 0,
    alternative: Alternative = "two-sided",
) -> Comparison:
    """Test every pair of evaluations, or each against ``baseline``, query by query.

    Parameters
    ----------
    evaluations : mapping of name to Evaluation
        Of the same queries, with the same profile. Without a baseline, ``a`` is the earlier name of a pair.
    baseline : str, optional
        The ``b`` of every pair.
    metrics : str or sequence of str, optional
        Default: all metrics that the evaluations have in common.
    n_permutations : int
        Number of random sign patterns in the randomisation test; if there are no more patterns than this, the
        test is exact.
    random_state : int
        Seed of the sign patterns.
    alternative : "two-sided" or "greater"
        "greater" tests whether ``a`` is better than ``b``.
    """
    _check_comparable(evaluations)
    pairs, settings = _pairs(list(evaluations), baseline), (n_permutations, random_state, alternative)
    rows: list[PairedTest] = []
    for metric in _shared_metrics(evaluations, metrics):
        rows += _with_holm([_paired_test(metric, a, b, evaluations, settings) for a, b in pairs])
    return Comparison(tuple(rows), baseline, alternative, n_permutations, random_state)


def holm(p_values: Sequence[float] | FloatArray) -> FloatArray:
    """Holm's correction: the i-th smallest of m p-values becomes max_{j ≤ i} min(1, (m − j + 1)·p_(j))."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(len(p), 0, -1) * p[order]))
    return adjusted


def paired_t(a: AnyArray, b: AnyArray, alternative: Alternative = "two-sided") -> float:
    """p-value of the paired t-test of mean(a − b) = 0; pairs with NaN are dropped.

    1 if no pair differs or there are fewer than two pairs. If all pairs differ by the same amount, t is
    infinite.
    """
    difference = _differences(a, b)
    _check_alternative(alternative)
    if len(difference) < 2 or not difference.any():
        return 1.0
    if np.ptp(difference) <= _ROUNDING * np.abs(difference).max():
        return 1.0 if alternative == "greater" and difference[0] < 0 else 0.0
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(difference, 0.0, alternative=alternative).pvalue)


def randomisation(
    a: AnyArray,
    b: AnyArray,
    n_permutations: int = 10_000,
    random_state: int = 0,
    alternative: Alternative = "two-sided",
) -> float:
    """p-value of Fisher's randomisation test: share of sign patterns with Σ ±(a − b) at least as extreme.

    Exact over all 2^m sign patterns of the m pairs that differ if 2^m ≤ ``n_permutations``, else
    (1 + extreme) / (1 + n_permutations) over random patterns. Pairs with NaN are dropped.
    """
    _check_alternative(alternative)
    if n_permutations < 1:
        raise ParameterError("n_permutations", n_permutations, "must be at least 1")
    difference = _differences(a, b)
    difference = difference[difference != 0.0]
    m = len(difference)
    exact = m < 63 and 2**m <= n_permutations
    flips = _all_flips(m) if exact else _random_flips(m, n_permutations, random_state)
    extreme = sum(_count_extreme(flip, difference, alternative) for flip in flips)
    return extreme / 2**m if exact else (1 + extreme) / (1 + n_permutations)


def _count_extreme(flips: AnyArray, difference: FloatArray, alternative: Alternative) -> int:
    """Number of rows of ``flips`` (1: flip the sign) whose sum is at least as extreme as the observed one."""
    observed = difference.sum()
    sums = observed - 2.0 * (flips.astype(np.float64) @ difference)
    if alternative == "two-sided":
        observed, sums = abs(observed), np.abs(sums)
    return int(np.count_nonzero(sums >= observed - _ROUNDING * np.abs(difference).sum()))


def _all_flips(m: int) -> Iterator[AnyArray]:
    for first, last in _chunks(2**m, m):
        yield (np.arange(first, last)[:, None] >> np.arange(m)) & 1


def _random_flips(m: int, n: int, random_state: int) -> Iterator[AnyArray]:
    rng = np.random.default_rng(random_state)
    for first, last in _chunks(n, m):
        bits = rng.integers(0, 256, size=(last - first, -(-m // 8)), dtype=np.uint8)
        yield np.unpackbits(bits, axis=1, count=m)


def _chunks(n: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, _CHUNK_CELLS // max(1, width))
    return ((first, min(n, first + step)) for first in range(0, n, step))


def _differences(a: AnyArray, b: AnyArray) -> FloatArray:
    """a − b over the pairs without NaN, with rounding errors set to 0."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        reason = f"`a` and `b` need one value per query, got shapes {a.shape} and {b.shape}"
        raise ParameterError("b", b, reason)
    difference = a - b
    difference[np.abs(difference) <= _ROUNDING * np.maximum(np.abs(a), np.abs(b))] = 0.0
    defined: FloatArray = difference[~np.isnan(difference)]
    return defined


def _paired_test(
    metric: str, a: str, b: str, evaluations: Mapping[str, Evaluation], settings: tuple[int, int, Alternative]
) -> PairedTest:
    """``settings``: number of permutations, random state, alternative."""
    values_a, values_b = (evaluations[name].per_query[metric] for name in (a, b))
    defined = ~(np.isnan(values_a) | np.isnan(values_b))
    if not defined.any():
        raise DataError(None, None, f"no query has a value of {metric} in both {a!r} and {b!r}")
    values_a, values_b = values_a[defined], values_b[defined]
    wins, ties, losses = (int(np.sum(np.sign(_differences(values_a, values_b)) == s)) for s in (1, 0, -1))
    mean_a, mean_b = float(values_a.mean()), float(values_b.mean())
    change = (mean_a - mean_b) / mean_b if mean_b else math.nan
    tests = paired_t(values_a, values_b, settings[-1]), randomisation(values_a, values_b, *settings)
    return PairedTest(
        metric, a, b, len(values_a), mean_a, mean_b, mean_a - mean_b, change, wins, ties, losses, *tests
    )


def _with_holm(rows: list[PairedTest]) -> list[PairedTest]:
    p_t = holm([row.p_t for row in rows])
    p_randomisation = holm([row.p_randomisation for row in rows])
    return [
        replace(row, p_t_holm=float(t), p_randomisation_holm=float(r))
        for row, t, r in zip(rows, p_t, p_randomisation, strict=True)
    ]


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    check_baseline(names, baseline)
    if baseline is None:
        return list(combinations(names, 2))
    return [(name, baseline) for name in names if name != baseline]


def _check_comparable(evaluations: Mapping[str, Evaluation]) -> None:
    check_enough(list(evaluations))
    (name, first), *others = evaluations.items()
    for other_name, other in others:
        if other.query_ids.tolist() != first.query_ids.tolist():
            raise DataError(
                None,
                None,
                f"{name!r} and {other_name!r} have different queries or another order of queries "
                f"({len(first.query_ids)} and {len(other.query_ids)} queries); evaluate both on one data set",
            )
        if (other.profile, other.empty) != (first.profile, first.empty):
            raise DataError(
                None,
                None,
                f"{name!r} uses profile {first.profile.title} with `empty={first.empty!r}`, {other_name!r} "
                f"{other.profile.title} with `empty={other.empty!r}`; use the same for both",
            )


def check_enough(evaluations: Sequence[str]) -> None:
    """Refuse to compare fewer than two."""
    if len(evaluations) < 2:
        raise ParameterError("evaluations", evaluations, "must contain at least two")


def check_baseline(names: Sequence[str], baseline: str | None) -> None:
    """Refuse a baseline that is not among the evaluations."""
    if baseline is not None and baseline not in names:
        raise ParameterError("baseline", baseline, f"must be one of the evaluations {', '.join(names)}")


def _shared_metrics(
    evaluations: Mapping[str, Evaluation], metrics: str | Sequence[str | MetricSpec] | None
) -> list[str]:
    first = next(iter(evaluations.values()))
    requested = list(first.per_query) if metrics is None else [str(spec) for spec in parse_all(metrics)]
    absent_in = {m: name for m in requested for name, e in evaluations.items() if m not in e.per_query}
    if metrics is not None and absent_in:
        metric, name = next(iter(absent_in.items()))
        raise ParameterError("metrics", metric, f"{name!r} does not have it; pass it to evaluate")
    shared = [m for m in requested if m not in absent_in]
    if not shared:
        raise DataError(None, None, "the evaluations have no metric in common; use the same metrics")
    return shared


def _check_alternative(alternative: str) -> None:
    if alternative not in ("two-sided", "greater"):
        raise ParameterError("alternative", alternative, "must be 'two-sided' or 'greater'")
