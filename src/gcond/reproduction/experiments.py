"""The paper's tables and figures by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gcond.reproduction import accuracy_tables as accuracy
from gcond.reproduction import other_tables as others
from gcond.reproduction.experiment_setup import ExperimentSetup
from gcond.reproduction.paper import tables
from gcond.results import ReproducedRow


@dataclass(frozen=True)
class Experiment:
    """One table of the paper."""

    name: str
    title: str
    columns: tuple[str, ...]
    """What the labels of its rows are."""
    datasets: tuple[str, ...]
    """Those that the paper has it for."""
    measure: Callable[[ExperimentSetup], list[ReproducedRow]]
    digits: int = 1


def _printed(table: str) -> tuple[str, ...]:
    known = tables()["datasets"]
    return tuple(name for name in known if name in tables()[table])


_EXPERIMENTS = (
    Experiment("main", "GCN on what every method makes", ("nodes", "method"), _printed("main"), accuracy.main),
    Experiment(
        "architectures",
        "One condensed graph, many test models",
        ("method", "model"),
        _printed("architectures"),
        accuracy.architectures,
    ),
    Experiment(
        "versatility",
        "Backbones of gcond, and test models",
        ("backbone", "model"),
        _printed("versatility"),
        accuracy.versatility,
    ),
    Experiment(
        "statistics",
        "Condensed and original graphs",
        ("graph", "property"),
        _printed("statistics"),
        others.statistics,
        digits=2,
    ),
    Experiment(
        "parametrization", "Free A' or Φ", ("structure",), _printed("parametrization"), accuracy.parametrization
    ),
    Experiment("optimization", "Together or in turns", ("schedule",), _printed("optimization"), accuracy.optimization),
    Experiment("nas", "Architecture search", ("search on", "figure"), _printed("nas"), others.nas, digits=2),
    Experiment("time", "Seconds for 50 epochs of gcond", ("ratio", "nodes"), _printed("time"), others.time),
    Experiment(
        "sparsification",
        "Accuracy and density against δ",
        ("threshold", "density"),
        tuple(tables()["sparsification"]["default_delta"]),
        accuracy.sparsification,
    ),
    Experiment("depth", "Hidden units and layers", ("hidden", "layers"), _printed("depth_hidden"), accuracy.depth),
    Experiment("cross-depth", "Depth in condensation and in test", ("made", "tested"), ("cora",), accuracy.cross_depth),
    Experiment(
        "propagation",
        "Transformations and propagations of the test model",
        ("layers", "hops"),
        ("cora",),
        accuracy.propagation,
    ),
    Experiment("original", "Models on the whole graph", ("model",), _printed("original"), accuracy.original),
    Experiment("pubmed", "PubMed", ("method", "model"), ("pubmed",), accuracy.pubmed),
)
EXPERIMENTS = {experiment.name: experiment for experiment in _EXPERIMENTS}
