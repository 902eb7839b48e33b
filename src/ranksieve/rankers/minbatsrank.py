"""MinBatSRank: sparse ranking from one query at a time, by FTRL-proximal."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray, PathLike
from ranksieve._util.files import atomic_write, decode_json
from ranksieve.data.dataset import Dataset, QueryWeight, check_finite, query_weights
from ranksieve.data.inputs import numbered_names
from ranksieve.errors import DataError, ParameterError, warn_caller
from ranksieve.io.stream import STREAM_BYTES, stream_letor
from ranksieve.io.text_files import STANDARD_INPUT, plain_file_errors
from ranksieve.kernels.ftrl import Rule
from ranksieve.losses.base import NO_PAIRS
from ranksieve.objective import make_objective
from ranksieve.penalties import L1
from ranksieve.prepare import MissingPolicy, Preparation
from ranksieve.rankers.base import ONE_QUERY, Attributes, Origin, Ranker, Task, as_dataset
from ranksieve.rankers.parameters import Count, NotNegative, Positive, Seed, check_parameters
from ranksieve.solvers import Callback, Ftrl, Problem, Trace
from ranksieve.solvers.ftrl import FtrlState, Passes

FORMAT, FORMAT_VERSION = "ranksieve-minbatsrank-state", 1


@dataclass(eq=False, repr=False)
class MinBatSRank(Ranker):
    """Online min_w Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² + λ‖w‖₁, one update per batch of pairs of a query.

    With g the gradient of the batch's **sum** of squared hinges, each feature takes the step::

        n ← n + g²,   σ = (√(ρ + n) − √(ρ + n_old))/γ,   v ← v + g − σ·w,
        w = 0 if |v| ≤ λ, else −γ(v − λ·sign v)/√(ρ + n)

    A feature comes in when its gradient, summed over all pairs seen, exceeds λ. So λ is not the ``alpha`` of
    the other methods: it compares with alpha_ = λ/(n_epochs·p) on the mean loss over the p pairs, and must
    grow with the data and the passes. Nor does λ hold back a feature that is in: the more passes, the nearer
    its weight comes to what it would be without any penalty.

    Parameters
    ----------
    l1 : float
        λ. The paper chooses it among 2¹⁵, 2¹⁴, …, 2⁻² by NDCG@10 on validation data.
    rate : float
        γ. The paper chooses it among 2¹, 2⁰, …, 2⁻¹⁰.
    smoothing : float
        ρ ≥ 0; keeps the first steps from being too long.
    n_epochs : int
        Passes over the data. The paper does not say how many it made. One, as an online method makes: λ is
        compared with a sum over all passes, so more of them would need other λ than the paper's.
    batch_pairs : int, optional
        Cut the pairs of a query, ordered by upper and then by lower row, into consecutive batches of at most
        this many; the scores follow after each. An epoch then visits every pair, and the order of a query's
        rows matters. Default: all pairs of a query in one batch, in O(n log n).
    feature_wise : bool
        False gives the paper's "Nonfea" variant: one rate γ/√τ for all features in batch τ, that is
        σ = (√τ − √(τ − 1))/γ. The paper's own has γ = 1.
    shuffle : bool
        Take the queries in a new order each epoch; else in order of first appearance.
    random_state : int
        Seed of these orders: epoch e of all passes so far is drawn from (random_state, e).
    warm_start : bool
        Let ``fit`` continue from the state of the previous ``fit`` or ``partial_fit``.

    Attributes
    ----------
    alpha_ : float
        λ/(pairs seen), the ℓ1 weight on the mean loss that λ stands for.
    objective_, gap_, trace_
        The mean squared hinge + alpha_·‖w‖₁ and its duality gap at ``coef_``: a bound on how far the passes
        ended from that optimum; one entry an epoch, after that of the start. NaN, and the trace empty, after
        ``partial_fit`` and ``fit_file``, which do not hold the data.
    n_iter_, n_batches_ : int
        Passes (calls of ``partial_fit`` count as one) and batches so far.

    References
    ----------
    F. Cheng, D. Wang, L. Zhang, Y. Su, J. Qiu, Y. Suo: A Mini-Batch Stochastic Gradient Method for Sparse
    Learning to Rank, IJICIC 14(4), 2018. Line 4 of its Algorithm 2 means that squared gradients are
    accumulated; η₀ = 0 there means 1/η₀ = 0; the "Nonfea" σ of §4.2.3 is printed with the roots in the
    denominators.
    """

    __metadata_request__partial_fit: ClassVar[dict[str, Any]] = {"qid": "groups", "document_weight": True}

    _state: FtrlState = field(init=False)

    l1: NotNegative = 64.0
    rate: Positive = 0.0625
    _: KW_ONLY
    smoothing: NotNegative = 1.0
    n_epochs: Count = 1
    batch_pairs: Count | None = None
    feature_wise: bool = True
    shuffle: bool = True
    random_state: Seed = 0
    warm_start: bool = False

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight")

    def _fit(self, task: Task) -> Attributes:
        data = task.data
        objective = make_objective(data, "squared_hinge", task.query_weight)
        state = self._previous_state(data.feature_names, self.warm_start)
        alpha = self.l1 / (state.n_pairs + self.n_epochs * objective.loss.normaliser)
        random_state = self.random_state if self.shuffle else None
        problem = Problem(objective, L1(alpha))
        solver = Ftrl(max_iter=self.n_epochs, rule=self._rule(), random_state=random_state)
        result = solver.solve(problem, state, task.callback)
        return {**self._of_state(state), **self._solution(problem, replace(result, n_iter=state.n_passes))}

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        query_weight: QueryWeight | None = None,
        document_weight: Any = None,
    ) -> Self:
        """Learn from some more whole queries: one pass, in order of first appearance.

        Chunks learned one after another give the bits of ``fit`` with ``n_epochs=1, shuffle=False`` on all of
        them. A chunk without a pair changes nothing. What ``normalise`` and ``missing`` have to know of the
        data, they learn from the first chunk: with ``missing="auto"`` and nothing missing there, a later
        chunk with missing values is refused.
        """
        check_parameters(self)
        with single_threaded_blas():
            origin, data = self._chunk(X, y, qid, document_weight)
            state = self._previous_state(data.feature_names, True)
            Passes.of(data, query_weights(query_weight, data)).run(self._rule(), state)
            state.n_passes += 1
        self._set(origin, self._of_state(state))
        return self

    def fit_file(
        self,
        path: PathLike,
        *,
        n_features: int | None = None,
        missing: str | None = None,
        sparse: bool = False,
        names: PathLike | Sequence[str] | None = None,
        chunk_bytes: int = STREAM_BYTES,
        callback: Callback | None = None,
    ) -> Self:
        """Learn from a LETOR file of any size, read ``n_epochs`` times in bounded memory.

        Queries come in the order of the file each time: the bits are those of ``fit`` with ``shuffle=False``.
        Without ``n_features`` there are as many as the largest index of the file, which need not be known
        from the start: a feature's weight stays 0 until it comes.
        ``missing`` is by default the ranker's own, where "auto" refuses missing values: their means are not
        known while the file is read. The other arguments are those of
        :func:`ranksieve.io.stream.stream_letor`.
        """
        check_parameters(self)
        policy = missing or ("error" if self.missing == "auto" else self.missing)
        if self.normalise != "none":
            reason = "fit_file cannot normalise; normalise the file first, or use fit"
            raise ParameterError("normalise", self.normalise, reason)
        if os.fspath(path) == STANDARD_INPUT and self.n_epochs > 1:
            reason = "standard input can be read only once; give `n_epochs=1` or a file"
            raise ParameterError("n_epochs", self.n_epochs, reason)
        width = self._previous_width() if n_features is None else n_features
        rule, state = self._rule(), self._previous_state(numbered_names(width), self.warm_start)
        report = callback or (lambda *_: None)
        report(0, state.w.copy(), np.nan, np.nan)
        last_names: tuple[str, ...] = ()
        with single_threaded_blas():
            for epoch in range(1, self.n_epochs + 1):
                for data in stream_letor(
                    path,
                    n_features=n_features,
                    missing=policy,
                    sparse=sparse,
                    names=names,
                    chunk_bytes=chunk_bytes,
                ):
                    check_finite(data)
                    last_names = data.feature_names
                    state = state.widened(data.n_features)
                    Passes.of(data).run(rule, state)
                state.n_passes += 1
                report(epoch, state.w.copy(), np.nan, np.nan)
        if state.n_pairs == 0:
            raise DataError(None, None, NO_PAIRS)
        all_names = last_names if len(last_names) == len(state.w) else numbered_names(len(state.w))
        preparation = Preparation(MissingPolicy("error" if policy == "keep" else policy))
        names_in = np.array(all_names, dtype=object)
        self._set(Origin(len(all_names), names_in, preparation), self._of_state(state))
        return self

    def save_state(self, path: PathLike) -> None:
        """Write parameters and state as JSON, atomically; learning can go on from there to the same bits."""
        check_is_fitted(self, "coef_")
        names = getattr(self, "feature_names_in_", None)
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "parameters": self.get_params(deep=False),
            "feature_names": None if names is None else [str(name) for name in names],
            "preparation": self.preparation_.to_dict(),
            "state": self._state.to_dict(),
        }
        with atomic_write(path) as file:
            json.dump(content, file, allow_nan=False, default=lambda number: number.item())

    def load_state(self, path: PathLike) -> Self:
        """Take parameters and state from a file of :meth:`save_state`."""
        parameters, names, preparation, state = _read_state(path)
        check_parameters(clone(self).set_params(**parameters))
        self.set_params(**parameters)
        n_features = len(state.w) - len(preparation.missing.indicators)
        names_in = None if names is None else np.array(names, dtype=object)
        self._set(Origin(n_features, names_in, preparation), self._of_state(state))
        return self

    def _rule(self) -> Rule:
        return Rule(
            float(self.l1),
            float(self.rate),
            float(self.smoothing),
            bool(self.feature_wise),
            int(self.batch_pairs or 0),
        )

    def _previous_state(self, names: Sequence[str], wanted: bool) -> FtrlState:
        """A copy of the state so far, found by the names of its features, or a fresh one."""
        state: FtrlState | None = getattr(self, "_state", None)
        if not wanted or state is None:
            return FtrlState.zeros(len(names))
        place = {name: j for j, name in enumerate(self.coef_names_)}
        if place.keys() != set(names):
            return FtrlState.zeros(len(names))
        return state.ordered([place[name] for name in names])

    def _previous_width(self) -> int:
        """How many features a warm start goes on with, if they are called as those of LETOR text are."""
        names = self.coef_names_ if self.warm_start and hasattr(self, "_state") else []
        return len(names) if set(names) == set(numbered_names(len(names))) else 0

    def _chunk(self, X: Any, y: Any, qid: Any, document_weight: Any) -> tuple[Origin, Dataset]:
        """Prepared data; from the second chunk on they must have the first one's features."""
        alone = y is None and qid is None and document_weight is None
        if not hasattr(self, "_state") or (isinstance(X, Dataset) and not alone):
            data, names, scaled = self._checked_data(X, y, qid, document_weight)
            preparation, prepared = self._prepared(data)
            has_qid = isinstance(X, Dataset) or qid is not None
            return Origin(data.n_features, names, preparation, {}, scaled, has_qid), prepared
        if isinstance(X, Dataset):
            data = self._in_training_order(X)
        else:
            matrix = self._checked_features(X)
            if qid is None:
                warn_caller(ONE_QUERY.format(n=matrix.shape[0]))
            data = as_dataset(matrix, y, qid, self._origin.names, document_weight)
        return replace(self._origin, fingerprints={}), self.preparation_.for_learning(data)

    def _of_state(self, state: FtrlState) -> Attributes:
        """The fitted attributes of a state whose data are gone."""
        return {
            "_state": state,
            "n_batches_": state.n_batches,
            "alpha_": self.l1 / state.n_pairs if state.n_pairs else np.inf,
            "coef_": state.w.copy(),
            "objective_": np.nan,
            "gap_": np.nan,
            "n_iter_": state.n_passes,
            "converged_": False,
            "trace_": Trace(),
        }

    def _certificate(self) -> dict[str, Any]:
        return {**super()._certificate(), "alpha": float(self.alpha_)}

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        return Problem(make_objective(data, "squared_hinge", query_weight), L1(certificate["alpha"]))


def _read_state(path: PathLike) -> tuple[dict[str, Any], list[str] | None, Preparation, FtrlState]:
    with plain_file_errors(path):
        written = Path(path).read_bytes()
    try:
        content = decode_json(written.decode())
        if content["format"] != FORMAT or content["format_version"] != FORMAT_VERSION:
            raise DataError(None, None, f"its format is not {FORMAT}, version {FORMAT_VERSION}")
        state, names = FtrlState.from_dict(content["state"]), content["feature_names"]
        preparation = Preparation.from_dict(content["preparation"])
        n_features = len(state.w) - len(preparation.missing.indicators)
        if names is not None and len(names) != n_features:
            raise DataError(None, None, f"{len(names)} names for {n_features} features")
        return dict(content["parameters"]), names, preparation, state
    except (KeyError, TypeError, ValueError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else error
        raise DataError(path, None, f"not a state that save_state wrote ({reason})") from None
