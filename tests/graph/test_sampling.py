"""Fan-out sampling: exact where nothing is left out, right on average where something is."""

from __future__ import annotations

import pytest
import scipy.sparse
import torch

from gcond import models
from gcond.graph.inputs import Inputs
from gcond.graph.sampling import Fanout, sample
from gcond.graph.source_graph import SourceGraph
from gcond.linalg.sparse import SparseMatrix, dense
from gcond.runtime.seeds import generator

BACKBONES = {
    "sgc": {},
    "sgc mlp": {"layers": 2},
    "gcn": {},
    "sage": {},
    "appnp": {"hops": 4},
    "cheby": {},
    "gcn deep": {"layers": 4},
}
EVERYONE = Fanout((10_000,))


def backbone(key):
    return models.find(key.split()[0])(**({"hidden": 8} | BACKBONES[key]))


def sorts(make_graph, setting="transductive"):
    yield make_graph(setting)
    yield make_graph(setting, weighted=True, features=60, density=0.05)
    yield make_graph(setting, directed=True, weighted=True)


def draw(inputs, nodes, hops, sizes, seed=0, *, scaled=True):
    return sample(inputs, nodes, hops, Fanout(sizes, scaled), generator(seed, "draw"))


def star(leaves=30):
    """Node 0 with ``leaves`` neighbours of different weight and features, and a lone node at the end."""
    n = leaves + 2
    stream = generator(0, "star")
    spokes = torch.arange(1, leaves + 1)
    edges = torch.stack([spokes, torch.zeros_like(spokes)])
    x = torch.rand(n, 3, generator=stream) + 1
    mask = torch.zeros(n, dtype=torch.bool)
    return SourceGraph.build(
        name="star",
        x=x,
        edge_index=edges,
        edge_weight=torch.rand(leaves, generator=stream) + 0.5,
        y=torch.arange(n) % 2,
        train=~mask,
        val=mask,
        test=mask,
    )


def degrees(adjacency):
    return adjacency.indptr.diff().long()


@pytest.mark.parametrize("key", BACKBONES)
def test_outputs_are_exact_where_nothing_is_left_out(key, setting, make_graph):
    model = backbone(key)
    for graph in sorts(make_graph, setting):
        view = graph.view("train")
        batch = view.nodes[torch.randperm(len(view.nodes), generator=generator(0, "batch"))[:7]]
        parameters = model.init(graph.num_features, 3, generator(0, "weights"))
        sampled, places = sample(view.inputs, batch, model.reach, EVERYONE, generator(0, "draw"))
        expected = model.logits(parameters, view.inputs)[batch]
        found = model.logits(parameters, sampled)[places]
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("key", ["sgc mlp", "gcn", "sage", "cheby"])
def test_one_hop_too_few_is_not_exact(key, make_graph):
    """So the test above would notice neighbours that are missing."""
    model, view = backbone(key), make_graph().view("train")
    parameters = model.init(12, 3, generator(0, "weights"))
    sampled, places = sample(view.inputs, view.nodes[:3], model.reach - 1, EVERYONE, generator(0, "draw"))
    expected = model.logits(parameters, view.inputs)[view.nodes[:3]]
    assert not torch.allclose(model.logits(parameters, sampled)[places], expected, rtol=1e-3, atol=1e-3)


def test_rows_are_the_nodes_and_what_was_drawn(make_graph):
    for graph in sorts(make_graph):
        batch = torch.tensor([11, 3, 30])
        sampled, places = draw(graph.view("train").inputs, batch, 2, (3, 2))
        x = dense(sampled.x)
        assert torch.equal(x[places], dense(graph.x)[batch])
        assert len(x) <= 3 + 9 + 18
        counts = degrees(sampled.adjacency)
        allowed = degrees(graph.adjacency)[batch].clamp(max=3)
        assert counts[places].tolist() == allowed.tolist()
        others = torch.ones(len(x), dtype=torch.bool)
        others[places] = False
        assert int(counts[others].max()) <= 2


def test_edges_are_the_source_s_drawn_without_replacement(make_graph):
    for graph in sorts(make_graph):
        whole = graph.adjacency.to_dense()
        inputs = Inputs(torch.arange(graph.num_nodes)[:, None].float(), graph.adjacency)  # each node's name
        for seed in range(5):
            sampled, _ = draw(inputs, torch.arange(0, 40, 5), 2, (4, 2), seed, scaled=False)
            names = sampled.x.squeeze(1).long()
            found = sampled.adjacency.to_dense()
            present = found > 0
            assert bool(present.any())
            # A neighbour drawn twice would be summed to twice its weight.
            assert torch.equal(found[present], whole[names][:, names][present])


