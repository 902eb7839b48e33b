"""The shortest decimal number that reads back to the same float, written as bytes.

Of the shortest decimals between a float's two neighbours' midpoints it is the one nearest to the float
(R. Giulietti: The Schubfach way to render doubles, 2021), laid out as Python's ``repr`` does, without ``.0``.
"""

import numpy as np

from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.number_text import DOT, LETTER_E, MINUS, PLUS, U1, ZERO, at, product

LONGEST = 24  # bytes of -2.2250738585072014e-308
MOST_DIGITS = 17
LEAST_POINT, MOST_POINT = -3, 16  # where the decimal point may stand without an exponent, as Python has it
LEAST_TEN, MOST_TEN = -292, 324


def _power_of_ten(k):
    """The 128 leading bits of 10^k, rounded up to the next integer even where 10^k is exact."""
    ten = 10 ** abs(k)
    if k < 0:
        ten = (1 << (ten.bit_length() + 128)) // ten
    size = ten.bit_length()
    return (ten << (128 - size) if size <= 128 else ten >> (size - 128)) + 1


_TENS = [_power_of_ten(k) for k in range(LEAST_TEN, MOST_TEN + 1)]
TENS_HIGH = np.array([ten >> 64 for ten in _TENS], dtype=np.uint64)
TENS_LOW = np.array([ten & (2**64 - 1) for ten in _TENS], dtype=np.uint64)
WHOLE_TENS = np.array([10**k for k in range(20)], dtype=np.uint64)
PAIRS = np.array([[ZERO + k // 10, ZERO + k % 10] for k in range(100)], dtype=np.uint8)
NULL_TEXT = np.frombuffer(b"NULL", dtype=np.uint8).copy()

U0, U2, U10, U52, U100 = (np.uint64(k) for k in (0, 2, 10, 52, 100))
TEN_4 = np.uint64(10**4)
FRACTION, HIDDEN, HIDDEN_OF_SINGLE = np.uint64(2**52 - 1), np.uint64(2**52), np.uint64(2**23)
SIGN, ERROR = np.uint64(2**63), np.uint64(2**60)
MILLION, EXACT_DIGITS, EXACT_SINGLE_DIGITS = 1e6, 1e15, 1e6


@helper(forceinline=True)
def put(out, i, byte):
    """out[i] = byte for i ≥ 0: an unsigned index spares the test for a negative one."""
    out[np.uintp(i)] = byte


@helper(forceinline=True)
def _scaled_to_odd(high, low, c):
    """⌊(high·2^64 + low) · c / 2^128⌋, its last bit set where something is cut off: comparisons stay exact.

    The power of ten is too large by at most 1, and so the product by at most c < 2^60. What is cut off of a
    product that should be whole is therefore below 2^60, and of any other far above: at least 2^62.
    """
    carry, last = product(low, c)
    top, middle = product(high, c)
    middle += carry
    top += np.uint64(middle < carry)
    return top | np.uint64(middle != U0 or last >= ERROR)


@helper(forceinline=True)
def _parts(x):
    """c and q with x = c·2^q, c < 2^53, for a finite x > 0."""
    word = np.float64(x).view(np.uint64)
    exponent = np.int64(word >> U52)
    if exponent == 0:
        return word, np.int64(-1074)
    return word & FRACTION | HIDDEN, exponent - 1075


@helper(forceinline=True)
def _shortest(x, single):
    """(s, k) of the shortest decimal s·10^k for a finite x > 0; s may end in zeros.

    What reads as x lies between the midpoints to its neighbours, the midpoints included if x is even. k is
    chosen so that 10^k ≤ length of this interval < 10^(k + 1): it holds at most one multiple of 10^(k + 1),
    which is then the answer, and else one of the two multiples of 10^k around x.

    A float32 is taken as a float64 with a wider interval. The midpoints are float64 then, and texts next to
    them may read as one of them and then as the neighbour: an odd x keeps half a unit of float64 away.
    """
    c, q = _parts(x)
    unit = max(q + 29, np.int64(-149)) if single else q  # 2^unit is the distance to the next float
    extra = np.uint64(unit - q)
    own = c >> extra
    odd = own & U1
    uneven = unit > -149 and own == HIDDEN_OF_SINGLE if single else unit > -1074 and own == HIDDEN
    k = (unit * 1262611 - (524031 if uneven else 0)) >> 22  # floor(log10(2^unit)), or of 3/4 of it
    shift = np.uint64(unit + ((-k * 1741647) >> 19) + 1)  # floor(log2(10^-k))
    high, low = TENS_HIGH[-k - LEAST_TEN], TENS_LOW[-k - LEAST_TEN]
    four, reach, bits = c << U2, U2 << extra, U2 + extra
    inwards = U2 if single and odd == U1 else U0
    below = (reach >> U1 if uneven else reach) - inwards
    lower = _scaled_to_odd(high, low, (four - below) << shift) + odd
    value = _scaled_to_odd(high, low, four << shift)
    upper = _scaled_to_odd(high, low, (four + reach - inwards) << shift) - odd
    s = value >> bits
    tenth = s // U10
    down, up = lower <= (U10 * tenth) << bits, (U10 * (tenth + U1)) << bits <= upper
    if down != up:
        return tenth + np.uint64(up), k + 1
    down, up = lower <= s << bits, (s + U1) << bits <= upper
    if down != up:
        return s + np.uint64(up), k
    middle = (s << bits) + reach
    return s + np.uint64(value > middle or (value == middle and s & U1 == U1)), k


@helper(forceinline=True)
def _few_decimals(x, single):
    """x · 10^6 if x is a decimal of at most 6 places and so few digits that no other of them reads as x."""
    m = np.rint(x * MILLION)
    if single:
        return m if m < EXACT_SINGLE_DIGITS and np.float32(m / MILLION) == np.float32(x) else 0.0
    return m if m < EXACT_DIGITS and m / MILLION == x else 0.0


@helper(forceinline=True)
def _without_zeros(s, k):
    """The same number s·10^k > 0 with an s that does not end in 0."""
    while s % TEN_4 == U0:  # constants, which compile to products instead of divisions
        s //= TEN_4
        k += 4
    while s % U10 == U0:
        s //= U10
        k += 1
    return s, k


@helper(forceinline=True)
def _write_digits(out, i, s, n):
    """The n digits of s from out[i]."""
    i += n
    while n > 1:
        rest = s // U100
        pair = np.uintp(s - rest * U100)
        s = rest
        i -= 2
        n -= 2
        put(out, i, PAIRS[pair, 0])
        put(out, i + 1, PAIRS[pair, 1])
    if n == 1:
        put(out, i - 1, ZERO + np.uint8(s))


@helper
def _write_exponent(out, i, exponent):
    out[i] = LETTER_E
    out[i + 1] = PLUS if exponent >= 0 else MINUS
    size = np.uint64(abs(exponent))
    n = 3 if size >= U100 else 2
    _write_digits(out, i + 2, size, n)
    return i + 2 + n


@helper
def write_whole(out, i, number):
    """A whole number ≥ 0 from out[i]; returns where it ends."""
    s, n = np.uint64(number), 1
    while n < 19 and s >= WHOLE_TENS[n]:
        n += 1
    _write_digits(out, i, s, n)
    return i + n


@helper
def _fill_zeros(out, i, end):
    while i < end:
        put(out, i, ZERO)
        i += 1
    return i


@helper(forceinline=True)
def _write_decimal(out, i, s, k):
    """s·10^k from out[i], s without zeros at its end; returns where it ends."""
    n = MOST_DIGITS
    while s < WHOLE_TENS[n - 1]:
        n -= 1
    point = n + k  # digits before the decimal point
    if point < LEAST_POINT or point > MOST_POINT:
        _write_digits(out, i + 1, s, n)
        out[i] = out[i + 1]
        out[i + 1] = DOT
        return _write_exponent(out, i + n + 1 if n > 1 else i + 1, point - 1)
    if point <= 0:
        out[i], out[i + 1] = ZERO, DOT
        i = _fill_zeros(out, i + 2, i + 2 - point)
        _write_digits(out, i, s, n)
        return i + n
    if k >= 0:
        _write_digits(out, i, s, n)
        return _fill_zeros(out, i + n, i + point)
    _write_digits(out, i + 1, s, n)
    for j in range(i, i + point):
        put(out, j, at(out, j + 1))
    put(out, i + point, DOT)
    return i + n + 1


@helper(forceinline=True)
def write_number(out, i, x, single):
    """A finite number, or NULL for NaN, from out[i]; returns where it ends, at most ``LONGEST`` further.

    ``single``: x is a float32, and its text the shortest that reads back to that.
    """
    if np.isnan(x):
        for j in range(len(NULL_TEXT)):
            out[i + j] = NULL_TEXT[j]
        return i + len(NULL_TEXT)
    if np.float64(x).view(np.uint64) & SIGN != U0:
        out[i] = MINUS
        i += 1
        x = -x
    if x == 0.0:
        out[i] = ZERO
        return i + 1
    few = _few_decimals(x, single)
    if few > 0.0:
        s, k = np.uint64(few), np.int64(-6)
    else:
        s, k = _shortest(x, single)
    s, k = _without_zeros(s, k)
    return _write_decimal(out, i, s, k)


@kernel
def write_numbers(values, single, out, ends):
    """The texts of some numbers one after another in ``out``; ``ends`` says where each ends."""
    i = 0
    for k in range(len(values)):
        i = write_number(out, i, values[k], single)
        ends[k] = i
