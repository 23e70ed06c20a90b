"""gcond where a node may have an edge with its nearest alone: everything that holds for all pairs holds for these."""

from __future__ import annotations

import pytest
import torch

from gcond.callbacks import Callback, Checkpoint
from gcond.condensed.condensed_graph import CondensedGraph
from gcond.config.settings import identity
from gcond.errors import GcondError
from gcond.linalg.sparse import SparseMatrix
from gcond.matching.candidates import nearest
from gcond.matching.sparsification import thresholded, unthresholded
from gcond.methods import gcond as module
from gcond.methods.condense import condense
from gcond.methods.gcond import GCond
from gcond.methods.grow import grow
from gcond.models import APPNP, GAT, GCN, SAGE
from gcond.training import Recipe, fit

NODES, NEAREST = 14, 3
QUICK = {"epochs": 4, "outer": 2, "inner": 1, "structure_hidden": 8, "teacher": "ridge", "probe_every": 0, "delta": 0.0}
TURNS = {"features_epochs": 1, "structure_epochs": 1, "lr_structure": 0.01}


def run(graph, callbacks=(), nodes=NODES, **changes):
    options = QUICK | TURNS | {"neighbours": NEAREST} | changes
    return condense(graph, method="gcond", nodes=nodes, callbacks=callbacks, **options)


def candidate_mask(x, count=NEAREST):
    target, source = nearest(x, count)
    mask = torch.zeros(len(x), len(x), dtype=torch.bool)
    mask[target, source] = mask[source, target] = True
    return mask


class StopAfter(Callback):
    def __init__(self, epochs):
        self.epochs = epochs

    def on_epoch(self, run):
        if run.epoch == self.epochs:
            run.stop("the test says so")


@pytest.mark.parametrize("directed", [False, True])
def test_edges_are_those_of_the_nearest_in_the_graph_that_is_saved(directed, make_graph):
    small = run(make_graph(directed=directed))
    adjacency = small.adjacency()
    assert torch.equal(adjacency > 0, candidate_mask(small.x))
    assert torch.equal(adjacency, adjacency.T) != directed


@pytest.mark.parametrize("count", [NODES - 1, 100, 0])
def test_as_many_as_there_are_is_all_pairs_bit_for_bit(count, make_graph):
    graph = make_graph()
    expected = condense(graph, method="gcond", nodes=NODES, **QUICK, **TURNS)
    assert run(graph, neighbours=count).sha256 == expected.sha256
    assert expected.num_edges == NODES * (NODES - 1)


def test_the_default_is_what_it_was_before_there_was_a_setting():
    assert "neighbours" not in identity(GCond())
    assert identity(GCond(neighbours=5))["neighbours"] == 5


def test_all_pairs_while_they_are_cheap():
    assert GCond().neighbours_of(454) is None
    assert GCond(structure_hidden=256).neighbours_of(454) is None
    assert GCond().neighbours_of(5000) == module.NEIGHBOURS
    assert GCond(structure_hidden=256).neighbours_of(909) == module.NEIGHBOURS
    assert GCond(neighbours=0).neighbours_of(5000) is None
    assert GCond(structure="free").neighbours_of(5000) is None


@pytest.mark.parametrize("changes", [{"neighbours": -1}, {"neighbours": 3, "structure": "free"}, {"neighbours": "few"}])
def test_what_cannot_be_is_refused(changes, make_graph):
    with pytest.raises(GcondError, match="neighbours"):
        run(make_graph(), **changes)


@pytest.mark.parametrize("backbone", ["gcn", "sage", "appnp", "cheby"])
def test_other_backbones_learn_on_it(backbone, make_graph):
    small = run(make_graph(), backbone=backbone, hidden=6, schedule="joint")
    assert bool(small.x.isfinite().all())
    start = run(make_graph(), backbone=backbone, hidden=6, epochs=0)
    assert not torch.equal(small.x, start.x)
    assert any(not torch.equal(small.structure[key], start.structure[key]) for key in ("weight1", "source"))


