"""Tables of ours beside the papers': number by number, how near they come, and what cannot be compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from papers.choices import PaperResults, Reproduction
from papers.comparison import (
    BASELINES,
    CITED,
    FAR,
    NDCG_AND_MAP,
    NEAR,
    OWN_METHODS,
    PAPERS,
    SPARSITY,
    Comparison,
    Terms,
    agreement,
    comparisons,
    largest,
    nearness,
    terms_of,
    value_on,
    whose,
)
from papers.published import PrintedRow, rows_of, title, unmatched
from ranksieve.experiment.tables import Cell, ResultTable, count_cell, metric_heading, number_cell, text_cell

PUBLISHED_METRICS = (*(f"ndcg@{k}" for k in range(1, 11)), "map", "sparsity", "seconds")
LARGEST = {NDCG_AND_MAP: 10, SPARSITY: 6}
SIGNED = "{:+z.4f}"


def agreement_table(results: PaperResults, baseline: str) -> ResultTable:
    """How many of the papers' numbers ours come near to."""
    rows = [
        (
            text_cell(row.kind),
            *map(count_cell, (row.n_printed, row.n_compared, row.n_near, row.n_far, row.n_beyond)),
            *map(count_cell, (row.n_unlike, row.n_unmatched, row.n_not_run)),
        )
        for row in agreement(results)
    ]
    return ResultTable(
        "agreement",
        f"{results.name}: how near ours come to the published numbers",
        (
            "numbers", "printed", "compared", f"within {NEAR:g}", f"{NEAR:g} to {FAR:g}", "beyond",
            "no difference", "no counterpart", "not run",
        ),
        tuple(rows),
        "Compared: ours was chosen by the metric that the source chose by, and measured by the same "
        "conventions. No difference: ours stands beside it, but other conventions, other folds or another "
        "machine made the printed number.",
    )  # fmt: skip


def published_table(results: PaperResults, baseline: str) -> ResultTable:
    """Our numbers, those that the papers print for the method, and the differences where they are alike."""
    names = [*results.results, *results.variants]
    printed = {name: rows_of(results.name, name) for name in names}
    used = {metric for rows in printed.values() for row in rows for metric in row.means}
    metrics = [metric for metric in PUBLISHED_METRICS if metric in used]
    rows = [row for name in names for row in _published_rows(results, name, printed[name], metrics)]
    return ResultTable(
        "published",
        f"{results.name}: ours beside the published numbers",
        ("method", "source", *(metric_heading(metric) for metric in metrics)),
        tuple(rows),
        "Each of ours says which metric chose it on valid: the one that the source chose by. Difference: "
        "ours − published, where both were measured alike; under the nearest conventions to a paper's own "
        "there is none. Sparsity: nonzero weights / features; of varying: without the features that are "
        "constant within every query. Seconds: of the chosen fit, a mean over folds, on different machines.",
    )


def difference_table(results: PaperResults, baseline: str) -> ResultTable:
    """The largest differences, with their reasons as far as they are known."""
    found, rows = comparisons(results), []
    for kind, most in LARGEST.items():
        for group in largest(found, kind, most):
            one, sources = group[0], "; ".join(dict.fromkeys(c.printed.source for c in group))
            words = (title(one.printed.method), sources, metric_heading(one.printed.metric))
            numbers = (
                number_cell(one.ours),
                number_cell(one.printed.value),
                number_cell(one.difference, SIGNED),
            )
            rows.append((*map(text_cell, words), *numbers, text_cell(one.remark or "not known")))
    return ResultTable(
        "differences",
        f"{results.name}: the largest differences",
        ("method", "source", "metric", "ours", "published", "difference", "what is known"),
        tuple(rows),
        f"The {LARGEST[NDCG_AND_MAP]} largest of NDCG and MAP, then the {LARGEST[SPARSITY]} largest of "
        "sparsity.",
    )


