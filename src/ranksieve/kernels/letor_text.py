"""Parser of LETOR text; numbers are correctly rounded to doubles."""

import math
from typing import NamedTuple

import numpy as np

from ranksieve.kernels.compiling import helper, kernel

SPACE, TAB, NEWLINE, RETURN, HASH = 32, 9, 10, 13, 35
PLUS, MINUS, DOT, ZERO, NINE, LETTER_E = 43, 45, 46, 48, 57, 101
LOWER_CASE = 32
EXACT, REPAIR, MISSING, BAD = range(4)

LARGEST_POWER = 64
SAFE_DIGITS = 18
POWERS_OF_TEN = np.array([10.0**k for k in range(23)])
ENDS_TOKEN = np.zeros(256, dtype=np.bool_)
ENDS_TOKEN[[SPACE, TAB, NEWLINE, RETURN, HASH]] = True
NULL, NAN = (np.frombuffer(word, dtype=np.uint8).copy() for word in (b"null", b"nan"))


def _power_of_five(q):
    """The 128 leading bits of 5^q, rounded up for −27 ≤ q < 0, where 5^−q fits into 64 bits, else down."""
    five = 5 ** abs(q)
    if q < 0:
        five = (1 << (five.bit_length() + 127)) // five + (q >= -27)
    return five << (128 - five.bit_length()) if five < 1 << 128 else five >> (five.bit_length() - 128)


U1, U9, U32, U63 = np.uint64(1), np.uint64(9), np.uint64(32), np.uint64(63)
LOW_HALF, LOW_NINE, ALL_ONES = np.uint64(2**32 - 1), np.uint64(2**9 - 1), np.uint64(2**64 - 1)
_FIVES = [_power_of_five(q) for q in range(-LARGEST_POWER, LARGEST_POWER + 1)]
FIVES_HIGH = np.array([five >> 64 for five in _FIVES], dtype=np.uint64)
FIVES_LOW = np.array([five & (2**64 - 1) for five in _FIVES], dtype=np.uint64)


@helper(forceinline=True)
def at(text, i):
    """text[i] for i ≥ 0; an unsigned index avoids the check for negative ones."""
    return text[np.uintp(i)]


@helper
def product(a, b):
    """The high and the low 64 bits of a · b."""
    a1, a0, b1, b0 = a >> U32, a & LOW_HALF, b >> U32, b & LOW_HALF
    low, cross = a0 * b0, a1 * b0
    middle = (low >> U32) + (cross & LOW_HALF) + a0 * b1
    return a1 * b1 + (cross >> U32) + (middle >> U32), (middle << U32) | (low & LOW_HALF)


@helper
def _round_once(mantissa, power):
    """The double nearest to mantissa · 10^power (mantissa > 0, |power| ≤ 64), and whether it is decided.

    Eisel–Lemire: mantissa · 5^power to 128 bits; the leading 55 decide unless a carry may reach them.
    """
    w = np.uint64(mantissa)
    exponent = ((217706 * power) >> 16) + 11  # floor(power · log2 10), plus the bits shifted out below
    while w >> U63 == 0:
        w <<= U1
        exponent -= 1
    high, low = product(w, FIVES_HIGH[power + LARGEST_POWER])
    if high & LOW_NINE == LOW_NINE:
        carry, _ = product(w, FIVES_LOW[power + LARGEST_POWER])
        low += carry
        high += np.uint64(low < carry)
        if low == ALL_ONES:
            return 0.0, False
    top = high >> U63
    bits = high >> (top + U9)
    if low <= U1 and -4 <= power <= 23 and bits & np.uint64(3) == U1 and bits << (top + U9) == high:
        bits -= U1  # exactly halfway: round to even
    bits = (bits + (bits & U1)) >> U1
    return math.ldexp(np.float64(bits), exponent + np.int64(top)), True


@helper(forceinline=True)
def _scaled(mantissa, power):
    """mantissa · 10^power, rounded once, and whether that could be decided.

    Mantissas up to 2^53 and powers of ten up to 10^22 are exact doubles, so one operation rounds once.
    """
    if mantissa <= 1 << 53 and -22 <= power <= 22:
        if power < 0:
            return mantissa / POWERS_OF_TEN[-power], True
        return mantissa * POWERS_OF_TEN[power], True
    if mantissa == 0 or power < -LARGEST_POWER or power > LARGEST_POWER:
        return 0.0, mantissa == 0
    return _round_once(mantissa, power)


@helper
def matches(text, i, word):
    """Return True if the lower-case ``word`` is at i, ignoring case; stops at the final newline."""
    k = 0
    while k < len(word) and at(text, i + k) | LOWER_CASE == word[k]:
        k += 1
    return k == len(word)


