"""Models of RankLib and fastrank: reading, scores equal to those programs, damaged files."""

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import ranksieve as rs
from ranksieve.model.foreign import read_model
from ranksieve.model.score_functions import ForeignModel
from tests.refusals import refused_data
from tests.tiers import examples

rng = np.random.default_rng(0)
ROWS = rng.normal(size=(60, 6)).round(1)


def write(path, text):
    path.write_text(text)
    return path


def reason(path, text, line=None, **options):
    with refused_data(path, line) as info:
        read_model(write(path, text), **options)
    return info.value.reason


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.txt"


# ---------------------------------------------------------------- RankLib's weights


@pytest.mark.parametrize("ranker", ["Coordinate Ascent", "AdaRank"])
def test_weighted_features(file, ranker):
    model = read_model(write(file, f"## {ranker}\n## Slack = 0.001\n\n3:0.5 1:-2.0E-1 3:0.25 # note"))
    assert isinstance(model, rs.LinearModel)
    assert model.method == f"RankLib {ranker}"
    assert [(t.name, t.index, t.weight) for t in model.terms] == [("f1", 0, -0.2), ("f3", 2, 0.75)]
    np.testing.assert_allclose(model.predict(ROWS[:, :3]), -0.2 * ROWS[:, 0] + 0.75 * ROWS[:, 2])


def test_linear_regression_has_a_constant(file):
    model = read_model(write(file, "## Linear Regression\n## Lambda = 1.0E-10\n0:0.5 1:0.5 2:-1.0 "))
    assert model.intercept == 0.5
    np.testing.assert_allclose(model.predict(ROWS[:, :2]), 0.5 + 0.5 * ROWS[:, 0] - ROWS[:, 1])


def test_rank_boost_thresholds(file):
    model = read_model(write(file, "## RankBoost\n## Iteration = 3\n2:0.1:0.5 1:-0.3:0.25 2:1.0:2.0"))
    x = ROWS.astype(np.float32).astype(np.float64)  # Java widens the feature, not the threshold
    expected = 0.5 * (x[:, 1] > 0.1) + 0.25 * (x[:, 0] > -0.3) + 2.0 * (x[:, 1] > 1.0)
    np.testing.assert_array_equal(model.predict(ROWS), expected)


# ---------------------------------------------------------------- RankLib's networks


def ranknet_by_links(lines, row):
    """RankLib's algorithm: neurons add up the values of their links, in RankLib's order."""
    features, n_hidden = [int(f) for f in lines[0].split()], int(lines[1])
    sizes = [len(features) + 1, *(int(n) for n in lines[2 : 2 + n_hidden]), 1]
    sums = [[0.0] * size for size in sizes]
    links = {}
    for line in lines[2 + n_hidden :]:
        layer, neuron, *weights = line.split()
        links[int(layer), int(neuron)] = [float(w) for w in weights]
    everywhere = [(layer, j) for layer in range(1, len(sizes)) for j in range(sizes[layer])]
    for (layer, j), weight in zip(everywhere, links[0, sizes[0] - 1], strict=True):
        sums[layer][j] += weight
    outputs = [float(np.float32(row[f - 1])) for f in features]
    for layer in range(len(sizes) - 1):
        for j, output in enumerate(outputs):
            for k, weight in enumerate(links[layer, j]):
                sums[layer + 1][k] += output * weight
        outputs = [1 / (1 + math.exp(-s)) for s in sums[layer + 1]]
    return outputs[0], sums[-1][0]


def network_lines(features, hidden):
    sizes = [len(features), *hidden, 1]
    lines = [" ".join(map(str, features)), str(len(hidden)), *map(str, hidden)]
    for layer, size in enumerate(sizes[:-1]):
        lines += [
            f"{layer} {j} " + " ".join(map(str, rng.normal(size=sizes[layer + 1]))) for j in range(size)
        ]
        if layer == 0:
            lines.append(f"0 {size} " + " ".join(map(str, rng.normal(size=sum(sizes[1:])))))
    return lines


@pytest.mark.parametrize("ranker", ["RankNet", "LambdaRank"])
@pytest.mark.parametrize("hidden", [[3], [4, 2]])
def test_networks(file, ranker, hidden):
    lines = network_lines([4, 1, 6], hidden)
    model = read_model(write(file, "\n".join([f"## {ranker}", "## Epochs = 100", *lines])))
    assert isinstance(model, ForeignModel)
    expected = [ranknet_by_links(lines, row)[0] for row in ROWS]
    np.testing.assert_allclose(model.predict(ROWS), expected, rtol=1e-12)


