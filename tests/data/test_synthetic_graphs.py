"""Made-up graphs keep what their settings promise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import RidgeClassifier

import gcond
from gcond.data.synthetic_graphs import PRESETS, Synthetic, parse
from gcond.errors import GcondError
from gcond.linalg.sparse import SparseMatrix, gcn_normalise


def homophily(graph):
    return float((graph.y[graph.adjacency.row_index] == graph.y[graph.adjacency.indices.long()]).float().mean())


@pytest.mark.parametrize("name", ["tiny", "small", "sparse", "reddit,nodes=2000,degree=20", "arxiv,nodes=3000"])
def test_sizes_homophily_and_split_are_as_set(name):
    graph, spec = gcond.load(f"synthetic:{name}"), parse(name)
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (spec.nodes, spec.features, spec.classes)
    assert graph.setting == spec.setting
    assert tuple(int(graph.mask(part).sum()) for part in ("train", "val", "test")) == spec.split
    assert graph.num_edges == pytest.approx(spec.edges, rel=0.01)
    assert homophily(graph) == pytest.approx(spec.homophily, abs=0.01)
    assert graph.notes == ("the graph is made up, with seed 0",)  # nothing had to be repaired


@pytest.mark.parametrize("target", [0.0, 0.3, 0.9, 1.0])
def test_homophily_is_honoured(target):
    assert homophily(gcond.load(f"synthetic:small,homophily={target}")) == pytest.approx(target, abs=0.01)


def test_degrees_and_class_sizes_are_skewed():
    graph = gcond.load("synthetic:small")
    degree = graph.adjacency.indptr.diff().numpy()
    assert degree.max() > 8 * degree.mean()
    sizes = torch.bincount(graph.y)
    assert sizes.max() > 2 * sizes.min()
    even = torch.bincount(gcond.load("synthetic:small,class_skew=0").y)
    assert even.max() - even.min() <= 1


def test_seed_decides_everything():
    first, again, other = (gcond.load("synthetic:sparse", seed=seed) for seed in (3, 3, 4))
    assert first.sha256 == again.sha256
    assert first.sha256 != other.sha256


@pytest.mark.parametrize("name", ["tiny", "small", "sparse"])
def test_neighbours_help_and_features_are_neither_useless_nor_enough(name):
    """A linear classifier on ÂÂX against the same on X: what a GCN can gain over an MLP."""
    graph = gcond.load(f"synthetic:{name}")
    x = graph.x.to_dense() if isinstance(graph.x, SparseMatrix) else graph.x
    operator = gcn_normalise(graph.adjacency)
    train, test = graph.train_mask.numpy(), graph.test_mask.numpy()
    accuracy = []
    for features in (x, operator @ (operator @ x)):
        scaled = (features / features.std()).numpy()
        model = RidgeClassifier(alpha=100).fit(scaled[train], graph.y[train])
        accuracy.append(model.score(scaled[test], graph.y[test]))
    chance = float(torch.bincount(graph.y[graph.test_mask]).max() / test.sum())
    assert chance + 0.05 < accuracy[0] < accuracy[1] - 0.05


def test_words_are_sparse_rows_that_sum_to_one():
    graph = gcond.load("synthetic:sparse")
    assert isinstance(graph.x, SparseMatrix)
    np.testing.assert_allclose(graph.x.row_sums().numpy(), 1, rtol=1e-5)
    assert graph.transform.kind == "row-normalise"


def test_arxiv_preset_has_the_real_sizes():
    spec = PRESETS["arxiv"]
    assert (spec.nodes, spec.edges, spec.split) == (169343, 1166243, (90941, 29799, 48603))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smal", "did you mean 'small'"),
        ("small,node=5", "did you mean 'nodes'"),
        ("small,nodes", "has 'nodes'"),
        ("small,nodes=many", "nodes='many'"),
        ("small,homophily=1.5", "between 0 and 1"),
        ("small,nodes=5", "too few"),
        ("small,degree=2000", "quarter of the nodes"),
        ("small,degree=nan", "degree"),
        ("small,train=0.001", "too few for 6 classes"),
        ("small,degree_exponent=2", "above 2"),
        ("small,classes=1", "one class"),
        ("sparse,signal=2", "at most 1"),
        ("small,nodes=400000000,features=4000,train=0.5", "GB of memory"),
    ],
)
def test_bad_settings_are_refused(text, message):
    with pytest.raises(GcondError, match=message):
        gcond.load(f"synthetic:{text}")


@st.composite
def specs(draw):
    nodes, classes = draw(st.integers(12, 120)), draw(st.integers(1, 4))
    return Synthetic(
        nodes=nodes,
        degree=draw(st.floats(0, 1)) * (nodes - 1) / 4,
        classes=classes,
        features=5,
        homophily=draw(st.floats(0, 1)) if classes > 1 else 1.0,
        class_skew=draw(st.floats(0, 3)),
        kind=draw(st.sampled_from(["gaussian", "words"])),
        signal=0.5,
        train=0.4,
        val=0.3,
    )


@settings(max_examples=25)
@given(spec=specs(), seed=st.integers(0, 2**40))
def test_every_valid_setting_makes_a_valid_graph(spec, seed):
    changes = ",".join(f"{key}={value}" for key, value in vars(spec).items())
    graph = gcond.load(f"synthetic:tiny,{changes}", seed=seed)  # SourceGraph.build checks the rest
    assert graph.num_nodes == spec.nodes
    assert graph.num_edges <= spec.edges
    assert torch.bincount(graph.y, minlength=spec.classes).min() >= 3
