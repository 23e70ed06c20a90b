from __future__ import annotations

import pytest
import torch

import gcond
from gcond.graph.feature_scale import scale_warning
from gcond.graph.features import compact


@pytest.mark.parametrize("density", [1.0, 0.05])
def test_only_useless_scales_are_warned_of(density):
    stream = torch.Generator().manual_seed(0)
    x = torch.randn(200, 30, generator=stream) * (torch.rand(200, 30, generator=stream) < density)
    factors = torch.ones(30)
    factors[3] = 1e6
    assert scale_warning(compact(x)) == ""
    assert scale_warning(compact(x / 30)) == ""
    assert "too small to be fitted" in scale_warning(compact(x * 1e-6))
    assert "too large to be fitted" in scale_warning(compact(x * 1e6))
    assert "times as large as is usual here" in scale_warning(compact(x * factors))
    assert scale_warning(x * 0) == ""


def test_pyg_features_stay_as_they_are_and_it_is_said(make_graph):
    data = make_graph().to_pyg()
    assert gcond.load(data).notes == ()
    data.x *= 1e-6
    graph = gcond.load(data)
    assert torch.equal(graph.x, data.x)
    assert "features='auto' chooses a transform" in graph.notes[-1]
    assert gcond.load(data, features="none").notes == graph.notes
    assert gcond.load(data, features="auto").transform.kind != "none"
