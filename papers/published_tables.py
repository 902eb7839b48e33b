"""Tables that compare our results with the published numbers, and list the numbers without a counterpart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from papers.choices import PaperResults, Reproduction
from papers.comparison import (
    BASELINES,
    CITED,
    MEDIUM_DIFFERENCE,
    NDCG_AND_MAP,
    OWN_METHODS,
    PAPERS,
    SMALL_DIFFERENCE,
    SPARSITY,
    NumberComparison,
    PaperProtocol,
    agreement,
    comparisons,
    difference_sizes,
    largest,
    origin_of,
    protocol_of,
    value_under,
)
from papers.published import PublishedRow, rows_of, title, unmatched_numbers
from ranksieve.experiment.tables import Cell, ResultTable, count_cell, metric_heading, number_cell, text_cell

PUBLISHED_METRICS = (*(f"ndcg@{k}" for k in range(1, 11)), "map", "sparsity", "seconds")
N_LARGEST = {NDCG_AND_MAP: 10, SPARSITY: 6}
SIGNED = "{:+z.4f}"
DIFFERENCE_COLUMNS = (
    f"within {SMALL_DIFFERENCE:g}",
    f"{SMALL_DIFFERENCE:g} to {MEDIUM_DIFFERENCE:g}",
    f"over {MEDIUM_DIFFERENCE:g}",
)


def agreement_table(results: PaperResults, baseline: str) -> ResultTable:
    """Table of how many published numbers we reproduce, by kind of number."""
    rows = [
        (
            text_cell(row.kind),
            *map(count_cell, (row.n_published, row.n_compared, row.n_small, row.n_medium, row.n_large)),
            *map(count_cell, (row.n_not_comparable, row.n_unmatched, row.n_not_run)),
        )
        for row in agreement(results)
    ]
    return ResultTable(
        "agreement",
        f"{results.name}: agreement with the published numbers",
        (
            "numbers", "published", "compared", *DIFFERENCE_COLUMNS, "not comparable", "no counterpart",
            "not run",
        ),
        tuple(rows),
        "Compared: our model was selected by the same metric and evaluated with the same conventions as the "
        "published one. Not comparable: the published number was computed with other conventions, on other "
        "folds or on another machine; both numbers are shown, without a difference.",
    )  # fmt: skip


def published_table(results: PaperResults, baseline: str) -> ResultTable:
    """Table of our values, the published numbers, and the differences of comparable ones."""
    names = [*results.results, *results.variants]
    published = {name: rows_of(results.name, name) for name in names}
    used = {metric for rows in published.values() for row in rows for metric in row.means}
    metrics = [metric for metric in PUBLISHED_METRICS if metric in used]
    rows = [row for name in names for row in _published_rows(results, name, published[name], metrics)]
    return ResultTable(
        "published",
        f"{results.name}: ranksieve and the published numbers",
        ("method", "source", *(metric_heading(metric) for metric in metrics)),
        tuple(rows),
        "Models are selected on validation data by the metric of the paper, which is given in the row. "
        "Difference: ranksieve − published, if both were measured in the same way; none for rows with the "
        "closest conventions. Sparsity: nonzero weights / features; of varying features: without the "
        "features that are constant within every query. Seconds: of the selected fit, mean over folds, on "
        "different machines.",
    )


def difference_table(results: PaperResults, baseline: str) -> ResultTable:
    """Table of the largest differences, with their known reasons."""
    rows = []
    for kind, most in N_LARGEST.items():
        for group in largest(comparisons(results), kind, most):
            comparison, number = group[0], group[0].published
            sources = "; ".join(dict.fromkeys(c.published.source for c in group))
            texts = (title(number.method), sources, metric_heading(number.metric))
            numbers = (
                number_cell(comparison.our_value),
                number_cell(number.value),
                number_cell(comparison.difference, SIGNED),
            )
            rows.append((*map(text_cell, texts), *numbers, text_cell(comparison.remark or "unknown")))
    return ResultTable(
        "differences",
        f"{results.name}: the largest differences",
        ("method", "source", "metric", "ranksieve", "published", "difference", "known reason"),
        tuple(rows),
        f"The {N_LARGEST[NDCG_AND_MAP]} largest differences in NDCG and MAP, then the {N_LARGEST[SPARSITY]} "
        "largest in sparsity.",
    )


def papers_table(results: Reproduction) -> ResultTable:
    """Table of the agreement with each paper in NDCG and MAP, over all data sets."""
    groups: dict[tuple[str, str], list[NumberComparison]] = {}
    for data_set in results.data_sets.values():
        for comparison in comparisons(data_set):
            number = comparison.published
            if comparison.kind == NDCG_AND_MAP:
                origin = origin_of(number.paper, number.data_set, number.method)
                groups.setdefault((number.paper, origin), []).append(comparison)
    return ResultTable(
        "papers",
        "NDCG and MAP, by paper",
        (
            "paper", "numbers for", "published", "compared", *DIFFERENCE_COLUMNS, "median",
            "largest difference", "known reason",
        ),
        tuple(_paper_row(*key, groups[key]) for key in _sorted_keys(groups)),
        "Median: of the absolute differences. Numbers computed with other conventions are not compared.",
    )  # fmt: skip


def _sorted_keys(groups: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Sort (paper, origin) by paper, with each paper's own methods first."""
    papers, origins = list(PAPERS), (OWN_METHODS, BASELINES, CITED)
    return sorted(groups, key=lambda key: (papers.index(key[0]), origins.index(key[1])))


