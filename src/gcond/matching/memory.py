"""What a condensation will hold in memory, before it does."""

from __future__ import annotations

from gcond.errors import GcondError
from gcond.matching.structure import Structure
from gcond.resources import available_bytes, hand_back
from gcond.task import Task

NUMBER = 4  # bytes of a float32
# A', its symmetric and normalised forms, and their derivatives.
COPIES_OF_ADJACENCY = 10
# X', its moments, its derivative, the best and the last good state, and what is propagated from it.
COPIES_OF_FEATURES = 12


def estimate(nodes: int, features: int, labelled: int, *, blocks: int | None) -> int:
    """Bytes for ``nodes`` condensed nodes and the rows of ``labelled`` source nodes.

    ``blocks`` are the bytes that its pairs of nodes take, ``None`` where A' is not learned.
    """
    learned = COPIES_OF_FEATURES * nodes * features + 2 * labelled * features
    if blocks is None:
        return NUMBER * learned
    return NUMBER * (learned + COPIES_OF_ADJACENCY * nodes * nodes) + blocks


def check_memory(task: Task, structure: Structure, nodes: int) -> None:
    """Refuse a condensation to ``nodes`` nodes that does not fit, before hours are spent on it."""
    features, labelled = task.train.inputs.num_features, len(task.train.nodes)
    needed = estimate(nodes, features, labelled, blocks=structure.block_bytes(nodes))
    hand_back()
    free = available_bytes()
    if needed > free:
        raise GcondError(
            f"condensing takes about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free: "
            "ask for fewer nodes, or lower the setting memory"
        )
