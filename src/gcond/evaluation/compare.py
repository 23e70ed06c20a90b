"""``gcond.compare``: methods side by side, with the whole graph as the top line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from gcond.condensed import CondensedGraph
from gcond.config import settings
from gcond.config.metric import Metric
from gcond.data import load
from gcond.errors import GcondError
from gcond.evaluation.advice import advise
from gcond.evaluation.comparison_time import ComparisonTime, comparison_time
from gcond.evaluation.evaluate import as_given, asked_recipe, check_fit, check_one_number_of_threads
from gcond.graph import SourceGraph, budget_for
from gcond.graph.feature_kinds import FeatureChoice
from gcond.jobs import ORIGINAL, Condensation, Runner, TrainingJob, training_seeds
from gcond.jobs.training_job import TrainingGround
from gcond.methods import Method
from gcond.methods import resolve as resolve_methods
from gcond.models import Model
from gcond.models import resolve as resolve_models
from gcond.results import WHOLE, Comparison, Line, RunFolder, SourceSummary, Trial
from gcond.results.comparison import ENOUGH_SEEDS, Mark
from gcond.runtime.engines import Engine, LocalEngine
from gcond.runtime.plain_text import counted
from gcond.runtime.progress_tick import Tick
from gcond.runtime.threads import check_threads
from gcond.runtime.torch_settings import with_usual_torch
from gcond.training import Recipe
from gcond.training.metrics import Confusion, deviation, over_runs, value

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcond.graph.features import FeatureTransform

# A difference that chance makes this often is held to be none.
SIGNIFICANCE = 0.05


@with_usual_torch
def compare(
    source: SourceGraph | Data | str | Path,
    *,
    methods: str | Method | Sequence[str | Method] = "all",
    ratio: str | float | Sequence[str | float] = (),
    nodes: int | Sequence[int] = (),
    features: FeatureChoice | FeatureTransform | None = None,
    models: str | Model | Sequence[str | Model] = "gcn",
    seeds: int = 5,
    runs: int = 10,
    metric: Metric | None = None,
    recipe: Recipe | Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    engine: Engine | None = None,
    device: str = "auto",
    threads: int | None = None,
    command: str = "",
    on_estimate: Callable[[ComparisonTime], None] | None = None,
    on_progress: Tick | None = None,
    **training: Any,
) -> Comparison:
    """Condense ``source`` by every method to every budget from ``seeds`` seeds, and train on each graph ``runs`` times.

    ``source`` is anything that :func:`gcond.load` takes; ``methods`` and ``models`` are names, ``"all"``, or objects
    with settings of their own; budgets are given by ``ratio``, by ``nodes`` or by both, one or several. ``features``
    is the transform of the features, as for :func:`gcond.load`. ``recipe`` and settings of the training by name
    (``epochs=200``) override the models' own. By ``metric`` (``"accuracy"``, ``"macro-f1"``, ``"balanced-accuracy"``)
    validation chooses the epoch of every training and whatever the methods choose by it, and by the same one the best
    of a budget is found; all three are in the result anyhow.

    All of it is kept in the run folder ``folder``: what is there already is not done again. ``engine`` does the work
    (:func:`gcond.open_engine`), by default the cores of this machine, whose jobs share ``threads`` CPU threads or
    take as many as their work deserves. ``on_estimate`` is told, before any of it, how much is left to do and how long
    that will take about, which is measured first.
    """
    check_one_number_of_threads(engine, threads)
    seeds = settings.whole_number(seeds, "seeds", least=1)
    runs = settings.whole_number(runs, "runs", least=1)
    source, kept = load(source, features=features), RunFolder(folder)
    if metric is not None:
        training["metric"] = metric
    networks = [(model, asked_recipe(model, recipe, training)) for model in resolve_models(models)]
    ratios, sizes = _listed(ratio), _listed(nodes)
    budgets = [budget_for(source, ratio=share) for share in ratios] + [budget_for(source, nodes=n) for n in sizes]
    budgets = list(dict.fromkeys(budgets))
    chosen = _distinct(resolve_methods(methods))
    if metric is not None:
        chosen = [method.with_metric(metric) for method in chosen]
    if not budgets:
        raise GcondError("a comparison needs a budget: give ratio= or nodes=, one or several")
    check_fit(source, source)
    kept.check_source(source)
    grid = [Condensation(method, budget, seed) for budget in budgets for method in chosen for seed in range(seeds)]
    lines: list[Line] = []
    with nullcontext(engine) if engine else LocalEngine(threads=check_threads(threads)) as workers:
        runner = Runner(source, kept, workers, device=device, on_progress=on_progress)
        if on_estimate is not None and not workers.idle:
            ground = TrainingGround(source, device, workers.threads_per_job)
            shared = getattr(workers, "workers", None) or 1
            with suppress(GcondError):  # what cannot be trained is told by the comparison
                on_estimate(comparison_time(grid, networks, runs, kept=kept, ground=ground, workers=shared))
        made = runner.condense(grid)
        for model, own_recipe in networks:
            measured = _measure(runner, model, own_recipe, made, runs)
            by = own_recipe.metric
            top = _whole_line(source, model, measured[None])
            if top is None:
                continue
            lines.append(top)
            for budget in budgets:
                jobs = [job for job in made if job.budget == budget]
                lines += _budget_lines(source, top, jobs, made, measured, metric=by)
    if not lines:
        on_whole = (failure.error for failure in runner.failures if f" on {ORIGINAL}" in failure.what)
        yet = f" yet, and {counted(len(made), 'graph')} made: leave --so-far out to go on" if workers.idle else ""
        why = next((f": {error}" for error in on_whole), yet)
        raise GcondError(f"there is no training on the whole graph to compare with{why}")
    found = Comparison(
        source=SourceSummary.of(source),
        models=tuple(dict.fromkeys(line.model for line in lines)),
        seeds=seeds,
        runs=runs,
        recipe=as_given(recipe, training),
        lines=tuple(lines),
        failures=tuple(runner.failures),
        command=command,
    )
    found = replace(found, advice=tuple(advise(found)))
    if kept.path is not None and not workers.idle:
        found.save(kept.path)
    return found


@dataclass(frozen=True)
class _Measured:
    """One model on one graph."""

    trials: list[Trial]
    cpu_seconds: float | None
    """Of one training; only of the first graph of a method and budget, and of the whole one."""

    @property
    def tests(self) -> list[float]:
        return [trial.test for trial in self.trials if trial.test is not None]

    @property
    def confusions(self) -> list[Confusion | None]:
        return [trial.confusion for trial in self.trials if trial.test is not None]

    def mean(self, metric: Metric) -> float:
        """Of the test nodes."""
        if metric == "accuracy":
            return fmean(self.tests)
        # Trials that were chosen by another metric than accuracy are of a version that counts classes.
        return fmean(value(each, metric) for each in self.confusions if each is not None)


def _measure(
    runner: Runner, model: Model, recipe: Recipe, made: Mapping[Condensation, CondensedGraph], runs: int
) -> dict[Condensation | None, _Measured]:
    """The model on the whole graph (``None``) and on every condensed one."""
    jobs: dict[Condensation | None, TrainingJob] = {None: TrainingJob(None, model, recipe, tuple(range(runs)))}
    for job, graph in made.items():
        jobs[job] = TrainingJob(graph, model, recipe, training_seeds(job.seed, runs), str(job))
    done = dict(zip(jobs, runner.train(list(jobs.values())), strict=True))
    firsts = {(job.method.name, job.budget): job for job in reversed(list(made))}  # the lowest seed stays
    timed = [job for job in (None, *firsts.values()) if done[job]]  # who could not be trained cannot be timed
    seconds = dict(zip(timed, runner.cpu_seconds([jobs[job] for job in timed]), strict=True))
    return {job: _Measured(own, seconds.get(job)) for job, own in done.items()}


def _listed(given: Any) -> list[Any]:
    return [given] if isinstance(given, str | int | float) else list(given)


def _distinct(methods: Sequence[Method]) -> list[Method]:
    """Each once; two of one name would be one line of the table."""
    found = list(dict.fromkeys(methods))
    for method in found:
        if sum(other.name == method.name for other in found) > 1:
            raise GcondError(f"'{method.name}' is given with different settings: compare them in folders of their own")
    return found


def break_even(condense: float, small: float | None, whole: float | None) -> int | None:
    """The least n with ``condense + n · small < n · whole``, in seconds; None if there is none, or one is not known."""
    if small is None or whole is None or small >= whole:
        return None
    return math.floor(condense / (whole - small)) + 1


def paired_p_value(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Of a two-sided paired t-test; 1 where nothing differs, else None with fewer than two pairs."""
    from scipy.stats import ttest_rel

    if first == second:
        return 1.0
    if len(first) < 2 or len(first) != len(second):
        return None
    found = float(ttest_rel(first, second).pvalue)
    return found if math.isfinite(found) else 0.0  # always the same difference: no chance in it


