"""Documents with equal scores: closed forms against all permutations, rows in any order, models, warnings."""

from __future__ import annotations

import itertools
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.choice.held_out import HeldOut
from ranksieve.data.dataset import Dataset
from ranksieve.metrics import METRICS, PROFILES, Evaluator, Metric, Profile, evaluate
from ranksieve.metrics.evaluate import TiesWarning, evaluate_quietly
from ranksieve.model.linear import model_from_dict
from ranksieve.prepare import NO_PREPARATION
from tests.refusals import refused_data, refused_parameter
from tests.test_cli import refused, run

CUTOFFS = (1, 2, 3, 5, 100)
NAMES = [f"{name}@{k}" for name in METRICS for k in CUTOFFS]
NAMES += [name for name, metric in METRICS.items() if not metric.needs_k]
LABEL_2 = Profile("custom", relevant_from=2.0, max_label=2.0, ties="mean")


def permuted_values(data, scores, name, profile):
    """The metric of each query for every order of its tied documents, ranked without ties."""
    all_values = []
    for q in range(data.n_queries):
        rows = data.queries.rows_of(q)
        groups = [rows[scores[rows] == s] for s in sorted(set(scores[rows].tolist()), reverse=True)]
        values = []
        for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
            ranked = np.concatenate([np.array(order) for order in orders])
            one = Dataset(np.zeros((len(ranked), 1)), data.y[ranked], np.zeros(len(ranked)))
            values.append(
                Evaluator(one, profile, ties="order")
                .evaluate(-np.arange(len(ranked)), name)
                .per_query[name][0]
            )
        all_values.append(values)
    return all_values


def small_queries(seed):
    """Interleaved queries of 1 to 7 documents, groups of up to 5, some without relevant documents."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(12), rng.integers(1, 6, 12)))
    labels = np.minimum(rng.integers(0, 3, len(qid)), rng.choice([0, 1, 2, 2], 12)[qid]).astype(float)
    return Dataset(np.zeros((len(qid), 1)), labels, qid), rng.integers(0, 3, len(qid)).astype(float)


def ties_of_integers(seed, n_queries=60, levels=3, n_features=5):
    """Data of small integers, which every sparse model ties."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(5, 15, n_queries))
    X = rng.integers(0, levels, (len(qid), n_features)).astype(float)
    y = np.clip(X[:, 0] + rng.integers(-1, 2, len(qid)), 0, 2)
    return Dataset(X, y, qid)


def shuffled_within_queries(data, key):
    """Rows of each query in another order: by label, descending or ascending, or by chance."""
    noise = np.random.default_rng(0).random(data.n_docs)
    by = {"best first": -data.y, "best last": data.y, "chance": noise}[key]
    return np.lexsort((by, data.qid))


# --- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [*PROFILES.values(), LABEL_2], ids=lambda profile: profile.name)
def test_the_mean_is_the_mean_over_all_orders_of_tied_documents(profile):
    for seed in range(2):
        data, scores = small_queries(seed)
        for name in NAMES:
            expected = [np.mean(one) for one in permuted_values(data, scores, name, profile)]
            value = Evaluator(data, profile, ties="mean").evaluate(scores, name).per_query[name]
            np.testing.assert_allclose(value, expected, rtol=0, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_worst_is_the_lowest_value_over_all_orders_of_tied_documents(profile):
    data, scores = small_queries(2)
    for name in NAMES:
        every_order = permuted_values(data, scores, name, profile)
        value = Evaluator(data, profile, ties="worst").evaluate(scores, name).per_query[name]
        np.testing.assert_allclose(value, [min(one) for one in every_order], rtol=0, atol=1e-14, err_msg=name)


def test_the_best_order_gives_the_highest_value():
    data, scores = small_queries(3)
    for name in NAMES:
        every_order = permuted_values(data, scores, name, "standard")
        (_, _, _, best), _ = Evaluator(data, "standard").evaluate_tie_orders(scores, name)
        np.testing.assert_allclose(
            best.per_query[name], [max(one) for one in every_order], rtol=0, atol=1e-14, err_msg=name
        )


def test_means_by_hand():
    # Labels 2, 1, 0 tied: gain (3 + 1 + 0)/3 at each rank; the first relevant document is at 1, 1 or 2.
    data = Dataset(np.zeros((3, 1)), [2.0, 1.0, 0.0], [7, 7, 7])
    mean = evaluate_quietly(np.zeros(3), data, ["dcg@1", "p@1", "r@2", "mrr", "map"]).mean
    expected = {"dcg@1": 4 / 3, "p@1": 2 / 3, "r@2": 2 / 3, "mrr": 5 / 6, "map": (1 + 5 / 6 + 7 / 12) / 3}
    assert mean == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("ties", ["mean", "worst"])
def test_without_ties_all_bits_are_those_of_the_input_order(ties):
    rng = np.random.default_rng(4)
    qid = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 31, 40)))
    data = Dataset(np.zeros((len(qid), 1)), rng.integers(0, 3, len(qid)), qid)
    scores = rng.permutation(len(qid)) / 8.0
    for profile in PROFILES:
        for name in NAMES:
            values = [
                evaluate(scores, data, name, profile, ties=one).per_query[name] for one in (ties, "order")
            ]
            np.testing.assert_array_equal(*values, err_msg=name)


