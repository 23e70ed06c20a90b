"""Architecture search: how far a condensed graph ranks architectures as the whole graph does.

Every architecture is trained once on the condensed graph and once on the whole one, for fewer epochs on the condensed
one, where it converges faster, and judged by its validation accuracy; the winner of either side is then trained on
the whole graph several times and tested (Jin et al., ICLR 2022, appendix on architecture search). No test node is
looked at before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcond.condensed import CondensedGraph
from gcond.config import settings
from gcond.errors import GcondError
from gcond.evaluation.evaluate import check_fit, check_one_number_of_threads, source_of, trained_on, working
from gcond.evaluation.nas.search_space import Space, space
from gcond.graph import SourceGraph
from gcond.jobs import ORIGINAL, Runner, TrainingJob
from gcond.models import Model
from gcond.results import SIDES, Architecture, RunFolder, Search, Side, SourceSummary, Trial, Winner
from gcond.results.search import CondensedSummary
from gcond.runtime.device import choose_device
from gcond.runtime.engines import Engine
from gcond.runtime.progress_tick import Tick
from gcond.runtime.torch_settings import with_usual_torch
from gcond.training import Recipe

if TYPE_CHECKING:
    from torch_geometric.data import Data

RECIPE: Mapping[str, Any] = {"epochs": 200, "validate_every": 5, "patience": 0}
"""Where the training of a search differs from that of an evaluation.

The paper does not say how long its search trains. 200 epochs are the usual number for graphs of its size. Looking at
the validation nodes every fifth epoch makes the condensed side, where that look is most of the work, several times
as fast. All architectures train for as long, so that none is ranked by when it was given up.
"""
CONDENSED_SHARE = 0.5
"""Epochs on the condensed graph as a share of those on the whole one.

The paper trains for fewer there "as the model converges faster on the smaller graph", and does not say how many. Half
was chosen after looking at how validation accuracies of 48 architectures correlate on Cora, where as many epochs on
both sides agree less.
"""


@with_usual_torch
def search(
    small: CondensedGraph | str | Path,
    *,
    on: SourceGraph | Data | str | Path,
    model: str | Model = "appnp",
    grid: Mapping[str, Iterable[Any]] | None = None,
    recipe: Recipe | Mapping[str, Any] | None = None,
    condensed_epochs: int | None = None,
    seed: int = 0,
    runs: int = 20,
    folder: str | Path | None = None,
    engine: Engine | None = None,
    device: str = "auto",
    threads: int | None = None,
    command: str = "",
    on_progress: Tick | None = None,
    **training: Any,
) -> Search:
    """Train every architecture of ``model`` over ``grid`` on ``small`` and on its source ``on``, and compare.

    ``small`` is a condensed graph or its file; ``model`` a name, or a model whose other settings stay as they are.
    ``grid`` maps settings of the model to the values to try; without one it is the paper's space. ``recipe``, and
    settings of the training by name, are put on top of :data:`RECIPE` and the model's own; ``condensed_epochs`` are
    :data:`CONDENSED_SHARE` of its epochs if not given, and all else is the same on both sides. All architectures start
    from ``seed``; the winners are trained from ``runs`` seeds that count on from it. Of architectures with the same
    accuracy the first in the grid wins. Architectures whose weights have one shape are trained side by side, and each
    gives the same numbers whichever are trained beside it. In ``folder`` a search that was killed finds what it had;
    ``engine`` does the work (:func:`gcond.open_engine`), by default this process, with ``threads`` CPU threads or as
    many as the work deserves.
    """
    check_one_number_of_threads(engine, threads)
    runs = settings.whole_number(runs, "runs", least=1)
    seed = settings.whole_number(seed, "seed")
    graph = trained_on(small, on)
    if not isinstance(graph, CondensedGraph):
        raise GcondError(f"a {type(graph).__name__} cannot be searched on: give a CondensedGraph")
    found = space(model, grid)
    source = source_of(graph, on)
    check_fit(graph, source)
    kept = RunFolder(folder)
    kept.check_source(source)
    how = recipes(found.models[0], recipe, condensed_epochs, training)
    choose_device(device)  # refused here and not once per job
    with working(engine, threads) as workers:
        runner = Runner(source, kept, workers, device=device, on_progress=on_progress)
        sides: dict[Side, CondensedGraph | None] = {"condensed": graph, "whole": None}
        tried = {side: _tried(runner, sides[side], found.models, how[side], seed) for side in SIDES}
        compared = _compare(found, tried)
        best = {side: _best(compared, side) for side in SIDES} if compared else {}
        tested = {side: _test(runner, one, how["whole"], range(seed, seed + runs)) for side, one in best.items()}
    winners = {side: Winner(found.settings(best[side]), tests) for side, tests in tested.items() if tests}
    return Search(
        source=SourceSummary.of(source),
        condensed=CondensedSummary.of(graph),
        model=found.models[0].name,
        grid=found.grid,
        recipe=asdict(how["whole"]),
        condensed_epochs=how["condensed"].epochs,
        seed=seed,
        architectures=tuple(compared.values()),
        winners=winners,
        failures=tuple(runner.failures),
        command=command,
    )


def _tried(
    runner: Runner, graph: CondensedGraph | None, models: Sequence[Model], recipe: Recipe, seed: int
) -> dict[Model, Trial]:
    """Every architecture that could be trained on that side; no test node is looked at."""
    label = ORIGINAL if graph is None else "the condensed graph"
    jobs = [TrainingJob(graph, model, recipe, (seed,), label, tested=False) for model in models]
    found = zip(models, runner.train(jobs), strict=True)
    return {model: trials[0] for model, trials in found if trials}


def _compare(found: Space, tried: Mapping[Side, Mapping[Model, Trial]]) -> dict[Model, Architecture]:
    """Every architecture that both sides have trained, in the order of the grid."""
    condensed, whole = (tried[side] for side in SIDES)
    return {
        model: Architecture(
            found.settings(model),
            condensed[model].val,
            whole[model].val,
            condensed[model].cpu_seconds,
            whole[model].cpu_seconds,
        )
        for model in found.models
        if model in condensed and model in whole
    }


def _best(compared: Mapping[Model, Architecture], side: Side) -> Model:
    return max(compared, key=lambda model: getattr(compared[model], side))


def _test(runner: Runner, model: Model, recipe: Recipe, seeds: Sequence[int]) -> tuple[float, ...]:
    """Test accuracies of ``model`` on the whole graph, by seed."""
    (trials,) = runner.train([TrainingJob(None, model, recipe, tuple(seeds))])
    return tuple(trial.test for trial in trials if trial.test is not None)


def recipes(
    model: Model,
    given: Recipe | Mapping[str, Any] | None = None,
    condensed_epochs: int | None = None,
    training: Mapping[str, Any] | None = None,
) -> dict[Side, Recipe]:
    """The recipe of each side: as given, or the search's own with the model's and what is given on top."""
    base = asdict(given) if isinstance(given, Recipe) else {**RECIPE, **model.recipe, **(given or {})}
    whole = settings.build(Recipe, {**base, **(training or {})}, "the training recipe")
    if condensed_epochs is None:
        condensed_epochs = max(1, round(CONDENSED_SHARE * whole.epochs))
    condensed_epochs = settings.whole_number(condensed_epochs, "condensed_epochs", least=1)
    return {"whole": whole, "condensed": replace(whole, epochs=condensed_epochs)}
