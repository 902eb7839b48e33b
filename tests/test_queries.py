"""Grouping by query against a dictionary, for ids of any type in any order."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksieve.data.queries import as_id_array, group_queries, one_query
from tests.refusals import refused_data, refused_parameter
from tests.tiers import examples

QUICK = examples(100)
id_lists = st.one_of(
    st.lists(st.integers(-3, 3), min_size=1, max_size=30),
    st.lists(st.text("ab", max_size=2), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(0, 1), st.text("xy", max_size=1)), min_size=1, max_size=30),
    st.lists(st.sampled_from([1.5, -0.0, 0.0, 2.0]), min_size=1, max_size=30),
    st.lists(st.frozensets(st.integers(0, 2), max_size=2), min_size=1, max_size=30),
    st.lists(st.sampled_from([(1, 2), (1,), "a", 7]), min_size=1, max_size=30),
    st.lists(st.sampled_from([2**63, 2**63 + 1, 2**63 + 2, -1, 1]), min_size=1, max_size=30),
    st.lists(st.sampled_from([2**64, 2**64 + 1, -(2**64), 10**400, 0]), min_size=1, max_size=30),
    st.lists(st.sampled_from([1, 2.5, 2**60 + 1, 2**60, 2.0**60, 10**400]), min_size=1, max_size=30),
    st.lists(st.sampled_from(["a", "a\0", "a\0\0", "\0", ""]), min_size=1, max_size=30),
)


def brute_force(ids):
    rows = {}
    for row, one in enumerate(ids):
        rows.setdefault(one, []).append(row)
    return rows


@QUICK
@given(id_lists)
def test_groups_equal_those_of_a_dictionary(ids):
    queries, expected = group_queries(_with_a_tuple_first(ids)), brute_force(_with_a_tuple_first(ids))
    assert queries.n_queries == len(expected)
    assert list(queries.ids) == list(expected)
    groups = np.split(queries.order, queries.offsets[1:-1])
    assert [group.tolist() for group in groups] == list(expected.values())
    assert queries.sizes.tolist() == [len(rows) for rows in expected.values()]
    assert queries.n_rows == len(_with_a_tuple_first(ids))


def _with_a_tuple_first(ids):
    """A tuple in front of mixed ids keeps them objects."""
    mixed = len({type(one) for one in ids}) > 1
    return [(1, 2), *ids] if mixed else ids


def test_numbers_and_text_are_different_ids():
    assert group_queries([1, "1", "a"]).n_queries == 3


@pytest.mark.parametrize(
    "ids",
    [
        [2**63, -1, 2**63 + 1],
        [2**63 + 1, 2**63 + 2, 1],
        [2**64, 1, 2**64 + 1],
        [np.uint64(2**63 + 1), np.int64(-1), np.uint64(2**63 + 2)],
        [1, 2.5, 2**60 + 1, 2**60],
        ["a\0", "a", "a\0\0"],
        pl.Series(["a\0", "a"]),
        pd.Series(["a\0", "a"]),
        np.array(["a\0", "a"], dtype=object),
        np.array(["a\0", "a"], dtype=np.dtypes.StringDType()),
        [np.datetime64("2020-01-01T00:00:00.000000001"), np.datetime64("2020-01-01T00:00:00.000000002")],
    ],
)
def test_distinct_ids_are_distinct_queries_with_their_values(ids):
    queries = group_queries([*ids, *ids] if isinstance(ids, list) else ids)
    assert queries.n_queries == len(ids)
    assert list(queries.ids) == list(ids)


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([3, 1, 3], "int64"),
        ([2**63, 2**63 + 1], "uint64"),
        ([0.5, 1.0], "float64"),
        ([1, 0.5], "float64"),
        (["b", "abc"], "<U3"),
        (np.array([3, 1], dtype=np.int32), "int32"),
    ],
)
def test_lossless_ids_become_typed_arrays(ids, kind):
    assert as_id_array(ids).dtype == kind


@QUICK
@given(id_lists)
def test_restore_undoes_group(ids):
    queries = group_queries(_with_a_tuple_first(ids))
    values = np.arange(queries.n_rows) * 10
    np.testing.assert_array_equal(queries.restore(queries.group(values)), values)
    assert queries.contiguous == bool((queries.order == np.arange(queries.n_rows)).all())


def test_scattered_rows():
    queries = group_queries(["b", "a", "b", "c", "a"])
    assert queries.ids.tolist() == ["b", "a", "c"]
    assert queries.order.tolist() == [0, 2, 1, 4, 3]
    assert queries.offsets.tolist() == [0, 2, 4, 5]
    assert queries.query_of_grouped.tolist() == [0, 0, 1, 1, 2]
    assert not queries.contiguous


def test_contiguous_rows_are_not_copied():
    queries = group_queries([5, 5, 1, 9])
    values = np.arange(4)
    assert queries.contiguous
    assert queries.group(values) is values
    assert queries.restore(values) is values


def test_rows_of_selected_queries():
    queries = group_queries(["b", "a", "b", "c", "a"])
    assert queries.rows(np.array([2, 0])).tolist() == [0, 2, 3]
    assert queries.rows(np.array([False, True, False])).tolist() == [1, 4]


def test_one_query():
    queries = one_query(3)
    assert queries.n_queries == 1
    assert queries.offsets.tolist() == [0, 3]
    assert queries.contiguous


@pytest.mark.parametrize(
    ("ids", "refusal", "word"),
    [
        ([], refused_data(), "no rows"),
        ([1.0, float("nan")], refused_data(), "row 1"),
        (["a", None], refused_data(), "row 1"),
        (np.array(["a", None, "b"], dtype=object), refused_data(), "row 1"),
        (np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"), refused_data(), "row 1"),
        (np.array([5, "NaT"], dtype="timedelta64[s]"), refused_data(), "row 1"),
        (pd.Series([pd.Timestamp(2020, 1, 1), pd.NaT]), refused_data(), "row 1"),
        ([pd.Timestamp(2020, 1, 1), pd.NaT], refused_data(), "row 1"),
        ([np.datetime64("2020-01-01"), np.datetime64("NaT", "D")], refused_data(), "row 1"),
        (np.array([1j, complex("nan")]), refused_data(), "row 1"),
        ([1, float("nan")], refused_data(), "row 1"),
        (np.zeros((2, 2)), refused_parameter("qid"), "shape (2, 2)"),
    ],
)
def test_bad_ids(ids, refusal, word):
    with refusal as info:
        as_id_array(ids)
    assert word in info.value.reason
