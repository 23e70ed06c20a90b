"""Algorithm 1 of the paper as it stands there: autograd, a loop over classes, every pair of nodes concatenated.

Nothing in it is quick. It is what the fast path must be equal to, and what benchmarks/condensation.py measures it
against. The paper's line "compute A' = g_Φ(X')" is inside the loop over classes, where it gives the same A' every
time; here, as in the released code, it is done once for all classes and once more for the inner loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from gcond.models.model import Model

Weights = dict[str, Tensor]
Distance = Callable[[Sequence[Tensor], Sequence[Tensor]], Tensor]


@dataclass(frozen=True)
class Real:
    """The training data: features [N, d], normalised adjacency [N, N] (dense or sparse), labelled nodes and labels."""

    x: Tensor
    operator: Tensor
    nodes: Tensor
    y: Tensor


def condense(
    model: Model,
    real: Real,
    x: Tensor,
    y: Tensor,
    phi: Weights,
    *,
    structure: Callable[[Weights, Tensor], Tensor],
    distance: Distance,
    thetas: Sequence[Weights],
    turns: Sequence[tuple[bool, bool]],
    outer: int,
    inner: int,
    lr: tuple[float, float, float],
) -> Iterator[float]:
    """Change X' and Φ in place; the loss of every outer step.

    A fresh backbone of ``thetas`` and a turn (does X' learn, does Φ) is for one epoch; ``lr`` is of X', Φ and θ.
    """
    opt_x, opt_phi = torch.optim.Adam([x], lr[0]), torch.optim.Adam([{"params": list(phi.values())}], lr[1])
    for start, (features_learn, structure_learns) in zip(thetas, turns, strict=True):
        theta = {key: tensor.clone().requires_grad_() for key, tensor in start.items()}
        opt_theta = torch.optim.Adam(theta.values(), lr[2])
        x.requires_grad_(features_learn)
        for tensor in phi.values():
            tensor.requires_grad_(structure_learns)
        for t in range(outer):
            loss = total(distance, class_gradients(model, theta, real, x=x, y=y, adjacency=structure(phi, x)), y)
            loss.backward(inputs=[tensor for tensor in (x, *phi.values()) if tensor.requires_grad])
            for optimiser in (opt_x, opt_phi):  # whoever's turn it is not has no gradient, and stays
                optimiser.step()
                optimiser.zero_grad()
            yield loss.item()
            if t + 1 == outer:
                break
            with torch.no_grad():
                operator = normalise(model, structure(phi, x), condensed=True)
            for _ in range(inner):
                opt_theta.zero_grad()
                F.cross_entropy(scores(model, theta, x.detach(), operator), y).backward()
                opt_theta.step()


def class_gradients(
    model: Model, theta: Weights, real: Real, *, x: Tensor, y: Tensor, adjacency: Tensor
) -> list[tuple[Sequence[Tensor], Sequence[Tensor]]]:
    """For every class the gradients of θ on the source, and on the condensed graph."""
    operator = normalise(model, adjacency, condensed=True)
    found = []
    for c in range(int(y.max()) + 1):
        nodes = real.nodes[real.y == c]
        loss_real = F.cross_entropy(scores(model, theta, real.x, real.operator)[nodes], real.y[real.y == c])
        theirs = torch.autograd.grad(loss_real, list(theta.values()))
        loss_own = F.cross_entropy(scores(model, theta, x, operator)[y == c], y[y == c])
        found.append((theirs, torch.autograd.grad(loss_own, list(theta.values()), create_graph=True)))
    return found


def total(distance: Distance, gradients: Sequence[tuple[Sequence[Tensor], Sequence[Tensor]]], y: Tensor) -> Tensor:
    """D', class c weighing n_c / max n."""
    sizes = torch.bincount(y)
    return sum(sizes[c] / sizes.max() * distance(theirs, own) for c, (theirs, own) in enumerate(gradients))


def scores(model: Model, theta: Weights, x: Tensor, S: Tensor) -> Tensor:
    """Class scores [n, C] by the formulas of the models' own papers; ``S`` is what :func:`normalise` gave."""
    h = x
    for layer in range(model.layers):
        h = h if layer == 0 else F.relu(h)
        bias = theta[f"bias{layer}"]
        if model.name == "gcn":
            h = S @ (h @ theta[f"weight{layer}"]) + bias
        elif model.name == "sage":
            h = S @ (h @ theta[f"weight{layer}"]) + h @ theta[f"own{layer}"] + bias
        elif model.name == "cheby":
            terms = [h, S @ h]
            while len(terms) < model.order:
                terms.append(2 * (S @ terms[-1]) - terms[-2])
            h = sum(terms[k] @ theta[f"weight{layer}.{k}"] for k in range(model.order)) + bias
        elif model.name == "sgc" and model.layers == 1:
            h = h @ theta["weight0"]
            for _ in range(model.hops):
                h = S @ h
            return h + bias
        else:
            h = h @ theta[f"weight{layer}"] + bias
    own = h
    if model.name in {"sgc", "appnp"}:
        alpha = model.alpha if model.name == "appnp" else 0.0
        for _ in range(model.hops):
            h = (1 - alpha) * (S @ h) + alpha * own
    return h


def normalise(model: Model, A: Tensor, *, condensed: bool = False) -> Tensor:
    """``D^-1 A`` for GraphSAGE, ``-D^-½ A D^-½`` for ChebNet, ``D^-½ (A + I) D^-½`` for the others.

    A condensed graph has its self-loops for all of them.
    """
    if condensed or model.name not in {"sage", "cheby"}:
        A = A + torch.eye(len(A), dtype=A.dtype)
    degree = A.sum(1).masked_fill(A.sum(1) == 0, torch.inf)
    if model.name == "sage":
        return A / degree[:, None]
    sign = -1 if model.name == "cheby" else 1
    return sign * degree[:, None] ** -0.5 * A * degree[None, :] ** -0.5


def pairwise_mlp(phi: Weights, x: Tensor, symmetric: bool = True) -> Tensor:
    """g_Φ, equation (7), with the layers of the released code."""
    n = len(x)
    i, j = torch.arange(n).repeat_interleave(n), torch.arange(n).repeat(n)
    h = torch.cat([x[i], x[j]], dim=1)
    h = h @ torch.cat([phi["target"], phi["source"]]) + phi["bias0"]
    h = F.relu(F.batch_norm(h, None, None, phi["gamma0"], phi["beta0"], training=True))
    h = h @ phi["weight1"] + phi["bias1"]
    h = F.relu(F.batch_norm(h, None, None, phi["gamma1"], phi["beta1"], training=True))
    return edge_weights((h @ phi["weight2"] + phi["bias2"]).view(n, n), symmetric)


def literal_phi(phi: Weights, seed: int = 0) -> Weights:
    """A copy of Φ with the biases that batch normalisation takes out again, which the fast path does without."""
    copies = {key: tensor.detach().clone() for key, tensor in phi.items()}
    stream = torch.Generator().manual_seed(seed)
    for layer in (0, 1):
        gamma = phi[f"gamma{layer}"]
        copies[f"bias{layer}"] = torch.randn(gamma.shape, dtype=gamma.dtype, generator=stream)
    return copies


def free(phi: Weights, x: Tensor, symmetric: bool = True) -> Tensor:
    """A' as numbers of its own."""
    return edge_weights(phi["score"], symmetric)


def identity(phi: Weights, x: Tensor) -> Tensor:
    """A' = I."""
    return torch.eye(len(x), dtype=x.dtype)


def edge_weights(score: Tensor, symmetric: bool) -> Tensor:
    weights = torch.sigmoid((score + score.T) / 2 if symmetric else score)
    return weights * (1 - torch.eye(len(score), dtype=score.dtype))


def column_cosine(real: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
    """Equation (5), summed over the layers' weights; biases count nothing."""
    return sum((1 - cosine(a, b)).sum() for a, b in zip(real, own, strict=True) if a.dim() == 2)


def whole_cosine(real: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
    return 1 - cosine(flat(real), flat(own))


def squared(real: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
    return (flat(real) - flat(own)).square().sum()


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Down the first dimension; 0 where either is zero."""
    lengths = a.norm(dim=0) * b.norm(dim=0)
    return torch.where(lengths > 0, (a * b).sum(0) / torch.where(lengths > 0, lengths, 1), 0)


def flat(gradients: Sequence[Tensor]) -> Tensor:
    return torch.cat([g.reshape(-1) for g in gradients])


DISTANCES: dict[str, Distance] = {"column-cosine": column_cosine, "cosine": whole_cosine, "mse": squared}
