"""One thread against all cores, in one run: single products, an epoch of condensation, trainings, and propagation.

python benchmarks/threads.py [--quick]

A ratio above 1 says that all cores take longer than one. Read it together with how busy the machine is: the rule of
gcond/runtime/threads.py is about the worst that a busy one does to small products, and not about the best of an idle
one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse
import torch

import gcond
from gcond.errors import GcondError
from gcond.linalg.sparse import SparseMatrix
from gcond.runtime.threads import SPARSE, cores, deserved, threads_for

DENSE = ((70, 1433, 7), (70, 1433, 256), (4900, 128, 128), (20_000, 128, 256), (100_000, 128, 128))
SPARSE_SHAPES = ((2_708, 13_000, 16), (2_708, 50_000, 256), (18_333, 1_100_000, 256), (169_343, 2_500_000, 40))


def seconds(work: Callable[[], object], threads: int, times: int) -> float:
    """The median wall time of ``work``: the mean would be that of the worst moments, the least that of the best."""
    spent = []
    with threads_for(0, threads):
        for _ in range(times):
            start = time.perf_counter()
            work()
            spent.append(time.perf_counter() - start)
    return statistics.median(spent)


def compare(what: str, work: Callable[[], object], *, times: int, rule: str) -> None:
    work()
    # In turns, so that whatever else the machine does meets both.
    turns = [(seconds(work, 1, times), seconds(work, cores(), times)) for _ in range(2)]
    one, all_of_them = (min(each) for each in zip(*turns, strict=True))
    print(f"  {what:<46} {1000 * one:10.2f} ms  x {all_of_them / one:6.2f} on {cores()} threads; {rule}", flush=True)


def products() -> None:
    stream = torch.Generator().manual_seed(0)
    for rows, inner, columns in DENSE:
        left, right = torch.rand(rows, inner, generator=stream), torch.rand(inner, columns, generator=stream)
        rule = f"the rule takes {min(deserved(rows * inner * columns), cores())}"
        compare(f"[{rows}, {inner}] @ [{inner}, {columns}]", lambda a=left, b=right: a @ b, times=9, rule=rule)
    draw = np.random.default_rng(0)
    for nodes, entries, columns in SPARSE_SHAPES:
        places = draw.integers(0, nodes, (2, entries))
        matrix = SparseMatrix.from_scipy(scipy.sparse.csr_matrix((np.ones(entries, "f"), places), (nodes, nodes)))
        x = torch.rand(nodes, columns, generator=stream)
        rule = f"the rule takes {min(deserved(SPARSE * matrix.nnz * columns), cores())}"
        compare(f"sparse {nodes:,} nodes, {entries:,} × {columns}", lambda m=matrix, x=x: m @ x, times=9, rule=rule)


def whole_calls(quick: bool) -> None:
    cora = found("cora")
    if cora is not None:
        brief = {"epochs": 1, "outer": 3 if quick else 20, "init": "sample", "probe_every": 0}
        report("gcond, 70 nodes of cora", lambda count: gcond.condense(cora, nodes=70, threads=count, **brief))
        report("20 epochs of a GCN on cora", lambda count: gcond.evaluate(cora, runs=1, epochs=20, threads=count))
    if quick:
        return
    cs = found("coauthor-cs")
    if cs is not None:
        report("4 epochs of a GCN on coauthor-cs", lambda count: gcond.evaluate(cs, runs=1, epochs=4, threads=count))
    large = gcond.load("synthetic:arxiv")
    report("two hops on synthetic:arxiv", lambda count: gcond.propagate(large, hops=2, threads=count))


def found(name: str) -> gcond.SourceGraph | None:
    try:
        return gcond.load(name)
    except GcondError:
        print(f"  {name} is not at hand")
        return None


def report(what: str, work: Callable[[int | None], object]) -> None:
    spent = {}
    for count in (1, cores(), None):
        start = time.perf_counter()
        work(count)
        spent[count] = time.perf_counter() - start
    all_of_them = f"x {spent[cores()] / spent[1]:6.2f} on {cores()} threads"
    print(
        f"  {what:<46} {1000 * spent[1]:10.2f} ms  {all_of_them}; x {spent[None] / spent[1]:.2f} by the rule",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the large graphs")
    quick = parser.parse_args().quick
    print(f"{cores()} cores, {os.getloadavg()[0]:.1f} programs at work on them")
    products()
    whole_calls(quick)


if __name__ == "__main__":
    main()