def _paper_row(paper: str, origin: str, group: Sequence[NumberComparison]) -> tuple[Cell, ...]:
    sizes = difference_sizes(group)
    counts = (len(group), len(sizes.values), sizes.n_small, sizes.n_medium, sizes.n_large)
    median = number_cell(float(np.median(sizes.values)) if sizes.values else math.nan)
    difference, reason = "–", "other conventions" if not sizes.values else ""
    for comparison, *_ in largest(group, NDCG_AND_MAP, 1):
        number = comparison.published
        label = f"{title(number.method)}, {metric_heading(number.metric)}, {number.data_set}"
        difference = f"{SIGNED.format(comparison.difference)} ({label})"
        reason = comparison.remark or "unknown"
    texts = map(text_cell, (difference, reason))
    return (text_cell(paper), text_cell(origin), *map(count_cell, counts), median, *texts)


def p_value_table(results: PaperResults, baseline: str) -> ResultTable:
    """Table of our p-values and the published ones: paired one-sided t-test over the pooled test queries."""
    rows = []
    for comparison in comparisons(results):
        number = comparison.published
        if number.against:
            pair = f"{title(number.method)} over {title(number.against)}"
            texts = (pair, number.source, metric_heading(number.metric))
            numbers = (
                number_cell(comparison.our_value),
                number_cell(number.value),
                number_cell(comparison.difference, SIGNED),
            )
            rows.append((*map(text_cell, texts), *numbers))
    return ResultTable(
        "p_values",
        f"{results.name}: p-values",
        ("pair", "source", "metric", "ranksieve", "published", "difference"),
        tuple(rows),
        "Paired one-sided t-test (the first method is better than the second). Both models are selected by "
        "the metrics of their sources.",
    )


def unmatched_table(results: PaperResults, baseline: str) -> ResultTable:
    """Table of the published numbers that have no counterpart here, with the reason."""
    rows = [
        (
            text_cell(row.source),
            text_cell(row.method),
            text_cell(row.metric),
            count_cell(row.n_numbers),
            text_cell(row.reason),
        )
        for row in unmatched_numbers(results.name)
    ]
    return ResultTable(
        "unmatched",
        f"{results.name}: published numbers without a counterpart",
        ("source", "method", "metric", "numbers", "reason"),
        tuple(rows),
    )


def _published_rows(
    results: PaperResults, name: str, published: Sequence[PublishedRow], metrics: Sequence[str]
) -> Iterator[tuple[Cell, ...]]:
    """Rows of a method for each protocol: our values, the published numbers, and the differences."""
    by_protocol: dict[PaperProtocol, list[PublishedRow]] = {}
    for row in published:
        by_protocol.setdefault(protocol_of(row.paper, results.name, name), []).append(row)
    for protocol, rows in by_protocol.items():
        result = results.result_for(name, protocol.select)
        if result is None:
            continue
        shown = [m for m in metrics if protocol.profile is None or any(m in row.means for row in rows)]
        our_values = {metric: value_under(result, metric, protocol) for metric in shown}
        spread = {} if protocol.profile is not None else result.spread()
        if protocol.sparsity in spread:
            spread["sparsity"] = spread[protocol.sparsity]
        yield _cells(name, f"ranksieve, {protocol}", our_values, metrics, spread=spread)
        for row in rows:
            yield _cells(name, row.source, row.means, metrics)
            if protocol.profile is None:
                differences = {m: our_values[m] - value for m, value in row.means.items() if m != "seconds"}
                yield _cells(name, "difference", differences, metrics, "+z")


def _cells(
    name: str,
    label: str,
    values: Mapping[str, float],
    metrics: Sequence[str],
    sign: str = "",
    spread: Mapping[str, float] | None = None,
) -> tuple[Cell, ...]:
    forms = {m: f"{{:{sign}.3g}}" if m == "seconds" else f"{{:{sign}.4f}}" for m in metrics}
    spreads = spread or {}
    cells = [number_cell(values.get(m, math.nan), forms[m], spread=spreads.get(m)) for m in metrics]
    return (text_cell(title(name)), text_cell(label), *cells)
