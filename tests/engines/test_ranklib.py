"""RankLib: exported models scored by it, and models that it trains scored here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from ranksieve.data.dataset import Dataset
from ranksieve.export import export_model
from ranksieve.model.foreign import read_model
from tests.engines.cases import (
    Comparison,
    changed_pairs,
    check_warning,
    close_curves,
    close_times,
    compare,
    curve_cases,
    documents,
    linear_cases,
)
from tests.engines.harness import classpath, java, record, version_of

pytestmark = pytest.mark.engines
RANKERS = {
    "RankBoost": "-ranker 2 -round 20",
    "AdaRank": "-ranker 3 -round 20 -metric2t NDCG@10",
    "Coordinate Ascent": "-ranker 4 -r 1 -i 5",
    "LambdaMART": "-ranker 6 -tree 20 -leaf 8",
    "MART": "-ranker 0 -tree 20 -leaf 8",
    "Random forests": "-ranker 8 -bag 5 -tree 1 -leaf 20",
    "Linear regression": "-ranker 9",
    "RankNet": "-ranker 1 -epoch 3",
    "ListNet": "-ranker 7 -epoch 3",
}


def letor(data, path):
    """The documents in RankLib's format. A missing value is left out, but RankLib needs the last feature."""
    rows, X = [], data.X.copy()
    X[:, -1] = np.nan_to_num(X[:, -1])
    for y, qid, x in zip(data.y, data.qid, X, strict=True):
        pairs = " ".join(f"{j}:{v!r}" for j, v in enumerate(x.tolist(), start=1) if not np.isnan(v))
        rows.append(f"{int(y)} qid:{int(qid)} {pairs}")
    path.write_text("\n".join(rows) + "\n")
    return path


def version():
    return f"RankyMcRankFace {version_of('ranklib', 'RankyMcRankFace')}"


def run(lines):
    return java("ranklib", stdin="".join(f"{line}\n" for line in lines))


def scores(path):
    return np.array(path.read_text().split(), dtype=float)


@pytest.mark.filterwarnings("ignore:the model learned levels", "ignore:the model replaces missing")
@pytest.mark.parametrize("shape", ["linear", "curves"])
def test_exported_models_have_their_scores_in_ranklib(shape, tmp_path):
    classpath("ranklib")
    cases = linear_cases(odd_names=False, policies=("zero",)) if shape == "linear" else (
        curve_cases(odd_names=False)
    )  # fmt: skip
    work = []
    for k, case in enumerate(cases):
        result = export_model(case.model, "ranklib", tmp_path / f"{k}.txt")
        work.append((case, result, letor(case.data, tmp_path / f"{k}.data"), tmp_path / f"{k}.scores"))
    run(f"score {result.files[0]} {data} {out}" for _, result, data, out in work)
    done = []
    for case, result, _, out in work:
        # RankLib reads features in float32 and a missing one as 0.
        zeros = case.data.replace_features(np.nan_to_num(case.data.X)) if shape == "curves" else case.data
        done.append(compare(case, "ranklib", result, scores(out), data=zeros))
    record("RankLib", version(), f"ranklib, {shape}", done)


@pytest.mark.parametrize("case", [close_times(), close_curves()], ids=["linear", "curves"])
def test_ranks_are_as_the_warning_of_float32_says(case, tmp_path):
    with pytest.warns(UserWarning, match="32-bit") as caught:
        (model,) = export_model(case.model, "ranklib", tmp_path / "model.txt", sample=case.data).files
    run([f"score {model} {letor(case.data, tmp_path / 'data')} {tmp_path / 'scores'}"])
    check_warning(case, caught, scores(tmp_path / "scores"))


def test_models_that_ranklib_trains_have_its_scores(tmp_path):
    classpath("ranklib")
    data = documents()
    noise = 3 * np.random.default_rng(0).normal(
        size=data.n_docs
    )  # AdaRank writes Infinity if it ranks perfectly
    labels = np.digitize(data.X @ (1 / data.X.std(axis=0)) + noise, [6.0, 9.0])
    data = Dataset(data.X, labels, data.qid, data.feature_names)
    path, lines = letor(data, tmp_path / "train"), []
    for number, options in enumerate(RANKERS.values()):
        model = tmp_path / f"{number}.model"
        lines += [f"-train {path} {options} -silent -save {model}"]
        lines += [f"score {model} {path} {model}.scores"]
    run(lines)
    done = []
    for number, ranker in enumerate(RANKERS):
        model = tmp_path / f"{number}.model"
        theirs, ours = scores(tmp_path / f"{number}.model.scores"), read_model(model).predict(data)
        if ranker == "ListNet":  # read as the linear model inside its logistic function, which ranks alike
            ours = expit(ours)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max(), err_msg=ranker)
        assert len(np.unique(theirs)) > 1, ranker
        relative = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
        done.append(Comparison(data.n_docs, relative, changed_pairs(ours, theirs, data.qid)))
    record("RankLib", version(), "models it trains", done)