@pytest.mark.parametrize("ties", ["mean", "worst"])
@pytest.mark.parametrize("key", ["best first", "best last", "chance"])
def test_the_order_of_the_rows_does_not_matter(ties, key):
    data = ties_of_integers(5)
    rows = shuffled_within_queries(data, key)
    for name in NAMES:
        value, other = (
            evaluate_quietly(one.X[:, 1], one, name, "mslr", ties=ties).per_query[name]
            for one in (data, data.select_rows(rows))
        )
        np.testing.assert_allclose(value, other, rtol=1e-13, err_msg=name)


def test_documents_of_two_queries_with_the_same_score_are_not_tied():
    data = Dataset(np.zeros((2, 1)), [0.0, 1.0], ["a", "b"])
    assert Evaluator(data).evaluate_tie_orders(np.ones(2), "mrr")[1] == 0


@pytest.mark.parametrize("n_relevant", [1, 40, 4999, 5000])
def test_large_groups_neither_overflow_nor_lose_digits(n_relevant):
    n = 5000
    labels = np.zeros(n)
    labels[:n_relevant] = 1.0
    data = Dataset(np.zeros((n, 1)), labels, np.zeros(n))
    value = evaluate_quietly(np.zeros(n), data, ["map", "mrr", "mrr@10", "err", "err@10", "ndcg"]).mean
    harmonic = np.cumsum(1.0 / np.arange(1, n + 1))
    if n_relevant == 1:  # its rank is uniform
        assert value["map"] == pytest.approx(harmonic[-1] / n, rel=1e-12)
        assert value["mrr"] == pytest.approx(harmonic[-1] / n, rel=1e-12)
        assert value["mrr@10"] == pytest.approx(harmonic[9] / n, rel=1e-12)
        assert value["err"] == pytest.approx(harmonic[-1] / n / 16, rel=1e-12)
        assert value["err@10"] == pytest.approx(harmonic[9] / n / 16, rel=1e-12)
    if n_relevant == n:  # all orders are the same
        order = evaluate_quietly(np.zeros(n), data, list(value), ties="order").mean
        assert value == pytest.approx(order, rel=1e-12)
    assert all(0 < one <= 1 + 1e-12 for one in value.values())


def test_short_lists_and_empty_queries_follow_the_profile():
    data = Dataset(np.zeros((5, 1)), [0.0, 0.0, 1.0, 0.0, 2.0], list("aabbb"))
    names = ["ndcg@3", "ndcg@4", "map", "mrr"]
    evaluation = evaluate_quietly(np.zeros(5), data, names, "letor", "skip", "mean")
    assert np.isnan(evaluation.per_query["ndcg@3"][0])
    assert np.isnan(evaluation.per_query["map"][0])
    assert evaluation.per_query["ndcg@4"][1] == 0.0
    assert evaluation.too_short == {"ndcg@4": 1}
    assert evaluation.per_query["mrr"].tolist() == [0.0, pytest.approx(5 / 6)]


