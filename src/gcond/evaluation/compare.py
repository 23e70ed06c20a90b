"""``gcond.compare``: methods side by side, with the whole graph as the top line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.config import settings
from gcond.data import load
from gcond.errors import GcondError
from gcond.evaluation.advice import advise
from gcond.evaluation.evaluate import recipe_for, resolve
from gcond.graph.budget import budget_for
from gcond.graph.source_graph import SourceGraph
from gcond.jobs.runner import ORIGINAL, Condensation, Order, Sweep, training_seeds
from gcond.methods import method_for
from gcond.methods.method import Method
from gcond.models.model import Model
from gcond.results.comparison import WHOLE, Comparison, Line
from gcond.results.run_folder import RunFolder
from gcond.results.source_summary import SourceSummary
from gcond.results.trial import Trial
from gcond.runtime.engines.engine import Engine
from gcond.runtime.engines.local import LocalEngine
from gcond.runtime.tick import Tick
from gcond.training.recipe import Recipe

if TYPE_CHECKING:
    from torch_geometric.data import Data

# A difference that chance makes this often is held to be none.
SIGNIFICANCE = 0.05


def compare(
    source: SourceGraph | Data | str | Path,
    *,
    methods: Sequence[str | Method],
    ratios: Sequence[str | float] = (),
    nodes: Sequence[int] = (),
    models: str | Model | Sequence[str | Model] = ("gcn",),
    seeds: int = 5,
    runs: int = 10,
    recipe: Recipe | Mapping[str, Any] | None = None,
    folder: str | Path,
    engine: Engine | None = None,
    device: str = "auto",
    command: str = "",
    on_progress: Tick | None = None,
) -> Comparison:
    """Condense ``source`` by every method to every budget from ``seeds`` seeds, and train on each graph ``runs`` times.

    ``source`` is anything that :func:`gcond.load` takes; methods are named, or given with settings of their own;
    budgets are ``ratios``, ``nodes`` or both.

    All of it is kept in ``folder``: what is there already is not done again. ``engine`` does the work
    (:func:`gcond.runtime.engines.open_engine`), by default the cores of this machine.
    """
    seeds = settings.whole_number(seeds, "seeds", least=1)
    runs = settings.whole_number(runs, "runs", least=1)
    source, folder, networks = load(source), Path(folder), resolve(models)
    budgets = [budget_for(source, ratio=ratio) for ratio in ratios] + [budget_for(source, nodes=n) for n in nodes]
    budgets = list(dict.fromkeys(budgets))
    chosen = _distinct([method if isinstance(method, Method) else method_for(method, {}) for method in methods])
    if not chosen or not budgets:
        raise GcondError("a comparison needs a method and a budget at least: give some of each")
    RunFolder(folder).check_source(source)
    grid = [Condensation(method, budget, seed) for budget in budgets for method in chosen for seed in range(seeds)]
    lines: list[Line] = []
    with nullcontext(engine) if engine else LocalEngine() as workers:
        sweep = Sweep(source, folder, workers, device=device, on_progress=on_progress)
        made = sweep.condense(grid)
        for model in networks:
            measured = _measure(sweep, model, recipe_for(model, recipe), made, runs)
            top = _whole_line(sweep, model, measured[None])
            if top is None:
                continue
            lines.append(top)
            for budget in budgets:
                lines += _budget_lines(sweep, top, [job for job in made if job.budget == budget], made, measured)
    if not lines:
        why = next((f": {failure.error}" for failure in sweep.failures if failure.what.endswith(f" on {ORIGINAL}")), "")
        raise GcondError(f"there is no training on the whole graph to compare with{why}")
    found = Comparison(
        source=SourceSummary.of(source),
        models=tuple(dict.fromkeys(line.model for line in lines)),
        seeds=seeds,
        runs=runs,
        recipe=_as_given(recipe),
        lines=tuple(lines),
        advice=(),
        failures=tuple(sweep.failures),
        command=command,
    )
    found = replace(found, advice=tuple(advise(found)))
    if not workers.idle:
        found.save(folder)
    return found


@dataclass(frozen=True)
class _Measured:
    """One model on one graph."""

    trials: list[Trial]
    seconds: float | None
    """CPU time of a training; only of the first graph of a method and budget, and of the whole one."""


def _measure(
    sweep: Sweep, model: Model, recipe: Recipe, made: Mapping[Condensation, CondensedGraph], runs: int
) -> dict[Condensation | None, _Measured]:
    """The model on the whole graph (None) and on every condensed one."""
    orders: dict[Condensation | None, Order] = {None: Order(None, model, recipe, tuple(range(runs)))}
    for job, graph in made.items():
        orders[job] = Order(graph, model, recipe, training_seeds(job.seed, runs), str(job))
    trials = sweep.train(list(orders.values()))
    firsts = {(job.method.name, job.budget): job for job in reversed(list(made))}  # the lowest seed stays
    done = dict(zip(orders, trials, strict=True))
    timed = [job for job in (None, *firsts.values()) if done[job]]  # who could not be trained cannot be timed
    seconds = dict(zip(timed, sweep.seconds([orders[job] for job in timed]), strict=True))
    return {job: _Measured(own, seconds.get(job)) for job, own in done.items()}


def _distinct(methods: Sequence[Method]) -> list[Method]:
    """Each once; two of one name would be one line of the table."""
    found = list(dict.fromkeys(methods))
    for method in found:
        if sum(other.name == method.name for other in found) > 1:
            raise GcondError(f"'{method.name}' is given with different settings: compare them in folders of their own")
    return found


def _as_given(recipe: Recipe | Mapping[str, Any] | None) -> dict[str, Any]:
    """What was asked of the training, as values and not as text."""
    if isinstance(recipe, Recipe):
        return settings.as_dict(recipe)
    built = settings.as_dict(settings.build(Recipe, dict(recipe or {}), "the training recipe"))
    return {key: built[key] for key in recipe or ()}


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


def _whole_line(sweep: Sweep, model: Model, measured: _Measured) -> Line | None:
    """The model on the graph that the others stand for; None where it could not be trained there."""
    trials = measured.trials
    if not trials:
        return None
    found, mean = sweep.source.training_graph().statistics, fmean(trial.test for trial in trials)
    return Line(
        method=WHOLE,
        kind="whole",
        model=model.name,
        nodes=found.nodes,
        ratio=1.0,
        edges=found.edges,
        bytes=found.bytes,
        mean=mean,
        std=_deviation([trial.test for trial in trials]),
        n=len(trials),
        kept=1.0,
        condense_cpu_seconds=0.0,
        train_cpu_seconds=measured.seconds,
        peak_rss_mb=None,
        break_even=None,
        mark="",
        p_value=None,
        graphs=(),
    )


def _budget_lines(
    sweep: Sweep,
    top: Line,
    jobs: Sequence[Condensation],
    made: Mapping[Condensation, CondensedGraph],
    measured: Mapping[Condensation | None, _Measured],
) -> list[Line]:
    """The methods at one budget, the best of them marked."""
    by_method: dict[str, list[Condensation]] = {}
    for job in jobs:
        if measured[job].trials:
            by_method.setdefault(job.method.name, []).append(job)
    lines = {name: _line(sweep, top, own, made, measured) for name, own in by_method.items()}
    if not lines:
        return []
    best = max(lines.values(), key=lambda line: line.mean).method
    by_seed = {
        name: {job.seed: fmean(t.test for t in measured[job].trials) for job in own} for name, own in by_method.items()
    }
    for name, line in lines.items():
        common = sorted(by_seed[best].keys() & by_seed[name].keys())
        p = paired_p_value([by_seed[best][seed] for seed in common], [by_seed[name][seed] for seed in common])
        if name == best:
            lines[name] = replace(line, mark="best")
        else:
            lines[name] = replace(line, p_value=p, mark="tied" if p is not None and p >= SIGNIFICANCE else "")
    return list(lines.values())


def _line(
    sweep: Sweep,
    top: Line,
    jobs: Sequence[Condensation],
    made: Mapping[Condensation, CondensedGraph],
    measured: Mapping[Condensation | None, _Measured],
) -> Line:
    graphs = [made[job] for job in jobs]
    counted = [graph.statistics for graph in graphs]
    costs = [graph.provenance.cost for graph in graphs if graph.provenance is not None]
    trials = [trial for job in jobs for trial in measured[job].trials]
    mean = fmean(trial.test for trial in trials)
    first = jobs[0]
    condensing, training = fmean(cost["cpu_seconds"] for cost in costs), measured[first].seconds
    return Line(
        method=first.method.name,
        kind=first.method.kind,
        model=top.model,
        nodes=first.budget.nodes,
        ratio=first.budget.ratio,
        edges=fmean(found.edges for found in counted),
        bytes=fmean(found.bytes for found in counted),
        mean=mean,
        std=_deviation([trial.test for trial in trials]),
        n=len(trials),
        kept=mean / top.mean if top.mean else 0.0,
        condense_cpu_seconds=condensing,
        train_cpu_seconds=training,
        peak_rss_mb=max(cost["peak_rss_mb"] for cost in costs),
        break_even=break_even(condensing, training, top.train_cpu_seconds),
        mark="",
        p_value=None,
        graphs=tuple(str(sweep.path(job).relative_to(sweep.folder)) for job in jobs),
    )


def _deviation(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0
