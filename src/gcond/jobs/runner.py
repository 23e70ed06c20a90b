"""The one runner of work that is many jobs: it does what a run folder lacks, and nothing twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

from gcond.callbacks.checkpoint import checkpoint_of
from gcond.condensed import CondensedGraph
from gcond.errors import GcondError
from gcond.graph import SourceGraph
from gcond.jobs.condensation import Condensation, Making, condense
from gcond.jobs.observed_training import Grounds, ObservedBatch, ObservedTraining, observe
from gcond.jobs.training_job import (
    Batch,
    Length,
    Run,
    TimedTogether,
    TrainingGround,
    TrainingJob,
    batches,
    time_together,
    train,
)
from gcond.results import Failure, Observation, RunFolder, Timing, Trial
from gcond.runtime.engines import Engine, Work
from gcond.runtime.files import make_folder
from gcond.runtime.progress_tick import Tick, ignore

# Between two looks at what another process has claimed and not finished.
WAIT_SECONDS = 0.5


class Job(Protocol):
    """A job made of pieces that may be claimed one by one."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def only(self, names: Sequence[str], /) -> Self: ...


J = TypeVar("J", bound=Job)
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class _Graph:
    """A condensation as a job: one piece, named after its file."""

    condensation: Condensation
    file: str

    def __str__(self) -> str:
        return str(self.condensation)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.file,)

    def only(self, names: Sequence[str]) -> _Graph:
        return self


