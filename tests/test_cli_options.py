"""How commands are put together: groups of options, and messages in words of options."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from ranksieve._util.messages import shortened
from ranksieve.cli import fit
from ranksieve.cli.app import with_flat_options
from ranksieve.cli.output import with_options
from ranksieve.methods import find_method


@dataclass(frozen=True)
class Fruit:
    """A group with an argument, an option, and a list that has a default."""

    name: Annotated[str, typer.Argument()]
    colour: Annotated[str, typer.Option("-c", "--colour", help="Of the skin.")] = "red"
    seeds: Annotated[list[str], typer.Option("--seed")] = field(default_factory=lambda: ["none"])


@dataclass(frozen=True)
class Meal:
    people: Annotated[int, typer.Option(min=1)] = 1


def eat(*, fruit: Fruit, slowly: Annotated[bool, typer.Option("--slowly")] = False, meal: Meal) -> None:
    """Eat it."""
    typer.echo(f"{fruit!r} {slowly} {meal!r}")


@pytest.fixture
def call():
    app = typer.Typer()
    app.command()(with_flat_options(eat))
    return lambda *words: CliRunner().invoke(app, words)


def test_fields_of_groups_are_options_in_their_place():
    flat = inspect.signature(with_flat_options(eat))
    assert list(flat.parameters) == ["name", "colour", "seeds", "slowly", "people"]
    assert flat.parameters["name"].default is inspect.Parameter.empty
    assert flat.parameters["seeds"].default == ["none"]


def test_groups_are_put_together_when_the_command_runs(call):
    assert call("apple").stdout == f"{Fruit('apple')!r} False {Meal()!r}\n"
    given = call("pear", "-c", "green", "--seed", "a", "--seed", "b", "--slowly", "--people", "3")
    assert given.stdout == f"{Fruit('pear', 'green', ['a', 'b'])!r} True {Meal(3)!r}\n"
    assert call().exit_code == 2
    assert call("pear", "--people", "0").exit_code == 2
    text = call("--help").stdout
    assert "Eat it." in text
    assert "Of the skin." in text


def test_a_name_in_two_groups_is_refused():
    def twice(*, fruit: Fruit, other: Fruit) -> None: ...

    with pytest.raises(ValueError, match="duplicate parameter name"):
        with_flat_options(twice)


def test_a_registered_command_is_its_own_body():
    assert set(inspect.signature(fit.fit).parameters) > {"source", "wanted", "output"}


@pytest.mark.parametrize(
    ("method", "uses_valid", "rounds"),
    [
        ("sparseranker", True, ""),
        ("fenchelrank", False, "max_iter"),
        ("adarank-map", False, "n_rounds"),
        ("gas", False, ""),
    ],
)
def test_what_drives_the_progress_bar_of_a_method(method, uses_valid, rounds):
    entry = find_method(method)
    assert (entry.uses_valid, entry.rounds) == (uses_valid, rounds)
    told: list[tuple[int, int]] = []
    ranker = entry.make()
    given = fit.reporters(entry, ranker, lambda *count: told.append(count))
    assert fit.reporters(entry, ranker, None) == {}
    assert list(given) == (["progress"] if uses_valid else ["callback"] if rounds else [])
    if rounds:
        given["callback"](3, None, 0.0, 0.0)
        assert told == [(3, getattr(ranker, rounds))]


@pytest.mark.parametrize(
    ("most", "said"), [(4, "a, b, c"), (3, "a, b, c"), (2, "a, b and 1 more"), (1, "a and 2 more")]
)
def test_shortened_lists(most, said):
    assert shortened(["a", "b", "c"], most) == said


OPTIONS = {
    "missing": "--missing",
    "max_cost": "--max-cost",
    "costs": "--costs",
    "feature_costs": "--costs",
    "must_have": "--must-have",
    "metric": "--metric",
}


@pytest.mark.parametrize(
    ("library", "command_line"),
    [
        (
            'a.txt:3: is missing; choose missing="zero", "query_min" or "keep"',
            "a.txt:3: is missing; choose --missing zero, query_min or keep",
        ),
        ("missing='zeros' is unknown", "--missing zeros is unknown"),
        (
            "max_cost=3 buys nothing; raise max_cost to 5.",
            "--max-cost 3 buys nothing; raise --max-cost to 5.",
        ),
        ("max_cost=3 needs feature_costs: what", "--max-cost 3 needs --costs: what"),
        ("must_have: unknown feature 'must_have'", "--must-have: unknown feature 'must_have'"),
        ("the metric is missing", "the metric is missing"),
        ("--set metric=5 gives no number", "--set metric=5 gives no number"),
        ("say it by max_cost (--max-cost)", "say it by max_cost (--max-cost)"),
        ("must_have.csv:2: no sign; see data/max_cost", "must_have.csv:2: no sign; see data/max_cost"),
    ],
)
def test_messages_speak_of_options(library, command_line):
    assert with_options(library, OPTIONS) == command_line
