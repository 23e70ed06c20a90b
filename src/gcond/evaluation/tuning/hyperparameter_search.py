"""``gcond.tune``: a search for hyper-parameters on a condensed graph, whose best are then trained on the whole one.

Optuna draws configurations in batches, the Runner trains them, and the run folder keeps every training. That folder
is all the storage there is: whoever takes a search up lets Optuna draw again from the same seed, and what it draws is
found trained, up to where the search was stopped. So a search that was killed is bit for bit the one that was not,
which an Optuna storage would not give, since it forgets where the sampler's generator was. Batches have a fixed size
and are told in the order in which they were drawn, so neither the number of workers nor the engine changes anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from gcond.condensed import CondensedGraph, Recommendation
from gcond.config import settings
from gcond.errors import GcondError
from gcond.evaluation.evaluate import check_fit, check_one_number_of_threads, source_of, trained_on, working
from gcond.evaluation.tuning.candidates import Candidate, as_finalist, each_once, shortlist
from gcond.evaluation.tuning.rungs import goes_on, rungs
from gcond.evaluation.tuning.search_progress import SearchProgress
from gcond.evaluation.tuning.search_space import TuningSpace, tuning_space
from gcond.graph import SourceGraph
from gcond.jobs import ORIGINAL, Runner, TrainingJob
from gcond.models import Model
from gcond.results import Finalist, RunFolder, SourceSummary, Trial, Tuning
from gcond.results.optuna_study import finished, new_study, quietly, require_optuna, tell
from gcond.results.search import CondensedSummary
from gcond.runtime.device import choose_device
from gcond.runtime.engines import Engine
from gcond.runtime.progress_tick import Tick, ignore
from gcond.runtime.torch_settings import with_usual_torch
from gcond.training import Recipe

if TYPE_CHECKING:
    from torch_geometric.data import Data

BATCH = 8
"""Configurations drawn at a time: enough for the cores of a usual machine, few enough that the next ones can learn."""


@with_usual_torch
def tune(
    graph: CondensedGraph | SourceGraph | str | Path,
    *,
    on: SourceGraph | Data | str | Path | None = None,
    model: str | Model | Iterable[str | Model] = "gcn",
    trials: int = 100,
    runs: int = 1,
    seed: int = 0,
    top: int = 5,
    final_runs: int = 5,
    batch: int = BATCH,
    prune: bool = True,
    check: bool = True,
    grid: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    engine: Engine | None = None,
    device: str = "auto",
    threads: int | None = None,
    command: str = "",
    on_progress: Tick | None = None,
    **held: Any,
) -> Tuning:
    """Search the hyper-parameters of ``model`` on ``graph``, and train the best on the whole source ``on``.

    ``graph`` is a condensed graph or its file; a :class:`SourceGraph`, or what :func:`gcond.load` takes, is searched
    itself and needs no ``on``. ``model`` is a name, a model, several of these, or ``"all"``. The first trial of each
    model is its usual configuration; Optuna draws the others, ``batch`` at a time, from :func:`usual_ranges
    <gcond.evaluation.tuning.search_space.usual_ranges>`, with ``grid`` in their place (``{"lr": "0.001..0.1", "hidden":
    [16, 64]}``); settings given by name (``epochs=200``) are held everywhere. A configuration is judged by its mean
    validation accuracy over ``runs`` seeds that count on from ``seed``; with ``prune`` only the best third of those so
    far train on, from a ninth of the epochs to a third to all (:mod:`gcond.evaluation.tuning.rungs`).

    The ``top`` configurations that were fully trained, of different architectures where there are enough, and the usual
    ones of their models are then trained from ``final_runs`` seeds on ``graph``, which settles who wins, and tested,
    where there are test nodes; no test node is looked at before, and test accuracy chooses nothing. With ``check`` they
    are trained on the whole graph, too, which may take longer than all the rest: the outcome says how far the two
    orders agree and what both sides cost. It has the winner as a recommendation:
    ``small.with_recommendation(found.recommendation)`` records it, and ``gcond.evaluate(small, on=graph,
    recipe="recommended")`` trains by it.

    In ``folder`` a search that was stopped goes on, with the same trials as if it had not been, whatever ``engine``
    (:func:`gcond.open_engine`) does the work; ``device`` and ``threads`` are those of :func:`gcond.evaluate`.
    """
    version = require_optuna()
    check_one_number_of_threads(engine, threads)
    space = tuning_space(model, grid, held)
    seed = settings.whole_number(seed, "seed")
    counts = {"trials": trials, "runs": runs, "top": top, "final_runs": final_runs, "batch": batch}
    for name, count in counts.items():
        settings.whole_number(count, name, least=1)
    check_trials(trials, space)
    searched = trained_on(graph, on)
    source = source_of(searched, on)
    check_fit(searched, source, ("val",))
    small = searched if isinstance(searched, CondensedGraph) else None
    made = small.provenance if small is not None else None
    plan = Tuning(
        source=SourceSummary.of(source),
        condensed=CondensedSummary.of(small) if small is not None else None,
        ranges=space.ranges,
        held=space.held,
        seed=seed,
        runs=runs,
        batch=batch,
        prune=prune,
        wanted=trials,
        condense_cpu_seconds=made.cost.get("cpu_seconds") if made is not None else None,
        optuna=version,
        command=command,
    )
    kept = RunFolder(folder)
    kept.check_source(source)
    check_same_search(kept, plan)
    choose_device(device)
    with working(engine, threads) as workers:
        share = SearchProgress(on_progress or ignore, trials)
        runner = Runner(source, kept, workers, device=device, on_progress=share)
        search = _Search(runner, small, space, plan, share)
        search.go()
        share.confirm()
        finalists = search.finalists(top, tuple(range(seed, seed + final_runs)), check=check)
    found = replace(search.so_far(), finalists=finalists)
    return replace(found, recommendation=search.recommendation(found))


def check_trials(trials: int, space: TuningSpace) -> None:
    """Refuse a search that is too short to begin."""
    if trials < len(space.starts):
        raise GcondError(
            f"trials={trials} is too small for {len(space.starts)} models, each of which is first tried in its usual "
            f"configuration: use {len(space.starts)} or more"
        )


def check_same_search(folder: RunFolder, plan: Tuning) -> None:
    """Refuse a folder in which another search was begun; a longer one of the same kind may go on there."""
    try:
        found = folder.tuning()
    except GcondError:  # damaged: it is written anew, from the trainings
        return
    if found is None:
        return
    there, here = (one.condensed.sha256 if one.condensed is not None else ORIGINAL for one in (found, plan))
    if there != here:
        raise GcondError(f"'{folder.path}' holds a search on another condensed graph: give another folder")
    for name in ("ranges", "held", "seed", "runs", "batch", "prune"):
        if getattr(found, name) != getattr(plan, name):
            of_old = getattr(found, name)
            pruned = "configurations given up on the way" if of_old else "no configuration given up on the way"
            said = {"ranges": "another space", "held": "other settings", "prune": pruned}
            what = said.get(name, f"{name}={of_old}")
            raise GcondError(f"'{folder.path}' holds a search with {what}: give another folder, or search as it did")


class _Search:
    """The state of a search: what was tried so far."""

    def __init__(
        self, runner: Runner, small: CondensedGraph | None, space: TuningSpace, plan: Tuning, share: SearchProgress
    ) -> None:
        self.runner, self.small, self.space, self.plan, self.share = runner, small, space, plan, share
        self.seeds = tuple(range(plan.seed, plan.seed + plan.runs))
        self.done: list[Candidate] = []
        self._study = new_study(plan.seed)
        self._reached: list[list[float]] = [[] for _ in rungs(Recipe(), plan.prune)]
        """Validation accuracies of all that came to each rung."""
        self._counted: set[tuple[Model, Recipe]] = set()

    def go(self) -> None:
        """Try as many configurations as are wanted; without hands to work, as far as they are done."""
        while len(self.done) < self.plan.wanted:
            batch = self._next()
            self.share.begin(len(self.done), len(batch), len(self._reached), self._best())
            if not self._train(batch):
                return
            for one in batch:
                self._tell(one)
            self.done += batch
            self._save()

    def so_far(self) -> Tuning:
        trials = tuple(one.trial() for one in self.done)
        return replace(self.plan, trials=trials, failures=tuple(self.runner.failures))

    def finalists(self, top: int, seeds: tuple[int, ...], *, check: bool) -> tuple[Finalist, ...]:
        """The best that were fully trained, and the usual configurations of their models, trained anew: on the graph
        that was searched on and, with ``check``, on the whole one.

        One training each is too few to tell the best from the lucky: more seeds on the graph that was searched on
        settle the order.
        """
        complete = [one for one in self.done if one.state == "complete"]
        ranked = sorted(complete, key=lambda one: (-one.accuracies[-1], one.number))
        best = shortlist(ranked, top)
        usual = [self.space.starts[model] for model in {one.model for one in best}]
        best += [one for one in each_once(ranked) if one.training in usual and one not in best]
        on_searched = on_whole = self._tested(best, self.small, seeds)
        if self.small is not None:
            self.share.whole_graph()
            on_whole = self._tested(best, None, seeds) if check else [[] for _ in best]
        there = len(seeds) if check or self.small is None else 0
        found = [
            as_finalist(one, searched, whole)
            for one, searched, whole in zip(best, on_searched, on_whole, strict=True)
            if (len(searched), len(whole)) == (len(seeds), there)
        ]
        return tuple(sorted(found, key=lambda one: (-one.confirmed_mean, one.trial)))

    def recommendation(self, found: Tuning) -> Recommendation | None:
        """The winner as the file of the condensed graph keeps it; nothing for what no file could keep."""
        winner, small, source = found.winner, self.small, self.runner.source
        if winner is None or small is None or small.provenance is None:
            return None
        usual = found.usual
        return Recommendation(
            model=winner.model,
            settings=winner.settings,
            recipe=winner.recipe,
            transform=source.transform.kind,
            val_mean=winner.confirmed_mean,
            fixed_val_mean=usual.confirmed_mean if usual is not None else 0.0,  # where it could not be trained
            tried=len(found.trials),
            graphs=(small.sha256,),
            runs=len(winner.confirmed),
            seed=found.seed,
            source=source.sha256,
            held=found.held,
            cpu_seconds=found.search_cpu_seconds + found.confirm_cpu_seconds,
        )

    def _next(self) -> list[Candidate]:
        """The next batch: first of all the usual configurations, then what Optuna draws."""
        batch = []
        if not self.done:
            for number, (model, start) in enumerate(self.space.starts.items()):
                batch.append(Candidate(number, model, self.space.usual(model), start))
        with quietly():
            for number in range(len(self.done) + len(batch), min(len(self.done) + self.plan.batch, self.plan.wanted)):
                asked = self._study.ask()
                model, drawn = self.space.draw(asked)
                batch.append(Candidate(number, model, drawn, self.space.training(model, drawn), asked))
        return batch

    def _train(self, batch: Sequence[Candidate]) -> bool:
        """Train ``batch``, rung by rung; whether all of it is done."""
        going = list(batch)
        for rung, reached in enumerate(self._reached):
            self.share.climb(rung)
            jobs = [self._job(one, rung) for one in going]
            for one, job, trials in zip(going, jobs, self.runner.train(jobs), strict=True):
                if len(trials) == len(self.seeds):
                    self._count(one, job, trials)
                elif self.runner.engine.idle:
                    return False
                else:
                    one.state = "failed"
            going = [one for one in going if one.state != "failed"]
            reached += [one.accuracies[-1] for one in going]
            if rung + 1 < len(self._reached):
                going = [one for one in going if one.asked is None or goes_on(one.accuracies[-1], reached)]
        for one in going:
            one.state = "complete"
        return True

    def _tested(
        self, best: Sequence[Candidate], graph: CondensedGraph | None, seeds: tuple[int, ...]
    ) -> list[list[Trial]]:
        """Trials of each of the ``best`` on ``graph``, the whole one if there is none, tested after the search."""
        trainings, label = [one.training for one in best], self._label(graph)
        tested = bool(self.runner.source.test_mask.any())
        return self.runner.train(
            [TrainingJob(graph, one.model, one.recipe, seeds, label, tested=tested) for one in trainings]
        )

    def _label(self, graph: CondensedGraph | None) -> str:
        return ORIGINAL if graph is None else "the condensed graph"

    def _job(self, one: Candidate, rung: int) -> TrainingJob:
        recipe = rungs(one.training.recipe, self.plan.prune)[rung]
        return TrainingJob(self.small, one.training.model, recipe, self.seeds, self._label(self.small), tested=False)

    def _count(self, one: Candidate, job: TrainingJob, trials: Sequence[Trial]) -> None:
        one.accuracies.append(fmean(trial.val for trial in trials))
        if (job.model, job.recipe) in self._counted:  # the same was drawn again, and not trained again
            return
        self._counted.add((job.model, job.recipe))
        one.epochs += sum(trial.epochs or job.recipe.epochs for trial in trials)
        one.cpu_seconds += [trial.cpu_seconds for trial in trials]

    def _tell(self, one: Candidate) -> None:
        with quietly():
            if one.asked is not None:
                tell(self._study, one.asked, one.trial())
            elif (outside := finished(one.trial(), self.space.ranges)) is not None:
                self._study.add_trial(outside)

    def _best(self) -> float | None:
        return max((one.accuracies[-1] for one in self.done if one.state == "complete"), default=None)

    def _save(self) -> None:
        """Leave what there is in the folder, for whoever looks or goes on."""
        if self.runner.folder.path is not None and not self.runner.engine.idle:
            self.so_far().save(self.runner.folder.path)
