"""Read and write TREC runs and qrels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, PathLike
from ranksieve._util.files import atomic_write
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError
from ranksieve.io.tables import NumbersOfDocuments, collect_numbers, column_entries, qrels_entries
from ranksieve.io.text_files import content_lines, read_text, source_name


def read_qrels(path: PathLike) -> NumbersOfDocuments:
    """Read TREC judgements ``query 0 document grade``: ``qrels[query][document]`` is a grade."""
    name = source_name(path)
    return collect_numbers(qrels_entries(read_text(path), name), name, "judgement")


def read_run(path: PathLike) -> NumbersOfDocuments:
    """Read a TREC run ``query Q0 document rank score tag``: ``run[query][document]`` is a score.

    The rank column is ignored, as in trec_eval: the scores determine the order.
    """
    name = source_name(path)
    lines = content_lines(read_text(path), name)
    columns = "query Q0 document rank score tag"
    return collect_numbers(column_entries(lines, columns, "a TREC run", "score"), name, "result")


def write_run(dataset: Dataset, scores: FloatArray, path: PathLike, tag: str = "ranksieve") -> None:
    """Write scores of a data set, one per row, as a TREC run; the file is written atomically."""
    with atomic_write(path) as file:
        file.writelines(run_lines(dataset, scores, tag))


def write_qrels(dataset: Dataset, path: PathLike) -> None:
    """Write the labels of a data set as TREC qrels; documents are named as in :func:`write_run`."""
    names = document_names(dataset)
    with atomic_write(path) as file:
        for query, rows in _query_rows(dataset):
            file.writelines(
                f"{query} 0 {names[row]} {repr(grade).removesuffix('.0')}\n"
                for row, grade in zip(rows, dataset.y[rows].tolist(), strict=True)
            )


def run_lines(dataset: Dataset, scores: FloatArray, tag: str = "ranksieve") -> Iterator[str]:
    """``query Q0 document rank score tag``, best first; ties keep input order."""
    names = document_names(dataset)
    for query, rows in _query_rows(dataset):
        best_first = np.array(rows)[np.argsort(-scores[rows], kind="stable")].tolist()
        for rank, row in enumerate(best_first, start=1):
            yield f"{query} Q0 {names[row]} {rank} {float(scores[row])!r} {_as_one_word(tag)}\n"


def document_names(dataset: Dataset) -> list[str]:
    """The document id of each row as one word, or the row number (from 1) if there is none."""
    ids = [""] * dataset.n_docs if dataset.doc_ids is None else dataset.doc_ids
    names = [_as_one_word("" if one is None else one) or str(row) for row, one in enumerate(ids, start=1)]
    for query, rows in _query_rows(dataset):
        if len({names[row] for row in rows}) < len(rows):
            twice = next(names[row] for row in rows if [names[r] for r in rows].count(names[row]) > 1)
            reason = f"query {query} has two documents called {twice}; TREC files need distinct ids"
            raise DataError(None, None, reason)
    return names


def _query_rows(dataset: Dataset) -> Iterator[tuple[str, list[int]]]:
    queries, seen = dataset.queries, set()
    for q, query in enumerate(queries.ids.tolist()):
        word = _as_one_word(query)
        if not word or word in seen:
            reason = (
                f"the query id {query!r} is empty, or not unique as one word; TREC files need distinct ids"
            )
            raise DataError(None, None, reason)
        seen.add(word)
        yield word, queries.rows_of(q).tolist()


def _as_one_word(value: Any) -> str:
    return "_".join(str(value).split())
