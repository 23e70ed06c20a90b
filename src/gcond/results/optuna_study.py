"""A search as Optuna knows it: its study, what it draws from, and finished trials; the extra ``tune`` brings Optuna."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gcond.config.setting_ranges import Choices, SettingRange
from gcond.errors import GcondError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

    from gcond.results.tuning import TunedTrial

MODEL = "model"
"""The parameter that chooses among several models."""

# Seeds of NumPy's generators, which Optuna draws from, end here.
_SEEDS = 2**32


def require_optuna() -> str:
    """The version of Optuna; where it is missing, it is said how to get it."""
    try:
        import optuna
    except ImportError:
        raise GcondError("tuning needs Optuna: pip install 'gcond[tune]'") from None
    return optuna.__version__


@contextmanager
def quietly() -> Iterator[None]:
    """Optuna without its log and its remarks on what may change in it one day."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def new_study(seed: int) -> Study:
    """A study in memory that maximises, drawn by the tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011).

    Trials that are still trained count as bad ones, so that those of one batch are not drawn alike.
    """
    require_optuna()
    import optuna

    with quietly():
        sampler = optuna.samplers.TPESampler(seed=seed % _SEEDS, constant_liar=True)
        return optuna.create_study(direction="maximize", sampler=sampler)


def parameter(model: str, setting: str) -> str:
    """The name that Optuna knows a setting by: models have ranges of their own."""
    return f"{model}.{setting}"


def draw(trial: Trial, name: str, where: SettingRange) -> Any:
    """A value from ``where``, as Optuna sees fit."""
    if isinstance(where, Choices):
        return trial.suggest_categorical(name, where.values)
    if where.whole:
        return trial.suggest_int(name, int(where.low), int(where.high), log=where.log)
    return where.rounded(trial.suggest_float(name, where.low, where.high, log=where.log, step=where.step))


def finished(trial: TunedTrial, ranges: Mapping[str, Mapping[str, SettingRange]]) -> FrozenTrial | None:
    """``trial`` as one that Optuna did not draw itself; ``None`` where it lies outside of what is searched."""
    from optuna.trial import TrialState, create_trial

    if not all(
        key in ranges[trial.model] and ranges[trial.model][key].holds(trial.settings[key]) for key in trial.settings
    ):
        return None
    where = {parameter(trial.model, key): _distribution(ranges[trial.model][key]) for key in trial.settings}
    params = {parameter(trial.model, key): value for key, value in trial.settings.items()}
    if len(ranges) > 1:
        where |= {MODEL: _distribution(Choices(tuple(ranges)))}
        params |= {MODEL: trial.model}
    states = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}
    return create_trial(
        state=states[trial.state],
        value=trial.val if trial.state == "complete" else None,
        params=params,
        distributions=where,
        intermediate_values=dict(enumerate(trial.accuracies)),
    )


def _distribution(where: SettingRange) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(where, Choices):
        return CategoricalDistribution(where.values)
    if where.whole:
        return IntDistribution(int(where.low), int(where.high), log=where.log)
    return FloatDistribution(where.low, where.high, log=where.log, step=where.step)


def tell(study: Study, asked: Trial, trial: TunedTrial) -> None:
    """Let ``study`` know what came of the trial that it had ``asked`` for."""
    from optuna.trial import TrialState

    for rung, accuracy in enumerate(trial.accuracies):
        asked.report(accuracy, rung)
    if trial.state == "complete":
        study.tell(asked, trial.val)
    else:
        study.tell(asked, state=TrialState.PRUNED if trial.state == "pruned" else TrialState.FAIL)
