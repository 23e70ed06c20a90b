from __future__ import annotations

import scipy.stats
import torch

from gcond.methods.condense import condense


def picks(graph, nodes, seeds):
    return [condense(graph, method="random", nodes=nodes, seed=seed).source_index for seed in seeds]


def test_every_candidate_is_as_likely(make_graph):
    graph = make_graph()
    counts = torch.zeros(graph.num_nodes, dtype=torch.long)
    for chosen in picks(graph, 15, range(200)):
        counts[chosen] += 1
    for label in range(graph.num_classes):
        candidates = graph.train_mask & (graph.y == label)
        # Drawing without replacement makes the counts more even than chi-square has it, so this is on the safe side.
        assert scipy.stats.chisquare(counts[candidates].numpy()).pvalue > 1e-3
    assert counts[~graph.train_mask].sum() == 0


def test_neighbouring_seeds_give_different_nodes(make_graph):
    chosen = {tuple(index.tolist()) for index in picks(make_graph(), 10, range(20))}
    assert len(chosen) == 20


def test_no_node_twice(make_graph):
    for chosen in picks(make_graph(), 20, range(20)):
        assert len(chosen.unique()) == 20


def test_all_labelled_nodes(make_graph):
    graph = make_graph()
    (chosen,) = picks(graph, int(graph.train_mask.sum()), [0])
    assert torch.equal(chosen.sort().values, graph.train_mask.nonzero().squeeze(1))
