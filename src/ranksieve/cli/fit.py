"""ranksieve fit: learn a ranker, write its model and a page about it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

import ranksieve as rs
from ranksieve._util.messages import lookup
from ranksieve.cli.app import command
from ranksieve.cli.fit_output import (
    Outcome,
    as_plain_data,
    how_chosen,
    settings_in_words,
    settings_of,
    show,
    tested_on,
    too_short_to_count,
    write_page,
)
from ranksieve.cli.options import (
    Cluster,
    Device,
    FitData,
    Json,
    MaxFeatures,
    RankerOptions,
    Weights,
    beside,
    check_inputs,
    check_outputs,
    connected,
    model_before,
    query_texts,
)
from ranksieve.cli.output import emit_json, progress, words
from ranksieve.errors import DataError, ParameterError, while_doing

if TYPE_CHECKING:
    from ranksieve.methods import Method
    from ranksieve.path import Progress
    from ranksieve.rankers import LinearRanker


Given = Mapping[str, Any]  # options with what they say; None, False or "none" where they say nothing


def check_stream(entry: Method, method: str, train: str, whole_data: Given, choice: Given) -> None:
    """Refuse what --stream does not go with.

    ``whole_data`` are options that need all data at once, ``choice`` those that choose on held-out queries.
    """
    from ranksieve.io.load import FILE_FORMATS, format_of

    if not entry.streams:
        from ranksieve.methods import METHODS

        able = " or ".join(name for name, other in METHODS.items() if other.streams)
        raise ParameterError("method", method, f"cannot `stream`; choose {able}, or leave `stream` out")
    if format_of(train) is not FILE_FORMATS["letor"]:
        raise DataError(train, None, "is not LETOR text, which `stream` needs; leave `stream` out")
    for options, need in ((whole_data, "all data at once"), (choice, "held-out queries to choose on")):
        for name, value in options.items():
            if value not in (None, False, "none"):
                raise ParameterError("stream", True, f"`{name}` needs {need}; leave one of them out")


CHOICE = ("max_features", "feature_costs", "max_cost", "metric", "profile")


@command(
    "ranksieve fit train.txt --valid vali.txt --max-features 10 -o model.json",
    "ranksieve fit train.parquet --set cv=10 -o model.json --report page.html",
    "ranksieve fit train.txt --costs ms.csv --max-cost 5 -o model.json",
    "ranksieve fit train.txt --best-subset --max-features 5 -o model.json",
    "ranksieve fit new.txt --from model.json -o new.json",
    "ranksieve fit log.parquet --document-weights click_weight -o model.json",
    "ranksieve fit huge.txt --method minbatsrank --stream -o model.json",
)
def fit(
    *,
    source: FitData,
    weights: Weights,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The model file to write.")],
    method: Annotated[
        str, typer.Option(metavar="NAME", help="The learning method: {methods}.")
    ] = "sparseranker",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any parameter of the method; may be repeated."),
    ] = None,
    max_features: MaxFeatures = None,
    best_subset: Annotated[
        bool,
        typer.Option(
            "--best-subset", help="Choose among the best sets of 1, 2, … features, each with what is proven."
        ),
    ] = False,
    wanted: RankerOptions,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Learn while reading LETOR text, in memory that does not grow with the file (minbatsrank).",
        ),
    ] = False,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Begin with this model: its settings, and its features unless others are better by "
            "more than chance; says what changed.",
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Queries that choose nothing: how the model ranks them is told first."
        ),
    ] = None,
    report: Annotated[str | None, typer.Option(metavar="FILE", help="Also write an HTML page.")] = None,
    cluster: Cluster = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Learn a sparse ranker and write it to a file.

    The default method fits several families of models, each from few features to many, and keeps the one
    within the budget that ranks held-out queries best: those of --valid, and by cross-validation those of the
    training data. It says how sure the choice is, and proves how near the best possible the weights are.
    Another method is fitted with its defaults, or with what --set says; with a budget, --valid, --metric or
    --profile its parameters are chosen on held-out queries too, from a grid of its own. With --stream a file
    larger than memory is learned from, a few queries at a time; its rows must be together by query.
    """
    from ranksieve.methods import find_method

    inputs = [*source.files, *wanted.files, *weights.files, begin, test]
    check_inputs(*inputs)
    entry = find_method(method.lower())
    given = wanted.parameters(max_features) | ({"families": ["subset"]} if best_subset else {})
    given |= {} if device is None else {"device": device}
    old, kept = (None, {}) if begin is None else model_and_settings(begin, method, stream, given)
    given = kept | given
    if stream:
        chosen = {name: given.get(name) for name in CHOICE} | {"valid": source.valid}
        whole = {"report": report, "normalise": given.get("normalise"), "cluster": cluster}
        whole |= {"query_weights": weights.query_weight, "document_weights": weights.document_weight}
        check_stream(entry, method, source.train, whole, chosen)
    ranker = make_ranker(entry, method, settings or [], given, source.valid is not None)
    check_outputs([output, report], inputs)
    if report:
        check_report(entry, method, cluster)
    unseen = None if test is None else source.data(test, document_weight=weights.document_weight)
    if stream:
        outcome = learn_from_file(entry, ranker, source)
    else:
        outcome = learn(entry, ranker, source, weights, old, cluster)
    outcome.model.save(output)
    if test is not None and unseen is not None:
        outcome = replace(outcome, tested=tested_on(test, unseen, outcome.model))
    if report:
        write_page(outcome, report, source.valid, begin)
    with beside(output, report):
        if as_json:
            emit_json({**as_plain_data(outcome), "output": output, "report": report})
        else:
            if kept and begin is not None:
                words(settings_in_words(kept, begin))
            show(outcome, begin)
            words(f"Wrote {output}{f' and {report}' if report else ''}.")