def papers_table(results: Reproduction) -> ResultTable:
    """Paper by paper, over all data sets: how near ours come in NDCG and MAP, and the largest difference."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for data_set in results.data_sets.values():
        for one in comparisons(data_set):
            printed = one.printed
            if one.kind == NDCG_AND_MAP:
                by = whose(printed.paper, printed.data_set, printed.method)
                groups.setdefault((printed.paper, by), []).append(one)
    return ResultTable(
        "papers",
        "NDCG and MAP, paper by paper",
        (
            "paper", "numbers of", "printed", "compared", f"within {NEAR:g}", f"{NEAR:g} to {FAR:g}",
            "beyond", "median", "largest difference", "what is known of it",
        ),
        tuple(_paper_row(*of, groups[of]) for of in _in_order(groups)),
        "Median: of the sizes of the differences. A paper whose numbers other conventions made is compared "
        "with nothing.",
    )  # fmt: skip


def _in_order(groups: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """By paper, each paper's own methods first."""
    papers, whose_runs = list(PAPERS), (OWN_METHODS, BASELINES, CITED)
    return sorted(groups, key=lambda of: (papers.index(of[0]), whose_runs.index(of[1])))


def _paper_row(paper: str, by: str, found: Sequence[Comparison]) -> tuple[Cell, ...]:
    near = nearness(found)
    counts = map(count_cell, (len(found), len(near.sizes), near.n_near, near.n_far, near.n_beyond))
    median = number_cell(float(np.median(near.sizes)) if near.sizes else math.nan)
    most, known = "–", "other conventions" if not near.sizes else ""
    for one, *_ in largest(found, NDCG_AND_MAP, 1):
        place = f"{title(one.printed.method)}, {metric_heading(one.printed.metric)}, {one.printed.data_set}"
        most, known = f"{SIGNED.format(one.difference)} ({place})", one.remark or "not known"
    return (text_cell(paper), text_cell(by), *counts, median, text_cell(most), text_cell(known))


def p_value_table(results: PaperResults, baseline: str) -> ResultTable:
    """Our p-values beside the published ones: paired one-sided t-test over the pooled test queries."""
    rows = []
    for one in comparisons(results):
        if one.printed.against:
            pair = f"{title(one.printed.method)} over {title(one.printed.against)}"
            words = (pair, one.printed.source, metric_heading(one.printed.metric))
            numbers = (
                number_cell(one.ours),
                number_cell(one.printed.value),
                number_cell(one.difference, SIGNED),
            )
            rows.append((*map(text_cell, words), *numbers))
    return ResultTable(
        "p_values",
        f"{results.name}: p-values beside the published ones",
        ("pair", "source", "metric", "ours", "published", "difference"),
        tuple(rows),
        "Paired one-sided t-test: is the first better than the second? Both chosen as their sources did.",
    )


def unmatched_table(results: PaperResults, baseline: str) -> ResultTable:
    """Numbers that the papers print and that have no counterpart here, with the reason."""
    rows = [
        (
            text_cell(row.source),
            text_cell(row.method),
            text_cell(row.metric),
            count_cell(row.n_numbers),
            text_cell(row.reason),
        )
        for row in unmatched(results.name)
    ]
    return ResultTable(
        "unmatched",
        f"{results.name}: what has no counterpart",
        ("source", "method", "what", "numbers", "why"),
        tuple(rows),
    )


def _published_rows(
    results: PaperResults, name: str, printed: Sequence[PrintedRow], metrics: Sequence[str]
) -> Iterator[tuple[Cell, ...]]:
    """For each way in which papers choose and measure: ours, what they print, and the differences."""
    by_terms: dict[Terms, list[PrintedRow]] = {}
    for row in printed:
        by_terms.setdefault(terms_of(row.paper, results.name, name), []).append(row)
    for terms, rows in by_terms.items():
        result = results.chosen_by(name, terms.select)
        if result is None:
            continue
        wanted = [m for m in metrics if terms.profile is None or any(m in row.means for row in rows)]
        ours = {metric: value_on(result, metric, terms) for metric in wanted}
        spread = {} if terms.profile is not None else result.spread()
        if terms.sparsity in spread:
            spread["sparsity"] = spread[terms.sparsity]
        yield _cells(name, f"ours, {terms}", ours, metrics, spread=spread)
        for row in rows:
            yield _cells(name, row.source, row.means, metrics)
            if terms.profile is None:
                between = {m: ours[m] - value for m, value in row.means.items() if m != "seconds"}
                yield _cells(name, "difference", between, metrics, "+z")


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
