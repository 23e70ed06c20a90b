from __future__ import annotations

import torch

from gcond.graph.inputs import Inputs
from gcond.graph.settled_inputs import settled
from gcond.linalg.dense_products import FixedMatrix
from gcond.linalg.sparse import SparseMatrix
from gcond.models import available


def test_views_that_share_inputs_share_what_comes_of_them(make_graph):
    graph = make_graph("transductive")
    inputs = graph.view("train").inputs
    assert settled(inputs) is settled(graph.view("val").inputs)
    for form in ("gcn", "mean", "laplacian"):
        assert getattr(settled(inputs), form) is getattr(inputs, form)
    assert settled(inputs).once("key", lambda: 3) == inputs.once("key", lambda: 4) == 3


def test_sparse_features_stay_what_they_are(make_graph):
    inputs = make_graph(features=60, density=0.05).view("train").inputs
    assert isinstance(inputs.x, SparseMatrix)
    assert settled(inputs).x is inputs.x
    assert settled(inputs).features("gcn", 2) is inputs.features("gcn", 2)


def test_every_model_scores_and_learns_alike(make_graph):
    whole = make_graph().view("train").inputs
    small = Inputs(whole.x[:9], torch.rand(9, 9, generator=torch.Generator().manual_seed(0)), loops=True)
    for inputs in (whole, small, whole.detached()):
        assert isinstance(settled(inputs).x, FixedMatrix)
        for model in (cls() for cls in available().values()):
            start = model.init(inputs.num_features, 3, torch.Generator().manual_seed(1))
            weights = {key: tensor.requires_grad_() for key, tensor in start.items()}
            found = []
            for one in (inputs, settled(inputs)):
                scores = model.logits(weights, one)
                found.append((scores, torch.autograd.grad(scores.square().sum(), list(weights.values()))))
            torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-3)
