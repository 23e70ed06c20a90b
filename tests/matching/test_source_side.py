"""The source's side: exact, or sampled without being wrong."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from gcond import models
from gcond.graph.inputs import Inputs
from gcond.graph.labelled_view import LabelledView
from gcond.graph.sampling import Fanout
from gcond.linalg.sparse import Identity
from gcond.matching.source_side import Batches, FullBatch, SampledBatches, classes_together, real_side
from gcond.methods.condense import condense
from gcond.runtime.seeds import generator

BACKBONES = {"sgc": {}, "sgc mlp": {"layers": 2}, "gcn": {}, "sage": {}, "appnp": {"hops": 3}, "cheby": {}}
GB = 10**9


def backbone(key):
    return models.find(key.split()[0])(**({"hidden": 8} | BACKBONES[key]))


def batches(sampling="always", batch=10_000, sizes=(10_000,), scaled=True, memory=GB):
    return Batches(sampling, batch, Fanout(sizes, scaled), memory)


def sorts(make_graph, setting="transductive"):
    yield make_graph(setting)
    yield make_graph(setting, weighted=True, features=60, density=0.05)
    yield make_graph(setting, directed=True, weighted=True)


def one_by_one(model, parameters, view):
    """A loss a class on the whole graph, each differentiated by itself."""
    weights = {key: tensor.clone().requires_grad_() for key, tensor in parameters.items()}
    scores = model.logits(weights, view.inputs)[view.nodes]
    gradients = []
    for label in range(3):
        loss = F.cross_entropy(scores[view.y == label], view.y[view.y == label])
        gradients.append(torch.autograd.grad(loss, list(weights.values()), retain_graph=True))
    return {key: torch.stack(parts) for key, parts in zip(weights, zip(*gradients, strict=True), strict=True)}


def assert_close(first, second):
    assert first.keys() == second.keys()
    for key, tensor in first.items():
        torch.testing.assert_close(tensor, second[key], rtol=1e-4, atol=1e-5, msg=key)


@pytest.mark.parametrize("key", BACKBONES)
def test_whole_and_sampled_gradients_are_those_of_each_class_by_itself(key, setting, make_graph):
    """Sampled ones with batches and fan-outs that leave nothing out."""
    model = backbone(key)
    for graph in sorts(make_graph, setting):
        view = graph.view("train")
        parameters = model.init(graph.num_features, 3, generator(0, "weights"))
        expected = one_by_one(model, parameters, view)
        for together in (None, 1, 2):
            assert_close(FullBatch(model, view, 3, together).gradients(parameters, "0/0"), expected)
        assert_close(SampledBatches(model, view, 3, 0, batches()).gradients(parameters, "0/0"), expected)


def test_gradients_do_not_carry_the_way_back(make_graph):
    view = make_graph().view("train")
    for key in BACKBONES:
        model = backbone(key)
        parameters = model.init(12, 3, generator(0, "weights"))
        for side in (FullBatch(model, view, 3), SampledBatches(model, view, 3, 0, batches())):
            found = side.gradients(parameters, "0/0")
            assert not any(tensor.requires_grad for tensor in found.values())
            assert side.work() > 0


def test_batches_are_drawn_anew_at_every_step_and_the_same_for_the_same_seed(make_graph):
    view, model = make_graph().view("train"), backbone("gcn")
    parameters = model.init(12, 3, generator(0, "weights"))

    def gradient(seed, when):
        side = SampledBatches(model, view, 3, seed, batches(batch=3, sizes=(2,)))
        return side.gradients(parameters, when)["weight0"]

    assert torch.equal(gradient(0, "0/1"), gradient(0, "0/1"))
    assert not torch.equal(gradient(0, "0/1"), gradient(0, "0/2"))
    assert not torch.equal(gradient(0, "0/1"), gradient(0, "1/1"))
    assert not torch.equal(gradient(0, "0/1"), gradient(1, "0/1"))


def test_batches_average_to_the_whole(make_graph):
    """One propagation and one class at a time is linear in what is drawn up to the softmax: close on average."""
    view, model = make_graph(sizes=(80, 60, 40)).view("train"), backbone("sgc")
    parameters = model.init(12, 3, generator(0, "weights"))
    parameters["weight0"] *= 0.01  # keeps the softmax where it is nearly linear
    exact = FullBatch(model, view, 3).gradients(parameters, "")["weight0"]
    side = SampledBatches(model, view, 3, 0, batches(batch=10, sizes=(4,)))
    found = torch.stack([side.gradients(parameters, f"0/{t}")["weight0"] for t in range(150)])
    error = found.std(0) / len(found) ** 0.5
    assert float(((found.mean(0) - exact) / error).abs().mean()) < 1.5
    assert float((found[0] - exact).abs().mean()) > 3 * float((found.mean(0) - exact).abs().mean())


@pytest.mark.parametrize(
    ("key", "memory", "sampled"),
    [
        ("gcn", GB, False),
        ("gcn", 2000, True),
        ("sage", 2000, True),
        ("appnp", 2000, True),
        ("cheby", 2000, True),
        ("sgc mlp", 2000, True),
        ("sgc", 2000, False),
        ("sgc", 0, False),
    ],
)
def test_auto_samples_where_memory_is_short_but_never_what_is_linear(key, memory, sampled, make_graph):
    side = real_side(backbone(key), make_graph().view("train"), 3, 0, batches("auto", memory=memory))
    assert isinstance(side, SampledBatches) == sampled


def test_asked_for_is_asked_for(make_graph):
    view = make_graph().view("train")
    for key in BACKBONES:
        assert isinstance(real_side(backbone(key), view, 3, 0, batches("always")), SampledBatches)
        assert isinstance(real_side(backbone(key), view, 3, 0, batches("never", memory=0)), FullBatch)


@pytest.mark.parametrize("key", BACKBONES)
def test_batches_without_a_graph(key, make_graph):
    """Whole classes give the exact gradients, and small batches average to them."""
    view, model = make_graph(sizes=(80, 60, 40)).view("train"), backbone(key)
    bare = LabelledView(Inputs(view.inputs.x, Identity()), view.nodes, view.y, view.source_index)
    parameters = model.init(12, 3, generator(0, "weights"))
    exact = FullBatch(model, bare, 3).gradients(parameters, "")
    whole = real_side(model, bare, 3, 0, batches("always"))
    assert isinstance(whole, SampledBatches)
    assert_close(whole.gradients(parameters, "0/0"), exact)
    few = real_side(model, bare, 3, 0, batches("always", batch=10))
    assert 0 < few.work() < whole.work()
    first = next(iter(exact))
    found = torch.stack([few.gradients(parameters, f"0/{t}")[first] for t in range(150)])
    spread = found.std(0)
    error = (found.mean(0) - exact[first])[spread > 0] / (spread[spread > 0] / len(found) ** 0.5)
    assert float(error.abs().mean()) < 1.5  # 0.8 for what is right on average


def test_without_a_graph_auto_takes_batches_where_memory_is_short(make_graph):
    view = make_graph().view("train")
    bare = LabelledView(Inputs(view.inputs.x, Identity()), view.nodes, view.y, view.source_index)
    assert isinstance(real_side(backbone("gcn"), bare, 3, 0, batches("auto")), FullBatch)
    assert isinstance(real_side(backbone("gcn"), bare, 3, 0, batches("auto", memory=2000)), SampledBatches)
    assert isinstance(real_side(backbone("sgc"), bare, 3, 0, batches("auto", memory=0)), FullBatch)


def test_memory_says_how_many_classes_go_together(make_graph):
    view, model = make_graph().view("train"), backbone("gcn")
    counts = [classes_together(model, view, 3, memory) for memory in range(0, 100_000, 1000)]
    assert counts[0] == 0
    assert counts[-1] == 3
    assert sorted(counts) == counts
    assert set(counts) == {0, 1, 2, 3}


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("backbone", ["sgc", "gcn", "sage", "appnp", "cheby"])
def test_condensing_with_batches_end_to_end(backbone, scaled, setting, make_graph):
    for graph in sorts(make_graph, setting):
        options = {"epochs": 2, "outer": 2, "inner": 1, "hidden": 8, "probe_every": 0, "init": "sample"}
        sampled = {"sampling": "always", "batch": 5, "fanout": (3, 2), "fanout_scaled": scaled}
        first, second, exact = (
            condense(graph, method="gcond", nodes=9, backbone=backbone, **options, **more)
            for more in (sampled, sampled, {"sampling": "never"})
        )
        assert first.sha256 == second.sha256 != exact.sha256
        assert bool(first.x.isfinite().all())


def test_auto_condenses_with_batches_where_memory_is_short(make_graph):
    options = {"epochs": 1, "outer": 2, "inner": 1, "hidden": 8, "probe_every": 0, "backbone": "gcn"}
    graph = make_graph()
    found = {
        (sampling, memory): condense(
            graph, method="gcond-x", nodes=9, sampling=sampling, memory=memory, batch=5, **options
        ).sha256
        for sampling in ("auto", "always", "never")
        for memory in ("1KB", "1GB")
    }
    assert found["auto", "1KB"] == found["always", "1KB"]
    assert found["auto", "1GB"] == found["never", "1GB"]
    assert found["always", "1GB"] != found["never", "1GB"]
