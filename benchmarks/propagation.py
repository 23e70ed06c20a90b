"""How fast a hop is: the kernels for Â @ X side by side, and whole propagation in memory against block by block.

One run, one thread, a seeded graph of ogbn-arxiv's size; each entry is the median of interleaved repeats, so that a
busy machine slows all of them alike, and only the ratios mean something.

    python benchmarks/propagation.py [--quick]          --quick: a tenth of the nodes and two repeats
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse
import torch

from gcond.graph.propagation import _Need, propagate
from gcond.linalg.sparse import SparseMatrix, gcn_normalise
from gcond.runtime.memory import held_bytes

NODES, EDGES, FEATURES = 169_343, 1_166_243, 128


def main() -> None:
    quick = "--quick" in sys.argv
    torch.set_num_threads(1)
    scale, repeats = (10, 2) if quick else (1, 5)
    adjacency = random_graph(NODES // scale, EDGES // scale)
    x = torch.randn(NODES // scale, FEATURES, generator=torch.Generator().manual_seed(1))
    print(f"{len(x)} nodes, {adjacency.nnz} entries, {FEATURES} float32 features, one thread, {repeats} repeats")

    kernels = one_hop(adjacency, x)
    reference = kernels["torch.sparse.mm(csr, X, 'sum')"]()
    for name, kernel in kernels.items():
        torch.testing.assert_close(kernel(), reference, rtol=1e-4, atol=1e-4, msg=f"{name} computes something else")
    table("one hop, Â @ X", measure(kernels, repeats))

    with tempfile.TemporaryDirectory() as folder:
        table("two hops, normalising included", measure(two_hops(adjacency, x, Path(folder)), repeats))


def random_graph(nodes: int, edges: int) -> SparseMatrix:
    """An undirected graph with skewed degrees."""
    rng = np.random.default_rng(0)
    source, target = (rng.random(edges) ** 2 * nodes).astype(int), rng.integers(nodes, size=edges)
    one_way = scipy.sparse.csr_matrix((np.ones(edges, np.float32), (source, target)), shape=(nodes, nodes))
    return SparseMatrix.from_scipy((one_way + one_way.T).sign(), symmetric=True)


def one_hop(adjacency: SparseMatrix, x: torch.Tensor) -> dict[str, Callable[[], torch.Tensor]]:
    operator = gcn_normalise(adjacency)
    matrix, rows, columns = operator.to_scipy(), operator.row_index, operator.indices.long()
    return {
        "torch.sparse.mm(csr, X, 'sum')": lambda: torch.sparse.mm(operator.csr, x, "sum"),
        "csr @ X": lambda: operator.csr @ x,
        "SciPy": lambda: torch.from_numpy(matrix @ x.numpy()),
        "gather, index_add": lambda: torch.zeros_like(x).index_add_(0, rows, operator.values[:, None] * x[columns]),
    }


def two_hops(adjacency: SparseMatrix, x: torch.Tensor, folder: Path) -> dict[str, Callable[[], torch.Tensor]]:
    def within(columns: int) -> Callable[[], torch.Tensor]:
        # The limit that lets just so many columns in; the file is on disk, so its fsync is part of the time.
        return lambda: propagate(
            adjacency,
            x,
            hops=2,
            out=folder / "h.npy",
            memory_limit=_Need(held_bytes(), adjacency, 2).bytes_for(columns) + 10**6,
        )

    runs = {"in memory": lambda: propagate(adjacency, x, hops=2)}
    runs["in memory, then a file"] = lambda: propagate(adjacency, x, hops=2, out=folder / "h.npy")
    return runs | {f"blocks of {columns} columns": within(columns) for columns in (64, 32, 16)}


def measure(runs: dict[str, Callable[[], torch.Tensor]], repeats: int) -> dict[str, float]:
    """Median seconds of each, the first round (cold caches) left out."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken[1:]) for name, taken in seconds.items()}


def table(title: str, seconds: dict[str, float]) -> None:
    first = next(iter(seconds.values()))
    print(f"\n{title:<40}{'ms':>9}{'ratio':>8}")
    for name, taken in seconds.items():
        print(f"{name:<40}{taken * 1000:>9.1f}{taken / first:>8.2f}")


if __name__ == "__main__":
    main()
