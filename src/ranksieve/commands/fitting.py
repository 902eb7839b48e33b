"""fit: a method by name, its parameters, its model."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ranksieve._util.lookup import lookup
from ranksieve.commands.demands import Demands
from ranksieve.commands.files import beside, check_inputs, check_outputs, read_data
from ranksieve.commands.fit_page import support_of
from ranksieve.commands.guard import while_doing
from ranksieve.commands.show import emit_json, progress, table, words
from ranksieve.data.dataset import Dataset
from ranksieve.estimators import LinearRanker
from ranksieve.estimators.base import Ranker
from ranksieve.metrics import Evaluation, evaluate, parse
from ranksieve.metrics.profiles import as_profile
from ranksieve.model import LinearModel
from ranksieve.path import Progress
from ranksieve.preparation.missing import MissingPolicy, check_policy
from ranksieve.preparation.normalise import check_kind
from ranksieve.report import build_content, certificate, require_extra, write_report
from ranksieve.solvers import Callback

REPORT_METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "mrr")


def fit_model(
    train: str,
    *,
    valid: str | None,
    method: str,
    settings: Sequence[str],
    named: Mapping[str, Any],
    demands: Demands,
    normalise: str | None,
    missing: str | None,
    output: str,
    report: str | None,
    as_json: bool,
) -> None:
    """Fit, save the model, write the report, show the result."""
    inputs = [train, valid, *demands.files]
    check_inputs(*inputs)
    ranker = make_ranker(method, settings, {**named, **demands.parsed()})
    options = fit_options(ranker, method, valid is not None)
    check_outputs([output, report], inputs)
    if report:
        require_extra()
    policy = prepare_with(ranker, normalise, missing)
    data = read_data(train, policy)
    held_out = None if valid is None else read_data(valid, policy)
    if held_out is not None:
        check_widths(data, train, held_out, valid or "")
        options["valid"] = held_out
    run(ranker, data, options)
    model, choice = ranker.to_model(), how_chosen(ranker, data, valid)
    model.save(output)
    if report:
        evaluations = {} if held_out is None else {f"{valid}": _measure(ranker, held_out)}
        support = support_of(ranker, data)
        content = build_content(ranker, choice=choice, evaluations=evaluations, support=support)
        write_report(content, report)
    with beside(output, report):
        if as_json:
            emit_json({"model": model.to_dict(), "choice": choice, "output": output, "report": report})
        else:
            show_model(model, choice)
            words(f"Wrote {output}{f' and {report}' if report else ''}.")


def make_ranker(method: str, settings: Sequence[str], named: Mapping[str, Any]) -> LinearRanker:
    """A ranker by name with its parameters checked."""
    kind = _maker(method.lower())
    defaults = kind().get_params(deep=False)
    parameters = dict(_setting(text, method, defaults) for text in settings)
    for name, value in named.items():
        if value is None:
            continue
        if name not in defaults:
            option = "--" + name.replace("_", "-")
            raise ValueError(f"{option} does not apply to {method}, which has no {name}; leave it out")
        parameters[name] = value
    _check_metric({**defaults, **parameters})
    ranker = kind(**parameters)
    if not isinstance(ranker, LinearRanker):
        raise ValueError(f"{method} is not linear, so it has no model file; use it from Python")
    return ranker


def prepare_with(ranker: LinearRanker, normalise: str | None, missing: str | None) -> str:
    """Let any linear ranker normalise and fill its features; the policy to read files with."""
    if normalise is not None:
        check_kind(normalise)
        ranker.normalise = normalise
    if missing is not None:
        check_policy(missing)
        ranker.missing = missing
    return "keep" if MissingPolicy(ranker.missing).fills else ranker.missing


def _maker(method: str) -> Callable[..., Ranker]:
    from ranksieve.methods import find_method

    return find_method(method).make


def _setting(text: str, method: str, defaults: Mapping[str, Any]) -> tuple[str, Any]:
    name, equals, written = text.partition("=")
    if not equals:
        raise ValueError(f"--set {text} has no =; write --set name=value, for example --set n_alphas=50")
    default = lookup(defaults, name, f"parameter of {method}")
    try:
        value = written if isinstance(default, str) else ast.literal_eval(written)
    except (ValueError, SyntaxError):
        value = written
    if isinstance(default, int | float) and not isinstance(value, type(default) | int):
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ValueError(f"--set {text} gives no number; {name} is {kind}, for example {name}={default}")
    return name, value


def _check_metric(parameters: Mapping[str, Any]) -> None:
    if "metric" in parameters:
        parse(parameters["metric"])
    if "profile" in parameters:
        as_profile(parameters["profile"])


def fit_options(ranker: LinearRanker, method: str, has_valid: bool) -> dict[str, Any]:
    """Which of fit's options the method takes."""
    taken = inspect.signature(type(ranker).fit).parameters
    if has_valid and "valid" not in taken:
        raise ValueError(f"--valid does not apply to {method}, which has nothing to choose; leave it out")
    return {name: None for name in ("progress", "callback") if name in taken}


