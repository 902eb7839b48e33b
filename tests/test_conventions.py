"""Default metric profile: that of the data, that of a model when it is evaluated, otherwise standard."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli import app
from ranksieve.metrics import PROFILES, Evaluator, Profile, parse, profile_for
from ranksieve.metrics.evaluate import short_lists
from ranksieve.metrics.table import METRICS
from ranksieve.rankers.measures import single_feature
from ranksieve.report.page import ALONE
from tests.conftest import random_dataset
from tests.refusals import refused_data, refused_parameter

LETOR, STANDARD = PROFILES["letor"], PROFILES["standard"]
FAST = {"n_alphas": 8, "cv": 2}
QUICK = ("--set", "n_alphas=8", "--set", "cv=2")


def run(*args, code=0):
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result


def output_of(*args):
    """The output of a command on one line."""
    return " ".join(run(*args).stdout.split())


def from_letor(data: rs.Dataset) -> rs.Dataset:
    data.profile = "letor"
    return data


@pytest.fixture(scope="module")
def parts() -> list[rs.Dataset]:
    """Train, validation and test data with lists of 1 to 13 documents and labels up to 2."""
    return [random_dataset(seed=seed, n_queries=24) for seed in (1, 2, 3)]


@pytest.fixture(scope="module")
def root(parts, tmp_path_factory):
    """A LETOR collection, the same files without folds, and a model of each."""
    root = tmp_path_factory.mktemp("home")
    for folder in (root / "TOY" / "Fold1", root / "TOY" / "Fold2", root / "plain"):
        folder.mkdir(parents=True)
        for name, part in zip(("train", "vali", "test"), parts, strict=True):
            rs.io.write_letor(part, folder / f"{name}.txt")
    fold = root / "TOY" / "Fold1"
    run("fit", fold / "train.txt", "--valid", fold / "vali.txt", *QUICK, "-o", root / "letor.json")
    run("fit", root / "plain" / "train.txt", "--metric", "map", *QUICK, "-o", root / "standard.json")
    return root


# --- profiles of data ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "profile"),
    [
        ("Fold1/train.txt", "letor"),
        ("Fold12/vali.txt.gz", "letor"),
        ("Fold3/testset.txt", "letor"),
        ("Fold1/train.parquet", None),
        ("Fold1/features.txt", None),
        ("Fold/train.txt", None),
        ("fold1/train.txt", None),
        ("Fold1/more/train.txt", None),
        ("train.txt", None),
    ],
)
def test_files_of_letor_folds_have_the_letor_profile(tmp_path, monkeypatch, parts, file, profile):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    rs.write_dataset(parts[0], path)
    assert rs.read_dataset(path).profile == profile
    monkeypatch.chdir(path.parent)
    assert rs.read_dataset(path.name).profile == profile


def test_several_files_and_streams(root):
    fold, plain = root / "TOY" / "Fold1", root / "plain" / "train.txt"
    assert rs.io.read_letor([fold / "train.txt", fold / "vali.txt"]).profile == "letor"
    assert rs.io.read_letor([fold / "train.txt", plain]).profile is None
    assert {part.profile for part in rs.io.stream_letor(fold / "test.txt", n_features=5)} == {"letor"}
    assert {part.profile for part in rs.io.stream_letor(plain, n_features=5)} == {None}


def test_letor_folds_have_the_letor_profile(root, parts):
    assert {part.profile for fold in rs.load_letor_folds(root / "TOY") for part in fold} == {"letor"}
    assert {part.profile for fold in rs.deal_folds(parts[0], 3) for part in fold} == {None}


def test_derived_data_keep_the_profile():
    data = from_letor(random_dataset(n_queries=12))
    data.X[0, 0] = np.nan
    derived = [
        data.select_queries(np.array([0, 1])), data.select_rows(np.arange(9)), data.widened(8),
        data.replace_features(data.X[:, :2], ("a", "b")), rs.fill_missing(data, "zero"),
        pickle.loads(pickle.dumps(data)), *(part for fold in rs.deal_folds(data, 3) for part in fold),
    ]  # fmt: skip
    assert {part.profile for part in derived} == {"letor"}
    ranker = rs.FenchelRank(normalise="z", missing="zero").fit(data)
    assert ranker.preparation_.for_learning(data).profile == "letor"


def test_frames_have_no_profile():
    data = from_letor(random_dataset())
    assert rs.from_frame(rs.to_frame(data)).profile is None
    assert rs.Dataset(data.X, data.y, data.qid).profile is None
    assert rs.Dataset(data.X, data.y, data.qid, profile="mslr").profile == "mslr"


# --- the default ------------------------------------------------------------------------------------------


def test_the_data_determine_the_profile_unless_it_is_passed():
    letor, plain = from_letor(random_dataset()), random_dataset()
    assert profile_for(None, letor) is profile_for(None, letor, letor) is LETOR
    assert profile_for(None, plain) is profile_for(None, letor, plain) is profile_for(None) is STANDARD
    assert profile_for("mslr", letor) is PROFILES["mslr"]
    custom = Profile("custom")
    assert profile_for(custom, letor) is custom
    letor.profile = "lettor"
    with refused_parameter("profile", "lettor"):
        profile_for(None, letor)


def test_labels_beyond_the_letor_scale_use_the_standard_profile():
    data = random_dataset()
    graded = rs.Dataset(data.X, 2 * data.y, data.qid, profile="letor")
    assert profile_for(None, graded) is profile_for(None, from_letor(data), graded) is STANDARD
    assert "err@10" in rs.evaluate(graded.X[:, 0], graded, "err@10").mean


@pytest.mark.parametrize(("own", "expected"), [("letor", LETOR), (None, STANDARD)])
def test_all_evaluations_use_the_profile_of_the_data(own, expected, parts):
    train, valid, test = (part.select_rows(np.arange(part.n_docs)) for part in parts)
    for part in (train, valid, test):
        part.profile = own
    scores = test.X[:, 0]
    assert rs.evaluate(scores, test).profile is Evaluator(test).profile is expected
    many = Evaluator(test).evaluate_many(scores[:, None], "ndcg@5")
    np.testing.assert_array_equal(many[0], rs.evaluate(scores, test, "ndcg@5", expected).per_query["ndcg@5"])
    for held_out in ({"valid": valid}, {}):
        fitted = rs.SparseRanker(metric="ndcg@5", **FAST).fit(train, **held_out)
        with_profile = rs.SparseRanker(metric="ndcg@5", profile=expected, **FAST).fit(train, **held_out)
        assert fitted.profile is None
        assert fitted.choice_.validation.profile == expected.with_ties("mean")
        np.testing.assert_array_equal(
            fitted.choice_.validation.values, with_profile.choice_.validation.values
        )
        np.testing.assert_array_equal(fitted.coef_, with_profile.coef_)
        chosen_by = {"metric": "ndcg@5", "profile": expected.name, "ties": "mean"}
        assert fitted.to_model().chosen_by == chosen_by
    assert rs.frontier(train, valid, metric="ndcg@5", **FAST).profile == expected.name
    model = fitted.to_model()
    assert rs.feature_importance(model, test, "ndcg@5") == rs.feature_importance(
        model, test, "ndcg@5", profile=expected
    )


def test_validation_data_determine_the_profile():
    train, valid = random_dataset(seed=1, n_queries=20), from_letor(random_dataset(seed=2, n_queries=20))
    by_letor, by_standard = (
        rs.SparseRanker(metric="map", **FAST).fit(one, valid=other)
        for one, other in ((train, valid), (valid, train))
    )
    assert by_letor.choice_.validation.profile == LETOR.with_ties("mean")
    assert by_standard.choice_.validation.profile is STANDARD


@pytest.mark.full
def test_bench_of_letor_folds_uses_the_letor_profile(root, tmp_path):
    def rows(name, **options):
        rs.bench(root / "TOY", ["ranksvm", "sparseranker"], out=tmp_path / name, grid="fast", **options)
        texts = [path.read_text() for path in sorted((tmp_path / name).glob("*/*/*.jsonl"))]
        every = [json.loads(line) for text in texts for line in text.splitlines()]
        measured = [row for row in every if row["kind"] != "convergence"]  # which only has times
        return [{key: value for key, value in row.items() if "seconds" not in key} for row in measured]

    assert rows("default") == rows("explicit", profile="letor")


# --- metric and profile of the selection in models ----------------------------------------------------------


def test_model_files_record_metric_and_profile_of_the_selection(root, tmp_path):
    model = rs.load_model(root / "letor.json")
    assert model.chosen_by == {"metric": "ndcg@10", "profile": "letor", "ties": "mean"}
    standard = rs.load_model(root / "standard.json")
    assert standard.chosen_by == {"metric": "map", "profile": "standard", "ties": "mean"}
    (tmp_path / "bad.json").write_text(json.dumps({**model.to_dict(), "chosen_by": {"metric": "map"}}))
    with refused_data("bad.json") as info:
        rs.load_model(tmp_path / "bad.json")
    assert "chosen_by" in info.value.reason


def test_only_known_profiles_of_the_selection_are_recorded():
    data = random_dataset(n_queries=12)
    assert rs.FenchelRank().fit(data).to_model().chosen_by is None
    upper = rs.SparseRanker(metric="NDCG@5", **FAST).fit(data).to_model()
    assert upper.chosen_by == {"metric": "ndcg@5", "profile": "standard", "ties": "mean"}
    changed = replace(LETOR, short_list_is_zero=False)  # has the name letor, but another definition
    assert rs.SparseRanker(profile=changed, **FAST).fit(data).to_model().chosen_by is None


def test_evaluate_uses_metric_and_profile_of_the_model(root):
    test, model = root / "plain" / "test.txt", root / "letor.json"
    data = rs.io.read_letor(test)
    own = rs.evaluate(rs.load_model(model).predict(data), data, ["ndcg@10", "map"], "letor")
    content = json.loads(run("evaluate", model, test, "--json").stdout)
    assert content["profile"] == "letor"
    assert content["mean"] == dict(own.mean)
    assert content["too_short"] == {"ndcg@10": int(np.sum(data.queries.sizes < 10))}
    text = output_of("evaluate", model, test)
    assert "24 queries; NDCG@10, letor profile (used to select the model)." in text
    assert short_lists(own) in text
    text = output_of("evaluate", root / "standard.json", test)
    assert "MAP, standard profile (used to select the model)." in text
    assert "ndcg" not in text


def test_evaluate_with_metric_and_profile(root):
    test, model = root / "plain" / "test.txt", root / "letor.json"
    text = output_of("evaluate", model, test, "--profile", "standard", "--metric", "ndcg@10")
    assert text.endswith("24 queries; standard profile.")
    text = output_of("evaluate", model, test, "--profile", "standard")
    assert text.endswith("24 queries; NDCG@10 (used to select the model); standard profile.")
    text = output_of("evaluate", model, test, "--metric", "mrr")
    assert text.endswith("24 queries; letor profile (used to select the model).")


def test_scores_are_evaluated_by_the_profile_of_the_data(root, tmp_path):
    run("rank", root / "letor.json", root / "plain" / "test.txt", "-o", tmp_path / "scores.txt")
    for folder, profile in (("plain", "standard"), ("TOY/Fold1", "letor")):
        text = output_of("evaluate", tmp_path / "scores.txt", root / folder / "test.txt")
        assert f"24 queries; {profile} profile." in text
        assert ("fewer than 10 documents" in text) == (profile == "letor")


def test_compare_uses_the_common_metric_and_profile_of_the_models(root, tmp_path):
    first, other = root / "letor.json", root / "standard.json"
    again = tmp_path / "again.json"
    again.write_text(first.read_text())
    test = root / "plain" / "test.txt"
    assert "NDCG@10, letor profile (used to select the models)." in output_of("compare", first, again, test)
    text = output_of("compare", first, other, test)
    differ = f"(the models were selected by different ones: {first} by {{}}, {other} by {{}})"
    assert "24 queries; NDCG@10 " + differ.format("ndcg@10", "map") in text
    assert "standard profile " + differ.format("letor", "standard") in text
    content = json.loads(run("compare", first, other, root / "TOY" / "Fold1" / "test.txt", "--json").stdout)
    assert content["profile"] == "letor"
    assert set(content["mean"]["letor"]) == {"ndcg@10", "map"}
    assert list(content["too_short"]) == ["ndcg@10"]


def test_explain_drop_uses_metric_and_profile_of_the_model(root):
    options = ("explain", root / "letor.json", root / "plain" / "test.txt", "--drop")
    assert json.loads(run(*options, "--json").stdout)["profile"] == "letor"
    assert "NDCG@10, letor profile (used to select the model)." in output_of(*options)
    assert "MAP" not in output_of(*options)


# --- lists too short to count -------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("empty", [0, 1, "skip"])
def test_too_short_counts_the_lists_with_value_zero_by_the_profile(profile, empty):
    """Compared with the same profile without the rule for short lists."""
    data = random_dataset(seed=4, n_queries=40, n_levels=2)
    lenient = replace(PROFILES[profile], short_list_is_zero=False)
    names = [f"{name}@{k}" for name in METRICS for k in (1, 4, 9)]
    evaluation = rs.evaluate(data.y, data, names, profile, empty)
    counted = rs.evaluate(data.y, data, names, lenient, empty)
    assert counted.too_short == {}
    for name in names:
        lost = (evaluation.per_query[name] == 0) & (counted.per_query[name] > 0)
        short = data.queries.sizes < parse(name).k
        assert not np.any(lost & ~short)
        assert evaluation.too_short.get(name, 0) >= np.count_nonzero(lost)
        assert evaluation.too_short.get(name, 0) in (0, np.sum(short & (evaluation.per_query[name] == 0)))
    assert set(evaluation.too_short) == (
        {"ndcg@4", "ndcg@9"} if PROFILES[profile].short_list_is_zero else set()
    )


def test_sentence_about_short_lists():
    data = rs.Dataset(np.zeros((7, 1)), [1, 0, 0, 1, 0, 1, 1], [1, 1, 1, 2, 2, 3, 3])
    scores = np.zeros(7)
    assert short_lists(rs.evaluate(scores, data, ["ndcg@3", "map", "ndcg@2"], "letor")) == (
        "2 of 3 queries have fewer than 3 documents; the letor profile counts their NDCG@3 as 0 "
        "(standard does not)."
    )
    assert short_lists(rs.evaluate(scores, data, ["ndcg@3", "ndcg@5"], "mslr")) == (
        "2 and 3 of 3 queries have fewer than 3 and 5 documents; the mslr profile counts their NDCG@3 and "
        "NDCG@5 as 0 (standard does not)."
    )
    one = data.select_rows(np.arange(5))
    assert short_lists(rs.evaluate(scores[:5], one, "ndcg@3", "letor")) == (
        "1 of 2 queries has fewer than 3 documents; the letor profile counts its NDCG@3 as 0 "
        "(standard does not)."
    )
    assert short_lists(rs.evaluate(scores, data, ["ndcg@5", "map"], "standard")) == ""


def test_fit_and_its_page_report_short_lists(root, tmp_path):
    fold, page = root / "TOY" / "Fold1", tmp_path / "page.html"
    held_out = rs.io.read_letor(fold / "train.txt").joined(
        rs.io.read_letor(fold / "vali.txt")
    )  # for cross-validation and validation
    sentence = short_lists(rs.evaluate(np.zeros(held_out.n_docs), held_out, "ndcg@10"))
    assert sentence.endswith("the letor profile counts their NDCG@10 as 0 (standard does not).")
    command = ("fit", fold / "train.txt", "--valid", fold / "vali.txt", *QUICK, "-o", tmp_path / "m.json")
    text = output_of(*command, "--report", page)
    assert "Held-out NDCG@10: " in text
    assert f"; {held_out.n_queries} queries; letor profile, ties mean)." in text
    assert sentence in text
    shown = " ".join(page.read_text().split())
    assert sentence in shown
    assert "Means over queries, letor profile." in shown
    assert "documents; the letor profile counts their NDCG@3, NDCG@5 and NDCG@10 as 0" in shown
    assert '<tr><th>profile</th><td class="name">letor</td></tr>' in shown
    assert json.loads(run(*command, "--json").stdout)["uncounted"] == sentence
    valid = rs.io.read_letor(fold / "vali.txt")
    alone = short_lists(rs.evaluate(np.zeros(valid.n_docs), valid, "ndcg@10"))
    assert json.loads(run(*command, "--set", "cv=0", "--json").stdout)["uncounted"] == alone != sentence
    assert "as 0" not in output_of(*command, "--profile", "standard")
    assert "; standard profile)." in output_of(
        "fit", root / "plain" / "train.txt", *QUICK, "-o", tmp_path / "m.json"
    )


def test_single_features_are_evaluated_by_the_profile_of_the_page(root, tmp_path):
    for folder, profile in (("TOY/Fold1", "letor"), ("plain", "standard")):
        page, data = tmp_path / "page.html", rs.io.read_letor(root / folder / "train.txt")
        run("fit", root / folder / "train.txt", *QUICK, "-o", tmp_path / "m.json", "--report", page)
        text = page.read_text()
        assert f"by the feature alone, {ALONE} ({profile} profile)." in text
        assert f"{single_feature(data, 'ndcg@10', None, profile).max():.4f}" in text
