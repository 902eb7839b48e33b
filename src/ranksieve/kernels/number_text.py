"""The double nearest to a decimal number written in bytes.

A number is ``mantissa · 10^power`` and rounded once, so it has the bits of Python's ``float``; the few texts
that cannot be settled here (more than 18 digits, powers beyond 64) are left to the caller to repair.
"""

import math

import numpy as np

from ranksieve.kernels.compiling import helper

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
    """The 128 leading bits of 5^q: rounded up for −27 ≤ q < 0, where 5^−q fits 64 bits, else down."""
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
    """text[i] for i ≥ 0: an unsigned index spares the test for a negative one."""
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
    """The double nearest to mantissa · 10^power (mantissa > 0, |power| ≤ 64), and whether it is settled.

    Eisel and Lemire: mantissa · 5^power to 128 bits; its leading 55 decide unless a carry may reach them.
    """
    w = np.uint64(mantissa)
    exponent = ((217706 * power) >> 16) + 11  # floor(power · log2 10) with the bits that are cut off below
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
    kept = high >> (top + U9)
    if low <= U1 and -4 <= power <= 23 and kept & np.uint64(3) == U1 and kept << (top + U9) == high:
        kept -= U1  # exactly halfway: to even
    kept = (kept + (kept & U1)) >> U1
    return math.ldexp(np.float64(kept), exponent + np.int64(top)), True


@helper(forceinline=True)
def _scaled(mantissa, power):
    """mantissa · 10^power rounded once, and whether that could be settled.

    A mantissa up to 2^53 and a power of ten up to 10^22 are exact doubles: one operation rounds once.
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
    """Whether the lower-case ``word`` stands at i in any case (a text ends in a newline, no word has one)."""
    k = 0
    while k < len(word) and at(text, i + k) | LOWER_CASE == word[k]:
        k += 1
    return k == len(word)


@helper
def _missing(text, i):
    """NULL or NaN at i in any case, or else a bad number."""
    end = i + 4 if matches(text, i, NULL) else i + 3 if matches(text, i, NAN) else i
    if end > i and ENDS_TOKEN[at(text, end)]:
        return np.nan, end, MISSING
    return 0.0, i, BAD


@helper
def _exponent(text, i):
    """The exponent after the ``e`` at i, capped, and where it ends: at i itself when it has no digits."""
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
    """How many zeros a number at i begins with, before and after its point."""
    zeros = 0
    while at(text, i) == ZERO or at(text, i) == DOT:
        zeros += at(text, i) == ZERO
        i += 1
    return zeros


@helper(forceinline=True)
def number(text, i):
    """The number at i: its value, where it ends, and whether it is exact, to be repaired, missing or bad."""
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
    value, settled = _scaled(mantissa, power)
    return -value if negative else value, i, EXACT if settled else REPAIR