def test_a_network_without_hidden_layers_is_linear(file):
    lines = network_lines([2, 5], [])
    model = read_model(write(file, "\n".join(["## ListNet", *lines])), [f"c{j}" for j in range(6)])
    assert isinstance(model, rs.LinearModel)
    assert model.names == ["c1", "c4"]
    expected = [ranknet_by_links(lines, row)[1] for row in ROWS]
    np.testing.assert_allclose(model.predict(ROWS), expected, rtol=1e-6)


# ---------------------------------------------------------------- RankLib's trees


def leaf(output):
    return f"<output> {output} </output>"


def split(feature, threshold, left, right):
    return (
        f"<feature> {feature} </feature>\n<threshold> {threshold} </threshold>\n"
        f'<split pos="left">\n{left}\n</split>\n<split pos="right">\n{right}\n</split>'
    )


def ensemble(*weighted):
    trees = (
        f'\t<tree id="{k}" weight="{weight}">\n<split>\n{tree}\n</split>\n</tree>\n'
        for k, (weight, tree) in enumerate(weighted, 1)
    )
    return "<ensemble>\n" + "".join(trees) + "</ensemble>\n"


def walk(tree, row):
    """Evaluate a nested (feature, threshold, left, right) or an output, with Java's float and double."""
    while isinstance(tree, tuple):
        feature, threshold, left, right = tree
        tree = left if np.float32(row[feature - 1]) <= np.float32(threshold) else right
    return float(np.float32(tree))


def as_xml(tree):
    return leaf(tree) if not isinstance(tree, tuple) else split(tree[0], tree[1], *map(as_xml, tree[2:]))


def java_sum(forest, row):
    """float s; s += tree.eval(row) * weight."""
    total = np.float32(0)
    for weight, tree in forest:
        total = np.float32(float(total) + walk(tree, row) * float(np.float32(weight)))
    return float(total)


trees = st.recursive(
    st.floats(-2, 2).map(lambda v: round(v, 3)),
    lambda inner: st.tuples(st.integers(1, 6), st.integers(-15, 15).map(lambda t: t / 10), inner, inner),
    max_leaves=8,
)
forests = st.lists(st.tuples(st.sampled_from([0.1, 1.0, 0.05]), trees), min_size=1, max_size=5)


@examples(40)
@given(forests, st.sampled_from(["LambdaMART", "MART"]))
def test_boosted_trees_equal_java_arithmetic(tmp_path_factory, forest, ranker):
    path = tmp_path_factory.mktemp("trees") / "m.txt"
    xml = ensemble(*((weight, as_xml(tree)) for weight, tree in forest))
    model = read_model(write(path, f"## {ranker}\n## No. of trees = 5\n\n{xml}"))
    expected = [java_sum(forest, row) for row in ROWS]
    assert model.predict(ROWS).tolist() == expected
    assert model.predict(sp.csr_array(ROWS)).tolist() == expected


@examples(15)
@given(st.lists(forests, min_size=1, max_size=4))
def test_random_forests_are_the_mean_of_their_bags(tmp_path_factory, bags):
    path = tmp_path_factory.mktemp("trees") / "m.txt"
    xml = "\n".join(ensemble(*((weight, as_xml(tree)) for weight, tree in bag)) for bag in bags)
    model = read_model(write(path, f"## Random Forests\n## No. of bags = 3\n\n{xml}"))
    expected = [sum(java_sum(bag, row) for bag in bags) / len(bags) for row in ROWS]
    assert model.predict(ROWS).tolist() == expected


def test_thresholds_compare_as_float32(file):
    """The float64 0.7 exceeds the float32 0.7; RankLib reads both as float32, so they are equal."""
    assert float(np.float32(0.7)) < 0.7
    write(file, "## MART\n" + ensemble((1.0, split(1, 0.7, leaf(1), leaf(2)))))
    assert read_model(file).predict(np.array([[0.7], [0.71]])).tolist() == [1.0, 2.0]


def test_missing_values_are_zero(file):
    write(file, "## MART\n" + ensemble((1.0, split(2, 0.5, leaf(1), leaf(2)))))
    rows = sp.csr_array(([3.0, 1.0], ([0, 1], [0, 1])), shape=(2, 2))
    assert read_model(file).predict(rows).tolist() == [1.0, 2.0]
    assert read_model(file).predict(np.array([[3.0, math.nan], [0.0, 1.0]])).tolist() == [1.0, 2.0]
    write(file, "## Coordinate Ascent\n1:1 2:5\n")
    assert read_model(file).predict(np.array([[3.0, math.nan]])).tolist() == [3.0]


