"""The paper's tables and figures by name."""

from __future__ import annotations

from dataclasses import dataclass

from gcond.reproduction import accuracy_tables as accuracy
from gcond.reproduction import non_accuracy_tables as others
from gcond.reproduction.accuracy_tables import Measurement
from gcond.reproduction.paper import tables


@dataclass(frozen=True)
class Experiment:
    """One table of the paper."""

    name: str
    title: str
    columns: tuple[str, ...]
    """The headings of the labels of its rows."""
    datasets: tuple[str, ...]
    """Those that the paper has it for."""
    measure: Measurement
    digits: int = 1


def _experiment(
    name: str, title: str, columns: str, measure: Measurement, *datasets: str, digits: int = 1
) -> Experiment:
    """An experiment on ``datasets``; without any, on those of which the paper's table of this name has figures."""
    table = tables().get(name, {})
    printed = datasets or tuple(dataset for dataset in tables()["datasets"] if dataset in table)
    return Experiment(name, title, tuple(columns.split(", ")), printed, measure, digits)


_EXPERIMENTS = (
    _experiment("main", "GCN on what every method makes", "nodes, method", accuracy.main),
    _experiment("architectures", "One condensed graph, many test models", "method, model", accuracy.architectures),
    _experiment("versatility", "Backbones of gcond, and test models", "backbone, model", accuracy.versatility),
    _experiment("statistics", "Condensed and original graphs", "graph, property", others.statistics, digits=2),
    _experiment("parametrization", "Free A' or Φ", "structure", accuracy.parametrization),
    _experiment("optimization", "Together or in turns", "schedule", accuracy.optimization),
    _experiment("nas", "Architecture search", "search on, figure", others.nas, digits=2),
    _experiment("time", "Seconds for 50 epochs of gcond", "ratio, nodes", others.time),
    _experiment(
        "sparsification",
        "Accuracy and density against δ",
        "threshold, density",
        accuracy.sparsification,
        *tables()["sparsification"]["default_delta"],
    ),
    _experiment("depth", "Hidden units and layers", "hidden, layers", accuracy.depth, "cora", "citeseer"),
    _experiment("cross-depth", "Depth in condensation and in test", "made, tested", accuracy.cross_depth, "cora"),
    _experiment(
        "propagation",
        "Transformations and propagations of the test model",
        "layers, hops",
        accuracy.propagation,
        "cora",
    ),
    _experiment("original", "Models on the whole graph", "model", accuracy.original),
    _experiment("pubmed", "PubMed", "method, model", accuracy.pubmed, "pubmed"),
)
EXPERIMENTS = {experiment.name: experiment for experiment in _EXPERIMENTS}
