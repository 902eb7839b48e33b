"""The smooth objective f(Xw) of data in memory, on disk, or elsewhere."""

from __future__ import annotations

from ranksieve.data.dataset import Dataset, check_finite
from ranksieve.data.device_matrix import DeviceMatrix
from ranksieve.data.matrix import is_streamed
from ranksieve.data.query_weights import QueryWeight, query_weights
from ranksieve.data.remote import RemoteDataset
from ranksieve.losses import LOSSES
from ranksieve.losses.base import Loss
from ranksieve.objective.base import Objective, Point
from ranksieve.objective.streamed import StreamedObjective

__all__ = ["Objective", "Point", "StreamedObjective", "make_objective"]


def make_objective(
    data: Dataset, loss: str | Loss = "squared_hinge", query_weight: QueryWeight | None = None
) -> Objective:
    """The mean loss of a data set with its document weights; a loss by its name in LOSSES, or as it is."""
    check_finite(data)
    family = LOSSES[loss]() if isinstance(loss, str) else loss
    weight = query_weights(query_weight, data)
    if isinstance(data, RemoteDataset):
        return data.objective(family, weight)  # type: ignore[no-any-return]
    if isinstance(data.X, DeviceMatrix):
        from ranksieve.objective.on_device import device_objective  # loads PyTorch

        return device_objective(data, family, weight)
    bound = family.bind(data.y, data.queries, weight, data.document_weight)
    kind = StreamedObjective if is_streamed(data.X) else Objective
    return kind(data.X, bound, data.feature_names)
