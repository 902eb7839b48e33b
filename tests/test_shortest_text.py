"""Texts of floats in LETOR files against Python's repr and NumPy, and round trips."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import read_letor, shortest_texts, write_letor
from tests.tiers import examples

rng = np.random.default_rng(0)


def texts_of(values):
    return [text.decode() for text in shortest_texts(np.asarray(values))]


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
def test_float64_texts_equal_python(values):
    assert texts_of(values) == [plain_repr(value) for value in values.tolist()]
    assert texts_of(-values) == [plain_repr(value) for value in (-values).tolist()]


@examples(500)
@given(st.lists(st.floats(allow_infinity=False, allow_nan=False), min_size=1))
def test_random_float64_texts_equal_python(values):
    assert texts_of(values) == [plain_repr(value) for value in values]


def test_special_values():
    for kind in (np.float64, np.float32):
        assert texts_of(np.array([0.0, -0.0, np.nan, -np.nan], dtype=kind)) == ["0", "-0", "NULL", "NULL"]
        assert texts_of(np.empty(0, dtype=kind)) == []


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
def test_float32_texts_have_numpys_digits(values):
    texts = texts_of(values)
    assert list(map(Decimal, texts)) == [Decimal(np.format_float_scientific(v, unique=True)) for v in values]
    by_way_of_float64 = np.array([float(text) for text in texts]).astype(np.float32)
    np.testing.assert_array_equal(by_way_of_float64.view(np.uint32), values.view(np.uint32))


def test_a_float32_with_double_rounding_gets_another_digit():
    """As float64, 7.038531e-26 is the midpoint of two float32 numbers, and rounds to the wrong one."""
    value = np.array([0x15AE43FD], dtype=np.uint32).view(np.float32)
    assert np.format_float_scientific(value[0], unique=True) == "7.038531e-26"
    assert np.float32(7.038531e-26) != value[0]
    assert texts_of(value) == ["7.0385307e-26"]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("values", [DOUBLES["random bits"], SINGLES["random bits"]], ids=["64", "32"])
def test_round_trip_of_random_bits(tmp_path, values, kind):
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


def test_all_kinds_of_arrays_are_written_equally(tmp_path):
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


def test_unsorted_and_duplicate_entries_of_sparse_rows(tmp_path):
    X = sp.csr_array(([3.0, 1.0, 2.0, 5.0], [2, 0, 2, 1], [0, 3, 3, 4]), shape=(3, 12))
    write_letor(Dataset(X, [1, 0, 2], [1, 1, 1]), tmp_path / "data.txt")
    assert (tmp_path / "data.txt").read_text() == "1 qid:1 1:1 3:5\n0 qid:1\n2 qid:1 2:5\n"
    assert X.indices.tolist() == [2, 0, 2, 1]


def test_wide_rows_are_written_one_at_a_time(tmp_path):
    X = rng.random((3, 40_000))
    write_letor(Dataset(X, [1, 0, 2], [1, 1, 1]), tmp_path / "data.txt")
    np.testing.assert_array_equal(read_letor(tmp_path / "data.txt").X, X)


def test_the_first_infinite_value_is_named(tmp_path):
    X = np.ones((30_000, 20))
    X[29_000, 3] = X[17_000, 5] = np.inf
    with pytest.raises(ValueError, match="feature f6 of row 17000 is infinite"):
        write_letor(Dataset(X, np.zeros(30_000), np.arange(30_000) // 10), tmp_path / "data.txt")
    assert list(tmp_path.iterdir()) == []
