"""The set-up of experiments on one data set: its source, its runner, and how much of everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from gcond.condensed import CondensedGraph
from gcond.graph import SourceGraph, budget_for
from gcond.jobs import Condensation, Runner
from gcond.methods import Method, find, method_for
from gcond.methods import recipe_file as recipes
from gcond.methods.recipe_file import RecipeFile
from gcond.results import Failure, RunFolder
from gcond.runtime.engines import Engine
from gcond.runtime.progress_tick import Tick

# The paper matches labelled nodes alone. A teacher would make another method of it, which has comparisons of its own;
# where X' starts and when it ends is ours in these tables, unless they are asked for with the paper's own settings.
LABELLED_ALONE: Mapping[str, Mapping[str, Any]] = {
    "gcond": {"teacher": "none", "init": "auto", "delta": 0.05},
    "gcond-x": {"teacher": "none", "init": "propagated-means"},
}


@dataclass(frozen=True)
class Scale:
    """The scale of the experiments: how much of everything."""

    seeds: int = 5
    """Condensed graphs per cell."""
    runs: int = 10
    """Trainings on each of them."""
    epochs: int | None = None
    """The most epochs of a condensation, where less than the method's own."""
    train: Mapping[str, Any] = field(default_factory=dict)
    """Settings that override the training recipe."""
    architectures: Mapping[str, tuple[Any, ...]] | None = None
    """The architectures to search; None is all of the paper's."""


FULL = Scale()
QUICK = Scale(
    seeds=1,
    runs=2,
    epochs=5,
    train={"epochs": 60},
    architectures={"hops": (2, 10), "alpha": (0.1, 0.2), "hidden": (16, 64), "activation": ("relu", "sigmoid")},
)


@dataclass(frozen=True)
class Plan:
    """A plan of how experiments are done, on whatever data sets."""

    engine: Engine
    scale: Scale = FULL
    settings: Literal["gcond", "paper"] = "gcond"
    """Whose settings the methods have: ours, or the paper's."""
    device: str = "auto"
    command: str = ""
    on_progress: Tick | None = None


class ExperimentSetup:
    """One data set with a runner of its own, that all experiments on it share: a graph is made once for all of them."""

    def __init__(self, dataset: str, source: SourceGraph, folder: Path, plan: Plan) -> None:
        self.dataset, self.source, self.folder, self.plan, self.scale = dataset, source, folder, plan, plan.scale
        kept = RunFolder(folder)
        self.runner = Runner(source, kept, plan.engine, device=plan.device, on_progress=plan.on_progress)

    @property
    def failures(self) -> list[Failure]:
        return self.runner.failures

    @cached_property
    def recipe(self) -> RecipeFile:
        """The settings that the paper fixes for the data set."""
        return recipes.load(self.dataset)

    @property
    def budgets(self) -> tuple[int, ...]:
        """The paper's, in nodes."""
        return self.recipe.budgets

    @property
    def middle(self) -> int:
        """The budget of the paper's side experiments."""
        return self.budgets[len(self.budgets) // 2]

    def method(self, name: str, **options: Any) -> Method:
        """The method on labelled nodes alone, with our settings or the paper's, and ``options`` on top."""
        learned = find(name).kind == "learned"
        if self.plan.settings == "gcond":
            options = {**LABELLED_ALONE.get(name, {}), **options}
        paper = self.dataset if learned and self.plan.settings == "paper" else None
        method = method_for(name, options, paper)
        if learned and self.scale.epochs is not None and "epochs" not in options:
            options = options | {"epochs": min(self.scale.epochs, method.epochs)}  # type: ignore[attr-defined]
        return method_for(name, options, paper)

    def condense(self, method: Method, nodes: int, seed: int = 0) -> CondensedGraph | None:
        """One condensed graph; None if it failed."""
        job = Condensation(method, budget_for(self.source, nodes=nodes), seed)
        return self.runner.condense([job]).get(job)
