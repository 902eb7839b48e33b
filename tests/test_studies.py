"""Studies: the values of each, recomputed in the test, and their tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from papers.bench import (
    STAND_INS_STUDY,
    all_study_tables,
    bench,
    load_results,
    select_studies,
    tables_with_studies,
)
from papers.claims import of_studies
from papers.claims.base import NO, NOT_SIGNIFICANT, YES
from papers.studies import (
    STUDIES,
    fenchelrank,
    fsmrank,
    listmle,
    minbatsrank,
    penalties,
    selectors,
    study_tables,
    theory,
)
from papers.studies.base import ModelSelector, compare_outcomes, means, published_means, rows_of
from papers.studies.theory import listmle_iterations
from scipy.stats import ttest_rel

import ranksieve as rs
from ranksieve.data.describe import varying_columns
from ranksieve.experiment.results import TABLE_METRICS
from ranksieve.methods import METHODS
from ranksieve.metrics import evaluate
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties import L1
from ranksieve.rankers.linear import squared_radii
from ranksieve.solvers import Problem, ProxNewton
from ranksieve.solvers.ftrl import epoch_order
from ranksieve.solvers.proximal import curvature_along_gradient
from tests.refusals import refused_parameter

PROFILE = "standard"


@pytest.fixture(scope="module")
def fold(synthetic_folds):
    return synthetic_folds[0]


@pytest.fixture(scope="module")
def shop(shop_results):
    return shop_results.data_sets["shop"]


@pytest.fixture(scope="module")
def named(shop):
    """The same under the name of a data set that papers have numbers for."""
    return replace(shop, name="OHSUMED")


def column(table, name, key=0):
    place = table.columns.index(name)
    return {row[key].text: row[place] for row in table.rows}


def table_of(results, name):
    return next(table for table in study_tables(results) if table.name == name)


# --- choosing and measuring -------------------------------------------------------------------------------


def test_a_chooser_takes_validation_and_measures_test(fold):
    rng = np.random.default_rng(0)
    coefs = [np.zeros(15), *rng.normal(size=(6, 15))]
    selection = ModelSelector(fold, PROFILE).select(coefs, [{"k": k} for k in range(7)])
    values = [evaluate(fold.valid.X @ w, fold.valid, "ndcg@10", PROFILE).mean["ndcg@10"] for w in coefs]
    best = 1 + int(np.argmax(values[1:]))  # the model without features is the last choice
    assert selection["parameters"] == {"k": best}
    assert selection["validation"] == pytest.approx(values[best])
    assert selection["sparsity"] == 1
    test = evaluate(fold.test.X @ coefs[best], fold.test, TABLE_METRICS, PROFILE)
    for metric in TABLE_METRICS:
        np.testing.assert_allclose(selection["test"][metric], test.per_query[metric])


def test_differences_are_of_fold_means_and_tests_of_pooled_queries():
    rng = np.random.default_rng(1)

    def outcomes(shift):
        tests = [{m: rng.random(n) + shift for m in TABLE_METRICS} for n in (5, 9)]
        return [{"sparsity": 0.5, "test": test} for test in tests]

    a, b = outcomes(0.3), outcomes(0.0)
    difference, p = compare_outcomes(a, b)
    expected = [np.mean([np.mean(one["test"]["ndcg@10"]) for one in of]) for of in (a, b)]
    assert difference == pytest.approx(expected[0] - expected[1])
    pooled = [np.concatenate([one["test"]["ndcg@10"] for one in of]) for of in (a, b)]
    assert p == pytest.approx(ttest_rel(*pooled, alternative="greater").pvalue)
    assert means(a)["sparsity"] == 0.5


def test_printed_numbers_are_those_of_the_papers():
    assert published_means("FSMRank", "III", "OHSUMED")["$s=S^{PC}$"]["ndcg@10"] == 0.4591
    assert published_means("FenchelRank", "6", "HP2004")["TGRank"]["seconds"] == pytest.approx(29.09)
    assert published_means("FSMRank", "III", "shop") == {}


# --- FSMRank ----------------------------------------------------------------------------------------------


def test_parts_are_fsmrank_with_parts_switched_off(fold):
    variants = fsmrank.parts(fold, PROFILE)["variants"]
    selector = ModelSelector(fold, PROFILE)
    for name, points in fsmrank.PARTS.items():
        coefs = [rs.FSMRank(**point).fit(fold.train).coef_ for point in points]
        best = int(np.argmax(selector.validation_means(coefs)))
        assert variants[name]["parameters"] == points[best]
        np.testing.assert_array_equal(variants[name]["test"]["map"], selector.test_values(coefs[best])["map"])
    half = variants[f"{fsmrank.WITH_IMPORTANCE}, half decades"]["parameters"]
    assert half in fsmrank.PARTS[fsmrank.WITH_IMPORTANCE][::2]
    assert np.diff(np.log10(fsmrank.LAMBDA2)) == pytest.approx(-0.25)


def test_the_subgradient_is_one(fold):
    """Its steps follow differences of the objective where no weight is 0."""
    ranker = rs.FSMRank(0.01, 0.1).fit(fold.train)
    problem = fsmrank.problem_of(ranker, fold.train)
    trace = fsmrank.subgradient_descent(problem, 0.5, 30)
    curvature = curvature_along_gradient(problem.objective)
    w, seen = np.zeros(15), []
    for t in range(1, 5):
        value = problem.value(problem.evaluate(problem.penalty.variables(w)))
        seen.append(value)
        excluded = ranker.importance_ == 0
        size = np.abs(w)
        penalty = 0.1 * (ranker.similarity_ @ size) + np.where(
            excluded, 0, 0.01 / np.maximum(ranker.importance_, 1e-12)
        )
        loss = make_objective(fold.train)
        g = loss.gradient(loss.evaluate(w)) + np.sign(w) * penalty
        w = w - 0.5 / (curvature * np.sqrt(t)) * np.where(excluded, 0, g)
    np.testing.assert_allclose(trace.objective[:4], seen)
    assert len(trace) == 31
    assert min(trace.objective) >= ranker.objective_ - ranker.gap_


def test_descent_is_above_the_optimum(shop):
    study = shop.studies[0]["fsmrank_descent"]
    assert all("fsmrank_descent" not in rows for rows in shop.studies[1:])
    for name, run in study["runs"].items():
        objective = np.array(run["objective"])
        assert np.all(np.diff(objective) <= 0)
        assert objective[-1] >= study["optimum"]
        near = objective[7] / study["optimum"] - 1
        assert fsmrank.iterations_to(study, name, near * (1 + 1e-9)) <= 7
    assert fsmrank.iterations_to(study, "subgradient", -1.0) is None
    cells = column(table_of(shop, "fsmrank_descent"), "iterations to 0.01")
    assert set(cells) == {"FSMRank", "subgradient"}


# --- MinBatSRank ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("feature_wise", [True, False])
def test_learn_is_minbatsrank(fold, feature_wise):
    rate, n = (0.25 if feature_wise else 1e-3), fold.train.n_queries
    orders = [epoch_order(5, epoch, n) for epoch in range(3)]
    points, coefs = minbatsrank.fit_grid(
        fold.train, minbatsrank.Rates(feature_wise, [rate]), [16.0, 2.0], orders, [1, 3]
    )
    assert [(point.l1, point.n_epochs) for point in points] == [(16, 1), (16, 3), (2, 1), (2, 3)]
    for point, coef in zip(points, coefs, strict=True):
        ranker = rs.MinBatSRank(
            point.l1, rate, n_epochs=point.n_epochs, feature_wise=feature_wise, random_state=5
        )
        np.testing.assert_array_equal(ranker.fit(fold.train).coef_, coef)


def test_the_strength_per_pair_does_not_depend_on_the_passes(fold):
    for name, outcomes in minbatsrank.passes(fold, PROFILE)["variants"].items():
        for seed, outcome in zip(minbatsrank.ALL_SEEDS, outcomes, strict=True):
            point = outcome["parameters"]
            assert name in (str(point["n_epochs"]), minbatsrank.CHOSEN)
            assert point["l1"] / point["n_epochs"] in minbatsrank.ALL_L1S
            ranker = rs.MinBatSRank(**point, random_state=seed).fit(fold.train)
            valid = rs.evaluate(ranker.predict(fold.valid), fold.valid, "ndcg@10", profile=PROFILE)
            assert outcome["validation"] == pytest.approx(valid.mean["ndcg@10"])


def test_the_table_of_passes_has_the_best_on_validation_and_the_paper(shop):
    rows = [study["minbatsrank_passes"]["variants"] for study in shop.studies]
    for row in rows:
        for k, outcome in enumerate(row["selected"]):
            values = [row[str(n)][k]["validation"] for n in minbatsrank.N_EPOCHS]
            assert outcome["validation"] == max(values)
    table = table_of(shop, "minbatsrank_passes")
    assert list(column(table, "passes")) == ["1", "5", "20", "selected"]
    ndcg = [np.mean([np.mean(row["5"][k]["test"]["ndcg@10"]) for row in rows]) for k in range(5)]
    assert column(table, "N@10")["5"].text == f"{np.mean(ndcg):.4f} ± {np.std(ndcg, ddof=1):.4f}"


def test_rates_that_diverge_are_left_out(fold):
    orders = [np.arange(fold.train.n_queries)] * 5
    points, _ = minbatsrank.fit_grid(fold.train, minbatsrank.Rates(False, [1e6]), [1.0], orders, [5])
    assert points == []


def test_one_rate_is_tuned_as_widely_as_feature_wise_ones():
    feature_wise, nonfea, printed_rate = minbatsrank.VARIANTS.values()
    assert len(feature_wise.values) == len(nonfea.values) == 12
    assert printed_rate.values == [1.0]


def test_the_stream_ends_with_one_whole_pass(fold):
    curve = minbatsrank.online(fold, PROFILE)
    assert curve["documents"][-1] == fold.train.n_docs
    assert np.all(np.diff(curve["documents"]) >= 0)
    for name, seeds in curve["curves"].items():
        for seed, curve in zip(minbatsrank.SEEDS, seeds, strict=True):
            chosen = {key: curve["parameters"][key] for key in ("l1", "rate")}
            wise = minbatsrank.VARIANTS[name].feature_wise
            ranker = rs.MinBatSRank(**chosen, n_epochs=1, feature_wise=wise, random_state=seed).fit(
                fold.train
            )
            assert curve["n_selected"][-1] == len(ranker.support_)
            last = ModelSelector(fold, PROFILE).test_means([ranker.coef_])
            assert curve["test"]["ndcg@10"][-1] == pytest.approx(last[0])


def test_the_words_on_rates_follow_the_numbers(shop):
    rows = [study["minbatsrank_rates"] for study in shop.studies]
    ours, theirs = (minbatsrank.seed_means(rows, name) for name in ("feature-wise", "Nonfea"))
    difference, p = compare_outcomes(ours, theirs)
    note = table_of(shop, "minbatsrank_rates").note
    assert f"Feature-wise minus tuned Nonfea: {difference:+.4f} N@10 (p = {p:.2g}" in note
    assert ("as in figure 2 of the paper" in note) == (p < 0.05)
    better = [
        {"variants": {**row["variants"], "Nonfea": _worse(row["variants"]["feature-wise"])}} for row in rows
    ]
    assert "): better, as in figure 2 of the paper." in minbatsrank._verdict(better)
    swapped = [
        {"variants": {"feature-wise": row["variants"]["Nonfea"], "Nonfea": row["variants"]["feature-wise"]}}
        for row in better
    ]
    assert "): worse, unlike figure 2 of the paper." in minbatsrank._verdict(swapped)
    empty = [{"variants": {"feature-wise": [{"diverged": 1.0}], "Nonfea": [{"diverged": 1.0}]}}]
    assert minbatsrank._verdict(empty) == ""


def _worse(outcomes):
    return [
        {**one, "test": {m: np.asarray(v) - 0.1 - 0.01 * np.arange(len(v)) for m, v in one["test"].items()}}
        for one in outcomes
    ]


# --- FenchelRank and selectors ----------------------------------------------------------------------------


def test_the_matched_radius_is_the_norm_of_the_solution(fold):
    comparison = fenchelrank.fit_both(fold.train, 0.01, max_iter=200)
    best = ProxNewton(1e-6).solve(Problem(make_objective(fold.train), L1(0.01)))
    assert comparison["radius"] == pytest.approx(np.abs(best.w).sum())
    for run in comparison["runs"].values():
        assert run["objective"] >= comparison["optimum"] - 1e-12
    assert comparison["runs"]["FenchelRank"]["norm"] <= comparison["radius"] * (1 + 1e-9)
    assert list(fenchelrank.fit_both(fold.train, 10.0)["runs"]) == [
        "TGRank"
    ]  # C = 0.1 on the mean loss: w = 0


def test_the_least_loss_in_a_ball_is_a_lower_bound(fold):
    path = sparse_path(fold.train)
    for radius in (1.0, 4.0):
        ranker = rs.FenchelRank(radius, variant="pairwise", max_iter=2000, tol=1e-9).fit(fold.train)
        least = fenchelrank.minimum_in_ball(path, radius)
        assert ranker.objective_ - 5e-3 <= least <= ranker.objective_ + 1e-9


def test_orders_are_those_of_the_selectors(fold):
    n_varying = np.count_nonzero(varying_columns(fold.train))
    order = selectors.orders(fold.train, n_varying)
    for name, kind in (
        ("fsrank", rs.baselines.FSRank),
        ("gas", rs.baselines.GAS),
        ("fsmsvm", rs.baselines.FSMSVM),
    ):
        for size in (1, 4, 9):
            np.testing.assert_array_equal(kind(size).fit(fold.train).selected_, order[name][:size])
    coefs = selectors.refit(fold.train, order["gas"][:4])
    for C, coef in zip(selectors.CS, coefs, strict=True):
        alone = rs.baselines.GAS(4, base=rs.RankSVM(C, average=True)).fit(fold.train)
        np.testing.assert_allclose(coef, alone.coef_, rtol=1e-6, atol=1e-9)


def test_sizes_are_means_over_folds(shop):
    table = table_of(shop, "selector_sizes")
    studies = [study["selectors"] for study in shop.studies]
    assert table.columns == ("method", "metric", "3", "5", "10")  # there are twelve features
    for row in table.rows:
        name = {"FS-Rank": "fsrank", "GAS-E": "gas", "FSMSVM": "fsmsvm"}[row[0].text]
        metric = {"NDCG@10": "ndcg@10", "MAP": "map"}[row[1].text]
        for cell, size in zip(row[2:], (3, 5, 10), strict=True):
            values = [s["selectors"][name]["test"][metric][s["n_features"].index(size)] for s in studies]
            assert cell.value == pytest.approx(np.mean(values))


# --- ListMLE ----------------------------------------------------------------------------------------------


def test_cutoffs_are_listmle_for_each_k(fold):
    result = listmle.cutoffs(fold, PROFILE)
    chosen = result["variants"]["Sparse CS-ListMLE@3"]
    ranker = rs.SparseListMLE(**chosen["parameters"], solver="newton").fit(fold.train)
    np.testing.assert_allclose(
        chosen["test"]["map"], ModelSelector(fold, PROFILE).test_values(ranker.coef_)["map"]
    )
    dense = rs.baselines.CSListMLE(5).fit(fold.train)
    expected = ModelSelector(fold, PROFILE).test_values(dense.coef_)["ndcg@10"]
    np.testing.assert_allclose(result["variants"]["CS-ListMLE@5"]["test"]["ndcg@10"], expected)
    shares = [
        np.mean(rs.SparseListMLE(a, 1, solver="newton").fit(fold.train).coef_ != 0) for a in (0.1, 0.01)
    ]
    assert result["degrees"]["1"] == shares


def test_one_search_passes_every_size(fold):
    """The set when there are first K features is what FBPCRank with that K chooses."""
    search = listmle._search(fold.train, 14, 0.0)
    for size in (1, 3, 6):
        alone = listmle._search(fold.train, size, 0.0)
        assert sorted(listmle.first_features(search.steps_, size)) == sorted(alone.selected_)
    assert len(listmle.first_features(search.steps_, 99)) == len(search.selected_)


def test_degrees_are_next_to_the_numbers_of_table_5(named):
    assert "0.2330" in [row[2].text for row in table_of(named, "listmle_degrees").rows]


def test_listmle_needs_at_most_the_iterations_of_its_theorem(fold):
    runs = listmle.bounds(fold, PROFILE)["runs"]
    objective = make_objective(fold.train, "cost_sensitive_listmle")
    lipschitz = objective.loss.lipschitz_bound(squared_radii(fold.train))
    for run in runs:
        best = ProxNewton(1e-8).solve(Problem(objective, L1(run["alpha"])))
        assert run["bound"] == pytest.approx(listmle_iterations(lipschitz, best.w, run["epsilon"]), rel=1e-3)
        assert run["needed"] <= run["bound"]


# --- bounds, penalties, claims ----------------------------------------------------------------------------


def test_bounds_hold_and_are_in_the_table(shop):
    table = theory.bounds_table(shop)
    assert [row[0].text for row in table.rows] == [
        *["FenchelRank, 1"] * 3, *["Sparse CS-ListMLE, 2(d)"] * 3, "FSMRank, 2", "FSMRank, 3"
    ]  # fmt: skip
    row = shop.studies[0]["fsmrank_bounds"]
    assert 0 <= row["distance"] <= row["distance_bound"]
    assert row["excess"] <= row["excess_bound"]
    for run in shop.studies[0]["fenchelrank_bounds"]["runs"]:
        if run["stopped"] is not None:
            assert run["needed"] <= run["stopped"] <= run["bound"]


def test_no_bounds_for_features_beyond_the_unit_range(fold):
    train = fold.train.replace_features(3.0 * fold.train.X, fold.train.feature_names)
    wide = replace(fold, train=train)
    assert fenchelrank.bounds(wide, PROFILE) == fsmrank.bounds(wide, PROFILE) == {}


def test_penalties_are_compared_as_map_chooses(synthetic_folds, tmp_path):
    names = ["fsmrank", "ranksvm-l1"]
    results = bench({"toy": synthetic_folds}, names, out=tmp_path, grid="fast", studies=False)
    toy = results.data_sets["toy"]
    outcomes = penalties.map_outcomes(toy)
    assert list(outcomes) == names
    for name, outcome in outcomes.items():
        expected = toy.result_for(name, "map")
        assert means(outcome)["map"] == pytest.approx(expected.mean("map"))
        assert means(outcome)["sparsity"] == pytest.approx(expected.to_row()["density"])
    table = penalties.map_table(replace(toy, name="MQ2008"))
    verdicts = column(table, "compared with the best")
    best = max(outcomes, key=lambda name: means(outcomes[name])["map"])
    assert verdicts[METHODS[best].title].text == "best"
    assert set(column(table, "NonconvexRankSVM, table V")) == {"FSMRank", "RankSVM-ℓ1"}
    assert penalties.ndcg_table(toy).rows[0][-1].text == "–"
    assert penalties.map_table(replace(toy, methods={})) is None
    assert penalties._verdict(0.0123, 0.01) == "−1.2 %"
    assert penalties._verdict(0.0123, 0.06) == "~"


def test_every_claim_with_numbers_has_a_verdict(shop):
    holds = {(verdict.paper, verdict.claim): verdict.holds for verdict in of_studies.verdicts(shop)}
    assert set(holds.values()) <= {YES, NO, NOT_SIGNIFICANT}
    assert ("MinBatSRank", "feature-wise rates beat one rate for all") in holds
    assert holds["FenchelRank", "theorem 1: iterations"] == YES
    assert holds["FSMRank", "theorems 2 and 3"] == YES
    assert holds["SparseCSListMLE", "theorem 2(d): iterations"] == YES
    assert ("FSMRank", "better than other selectors for most numbers of features") not in holds
    without = replace(shop, studies=(), methods={"ranksvm": shop.methods["ranksvm"]})
    assert of_studies.verdicts(without) == []


def test_the_number_of_features_is_chosen_on_valid(shop):
    rows = rows_of(shop, "listmle_sizes")
    size, outcomes = listmle.best_size(rows)
    values = [
        np.mean([row["variants"][place]["validation"] for row in rows]) for place in range(len(rows[0]["K"]))
    ]
    assert size == rows[0]["K"][int(np.argmax(values[:-1]))]
    assert outcomes == [row["variants"][rows[0]["K"].index(size)] for row in rows]


# --- which studies run ------------------------------------------------------------------------------------


def test_studies_follow_the_methods_unless_named():
    about_data = [name for name, study in STUDIES.items() if not study.methods]
    assert select_studies(True, ["ranksvm"]) == about_data
    assert select_studies(False, list(METHODS)) == []
    assert "fsmrank_parts" in select_studies(True, ["fsmrank"])
    assert "minbatsrank_rates" not in select_studies(True, ["fsmrank"])
    assert select_studies("all", []) == [*STUDIES, STAND_INS_STUDY]
    assert select_studies(["path"], []) == ["path"]
    with refused_parameter("studies", "paht"):
        select_studies(["paht"], [])


@pytest.mark.full
def test_a_folder_grows_by_studies_and_completes_those_that_are_missing(synthetic_folds, tmp_path):
    source = {"toy": synthetic_folds}
    how = {"out": tmp_path, "grid": "fast"}
    first = bench(source, ["ranksvm"], studies=["single_features"], **how).data_sets["toy"]
    assert [list(rows) for rows in first.studies] == [["single_features"]] * 3
    second = bench(source, ["ranksvm"], studies=["selectors", "fsmrank_descent"], **how).data_sets["toy"]
    assert [set(rows) for rows in second.studies] == [
        {"single_features", "selectors", "fsmrank_descent"}, *[{"single_features", "selectors"}] * 2
    ]  # fmt: skip
    path = tmp_path / "toy" / "studies" / "Fold2.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:40])
    assert "selector_sizes" not in [
        table.name for table in study_tables(load_results(tmp_path).data_sets["toy"])
    ]
    third = bench(source, ["ranksvm"], studies=["selectors"], **how).data_sets["toy"]
    assert third.studies[1]["selectors"]["selectors"] == second.studies[1]["selectors"]["selectors"]
    assert third.studies[0] == second.studies[0]


def test_tables_of_studies_come_after_those_of_methods(shop_results):
    every = tables_with_studies(shop_results)
    names = [table.name for table in every]
    claims = names.index("claims")
    first = claims + names.count("claims")
    assert names[:2] == ["accuracy", "significance"]
    assert [table.name for table in all_study_tables(shop_results)] == names[first:]
    for table in every:
        assert all(len(row) == len(table.columns) for row in table.rows)
