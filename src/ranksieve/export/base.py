"""What every export shares: what is asked for, what comes out, names, numbers, refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.files import fault_of_file_name
from ranksieve.errors import DataError, ParameterError, safe, shown, warn_caller

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset
    from ranksieve.model.linear import LinearModel


@dataclass(frozen=True)
class NameRule:
    """Which names an engine takes, as a pattern and in words."""

    pattern: str
    words: str

    def check(self, parameter: str, name: str, advice: str = "choose another one") -> None:
        if not re.fullmatch(self.pattern, name):
            raise ParameterError(parameter, name, f"{self.words}; {advice}")


@dataclass(frozen=True)
class Options:
    """What an export may take beside the model.

    ``name`` is the model's name in the engine, ``names`` maps our feature names to the engine's,
    ``featureset`` holds the engine's own definitions of features (parsed JSON), ``sample`` documents to see
    how low scores get, ``store`` the engine's feature store, ``dtype`` the numbers where there is a choice,
    ``window`` how many of the first documents are scored, or what the target has by default.
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
    """An export: files by name, what was changed on the way, and how to load the files from a folder."""

    files: Mapping[str, str | bytes]
    notes: tuple[str, ...] = ()
    load: Callable[[str], tuple[str, ...]] = lambda folder: ()


Maker = Callable[["LinearModel", Options], Product]


def unfit(reason: str) -> DataError:
    """The error about a model, or definitions of features, that a format cannot take."""
    return DataError(None, None, reason)


ANY_NAME = NameRule(
    r"(?=.*\S)[^\x00-\x1f\x7f-\x9f\ud800-\udfff]+", "a name is visible text without control characters"
)
FILE_NAME = NameRule(
    r"\w[\w.-]*", "a name consists of letters, digits, _, . and - and does not begin with . or -"
)


@dataclass(frozen=True)
class Target:
    """One format: who makes it, which options it takes, whether it is a folder of files.

    ``model_name`` is the rule for names of models, ``window`` the default of that option, and
    ``check_featureset`` refuses definitions of features that the engine would not take.
    """

    make: Maker
    takes: frozenset[str]
    folder: bool = False
    check_featureset: Callable[[Any], Any] = lambda content: content
    model_name: NameRule = FILE_NAME
    window: int = 0

    def options(self, target: str, given: Mapping[str, Any]) -> Options:
        """The options with the target's defaults; refuses those that do not apply or that it cannot take."""
        for option, value in given.items():
            if option not in self.takes:
                raise ParameterError(option, value, f"does not apply to {target}; leave it out")
        options = Options(**{"window": self.window, **given})
        self.model_name.check("name", options.name)
        if fault := fault_of_file_name(options.name):
            raise ParameterError("name", options.name, f"{fault}; choose another one")
        window = options.window
        if isinstance(window, bool) or not isinstance(window, int) or ("window" in given and window < 1):
            raise ParameterError("window", window, "must be an integer ≥ 1")
        return options


def exportable(
    model: LinearModel, engine: str, *, indicators: bool = False, within: Collection[str] = ()
) -> LinearModel:
    """The model without indicators of missing values, as far as fills of their features can stand for them.

    Refused are a model without features, one whose scores depend on the other documents of a query in ways
    that are not in ``within`` (kinds of normalisation, policies for missing values) and, unless
    ``indicators`` says that the engine can compute them, one with indicators that are left.
    """
    _check_exportable(model, engine, within)
    scales_vary = model.preparation.normalisation.per_query  # so no fill can stand for an indicator
    folded = model if scales_vary else model.without_indicators()
    left = folded.preparation.missing.indicators
    if left and not indicators:
        source = next(iter(left.values()))
        alone = "" if scales_vary else f" but not {safe(source)} itself"
        raise unfit(
            f"the model uses whether {safe(source)} is missing{alone}, which {engine} cannot compute; export "
            "to python, onnx or json, or fit with `missing='column_mean'`"
        )
    return folded


def _check_exportable(model: LinearModel, engine: str, within: Collection[str]) -> None:
    """Refuse a model without features, and one whose scores depend on the other documents of a query."""
    if not model.weights.any():
        raise unfit(f"the model uses no feature, so {engine} has nothing to compute")
    own = f"but {engine} scores each document on its own"
    missing, normalisation = model.preparation.missing, model.preparation.normalisation
    if normalisation.per_query and normalisation.kind not in within:
        reason = f"but {engine} can do so by minimum and maximum alone" if within else own
        kinds = "`normalise='query_min_max'`, z" if within else "`normalise='z'`"
        raise unfit(
            f"the model normalises its features within each query ({normalisation.kind}), {reason}; fit with "
            f"{kinds}, min_max or none"
        )
    if missing.per_query and missing.policy not in within:
        raise unfit(
            f"the model fills missing values with the least value of the query ({missing.policy}), "
            f"{f'but {engine} does not' if within else own}; fit with `missing='zero'` or column_mean"
        )


