"""Small graphs in every form a model reads."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import scipy.sparse
import torch
from torch import Tensor

from gcond.graph.inputs import Inputs
from gcond.linalg.sparse import Matrix, SparseMatrix
from gcond.models.model import Model, Parameters


@dataclass(frozen=True)
class SmallGraph:
    """A weighted graph without self-loops; its last three nodes are isolated."""

    x: Tensor
    dense: Tensor
    """[n, n], row = target."""

    @property
    def edge_index(self) -> Tensor:
        target, source = self.dense.nonzero(as_tuple=True)
        return torch.stack([source, target])

    @property
    def edge_weight(self) -> Tensor:
        return self.dense[self.dense != 0]

    def inputs(self, adjacency: str = "sparse", features: str = "dense") -> Inputs:
        x: Matrix = self.x
        if features == "sparse":
            x = SparseMatrix.from_scipy(scipy.sparse.csr_matrix(self.x.numpy()))
        if adjacency == "dense":
            return Inputs(x, self.dense)
        symmetric = torch.equal(self.dense, self.dense.T)
        return Inputs(x, SparseMatrix.from_scipy(scipy.sparse.csr_matrix(self.dense.numpy()), symmetric=symmetric))

    def unit(self) -> SmallGraph:
        return SmallGraph(self.x, (self.dense > 0).to(self.dense.dtype))

    def to(self, dtype: torch.dtype) -> SmallGraph:
        return SmallGraph(self.x.to(dtype), self.dense.to(dtype))


def small_graph(
    n: int = 23, features: int = 11, *, density: float = 0.2, directed: bool = False, seed: int = 0
) -> SmallGraph:
    stream = torch.Generator().manual_seed(seed)
    weight = 2 * torch.rand(n, n, generator=stream, dtype=torch.float64)
    drawn = torch.rand(n, n, generator=stream) < density
    dense = torch.where(drawn, weight, 0.0).fill_diagonal_(0)
    dense[-3:], dense[:, -3:] = 0, 0
    if not directed:
        dense = dense.triu() + dense.triu().T
    x = torch.randn(n, features, generator=stream, dtype=torch.float64)
    x = x * (torch.rand(n, features, generator=stream) < 0.6)
    return SmallGraph(x, dense)


def random_parameters(model: Model, features: int, classes: int, seed: int, dtype: torch.dtype) -> Parameters:
    """Fresh weights of one run with biases that are not zero, so that a lost bias shows."""
    stream = torch.Generator().manual_seed(seed)
    fresh = model.init(features, classes, stream)
    return {
        key: (tensor if tensor.dim() > 1 else torch.randn(tensor.shape, generator=stream)).to(dtype)
        for key, tensor in fresh.items()
    }


@pytest.fixture(scope="session")
def make_small():
    return small_graph


@pytest.fixture(scope="session")
def make_parameters():
    return random_parameters
