"""Groups of options of commands, and messages that name options instead of parameters."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from ranksieve.cli import app, fit
from ranksieve.cli.app import with_flat_options
from ranksieve.errors import on_command_line, short_list
from ranksieve.methods import find_method


@dataclass(frozen=True)
class Fruit:
    """A group with an argument, an option, and a list with a default."""

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


def test_fields_of_groups_become_options_in_order():
    flat = inspect.signature(with_flat_options(eat))
    assert list(flat.parameters) == ["name", "colour", "seeds", "slowly", "people"]
    assert flat.parameters["name"].default is inspect.Parameter.empty
    assert flat.parameters["seeds"].default == ["none"]


def test_groups_are_filled_when_the_command_runs(call):
    assert call("apple").stdout == f"{Fruit('apple')!r} False {Meal()!r}\n"
    result = call("pear", "-c", "green", "--seed", "a", "--seed", "b", "--slowly", "--people", "3")
    assert result.stdout == f"{Fruit('pear', 'green', ['a', 'b'])!r} True {Meal(3)!r}\n"
    assert call().exit_code == 2
    assert call("pear", "--people", "0").exit_code == 2
    text = call("--help").stdout
    assert "Eat it." in text
    assert "Of the skin." in text


def test_a_name_in_two_groups_is_refused():
    def twice(*, fruit: Fruit, other: Fruit) -> None: ...

    with pytest.raises(ValueError, match="duplicate"):
        with_flat_options(twice)


def test_registering_does_not_change_the_function():
    assert set(inspect.signature(fit.fit).parameters) == {"options"}


@pytest.mark.parametrize(
    ("method", "takes_valid", "rounds"),
    [
        ("sparseranker", True, ""),
        ("fenchelrank", False, "max_iter"),
        ("adarank-map", False, "n_rounds"),
        ("gas", False, ""),
    ],
)
def test_progress_arguments_of_methods(method, takes_valid, rounds):
    entry = find_method(method)
    assert (entry.can("valid"), entry.rounds) == (takes_valid, rounds)
    calls: list[tuple[int, int]] = []
    ranker = entry.make()
    arguments = fit.progress_arguments(entry, ranker, lambda *count: calls.append(count))
    assert fit.progress_arguments(entry, ranker, None) == {}
    assert list(arguments) == (["progress"] if takes_valid else ["callback"] if rounds else [])
    if rounds:
        arguments["callback"](3, None, 0.0, 0.0)
        assert calls == [(3, getattr(ranker, rounds))]


@pytest.mark.parametrize(
    ("most", "text"), [(4, "a, b, c"), (3, "a, b, c"), (2, "a, b and 1 more"), (1, "a and 2 more")]
)
def test_shortened_lists(most, text):
    assert short_list(["a", "b", "c"], most) == text


@pytest.mark.parametrize(
    ("command", "settings", "text", "shown"),
    [
        ("fit", (), "choose `missing='zero'` or keep", "choose --missing zero or keep"),
        ("fit", (), "`max_cost=3` needs `feature_costs`", "--max-cost 3 needs --costs"),
        ("fit", (), "`must_have`: unknown feature 'must_have'", "--must-have: unknown feature 'must_have'"),
        ("fit", (), "`qid` and `previous`", "--qid-column and --from"),
        ("fit", (), "`tol=1`", "tol=1"),
        ("fit", ("tol=1",), "`tol=1` and `tol`", "--set tol=1 and --set tol"),
        ("fit", ("metric=5",), "`metric='5'`", "--set metric=5"),
        ("fit", (), "`stream=True` and `valid=None`", "--stream and --valid"),
        ("export", (), "give `sample`", "give DATA"),
        ("bench", (), "`data_sets='a'`", "--data-sets a"),
        ("rank", (), "`form='xml'`", "--format xml"),
    ],
)
def test_messages_name_options(command, settings, text, shown):
    options = typer.main.get_command(app).commands[command].options(settings)
    assert on_command_line(text, options) == shown
