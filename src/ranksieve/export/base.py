"""Common parts of exports: options, products, names, numbers, errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.files import file_name_problem
from ranksieve.data.result_lists import list_scaling
from ranksieve.errors import DataError, ParameterError, printable, short_repr, warn_caller

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset
    from ranksieve.model.linear import LinearModel


@dataclass(frozen=True)
class NameRule:
    """The names that an engine accepts: a regular expression and its description for messages."""

    pattern: str
    description: str

    def check(self, parameter: str, name: str, advice: str = "choose another one") -> None:
        if not re.fullmatch(self.pattern, name):
            raise ParameterError(parameter, name, f"{self.description}; {advice}")


@dataclass(frozen=True)
class Options:
    """Options of an export.

    ``name`` is the model's name in the engine, ``names`` maps our feature names to the engine's,
    ``featureset`` holds the engine's definitions of features (parsed JSON), ``sample`` documents from which
    to estimate the lowest score, ``store`` the engine's feature store, ``dtype`` the number type if there is
    a choice, ``window`` the number of top documents that are scored.
    """

    name: str = "ranker"
    names: Mapping[str, str] = field(default_factory=dict)
    featureset: Any = None
    sample: Dataset | None = None
    store: str | None = None
    dtype: str = "float32"
    window: int = 0


@dataclass(frozen=True)
class Product:
    """An export: files by name, notes on differences from the model, and commands that load the files."""

    files: Mapping[str, str | bytes]
    notes: tuple[str, ...] = ()
    load: Callable[[str], tuple[str, ...]] = lambda folder: ()


Maker = Callable[["LinearModel", Options], Product]


def not_exportable(reason: str) -> DataError:
    """Error for a model, or definitions of features, that a format cannot represent."""
    return DataError(None, None, reason)


ANY_NAME = NameRule(
    r"(?=.*\S)[^\x00-\x1f\x7f-\x9f\ud800-\udfff]+", "a name must be visible text without control characters"
)
FILE_NAME = NameRule(
    r"\w[\w.-]*", "a name must consist of letters, digits, _, . and -, and must not begin with . or -"
)


@dataclass(frozen=True)
class Target:
    """An export format: the function that makes it, the options it takes, whether it is a folder of files.

    ``lines`` and ``curves``: whether it represents linear models and curves. ``model_name`` is the rule for
    model names, ``window`` the default of that option, and ``check_featureset`` refuses definitions of
    features that the engine would not accept.
    """

    make: Maker
    takes: frozenset[str]
    folder: bool = False
    lines: bool = True
    curves: bool = False
    check_featureset: Callable[[Any], Any] = lambda content: content
    model_name: NameRule = FILE_NAME
    window: int = 0

    def options(self, target: str, values: Mapping[str, Any]) -> Options:
        """Return options with the target's defaults; raise ParameterError for invalid ones."""
        for option, value in values.items():
            if option not in self.takes:
                raise ParameterError(option, value, f"does not apply to {target}; leave it out")
        options = Options(**{"window": self.window, **values})
        self.model_name.check("name", options.name)
        if problem := file_name_problem(options.name):
            raise ParameterError("name", options.name, f"{problem}; choose another one")
        window = options.window
        if isinstance(window, bool) or not isinstance(window, int) or ("window" in values and window < 1):
            raise ParameterError("window", window, "must be an integer ≥ 1")
        return options


def prepare_for_export(
    model: LinearModel, engine: str, *, indicators: bool = False, within: Collection[str] = ()
) -> LinearModel:
    """Return the model, with missing-value indicators replaced by fill values where that is equivalent.

    Refuse a model without features, one whose scores depend on the other documents of a query in ways that
    are not in ``within`` (kinds of normalisation, policies for missing values) and, unless the engine can
    compute ``indicators``, one that still has indicators.
    """
    _check_exportable(model, engine, within)
    scales_vary = (
        model.preparation.normalisation.per_query
    )  # then no fill value is equivalent to an indicator
    folded = model if scales_vary else model.without_indicators()
    remaining = folded.preparation.missing.indicators
    if remaining and not indicators:
        source = next(iter(remaining.values()))
        alone = "" if scales_vary else f" but not {printable(source)} itself"
        raise not_exportable(
            f"the model uses whether {printable(source)} is missing{alone}, which {engine} cannot compute; "
            "export to python, onnx or json, or fit with `missing='column_mean'`"
        )
    return folded


def _check_exportable(model: LinearModel, engine: str, within: Collection[str]) -> None:
    if not model.weights.any():
        raise not_exportable(f"the model uses no feature, so {engine} has nothing to compute")
    separately = f"but {engine} scores each document separately"
    missing, normalisation = model.preparation.missing, model.preparation.normalisation
    if list_scaling(normalisation.kind) is not None and normalisation.kind not in within:
        raise not_exportable(
            f"the model combines result lists by {normalisation.kind}, which {engine} cannot compute; "
            f"{_nearest(model, within)}"
        )
    if normalisation.per_query and normalisation.kind not in within:
        reason = f"but {engine} can do so only by minimum and maximum" if within else separately
        kinds = "`normalise='query_min_max'`, z" if within else "`normalise='z'`"
        raise not_exportable(
            f"the model normalises its features within each query ({normalisation.kind}), {reason}; fit with "
            f"{kinds}, min_max or none"
        )
    if missing.per_query and missing.policy not in within:
        raise not_exportable(
            f"the model fills missing values with the minimum of the query ({missing.policy}), "
            f"{f'but {engine} does not' if within else separately}; fit with `missing='zero'` or column_mean"
        )


