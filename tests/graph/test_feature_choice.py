"""The choice among transforms: useless scales are found, noise changes nothing, and test nodes are not looked at."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tests.streamed import packed

import gcond
from gcond.graph import feature_choice
from gcond.graph.feature_choice import _chosen, _clearly_better, _Rows, _spread, candidates, choose_transform, fitted
from gcond.graph.feature_treatment import treated
from gcond.graph.features import FeatureTransform, compact, has_negative
from gcond.graph.stored_inputs import Streaming
from gcond.linalg.sparse import SparseMatrix, dense

GAUSSIAN = "synthetic:small,nodes=600,classes=3,features=20"
WORD_OF_TINY = "the features are too small to be fitted, rows have length 4.8e-06"
WORDS = "synthetic:sparse,nodes=600,classes=3,features=300,signal=0.4"


def tiny(x):
    return x * 1e-6


def uneven(x):
    factors = torch.ones(x.shape[1])
    factors[0] = 1e6
    return x * factors


def accuracy(graph):
    (score,) = gcond.evaluate(graph, runs=1, epochs=100, device="cpu")
    return score.mean


@pytest.fixture(scope="module", params=[GAUSSIAN, WORDS], ids=["gaussian", "words"])
def clean(request):
    return gcond.load(request.param, features="none")


@pytest.mark.parametrize("spoil", [tiny, uneven, lambda x: tiny(uneven(x))], ids=["tiny", "uneven", "both"])
@pytest.mark.parametrize("setting", ["transductive", "inductive"])
def test_useless_scales_are_found_and_mended(spoil, setting, clean):
    graph = clean.with_setting(setting)
    spoilt = dataclasses.replace(graph, x=compact(spoil(dense(graph.x))))
    mended = treated(spoilt, "auto")
    assert mended.transform.kind != "none"
    usual, now = accuracy(graph), accuracy(mended)
    assert now > usual - 0.05
    assert accuracy(spoilt) < usual - 0.1


def test_good_features_stay_and_the_candidates_are_said(clean):
    graph = treated(clean, "auto")
    assert graph.transform == FeatureTransform()
    assert graph.sha256 == clean.sha256
    note = graph.notes[-1]
    assert note.startswith("the features are used as they are, by validation accuracy of a small network: none ")
    assert ("tf-idf" in note) != has_negative(clean.x)
    assert ("unit-columns" in note) == has_negative(clean.x)  # on words it would do nothing


def test_the_same_each_time_whatever_the_test_nodes(setting, make_graph):
    graph = make_graph(setting, sizes=(60, 60, 60))
    spoilt = dataclasses.replace(graph, x=uneven(graph.x))
    poisoned_y = torch.where(graph.test_mask, (graph.y + 1) % 3, graph.y)
    poisoned = dataclasses.replace(spoilt, y=poisoned_y)
    if setting == "inductive":
        x = spoilt.x.clone()
        x[graph.test_mask] = 1e9
        poisoned = dataclasses.replace(poisoned, x=x)
    first, second = choose_transform(spoilt, spoilt.x), choose_transform(poisoned, poisoned.x)
    assert first == second == choose_transform(spoilt, spoilt.x)
    assert first.transform.kind != "none"


def test_without_validation_nodes_there_is_nothing_to_choose_by(make_graph):
    graph = make_graph()
    graph = dataclasses.replace(graph, val_mask=torch.zeros_like(graph.val_mask))
    choice = choose_transform(graph, graph.x)
    assert choice.transform == FeatureTransform()
    assert choice.note.endswith("there are no validation nodes to choose by")
    assert choose_transform(graph, graph.x * 1e-6).note.endswith("; but " + WORD_OF_TINY)


def test_rows_are_those_of_the_views(setting, make_graph, monkeypatch):
    graph = make_graph(setting, density=0.3)
    view = graph.view("val")
    found = _Rows.of(view, graph.x)
    order = view.y.argsort(stable=True)
    assert torch.equal(found.y, view.y[order])
    torch.testing.assert_close(found.propagated(FeatureTransform()), view.propagated(2)[order])
    monkeypatch.setattr(feature_choice, "PRODUCTS", 0)
    monkeypatch.setattr(feature_choice, "ROWS", (1000, 5))
    fewer = _Rows.of(view, graph.x)
    assert len(fewer.y) == 5
    assert fewer.y.unique().tolist() == [0, 1, 2]


def test_rows_in_a_file_are_summed_for_as_many_transforms_as_fit(make_graph, tmp_path):
    graph = packed(make_graph(), tmp_path)
    rows = _Rows.of(graph.view("train"), graph.stored)
    found = {kind: fitted(kind, graph, graph.stored) for kind in candidates(graph.stored)}
    together, alone = rows.ahead(found), dataclasses.replace(rows, room=0).ahead(found)
    assert list(together) == list(alone) == list(found)
    assert all(torch.equal(together[kind], alone[kind]) for kind in found)


def test_no_more_rows_in_a_file_than_sums_fit_for(make_graph, tmp_path, monkeypatch):
    graph = packed(make_graph(), tmp_path)
    monkeypatch.setattr(feature_choice, "ROWS", (1000, 3))
    assert len(_Rows.of(graph.view("train"), graph.stored).y) > 3
    little = graph.with_streaming(Streaming(16))
    assert len(_Rows.of(little.view("train"), graph.stored).y) == 3


def test_a_sample_keeps_the_shares_of_classes():
    y = torch.cat([torch.zeros(600), torch.ones(300), torch.full((100,), 2.0)]).long()[torch.randperm(1000)]
    drawn = _spread(y, 100)
    assert len(drawn.unique()) == 100
    assert (torch.bincount(y[drawn]) - torch.tensor([60, 30, 10])).abs().max() <= 1


def test_differences_within_noise_are_none():
    usual = torch.zeros(100)
    usual[:70] = 1
    slightly, clearly = usual.clone(), usual.clone()
    slightly[70:74] = 1
    clearly[70:76] = 1
    assert not _clearly_better(usual, usual)
    assert not _clearly_better(slightly, usual)
    assert _clearly_better(clearly, usual)
    assert not _clearly_better(usual, clearly)


def test_features_of_a_useless_scale_stay_only_where_that_is_clearly_better():
    usual = torch.zeros(100)
    usual[:70] = 1
    worse, clearly = usual.clone(), usual.clone()
    worse[67:70] = 0
    clearly[70:76] = 1
    assert _chosen({"none": usual, "unit-rows": worse, "standardise": worse}, useless=True) == "unit-rows"
    assert _chosen({"none": usual, "unit-rows": worse, "standardise": usual}, useless=True) == "standardise"
    assert _chosen({"none": clearly, "unit-rows": usual}, useless=True) == "none"
    assert _chosen({"none": worse, "unit-rows": usual}, useless=False) == "none"


def test_where_they_stay_all_the_same_it_is_said(clean, monkeypatch):
    spoilt = dataclasses.replace(clean, x=compact(tiny(dense(clean.x))))
    monkeypatch.setattr(feature_choice, "_clearly_better", lambda right, usual: True)
    monkeypatch.setattr(feature_choice, "judge", lambda *rows: torch.ones(3))
    choice = choose_transform(spoilt, spoilt.x)
    assert choice.transform == FeatureTransform()
    assert "; but the features are too small to be fitted" in choice.note


def test_candidates_suit_the_features():
    counts, signed = torch.ones(4, 2), torch.tensor([[1.0, -1.0]])
    assert candidates(counts)[0] == candidates(signed)[0] == "none"
    assert "tf-idf" in candidates(counts)
    assert "tf-idf" not in candidates(signed)
    empty = torch.zeros(0, dtype=torch.int32)
    wide = SparseMatrix.from_parts(torch.zeros(10001, dtype=torch.int32), empty, torch.zeros(0), (10000, 8000))
    assert "standardise" not in candidates(wide)  # too large to be made dense