def test_a_metric_that_reads_only_the_order_measures_the_input_order(monkeypatch):
    def label_of_first(ranked, k, profile):
        return ranked.labels[ranked.judged.queries.offsets[:-1]]

    monkeypatch.setitem(METRICS, "label", Metric("label of the first document", label_of_first))
    data = Dataset(np.zeros((3, 1)), [1.0, 2.0, 0.0], [1, 1, 1])
    values = [evaluate_quietly(np.zeros(3), data, "label", ties=t).mean["label"] for t in ("mean", "worst")]
    assert values == [1.0, 0.0]


# --- settings ----------------------------------------------------------------------------------------------


def test_each_profile_has_its_treatment_of_ties():
    expected = {"letor": "order", "mslr": "order", "standard": "mean", "trec": "order"}
    assert {name: profile.ties for name, profile in PROFILES.items()} == expected
    data, scores = small_queries(6)
    for name, ties in expected.items():
        evaluation = evaluate(scores, data, profile=name)
        assert evaluation.ties == evaluation.to_dict()["ties"] == ties
        assert evaluate(scores, data, profile=name, ties="worst").ties == "worst"


def test_an_unknown_treatment_of_ties_is_refused():
    data, scores = small_queries(6)
    with refused_parameter("ties", "random"):
        evaluate(scores, data, ties="random")
    with refused_parameter("ties", None):
        Profile("mine", ties=None)


def test_trec_runs_keep_the_order_of_trec_eval():
    run, qrels = {"1": {"a": 1.0, "b": 1.0}}, {"1": {"a": 1.0, "b": 0.0}}
    for profile in PROFILES:
        evaluation = rs.evaluate_run(run, qrels, "mrr", profile)
        assert (evaluation.mean["mrr"], evaluation.ties) == (0.5 if profile != "mslr" else 0.0, "order")


def test_evaluations_with_different_ties_are_not_compared():
    data, scores = small_queries(6)
    two = {ties: evaluate(scores, data, ties=ties) for ties in ("mean", "order")}
    with refused_data() as info:
        rs.compare(two)
    assert "standard, ties order" in info.value.reason


# --- choice of a model -------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["standard", "letor"])
@pytest.mark.parametrize("key", ["best first", "best last"])
def test_the_order_of_the_documents_does_not_change_the_choice(profile, key):
    data = ties_of_integers(7)
    other = data.select_rows(shuffled_within_queries(data, key))
    fits = [
        rs.SparseRanker(2, metric="ndcg@3", profile=profile, n_alphas=10, tol=1e-9).fit(one)
        for one in (data, other)
    ]
    one, same = (fit.choice_ for fit in fits)
    assert one.index == same.index
    assert one.family.label == same.family.label
    np.testing.assert_allclose(one.validation.values, same.validation.values, atol=1e-9)
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-4, atol=1e-7)


def test_held_out_values_are_means_over_orders_whatever_the_profile():
    data = ties_of_integers(8)
    weights = np.eye(data.n_features)[:2]
    validation = HeldOut(NO_PREPARATION, "map", PROFILES["letor"], data).measure(weights)
    for values, column in zip(validation.values, data.X.T, strict=False):
        expected = evaluate_quietly(column, data, "map", "letor", ties="mean").per_query["map"]
        np.testing.assert_array_equal(values, expected)
    assert validation.profile == replace(PROFILES["letor"], ties="mean")


def test_models_state_the_ties_of_their_choice():
    data = ties_of_integers(9)
    by_profile = {
        profile: rs.SparseRanker(2, metric="map", profile=profile, n_alphas=5).fit(data).to_model()
        for profile in ("letor", "standard")
    }
    for profile, model in by_profile.items():
        assert model.chosen_by == {"metric": "map", "profile": profile, "ties": "mean"}
        assert model_from_dict(model.to_dict()).chosen_by == model.chosen_by
    assert list(by_profile["letor"].metrics) == ["held-out map (letor, ties mean)"]
    assert list(by_profile["standard"].metrics) == ["held-out map (standard)"]
    grid = rs.GridRanker("ranksvm", metric="map", profile="letor").fit(data).to_model()
    assert grid.chosen_by == {"metric": "map", "profile": "letor", "ties": "mean"}


