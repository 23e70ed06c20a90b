"""``gcond.propagate``: features smoothed over the graph, in memory or block by block through a file."""

from __future__ import annotations

import mmap
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from gcond.errors import GcondError
from gcond.graph.source_graph import SourceGraph
from gcond.graph.stored_graph import StoredGraph
from gcond.linalg.sparse import SparseMatrix, gcn_normalise
from gcond.linalg.tall import RowFile
from gcond.runtime.files import atomic_path, check_writable
from gcond.runtime.memory import SAFE_SHARE, available_bytes, hand_back, held_bytes, parse_bytes
from gcond.runtime.threads import SPARSE, check_threads, threads_for
from gcond.runtime.torch_settings import with_usual_torch

Features: TypeAlias = Tensor | SparseMatrix | np.ndarray

# Room for what is not counted one by one: code paged in at first use, buffers, small temporaries.
SLACK = 24 * 10**6
# A memory-mapped X is read this many bytes at a time, and each piece is let go of before the next.
PIECE = 4 * 2**20
# Blocks are whole vectors of the product's kernel, so that none of its work is left over.
VECTOR = 16


@with_usual_torch
@torch.no_grad()
def propagate(
    graph: SourceGraph | SparseMatrix,
    x: Features | None = None,
    *,
    hops: int,
    memory_limit: str | int | None = None,
    threads: int | None = None,
    out: str | Path | None = None,
    on_block: Callable[[int, int], None] | None = None,
) -> Tensor:
    r"""``H = Â^hops X`` with ``Â = D^-½ (A + I) D^-½``: [n, d], of the adjacency's dtype.

    ``graph`` is a source graph, whose features are X, or an adjacency A [n, n], and then ``x`` is X [n, d]: a
    tensor, a sparse matrix or a NumPy array, which may be memory-mapped. No gradient goes through it.

    **Memory.** Columns of X do not mix, so any number k of them can be taken through all hops at once. With
    e = nnz(A) + n entries in Â, b bytes per number and i bytes per index (4 and 4 for most graphs), the process
    then holds at most

    .. math:: \text{held} + \max(e\,(3b + i + 8),\; e\,(b + i) + 3 n k b) + 24\,\text{MB}

    where *held* is what it holds when the call begins, with X, A, Python and PyTorch in it; the first term of
    the maximum is normalising A, the second is Â beside three blocks (one hop, the next, and a transposed copy).

    ``memory_limit`` (bytes, or text such as ``"500MB"``) is a limit on that whole sum, so on the resident memory
    of the process and not on what this function adds. It defaults to *held* and three quarters of the memory
    that is free. If all d columns fit, they are one block; otherwise k is the largest that does.

    - The pages of an ``np.memmap`` are let go of as they are read and count nothing. A tensor over a memory map
      cannot be told from any other, so it counts in full.
    - Reading the result makes its pages resident too; that is after the call, and the limit does not cover it.

    **The result** is a plain tensor if everything fits and ``out`` is not given. With ``out`` it is a ``.npy``
    file, written atomically and in column-major order, so that each block is one contiguous write; what comes
    back is a tensor over a private map of that file, so changing it leaves the file alone. Without ``out``
    and without room, the file is a nameless one in the temporary folder (``$TMPDIR``) and is gone with the tensor.
    The numbers are the same for every k and for every number of ``threads``, which is as many as the product deserves
    if not given: each row is added up by one of them. ``on_block(done, total)`` is called after each block.
    """
    if isinstance(graph, StoredGraph):
        return _from_store(graph, x, hops, out)
    adjacency, x = _operands(graph, x)
    _check_hops(hops)
    if out is not None:
        check_writable(out)
    if not isinstance(x, SparseMatrix) and not _is_droppable(x):
        x.sum()  # reads every page: a tensor over a memory map is then part of what the process holds

    need = _Need(held_bytes(), adjacency, hops)
    limit = need.held + int(SAFE_SHARE * _free_bytes(adjacency)) if memory_limit is None else parse_bytes(memory_limit)
    n, d = x.shape
    check_threads(threads)
    width = need.columns_within(limit, d)
    with threads_for(SPARSE * (adjacency.nnz + n) * width, threads):
        return _propagated(adjacency, x, width, hops=hops, out=out, on_block=on_block)