@pytest.mark.parametrize("changes", [{}, {"probe_every": 2, "delta": "auto"}], ids=["plain", "probed"])
def test_stopped_and_resumed_equals_uninterrupted(changes, make_graph, tmp_path):
    """The candidates of an epoch are found at its beginning, so a run that is taken up has the same."""
    graph = make_graph()
    rates = {"lr_features": 0.3}  # far enough for neighbours to change
    whole = run(graph, **changes, **rates)
    place = tmp_path / "checkpoint"
    run(graph, [StopAfter(2), Checkpoint(place)], **changes, **rates)
    resumed = run(graph, [Checkpoint(place, resume=True)], **changes, **rates)
    assert resumed.sha256 == whole.sha256
    assert resumed.provenance.history == whole.provenance.history
    if not changes:  # with probes the start may have been the best
        start = run(graph, epochs=0, **rates)
        assert not torch.equal(candidate_mask(start.x), candidate_mask(whole.x))


def test_a_chosen_delta_looks_at_what_is_shipped(make_graph):
    small = run(make_graph(), probe_every=2, delta="auto")
    chosen = small.provenance.choices["delta"]
    assert bool((small.edge_weight > chosen).all())
    again = thresholded(small, chosen)
    assert torch.equal(again.edge_index, small.edge_index)
    torch.testing.assert_close(again.edge_weight, small.edge_weight, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("automatic", [False, True])
def test_what_was_cut_can_be_had_again(automatic, make_graph, monkeypatch, tmp_path):
    """From the file, also where the number was chosen: it is written down."""
    monkeypatch.setattr(module, "EXACT", 1.0)
    monkeypatch.setattr(module, "NEIGHBOURS", NEAREST)
    neighbours = {"neighbours": "auto"} if automatic else {}
    whole, cut = (run(make_graph(), delta=delta, edge_bias=0.0, **neighbours) for delta in (0.0, 0.5))
    assert 0 < cut.num_edges < whole.num_edges
    assert cut.provenance.choices.get("neighbours") == (NEAREST if automatic else None)
    cut.save(tmp_path / "cut.safetensors")
    monkeypatch.undo()
    found = unthresholded(CondensedGraph.load(tmp_path / "cut.safetensors"))
    torch.testing.assert_close(found.to_dense(), whole.adjacency(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("directed", [False, True])
def test_grown_it_keeps_old_edges_and_joins_new_nodes_to_their_nearest(directed, make_graph):
    graph = make_graph(directed=directed)
    small = run(graph)
    grown = grow(small, on=graph, nodes=NODES + 6, epochs=2, probe_every=1)
    old = (grown.edge_index < NODES).all(0)
    assert torch.equal(grown.edge_index[:, old], small.edge_index)
    assert torch.equal(grown.edge_weight[old], small.edge_weight)
    assert torch.equal(grown.x[:NODES], small.x)
    mask = candidate_mask(grown.x)
    mask[:NODES, :NODES] = False
    source, target = grown.edge_index[:, ~old]
    assert len(source)
    assert bool(mask[target, source].all())
    assert grown.provenance.choices["neighbours"] == NEAREST


def test_all_pairs_grow_by_candidates(make_graph):
    """A small graph by all pairs, and a larger one that is too large for them."""
    graph = make_graph()
    small = run(graph, neighbours=0)
    grown = grow(small, on=graph, nodes=NODES + 6, epochs=1, neighbours=NEAREST)
    old = (grown.edge_index < NODES).all(0)
    assert torch.equal(grown.edge_weight[old], small.edge_weight)
    assert int((~old).sum()) < NODES * 6
    found = unthresholded(grown).to_dense()
    source, target = grown.edge_index
    torch.testing.assert_close(found[target, source], grown.edge_weight, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", [GCN(hidden=8), SAGE(hidden=8), APPNP(hidden=8), GAT(hidden=4, heads=2)], ids=repr)
def test_a_large_graph_of_few_edges_is_trained_on_as_a_sparse_one(model, make_graph, monkeypatch):
    small = run(make_graph(), neighbours=1)

    def trained():
        recipe = Recipe(epochs=20, select="last")
        return fit(model, small.view(), None, classes=3, seeds=[0], recipe=recipe).parameters[0]

    plain = trained()
    monkeypatch.setattr("gcond.condensed.condensed_graph.MOST_DENSE", 5)
    monkeypatch.setattr("gcond.condensed.condensed_graph.SPARSE", 1)
    assert isinstance(small.adjacency(), SparseMatrix)
    assert small.adjacency().nnz == small.num_edges
    for key, tensor in trained().items():
        torch.testing.assert_close(tensor, plain[key], rtol=1e-3, atol=1e-4)
