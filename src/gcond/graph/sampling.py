"""Fan-out neighbour sampling: a small random part of what some nodes' outputs depend on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from gcond.graph.inputs import Form, Inputs
from gcond.linalg.sparse import Adjacency, SparseMatrix, take_rows


@dataclass(frozen=True)
class Fanout:
    """The number of neighbours drawn per node, by its distance from the nodes one starts from."""

    sizes: tuple[int, ...]
    """Of the first hop, the second, …; the last one serves all further hops."""
    scaled: bool = True
    """Weigh what was drawn by neighbours / drawn, so that sums are right on average; the released code does not."""

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise ValueError("a fan-out needs at least one size, and each must be at least 1")

    def at(self, hop: int) -> int:
        return self.sizes[min(hop, len(self.sizes) - 1)]


class SampledInputs(Inputs):
    """Some rows of a graph with some of their edges, weighed as normalising the whole graph weighs them.

    As in PyG's ``NeighborLoader``, all layers of a model look at the same edges. Self-loops, which
    normalisation adds, are never left out.
    """

    def __init__(self, whole: Inputs, rows: Tensor, target: Tensor, source: Tensor, factor: Tensor) -> None:
        """``rows`` [r] are sorted nodes of ``whole``; ``target`` and ``source`` [E] places among them."""
        super().__init__(take_rows(whole.x, rows), _matrix(whole.adjacency, rows, target, source, factor))
        self._whole = whole
        self._rows = rows
        self._edges = (target, source, factor)

    def _normalised(self, form: Form) -> Adjacency:
        return _matrix(getattr(self._whole, form), self._rows, *self._edges, loops=form == "gcn")


def sample(inputs: Inputs, nodes: Tensor, hops: int, fanout: Fanout, stream: Generator) -> tuple[SampledInputs, Tensor]:
    """The part of a graph that ``nodes`` [m] see within ``hops`` edges, with at most ``fanout`` neighbours per node.

    They are drawn without replacement. Returns the sampled graph, and where ``nodes`` are among its rows: int64 [m].
    Where no node has more neighbours than the fan-out, nothing is left out and outputs for ``nodes`` are exact.
    """
    adjacency = inputs.adjacency
    assert isinstance(adjacency, SparseMatrix)
    device = adjacency.device
    indptr, indices = adjacency.indptr.cpu().long(), adjacency.indices.cpu().long()
    nodes = nodes.cpu()
    seen = torch.zeros(adjacency.shape[0], dtype=torch.bool)
    seen[nodes] = True
    frontier = nodes.unique()
    targets, sources, factors = [], [], []
    for hop in range(hops):
        target, source, factor = _draw(indptr, indices, frontier, fanout.at(hop), stream)
        targets.append(target)
        sources.append(source)
        factors.append(factor if fanout.scaled else torch.ones_like(factor))
        fresh = source.unique()
        frontier = fresh[~seen[fresh]]
        seen[frontier] = True
        if len(frontier) == 0:
            break
    rows = seen.nonzero().squeeze(1)
    place = torch.full((len(seen),), -1)
    place[rows] = torch.arange(len(rows))
    target, source = (place[torch.cat(parts)] if parts else place[:0] for parts in (targets, sources))
    factor = torch.cat(factors) if factors else torch.empty(0)
    sampled = SampledInputs(inputs, rows.to(device), target.to(device), source.to(device), factor.to(device))
    return sampled, place[nodes].to(device)


def _draw(
    indptr: Tensor, indices: Tensor, frontier: Tensor, most: int, stream: Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """At most ``most`` neighbours of each of ``frontier``: targets, sources, and neighbours / drawn, [E] each."""
    counts = indptr[frontier + 1] - indptr[frontier]
    starts = counts.cumsum(0) - counts
    row = torch.repeat_interleave(torch.arange(len(frontier)), counts)
    edge = torch.arange(len(row)) - starts[row] + indptr[frontier][row]
    # A random key per edge; the smallest keys of a row are its draw.
    shuffled = torch.argsort(torch.rand(len(row), generator=stream, dtype=torch.float64) + row)
    rank = torch.arange(len(row)) - starts[row]
    kept = shuffled[rank < most]
    factor = (counts / counts.clamp(max=most)).float()
    return frontier[row[kept]], indices[edge[kept]], factor[row[kept]]


def _matrix(
    operator: Adjacency, rows: Tensor, target: Tensor, source: Tensor, factor: Tensor, *, loops: bool = False
) -> SparseMatrix:
    """The entries (``target``, ``source``) of ``operator[rows, rows]``, each times its factor; and the diagonal."""
    import numpy as np
    import scipy.sparse

    assert isinstance(operator, SparseMatrix)
    whole = operator.to_scipy()
    if loops:
        own = torch.arange(len(rows), device=rows.device)
        target, source = torch.cat([target, own]), torch.cat([source, own])
        factor = torch.cat([factor, factor.new_ones(len(rows))])
    nodes, down, across = (index.cpu().numpy() for index in (rows, target, source))
    values = np.asarray(whole[nodes[down], nodes[across]]).ravel() * factor.cpu().numpy()
    matrix = scipy.sparse.csr_matrix((values, (down, across)), shape=(len(nodes), len(nodes)), dtype=whole.dtype)
    return SparseMatrix.from_scipy(matrix).to(operator.device)
