"""The shortest texts of floats against Python's repr, NumPy's, exact arithmetic and the way back."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor, log2

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ranksieve._parallel import use_threads
from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import read_letor, write_letor
from ranksieve.kernels import letor_text as shortest_text
from ranksieve.kernels.letor_text import LONGEST, write_numbers
from tests.tiers import examples

rng = np.random.default_rng(0)


def texts_of(values, single=False):
    values = np.array(values, dtype=np.float64)
    out, ends = np.empty(LONGEST * len(values), dtype=np.uint8), np.empty(len(values), dtype=np.int64)
    write_numbers(values, single, out, ends)
    block = out.tobytes().decode("latin-1")
    return [block[a:b] for a, b in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]


def plain_repr(value):
    return repr(value).removesuffix(".0")


def with_neighbours(values):
    values = np.asarray(values)
    low, high = np.nextafter(values, values.dtype.type(0)), np.nextafter(values, values.dtype.type(np.inf))
    near = np.concatenate([low, values, high])
    return near[np.isfinite(near)]


def random_bits(word, kind, count):
    values = rng.integers(0, np.iinfo(word).max, count, dtype=word, endpoint=True).view(kind)
    return values[np.isfinite(values)]


DOUBLES = {
    "random bits": random_bits(np.uint64, np.float64, 200_000),
    "powers of two": with_neighbours(2.0 ** np.arange(-1074, 1024)),
    "powers of ten": with_neighbours([float(f"1e{k}") for k in range(-323, 309)]),
    "subnormal": np.concatenate([np.arange(1, 3000), 2**52 - np.arange(1, 3000)]) * 5e-324,
    "around 2^53": 2.0**53 + np.arange(-3000, 3000),
    "whole numbers": np.arange(20_000.0),
    "short decimals": rng.integers(1, 10**7, 50_000) / 10.0 ** rng.integers(0, 23, 50_000),
    "fifteen digits": rng.integers(10**14, 10**15, 20_000) / 10.0 ** rng.integers(0, 23, 20_000),
    "near few decimals": with_neighbours(rng.integers(1, 10**9, 20_000) / 1e6),
    "normal": rng.standard_normal(50_000),
}


@pytest.mark.parametrize("values", DOUBLES.values(), ids=DOUBLES)
def test_a_float64_is_written_as_python_writes_it(values):
    assert texts_of(values) == [plain_repr(value) for value in values.tolist()]
    assert texts_of(-values) == [plain_repr(value) for value in (-values).tolist()]


@examples(500)
@given(st.lists(st.floats(allow_infinity=False, allow_nan=False), min_size=1))
def test_any_float64_is_written_as_python_writes_it(values):
    assert texts_of(values) == [plain_repr(value) for value in values]


def test_special_values():
    assert texts_of([0.0, -0.0, np.nan, -np.nan]) == ["0", "-0", "NULL", "NULL"]
    assert texts_of([0.0, -0.0, np.nan], single=True) == ["0", "-0", "NULL"]
    longest = texts_of([-2.2250738585072014e-308])[0]
    assert len(longest) == LONGEST


SINGLES = {
    "random bits": random_bits(np.uint32, np.float32, 100_000),
    "powers of two": with_neighbours(np.ldexp(np.float32(1), np.arange(-149, 128))),
    "powers of ten": with_neighbours(np.array([f"1e{k}" for k in range(-45, 39)], dtype=np.float32)),
    "subnormal": np.arange(1, 5000, dtype=np.uint32).view(np.float32),
    "around 2^24": with_neighbours(np.arange(2**24 - 3000, 2**24 + 3000, dtype=np.float32)),
    "short decimals": (rng.integers(1, 10**7, 50_000) / 10.0 ** rng.integers(0, 9, 50_000)).astype(
        np.float32
    ),
    "near six decimals": with_neighbours((rng.integers(1, 10**6, 20_000) / 1e6).astype(np.float32)),
    "normal": rng.standard_normal(50_000, dtype=np.float32),
}


@pytest.mark.parametrize("values", SINGLES.values(), ids=SINGLES)
def test_a_float32_has_the_digits_that_numpy_gives_it(values):
    texts = texts_of(values, single=True)
    assert list(map(Decimal, texts)) == [Decimal(np.format_float_scientific(v, unique=True)) for v in values]
    by_way_of_float64 = np.array([float(text) for text in texts]).astype(np.float32)
    np.testing.assert_array_equal(by_way_of_float64.view(np.uint32), values.view(np.uint32))


def test_the_float32_whose_shortest_text_would_be_rounded_twice():
    """7.038531e-26 is so near a midpoint that it reads as that in float64, and then as the neighbour."""
    value = np.array([0x15AE43FD], dtype=np.uint32).view(np.float32)
    assert np.format_float_scientific(value[0], unique=True) == "7.038531e-26"
    assert np.float32(7.038531e-26) != value[0]
    assert texts_of(value, single=True) == ["7.0385307e-26"]


def test_logarithms_by_shifts():
    """The two products that stand for floor(log10(2^q)), also of 3/4 of it, and floor(log2(10^k))."""
    for q in range(-1074, 972):
        for part, less in ((Fraction(1), 0), (Fraction(3, 4), 524031)):
            k, width = (q * 1262611 - less) >> 22, part * Fraction(2) ** q
            assert Fraction(10) ** k <= width < Fraction(10) ** (k + 1)
    for k in range(shortest_text.LEAST_TEN, shortest_text.MOST_TEN + 1):
        e = (k * 1741647) >> 19
        assert Fraction(2) ** e <= Fraction(10) ** k < Fraction(2) ** (e + 1)


def test_powers_of_ten_are_rounded_up_by_at_most_one_unit():
    for k in range(shortest_text.LEAST_TEN, shortest_text.MOST_TEN + 1):
        row = k - shortest_text.LEAST_TEN
        held = (int(shortest_text.TENS_HIGH[row]) << 64) + int(shortest_text.TENS_LOW[row])
        exact = Fraction(10) ** k / Fraction(2) ** (((k * 1741647) >> 19) - 127)
        assert exact < held <= exact + 1
        assert floor(log2(held)) in (127, 128)


def nearest_to_whole(factor, most):
    """The least distances above and below a whole number of N·factor, 1 ≤ N ≤ most, among those not whole.

    What comes nearer than all before is a sum of the nearest from above and from below (Stern, Brocot).
    """
    over = factor - floor(factor)
    under, n_over, n_under = 1 - over, 1, 1
    while over > 0 and n_over + n_under <= most and over != under:
        if over > under:
            times = min(-(-over // under) - 1, (most - n_over) // n_under)
            n_over, over = n_over + times * n_under, over - times * under
        else:
            times = min(-(-under // over) - 1, (most - n_under) // n_over)
            n_under, under = n_under + times * n_over, under - times * over
    return (over, under) if over > 0 else (Fraction(1), Fraction(1))


def test_the_least_distances_by_trying_all():
    for factor in (Fraction(355, 113), Fraction(2, 7), Fraction(10**9 + 7, 3**12), Fraction(3)):
        for most in (1, 2, 10, 500):
            parts = [n * factor % 1 for n in range(1, most + 1) if n * factor % 1]
            if parts:
                assert nearest_to_whole(factor, most) == (min(parts), 1 - max(parts))


@pytest.mark.full
def test_no_bound_is_so_near_a_whole_number_that_128_bits_mistake_it():
    """Bounds are N·2^q/10^k with N ≤ 2^55 + 2, also those of a float32; the error is below 2^60/2^128."""
    for q in range(-1074, 972):
        for less in (0, 524031):
            k = (q * 1262611 - less) >> 22
            over, under = nearest_to_whole(Fraction(2) ** q / Fraction(10) ** k, 2**55 + 2)
            assert over >= Fraction(2**62, 2**128)
            assert under > Fraction(2**60, 2**128)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("values", [DOUBLES["random bits"], SINGLES["random bits"]], ids=["64", "32"])
def test_random_bits_survive_a_file(tmp_path, values, kind):
    X = values[: len(values) // 7 * 7].reshape(-1, 7)[:4000]
    data = Dataset(kind(X), np.arange(len(X)) % 3, np.arange(len(X)) // 10)
    write_letor(data, tmp_path / "data.txt")
    back = read_letor(tmp_path / "data.txt", n_features=7, dtype=X.dtype, sparse=kind is sp.csr_array)
    returned = back.X.toarray() if sp.issparse(back.X) else back.X
    word = np.uint32 if X.dtype == np.float32 else np.uint64
    np.testing.assert_array_equal(returned.view(word), X.view(word))
    if X.dtype == np.float32:
        wide = read_letor(tmp_path / "data.txt", n_features=7).X
        np.testing.assert_array_equal(wide.astype(np.float32).view(word), X.view(word))


def test_rows_that_are_not_plain_arrays_are_written_alike(tmp_path):
    X = rng.standard_normal((50, 6))
    X[3, 2], X[4, 1] = np.nan, -0.0
    qid, y = np.arange(50) // 5, np.arange(50) % 4
    write_letor(Dataset(X, y, qid), tmp_path / "plain.txt")
    np.save(tmp_path / "X.npy", X)
    fixed = X.copy()
    fixed.flags.writeable = False
    others = [np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], fixed, np.load(tmp_path / "X.npy", "r")]
    for other in others:
        write_letor(Dataset(other, y, qid), tmp_path / "other.txt")
        assert (tmp_path / "other.txt").read_bytes() == (tmp_path / "plain.txt").read_bytes()


def test_unsorted_and_doubled_entries_of_sparse_rows(tmp_path):
    X = sp.csr_array(([3.0, 1.0, 2.0, 5.0], [2, 0, 2, 1], [0, 3, 3, 4]), shape=(3, 12))
    write_letor(Dataset(X, [1, 0, 2], [1, 1, 1]), tmp_path / "data.txt")
    assert (tmp_path / "data.txt").read_text() == "1 qid:1 1:1 3:5\n0 qid:1\n2 qid:1 2:5\n"
    assert X.indices.tolist() == [2, 0, 2, 1]


def test_wide_rows_are_written_one_at_a_time(tmp_path):
    X = rng.random((3, 40_000))
    write_letor(Dataset(X, [1, 0, 2], [1, 1, 1]), tmp_path / "data.txt")
    np.testing.assert_array_equal(read_letor(tmp_path / "data.txt").X, X)


def test_any_number_of_threads_writes_the_same_text(tmp_path):
    X = rng.standard_normal((5000, 20))
    data = Dataset(X, np.arange(5000) % 3, np.arange(5000) // 10, doc_ids=[f"d{k}" for k in range(5000)])
    for n in (1, 2, 3):
        with use_threads(n):
            write_letor(data, tmp_path / f"{n}.txt")
    texts = {(tmp_path / f"{n}.txt").read_bytes() for n in (1, 2, 3)}
    assert len(texts) == 1
    np.testing.assert_array_equal(read_letor(tmp_path / "2.txt").X, X)


def test_the_first_infinite_value_is_named_whatever_the_threads(tmp_path):
    X = np.ones((30_000, 20))
    X[29_000, 3] = X[17_000, 5] = np.inf
    with pytest.raises(ValueError, match="feature f6 of row 17000 is infinite"):
        write_letor(Dataset(X, np.zeros(30_000), np.arange(30_000) // 10), tmp_path / "data.txt")
    assert list(tmp_path.iterdir()) == []
