"""A tiny run folder, written by hand: what `gcond compare` and `gcond nas` leave, in small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.provenance import Provenance

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "{{7*7}}",
    '"><svg onload=alert(3)>',
    "a\u2028b & 'c' <!-- <script>",
)


def score(mean: float = 0.8, model: str = "gcn") -> dict[str, Any]:
    runs = [mean - 0.01, mean + 0.01]
    return {"model": model, "settings": {}, "recipe": {}, "mean": mean, "std": 0.014, "runs": runs} | {
        "val_mean": mean,
        "seconds": 3.0,
        "source": "ab",
        "seed": 0,
    }


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


def line(method: str, nodes: int, mean: float, **changes: Any) -> dict[str, Any]:
    values = {"method": method, "kind": "learned", "model": "gcn", "nodes": nodes, "ratio": nodes / 1000}
    values |= {"edges": 7.0, "bytes": 100.0 * nodes, "mean": mean, "std": 0.01, "n": 20, "kept": mean / 0.8}
    values |= {"condense_seconds": 30.0, "train_seconds": 1.0, "peak_rss_mb": 600.0, "break_even": 6}
    return values | {"mark": "", "p_value": None, "graphs": []} | changes


def comparison(names: list[str] | None = None, source: str = "toy", method: str = "gcond") -> dict[str, Any]:
    whole = {"kind": "whole", "bytes": 100_000.0, "edges": 3000.0, "kept": 1.0, "condense_seconds": 0.0}
    return {
        "kind": "comparison",
        "gcond": "0.1.0",
        "command": f"gcond compare {source} --nodes 8,30",
        "source": {"name": source, "sha256": "ab", "setting": "transductive", "nodes": 1000, "edges": 3000}
        | {"features": 4, "classes": 3, "class_names": names, "class_nodes": [20, 20, 20], "bytes": 100_000},
        "models": ["gcn"],
        "seeds": 1,
        "runs": 20,
        "lines": [
            line("whole", 1000, 0.8, break_even=None, train_seconds=6.0, **whole),
            line("random", 8, 0.5, kind="selected", graphs=["graphs/random-8.safetensors"], p_value=0.0001),
            line(method, 8, 0.796, mark="best", graphs=["graphs/gcond-8.safetensors"]),
            line(method, 30, 0.8, mark="best", graphs=["graphs/gcond-30.safetensors"]),
        ],
        "advice": ["Take the smaller one."],
        "failures": [],
    }


def write_run(folder: Path, values: dict[str, Any] | None = None, **names: str) -> Path:
    """A run of three graphs: two with weights, and one without edges."""
    (folder / "graphs").mkdir(parents=True)
    small(**names).save(folder / "graphs/gcond-8.safetensors")
    small(nodes=30, **names).save(folder / "graphs/gcond-30.safetensors")
    small(edges=False, **names | {"method": "random"}).save(folder / "graphs/random-8.safetensors")
    (folder / "comparison.json").write_text(json.dumps(values or comparison()))
    return folder


def search() -> dict[str, Any]:
    tried = [
        {"settings": {"hops": hops}, "condensed": 0.7 + hops / 100, "whole": 0.71 + hops / 100}
        | {"condensed_seconds": 0.4, "whole_seconds": 3.0}
        for hops in (2, 4, 6)
    ]
    winner = {"settings": {"hops": 6}, "mean": 0.78, "std": 0.004, "n": 5}
    return {"kind": "nas", "command": "gcond nas x", "source": {"name": "toy"}, "model": "appnp"} | {
        "grid": {"hops": [2, 4, 6]},
        "condensed": {"method": "gcond", "nodes": 8},
        "recipe": {},
        "architectures": tried,
        "pearson": 0.9,
        "spearman": 0.8,
        "winners": {"condensed": winner, "whole": {**winner}},
        "seconds": {"condensed": 1.2, "whole": 9.0},
    }
