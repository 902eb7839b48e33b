"""Feature costs: costs of sets, file formats, refusals with file and line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksieve.data.costs import CostUnit, FeatureCosts, make_costs
from ranksieve.io.tables import as_costs, read_costs
from tests.refusals import refused_data, refused_parameter

GROUPED = {
    "features": {"price": 0.1, "stock": 0.2},
    "groups": {"title": {"cost": 3.0, "features": ["bm25", "phrase"]}},
}
CSV = "feature,cost,group\nprice,0.1,\nstock,0.2,\nbm25,3.0,title\nphrase,3.0,title\n"
NAMES = ("bm25", "phrase", "price", "stock")


@pytest.fixture
def put(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return write


def test_a_group_is_paid_once():
    costs = make_costs(GROUPED)
    assert costs.of([]) == 0
    assert costs.of(["bm25"]) == 3.0
    assert costs.of(["phrase", "bm25"]) == 3.0
    assert costs.of(["price", "stock", "phrase", "price"]) == pytest.approx(3.3)


units = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=6)


@given(units, st.sets(st.integers(0, 23)))
def test_the_cost_of_a_set_is_the_sum_over_its_units(units_drawn, chosen):
    names, parts = [], []
    for cost, size in units_drawn:
        members = tuple(f"f{len(names) + k}" for k in range(size))
        names += members
        parts.append(CostUnit(f"unit {len(parts)}", float(cost), members))
    costs, support = FeatureCosts(tuple(parts)), [j for j in sorted(chosen) if j < len(names)]
    expected = sum(part.cost for part in parts if {names[j] for j in support} & set(part.features))
    assert costs.of(names[j] for j in support) == expected
    columns = costs.columns(names)
    assert columns.of(np.array(support, dtype=int)) == expected
    coefs = np.zeros((2, len(names)))
    coefs[1, support] = -1.0
    assert columns.of_models(coefs).tolist() == [0.0, expected]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.csv", CSV),
        ("c.tsv", CSV.replace(",", "\t")),
        ("bom.csv", "\ufeff" + CSV.replace("\n", "\r\n")),
        ("blank.csv", CSV.replace("stock", "\nstock") + "\n\n"),
        ("c.json", json.dumps(GROUPED, indent=1)),
        ("no_suffix", json.dumps(GROUPED)),
    ],
)
def test_every_file_format_has_the_same_content(put, name, text):
    assert read_costs(put(name, text)).to_dict() == make_costs(GROUPED).to_dict()


def test_round_trip_of_costs(put):
    costs = make_costs({**GROUPED, "features": {**GROUPED["features"], "*": 0.5}})
    assert read_costs(put("again.json", json.dumps(costs.to_dict()))) == costs
    ungrouped = make_costs({"a": 1, "b": 2})
    assert ungrouped.to_dict() == {"features": {"a": 1.0, "b": 2.0}}
    assert make_costs(ungrouped.to_dict()) == ungrouped


def test_a_star_or_a_default_sets_the_other_costs(put):
    path = put("few.csv", "feature,cost\nprice,2\n*,0.5\n")
    assert read_costs(path).of(["price", "stock", "bm25"]) == 3.0
    path = put("fewer.csv", "feature,cost\nprice,2\n")
    assert read_costs(path, default=0.25).columns(NAMES).of_each.tolist() == [0.25, 0.25, 2.0, 0.25]
    with refused_data("fewer.csv") as info:
        read_costs(path).columns(NAMES)
    assert "'bm25'" in info.value.reason


def test_costs_in_python(put):
    expected = make_costs({"a": 1, "b": 2})
    path = put("ab.json", '{"a": 1, "b": 2}')
    for given_costs in ({"a": 1, "b": 2}, [1, 2], np.array([1.0, 2.0]), path, expected):
        assert as_costs(given_costs, ("a", "b")) == expected
    with refused_parameter("feature_costs", [1, 2, 3]):
        as_costs([1, 2, 3], ("a", "b"))
    with refused_parameter("feature_costs", 3):
        as_costs(3, ("a", "b"))


def test_equal_costs_of_a_group_can_be_written_differently(put):
    path = put("group.csv", "feature,cost,group\nbm25,3,title\nphrase,3.0,title\n")
    assert read_costs(path).of(["bm25", "phrase"]) == 3.0


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("", 1, "header"),
        ("name,cost\n", 1, "'name,cost'"),
        ("feature,cost,unit\n", 1, "'feature,cost,unit'"),
        ("feature,cost\nprice,1,2\n", 2, "3 cells"),
        ("feature,cost\n\nprice,-1\n", 3, "'price' costs -1"),
        ("feature,cost\nprice,nan\n", 2, "'price' costs nan"),
        ("feature,cost\nprice,inf\n", 2, "'price' costs inf"),
        ("feature,cost\nprice,cheap\n", 2, "'price' costs 'cheap'"),
        ("feature,cost\nprice,\n", 2, "'price' costs ''"),
        ("feature,cost\n,1\n", 2, "is empty"),
        ("feature,cost\nprice,1\nprice,1\n", 3, "'price' is on line 2"),
        ("feature,cost,group\nbm25,1,title\nphrase,2,title\n", 3, "'title'"),
        ('{"price": 1,\n "price": 2}', None, "'price'"),
        ('{"price": 1,\n "stock"}', 2, "JSON"),
        ('{"bm25": 1,\n "price": -2}', 2, "'price' costs -2"),
        ('{"price": null}', 1, "'price' costs None"),
        ('{"price": true}', 1, "'price' costs True"),
        ('{"price": 1' + "0" * 5000 + "}", 1, "'price' costs inf"),
        ('{"a":' * 100_000, 1, "nested"),
        ("feature,cost\n" + "x" * 200_000 + ",1\n", 2, "CSV"),
        ('{"features": [1], "groups": {}}', None, "'features' is [1]"),
        ('{"features": {}, "groups": []}', None, "'groups' is []"),
        ('{"groups": {"g": {"cost": 1, "features": [["a"]]}}}', 1, "'g' lists ['a']"),
        ('{"groups": {\n"g": 3}}', 2, "'g' is 3"),
        ('{"groups": {"g": {"cost": 1, "features": []}}}', 1, "'g' has no feature"),
        ('{"groups": {"g": {"features": ["a"]}}}', 1, "'g' costs None"),
        ('{"groups": {"g": {"cost": 1, "features": ["a"], "x": 2}}}', 1, "'x'"),
        ('{"groups": {}, "costs": {}}', None, "'costs'"),
        (
            '{"features": {"a": 1},\n"groups": {"g": {"cost": 1, "features": ["a"]}}}',
            1,
            "'a' is priced twice",
        ),
    ],
)
def test_bad_files(put, text, line, word):
    with refused_data("c", line) as info:
        read_costs(put("c", text))
    assert word in info.value.reason


def test_costs_of_unknown_features_name_the_line_and_a_similar_name(put):
    costs = read_costs(put("c.csv", "feature,cost\nbm25,1\nprize,2\n*,0\n"))
    with refused_data("c.csv", 3) as info:
        costs.columns(NAMES)
    assert "'prize'" in info.value.reason
    assert "'price'" in info.value.reason


def test_files_that_cannot_be_read(put, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv: "):
        read_costs("none.csv")
    (tmp_path / "latin.csv").write_bytes("feature,cost\ngr\xf6sse,1\n".encode("latin-1"))
    with refused_data("latin.csv", 2):
        read_costs("latin.csv")


def test_a_quoted_name_can_contain_a_line_break(tmp_path):
    (tmp_path / "c.csv").write_text('feature,cost\n"a\nb",1\nc,2\n')
    assert read_costs(tmp_path / "c.csv").to_dict() == {"features": {"a\nb": 1.0, "c": 2.0}}


def test_costs_whose_sum_would_overflow_are_refused():
    with refused_parameter("feature_costs", "a"):
        make_costs({"a": 1e308, "b": 1e308})
