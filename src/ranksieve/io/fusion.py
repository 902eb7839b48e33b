"""Join the results of several clauses of a search with judgements: the data of hybrid search."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from ranksieve._types import PathLike
from ranksieve.data.dataset import Dataset
from ranksieve.data.queries import ids_from_text
from ranksieve.errors import DataError, ParameterError, short_list, short_repr, warn_caller
from ranksieve.io.search_log import read_clause_log
from ranksieve.io.tables import Judgements, read_judgements
from ranksieve.io.trec import read_run

LOG_SUFFIXES = (".json", ".jsonl")
UNJUDGED = ("zero", "drop")
MAX_SHOWN = 5
Results: TypeAlias = Mapping[Any, Mapping[Any, float] | Sequence[Any]]
"""query → {document: score}, or query → documents, best first."""
Run: TypeAlias = dict[str, dict[str, float]]


def fuse_runs(
    runs: Mapping[str, PathLike | Results],
    qrels: PathLike | Judgements | Mapping[Any, Mapping[Any, float]],
    *,
    unjudged: str = "zero",
    depth: int | None = None,
) -> Dataset:
    """Data of hybrid search: one row per returned document, one column per clause.

    A row is a document that at least one clause returned for a judged query. A value is the score that the
    clause gave it, NaN if the clause did not return it. If the runs have no scores but only an order, a value
    is the rank, from 1; use these data with ``HybridRanker(values="ranks")``.

    Parameters
    ----------
    runs : mapping of clause names to runs
        A run is a TREC run file, a file of search responses as in
        :func:`ranksieve.io.read_clause_log` (``.json`` or ``.jsonl``, which may have several clauses), or a
        mapping: ``{query: {document: score}}``, or ``{query: [document, …]}`` with the best document first.
    qrels : path, Judgements or mapping
        Grades: a file as in :func:`ranksieve.io.read_judgements`, or ``{query: {document: grade}}``.
    unjudged : "zero" or "drop"
        Returned documents without a judgement have grade 0; or they have weight 0: they count in the
        statistics of their list, but neither in the fit nor in the metric.
    depth : int, optional
        Number of documents that a clause returns at most; further ones are cut off.
    """
    if unjudged not in UNJUDGED:
        raise ParameterError("unjudged", unjudged, f"must be one of {', '.join(UNJUDGED)}")
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise ParameterError("depth", depth, "must be an integer ≥ 1")
    if not isinstance(runs, Mapping) or not runs:
        raise ParameterError("runs", runs, "must map the names of clauses to their runs")
    clauses = _read_clauses(runs)
    ordered = _only_ordered(runs)
    grades = _as_grades(qrels)
    _check_common_queries(clauses, grades)
    if depth is not None:
        clauses = {name: _cut_off(run, depth, ordered) for name, run in clauses.items()}
    return _dataset(clauses, grades, unjudged)


def _read_clauses(runs: Mapping[str, Any]) -> dict[str, Run]:
    """The runs by clause; at least two clauses with different names."""
    clauses: dict[str, Run] = {}
    for name, run in runs.items():
        is_log = isinstance(run, str | os.PathLike) and str(run).endswith(LOG_SUFFIXES)
        found = read_clause_log(run, str(name)) if is_log else {str(name): _as_run(run, str(name))}
        for clause, results in found.items():
            if clause in clauses:
                raise DataError(None, None, f"two runs are of the clause {clause!r}; name each differently")
            clauses[clause] = results
    if len(clauses) < 2:
        reason = f"there is only one clause, {next(iter(clauses))!r}, so there are no weights to choose"
        raise DataError(None, None, f"{reason}; pass the runs of at least two")
    return clauses


def _as_run(run: Any, clause: str) -> Run:
    if isinstance(run, str | os.PathLike):
        return read_run(run)
    if not isinstance(run, Mapping):
        reason = f"clause {clause!r} must be a TREC run file or a mapping from queries to documents"
        raise ParameterError("runs", run, reason)
    if not run:
        raise DataError(None, None, f"the run of clause {clause!r} has no query")
    return {str(query): _as_scores(results, clause, query) for query, results in run.items()}


def _as_scores(results: Any, clause: str, query: Any) -> dict[str, float]:
    """Scores by document; ranks for a list of documents."""
    where = f"clause {clause!r}, query {query!r}"
    if not isinstance(results, Mapping):
        if isinstance(results, str) or not isinstance(results, Sequence):
            reason = f"{where}: {short_repr(results)} is neither a mapping of documents to scores nor a list"
            raise DataError(None, None, f"{reason} of documents")
        results = list(zip(results, range(1, len(results) + 1), strict=True))
    else:
        results = list(results.items())
    scores: dict[str, float] = {}
    for document, score in results:
        if str(document) in scores:
            raise DataError(None, None, f"{where}: document {document!r} is returned twice; keep one of them")
        number = isinstance(score, Real) and not isinstance(score, bool)
        if not number or not math.isfinite(score):
            reason = f"{where}: the score of document {document!r} is {short_repr(score)}"
            raise DataError(None, None, f"{reason}; expected a finite number")
        scores[str(document)] = float(score)
    return scores


def _only_ordered(runs: Mapping[str, Any]) -> bool:
    """Whether the runs have an order but no scores; refuse a mixture."""
    is_list = {
        name: not isinstance(run, str | os.PathLike) and not isinstance(results, Mapping)
        for name, run in runs.items()
        for results in ([None] if isinstance(run, str | os.PathLike) else run.values())
    }
    if len(set(is_list.values())) > 1:
        with_order = next(name for name, one in is_list.items() if one)
        with_scores = next(name for name, one in is_list.items() if not one)
        reason = f"clause {with_order!r} has no scores, but clause {with_scores!r} has"
        raise DataError(None, None, f"{reason}; pass the documents of every clause as a list, best first")
    return any(is_list.values())


def _as_grades(qrels: Any) -> Mapping[str, Mapping[str, float]]:
    if isinstance(qrels, str | os.PathLike):
        return read_judgements(qrels).grades
    if isinstance(qrels, Judgements):
        return qrels.grades
    if not isinstance(qrels, Mapping):
        raise ParameterError("qrels", qrels, "must be a file of judgements or {query: {document: grade}}")
    return {
        str(query): {str(document): float(grade) for document, grade in documents.items()}
        for query, documents in qrels.items()
    }


def _check_common_queries(clauses: Mapping[str, Run], grades: Mapping[str, Any]) -> None:
    names = list(clauses)
    for name in names[1:]:
        if not clauses[names[0]].keys() & clauses[name].keys():
            reason = f"clauses {names[0]!r} and {name!r} have no query in common"
            examples = f"{next(iter(clauses[names[0]]))!r} and {next(iter(clauses[name]))!r}"
            raise DataError(None, None, f"{reason}, such as {examples}; use the same query ids")
    if not any(run.keys() & grades.keys() for run in clauses.values()):
        query, judged = next(iter(clauses[names[0]])), next(iter(grades), None)
        reason = f"no query of the runs, such as {query!r}, is judged; the judgements have {judged!r}"
        raise DataError(None, None, f"{reason}; use the same query ids")


def _cut_off(run: Run, depth: int, ordered: bool) -> Run:
    sign = 1.0 if ordered else -1.0
    return {
        query: dict(sorted(scores.items(), key=lambda item: sign * item[1])[:depth])
        for query, scores in run.items()
    }


def _dataset(clauses: Mapping[str, Run], grades: Mapping[str, Mapping[str, float]], unjudged: str) -> Dataset:
    nothing: dict[str, float] = {}
    queries = [query for query in grades if any(query in run for run in clauses.values())]
    ids: list[str] = []
    documents: list[str] = []
    labels: list[float] = []
    rows: list[list[float]] = []
    for query in queries:
        lists = [run.get(query, nothing) for run in clauses.values()]
        for document in dict.fromkeys(one for scores in lists for one in scores):
            ids.append(query)
            documents.append(document)
            labels.append(grades[query].get(document, math.nan))
            rows.append([scores.get(document, math.nan) for scores in lists])
    y = np.array(labels)
    unknown = np.isnan(y)
    _warn_of_differences(clauses, grades, queries, set(zip(ids, documents, strict=True)), unknown, unjudged)
    weight = (~unknown).astype(np.float64) if unjudged == "drop" and unknown.any() else None
    if weight is not None and not weight.any():
        raise DataError(None, None, "no returned document has a judgement; use the same document ids")
    X = np.array(rows)
    return Dataset(
        X, np.where(unknown, 0.0, y), ids_from_text(ids), list(clauses), documents, document_weight=weight
    )


def _warn_of_differences(
    clauses: Mapping[str, Run],
    grades: Mapping[str, Mapping[str, float]],
    queries: Sequence[str],
    returned: set[tuple[str, str]],
    unknown: Any,
    unjudged: str,
) -> None:
    """Warn about documents without a judgement, and about judged ones that no clause returned."""
    treatment = "have grade 0" if unjudged == "zero" else "are left out of the fit and the metric"
    n_unknown = int(np.count_nonzero(unknown))
    lost = [
        (query, document)
        for query in queries
        for document, grade in grades[query].items()
        if grade > 0 and (query, document) not in returned
    ]
    without = [query for query in grades if query not in set(queries)]
    parts = []
    if n_unknown:
        parts.append(f"{n_unknown} of {len(unknown)} returned documents have no judgement and {treatment}")
    if lost:
        parts.append(f"{len(lost)} relevant documents are in no list, so no weights can rank them")
    if without:
        parts.append(f"no clause has {len(without)} judged queries, such as {short_list(without, MAX_SHOWN)}")
    if parts:
        warn_caller("; ".join(parts))
