"""Sparse matrices that autograd can go through twice, and the normalised forms of an adjacency.

An *adjacency* is one of three things, and every function here takes all of them:

- a dense tensor ``[n, n]`` (a learned A', differentiable),
- a :class:`SparseMatrix` (a real graph, or an A' that is learned on some pairs of nodes alone,
  :class:`gcond.linalg.learned_matrix.LearnedMatrix`),
- an :class:`Identity` (no structure: A' = I).

Row ``i``, column ``j`` holds the weight of the edge from ``j`` to ``i``, so that ``A @ X`` gathers messages.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

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
        self._csr = csr
        self.symmetric = symmetric

    @property
    def csr(self) -> Tensor:
        """The matrix as PyTorch holds it."""
        return self._csr

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes: the arrays alone, without what was computed from them."""
        parts = self.csr.crow_indices(), self.csr.col_indices(), self.csr.values(), tuple(self.shape)
        return partial(SparseMatrix.from_parts, symmetric=self.symmetric), parts

    @classmethod
    def from_parts(
        cls, indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int], *, symmetric: bool = False
    ) -> SparseMatrix:
        """Wrap valid CSR arrays (``indptr`` [n + 1], ``indices`` and ``values`` [nnz]); only dtypes are converted."""
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
        if not csr.has_canonical_format:
            csr = csr.copy()  # ``tocsr`` of a CSR matrix is the caller's own, and summing works in place
            csr.sum_duplicates()
        indptr, indices, values = (torch.from_numpy(part) for part in (csr.indptr, csr.indices, csr.data))
        return cls.from_parts(indptr, indices, values, csr.shape, symmetric=symmetric)

    @classmethod
    def from_edges(cls, edge_index: Tensor, weight: Tensor, nodes: int) -> SparseMatrix:
        """The n × n matrix of edges [2, E], columns (sources) above rows (targets), none of them twice."""
        import scipy.sparse

        source, target = edge_index.cpu().numpy()
        matrix = scipy.sparse.csr_matrix((weight.cpu().numpy(), (target, source)), shape=(nodes, nodes))
        return cls.from_scipy(matrix).to(weight.device)

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
    def dtype(self) -> torch.dtype:
        return self.csr.dtype

    @property
    def device(self) -> torch.device:
        return self.csr.device

    @cached_property
    def T(self) -> SparseMatrix:  # noqa: N802 (the name every matrix library uses)
        if self.symmetric:
            return self
        transposed = SparseMatrix.from_scipy(self.to_scipy().T).to(self.device)
        transposed.__dict__["T"] = self  # a second derivative asks for it
        return transposed

    @cached_property
    def narrow(self) -> SparseMatrix:
        """The same matrix, for products with few columns (:func:`multiply_narrow`)."""
        return _NarrowMatrix(self)

    @cached_property
    def row_index(self) -> Tensor:
        """The row of every stored entry: int64 [nnz]."""
        rows = torch.arange(self.shape[0], device=self.device)
        return torch.repeat_interleave(rows, self.indptr.diff().long(), output_size=self.nnz)

    @property
    def edge_index(self) -> Tensor:
        """Columns above rows, so of an adjacency sources above targets as in PyG: int64 [2, nnz]."""
        return torch.stack([self.indices.long(), self.row_index])

    def row_sums(self) -> Tensor:
        return torch.segment_reduce(self.values, "sum", offsets=self.indptr.long(), initial=0)

    def with_values(self, values: Tensor, *, symmetric: bool) -> SparseMatrix:
        """The same pattern with other numbers."""
        return SparseMatrix.from_parts(self.indptr, self.indices, values, self.shape, symmetric=symmetric)

    def with_loops(self) -> SparseMatrix:
        """``M + I``."""
        import scipy.sparse

        matrix = self.to_scipy()
        loops = scipy.sparse.identity(matrix.shape[0], dtype=matrix.dtype, format="csr")
        return SparseMatrix.from_scipy(matrix + loops, symmetric=self.symmetric).to(self.device)

    def scaled_on_both_sides(self, scale: Tensor) -> SparseMatrix:
        """``diag(scale) M diag(scale)``."""
        # In place and by int32 index: on a large graph the temporaries of this line are what peaks.
        values = torch.repeat_interleave(scale, self.indptr.diff(), output_size=self.nnz)
        values.mul_(self.values).mul_(scale.index_select(0, self.indices))
        return self.with_values(values, symmetric=self.symmetric)

    def detach(self) -> SparseMatrix:
        """The same numbers, without the way back to what they were made from, if there is one."""
        return self

    def rows(self, index: Tensor) -> SparseMatrix:
        """The rows ``index``, in that order."""
        return SparseMatrix.from_scipy(self.to_scipy()[index.cpu().numpy()]).to(self.device)

    def submatrix(self, rows: Tensor, columns: Tensor | None = None) -> SparseMatrix:
        """The given rows and columns; the same for both by default, which is the induced subgraph."""
        symmetric = self.symmetric and columns is None
        down, across = (index.cpu().numpy() for index in (rows, rows if columns is None else columns))
        return SparseMatrix.from_scipy(self.to_scipy()[down][:, across], symmetric=symmetric).to(self.device)

    def to_dense(self) -> Tensor:
        return self.csr.to_dense()

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> SparseMatrix:
        device = torch.device(device or self.device)
        dtype = dtype or self.dtype
        if device == self.device and dtype == self.dtype:
            return self
        parts = (self.indptr.to(device), self.indices.to(device), self.values.to(device, dtype))
        return SparseMatrix.from_parts(*parts, self.shape, symmetric=self.symmetric)

    def multiply(self, dense: Tensor) -> Tensor:
        """``[n, m] @ [m, k] -> [n, k]`` without a gradient."""
        return multiply(self.csr, dense)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """``[n, m] @ [m, k] -> [n, k]``, or one such product for each of ``[R, m, k]``."""
        if not torch.is_grad_enabled():
            return _product(dense, self)  # the same numbers: an autograd function binds its signature at every call
        product: Tensor = _SparseProduct.apply(dense, self)  # type: ignore[no-untyped-call]
        return product

    def __repr__(self) -> str:
        return f"SparseMatrix(shape={self.shape}, nnz={self.nnz}, dtype={self.dtype})"


