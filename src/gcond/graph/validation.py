"""The checks of a source graph: every check on raw tensors, each with a sentence that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gcond.errors import GcondError
from gcond.linalg.sparse import Matrix, SparseMatrix
from gcond.runtime.plain_text import classes_there

MOST_CLASSES = 10**6
"""Of graphs whose labels are not needed, and so not counted on: more are a mistake."""


def features(x: Matrix, *, copy: bool = True) -> Matrix:
    """float32 [N, d] on the CPU, finite, neither side empty; torch's own COO and CSR become a :class:`SparseMatrix`.

    A copy, which later changes to ``x`` do not reach; without ``copy`` the caller hands ``x`` over,
    and large features need not stand in memory twice.
    """
    if not isinstance(x, SparseMatrix):
        x = _tensor(x, "x", sparse=True)
    check_feature_shape(x.shape)
    if 0 in x.shape:
        raise GcondError(f"features have shape {list(x.shape)}: there must be at least one node and one feature")
    if isinstance(x, Tensor) and x.layout != torch.strided:
        x = _from_torch(x)
    # Made float32 first: a number that is finite in float64 may not be finite after.
    if isinstance(x, SparseMatrix):
        indptr, indices = (_plain(part, part.dtype, copy=copy) for part in (x.indptr, x.indices))
        own = SparseMatrix.from_parts(indptr, indices, _plain(_real(x.values), torch.float32, copy=copy), x.shape)
        finite_features(own)
        return own
    dense = _plain(_real(x), torch.float32, copy=copy)
    finite_features(dense)
    return dense


def finite_features(x: Matrix, first: int = 0) -> None:
    """Refuse features that are infinite or not a number; ``first`` is the node of the first row."""
    if isinstance(x, SparseMatrix):
        _finite(x.values, "feature", lambda at: f"node {first + int(x.row_index[at])}, column {int(x.indices[at])}")
        return
    columns = x.shape[1]
    _finite(x.reshape(-1), "feature", lambda at: f"node {first + at // columns}, column {at % columns}")


def labels(
    y: Tensor, n: int, num_classes: int | None, class_names: tuple[str, ...], *, needed: bool = True
) -> tuple[Tensor, int]:
    """int64 [N] in [-1, C), a copy, and C; -1 means unlabelled, which all may be where no label is ``needed``."""
    y = class_ids(y)
    check_label_count(len(y), n)
    return y, class_count(int(y.min()), int(y.max()), n, num_classes, class_names, needed=needed)


def class_count(
    low: int, highest: int, n: int, num_classes: int | None, class_names: tuple[str, ...], *, needed: bool = True
) -> int:
    """C, for class ids of ``n`` nodes from ``low`` to ``highest``."""
    if low < -1:
        raise GcondError(f"label {low} is out of range: class ids start at 0, and -1 means unlabelled")
    if highest < 0 and needed:
        raise GcondError("no node is labelled: class ids start at 0")
    classes = num_classes if num_classes is not None else (len(class_names) or max(1, highest + 1))
    if highest >= classes:
        raise GcondError(f"label {highest} is out of range: {classes_there(classes)}")
    # Before anything is counted by class: a stray label of 10¹² would take terabytes.
    if classes > (n if needed else max(n, MOST_CLASSES)):
        raise GcondError(
            f"there are {classes} classes for {n} nodes: every class needs a node, so number them from 0 on"
        )
    if class_names and len(class_names) != classes:
        raise GcondError(f"there are {len(class_names)} class names for {classes} classes: give one name per class")
    return classes


def check_feature_shape(shape: Sequence[int]) -> None:
    """Refuse features that are no matrix."""
    if len(shape) != 2:
        raise GcondError(f"features have shape {list(shape)}: they must be [nodes, features]")


def check_label_count(count: int, n: int) -> None:
    """Refuse another number of labels than of nodes."""
    if count != n:
        raise GcondError(f"there are {count} labels for {n} nodes: there must be one class id per node")


def check_edge_shape(shape: Sequence[int]) -> None:
    """Refuse edges that are no pairs of node numbers."""
    if len(shape) != 2 or shape[0] != 2:
        raise GcondError(f"edge_index has shape {list(shape)}: it must be [2, edges], sources above targets")


def check_weight_count(weights: int, edges: int) -> None:
    """Refuse another number of edge weights than of edges."""
    if weights != edges:
        raise GcondError(f"there are {weights} edge weights for {edges} edges: give one per edge")


def class_ids(y: Tensor) -> Tensor:
    """int64 [N] of whole numbers in any type, [N] or [N, 1]; a copy."""
    y = _tensor(y, "y")
    y = y.squeeze(-1) if y.dim() == 2 and y.shape[1] == 1 else y
    if y.dim() != 1:
        raise GcondError(f"labels have shape {list(y.shape)}: there must be one class id per node")
    if y.is_complex():
        raise GcondError("labels are complex numbers: each must be a class id, or -1 for unlabelled")
    if y.is_floating_point() and not torch.equal(y, y.round()):
        raise GcondError("labels are not whole numbers: each must be a class id, or -1 for unlabelled")
    return _plain(y, torch.long)


def masks(
    parts: Mapping[str, Tensor], y: Tensor, classes: int, class_names: tuple[str, ...], *, needed: bool = True
) -> dict[str, Tensor]:
    """Boolean masks [N] that do not overlap, cover labelled nodes only and, where ``needed``, train every class."""
    found = {part: _mask(part, given, len(y)) for part, given in parts.items()}
    names = list(found)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            if shared := int((found[first] & found[second]).sum()):
                raise overlap(shared, first, second)
    bare = {part: int((mask & (y < 0)).sum()) for part, mask in found.items()}
    refuse_bare(bare)
    if needed:
        every_class_trains(torch.bincount(y[found["train"]], minlength=classes), class_names)
    return found


def overlap(shared: int, first: str, second: str) -> GcondError:
    return GcondError(f"{shared} nodes are both {first} and {second}: the masks must not overlap")


def refuse_bare(bare: Mapping[str, int]) -> None:
    """Refuse a split of which so many nodes of each part have no label."""
    for part, count in bare.items():
        if count:
            raise GcondError(f"{count} {part} nodes have no label: unlabelled nodes are allowed outside the masks only")


def every_class_trains(counts: Tensor, class_names: tuple[str, ...]) -> None:
    """Refuse a split with so many training nodes of each class."""
    if not counts.any():
        raise GcondError("there is no training node: the train mask is empty")
    if empty := (counts == 0).nonzero().flatten().tolist():
        shown = ", ".join(f"'{class_names[c]}'" if class_names else str(c) for c in empty[:5])
        more = f" and {len(empty) - 5} more" if len(empty) > 5 else ""
        raise GcondError(f"no training node of class {shown}{more}: every class needs at least one")


def adjacency(
    edge_index: Tensor, edge_weight: Tensor | None, n: int, *, directed: bool
) -> tuple[SparseMatrix, tuple[str, ...]]:
    """The cleaned adjacency (row = target, column = source) and a sentence for each repair."""
    source, target, weight = _edges(edge_index, edge_weight, n)
    loops = source == target
    repairs = Repairs(loops=int(loops.sum()), empty=int((weight == 0).sum()))
    if repairs.loops or repairs.empty:
        keep = ~loops & (weight > 0)
        source, target, weight = source[keep], target[keep], weight[keep]

    matrix = _heaviest(target, source, weight, n)
    repairs.repeated = len(weight) - matrix.nnz
    del source, target, weight, loops
    matrix.sort_indices()
    if not directed:
        reverse = matrix.T.tocsr()
        if not _equal(matrix, reverse):  # mostly they are, and the maximum would take the most memory of all
            symmetric = matrix.maximum(reverse).tocsr()
            repairs.one_way = symmetric.nnz - matrix.nnz
            if edge_weight is not None:
                repairs.uneven = (symmetric != matrix).nnz - repairs.one_way
            matrix = symmetric
            matrix.sort_indices()
    return SparseMatrix.from_scipy(matrix, symmetric=not directed), repairs.sentences()


@dataclass
class Repairs:
    """How many edges were not as they should be, by what was wrong and mended."""

    loops: int = 0
    empty: int = 0
    """Of weight 0."""
    repeated: int = 0
    one_way: int = 0
    uneven: int = 0
    """Lighter than their reverse."""

    def sentences(self) -> tuple[str, ...]:
        """A sentence for each repair that was needed."""
        whose = "its" if self.uneven == 1 else "their"
        said = {
            f"{_count(self.loops, 'self-loop')} {_were(self.loops)} dropped": self.loops,
            f"{_count(self.empty, 'edge')} of weight 0 {_were(self.empty)} dropped": self.empty,
            f"{_count(self.repeated, 'repeated edge')} {_were(self.repeated)} merged, the heaviest kept": self.repeated,
            f"{_count(self.one_way, 'edge')} had no reverse and got one: the graph is used undirected": self.one_way,
            f"{_count(self.uneven, 'edge')} weighed less than {whose} reverse and got its weight": self.uneven,
        }
        return tuple(sentence for sentence, count in said.items() if count)


def csr(what: str, indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> SparseMatrix:
    """A CSR matrix from elsewhere, refused unless its arrays, which messages call ``what``, fit together."""
    fits = (
        indptr.dim() == indices.dim() == values.dim() == 1
        and {indptr.dtype, indices.dtype} <= {torch.int32, torch.int64}
        and len(indptr) == shape[0] + 1
        and len(indices) == len(values)
        and int(indptr[0]) == 0
        and int(indptr[-1]) == len(indices)
        and bool((indptr.diff() >= 0).all())
        and (len(indices) == 0 or (int(indices.min()) >= 0 and int(indices.max()) < shape[1]))
    )
    if not fits:
        raise GcondError(f"{what} do not fit together as a {shape[0]} by {shape[1]} matrix")
    return SparseMatrix.from_parts(indptr, indices, values, shape)


def _edges(edge_index: Tensor, edge_weight: Tensor | None, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    edge_index = _tensor(edge_index, "edge_index")
    check_edge_shape(edge_index.shape)
    if edge_index.is_floating_point() or edge_index.is_complex() or edge_index.dtype == torch.bool:
        raise GcondError(f"edge_index is {_dtype(edge_index)}: node ids must be integers")
    if not edge_index.dtype.is_signed:  # torch finds no extremes of some of these
        edge_index = edge_index.long()
    ends_exist(edge_index, n)
    count = edge_index.shape[1]
    if edge_weight is None:
        weight = torch.ones(count)
    else:
        weight = _plain(_real(_tensor(edge_weight, "edge_weight").reshape(-1)), torch.float32, copy=False)
        check_weight_count(len(weight), count)
        usable_weights(weight)
    source, target = edge_index.cpu().numpy()
    return source, target, weight.numpy()


def ends_exist(ends: Tensor, n: int) -> None:
    """Refuse ends of edges that are none of the ``n`` nodes."""
    nodes_exist(ends, n, "an edge names")


def usable_weights(weight: Tensor, edge: Callable[[int], str] = "edge {}".format) -> None:
    """Refuse weights that are not finite, or negative; ``edge`` says what the edge at a place is called."""
    _finite(weight, "weight", edge)
    if bool((weight < 0).any()):
        at = int((weight < 0).nonzero()[0])
        raise GcondError(f"{edge(at)} has weight {float(weight[at]):g}: weights must not be negative")


def _heaviest(rows: np.ndarray, columns: np.ndarray, weight: np.ndarray, n: int) -> scipy.sparse.csr_matrix:
    """CSR [n, n] that keeps the largest weight where a pair is listed more than once."""
    matrix = scipy.sparse.csr_matrix((weight, (rows, columns)), shape=(n, n))  # sums what is repeated
    if matrix.nnz == len(weight):
        return matrix
    order = np.lexsort((weight, columns, rows))
    rows, columns, weight = rows[order], columns[order], weight[order]
    last = np.append((rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1]), True)
    return scipy.sparse.csr_matrix((weight[last], (rows[last], columns[last])), shape=(n, n))


def _equal(one: scipy.sparse.csr_matrix, other: scipy.sparse.csr_matrix) -> bool:
    """Whether two CSR matrices with sorted indices hold the same."""
    parts = ((one.indptr, other.indptr), (one.indices, other.indices), (one.data, other.data))
    return all(np.array_equal(a, b) for a, b in parts)


def _mask(part: str, given: Tensor, n: int) -> Tensor:
    given = _tensor(given, f"the {part} mask")
    if given.dtype == torch.bool or (given.dtype == torch.uint8 and given.shape == (n,)):  # PyG once stored uint8
        if given.dim() == 2:
            raise GcondError(f"the {part} mask has {given.shape[1]} columns: choose one split, for example mask[:, 0]")
        if given.shape != (n,):
            raise GcondError(
                f"the {part} mask has shape {list(given.shape)}: it must have one entry for each of {n} nodes"
            )
        return _plain(given, torch.bool)
    # An empty tensor is float32 unless it is told otherwise, and names no node all the same.
    whole = not (given.is_floating_point() or given.is_complex()) or given.numel() == 0
    if given.dim() != 1 or not whole:
        raise GcondError(f"the {part} mask is {_dtype(given)}: it must be a boolean mask or a list of node ids")
    given = _plain(given, torch.long, copy=False)
    nodes_exist(given, n, f"the {part} nodes name")
    if n > 2 and given.shape == (n,) and int(given.max()) <= 1:  # as ids it would only repeat nodes 0 and 1
        return given.bool()
    mask = torch.zeros(n, dtype=torch.bool)
    mask[given] = True
    return mask


def nodes_exist(ids: Tensor, n: int, who_names: str) -> None:
    """Refuse row numbers that none of ``n`` nodes has; ``who_names`` them, in the message's own words."""
    low, high = (int(ids.min()), int(ids.max())) if ids.numel() else (0, 0)
    if low < 0 or high >= n:
        raise GcondError(f"{who_names} node {low if low < 0 else high}, but there are {n} nodes, 0 to {n - 1}")


