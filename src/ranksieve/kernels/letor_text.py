"""LETOR text to compressed rows, one pass over the bytes.

A line is ``label qid:ID index:value … # comment``. Numbers are read as ``mantissa · 10^power`` and rounded
once, so they are the doubles nearest to the text; the few that cannot be settled here are listed for repair.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

SPACE, TAB, NEWLINE, RETURN, HASH, COLON = 32, 9, 10, 13, 35, 58
PLUS, MINUS, DOT, ZERO, EQUALS, LETTER_E = 43, 45, 46, 48, 61, 101
LOWER_CASE = 32

GOOD, BAD_LABEL, NO_QUERY, BAD_FEATURE, BAD_INDEX, INDEX_TOO_LARGE = range(6)
EXACT, REPAIR, MISSING, BAD = range(4)

LARGEST_POWER = 64
SAFE_DIGITS = 18
POWERS_OF_TEN = np.array([10.0**k for k in range(23)])
ENDS_TOKEN = np.zeros(256, dtype=np.bool_)
ENDS_TOKEN[[SPACE, TAB, NEWLINE, RETURN, HASH]] = True
NULL_AND_NAN = np.frombuffer(b"nullnan", dtype=np.uint8).copy()
DOC_ID = np.frombuffer(b"docid", dtype=np.uint8).copy()


def _power_of_five(q):
    """The 128 leading bits of 5^q, rounded down for q ≥ 0 and up for q < 0."""
    if q >= 0:
        five = 5**q
        return five << (128 - five.bit_length()) if five < 1 << 128 else five >> (five.bit_length() - 128)
    five = 5**-q
    exact = (1 << (2 * five.bit_length() + 128)) // five + 1
    return exact >> (exact.bit_length() - 128)


_FIVES = [_power_of_five(q) for q in range(-LARGEST_POWER, LARGEST_POWER + 1)]
FIVES_HIGH = np.array([five >> 64 for five in _FIVES], dtype=np.uint64)
FIVES_LOW = np.array([five & (2**64 - 1) for five in _FIVES], dtype=np.uint64)


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
    unordered: bool
    missing_line: int
    missing_feature: int
    fault: int
    fault_at: int


@njit(cache=True, nogil=True)
def _product_high_low(a, b):
    """The 128-bit product of two 64-bit numbers."""
    half = np.uint64(32)
    mask = np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    low, cross = a0 * b0, a1 * b0
    middle = (low >> half) + (cross & mask) + a0 * b1
    return a1 * b1 + (cross >> half) + (middle >> half), (middle << half) | (low & mask)


@njit(cache=True, nogil=True)
def _round_once(mantissa, power):
    """The double nearest to mantissa · 10^power for |power| ≤ 64, by Eisel and Lemire; whether it is settled.

    mantissa · 5^power is taken to 128 bits; its leading 55 bits decide unless they may hide a carry.
    """
    one = np.uint64(1)
    w = np.uint64(mantissa)
    shift = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == np.uint64(0):
            w <<= np.uint64(step)
            shift += step
    high, low = _product_high_low(w, FIVES_HIGH[power + LARGEST_POWER])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        carry, _ = _product_high_low(w, FIVES_LOW[power + LARGEST_POWER])
        low += carry
        if carry > low:
            high += one
        if low == np.uint64(0xFFFFFFFFFFFFFFFF):
            return 0.0, False
    top = high >> np.uint64(63)
    kept = high >> (top + np.uint64(9))
    halfway = low <= one and -4 <= power <= 23 and kept & np.uint64(3) == one
    if halfway and kept << (top + np.uint64(9)) == high:
        kept &= ~one
    kept = (kept + (kept & one)) >> one
    exponent = ((217706 * power) >> 16) + 11 + np.int64(top) - shift
    return np.float64(kept) * 2.0**exponent, True


@njit(cache=True, nogil=True)
def _exponent(text, i):
    """The exponent whose ``e`` stands at i, capped; where it ends (i itself when there is no digit)."""
    start = i
    i += 1
    sign = 1
    if text[i] == PLUS or text[i] == MINUS:
        sign = 44 - np.int64(text[i])
        i += 1
    first = i
    exponent = 0
    while ZERO <= text[i] < ZERO + 10:
        exponent = min(exponent * 10 + text[i] - ZERO, 100000)
        i += 1
    return sign * exponent, i if i > first else start


@njit(cache=True, nogil=True)
def _matches(text, i, word):
    """Whether the lower-case ``word`` stands at i in any case; the last byte of a text is a newline."""
    for k in range(len(word)):
        if text[i + k] | LOWER_CASE != word[k]:
            return False
    return True


@njit(cache=True, nogil=True)
def _number(text, i):
    """The number at i: its value, where it ends, and whether it is exact, to be repaired, missing or bad."""
    begin = i
    negative = text[i] == MINUS
    if negative or text[i] == PLUS:
        i += 1
    first = i
    mantissa = np.int64(0)
    while ZERO <= text[i] < ZERO + 10:
        mantissa = mantissa * 10 + (text[i] - ZERO)
        i += 1
    digits = i - first
    power = 0
    if text[i] == DOT:
        i += 1
        point = i
        while ZERO <= text[i] < ZERO + 10:
            mantissa = mantissa * 10 + (text[i] - ZERO)
            i += 1
        power = point - i
        digits -= power
    if digits == 0:
        return _missing(text, begin)
    if text[i] | LOWER_CASE == LETTER_E:
        exponent, i = _exponent(text, i)
        power += exponent
    if not ENDS_TOKEN[text[i]]:
        return 0.0, begin, BAD
    if digits > SAFE_DIGITS:
        while text[first] == ZERO or text[first] == DOT:
            digits -= text[first] == ZERO
            first += 1
        if digits > SAFE_DIGITS:
            return 0.0, i, REPAIR
    value, settled = _scaled(mantissa, power)
    return -value if negative else value, i, EXACT if settled else REPAIR


@njit(cache=True, nogil=True)
def _missing(text, i):
    """NULL or NaN at i in any case, or else a bad number."""
    for begin, end in ((0, 4), (4, 7)):
        word = NULL_AND_NAN[begin:end]
        if _matches(text, i, word) and ENDS_TOKEN[text[i + end - begin]]:
            return np.nan, i + end - begin, MISSING
    return 0.0, i, BAD


@njit(cache=True, nogil=True)
def _scaled(mantissa, power):
    """mantissa · 10^power rounded once, and whether that could be settled.

    A mantissa below 2^53 and a power of ten up to 10^22 are exact doubles: one operation rounds once.
    """
    if mantissa <= 1 << 53 and -22 <= power <= 22:
        if power < 0:
            return mantissa / POWERS_OF_TEN[-power], True
        return mantissa * POWERS_OF_TEN[power], True
    if mantissa == 0:
        return 0.0, True
    if -LARGEST_POWER <= power <= LARGEST_POWER:
        return _round_once(mantissa, power)
    return 0.0, False


@njit(cache=True, nogil=True)
def _skip_blanks(text, i):
    while text[i] == SPACE or text[i] == TAB or text[i] == RETURN:
        i += 1
    return i


@njit(cache=True, nogil=True)
def _document_id(text, i, end):
    """Begin and end of X in ``docid = X`` anywhere in a comment, else of its first token."""
    first = _skip_blanks(text, i)
    i = first
    while i < end:
        if _matches(text, i, DOC_ID):
            k = _skip_blanks(text, i + len(DOC_ID))
            if text[k] == EQUALS:
                k = _skip_blanks(text, k + 1)
                if k < end:
                    return k, _token_end(text, k, end)
        i = _skip_blanks(text, _token_end(text, i, end))
    return first, _token_end(text, first, end)


@njit(cache=True, nogil=True)
def _token_end(text, i, end):
    """The end of the token at i inside a comment, where # is an ordinary byte."""
    while i < end and text[i] != SPACE and text[i] != TAB and text[i] != RETURN:
        i += 1
    return i


