"""Tables of queries: how much each counts."""

from __future__ import annotations

from ranksieve._types import PathLike
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
    places: dict[str, str] = {}
    delimiter = "\t" if "\t" in first_content(lines) else ","
    for row, (place, cells) in enumerate(csv_rows(lines, delimiter, name)):
        if len(cells) != 2:
            raise ValueError(f"{place}: has {len(cells)} cells; expected two: query,weight")
        query, weight = (cell.strip() for cell in cells)
        if row == 0 and query.lower() in HEADER[0] and weight.lower() in HEADER[1]:
            continue
        if not query:
            raise ValueError(f"{place}: the query has no id; name it or drop the line")
        if query in places:
            raise ValueError(f"{place}: query {query!r} is in {places[query]} too; list it once")
        weights[query], places[query] = finite_number(weight, place, "weight"), place
        if weights[query] < 0:
            raise ValueError(f"{place}: the weight of query {query!r} is {weight}; expected 0 or more")
    if not weights:
        raise ValueError(f"{name}: holds no weights; expected lines query,weight")
    return weights
