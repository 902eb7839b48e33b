"""Write docs/results.md and its tables (CSV): all methods on OHSUMED and MQ2008 beside published numbers.

    make results

Runs all methods, and the variants with published numbers, into benchmarks/out/results (an interrupted run
resumes), writes every table to docs/results, and the page from these files alone.
"""

from __future__ import annotations

import csv
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import HERE, letor_root

from papers.bench import TABLES, all_study_tables, bench
from papers.choices import Reproduction
from papers.claims import claims_tables
from papers.claims.base import NO, NOT_SIGNIFICANT, YES
from papers.comparison import MEDIUM_DIFFERENCE, OWN_METHODS, PAPERS, SMALL_DIFFERENCE
from papers.letor_files import check_letor_files
from papers.published import VARIANTS, numbers_by_data_set, rows_of
from papers.published_tables import DIFFERENCE_COLUMNS, papers_table
from ranksieve._util.files import atomic_write
from ranksieve.experiment.tables import ResultTable, all_tables

DATA_SETS = ("OHSUMED", "MQ2008")
FOLDER = HERE / "out" / "results"
PAGE = HERE.parent / "docs" / "results.md"
INDEX = "tables"
"""The file that lists the others, with titles and notes."""
SHOWN_METHODS = (
    "SparseRanker", "BestSubset", "FenchelRank", "FSMRank", "MinBatSRank", "RankSVM-ℓ1", "RankSVM-log",
    "RankSVM-MCP", "RankSVM-ℓ0.5", "RankSVM-SCAD", "Sparse CS-ListMLE", "RankSVM-Primal", "LambdaMART",
)  # fmt: skip
INTRODUCTION = """# Results on LETOR

Which published numbers and claims of five papers can be reproduced? Every method and every number of
the papers for OHSUMED (LETOR 3.0) and MQ2008 (LETOR 4.0), five folds each: every grid point is fitted
on the training data, selected on the validation data and evaluated on the test data, with the metric
conventions of LETOR's scripts and [under each paper's conditions](experiments.md#like-with-like). `make
results` writes this page and [its tables](#all-tables).
"""
ACCURACY = """
## Accuracy

Means over the test folds; ± is the standard deviation over seeds. \\* and † mark methods that are
better than RankSVM-Primal at 5 % by the paired t-test and the randomisation test, ‡ by both after
Holm's correction. [All methods and metrics](results/accuracy.csv). The rows of SparseRanker were
measured at commit `3edc26a`; its model selection has changed since then. At `e8bcb91`, its NDCG@10 is
0.4555 ± 0.0053 on OHSUMED and 0.2310 ± 0.0011 on MQ2008. Those of BestSubset were measured
with its former defaults, ten times the ridge and `pair_weighting="pairs"`, those of MinBatSRank with one pass
instead of [20](methods/minbatsrank.md#choosing-l1-and-rate), and significance marks with one-sided tests.

"""
REASONS = {
    "FenchelRank": (
        "The same problem, grid and stopping rule give the published values. Frank–Wolfe steps from zero "
        "are deterministic; the remaining differences come from selections that the fourth digit of the "
        "validation metric decides. The FS-Rank and RankSVM-Primal that the paper ran used values of C "
        "that it does not print."
    ),
    "FSMRank": (
        "The paper states neither its grids nor how it treats a similarity matrix that is not positive "
        "semidefinite (|Pearson| is not, on all ten training folds; here it is projected). Its selectors "
        "GAS-E and FSMSVM depend on numbers of features and values of C that are not published."
    ),
    "NonconvexRankSVM": (
        "The paper's problems on another grid (the paper's is not published), selected by MAP as in the "
        "paper; FenchelRank and FSMRank are selected by MAP too for this comparison, unlike in their own "
        "papers. The paper publishes few absolute numbers, so the claims are the test."
    ),
    "SparseCSListMLE": (
        "The published numbers follow other conventions. NDCG@10 of about 0.46 on MQ2008 cannot come from "
        "LETOR's scripts, where lists with fewer than ten documents count 0 and every other paper reports "
        "about 0.23. The paper also uses its own folds of MQ2008, and its OHSUMED numbers are 0.06 to 0.1 "
        "below those of all other papers for all methods. A search over gains, discounts, relevant labels, "
        "short lists and empty queries finds no convention under which its baselines have our values or "
        "those on LETOR's site: label 2 alone with gain 1 is closest on OHSUMED and `standard` on MQ2008, "
        "and even these have the methods in another order or at another level. Only the claims can be "
        "compared."
    ),
    "MinBatSRank": (
        "The paper states neither the number of passes, nor the order of the queries, nor the number of "
        "runs. Here: one pass, with the paper's rates and λ, in five orders of the queries, each with its "
        "own selection on validation data."
    ),
}
LIMITS = """
## What limits the comparison

- **Baselines from LETOR's site** (RankSVM-Primal on OHSUMED, RankSVM-Struct, ListNet, AdaRank,
  RankBoost, SVM-MAP) were run by others with unpublished grids and software, most of them selected by
  MAP. OHSUMED's validation sets have 21 or 22 queries: drawing other queries changes the test NDCG@10
  of RankSVM by 0.006 (one standard deviation).
- **Seconds** were measured on other machines, in other languages, and are not compared.
- **p-values** are over the pooled queries in both cases; small differences of means change them a lot.
"""
MORE = """
Next: [experiments](experiments.md), to run the same on your data; [quality](quality.md) on nine data
sets with many splits; [the methods](methods/README.md).
"""

