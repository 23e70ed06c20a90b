"""A search for hyper-parameters: its trials, what the best of them reach on the whole graph, and what it all cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from gcond.condensed import Recommendation
from gcond.config.setting_ranges import SettingRange
from gcond.results import rank_agreement
from gcond.results.failure import Failure
from gcond.results.json_file import marked, read_json, write_json
from gcond.results.quantities import Accuracy, Count, CpuSeconds, SettingValue
from gcond.results.search import CondensedSummary
from gcond.results.source_summary import SourceSummary
from gcond.runtime import notebook

if TYPE_CHECKING:
    from optuna.study import Study

TUNING = "tune.json"

State = Literal["complete", "pruned", "failed"]


@dataclass(frozen=True)
class TunedTrial:
    """One configuration that was tried."""

    number: Count
    model: str
    settings: dict[str, SettingValue]
    """The settings that were drawn; those of a usual configuration are the model's own."""
    state: State
    """``complete`` after all its epochs; ``pruned`` where it was given up on the way."""
    accuracies: tuple[Accuracy, ...]
    """Mean validation accuracy over the runs after each rung that it reached, fractions; a rung trains for longer."""
    epochs: Count
    """Done in all, by all runs on all rungs; none where the same configuration had been trained before."""
    cpu_seconds: CpuSeconds
    """Of these, validation included."""
    usual: bool = False
    """Whether it is the model's usual configuration, which is tried first and never given up."""

    @property
    def val(self) -> float | None:
        """Validation accuracy on the last rung that was reached."""
        return self.accuracies[-1] if self.accuracies else None


@dataclass(frozen=True)
class Finalist:
    """One of the best configurations: trained anew on the graph that was searched on and, unless that is left out, on
    the whole one; tested where there are test nodes."""

    trial: Count
    """The number of the trial that it was."""
    model: str
    settings: dict[str, SettingValue]
    """The whole architecture."""
    recipe: dict[str, SettingValue]
    """The whole recipe."""
    searched: Accuracy
    """Mean validation accuracy in the search, which chose it: the best of many, so it promises too much."""
    confirmed: Annotated[tuple[Accuracy, ...], Field(min_length=1)]
    """Validation accuracy of each run on the graph that was searched on, by seed."""
    confirmed_test: tuple[Accuracy, ...]
    """Test accuracy of each of these runs, after the search: what training on that graph is good for."""
    confirm_cpu_seconds: CpuSeconds
    """Of all these runs, validation included; 0 where the whole graph was searched on, since they are those below."""
    val: tuple[Accuracy, ...]
    """Validation accuracy of each run on the whole graph, by seed; none where it was not trained there."""
    test: tuple[Accuracy, ...]
    """Test accuracy of each of these runs."""
    epochs: Count
    """Done by all runs."""
    cpu_seconds: CpuSeconds
    """Of all runs, validation included."""

    @property
    def confirmed_mean(self) -> float:
        return fmean(self.confirmed)

    @property
    def confirmed_test_mean(self) -> float | None:
        return _mean(self.confirmed_test)

    @property
    def confirmed_test_spread(self) -> float | None:
        """Sample standard deviation; ``None`` where a single run leaves none."""
        return _spread(self.confirmed_test)

    @property
    def val_mean(self) -> float | None:
        return _mean(self.val)

    @property
    def mean(self) -> float | None:
        """Mean test accuracy."""
        return _mean(self.test)

    @property
    def spread(self) -> float | None:
        """Sample standard deviation of the test accuracy; ``None`` where a single run leaves none."""
        return _spread(self.test)

    def to_json(self) -> dict[str, Any]:
        means = ("confirmed_mean", "confirmed_test_mean", "val_mean", "mean")
        found = {**asdict(self), **{name: getattr(self, name) for name in means}}
        return {**found, "confirmed_test_std": self.confirmed_test_spread, "std": self.spread, "n": len(self.confirmed)}