class _NarrowMatrix(SparseMatrix):
    def __init__(self, matrix: SparseMatrix) -> None:
        super().__init__(matrix.csr, symmetric=matrix.symmetric)
        self._matrix = matrix

    @cached_property
    def T(self) -> SparseMatrix:  # noqa: N802
        return self if self.symmetric else self._matrix.T.narrow

    def multiply(self, dense: Tensor) -> Tensor:
        return multiply_narrow(self.csr, dense)


class _SparseProduct(torch.autograd.Function):
    """``M @ D`` with ``dD = Mᵀ @ grad``, itself such a product, so any order of derivative exists."""

    @staticmethod
    def forward(dense: Tensor, matrix: SparseMatrix) -> Tensor:
        return _product(dense, matrix)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, SparseMatrix], output: Tensor) -> None:
        ctx.matrix = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _SparseProduct.apply(grad, ctx.matrix.T), None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int, None], dense: Tensor, matrix: SparseMatrix) -> tuple[Tensor, int]:
        stacked = dense.movedim(in_dims[0], 0)
        product = _SparseProduct.apply(stacked.reshape(-1, *stacked.shape[-2:]), matrix)  # type: ignore[no-untyped-call]
        return product.reshape(*stacked.shape[:-2], *product.shape[-2:]), 0


def _product(dense: Tensor, matrix: SparseMatrix) -> Tensor:
    if dense.dim() == 2:
        return matrix.multiply(dense)
    return torch.stack([matrix.multiply(columns) for columns in dense])


def multiply(csr: Tensor, dense: Tensor) -> Tensor:
    """``csr @ dense`` by the fastest kernel of the device, without a gradient."""
    if csr.device.type == "cpu":
        # benchmarks/propagation.py has the ratios to the other kernels.
        product: Tensor = torch.sparse.mm(csr, dense.contiguous(), "sum")
        return product
    return csr @ dense


NARROW = 64
"""Columns up to which MKL multiplies quicker than torch's own kernel: a quarter of the time at 8, between two fifths
and two thirds at 32."""


def multiply_narrow(csr: Tensor, dense: Tensor) -> Tensor:
    """The same product of a few columns; the last bits of a column may depend on how many there are beside it.

    Torch's own kernel takes about 30 ns an entry however few the columns are, but gives a column the same numbers
    whatever stands beside it, which trainings that are done side by side rely on.
    """
    if csr.device.type == "cpu" and dense.shape[1] <= NARROW and torch.backends.mkl.is_available():
        return csr @ dense
    return multiply(csr, dense)


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


def take_rows(x: Matrix, index: Tensor) -> Matrix:
    """The rows ``index`` of a dense or sparse matrix, in its own form."""
    return x.rows(index) if isinstance(x, SparseMatrix) else x[index]


