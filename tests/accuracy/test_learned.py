"""What the learned methods reach, beside the paper's figures; `make accuracy` runs this."""

from __future__ import annotations

import pytest

from accuracy.ledger import record
from accuracy.measuring import budgets, condensed

pytestmark = pytest.mark.accuracy

# The least that each method must reach at the paper's budgets, in %.
FLOORS = {
    ("cora", "gcond"): (79.8, 80.1, 79.3),
    ("cora", "gcond-x"): (75.9, 75.7, 76.0),
    ("citeseer", "gcond"): (70.5, 70.6, 69.8),
    ("citeseer", "gcond-x"): (70.4, 68.8, 68.4),
    ("pubmed", "gcond"): (77.9,),
    ("pubmed", "gcond-x"): (71.8,),
}
RUNS = {"gcond": 10, "gcond-x": 5}
CELLS = [(dataset, method, i) for (dataset, method), floors in FLOORS.items() for i in range(len(floors))]
GRAPHS = ("amazon-photo", "amazon-computers", "coauthor-cs", "coauthor-physics", "dblp")
SELECTION = ("random", "herding", "k-center")
BACKBONES = ("appnp", "cheby", "gcn", "sage", "sgc")
MIDDLE = {"cora": 70, "citeseer": 60}
ABLATIONS = {
    "alternating, Φ": {},
    "joint, Φ": {"schedule": "joint"},
    "alternating, free A'": {"structure": "free"},
}


@pytest.mark.parametrize(("dataset", "method", "position"), CELLS)
def test_the_floor_is_reached(dataset: str, method: str, position: int) -> None:
    nodes = budgets(dataset)[position]
    row = condensed(dataset, method, nodes, runs=RUNS[method])
    record("learned", f"{dataset}/{nodes}/{method}", row | {"position": position})
    assert 100 * row["mean"] >= FLOORS[dataset, method][position]


@pytest.mark.parametrize("model", ["gcn", "mlp"])
@pytest.mark.parametrize(
    ("dataset", "position"),
    [("cora", 0), ("cora", 1), ("cora", 2), ("citeseer", 0), ("citeseer", 1), ("citeseer", 2), ("pubmed", 0)],
)
def test_dc_graph_and_its_graph_free_test(dataset: str, position: int, model: str) -> None:
    nodes = budgets(dataset)[position]
    row = condensed(dataset, "dc-graph", nodes, model=model, seeds=range(2), runs=2)
    name = "dc-graph" if model == "gcn" else "dc"
    record("learned", f"{dataset}/{nodes}/{name}", row | {"position": position, "method": name})
    assert row["mean"] > 0.3


@pytest.mark.parametrize(("dataset", "method", "position"), [cell for cell in CELLS if cell[1] == "gcond-x"])
def test_the_start_itself(dataset: str, method: str, position: int) -> None:
    """How far the centres that X' starts from go without any matching."""
    nodes = budgets(dataset)[position]
    row = condensed(dataset, method, nodes, runs=1, settings={"epochs": 0})
    record("learned", f"{dataset}/{nodes}/start", row | {"position": position, "method": "start"})
    assert row["mean"] > 0.3


@pytest.mark.parametrize("dataset", GRAPHS)
def test_graphs_that_nobody_tuned_for(dataset: str) -> None:
    """Default settings, 1 % of the nodes: better than every selection."""
    rows = {}
    for method in (*SELECTION, "gcond"):
        rows[method] = condensed(dataset, method, "1%", seeds=range(3), runs=1)
        record("untuned", f"{dataset}/{method}", rows[method])
    assert rows["gcond"]["mean"] > max(rows[method]["mean"] for method in SELECTION)


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("model", BACKBONES)
def test_every_backbone_for_every_model(backbone: str, model: str) -> None:
    row = condensed("cora", "gcond", 70, model=model, seeds=range(1), runs=2, settings={"backbone": backbone})
    record("versatility", f"{backbone}/{model}", row | {"backbone": backbone})
    assert row["mean"] > 0.5


@pytest.mark.parametrize("variant", ABLATIONS)
@pytest.mark.parametrize("dataset", MIDDLE)
def test_ablations(dataset: str, variant: str) -> None:
    row = condensed(dataset, "gcond", MIDDLE[dataset], seeds=range(2), runs=3, settings=ABLATIONS[variant])
    record("ablation", f"{dataset}/{variant}", row | {"variant": variant})
    assert row["mean"] > 0.5