@dataclass(frozen=True)
class Tuning:
    """The outcome of :func:`gcond.tune`; ``tune.json`` of a run folder."""

    source: SourceSummary
    condensed: CondensedSummary | None
    """The graph that was searched on; ``None`` is the whole source."""
    ranges: dict[str, dict[str, SettingRange]]
    """What was searched, by model and setting."""
    held: dict[str, SettingValue]
    """Settings that a person gave to every configuration."""
    seed: int
    runs: Count
    """Trainings of each configuration on each rung."""
    batch: Count
    """Configurations that were drawn at a time."""
    prune: bool
    wanted: Count
    """The number of trials that were asked for."""
    trials: tuple[TunedTrial, ...] = ()
    """In the order in which they were drawn."""
    finalists: tuple[Finalist, ...] = ()
    """The best of the search, of different architectures where there are enough, and the usual configurations of their
    models; by :attr:`Finalist.confirmed_mean`."""
    recommendation: Recommendation | None = None
    """The winner as a condensed file keeps it; ``None`` where there is no such file to keep it in."""
    condense_cpu_seconds: CpuSeconds | None = None
    """Of making the graph that was searched on; ``None`` where that is not known or nothing was made."""
    failures: tuple[Failure, ...] = ()
    """Trainings that failed, and why."""
    optuna: str = ""
    """The version of Optuna that drew the configurations."""
    command: str = ""
    """The command line that made it."""

    def _repr_html_(self) -> str:
        """For notebooks; the tables of ``gcond tune`` have all of it."""
        columns = ("model", "settings", "validation there", "validation on the whole graph", "test on the whole graph")
        rows = [
            (
                one.model,
                ", ".join(
                    f"{key}={value}"
                    for key, value in (one.settings | one.recipe).items()
                    if key in self.ranges[one.model]
                ),
                notebook.percent(one.confirmed_mean),
                notebook.percent(one.val_mean),
                notebook.percent(one.mean),
            )
            for one in self.finalists
        ]
        return notebook.grid(f"Search on {self.source.name}, {len(self.trials)} configurations", columns, rows, (0, 1))

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self.ranges)

    @property
    def metric(self) -> str:
        """What is best on the validation nodes: all that is called validation accuracy here is in it."""
        return str(self.held.get("metric", "accuracy"))

    @property
    def on_whole(self) -> bool:
        """Whether the whole graph was searched on."""
        return self.condensed is None

    @property
    def winner(self) -> Finalist | None:
        """The configuration with the best confirmed validation accuracy on the graph that was searched on."""
        return self.finalists[0] if self.finalists else None

    @property
    def usual(self) -> Finalist | None:
        """The usual configuration of the winner's model."""
        numbers = {trial.number for trial in self.trials if trial.usual}
        winner = self.winner
        return next(
            (one for one in self.finalists if winner and one.trial in numbers and one.model == winner.model), None
        )

    @property
    def favourite(self) -> Finalist | None:
        """The finalist with the best validation accuracy on the whole graph; of equals the first."""
        tried = [(one, one.val_mean) for one in self.finalists]
        known = [(one, value) for one, value in tried if value is not None]
        return max(known, key=lambda pair: pair[1])[0] if known else None

    @property
    def spearman(self) -> float | None:
        """Rank correlation of the finalists' mean validation accuracies on the condensed and on the whole graph."""
        return rank_agreement.spearman(*self._sides())

    @property
    def kendall(self) -> float | None:
        """The same by Kendall's τ_b."""
        return rank_agreement.kendall(*self._sides())

    @property
    def compared(self) -> int:
        """The number of finalists that these correlations are over."""
        return len(self._sides()[0])

    @property
    def search_cpu_seconds(self) -> float:
        """Of all trainings of the search, given up ones included."""
        return math.fsum(trial.cpu_seconds for trial in self.trials)

    @property
    def confirm_cpu_seconds(self) -> float:
        """Of training the finalists anew on the graph that was searched on."""
        return math.fsum(one.confirm_cpu_seconds for one in self.finalists)

    @property
    def finalists_cpu_seconds(self) -> float:
        """Of training the finalists on the whole graph."""
        return math.fsum(one.cpu_seconds for one in self.finalists)

    @property
    def whole_estimate_cpu_seconds(self) -> float | None:
        """What the same search would take on the whole graph; an estimate, and ``None`` where it was there.

        Epochs of the search's trainings, times what an epoch of the finalists took on the whole graph: of those of
        the same model, or of all where a model has none. So it takes trainings to be as long there, and as many to be
        given up, and configurations that did not get as far to be as large as those that did.
        """
        if self.on_whole or not self.finalists:
            return None
        rates = {model: _rate(one for one in self.finalists if one.model == model) for model in self.models}
        overall = _rate(self.finalists)
        if overall is None:
            return None
        return math.fsum(trial.epochs * (rates[trial.model] or overall) for trial in self.trials)

    def count(self, state: State) -> int:
        return sum(trial.state == state for trial in self.trials)

    def to_json(self) -> dict[str, Any]:
        return {
            **marked("tune", self),
            "finalists": [one.to_json() for one in self.finalists],
            "spearman": self.spearman,
            "kendall": self.kendall,
            "agreement_n": self.compared,
            "favourite": self.favourite.trial if self.favourite else None,
            "search_cpu_seconds": self.search_cpu_seconds,
            "confirm_cpu_seconds": self.confirm_cpu_seconds,
            "finalists_cpu_seconds": self.finalists_cpu_seconds,
            "whole_estimate_cpu_seconds": self.whole_estimate_cpu_seconds,
        }

    def save(self, folder: Path) -> Path:
        return write_json(folder / TUNING, self.to_json())

    @classmethod
    def load(cls, folder: Path) -> Tuning:
        return read_json(folder / TUNING, cls, "tune")

    def study(self) -> Study:
        """The trials as an Optuna study in memory, for its importances and pictures (extra ``tune``)."""
        from gcond.results.optuna_study import finished, new_study

        study = new_study(self.seed)
        for trial in self.trials:
            if (found := finished(trial, self.ranges)) is not None:
                study.add_trial(found)
        return study

    def _sides(self) -> tuple[Sequence[float], Sequence[float]]:
        """Mean validation accuracies on the condensed graph and on the whole one, of finalists that have both."""
        if self.on_whole:  # there is one order only
            return [], []
        both = [(one.confirmed_mean, one.val_mean) for one in self.finalists]
        return [here for here, there in both if there is not None], [there for _, there in both if there is not None]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _spread(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None


def _rate(finalists: Iterable[Finalist]) -> float | None:
    """CPU seconds an epoch."""
    listed = list(finalists)
    epochs = sum(one.epochs for one in listed)
    return math.fsum(one.cpu_seconds for one in listed) / epochs if epochs else None
