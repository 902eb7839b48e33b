"""The regularisation path: sparse rankers for a grid of α, each with its duality gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve._util.files import to_plain
from ranksieve.data.budget import Budget, Features, Signs
from ranksieve.data.dataset import Dataset, QueryWeight, drop_zero_weight, query_weights
from ranksieve.data.feature_matrix import PassCounter
from ranksieve.data.parts import RemoteData
from ranksieve.data.steps import StepColumns, features_in_use
from ranksieve.errors import DataError, ParameterError, short_list
from ranksieve.gpu import check_device
from ranksieve.gpu.matrix import DeviceMatrix, on_device
from ranksieve.losses import Loss
from ranksieve.objective import Objective, Point, make_objective
from ranksieve.penalties import L1, PENALTIES, SlopedPenalty
from ranksieve.prepare import NO_PREPARATION, Preparation
from ranksieve.prepare.missing import RANKER_POLICIES, check_policy
from ranksieve.prepare.steps import CURVES, SHAPES
from ranksieve.show.formats import certificate, plural
from ranksieve.show.result import Part, Shown, Table
from ranksieve.show.upwards import Drawn
from ranksieve.solvers import Problem, ProxNewton, Result, Trace
from ranksieve.solvers.base import warn_not_converged

Progress = Callable[[int, int], None]
"""Called after each point with (points done, number of points)."""
MAX_SHOWN_POINTS = 10


@dataclass(frozen=True, eq=False, repr=False)
class SparsePath(Drawn, Shown):
    """Rankers by descending regularisation: row k of ``coefs`` minimises f + α_k·penalty up to ``gaps[k]``.

    The weights are for the features ``feature_names`` after ``preparation.apply``. For curves these are the
    step columns that ``preparation.steps`` makes, named "rating ≥ 7.5" and "rating is missing". For data on
    disk, ``passes`` counts how often they were read.
    """

    alphas: FloatArray
    coefs: FloatArray
    objectives: FloatArray
    gaps: FloatArray
    n_iter: IntArray
    converged: BoolArray
    seconds: FloatArray
    feature_names: tuple[str, ...]
    preparation: Preparation = NO_PREPARATION
    passes: PassCounter | None = None

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def n_nonzero(self) -> IntArray:
        """Number of features in use at each point: those with a weight, or a step, that is not 0."""
        steps = self.preparation.steps
        in_use = features_in_use(self.coefs, None if steps is None else steps.columns)
        return np.asarray(np.count_nonzero(in_use, axis=1))

    @property
    def relative_gaps(self) -> FloatArray:
        """Duality gaps divided by the objectives."""
        return self.gaps / self.objectives

    @property
    def trace(self) -> Trace:
        """Objective, gap, features and seconds since the start, one entry per point."""
        columns = (self.objectives, self.gaps, self.n_nonzero, self.seconds)
        return Trace(*(column.tolist() for column in columns))

    def then(self, other: SparsePath) -> SparsePath:
        """This path followed by another."""
        arrays = [name for name in vars(self) if name not in ("feature_names", "preparation", "passes")]
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in arrays
        }
        joined["seconds"][len(self) :] += self.seconds[-1]
        return replace(self, **joined)

    def _line(self) -> str:
        used = self.n_nonzero
        return (
            f"{plural(len(self), 'point')}, α {self.alphas[0]:.3g} to {self.alphas[-1]:.3g}, {used[0]} to "
            f"{plural(int(used[-1]), 'feature')}, all {certificate(float(self.relative_gaps.max()))}"
        )

    def shown(self) -> Sequence[Part]:
        """About ten points, each with the features that are new since the previous row."""
        seen, rows = np.zeros(self.coefs.shape[1], dtype=bool), []
        for k in np.unique(np.linspace(0, len(self) - 1, MAX_SHOWN_POINTS).round().astype(int)):
            used = (self.coefs[: k + 1] != 0).any(axis=0)
            new_features = [self.feature_names[j] for j in np.flatnonzero(used & ~seen)]
            seen = used
            gap, objective = f"{self.relative_gaps[k]:.1e}", f"{self.objectives[k]:.6g}"
            rows.append(
                (float(self.alphas[k]), int(self.n_nonzero[k]), objective, gap, short_list(new_features, 6))
            )
        proof = f"All {len(self)} points are {certificate(float(self.relative_gaps.max()))}."
        passes = [] if self.passes is None else [f"The data stayed on disk: {self.passes}."]
        heads = ["alpha", "features", "objective", "relative gap", "new features"]
        return [Table(heads, rows), proof, *passes]

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """The points of the path, without their weights."""
        names = ("alphas", "n_nonzero", "objectives", "relative_gaps", "n_iter", "converged")
        return {name: getattr(self, name).tolist() for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        arrays = (
            "alphas",
            "coefs",
            "objectives",
            "gaps",
            "relative_gaps",
            "n_nonzero",
            "n_iter",
            "converged",
        )
        return {
            **{name: getattr(self, name).tolist() for name in arrays},
            "features": list(self.feature_names),
            **to_plain(self.preparation.to_dict()),
        }


def sparse_path(
    data: Dataset,
    penalty: str | SlopedPenalty = "l1",
    n_alphas: int = 100,
    alphas: Sequence[float] | FloatArray | None = None,
    tol: float = 1e-6,
    *,
    l1_weights: Sequence[float] | FloatArray | None = None,
    l1_ratio: float | None = None,
    signs: Signs | None = None,
    must_have: Features = (),
    must_not: Features = (),
    min_ratio: float = 1e-3,
    max_features: int | None = None,
    loss: str | Loss = "squared_hinge",
    query_weight: QueryWeight | None = None,
    normalise: str = "none",
    missing: str = "auto",
    max_iter: int = 100,
    device: str = "cpu",
    shape: str = "linear",
    progress: Progress | None = None,
) -> SparsePath:
    """Fit min_w f(w) + α·penalty(w) along a descending grid of α, each point with its duality gap.

    f is the mean squared hinge over pairs, or another smooth loss. Unless ``alphas`` is given, the grid runs
    from the smallest α with w = 0 (except for the weights of ``must_have``) down to ``min_ratio`` times it,
    evenly in log α.

    Parameters
    ----------
    data : Dataset
    penalty : "l1", "elastic_net" or a penalty object
    n_alphas : int
        Number of grid points.
    alphas : sequence of float, optional
        The grid, in any order.
    tol : float
        Largest relative duality gap.
    l1_weights : sequence of float, optional
        One ℓ1 weight per feature; infinity excludes the feature, 0 is the same as ``must_have``.
    l1_ratio : float, optional
        Share of ℓ1 in the elastic net, above 0.
    signs : mapping of feature to sign, or one sign per feature; optional
        "+" or +1: the weight is never negative, "-" or −1: never positive, 0: either.
    must_have, must_not : names or column numbers
        Features without an ℓ1 penalty, and features that are never used.
    max_features : int, optional
        Stop the path after the first point with more than twice this number of features.
    loss : name of LOSSES or Loss
        f; it must have a Hessian, and the gaps are proofs only if it is never negative.
    query_weight : array or mapping of query id to number, optional
        One weight per query, in order of first appearance, or the weights of some; the default is 1. Weights
        of documents are part of the data.
    normalise, missing
        Scaling of features and replacement of missing values, as in :class:`ranksieve.SparseRanker`; by
        default features are not scaled, and missing values become the column mean, with a warning.
    device : "cpu" or "cuda"
        Where to fit; see docs/gpu.md. Data on a GPU are always fitted there.
    shape : "linear" or "curves"
        "curves": a step function of each feature, with at most 32 thresholds at quantiles of the training
        data and a level for missing values. The penalty is the total variation: α times the sum of all
        |steps| and |levels of missing values|. ``max_features``, ``must_have``, ``must_not`` and
        ``l1_weights`` are about features; with the sign "+" a curve never falls, with "-" it never rises. A
        value that is missing where none was in training contributes 0. Curves need one byte of memory per
        value, also for data on disk.
    """
    if not tol > 0:
        raise ParameterError("tol", tol, "must be a number > 0")
    check_device(device)
    check_shape(shape, device, data)
    weight = query_weights(query_weight, data)
    data, remaining_weight = drop_zero_weight(data, weight)
    weight = None if weight is None else remaining_weight
    raw_data = data
    preparation, data = _prepare(data, normalise, missing, weight, shape)
    objective = make_objective(on_device(data, device, raw_data), loss, weight)
    names = data.feature_names if preparation.steps is None else raw_data.feature_names
    limits = Budget.of(names, must_have=must_have, must_not=must_not, signs=signs)
    weights, limits = column_limits(limits, l1_weights, preparation)
    family = as_penalty(penalty, weights, l1_ratio, limits.signs)
    with single_threaded_blas():
        start, grid = path_grid(objective, family, n_alphas, alphas, min_ratio, max_iter)
        most = None if max_features is None else 2 * max_features
        points = solve_path(
            objective, family, grid, start, tol, most,
            columns=limits.columns, max_iter=max_iter, progress=progress,
        )  # fmt: skip
        results = [replace(result, point=None) for result in points]
    path = collect(grid[: len(results)], results, data.feature_names, preparation)
    path = replace(path, passes=getattr(objective.features, "passes", None))
    warn_of_gaps(path.converged, path.relative_gaps, tol, max_iter)
    return path


def warn_of_gaps(converged: BoolArray, relative_gaps: FloatArray, tol: float, max_iter: int) -> None:
    """Warn if a point of the path did not reach the tolerance."""
    if not converged.all():
        warn_not_converged(
            f"{np.sum(~converged)} of {len(converged)} points of the path did not reach a relative gap of "
            f"`tol={tol:g}`, the largest is {relative_gaps.max():.2g}; raise `tol` or "
            f"`max_iter={max_iter}`, or normalise the features"
        )


def path_grid(
    objective: Objective,
    family: SlopedPenalty,
    n_alphas: int,
    alphas: Sequence[float] | FloatArray | None = None,
    min_ratio: float = 1e-3,
    max_iter: int = 100,
) -> tuple[Point | None, FloatArray]:
    """(start of a path, None for w = 0; its grid of descending α)."""
    if alphas is not None:
        return None, _check_alphas(alphas)
    if not isinstance(family, L1) or family.weights is None or np.all(family.weights):
        largest = family.alpha_max(objective.gradient(objective.at_zero))
        return None, _grid(largest, n_alphas, min_ratio)
    start, largest = _unpenalised_optimum(objective, family, family.weights == 0, max_iter)
    return start, _grid(largest, n_alphas, min_ratio)


def _prepare(
    data: Dataset, normalise: str, missing: str, weight: FloatArray | None, shape: str
) -> tuple[Preparation, Dataset]:
    check_policy(missing, RANKER_POLICIES)
    if shape == CURVES:
        preparation = Preparation.learn_curves(data, normalise, missing, weight)
        return preparation, preparation.for_learning(data)
    preparation, filled = Preparation.learn_and_fill(data, normalise, missing, weight)
    return preparation, preparation.normalisation.for_learning(filled)


def check_shape(shape: str, device: str, data: Dataset) -> None:
    """Refuse unknown shapes, and curves of data that are not read by this process."""
    if shape not in SHAPES:
        raise ParameterError("shape", shape, f"must be one of {', '.join(SHAPES)}")
    if shape != CURVES:
        return
    if isinstance(data, RemoteData):
        raise ParameterError("shape", shape, "does not support distributed data; use `shape='linear'`")
    if device != "cpu" or isinstance(data.X, DeviceMatrix):
        raise ParameterError("shape", shape, "is not supported on a GPU; use `device='cpu'`, or 'linear'")


def column_limits(
    limits: Budget, l1_weights: Any, preparation: Preparation
) -> tuple[FloatArray | None, Budget]:
    """ℓ1 weights and limits of the prepared columns, from those of the features."""
    weights, steps = limits.l1_weights(l1_weights), preparation.steps
    if steps is None:
        return weights, limits
    columns = steps.columns
    return None if weights is None else columns.l1_weights(weights), limits.of_steps(columns)


def as_penalty(
    penalty: str | SlopedPenalty,
    l1_weights: Sequence[float] | FloatArray | None = None,
    l1_ratio: float | None = None,
    signs: FloatArray | None = None,
) -> SlopedPenalty:
    """The penalty with a given name, or the given penalty object."""
    weights = None if l1_weights is None else np.asarray(l1_weights, float)
    options = {"weights": weights, "l1_ratio": l1_ratio, "signs": signs}
    parameters = {key: value for key, value in options.items() if value is not None}
    if not isinstance(penalty, str):
        for name, value in parameters.items():
            advice = "set it in the penalty object instead (costs, `must_have` and `must_not` are `weights`)"
            raise ParameterError("l1_weights" if name == "weights" else name, value, advice)
        return penalty
    names = [name for name, kind in PENALTIES.items() if "slopes" in kind.offers]
    if penalty not in names:
        raise ParameterError("penalty", penalty, f"unknown; choose one of {', '.join(names)}")
    kind: Any = PENALTIES[penalty]
    for name in parameters.keys() - {field.name for field in fields(kind)}:
        reason = f"`penalty={penalty!r}` has no such parameter; leave it out"
        raise ParameterError(name, parameters[name], reason)
    return kind(**parameters)  # type: ignore[no-any-return]


START_TOL = 1e-12  # a gap of ε means an error of √ε in the weights, and so in the α at which others enter
MAX_START_ROUNDS = 30


def _grid(largest: float, n_alphas: int, min_ratio: float) -> FloatArray:
    if n_alphas < 1:
        raise ParameterError("n_alphas", n_alphas, "must be at least 1")
    if not 0 < min_ratio < 1:
        raise ParameterError("min_ratio", min_ratio, "must be between 0 and 1")
    if largest == np.inf:
        raise ParameterError(
            "alphas",
            None,
            "no strength of the penalty makes every weight zero, so there is no largest alpha; give "
            "`alphas`, or an `l1_ratio` above 0, or list unpenalised features in `must_have`",
        )
    if not largest > 0:
        raise DataError(
            None,
            None,
            "no feature distinguishes any pair of documents: every usable feature is constant within every "
            "query that has different labels, or its sign constraint contradicts the labels",
        )
    return np.asarray(largest * np.logspace(0.0, np.log10(min_ratio), n_alphas))


def _unpenalised_optimum(
    objective: Objective, family: L1, unpenalised: BoolArray, max_iter: int
) -> tuple[Point, float]:
    """The optimum over the unpenalised features, and the smallest α for which it is the optimum over all.

    With a ridge the optimum depends on α, so the two are computed alternately. If no other feature can enter,
    any α will do; the largest gradient of the unpenalised features is used.
    """
    point, alone = objective.at_zero, replace(family, weights=np.where(unpenalised, 0.0, np.inf))
    largest = float(np.max(np.abs(objective.gradient(point)[unpenalised]), initial=0.0))
    for _ in range(MAX_START_ROUNDS):
        problem = Problem(objective, alone.scaled(largest))
        point = ProxNewton(START_TOL, max_iter).solve(problem, point).point
        previous = largest
        largest = family.alpha_max(np.where(unpenalised, 0.0, objective.gradient(point))) or previous
        if abs(largest - previous) <= START_TOL * previous:
            break
    return point, largest


def _check_alphas(alphas: Sequence[float] | FloatArray) -> FloatArray:
    grid = np.sort(np.atleast_1d(np.asarray(alphas, dtype=np.float64)))[::-1]
    if grid.ndim != 1 or len(grid) == 0 or not np.isfinite(grid).all() or grid[-1] <= 0:
        raise ParameterError("alphas", alphas, "must be a list of finite numbers > 0")
    return grid


def solve_path(
    objective: Objective,
    family: SlopedPenalty,
    grid: FloatArray,
    start: FloatArray | Point | None,
    tol: float,
    most: int | None = None,
    beyond: int = 0,
    *,
    columns: StepColumns | None = None,
    max_iter: int = 100,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """Solve for each α of the grid, starting from the previous point.

    With ``most``, the path ends ``beyond`` points after the first point with more features; ``columns`` are
    the step columns of these, if any.
    """
    point: Any = objective.at_zero if start is None else start
    last = len(grid)
    for k, alpha in enumerate(grid):
        if k > last:
            break
        result = ProxNewton(tol, max_iter).solve(Problem(objective, family.scaled(float(alpha))), point)
        point = result.point
        yield result
        if progress is not None:
            progress(k + 1, len(grid))
        if most is None or last < len(grid):
            continue
        if np.count_nonzero(features_in_use(result.w[None], columns)) > most:
            last = k + beyond


def collect(
    grid: FloatArray,
    results: Sequence[Result],
    names: tuple[str, ...],
    preparation: Preparation = NO_PREPARATION,
) -> SparsePath:
    """Turn a list of results into a path."""
    return SparsePath(
        alphas=grid,
        coefs=np.array([r.w for r in results]),
        objectives=np.array([r.objective for r in results]),
        gaps=np.array([r.gap for r in results]),
        n_iter=np.array([r.n_iter for r in results]),
        converged=np.array([r.converged for r in results]),
        seconds=np.cumsum([r.trace.seconds[-1] for r in results]),
        feature_names=names,
        preparation=preparation,
    )
