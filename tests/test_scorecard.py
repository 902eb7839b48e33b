"""Scorecards: optimal points, certificates, accuracy compared with the model, texts."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import ranksieve as rs
from ranksieve.choice.forward import ForwardSearch
from ranksieve.model.linear import Card, LinearModel, Term, exact_weight, load_model
from ranksieve.model.score_functions import ForeignModel
from ranksieve.objective import make_objective
from ranksieve.prepare import MissingPolicy, Normalisation, Preparation
from ranksieve.report.card_page import card_page
from ranksieve.show.formats import signed
from ranksieve.show.sentences import optimality
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs, sqrt_weights
from tests.refusals import refused_as, refused_data
from tests.test_report import text_of

DATA = rs.make_ranking(n_queries=30, n_features=6, n_informative=5, docs_per_query=12, random_state=7)
CONSTANT = DATA.replace_features(np.ones((DATA.n_docs, 6)))
MODEL = rs.SparseRanker(max_features=5, families="forward", cv=2, profile="standard").fit(DATA).to_model()
CARD = rs.make_scorecard(MODEL, DATA)


def plain_model(n, **more):
    """A model with the features f1, …, fn."""
    return LinearModel(tuple(Term(f"f{j + 1}", j, 1.0) for j in range(n)), n, **more)


def differences(data, columns=slice(None)):
    pairs = explicit_pairs(data.y, data.qid)
    return data.X[pairs[:, 0]][:, columns] - data.X[pairs[:, 1]][:, columns]


def sqrt_shares(data):
    """ω_ij/Σω of each pair, with ω_ij = 1/√P in a query of P pairs."""
    weight = sqrt_weights(explicit_pairs(data.y, data.qid), data.qid)
    return weight / weight.sum()


def best_multiple(K, d, ridge, share=None):
    """min_σ Σ share·max(0, 1 − σKd)² + ½μ‖σd‖², a parabola between adjacent kinks; default: the mean."""
    share = np.full(len(K), 1.0 / len(K)) if share is None else share
    along, square, values = K @ d, ridge * float(d @ d), [1.0]
    kinks = [0.0, *np.unique(1.0 / along[along > 0]), np.inf]
    for low, high in itertools.pairwise(kinks) if square else ():
        active = np.where((along <= 0) | (along * low < 1.0 - 1e-12), along, 0.0)
        curvature = 2 * share @ active**2 + square
        sigma = np.clip(2 * share @ active / curvature, low, high)
        values.append(share @ np.maximum(0.0, 1.0 - sigma * along) ** 2 + 0.5 * square * sigma**2)
    return min(values)


# --- The search ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "levels", "seeds"), [(2, 3, range(12)), (3, 2, range(6))])
def test_points_are_optimal(n, levels, seeds):
    """Against all cards with the same units."""
    for seed in seeds:
        data = random_dataset(seed, n_queries=6, n_features=n, longest=10)
        units = 10 ** np.random.default_rng(seed).uniform(-0.5, 0.5, n)
        names = [f"f{j + 1}" for j in range(n)]
        card = rs.make_scorecard(plain_model(n), data, levels, units=dict(zip(names, units, strict=True)))
        K, ridge = differences(data), card.certificate["ridge"]
        everything = itertools.product(range(-levels, levels + 1), repeat=n)
        least = min(best_multiple(K, np.array(points) / units, ridge) for points in everything)
        assert card.certificate["objective"] == pytest.approx(least, rel=1e-8)


def test_no_single_change_of_points_or_unit_is_better():
    """Every change of the points or unit of one feature, evaluated on explicit pairs."""
    columns = [term.index for term in CARD.terms]
    K, ridge, card = differences(DATA, columns), CARD.certificate["ridge"], CARD.card
    share = sqrt_shares(DATA)
    steps = [float(f"{digit}e{power}") for power in range(-4, 5) for digit in (1, 2, 5)]
    for j, name in enumerate(CARD.names):
        place, points = steps.index(card.units[name]), card.points[name]
        others = [(points + step, card.units[name]) for step in (-1, 1) if abs(points + step) <= 9]
        near = [
            unit
            for unit in (steps[place - 1], steps[place + 1])
            if abs(steps.index(unit) - steps.index(natural_unit(columns[j]))) <= 1
        ]
        for p, unit in [*others, *((points, unit) for unit in near)]:
            d = CARD.weights
            d[j] = p / unit
            assert best_multiple(K, d, ridge, share) > CARD.certificate["objective"] * (1 - 1e-6)


def natural_unit(column):
    """The round number nearest to the standard deviation within queries."""
    x, query = DATA.X[:, column], DATA.queries.restore(DATA.queries.query_of_grouped)
    means = np.bincount(query, x) / np.bincount(query)
    spread = np.sqrt(np.mean((x - means[query]) ** 2))
    numbers = [float(f"{digit}e{power}") for power in range(-4, 5) for digit in (1, 2, 5)]
    return min(numbers, key=lambda number: abs(np.log(number / spread)))


def test_units_are_round_numbers_near_the_deviation():
    for term in CARD.terms:
        unit = CARD.card.units[term.name]
        digit, _, power = f"{unit:e}".partition("e")
        assert float(digit) in (1, 2, 5)
        assert unit == float(f"{digit}e{power}")
        assert 0.35 < unit / natural_unit(term.index) < 2.6


def test_points_are_coprime_integers_within_the_levels():
    for levels in (1, 3, 9, 99):
        points = list(rs.make_scorecard(MODEL, DATA, levels).card.points.values())
        assert all(isinstance(p, int) and 1 <= abs(p) <= levels for p in points)
        assert np.gcd.reduce(points) == 1


def test_one_feature_has_one_point():
    card = rs.make_scorecard(plain_model(1), DATA.select_features([0]))
    assert list(card.card.points.values()) in ([1], [-1])
    assert card.certificate["relative_gap"] < 1e-8


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_cards_of_separable_data_of_any_scale(scale):
    data = random_dataset(5, n_queries=8, n_features=3)
    data = rs.Dataset(data.X * scale, (data.X[:, 1] > 0).astype(float), data.qid)
    card = rs.make_scorecard(plain_model(3), data)
    assert card.certificate["gap"] >= 0
    assert card.card.points["f2"] > 0
    assert np.mean(differences(data) @ card.coef > 0) > 0.99


def test_more_levels_have_smaller_gaps():
    gaps = [rs.make_scorecard(MODEL, DATA, levels).certificate["relative_gap"] for levels in (1, 3, 9, 99)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-2] < 0.002
    assert gaps[-1] < 1e-5


def test_cards_are_reproducible():
    assert rs.make_scorecard(MODEL, DATA) == CARD
    order = np.random.default_rng(0).permutation(DATA.n_docs)
    shuffled = rs.make_scorecard(MODEL, DATA.select_rows(order))
    assert shuffled.card == CARD.card
    sparse = rs.Dataset(sp.csr_array(DATA.X), DATA.y, DATA.qid)
    assert rs.make_scorecard(MODEL, sparse).card == CARD.card


def test_scaling_a_feature_only_changes_its_unit():
    scaled = rs.SparseRanker(max_features=4, normalise="within_z", cv=2, profile="standard")
    expected = rs.make_scorecard(scaled.fit(DATA).to_model(), DATA).card
    j = DATA.feature_names.index(next(iter(expected.points)))
    tenfold = DATA.replace_features(np.where(np.arange(6) == j, 10.0, 1.0) * DATA.X)
    card = rs.make_scorecard(scaled.fit(tenfold).to_model(), tenfold).card
    assert card.points == expected.points
    changed = {name: unit / expected.units[name] for name, unit in card.units.items()}
    assert changed == pytest.approx({name: 10.0 if name == f"f{j + 1}" else 1.0 for name in changed})


def test_useless_features_are_dropped():
    X = np.column_stack([DATA.X, np.random.default_rng(0).normal(size=DATA.n_docs) * 1e-6 + DATA.X[:, 0]])
    data = rs.Dataset(np.column_stack([X, DATA.queries.query_of_grouped]), DATA.y, DATA.qid)
    card = rs.make_scorecard(plain_model(8), data)
    assert "f8" not in card.names  # constant within queries
    assert set(card.names) <= {f"f{j}" for j in range(1, 8)}
    np.testing.assert_array_equal([term.weight for term in card.terms], card.weights)
    assert card.n_features == 8


# --- The certificate -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["none", "within_z", "query_z"])
def test_the_certificate_holds_over_explicit_pairs(kind):
    """The objective of the card at its σ and the dual of the real-valued problem, from explicit pairs."""
    ranker = rs.SparseRanker(max_features=3, normalise=kind, families="forward", cv=2, profile="standard")
    model = ranker.fit(DATA).to_model()
    card = rs.make_scorecard(model, DATA)
    proof, pairs, share = card.certificate, explicit_pairs(DATA.y, DATA.qid), sqrt_shares(DATA)
    Z = model.inputs(DATA)
    assert model.names == card.names
    assert proof["ridge"] == model.certificate["ridge"]
    K = Z[pairs[:, 0]] - Z[pairs[:, 1]]
    scales = np.array([card.parameters["ridge_scales"][name] for name in card.names])
    w = proof["scale"] * scales * card.weights
    value = share @ np.maximum(0.0, 1.0 - K @ w) ** 2 + 0.5 * proof["ridge"] * (w @ w)
    assert value == pytest.approx(proof["objective"], rel=1e-12)
    assert best_multiple(K, w, proof["ridge"], share) == pytest.approx(value, rel=1e-9)
    # The minimum of the real-valued problem is above every dual value, here at the model's weights.
    xi = np.maximum(0.0, 1.0 - K @ model.weights)
    g = -2.0 * K.T @ (share * xi)
    dual = 2.0 * share @ xi - share @ xi**2 - (g @ g) / (2.0 * proof["ridge"])
    assert value - dual == pytest.approx(proof["gap"], abs=1e-7)
    assert proof["relative_gap"] == proof["gap"] / proof["objective"]


def test_the_default_ridge_is_that_of_forward_selection():
    card = rs.make_scorecard(plain_model(6), DATA)
    objective = make_objective(DATA)
    assert card.certificate["ridge"] == ForwardSearch(objective, objective.varies).ridge
    assert rs.make_scorecard(replace(MODEL, certificate={}), DATA).certificate["ridge"] > 0


def test_query_weights_equal_copies():
    twice = rs.Dataset(
        np.vstack([DATA.X] * 2), np.tile(DATA.y, 2), np.concatenate([DATA.qid, DATA.qid + 1000])
    )
    weighted = rs.make_scorecard(MODEL, DATA, query_weight=np.full(DATA.n_queries, 2.0))
    assert weighted.card == rs.make_scorecard(MODEL, twice).card
    assert set(weighted.data) == {"train", "query_weight"}


def test_the_card_keeps_signs_of_the_model():
    free = rs.make_scorecard(plain_model(6), DATA).card.points
    against = {name: -float(np.sign(points)) for name, points in list(free.items())[:2]}
    bound = rs.make_scorecard(plain_model(6, parameters={"signs": against}), DATA)
    assert not set(bound.names) & set(against)
    assert bound.parameters["signs"] == against
    some = {"f1": "+", "f2": "-"}
    points = rs.make_scorecard(plain_model(6, parameters={"signs": some}), DATA).card.points
    assert points.get("f1", 1) > 0 > points.get("f2", -1)


def test_signs_of_a_ranker_apply_to_its_card():
    signs = dict.fromkeys(DATA.feature_names, "+")
    ranker = rs.SparseRanker(max_features=5, signs=signs, cv=2, profile="standard").fit(DATA)
    card = rs.make_scorecard(ranker.to_model(), DATA)
    assert min(card.card.points.values()) > 0
    assert card.certificate["relative_gap"] < 0.01


# --- Properties of the model that a card keeps -----------------------------------------------------------


def test_weights_of_a_card_are_points_per_unit():
    assert CARD.method == "Scorecard"
    assert CARD.normalisation is None
    assert CARD.intercept == 0.0
    assert CARD.metrics == {}
    assert CARD.data == MODEL.data
    assert CARD.chosen_by == MODEL.chosen_by
    for term in CARD.terms:
        points, unit = CARD.card.points[term.name], CARD.card.units[term.name]
        assert term.weight == float(exact_weight(points, unit)) == pytest.approx(points / unit, rel=1e-15)
    x = DATA.X[:, [term.index for term in CARD.terms]]
    by_hand = [
        sum(
            p * v / u
            for p, v, u in zip(CARD.card.points.values(), row, CARD.card.units.values(), strict=True)
        )
        for row in x
    ]
    np.testing.assert_allclose(CARD.predict(DATA), by_hand, rtol=1e-13)


@given(st.integers(1, 99), st.sampled_from([1, 2, 5]), st.integers(-99, 99))
def test_weights_are_correctly_rounded_quotients(points, digit, power):
    """The float nearest to the decimal quotient, even if float division points/unit gives another one."""
    unit = float(f"{digit}e{power}")
    exact = points * 10 // digit  # 1/digit has one decimal
    assert Card(99, {"a": points}, {"a": unit}).weight("a") == float(f"{exact}e{-power - 1}")


def missing_data(rows=0.3):
    X = DATA.X * [1.0, 1e3, 1.0, 1.0, 1e-3, 1.0] + [0.0, 5e3, 0.0, 0.0, 0.0, 0.0]
    X[np.random.default_rng(1).random(X.shape) < rows] = np.nan
    return DATA.replace_features(X)


@pytest.mark.parametrize("policy", ["zero", "query_min", "column_mean", "indicator"])
def test_missing_values_are_filled_as_in_the_model(policy):
    data = missing_data()
    ranker = rs.SparseRanker(max_features=5, missing=policy, normalise="within_z", cv=2, profile="standard")
    model = ranker.fit(data).to_model()
    card = rs.make_scorecard(model, data)
    assert card.preparation.missing == model.preparation.missing.of(card.names)
    assert np.isfinite(card.predict(data)).all()
    assert "if missing" in rs.card_text(card) or "Missing values are replaced by" in rs.card_text(card)


def with_indicator():
    """Labels depend on f2 and on whether f1 is missing."""
    rng = np.random.default_rng(3)
    X, hole = rng.normal(size=(200, 2)), rng.random(200) < 0.4
    y = np.digitize(X[:, 1] + 1.5 * hole + 0.3 * rng.normal(size=200), [0.0, 1.0])
    X[hole, 0] = np.nan
    return rs.Dataset(X, y, np.repeat(np.arange(20), 10))


def test_indicators_have_unit_one():
    data = with_indicator()
    model = rs.SparseRanker(missing="indicator", normalise="z", cv=2, profile="standard").fit(data).to_model()
    card = rs.make_scorecard(model, data)
    assert card.card.units["f1 is missing"] == 1.0
    assert card.card.points["f1 is missing"] > 0
    assert '"f1 is missing" is 1 if f1 is missing, else 0.' in rs.card_text(card, data)


def test_flags_have_unit_one():
    data = DATA.replace_features((DATA.X > 0.5).astype(float))
    card = rs.make_scorecard(plain_model(6), data)
    assert set(card.card.units.values()) == {1.0}


@pytest.mark.parametrize("kind", ["query_z", "query_min_max"])
def test_normalisation_within_queries_is_kept(kind):
    model = plain_model(6, preparation=Preparation(normalisation=Normalisation(kind)))
    card = rs.make_scorecard(model, DATA)
    assert card.normalisation == Normalisation(kind)
    assert f"divided by their {'range' if kind == 'query_min_max' else 'standard deviation'} ({kind})." in (
        rs.card_text(card)
    )
    np.testing.assert_allclose(
        card.predict(DATA), model.inputs(DATA)[:, :] @ card.coef, rtol=1e-12, atol=1e-12
    )


# --- The file --------------------------------------------------------------------------------------------


def test_round_trip_is_exact(tmp_path):
    CARD.save(tmp_path / "card.json")
    card = load_model(tmp_path / "card.json")
    assert card == CARD
    assert card.card.points == CARD.card.points
    assert all(type(points) is int for points in card.card.points.values())


def test_other_models_have_no_card(tmp_path):
    content = MODEL.to_dict()
    assert "card" not in content
    MODEL.save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").card is None


def first(content):
    return content["terms"][0]["name"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda c: c["terms"][0].update(weight=1.25), "1.25"),
        (lambda c: c["card"]["points"].popitem(), "units="),
        (lambda c: (c["card"]["points"].popitem(), c["card"]["units"].popitem()), "different features"),
        (lambda c: c["card"]["points"].update({first(c): 0}), "points=0"),
        (lambda c: c["card"]["points"].update({first(c): 1.5}), "card.points[...]: expected 'int'"),
        (lambda c: c["card"]["points"].update({first(c): 10}), "points=10"),
        (lambda c: c["card"]["units"].update({first(c): -1.0}), "units=-1.0"),
        (lambda c: c["card"]["units"].update({first(c): "1"}), "card.units[...]: expected 'float'"),
        (lambda c: c["card"].update(levels=100), "levels=100"),
        (lambda c: c["card"].update(extra=1), "card: the entry 'extra' is unknown"),
        (lambda c: c.update(card=[1]), "card: expected 'object | null'"),
        (lambda c: c.update(intercept=1.0), "intercept"),
        (lambda c: c["certificate"].update(kind=3), "kind"),
        (lambda c: c["certificate"].update(gap="small"), "expected 'float'"),
    ],
)
def test_damaged_cards_are_refused(change, word, tmp_path):
    content = json.loads(json.dumps(CARD.to_dict()))
    change(content)
    (tmp_path / "card.json").write_text(json.dumps(content))
    with refused_data(tmp_path / "card.json") as info:
        load_model(tmp_path / "card.json")
    assert word in info.value.reason


# --- Texts -----------------------------------------------------------------------------------------------

SHOP = rs.Dataset(
    [[0.9, 150.0], [0.2, 100.0], [0.5, 300.0]], [2, 0, 1], ["shoes"] * 3, ["bm25", "price"], ["A", "B", "C"]
)
SHOP_CARD = LinearModel(
    (Term("bm25", 0, 15.0), Term("price", 1, -0.08)), 2,
    card=Card(9, {"bm25": 3, "price": -4}, {"bm25": 0.2, "price": 50.0}),
)  # fmt: skip


def test_text_of_a_card():
    assert rs.card_text(SHOP_CARD, SHOP) == (
        "Scorecard: 2 features, points from −9 to 9\n"
        "\n"
        "  feature   points   per\n"
        "  price         −4    50\n"
        "  bm25          +3   0.2\n"
        "\n"
        'Score: divide each value by its "per", multiply by the points and add up. The highest score ranks '
        "first.\n"
        "\n"
        "Example: document A of query shoes:\n"
        "  price    −4 × 150 ÷ 50   −12.0000\n"
        "  bm25    +3 × 0.9 ÷ 0.2   +13.5000\n"
        "  score                     +1.5000\n"
    )


def test_fills_are_shown_on_the_card():
    means = Preparation(MissingPolicy("column_mean", ("bm25", "price"), (0.25, 180.5)))
    text = rs.card_text(replace(SHOP_CARD, preparation=means))
    assert "  feature   points   per   if missing\n  price         −4    50        180.5\n" in text
    zero = rs.card_text(replace(SHOP_CARD, preparation=Preparation(MissingPolicy("zero"))))
    assert "\nMissing values are replaced by 0.\n" in zero


def test_text_of_the_certificate():
    proof = {"kind": "scorecard", "objective": 0.9012, "gap": 0.0019, "relative_gap": 0.002, "ridge": 0.1}
    assert optimality(proof, {}) == (
        "Proven: the training objective, 0.9012, is at most 0.21 % above that of the best real-valued "
        "weights for these features."
    )
    nothing = optimality({**proof, "gap": 0.95}, {})
    assert "at most 0.95 above that of the best" in nothing
    assert optimality({**proof, "kind": "other"}, {}).startswith(
        "Proven: for these features, no other weights"
    )


def test_the_page_of_a_card_shows_it():
    evaluation = rs.evaluate(CARD.predict(DATA), DATA, ["ndcg@10"], "standard")
    page = text_of(card_page(CARD, {"training data": evaluation}, title="Our card"))
    for name, points in CARD.card.points.items():
        assert f" {name} per {CARD.card.units[name]:g} {signed(points, 0)} " in page
    assert "above that of the best real-valued weights for these features." in page
    assert f"{evaluation.mean['ndcg@10']:.4f}" in page


# --- Refusals --------------------------------------------------------------------------------------------

make = rs.make_scorecard


@pytest.mark.parametrize(
    ("wrong", "facts"),
    [
        (lambda: make(LinearModel((), 6), DATA), ("model",)),
        (lambda: make(ForeignModel(None, "LambdaMART", 6), DATA), "LambdaMART"),
        (lambda: make(CARD, DATA), ("model", CARD)),
        (lambda: make(MODEL, DATA.X), ("data", DATA.X)),
        (lambda: make(MODEL, DATA.select_features([0])), "lack 4"),
        (lambda: make(MODEL, rs.Dataset(DATA.X, np.zeros(DATA.n_docs), DATA.qid)), "no pair"),
        (lambda: make(MODEL, CONSTANT), "lower the training objective"),
        (lambda: make(plain_model(6), CONSTANT), "lower the training objective"),
        (lambda: make(plain_model(6), missing_data()), "is missing"),
        *((lambda n=n: make(MODEL, DATA, n), ("levels", n)) for n in (0, -1, 100, 2.5, "9", True, None)),
        (lambda: make(MODEL, DATA, units={"f99": 1.0}), ("units", {"f99": 1.0})),
        *(
            (lambda u=u: make(MODEL, DATA, units={MODEL.names[0]: u}), ("units", u))
            for u in (0, -1.0, np.nan, np.inf, "1", True)
        ),
        (lambda: make(MODEL, DATA, query_weight=[1.0]), ("query_weight",)),
        (lambda: make(plain_model(6, parameters={"signs": {"f1": "up"}}), DATA), ("signs", "f1")),
        (lambda: rs.card_text(MODEL), ("model", MODEL)),
    ],
)  # fmt: skip
def test_unsuitable_models_data_and_options_are_refused(wrong, facts):
    with refused_as(facts):
        wrong()


def test_a_ranker_that_is_not_fitted_has_no_card():
    with pytest.raises(NotFittedError):
        make(rs.baselines.RankBoost(), DATA)
