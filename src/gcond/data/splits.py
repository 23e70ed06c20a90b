"""Splits for graphs that come without one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcond.errors import GcondError
from gcond.runtime.seeds import generator

OTHER_NAMES = {"train": ("training",), "val": ("valid", "validation", "dev"), "test": ("testing",)}
"""Names that people give the parts of a split, beside our own."""
TRAIN, VAL = 20, 30
"""Nodes per class, as Shchur et al. drew them (Pitfalls of Graph Neural Network Evaluation, 2018)."""


@dataclass(frozen=True, eq=False)
class Split:
    """Boolean masks or node ids of the three parts, and a sentence on where they come from."""

    train: Tensor
    val: Tensor
    test: Tensor
    note: str


FEWEST = 3
"""Labelled nodes of a class that can be split: one for each part."""


def splittable(y: Tensor) -> bool:
    """Whether :func:`per_class` has nodes of some class, and enough of each."""
    counts = torch.bincount(y[y >= 0])
    return len(counts) > 0 and int(counts.min()) >= FEWEST


def no_split() -> Split:
    """The split of a graph that is only to be predicted for: no node is in any part."""
    nobody = torch.empty(0, dtype=torch.long)
    return Split(nobody, nobody, nobody, "there are too few labels for a split, so no node is in any part")


def per_class(y: Tensor, seed: int, class_names: tuple[str, ...] = ()) -> Split:
    """20 training and 30 validation nodes of every class at random, all other labelled nodes for testing.

    A class of 50 nodes or fewer gives two fifths to training (20 at most), three tenths to validation
    and the rest to testing, at least one to each; a class of fewer than three cannot be split.
    """
    parts: dict[str, list[Tensor]] = {"train": [], "val": [], "test": []}
    stream = generator(seed, "split")
    small = 0
    for label in range(int(y.max()) + 1 if len(y) else 0):
        members = (y == label).nonzero().squeeze(1)
        n = len(members)
        if n < FEWEST:
            who = f"'{class_names[label]}'" if class_names else str(label)
            raise GcondError(
                f"class {who} has {n} labelled {'node' if n == 1 else 'nodes'}, and a split needs {FEWEST} of every "
                "class: label more nodes, or give the split yourself"
            )
        small += n <= TRAIN + VAL
        train = TRAIN if n > TRAIN + VAL else max(1, n * 2 // 5)
        val = VAL if n > TRAIN + VAL else max(1, n * 3 // 10)
        shuffled = members[torch.randperm(n, generator=stream)]
        for part, ids in zip(parts, torch.tensor_split(shuffled, (train, train + val)), strict=True):
            parts[part].append(ids)
    note = f"the split was drawn with seed {seed}: {TRAIN} training and {VAL} validation nodes per class, the rest test"
    if small:
        note += f" ({small} classes of {TRAIN + VAL} nodes or fewer: 40 % training, 30 % validation)"
    none = torch.empty(0, dtype=torch.long)
    train_ids, val_ids, test_ids = (torch.cat(ids or [none]).sort().values for ids in parts.values())
    return Split(train_ids, val_ids, test_ids, note)