def _propagated(
    adjacency: SparseMatrix,
    x: Features,
    width: int,
    *,
    hops: int,
    out: str | Path | None,
    on_block: Callable[[int, int], None] | None,
) -> Tensor:
    """The work of :func:`propagate`, by blocks of ``width`` columns."""
    n, d = x.shape
    operator = gcn_normalise(adjacency) if hops else None

    def block(start: int) -> Tensor:
        hand_back()  # what normalising or the last block has freed; its pieces may be too small for this one
        columns = _columns(x, start, min(start + width, d), adjacency.dtype).to(adjacency.device)
        for _ in range(hops):
            hand_back()
            columns = operator @ columns  # type: ignore[operator]
        hand_back()
        return columns

    starts = range(0, d, width)
    if out is None and len(starts) == 1:
        whole = block(0)
        if on_block:
            on_block(1, 1)
        return whole.clone() if hops == 0 else whole
    with _place(out) as path:
        _check_disk(path, n * d * adjacency.values.itemsize, named=out is not None)
        with atomic_path(path) as temporary, open(temporary, "wb") as file:
            _write_header(file, (n, d), adjacency.dtype)
            for done, start in enumerate(starts, 1):
                file.write(block(start).T.contiguous().cpu().numpy().data)
                if on_block:
                    on_block(done, len(starts))
        return torch.from_numpy(np.load(path, mmap_mode="c"))


