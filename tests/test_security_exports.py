"""Hostile names in every export: kept exactly, or refused in one sentence; without side effects."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields

import numpy as np
import pytest

from ranksieve.data.dataset import Dataset
from ranksieve.export import EXPORTS, export_model
from ranksieve.model.linear import Curve, LinearModel, Term
from ranksieve.prepare import Preparation
from tests.contracts.test_export_contract import VESPA
from tests.engine_readers import READERS, python_process
from tests.hostile import CONTROLS, HALVES, SHOWN
from tests.injection.__main__ import try_model
from tests.injection.round_trip import Fault, check_sentence, check_structure, round_trip
from tests.refusals import refused_data, refused_parameter

BOOSTERS = ("lightgbm", "xgboost")
OWN_NAMES = ("ranklib", "elasticsearch_ltr", *BOOSTERS, *VESPA)
REFUSED = {"elasticsearch_ltr": r"\{\{", "lightgbm": r'[\s",:\[\]{}=]', "xgboost": r"[][<]"}
FEW_FEATURES = ("opensearch_hybrid", "esql", "redis")
ANY_NAMES = [target for target in EXPORTS if target not in (*OWN_NAMES, "qdrant", *FEW_FEATURES)]
VALUES = np.random.default_rng(0).gamma(2.0, 1.0, (4, len(SHOWN)))
DATA = Dataset(VALUES, [0, 1, 0, 2], [1, 1, 1, 1], SHOWN)


def model_of(names, kind="none"):
    terms = tuple(Term(name, j, 0.25 + 0.01 * j) for j, name in enumerate(names))
    preparation = Preparation.learn(DATA.select_features(np.arange(len(names))), kind, "keep").of(names)
    return LinearModel(terms, len(names), 0.0, preparation)


def curves_of(names):
    terms = (Term(name, j, 1.0, Curve((1.0, 2.0), (0.0, 0.25, 0.01 * j))) for j, name in enumerate(names))
    return LinearModel(tuple(terms), len(names))


def place_of(target, folder):
    return folder / ("out" if EXPORTS[target].folder else "file.py")


@pytest.mark.parametrize("target", [target for target in ANY_NAMES if EXPORTS[target].lines])
def test_a_model_with_all_hostile_names(target, tmp_path):
    assert round_trip(model_of(SHOWN), target, place_of(target, tmp_path), DATA, {})


@pytest.mark.parametrize("target", [target for target in ANY_NAMES if EXPORTS[target].curves])
def test_curves_with_all_hostile_names(target, tmp_path):
    assert round_trip(curves_of(SHOWN), target, place_of(target, tmp_path), DATA, {})


@pytest.mark.parametrize("target", OWN_NAMES)
def test_hostile_names_with_harmless_engine_names(target, tmp_path):
    form = "attribute(a{})" if target in VESPA else "{}"
    names = {name: form.format(j + 1) for j, name in enumerate(SHOWN)}
    for model in (curves_of(SHOWN), *([model_of(SHOWN)] if EXPORTS[target].lines else [])):
        (tmp_path / str(model.has_curves)).mkdir()
        assert round_trip(model, target, place_of(target, tmp_path / str(model.has_curves)), DATA, names)


@pytest.mark.parametrize("target", [target for target in EXPORTS if target not in ("json", "onnx", "python")])
def test_each_name_is_kept_or_refused(target, tmp_path):
    kind = "query_min_max" if target == "opensearch_hybrid" else "none"
    features = ["f1", "f2"] if target == "redis" else ["f1"]
    model = model_of(features, kind) if EXPORTS[target].lines else curves_of(features)
    data = Dataset(VALUES[:, : len(features)], DATA.y, DATA.qid, features)
    accepted = []
    for number, name in enumerate((*SHOWN, *CONTROLS, *HALVES)):
        if round_trip(model, target, tmp_path / str(number), data, {"f1": name}):
            accepted.append(name)
    assert not {*CONTROLS, *HALVES} & set(accepted)
    if target in ("ranklib", "qdrant", *VESPA):
        assert len(accepted) < 10
    elif target in REFUSED:
        assert accepted == [name for name in SHOWN if not re.search(REFUSED[target], name)]
    else:
        assert set(accepted) == set(SHOWN)


def test_the_python_module_does_not_run_code_in_names(tmp_path):
    result = export_model(model_of(SHOWN), "python", tmp_path / "m.py")
    check_structure("python", result, model_of(SHOWN))
    columns = {name: VALUES[:, j].tolist() for j, name in enumerate(SHOWN)}
    done = python_process(result.files[0], columns)
    np.testing.assert_array_equal(done["scores"], model_of(SHOWN).predict(DATA))
    assert "subprocess" not in done["modules"]
    text = result.files[0].read_text(encoding="utf-8")
    assert not {"\u2028", "\u2029", "\u202e", "\u2066", "\u200b"} & set(text)  # characters that hide code


COLLISIONS = [
    {"a": "intercept", "b": "w_a", "c": "w_b"},
    {"a": "w_c", "b": "w_c_", "c": "intercept_"},
    {"a": "max(w_a,1)", "b": "bm25(intercept)", "c": "w_a__1"},
]


@pytest.mark.parametrize("names", COLLISIONS)
@pytest.mark.parametrize("features", [("a", "b", "c"), ("a", "a-b", "a_b")])
@pytest.mark.parametrize("target", VESPA)
def test_constants_of_a_vespa_profile_have_names_of_their_own(target, names, features, tmp_path):
    mapped = dict(zip(features, names.values(), strict=True))
    model = LinearModel(tuple(Term(name, j, 2.0**j) for j, name in enumerate(features)), 3, 8.0)
    export_model(model, target, tmp_path / "out", names=mapped)
    columns = {name: [10.0**j] for j, name in enumerate(mapped.values())}
    np.testing.assert_allclose(READERS[target](tmp_path / "out", columns), [429.0])


EXPRESSIONS = ["true", "false", "if", "in", "f(a+b)", "f(a*2)", 'f("a)', "f(a;b)", "f(`a`)", "f('a')"]


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_are_not_accepted_as_vespa_features(name, tmp_path):
    with refused_parameter("names", name):
        export_model(model_of(["f1"]), "vespa", tmp_path / "out", names={"f1": name})


@pytest.mark.parametrize("name", ['foreach(terms,N,term(N).weight,">1",count)', 'query("a + b")', "truth(x)"])
def test_quoted_and_nested_arguments_are_accepted(name, tmp_path):
    export_model(model_of(["f1"]), "vespa", tmp_path / "out", names={"f1": name})
    assert f"* {name}\n" in (tmp_path / "out" / "ranker.profile").read_text()


def test_advice_about_a_hostile_name_contains_no_command(tmp_path):
    model = LinearModel((Term("$(id); x", 0, -1.0),), 1)
    with refused_data() as info:
        export_model(model, "mongodb", tmp_path / "out")
    assert "the weight of $(id); x is -1" in info.value.reason
    assert info.value.reason.count("$(id)") == 1


def test_commands_that_load_an_export_quote_the_folder(tmp_path):
    folder = tmp_path / "a'b $(id)"
    for target in ("elasticsearch", "solr", "vespa", "mongodb", "qdrant"):
        names = {"f1": "attribute(f1)"} if target == "vespa" else {}
        load = export_model(model_of(["f1"]), target, folder, names=names).load
        arguments = [word for line in load for word in shlex.split(line)]
        assert any(str(folder) in word for word in arguments)
        assert "$(id)" not in arguments


def test_random_models_with_hostile_names(tmp_path):
    accepted = sum((try_model(number, 7, tmp_path) for number in range(15)), start=try_model(0, 8, tmp_path))
    assert set(EXPORTS) - {target for target, count in accepted.items() if count} == {"redis"}  # two features


def test_the_checks_of_the_campaign_find_faults(tmp_path):
    model, place = model_of(["f1", "f2"]), tmp_path / "m.py"
    result = export_model(model, "python", place)
    place.write_text(place.read_text() + "import os\n")
    with pytest.raises(Fault, match="other statements"):
        check_structure("python", result, model)
    for text in ("a\nb", "x" * 2000, "'utf-8' codec can't encode"):
        with pytest.raises(Fault, match="no sentence"):
            check_sentence(text)
    wrong = Dataset(DATA.X[:, [1, 0]], DATA.y, DATA.qid, ["f1", "f2"])

    class Swapped(LinearModel):
        def predict(self, data):
            return model.predict(wrong)

    swapped = Swapped(**{field.name: getattr(model, field.name) for field in fields(LinearModel)})
    with pytest.raises(Fault, match="instead of"):
        round_trip(swapped, "qdrant", tmp_path / "out", DATA.select_features(np.array([0, 1])), {})
