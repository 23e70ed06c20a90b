"""Made-up attributed graphs of any size, the same for the same seed.

A degree-corrected block model (Karrer and Newman, 2011): node i has a weight θ_i from a power law, class
sizes follow a Zipf law, and of the E edges exactly the share ``homophily`` joins nodes of one class; both
ends of an edge are drawn in proportion to θ. Features tell the classes apart only in part, so that a model
that looks at neighbours does better than one that does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from gcond.config.registry import resolve
from gcond.config.settings import build
from gcond.data.catalogue import DATASETS
from gcond.data.load_request import Request
from gcond.data.size_check import require_memory
from gcond.errors import GcondError
from gcond.graph import Setting

if TYPE_CHECKING:
    from torch import Tensor

    from gcond.graph import SourceGraph
    from gcond.linalg.sparse import Matrix

BLOCK = 8192
"""Rows of features, or edges, touched at a time: what is made on the way stays small beside the result."""


@dataclass(frozen=True)
class Synthetic:
    """A made-up graph: its size, how its classes and degrees are distributed, and what its features tell."""

    nodes: int = 3000
    degree: float = 8.0
    """Neighbours per node, on average."""
    classes: int = 6
    features: int = 64
    homophily: float = 0.7
    """Share of edges that join two nodes of the same class."""
    degree_exponent: float = 2.5
    """The tail of the degrees, P(k) ~ k^-exponent; social and citation networks have 2 to 3."""
    class_skew: float = 0.7
    """Class of rank r has size ~ r^-skew; 0 makes all alike."""
    kind: Literal["gaussian", "words"] = "gaussian"
    """Gaussian clouds around class centres, or a bag of words with one topic per class."""
    signal: float = 1.2
    """Gaussian: distance of a class centre from the origin, in standard deviations of the noise.
    Words: share of a node's words that come from its topic."""
    words: int = 20
    """Words drawn per node, for ``words``."""
    train: float = 0.2
    """Share of the nodes."""
    val: float = 0.2
    """Share of the nodes; the rest is for testing."""
    setting: Setting = "transductive"

    def __post_init__(self) -> None:
        if self.classes < 1 or self.features < 1 or self.words < 1:
            raise ValueError("classes, features and words must be at least 1")
        if self.nodes < 3 * self.classes:
            raise ValueError(f"{self.nodes} nodes are too few for {self.classes} classes: use three per class or more")
        if not 0 <= self.homophily <= 1:
            raise ValueError("homophily must be between 0 and 1")
        if self.classes == 1 and self.homophily < 1:
            raise ValueError("a graph of one class has homophily 1")
        if not 0 <= self.degree <= (self.nodes - 1) / 4:
            raise ValueError(f"degree must be between 0 and a quarter of the nodes, {(self.nodes - 1) / 4:g}")
        if not self.degree_exponent > 2:
            raise ValueError("degree_exponent must be above 2, or degrees have no mean")
        if self.class_skew < 0 or self.signal < 0:
            raise ValueError("class_skew and signal must not be negative")
        if self.kind == "words" and self.signal > 1:
            raise ValueError("signal is a share of the words and must be at most 1")
        if not (self.train > 0 and self.val >= 0 and self.train + self.val <= 1):
            raise ValueError("train must be positive, and train and val together at most 1")
        if self.split[0] < self.classes:
            raise ValueError(f"train={self.train:g} is {self.split[0]} nodes, too few for {self.classes} classes")

    @property
    def edges(self) -> int:
        """Undirected."""
        return round(self.nodes * self.degree / 2)

    @property
    def split(self) -> tuple[int, int, int]:
        train, val = round(self.nodes * self.train), round(self.nodes * self.val)
        val = min(val, self.nodes - train)
        return train, val, self.nodes - train - val


def _like(name: str, *, homophily: float, class_skew: float = Synthetic.class_skew) -> Synthetic:
    """A graph of the sizes of the data set ``name``."""
    real = DATASETS[name]
    return Synthetic(
        nodes=real.nodes,
        degree=2 * real.edges / real.nodes,
        classes=real.classes,
        features=real.features,
        homophily=homophily,
        class_skew=class_skew,
        signal=1.6,
        train=real.split[0] / real.nodes,
        val=real.split[1] / real.nodes,
        setting=real.setting,
    )


