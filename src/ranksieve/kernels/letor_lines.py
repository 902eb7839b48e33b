"""Rows to LETOR text: ``label qid:ID index:value … # comment``, byte by byte."""

from typing import NamedTuple

import numpy as np

from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.letor_text import COLON, QUERY
from ranksieve.kernels.number_text import NEWLINE, SPACE, at
from ranksieve.kernels.shortest_text import put, write_number, write_whole


class Lines(NamedTuple):
    """Row r has the entries ``starts[r]:starts[r + 1]`` of ``values``, whose columns begin at ``places[r]``.

    Its query is ``queries[query_starts[q]:query_starts[q + 1]]`` with q = ``query_of_row[r]``; what follows
    its features is ``tails[tail_starts[r]:tail_starts[r + 1]]``. ``single``: the values are float32.
    """

    labels: np.ndarray
    starts: np.ndarray
    places: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    single: bool
    query_of_row: np.ndarray
    queries: np.ndarray
    query_starts: np.ndarray
    tails: np.ndarray
    tail_starts: np.ndarray


@helper
def _copy(out, i, text, begin, end):
    for k in range(begin, end):
        put(out, i + k - begin, at(text, k))
    return i + end - begin


@kernel
def write_lines(lines, out):
    """Write the rows into ``out``, which has room for them; returns how many bytes they take."""
    i = zero = np.int64(0)  # a literal 0 would compile the functions it is passed to twice
    for r in range(len(lines.labels)):
        i = write_number(out, i, lines.labels[r], False)
        put(out, i, SPACE)
        i = _copy(out, i + 1, QUERY, zero, len(QUERY))
        q = lines.query_of_row[r]
        i = _copy(out, i, lines.queries, lines.query_starts[q], lines.query_starts[q + 1])
        shift = lines.places[r] - lines.starts[r]
        for entry in range(lines.starts[r], lines.starts[r + 1]):
            put(out, i, SPACE)
            i = write_whole(out, i + 1, lines.columns[entry + shift] + 1)
            put(out, i, COLON)
            i = write_number(out, i + 1, lines.values[entry], lines.single)
        i = _copy(out, i, lines.tails, lines.tail_starts[r], lines.tail_starts[r + 1])
        put(out, i, NEWLINE)
        i += 1
    return i
