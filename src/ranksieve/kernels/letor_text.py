"""LETOR text to compressed rows, one pass over the bytes.

A line is ``label qid:ID index:value … # comment``.
"""

from typing import NamedTuple

import numpy as np

from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.number_text import (
    BAD,
    ENDS_TOKEN,
    HASH,
    MINUS,
    MISSING,
    NEWLINE,
    NINE,
    REPAIR,
    RETURN,
    SAFE_DIGITS,
    SPACE,
    TAB,
    ZERO,
    at,
    leading_zeros,
    matches,
    number,
)

COLON, EQUALS = 58, 61
QUERY, DOC_ID = (np.frombuffer(word, dtype=np.uint8).copy() for word in (b"qid:", b"docid"))
GOOD, BAD_LABEL, NO_QUERY, BAD_FEATURE, BAD_INDEX, INDEX_TOO_LARGE = range(6)


class Rows(NamedTuple):
    """Where the parser writes: compressed rows, query runs, comments, and numbers to repair."""

    labels: np.ndarray
    lines: np.ndarray
    starts: np.ndarray
    features: np.ndarray
    values: np.ndarray
    run_rows: np.ndarray
    run_begins: np.ndarray
    run_ends: np.ndarray
    comment_ends: np.ndarray
    id_begins: np.ndarray
    id_ends: np.ndarray
    comments: np.ndarray
    repair_entries: np.ndarray
    repair_begins: np.ndarray


class Parsed(NamedTuple):
    """How much of :class:`Rows` was filled, and the first fault if there is one."""

    rows: int
    entries: int
    runs: int
    repairs: int
    lines: int
    width: int
    ordered: bool
    missing_line: int
    missing_feature: int
    fault: int
    fault_at: int


@helper(forceinline=True)
def _skip_blanks(text, i):
    while at(text, i) == SPACE or at(text, i) == TAB or at(text, i) == RETURN:
        i += 1
    return i


@helper
def _line_end(text, i):
    while at(text, i) != NEWLINE:
        i += 1
    return i


@helper
def _query(text, i, previous, previous_end):
    """Begin and end of the id in ``qid:ID`` at i (equal if there is none), and whether it is the previous."""
    for k in range(len(QUERY)):
        if at(text, i + k) != QUERY[k]:
            return i, i, False
    begin = i + len(QUERY)
    same = previous < previous_end
    i = begin
    while not ENDS_TOKEN[at(text, i)]:
        same = same and at(text, previous + i - begin) == at(text, i)
        i += 1
    return begin, i, same and i - begin == previous_end - previous


@helper
def _comment_token_end(text, i, end):
    while i < end and at(text, i) != SPACE and at(text, i) != TAB and at(text, i) != RETURN:
        i += 1
    return i


@helper
def _document_id(text, i, end):
    """Begin and end of X in ``docid = X`` anywhere in the comment text[i:end], else of its first token."""
    first = _skip_blanks(text, i)
    first = first if first < end else end
    i = first
    while i < end:
        if matches(text, i, DOC_ID):
            k = _skip_blanks(text, i + len(DOC_ID))
            if at(text, k) == EQUALS:
                k = _skip_blanks(text, k + 1)
                if k < end:
                    return k, _comment_token_end(text, k, end)
        i = _skip_blanks(text, _comment_token_end(text, i, end))
    return first, _comment_token_end(text, first, end)


@helper
def _index_fault(text, i, end):
    """What is wrong with the feature index text[i:end], whose end is no colon or which is out of range."""
    if i == end:
        return BAD_INDEX if at(text, i) == MINUS and ZERO <= at(text, i + 1) <= NINE else BAD_FEATURE
    if at(text, end) != COLON:
        return BAD_FEATURE
    return BAD_INDEX if leading_zeros(text, i) == end - i else INDEX_TOO_LARGE


