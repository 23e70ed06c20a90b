"""Work on columns gives the same numbers however many go through the graph at a time."""

from __future__ import annotations

import pytest
import torch

from gcond.graph import column_work
from gcond.graph.column_work import Hops, SmoothedRows, Smoothing, SumOfHops

WORKS = [Hops(2), SumOfHops(3), Smoothing(0.1, 4), SmoothedRows((0.1, 0.5), 4, torch.tensor([3, 1, 7]))]


@pytest.mark.parametrize("work", WORKS, ids=str)
@pytest.mark.parametrize("width", [3, 4, 5, 100])
def test_narrow_groups_of_columns_change_nothing(work, width, make_graph, monkeypatch):
    inputs = make_graph().view("train").inputs
    columns = torch.randn(inputs.num_nodes, 12, generator=torch.Generator().manual_seed(0))
    before, expected = columns.clone(), work(inputs.gcn, columns)
    monkeypatch.setattr(column_work, "NARROW", width)
    torch.testing.assert_close(inputs.spread(columns, work), expected)
    assert torch.equal(columns, before)
