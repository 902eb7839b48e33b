"""Export a model, read the files back as the engine would, and check that names have no side effects."""

from __future__ import annotations

import ast
import json
import warnings
from collections import Counter

import numpy as np

from ranksieve.export import EXPORTS, export_model
from ranksieve.model.linear import load_model
from tests.contracts.test_export_contract import LUCENE, VESPA, reported_shift, unscaled
from tests.engine_readers import READERS
from tests.painless_reader import tokens

DOUBLE = ("python", "qdrant", "json", "lightgbm", *VESPA)
SCRIPTS = ("elasticsearch_script", "opensearch_script")
LONGEST_SENTENCE = 1000
STATEMENTS = {"Expr": 1, "ImportFrom": 3, "Assign": 1, "AnnAssign": 1, "FunctionDef": 2}
STATEMENTS_OF_CURVES = {**STATEMENTS, "ImportFrom": 4, "AnnAssign": 2}


class Fault(AssertionError):
    """A name had a side effect, or a score differs."""


def round_trip(model, target, place, data, names):
    """Whether the target accepts the model; checks that the scores are the model's."""
    options = {"names": names} if "names" in EXPORTS[target].takes else {}
    options |= {"sample": data} if target in LUCENE else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = export_model(model, target, place, **options)
    except ValueError as error:
        check_sentence(str(error))
        if place.exists():
            raise Fault(f"{target}: refused, but files were written") from None
        return False
    check_structure(target, result, model)
    columns = columns_of(target, model, data, names)
    if target == "json":
        theirs = load_model(place).predict(data)
    else:
        read = python_in_process if target == "python" else READERS[target]
        theirs = unscaled(result, target, np.asarray(read(place, columns), dtype=np.float64))
    ours = model.predict(data) + reported_shift(result)
    size = np.abs(data.X).max() * np.abs(model.weights).sum() + abs(model.intercept) + 10
    allowed = (1e-9 if target in DOUBLE and not result.notes else 2e-5) * size
    if target == "opensearch_hybrid":  # it replaces a scaled score of 0 by 0.001
        allowed += 0.0011 * model.weights.sum()
    if np.abs(theirs - ours).max() > allowed:
        raise Fault(f"{target}: scores {theirs} instead of {ours}")
    return True


def check_sentence(text):
    """Check that an error message is one line of limited length."""
    if len(text.splitlines()) != 1 or len(text) > LONGEST_SENTENCE or "codec" in text:
        raise Fault(f"no sentence: {text[:200]!r}")


def columns_of(target, model, data, names):
    """The columns of the data by the engine's names of the features."""
    columns = {term.name: data.X[:, term.index].tolist() for term in model.terms}
    if target == "ranklib":
        numbers = {term.name: str(term.index + 1) for term in model.terms}
        return {names.get(name, numbers[name]): column for name, column in columns.items()}
    return {names.get(name, name): column for name, column in columns.items()}


def check_structure(target, result, model):
    """Check that exported code has the same kinds of statements as with harmless names."""
    if target == "python":
        tree = ast.parse(result.files[0].read_text(encoding="utf-8"))
        counts = Counter(type(statement).__name__ for statement in tree.body)
        if counts != (STATEMENTS_OF_CURVES if model.has_curves else STATEMENTS):
            raise Fault(f"the module has other statements: {counts}")
    if target in SCRIPTS:
        source = json.loads(result.files[0].read_text(encoding="utf-8"))["script"]["source"]
        counts = Counter(text for kind, text in tokens(source) if kind != "text" and kind != "number")
        variables = 1 + len(model.terms) * model.has_curves
        if counts["return"] != 1 or counts["double"] != variables or counts["+="] != len(model.terms):
            raise Fault(f"the script has other statements: {counts}")


def python_in_process(file, columns):
    """Like :func:`tests.engine_readers.python`, in this process."""
    module = {"__name__": "exported"}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), module)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return [module["score"](row) for row in rows]