class Runner:
    """Condensations and trainings on one source graph, done by an engine and kept in a run folder.

    Each result is written as soon as it is there, by this process alone, whoever did the work. What was killed goes on
    where it was, and a condensation that learns goes on from its checkpoint where the workers see the folder. Runners
    that share a folder share the work: each claims what it starts, and waits for what another has claimed. What fails
    is told in :attr:`failures`, and tried again by the next runner.
    """

    def __init__(
        self,
        source: SourceGraph,
        folder: RunFolder,
        engine: Engine,
        *,
        device: str = "auto",
        on_progress: Tick | None = None,
    ) -> None:
        self.source, self.folder, self.engine = source, folder, engine
        self.failures: list[Failure] = []
        self._testing, self._tick = TrainingGround(source, device, engine.threads_per_job), on_progress or ignore
        if not engine.idle:
            folder.prepare()
        folder.trials.refresh()  # a log that is none is refused before any work

    def condense(self, condensations: Iterable[Condensation]) -> dict[Condensation, CondensedGraph]:
        """The condensed graphs, but for those that failed."""
        wanted = list(dict.fromkeys(condensations))
        files = {job: job.file(self.source) for job in wanted}
        found = {files[job]: small for job in wanted if (small := self.folder.graph(files[job])) is not None}

        def is_done(file: str) -> bool:
            if (small := self.folder.graph(file)) is not None:
                found[file] = small
            return file in found

        def keep(job: _Graph, small: CondensedGraph) -> None:
            found[job.file] = small
            self.folder.keep_graph(job.file, small)
            if self.folder.graphs is not None:
                checkpoint_of(self.folder.graphs / job.file).unlink(missing_ok=True)

        missing = [_Graph(job, file) for job, file in files.items() if file not in found]
        if missing and self.folder.graphs is not None and not self.engine.idle:
            make_folder(self.folder.graphs)
        seen = self.folder.graphs if self.engine.shares_files else None
        shared = Making(self.source, self._testing.device, seen, self.engine.threads_per_job)
        self._work_off("condensing", _condense, shared, missing, total=len(wanted), is_done=is_done, keep=keep)
        return {job: found[file] for job, file in files.items() if file in found}

    def train(self, jobs: Sequence[TrainingJob]) -> list[list[Trial]]:
        """The trials of each job, by seed, but for those that failed."""
        keys = [job.key(self.source) for job in jobs]
        each = [[Run(job, key, seed) for seed in job.seeds] for job, key in zip(jobs, keys, strict=True)]
        runs = {run.name: run for own in each for run in own}

        def is_done(name: str) -> bool:
            self.folder.trials.refresh()
            return self._find(runs[name]) is not None

        def keep(_: Batch, results: Sequence[Trial | Failure]) -> None:
            for result in results:
                if isinstance(result, Trial):
                    self.folder.trials.add(result)
                else:
                    self.failures.append(result)

        missing = list(batches([run for run in runs.values() if self._find(run) is None], self.source))
        self._work_off("training", train, self._testing, missing, total=len(runs), is_done=is_done, keep=keep)
        return [[trial for run in own if (trial := self._find(run)) is not None] for own in each]

    def observe(self, jobs: Sequence[ObservedTraining], graphs: Mapping[str, SourceGraph]) -> list[list[Observation]]:
        """The observations of each job, by seed, but for those that failed; ``graphs`` are those that jobs name."""
        log = self.folder.observations
        log.refresh()
        each = [ObservedBatch(job, job.key(graphs)) for job in jobs]
        wanted = {name: (batch.key, seed) for batch in each for name, seed in batch.seeds.items()}

        def is_done(name: str) -> bool:
            log.refresh()
            return log.find(*wanted[name]) is not None

        def keep(_: ObservedBatch, results: Sequence[Observation | Failure]) -> None:
            for result in results:
                if isinstance(result, Observation):
                    log.add(result)
                else:
                    self.failures.append(result)

        left = {batch.key: [name for name in batch.names if not is_done(name)] for batch in each}
        missing = [batch.only(left[batch.key]) for batch in each if left[batch.key]]
        shared = Grounds(dict(graphs), self._testing.device, self._testing.threads)
        self._work_off("training", observe, shared, missing, total=len(wanted), is_done=is_done, keep=keep)
        return [
            [row for seed in batch.seeds.values() if (row := log.find(batch.key, seed)) is not None] for batch in each
        ]

    def cpu_seconds(self, jobs: Sequence[TrainingJob]) -> list[float | None]:
        """CPU seconds of one training of each job; ``None`` where it is not known.

        Trials were done at different times beside different work, so their own seconds do not compare. A few epochs of
        all jobs are timed in one go instead, of all of them again where one is new, and counted as often as the trials
        had epochs and looks.
        """
        keys = [(job.key(self.source), job.seeds[0]) for job in jobs]
        if not self.engine.idle and not self._timed(keys):
            try:
                while not self.folder.claims.take(f"timing {keys}"):  # another times the same just now
                    time.sleep(WAIT_SECONDS)
                self.folder.timings.refresh()
                if not self._timed(keys):
                    self._time(jobs, keys)
            finally:
                self.folder.claims.release_all()
        found = [self.folder.timings.find(*key) for key in keys]
        return [None if timing is None else timing.cpu_seconds for timing in found]

    def _timed(self, keys: Sequence[tuple[str, int]]) -> bool:
        return all(self.folder.timings.find(*key) is not None for key in keys)

    def _time(self, jobs: Sequence[TrainingJob], keys: Sequence[tuple[str, int]]) -> None:
        lengths = tuple(self._length(job, key) for job, (key, _) in zip(jobs, keys, strict=True))
        timed = TimedTogether(tuple(replace(job, seeds=job.seeds[:1]) for job in jobs), lengths)
        hear = self._hear("timing", 0, 1)
        for outcome in self.engine.map(time_together, self._testing, [timed], lambda _, share: hear(share)):
            if outcome.result is None:
                self.failures.append(Failure(str(timed), outcome.error or "no result"))
            for key, seconds in zip(keys, outcome.result or (), strict=False):
                self.folder.timings.add(Timing(*key, seconds))

    def _length(self, job: TrainingJob, key: str) -> Length:
        """The length of a training as its trials had it, those that are done."""
        found = (self.folder.trials.find(key, seed) for seed in job.seeds)
        return Length.of([trial for trial in found if trial is not None], job.recipe)

    def raise_first_failure(self) -> None:
        """For those who asked for one thing, in which a failure is no part of the result."""
        for failure in self.failures[:1]:
            raise GcondError(f"{failure.what}: {failure.error}")

    def _find(self, run: Run) -> Trial | None:
        return self.folder.trials.find(run.key, run.seed)

    def _work_off(
        self,
        what: str,
        function: Work[Any, J, R],
        shared: object,
        jobs: Sequence[J],
        *,
        total: int,
        is_done: Callable[[str], bool],
        keep: Callable[[J, R], None],
    ) -> None:
        """Do ``jobs`` on the engine, those that other processes do not do; of ``total`` pieces the rest is done."""
        claims, waiting = self.folder.claims, list(jobs)
        done = total - sum(len(job.names) for job in waiting)
        hear = self._hear(what, done, total)
        running: dict[tuple[str, ...], float] = {}

        def progress(job: J, share: float) -> None:
            running[job.names] = share * len(job.names)
            hear(done + sum(running.values()))

        def offered(left: list[J]) -> Iterator[J]:
            """The jobs that are ours to do; those that others have claimed are put by in ``left``."""
            for job in waiting:
                mine = [name for name in job.names if claims.take(name)]
                if others := [name for name in job.names if name not in mine]:
                    left.append(job.only(others))
                fresh = [name for name in mine if not is_done(name)]
                for name in set(mine) - set(fresh):
                    claims.release(name)
                if fresh:
                    yield job.only(fresh)

        try:
            while waiting and not self.engine.idle:
                left: list[J] = []
                for outcome in self.engine.map(function, shared, offered(left), progress):
                    job, result = outcome.job, outcome.result
                    if result is None:
                        self.failures.append(Failure(str(job), outcome.error or "no result"))
                    else:
                        keep(job, result)
                    for name in job.names:
                        claims.release(name)
                    running.pop(job.names, None)
                    done += len(job.names)
                    hear(done + sum(running.values()))
                waiting = [job.only(names) for job in left if (names := [n for n in job.names if not is_done(n)])]
                done = total - sum(len(job.names) for job in waiting)
                hear(done)
                if waiting:
                    time.sleep(WAIT_SECONDS)
        finally:
            claims.release_all()

    def _hear(self, what: str, done: float, total: int) -> Callable[[float], None]:
        self._tick(what, done, total)
        return lambda now: self._tick(what, now, total)


def _condense(shared: Making, job: _Graph, tell: Callable[[float], None]) -> CondensedGraph:
    return condense(shared, job.condensation, tell)