def check_report(entry: Method, method: str, cluster: str | None) -> None:
    """Refuse a page of what has no weights, or of data elsewhere; say how to install what pages need."""
    from ranksieve.report import require_extra

    if not entry.linear:
        raise ParameterError("method", method, "is not linear, so it has no weights for `report` to show")
    require_extra()
    if cluster is not None:
        raise ParameterError("cluster", cluster, "`report` needs the data in memory; leave one out")


def learn(
    entry: Method,
    ranker: Any,
    source: FitData,
    weights: Weights,
    old: rs.LinearModel | None,
    cluster: str | None,
) -> Outcome:
    """Read the data and fit the ranker, with a bar on a terminal."""
    weighed = weights.for_fit
    with connected(cluster) as client:
        data, held_out = source.read(ranker.missing, client, weights.document_weight)
        title = f"fitting {data.source or 'the data'}"
        with progress(title) as bar, while_doing(title):
            options = {"valid": held_out, "warm_start": old}
            chosen_on = {name: value for name, value in options.items() if value is not None}
            ranker.fit(data, **chosen_on, **weighed, **reporters(entry, ranker, bar))
        choice, uncounted = how_chosen(ranker, data, source.valid), too_short_to_count(ranker, data, held_out)
        texts = {} if cluster else query_texts(data, held_out)
        return Outcome(ranker, ranker.to_model(), choice, uncounted, data, held_out, texts)


def model_and_settings(
    file: str, method: str, stream: bool, given: Mapping[str, Any]
) -> tuple[rs.LinearModel, dict[str, Any]]:
    """The model of --from, and its settings beside those that are given, if the method can begin with it."""
    if stream or method.lower() != "sparseranker":
        reason = "cannot begin with a model; leave `warm_start` out"
        name, value = ("stream", stream) if stream else ("method", method)
        raise ParameterError(name, value, reason)
    old = model_before(file)
    return old, {name: value for name, value in settings_of(old).items() if name not in given}


def make_ranker(
    entry: Method, method: str, settings: Sequence[str], given: Mapping[str, Any], measures: bool = False
) -> LinearRanker:
    """A ranker with the parameters of --set and of options of their own.

    Options about the choice (``CHOICE``) that the method does not have, or data to choose on (``measures``),
    make a ranker that chooses, of a linear method that does not do so by itself.
    """
    for name in (*given, *(["valid"] if measures and not entry.linear else [])):
        if name not in entry.parameters and (name not in CHOICE or not entry.linear):
            option = "best_subset" if name == "families" else name
            only = "" if entry.linear else ", only `settings`"
            raise ParameterError("method", method, f"does not use `{option}`{only}; leave it out")
    parameters = dict(_setting(text, entry) for text in settings)
    if entry.uses_valid or not (measures or given.keys() & set(CHOICE) - entry.parameters.keys()):
        return cast("LinearRanker", entry.make(**{**parameters, **given}))
    preparation = {name: parameters.pop(name) for name in ("normalise", "missing") if name in parameters}
    return rs.BudgetedRanker(entry, parameters=parameters, **(preparation | dict(given)))


def learn_from_file(entry: Method, ranker: Any, source: FitData) -> Outcome:
    """Fit a ranker to a file while it is read, with a bar on a terminal."""
    from ranksieve.io.load import check_options
    from ranksieve.io.text_files import source_name

    check_options(source.train, source.arguments)
    title = f"fitting {source_name(source.train)}"
    with progress(title) as bar, while_doing(title):
        ranker.fit_file(source.train, names=source.names, **reporters(entry, ranker, bar))
    return Outcome(ranker, ranker.to_model())


def _setting(text: str, entry: Method) -> tuple[str, Any]:
    """A parameter of --set: text where its default is text and it may be, else a Python value if it can."""
    from ranksieve.metrics import parse
    from ranksieve.metrics.profiles import as_profile
    from ranksieve.rankers.parameters import accepts

    name, equals, written = text.partition("=")
    if not equals:
        raise ParameterError("settings", text, "must be name=value, such as n_alphas=50")
    default = lookup(entry.parameters, name, "settings")
    as_text = isinstance(default, str) and accepts(entry.make(), name, written)
    try:
        value = written if as_text else ast.literal_eval(written)
    except (ValueError, SyntaxError):
        value = written
    if isinstance(default, int | float) and not isinstance(value, type(default) | int):
        kind = "an integer" if isinstance(default, int) else "a number"
        raise ParameterError(name, written, f"must be {kind}, such as {default}")
    if name == "metric":
        parse(value)
    if name == "profile" and value is not None:
        as_profile(value)
    return name, value


def reporters(entry: Method, ranker: LinearRanker, bar: Progress | None) -> dict[str, Any]:
    """The argument of ``fit`` that drives the bar: by candidates for the choice, or by iterations."""
    if bar is None:
        return {}
    if ranker.uses_valid:
        return {"progress": bar}
    if not entry.rounds:
        return {}
    most = ranker.get_params(deep=False)[entry.rounds]
    return {"callback": lambda iteration, w, objective, gap: bar(iteration, most)}