def not_distinguishable(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether a test over these pairs had a chance to find a difference, and found none; or there is none."""
    if len(first) < ENOUGH_SEEDS:
        return list(first) == list(second)
    p = paired_p_value(first, second)
    return p is not None and p >= SIGNIFICANCE


def _whole_line(source: SourceGraph, model: Model, measured: _Measured) -> Line | None:
    """The model on the graph that the others stand for; ``None`` where it could not be trained there."""
    if not measured.tests:
        return None
    found = source.training_graph().statistics
    return Line(
        method=WHOLE,
        kind=WHOLE,
        model=model.name,
        nodes=found.nodes,
        ratio=1.0,
        edges=found.edges,
        bytes=found.bytes,
        mean=fmean(measured.tests),
        std=deviation(measured.tests),
        n=len(measured.tests),
        kept=1.0,
        condense_cpu_seconds=0.0,
        train_cpu_seconds=measured.cpu_seconds,
        metrics=over_runs(measured.confusions),
    )


def _budget_lines(
    source: SourceGraph,
    top: Line,
    jobs: Sequence[Condensation],
    made: Mapping[Condensation, CondensedGraph],
    measured: Mapping[Condensation | None, _Measured],
    *,
    metric: Metric,
) -> list[Line]:
    """The methods at one budget, the best of them by ``metric`` marked."""
    by_method: dict[str, list[Condensation]] = {}
    for job in jobs:
        if measured[job].tests:
            by_method.setdefault(job.method.name, []).append(job)
    lines = {name: _line(source, top, own, made, measured) for name, own in by_method.items()}
    if not lines:
        return []
    by_seed = {name: {job.seed: measured[job].mean(metric) for job in own} for name, own in by_method.items()}
    best = max(lines.values(), key=lambda line: line.value(metric) or 0.0).method
    for name, line in lines.items():
        common = sorted(by_seed[best].keys() & by_seed[name].keys())
        pair = [by_seed[best][seed] for seed in common], [by_seed[name][seed] for seed in common]
        if name == best:
            lines[name] = replace(line, mark="best")
        else:
            mark: Mark = "tied" if not_distinguishable(*pair) else ""
            lines[name] = replace(line, p_value=paired_p_value(*pair), mark=mark)
    return list(lines.values())


def _line(
    source: SourceGraph,
    top: Line,
    jobs: Sequence[Condensation],
    made: Mapping[Condensation, CondensedGraph],
    measured: Mapping[Condensation | None, _Measured],
) -> Line:
    graphs = [made[job] for job in jobs]
    costs = [graph.provenance.cost for graph in graphs if graph.provenance is not None]
    tests = [test for job in jobs for test in measured[job].tests]
    mean, first = fmean(tests), jobs[0]
    condensing, training = fmean(cost["cpu_seconds"] for cost in costs), measured[first].cpu_seconds
    return Line(
        method=first.method.name,
        kind=first.method.kind,
        model=top.model,
        nodes=first.budget.nodes,
        ratio=first.budget.ratio,
        edges=fmean(graph.statistics.edges for graph in graphs),
        bytes=fmean(graph.statistics.bytes for graph in graphs),
        mean=mean,
        std=deviation(tests),
        n=len(tests),
        kept=mean / top.mean if top.mean else 0.0,
        condense_cpu_seconds=condensing,
        train_cpu_seconds=training,
        peak_rss_mb=max(cost["peak_rss_mb"] for cost in costs),
        break_even=break_even(condensing, training, top.train_cpu_seconds),
        graphs=tuple(f"graphs/{job.file(source)}" for job in jobs),
        metrics=over_runs([each for job in jobs for each in measured[job].confusions]),
    )
