"""Condensed graphs of other tools: plain safetensors files with ``x``, ``y`` and, if there are any, edges.

What they hold is taken in any usual type and then checked as gcond's own; what they lack is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from gcond.errors import GcondError
from gcond.runtime.tensor_file import read_plain_tensors

NAMES = ("x", "y", "edge_index", "edge_weight")
NO_ORIGIN = (
    "it does not say what it was made from or how: the source's features are taken as they are read, "
    "and classes are those of y"
)


def read_foreign(path: str | Path) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """The tensors of a condensed graph, and a note on each thing that is missing or was left out."""
    given, others = read_plain_tensors(path, NAMES)
    for name in ("x", "y"):
        if name not in given:
            raise GcondError(
                f"'{path}' is a safetensors file that gcond did not write, and has no tensor '{name}': "
                "a condensed graph has x, y and, if there are edges, edge_index and edge_weight"
            )
    if "edge_weight" in given and "edge_index" not in given:
        raise GcondError(f"'{path}' has an edge_weight without an edge_index: give both, or neither")
    notes = [NO_ORIGIN]
    if others:
        notes.append(f"not used of the file: {', '.join(others[:5])}{', …' if len(others) > 5 else ''}")
    x, y = _real(given["x"]), _labels(given["y"])
    if "edge_index" not in given:
        notes.append("it has no edge_index, so models train on A' = I")
    edges = _whole("edge_index", given.get("edge_index", torch.empty(2, 0, dtype=torch.int64)))
    if edges.dim() == 2 and "edge_weight" not in given and edges.shape[1]:
        notes.append("it has no edge_weight, so every edge weighs 1")
    weight = _real(given["edge_weight"]) if "edge_weight" in given else torch.ones(edges.shape[-1])
    tensors = {"x": x, "y": y, "edge_index": edges, "edge_weight": weight}
    if edges.dim() == 2 and edges.shape[0] == 2 and weight.shape == edges.shape[1:]:
        loops = edges[0] == edges[1]
        if dropped := int(loops.sum()):
            notes.append(f"{dropped} self-loops were dropped: training adds one of weight 1 to every node")
            edges, weight = edges[:, ~loops], weight[~loops]
        edges, weight, merged = _each_once(edges, weight)
        if merged:
            notes.append(f"{merged} repeated edges were merged, the heaviest kept")
        tensors |= {"edge_index": edges, "edge_weight": weight}
    return _owned(tensors), tuple(notes)


def _each_once(edges: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, int]:
    """Edges [2, E] with their weights, each once, as a source's are; and how many there were too many."""
    once, place = edges.unique(dim=1, return_inverse=True)
    if once.shape[1] == edges.shape[1]:
        return edges, weight, 0
    heaviest = torch.full((once.shape[1],), -torch.inf).scatter_reduce_(0, place, weight, "amax")
    return once, heaviest, edges.shape[1] - once.shape[1]


def _labels(y: Tensor) -> Tensor:
    """Class ids [n] or [n, 1] as int64 [n], shares [n, C] as float32; anything else as it is, to be refused."""
    y = y.squeeze(1) if y.dim() == 2 and y.shape[1] == 1 else y
    if y.dim() == 2 and not y.is_complex():  # one-hot rows, of whole numbers perhaps
        return y.to(torch.float32)
    if y.dim() == 1 and y.is_floating_point() and bool((y == y.round()).all()):  # ids that another tool kept as floats
        return y.to(torch.int64)
    return _real(y) if y.is_floating_point() else _whole("y", y)


def _whole(name: str, given: Tensor) -> Tensor:
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        raise GcondError(f"{name} is {given.dtype} {list(given.shape)}, and must be whole numbers")
    return given.to(torch.int64)


def _real(given: Tensor) -> Tensor:
    """float32 of any real type, infinite where it cannot hold a number; complex numbers stay, to be refused."""
    return given if given.is_complex() else given.to(torch.float32)


def _owned(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.contiguous() for name, tensor in tensors.items()}
