"""Every export target: an independent evaluator of the exported files computes the model's scores."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from ranksieve.choice.scorecard import make_scorecard
from ranksieve.data.dataset import Dataset
from ranksieve.export import EXPORTS, export_model
from ranksieve.io.folds import load_letor_folds
from ranksieve.model.linear import Curve, LinearModel, Term, load_model
from ranksieve.prepare import Preparation
from ranksieve.prepare.missing import learn_missing
from ranksieve.prepare.steps import learn_steps
from ranksieve.rankers import SparseRanker
from tests.engine_readers import READERS, python_process
from tests.refusals import refused_data, refused_parameter
from tests.tiers import full

LUCENE = ("elasticsearch", "opensearch", "solr")
SCRIPTS = ("elasticsearch_script", "opensearch_script")
BY_RANGE_SUMS = ("elasticsearch_linear", "esql", "mongodb")
SUMS = (*BY_RANGE_SUMS, "milvus")
BY_RANGE = (*BY_RANGE_SUMS, "opensearch_hybrid", "vespa_global_phase", "sql")
VESPA = ("vespa", "vespa_second_phase", "vespa_global_phase")
DOUBLE = (*VESPA, "qdrant", "lightgbm", "sql", "json", "python")
LINES = [target for target, entry in EXPORTS.items() if entry.lines and target != "redis"]  # two features
EVERY_MODEL = [target for target in LINES if target not in (*SUMS, "opensearch_hybrid")]
NAMES = ["bm25_title", "bm25_body", "price", "clicks_7d", "age", "published"]


def documents(seed=0, n=300):
    """Features like those of a shop: different scales, zeros, a date in seconds."""
    rng = np.random.default_rng(seed)
    scores = rng.gamma(2.0, 4.0, (n, 2)) * (rng.random((n, 2)) < 0.8)
    price, clicks = rng.lognormal(3, 1, n), rng.poisson(30, n)
    age, published = rng.random(n), 1.7e9 + rng.random(n) * 3e7
    X = np.column_stack([scores, price, clicks, age, published]).astype(np.float32)
    return Dataset(X, rng.integers(0, 3, n), rng.integers(0, 20, n), NAMES)


TRAIN, TEST = documents(0), documents(1)
WEIGHTS = {
    "positive": [0.37, 0.11, 0.002, 0.013, 0.5, 0.0],
    "negative": [0.37, -0.11, -0.002, 0.013, -0.5, 0.0],
    "with a date": [0.37, -0.11, 0.0, 0.0, 0.0, 3e-8],
    "one, negative": [0.0, 0.0, -0.004, 0.0, 0.0, 0.0],
}


def model_of(weights, kind=None, intercept=0.0, missing="keep"):
    w = np.array(weights)
    learned = Preparation.learn(TRAIN, kind or "none", missing)
    if learned.normalisation.learns:
        w = w * np.array(learned.normalisation.scale)
    terms = tuple(Term(NAMES[j], int(j), float(w[j])) for j in np.flatnonzero(w))
    names = [term.name for term in terms]
    return LinearModel(terms, 6, intercept, learned.of(names))


MODELS = {
    f"{label}, {kind or 'not normalised'}, intercept {intercept}": model_of(weights, kind, intercept)
    for label, weights in WEIGHTS.items()
    for kind in (None, "z", "min_max")
    for intercept in (0.0, -2.5)
}

POSITIVE_BY_RANGE = model_of(WEIGHTS["positive"], "query_min_max")
POSITIVE = {"milvus": model_of(WEIGHTS["positive"])}  # other targets: by range
MODELS["scorecard"] = make_scorecard(model_of(WEIGHTS["negative"], "within_z"), TRAIN)


def engine_name(target, name, column):
    """The engine's name for a feature, as a user would map it."""
    if target in VESPA:
        return f"attribute({name})"
    return str(column + 1) if target == "ranklib" else name


def exported(model, target, place, sample=None, **options):
    names = {name: engine_name(target, name, j) for j, name in enumerate(NAMES)}
    if target in VESPA:
        options["names"] = names
    if target in LUCENE and sample is not None:
        options["sample"] = sample
    return export_model(model, target, place / ("out" if EXPORTS[target].folder else "file.py"), **options)


def evaluated(result, target, data):
    place = result.files[0].parent if EXPORTS[target].folder else result.files[0]
    columns = {
        engine_name(target, name, j): data.X[:, j].tolist() for j, name in enumerate(data.feature_names)
    }
    return READERS[target](place, columns)


