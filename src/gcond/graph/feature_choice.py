"""The choice of a feature transform by validation accuracy.

What decides is how a network trained by the usual recipe does on the features, and that depends on their scale: Adam
moves a weight by its rate at most, and weight decay pulls it back, so features that are too small are never fitted.
The judge is therefore not a closed form, which is blind to scale, but a narrow network with the recipe's rate, decay
and start, trained for a few steps on labelled rows of Â²X and scored on validation rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gcond.graph.feature_kinds import FeatureKind
from gcond.graph.feature_scale import scale_doubt
from gcond.graph.features import FeatureTransform, fit_transform, has_negative, occurrences, squares
from gcond.graph.labelled_view import LabelledView
from gcond.graph.stored_arrays import StoredSparseRows
from gcond.graph.stored_features import StoredFeatures
from gcond.graph.stored_transform import any_negative, column_sums, fit_stored
from gcond.graph.streamed_operator import StreamedOperator
from gcond.linalg.adam import Adam
from gcond.linalg.sparse import Matrix, SparseMatrix, take_rows
from gcond.linalg.tall import BLOCK_BYTES
from gcond.runtime.memory import hand_back
from gcond.runtime.seeds import generator
from gcond.runtime.threads import threads_for

if TYPE_CHECKING:
    from gcond.graph.source_graph import SourceGraph

HIDDEN = 64
STEPS = 150
SCORED_EVERY = 10
RATE, WEIGHT_DECAY = 0.01, 5e-4
"""As in the recipe by which condensed graphs are evaluated."""

ROWS = (1000, 300, 100)
"""Labelled rows of each part that are looked at, at most: the first number whose propagation is within the limit."""
PRODUCTS = 500_000_000
"""Entries of Â that these rows read, times columns of X, at most."""
DENSE_ENTRIES = 50_000_000
"""Numbers in features that are mostly zero, up to which it is worth making them dense to standardise them."""

NOISE = 2.0
"""Standard deviations by which another transform must be better than the features as they are."""


@dataclass(frozen=True)
class Choice:
    """A transform that was chosen, and how all candidates did."""

    transform: FeatureTransform
    note: str
    """One sentence for the graph's notes."""


def choose_transform(graph: SourceGraph, raw: Matrix | StoredFeatures) -> Choice:
    """The transform of ``raw``, the features of ``graph`` as they came, on which a network validates best.

    The features stay as they are unless another transform is better by more than chance would have it: whoever
    brings them knows them, and may have other uses for them. Where their scale is useless it is the other way round:
    they stay only if that is better by as much, and then the note says what is wrong with them. Test nodes are not
    looked at, and in the inductive setting a network is trained on the training graph and scored on the validation
    graph.
    """
    if not bool(graph.val_mask.any()):
        why = "the features are used as they are: there are no validation nodes to choose by"
        return Choice(FeatureTransform(), _doubted(why, _doubt(graph, raw)))
    # A graph is loaded before anyone says how many threads it deserves; small steps on many are slower by far.
    with threads_for(float(graph.train_mask.sum()) * raw.shape[1] * HIDDEN):
        return _choose(graph, raw)


def _choose(graph: SourceGraph, raw: Matrix | StoredFeatures) -> Choice:
    train, val = (_Rows.of(graph.view(part), raw) for part in ("train", "val"))
    hand_back()  # blocks of the adjacency, where it is in a file
    found = {kind: fitted(kind, graph, raw) for kind in candidates(raw)}
    if "unit-columns" in found and set(found["unit-columns"].scale) == {1.0}:
        del found["unit-columns"]  # words that are there or not: it would do nothing
    # Rows in memory are propagated when they are asked for, those in a file once for all transforms.
    ahead = train.ahead(found), val.ahead(found)
    right: dict[FeatureKind, Tensor] = {}
    for kind, transform in found.items():
        rows = (one[kind] if one else part.propagated(transform) for one, part in zip(ahead, (train, val), strict=True))
        right[kind] = judge(next(rows), train.y, next(rows), val.y, graph.num_classes)
    doubt = _doubt(graph, raw)
    chosen = _chosen(right, useless=bool(doubt))
    said = _sentence(chosen, right)
    return Choice(found[chosen], _doubted(said, doubt) if chosen == "none" else said)


def _chosen(right: Mapping[FeatureKind, Tensor], *, useless: bool) -> FeatureKind:
    """The kind to take by which validation rows are ``right``; ``useless`` is whether the features' own scale is."""
    others = [kind for kind in right if kind != "none"]
    best = max(others, key=lambda kind: float(right[kind].mean()))  # the first of equals
    if useless:
        return "none" if _clearly_better(right["none"], right[best]) else best
    return best if _clearly_better(right[best], right["none"]) else "none"