@dataclass(frozen=True)
class _Need:
    """The formula of :func:`propagate`: the memory that k columns take."""

    held: int
    adjacency: SparseMatrix
    hops: int

    def bytes_for(self, columns: int) -> int:
        n = self.adjacency.shape[0]
        number, index = self.adjacency.values.itemsize, self.adjacency.indices.itemsize
        entries = self.adjacency.nnz + n if self.hops else 0
        normalising = entries * (3 * number + index + 8)
        running = entries * (number + index) + 3 * n * columns * number
        return self.held + max(normalising, running) + SLACK

    def columns_within(self, limit: int, d: int) -> int:
        """The widest block that stays within ``limit`` bytes; a limit that one column breaks is refused."""
        if self.bytes_for(1) > limit:
            least = -(-self.bytes_for(1) // 10**6) + 1  # one more, because the process may grow by a little meanwhile
            raise GcondError(
                f"a memory limit of {limit / 10**6:.0f} MB is too small for {self.adjacency.shape[0]} nodes: this "
                f"process already holds {self.held / 10**6:.0f} MB, and one column at a time takes it to {least} MB: "
                f"use memory_limit='{least}MB' or more"
            )
        if self.bytes_for(d) <= limit:
            return max(d, 1)
        low, high = 1, d  # bytes_for(low) fits, bytes_for(high) does not
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.bytes_for(middle) <= limit else (low, middle)
        return low - low % VECTOR if low > VECTOR else low


def _from_store(graph: StoredGraph, x: Features | None, hops: int, out: str | Path | None) -> Tensor:
    """The same of a graph on disk, within its own limit; the file that its store keeps, or a copy of it."""
    if x is not None:
        raise GcondError("a source graph brings its own features: give x with an adjacency only")
    _check_hops(hops)
    if out is not None:
        check_writable(out)
    kept = graph.inputs.kept("gcn", hops) if hops else graph.inputs.copied()
    assert isinstance(kept, RowFile)
    if out is not None:
        _check_disk(Path(out), kept.nbytes, named=True)
        with atomic_path(out) as temporary:
            shutil.copyfile(kept.path, temporary)
    return torch.from_numpy(np.load(kept.path if out is None else out, mmap_mode="c"))


def _check_hops(hops: int) -> None:
    if isinstance(hops, bool) or not isinstance(hops, int) or hops < 0:
        raise GcondError(f"hops={hops!r} is not usable: it must be a whole number, 0 or more")


def _operands(graph: SourceGraph | SparseMatrix, x: Features | None) -> tuple[SparseMatrix, Features]:
    if isinstance(graph, SourceGraph):
        if x is not None:
            raise GcondError("a source graph brings its own features: give x with an adjacency only")
        return graph.adjacency, graph.x
    if not isinstance(graph, SparseMatrix):
        raise GcondError(f"a {type(graph).__name__} cannot be propagated over: give a SourceGraph or a SparseMatrix")
    if x is None:
        raise GcondError("an adjacency alone has nothing to propagate: give the features x [nodes, features] with it")
    if not isinstance(x, Tensor | SparseMatrix | np.ndarray):
        raise GcondError(
            f"features of type {type(x).__name__} are not usable: give a tensor, SparseMatrix or NumPy array"
        )
    rows, columns = graph.shape
    if rows != columns:
        raise GcondError(f"the adjacency has shape {[rows, columns]}: it must be square")
    if len(x.shape) != 2 or x.shape[0] != rows:
        raise GcondError(
            f"features have shape {list(x.shape)}: they must be [nodes, features], and there are {rows} nodes"
        )
    return graph, x


def _free_bytes(adjacency: SparseMatrix) -> int:
    """Memory that is free where the blocks will be: this machine's, and the GPU's if ``adjacency`` is on one."""
    device = adjacency.device
    return min(available_bytes(), torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else available_bytes()


def _columns(x: Features, start: int, stop: int, dtype: torch.dtype) -> Tensor:
    """Columns ``start`` to ``stop`` of X as a dense, contiguous tensor; X itself where that is what it is."""
    if isinstance(x, SparseMatrix):
        return torch.from_numpy(x.to_scipy()[:, start:stop].toarray()).to(dtype)
    if isinstance(x, Tensor):
        return x[:, start:stop].to(dtype).contiguous()
    block = torch.empty(x.shape[0], stop - start, dtype=dtype)
    piece = max(1, PIECE // max(1, x.shape[1] * x.itemsize))
    for row in range(0, x.shape[0], piece):
        block.numpy()[row : row + piece] = x[row : row + piece, start:stop]
        if _is_droppable(x):
            _mapping(x).madvise(mmap.MADV_DONTNEED)  # type: ignore[union-attr]
    return block


def _is_droppable(x: object) -> bool:
    """Whether pages of ``x`` can be let go of and come back unchanged: a map shared with its file."""
    shared = isinstance(x, np.memmap) and x.mode != "c"  # changes to a private map are in its pages alone
    return shared and hasattr(mmap, "MADV_DONTNEED") and _mapping(x) is not None


def _mapping(x: object) -> mmap.mmap | None:
    while isinstance(x, np.ndarray):
        x = x.base
    return x if isinstance(x, mmap.mmap) else None


@contextmanager
def _place(out: str | Path | None) -> Iterator[Path]:
    """Where the file goes. A temporary folder may be removed as soon as its file is mapped: the map keeps the data."""
    if out is not None:
        yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="gcond-") as folder:
        yield Path(folder, "propagated.npy")


def _check_disk(path: Path, size: int, *, named: bool) -> None:
    free = shutil.disk_usage(path.parent).free
    if size > free:
        remedy = "free some or write elsewhere" if named else "set TMPDIR to a larger one or give out="
        room = f"the disk of '{path.parent}' has {free / 10**6:.0f} MB free"
        raise GcondError(f"the result takes {size / 10**6:.0f} MB, and {room}: {remedy}")


def _write_header(file: object, shape: tuple[int, int], dtype: torch.dtype) -> None:
    descr = np.lib.format.dtype_to_descr(torch.empty(0, dtype=dtype).numpy().dtype)
    header = {"descr": descr, "fortran_order": True, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)  # type: ignore[arg-type]