def test_many_rows_are_scored_in_blocks(file):
    write(file, "## MART\n" + ensemble((1.0, split(2, 0.5, leaf(1), leaf(2)))))
    X = np.random.default_rng(1).uniform(size=(10_000, 2))
    assert np.array_equal(read_model(file).predict(X), np.where(np.float32(X[:, 1]) <= 0.5, 1.0, 2.0))


def test_columns_are_used_by_position(file):
    data = rs.Dataset(ROWS, np.zeros(60), np.zeros(60, int), [f"name {j}" for j in range(6)])
    forest = [(1.0, (3, 0.2, 1.0, 2.0))]
    write(file, "## MART\n" + ensemble((1.0, as_xml(forest[0][1]))))
    assert read_model(file).predict(data).tolist() == [java_sum(forest, row) for row in ROWS]
    with refused_data() as info:
        read_model(file).predict(ROWS[:, :2])
    assert "feature 3" in info.value.reason


# ---------------------------------------------------------------- damaged RankLib files


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("## Coordinat Ascent\n1:1\n", 1, "'coordinat ascent'"),
        ("## Coordinate Ascent\n", None, "is truncated"),
        ("## AdaRank\n## x\n1:0.5 two:1\n", 3, "feature number is 'two'"),
        ("## AdaRank\n0:1\n", 2, "feature number is '0'"),
        ("## AdaRank\n1:x\n", 2, "weight of 1 is 'x'"),
        ("## AdaRank\n1\n", 2, "weight of 1 is ''"),
        ("## AdaRank\n1:NaN\n", 2, "weight of 1 is 'NaN'"),
        ("## RankBoost\n1:2\n", 2, "'1:2'"),
        ("## RankNet\n1 2\nmany\n", 3, "hidden layers is 'many'"),
        ("## RankNet\n1 1\n0\n0 0 1\n0 1 1\n0 2 1\n", 2, "twice"),
        ("## RankNet\n1 2\n1\n", None, "is truncated"),
        ("## ListNet\n1\n0\n0 0 1.5 2\n0 1 1\n", 4, "neuron 0"),
        ("## MART\n<ensemble>\n<tree/></ensemble>", None, "weight of the tree is ''"),
        ("## MART\n<ensemble>\n</ensemble>\n", None, "no tree"),
        ("## MART\n", None, "no ensemble"),
        ("## MART\n<ensemble>\n<tree weight='1'>\n", 5, "mismatched tag"),
        ("## MART\n<!DOCTYPE x [<!ENTITY a 'b'>]>\n", 2, "XML"),
        ("## MART\n" + ensemble((1, "")), None, "a split needs"),
        ("## MART\n" + ensemble((1, split(1, 1, leaf(1), ""))), None, "a split needs"),
        ("## MART\n<ensemble><tree weight='1'>\n</tree></ensemble>", None, "no split"),
        (
            "## MART\n" + ensemble((1, "<feature>1</feature>\n<threshold>1</threshold>")),
            None,
            "a split needs",
        ),
        ("## MART\n" + ensemble((1, split(1, "x", leaf(1), leaf(2)))), None, "threshold is 'x'"),
        ("## MART\n" + ensemble((1, leaf("1e39"))), None, "1e39"),
        ("## MART\n" + ensemble(("1e39", leaf(1))), None, "weight of the tree is 1e39"),
        ("## MART\n" + ensemble((1, split(0, 1, leaf(1), leaf(2)))), None, "feature number is '0'"),
        ("## MART\n" + ensemble((1, split(1, 1, leaf(1), leaf(2)).replace("left", "right"))), None, "a left"),
        ("## MART\n<ensemble><split/></ensemble>\n", None, "<split>"),
        ("## MART\n<html></html>\n", None, "<html>"),
        ("## MART\n" + ensemble((1, leaf(1) + "</split>\n<split>" + leaf(2))), None, "one split"),
        ("## MART\n" + ensemble((1, leaf(1))) * 2, None, "not 2"),
    ],
)
def test_damaged_ranklib_files(file, text, line, word):
    assert word in reason(file, text, line)


# ---------------------------------------------------------------- fastrank

TREE = {
    "FeatureSplit": {
        "fid": 2,
        "split": 0.3,
        "lhs": {"LeafNode": -1.0},
        "rhs": {
            "FeatureSplit": {
                "fid": 0,
                "split": -0.5,
                "lhs": {"LeafNode": 2.0},
                "rhs": {"LeafNode": 3.0},
            }
        },
    }
}


def tree_score(x):
    return np.where(x[:, 2] <= 0.3, -1.0, np.where(x[:, 0] <= -0.5, 2.0, 3.0))


def fast(file, content, **options):
    return read_model(write(file, json.dumps(content)), **options)