def _doubt(graph: SourceGraph, raw: Matrix | StoredFeatures) -> str:
    """What is useless about the scale of what training may see of the features, else nothing."""
    if isinstance(raw, StoredFeatures):
        return scale_doubt(*column_sums(raw), raw.shape[0])
    rows = raw if graph.setting == "transductive" else take_rows(raw, graph.train_mask.nonzero().squeeze(1))
    return scale_doubt(squares(rows), occurrences(rows), rows.shape[0])


def _doubted(said: str, doubt: str) -> str:
    return f"{said}; but {doubt}" if doubt else said


def fitted(kind: FeatureKind, graph: SourceGraph, raw: Matrix | StoredFeatures) -> FeatureTransform:
    """The transform ``kind`` of ``raw``, the features of ``graph`` as they came, by what training may see."""
    if isinstance(raw, StoredFeatures):
        return fit_stored(kind, raw, graph.train_mask)
    seen = None if graph.setting == "transductive" else graph.train_mask.nonzero().squeeze(1)
    return fit_transform(kind, raw, seen=seen, train=graph.train_mask)


def candidates(raw: Matrix | StoredFeatures) -> tuple[FeatureKind, ...]:
    """The transforms that could suit such features, the features as they are first.

    One that cannot be applied to some node is no candidate, whichever part that node is in.
    """
    kinds: list[FeatureKind] = ["none", "row-normalise", "unit-rows", "unit-columns"]
    if isinstance(raw, StoredFeatures):
        negative, sparse = any_negative(raw), isinstance(raw.arrays.x, StoredSparseRows)
    else:
        negative, sparse = has_negative(raw), isinstance(raw, SparseMatrix)
    if not negative:
        kinds.append("tf-idf")
    if not sparse or raw.shape[0] * raw.shape[1] <= DENSE_ENTRIES:
        kinds.append("standardise")
    return tuple(kinds)


def judge(train: Tensor, y: Tensor, val: Tensor, val_y: Tensor, classes: int) -> Tensor:
    """Which validation rows are right, at the step that is best for all of them: float [v]."""
    network = _Network(train.shape[1], classes, generator(0, "feature choice"))
    best = torch.zeros(len(val_y))
    for step in range(1, STEPS + 1):
        network.step(train, y)
        if step % SCORED_EVERY == 0:
            right = (network.logits(val).argmax(1) == val_y).float()
            best = right if right.sum() > best.sum() else best
    return best


