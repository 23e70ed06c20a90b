"""The size at which gcond changes its way, measured: sparse or dense features.

python benchmarks/choices.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import scipy.sparse
import torch

from gcond.graph.features import SPARSE_BELOW
from gcond.linalg.sparse import SparseMatrix

ROWS, COLUMNS, WIDTH = 2000, 1500, 256


def seconds(work: Callable[[], object], times: int = 10) -> float:
    work()
    start = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - start) / times


def features(rows: int, columns: int, density: float, stream: torch.Generator) -> torch.Tensor:
    return torch.rand(rows, columns, generator=stream) * (torch.rand(rows, columns, generator=stream) < density)


def sparse_or_dense(stream: torch.Generator) -> None:
    print(
        f"X W with X [{ROWS}, {COLUMNS}] and W [{COLUMNS}, {WIDTH}]; sparse is used below {SPARSE_BELOW:.0%} non-zeros"
    )
    weight = torch.rand(COLUMNS, WIDTH, generator=stream)
    for density in (0.01, 0.03, 0.1, 0.2, 0.4):
        x = features(ROWS, COLUMNS, density, stream)
        sparse = SparseMatrix.from_scipy(scipy.sparse.csr_matrix(x.numpy()))
        ratio = seconds(lambda x=x: x @ weight) / seconds(lambda sparse=sparse: sparse @ weight)
        print(f"  {density:>4.0%} non-zeros: dense takes {ratio:5.1f} x the time of sparse")


def main() -> None:
    torch.set_num_threads(1)
    stream = torch.Generator().manual_seed(0)
    sparse_or_dense(stream)


if __name__ == "__main__":
    main()
