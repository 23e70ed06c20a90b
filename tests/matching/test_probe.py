"""The validation probe: honest, repeatable, and no more work than was allowed."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from gcond.errors import GcondError
from gcond.graph.inputs import Inputs
from gcond.graph.labelled_view import LabelledView
from gcond.linalg.sparse import Identity
from gcond.matching.probe import NarrowGCN, Probe, probe_interval
from gcond.methods.condense import condense
from gcond.models import GCN, SGC
from gcond.runtime.seeds import generator
from gcond.training.fit import fit


def small(graph, method="herding"):
    return condense(graph, method=method, nodes=12, **({"epochs": 3} if method == "herding" else {})).view()


def without_graph(x, y):
    everyone = torch.arange(len(y))
    return LabelledView(Inputs(x, Identity()), everyone, y, everyone)


def test_accuracy_is_that_of_training_on_the_graph(graph):
    probe = Probe(graph.view("val"), 3, 5)
    found = fit(probe.model, small(graph), graph.view("val"), classes=3, seeds=[5, 6], recipe=probe.recipe)
    assert probe.accuracy(small(graph)) == float(found.val_accuracy.mean())
    assert probe.accuracy(small(graph)) == probe.accuracy(small(graph))


def test_the_linear_model_is_sgc(graph):
    probe = Probe(graph.view("val"), 3, 5)
    found = fit(SGC(), small(graph), graph.view("val"), classes=3, seeds=[5], recipe=probe.row_recipe)
    assert probe.linear(small(graph)) == pytest.approx(float(found.val_accuracy), abs=1e-9)


def test_a_linear_model_does_not_bear_labels_that_are_mostly_of_one_class(make_graph):
    graph = make_graph(sizes=(120, 120, 120))
    probe, fair = Probe(graph.view("val"), 3, 0), small(graph)
    uneven = dataclasses.replace(fair, y=torch.where(torch.arange(len(fair.y)) % 6 > 0, 0, fair.y))
    assert probe.bears(fair, fair)
    assert probe.bears(uneven, fair)
    assert not probe.bears(fair, uneven)


@pytest.mark.parametrize("shape", [{}, {"features": 300, "density": 0.05, "directed": True, "weighted": True}])
def test_its_model_is_a_gcn(shape, make_graph):
    inputs = make_graph(**shape).view("val").inputs
    narrow, plain = NarrowGCN(), GCN(hidden=64)
    weights = narrow.init(inputs.num_features, 3, generator(0, "weights"))
    torch.testing.assert_close(narrow.logits(weights, inputs), plain.logits(weights, inputs))


def test_better_graphs_probe_better(make_graph):
    graph = make_graph(sizes=(120, 120, 120))
    probe = Probe(graph.view("val"), 3, 0)
    good = small(graph)
    wrong = dataclasses.replace(good, y=(good.y + 1) % 3)
    assert probe.accuracy(good) > 0.6 > probe.accuracy(wrong)


def test_only_validation_labels_count(graph):
    val = graph.view("val")
    shuffled = dataclasses.replace(val, y=val.y.roll(5))
    assert not torch.equal(shuffled.y, val.y)
    assert Probe(val, 3, 0).accuracy(small(graph)) != Probe(shuffled, 3, 0).accuracy(small(graph))


def test_a_graph_that_a_model_diverges_on_is_worth_nothing(graph):
    y = torch.tensor([0, 1, 2])
    wild = without_graph(torch.full((3, graph.num_features), torch.inf), y)
    assert Probe(graph.view("val"), 3, 0).accuracy(wild) == 0


def test_without_validation_nodes_it_says_so(graph):
    val = graph.view("val")
    nobody = LabelledView(val.inputs, val.nodes[:0], val.y[:0], val.source_index)
    with pytest.raises(GcondError, match=r"no validation node to probe on: give some, or .* probe_every=0"):
        Probe(nobody, 3, 0).accuracy(small(graph))


@pytest.mark.parametrize("asked", [1, 5])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
@pytest.mark.parametrize(("epoch", "probe"), [(1.0, 0.001), (1.0, 1.0), (1.0, 1234.5), (7.3, 20.1)])
def test_the_interval_keeps_probes_to_their_share_and_no_rarer_than_that(asked, share, epoch, probe):
    every = probe_interval(asked, share, epoch, probe)
    assert every >= asked
    assert probe / (probe + every * epoch) <= share * (1 + 1e-9)
    if every > asked:
        assert probe / (probe + (every - 1) * epoch) > share


def test_work_grows_with_what_is_looked_at(make_graph):
    little, much = make_graph(sizes=(40, 40, 40)), make_graph(sizes=(400, 400, 400))
    one = Probe(little.view("val"), 3, 0).work(small(little))
    assert 0 < one < Probe(much.view("val"), 3, 0).work(small(little))