@njit(cache=True, nogil=True)
def _line_end(text, i):
    while text[i] != NEWLINE:
        i += 1
    return i


@njit(cache=True, nogil=True)
def parse_lines(text, i, end, line, largest, out):
    """Parse text[i:end], whole lines of which ``line`` came before; stop at the first fault.

    Row r holds the entries ``starts[r]:starts[r + 1]`` of ``features`` (from 0) and ``values``. A run is a
    stretch of rows with one query id, the bytes ``run_begins:run_ends``. A repair names the entry, or
    −1 − row for a label, and where its number begins.
    """
    rows = entries = runs = repairs = width = comment = missing_line = missing_feature = 0
    unordered = False
    fault = GOOD
    while i < end:
        line += 1
        i = _skip_blanks(text, i)
        if text[i] == NEWLINE or text[i] == HASH:
            i = _line_end(text, i) + 1
            continue
        begin = i
        label, i, kind = _number(text, i)
        if kind == BAD or kind == MISSING:
            fault = BAD_LABEL
            i = begin
            break
        if kind == REPAIR:
            out.repair_entries[repairs] = -1 - rows
            out.repair_begins[repairs] = begin
            repairs += 1
        i = _skip_blanks(text, i)
        if not (text[i] == 113 and text[i + 1] == 105 and text[i + 2] == 100 and text[i + 3] == COLON):
            fault = NO_QUERY
            break
        begin = i + 4
        i = begin
        same = runs > 0
        previous = out.run_begins[runs - 1] if same else begin
        while not ENDS_TOKEN[text[i]]:
            same = same and text[previous + i - begin] == text[i]
            i += 1
        if i == begin:
            fault = NO_QUERY
            i -= 4
            break
        if not (same and out.run_ends[runs - 1] - previous == i - begin):
            out.run_rows[runs] = rows
            out.run_begins[runs] = begin
            out.run_ends[runs] = i
            runs += 1
        out.labels[rows] = label
        out.lines[rows] = line
        out.starts[rows] = entries
        last = 0
        while True:
            i = _skip_blanks(text, i)
            if text[i] == NEWLINE or text[i] == HASH:
                break
            begin = i
            feature = 0
            while ZERO <= text[i] < ZERO + 10:
                feature = min(feature * 10 + text[i] - ZERO, 1 << 40)
                i += 1
            if i == begin or text[i] != COLON:
                negative = text[i] == MINUS and i == begin and ZERO <= text[i + 1] < ZERO + 10
                fault = BAD_INDEX if negative else BAD_FEATURE
            elif feature == 0:
                fault = BAD_INDEX
            elif feature > largest:
                fault = INDEX_TOO_LARGE
            if fault:
                break
            value_begin = i + 1
            value, i, kind = _number(text, value_begin)
            if kind != EXACT:
                if kind == BAD:
                    fault = BAD_FEATURE
                    break
                if kind == REPAIR:
                    out.repair_entries[repairs] = entries
                    out.repair_begins[repairs] = value_begin
                    repairs += 1
                elif missing_line == 0:
                    missing_line = line
                    missing_feature = feature
            unordered |= feature <= last
            last = feature
            width = max(width, feature)
            out.features[entries] = feature - 1
            out.values[entries] = value
            entries += 1
        if fault:
            i = begin
            break
        id_begin = id_end = comment
        if text[i] == HASH:
            begin = i + 1
            i = _line_end(text, begin)
            stop = i - 1 if text[i - 1] == RETURN and i > begin else i
            id_from, id_to = _document_id(text, begin, stop)
            id_begin += id_from - begin
            id_end += id_to - begin
            for k in range(begin, stop):
                out.comments[comment] = text[k]
                comment += 1
        out.comment_ends[rows] = comment
        out.id_begins[rows] = id_begin
        out.id_ends[rows] = id_end
        rows += 1
        i += 1
    out.starts[rows] = entries
    return Parsed(
        rows, entries, runs, repairs, line, width, unordered, missing_line, missing_feature, fault, i
    )