def warn_of_means(model: LinearModel, engine: str, cure: str = "") -> None:
    """Say which default each feature needs in an engine that puts 0 where it is missing, or another cure."""
    missing = model.preparation.missing
    if not missing.learns:
        return
    pairs = zip(model.names, missing.means, strict=True)
    means = ", ".join(f"{safe(name)} {mean:.6g}" for name, mean in pairs)
    cure = cure or f"give each feature this default value in its own definition ({means})"
    warn_caller(
        f"the model replaces a missing feature by a number that it learned, but {engine} uses 0; {cure}"
    )


def engine_names(
    own: Sequence[str], names: Mapping[str, str], rule: NameRule, engine: str, advice: str = ""
) -> list[str]:
    """The engine's names of features: renamed, checked and all different."""
    theirs = [names.get(name, name) for name in own]
    for name, given in zip(own, theirs, strict=True):
        if not isinstance(given, str):
            raise ParameterError("names", given, f"must be text, as the name of the feature {shown(name)}")
        rule.check("names", given, advice or f"rename the feature for {engine} with `names`")
    doubles = sorted({name for name in theirs if theirs.count(name) > 1})
    if doubles:
        raise ParameterError("names", doubles[0], f"is the name of several features in {engine}")
    return [str(name) for name in theirs]  # NumPy's text shows its type in source code


def constant_left_out(constant: float, engine: str) -> tuple[str, ...]:
    """What to tell of a constant that the engine has no place for."""
    if not constant:
        return ()
    return (
        f"Scores lack the constant {constant:.6g}, for which {engine} has no place; the ranking is the same.",
    )


def told_apart(words: Sequence[str]) -> list[str]:
    """The words; if any are equal, all get a number too."""
    if len(set(words)) == len(words):
        return list(words)
    return [f"{word}__{number}" for number, word in enumerate(words, start=1)]


def names_read(model: LinearModel) -> list[str]:
    """The features that are read: an indicator reads the one that it is about."""
    about = model.preparation.missing.indicators
    return [about.get(name, name) for name in model.names]


def fills_of(model: LinearModel) -> list[float] | None:
    """What stands where each feature is missing, 1 for an indicator; None if nothing does."""
    policy, about = model.preparation.missing, model.preparation.missing.indicators
    if not policy.fills:
        return None
    means = policy.means or (0.0,) * len(model.terms)
    return [1.0 if name in about else mean for name, mean in zip(model.names, means, strict=True)]


def columnwise(model: LinearModel) -> tuple[FloatArray, FloatArray]:
    """Centre and scale of every feature in use: 0 and 1 without normalisation."""
    normalisation = model.preparation.normalisation
    if not normalisation.learns:
        return np.zeros(len(model.terms)), np.ones(len(model.terms))
    return np.array(normalisation.centre), np.array(normalisation.scale)


def float32(value: float, what: str) -> float:
    """The float32 nearest to a number, in its shortest decimal form."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.float32(value)
    if not np.isfinite(rounded):
        raise unfit(f"{what} is {value:.6g}, too large for 32-bit numbers; rescale the feature")
    return float(str(rounded))


def scale32(scale: float, name: str) -> float:
    """A scale in float32; one that becomes 0 is refused."""
    rounded = float32(scale, f"the scale of {safe(name)}")
    if rounded == 0:
        raise unfit(f"the scale of {safe(name)} is {scale:.6g}, 0 in 32-bit numbers; rescale the feature")
    return rounded


def weight32(weight: float, name: str) -> float:
    """A weight in float32; a warning names one that becomes 0."""
    rounded = float32(weight, f"the weight of {safe(name)}")
    if rounded == 0 != weight:
        warn_caller(f"the weight of {safe(name)} is {weight:.6g}, 0 in 32-bit numbers; rescale the feature")
    return rounded


def as_json(content: Any) -> str:
    """JSON as text for people to read."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def paths_of(product: Product, target: Target, path: Path) -> dict[Path, str | bytes]:
    """Where each file goes: into the folder ``path``, or into the file ``path`` if there is only one."""
    if target.folder or path.is_dir():
        return {path / name: content for name, content in product.files.items()}
    (content,) = product.files.values()
    return {path: content}
