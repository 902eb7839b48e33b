"""The smooth objective f(Xw) of data in memory, on disk, or elsewhere."""

from __future__ import annotations

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset, check_finite
from ranksieve.data.matrix import is_streamed
from ranksieve.data.remote import RemoteDataset
from ranksieve.losses import LOSSES
from ranksieve.losses.base import Loss
from ranksieve.objective.base import Objective, Point
from ranksieve.objective.streamed import StreamedObjective

__all__ = ["Objective", "Point", "StreamedObjective", "make_objective"]


def make_objective(
    data: Dataset, loss: str | Loss = "squared_hinge", query_weight: FloatArray | None = None
) -> Objective:
    """The mean loss of a data set; a loss by its name in LOSSES, or as it is."""
    check_finite(data)
    family = LOSSES[loss]() if isinstance(loss, str) else loss
    if isinstance(data, RemoteDataset):
        return data.objective(family, query_weight)  # type: ignore[no-any-return]
    bound = family.bind(data.y, data.queries, query_weight)
    kind = StreamedObjective if is_streamed(data.X) else Objective
    return kind(data.X, bound, data.feature_names)