def _nearest(model: LinearModel, kinds: Collection[str]) -> str:
    """The best normalisation that the engine computes, with its metric on the held-out queries of the fit."""
    chosen = next((value for name, value in model.metrics.items() if name.startswith("held-out")), None)
    measured = {
        kind: (value, name.removesuffix(f" with {kind}"))
        for name, value in model.metrics.items()
        for kind in (*kinds, "none")
        if name.endswith(f" with {kind}")
    }
    if chosen is None or not measured:
        possible = [kind for kind in kinds if list_scaling(kind) is not None] or ["none"]
        return f"fit with `normalise={possible[0]!r}`"
    kind = max(measured, key=lambda one: measured[one][0])
    value, metric = measured[kind]
    lower = f"{metric} {value:.4f} instead of {chosen:.4f}"
    return f"nearest: fit with `normalise={kind!r}`, {lower}"


def warn_about_means(model: LinearModel, engine: str, advice: str = "") -> None:
    """Warn that the engine uses 0 for missing features; by default advise which default values to set."""
    missing = model.preparation.missing
    if not missing.learns:
        return
    pairs = zip(model.names, missing.means, strict=True)
    means = ", ".join(f"{printable(name)} {mean:.6g}" for name, mean in pairs)
    advice = advice or f"give each feature this default value in its definition ({means})"
    warn_caller(
        f"the model replaces missing values by numbers that it learned, but {engine} uses 0; {advice}"
    )


def engine_names(
    model_names: Sequence[str], names: Mapping[str, str], rule: NameRule, engine: str, advice: str = ""
) -> list[str]:
    """Names of features in the engine: renamed by ``names``, checked and unique."""
    renamed = [names.get(name, name) for name in model_names]
    for name, new_name in zip(model_names, renamed, strict=True):
        if not isinstance(new_name, str):
            raise ParameterError(
                "names", new_name, f"must be text, the new name of feature {short_repr(name)}"
            )
        rule.check("names", new_name, advice or f"rename the feature for {engine} with `names`")
    duplicates = sorted({name for name in renamed if renamed.count(name) > 1})
    if duplicates:
        raise ParameterError("names", duplicates[0], f"is the name of several features in {engine}")
    return [str(name) for name in renamed]  # repr of a NumPy string would show its type in source code


def intercept_note(constant: float, engine: str) -> tuple[str, ...]:
    """Note on a constant that the engine cannot represent."""
    if not constant:
        return ()
    return (
        f"Scores lack the constant {constant:.6g}, which {engine} cannot represent; the ranking is the same.",
    )


def make_unique(names: Sequence[str]) -> list[str]:
    """Append a number to all names if some are equal."""
    if len(set(names)) == len(names):
        return list(names)
    return [f"{name}__{number}" for number, name in enumerate(names, start=1)]


def source_names(model: LinearModel) -> list[str]:
    """Feature that each term reads; a missing-value indicator reads the feature it indicates."""
    indicators = model.preparation.missing.indicators
    return [indicators.get(name, name) for name in model.names]


def fill_values(model: LinearModel) -> list[float] | None:
    """Value of each term if its feature is missing, 1 for an indicator; None if the model does not fill."""
    policy, indicators = model.preparation.missing, model.preparation.missing.indicators
    if not policy.fills:
        return None
    means = policy.means or (0.0,) * len(model.terms)
    return [1.0 if name in indicators else mean for name, mean in zip(model.names, means, strict=True)]


def centre_and_scale(model: LinearModel) -> tuple[FloatArray, FloatArray]:
    """Centre and scale of each feature in use; 0 and 1 without normalisation."""
    normalisation = model.preparation.normalisation
    if not normalisation.learns:
        return np.zeros(len(model.terms)), np.ones(len(model.terms))
    return np.array(normalisation.centre), np.array(normalisation.scale)


def float32(value: float, what: str) -> float:
    """Round to float32 and return its shortest decimal form as a float."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.float32(value)
    if not np.isfinite(rounded):
        raise not_exportable(f"{what} is {value:.6g}, too large for 32-bit numbers; rescale the feature")
    return float(str(rounded))


def scale32(scale: float, name: str) -> float:
    """Round a scale to float32; refuse it if it becomes 0."""
    rounded = float32(scale, f"the scale of {printable(name)}")
    if rounded == 0:
        raise not_exportable(
            f"the scale of {printable(name)} is {scale:.6g}, 0 in 32-bit numbers; rescale the feature"
        )
    return rounded


def weight32(weight: float, name: str) -> float:
    """Round a weight to float32; warn if it becomes 0."""
    rounded = float32(weight, f"the weight of {printable(name)}")
    if rounded == 0 != weight:
        warn_caller(
            f"the weight of {printable(name)} is {weight:.6g}, 0 in 32-bit numbers; rescale the feature"
        )
    return rounded


def as_json(content: Any) -> str:
    """Indented JSON text."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def paths_of(product: Product, target: Target, path: Path) -> dict[Path, str | bytes]:
    """Contents by path: in the folder ``path``, or in the file ``path`` if there is only one."""
    if target.folder or path.is_dir():
        return {path / name: content for name, content in product.files.items()}
    (content,) = product.files.values()
    return {path: content}
