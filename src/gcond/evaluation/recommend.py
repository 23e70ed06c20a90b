"""``gcond.recommend``: the one recipe that fits all condensed graphs of a source, by validation accuracy alone.

The search starts from the model's fixed recipe and changes one setting at a time. Every candidate is trained from the
same seeds on every graph, so that it is compared with the best so far run by run. It is taken only if its mean gain is
more than noise, which is the greater of two things: the gain that a one-sided paired t-test at :data:`SIGNIFICANCE`
would still put down to chance, and one validation node. Of several that pass, the one with the greatest gain is taken,
of equals the first; what does not pass leaves everything as it was, so ties keep the fixed recipe. Where a round over
all settings changed something there is another, up to :data:`ROUNDS`. No test node is looked at.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from gcond.condensed import CondensedGraph, Recommendation
from gcond.condensed.origin import load_origin, source_difference
from gcond.config import settings
from gcond.config.registry import suggest
from gcond.errors import GcondError
from gcond.evaluation.evaluate import check_fit, check_one_number_of_threads, working
from gcond.graph import SourceGraph
from gcond.jobs import Runner, TrainingJob
from gcond.models import Model, resolve
from gcond.results import RecipeSearch, RunFolder, Trial, TriedRecipe
from gcond.runtime.device import choose_device
from gcond.runtime.engines import Engine
from gcond.runtime.progress_tick import Tick
from gcond.runtime.torch_settings import with_usual_torch
from gcond.training import Recipe, recipe_for
from gcond.training.metrics import deviation

if TYPE_CHECKING:
    from torch_geometric.data import Data

SIGNIFICANCE = 0.05
"""How often a change that is worth nothing may look better by more than noise."""
ROUNDS = 2
"""Rounds over all settings: in the second one, each is tried beside what the others have become."""

_TRAINING = tuple(field.name for field in dataclasses.fields(Recipe))


@dataclass(frozen=True)
class Training:
    """An architecture, and the recipe that it is trained by."""

    model: Model
    recipe: Recipe

    def value(self, key: str) -> Any:
        return getattr(self.recipe if key in _TRAINING else self.model, key)

    def changed(self, changes: Mapping[str, Any]) -> Training:
        """The same with ``changes`` to the settings of either; values may be text that spells them."""
        own = [field.name for field in dataclasses.fields(self.model)]
        for key in changes:
            if key not in _TRAINING and key not in own:
                raise GcondError(
                    f"there is no setting '{key}'{suggest(key, (*_TRAINING, *own))}: the training has "
                    f"{', '.join(_TRAINING)}, and model '{self.model.name}' has {', '.join(own)}"
                )
        training = {key: value for key, value in changes.items() if key in _TRAINING}
        shape = {key: value for key, value in changes.items() if key not in _TRAINING}
        what = f"model '{self.model.name}'"
        return Training(
            settings.build(type(self.model), dataclasses.asdict(self.model) | shape, what),
            settings.build(Recipe, dataclasses.asdict(self.recipe) | training, "the training recipe"),
        )

    def changes_from(self, other: Training) -> dict[str, Any]:
        """The settings in which this one is not ``other``."""
        keys = (*(field.name for field in dataclasses.fields(self.model)), *_TRAINING)
        return {key: self.value(key) for key in keys if self.value(key) != other.value(key)}


def usual_training(model: Model) -> Training:
    """``model`` by its fixed recipe."""
    return Training(model, recipe_for(model))


def usual_grid(start: Training) -> dict[str, list[Any]]:
    """What is tried around ``start``: for the usual models 64, 256 or 512 hidden units, and 200 or 600 epochs.

    Widths, rates and epochs are in proportion to the model's own, so that a model that is narrow by design, or that
    trains for long, is searched around what suits it. Where there is no hidden layer, width and dropout mean nothing.
    """
    recipe, hidden = start.recipe, start.model.hidden
    of_hidden_layers: dict[str, list[Any]] = {
        "dropout": [0.0, 0.5, 0.8],
        "hidden": [max(1, hidden // 4), hidden, 2 * hidden],
    }
    return {
        **(of_hidden_layers if start.model.layers > 1 else {}),
        "weight_decay": [0.0, 5e-4, 5e-3],
        "lr": [recipe.lr, 0.3 * recipe.lr],
        "epochs": [recipe.epochs, max(1, recipe.epochs // 3)],
    }


@with_usual_torch
def recommend(
    graphs: CondensedGraph | str | Path | Iterable[CondensedGraph | str | Path],
    *,
    on: SourceGraph | Data | str | Path,
    model: str | Model = "gcn",
    runs: int = 3,
    seed: int = 0,
    grid: Mapping[str, Iterable[Any]] | None = None,
    folder: str | Path | None = None,
    engine: Engine | None = None,
    device: str = "auto",
    threads: int | None = None,
    on_progress: Tick | None = None,
    **held: Any,
) -> RecipeSearch:
    """The one recipe for ``model`` that fits all ``graphs``, by validation accuracy on their source ``on``.

    ``graphs`` are condensed graphs or their files, one or several, all of that one source: its budgets, for example.
    The search goes from the fixed recipe of ``model``, one setting at a time, over ``grid``, which maps settings of the
    training or of the model to the values to try (by default :func:`usual_grid`); settings given by name
    (``epochs=300``) are held in every recipe, the fixed one included. Each recipe is trained from the same ``runs``
    seeds, counting on from ``seed``, on every graph; one is taken only where it gains more than noise, as
    :mod:`gcond.evaluation.recommend` says. No test node is looked at.

    The outcome has the graphs with the recommendation in their provenance: save them, and
    ``gcond.evaluate(small, on=graph, recipe="recommended")`` trains by it. Features are as the graphs were made from
    them, which the recommendation records and the search does not change. ``folder``, ``engine``, ``device`` and
    ``threads`` are those of :func:`gcond.evaluate`.
    """
    check_one_number_of_threads(engine, threads)
    runs = settings.whole_number(runs, "runs", least=1)
    seed = settings.whole_number(seed, "seed")
    start, tries = plan(model, grid, held)
    listed = [graphs] if isinstance(graphs, CondensedGraph | str | Path) else list(graphs)
    smalls = [each if isinstance(each, CondensedGraph) else CondensedGraph.load(each) for each in listed]
    check_graphs(smalls, runs)
    source = source_of_all(smalls, on)
    choose_device(device)
    with working(engine, threads) as workers:
        runner = Runner(source, RunFolder(folder), workers, device=device, on_progress=on_progress)
        search = _Search(runner, smalls, start, tuple(range(seed, seed + runs)))
        search.go(tries)
    found = search.recommendation()
    return RecipeSearch(
        recommendation=found,
        graphs=tuple(small.with_recommendation(found) for small in smalls),
        tried=tuple(search.rows),
        failures=tuple(runner.failures),
    )


def plan(
    model: str | Model, grid: Mapping[str, Iterable[Any]] | None, held: Mapping[str, Any]
) -> tuple[Training, dict[str, list[Any]]]:
    """Where a search starts, and the values of each setting that it tries; refuses what no search could use."""
    networks = resolve(model)
    if len(networks) != 1:
        raise GcondError(f"a recipe is recommended for one model at a time, and not for {len(networks)}: name one")
    start = usual_training(networks[0]).changed(held)
    if grid is None:
        return start, {key: values for key, values in usual_grid(start).items() if key not in held}
    tries = {key: [start.changed({key: value}).value(key) for value in values] for key, values in grid.items()}
    for key, values in tries.items():
        if not values:
            raise GcondError(f"the grid has no value for '{key}': give some, for example {key}={start.value(key)}")
        if key in held:
            raise GcondError(f"'{key}' is held at {start.value(key)}, so the grid cannot try others: name it once")
    if "metric" in tries:
        raise GcondError("metrics cannot be compared with each other: leave 'metric' out of the grid, and hold one")
    if not tries:
        raise GcondError("the grid is empty: name at least one setting and its values, for example dropout=0,0.5")
    return start, tries


def check_graphs(smalls: Sequence[CondensedGraph], runs: int) -> None:
    """Refuse graphs that cannot share one recommendation, or that leave no noise to judge by."""
    if not smalls:
        raise GcondError("there is no condensed graph to recommend a recipe for: give at least one")
    made = [small.provenance for small in smalls]
    known = [each for each in made if each is not None]
    if len(known) < len(made):
        raise GcondError(
            "a condensed graph without provenance has no place for a recommendation: give what gcond condense made"
        )
    names = {each.source.get("sha256"): str(each.source.get("name")) for each in known}
    if len(names) > 1:
        first, second, *_ = names.values()
        others = f"'{first}' and '{second}'" if first != second else f"'{first}' as it was read in different ways"
        raise GcondError(f"these graphs were made from {others}: one recipe is for the graphs of one source")
    if len({small.sha256 for small in smalls}) < len(smalls):
        raise GcondError("two of these graphs are the same, which would count its trainings twice: give each once")
    if runs * len(smalls) < 2:
        raise GcondError("a single training of each recipe says nothing of its noise: use runs=2 or more")


def source_of_all(smalls: Sequence[CondensedGraph], on: SourceGraph | Data | str | Path) -> SourceGraph:
    """The source graph ``on``, which must be the very one that ``smalls`` were made from."""
    made = smalls[0].provenance
    source = load_origin(made, on)
    if said := source_difference(made, source, "these were"):
        raise GcondError(f"{said}, and a recommendation needs the same")
    for small in smalls:
        check_fit(small, source, parts=("val",))
    return source


class _Search:
    """The state of a search: what was trained, and the best of it so far."""

    def __init__(
        self, runner: Runner, smalls: Sequence[CondensedGraph], start: Training, seeds: tuple[int, ...]
    ) -> None:
        self.runner, self.smalls, self.start, self.seeds = runner, smalls, start, seeds
        self.best = start
        self.rows: list[TriedRecipe] = []
        self._accuracies: dict[Training, list[float]] = {}
        """By graph and seed; none where a training failed."""
        self._cpu_seconds: list[float] = []

    def go(self, tries: Mapping[str, Sequence[Any]]) -> None:
        self._train([self.start])
        self.runner.raise_first_failure()
        self.rows.append(TriedRecipe({}, fmean(self._accuracies[self.start]), taken=True))
        for _ in range(ROUNDS):
            before = self.best
            for key, values in tries.items():
                self._try([self.best.changed({key: value}) for value in values])
            if self.best == before:
                return

    def recommendation(self) -> Recommendation:
        source = self.runner.source
        return Recommendation(
            model=self.best.model.name,
            settings=settings.as_dict(self.best.model),
            recipe=settings.as_dict(self.best.recipe),
            transform=source.transform.kind,
            val_mean=fmean(self._accuracies[self.best]),
            fixed_val_mean=fmean(self._accuracies[self.start]),
            tried=len(self._accuracies),
            graphs=tuple(small.sha256 for small in self.smalls),
            runs=len(self.seeds),
            seed=self.seeds[0],
            source=source.sha256,
            held=self.start.changes_from(usual_training(type(self.start.model)())),
            cpu_seconds=math.fsum(self._cpu_seconds),
        )

    def _try(self, candidates: Iterable[Training]) -> None:
        """Train those that are new, and take the one that gains most if that is more than noise."""
        new = [one for one in dict.fromkeys(candidates) if one not in self._accuracies]
        self._train(new)
        rows = {one: self._compare(one) for one in new}
        better = {one: row.gain for one, row in rows.items() if row.gain is not None and row.gain > (row.noise or 0.0)}
        if better:
            self.best = max(better, key=lambda one: better[one])
            rows[self.best] = dataclasses.replace(rows[self.best], taken=True)
        self.rows += rows.values()

    def _compare(self, one: Training) -> TriedRecipe:
        """``one`` beside the best so far."""
        changes, own = one.changes_from(self.start), self._accuracies[one]
        if not own:
            return TriedRecipe(changes, None)
        gains = [after - before for after, before in zip(own, self._accuracies[self.best], strict=True)]
        nodes = int(self.runner.source.mask("val").sum())
        return TriedRecipe(changes, fmean(own), fmean(gains), max(noise(gains), 1 / nodes))

    def _train(self, trainings: Sequence[Training]) -> None:
        jobs = [
            TrainingJob(
                small, one.model, one.recipe, self.seeds, f"the {small.num_nodes} condensed nodes", tested=False
            )
            for one in trainings
            for small in self.smalls
        ]
        found = iter(self.runner.train(jobs))
        for one in trainings:
            trials: list[Trial] = [trial for _ in self.smalls for trial in next(found)]
            whole = len(trials) == len(self.smalls) * len(self.seeds)
            if not whole and not self.runner.failures:
                raise GcondError("not all of these trainings are done yet: do them, and look again")
            self._accuracies[one] = [trial.val for trial in trials] if whole else []
            self._cpu_seconds += [trial.cpu_seconds for trial in trials]


def noise(gains: Sequence[float]) -> float:
    """The mean gain that a one-sided t-test over the pairs that ``gains`` are of would put down to chance."""
    from scipy.stats import t

    return float(t.ppf(1 - SIGNIFICANCE, len(gains) - 1)) * deviation(gains) / math.sqrt(len(gains))
