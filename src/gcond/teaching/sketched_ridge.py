"""The ridge teacher from the side of the labelled nodes: the same scores, but that lengths of rows are estimated."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gcond.config.metric import Metric
from gcond.graph import LabelledView
from gcond.graph.column_work import SumOfHops
from gcond.graph.some_rows import some_rows
from gcond.graph.stored_inputs import StoredInputs
from gcond.linalg.random_projection import MOST_ENTRIES, MOST_SIDE
from gcond.runtime.seeds import generator
from gcond.teaching.ridge import HOPS, PENALTIES, RidgeScores, regressions, ridge_scores, smoothed_scores

SKETCH = 64
"""Columns by which lengths of rows are estimated: off by about 1/√128, 9 %, which moves how sure a score is and hardly
ever which one is highest."""


@torch.no_grad()
def sketched_ridge_scores(
    train: LabelledView, val: LabelledView, classes: int, seed: int, metric: Metric = "accuracy"
) -> RidgeScores:
    r"""Scores as :func:`gcond.teaching.ridge.ridge_scores` has them, at a fraction of its products with the graph.

    :math:`\bar H` is linear in X, so nothing of its width d ever goes through the hops: the labelled rows
    :math:`\bar H_L = (S^⊤ E_L)^⊤ X`, with :math:`S = \tfrac{1}{K+1} \sum_{k \le K} Â^k`, take as many columns as there
    are labelled nodes, the scores :math:`S (X W)` as many as there are classes and penalties. What is not linear, the
    lengths of all rows, is estimated from :data:`SKETCH` columns of random signs. Where labelled nodes are about as
    many as features there is nothing to gain, and it is the other function's answer.
    """
    inputs, count = train.inputs, len(train.nodes)
    columns = count + SKETCH + len(PENALTIES) * classes
    if (
        isinstance(inputs, StoredInputs)
        or columns > inputs.num_features
        or count > MOST_SIDE
        or count * inputs.num_nodes > MOST_ENTRIES
    ):
        return ridge_scores(train, val, classes, seed, metric)
    device, smooth = train.y.device, SumOfHops(HOPS)
    target = F.one_hot(train.y, classes).float()
    shares = target.mean(0)
    own = some_rows(inputs, train.nodes, smooth)
    fitted = dict(regressions(F.normalize(own), target - shares))
    signs = torch.randint(2, (inputs.num_features, SKETCH), generator=generator(seed, "lengths of rows")) * 2.0 - 1
    together = torch.cat([*fitted.values(), signs.to(device)], dim=1)
    found = smooth(inputs.gcn, inputs.x @ together)
    scores, sketch = found[:, :-SKETCH], found[:, -SKETCH:]
    length = (sketch.norm(dim=1) / SKETCH**0.5).clamp(min=1e-12)
    length[train.nodes] = own.norm(dim=1).clamp(min=1e-12)
    picks = torch.eye(scores.shape[1], device=device).split(classes, dim=1)
    by_penalty = dict(zip(fitted, picks, strict=True))
    return smoothed_scores(inputs, scores / length[:, None], by_penalty, shares, val, metric=metric)
