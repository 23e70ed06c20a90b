"""The engine of a Ray cluster: a running one by address, or one of this machine for as long as it is needed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from gcond.errors import GcondError
from gcond.runtime.engines.engine import (
    DIED,
    MOST_TRIES,
    Engine,
    Hear,
    ObjectStore,
    Outcome,
    Outcomes,
    Tell,
    Work,
    attempt,
    divide,
)

if TYPE_CHECKING:
    from gcond.runtime.engines.ray_parcel import Parcel


class RayEngine(Engine):
    """An engine of Ray tasks. What they share is put into the object store once; results come back to this process.

    The nodes of a cluster need gcond installed, and nothing else: no data set and no shared folder.
    """

    puts = True

    def __init__(self, workers: int | None = None, threads: int | None = None, address: str | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise GcondError("the engine ray needs Ray: pip install 'gcond[ray]', or use engine='local'") from None
        self._ray: Any = ray
        self._address = address
        self._started = False
        self.workers: int | None
        if address is None:
            self.workers, self.threads = divide(workers, threads)
        else:  # the cluster decides how many run at a time, by the cores it has
            self.workers, self.threads = workers, (threads or 1)
        self.threads_per_job = None if threads is None else self.threads

    @property
    def shares_files(self) -> bool:
        return self._address is None

    def work_off(self, function: Work[Any, Any, Any], shared: Any, jobs: Iterator[Any], hear: Hear[Any]) -> Outcomes:
        first = list(islice(jobs, 1))
        if not first:
            return
        self._start()
        from gcond.runtime.engines.ray_parcel import Parcel

        ray = self._ray
        waiting = chain(iter(first), jobs)
        del first  # what was put for a job is held no longer than the job takes
        most = self.workers or self._room()
        remote = ray.remote(num_cpus=self.threads, max_retries=MOST_TRIES - 1)(_work)
        parcel, for_all = Parcel.of(shared)
        place = ray.put(parcel)

        def begun(job: Any) -> Any:
            given, own = Parcel.of(job)
            return remote.remote(function, place, given, self.threads, len(for_all), *for_all, *own)

        running: dict[Any, Any] = {}
        try:
            while True:
                running.update((begun(job), job) for job in islice(waiting, most - len(running)))
                if not running:
                    return
                yield self._finished(running)
        finally:
            for task in running:
                ray.cancel(task, force=True)

    def _finished(self, running: dict[Any, Any]) -> Outcome[Any, Any]:
        """The outcome of the next task that is done, which is ``running`` no more."""
        ray = self._ray
        (done,), _ = ray.wait(list(running), num_returns=1)
        job = running.pop(done)
        try:
            return Outcome(job, *ray.get(done))
        except ray.exceptions.RayError as error:
            gone = isinstance(error, ray.exceptions.WorkerCrashedError | ray.exceptions.OutOfMemoryError)
            return Outcome(job, error=DIED if gone else _first_line(error))

    def put(self, value: Any) -> Any:
        self._start()
        return self._ray.put(value)

    def object_stores(self) -> list[ObjectStore]:
        self._start()
        most, here = self.workers or self._room(), self._ray.get_runtime_context().get_node_id()
        found = []
        for node in self._ray.nodes():
            has, own = node["Resources"], node["NodeID"] == here  # all input comes from here, and all results go here
            jobs = most if own else min(most, int(has.get("CPU", 0)) // self.threads)
            if node["Alive"] and jobs:
                found.append(ObjectStore(int(has.get("object_store_memory", 0)), jobs))
        return found

    def _room(self) -> int:
        """The number of jobs given to a cluster at a time: twice what its cores take, so that none of them waits."""
        return max(1, 2 * int(self._ray.cluster_resources().get("CPU", 1)) // self.threads)

    def _start(self) -> None:
        if self._ray.is_initialized():
            return
        try:
            if self._address is not None:
                self._ray.init(address=self._address, logging_level=logging.ERROR, log_to_driver=False)
            else:
                assert self.workers is not None
                self._ray.init(
                    address="local",  # without it Ray would join whatever cluster runs on this machine
                    num_cpus=self.workers * self.threads,
                    include_dashboard=False,
                    logging_level=logging.ERROR,
                    log_to_driver=False,
                )
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = f"no Ray cluster answers at '{self._address}'" if self._address else "Ray does not start here"
            raise GcondError(f"{where} ({_first_line(error)}): give the address of a running one") from None
        self._started = True
        largest = max((int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"]), default=0)
        if largest < self.threads:  # its jobs would wait for ever
            raise GcondError(
                f"no machine of the Ray cluster has {self.threads} cores for a job: use threads={largest} or fewer"
            )

    def close(self) -> None:
        if self._started:
            self._ray.shutdown()
            self._started = False


def _work(
    function: Work[Any, Any, Any], shared: Parcel, job: Parcel, threads: int, of_shared: int, *values: object
) -> tuple[Any, str | None]:
    """Result and error of a job, with the ``values`` of what was put: first those of what is shared."""
    from gcond.runtime.threads import use_threads

    use_threads(threads)

    def unpacked(shared: Parcel, job: Parcel, tell: Tell) -> object:
        return function(shared.unpack(values[:of_shared]), job.unpack(values[of_shared:]), tell)

    return attempt(unpacked, shared, job, lambda fraction: None)  # tasks only have results to tell


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
