"""An estimate of the memory that a condensation will take, before it does."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from gcond.condensed import Task
from gcond.errors import GcondError
from gcond.graph import Inputs
from gcond.linalg.sparse import SparseMatrix
from gcond.matching.structure import Structure
from gcond.models import Model
from gcond.runtime.memory import available_bytes, hand_back

NUMBER = 4  # bytes of a float32
# A', its symmetric and normalised forms, and their derivatives.
COPIES_OF_ADJACENCY = 10
# X', its moments, its derivative, the best and the last good state, and what is propagated from it.
COPIES_OF_FEATURES = 12
# Of the source, of X', the derivative of that, and what the distance makes of both.
COPIES_OF_GRADIENTS = 4


def gradient_bytes(model: Model, features: int, classes: int) -> int:
    """Bytes for the gradients of all classes, [C, *weight] for every weight of ``model``."""
    return NUMBER * COPIES_OF_GRADIENTS * classes * sum(map(torch.Size.numel, model.shapes(features, classes).values()))


def propagated_bytes(inputs: Inputs, hops: Iterable[int]) -> int:
    """Bytes for ``ÂᵏX`` [N, d] of each of the ``hops`` k, as far as ``inputs`` do not keep it already.

    Dense features are propagated as a whole and kept, with the product before the last beside them while they are
    made; sparse ones stay factors.
    """
    if isinstance(inputs.x, SparseMatrix) or not isinstance(inputs.adjacency, SparseMatrix):
        return 0
    missing = set(hops) - {0} - inputs.kept_hops
    beside = 1 if max(missing, default=0) > 1 else 0
    return (len(missing) + beside) * inputs.num_nodes * inputs.num_features * inputs.x.dtype.itemsize


def check_memory(
    task: Task, structure: Structure, nodes: int, model: Model, *, hops: Iterable[int] = (), probe_hops: int = 0
) -> None:
    """Refuse a condensation to ``nodes`` nodes that does not fit, before hours are spent on it.

    ``hops`` are how far the features of the source will be propagated for the match and for the start, ``probe_hops``
    how far those of the graph that probes are scored on.
    """
    train, val = task.train.inputs, task.val.inputs
    features = train.num_features
    needed = NUMBER * (COPIES_OF_FEATURES * nodes + 2 * len(task.train.nodes)) * features
    if (blocks := structure.block_bytes(nodes)) is not None:
        needed += NUMBER * COPIES_OF_ADJACENCY * structure.entries(nodes) + blocks
    needed += gradient_bytes(model, features, task.num_classes)
    needed += propagated_bytes(train, {*hops, probe_hops if val is train else 0})
    needed += propagated_bytes(val, {probe_hops}) if val is not train else 0
    hand_back()
    free = available_bytes()
    device = task.train.y.device
    if device.type == "cuda":  # all of it will be there
        free = min(free, torch.cuda.mem_get_info(device)[0])
    if needed > free:
        raise GcondError(
            f"condensing takes about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free: "
            "ask for fewer nodes, lower the setting memory, or take batches of the source by sampling=always"
        )
