"""Comparison with the papers' numbers: each has a counterpart or a reason; only like is compared."""

from __future__ import annotations

import csv
import math
from importlib.resources import files

import numpy as np
import pytest
from papers.bench import bench
from papers.comparison import (
    CONVENTIONS,
    LABEL_2,
    NumberComparison,
    PaperProtocol,
    agreement,
    comparisons,
    kind_of,
    largest,
    other_profiles,
    protocol_of,
)
from papers.published import (
    NAMES,
    VARIANTS,
    PublishedNumber,
    numbers_by_data_set,
    published_numbers,
    rows_of,
    unmatched_numbers,
)
from papers.published_tables import (
    agreement_table,
    difference_table,
    p_value_table,
    published_table,
    unmatched_table,
)
from scipy.stats import ttest_rel

from ranksieve.experiment.tables import accuracy_table
from ranksieve.methods import METHODS, Method
from ranksieve.metrics import evaluate
from ranksieve.metrics.profiles import STANDARD_PROFILE
from ranksieve.rankers import RankSVM

HERE = ["fenchelrank", "ranksvm", "ranksvm-l1", "listnet", "csranksvm"]


@pytest.fixture(scope="module")
def results(synthetic_folds, tmp_path_factory):
    """Under the name of a data set that papers have numbers for."""
    folder = tmp_path_factory.mktemp("results")
    names = [*HERE, "fsrank-k5", "cslistmle@3"]
    return bench({"OHSUMED": synthetic_folds}, names, out=folder, grid="fast", studies=False).data_sets[
        "OHSUMED"
    ]


def lines(table, method):
    return [row for row in table.rows if row[0].text == method]


def cell(table, row, column):
    return row[table.columns.index(column)]


