"""The start of X': rows of the right class, every one of them."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gcond.condensed import Task
from gcond.linalg.greedy_covering import spread
from gcond.linalg.k_means import k_means
from gcond.linalg.sparse import Matrix, SparseMatrix, dense, take_rows
from gcond.runtime.seeds import generator

Init = Literal["clusters", "sample", "k-center", "means", "propagated-means", "noise"]

HOPS = 2
"""Reach of ``propagated-means``: as far as the usual models do, GCN with its two layers and SGC."""
FEW_DISTANCES = 50_000
"""Points times centres up to which k-means is done three times over in double precision, which takes a tenth of a
second. All classes of the citation graphs are below."""


def initial_features(task: Task, init: Init) -> Tensor:
    """X' to start from, float32 [n, d], its rows in order of class as :attr:`Task.labels` has them.

    - ``sample``: labelled nodes of the class, at random without replacement (the paper's choice, but aligned
      with the labels, which the released code's are not);
    - ``k-center``: labelled nodes that cover the class's features, furthest first;
    - ``means``: centres of k-means on the class's features;
    - ``propagated-means``: the same on features propagated :data:`HOPS` times, ``Â²X``, so the graph is in them;
    - ``noise``: normal numbers of the scale that features of labelled nodes have.

    ``clusters`` is a method of its own, whose result is the start (:class:`gcond.methods.Clusters`).
    """
    stream = generator(task.seed, "initial features")
    inputs = task.train.inputs
    if init == "noise":
        scale = root_mean_square(take_rows(inputs.x, task.train.nodes))
        return scale * torch.randn(int(task.quota.sum()), inputs.num_features, generator=stream)
    propagated = task.train.propagated(HOPS).cpu() if init == "propagated-means" else None
    parts = []
    for label, count in enumerate(task.quota.tolist()):
        if count == 0:  # a class that gets nothing while a graph is grown
            continue
        candidates = task.candidates(label).cpu()
        if init == "sample":
            chosen = candidates[torch.randperm(len(candidates), generator=stream)[:count]]
            parts.append(dense(take_rows(inputs.x, chosen)).cpu())
        elif init == "k-center":
            points = dense(take_rows(inputs.x, candidates)).cpu()
            parts.append(points[spread(points.double(), count)])
        else:
            own = task.train.y.cpu() == label
            points = dense(take_rows(inputs.x, candidates)).cpu() if propagated is None else propagated[own]
            parts.append(class_means(points, count, task.seed))
    return torch.cat(parts).float()


def class_means(points: Tensor, count: int, seed: int) -> Tensor:
    """The centres of k-means on ``points`` [m, d]: [count, d].

    Few points have the best of three starts, in double precision; many (:data:`FEW_DISTANCES`) one start as they are.
    """
    if count == len(points):
        return points
    if len(points) * count > FEW_DISTANCES:
        return k_means(points, count, generator(seed, "k-means"))
    from sklearn.cluster import KMeans  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # A cluster without points would be a centre of nothing: equal points are one, and repeat as often as needed.
    distinct = torch.unique(points, dim=0)
    if len(distinct) < count:
        return distinct[torch.arange(count) % len(distinct)]
    with threadpool_limits(1):  # threads add up in the order in which they finish, which is never the same twice
        found = KMeans(count, n_init=3, random_state=seed % 2**32).fit(points.double().numpy())
    return torch.from_numpy(found.cluster_centers_).to(points.dtype)


def root_mean_square(x: Matrix) -> float:
    """The root mean square of all entries, those that are not stored included."""
    if isinstance(x, SparseMatrix):
        return float((x.values.double().square().sum() / (x.shape[0] * x.shape[1])).sqrt())
    return float(x.double().square().mean().sqrt())
