"""Configurations that a search tries, and those of them that are looked at more closely."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from gcond.config import settings
from gcond.evaluation.recommend import Training
from gcond.results import Finalist, Trial, TunedTrial
from gcond.results.tuning import State

if TYPE_CHECKING:
    import optuna


@dataclass(eq=False)
class Candidate:
    """A configuration that is being tried."""

    number: int
    model: str
    settings: dict[str, Any]
    training: Training
    asked: optuna.Trial | None = None
    """As Optuna drew it; ``None`` is the usual configuration."""
    state: State = "pruned"
    accuracies: list[float] = field(default_factory=list)
    epochs: int = 0
    cpu_seconds: list[float] = field(default_factory=list)

    def trial(self) -> TunedTrial:
        return TunedTrial(
            number=self.number,
            model=self.model,
            settings=self.settings,
            state=self.state,
            accuracies=tuple(self.accuracies),
            epochs=self.epochs,
            cpu_seconds=math.fsum(self.cpu_seconds),
            usual=self.asked is None,
        )


def shortlist(ranked: Sequence[Candidate], top: int) -> list[Candidate]:
    """The ``top`` of ``ranked`` to look at more closely: the best of each architecture, and then whoever is next.

    A search ends in the neighbourhood of its best, and five near twins stand or fall together on another graph.
    """
    once = each_once(ranked)
    first = {one.training.model: one for one in reversed(once)}
    best = [one for one in once if first[one.training.model] is one][:top]
    return best + [one for one in once if one not in best][: top - len(best)]


def each_once(ranked: Sequence[Candidate]) -> list[Candidate]:
    """``ranked`` without configurations that were drawn again."""
    return list({one.training: one for one in reversed(ranked)}.values())[::-1]


def as_finalist(one: Candidate, on_searched: Sequence[Trial], on_whole: Sequence[Trial]) -> Finalist:
    recipe = one.training.recipe
    new = [trial for trial in on_searched if trial.condensed is not None]
    return Finalist(
        trial=one.number,
        model=one.model,
        settings=settings.as_dict(one.training.model),
        recipe=asdict(recipe),
        searched=one.accuracies[-1],
        confirmed=tuple(trial.val for trial in on_searched),
        confirmed_test=tuple(trial.test for trial in on_searched if trial.test is not None),
        confirm_cpu_seconds=math.fsum(trial.cpu_seconds for trial in new),
        val=tuple(trial.val for trial in on_whole),
        test=tuple(trial.test for trial in on_whole if trial.test is not None),
        epochs=sum(trial.epochs or recipe.epochs for trial in on_whole),
        cpu_seconds=math.fsum(trial.cpu_seconds for trial in on_whole),
    )