PRESETS: dict[str, Synthetic] = {
    "tiny": Synthetic(nodes=300, degree=6, classes=4, features=16),
    "small": Synthetic(),
    "sparse": Synthetic(nodes=3000, degree=4, classes=6, features=1500, kind="words", signal=0.15),
    "arxiv": _like("ogbn-arxiv", homophily=0.65, class_skew=1.0),
    "reddit": _like("reddit", homophily=0.75),
}


def parse(text: str) -> Synthetic:
    """``small,nodes=5000,homophily=0.3``: a preset, and what to change in it."""
    preset, *changes = [part.strip() for part in text.split(",")]
    values = asdict(resolve("synthetic graph", preset, PRESETS))
    for change in changes:
        key, equals, value = (part.strip() for part in change.partition("="))
        if not equals or not key:
            raise GcondError(f"'synthetic:{text}' has '{change}': write changes as in 'synthetic:small,nodes=5000'")
        values[key] = value
    return build(Synthetic, values, f"synthetic:{preset}")


def load(text: str, request: Request) -> SourceGraph:
    """Make the graph that ``text`` describes (the part after ``synthetic:``)."""
    import torch

    from gcond.data.splits import Split

    spec = parse(text)
    dense = spec.features if spec.kind == "gaussian" else 3 * spec.words
    require_memory(4 * spec.nodes * dense + 80 * spec.edges, f"'synthetic:{text}'")
    y = _classes(spec, _stream(request.seed, "classes"))
    train, val, test = map(torch.from_numpy, _split(spec, y, _stream(request.seed, "split")))
    edge_index = _edges(spec, y, _stream(request.seed, "edges"))
    return request.build(
        Split(train, val, test, f"the graph is made up, with seed {request.seed}"),
        default=spec.setting,
        usual="row-normalise" if spec.kind == "words" else "none",
        x=_features(spec, y, request.seed),
        edge_index=edge_index,
        y=torch.from_numpy(y).long(),
        num_classes=spec.classes,
    )


def _stream(seed: int, purpose: str) -> np.random.Generator:
    from gcond.runtime.seeds import generator

    return np.random.default_rng(generator(seed, f"synthetic/{purpose}").initial_seed())


def _classes(spec: Synthetic, stream: np.random.Generator) -> np.ndarray:
    """int32 [N]: at least three nodes of every class, the rest by Zipf's law."""
    share = np.arange(1, spec.classes + 1, dtype=float) ** -spec.class_skew
    bounds = np.floor(np.cumsum(share / share.sum()) * (spec.nodes - 3 * spec.classes) + 0.5).astype(np.int64)
    sizes = 3 + np.diff(bounds, prepend=0)
    return stream.permutation(np.repeat(np.arange(spec.classes, dtype=np.int32), sizes))


def _split(spec: Synthetic, y: np.ndarray, stream: np.random.Generator) -> list[np.ndarray]:
    """Three disjoint lists of ids at random, save that training gets one node of every class first."""
    order = stream.permutation(spec.nodes)
    first = np.unique(y[order], return_index=True)[1]
    order = np.concatenate([order[first], np.delete(order, first)])
    return np.split(order, np.cumsum(spec.split)[:2])


