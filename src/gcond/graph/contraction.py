r"""Graph coarsening on SciPy: which nodes to merge, level by level, so that smooth signals survive.

Loukas, Graph Reduction with Spectral and Cut Guarantees, JMLR 2019. A level merges disjoint contraction sets. With
``P`` [n, N] the averages over clusters and ``P⁺`` [N, n] their indicators, a signal x becomes Px and is lifted back
to Πx = P⁺Px. The loss on a subspace R, spanned by K smooth signals, is

.. math:: ε = \max_{x ∈ R} ‖x - Πx‖_L / ‖x‖_L ≤ \prod_ℓ (1 + σ_ℓ) - 1, \qquad σ_ℓ = ‖(I - Π_ℓ) A_ℓ‖_{L_ℓ}

with A_ℓ an L_ℓ-orthonormal basis of what is left of R at level ℓ. Averages weigh a merged
node by the nodes it stands for, so that P is the plain average of a cluster, as the features of a coarse graph are;
the bound needs only that P P⁺ = I.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

Array = NDArray[Any]

# Up to here LAPACK is quicker than an iteration, and exact.
DENSE_UP_TO = 1000
# A matching that merges a smaller share of the nodes than this has stalled at stars, whose leaves go one per level.
STALLED_BELOW = 0.1


class Rule(Protocol):
    """A rule that says what may be merged, and when it is enough."""

    def admit(self, members: Array) -> Array:
        """The part of the contraction set ``members`` that may be merged now: all, some or none of it."""

    def merge(self, members: Array) -> None:
        """Note that ``members``, which were admitted, become one node."""

    def follow(self, step: Array, size: int) -> None:
        """The level is over: node i is now ``step[i]``, of ``size`` nodes."""


@dataclass(frozen=True)
class Coarsened:
    """A coarsening that was done: where every node went, and what it cost."""

    cluster: Array
    """int64 [N]: the coarse node of each node."""
    variations: list[float] = field(default_factory=list)
    """σ of every level; empty where no signals are followed."""

    @property
    def bound(self) -> float:
        """∏(1 + σ) - 1, which ε does not exceed."""
        return float(np.prod([1 + sigma for sigma in self.variations]) - 1)


def coarsen_by_variation(weights: scipy.sparse.csr_matrix, rule: Rule, signals: Array, level_ratio: float) -> Coarsened:
    """Merge neighbourhoods of the smallest local variation, level by level, for as long as ``rule`` lets any.

    ``weights`` is symmetric [N, N] without a diagonal; ``signals`` [N, K] span the subspace to preserve. A level takes
    O(S K²) for the S entries of W inside its candidate sets, at worst Σ_i deg_i² of them.
    """
    cluster, mass = np.arange(weights.shape[0]), np.ones(weights.shape[0])
    variations: list[float] = []
    while True:
        basis = l_orthonormal(weights, signals)
        sets = neighbourhood_sets(weights, basis, mass, rule, level_ratio)
        if not sets:
            return Coarsened(cluster, variations)
        step, size = numbering(sets, len(mass))
        variations.append(l_norm(weights, basis - averages(basis, step, mass, size)[step]))
        signals = averages(signals, step, mass, size)
        mass = np.bincount(step, mass, size)
        weights, cluster = contract(weights, step, size), step[cluster]
        rule.follow(step, size)


def coarsen_by_heavy_edges(weights: scipy.sparse.csr_matrix, rule: Rule, level_ratio: float) -> Coarsened:
    """Merge the ends of heavy edges, level by level, for as long as ``rule`` lets any: O(E log E) per level."""
    cluster = np.arange(weights.shape[0])
    while True:
        sets = heavy_edge_sets(weights, rule, level_ratio)
        if not sets:
            return Coarsened(cluster)
        step, size = numbering(sets, weights.shape[0])
        weights, cluster = contract(weights, step, size), step[cluster]
        rule.follow(step, size)


def laplacian(weights: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """``L = D - W``."""
    return (scipy.sparse.diags(degrees(weights)) - weights).tocsr()


def degrees(weights: scipy.sparse.csr_matrix) -> Array:
    return np.asarray(weights.sum(1)).ravel()


def smooth_signals(weights: scipy.sparse.csr_matrix, count: int, start: Callable[[int, int], Array]) -> Array:
    """The eigenvectors of the ``count`` smallest eigenvalues of L that are not zero: float64 [N, K], K ≤ count.

    Signals that are constant on every component (eigenvalue zero) survive whatever is merged inside components, so
    they need no protection; they are projected out, since a graph may have more components than ``count``. Large graphs
    go through LOBPCG, preconditioned by the degrees; ``start(rows, columns)`` makes its first guess. It may stop
    short of convergence: the guarantee is about the signals returned, whichever they are.
    """
    from scipy.sparse.csgraph import connected_components  # these take a while to import
    from scipy.sparse.linalg import LinearOperator, lobpcg

    n = weights.shape[0]
    components, label = connected_components(weights, directed=False)
    count = min(count, n - components)
    if count == 0:
        return np.zeros((n, 0))
    matrix = laplacian(weights)
    if n <= max(DENSE_UP_TO, 5 * count):
        wanted = (components, components + count - 1)
        _, vectors = scipy.linalg.eigh(matrix.toarray(), subset_by_index=wanted)
        return np.asarray(vectors)
    sizes = np.bincount(label)
    membership = scipy.sparse.csr_matrix((np.ones(n), (label, np.arange(n))))

    def without_constants(x: Array) -> Array:
        x = x.reshape(n, -1)
        centred: Array = x - ((membership @ x) / sizes[:, None])[label]
        return centred

    scale = 1 / np.maximum(degrees(weights), weights.data.min())[:, None]
    operator, preconditioner = (
        LinearOperator((n, n), matvec=each, matmat=each, dtype=np.float64)
        for each in (
            lambda x: without_constants(matrix @ without_constants(x)),
            lambda x: without_constants(scale * without_constants(x)),
        )
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it stopped before it converged
        _, vectors = lobpcg(
            operator, without_constants(start(n, count)), M=preconditioner, largest=False, tol=1e-4, maxiter=200
        )
    return np.asarray(vectors)


def l_orthonormal(weights: scipy.sparse.csr_matrix, signals: Array) -> Array:
    """``A = B (BᵀLB)^{+½}``: the same span as ``signals`` B [n, K] but for constants, with AᵀLA = I on it."""
    gram = signals.T @ (laplacian(weights) @ signals)
    values, vectors = scipy.linalg.eigh((gram + gram.T) / 2) if gram.size else (np.zeros(0), gram)
    kept = values > 1e-12 * values.max(initial=0)
    whitened: Array = signals @ (vectors[:, kept] * values[kept] ** -0.5) @ vectors[:, kept].T
    return whitened


def l_norm(weights: scipy.sparse.csr_matrix, columns: Array) -> float:
    """``‖L^½ Y‖₂`` of the columns Y [n, K]: the largest ‖Yv‖_L of unit vectors v."""
    if not columns.size:
        return 0.0
    return float(np.sqrt(max(0.0, scipy.linalg.eigvalsh(columns.T @ (laplacian(weights) @ columns))[-1])))


def averages(signals: Array, step: Array, mass: Array, size: int) -> Array:
    """``P B``: the mean over each cluster of ``step``, its nodes weighed by ``mass``: [size, K]."""
    total = scipy.sparse.csr_matrix((mass, (step, np.arange(len(step)))), shape=(size, len(step)))
    return np.asarray(total @ signals) / np.bincount(step, mass, size)[:, None]


def contract(weights: scipy.sparse.csr_matrix, step: Array, size: int) -> scipy.sparse.csr_matrix:
    """The weights between clusters, each the sum of those between their nodes; what is inside a cluster goes."""
    entries = weights.tocoo()
    rows, columns = step[entries.row], step[entries.col]
    outside = rows != columns
    parts = (entries.data[outside], (rows[outside], columns[outside]))
    return scipy.sparse.csr_matrix(parts, shape=(size, size))  # sums duplicates


def numbering(sets: list[Array], n: int) -> tuple[Array, int]:
    """Each set as one node, in the order of their first members: the new node of each of ``n``, and how many."""
    leader = np.arange(n)
    for members in sets:
        leader[members] = members.min()
    found, step = np.unique(leader, return_inverse=True)
    return step.astype(np.int64), len(found)


def fewest(n: int, level_ratio: float) -> int:
    """The least number of nodes, of ``n``, that a level leaves; it may always merge something."""
    return min(int(np.ceil(n * (1 - level_ratio))), n - 1)


class LocalVariation:
    """The cost of merging a set: ``‖BᵀL_SB‖_F / (|S| - 1)`` for B = the basis on S less its mean.

    L_S = diag(2 deg - W_S 1) - W_S counts edges inside S once and those that leave it twice, which bounds what
    merging S adds to σ² whatever is merged beside it.
    """

    def __init__(self, weights: scipy.sparse.csr_matrix, basis: Array, mass: Array) -> None:
        self.weights, self.basis, self.mass = weights, basis, mass
        self.degree = degrees(weights)
        self._place = np.full(len(mass), -1)

    def __call__(self, members: Array) -> float:
        size = len(members)
        mass, basis = self.mass[members], self.basis[members]
        centred = basis - (mass @ basis) / mass.sum()
        rows, columns, weight = self._inside(members)
        outer = 2 * self.degree[members] - np.bincount(rows, weight, size)
        form = (centred * outer[:, None]).T @ centred - (centred[rows] * weight[:, None]).T @ centred[columns]
        return float(np.sqrt(np.vdot(form, form))) / (size - 1)

    def _inside(self, members: Array) -> tuple[Array, Array, Array]:
        """Rows, columns (by place in ``members``) and weights of the entries among ``members``."""
        pointer = self.weights.indptr
        first = pointer[members].astype(np.int64)
        counts = pointer[members + 1] - first
        offsets = np.repeat(first - np.cumsum(counts) + counts, counts)
        entries = np.arange(len(offsets)) + offsets
        self._place[members] = np.arange(len(members))
        columns = self._place[self.weights.indices[entries]]
        self._place[members] = -1
        inside = np.flatnonzero(columns >= 0)
        rows = np.repeat(np.arange(len(members)), counts)[inside]
        return rows, columns[inside], self.weights.data[entries[inside]]


def neighbourhoods(weights: scipy.sparse.csr_matrix) -> list[Array]:
    """Every node with its neighbours, those of heavier edges first."""
    n = weights.shape[0]
    rows = np.repeat(np.arange(n), np.diff(weights.indptr))
    order = np.lexsort((weights.indices, -weights.data, rows))
    near = np.split(weights.indices[order].astype(np.int64), weights.indptr[1:-1])
    return [np.concatenate(([centre], others)) for centre, others in enumerate(near)]


def neighbourhood_sets(
    weights: scipy.sparse.csr_matrix, basis: Array, mass: Array, rule: Rule, level_ratio: float
) -> list[Array]:
    """Disjoint sets to merge at one level, cheapest first, as in Loukas' code.

    A set of which some nodes are taken, or may not be merged, goes back into the queue with the rest of it at
    the cost of that rest. A tie goes to the centre of the lower index.
    """
    n = left = len(mass)
    least = fewest(n, level_ratio)
    cost = LocalVariation(weights, basis, mass)
    family = {centre: members for centre, members in enumerate(neighbourhoods(weights)) if len(members) > 1}
    queue = [(cost(members), centre) for centre, members in family.items()]
    heapq.heapify(queue)
    taken = np.zeros(n, dtype=bool)
    sets = []
    while queue and left > least:
        _, centre = heapq.heappop(queue)
        members = family.pop(centre)
        free = members[~taken[members]]
        usable = rule.admit(free)[: left - least + 1] if len(free) > 1 else free
        if len(usable) < 2:
            continue
        if len(usable) < len(members):
            family[centre] = usable
            heapq.heappush(queue, (cost(usable), centre))
            continue
        taken[usable] = True
        rule.merge(usable)
        sets.append(usable)
        left -= len(usable) - 1
    return sets


def heavy_edge_sets(weights: scipy.sparse.csr_matrix, rule: Rule, level_ratio: float) -> list[Array]:
    """A greedy matching by ``w_ij / max(deg_i, deg_j)``, heaviest first.

    (Loukas' code divides by the heaviest edge of the two ends, by which all edges of an unweighted graph tie.)
    Where that stalls, at stars whose leaves would go one per level, what is left over is matched in pairs that
    have the same heaviest neighbour, as METIS does.
    """
    n = weights.shape[0]
    degree = degrees(weights)
    upper = scipy.sparse.triu(weights, 1).tocoo()
    order = np.lexsort((upper.col, upper.row, -upper.data / np.maximum(degree[upper.row], degree[upper.col])))
    heads, tails = upper.row[order], upper.col[order]
    most = n - fewest(n, level_ratio) if len(order) else 0
    free = [True] * n
    sets: list[Array] = []

    def match(i: int, j: int) -> None:
        if free[i] and free[j] and len(sets) < most and len(rule.admit(pair := np.array([i, j]))) == 2:
            rule.merge(pair)
            free[i] = free[j] = False
            sets.append(pair)

    for i, j in zip(heads.tolist(), tails.tolist(), strict=True):
        if free[i] and free[j]:
            match(i, j)
    if len(sets) < STALLED_BELOW * n:
        ends, first = np.unique(np.stack([heads, tails], 1), return_index=True)
        heaviest = np.full(n, -1)  # the other end of the first edge in that order
        heaviest[ends] = np.where(first % 2 == 0, tails[first // 2], heads[first // 2])
        waiting: dict[int, int] = {}
        for node in np.flatnonzero(free).tolist():
            hub = int(heaviest[node])
            other = waiting.get(hub, node)
            if hub >= 0 and other != node:
                match(other, node)
            if free[node]:
                waiting[hub] = node
            else:
                waiting.pop(hub)
    return sets
