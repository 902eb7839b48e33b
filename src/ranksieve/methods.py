"""The table of methods: loss, penalty and solver of each, how to construct it, and the grid of its paper.

The command line, the experiments and the documentation use this table. To add a method, add an entry.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve import baselines, rankers
from ranksieve.errors import ParameterError, lookup

if TYPE_CHECKING:
    from ranksieve.rankers import Ranker


@dataclass(frozen=True)
class RankerFactory:
    """Constructs rankers of a class in ``rankers`` or ``baselines``, with default parameters.

    The class is loaded at the first call, so that importing the table is fast.
    """

    name: str
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **parameters: Any) -> Ranker:
        package = rankers if hasattr(rankers, self.name) else baselines
        estimator: Ranker = getattr(package, self.name)(**{**self.defaults, **parameters})
        return estimator


def ranker(name: str, **defaults: Any) -> RankerFactory:
    return RankerFactory(name, defaults)


@dataclass(frozen=True)
class Method:
    """A method: fits ``make(**point)`` for each point of the grid and selects one by ``select``.

    Parameters
    ----------
    title, source, loss, penalty, solver : str
        Name, source, loss, penalty and solver, as text.
    make : callable
        Constructs the ranker; all parameters have defaults: those of the class, except what the name of the
        method implies.
    grid : sequence of mappings
        Points of the paper's grid, including the parameters that are the same in every point.
    select : str
        The metric of the paper's model selection.
    warm : bool
        Start each grid point from the previous one; only for methods that reach the optimum.
    size : str
        Name of the parameter for the number of features, if there is one.
    rounds : str
        Name of the parameter for the maximum number of iterations, rounds, passes or trees, if there is one.
    n_seeds : int
        Number of seeds in experiments, if the method is random; 1: it has a seed, but is not random.
    extra : mapping
        Parameters of ``make``, with their defaults, that the ranker itself does not have.
    aliases : sequence of str
        Other names for ``ranksieve fit --method``.
    """

    title: str
    source: str = ""
    loss: str = ""
    penalty: str = ""
    solver: str = ""
    make: Callable[..., Ranker] = RankerFactory("SparseRanker")
    grid: Sequence[Mapping[str, Any]] = ({},)
    select: str = "ndcg@10"
    warm: bool = False
    size: str = ""
    rounds: str = "max_iter"
    n_seeds: int = 3
    extra: Mapping[str, Any] = field(default_factory=dict)
    aliases: Sequence[str] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters and their defaults."""
        return {**self.make().get_params(deep=False), **self.extra}

    @property
    def seed(self) -> int | None:
        """The default seed; None for a method that is not random, or whose grid contains seeds."""
        is_random = self.n_seeds > 1 and all("random_state" not in point for point in self.grid)
        return self.parameters.get("random_state") if is_random else None

    @property
    def linear(self) -> bool:
        return self.can("linear")

    def can(self, what: str) -> bool:
        """Whether its rankers have an ability (:meth:`ranksieve.rankers.Ranker.can`)."""
        return self.make().can(what)


def find_method(name: str) -> Method:
    """Find a method by its name in METHODS or by an alias."""
    aliases = {alias: method for method in METHODS.values() for alias in method.aliases}
    return lookup({**METHODS, **aliases} if name in aliases else METHODS, name, "method", METHOD_HINTS)


