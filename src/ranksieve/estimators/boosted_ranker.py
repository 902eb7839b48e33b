"""What rankers add whose scores are sums of steps or trees: their model."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.boosted import BoostedModel, Feature, Steps, Trees
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.base import PlainFit
from ranksieve.estimators.base_class import check_is_fitted


class BoostedRanker(PlainFit):
    """A ranker whose score is a sum of steps or trees of some columns, ``support_``."""

    @property
    @abstractmethod
    def support_(self) -> IntArray:
        """Columns in use, ascending."""

    def _prepared_for_learning(self, data: Dataset, query_weight: FloatArray | None = None) -> Dataset:
        """As for all, with the fills that learning sees: float32 in data of float32.

        A document may go the other way at a split if the fill differs in the last bit.
        """
        prepared = super()._prepared_for_learning(data, query_weight)
        means = np.array(self.missing_.means).astype(data.X.dtype)
        missing = replace(self.missing_, means=tuple(means.tolist()))
        self.preparation_ = replace(self.preparation_, missing=missing)
        return prepared

    def _columns_read(self) -> IntArray:
        return np.unique(self._features_of(self.support_)[1]).astype(np.int64)

    @abstractmethod
    def _ensemble(self) -> Steps | Trees:
        """What is summed, as functions of the columns in use."""

    def to_model(self) -> BoostedModel:
        """The fitted ranker as a model that can be saved."""
        check_is_fitted(self)
        names, sources = self._features_of(self.support_)
        return BoostedModel(
            features=tuple(map(Feature, names, sources)),
            n_features=self.n_features_in_,
            ensemble=self._ensemble(),
            preparation=self.preparation_.of(names),
            method=type(self).__name__,
            parameters=self._learned_with,
            data=self._learned_from,
        )
