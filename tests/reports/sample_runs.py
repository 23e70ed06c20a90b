"""A tiny run folder: what `gcond compare`, `gcond nas`, `gcond tune` and `gcond audit` leave, in small."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.provenance import Provenance
from gcond.condensed.score import ClassMetrics, Score
from gcond.config.setting_ranges import Choices, Range
from gcond.graph.perturbation import Noise
from gcond.results import (
    Architecture,
    Audit,
    Closeness,
    Comparison,
    Finalist,
    Line,
    Membership,
    NoisyAccuracy,
    Search,
    SourceSummary,
    Spread,
    Subject,
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


def audit(given: str = "clusters, 8 nodes", **changes: Any) -> Audit:
    """One condensed graph beside random nodes and the whole graph; nothing was lost to noise in features."""
    means = {"whole graph": 0.8, "8 random nodes": 0.6, given: 0.82}
    metrics = ClassMetrics(0.7, 0.01, 0.71, 0.01, (0.9, 0.5, None))
    accuracies = [NoisyAccuracy(name, "gcn", "clean", "", mean, 0.01, 4, metrics) for name, mean in means.items()]
    for name, mean in means.items():
        accuracies += [
            NoisyAccuracy(name, "gcn", "before", "features", mean, 0.01, 4),
            NoisyAccuracy(name, "gcn", "before", "labels", mean - 0.1, 0.02, 4),
            NoisyAccuracy(name, "gcn", "before", "features+labels", mean - 0.125, 0.02, 3),
            NoisyAccuracy(name, "gcn", "test", "features", mean - 0.05, 0.0, 4),
        ]
    near, apart = Spread(0.1, 0.12, 0.2, 0.3, 0.4), Spread(0.0, 0.2, 0.5, 0.7, 0.9)
    ratios = Spread(0.5, 0.6, 0.75, 0.9, 1.0), Spread(0.1, 0.2, 0.95, 1.0, 1.0)
    found = Audit(
        source=SourceSummary("toy", class_names=("a", "b", "c")),
        subjects=(
            Subject("whole graph", "whole", 100),
            Subject("8 random nodes", "random", 8, "random"),
            Subject(given, "condensed", 8, "clusters", 0, "cd"),
        ),
        noise=Noise(edges=0, features=0.1, labels=0.2),
        models=("gcn",),
        seeds=2,
        runs=2,
        accuracies=tuple(accuracies),
        closeness=(
            Closeness("8 random nodes", "features", apart, apart, *ratios, 1.0, 8, 100),
            Closeness(given, "features", near, apart, *ratios, 0.875, 0, 100),
            Closeness(given, "propagated", near, apart, *ratios, 0.0, 0, 100),
        ),
        membership=(
            Membership("whole graph", "gcn", 0.8, 0.76, 0.84, 0.01, 4, 40, 60, 0.79, 0.75, 0.83),
            Membership(given, "gcn", 0.55, 0.5, 0.6, 0.01, 4, 40, 60, None, None, None, -0.25, -0.3, -0.2),
        ),
        notes=("it rained",),
        command="gcond audit toy-clusters-8.safetensors --on toy",
    )
    return replace(found, **changes)


def values_of(found: Comparison | Search | Tuning | Audit) -> dict[str, Any]:
    """What the file of ``found`` holds, to be written by hand."""
    kind = {Comparison: "comparison", Search: "nas", Tuning: "tune", Audit: "audit"}[type(found)]
    return json.loads(json.dumps({"kind": kind, "gcond": "0.1.0", **asdict(found)}))


def write_result(folder: Path, found: Comparison | Search | Tuning | Audit) -> None:
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
