"""From a share of the nodes to nodes, and from nodes to nodes per class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gcond.config.settings import whole_number
from gcond.errors import GcondError

if TYPE_CHECKING:
    from torch import Tensor

    from gcond.graph.source_graph import SourceGraph


@dataclass(frozen=True)
class Budget:
    """The number of synthetic nodes, in both readings."""

    nodes: int
    ratio: float
    """``nodes`` as a share of all nodes (transductive) or of the training nodes (inductive)."""


def parse_ratio(text: str | float) -> float:
    """``"2.6%"``, ``"0.026"`` and ``0.026`` are the same ratio."""
    try:
        ratio = float(text[:-1]) / 100 if isinstance(text, str) and text.endswith("%") else float(text)
    except (ValueError, TypeError):
        raise GcondError(f"ratio '{text}' is not a number: write for example 2.6% or 0.026") from None
    if not math.isfinite(ratio) or not 0 < ratio <= 1:
        raise GcondError(f"ratio {text} is not between 0 and 1: write for example 2.6% or 0.026")
    return ratio


def check_budget(ratio: str | float | None, nodes: int | None) -> None:
    """Refuse what no graph could have: neither of the two, both, or a ratio that is none."""
    if (ratio is None) == (nodes is None):
        raise GcondError("give a budget as either ratio or nodes, for example ratio='2.6%' or nodes=70")
    if ratio is not None:
        parse_ratio(ratio)


def budget_for(graph: SourceGraph, *, ratio: str | float | None = None, nodes: int | None = None) -> Budget:
    """The budget that ``ratio`` or ``nodes`` (exactly one of them) means on ``graph``."""
    return resolve_budget(
        ratio=ratio,
        nodes=nodes,
        population=graph.budget_population,
        labelled=int(graph.train_mask.sum()),
        classes=graph.num_classes,
    )


def resolve_budget(
    *, ratio: str | float | None, nodes: int | None, population: int, labelled: int, classes: int
) -> Budget:
    """The budget that ``ratio`` or ``nodes`` (exactly one of them) asks for.

    ``population`` is what the ratio is a share of; a ratio never gives more than the ``labelled``
    nodes, while ``nodes`` is exact and is refused when it cannot be met.
    """
    check_budget(ratio, nodes)
    if ratio is None:
        nodes = whole_number(nodes, "nodes")
        if nodes < classes:
            raise GcondError(f"{nodes} nodes are too few for {classes} classes: use nodes={classes} or more")
        if nodes > labelled:
            raise GcondError(f"{nodes} nodes are more than the {labelled} labelled ones: use nodes={labelled} or fewer")
        return Budget(nodes, nodes / population)
    wanted = min(round(parse_ratio(ratio) * population), labelled)
    if wanted < classes:
        raise GcondError(
            f"ratio {ratio} of {population} nodes is {wanted} nodes, but there are {classes} classes: "
            f"use nodes={classes} or more"
        )
    return Budget(wanted, wanted / population)


def nodes_per_class(nodes: int, shares: Tensor, most: Tensor | None = None) -> Tensor:
    """Share ``nodes`` out in proportion to ``shares`` ([C], labelled nodes for example): int64 [C] that sums to them.

    Every class gets at least one and at most ``most`` (int64 [C]); the rest follows the largest remainder, and of equal
    ones that of the rarer class. Without ``most``, no class gets more than it has labelled nodes as long as ``nodes``
    is at most their sum.
    """
    import torch

    if nodes < len(shares):
        raise GcondError(f"{nodes} nodes are too few for {len(shares)} classes: use {len(shares)} or more")
    if most is not None and (int(most.sum()) < nodes or int(most.min()) < 1):
        raise GcondError(
            f"{nodes} nodes in {len(shares)} classes, at least one of each, are more than there is room for: "
            f"classes have {most.tolist()}"
        )
    exact = shares.double() * nodes / shares.sum()
    quota = exact.floor().long().clamp_(min=1)
    limit = torch.full_like(quota, nodes) if most is None else most
    quota = torch.minimum(quota, limit)
    while (spare := nodes - int(quota.sum())) != 0:
        # Lifting small classes to one can overshoot: then the class furthest above its share gives back.
        gap = (exact - quota).round(decimals=9)  # the last digits of shares must not decide between equals
        if spare > 0:
            owed = torch.where(quota < limit, gap, -math.inf)
            quota[int(torch.where(owed == owed.max(), exact, math.inf).argmin())] += 1
        else:
            quota[int(torch.where(quota > 1, gap, math.inf).argmin())] -= 1
    return quota
