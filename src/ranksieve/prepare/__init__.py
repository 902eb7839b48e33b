"""Preparation of features: missing values are replaced, then features are normalised; or features are cut
into steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ranksieve._types import FloatArray
from ranksieve._util.short_repr import ShortRepr
from ranksieve.data.dataset import Dataset, check_finite
from ranksieve.data.parts import transform_parts
from ranksieve.data.queries import Queries
from ranksieve.data.result_lists import list_scaling
from ranksieve.errors import ParameterError
from ranksieve.prepare.missing import KEEP_MISSING, MissingPolicy, learn_missing
from ranksieve.prepare.scaling import NOT_NORMALISED, Normalisation, check_scales, learn_normalisation
from ranksieve.prepare.steps import Steps, learn_steps

__all__ = [
    "KEEP_MISSING",
    "NOT_NORMALISED",
    "NO_PREPARATION",
    "MissingPolicy",
    "Normalisation",
    "Preparation",
    "Steps",
]


@dataclass(frozen=True, repr=False)
class Preparation(ShortRepr):
    """Transformation of features before scoring: first ``missing``, then ``normalisation``, then ``steps``.

    All contain the parameters learned from the training data. The default changes nothing. With ``steps``,
    the prepared features are step columns, and the other two change nothing.
    """

    missing: MissingPolicy = KEEP_MISSING
    normalisation: Normalisation = NOT_NORMALISED
    steps: Steps | None = None

    @classmethod
    def learn(
        cls,
        data: Dataset,
        normalise: str = "none",
        missing: str = "auto",
        query_weight: FloatArray | None = None,
    ) -> Preparation:
        """Learn the parameters of the missing policy and the normalisation from the training data.

        The weight of a row is its document weight × the ``query_weight`` of its query (default 1 each).
        """
        return cls.learn_and_fill(data, normalise, missing, query_weight)[0]

    @classmethod
    def learn_and_fill(
        cls, data: Dataset, normalise: str, missing: str, query_weight: FloatArray | None = None
    ) -> tuple[Preparation, Dataset]:
        """Result of :meth:`learn`, and the data with missing values replaced."""
        fill_only = cls(learn_missing(data, missing, query_weight))
        filled = fill_only.filled(data)
        check_scales(filled)
        return cls(fill_only.missing, learn_normalisation(filled, normalise, query_weight)), filled

    @classmethod
    def learn_curves(
        cls, data: Dataset, normalise: str, missing: str, query_weight: FloatArray | None = None
    ) -> Preparation:
        """Learn the steps of curves from the training data."""
        if normalise not in ("auto", "none"):
            reason = "does not apply to curves, which do not depend on the scale; use 'auto' or 'none'"
            raise ParameterError("normalise", normalise, reason)
        if missing != "auto":
            reason = "does not apply to curves, which have a level for missing values; use 'auto'"
            raise ParameterError("missing", missing, reason)
        return cls(steps=learn_steps(data, query_weight))

    @property
    def fills(self) -> bool:
        """Whether it replaces missing values."""
        return self.missing.fills

    @property
    def accepts_missing(self) -> bool:
        """Whether missing values are replaced, have a level, or mean that a document was not returned."""
        return self.fills or self.steps is not None or list_scaling(self.normalisation.kind) is not None

    @property
    def changes_features(self) -> bool:
        return self.fills or self.normalisation.kind != "none"

    @property
    def per_query(self) -> bool:
        """Whether values depend on the other documents of the query."""
        return self.missing.per_query or self.normalisation.per_query

    def filled(self, data: Dataset) -> Dataset:
        """Replace missing values; remaining ones are an error unless the policy is "keep"."""
        filled = transform_parts(data, self.missing.apply) if self.fills else data
        if self.missing.policy != "keep":
            check_finite(filled)
        return filled

    def apply(self, data: Dataset) -> Dataset:
        """Prepared data."""
        return self.normalisation.apply(self.filled(data)) if self.steps is None else self.steps.apply(data)

    def for_learning(self, data: Dataset) -> Dataset:
        """Data with the score differences of :meth:`apply`; a sparse matrix stays sparse if it can."""
        if self.steps is not None:
            return self.steps.apply(data)
        return self.normalisation.for_learning(self.filled(data))

    def transform(self, values: FloatArray, queries: Queries) -> FloatArray:
        """Prepare the values of a dense float64 array, which may be overwritten."""
        if self.fills:
            self.missing.fill(values, queries)
        return self.normalisation.transform(values, queries)

    def of(self, features: Sequence[str]) -> Preparation:
        """Preparation of some of the features, in this order."""
        return Preparation(self.missing.of(features), self.normalisation.of(features))

    def updated(self, part: Preparation) -> Preparation:
        """Replace the parameters of some features by those of ``part``, a preparation of the same kind."""
        return Preparation(self.missing.updated(part.missing), self.normalisation.updated(part.normalisation))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; a step that does nothing is None."""
        missing = asdict(self.missing)
        if not self.missing.indicates:
            del missing["indicates"]
        plain = {
            "normalisation": None if self.normalisation.kind == "none" else asdict(self.normalisation),
            "missing": None if self.missing.policy == "keep" else missing,
        }
        return plain if self.steps is None else {**plain, "steps": asdict(self.steps)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Preparation:
        """The inverse of :meth:`to_dict`, without steps."""
        missing, normalisation = content["missing"], content["normalisation"]
        return cls(
            KEEP_MISSING if missing is None else MissingPolicy(**missing),
            NOT_NORMALISED if normalisation is None else Normalisation(**normalisation),
        )


NO_PREPARATION = Preparation()