def test_the_last_size_serves_all_further_hops():
    fanout = Fanout((7, 3))
    assert [fanout.at(hop) for hop in range(5)] == [7, 3, 3, 3, 3]


@pytest.mark.parametrize("scaled", [True, False])
def test_scaled_sums_are_right_on_average_and_unscaled_ones_are_too_small(scaled):
    inputs = star().view("train").inputs
    draws = {form: [] for form in ("gcn", "mean", "laplacian")}
    for seed in range(250):
        sampled, place = draw(inputs, torch.tensor([0]), 1, (6,), seed, scaled=scaled)
        for form, found in draws.items():
            found.append((getattr(sampled, form) @ sampled.x)[place[0]])
    for form, found in draws.items():
        exact = (getattr(inputs, form) @ inputs.x)[0]
        mean, error = torch.stack(found).mean(0), torch.stack(found).std(0) / len(found) ** 0.5
        if scaled:
            assert bool(((mean - exact).abs() < 4 * error).all())
            assert bool((error < 0.03 * exact.abs()).all())  # small enough for that to say something
        else:
            assert bool((mean.abs() < 0.5 * exact.abs()).all())


def test_every_neighbour_is_as_likely():
    graph = star(leaves=10)
    inputs = Inputs(torch.arange(graph.num_nodes)[:, None].float(), graph.adjacency)
    counts = torch.zeros(graph.num_nodes)
    draws = 400
    for seed in range(draws):
        sampled, _ = draw(inputs, torch.tensor([0]), 1, (3,), seed)
        counts[sampled.x.squeeze(1).long()] += 1
    assert counts[0] == draws
    expected = 0.3 * draws
    assert float((counts[1:11] - expected).abs().max()) < 5 * (draws * 0.3 * 0.7) ** 0.5
    assert counts[11] == 0


def test_same_stream_same_draw(make_graph):
    inputs = make_graph().view("train").inputs
    nodes = torch.arange(10)
    first, second, other = (draw(inputs, nodes, 2, (2, 2), seed)[0] for seed in (0, 0, 1))
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.adjacency.to_dense(), second.adjacency.to_dense())
    assert first.x.shape != other.x.shape or not torch.equal(first.x, other.x)


@pytest.mark.parametrize("key", BACKBONES)
def test_a_node_without_neighbours(key):
    graph = star()
    lonely = torch.tensor([31])
    inputs = graph.view("train").inputs
    model = backbone(key)
    parameters = model.init(3, 2, generator(0, "weights"))
    sampled, places = draw(inputs, lonely, model.reach, (5, 5))
    assert sampled.num_nodes == 1
    assert sampled.adjacency.nnz == 0
    found = model.logits(parameters, sampled)[places]
    torch.testing.assert_close(found, model.logits(parameters, inputs)[lonely])


def test_the_same_node_twice_has_the_same_row(make_graph):
    inputs = make_graph().view("train").inputs
    sampled, places = draw(inputs, torch.tensor([4, 9, 4]), 1, (2,))
    assert places[0] == places[2] != places[1]
    assert torch.equal(sampled.x[places], inputs.x[[4, 9, 4]])


def test_directed_edges_are_followed_to_where_they_come_from():
    edges = torch.tensor([[0, 1], [1, 2]])  # 0 -> 1 -> 2
    adjacency = SparseMatrix.from_scipy(scipy.sparse.csr_matrix(([1.0, 1.0], (edges[1], edges[0])), shape=(3, 3)))
    inputs = Inputs(torch.arange(3.0)[:, None], adjacency)
    assert draw(inputs, torch.tensor([2]), 1, (5,))[0].x.squeeze(1).tolist() == [1, 2]
    assert draw(inputs, torch.tensor([2]), 2, (5,))[0].x.squeeze(1).tolist() == [0, 1, 2]
    assert draw(inputs, torch.tensor([0]), 2, (5,))[0].x.squeeze(1).tolist() == [0]


@pytest.mark.parametrize("sizes", [(), (0,), (3, 0), (-1,)])
def test_a_fan_out_of_nothing_is_refused(sizes):
    with pytest.raises(ValueError, match="at least"):
        Fanout(sizes)
