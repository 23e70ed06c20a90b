"""The space that ``gcond.tune`` searches: the usual configuration of each model, and ranges of settings around it.

Settings that only one model has bring their range with it (:attr:`gcond.models.Model.ranges`); those of every model and
of the training are here, in proportion to the model's own, so that a model that is narrow by design, or that learns
slowly, is searched around what suits it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gcond.config.setting_ranges import DIGITS, Choices, Range, SettingRange, read_range
from gcond.errors import GcondError
from gcond.evaluation.recommend import Training, usual_training
from gcond.models import Model, resolve
from gcond.results.optuna_study import MODEL, draw, parameter

if TYPE_CHECKING:
    from optuna.trial import Trial

# Without a hidden layer these mean nothing, and are not drawn.
OF_HIDDEN_LAYERS = ("hidden", "dropout")


def usual_ranges(start: Training) -> dict[str, SettingRange]:
    """The ranges around ``start``: for a GCN 2 to 4 layers of 32 to 512 units, rates from 0.001 to 0.1."""
    model, recipe = start.model, start.recipe
    widths = (model.hidden // 8, model.hidden // 4, model.hidden // 2, model.hidden, 2 * model.hidden)
    return {
        "layers": Range(model.layers, model.layers + 2),
        "hidden": Choices(tuple(dict.fromkeys(max(1, width) for width in widths))),
        **model.ranges,
        "dropout": Range(0.0, 0.8, step=0.1),
        "lr": Range(_short(recipe.lr / 10), _short(recipe.lr * 10), log=True),
        "weight_decay": Range(1e-5, 1e-2, log=True),
    }


@dataclass(frozen=True)
class TuningSpace:
    """The models that are searched, each from its usual configuration."""

    starts: dict[str, Training]
    """By name; with the settings that are held."""
    ranges: dict[str, dict[str, SettingRange]]
    """By model and setting; the number of layers comes first, since others hang on it."""
    held: dict[str, Any]
    """The settings that are the same everywhere, as they were read."""

    def usual(self, model: str) -> dict[str, Any]:
        """The settings of the usual configuration that are searched."""
        return {key: self.starts[model].value(key) for key in self._meant(model, {})}

    def training(self, model: str, settings: Mapping[str, Any]) -> Training:
        """The configuration with these settings, and all others as usual."""
        return self.starts[model].changed(settings)

    def draw(self, trial: Trial) -> tuple[str, dict[str, Any]]:
        """A model and its settings, as Optuna sees fit."""
        names = tuple(self.starts)
        model = str(trial.suggest_categorical(MODEL, names)) if len(names) > 1 else names[0]
        drawn: dict[str, Any] = {}
        for key in self.ranges[model]:
            if key in self._meant(model, drawn):
                drawn[key] = draw(trial, parameter(model, key), self.ranges[model][key])
        return model, drawn

    def _meant(self, model: str, drawn: Mapping[str, Any]) -> list[str]:
        """The settings that mean something beside those that are ``drawn``."""
        flat = drawn.get("layers", self.starts[model].model.layers) == 1
        return [key for key in self.ranges[model] if not (flat and key in OF_HIDDEN_LAYERS)]


def tuning_space(
    model: str | Model | Iterable[str | Model], grid: Mapping[str, Any] | None, held: Mapping[str, Any]
) -> TuningSpace:
    """The space around ``model``, one or several, with the ranges of ``grid`` and the settings that are ``held``.

    ``grid`` maps settings of the training or of the models to ranges, such as ``"0.001..0.1"``, or to lists of values;
    its ranges stand in for the usual ones.
    """
    networks = resolve(model)
    names = [network.name for network in networks]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise GcondError(f"model '{twice}' is named twice: name each model once")
    grid = grid or {}
    if "metric" in grid:
        raise GcondError("metrics cannot be compared with each other: leave 'metric' out of the grid, and hold one")
    starts = {network.name: usual_training(network).changed(held) for network in networks}
    ranges: dict[str, dict[str, SettingRange]] = {}
    for name, start in starts.items():
        asked = {key: _typed(start, key, read_range(key, given)) for key, given in grid.items()}
        for key in asked:
            if key in held:
                raise GcondError(f"'{key}' is held at {start.value(key)}, so the grid cannot try others: name it once")
        found = {key: where for key, where in usual_ranges(start).items() if key not in held} | asked
        if _without_hidden_layers(start, found):
            for key in OF_HIDDEN_LAYERS:
                if key in asked:
                    raise GcondError(
                        f"'{key}' is of hidden layers, and one layer has none: let the grid try layers=1,2"
                    )
                found.pop(key, None)
        ranges[name] = {key: found[key] for key in sorted(found, key=lambda key: key != "layers")}
        if not ranges[name]:
            raise GcondError(f"every setting of '{name}' is held, so there is nothing to search: hold fewer")
    first = next(iter(starts.values()))
    return TuningSpace(starts, ranges, {key: first.value(key) for key in held})


def _typed(start: Training, key: str, where: SettingRange) -> SettingRange:
    """``where`` with values of the setting's own type, all of them possible."""
    if isinstance(where, Choices):
        return Choices(tuple(dict.fromkeys(start.changed({key: value}).value(key) for value in where.values)))
    low, high = (start.changed({key: end}).value(key) for end in (where.low, where.high))
    return dataclasses.replace(where, low=low, high=high)


def _without_hidden_layers(start: Training, found: Mapping[str, SettingRange]) -> bool:
    """Whether no configuration has a hidden layer."""
    layers = found.get("layers", Choices((start.model.layers,)))
    return not any(
        isinstance(value, int) and value > 1
        for value in (layers.values if isinstance(layers, Choices) else (layers.high,))
    )


def _short(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
