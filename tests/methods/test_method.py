"""What a result depends on, as a fingerprint."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import pytest

from gcond import __version__, methods
from gcond.graph.budget import budget_for
from gcond.graph.source_graph import PARTS, SourceGraph


def both_ways(graph, *, directed):
    """``graph``, whose edges all have their reverse, read as directed or not: the same tensors."""
    return SourceGraph.build(
        name=graph.name,
        x=graph.x,
        edge_index=graph.adjacency.edge_index,
        y=graph.y,
        directed=directed,
        **{part: graph.mask(part) for part in PARTS},
    )


@pytest.mark.parametrize("name", sorted(methods.available()))
def test_a_directed_graph_is_another_source(name, make_graph):
    method, budget = methods.find(name)(), budget_for(make_graph(), nodes=9)
    undirected, directed = (both_ways(make_graph(), directed=each) for each in (False, True))
    assert undirected.sha256 == directed.sha256
    assert method.identify(undirected, budget, 0) != method.identify(directed, budget, 0)


def test_the_fingerprint_of_an_undirected_graph_stays_what_it_was(make_graph):
    """Files of earlier runs are found by it."""
    graph = dataclasses.replace(make_graph())
    graph.__dict__["sha256"] = "of the tensors"
    method = methods.find("random")()
    found = method.identify(graph, budget_for(graph, nodes=9), 3)
    parts = ["random", {}, "of the tensors", "transductive", 9, 3, __version__]
    assert found == hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
