"""k-means for many points: in the points' own precision, from one start, and the same with any cut of the rows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

ITERATIONS = 50
"""Lloyd's steps at most; most are done long before."""
IMPROVEMENT = 1e-4
"""Share of the squared distances that a step must take away, or it was the last."""
PER_CENTRE = 256
"""Points that find each centre. Of more, so many are drawn; the centres are means of all points even so."""


@torch.no_grad()
def k_means(points: Tensor, count: int, stream: Generator) -> Tensor:
    """``count`` centres [count, d] of ``points`` [m, d], each the mean of the points that are nearest to it.

    From one start by greedy k-means++ (Arthur and Vassilvitskii, 2007), then Lloyd's steps. Where there are more than
    :data:`PER_CENTRE` points for every centre, that many are drawn, find the centres, and a last step over all points
    makes them their means: one batch in place of many small ones. Fewer distinct points than centres repeat. Products
    alone add anything up, so the same threads give the same bits.
    """
    few = points
    if len(points) > PER_CENTRE * count:
        few = points[torch.randperm(len(points), generator=stream)[: PER_CENTRE * count].sort().values]
    # Distances do not change with the middle, but sums of squares far from it would lose theirs.
    middle = few.mean(0)
    centres, before = _start(few - middle, count, stream), torch.inf
    for _ in range(ITERATIONS):
        centres, apart = _step(few - middle, centres)
        if apart >= before * (1 - IMPROVEMENT):
            break
        before = apart
    if few is not points:
        centres, _ = _step(points - middle, centres)
    return centres + middle


def _start(points: Tensor, count: int, stream: Generator) -> Tensor:
    """Centres among the points: each is the best of a few that were drawn by their squared distance from the others."""
    tries = 2 + int(torch.tensor(float(count)).log())
    chosen = points[torch.randint(len(points), (1,), generator=stream)]
    nearest = _squares(points, chosen).squeeze(1)
    centres = [chosen]
    for _ in range(count - 1):
        heap = nearest.double().cumsum(0)
        drawn = torch.rand(tries, generator=stream, dtype=torch.float64).to(heap) * heap[-1]
        candidates = torch.searchsorted(heap, drawn, right=True).clamp(max=len(points) - 1)
        left = torch.minimum(_squares(points, points[candidates]), nearest[:, None])
        best = left.double().sum(0).argmin()
        centres.append(points[candidates[best], None])
        nearest = left[:, best]
    return torch.cat(centres)


def _step(points: Tensor, centres: Tensor) -> tuple[Tensor, float]:
    """The means of the points that are nearest to each centre, and the sum of squared distances before that.

    A centre that no point is nearest to stays where it is.
    """
    least, own = _squares(points, centres).min(1)
    member = F.one_hot(own, len(centres)).to(points)
    size = member.sum(0)[:, None]
    return torch.where(size > 0, (member.T @ points) / size.clamp(min=1), centres), float(least.double().sum())


def _squares(points: Tensor, centres: Tensor) -> Tensor:
    """Squared distances [m, k]."""
    squares = torch.addmm(centres.square().sum(1)[None], points, centres.T, alpha=-2)
    return squares.add_(points.square().sum(1)[:, None]).clamp_(min=0)
