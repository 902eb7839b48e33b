"""Files of query texts: an id and what was asked, one query per line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ranksieve._types import PathLike
from ranksieve._util.messages import warn_caller
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, ParameterError
from ranksieve.formats.folder_writer import text_column
from ranksieve.formats.text_files import cells_of, content_lines, delimiter_of, read_text, source_name

QUERY = "query"  # the text column that they become
IDS = ("qid", "query_id", "queryid", "id", "topic")  # what the first column of a header may be called


def read_queries(path: PathLike) -> dict[str, str]:
    """Read the texts of queries by id: TSV or CSV of two columns, id and text, with or without a header."""
    name, texts = source_name(path), dict[str, str]()
    lines = list(content_lines(read_text(path), name))
    delimiter = delimiter_of(lines[0][1]) if lines else ""
    for place, line in lines:
        query, *text = cells_of(line, delimiter)
        if len(text) != 1:
            raise DataError(*place, f"has {1 + len(text)} cells; expected two, a query id and its text")
        if not texts and place == lines[0][0] and query.strip().lower() in IDS:
            continue
        if query.strip() in texts:
            raise DataError(*place, f"query {query.strip()} has a second text; keep one of them")
        texts[query.strip()] = text[0].strip()
    if not texts:
        raise DataError(name, None, "holds no query")
    return texts


def with_query_texts(data: Dataset, queries: PathLike | Mapping[str, str]) -> Dataset:
    """The data with a text column ``query``: the text of each row's query, found by the query's id.

    Parameters
    ----------
    data : Dataset
        Its ``texts`` are added to.
    queries : path or mapping
        TSV or CSV with query id and text, with or without a header; or texts by id.
    """
    given = isinstance(queries, Mapping)
    texts = queries if isinstance(queries, Mapping) else read_queries(queries)
    name = "`queries`" if given else source_name(queries)  # type: ignore[arg-type]
    ids = [str(query) for query in data.query_ids.tolist()]
    lacking = [query for query in ids if query not in texts]
    if len(lacking) == len(ids):
        reason = f"has none of the {len(ids)} queries of {data.source or 'the data'}, such as {ids[0]}"
        raise ParameterError("queries", queries, reason) if given else DataError(name, None, reason)
    if lacking:
        warn_caller(f"{name}: has no text for {len(lacking)} of {len(ids)} queries, such as {lacking[0]}")
    column = text_column([texts.get(query, "") for query in ids])
    data.texts[QUERY] = column[data.queries.of_rows(np.arange(data.n_queries))]
    return data
