"""Feature costs: what a set costs, files in every form, the refusals with file and line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksieve.data.costs import CostUnit, FeatureCosts, make_costs
from ranksieve.formats.feature_tables import as_costs, read_costs

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
def test_the_cost_of_a_set_is_that_of_the_units_it_touches(drawn, chosen):
    names, parts = [], []
    for cost, size in drawn:
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
def test_every_form_of_file_says_the_same(put, name, text):
    assert read_costs(put(name, text)).to_dict() == make_costs(GROUPED).to_dict()


def test_what_is_written_is_read_again(put):
    costs = make_costs({**GROUPED, "features": {**GROUPED["features"], "*": 0.5}})
    assert read_costs(put("again.json", json.dumps(costs.to_dict()))) == costs
    plain = make_costs({"a": 1, "b": 2})
    assert plain.to_dict() == {"features": {"a": 1.0, "b": 2.0}}
    assert make_costs(plain.to_dict()) == plain


def test_a_star_or_a_default_prices_the_others(put):
    path = put("few.csv", "feature,cost\nprice,2\n*,0.5\n")
    assert read_costs(path).of(["price", "stock", "bm25"]) == 3.0
    path = put("fewer.csv", "feature,cost\nprice,2\n")
    assert read_costs(path, default=0.25).columns(NAMES).of_each.tolist() == [0.25, 0.25, 2.0, 0.25]
    with pytest.raises(
        ValueError, match=r"fewer.csv: feature 'bm25' has no cost; price it, or price all others"
    ):
        read_costs(path).columns(NAMES)


def test_costs_in_python(put):
    expected = make_costs({"a": 1, "b": 2})
    path = put("ab.json", '{"a": 1, "b": 2}')
    for given_costs in ({"a": 1, "b": 2}, [1, 2], np.array([1.0, 2.0]), path, expected):
        assert as_costs(given_costs, ("a", "b")) == expected
    with pytest.raises(ValueError, match="feature_costs holds 3 numbers but the data have 2 features"):
        as_costs([1, 2, 3], ("a", "b"))
    with pytest.raises(
        ValueError, match="feature_costs is 3; give a file, a mapping or one number per feature"
    ):
        as_costs(3, ("a", "b"))


def test_one_cost_of_a_group_may_be_written_in_several_ways(put):
    path = put("group.csv", "feature,cost,group\nbm25,3,title\nphrase,3.0,title\n")
    assert read_costs(path).of(["bm25", "phrase"]) == 3.0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "c:1: the header is ''; expected feature,cost[,group]"),
        ("name,cost\n", "c:1: the header is 'name,cost'; expected feature,cost[,group]"),
        ("feature,cost,unit\n", "c:1: the header is 'feature,cost,unit'; expected"),
        ("feature,cost\nprice,1,2\n", "c:2: has 3 cells; expected 2: feature,cost"),
        (
            "feature,cost\n\nprice,-1\n",
            "c:3: the cost of 'price' is -1; costs are finite numbers from 0",
        ),
        ("feature,cost\nprice,nan\n", "c:2: the cost of 'price' is nan; costs are finite"),
        ("feature,cost\nprice,inf\n", "c:2: the cost of 'price' is inf; costs are finite"),
        ("feature,cost\nprice,cheap\n", "c:2: the cost of 'price' is 'cheap', which is not a number"),
        ("feature,cost\nprice,\n", "c:2: the cost of 'price' is '', which is not a number"),
        ("feature,cost\n,1\n", "c:2: the feature has no name"),
        ("feature,cost\nprice,1\nprice,1\n", "c:3: 'price' is in c:2 too; list it once"),
        (
            "feature,cost,group\nbm25,1,title\nphrase,2,title\n",
            "c:3: group 'title' costs 2 here but 1 before; write the one cost of the group",
        ),
        ('{"price": 1,\n "price": 2}', "c: 'price' occurs twice; list it once"),
        ('{"price": 1,\n "stock"}', "c:2: damaged JSON"),
        ('{"bm25": 1,\n "price": -2}', "c:2: the cost of 'price' is -2"),
        ('{"price": null}', "c:1: the cost of 'price' is None, which is not a number"),
        ('{"price": true}', "c:1: the cost of 'price' is True, which is not a number"),
        ('{"price": 1' + "0" * 5000 + "}", "c:1: the cost of 'price' is inf; costs are finite"),
        ('{"a":' * 100_000, "c:1: damaged JSON (nested too deeply)"),
        ("feature,cost\n" + "x" * 200_000 + ",1\n", "c:2: damaged CSV (field larger than field limit"),
        ('{"features": [1], "groups": {}}', "c: features is [1]; expected an object from names to costs"),
        ('{"features": {}, "groups": []}', "c: groups is []; expected an object from names to costs"),
        ('{"groups": {"g": {"cost": 1, "features": [["a"]]}}}', "c:1: group 'g' lists ['a']; expected names"),
        ('{"groups": {\n"g": 3}}', 'c:2: group \'g\' is 3; expected {"cost": number, "features": [names]}'),
        ('{"groups": {"g": {"cost": 1, "features": []}}}', "c:1: group 'g' has no feature"),
        ('{"groups": {"g": {"features": ["a"]}}}', "c:1: the cost of 'g' is None"),
        ('{"groups": {"g": {"cost": 1, "features": ["a"], "x": 2}}}', "unknown entry 'x'"),
        ('{"groups": {}, "costs": {}}', "c: unknown entry 'costs'; expected features and groups"),
        (
            '{"features": {"a": 1},\n"groups": {"g": {"cost": 1, "features": ["a"]}}}',
            "c:1: 'a' is priced twice; price it once",
        ),
    ],
)
def test_bad_files(put, text, sentence):
    with pytest.raises(ValueError) as error:
        read_costs(put("c", text))
    assert sentence in str(error.value)


def test_costs_for_unknown_features_name_the_line_and_the_nearest(put):
    costs = read_costs(put("c.csv", "feature,cost\nbm25,1\nprize,2\n*,0\n"))
    with pytest.raises(ValueError) as error:
        costs.columns(NAMES)
    assert str(error.value) == (
        "c.csv:3: unknown feature 'prize' (did you mean 'price'?); the data have bm25, phrase, price, stock"
    )


def test_files_that_cannot_be_read(put, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none.csv: there is no such file"):
        read_costs("none.csv")
    (tmp_path / "latin.csv").write_bytes("feature,cost\ngr\xf6sse,1\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin.csv:2: is not UTF-8 text"):
        read_costs("latin.csv")


def test_a_quoted_name_may_hold_a_line_break(tmp_path):
    (tmp_path / "c.csv").write_text('feature,cost\n"a\nb",1\nc,2\n')
    assert read_costs(tmp_path / "c.csv").to_dict() == {"features": {"a\nb": 1.0, "c": 2.0}}


def test_costs_whose_sum_would_overflow_are_refused():
    with pytest.raises(ValueError, match=r"the cost of 'a' is 1e\+308; costs are finite numbers from"):
        make_costs({"a": 1e308, "b": 1e308})
