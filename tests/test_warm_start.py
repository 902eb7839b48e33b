"""Refits from a previous model, and their reports of changes."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli import app
from ranksieve.show.sentences import change_sentences
from tests.refusals import refused_parameter

ALL = rs.make_ranking(
    n_queries=160, n_features=14, n_informative=5, docs_per_query=12, noise=0.4, random_state=4
)
FIRST, SECOND = ALL.select_queries(range(80)), ALL.select_queries(range(80, 160))


@pytest.fixture(scope="module")
def old():
    return rs.SparseRanker(max_features=4).fit(FIRST).to_model()


@pytest.fixture(scope="module")
def updated(old):
    return rs.SparseRanker(max_features=4).fit(SECOND, previous=old)


def features(model):
    return set(model.names)


def test_good_features_are_kept_with_new_weights(old, updated):
    new = updated.to_model()
    assert features(new) == features(old)
    assert updated.choice_.family.label.endswith("with the previous features")
    assert not np.array_equal(new.weights, old.weights)
    fresh = rs.SparseRanker(max_features=4).fit(SECOND)
    assert updated.choice_.confidence.mean >= fresh.choice_.confidence.low


def test_it_fits_fewer_models(old, updated):
    fresh = rs.SparseRanker(max_features=4).fit(SECOND)
    assert len(updated.choice_.coefs) < len(fresh.choice_.coefs) / 2


def test_the_previous_problem_is_solved_on_new_data(old, updated):
    certificate = updated.to_model().certificate
    strength = "ridge" if "ridge" in old.certificate else "alpha"
    assert certificate[strength] == old.certificate[strength]
    assert set(certificate["features"]) == features(old)
    assert certificate["relative_gap"] <= 1e-6


def test_bad_features_are_replaced():
    informative = np.flatnonzero(ALL.truth)
    poor = rs.LinearModel(
        terms=tuple(
            rs.model.linear.Term(ALL.feature_names[j], int(j), 1.0) for j in range(14) if j not in informative
        )[:2],
        n_features=14,
    )
    ranker = rs.SparseRanker(max_features=4).fit(SECOND, previous=poor)
    fresh = rs.SparseRanker(max_features=4).fit(SECOND)
    np.testing.assert_array_equal(ranker.coef_, fresh.coef_)
    assert {one.status for one in ranker.changes_.features} >= {"in", "out"}
    assert ranker.changes_.gain[1] > 0


def test_a_smaller_budget_does_not_keep_all_features(old):
    ranker = rs.SparseRanker(max_features=2).fit(SECOND, previous=old)
    assert len(ranker.support_) == 2


def test_must_not_features_of_the_previous_model_are_dropped(old):
    gone = old.names[0]
    ranker = rs.SparseRanker(max_features=4, must_not=[gone]).fit(SECOND, previous=old)
    assert gone not in features(ranker.to_model())
    assert {one.feature for one in ranker.changes_.features if one.status == "out"} >= {gone}


def test_models_of_other_methods_and_files(old, tmp_path):
    other = rs.FenchelRank().fit(FIRST).to_model()
    assert rs.SparseRanker().fit(SECOND, previous=other).changes_ is not None
    old.save(tmp_path / "old.json")
    by_file = rs.SparseRanker(max_features=4).fit(SECOND, previous=tmp_path / "old.json")
    np.testing.assert_array_equal(
        by_file.coef_, rs.SparseRanker(max_features=4).fit(SECOND, previous=old).coef_
    )


def test_reported_changes(old, updated):
    changes_found = updated.changes_
    assert {one.feature: one.before for one in changes_found.features} == pytest.approx(
        dict(zip(old.names, old.folded().weights, strict=True))
    )
    before = rs.evaluate(old.predict(SECOND), SECOND, ["ndcg@10"]).per_query["ndcg@10"]
    np.testing.assert_array_equal(changes_found.before, before[~np.isnan(before)])
    np.testing.assert_array_equal(
        changes_found.after, updated.choice_.validation.values[updated.choice_.index]
    )
    assert (
        changes_found.won + changes_found.lost
        <= len(changes_found.after)
        == updated.choice_.confidence.n_queries
    )
    extremes = changes_found.extremes(2)
    changes = [after - before for _, before, after in extremes]
    assert changes == sorted(changes)
    assert changes[0] == (changes_found.after - changes_found.before).min()
    assert json.loads(json.dumps(changes_found.to_dict()))["won"] == changes_found.won


def test_without_a_previous_model_there_are_no_changes():
    assert rs.SparseRanker(max_features=2).fit(SECOND).changes_ is None


def test_a_previous_model_of_the_same_queries_is_reported(old):
    changes = rs.SparseRanker(max_features=4).fit(FIRST, previous=old).changes_
    assert changes.seen
    assert any("too high" in sentence for sentence in change_sentences(changes, "old.json"))


def test_data_without_features_of_the_previous_model():
    named = rs.Dataset(SECOND.X, SECOND.y, SECOND.qid, [f"x{j}" for j in range(14)])
    terms = (rs.model.linear.Term("y1", 0, 1.0), rs.model.linear.Term("x3", 3, 1.0))
    model = rs.LinearModel(terms, n_features=14)
    changes = rs.SparseRanker(max_features=2).fit(named, previous=model).changes_
    assert len(changes.after) == 0
    sentence = "old.json cannot be evaluated on these data: the data lack 1 of the model's features: y1."
    assert sentence in change_sentences(changes, "old.json")


def test_missing_values_that_the_previous_model_cannot_fill_are_reported(old):
    X = SECOND.X.copy()
    X[0, SECOND.feature_names.index(old.names[0])] = np.nan
    with pytest.warns(UserWarning, match="missing"):
        changes = rs.SparseRanker(max_features=4).fit(SECOND.replace_features(X), previous=old).changes_
    assert any("is missing, and the model" in s for s in change_sentences(changes, "o"))


@pytest.mark.parametrize(
    "previous",
    [
        3,
        rs.LinearModel((), n_features=14),
    ],
)
def test_invalid_previous_models_are_refused(previous):
    with refused_parameter("previous", previous):
        rs.SparseRanker().fit(SECOND, previous=previous)


def test_verification_with_the_previous_model(old, updated):
    claims = {one.claim: one.holds for one in rs.verify(updated.to_model(), SECOND, previous=old).verdicts}
    assert set(claims.values()) == {True}
    assert "a previous model" in claims
    without = {one.claim: one.holds for one in rs.verify(updated.to_model(), SECOND).verdicts}
    assert without["a previous model"] is None
    other = rs.verify(updated.to_model(), SECOND, previous=updated.to_model())
    assert not other.holds


# --- On the command line ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory, old):
    place = tmp_path_factory.mktemp("update")
    rs.io.write_letor(SECOND, place / "new.txt")
    old.save(place / "old.json")
    return place


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_fit_from_a_model_keeps_its_settings_and_reports_changes(folder):
    result = run("fit", folder / "new.txt", "--from", folder / "old.json", "-o", folder / "new.json")
    assert result.exit_code == 0, result.output
    assert f"Settings of {folder / 'old.json'}: max_features=4" in result.output
    assert "are kept: no other candidate is significantly better" in " ".join(result.output.split())
    assert "previous weight" in result.output
    assert "Largest losses and gains" in result.output
    assert rs.load_model(folder / "new.json").parameters["max_features"] == 4


def test_huge_settings_of_a_file_are_not_used(folder, old):
    content = old.to_dict()
    content["parameters"]["n_alphas"] = 10**9
    (folder / "vast.json").write_text(json.dumps(content))
    result = run("fit", folder / "new.txt", "--from", folder / "vast.json", "-o", folder / "vast_new.json")
    assert result.exit_code == 0, result.output
    sentence = "warning: the settings of the previous model cannot be reused: "
    assert sentence in result.stderr
    assert "[1, 10000]" in result.stderr
    assert rs.load_model(folder / "vast_new.json").parameters["n_alphas"] == rs.SparseRanker().n_alphas
    with refused_parameter("n_alphas", 10**9):
        rs.SparseRanker(n_alphas=10**9).fit(SECOND)


def test_options_replace_settings(folder):
    options = ("--max-features", 2, "--json", "-o", folder / "two.json")
    result = run("fit", folder / "new.txt", "--from", folder / "old.json", *options)
    content = json.loads(result.stdout)
    assert content["model"]["parameters"]["max_features"] == 2
    assert {one["status"] for one in content["changes"]["features"]} == {"kept", "out"}


def test_verify_from(folder):
    run("fit", folder / "new.txt", "--from", folder / "old.json", "-o", folder / "new.json")
    result = run("verify", folder / "new.json", folder / "new.txt", "--from", folder / "old.json")
    assert result.exit_code == 0
    assert "a previous model" in result.output


@pytest.mark.parametrize(
    "options",
    [
        ("--method", "ranksvm"),
        ("--stream", "--method", "minbatsrank"),
    ],
)
def test_from_with_other_methods_is_refused(folder, options):
    result = run("fit", folder / "new.txt", "--from", folder / "old.json", *options, "-o", folder / "no.json")
    assert result.exit_code == 2
    assert options[0] in result.stderr
    assert "--from" in result.stderr
    assert not (folder / "no.json").exists()


def test_the_page_shows_the_changes(folder):
    options = ("--report", folder / "page.html", "-o", folder / "paged.json")
    result = run("fit", folder / "new.txt", "--from", folder / "old.json", *options)
    assert result.exit_code == 0, result.output
    page = (folder / "page.html").read_text()
    assert "Changes since" in page
    assert "previous weight" in page
    assert "no other candidate is significantly better" in page
    assert "previous model" in page  # the label of the baseline