def test_fastrank_models(file):
    x = ROWS.astype(np.float32).astype(np.float64)
    weights = [0.5, 0.0, -1.0, 0.0, 0.0, 2.0]
    linear = fast(file, {"Linear": {"weights": weights}}, first_feature=0)
    assert isinstance(linear, rs.LinearModel)
    assert linear.names == ["f1", "f3", "f6"]
    np.testing.assert_allclose(linear.predict(ROWS), ROWS @ weights)
    single = fast(file, {"SingleFeature": {"fid": 2, "dir": -1.0}}, first_feature=1)
    assert [(t.name, t.weight) for t in single.terms] == [("f2", -1.0)]
    np.testing.assert_array_equal(fast(file, {"DecisionTree": TREE}).predict(ROWS), tree_score(x))
    models = [
        {"DecisionTree": TREE},
        {"Linear": {"weights": weights}},
        {"SingleFeature": {"fid": 1, "dir": 1.0}},
    ]
    mixed = fast(file, {"Ensemble": {"weights": [0.5, 2.0, -1.0], "models": models}})
    np.testing.assert_allclose(mixed.predict(ROWS), 0.5 * tree_score(x) + 2 * (x @ weights) - x[:, 1])


NAMES = [f"c{j}" for j in range(6)]


def test_fastrank_numbers_features_from_one_or_zero(file):
    from_zero = fast(file, {"Linear": {"weights": [1.0, 0, 0, 0, 0, 2.0]}}, feature_names=NAMES)
    from_one = fast(file, {"Linear": {"weights": [9.0, 1.0, 0, 0, 0, 0, 2.0]}}, feature_names=NAMES)
    assert from_zero.names == from_one.names == ["c0", "c5"]
    last = {"FeatureSplit": {"fid": 6, "split": 0.0, "lhs": {"LeafNode": 0.0}, "rhs": {"LeafNode": 1.0}}}
    model = fast(file, {"DecisionTree": last}, feature_names=NAMES)
    np.testing.assert_array_equal(model.predict(ROWS), ROWS[:, 5] > 0)
    unclear = {"SingleFeature": {"fid": 3, "dir": 1.0}}
    assert "`first_feature`" in reason(file, json.dumps(unclear), feature_names=NAMES)
    assert [fast(file, unclear, feature_names=NAMES, first_feature=f).names for f in (0, 1)] == [
        ["c3"],
        ["c2"],
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"Linear": {}}, "'weights' is missing"),
        ({"Linear": {"weights": []}}, "weights is empty"),
        ({"Linear": {"weights": [1, "x"]}}, "weight is 'x'"),
        ({"SingleFeature": {"fid": 1.5, "dir": 1}}, "fid is 1.5"),
        ({"SingleFeature": {"fid": 1}}, "'dir' is missing"),
        ({"DecisionTree": {"LeafNode": None}}, "LeafNode is None"),
        ({"DecisionTree": {"FeatureSplit": {"fid": 0}}}, "'split' is missing"),
        ({"DecisionTree": 3}, "wrong type"),
        ({"Ensemble": {"weights": [1], "models": []}}, "1 weights for 0"),
        ({"Ensemble": {"weights": [1], "models": [3]}}, "3 is not a fastrank model"),
        ({"Ensemble": {"weights": [1, 2], "models": [3]}}, "2 weights"),
    ],
)
def test_damaged_fastrank_models(file, content, words):
    assert words in reason(file, json.dumps(content), first_feature=0)


# ---------------------------------------------------------------- any model


def test_models_of_ranksieve(tmp_path):
    data = rs.make_ranking(n_queries=10, n_features=4, n_informative=2, random_state=0)
    own = rs.FenchelRank(radius=2).fit(data).to_model()
    own.save(tmp_path / "m.json")
    assert read_model(tmp_path / "m.json") == rs.load_model(tmp_path / "m.json")


def test_files_that_are_not_models(file, tmp_path):
    assert "JSON" in reason(file, "1.5\n2.5 x")
    assert '"format"' in reason(file, "{}")
    assert '"format"' in reason(file, "[1]")
    file.write_bytes(b"\xff\xfe")
    with refused_data(file):
        read_model(file)
    with pytest.raises(FileNotFoundError):
        read_model(tmp_path / "gone")


def test_names_must_cover_the_features_of_the_model(file):
    text = "## Coordinate Ascent\n1:1 4:2\n"
    with refused_data() as info:
        read_model(write(file, text), feature_names=["a", "b"])
    assert "feature 4" in info.value.reason
    assert read_model(write(file, text), feature_names=["f1", "f2"]).names == ["f1", "f4"]
