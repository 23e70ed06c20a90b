"""CPU threads: as many as the work deserves, for as long as it takes, and then as many as before."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gcond.config.settings import whole_number

WORK_PER_THREAD = 500_000_000
"""Multiply-adds of one product for which another thread is taken: about 12 ms of one core, in dense numbers.

Threads end a product together, so a product waits for the thread whose core another program has at the moment, and
that is for a turn of the scheduler, measured at 12 to 16 ms. With two threads of an idle machine a product takes 0.53
of its time; on a busy one a product of 0.1 ms took 16 ms, one of 1.4 ms 12, one of 48 ms 53 (benchmarks/threads.py). So
a share that is no longer than such a turn has little to win and, thousands of times over, a lot to lose.
"""
SPARSE = 8
"""Time of a multiply-add of a sparse product in those of a dense one: 110 to 440 ps against 20 to 36, measured."""


def deserved(work: float) -> int:
    """The number of threads that products of ``work`` multiply-adds are worth, whatever the machine has."""
    return max(1, int(work // WORK_PER_THREAD))


def available() -> int:
    """The number of threads that may be taken: torch's own, if the machine gives this process so many cores.

    Torch's is what the program has told it, else ``OMP_NUM_THREADS``, else the cores.
    """
    import torch

    return min(torch.get_num_threads(), cores())


def cores() -> int:
    """The CPU cores of this process: those that it may run on, and no more than its container may keep busy."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min([allowed or 1, *_groups_give()])


def check_threads(count: int | None) -> int | None:
    """``count`` itself, refused unless it is a number of threads or none."""
    return None if count is None else whole_number(count, "threads", least=1)


def use_threads(count: int | None) -> None:
    """Let torch use ``count`` CPU threads from now on, in a process of gcond's own; ``None`` leaves it as it is."""
    count = check_threads(count)
    if count is None:
        return
    import torch

    torch.set_num_threads(count)


@contextmanager
def threads_for(work: float, asked: int | None = None) -> Iterator[int]:
    """Compute with ``asked`` threads or, without, with as many as ``work`` deserves and are :func:`available`.

    ``work`` is the number of multiply-adds of the largest product that is done again and again. The number holds for
    torch and for the libraries under NumPy, SciPy and scikit-learn. Afterwards all is as before: the program around
    this may have numbers of its own.
    """
    count = check_threads(asked) or min(deserved(work), available())
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(count), fewer_threads(count):
        torch.set_num_threads(count)  # also where that is more than before
        yield count


@contextmanager
def fewer_threads(most: int) -> Iterator[None]:
    """Compute with ``most`` threads of torch where there are more: for small steps within larger work.

    Within :func:`threads_for` a number that was asked for is lowered, too, so that the same number of threads gives
    the same bits whoever chose it. It costs less than a microsecond.
    """
    import torch

    before = torch.get_num_threads()
    if most < before:
        torch.set_num_threads(most)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


def _groups_give(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Iterator[int]:
    """The cores that each control group of this process may keep busy, rounded up; none where there is no limit.

    ``own`` has a line per hierarchy, ``number:controllers:path``; version 2 is the one without a controller. A limit
    holds for the groups inside, too, and a container's own may be at the root whatever the path says.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        base = root / "cpu" if controllers else root
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
        group = Path(path.lstrip("/"))
        for place in (base / group, *(base / parent for parent in group.parents)):
            with contextlib.suppress(OSError, ValueError):  # not there, not readable, or "max": no limit
                quota, period = map(int, " ".join((place / name).read_text() for name in names).split())
                if quota > 0 < period:
                    yield math.ceil(quota / period)
