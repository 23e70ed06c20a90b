from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform, Compose, NormalizeFeatures

from gcond.errors import GcondError
from gcond.methods import method_for
from gcond.methods.condense import condense
from gcond.transforms import Condense

QUICK = {"epochs": 2, "outer": 2, "inner": 1, "probe_every": 0, "structure_hidden": 8}


@pytest.fixture
def data(make_graph):
    made = make_graph().to_pyg()
    made.x = made.x.abs()  # what NormalizeFeatures is for
    return made


def same(first, second):
    assert sorted(first.keys()) == sorted(second.keys())
    for key, value in first.to_dict().items():
        assert torch.equal(value, second[key]), key


def test_after_another_transform(data):
    before = data.clone()
    result = Compose([NormalizeFeatures(), Condense(nodes=9, seed=2, **QUICK)])(data)
    expected = condense(NormalizeFeatures()(data.clone()), nodes=9, seed=2, **QUICK)
    same(result, expected.to_pyg())
    assert expected.provenance.method == "gcond"
    same(data, before)


def test_before_another_transform(data):
    small = Compose([Condense("random", ratio="20%"), NormalizeFeatures()])(data)
    torch.testing.assert_close(small.x.sum(1), torch.ones(16))


def test_the_input_is_left_alone_and_the_result_is_new(data):
    transform = Condense("random", nodes=9)
    before = data.clone()
    result = transform(data)
    assert isinstance(transform, BaseTransform)
    assert isinstance(result, Data)
    assert result is not data
    assert result.num_nodes == 9
    result.x.zero_()
    same(data, before)
    same(transform(data), Condense("random", nodes=9)(data))


def test_what_it_is_called():
    assert repr(Condense("herding", ratio="2.6%")) == "Condense(herding, ratio=2.6%)"
    assert repr(Condense(nodes=9)) == "Condense(gcond, nodes=9)"


def test_recipes():
    assert Condense(nodes=9, recipe="cora").method == method_for("gcond", recipe="cora")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either ratio or nodes"),
        ({"nodes": 9, "ratio": 0.1}, "either ratio or nodes"),
        ({"ratio": "tenth"}, "ratio 'tenth' is not a number"),
        ({"method": "hoarding", "nodes": 9}, "unknown method 'hoarding'"),
        ({"method": "random", "nodes": 9, "epochs": 3}, "method 'random' has no setting 'epochs'"),
        ({"nodes": 9, "recipe": "corra"}, "there is no recipe 'corra'"),
    ],
)
def test_refused_before_there_is_any_data(options, message):
    with pytest.raises(GcondError, match=message):
        Condense(**options)
