"""The network teacher on a graph that stays on disk says what it says in memory, or what it would need."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

import gcond
from gcond.errors import GcondError
from gcond.graph import Inputs, LabelledView
from gcond.linalg.sparse import SparseMatrix
from gcond.linalg.tall import row_blocks
from gcond.runtime.memory import peak_rss_mb, reset_peak_rss
from gcond.teaching import teach
from gcond.teaching.random_propagation import RandomPropagation
from gcond.teaching.refresher import teach_again
from streamed import packed, small_pieces

SHAPES = {
    "dense": {},
    "directed": {"weighted": True, "directed": True},
    "sparse features": {"features": 60, "density": 0.05},
}


@pytest.fixture(autouse=True)
def pieces():
    with small_pieces(columns=3):
        yield


@pytest.fixture
def no_room(monkeypatch):
    monkeypatch.setattr(RandomPropagation, "memory", lambda self, inputs, classes: 10**12)


def labels(name, graph):
    found = teach(name, graph.view("train"), graph.view("val"), graph.num_classes, 1)
    return torch.cat([rows for _, rows in row_blocks(found.labels)]), found.choices


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["network", "both"])
def test_it_says_what_it_says_in_memory(name, shape, make_graph, tmp_path):
    graph = make_graph(**SHAPES[shape])
    (there, chosen), (here, expected) = labels(name, packed(graph, tmp_path)), labels(name, graph)
    assert torch.allclose(there, here, atol=1e-5)
    assert chosen == pytest.approx(expected)


@pytest.mark.usefixtures("no_room")
def test_without_room_it_says_what_it_would_need(make_graph, tmp_path):
    there = packed(make_graph(), tmp_path)
    assert gcond.condense(there, nodes=9, method="clusters").provenance.choices["teacher"] == "ridge"
    with pytest.raises(GcondError, match=r"use memory_limit='\d+MB' or more, or teacher='ridge'") as error:
        gcond.condense(there, nodes=9, method="clusters", teacher="network")
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("no_room")
def test_in_memory_there_is_room_whatever_it_takes(make_graph):
    assert labels("both", make_graph())[1]["teacher"] == "both"


@pytest.mark.parametrize("name", ["ridge", "network", "both"])
def test_it_learns_on_from_the_store(name, make_graph, tmp_path):
    graph = make_graph()
    small = gcond.condense(graph, nodes=9, method="clusters", teacher="network")
    soft = small.y if small.y.dim() == 2 else torch.nn.functional.one_hot(small.y, graph.num_classes).float()
    graphs = packed(graph, tmp_path), graph
    found = [
        teach_again(name, each.view("train"), each.view("val"), graph.num_classes, 1, memory=(small.x, soft))
        for each in graphs
    ]
    there, here = (torch.cat([rows for _, rows in row_blocks(one.labels)]) for one in found)
    assert found[0].choices["teacher"] == found[1].choices["teacher"]
    assert torch.allclose(there, here, atol=1e-4)


@pytest.mark.slow
def test_it_takes_no_more_than_it_says():
    nodes, classes = 30_000, 20
    around = scipy.sparse.random(nodes, nodes, 10 / nodes, "csr", np.float32, random_state=0)
    adjacency = SparseMatrix.from_scipy((around + around.T).tocsr(), symmetric=True)
    x = torch.randn(nodes, 64, generator=torch.Generator().manual_seed(0))
    inputs, everyone = Inputs(x, adjacency), torch.arange(nodes)
    train, val = (
        LabelledView(inputs, part, part % classes, everyone) for part in (everyone[:2000], everyone[2000:4000])
    )
    network = RandomPropagation(epochs=12)
    reset_peak_rss()
    before = peak_rss_mb()
    network.log_probabilities(train, val, classes, 0)
    graph = (x.nbytes + 8 * adjacency.nnz) / 10**6  # was there before
    assert peak_rss_mb() - before + graph <= network.memory(inputs, classes) / 10**6