class _Network:
    """Two layers with a rectifier between, from Glorot's start, with gradients written out and Adam."""

    def __init__(self, features: int, classes: int, stream: torch.Generator) -> None:
        def glorot(rows: int, columns: int) -> Tensor:
            bound = sqrt(6 / (rows + columns))
            return torch.empty(rows, columns).uniform_(-bound, bound, generator=stream)

        self.weights = {
            "first": glorot(features, HIDDEN),
            "first_bias": torch.zeros(HIDDEN),
            "second": glorot(HIDDEN, classes),
            "second_bias": torch.zeros(classes),
        }
        self._adam = Adam(self.weights, RATE, WEIGHT_DECAY)

    def _hidden(self, rows: Tensor) -> Tensor:
        return torch.addmm(self.weights["first_bias"], rows, self.weights["first"]).relu_()

    def logits(self, rows: Tensor) -> Tensor:
        return torch.addmm(self.weights["second_bias"], self._hidden(rows), self.weights["second"])

    def step(self, rows: Tensor, y: Tensor) -> None:
        hidden = self._hidden(rows)
        wrong = torch.addmm(self.weights["second_bias"], hidden, self.weights["second"]).softmax(1)
        wrong[torch.arange(len(y)), y] -= 1
        wrong /= len(y)
        back = (wrong @ self.weights["second"].mT) * (hidden > 0)
        self._adam.step(
            {
                "first": rows.mT @ back,
                "first_bias": back.sum(0),
                "second": hidden.mT @ wrong,
                "second_bias": wrong.sum(0),
            }
        )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Labelled rows of a view, and what of the raw features their propagation reads."""

    y: Tensor
    last: scipy.sparse.csr_matrix
    """[m, k]: labelled rows of Â, on their k neighbours."""
    first: scipy.sparse.csr_matrix
    """[k, r]: the neighbours' rows of Â, on the r nodes that they reach."""
    raw: Matrix | StoredFeatures
    """[r, d]: features of these, or where they are in a file all of them, [N, d]."""
    nodes: Tensor
    """int64 [r]: which rows of the features these are."""
    room: int
    """Bytes that sums over a file may take."""

    @classmethod
    def of(cls, view: LabelledView, raw: Matrix | StoredFeatures) -> _Rows:
        """As many labelled rows as the limits allow."""
        adjacency, width, room = view.inputs.gcn, raw.shape[1], view.inputs.may_take
        assert isinstance(adjacency, SparseMatrix | StreamedOperator)
        for most in ROWS:
            chosen = _spread(view.y, most)
            last, neighbours = _occupied(adjacency.rows(view.nodes[chosen]).to_scipy())
            first, reached = _occupied(adjacency.rows(torch.from_numpy(neighbours)).to_scipy())
            if max(first.nnz, last.nnz) * width <= PRODUCTS and _sums(first, width) <= room:
                break
        nodes = view.source_index[torch.from_numpy(reached)]
        read = raw if isinstance(raw, StoredFeatures) else take_rows(raw, nodes)
        return cls(view.y[chosen], last, first, read, nodes, room)

    def propagated(self, transform: FeatureTransform) -> Tensor:
        """float32 [m, d]: labelled rows of Â²X, with X as ``transform`` makes it."""
        assert not isinstance(self.raw, StoredFeatures)
        x = transform.apply(self.raw)
        product = self.last @ (self.first @ (x.to_scipy() if isinstance(x, SparseMatrix) else x.numpy()))
        return torch.from_numpy(product.toarray() if scipy.sparse.issparse(product) else product)

    def ahead(self, transforms: Mapping[FeatureKind, FeatureTransform]) -> dict[FeatureKind, Tensor]:
        """The same by each of the ``transforms`` where features are in a file, a block of which is held at a time.

        What labelled rows reach may be most of the graph. It is read again where not all sums can be held at once.
        """
        if not isinstance(self.raw, StoredFeatures):
            return {}
        together = max(1, self.room // _sums(self.first, self.raw.shape[1]))
        kinds = list(transforms)
        made: dict[FeatureKind, Tensor] = {}
        for at in range(0, len(kinds), together):
            made |= self._summed({kind: transforms[kind] for kind in kinds[at : at + together]}, self.raw)
        return made

    def _summed(
        self, transforms: Mapping[FeatureKind, FeatureTransform], raw: StoredFeatures
    ) -> dict[FeatureKind, Tensor]:
        """:meth:`ahead` of as many transforms as fit."""
        # A transform makes several copies of a block on its way.
        across, step = self.first.tocsc(), max(1, BLOCK_BYTES // (16 * max(1, raw.shape[1])))
        sums: dict[FeatureKind, Any] = dict.fromkeys(transforms, 0)
        for start in range(0, len(self.nodes), step):
            hand_back()
            rows, part = raw.raw_matrix(self.nodes[start : start + step]), across[:, start : start + step].tocsr()
            for kind, transform in transforms.items():
                x = transform.apply(rows)
                sums[kind] = sums[kind] + part @ (x.to_scipy() if isinstance(x, SparseMatrix) else x.numpy())
        products = {kind: self.last @ each for kind, each in sums.items()}
        return {
            kind: torch.from_numpy(each.toarray() if scipy.sparse.issparse(each) else each)
            for kind, each in products.items()
        }


def _sums(first: scipy.sparse.csr_matrix, width: int) -> int:
    """Bytes that the sums of one transform take, and what is added to them."""
    return 8 * first.shape[0] * width + 1


def _occupied(rows: scipy.sparse.csr_matrix) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """The matrix without its empty columns, and which columns are left."""
    kept = np.unique(rows.indices)
    return rows[:, kept], kept.astype(np.int64)


def _spread(y: Tensor, most: int) -> Tensor:
    """Positions of at most ``most`` nodes, taken evenly from the order of classes, so that each keeps its share."""
    order = y.argsort(stable=True)
    if len(y) <= most:
        return order
    return order[torch.linspace(0, len(y) - 1, most).long()]


def _clearly_better(right: Tensor, usual: Tensor) -> bool:
    """Whether the accuracies differ by more than chance, node by node: McNemar's test on both being right."""
    difference = right - usual
    return float(difference.sum()) > NOISE * sqrt(float(difference.square().sum()))


def _sentence(chosen: FeatureKind, right: dict[FeatureKind, Tensor]) -> str:
    shown = ", ".join(f"{kind} {100 * float(each.mean()):.1f} %" for kind, each in right.items())
    how = "used as they are" if chosen == "none" else f"made {chosen}"
    return f"the features are {how}, by validation accuracy of a small network: {shown}"