@helper(forceinline=True)
def _features(text, i, largest, entries, repairs, out):
    """The entries of one row; the text position stops at the end of them or at the faulty one."""
    width = missing = last = 0
    ordered = True
    while True:
        i = _skip_blanks(text, i)
        if at(text, i) == NEWLINE or at(text, i) == HASH:
            return i, entries, repairs, width, ordered, missing, GOOD
        feature = 0
        colon = i
        while ZERO <= at(text, colon) <= NINE:
            feature = feature * 10 + (at(text, colon) - ZERO)
            colon += 1
        if at(text, colon) != COLON or feature < 1 or feature > largest or colon - i > SAFE_DIGITS:
            return i, entries, repairs, width, ordered, missing, _index_fault(text, i, colon)
        value, end, kind = number(text, colon + 1)
        if kind == BAD:
            return i, entries, repairs, width, ordered, missing, BAD_FEATURE
        if kind == REPAIR:
            out.repair_entries[repairs] = entries
            out.repair_begins[repairs] = colon + 1
            repairs += 1
        if kind == MISSING and missing == 0:
            missing = feature
        ordered = ordered and feature > last
        last = feature
        if feature > width:
            width = feature
        out.features[entries] = feature - 1
        out.values[entries] = value
        entries += 1
        i = end


@helper
def _comment(text, i, comment, row, out):
    """Copy what follows a # at i behind the ``comment`` bytes kept so far, and mark the document id in it.

    Returns (end of the line, bytes kept).
    """
    out.id_begins[row] = out.id_ends[row] = comment
    if at(text, i) == HASH:
        begin = i + 1
        i = _line_end(text, begin)
        stop = i - 1 if at(text, i - 1) == RETURN else i
        id_begin, id_end = _document_id(text, begin, stop)
        out.id_begins[row] += id_begin - begin
        out.id_ends[row] += id_end - begin
        for k in range(begin, stop):
            out.comments[comment + k - begin] = at(text, k)
        comment += stop - begin
    out.comment_ends[row] = comment
    return i, comment


@kernel
def parse_lines(text, i, end, line, largest, out):
    """Parse text[i:end], whole lines that follow line number ``line``, into ``out``; stop at a fault.

    Row r owns the entries ``starts[r]:starts[r + 1]`` of ``features`` (counted from 0) and ``values``. A run
    is a stretch of rows of one query, whose id is text[run_begins:run_ends]. A repair names the entry, or
    −1 − row for a label, and where its number begins. After a fault, row ``rows`` is the unfinished one.
    """
    zero = np.int64(0)  # a literal 0 would compile the functions it is passed to twice
    rows = entries = runs = repairs = width = comment = missing_line = missing_feature = zero
    query = query_end = zero
    ordered = True
    fault = GOOD
    while i < end:
        line += 1
        i = _skip_blanks(text, i)
        if at(text, i) == NEWLINE or at(text, i) == HASH:
            i = _line_end(text, i) + 1
            continue
        out.lines[rows] = line
        out.starts[rows] = entries
        label, label_end, kind = number(text, i)
        if kind in (BAD, MISSING):
            fault = BAD_LABEL
            break
        if kind == REPAIR:
            out.repair_entries[repairs] = -1 - rows
            out.repair_begins[repairs] = i
            repairs += 1
        i = _skip_blanks(text, label_end)
        begin, stop, same = _query(text, i, query, query_end)
        if begin == stop:
            fault = NO_QUERY
            break
        if not same:
            out.run_rows[runs] = rows
            out.run_begins[runs] = query = begin
            out.run_ends[runs] = query_end = stop
            runs += 1
        out.labels[rows] = label
        i, entries, repairs, row_width, row_ordered, missing, fault = _features(
            text, stop, largest, entries, repairs, out
        )
        if fault != GOOD:
            break
        if row_width > width:
            width = row_width
        ordered = ordered and row_ordered
        if missing > 0 and missing_line == 0:
            missing_line = line
            missing_feature = missing
        i, comment = _comment(text, i, comment, rows, out)
        rows += 1
        i += 1
    if fault == GOOD:
        out.starts[rows] = entries
    return Parsed(rows, entries, runs, repairs, line, width, ordered, missing_line, missing_feature, fault, i)


@kernel
def scatter_rows(starts, features, values, dense):
    """Put compressed rows into a dense matrix of zeros (unlike a sum, this keeps −0)."""
    for r in range(len(starts) - 1):
        for entry in range(starts[r], starts[r + 1]):
            dense[r, features[entry]] = values[entry]