@dataclass(frozen=True)
class OwnMethod(Method):
    """A class or object with ``fit`` and ``predict``, from outside the package.

    ``estimator`` is the class or object; its attribute ``grid``, if any, is the grid.
    """

    estimator: Any = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of its constructor and their values, the preparation, and where the class is."""
        from ranksieve.rankers.own import parameters_of

        kind = self.estimator if isinstance(self.estimator, type) else type(self.estimator)
        prepared = {name: self.make().get_params(deep=False)[name] for name in PREPARATION}
        own = {name: plain_value(value) for name, value in parameters_of(self.estimator).items()}
        return {**own, **prepared, "class": f"{kind.__module__}:{kind.__qualname__}"}


PREPARATION = ("normalise", "missing")


def plain_value(value: Any) -> Any:
    """A value for files: as it is if JSON has it, else its ``repr``."""
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def as_method(method: Any, parameter: str = "method") -> Method:
    """A Method from its name, ``package.module:Class``, or a class or object with ``fit`` and ``predict``."""
    if isinstance(method, Method):
        return method
    if isinstance(method, str):
        return (
            as_method(import_object(method, parameter), parameter)
            if ":" in method
            else find_method(method.lower())
        )
    if not all(callable(getattr(method, name, None)) for name in ("fit", "predict")):
        reason = (
            "must be the name of a method, package.module:Class, a Method, or a class or object with "
            "`fit` and `predict`"
        )
        raise ParameterError(parameter, method, reason)
    name = method.__name__ if isinstance(method, type) else type(method).__name__
    grid: Any = getattr(method, "grid", ({},))
    source = "own class" if isinstance(method, type) else "own object"
    if isinstance(method, type) and issubclass(method, rankers.Ranker):
        return Method(name, source, make=method, grid=grid, n_seeds=1, rounds="")
    if isinstance(method, rankers.Ranker):
        make: Callable[..., Any] = partial(_copy_with, method)
        return Method(name, source, make=make, grid=grid, n_seeds=1, rounds="")
    return OwnMethod(
        name, source, make=partial(_own_ranker, method), grid=grid, n_seeds=1, rounds="", estimator=method
    )


def _copy_with(ranker: Ranker, **parameters: Any) -> Ranker:
    from sklearn.base import clone

    copy: Ranker = clone(ranker).set_params(**parameters)
    return copy


def _own_ranker(estimator: Any, **parameters: Any) -> Ranker:
    from ranksieve.rankers.own import OwnRanker, with_parameters

    prepared = {name: parameters.pop(name) for name in PREPARATION if name in parameters}
    return OwnRanker(with_parameters(estimator, parameters), **prepared)


def import_object(path: str, parameter: str) -> Any:
    """The object of ``package.module:Class``; modules in the current folder are found too."""
    module, _, name = path.partition(":")
    folder = os.getcwd()
    try:
        sys.path.insert(0, folder)
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ParameterError(
            parameter, path, f"cannot be imported ({error}); write package.module:Class"
        ) from None
    finally:
        sys.path.remove(folder)
    return found


def ranker_classes() -> dict[str, type[Ranker]]:
    """Classes of the methods by name in lower case."""
    kinds = dict.fromkeys(type(method.make()) for method in METHODS.values())
    return {kind.__name__.lower(): kind for kind in kinds}


def parameter_grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """All combinations of the values; the last name varies fastest."""
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]


def decades(first: float, last: float, per_decade: int = 1) -> list[float]:
    """10^first, …, 10^last."""
    steps = round(abs(last - first) * per_decade) + 1
    return [float(value) for value in np.logspace(first, last, steps)]


def _powers_of_two(first: int, last: int) -> list[float]:
    return [2.0**k for k in range(first, last - 1, -1)]


HINGE = "squared hinge"
LAPORTE = "Laporte et al. 2014"
_FSM = parameter_grid(similarity_weight=[0.0, *decades(-4, -1)], alpha=decades(-1.5, -5, 2))
# The paper states γ and λ for an unknown number of passes. λ is compared with a sum over all of them, so the
# grid has the paper's λ per pass. 20 passes: papers/studies/minbatsrank.py.
_PASSES = 20
_MINBAT = parameter_grid(
    rate=_powers_of_two(1, -10), l1=[_PASSES * l1 for l1 in _powers_of_two(15, -2)], n_epochs=[_PASSES]
)
_ALPHAS = parameter_grid(alpha=[float(a) for a in np.geomspace(0.2, 1e-4, 40)])
_REWEIGHTED = "reweighted ℓ1"


_FEW_ALPHAS = parameter_grid(alpha=decades(-1, -4, 2))
_CS = parameter_grid(C=decades(-3, 3))
_MEAN_CS = parameter_grid(C=decades(-3, 3), average=[True])
# A tolerance would only stop the same sequence of rounds earlier, so validation selects the number of rounds.
_ROUNDS = parameter_grid(n_rounds=[1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 70, 100, 140, 200], tol=[np.inf])
_SIZES = [5, 10, 15, 20, 25]


def _ranksvm(title: str, penalty: str, name: str, solver: str, warm: bool = False) -> Method:
    make = ranker("SparseRankSVM", penalty=name)
    aliases = ("sparseranksvm",) if name == "l1" else ()
    return Method(title, LAPORTE, HINGE, penalty, solver, make, _ALPHAS, "map", warm, aliases=aliases)


def _selector(
    title: str, source: str, penalty: str, kind: Callable[..., Ranker], size: str = "", **grid: Sequence[Any]
) -> Method:
    """A feature selector followed by RankSVM, whose C is in the grid, as is ``size`` if it is given."""
    points = parameter_grid(**({size: _SIZES} if size else {}), **grid, C=decades(-2, 2))
    make = partial(_make_selector, kind)
    return Method(
        title, source, HINGE, penalty, "then RankSVM-Primal", make, points, size=size, rounds="",
        extra={"C": None},
    )  # fmt: skip


def _make_selector(kind: Callable[..., Ranker], C: float | None = None, **options: Any) -> Ranker:
    return kind(**({} if C is None else {"base": rankers.RankSVM(C, average=True)}), **options)


METHODS: dict[str, Method] = {
    "sparseranker": Method(
        "SparseRanker", "the certified path, log penalty, forward selection", HINGE,
        "ℓ1, log, elastic net, ridge", "proximal Newton", ranker("SparseRanker"), rounds="",
    ),
    "bestsubset": Method(
        "BestSubset", "branch and bound on features", HINGE, "ℓ0, ridge", "swaps, perspective relaxation",
        ranker("BestSubset"), parameter_grid(max_features=[1, 2, 3, 4, 5, 7, 10], max_nodes=[20]),
        size="max_features", rounds="",
    ),
    "fenchelrank": Method(
        "FenchelRank", "Lai et al. 2013", HINGE, "ℓ1 ball", "Frank–Wolfe", ranker("FenchelRank"),
        parameter_grid(radius=[2.0**k for k in range(9)]),
    ),
    "fsmrank": Method(
        "FSMRank", "Lai et al. 2013", HINGE, "weighted ℓ1 + similarity", "accelerated gradient",
        ranker("FSMRank"), _FSM,
    ),
    "minbatsrank": Method(
        "MinBatSRank", "Cheng et al. 2018", HINGE, "ℓ1", "FTRL-proximal",
        ranker("MinBatSRank"), _MINBAT, rounds="n_epochs", n_seeds=5,
    ),
    "ranksvm-l1": _ranksvm("RankSVM-ℓ1", "ℓ1", "l1", "proximal Newton or FISTA", warm=True),
    "ranksvm-log": _ranksvm("RankSVM-log", "log", "log", _REWEIGHTED),
    "ranksvm-mcp": _ranksvm("RankSVM-MCP", "MCP", "mcp", _REWEIGHTED),
    "ranksvm-l0.5": _ranksvm("RankSVM-ℓ0.5", "ℓ0.5", "lp", _REWEIGHTED),
    "ranksvm-scad": _ranksvm("RankSVM-SCAD", "SCAD", "scad", _REWEIGHTED),
    "sparselistmle": Method(
        "Sparse CS-ListMLE", "Zhou et al.", "cost-sensitive ListMLE", "ℓ1", "proximal gradient",
        ranker("SparseListMLE"), parameter_grid(alpha=decades(-1, -7)),
    ),
    "ranksvm": Method(
        "RankSVM-Primal", "Chapelle and Keerthi 2010", HINGE, "ℓ2", "truncated Newton",
        ranker("RankSVM"), _MEAN_CS,
    ),
    "ranksvmstruct": Method(
        "RankSVM-Struct", "Joachims 2006", "hinge", "ℓ2", "1-slack cutting plane",
        ranker("RankSVMStruct"), _CS,
    ),
    "csranksvm": Method(
        "CS-RankSVM", "Cao et al. 2006", "weighted squared hinge", "ℓ2", "truncated Newton",
        ranker("CSRankSVM"), _MEAN_CS,
    ),
    "rankrls": Method(
        "RankRLS", "Pahikkala et al. 2009", "squared differences", "ℓ2", "closed form", ranker("RankRLS"),
        parameter_grid(alpha=decades(0, -5)), rounds="",
    ),
    "tgrank": Method(
        "TGRank", "Langford et al. 2009", HINGE, "ℓ1", "truncated gradient", ranker("TGRank"), _FEW_ALPHAS
    ),
    "rsrank": Method(
        "RSRank", "Sun et al. 2009", "modified Huber weighted by NDCG", "ℓ1", "proximal gradient in rounds",
        ranker("RSRank"), _FEW_ALPHAS, rounds="",
    ),
    "proxrank": Method(
        "SparseRank (Lai et al.)", "Lai et al.", HINGE, "ℓ1", "proximal gradient, adaptive L",
        ranker("ProxRank"), _FEW_ALPHAS,
    ),
    "listnet": Method(
        "ListNet", "Cao et al. 2007", "top-one cross entropy", "–", "gradient descent", ranker("ListNet"),
        parameter_grid(max_iter=[3, 10, 30, 100, 300, 1000]),
    ),
    "cslistmle": Method(
        "CS-ListMLE", "Lu et al. 2010", "cost-sensitive ListMLE", "–", "gradient descent", ranker("CSListMLE")
    ),
    "adarank-ndcg": Method(
        "AdaRank-NDCG", "Xu and Li 2007", "exponential in NDCG@10", "–", "boosting of features",
        ranker("AdaRank"), _ROUNDS, rounds="n_rounds", aliases=("adarank",),
    ),
    "adarank-map": Method(
        "AdaRank-MAP", "Xu and Li 2007", "exponential in AP", "–", "boosting of features",
        ranker("AdaRank", metric="map"), _ROUNDS, rounds="n_rounds",
    ),
    "rankboost": Method(
        "RankBoost", "Freund et al. 2003", "pairwise exponential", "–", "boosting of thresholds",
        ranker("RankBoost"), parameter_grid(n_rounds=[50, 100, 200, 300]), rounds="n_rounds",
    ),
    "svmmap": Method(
        "SVM-MAP", "Yue et al. 2007", "structural hinge on AP", "ℓ2", "1-slack cutting plane",
        ranker("SVMMAP"), _CS,
    ),
    "lambdamart": Method(
        "LambdaMART", "Burges 2010; LightGBM", "lambdarank", "–", "boosted trees", ranker("LambdaMART"),
        parameter_grid(n_leaves=[7, 31], n_rounds=[50, 100, 200]), rounds="n_rounds", n_seeds=1,
    ),
    "fsrank": _selector(
        "FS-Rank", "Lai et al. 2013", "best by single-feature NDCG@10", ranker("FSRank"), "max_features"
    ),
    "gas": _selector(
        "GAS-E", "Geng et al. 2007", "greedy importance − similarity", ranker("GAS"), "max_features"
    ),
    "fsmsvm": _selector(
        "FSMSVM", "Lai et al. 2013", "largest weights of FSMRank", ranker("FSMSVM"), "max_features"
    ),
    "fbpcrank": Method(
        "FBPCRank", "forward–backward, Pearson", HINGE, "similarity of chosen features",
        "then RankSVM-Primal", ranker("FBPCRank"), parameter_grid(C=decades(0, 2)), rounds="",
    ),
    "stabilityselection": Method(
        "StabilitySelection", "Meinshausen and Bühlmann 2010", HINGE, "ℓ1 on subsampled queries",
        "then RankSVM-Primal", ranker("StabilitySelection"), parameter_grid(threshold=[0.6, 0.7, 0.8]),
        rounds="",
    ),
    "hierarchicalbem": _selector(
        "Hierarchical-BEM", "Hua et al. 2010", "best alone of each cluster of features",
        ranker("HierarchicalBEM"),
    ),
    "hierarchicaliltr": _selector(
        "Hierarchical-ILTR", "Hua et al. 2010", "largest weight of each cluster of features",
        ranker("HierarchicalILTR"),
    ),
    "rankfilter": _selector(
        "RankFilter", "Yu et al. 2009", "best by Relief on grades", ranker("RankFilter"), "max_features"
    ),
    "rankwrapper": _selector(
        "RankWrapper", "Yu et al. 2009", "best by Relief on ranks", ranker("RankWrapper"), "max_features"
    ),
    "brtree": _selector(
        "BRTree", "Pan et al. 2009; LightGBM", "backward elimination by boosted trees", ranker("BRTree"),
        "max_features",
    ),
    "bfswrapper": _selector(
        "BFS-Wrapper", "Dang and Croft 2010", "sets by best-first search, as new features",
        ranker("BFSWrapper"), n_subsets=[1, 2, 3, 5],
    ),
    "greedyrankrls": Method(
        "GreedyRankRLS", "Pahikkala et al. 2010", "squared differences", "ℓ2, greedy by left-out queries",
        "closed form", ranker("GreedyRankRLS"), parameter_grid(max_features=_SIZES, alpha=decades(0, -5)),
        size="max_features", rounds="",
    ),
}  # fmt: skip

METHOD_HINTS = dict.fromkeys(("lightgbm", "lambdarank", "xgboost", "gbdt"), "lambdamart")
"""Methods to suggest for unknown names."""


def limit_sizes(
    grid: Sequence[Mapping[str, Any]], method: Method, n_features: int
) -> Sequence[Mapping[str, Any]]:
    """Limit the numbers of features in the grid to ``n_features``, and remove duplicate points."""
    if not method.size:
        return grid
    limited = [{**point, method.size: min(point[method.size], n_features)} for point in grid]
    return [point for k, point in enumerate(limited) if point not in limited[:k]]


def thin_grid(grid: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The fast grid: at most five values if one parameter varies, at most three of each if several vary."""
    values = {name: list(dict.fromkeys(point[name] for point in grid)) for name in grid[0]}
    most = 5 if sum(len(v) > 1 for v in values.values()) < 2 else 3
    thin = {name: [v[k] for k in _even_indices(len(v), most)] for name, v in values.items()}
    return [point for point in grid if all(point[name] in thin[name] for name in point)]


def _even_indices(count: int, most: int) -> list[int]:
    return sorted({round(k) for k in np.linspace(0, count - 1, min(count, most))})


GRIDS: dict[str, Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]]] = {
    "paper": list,
    "fast": thin_grid,
}
