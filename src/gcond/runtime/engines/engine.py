"""An engine: one ``map`` over jobs that do not know each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from gcond.errors import GcondError
from gcond.runtime.threads import cores as own_cores

Shared = TypeVar("Shared")
Job = TypeVar("Job")
Result = TypeVar("Result")
Tell = Callable[[float], None]
"""Told by a job how far it is, as a fraction of itself."""
Work = Callable[[Shared, Job, Tell], Result]
"""A function of a module that does one job; it may tell how far it is."""
Hear = Callable[[Job, float], None]
"""Told which job is how far."""

# How often a job is given to a worker before it is held to be what kills them.
MOST_TRIES = 3


@dataclass(frozen=True)
class Outcome(Generic[Job, Result]):
    """The outcome of a job: a result, or a line that says why there is none."""

    job: Job
    result: Result | None = None
    error: str | None = None


Outcomes = Iterator[Outcome[Any, Any]]


@dataclass(frozen=True)
class ObjectStore:
    """The memory of one machine for what was put there (:meth:`Engine.put`), and for large results."""

    bytes: int
    jobs: int
    """Jobs whose input and result may be there at once."""


class Engine(ABC):
    """A way to work jobs off; to be used in a ``with`` block, which ends whatever the engine started."""

    idle: ClassVar[bool] = False
    """Whether it does nothing, so that there is nothing new to keep."""
    puts: ClassVar[bool] = False
    """Whether there is an object store (:meth:`put`)."""
    workers: int | None = None
    """Jobs at a time, where it is known."""
    threads_per_job: int | None = None
    """CPU threads that every job computes with, where somebody asked for a number; else it is as many as its work
    deserves, of those that its process may have."""

    def map(
        self,
        function: Work[Shared, Job, Result],
        shared: Shared,
        jobs: Iterable[Job],
        on_progress: Hear[Job] | None = None,
    ) -> Iterator[Outcome[Job, Result]]:
        """``function(shared, job, tell)`` for every job, as they finish, in any order.

        ``function`` is a function of a module; ``shared``, jobs and results can be pickled. A job is taken from
        ``jobs`` when a worker is free for it. ``on_progress(job, fraction)`` hears what jobs tell of themselves,
        where the engine can pass that on. A job that raises, or whose worker dies time and again, has an
        :attr:`Outcome.error`; the others go on.
        """
        return self.work_off(function, shared, iter(jobs), on_progress or (lambda job, fraction: None))

    @abstractmethod
    def work_off(self, function: Work[Any, Any, Any], shared: Any, jobs: Iterator[Any], hear: Hear[Any]) -> Outcomes:
        """The work of :meth:`map`, as this kind of engine does it."""

    @property
    def shares_files(self) -> bool:
        """Whether a path means the same file to the jobs as it does here."""
        return True

    def put(self, value: Any) -> Any:
        """What stands for ``value`` in what jobs share and in jobs themselves: there the function finds the value.

        Each machine fetches it once for all of its jobs, before they begin; arrays are not to be written to. It is let
        go of with the last that stands for it, so whoever waits for a job keeps what the job was given.
        """
        raise NotImplementedError

    def object_stores(self) -> list[ObjectStore]:
        """Those of all machines that may be given jobs, and of this one."""
        return []

    @abstractmethod
    def close(self) -> None:
        """End what was started; the engine may be used again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def attempt(
    function: Work[Shared, Job, Result], shared: Shared, job: Job, tell: Tell
) -> tuple[Result | None, str | None]:
    """Result and error of one job, of which one is ``None``."""
    try:
        return function(shared, job, tell), None
    except GcondError as error:
        return None, str(error)
    except Exception as error:  # a bug in one job is no reason to lose the others
        return None, f"{type(error).__name__}: {' '.join(str(error).split())}"


DIED = f"its process ended without a word {MOST_TRIES} times, as it does when memory runs out"
"""Why there is no result where a worker went away :data:`MOST_TRIES` times."""


def divide(workers: int | None, threads: int | None, cores: int | None = None) -> tuple[int, int]:
    """Workers, and threads for each of them, on ``cores`` CPU cores: as many as this process may use if not given."""
    available = cores or own_cores()
    total = threads or available
    workers = workers or min(total, available)
    return workers, max(1, total // workers)