@helper
def _missing(text, i):
    """Parse NULL or NaN at i, ignoring case; anything else is a bad number."""
    end = i + 4 if matches(text, i, NULL) else i + 3 if matches(text, i, NAN) else i
    if end > i and ENDS_TOKEN[at(text, end)]:
        return np.nan, end, MISSING
    return 0.0, i, BAD


@helper
def _exponent(text, i):
    """The exponent after the ``e`` at i, capped, and its end; the end is i if there are no digits."""
    k = i + 1
    negative = at(text, k) == MINUS
    if negative or at(text, k) == PLUS:
        k += 1
    first = k
    exponent = 0
    while ZERO <= at(text, k) <= NINE:
        if exponent < 100000:
            exponent = exponent * 10 + (at(text, k) - ZERO)
        k += 1
    return -exponent if negative else exponent, k if k > first else i


@helper
def leading_zeros(text, i):
    """Number of leading zeros of the number at i, before and after the decimal point."""
    zeros = 0
    while at(text, i) == ZERO or at(text, i) == DOT:
        zeros += at(text, i) == ZERO
        i += 1
    return zeros


@helper(forceinline=True)
def number(text, i):
    """The number at i: its value, its end, and its kind (EXACT, REPAIR, MISSING or BAD).

    REPAIR: Python's float() must parse it, because it has too many digits or its rounding is not decided.
    """
    begin = i
    negative = at(text, i) == MINUS
    if negative or at(text, i) == PLUS:
        i += 1
    first = i
    mantissa = 0
    while ZERO <= at(text, i) <= NINE:
        mantissa = mantissa * 10 + (at(text, i) - ZERO)
        i += 1
    digits = i - first
    power = 0
    if at(text, i) == DOT:
        i += 1
        point = i
        while ZERO <= at(text, i) <= NINE:
            mantissa = mantissa * 10 + (at(text, i) - ZERO)
            i += 1
        power = point - i
        digits -= power
    if digits == 0:
        return _missing(text, begin)
    if at(text, i) | LOWER_CASE == LETTER_E:
        exponent, i = _exponent(text, i)
        power += exponent
    if not ENDS_TOKEN[at(text, i)]:
        return 0.0, begin, BAD
    if digits > SAFE_DIGITS and digits - leading_zeros(text, first) > SAFE_DIGITS:
        return 0.0, i, REPAIR
    value, is_decided = _scaled(mantissa, power)
    return -value if negative else value, i, EXACT if is_decided else REPAIR


COLON, EQUALS = 58, 61
QUERY, DOC_ID = (np.frombuffer(word, dtype=np.uint8).copy() for word in (b"qid:", b"docid"))
GOOD, BAD_LABEL, NO_QUERY, BAD_FEATURE, BAD_INDEX, INDEX_TOO_LARGE = range(6)


class ParsedRows(NamedTuple):
    """Output arrays of the parser: compressed rows, runs of one query, comments, and numbers to repair."""

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


class ParseResult(NamedTuple):
    """Number of entries filled in each part of :class:`ParsedRows`, and the first fault, if any."""

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
    """Begin and end of the id in ``qid:ID`` at i (equal if absent), and whether it equals the previous id."""
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
    """Begin and end of X in ``docid = X`` in the comment text[i:end], or else of its first token."""
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
    """Fault of the feature index text[i:end], which is out of range or not followed by a colon."""
    if i == end:
        return BAD_INDEX if at(text, i) == MINUS and ZERO <= at(text, i + 1) <= NINE else BAD_FEATURE
    if at(text, end) != COLON:
        return BAD_FEATURE
    return BAD_INDEX if leading_zeros(text, i) == end - i else INDEX_TOO_LARGE


@helper(forceinline=True)
def _features(text, i, largest, entries, repairs, out):
    """Parse the entries of one row; the returned position is their end or the faulty entry."""
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
    """Append the text after a # at i to the ``comment`` bytes stored so far, and mark the document id in it.

    Returns (end of the line, bytes stored).
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
def parse_lines(text, i, end, largest, out):
    """Parse text[i:end], complete lines numbered from 1, into ``out``; stop at a fault.

    Row r has the entries ``starts[r]:starts[r + 1]`` of ``features`` (from 0) and ``values``. A run is
    consecutive rows of one query, whose id is text[run_begins:run_ends]. A repair is the entry, or −1 − row
    for a label, and the begin of its number. After a fault, row ``rows`` is incomplete.
    """
    zero = np.int64(0)  # a literal 0 would compile the functions it is passed to twice
    rows = entries = runs = repairs = width = comment = missing_line = missing_feature = zero
    line = query = query_end = zero
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
    return ParseResult(
        rows, entries, runs, repairs, line, width, ordered, missing_line, missing_feature, fault, i
    )


@kernel
def scatter_rows(starts, features, values, dense):
    """Copy compressed rows into a dense matrix of zeros (adding would lose −0)."""
    for r in range(len(starts) - 1):
        for entry in range(starts[r], starts[r + 1]):
            dense[r, features[entry]] = values[entry]
