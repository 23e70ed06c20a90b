"""Sparse matrices that autograd can go through twice, and the normalised forms of an adjacency.

An *adjacency* is one of three things, and every function here takes all of them:

- a dense tensor ``[n, n]`` (a learned A', differentiable),
- a :class:`SparseMatrix` (a real graph),
- an :class:`Identity` (no structure: A' = I).

Row ``i``, column ``j`` holds the weight of the edge from ``j`` to ``i``, so that ``A @ X`` gathers messages.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

import torch
from torch import Tensor

if TYPE_CHECKING:
    import scipy.sparse


class SparseMatrix:
    """A CSR matrix whose ``@`` is as fast as the platform allows and differentiable in its right side.

    Indices are int32 while they fit (half the memory, and faster). The forward kernel has no double
    backward of its own, so the product is an autograd function whose backward is again such a product.
    """

    def __init__(self, csr: Tensor, *, symmetric: bool = False) -> None:
        self.csr = csr
        self.symmetric = symmetric

    @classmethod
    def from_parts(
        cls, indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int], *, symmetric: bool = False
    ) -> SparseMatrix:
        """Wrap valid CSR arrays (``indptr`` [n + 1], ``indices`` and ``values`` [nnz]) without copying more than dtypes."""
        fits = max(len(indices), *shape) < 2**31
        index = torch.int32 if fits else torch.int64
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            csr = torch.sparse_csr_tensor(indptr.to(index), indices.to(index), values, shape, check_invariants=False)
        return cls(csr, symmetric=symmetric)

    @classmethod
    def from_scipy(cls, matrix: scipy.sparse.spmatrix, *, symmetric: bool = False) -> SparseMatrix:
        """Convert any SciPy sparse matrix; duplicate entries are summed, as SciPy does."""
        csr = matrix.tocsr()
        csr.sum_duplicates()
        indptr, indices, values = (torch.from_numpy(part) for part in (csr.indptr, csr.indices, csr.data))
        return cls.from_parts(indptr, indices, values, csr.shape, symmetric=symmetric)

    def to_scipy(self) -> scipy.sparse.csr_matrix:
        """The same numbers as a SciPy CSR matrix (on the CPU the memory is shared)."""
        import scipy.sparse

        parts = (self.values, self.indices, self.indptr)
        data, indices, indptr = (part.cpu().numpy() for part in parts)
        return scipy.sparse.csr_matrix((data, indices, indptr), shape=self.shape)

    @property
    def indptr(self) -> Tensor:
        return self.csr.crow_indices()

    @property
    def indices(self) -> Tensor:
        return self.csr.col_indices()

    @property
    def values(self) -> Tensor:
        return self.csr.values()

    @property
    def shape(self) -> tuple[int, int]:
        return (self.csr.shape[0], self.csr.shape[1])

    @property
    def nnz(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (self.indptr, self.indices, self.values))

    @property
    def dtype(self) -> torch.dtype:
        return self.csr.dtype

    @property
    def device(self) -> torch.device:
        return self.csr.device

    @cached_property
    def T(self) -> SparseMatrix:  # noqa: N802 (the name every matrix library uses)
        if self.symmetric:
            return self
        return SparseMatrix.from_scipy(self.to_scipy().T).to(self.device)

    @cached_property
    def row_index(self) -> Tensor:
        """The row of every stored entry: int64 [nnz]."""
        rows = torch.arange(self.shape[0], device=self.device)
        return torch.repeat_interleave(rows, self.indptr.diff().long(), output_size=self.nnz)

    def row_sums(self) -> Tensor:
        return torch.segment_reduce(self.values, "sum", offsets=self.indptr.long(), initial=0)

    def with_values(self, values: Tensor, *, symmetric: bool) -> SparseMatrix:
        """The same pattern with other numbers."""
        return SparseMatrix.from_parts(self.indptr, self.indices, values, self.shape, symmetric=symmetric)

    def rows(self, index: Tensor) -> SparseMatrix:
        """The rows ``index``, in that order."""
        return SparseMatrix.from_scipy(self.to_scipy()[index.cpu().numpy()]).to(self.device)

    def submatrix(self, index: Tensor) -> SparseMatrix:
        """Rows and columns ``index``: the adjacency of the induced subgraph."""
        keep = index.cpu().numpy()
        return SparseMatrix.from_scipy(self.to_scipy()[keep][:, keep], symmetric=self.symmetric).to(self.device)

    def to_dense(self) -> Tensor:
        return self.csr.to_dense()

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> SparseMatrix:
        device = torch.device(device or self.device)
        dtype = dtype or self.dtype
        if device == self.device and dtype == self.dtype:
            return self
        parts = (self.indptr.to(device), self.indices.to(device), self.values.to(device, dtype))
        return SparseMatrix.from_parts(*parts, self.shape, symmetric=self.symmetric)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """``[n, m] @ [m, k] -> [n, k]``, or one product for each of ``[R, m, k]``."""
        return _SparseProduct.apply(dense, self)

    def __repr__(self) -> str:
        return f"SparseMatrix(shape={self.shape}, nnz={self.nnz}, dtype={self.dtype})"


class _SparseProduct(torch.autograd.Function):
    """``M @ D`` with ``dD = Mᵀ @ grad``, itself such a product, so any order of derivative exists."""

    @staticmethod
    def forward(ctx, dense: Tensor, matrix: SparseMatrix) -> Tensor:  # type: ignore[override]  # noqa: ANN001
        ctx.matrix = matrix
        if dense.dim() == 2:
            return _multiply(matrix.csr, dense)
        # One product a run, so that a run's numbers do not depend on how many are stacked beside it.
        out = dense.new_empty(dense.shape[0], matrix.shape[0], dense.shape[2])
        for run, columns in enumerate(dense):
            out[run] = _multiply(matrix.csr, columns)
        return out

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]  # noqa: ANN001
        return _SparseProduct.apply(grad, ctx.matrix.T), None


def _multiply(csr: Tensor, dense: Tensor) -> Tensor:
    if csr.device.type == "cpu":
        # About twice the speed of ``csr @ dense`` (benchmarks/propagation.py).
        return torch.sparse.mm(csr, dense.contiguous(), "sum")
    return csr @ dense


@dataclass(frozen=True)
class Identity:
    """``scale · I`` of any size; what training uses where a condensed graph has no structure."""

    scale: float = 1.0

    def __matmul__(self, dense: Tensor) -> Tensor:
        return dense if self.scale == 1.0 else self.scale * dense


class SupportsProduct(Protocol):
    """Anything that multiplies a dense tensor from the left."""

    def __matmul__(self, dense: Tensor, /) -> Tensor: ...


Adjacency: TypeAlias = Tensor | SparseMatrix | Identity
Matrix: TypeAlias = Tensor | SparseMatrix
Operator: TypeAlias = Tensor | SupportsProduct


def matmul(left: Operator, right: Tensor) -> Tensor:
    """``left @ right`` where either may carry a leading axis of runs: [n, m] or [R, n, m], [m, k] or [R, m, k].

    On the CPU the runs are multiplied one by one: a batched product rounds differently for different
    R, and a run's numbers must not depend on how many are stacked beside it.
    """
    if not isinstance(left, Tensor) or right.dim() == 2 or right.is_cuda:
        return left @ right
    lefts = left if left.dim() == 3 else [left] * len(right)
    return torch.stack([one @ other for one, other in zip(lefts, right, strict=True)])


def gather_rows(x: Matrix, index: Tensor) -> Tensor:
    """The rows ``index`` of a dense or sparse matrix, dense."""
    return x.rows(index).to_dense() if isinstance(x, SparseMatrix) else x[index]


def gcn_normalise(adjacency: Adjacency) -> Adjacency:
    """``Â = D^-½ (A + I) D^-½`` with ``D`` the row sums of ``A + I`` (Kipf and Welling, ICLR 2017)."""
    if isinstance(adjacency, Identity):
        return Identity()
    if isinstance(adjacency, Tensor):
        with_loops = adjacency + torch.eye(len(adjacency), dtype=adjacency.dtype, device=adjacency.device)
        scale = with_loops.sum(1).rsqrt()
        return scale[:, None] * with_loops * scale[None, :]
    return _scale_both_sides(_add_self_loops(adjacency))


def mean_normalise(adjacency: Adjacency) -> Adjacency:
    """``D^-1 A``: the weighted mean of a node's neighbours; a node without any gets zero."""
    if isinstance(adjacency, Identity):
        return Identity()
    if isinstance(adjacency, Tensor):
        return _inverse(adjacency.sum(1))[:, None] * adjacency
    scale = _inverse(adjacency.row_sums())
    return adjacency.with_values(scale[adjacency.row_index] * adjacency.values, symmetric=False)