def reported_shift(result):
    """The constant between the engine's scores and ours, from the notes of the export."""
    shifts = re.findall(r"Scores are (\S+) higher|lack the constant (\S+),", " ".join(result.notes))
    return sum(float(higher or 0) - float(lack or 0) for higher, lack in shifts)


def unscaled(result, target, theirs):
    """The engine's scores before the transformation described in the notes; the shift remains."""
    if target in SCRIPTS:
        return np.where(theirs < 1, 1 - 1 / np.minimum(theirs, 1), theirs - 1)
    divided = re.search(r"the model's divided by (\S+)[,:] ", " ".join(result.notes))
    return theirs * float(divided[1]) if divided else theirs


def tolerance(model, data, shift, target):
    """k + 8 roundings of the largest intermediate sum, in float32 or float64."""
    w, x = np.abs(model.weights), np.abs(data.X[:, [term.index for term in model.terms]])
    centre, scale = (0.0, 1.0) if model.normalisation is None else (
        np.abs(model.normalisation.centre), np.array(model.normalisation.scale)
    )  # fmt: skip
    largest = ((x + centre) / scale) @ w + abs(model.intercept) + abs(shift) + (target in SCRIPTS)
    return (len(w) + 8) * (2**-52 if target in DOUBLE else 2**-24) * largest


def check_parity(model, target, result, data):
    ours, shift = model.predict(data), reported_shift(result)
    theirs = unscaled(result, target, evaluated(result, target, data).astype(np.float64))
    rounding = 1e-5 * abs(shift) if target in ("ranklib", *SUMS) else 0  # the note has six digits
    allowed = tolerance(model, data, shift, target) + rounding
    assert (np.abs(theirs - ours - shift) <= allowed).all()
    order = np.argsort(-ours, kind="stable")
    assert (np.diff(theirs[order]) <= 2 * allowed.max()).all()
    return theirs


def test_every_target_has_a_reader():
    assert set(READERS) == set(EXPORTS)


@pytest.mark.parametrize(
    ("target", "label"),
    [
        pytest.param(target, label, marks=() if (i + j) % 5 == 0 else full)
        for i, target in enumerate(t for t in EVERY_MODEL if t != "python")
        for j, label in enumerate(MODELS)
    ],
)
def test_scores_equal_the_models(target, label, tmp_path):
    result = exported(MODELS[label], target, tmp_path, sample=TEST)
    theirs = check_parity(MODELS[label], target, result, TEST)
    if target in LUCENE:
        assert theirs.min() >= 0


@pytest.mark.parametrize("label", [label for label in MODELS if "intercept" in label])
@pytest.mark.parametrize("target", SUMS)
def test_scores_equal_the_models_where_weights_must_not_be_negative(target, label, tmp_path):
    if label.startswith("positive"):
        check_parity(MODELS[label], target, exported(MODELS[label], target, tmp_path), TEST)
        return
    with refused_data() as info:
        exported(MODELS[label], target, tmp_path)
    assert "negative" in info.value.reason


def by_query(result, target, data):
    """Scores from one search per query."""
    scores = np.empty(data.n_docs)
    for query in np.unique(data.qid):
        rows = data.qid == query
        scores[rows] = unscaled(result, target, evaluated(result, target, data.select_rows(rows)))
    return scores


@pytest.mark.parametrize("target", BY_RANGE)
def test_ranges_within_a_query_are_computed_from_the_result_list(target, tmp_path):
    weights = [0.37, 0.11, 0.6, 0.013, 0.5, 0.0]
    if target == "vespa_global_phase":
        weights[1] = -0.11
    model = model_of(weights, "query_min_max", 0.25)
    theirs, ours = by_query(exported(model, target, tmp_path), target, TEST), model.predict(TEST)
    # OpenSearch replaces a scaled score of 0 by 0.001
    floor = 0.0011 * sum(weights) if target == "opensearch_hybrid" else 0
    for query in np.unique(TEST.qid):
        rows = TEST.qid == query
        difference = (theirs - ours)[rows]
        np.testing.assert_allclose(difference, difference.mean(), atol=2e-6 + floor)


@pytest.mark.parametrize("target", [target for target in BY_RANGE if target != "vespa_global_phase"])
def test_documents_missing_from_a_sub_query_get_its_lowest_score(target, tmp_path):
    holes = TEST.X.copy()
    holes[np.random.default_rng(0).random(holes.shape) < 0.2] = np.nan
    data = TEST.replace_features(holes)
    model = model_of([0.37, 0.0, 0.6, 0.0, 0.5, 0.0], "query_min_max", missing="query_min")
    theirs, ours = by_query(exported(model, target, tmp_path), target, data), model.predict(data)
    floor = 0.0011 * 1.47 if target == "opensearch_hybrid" else 0
    np.testing.assert_allclose(theirs, ours, atol=2e-6 + floor)


