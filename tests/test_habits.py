"""Arguments and classes that people bring from other libraries."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import ranksieve as rs
from ranksieve.errors import DataError, ParameterError
from tests.test_cli import run

RANKERS = {
    "SparseRanker": lambda: rs.SparseRanker(3),
    "GridRanker": lambda: rs.GridRanker("rankrls", 3, parameters={"alpha": 0.01}),
    "RankSVM": rs.RankSVM,
    "FSRank": lambda: rs.baselines.FSRank(3),
}
every_ranker = pytest.mark.parametrize("make", RANKERS.values(), ids=RANKERS)


@pytest.fixture(scope="module")
def data():
    return rs.make_ranking(n_queries=30, n_features=8, n_informative=4, random_state=1)


@every_ranker
def test_group_has_the_number_of_rows_of_each_query(make, data):
    by_group = make().fit(data.X, data.y, group=data.queries.sizes)
    by_id = make().fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(by_group.coef_, by_id.coef_)
    with pytest.raises(ParameterError, match="add up to the"):
        make().fit(data.X, data.y, group=data.queries.sizes[1:])
    with pytest.raises(ParameterError, match="pass one id per row as qid"):
        make().fit(data.X, data.y, group=data.qid + 1)
    with pytest.raises(ParameterError, match="must be None"):
        make().fit(data.X, data.y, data.qid, group=data.queries.sizes)


@every_ranker
@pytest.mark.parametrize(
    ("name", "answer"),
    [("sample_weight", "document_weight"), ("groups", "qid"), ("eval_set", "valid=(X, y, qid)"),
     ("eval_metric", "metric"), ("early_stopping_rounds", "held-out queries")],
)  # fmt: skip
def test_other_arguments_are_answered_with_what_to_write(make, name, answer, data):
    with pytest.raises(DataError) as error:
        make().fit(data.X, data.y, data.qid, **{name: [data.y]})
    assert str(error.value).startswith(f"{name}: ")
    assert answer in str(error.value)
    with pytest.raises(TypeError, match="unexpected keyword argument 'misspelt'"):
        make().fit(data.X, data.y, data.qid, misspelt=1)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_with_qid_and_label_needs_no_other_argument(kind, data):
    pytest.importorskip(kind)
    frame = rs.to_frame(data, kind)
    fitted = rs.SparseRanker(3).fit(frame)
    np.testing.assert_array_equal(fitted.coef_, rs.SparseRanker(3).fit(data).coef_)
    np.testing.assert_array_equal(fitted.predict(frame), fitted.predict(data))
    without = frame.drop(columns="qid") if kind == "pandas" else frame.drop("qid")
    with pytest.raises(ParameterError, match=r"no column qid; pass y and qid, or rs\.from_frame"):
        rs.SparseRanker(3).fit(without)


@every_ranker
def test_feature_importances_are_shares_of_the_variance_of_scores(make, data):
    ranker = make().fit(data)
    shares = ranker.feature_importances_
    assert shares.shape == ranker.coef_.shape
    assert shares.sum() == pytest.approx(1.0)
    values = data.X * ranker.coef_  # these rankers do not scale features of this data set
    within = sum(
        ((values[data.qid == q] - values[data.qid == q].mean(axis=0)) ** 2).sum(axis=0)
        for q in np.unique(data.qid)
    )
    np.testing.assert_allclose(shares, within / within.sum())


def test_feature_importances_need_a_linear_model_and_are_of_the_last_fit(data):
    assert not hasattr(rs.baselines.RankBoost(n_rounds=3).fit(data), "feature_importances_")
    ranker = rs.SparseRanker(2).fit(data)
    few = np.count_nonzero(ranker.feature_importances_)
    assert few == len(ranker.support_) < np.count_nonzero(ranker.set_params(max_features=6).fit(data).coef_)
    assert np.count_nonzero(ranker.feature_importances_) == len(ranker.support_)
    curves = rs.SparseRanker(2, shape="curves").fit(data)
    np.testing.assert_array_equal(np.flatnonzero(curves.feature_importances_), curves.support_)


@every_ranker
@pytest.mark.parametrize("name", ["progress", "verbose"])
def test_progress_is_shown_by_one_argument(make, name, data, capsys):
    make().fit(data.X, data.y, data.qid, **{name: False})
    assert capsys.readouterr().err == ""
    make().fit(data.X, data.y, data.qid, **{name: True})
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].endswith(": 100 %")
    assert all(line.startswith("fitting ") for line in lines)
    assert len(lines) == len(set(lines)) <= 11


@every_ranker
def test_callbacks_of_scikit_learn_are_called(make, data):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")
    events = []

    class Recorder:
        def setup(self, estimator, context):
            events.append("setup")

        def teardown(self, estimator, context):
            events.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            events.append(f"begin {context.task_name}")

        def on_fit_task_end(self, estimator, context):
            events.append(f"end {context.task_name}")

    assert isinstance(Recorder(), callback.FitCallback)
    plain, ranker = make().fit(data), make().set_callbacks(Recorder()).fit(data)
    np.testing.assert_array_equal(ranker.coef_, plain.coef_)
    assert events[:2] == ["setup", "begin fit"]
    assert events[-2:] == ["end fit", "teardown"]
    inner = events[2:-2]
    assert inner == ["begin candidate", "end candidate"] * (len(inner) // 2)
    assert inner or make is RANKERS["FSRank"]  # whose selection reports no progress
    events.clear()
    with pytest.raises(ValueError):
        ranker.fit(data.X, data.y[:-1], data.qid)
    assert events == ["setup", "begin fit", "teardown"]
    ranker.set_callbacks().fit(data)
    assert len(events) == 3


def test_selectors_set_the_output(data):
    pandas = pytest.importorskip("pandas")
    selector = rs.baselines.FSRank(3).fit(data).set_output(transform="pandas")
    frame = selector.transform(pandas.DataFrame(data.X, columns=data.feature_names))
    assert list(frame.columns) == [data.feature_names[j] for j in sorted(selector.selected_)]


class Ridged:
    """Least squares of labels, without scikit-learn."""

    grid = ({"alpha": 0.1}, {"alpha": 10.0})

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, X, y, group):
        assert sum(group) == len(y)
        self.coef_ = np.linalg.solve(X.T @ X + self.alpha * np.eye(X.shape[1]), X.T @ (y - y.mean()))

    def predict(self, X):
        return X @ self.coef_ + 3.0


class Tree(BaseEstimator):
    """No weights."""

    def __init__(self, max_depth=3):
        self.max_depth = max_depth

    def fit(self, X, y, qid=None):
        assert len(qid) == len(y)
        self.tree_ = DecisionTreeRegressor(max_depth=self.max_depth, random_state=0).fit(X, y)
        return self

    def predict(self, X):
        return self.tree_.predict(X)


class Shapeless(Ridged):
    def predict(self, X):
        return X


def test_a_class_with_fit_and_predict_takes_part_in_a_bench(data, tmp_path):
    folds = rs.deal_folds(data, 3)
    methods = ["ranksvm", Ridged, Tree, Ridge(2.0)]
    results = rs.bench({"toy": folds}, methods, out=tmp_path / "one", grid="fast").data_sets["toy"]
    assert list(results.results) == ["ranksvm", "ridge", "ridged", "tree"]
    point = results.methods["ridged"][0].chosen["parameters"]
    assert point in Ridged.grid
    own = Ridged(**point)
    train = folds[0].train
    own.fit(train.X, train.y, train.queries.sizes)
    expected = rs.evaluate(own, folds[0].test, "ndcg@10").mean["ndcg@10"]
    assert results.results["ridged"].folds[0].test.mean["ndcg@10"] == pytest.approx(expected, abs=1e-12)
    assert np.isnan(results.results["tree"].to_row()["n_selected"])
    with pytest.raises(ParameterError, match="two methods are called tree"):
        rs.bench({"toy": folds}, [Tree, Tree(2)], out=tmp_path / "two")
    named = rs.bench({"toy": folds}, {"deep": Tree(9)}, out=tmp_path / "three", grid="fast")
    assert list(named.data_sets["toy"].results) == ["deep"]


def test_a_class_with_weights_is_kept_within_a_budget(data):
    ranker = rs.GridRanker(Ridged, max_features=3).fit(data)
    assert len(ranker.support_) == 3
    assert ranker.points_ == list(Ridged.grid)
    assert ranker.to_model().method == "Ridged"
    assert "Held-out NDCG@10" in str(ranker)
    with pytest.raises(ParameterError, match="Tree has no coef_"):
        rs.GridRanker(Tree, max_features=3).fit(data)
    with pytest.raises(ParameterError, match="with fit and predict"):
        rs.GridRanker(dict).fit(data)
    with pytest.raises(DataError, match="one score per row"):
        rs.GridRanker(Shapeless, 3).fit(data)


def test_metrics_of_any_object_with_predict(data):
    own = Tree().fit(data.X, data.y, data.qid)
    by_scores = rs.evaluate(own.predict(data.X), data, ties="order")
    assert rs.evaluate(own, data, ties="order").mean == by_scores.mean
    assert rs.compare({"a": by_scores, "b": rs.evaluate(own, data, ties="order")}).rows[0].p_t == 1.0


MINE = """
class Mean:
    def __init__(self, scale=1.0):
        self.scale = scale

    def fit(self, X, y):
        self.coef_ = self.scale * (X * (y - y.mean())[:, None]).mean(axis=0)

    def predict(self, X):
        return X @ self.coef_
"""


def test_the_command_line_fits_a_class_by_its_path(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    (tmp_path / "mine.py").write_text(MINE)
    rs.write_dataset(data, "train.txt")
    done = run("fit", "train.txt", "--method", "mine:Mean", "--set", "scale=2.0", "-o", "m.json")
    assert done.stdout.startswith("Mean uses 8 of 8 features.")
    model = rs.load_model("m.json")
    assert model.method == "Mean"
    assert model.parameters["scale"] == 2.0
    budget = run("fit", "train.txt", "--method", "mine:Mean", "--max-features", "3", "-o", "m.json")
    assert budget.stdout.startswith("Mean uses 3 of 8 features.")
    wrong = run("fit", "train.txt", "--method", "mine:Missing", "-o", "m.json", code=2)
    assert "write package.module:Class" in wrong.stderr
    bench = run(
        "bench", "train.txt", "--methods", "ranksvm,mine:Mean", "--grid", "fast", "--n-jobs", "1", "-o", "out"
    )
    assert bench.exit_code == 0
    assert list(rs.load_results("out").data_sets["train"].results) == ["ranksvm", "mean"]
