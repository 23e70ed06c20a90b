"""``gcond.audit``: what noise does to a condensed graph, and what can be told from it about its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond.condensed import CondensedGraph
from gcond.config import settings
from gcond.errors import GcondError
from gcond.evaluation.audit.closeness import closeness
from gcond.evaluation.audit.figures import Seen, accuracies, memberships
from gcond.evaluation.audit.subjects import WHOLE_GRAPH, Trained, subjects_of
from gcond.evaluation.evaluate import as_given, asked_recipe, check_fit, check_one_number_of_threads, source_of
from gcond.graph import SourceGraph
from gcond.graph.perturbation import Noise, NoiseKind, perturbed
from gcond.graph.stored_graph import StoredGraph
from gcond.jobs import ORIGINAL, Condensation, ObservedTraining, Runner, TrainingJob, training_seeds
from gcond.models import Model, resolve
from gcond.results import Audit, Closeness, Failure, Observation, RunFolder, SourceSummary
from gcond.runtime.device import choose_device
from gcond.runtime.engines import Engine, LocalEngine
from gcond.runtime.progress_tick import Tick, ignore
from gcond.runtime.threads import check_threads
from gcond.runtime.torch_settings import with_usual_torch
from gcond.training import Recipe

if TYPE_CHECKING:
    from torch_geometric.data import Data

CLEAN = "the source"
NOISY = "the noisy source"

SEEDS, RUNS = 3, 3
QUICK_SEEDS, QUICK_RUNS = 1, 2


@with_usual_torch
def audit(
    small: CondensedGraph | str | Path | Sequence[CondensedGraph | str | Path],
    *,
    on: SourceGraph | Data | str | Path,
    models: str | Model | Sequence[str | Model] = "gcn",
    seeds: int | None = None,
    runs: int | None = None,
    noise: Noise | Mapping[str, Any] | None = None,
    quick: bool = False,
    recipe: Recipe | Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    engine: Engine | None = None,
    device: str = "auto",
    threads: int | None = None,
    command: str = "",
    on_progress: Tick | None = None,
    **training: Any,
) -> Audit:
    """Measure what a person should know before publishing ``small`` or relying on it.

    ``small`` is a condensed graph or its file, or several of one source ``on``, which are then audited side by side,
    beside random nodes as many as each has, and beside the whole graph:

    - **Noise before condensing**: edges, feature entries and labels of the source are changed as
      :mod:`gcond.graph.perturbation` says, each alone and all together; the graph is condensed again by the same
      method, settings, budget and seed, models are trained on it, the noisy source chooses the epoch, and the clean one
      tests. Nothing before the test sees what is true. ``noise`` says how much is changed (``{"labels": 0.4}``; 0
      leaves a kind out). Graphs that cannot be made again are left out of this, and it is said why.
    - **Noise at test**: models trained without any are tested on a source with changed edges or features.
    - **Closeness**: distances of condensed nodes from source nodes (:mod:`gcond.evaluation.audit.closeness`).
    - **Membership**: how well confidence tells training nodes from test nodes
      (:mod:`gcond.evaluation.audit.membership`).
    - **Classes**: the accuracy of each.

    Every noise is drawn ``seeds`` times (3), and on each graph ``runs`` models are trained (3); with ``quick`` it is
    once and twice. Random nodes are drawn anew with every noise. ``recipe`` and settings of the training by name
    override the models' own. What is done is kept in the run folder ``folder`` and not done again; ``engine`` does the
    work (:func:`gcond.open_engine`), by default the cores of this machine. Nothing here is a proof: an audit tells what
    it measured, and not that there is no other way to learn something from the graph.
    """
    check_one_number_of_threads(engine, threads)
    seeds = settings.whole_number(_usual(seeds, QUICK_SEEDS if quick else SEEDS), "seeds", least=1)
    runs = settings.whole_number(_usual(runs, QUICK_RUNS if quick else RUNS), "runs", least=1)
    levels = noise if isinstance(noise, Noise) else settings.build(Noise, noise or {}, "the noise")
    networks = [(model, asked_recipe(model, recipe, training)) for model in dict.fromkeys(resolve(models))]
    names = [model.name for model, _ in networks]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise GcondError(f"'{twice}' is given with different settings: audit them in folders of their own")
    smalls = _loaded(small)
    source = source_of(smalls[0], on)
    if isinstance(source, StoredGraph):
        raise GcondError(
            f"an audit changes its source and needs it in memory, and '{source.name}' is streamed from its store: "
            "use more memory, or audit on a part of it"
        )
    for each in smalls:
        check_fit(each, source)
    choose_device(device)
    kept = RunFolder(folder)
    kept.check_source(source)
    with nullcontext(engine) if engine else LocalEngine(threads=check_threads(threads)) as workers:
        work = _Work(source, kept, workers, device, on_progress or ignore)
        trial = _Trial(work, subjects_of(smalls, source, work.notes), networks, noise=levels, seeds=seeds, runs=runs)
        trial.go()
    near = [part for name, graph in trial.graphs.items() for part in closeness(graph, source, name)]
    found = Audit(
        source=SourceSummary.of(source),
        subjects=tuple(one.subject for one in trial.subjects),
        noise=levels,
        models=tuple(names),
        seeds=seeds,
        runs=runs,
        recipe=as_given(recipe, training),
        accuracies=accuracies(trial.seen),
        closeness=tuple(one for one in near if isinstance(one, Closeness)),
        membership=memberships(trial.seen, source, WHOLE_GRAPH),
        notes=(*work.notes, *(one for one in near if isinstance(one, str))),
        failures=tuple(work.failures),
        command=command,
    )
    if not found.accuracies and not workers.idle:
        reason = f": {found.failures[0].error}" if found.failures else ""
        raise GcondError(f"nothing could be trained, so there is nothing to tell{reason}")
    if kept.path is not None and not workers.idle:
        found.save(kept.path)
    return found


class _Work:
    """Runners on the source and on noisy ones, which share a folder, an engine, and what they say."""

    def __init__(self, source: SourceGraph, folder: RunFolder, engine: Engine, device: str, tick: Tick) -> None:
        self.source, self.folder, self.engine, self.device, self._tick = source, folder, engine, device, tick
        self.notes: list[str] = []
        self.failures: list[Failure] = []
        self._step, self._steps = 0, 1

    def begin(self, steps: int) -> None:
        self._steps = steps

    def condense(self, source: SourceGraph, wanted: Sequence[Condensation]) -> dict[Condensation, CondensedGraph]:
        runner = Runner(source, self.folder, self.engine, device=self.device, on_progress=self._hear)
        made = runner.condense(wanted)
        self._end(runner)
        return made

    def observe(self, jobs: Sequence[ObservedTraining], graphs: Mapping[str, SourceGraph]) -> list[list[Observation]]:
        runner = Runner(self.source, self.folder, self.engine, device=self.device, on_progress=self._hear)
        found = runner.observe(jobs, graphs)
        self._end(runner)
        return found

    def _end(self, runner: Runner) -> None:
        self.failures += runner.failures
        self._step += 1

    def _hear(self, what: str, done: float, total: float, detail: str = "") -> None:
        self._tick("auditing", self._step + (done / total if total else 1.0), self._steps, what)


class _Trial:
    """All trainings of an audit, draw by draw: no more noisy graphs are held at once than those of one draw."""

    def __init__(
        self,
        work: _Work,
        subjects: Sequence[Trained],
        networks: Sequence[tuple[Model, Recipe]],
        *,
        noise: Noise,
        seeds: int,
        runs: int,
    ) -> None:
        self.work, self.subjects, self.networks = work, subjects, networks
        self.noise, self.seeds, self.runs = noise, seeds, runs
        self.seen: list[Seen] = []
        self.graphs = {one.name: one.small for one in subjects if one.small is not None}
        """A graph of each subject but the whole one: as it was given, or the first that was drawn."""

    def go(self) -> None:
        before, at_test = _mixtures(self.noise.kinds), _mixtures(self.noise.only("edges", "features").kinds)
        self.work.begin(2 * self.seeds * (1 + len(before)))
        for seed in range(self.seeds):
            self._without_noise(seed, at_test)
            for kinds in before:
                self._with_noise(seed, kinds)

    def _without_noise(self, seed: int, at_test: Sequence[tuple[NoiseKind, ...]]) -> None:
        """Trained on the source as it is, and tested there and on noisy copies of it."""
        source = self.work.source
        graphs = {CLEAN: source} | {
            "+".join(kinds): perturbed(source, self.noise.only(*kinds), seed) for kinds in at_test
        }
        wanted = [making for one in self.subjects if one.small is None and (making := one.drawn(seed)) is not None]
        made = self.work.condense(source, wanted)
        trained = {
            one.name: one.small if one.small is not None else made.get(making) if making is not None else None
            for one in self.subjects
            for making in [one.drawn(seed)]
        }
        self.graphs = {name: graph for name, graph in trained.items() if graph is not None} | self.graphs
        found = self._observed(seed, trained, graphs, within=CLEAN, tested_on=tuple(graphs), asked_on=CLEAN)
        for name, model, rows in found:
            self.seen.append(Seen(name, model, "clean", "", CLEAN, rows))
            self.seen += [Seen(name, model, "test", other, other, rows) for other in graphs if other != CLEAN]

    def _with_noise(self, seed: int, kinds: tuple[NoiseKind, ...]) -> None:
        """Made from a noisy source, validated there, and tested on the source as it is."""
        noisy = perturbed(self.work.source, self.noise.only(*kinds), seed)
        again = {one.name: making for one in self.subjects if (making := one.drawn(seed)) is not None}
        made = self.work.condense(noisy, list(again.values()))
        trained: dict[str, CondensedGraph | None] = {
            name: made[making] for name, making in again.items() if making in made
        }
        trained |= {one.name: None for one in self.subjects if one.subject.kind == "whole"}
        graphs = {NOISY: noisy, CLEAN: self.work.source}
        for name, model, rows in self._observed(seed, trained, graphs, within=NOISY, tested_on=(CLEAN,)):
            self.seen.append(Seen(name, model, "before", "+".join(kinds), CLEAN, rows))

    def _observed(
        self,
        seed: int,
        trained: Mapping[str, CondensedGraph | None],
        graphs: Mapping[str, SourceGraph],
        *,
        within: str,
        tested_on: tuple[str, ...],
        asked_on: str = "",
    ) -> Iterator[tuple[str, str, tuple[Observation, ...]]]:
        whole = {one.name for one in self.subjects if one.subject.kind == "whole"}
        on = {name: graph for name, graph in trained.items() if graph is not None or name in whole}
        jobs = {
            (name, model.name): ObservedTraining(
                TrainingJob(graph, model, how, training_seeds(seed, self.runs), ORIGINAL if graph is None else name),
                within,
                tested_on,
                asked_on,
            )
            for model, how in self.networks
            for name, graph in on.items()
        }
        found = self.work.observe(list(jobs.values()), graphs)
        for (name, model_name), rows in zip(jobs, found, strict=True):
            if rows:
                yield name, model_name, tuple(rows)


def _mixtures(kinds: tuple[NoiseKind, ...]) -> list[tuple[NoiseKind, ...]]:
    """Each kind alone, and all together where there are several."""
    return [*((kind,) for kind in kinds), *([kinds] if len(kinds) > 1 else [])]


def _usual(given: int | None, usual: int) -> int:
    return usual if given is None else given


def _loaded(given: CondensedGraph | str | Path | Sequence[CondensedGraph | str | Path]) -> list[CondensedGraph]:
    several: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    if not several:
        raise GcondError("an audit needs a condensed graph: give one, or several of one source")
    for one in several:
        if not isinstance(one, CondensedGraph | str | Path):
            raise GcondError(f"a {type(one).__name__} cannot be audited: give a CondensedGraph, or its file")
    return [one if isinstance(one, CondensedGraph) else CondensedGraph.load(one) for one in several]
