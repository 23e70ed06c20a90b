"""Accuracy does not pay for streaming: graphs from their stores, a few columns at a time, beside the same in memory."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

import pytest

import gcond
from accuracy import ledger
from accuracy.measuring import RUNS
from gcond.graph.stored_graph import StoredGraph
from gcond.graph.stored_inputs import StoredInputs

pytestmark = pytest.mark.accuracy

# Source and budget.
GRAPHS = {
    "cora": ("cora", 70),
    "citeseer": ("citeseer", 60),
    "pubmed": ("pubmed", 60),
    "coauthor-physics": ("coauthor-physics", 100),
    "debian": ("debian", 400),
}
SEEDS, RUNS_EACH = range(2), 3
COLUMNS = 32
"""That go through the graph at a time, as if there were no memory for more."""
WITHIN = 0.005
"""By which means may differ: sums in another order move single nodes over a border."""


@dataclass(frozen=True)
class Line:
    """One graph, condensed from several seeds and trained on several times, in two ways; accuracies as fractions."""

    source: str
    nodes: int
    seeds: int
    memory: tuple[float, ...]
    """In memory, by default settings."""
    store: tuple[float, ...]
    """Streamed from the store, by default settings too."""
    columns: int
    """Columns of X that went through the graph at a time, of so many ``features``."""
    features: int


def keep(line: Line) -> None:
    """Put a line into the ledger, beside those of other graphs."""
    place = ledger.DOCS / "results" / "store.json"
    kept = json.loads(place.read_text())["lines"] if place.exists() else []
    lines = {one["source"]: one for one in kept} | {line.source: asdict(line)}
    ledger.keep("store", {"kind": "store", "lines": [lines[name] for name in GRAPHS if name in lines]})


def streamed(store: Path) -> StoredGraph:
    """The graph on disk, however small it is."""
    graph = gcond.load(store, memory_limit="1MB")
    assert isinstance(graph, StoredGraph)
    return graph.with_streaming(replace(graph.streaming, memory=4 * 10**9))


def trained(small, source) -> tuple[float, ...]:
    (score,) = gcond.evaluate(small, on=source, models="gcn", runs=RUNS_EACH)
    return score.runs


def measure(name: str) -> Line:
    source, nodes = GRAPHS[name]
    if name == "debian":
        source = str(Path(os.environ["GCOND_DATA"], "debian"))
    store = RUNS / "store" / f"{name}.gcond"
    store.parent.mkdir(parents=True, exist_ok=True)
    gcond.pack(source, store, force=True, memory="1GB")
    here, there = gcond.load(store), streamed(store)
    assert here.sha256 == there.sha256 or here.transform.kind == "standardise"
    found: dict[str, list[float]] = {"memory": [], "store": []}
    for seed in SEEDS:
        for way, graph in (("memory", here), ("store", there)):
            found[way] += trained(gcond.condense(graph, method="clusters", nodes=nodes, seed=seed), graph)
    columns = min(COLUMNS, there.num_features)
    runs = {way: tuple(values) for way, values in found.items()}
    return Line(name, nodes, len(SEEDS), **runs, columns=columns, features=there.num_features)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_from_its_store_is_as_good_as_in_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoredInputs, "width", lambda self, work: COLUMNS)
    line = measure(name)
    keep(line)
    assert fmean(line.store) == pytest.approx(fmean(line.memory), abs=WITHIN)