Rows = list[dict[str, str]]


def all_result_tables(results: Reproduction) -> list[ResultTable]:
    shown = [table for table in all_tables(results, builders=TABLES) if table.name != "significance"]
    tables = [papers_table(results), *claims_tables(results), *shown, *all_study_tables(results)]
    return [table for table in tables if table.rows]


def write_csv_files(tables: Sequence[ResultTable], folder: Path) -> None:
    """One file per kind of table, with the data set as a column, and INDEX with their titles and notes."""
    files: dict[tuple[str, ...], str] = {}
    rows_of_file: dict[str, list[list[str]]] = {}
    index = [["file", "data set", "title", "note"]]
    for table in tables:
        source, _, title = table.title.rpartition(": ")
        head = [*(["data set"] if source else []), *unique(table.columns)]
        name = table.name if table.name not in rows_of_file else f"{table.name}_{source.lower()}"
        name = files.setdefault((title, *head), name)
        cells = ([cell.text + cell.marks for cell in row] for row in table.rows)
        rows_of_file.setdefault(name, [head]).extend([*([source] if source else []), *row] for row in cells)
        index.append([f"{name}.csv", source, title, " ".join(table.note.split())])
    folder.mkdir(exist_ok=True)
    for name, rows in {**rows_of_file, INDEX: index}.items():
        with atomic_write(folder / f"{name}.csv") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def unique(columns: Sequence[str]) -> list[str]:
    """The columns, with a number behind those whose name occurred before."""
    counts = [columns[: number + 1].count(column) for number, column in enumerate(columns)]
    return [f"{name} ({n})" if n > 1 else name for name, n in zip(columns, counts, strict=True)]


def read_rows(folder: Path, name: str) -> Rows:
    path = folder / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def page(folder: Path) -> str:
    """The page, from the CSV files in ``folder`` alone."""
    numbers, claims = read_rows(folder, "papers"), read_rows(folder, "claims")
    parts = [INTRODUCTION, summary_text(read_rows(folder, "agreement"), numbers, claims)]
    parts += [ACCURACY, "".join(accuracy_lines(read_rows(folder, "accuracy")))]
    for paper in PAPERS:
        own = [row for row in numbers if row["paper"] == paper]
        parts += [f"\n## {paper}\n\n", "".join(number_lines(own)), f"\n{REASONS[paper]}\n\n"]
        parts.append("".join(claim_lines([row for row in claims if row["paper"] == paper])))
    return "".join([*parts, LIMITS, tables_text(read_rows(folder, INDEX)), MORE])


def summary_text(agreement: Rows, numbers: Rows, claims: Rows) -> str:
    """How many published numbers are reproduced, and how many claims hold."""
    counts = {column: sum(int(row[column]) for row in numbers) for column in DIFFERENCE_COLUMNS}
    small, medium, large = counts.values()
    total = {
        column: sum(int(row[column]) for row in agreement)
        for column in ("published", "compared", "not comparable", "no counterpart", "not run")
    }
    answers = Counter(row["holds"] for row in claims)
    others = {name: n for name, n in numbers_by_data_set().items() if name not in DATA_SETS}
    means = others.pop("MEAN", 0)
    elsewhere = ", ".join(f"{name} ({n})" for name, n in sorted(others.items()))
    compared = (
        f"{small + medium + large} published values of NDCG and MAP with the same selection and evaluation"
    )
    not_run, unmatched, different = (total[name] for name in ("not run", "no counterpart", "not comparable"))
    return (
        f"\n- **Numbers**: of {compared}, **{small} differ from ours by at most {SMALL_DIFFERENCE:g}**, "
        f"{medium} "
        f"more by at most {MEDIUM_DIFFERENCE:g}, {large} by more.\n"
        f"- **Claims**: of {len(claims)} comparisons made by the papers' claims, {answers[YES]} hold, "
        f"{answers[NOT_SIGNIFICANT]} have the claimed sign but are not significant at 5 %, {answers[NO]} "
        "fail.\n"
        f"- **Left out**: the papers publish {total['published']} numbers for these data. "
        f"{total['compared']} are "
        f"compared; {different} are not comparable (other conventions, folds or machines), {unmatched} have "
        "no "
        f"counterpart, {not_run} belong to methods that were not run. {sum(others.values())} more are for "
        "data that "
        f"are not used here: {elsewhere}, and {means} means over all data sets; `python -m papers bench` "
        "compares "
        "these too if you have the folds.\n"
    )