def test_a_model_file_without_ties_is_read_and_an_unknown_value_refused():
    content = rs.SparseRanker(2, n_alphas=5).fit(ties_of_integers(9)).to_model().to_dict()
    del content["chosen_by"]["ties"]
    assert model_from_dict(content).chosen_by == {"metric": "ndcg@10", "profile": "standard"}
    content["chosen_by"]["ties"] = "random"
    with pytest.raises(ValueError, match="ties"):
        model_from_dict(content)


def test_a_choice_with_the_letor_profile_is_verified():
    data = ties_of_integers(9)
    model = rs.SparseRanker(2, metric="map", profile="letor", n_alphas=5).fit(data).to_model()
    verdicts = {verdict.claim: verdict.holds for verdict in rs.verify(model, data).verdicts}
    assert verdicts["held-out map (letor, ties mean)"] is True


# --- warning and command line ------------------------------------------------------------------------------


def sorted_data():
    """Four documents with one score, the relevant one first; and a query without ties."""
    return Dataset(np.zeros((6, 1)), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0], [1, 1, 1, 1, 2, 2]), np.array(
        [5.0, 5.0, 5.0, 5.0, 2.0, 1.0]
    )


@pytest.mark.parametrize(
    ("ties", "start", "end"),
    [
        ("order", "MRR is 1.0000 in input order, 0.7604 on average", "ties='mean' reports the average"),
        ("mean", "MRR is 0.7604 on average", "in the best"),
        ("worst", "MRR is 0.7604 on average", "ties='mean' reports the average"),
    ],
)
def test_a_warning_states_how_far_ties_could_move_a_metric(ties, start, end):
    data, scores = sorted_data()
    with pytest.warns(TiesWarning) as caught:
        evaluate(scores, data, "mrr", ties=ties)
    (warning,) = caught
    text = str(warning.message)
    assert warning.filename == __file__
    assert text.startswith(
        f"67 % of the documents have the same score as another document of their query: {start}"
    )
    assert "over their orders, 0.6250 in the worst and 1.0000 in the best" in text
    assert text.endswith(end)


def test_ties_that_move_no_metric_give_no_warning():
    data, scores = sorted_data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(scores, data, "p@4")
        evaluate(np.arange(6.0), data, "mrr")
        evaluate(data.y, data, ["ndcg@2", "map"])
        evaluate_quietly(scores, data, "mrr")
        Evaluator(data).evaluate(scores, "mrr")


def test_the_command_line_has_ties_and_warns_once(tmp_path):
    data, scores = sorted_data()
    rs.io.write_letor(data, tmp_path / "test.txt")
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("".join(f"{s}\n" for s in scores), encoding="utf-8")
    a, b, test = (tmp_path / name for name in ("a.txt", "b.txt", "test.txt"))
    means = {}
    for ties in ("order", "mean", "worst"):
        shown = run("evaluate", a, test, "--metric", "mrr", "--ties", ties, "--json")
        content = json.loads(shown.stdout)
        assert content["ties"] == ties
        means[ties] = content["mean"]["mrr"]
        assert shown.stderr.count("warning") == 1
        assert ("--ties mean reports the average" in shown.stderr) == (ties != "mean")
    assert means == pytest.approx({"order": 1.0, "mean": (25 / 48 + 1) / 2, "worst": 0.625})
    text = run("evaluate", a, test, "--metric", "mrr", "--ties", "worst").stdout
    assert "2 queries; standard profile, ties worst." in text
    content = json.loads(run("compare", a, b, test, "--metric", "mrr", "--ties", "worst", "--json").stdout)
    assert content["ties"] == "worst"
    assert content["mean"]["a"]["mrr"] == pytest.approx(0.625)


def test_the_command_line_refuses_unknown_ties_and_ties_of_runs(tmp_path):
    (tmp_path / "run.txt").write_text("1 Q0 a 1 1.0 x\n", encoding="utf-8")
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n", encoding="utf-8")
    command = ("evaluate", tmp_path / "run.txt", "--qrels", tmp_path / "qrels.txt", "--ties")
    assert refused(*command, "random").facts == ("ties", "random")
    assert "trec_eval" in refused(*command, "mean")
