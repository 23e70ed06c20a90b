"""The contract of a search for hyper-parameters, over every registered model.

The same seed gives the same trials, whoever does the work and in whatever order it comes back; no test label is read.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import gcond
from gcond import models
from gcond.results import Tuning
from gcond.runtime.engines import LocalEngine, Outcome

pytest.importorskip("optuna")

QUICK: dict[str, Any] = {"trials": 5, "batch": 2, "top": 1, "final_runs": 1, "epochs": 9}


class Backwards(LocalEngine):
    """One worker that does its jobs in reverse."""

    def work_off(self, function: Any, shared: Any, jobs: Any, hear: Any) -> Any:
        for job in reversed(list(jobs)):
            yield Outcome(job, function(shared, job, lambda fraction: None))


def trials(found: Tuning) -> list[tuple[object, ...]]:
    return [(one.model, one.settings, one.state, one.accuracies, one.epochs) for one in found.trials]


@pytest.mark.parametrize("name", sorted(models.available()))
def test_the_same_seed_gives_the_same_trials(name: str, make_graph: Any, setting: Any) -> None:
    graph = make_graph(setting)
    small = gcond.condense(graph, method="random", nodes=9)
    with LocalEngine(workers=1, threads=1) as one:
        found = gcond.tune(small, on=graph, model=name, engine=one, **QUICK)
    assert len(found.trials) == 5
    y = graph.y.clone()
    index = graph.test_mask.nonzero().squeeze(1)
    y[index] = (y[index] + 1) % graph.num_classes
    with Backwards(workers=1, threads=1) as other:
        again = gcond.tune(small, on=dataclasses.replace(graph, y=y), model=name, engine=other, **QUICK)
    assert trials(again) == trials(found)
    assert [one.confirmed for one in again.finalists] == [one.confirmed for one in found.finalists]