def scaled_laplacian(adjacency: Adjacency) -> Adjacency:
    """``L̂ = 2L/λ - I = -D^-½ A D^-½`` for the symmetric Laplacian with λ = 2 (Defferrard et al., NeurIPS 2016)."""
    if isinstance(adjacency, Identity):
        return Identity(-1.0)
    if isinstance(adjacency, Tensor):
        scale = _inverse(adjacency.sum(1)).sqrt()
        return -(scale[:, None] * adjacency * scale[None, :])
    scaled = _scale_both_sides(adjacency)
    return scaled.with_values(-scaled.values, symmetric=scaled.symmetric)


def _inverse(degree: Tensor) -> Tensor:
    # The inner ``where`` keeps the gradient finite where the degree is zero.
    positive = degree > 0
    return torch.where(positive, 1 / torch.where(positive, degree, 1), 0)


def _add_self_loops(matrix: SparseMatrix) -> SparseMatrix:
    import scipy.sparse

    loops = scipy.sparse.identity(matrix.shape[0], dtype=matrix.to_scipy().dtype, format="csr")
    return SparseMatrix.from_scipy(matrix.to_scipy() + loops, symmetric=matrix.symmetric).to(matrix.device)


def _scale_both_sides(matrix: SparseMatrix) -> SparseMatrix:
    scale = _inverse(matrix.row_sums()).sqrt()
    values = matrix.values * scale[matrix.row_index] * scale[matrix.indices.long()]
    return matrix.with_values(values, symmetric=matrix.symmetric)
