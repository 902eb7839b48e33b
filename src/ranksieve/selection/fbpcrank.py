"""FBPCRank: forward and backward steps that weigh the loss against the similarity of features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve._util.messages import lookup
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.parameters import Count, NotNegative, Positive
from ranksieve.losses import LOSSES
from ranksieve.measures import similarity_measure
from ranksieve.objective import make_objective
from ranksieve.penalties.similarity import settle_definiteness
from ranksieve.selection.base import FeatureSelector
from ranksieve.selection.subsets import AlongBase, Criterion, JointMinimum, Subset

TIE = 1e-10  # values of S that differ by less than this share are equal


@dataclass(frozen=True)
class SelectionStep:
    """One accepted step: the feature that came in or went out, and S after it."""

    action: Literal["in", "out"]
    feature: int
    name: str
    objective: float


@dataclass(eq=False, repr=False)
class FBPCRank(FeatureSelector):
    """Forward–backward selection by S(F) = min_w C·L(w) + ½ wᵀA_F w, then ``base`` on the chosen features.

    A is the absolute Pearson correlation of features, so similar features pay for large weights together.
    Forward: the feature that lowers S most comes in, if S falls by more than ``eps``; else the search ends.
    Backward, after each forward step: as long as the feature whose loss hurts least raises S by less than
    ``eps``, it goes out. The search also ends with K features, or after as many forward steps as there are
    features. Of equals the earlier column comes in and the later goes out.

    Parameters
    ----------
    base : linear ranker, optional
        The ranker around which features are chosen, and which is fitted on them in the end; default
        ``RankSVM()``.
    K : int
        Most features.
    eps : float
        What a feature must be worth.
    C : float
        Weight of the loss.
    loss : "squared_hinge", "cost_sensitive_listmle" or "listnet"
        L, as a mean over pairs or queries.
    weights : "joint" or "base", optional
        The w over which S is the minimum: all weights on F, exactly, by Newton's method; or the multiples
        t·w, t ≥ 0, of the weights that ``base`` learns on F, which works around any linear ranker but fits it
        on every set that is tried. None: "base" if one is given, else "joint".
    similarity : name of SIMILARITIES or array
        A. If it is not positive semidefinite, which absolute correlations need not be, the nearest matrix
        that is takes its place.

    Attributes
    ----------
    steps_ : tuple of SelectionStep
        Features in and out, with S after each step.
    value_ : float
        S of the chosen features.
    similarity_ : array
        A as used.
    selected_, base_, coef_
        As in every selector: columns in order of choice, the fitted base, its weights in full width.

    Notes
    -----
    Both searches try features in the order of a bound on what they can change and stop where none can do
    better than the best found: the result is that of trying all.

    References
    ----------
    The algorithm is Algorithm 2 of the sparse cost-sensitive ListMLE paper, which prints both inequalities
    the other way round (it would take in features that do not help), does not say which feature to try, and
    takes absolute correlations to be positive semidefinite.
    """

    weighs_documents = True
    chooses_by_base: ClassVar[bool] = True

    steps_: tuple[SelectionStep, ...] = field(init=False)
    value_: float = field(init=False)
    similarity_: FloatArray = field(init=False)

    base: Any = None
    K: Count = 10
    eps: NotNegative = 0.005
    C: Positive = 1.0
    _: KW_ONLY
    loss: str = "squared_hinge"
    weights: str | None = None
    similarity: Any = "pearson"

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        similarity = similarity_measure(self.similarity, data.n_features)(data, query_weight)
        self.similarity_ = settle_definiteness(similarity, "project")
        criterion = self._criterion(data, query_weight)
        best, steps = forward_backward(criterion, usable, self.K, self.eps)
        self.value_ = best.value
        self.steps_ = tuple(
            SelectionStep(action, j, data.feature_names[j], value) for action, j, value in steps
        )
        return np.array(best.columns, dtype=np.int64)

    def _criterion(self, data: Dataset, query_weight: FloatArray | None) -> Criterion:
        lookup(LOSSES, self.loss, "loss")
        objective = make_objective(data, self.loss, query_weight)
        criteria: dict[str, Criterion] = {
            "joint": JointMinimum(objective, self.C, self.similarity_),
            "base": AlongBase(objective, self.C, self.similarity_, self.base, data, query_weight),
        }
        default = "joint" if self.base is None else "base"
        return lookup(criteria, self.weights or default, "weights")

    def _advice(self) -> str:
        return f"no feature lowers S by more than `eps={self.eps:g}`; lower it or raise `C={self.C:g}`"


Move = tuple[Literal["in", "out"], int, float]


def forward_backward(criterion: Criterion, usable: IntArray, K: int, eps: float) -> tuple[Subset, list[Move]]:
    """The chosen set, and every accepted step (in or out, feature, S after it)."""
    current, moves = criterion.empty, list[Move]()
    for _ in range(len(usable)):
        grown = _best_addition(criterion, current, usable)
        if grown is None or not current.value - grown.value > eps:
            break
        current = grown
        moves.append(("in", current.columns[-1], current.value))
        current = _drop_useless(criterion, current, eps, moves)
        if len(current.columns) >= K:
            break
    return current, moves


def _best_addition(criterion: Criterion, current: Subset, usable: IntArray) -> Subset | None:
    """The set with one feature more and the least S; features that cannot win any more are not tried."""
    bound, tie = criterion.most_gain(current), TIE * current.value
    others = usable[~np.isin(usable, current.columns)]
    tried, least = list[Subset](), np.inf
    for j in others[np.argsort(-bound[others], kind="stable")]:
        if current.value - least > bound[j] + tie:
            break
        tried.append(criterion.grow(current, int(j)))
        least = min(least, tried[-1].value)
    best = (subset for subset in tried if subset.value <= least + tie)
    return min(best, key=lambda subset: subset.columns[-1], default=None)


def _drop_useless(criterion: Criterion, current: Subset, eps: float, moves: list[Move]) -> Subset:
    while current.columns:
        feature, smaller = _best_removal(criterion, current, eps)
        if smaller is None:
            break
        current = smaller
        moves.append(("out", feature, current.value))
    return current


def _best_removal(criterion: Criterion, current: Subset, eps: float) -> tuple[int, Subset | None]:
    """The feature without which S is least, and the set without it; None if S then rises by eps or more."""
    bound, tie = criterion.least_rise(current), TIE * current.value
    tried, limit = list[tuple[int, Subset]](), current.value + eps
    for i in np.argsort(bound, kind="stable"):
        if current.value + bound[i] > limit + tie:
            break
        tried.append((current.columns[i], criterion.shrink(current, current.columns[i])))
        limit = min(limit, tried[-1][1].value)
    best = (pair for pair in tried if pair[1].value <= limit + tie and pair[1].value - current.value < eps)
    return max(best, key=lambda pair: pair[0], default=(-1, None))
