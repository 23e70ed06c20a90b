"""A tiny run folder: what `gcond compare`, `gcond nas` and `gcond tune` leave, in small."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.provenance import Provenance
from gcond.condensed.score import Score
from gcond.config.setting_ranges import Choices, Range
from gcond.results import (
    Architecture,
    Comparison,
    Finalist,
    Line,
    Search,
    SourceSummary,
    TunedTrial,
    Tuning,
    Winner,
)
from gcond.results.search import CondensedSummary

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "{{7*7}}",
    '"><svg onload=alert(3)>',
    "a\u2028b & 'c' <!-- <script>",
)


def score(mean: float = 0.8, model: str = "gcn", **changes: Any) -> Score:
    runs = (mean - 0.01, mean + 0.01)
    return replace(Score(model, {}, {}, mean, 0.014, runs, val_mean=mean, cpu_seconds=3.0, source="ab"), **changes)


def small(
    *,
    nodes: int = 8,
    classes: int = 3,
    method: str = "gcond",
    name: str = "toy",
    class_names: tuple[str, ...] = (),
    edges: bool = True,
    **changes: Any,
) -> CondensedGraph:
    """A ring with weights 1/n, 2/n, … and one more node that has no edge."""
    ring = torch.arange(nodes - 1)
    ends = torch.stack([ring, (ring + 1) % (nodes - 1)])
    weights = (ring + 1.0) / nodes
    if not edges:
        ends, weights = ends[:, :0], weights[:0]
    provenance = Provenance(
        method=method,
        settings={"delta": 0.05},
        seed=0,
        budget={"nodes": nodes, "ratio": nodes / 1000},
        setting="transductive",
        source={"name": name, "sha256": "ab", "nodes": 1000, "edges": 3000, "features": 4, "bytes": 100_000},
        transform={"kind": "none"},
        num_classes=classes,
        class_names=class_names,
        cost={"wall_seconds": 12.0, "cpu_seconds": 11.0, "peak_rss_mb": 500.0},
        history={"loss": [3.0, 2.0, 1.0]},
        gcond_version="0.1.0",
    )
    stream = torch.Generator().manual_seed(nodes)
    values = {
        "x": torch.rand(nodes, 4, generator=stream),
        "y": torch.arange(nodes) % classes,
        "edge_index": torch.cat([ends, ends.flip(0)], 1),
        "edge_weight": torch.cat([weights, weights]),
        "provenance": provenance,
    }
    return CondensedGraph(**values | changes)


def line(method: str, nodes: int, mean: float, **changes: Any) -> Line:
    made = Line(method, "learned", "gcn", nodes, nodes / 1000, 7.0, 100.0 * nodes, mean, std=0.01, n=20)
    cost = {"condense_cpu_seconds": 30.0, "train_cpu_seconds": 1.0, "peak_rss_mb": 600.0, "break_even": 6}
    return replace(made, **{"kept": mean / 0.8, **cost, **changes})


def comparison(names: tuple[str, ...] = (), source: str = "toy", method: str = "gcond", **changes: Any) -> Comparison:
    whole = {"kind": "whole", "bytes": 100_000.0, "edges": 3000.0, "kept": 1.0, "condense_cpu_seconds": 0.0}
    found = Comparison(
        source=SourceSummary(
            source,
            sha256="ab",
            setting="transductive",
            nodes=1000,
            edges=3000,
            features=4,
            classes=3,
            class_names=tuple(names),
            class_nodes=(20, 20, 20),
            bytes=100_000,
        ),
        lines=(
            line("whole", 1000, 0.8, break_even=None, train_cpu_seconds=6.0, **whole),
            line("random", 8, 0.5, kind="selected", graphs=("graphs/random-8.safetensors",), p_value=0.0001),
            line(method, 8, 0.796, mark="best", graphs=("graphs/gcond-8.safetensors",)),
            line(method, 30, 0.8, mark="best", graphs=("graphs/gcond-30.safetensors",)),
        ),
        models=("gcn",),
        seeds=1,
        runs=20,
        advice=("Take the smaller one.",),
        command=f"gcond compare {source} --nodes 8,30",
    )
    return replace(found, **changes)


def tried(number: int, **changes: Any) -> TunedTrial:
    """A configuration that was fully trained."""
    settings = {"hidden": 256, "lr": 0.01} if changes.get("usual") else {"hidden": 64, "lr": 0.02}
    return replace(TunedTrial(number, "gcn", settings, "complete", (0.7, 0.8), epochs=600, cpu_seconds=1.5), **changes)


def finalist(trial: int, **changes: Any) -> Finalist:
    found = Finalist(
        trial=trial,
        model="gcn",
        settings={"layers": 2, "hidden": 64, "activation": "relu"},
        recipe={"epochs": 300, "lr": 0.02},
        searched=0.83,
        confirmed=(0.82, 0.80),
        confirmed_test=(0.81, 0.83),
        confirm_cpu_seconds=1.0,
        val=(0.80, 0.79),
        test=(0.79, 0.81),
        epochs=400,
        cpu_seconds=20.0,
    )
    return replace(found, **changes)


def tuning(**changes: Any) -> Tuning:
    """Four configurations, of which one was given up."""
    found = Tuning(
        source=SourceSummary("toy"),
        condensed=CondensedSummary(nodes=8, edges=7, bytes=800, sha256="cd", method="clusters"),
        ranges={"gcn": {"hidden": Choices((64, 128, 256)), "lr": Range(0.001, 0.1, log=True)}},
        held={"epochs": 300},
        seed=0,
        runs=1,
        batch=2,
        prune=True,
        wanted=4,
        trials=(
            tried(0, usual=True),
            tried(1, state="pruned", accuracies=(0.5,), epochs=66, cpu_seconds=0.5),
            tried(2, accuracies=(0.7, 0.83), epochs=900),
            tried(3, settings={"hidden": 128, "lr": 0.05}),
        ),
        finalists=(
            finalist(2),
            finalist(3, searched=0.8, confirmed=(0.80, 0.80), val=(0.82, 0.82)),
            finalist(0, searched=0.8, confirmed=(0.79, 0.79), val=(0.78, 0.78), test=(0.77, 0.77)),
        ),
        condense_cpu_seconds=2.0,
        optuna="5.0.0",
        command="gcond tune toy-clusters-8.safetensors --on toy --trials 4",
    )
    return replace(found, **changes)


def search(**changes: Any) -> Search:
    tried = (Architecture({"hops": hops}, 0.7 + hops / 100, 0.71 + hops / 100, 0.4, 3.0) for hops in (2, 4, 6))
    winner = Winner({"hops": 6}, (0.776, 0.784, 0.78, 0.776, 0.784))
    found = Search(
        source=SourceSummary("toy"),
        condensed=CondensedSummary(nodes=8, edges=7, bytes=800, method="gcond"),
        model="appnp",
        grid={"hops": [2, 4, 6]},
        recipe={},
        condensed_epochs=300,
        seed=0,
        architectures=tuple(tried),
        winners={"condensed": winner, "whole": winner},
        command="gcond nas x",
    )
    return replace(found, **changes)


def values_of(found: Comparison | Search | Tuning) -> dict[str, Any]:
    """What the file of ``found`` holds, to be written by hand."""
    kind = {Comparison: "comparison", Search: "nas", Tuning: "tune"}[type(found)]
    return json.loads(json.dumps({"kind": kind, "gcond": "0.1.0", **asdict(found)}))


def write_result(folder: Path, found: Comparison | Search | Tuning) -> None:
    """Write ``found`` where it belongs; halves of letters, too, which gcond would not write."""
    values = values_of(found)
    (folder / f"{values['kind']}.json").write_text(json.dumps(values))


def write_run(folder: Path, found: Comparison | None = None, **names: str) -> Path:
    """A run of three graphs: two with weights, and one without edges."""
    (folder / "graphs").mkdir(parents=True)
    small(**names).save(folder / "graphs/gcond-8.safetensors")
    small(nodes=30, **names).save(folder / "graphs/gcond-30.safetensors")
    small(edges=False, **names | {"method": "random"}).save(folder / "graphs/random-8.safetensors")
    write_result(folder, found or comparison())
    return folder
