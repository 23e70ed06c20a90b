"""Clusters: what the contract of all methods does not say of them."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcond.methods.clusters import with_every_class
from gcond.methods.condense import condense


def test_without_validation_nodes_the_simplest_teacher_is_taken(make_graph):
    graph = make_graph()
    blind = dataclasses.replace(graph, val_mask=torch.zeros_like(graph.val_mask))
    small = condense(blind, method="clusters", nodes=9)
    choices = small.provenance.choices
    assert choices["teacher"] == "ridge"
    assert "teachers_tried" not in choices
    assert "val_accuracy" not in choices
    assert small.sha256 == condense(blind, method="clusters", nodes=9, teacher="ridge").sha256
    seeing = condense(graph, method="clusters", nodes=9).provenance.choices
    assert seeing["teachers_tried"].keys() == {"ridge", "network"}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("labels", ["soft", "hard"])
def test_edges_between_clusters_go_as_those_of_the_source(labels, directed, make_graph):
    small = condense(
        make_graph(directed=directed), method="clusters", nodes=9, teacher="ridge", structure="edges", labels=labels
    )
    adjacency = small.adjacency()
    assert small.num_edges > 0
    assert torch.equal(adjacency, adjacency.T) != directed
    assert bool(adjacency.isfinite().all())
    assert small.y.dim() == (2 if labels == "soft" else 1)


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(0, 9))
def test_every_class_leads_somewhere(seed, classes, more):
    stream = torch.Generator().manual_seed(seed)
    groups = torch.cat([torch.arange(classes), torch.randint(classes, (more,), generator=stream)]).sort().values
    labels = (4 * torch.randn(len(groups), classes, generator=stream)).softmax(1)
    found = with_every_class(labels, groups)
    assert found.argmax(1).unique().tolist() == list(range(classes))
    assert torch.equal(found.sort(1).values, labels.sort(1).values)  # exchanged within rows, and nothing else
    if labels.argmax(1).unique().tolist() == list(range(classes)):
        assert torch.equal(found, labels)


def test_every_class_leads_somewhere_among_even_rows():
    found = with_every_class(torch.full((3, 3), 1 / 3), torch.arange(3))
    assert found.argmax(1).tolist() == [0, 1, 2]
    torch.testing.assert_close(found.sum(1), torch.ones(3))