def accuracy_lines(rows: Rows) -> Iterator[str]:
    """NDCG@10, MAP and number of features of the core methods, by data set."""
    data_sets = [name for name in DATA_SETS if any(row["data set"] == name for row in rows)]
    values = {(row["data set"], row["method"]): row for row in rows}
    columns = ("N@10", "MAP", "features")
    yield f"| | {' | '.join(f'{name} {column}' for name in data_sets for column in columns)} |\n"
    yield f"|---|{'---|' * len(data_sets) * len(columns)}\n"
    for method in SHOWN_METHODS:
        found = [values.get((name, method), {}) for name in data_sets]
        if any(found):
            cells = [row.get(column, "–").replace("*", "\\*") for row in found for column in columns]
            yield f"| {method} | {' | '.join(cells)} |\n"


def number_lines(rows: Rows) -> Iterator[str]:
    """One line per origin of a paper's numbers."""
    for row in rows:
        of = f"numbers for {row['numbers for']}"
        small, medium, large = (row[column] for column in DIFFERENCE_COLUMNS)
        if row["compared"] == "0":
            yield f"- {row['published']} {of}: not comparable ({row['known reason']}).\n"
            continue
        counts = (
            f"{small} within {SMALL_DIFFERENCE:g}, {medium} more within {MEDIUM_DIFFERENCE:g}, {large} beyond"
        )
        line = f"{row['compared']} {of}: {counts}; largest difference {row['largest difference']}"
        yield f"- **{line}**.\n" if row["numbers for"] == OWN_METHODS else f"- {line}.\n"


def claim_lines(rows: Rows) -> Iterator[str]:
    """The claims that hold in all, some and none of their comparisons, with how many."""
    names = ("hold", "hold in part", f"are {NOT_SIGNIFICANT}", "do not hold")
    groups: dict[str, list[str]] = {name: [] for name in names}
    for claim in dict.fromkeys(row["claim"] for row in rows):
        answers = Counter(row["holds"] for row in rows if row["claim"] == claim)
        hold, total, unsure = answers[YES], answers.total(), answers[NOT_SIGNIFICANT]
        groups[names[0 if hold == total else 1 if hold else 2 if unsure else 3]].append(
            f"{claim} ({hold} of {total}{f', {unsure} {NOT_SIGNIFICANT}' if unsure else ''})"
        )
    for name, claims in groups.items():
        if claims:
            yield f"- Claims that **{name}**: {'; '.join(claims)}.\n"


def tables_text(index: Rows) -> str:
    """A list of the files."""
    titles = {row["file"]: row["title"] for row in index}
    sources = {row["file"]: row["data set"] for row in index}
    several = {title for title, n in Counter(titles.values()).items() if n > 1}
    links = {
        file: f"{title} ({sources[file]})" if title in several else title for file, title in titles.items()
    }
    files = ", ".join(f"[{title}](results/{file})" for file, title in links.items())
    return (
        "\n## All tables\n\nCSV files with both data sets: "
        f"{files}. [How to read each](results/{INDEX}.csv). With pictures, on one page: "
        "`python -m papers report results -o report.html`.\n"
    )


def write_results(results: Reproduction, page_path: Path) -> None:
    """Write the tables into the folder beside the page, then the page."""
    folder = page_path.with_suffix("")
    write_csv_files(all_result_tables(results), folder)
    with atomic_write(page_path) as file:
        file.write(page(folder))


def make_results() -> None:
    root = letor_root()
    if root is None:
        return
    print(*check_letor_files(root), sep="\n")
    start = time.perf_counter()
    options: dict[str, Any] = {
        "out": FOLDER,
        "n_jobs": len(os.sched_getaffinity(0)),
        "progress": report_progress,
    }
    results = bench(root, "all", data_sets=DATA_SETS, studies="all", **options)
    for data_set in DATA_SETS:
        if variants := [name for name in VARIANTS if rows_of(data_set, name)]:
            results = bench(root, variants, data_sets=[data_set], studies=False, **options)
    print(f"all fits finished in {time.perf_counter() - start:.0f} s")
    write_results(results, PAGE)
    print(f"wrote {PAGE}")


def report_progress(done: int, total: int) -> None:
    """Update the progress line."""
    print(f"\r{done} of {total} fits", end="" if done < total else "\n", flush=True)
