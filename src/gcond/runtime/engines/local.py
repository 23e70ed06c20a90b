"""Processes of this machine.

``concurrent.futures`` and ``joblib`` give up on every job when one process is killed, and don't say whose it was.
Here each worker has a pipe of its own, so the job that went down with it is known,
and only that one is given out again.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from gcond.runtime.engines.engine import DIED, MOST_TRIES, Engine, Job, Outcome, Result, Shared, attempt, cores, divide


class LocalEngine(Engine):
    """A pool of processes that divide the threads among them; with one worker, this process itself."""

    def __init__(self, workers: int | None = None, threads: int | None = None) -> None:
        self.workers, self.threads = divide(workers, threads, cores())
        self._pool: list[_Worker] = []

    def map(
        self, function: Callable[[Shared, Job], Result], shared: Shared, jobs: Sequence[Job]
    ) -> Iterator[Outcome[Job, Result]]:
        if self.workers == 1 or len(jobs) == 1:
            for job in jobs:
                yield Outcome(job, *attempt(function, shared, job))
        elif jobs:
            yield from self._map(function, pickle.dumps(shared), jobs)

    def _map(
        self, function: Callable[[Shared, Job], Result], shared: bytes, jobs: Sequence[Job]
    ) -> Iterator[Outcome[Job, Result]]:
        waiting, tries = list(range(len(jobs)))[::-1], Counter[int]()
        busy: dict[Any, tuple[_Worker, int]] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < self.workers:
                    number = waiting.pop()
                    tries[number] += 1
                    worker = self._free(busy)
                    worker.give(function, shared, jobs[number])
                    busy[worker.connection] = worker, number
                for connection in wait(list(busy)):
                    worker, number = busy.pop(connection)
                    try:
                        yield Outcome(jobs[number], *worker.take())
                    except (EOFError, OSError):
                        self._pool.remove(worker)
                        worker.end()
                        if tries[number] < MOST_TRIES:
                            waiting.append(number)
                        else:
                            yield Outcome(jobs[number], error=DIED)
        finally:
            for worker, _ in busy.values():  # nobody waits for these any more
                self._pool.remove(worker)
                worker.end()

    def _free(self, busy: dict[Any, Any]) -> _Worker:
        for worker in self._pool:
            if worker.connection not in busy:
                return worker
        self._pool.append(_Worker.start(self.threads))
        return self._pool[-1]

    def close(self) -> None:
        for worker in self._pool:
            worker.end()
        self._pool.clear()


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    connection: Connection
    holds: bytes | None = None
    """What its jobs share, once it has it."""

    @classmethod
    def start(cls, threads: int) -> _Worker:
        context = multiprocessing.get_context("spawn")  # a fork of a process that runs threads may hang
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(there, threads), daemon=True)
        process.start()
        there.close()  # so that the end of the process ends the pipe
        return cls(process, here)

    def give(self, function: Callable[..., Any], shared: bytes, job: object) -> None:
        fresh = self.holds is not shared
        # Pickled here and not by the pipe, whose way with tensors needs the sender to stay alive.
        message = pickle.dumps((fresh, function, job))
        with contextlib.suppress(OSError):  # it died while it was idle: taking the result finds out
            self.connection.send_bytes(message)
            if fresh:
                self.connection.send_bytes(shared)
                self.holds = shared

    def take(self) -> tuple[Any, str | None]:
        result: tuple[Any, str | None] = pickle.loads(self.connection.recv_bytes())
        return result

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _work(connection: Connection, threads: int) -> None:
    """The life of a worker: one job after the other, until the parent goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the parent decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from gcond.runtime.memory import reuse_memory
    from gcond.runtime.threads import use_threads

    use_threads(threads)
    reuse_memory()
    shared = None
    while True:
        try:
            fresh, function, job = pickle.loads(connection.recv_bytes())
            if fresh:
                shared = pickle.loads(connection.recv_bytes())
        except EOFError:
            return
        connection.send_bytes(pickle.dumps(attempt(function, shared, job)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
