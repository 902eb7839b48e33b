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