@pytest.mark.parametrize("kind", [None, "z", "within_z", "min_max"])
def test_the_python_module_is_bit_identical_in_an_isolated_interpreter(kind, tmp_path):
    model = model_of(WEIGHTS["negative"], kind, -2.5)
    result = exported(model, "python", tmp_path)
    columns = {name: TEST.X[:, j].tolist() for j, name in enumerate(NAMES)}
    done = python_process(result.files[0], columns)
    np.testing.assert_array_equal(done["scores"], model.predict(TEST))
    np.testing.assert_array_equal(done["ranked"], np.argsort(-model.predict(TEST), kind="stable"))
    assert not {"numpy", "site", "ranksieve"} & set(done["modules"])


@pytest.mark.parametrize("target", [target for target in EVERY_MODEL if target != "json"])
def test_scores_of_random_models(target, tmp_path):
    rng = np.random.default_rng(3)
    for trial in range(1 if target == "python" else 12):
        weights = rng.normal(size=6) * (rng.random(6) < 0.7) / TRAIN.X.std(axis=0)
        weights[0] += 0.1
        kind = (None, "z", "within_z", "min_max")[trial % 4]
        model = model_of(weights, kind, float(rng.normal()))
        (tmp_path / str(trial)).mkdir()
        check_parity(model, target, exported(model, target, tmp_path / str(trial), sample=TEST), TEST)


@pytest.mark.parametrize("target", LINES)
def test_exports_are_reproducible_byte_for_byte(target, tmp_path):
    def contents(place):
        place.mkdir()
        positive = POSITIVE.get(target, POSITIVE_BY_RANGE)
        model = MODELS["negative, z, intercept -2.5"] if target in EVERY_MODEL else positive
        files = exported(model, target, place, sample=TEST).files
        return {file.name: file.read_bytes() for file in files}

    assert contents(tmp_path / "a") == contents(tmp_path / "b")


@pytest.mark.parametrize("target", LINES)
def test_numpy_numbers_are_written_as_plain_numbers(target, tmp_path):
    def contents(place, text, whole, weight, number):
        terms = [Term(text(name), whole(j), weight(0.375 * (j + 1))) for j, name in enumerate(NAMES[:5])]
        about = {"parameters": {"radius": number(0.1)}, "certificate": {"gap": number(0.25)}}
        if target not in (*EVERY_MODEL, *POSITIVE):
            about["preparation"] = POSITIVE_BY_RANGE.preparation
        model = LinearModel(tuple(terms), whole(6), number(-0.1), metrics={"map": weight(0.5)}, **about)
        names = {name: text(engine_name(target, name, j)) for j, name in enumerate(NAMES)}
        options = {"names": names} if "names" in EXPORTS[target].takes else {}
        options |= {"sample": TEST} if target in LUCENE else {}
        place.mkdir()
        files = export_model(
            model, target, place / ("out" if EXPORTS[target].folder else "file"), **options
        ).files
        return {file.name: file.read_bytes() for file in files}

    expected = contents(tmp_path / "plain", str, int, float, float)
    assert contents(tmp_path / "numpy", np.str_, np.int64, np.float32, np.float64) == expected


@pytest.mark.parametrize("target", ["onnx", "python", "qdrant", "sql", *SCRIPTS])
@pytest.mark.parametrize("policy", ["zero", "column_mean"])
def test_missing_values_are_filled_if_the_format_supports_it(target, policy, tmp_path):
    holes = TEST.X.copy()
    holes[np.random.default_rng(0).random(holes.shape) < 0.3] = np.nan
    data = TEST.replace_features(holes)
    model = model_of(WEIGHTS["negative"], "z", 1.0, policy)
    result = exported(model, target, tmp_path)
    theirs = unscaled(result, target, evaluated(result, target, data).astype(np.float64))
    filled = data.replace_features(learn_missing(TRAIN, policy).apply(data).X)
    np.testing.assert_allclose(theirs, model.predict(data), atol=tolerance(model, filled, 0, target).max())


def test_float64_graphs_have_full_precision(tmp_path):
    model = MODELS["with a date, not normalised, intercept -2.5"]
    theirs = evaluated(exported(model, "onnx", tmp_path, dtype="float64"), "onnx", TEST)
    assert theirs.dtype == np.float64
    np.testing.assert_allclose(theirs, model.predict(TEST), rtol=1e-13)


