"""Graphs that grow, followed by updates and condensed anew after every step; `make accuracy` runs this."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gcond as package
from accuracy import ledger
from accuracy.following import Following, Step
from accuracy.measuring import RUNS, gcond
from accuracy.revealing import revealed

pytestmark = pytest.mark.accuracy

STEPS, LATE = 5, 3
ORDERS, TRAININGS = 3, 3
# The share of the source that the condensed graph has, by which the last step has the budget of the other tables.
RATIOS = {"cora": "2.6%", "citeseer": "1.8%", "amazon-computers": "1%"}
WITHIN, SHARE = 0.5, 0.2
"""Points below condensing anew, and share of its cost."""


def follow(dataset: str, method: str, seed: int) -> list[Step]:
    """Reveal ``dataset`` by ``seed``; every step is kept, so that an interrupted session goes on."""
    folder = RUNS / "update" / method / dataset / str(seed)
    kept = folder / "steps.json"
    if kept.exists():
        return [Step(**each) for each in json.loads(kept.read_text())]
    folder.mkdir(parents=True, exist_ok=True)
    options = ("--ratio", RATIOS[dataset], "--threads", "1")
    before, found = None, []
    for step, graph in enumerate(revealed(package.load(dataset), STEPS, seed, late=LATE), 1):
        source = folder / f"source-{step}.safetensors"
        graph.save(source)
        anew, updated = folder / f"anew-{step}.safetensors", folder / f"updated-{step}.safetensors"
        first = ("condense", str(source), "--method", method, "--seed", str(seed), *options)
        fresh = gcond(*first, "-o", str(anew), "--force")
        if before is not None:
            taken = gcond("update", str(before), "--on", str(source), *options, "-o", str(updated), "--force")
            scores = [_scores(each, source) for each in (updated, anew)]
            costs = taken["cpu_seconds"], fresh["cpu_seconds"]
            found.append(Step(seed, step, graph.num_nodes, taken["nodes"], *scores, *costs))
        before = anew if before is None else updated
    kept.write_text(json.dumps([vars(each) for each in found]))
    return found


def _scores(condensed: Path, source: Path) -> tuple[float, ...]:
    told = gcond("evaluate", str(condensed), "--on", str(source), "--models", "gcn", "--runs", str(TRAININGS))
    return tuple(told["results"][0]["runs"])


@pytest.mark.parametrize("method", ["clusters", "gcond-x"])
@pytest.mark.parametrize("dataset", RATIOS)
def test_following_a_growing_graph(dataset: str, method: str) -> None:
    """After every step about as accurate as condensing anew, at a fifth of its cost; one class appears on the way."""
    steps = [each for seed in range(ORDERS) for each in follow(dataset, method, seed)]
    command = f"gcond update step-N.safetensors --on step-N+1 --ratio {RATIOS[dataset]}"
    found = Following(dataset, method, command, tuple(steps))
    ledger.keep(f"update-{dataset}-{method}", found.to_json())
    for step in range(2, STEPS + 1):
        assert found.difference(step) >= -WITHIN, step
        assert found.cost(step) <= SHARE, step
