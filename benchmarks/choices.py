"""The two sizes at which gcond changes its way, measured: sparse or dense features, and how many runs to stack.

python benchmarks/choices.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import scipy.sparse
import torch

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.graph.features import SPARSE_BELOW
from gcond.linalg.sparse import SparseMatrix
from gcond.models.gcn import GCN
from gcond.training.fit import STACK_BYTES, fit, runs_together
from gcond.training.recipe import Recipe

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


def runs_to_stack(stream: torch.Generator) -> None:
    print(f"one epoch of a GCN on n nodes of {COLUMNS} dense features; at most {STACK_BYTES >> 20} MiB are stacked")
    for nodes in (70, 1000, 4000):
        x = torch.rand(nodes, COLUMNS, generator=stream)
        edges = torch.randint(nodes, (2, 4 * nodes), generator=stream)
        edges = edges[:, edges[0] != edges[1]].unique(dim=1)
        y = torch.arange(nodes) % 7
        view = CondensedGraph(x, y, edges, torch.ones(edges.shape[1])).view()
        recipe = Recipe(epochs=3, select="last")
        cost = {}
        for runs in (1, 2, 5, 10, 20):
            options = {"classes": 7, "seeds": range(runs), "recipe": recipe}
            cost[runs] = seconds(lambda o=options, v=view: fit(GCN(), v, None, **o), times=2) / runs
        shown = "  ".join(f"{runs}: {value / cost[1]:.2f}" for runs, value in cost.items())
        chosen = runs_together(GCN(), view, 7)
        print(f"  n = {nodes:>4}: time a run by runs stacked, one = 1.00:  {shown}  (chosen: {chosen})")


def main() -> None:
    torch.set_num_threads(1)
    stream = torch.Generator().manual_seed(0)
    sparse_or_dense(stream)
    runs_to_stack(stream)


if __name__ == "__main__":
    main()
