"""Preparation of features: missing values are replaced, then all are normalised; the model keeps how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset, check_finite
from ranksieve.data.parts import changed
from ranksieve.data.queries import Queries
from ranksieve.prepare.missing import KEPT, MissingPolicy, learn_missing
from ranksieve.prepare.scaling import NOT_NORMALISED, Normalisation, check_scales, learn_normalisation

__all__ = ["KEPT", "NOT_NORMALISED", "UNPREPARED", "MissingPolicy", "Normalisation", "Preparation"]


@dataclass(frozen=True)
class Preparation:
    """What happens to features before they are weighted: first ``missing``, then ``normalisation``.

    Both hold what they learned from the training data. The default leaves features as they are.
    """

    missing: MissingPolicy = KEPT
    normalisation: Normalisation = NOT_NORMALISED

    @classmethod
    def learn(
        cls,
        data: Dataset,
        normalise: str = "none",
        missing: str = "auto",
        query_weight: FloatArray | None = None,
    ) -> Preparation:
        """Learn from the training data what the kind of normalisation and the missing policy need.

        A row counts as often as its document's weight times ``query_weight`` of its query says (each 1
        without).
        """
        return cls.learn_and_fill(data, normalise, missing, query_weight)[0]

    @classmethod
    def learn_and_fill(
        cls, data: Dataset, normalise: str, missing: str, query_weight: FloatArray | None = None
    ) -> tuple[Preparation, Dataset]:
        """What :meth:`learn` gives, and the data without missing values, which it needed on the way."""
        filling = cls(learn_missing(data, missing, query_weight))
        filled = filling.filled(data)
        check_scales(filled)
        return cls(filling.missing, learn_normalisation(filled, normalise, query_weight)), filled

    @property
    def fills(self) -> bool:
        """Whether it replaces missing values."""
        return self.missing.fills

    @property
    def changes_features(self) -> bool:
        """Whether it does anything at all."""
        return self.fills or self.normalisation.kind != "none"

    @property
    def per_query(self) -> bool:
        """Whether it needs the query of each row, and all documents of a query together."""
        return self.missing.per_query or self.normalisation.per_query

    def filled(self, data: Dataset) -> Dataset:
        """The data without missing values; those that stay are refused, unless the policy is "keep"."""
        filled = changed(data, self.missing.apply) if self.fills else data
        if self.missing.policy != "keep":
            check_finite(filled)
        return filled

    def apply(self, data: Dataset) -> Dataset:
        """The data as the weights see them."""
        return self.normalisation.apply(self.filled(data))

    def for_learning(self, data: Dataset) -> Dataset:
        """Data with the score differences of :meth:`apply`; a sparse matrix stays sparse if it can."""
        return self.normalisation.for_learning(self.filled(data))

    def transform(self, values: FloatArray, queries: Queries) -> FloatArray:
        """Prepared values of a dense float64 array of the caller's own, which may be written to."""
        if self.fills:
            self.missing.fill(values, queries)
        return self.normalisation.transform(values, queries)

    def of(self, features: Sequence[str]) -> Preparation:
        """The preparation of some of the features, in the order given."""
        return Preparation(self.missing.of(features), self.normalisation.of(features))

    def updated(self, part: Preparation) -> Preparation:
        """This preparation, with what another one of the same kind says of some of the features."""
        return Preparation(self.missing.updated(part.missing), self.normalisation.updated(part.normalisation))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what does nothing is None."""
        missing = asdict(self.missing)
        if not self.missing.indicates:
            del missing["indicates"]
        return {
            "normalisation": None if self.normalisation.kind == "none" else asdict(self.normalisation),
            "missing": None if self.missing.policy == "keep" else missing,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Preparation:
        """The inverse of :meth:`to_dict`."""
        missing, normalisation = content["missing"], content["normalisation"]
        return cls(
            KEPT if missing is None else MissingPolicy(**missing),
            NOT_NORMALISED if normalisation is None else Normalisation(**normalisation),
        )


UNPREPARED = Preparation()
