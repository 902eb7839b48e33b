"""Missing values: refuse them, keep them, or replace them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ranksieve._types import FloatArray, Matrix
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import column_blocks, first_place, own_copy, replace_missing, stored_values
from ranksieve.data.queries import Queries

Fill = Callable[[FloatArray, Queries], FloatArray]


def _zero(column: FloatArray, queries: Queries) -> FloatArray:
    return np.zeros(len(column))


def _query_min(column: FloatArray, queries: Queries) -> FloatArray:
    """The least present value of the row's query, 0 if it has none."""
    minima = np.fmin.reduceat(queries.group(column), queries.offsets[:-1])
    return queries.restore(np.repeat(np.nan_to_num(minima, nan=0.0), queries.sizes))


def _column_mean(column: FloatArray, queries: Queries) -> FloatArray:
    """The mean of the present values, 0 if there are none."""
    present = column[~np.isnan(column)]
    return np.full(len(column), present.mean() if len(present) else 0.0)


FILLS: dict[str, Fill] = {"zero": _zero, "query_min": _query_min, "column_mean": _column_mean}
MISSING_POLICIES = ("error", *FILLS, "keep")
OTHER_POLICIES = "choose missing=" + ", ".join(f'"{name}"' for name in FILLS) + ' or "keep"'


def check_policy(policy: str) -> None:
    """Refuse a policy that is not in the table."""
    if policy not in MISSING_POLICIES:
        raise ValueError(f"missing={policy!r} is unknown; choose one of {', '.join(MISSING_POLICIES)}")


@dataclass(frozen=True)
class MissingPolicy:
    """What replaces a missing feature, with what it has to remember of the training data.

    "zero" puts 0, "query_min" the feature's least value over the documents of the query that are scored
    together, "column_mean" the mean of the present training values: ``means``, one for each of ``features``
    (without them the mean of the data at hand). "error" refuses missing values and "keep" leaves them.
    """

    policy: str
    features: tuple[str, ...] = ()
    means: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_policy(self.policy)
        object.__setattr__(self, "features", tuple(str(name) for name in self.features))
        object.__setattr__(self, "means", tuple(float(mean) for mean in self.means))
        if len(self.means) != len(self.features) or not np.isfinite(self.means).all():
            raise ValueError(
                f"missing={self.policy!r} needs one finite mean per feature, got {len(self.means)} for "
                f"{len(self.features)} features"
            )

    @property
    def fills(self) -> bool:
        """Whether it replaces missing values."""
        return self.policy in FILLS

    @property
    def learns(self) -> bool:
        """Whether it remembers something of the training data."""
        return self.policy == "column_mean"

    @property
    def per_query(self) -> bool:
        """Whether it needs the query of each row."""
        return self.policy == "query_min"

    def fill(self, X: Matrix, queries: Queries) -> None:
        """Replace the NaNs of a matrix that nobody else holds, whose columns are ``features`` if any."""
        if self.means:
            replace_missing(X, lambda j, column: np.full(len(column), self.means[j]))
            return
        value_of = FILLS[self.policy]
        replace_missing(X, lambda j, column: value_of(column, queries))

    def apply(self, data: Dataset) -> Dataset:
        """The data with missing values replaced, refused ("error") or kept."""
        if self.policy == "keep" or not has_missing(data.X):
            return data
        if self.policy == "error":
            _refuse(data)
        if self.features:
            check_same_features(self.features, data, "missing values")
        X = own_copy(data.X)
        self.fill(X, data.queries)
        return data.replace_features(X)

    def of(self, features: Sequence[str]) -> MissingPolicy:
        """The policy for some of the features, in the order given."""
        if not self.features:
            return self
        mean = dict(zip(self.features, self.means, strict=True))
        return MissingPolicy(self.policy, tuple(features), tuple(mean[name] for name in features))


KEPT = MissingPolicy("keep")


def learn_missing(data: Dataset, policy: str, row_weight: FloatArray | None = None) -> MissingPolicy:
    """A policy with what it has to remember: the means of the present values, 0 if there are none.

    ``row_weight`` says as how many documents each counts (1 without).
    """
    stateless = MissingPolicy(policy)
    if not stateless.learns:
        return stateless
    weight = np.ones(data.n_docs) if row_weight is None else row_weight
    means = np.concatenate([_present_means(block, weight) for _, block in column_blocks(data.X)])
    return MissingPolicy(policy, data.feature_names, tuple(means.tolist()))


def _present_means(columns: FloatArray, weight: FloatArray) -> FloatArray:
    present = ~np.isnan(columns)
    count = weight @ present
    total = np.sum(columns * weight[:, None], axis=0, where=present)
    return np.asarray(np.divide(total, count, out=np.zeros_like(total), where=count > 0))


def check_same_features(learned: Sequence[str], data: Dataset, what: str) -> None:
    """Refuse data whose columns are not those that something was learned on."""
    if tuple(learned) != data.feature_names:
        raise ValueError(
            f"the rule for {what} was learned on {len(learned)} features ({', '.join(learned[:5])} …) but "
            f"the data have {data.n_features} ({', '.join(data.feature_names[:5])} …); give the same columns"
        )


def fill_missing(dataset: Dataset, policy: str) -> Dataset:
    """Replace NaN features.

    Policies: ``"error"`` refuses them, ``"zero"`` puts 0, ``"query_min"`` the feature's minimum over the
    query's present values, ``"column_mean"`` its mean over all present values (both 0 where none is
    present), ``"keep"`` leaves NaN. What a sparse matrix does not store is present and 0.
    """
    return MissingPolicy(policy).apply(dataset)


def has_missing(X: Matrix) -> bool:
    """Whether any value is NaN."""
    return bool(np.isnan(np.min(stored_values(X), initial=np.inf)))


def _refuse(dataset: Dataset) -> None:
    row, column = first_place(dataset.X, np.isnan) or (0, 0)
    raise ValueError(
        f"feature {dataset.feature_names[column]} of row {row} (query {dataset.qid[row]}) is missing; "
        f"{OTHER_POLICIES}"
    )
