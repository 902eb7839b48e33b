"""MinBatSRank: sparse online ranking, one query at a time, by FTRL-proximal."""

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
from ranksieve.solvers.ftrl import FtrlPasses, FtrlState

FORMAT, FORMAT_VERSION = "ranksieve-minbatsrank-state", 1


@dataclass(eq=False, repr=False)
class MinBatSRank(Ranker):
    """Online min_w Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² + λ‖w‖₁, one update per batch of pairs of a query.

    With g the gradient of the **sum** of squared hinges over the batch, the update of each feature is::

        n ← n + g²,   σ = (√(ρ + n) − √(ρ + n_old))/γ,   v ← v + g − σ·w,
        w = 0 if |v| ≤ λ, else −γ(v − λ·sign v)/√(ρ + n)

    A feature gets a nonzero weight when its gradient, summed over all pairs seen, exceeds λ. So λ is not the
    ``alpha`` of the other methods: it corresponds to alpha_ = λ/(n_epochs·p) on the mean loss over the p
    pairs, and must grow with the data and the number of epochs. λ does not shrink the features in use either:
    with more epochs, their weights approach those without a penalty.

    Parameters
    ----------
    l1 : float
        λ. The paper chooses it among 2¹⁵, 2¹⁴, …, 2⁻² by NDCG@10 on validation data.
    rate : float
        γ. The paper chooses it among 2¹, 2⁰, …, 2⁻¹⁰.
    smoothing : float
        ρ ≥ 0; keeps the first steps from being too long.
    n_epochs : int
        Number of passes over the data, which the paper does not state. The default is 1, as usual for an
        online method: λ is compared with a sum over all passes, so more passes need a larger λ than the
        paper's.
    batch_pairs : int, optional
        Split the pairs of a query, ordered by the row of the more relevant and then of the less relevant
        document, into consecutive batches of at most this many pairs, with an update after each. An epoch
        then visits every pair, and the order of a query's rows matters. Default: all pairs of a query in one
        batch, in O(n log n).
    feature_wise : bool
        False gives the paper's "Nonfea" variant: one rate γ/√τ for all features in batch τ, that is
        σ = (√τ − √(τ − 1))/γ. The paper uses γ = 1 there.
    shuffle : bool
        Shuffle the queries in each epoch; otherwise they are in order of first appearance.
    random_state : int
        Seed of the shuffles: that of epoch e, counted over all fits so far, is (random_state, e).
    warm_start : bool
        ``fit`` continues from the state of the previous ``fit`` or ``partial_fit``.

    Attributes
    ----------
    alpha_ : float
        λ/(pairs seen): the equivalent ℓ1 weight on the mean loss.
    objective_, gap_, trace_
        The mean squared hinge + alpha_·‖w‖₁ at ``coef_``, its duality gap, and both for the start and after
        each epoch. After ``partial_fit`` and ``fit_file``, which do not keep the data, they are NaN and the
        trace is empty.
    n_iter_, n_batches_ : int
        Number of passes (a call of ``partial_fit`` is one) and of batches so far.

    References
    ----------
    F. Cheng, D. Wang, L. Zhang, Y. Su, J. Qiu, Y. Suo: A Mini-Batch Stochastic Gradient Method for Sparse
    Learning to Rank, IJICIC 14(4), 2018. In its Algorithm 2, line 4 must accumulate squared gradients, and
    η₀ = 0 must be 1/η₀ = 0; the "Nonfea" σ of §4.2.3 is printed with the roots in the denominators.
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
        return {
            **self._state_attributes(state),
            **self._solution(problem, replace(result, n_iter=state.n_passes)),
        }

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        query_weight: QueryWeight | None = None,
        document_weight: Any = None,
    ) -> Self:
        """Update the model with a chunk of complete queries: one pass, in order of first appearance.

        A sequence of chunks gives exactly the result of ``fit`` with ``n_epochs=1, shuffle=False`` on all of
        them. A chunk without pairs changes nothing. Normalisation and replacements of missing values are
        fitted to the first chunk: with ``missing="auto"``, if the first chunk has no missing values, later
        ones must have none either.
        """
        check_parameters(self)
        with single_threaded_blas():
            origin, data = self._prepare_chunk(X, y, qid, document_weight)
            state = self._previous_state(data.feature_names, True)
            FtrlPasses.of(data, query_weights(query_weight, data)).run(self._rule(), state)
            state.n_passes += 1
        self._set(origin, self._state_attributes(state))
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
        """Fit on a LETOR file of any size, read ``n_epochs`` times in bounded memory.

        Queries are visited in file order; the result is exactly that of ``fit`` with ``shuffle=False``.
        Without ``n_features``, the number of features is the largest index in the file; it need not be known
        in advance, because the weight of a feature is 0 before it first occurs.
        ``missing`` defaults to the ranker's parameter; "auto" rejects missing values, because the means are
        not known while the file is read. The other arguments are those of
        :func:`ranksieve.io.stream.stream_letor`.
        """
        check_parameters(self)
        policy = missing or ("error" if self.missing == "auto" else self.missing)
        if self.normalise != "none":
            reason = "fit_file cannot normalise; normalise the file first, or use fit"
            raise ParameterError("normalise", self.normalise, reason)
        if os.fspath(path) == STANDARD_INPUT and self.n_epochs > 1:
            reason = "standard input can be read only once; use `n_epochs=1` or a file"
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
                    FtrlPasses.of(data).run(rule, state)
                state.n_passes += 1
                report(epoch, state.w.copy(), np.nan, np.nan)
        if state.n_pairs == 0:
            raise DataError(None, None, NO_PAIRS)
        all_names = last_names if len(last_names) == len(state.w) else numbered_names(len(state.w))
        preparation = Preparation(MissingPolicy("error" if policy == "keep" else policy))
        names_in = np.array(all_names, dtype=object)
        self._set(Origin(len(all_names), names_in, preparation), self._state_attributes(state))
        return self

    def save_state(self, path: PathLike) -> None:
        """Write parameters and state as JSON, atomically; a fit continued from it gives identical results."""
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
        """Load parameters and state from a file written by :meth:`save_state`."""
        parameters, names, preparation, state = _read_state(path)
        check_parameters(clone(self).set_params(**parameters))
        self.set_params(**parameters)
        n_features = len(state.w) - len(preparation.missing.indicators)
        names_in = None if names is None else np.array(names, dtype=object)
        self._set(Origin(n_features, names_in, preparation), self._state_attributes(state))
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
        """Copy of the current state in the order of ``names``; a new one if not ``wanted`` or impossible."""
        state: FtrlState | None = getattr(self, "_state", None)
        if not wanted or state is None:
            return FtrlState.zeros(len(names))
        index = {name: j for j, name in enumerate(self.coef_names_)}
        if index.keys() != set(names):
            return FtrlState.zeros(len(names))
        return state.ordered([index[name] for name in names])

    def _previous_width(self) -> int:
        """Number of features of a warm start, if they have the names of LETOR text: f1, f2, …; else 0."""
        names = self.coef_names_ if self.warm_start and hasattr(self, "_state") else []
        return len(names) if set(names) == set(numbered_names(len(names))) else 0

    def _prepare_chunk(self, X: Any, y: Any, qid: Any, document_weight: Any) -> tuple[Origin, Dataset]:
        """Prepare a chunk; from the second on, it must have the features of the first."""
        is_dataset_only = y is None and qid is None and document_weight is None
        if not hasattr(self, "_state") or (isinstance(X, Dataset) and not is_dataset_only):
            data, names, scaled = self._checked_data(X, y, qid, document_weight)
            preparation, prepared = self._prepare(data)
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

    def _state_attributes(self, state: FtrlState) -> Attributes:
        """Fitted attributes from the state alone, without the data."""
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
        encoded = Path(path).read_bytes()
    try:
        content = decode_json(encoded.decode())
        if content["format"] != FORMAT or content["format_version"] != FORMAT_VERSION:
            raise DataError(None, None, f"expected format {FORMAT}, version {FORMAT_VERSION}")
        state, names = FtrlState.from_dict(content["state"]), content["feature_names"]
        preparation = Preparation.from_dict(content["preparation"])
        n_features = len(state.w) - len(preparation.missing.indicators)
        if names is not None and len(names) != n_features:
            raise DataError(None, None, f"{len(names)} names for {n_features} features")
        return dict(content["parameters"]), names, preparation, state
    except (KeyError, TypeError, ValueError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else error
        raise DataError(path, None, f"not a state written by save_state ({reason})") from None