def take_columns(x: Matrix, index: Tensor) -> Matrix:
    """The columns ``index`` of a dense or sparse matrix, in its own form."""
    if not isinstance(x, SparseMatrix):
        return x[:, index]
    taken = x.to_scipy()[:, index.cpu().numpy()].tocsr()
    taken.sort_indices()
    return SparseMatrix.from_scipy(taken).to(x.device)


def dense(x: Matrix) -> Tensor:
    """``x`` as a plain tensor."""
    return x.to_dense() if isinstance(x, SparseMatrix) else x


def edge_list(adjacency: Adjacency) -> tuple[Tensor, Tensor]:
    """The entries that are not 0: sources above targets, int64 [2, E], by target, and weights [E]; none of I."""
    if isinstance(adjacency, Identity):
        return torch.empty(2, 0, dtype=torch.long), torch.empty(0)
    if isinstance(adjacency, Tensor):
        target, source = adjacency.nonzero(as_tuple=True)
        return torch.stack([source, target]), adjacency[target, source]
    present = adjacency.values != 0
    return adjacency.edge_index[:, present], adjacency.values[present]


def narrow(matrix: Adjacency) -> Adjacency:
    """The same, for products with few columns."""
    return matrix.narrow if isinstance(matrix, SparseMatrix) else matrix


def transposed(adjacency: Adjacency) -> Adjacency:
    """``Aᵀ``."""
    return adjacency if isinstance(adjacency, Identity) else adjacency.T


def add_self_loops(adjacency: Adjacency) -> Adjacency:
    """``A + I``; the identity, which stands for a graph without edges, stays what it is."""
    if isinstance(adjacency, Identity):
        return adjacency
    if isinstance(adjacency, Tensor):
        return adjacency + torch.eye(len(adjacency), dtype=adjacency.dtype, device=adjacency.device)
    return adjacency.with_loops()


def gcn_normalise(adjacency: Adjacency) -> Adjacency:
    """``Â = D^-½ (A + I) D^-½`` with ``D`` the row sums of ``A + I`` (Kipf and Welling, ICLR 2017)."""
    if isinstance(adjacency, Identity):
        return Identity()
    with_loops = add_self_loops(adjacency)
    if isinstance(with_loops, Tensor):
        scale = with_loops.sum(1).rsqrt()
        return scale[:, None] * with_loops * scale[None, :]
    assert isinstance(with_loops, SparseMatrix)
    return _scale_both_sides(with_loops)


def inverse_root_degrees(rows: SparseMatrix, first: int = 0) -> Tensor:
    """The diagonal of ``D^-½`` in :func:`gcn_normalise`: [n], or of the rows [k, n] of A from ``first`` on: [k]."""
    import scipy.sparse

    matrix = rows.to_scipy()
    loops = scipy.sparse.eye_array(*matrix.shape, k=first, dtype=matrix.dtype, format="csr")
    return _power(SparseMatrix.from_scipy(matrix + loops).row_sums(), -0.5)


def mean_normalise(adjacency: Adjacency) -> Adjacency:
    """``D^-1 A``: the weighted mean of a node's neighbours; a node without any gets zero."""
    if isinstance(adjacency, Identity):
        return Identity()
    if isinstance(adjacency, Tensor):
        return _power(adjacency.sum(1), -1)[:, None] * adjacency
    scale = _power(adjacency.row_sums(), -1)
    return adjacency.with_values(scale[adjacency.row_index] * adjacency.values, symmetric=False)


def scaled_laplacian(adjacency: Adjacency) -> Adjacency:
    """``L̂ = 2L/λ - I = -D^-½ A D^-½`` for the symmetric Laplacian with λ = 2 (Defferrard et al., NeurIPS 2016)."""
    if isinstance(adjacency, Identity):
        return Identity(-1.0)
    if isinstance(adjacency, Tensor):
        scale = _power(adjacency.sum(1), -0.5)
        return -(scale[:, None] * adjacency * scale[None, :])
    scaled = _scale_both_sides(adjacency)
    return scaled.with_values(-scaled.values, symmetric=scaled.symmetric)


def _power(degree: Tensor, exponent: float) -> Tensor:
    # The inner ``where`` keeps every derivative finite where the degree is zero.
    positive = degree > 0
    return torch.where(positive, torch.where(positive, degree, 1).pow(exponent), 0)


def _scale_both_sides(matrix: SparseMatrix) -> SparseMatrix:
    return matrix.scaled_on_both_sides(_power(matrix.row_sums(), -0.5))