def test_every_printed_number_has_a_counterpart_or_a_reason():
    text = files("papers").joinpath("published.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    for name in {row["dataset"] for row in rows}:
        mapped = sum(entry.data_set == name for entry in published_numbers())
        lacking = unmatched_numbers(name)
        assert mapped + sum(row.n_numbers for row in lacking) == numbers_by_data_set()[name]
        assert all(row.reason for row in lacking)
    assert sum(numbers_by_data_set().values()) == len(rows) == 1189
    assert [sum(row.n_numbers for row in unmatched_numbers(name)) for name in ("OHSUMED", "MQ2008")] == [0, 5]


def test_names_are_those_of_methods_and_variants():
    assert set(NAMES.values()) <= {*METHODS, *VARIANTS}
    assert set(VARIANTS) <= set(NAMES.values())
    assert not set(VARIANTS) & set(METHODS)


def test_published_facts():
    (fenchel, fsm) = rows_of("MQ2008", "ranksvm")
    assert (fenchel.source, fenchel.means["map"]) == ("FenchelRank, tables 2, 4", 0.4744)
    assert fsm.source == "FSMRank, table II"
    (log,) = rows_of("OHSUMED", "ranksvm-log")
    assert log.means == {"sparsity": 0.12, "ndcg@10": 0.4591}
    (five,) = rows_of("OHSUMED", "fsrank-k5")
    assert (five.source, five.means["ndcg@10"]) == ("FenchelRank, table 7", 0.4494)
    (plain,) = rows_of("OHSUMED", "fsmrank-plain")
    assert plain.means["ndcg@10"] == 0.4523
    folds = [
        entry for entry in published_numbers() if entry.paper == "SparseCSListMLE" and entry.table == "4"
    ]
    seconds = [e.value for e in folds if (e.method, e.metric) == ("sparselistmle", "seconds")]
    assert len(seconds) == 5
    assert rows_of("MQ2008", "sparselistmle")[0].means["seconds"] == np.mean(seconds)
    assert [row.means for row in rows_of("OHSUMED", "sparselistmle@1") if "sparsity" in row.means] == [
        {"ndcg@1": 0.4505, "ndcg@3": 0.3987, "ndcg@5": 0.4022, "ndcg@10": 0.3986, "map": 0.3576,
         "sparsity": 0.23296},
    ]  # fmt: skip


def test_terms_are_those_of_the_source():
    assert protocol_of("FenchelRank", "OHSUMED", "fenchelrank") == PaperProtocol("ndcg@10")
    assert protocol_of("NonconvexRankSVM", "MQ2008", "fenchelrank") == PaperProtocol("map", "density")
    assert protocol_of("FSMRank", "OHSUMED", "listnet") == PaperProtocol("map")  # from LETOR's site
    assert protocol_of("FenchelRank", "OHSUMED", "ranksvm") == PaperProtocol("map")
    assert protocol_of("FenchelRank", "MQ2008", "ranksvm") == PaperProtocol("ndcg@10")  # the paper's own run
    assert protocol_of("SparseCSListMLE", "OHSUMED", "listnet").profile is LABEL_2
    assert (
        str(protocol_of("NonconvexRankSVM", "MQ2008", "fsmrank"))
        == "chosen by MAP, sparsity of varying features"
    )
    assert other_profiles("fsmrank") == {}
    assert other_profiles("listnet") == dict.fromkeys(("OHSUMED", "MQ2008"), (*CONVENTIONS, STANDARD_PROFILE))
    assert LABEL_2 in CONVENTIONS


def test_every_paper_has_terms():
    for entry in published_numbers():
        assert protocol_of(entry.paper, entry.data_set, entry.method).select in ("ndcg@10", "map")


def test_each_source_is_compared_with_models_selected_by_its_protocol(results):
    table = published_table(results, "ranksvm")
    by_ndcg, *rest = lines(table, "FenchelRank")
    assert by_ndcg[1].text == "ranksieve, chosen by NDCG@10"
    assert rest[0][1].text == "FenchelRank, tables 2, 4, 5, 7, 8"
    reached = results.results["fenchelrank"].mean("ndcg@10")
    assert cell(table, by_ndcg, "N@10").value == pytest.approx(reached)
    assert cell(table, rest[0], "N@10").value == 0.4637
    assert cell(table, rest[1], "N@10").text == f"{reached - 0.4637:+.4f}"
    by_map = next(
        row for row in rest if row[1].text == "ranksieve, chosen by MAP, sparsity of varying features"
    )
    chosen = results.result_for("fenchelrank", "map").to_row()
    assert cell(table, by_map, "sparsity").value == pytest.approx(chosen["density"])
    assert cell(table, by_map, "MAP").value == pytest.approx(chosen["map"])


def test_other_conventions_have_no_difference(results, synthetic_folds):
    table = published_table(results, "ranksvm")
    ours, printed = lines(table, "CS-RankSVM")
    assert ours[1].text == f"ranksieve, chosen by NDCG@10, closest conventions: {LABEL_2.name}"
    assert printed[1].text == "SparseCSListMLE, table 2"
    folds = results.results["csranksvm"].folds
    scores = [fold.test.X @ of.coef for fold, of in zip(synthetic_folds, folds, strict=True)]
    values = [
        evaluate(s, fold.test, ["ndcg@10", "map"], LABEL_2).mean
        for s, fold in zip(scores, synthetic_folds, strict=True)
    ]
    for column, metric in (("N@10", "ndcg@10"), ("MAP", "map")):
        assert cell(table, ours, column).value == pytest.approx(np.mean([v[metric] for v in values]))
    assert cell(table, ours, "seconds").value is None
    unlike = [one for one in comparisons(results) if one.published.paper == "SparseCSListMLE"]
    assert unlike
    assert all(math.isnan(one.difference) for one in unlike)


def test_label_2_alone_has_binary_gain():
    assert LABEL_2.gain(np.array([0.0, 1.0, 2.0])).tolist() == [0.0, 0.0, 1.0]


def test_seconds_have_no_difference(results):
    table = published_table(results, "ranksvm")
    rows = lines(table, "FenchelRank")
    at = next(k for k, row in enumerate(rows) if row[1].text.startswith("MinBatSRank"))
    assert cell(table, rows[at], "seconds").value == 254.97
    assert cell(table, rows[at + 1], "seconds").value is None
    assert rows[at + 1][1].text == "difference"


def test_variants_are_compared_only_with_their_own_numbers(results):
    assert list(results.methods) == [name for name in METHODS if name in HERE]
    assert list(results.variants) == ["fsrank-k5", "cslistmle@3"]
    assert lines(published_table(results, "ranksvm"), "FS-Rank, k = 5")[1][1].text == "FenchelRank, table 7"
    for fold in results.variants["fsrank-k5"]:
        assert {row["parameters"]["max_features"] for row in fold.fits} == {5}


def test_variants_alone_are_methods(synthetic_folds, tmp_path):
    data = {"OHSUMED": synthetic_folds[:1]}
    alone = bench(data, ["fsrank-k5"], out=tmp_path, grid="fast", studies=False).data_sets["OHSUMED"]
    assert (list(alone.methods), list(alone.variants)) == (["fsrank-k5"], [])
    assert accuracy_table(alone, "fsrank-k5").rows[0][0].text == "fsrank-k5"


def test_p_values_are_of_what_each_source_chose(results):
    (row, *_) = p_value_table(results, "ranksvm").rows
    assert row[0].text == "FenchelRank over RankSVM-Primal"
    a = results.result_for("fenchelrank", "ndcg@10").pooled("ndcg@1")
    b = results.result_for("ranksvm", "map").pooled("ndcg@1")
    assert row[3].value == pytest.approx(ttest_rel(a, b, alternative="greater").pvalue)


def test_agreement_counts_every_number_once(results):
    rows = agreement(results)
    assert sum(row.n_published for row in rows) == numbers_by_data_set()["OHSUMED"]
    numbers = comparisons(results)
    by_kind = {row.kind: row for row in rows}
    for kind, row in by_kind.items():
        sizes = [abs(one.difference) for one in numbers if one.kind == kind and one.comparable]
        assert row.n_compared == len(sizes)
        assert row.n_small == sum(size <= 0.003 for size in sizes)
        assert row.n_large == sum(size > 0.01 for size in sizes)
        assert row.n_not_comparable == sum(one.kind == kind and not one.comparable for one in numbers)
        assert row.n_not_run >= 0
    assert by_kind["seconds"].n_compared == 0
    assert agreement_table(results, "ranksvm").rows[0][1].value == by_kind["NDCG and MAP"].n_published


def test_a_number_at_the_edge_is_within():
    for ours, printed in ((0.4513, 0.4483), (0.4483, 0.4513)):
        one = NumberComparison(
            PublishedNumber("FSMRank", "I", "OHSUMED", "fsmrank", "map", printed), PaperProtocol(), ours
        )
        assert round(abs(one.difference), 6) == 0.003


def test_the_largest_differences_come_first_and_once(results):
    table = difference_table(results, "ranksvm")
    sizes = [abs(row[5].value) for row in table.rows if row[2].text != "sparsity"]
    assert sizes == sorted(sizes, reverse=True)
    numbers = comparisons(results)
    (first, *_) = largest(numbers, "NDCG and MAP", 1)
    best = max(
        (one for one in numbers if one.kind == "NDCG and MAP" and one.comparable),
        key=lambda c: abs(c.difference),
    )
    assert first[0].published.value == best.published.value
    both = [group for group in largest(numbers, "NDCG and MAP", 999) if len(group) > 1]
    assert all(
        len({(c.published.method, c.published.metric, c.published.value) for c in group}) == 1
        for group in both
    )
    assert both  # what two papers cite from one site


def test_numbers_without_a_counterpart_are_listed(synthetic_folds, tmp_path):
    method = {"sparselistmle": Method("dense", make=RankSVM)}
    results = bench({"MQ2008": synthetic_folds[:1]}, method, out=tmp_path, studies=False).data_sets["MQ2008"]
    (row,) = unmatched_table(results, "sparselistmle").rows
    assert [one.text for one in row[:4]] == [
        "SparseCSListMLE, table 4", "Sparse CS ListMLE", "lambda", "5",
    ]  # fmt: skip
    assert {kind.kind: kind.n_unmatched for kind in agreement(results)}["other"] == 5


def test_kinds():
    assert [kind_of(m) for m in ("ndcg@3", "map", "sparsity", "seconds", "lambda")] == [
        "NDCG and MAP", "NDCG and MAP", "sparsity", "seconds", "other",
    ]  # fmt: skip
    assert kind_of("map", "ranksvm") == "p-values"
