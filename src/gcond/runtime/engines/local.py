"""The engine of this machine's own processes.

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
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from gcond.errors import GcondError
from gcond.runtime.engines.engine import DIED, MOST_TRIES, Engine, Hear, Outcome, Outcomes, Work, attempt, divide

# Between two words of a worker on how far its job is.
TELL_SECONDS = 0.2
_NONE: Any = object()


class LocalEngine(Engine):
    """A pool of processes that divide the threads among them; with one worker, this process itself.

    ``strict`` lets what a job raises in this process through, for callers that asked for one thing and not for many.
    """

    def __init__(self, workers: int | None = None, threads: int | None = None, *, strict: bool = False) -> None:
        self.workers: int
        self.workers, self.threads = divide(workers, threads)
        self.threads_per_job = None if threads is None else self.threads
        self._strict = strict
        self._pool: list[_Worker] = []

    def work_off(self, function: Work[Any, Any, Any], shared: Any, jobs: Iterator[Any], hear: Hear[Any]) -> Outcomes:
        first = list(islice(jobs, 2 if self.workers > 1 else 0))
        if len(first) > 1:
            yield from self._pooled(function, pickle.dumps(shared), chain(first, jobs), hear)
            return
        for job in chain(first, jobs):
            tell = partial(hear, job)
            if self._strict:
                yield Outcome(job, function(shared, job, tell))
            else:
                yield Outcome(job, *attempt(function, shared, job, tell))

    def _pooled(self, function: Work[Any, Any, Any], shared: bytes, jobs: Iterator[Any], hear: Hear[Any]) -> Outcomes:
        again: list[tuple[Any, int]] = []
        busy: dict[Any, tuple[_Worker, Any, int]] = {}
        try:
            while True:
                while len(busy) < self.workers:
                    job, tries = again.pop() if again else (next(jobs, _NONE), 0)
                    if job is _NONE:
                        break
                    worker = self._free(busy)
                    worker.give(function, shared, job)
                    busy[worker.connection] = worker, job, tries + 1
                if not busy:
                    return
                for connection in wait(list(busy)):
                    worker, job, tries = busy[connection]
                    try:
                        said = worker.take()
                    except (EOFError, OSError):
                        del busy[connection]
                        self._pool.remove(worker)
                        worker.check_that_it_started()
                        worker.end()
                        if tries < MOST_TRIES:
                            again.append((job, tries))
                        else:
                            yield Outcome(job, error=DIED)
                        continue
                    if isinstance(said, float):
                        hear(job, said)
                        continue
                    del busy[connection]
                    yield Outcome(job, *said)
        finally:
            for worker, _, _ in busy.values():  # nobody waits for these any more
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
    """The pickled object that its jobs share; ``None`` until it has one."""
    started: bool = False
    """Whether it has said a word."""

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

    def take(self) -> tuple[Any, str | None] | float:
        """Result and error of its job, or how far that is."""
        said: tuple[Any, str | None] | float = pickle.loads(self.connection.recv_bytes())
        self.started = True
        return said

    def check_that_it_started(self) -> None:
        """Refuse to go on where a process ends in an error of its own before its first word: all others would too."""
        self.process.join(1)
        if not self.started and (self.process.exitcode or 0) > 0:
            raise GcondError(
                "a worker process cannot start, because it reads the script anew: put what the script does under "
                "if __name__ == '__main__', or use workers=1"
            )

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _work(connection: Connection, threads: int) -> None:
    """The life of a worker: one job after the other, until the parent goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the parent decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from gcond.runtime.memory import reuse_memory
    from gcond.runtime.threads import available, use_threads

    use_threads(min(threads, available()))  # its share; jobs that were asked for more take it themselves
    reuse_memory()
    connection.send_bytes(pickle.dumps(0.0))  # the first word: it has started
    shared = None
    while True:
        try:
            fresh, function, job = pickle.loads(connection.recv_bytes())
            if fresh:
                shared = pickle.loads(connection.recv_bytes())
        except EOFError:
            return
        connection.send_bytes(pickle.dumps(attempt(function, shared, job, _Teller(connection))))


class _Teller:
    """Sends on how far a job is, a few times a second at most."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last = time.monotonic()

    def __call__(self, fraction: float) -> None:
        if time.monotonic() - self._last >= TELL_SECONDS:
            self._last = time.monotonic()
            self._connection.send_bytes(pickle.dumps(float(fraction)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
