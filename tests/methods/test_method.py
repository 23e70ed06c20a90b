"""Methods: which are asked for, one's own among them, and the fingerprint of what a result depends on."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import pytest

from gcond import __version__, methods
from gcond.errors import GcondError
from gcond.graph.budget import budget_for
from gcond.graph.source_graph import PARTS, SourceGraph
from gcond.methods import Herding, Method, Random
from gcond.methods.condense import condense


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


@dataclasses.dataclass(frozen=True)
class Fewest(Random):
    """A method of one's own: it is not in the package, and so has no place in the registry."""

    name = "fewest"
    offset: int = 0

    def reduce(self, task, callbacks=()):
        return super().reduce(dataclasses.replace(task, seed=task.seed + self.offset), callbacks)


def test_methods_by_name_by_instance_and_all_of_them():
    own = Fewest(offset=3)
    assert methods.resolve("herding") == [Herding()]
    assert methods.resolve(own) == [own]
    assert methods.resolve(["random", own, "herding"]) == [Random(), own, Herding()]
    everything = methods.resolve("all")
    assert [method.name for method in everything] == list(methods.available())
    assert all(isinstance(method, Method) for method in everything)
    assert methods.resolve(("all", own)) == [*everything, own]


@pytest.mark.parametrize("asked", ["hedring", ["random", "hedring"], 7, None])
def test_what_is_no_method_is_refused_with_the_choices(asked):
    with pytest.raises(GcondError, match=r"unknown method '.*choose one of clusters, coarsening, .*random"):
        methods.resolve(asked)


def test_a_class_is_not_a_method():
    with pytest.raises(GcondError, match=r"Random\(\)"):
        methods.resolve([Random])


def test_no_method_is_refused():
    with pytest.raises(GcondError, match=r"methods=\[\] names no method: choose among clusters, coarsening, "):
        methods.resolve([])


def test_a_method_of_one_s_own_condenses_as_others_do(make_graph):
    graph = make_graph()
    small = condense(graph, method=Fewest(offset=2), nodes=9, seed=1)
    assert (small.provenance.method, small.provenance.settings) == ("fewest", {"offset": 2})
    assert small.sha256 == condense(graph, method="random", nodes=9, seed=3).sha256
    with pytest.raises(GcondError, match="brings its own settings, and offset came with it"):
        condense(graph, method=Fewest(), nodes=9, offset=1)
    with pytest.raises(GcondError, match="recipe came with it"):
        condense(graph, method=Fewest(), nodes=9, recipe="cora")