REFUSED = {
    "per-query normalisation": (model_of(WEIGHTS["positive"], "query_z"), ("query_z",)),
    "per-query filling": (
        model_of(WEIGHTS["positive"], missing="query_min"),
        ("query_min", "normalisation is none"),
    ),
    "no features": (LinearModel((), 6, 1.0), ("no feature",)),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("target", [target for target in LINES if target != "json"])
def test_unsupported_models_are_refused_and_nothing_is_written(target, case, tmp_path):
    model, words = REFUSED[case]
    if target == "sql" and model.per_query:  # see test_export_sql
        return
    with refused_data() as info:
        exported(model, target, tmp_path)
    assert any(word in info.value.reason for word in words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", [target for target in LINES if target not in (*BY_RANGE, "json")])
def test_ranges_within_a_query_need_an_engine_that_sees_the_result_list(target, tmp_path):
    with refused_data() as info:
        exported(POSITIVE_BY_RANGE, target, tmp_path)
    assert "query_min_max" in info.value.reason


def test_the_json_format_supports_every_model(tmp_path):
    for number, (model, _) in enumerate(REFUSED.values()):
        (file,) = export_model(model, "json", tmp_path / f"{number}.json").files
        assert load_model(file) == model


# --- curves ----------------------------------------------------------------------------------------------


def single(values):
    return np.asarray(values, dtype=np.float32).astype(np.float64)


def curved(seed=0, missing=False):
    """Curves of the shop's features: 1, 2, 3, 63, 32 steps, and one that depends only on being missing."""
    rng = np.random.default_rng(seed)
    terms = []
    for j, n_steps in enumerate((1, 2, 3, 63, 32, 0)):
        values = np.unique(np.quantile(TRAIN.X[:, j], np.linspace(0.01, 0.99, n_steps)))
        thresholds = np.unique(single(values)) if n_steps else np.empty(0)
        levels = np.concatenate([[0.0], rng.normal(size=len(thresholds))])
        curve = Curve(tuple(thresholds), tuple(levels), float(rng.normal()) if missing else 0.0)
        terms.append(Term(NAMES[j], j, 1.0 if j % 2 else -0.5, curve))
    return LinearModel(tuple(terms), 6, 0.25)


def edge_rows(model, holes, target="", n=1000):
    """Training values, thresholds, their neighbours in float32, values beyond training, missing values.

    Values very near 0 are moved away from it, because LightGBM reads them as 0, and Solr moves a threshold of
    0 to -1e-13.
    """
    least = {"solr": 2e-13, "lightgbm": 1e-34}.get(target, 0.0)
    rng = np.random.default_rng(1)
    columns = []
    for j, term in enumerate(model.terms):
        t = np.float32(term.curve.thresholds)
        beyond = [0.0, -0.0, -1e30, 1e30, -1e-40, 1e-40, *([np.nan] if holes else [])]
        neighbours = [np.nextafter(t, np.float32(end)) for end in (np.inf, -np.inf)]
        values = np.concatenate([TRAIN.X[:, j], *3 * [t, *neighbours, beyond]])
        near = (np.abs(values) < least) & (values != 0)
        values = np.where(near, np.copysign(least, values), values)
        columns.append(rng.choice(single(values), n))
    return Dataset(np.column_stack(columns), np.zeros(n), np.zeros(n, dtype=int), NAMES)


CURVED = [target for target, entry in EXPORTS.items() if entry.curves]
READS_ZERO = ("solr", "ranklib")  # instead of a missing value
MIXED = ("json", "python", "sql")  # lines and curves in one model


@pytest.mark.filterwarnings("ignore:the model learned levels")
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("target", CURVED)
def test_curves_have_the_models_scores(target, holes, tmp_path):
    model = curved(missing=holes)
    data = edge_rows(model, holes, target)
    result = exported(model, target, tmp_path)
    theirs = unscaled(result, target, evaluated(result, target, data).astype(np.float64))
    X = np.where(np.isnan(data.X), 0.0, data.X) if target in READS_ZERO else data.X
    ours = model.predict(X) + reported_shift(result)
    largest = sum(abs(term.weight) * max(map(abs, term.curve.levels)) for term in model.terms)
    allowed = 16 * (2**-52 if target in DOUBLE else 2**-24) * (largest + abs(reported_shift(result)) + 1)
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=allowed)
    if target in LUCENE:
        assert theirs.min() >= 0


@pytest.mark.parametrize("target", [target for target in EXPORTS if target not in CURVED])
def test_other_targets_refuse_curves_in_one_sentence(target, tmp_path):
    with refused_data() as info:
        exported(curved(), target, tmp_path)
    assert info.value.reason == f"export to {target} supports linear models only; fit with `shape='linear'`"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", CURVED)
def test_training_values_are_on_the_side_that_they_had_in_training(target, tmp_path):
    """Float64 values, some of them neighbours in float32, and thresholds that are not float32 numbers."""
    rng = np.random.default_rng(5)
    near = np.float32(1.7e9) + 128 * np.arange(40, dtype=np.float32)  # neighbours in float32
    X = np.column_stack(
        [rng.gamma(2.0, 4.0, 300), rng.choice(near.astype(float) + rng.uniform(-60, 60, 40), 300)]
    )
    data = Dataset(X, rng.integers(0, 2, 300), np.repeat(np.arange(30), 10), NAMES[:2])
    steps = learn_steps(data)
    model = LinearModel.of_curves(steps, rng.normal(size=len(steps.names)))
    result = exported(model, target, tmp_path)
    theirs = unscaled(result, target, evaluated(result, target, data).astype(np.float64))
    np.testing.assert_allclose(theirs, model.predict(data) + reported_shift(result), rtol=0, atol=1e-4)


@pytest.mark.parametrize("target", [target for target in EXPORTS if not EXPORTS[target].lines])
def test_other_targets_refuse_lines_in_one_sentence(target, tmp_path):
    with refused_data() as info:
        exported(model_of(WEIGHTS["positive"]), target, tmp_path)
    assert info.value.reason == f"export to {target} supports curves only; fit with `shape='curves'`"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", [target for target in CURVED if target not in MIXED])
def test_lines_beside_curves_are_refused(target, tmp_path):
    mixed = replace(curved(), terms=(*curved().terms[:2], Term("price", 2, 0.5)))
    filled = replace(curved(), preparation=model_of([1.0] * 6, missing="zero").preparation)
    for model, words in ((mixed, "the line of price"), (filled, "filled missing values")):
        with refused_data() as info:
            exported(model, target, tmp_path)
        assert words in info.value.reason
    assert list(tmp_path.iterdir()) == []


FILLING = ("json", "onnx", "python", "qdrant", "sql", "sql_hybrid", *SCRIPTS)


@pytest.mark.parametrize("target", [target for target in LINES if target not in FILLING])
def test_a_warning_about_engines_that_replace_missing_values_by_zero(target, tmp_path):
    kind = "query_min_max" if target == "opensearch_hybrid" else None
    model = model_of(WEIGHTS["positive"], kind, missing="column_mean")
    cure = "missing='(zero|query_min)'" if target in (*SUMS, "opensearch_hybrid") else "give each "
    with pytest.warns(UserWarning, match=rf"learned, but .* 0; .*{cure}"):
        exported(model, target, tmp_path, sample=TEST)


@pytest.mark.parametrize("target", LINES)
def test_names_are_mapped_and_checked(target, tmp_path):
    if "names" not in EXPORTS[target].takes:
        with refused_parameter("names", {}):
            export_model(MODELS["positive, z, intercept 0.0"], target, tmp_path / "x", names={})
        return
    plain = target in (*EVERY_MODEL, *POSITIVE)
    model = model_of(WEIGHTS["positive"]) if plain else POSITIVE_BY_RANGE
    twice = dict.fromkeys(NAMES, engine_name(target, "same", 0))
    with refused_parameter("names", engine_name(target, "same", 0)):
        export_model(model, target, tmp_path / "x", names=twice)
    with refused_parameter("names", " \n"):
        export_model(model, target, tmp_path / "x", names=dict.fromkeys(NAMES, " \n"))
    with refused_parameter("names", 7):
        export_model(model, target, tmp_path / "x", names={**dict.fromkeys(NAMES, "1"), "bm25_title": 7})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", LINES)
def test_bad_model_names_are_refused(target, tmp_path):
    for name in ("", "../up", "a b", "-x"):
        with refused_parameter("name", name):
            exported(model_of(WEIGHTS["positive"]), target, tmp_path, name=name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.letor
@pytest.mark.parametrize("kind", ["none", "z", "min_max"])
def test_scores_of_an_mq2008_model_on_all_rows(kind, letor_root, tmp_path):
    fold = load_letor_folds("MQ2008", root=letor_root)[0]
    model = SparseRanker(normalise=kind).fit(fold.train, valid=fold.valid).to_model()
    assert len(model.terms) > 3
    for target in EVERY_MODEL:
        (tmp_path / target).mkdir()
        names = {name: f"attribute({name})" for name in fold.train.feature_names}
        options = {"names": names} if target in VESPA else {}
        options |= {"sample": fold.train} if target in LUCENE else {}
        place = tmp_path / target / ("out" if EXPORTS[target].folder else "file.py")
        result = export_model(model, target, place, **options)
        for part in (fold.train, fold.valid, fold.test):
            check_parity(model, target, result, part)