def all_finite(values: Tensor) -> bool:
    """Whether no entry is infinite or NaN."""
    # The extremes tell (NaN is both), where isfinite on everything makes temporaries larger than X.
    return values.numel() == 0 or bool(torch.stack(torch.aminmax(values)).isfinite().all())


def _tensor(given: Any, what: str, *, sparse: bool = False) -> Tensor:
    """``given`` itself, if it is a tensor with numbers in it; ``sparse`` lets matrices in COO and CSR form pass."""
    if not isinstance(given, Tensor):
        kind = type(given)
        home = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        raise GcondError(f"{what} is a {home}{kind.__qualname__}: give a torch tensor")
    if given.is_meta:
        raise GcondError(f"{what} is on the device 'meta', where tensors hold no numbers: give one with numbers")
    plain = sparse and given.layout in (torch.sparse_coo, torch.sparse_csr) and given.dense_dim() == 0
    if given.layout != torch.strided and not plain:
        layout = str(given.layout).removeprefix("torch.")
        raise GcondError(f"{what} is a tensor of layout {layout}: give a dense one, for example with to_dense()")
    return given


def _from_torch(x: Tensor) -> SparseMatrix:
    """A torch COO or CSR matrix; repeated entries are summed, as torch does."""
    shape = (x.shape[0], x.shape[1])
    # Torch itself checks neither form by default, and a wrong index there ends the process.
    values = _plain(_real(x.values() if x.layout == torch.sparse_csr else x._values()), torch.float32, copy=False)
    if x.layout == torch.sparse_csr:
        own = csr("the arrays of 'x'", x.crow_indices(), x.col_indices(), values, shape)
        return SparseMatrix.from_scipy(own.to_scipy())
    rows, columns = x._indices().cpu().numpy()
    try:
        return SparseMatrix.from_scipy(scipy.sparse.coo_matrix((values.numpy(), (rows, columns)), shape=shape))
    except ValueError:
        raise GcondError(f"an index of x is out of range: x is {shape[0]} by {shape[1]}") from None


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _plain(given: Tensor, dtype: torch.dtype, *, copy: bool = True) -> Tensor:
    """``given`` as ``dtype`` on the CPU and without a gradient; with ``copy`` in memory of its own, copied once."""
    return given.detach().to("cpu", dtype, copy=copy)


def _real(values: Tensor) -> Tensor:
    if values.is_complex():
        raise GcondError("complex numbers are not usable here: give real ones")
    return values


def _finite(flat: Tensor, what: str, where: Callable[[int], str]) -> None:
    if not all_finite(flat):
        at = int((~torch.isfinite(flat)).nonzero()[0])
        raise GcondError(f"the {what} of {where(at)} is {float(flat[at])}: every {what} must be a finite number")


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
