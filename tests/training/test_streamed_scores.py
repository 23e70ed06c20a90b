"""Every model's scores on a graph that is streamed from its store are those on the same graph in memory."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

import gcond
from gcond import models
from gcond.errors import GcondError
from gcond.graph.stored_inputs import StoredInputs
from gcond.models.gcn import GCN
from gcond.runtime.seeds import generator
from gcond.training.class_scores import class_scores, logits
from gcond.training.streamed_scores import streamed_scores
from streamed import packed, small_pieces

SHAPES = {
    "dense": {},
    "weighted": {"weighted": True},
    "directed": {"weighted": True, "directed": True},
    "sparse features": {"features": 60, "density": 0.05},
}
NAMES = tuple(sorted(models.available()))


@pytest.fixture(autouse=True, params=[None, 3], ids=["wide groups", "three columns at a time"])
def pieces(request):
    with small_pieces(columns=request.param):
        yield


def weights(model, graph, runs=3):
    return [model.init(graph.num_features, graph.num_classes, generator(seed, "test")) for seed in range(runs)]


def gathered(found, runs, nodes, classes):
    """Scores [R, m, C] put together, each of which must come once."""
    scores, seen = torch.full((runs, len(nodes), classes), torch.nan), torch.zeros(runs, len(nodes), dtype=torch.long)
    for run, places, rows in found:
        scores[run, places] = rows
        seen[run, places] += 1
    assert bool((seen == 1).all())
    return scores


def test_there_are_seven():
    assert len(NAMES) == 7


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_scores_of_every_model_are_those_in_memory(name, shape, make_graph, tmp_path):
    graph = make_graph(**SHAPES[shape])
    there = packed(graph, tmp_path)
    model = models.find(name)()
    parameters = weights(model, graph)
    nodes = torch.tensor([79, 3, 40, 0, 12, 41, 42, 43, 5])
    inputs = graph.view("test").inputs
    expected = torch.stack([scores[nodes] for scores in logits(model, parameters, inputs)])
    found = gathered(class_scores(model, parameters, there.inputs, nodes), 3, nodes, graph.num_classes)
    assert torch.allclose(found, expected, atol=1e-5, rtol=1e-4)
    assert not list(there.inputs._scratch.path.glob("*.npy"))


@pytest.mark.parametrize("name", NAMES)
def test_a_training_is_tested_from_the_store_as_in_memory(name, make_graph, tmp_path):
    graph = make_graph()
    there = packed(graph, tmp_path)
    small = gcond.condense(graph, nodes=9, method="clusters", teacher="ridge")
    short = {"epochs": 30, "validate_every": 10}
    (here,) = gcond.evaluate(small, on=graph, models=name, runs=2, **short)
    (found,) = gcond.evaluate(small, on=there, models=name, runs=2, **short)
    assert found.runs == pytest.approx(here.runs, abs=1 / int(graph.test_mask.sum()) + 1e-9)
    assert found.val_mean == pytest.approx(here.val_mean, abs=0.051)


@dataclass(frozen=True)
class Doubled(GCN):
    """A model that computes otherwise than its stages would say."""

    name = "doubled"

    def logits(self, parameters, inputs, dropout=None):
        return 2 * super().logits(parameters, inputs, dropout)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_model_that_does_not_say_its_stages_is_scored_by_neighbourhoods(shape, make_graph, tmp_path):
    graph = make_graph(**SHAPES[shape])
    there = packed(graph, tmp_path)
    parameters = weights(Doubled(), graph, 2)
    nodes = torch.arange(0, 80, 3)
    expected = torch.stack([scores[nodes] for scores in logits(Doubled(), parameters, graph.view("test").inputs)])
    found = gathered(streamed_scores(Doubled(), parameters, there.inputs, nodes), 2, nodes, graph.num_classes)
    assert torch.allclose(found, expected, atol=1e-5, rtol=1e-4)


def test_blocks_of_nodes_become_smaller_until_they_fit(make_graph, tmp_path, monkeypatch):
    graph = make_graph()
    there = packed(graph, tmp_path)
    sizes = []
    plain = StoredInputs.around

    def most(self, nodes, *rest):
        if len(nodes) > 5:
            raise GcondError("too many")
        sizes.append(len(nodes))
        return plain(self, nodes, *rest)

    monkeypatch.setattr(StoredInputs, "around", most)
    parameters = weights(Doubled(), graph, 1)
    nodes = torch.arange(17)
    found = gathered(streamed_scores(Doubled(), parameters, there.inputs, nodes), 1, nodes, graph.num_classes)
    (expected,) = logits(Doubled(), parameters, graph.view("test").inputs)
    assert torch.allclose(found[0], expected[nodes], atol=1e-5)
    assert max(sizes) <= 5
    assert sum(sizes) == 17


def test_what_one_node_looks_at_must_fit(make_graph, tmp_path):
    graph = make_graph()
    there = packed(graph, tmp_path)
    tight = there.with_streaming(type(there.streaming)(10**6))
    with pytest.raises(GcondError, match=r"would have to be in memory at once, .*: use memory_limit='\d+MB' or more"):
        list(streamed_scores(Doubled(), weights(Doubled(), graph, 1), tight.inputs, torch.arange(4)))
