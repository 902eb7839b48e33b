"""Tables of queries: how much each counts."""

from __future__ import annotations

from ranksieve._types import PathLike
from ranksieve.errors import DataError
from ranksieve.formats.text_files import (
    csv_rows,
    finite_number,
    first_content,
    read_text,
    source_name,
    text_lines,
)

HEADER = (("query", "qid", "query_id"), ("weight", "query_weight"))


def read_query_weights(path: PathLike) -> dict[str, float]:
    """Read the weights of queries, as ``query_weight=`` of fits takes them: CSV or TSV, ``query,weight``.

    A header is known by its names: ``query``, ``qid`` or ``query_id``, and ``weight`` or ``query_weight``.
    """
    lines, name = text_lines(read_text(path)), source_name(path)
    weights: dict[str, float] = {}
    lines_of: dict[str, int] = {}
    delimiter = "\t" if "\t" in first_content(lines) else ","
    for row, (place, cells) in enumerate(csv_rows(lines, delimiter, name)):
        if len(cells) != 2:
            raise DataError(*place, f"has {len(cells)} cells; expected two: query,weight")
        query, weight = (cell.strip() for cell in cells)
        if row == 0 and query.lower() in HEADER[0] and weight.lower() in HEADER[1]:
            continue
        if not query:
            raise DataError(*place, "the query has no id; name it or drop the line")
        if query in lines_of:
            raise DataError(*place, f"query {query!r} is on line {lines_of[query]} too; list it once")
        weights[query], lines_of[query] = finite_number(weight, place, "weight"), place[1]
        if weights[query] < 0:
            raise DataError(*place, f"the weight of query {query!r} is {weight}; expected a number ≥ 0")
    if not weights:
        raise DataError(name, None, "holds no weights; expected lines query,weight")
    return weights