def check_widths(data: Dataset, train: str, held_out: Dataset, valid: str) -> None:
    """Training and validation data must have the same columns; the ranker finds them by name."""
    if data.n_features != held_out.n_features:
        widest = max(data.n_features, held_out.n_features)
        raise ValueError(
            f"{valid} has {held_out.n_features} features but {train} has {data.n_features}; "
            f"both need the same columns (in sparse text write {widest}:0 once in the narrower file)"
        )


def run(ranker: LinearRanker, data: Dataset, options: Mapping[str, Any]) -> None:
    """Fit under a progress bar."""
    title = f"fitting {data.source or 'the data'}"
    with progress(title) as bar, while_doing(title):
        reporters = {"progress": bar, "callback": _each_iteration(ranker, bar)}
        ranker.fit(
            data, **{**options, **{name: reporters[name] for name in options.keys() & reporters.keys()}}
        )


def _each_iteration(ranker: LinearRanker, bar: Progress | None) -> Callback | None:
    """Drive the bar from a solver's callback, up to the most iterations the ranker allows."""
    if bar is None:
        return None
    parameters = ranker.get_params(deep=False)
    most = next((parameters[name] for name in ("n_epochs", "max_iter") if name in parameters), 1)
    return lambda iteration, w, objective, gap: bar(iteration, most)


def how_chosen(ranker: LinearRanker, data: Dataset, valid: str | None) -> str:
    """What guided the choice, in words; nothing for a method without one."""
    parameters = ranker.get_params(deep=False)
    if valid is not None or "cv" not in parameters:
        return f"on {valid}" if valid else ""
    folds = min(parameters["cv"], data.n_queries)
    return f"by {folds}-fold cross-validation over queries" if folds > 1 else "on the training data"


def show_model(model: LinearModel, choice: str) -> None:
    """Features, weights, metric and certificate."""
    ordered = sorted(model.terms, key=lambda term: -abs(term.weight))
    if ordered:
        words(f"{model.method} uses {len(ordered)} of {model.n_features} features.")
        table(["feature", "weight"], [(term.name, f"{term.weight:+.5g}") for term in ordered])
    else:
        words(f"{model.method} chose none of the {model.n_features} features, so all scores are equal.")
    for name, value in model.metrics.items():
        if name != "cost":
            words(f"{name.capitalize()}: {value:.4f}, chosen {choice}.")
    if "cost" in model.metrics:
        limit = model.parameters.get("max_cost")
        words(f"Cost: {model.metrics['cost']:g}{'' if limit is None else f' of at most {float(limit):g}'}.")
    proof = model.certificate
    if "objective" not in proof:
        return
    at = f" at alpha = {proof['alpha']:.4g}" if "alpha" in proof else ""
    words(f"Objective{at}: {proof['objective']:.6g}, {certificate(proof.get('relative_gap'))}.")


def _measure(ranker: LinearRanker, data: Dataset) -> Evaluation:
    profile = ranker.get_params().get("profile", "letor")
    return evaluate(ranker.predict(data), data, REPORT_METRICS, profile)