def _edges(spec: Synthetic, y: np.ndarray, stream: np.random.Generator) -> Tensor:
    """int32 [2, 2E]: both directions of distinct pairs."""
    import torch

    n = spec.nodes
    by_class = np.argsort(y, kind="stable").astype(np.int32)  # position -> node; classes are contiguous
    # The weights' tail is cut at √n, so that no node is joined to a large share of all others.
    weight = np.minimum((1 - stream.random(n)) ** (-1 / (spec.degree_exponent - 1)), np.sqrt(n))
    upper = np.cumsum(weight)
    ends = np.cumsum(np.bincount(y, minlength=spec.classes))
    stop = upper[ends - 1]
    start = np.concatenate([[0.0], stop[:-1]])
    klass = y[by_class]
    total = float(upper[-1])

    def node_at(point: np.ndarray) -> np.ndarray:
        return np.minimum(np.searchsorted(upper, point, side="right"), n - 1).astype(np.int32)

    def pairs(alike: bool, count: int) -> tuple[np.ndarray, np.ndarray]:
        one = node_at(stream.random(count) * total)
        first, width = start[klass[one]], (stop - start)[klass[one]]
        if alike:
            point = first + stream.random(count) * width
        else:
            point = stream.random(count) * (total - width)
            point += np.where(point >= first, width, 0)  # skip the node's own class
        other = node_at(point)
        kept = (klass[other] == klass[one]) == alike  # rounding at a class's border
        return one[kept], other[kept]

    same = round(spec.edges * spec.homophily)
    wanted = {True: same, False: spec.edges - same}
    parts = [_distinct(partial(pairs, alike), count, n, stream) for alike, count in wanted.items()]
    half = sum(len(keys) for keys in parts)
    edge_index = np.empty((2, 2 * half), dtype=np.int32)
    at = 0
    for keys in parts:
        for block in np.split(keys, range(BLOCK, len(keys), BLOCK)):
            edge_index[0, at : at + len(block)] = by_class[block // n]
            edge_index[1, at : at + len(block)] = by_class[block % n]
            at += len(block)
    edge_index[0, half:], edge_index[1, half:] = edge_index[1, :half], edge_index[0, :half]
    return torch.from_numpy(edge_index)


def _distinct(
    draw: Callable[[int], tuple[np.ndarray, np.ndarray]], wanted: int, n: int, stream: np.random.Generator
) -> np.ndarray:
    """``wanted`` distinct unordered pairs as keys low · n + high, drawn again where they repeat.

    A class can be too small for its share; then the last rounds find hardly anything new, and fewer come back.
    """
    keys = np.empty(0, dtype=np.int64)
    for _ in range(40):
        short = wanted - len(keys)
        if short <= 0:
            break
        missing = short + short // 16 + 16
        blocks = [keys]
        while missing > 0:
            one, other = draw(min(missing, BLOCK))
            missing -= BLOCK
            low, high = np.minimum(one, other), np.maximum(one, other)
            blocks.append((low.astype(np.int64) * n + high)[low != high])
        keys = np.concatenate(blocks)
        del blocks
        keys.sort()
        fresh = np.ones(len(keys), dtype=bool)
        np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
        keys = keys[fresh]
    if len(keys) > wanted:
        keys = np.delete(keys, stream.choice(len(keys), len(keys) - wanted, replace=False))
    return keys


def _features(spec: Synthetic, y: np.ndarray, seed: int) -> Matrix:
    if spec.kind == "words":
        return _bag_of_words(spec, y, _stream(seed, "words"))
    return _clouds(spec, y, seed)


def _clouds(spec: Synthetic, y: np.ndarray, seed: int) -> Tensor:
    """float32 [N, d]: x_i = signal · μ_{y_i} + ε, ‖μ_c‖ = 1, ε ~ N(0, I), made in place."""
    import torch

    from gcond.runtime.seeds import generator

    stream = generator(seed, "synthetic/features")
    centres = torch.empty(spec.classes, spec.features).normal_(generator=stream)
    centres *= spec.signal / centres.norm(dim=1, keepdim=True)
    x = torch.empty(spec.nodes, spec.features).normal_(generator=stream)
    label = torch.from_numpy(y)
    for start in range(0, spec.nodes, BLOCK):
        rows = slice(start, start + BLOCK)
        x[rows] += centres[label[rows]]
    return x


def _bag_of_words(spec: Synthetic, y: np.ndarray, stream: np.random.Generator) -> Matrix:
    """Sparse 0/1 [N, d]: which of the ``words`` words drawn occur; ranks by Zipf's law, orders by topic."""
    import scipy.sparse

    from gcond.linalg.sparse import SparseMatrix

    n, vocabulary = spec.nodes, spec.features
    popularity = np.cumsum(1 / np.arange(1, vocabulary + 1))
    topics = np.stack([stream.permutation(vocabulary).astype(np.int32) for _ in range(spec.classes + 1)])
    point = stream.random((n, spec.words), dtype=np.float32) * popularity[-1]
    rank = np.minimum(np.searchsorted(popularity, point, side="right"), vocabulary - 1)
    topical = stream.random((n, spec.words), dtype=np.float32) < spec.signal
    word = topics[np.where(topical, y[:, None], spec.classes), rank]  # the last order is everyone's
    row = np.repeat(np.arange(n, dtype=np.int32), spec.words)
    matrix = scipy.sparse.csr_matrix((np.ones(word.size, np.float32), (row, word.ravel())), shape=(n, vocabulary))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return SparseMatrix.from_scipy(matrix)
